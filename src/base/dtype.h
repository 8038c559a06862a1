/* dtype.h: the element types of stored tensors. Block types hold `block` elements in `bytes` bytes;
 * their layouts are described in kernel/widen.h, where they are decoded. */
#ifndef MHA_BASE_DTYPE_H
#define MHA_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mha_dtype {
    MHA_F32 = 0,
    MHA_F16,
    MHA_BF16,
    MHA_F64,
    MHA_Q4_0,
    MHA_Q4_1,
    MHA_Q5_0,
    MHA_Q5_1,
    MHA_Q8_0,
    MHA_Q2_K,
    MHA_Q3_K,
    MHA_Q4_K,
    MHA_Q5_K,
    MHA_Q6_K,
    MHA_IQ4_NL,
    MHA_DTYPE_FLOAT_COUNT, /* types before this one can be widened to float */
    MHA_I8 = MHA_DTYPE_FLOAT_COUNT,
    MHA_I16,
    MHA_I32,
    MHA_I64,
    MHA_U8,
    MHA_U16,
    MHA_U32,
    MHA_U64,
    MHA_BOOL,
    MHA_DTYPE_COUNT
} mha_dtype;

typedef struct mha_dtype_info {
    const char *name; /* "F32", "Q4_K", … as safetensors and GGUF spell them */
    uint16_t block;   /* elements in one block, 1 for plain types */
    uint16_t bytes;   /* bytes of one block */
} mha_dtype_info;

const mha_dtype_info *mha_dtype_get(mha_dtype t);
/* Bytes of n elements; false when n is not a whole number of blocks or the size overflows. */
bool mha_dtype_size(mha_dtype t, uint64_t n, uint64_t *bytes);

#endif
