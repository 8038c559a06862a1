/* placement.h: where the nodes of a graph lie in a picture. */
#ifndef MHA_RENDER_PLACEMENT_H
#define MHA_RENDER_PLACEMENT_H

#include "render/canvas.h"

/* More nodes than this make no picture. */
#define MHA_PLACEMENT_NODES 4096

/* out [nodes]: x from 0 to 1, y from 0 to *height, which is at most 1. The directions of edges do
 * not matter here. The same graph always gets the same picture. MHA_ERR_LIMIT: too many nodes. */
mha_status mha_placement_make(mha_point *out, double *height, size_t nodes, size_t edges,
                              const uint32_t *source, const uint32_t *target, mha_err *err);

#endif
