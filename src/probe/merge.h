/* merge.h: rows of a pattern become rows of cells: special keys taken out, key pieces of a word
 * summed, query pieces averaged. Rows of one head come in order; a row of cells is complete with
 * the last piece of its word. Knows nothing of where rows come from or go to. */
#ifndef MHA_PROBE_MERGE_H
#define MHA_PROBE_MERGE_H

#include "mha/trace.h"

/* Rows with less than this left beside special keys are skipped (methods, rule 5). */
#define MHA_MERGE_LEAST 1e-6

/* The cells of one text. */
typedef struct mha_cells {
    uint32_t *cell;  /* [n] or NULL: every token stands alone */
    size_t n, count; /* tokens, cells */
} mha_cells;

/* words may be NULL. Release in any case. */
mha_status mha_cells_init(mha_cells *c, const int32_t *words, size_t n, mha_err *err);
void mha_cells_release(mha_cells *c);

/* How the rows of one attention step on one document are read. */
typedef struct mha_merge {
    const mha_cells *queries, *keys;
    const uint8_t *special; /* [S] flags of the keys, or NULL */
    mha_special mode;
} mha_merge;

/* The row of cells that is being made. */
typedef struct mha_merge_row {
    double *p;     /* [keys->count] weights */
    uint8_t *seen; /* [keys->count] whether the mask shows the cell and it counts; NULL: no need */
    double special, left_out; /* mass on special keys, and 1 − Σ p of the row as it came */
    size_t pieces, skipped;   /* token rows in it, and those that RENORM had to skip */
} mha_merge_row;

/* Adds row i, p [S] with keys [lo, hi) visible. true when its cell is complete: then the values are
 * means over the pieces (pieces == 0: all skipped), until the next row is added. */
bool mha_merge_add(const mha_merge *m, mha_merge_row *row, size_t i, const float *p, size_t lo,
                   size_t hi);

#endif
