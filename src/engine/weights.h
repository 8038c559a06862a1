/* weights.h: gradients of stored tensors, on request. Every op that multiplies by, adds or looks up
 * a tensor hands in the factors of its gradient as it is reversed; they are added where the tensor
 * lies in its file, in one fixed order: rows of a batch by rising row, batch after batch, steps
 * from the last to the first. */
#ifndef MHA_ENGINE_WEIGHTS_H
#define MHA_ENGINE_WEIGHTS_H

#include "engine/engine.h"

typedef struct mha_weights {
    mha_engine *e;
    float **of; /* [tensors of the checkpoint] NULL: nobody wants it */
} mha_weights;

/* Finds the wanted tensors. MHA_ERR_ARG for one that no step has a gradient for,
 * MHA_ERR_UNSUPPORTED for one of a block type. */
mha_status mha_weights_init(mha_weights *w, mha_engine *e, const mha_weight_gradient *wanted,
                            size_t count, mha_err *err);
void mha_weights_release(mha_weights *w);

/* In all of these `w` may be NULL, and what nobody wants costs a look-up only. */

/* y = W·x + b: dW += dyᵀ·x, db += Σ dy over `rows` rows. b may be NULL. */
mha_status mha_weights_linear(const mha_weights *w, const mha_weight *m, const float *b,
                              const float *dy, size_t ldy, const float *x, size_t ldx, size_t rows,
                              mha_err *err);
/* y = x̂·gain + b of rows of a->n floats, with x̂ the normed x. */
mha_status mha_weights_norm(const mha_weights *w, const mha_norm_args *a, const float *dy,
                            const float *x, size_t rows, mha_err *err);
/* Where the gradient of stored row r of a table lies; NULL: not wanted. */
float *mha_weights_row(const mha_weights *w, const mha_weight *m, size_t r);
/* Adds to the gradient of a vector that a step holds as `vector`. */
bool mha_weights_wants(const mha_weights *w, const float *vector);
void mha_weights_vector(const mha_weights *w, const float *vector, const double *values,
                        size_t first, size_t n);

#endif
