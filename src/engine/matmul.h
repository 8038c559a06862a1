/* matmul.h: packed rows times a stored weight matrix, on tiles of fixed shape. */
#ifndef MHA_ENGINE_MATMUL_H
#define MHA_ENGINE_MATMUL_H

#include "engine/engine.h"

/* What is done to each output tile while it is in cache: y ← y + bias; then y ← f(y), or with
 * `gate` y ← f(gate)·y. */
typedef struct mha_epilogue {
    const float *bias; /* [out] or NULL */
    mha_act act;
    float *gate; /* same shape and stride as y, overwritten; NULL: none */
} mha_epilogue;

/* y[rows, out] = x[rows, in]·Wᵀ, row strides ldy and ldx. epilogue may be NULL. */
mha_status mha_matmul(mha_engine *e, float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                      const mha_weight *w, const mha_epilogue *epilogue, mha_err *err);

/* dx[rows, in] = dy[rows, out]·W + beta·dx: the gradient of mha_matmul's input. */
mha_status mha_matmul_back(mha_engine *e, float *dx, size_t ldx, const float *dy, size_t ldy,
                           size_t rows, const mha_weight *w, float beta, mha_err *err);

/* The whole matrix as float: *out [out, in] row-major, or [in, out] when *b_transposed comes back
 * false. Either the stored bytes themselves or scratch that the next matmul overwrites. */
mha_status mha_weight_floats(mha_engine *e, const mha_weight *w, const float **out, size_t *ld,
                             bool *b_transposed, mha_err *err);

/* Stored row r as floats in dst[in]; not for in_out matrices. */
void mha_weight_row(const mha_kernels *k, const mha_weight *w, size_t r, float *dst);

#endif
