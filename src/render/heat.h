/* heat.h: what is inside a mha_heat, for the figures. */
#ifndef MHA_RENDER_HEAT_H
#define MHA_RENDER_HEAT_H

#include "mha/chart.h"

struct mha_heat {
    size_t rows, cols;           /* cells of the map */
    size_t tile;                 /* cells on the side of a tile */
    size_t tile_rows, tile_cols; /* tiles */
    mha_pooling pooling;
    double *sums; /* [tile_rows, tile_cols] largest weight, or sum */
    size_t *seen; /* [tile_rows, tile_cols] weights that arrived */
};

/* *out = h with `factor` x `factor` tiles made one. */
mha_status mha_heat_coarsen(mha_heat **out, const mha_heat *h, size_t factor, mha_err *err);

#endif
