/* dtype.c: the table of element types. */
#include "base/dtype.h"

static const mha_dtype_info infos[MHA_DTYPE_COUNT] = {
    [MHA_F32] = {"F32", 1, 4},         [MHA_F16] = {"F16", 1, 2},
    [MHA_BF16] = {"BF16", 1, 2},       [MHA_F64] = {"F64", 1, 8},
    [MHA_Q4_0] = {"Q4_0", 32, 18},     [MHA_Q4_1] = {"Q4_1", 32, 20},
    [MHA_Q5_0] = {"Q5_0", 32, 22},     [MHA_Q5_1] = {"Q5_1", 32, 24},
    [MHA_Q8_0] = {"Q8_0", 32, 34},     [MHA_Q2_K] = {"Q2_K", 256, 84},
    [MHA_Q3_K] = {"Q3_K", 256, 110},   [MHA_Q4_K] = {"Q4_K", 256, 144},
    [MHA_Q5_K] = {"Q5_K", 256, 176},   [MHA_Q6_K] = {"Q6_K", 256, 210},
    [MHA_IQ4_NL] = {"IQ4_NL", 32, 18}, [MHA_I8] = {"I8", 1, 1},
    [MHA_I16] = {"I16", 1, 2},         [MHA_I32] = {"I32", 1, 4},
    [MHA_I64] = {"I64", 1, 8},         [MHA_U8] = {"U8", 1, 1},
    [MHA_U16] = {"U16", 1, 2},         [MHA_U32] = {"U32", 1, 4},
    [MHA_U64] = {"U64", 1, 8},         [MHA_BOOL] = {"BOOL", 1, 1},
};

const mha_dtype_info *mha_dtype_get(mha_dtype t)
{
    return &infos[t];
}

bool mha_dtype_size(mha_dtype t, uint64_t n, uint64_t *bytes)
{
    if (n % infos[t].block != 0)
        return false;
    return !__builtin_mul_overflow(n / infos[t].block, (uint64_t)infos[t].bytes, bytes);
}
