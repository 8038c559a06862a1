/* floats.c: widening of small vectors when a model is opened. Large matrices are never read here:
 * they are widened as they are used. */
#include "model/floats.h"
#include "base/fail.h"
#include "base/half.h"
#include <math.h>
#include <string.h>

/* Little-endian and unaligned, as all files are. */
static float load(mha_dtype type, const unsigned char *p)
{
    uint16_t half;
    float single;
    double wide;
    switch (type) {
    case MHA_F16:
        memcpy(&half, p, sizeof half);
        return mha_f16_widen(half);
    case MHA_BF16:
        memcpy(&half, p, sizeof half);
        return mha_bf16_widen(half);
    case MHA_F64:
        memcpy(&wide, p, sizeof wide);
        return (float)wide;
    default:
        memcpy(&single, p, sizeof single);
        return single;
    }
}

mha_status mha_floats_read(const float **out, mha_arena *arena, const mha_tensor *t,
                           const mha_float_slice *slice, const char *file, mha_err *err)
{
    const mha_dtype_info *info = mha_dtype_get(t->type);
    if (t->type != MHA_F32 && t->type != MHA_F16 && t->type != MHA_BF16 && t->type != MHA_F64)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s; expected F32, F16, BF16 or F64", file, t->name,
                        info->name);
    float *v;
    MHA_TRY(mha_arena_alloc((void **)&v, arena, slice->n, sizeof *v, err));
    for (uint32_t i = 0; i < slice->n; i++) {
        uint64_t at = slice->at + i / slice->group * slice->step + i % slice->group;
        v[i] = load(t->type, t->data + at * info->bytes) + slice->add;
        if (!isfinite(v[i]))
            return mha_fail(err, MHA_ERR_NUMERIC, "%s: tensor %s: element %llu is %s", file,
                            t->name, (unsigned long long)at, isnan(v[i]) ? "NaN" : "infinite");
    }
    *out = v;
    return MHA_OK;
}

mha_status mha_floats_sinusoid(const float **out, mha_arena *arena, uint32_t rows, uint32_t n,
                               mha_err *err)
{
    uint32_t sines = (n + 1) / 2;
    float *table;
    MHA_TRY(mha_arena_alloc((void **)&table, arena, (size_t)rows * n, sizeof *table, err));
    for (uint32_t i = 0; i < sines; i++) {
        double f = pow(10000, -2.0 * i / n);
        for (uint32_t p = 0; p < rows; p++) {
            float *row = table + (size_t)p * n;
            row[i] = (float)sin(p * f);
            if (sines + i < n)
                row[sines + i] = (float)cos(p * f);
        }
    }
    *out = table;
    return MHA_OK;
}
