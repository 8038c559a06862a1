/* half.h: the two 16-bit floating-point formats as float. Widening is exact: every half is a
 * float. */
#ifndef MHA_BASE_HALF_H
#define MHA_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* The value of an IEEE half: sign 1, exponent 5 (bias 15), fraction 10. NaN stays NaN. */
static inline float mha_f16_widen(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000U) << 16;
    const uint32_t magnitude = h & 0x7fffU;
    float value;

    if (magnitude < 0x0400U) { /* zero and denormals: an integer times 2^−24, exact */
        value = (float)magnitude * 0x1p-24F;
    } else {
        /* 112 moves the bias from 15 to 127; infinity and NaN need the rest of the way to 255. */
        const uint32_t bits = (magnitude << 13) + ((magnitude >= 0x7c00U ? 224U : 112U) << 23);
        memcpy(&value, &bits, sizeof value);
    }
    uint32_t out;
    memcpy(&out, &value, sizeof out);
    out |= sign;
    memcpy(&value, &out, sizeof value);
    return value;
}

/* A bfloat16 is the upper half of a float. */
static inline float mha_bf16_widen(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest bfloat16, ties to even, of a finite float. */
static inline float mha_bf16_round(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
