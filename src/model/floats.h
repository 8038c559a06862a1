/* floats.h: small stored vectors as floats: biases, norm gains, tables of a few hundred numbers. */
#ifndef MHA_MODEL_FLOATS_H
#define MHA_MODEL_FLOATS_H

#include "base/mem.h"
#include "io/checkpoint.h"

/* *out[n] = elements at … of the plain tensor t in row-major order, `group` of them every `step`,
 * plus `add` each. The caller has checked that they are inside. MHA_ERR_UNSUPPORTED for integer and
 * block types, MHA_ERR_NUMERIC for NaN and infinities, both naming the tensor. */
typedef struct mha_float_slice {
    uint64_t at, group, step;
    uint32_t n;
    float add;
} mha_float_slice;

mha_status mha_floats_read(const float **out, mha_arena *arena, const mha_tensor *t,
                           const mha_float_slice *slice, const char *file, mha_err *err);

/* *out[rows, n]: row p is sin(p·f_i) for i < ceil(n/2), then cos(p·f_i) for i < floor(n/2), with
 * f_i = 10000^(−2i/n): the original Transformer's positions, not interleaved. */
mha_status mha_floats_sinusoid(const float **out, mha_arena *arena, uint32_t rows, uint32_t n,
                               mha_err *err);

#endif
