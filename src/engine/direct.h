/* direct.h: what only the direct reverse pass does. It follows the residual stream alone: branches
 * are constants, norms keep their scale, so that logits are sums of what each part wrote. */
#ifndef MHA_ENGINE_DIRECT_H
#define MHA_ENGINE_DIRECT_H

#include "engine/backward.h"

/* MHA_ERR_UNSUPPORTED: an activation stands between the residual stream and the logits. */
mha_status mha_direct_check(const struct mha_model *m, mha_err *err);

/* Adds Σ ⟨x, dy⟩ over each document's rows to one member of its contributions, which `part` picks.
 * x [rows, width] has stride 0 for a bias that all rows share; NULL adds nothing. */
typedef enum mha_direct_part { MHA_DIRECT_EMBED, MHA_DIRECT_MLP, MHA_DIRECT_BIAS } mha_direct_part;
void mha_direct_add(mha_backward *b, mha_direct_part part, const float *x, size_t stride,
                    const float *dy, size_t rows, size_t width);

/* One row of a norm's reverse with its scale r as a constant; dx may be dy:
 * LayerNorm dx = r·(g − mean g), RMS dx = r·g, with g = dy ⊙ w. */
void mha_direct_norm(float *dx, const float *dy, const float *x, const mha_norm_args *a, size_t n);

/* One term read off its row of logits s [V] before any softcap. s becomes the direction in which
 * the logits are read, times weight: ∂(against − id), or softmax − 1_id of the capped logits. */
typedef struct mha_direct_term {
    double loss;        /* of the capped logits */
    double value, size; /* ⟨direction, s⟩; |s| of its two sides, added */
    double bias;        /* ⟨direction, b⟩ */
} mha_direct_term;
mha_direct_term mha_direct_read(float *s, size_t V, const mha_prediction *p, double weight,
                                float cap, float max, const float *b);

#endif
