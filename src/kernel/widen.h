/* widen.h: the stored element types, and their portable decoding to float.
 *
 * Layouts of the block types, as GGUF files hold them. Fields follow each other without padding,
 * numbers of several bytes are little-endian, d, m and dmin are f16. `nib(j)` stands for the low
 * nibble of qs[j] for j < 16 and the high nibble of qs[j − 16] for j >= 16: the low nibbles are the
 * first half of the block, they do not alternate.
 *
 *   type    elements  bytes  fields
 *   Q4_0          32     18  d, qs[16]                             x = d·(nib − 8)
 *   Q4_1          32     20  d, m, qs[16]                          x = d·nib + m
 *   Q5_0          32     22  d, qh[4], qs[16]                      x = d·((nib | h << 4) − 16)
 *   Q5_1          32     24  d, m, qh[4], qs[16]                   x = d·(nib | h << 4) + m
 *   Q8_0          32     34  d, i8 qs[32]                          x = d·qs[j]
 *   IQ4_NL        32     18  d, qs[16]                             x = d·table[nib]
 *   Q2_K         256     84  scales[16], qs[64], d, dmin           x = d·sc·q − dmin·mn
 *   Q3_K         256    110  hmask[32], qs[64], scales[12], d      x = d·(sc − 32)·q
 *   Q4_K         256    144  d, dmin, scales[12], qs[128]          x = d·sc·q − dmin·mn
 *   Q5_K         256    176  d, dmin, scales[12], qh[32], qs[128]  x = d·sc·q − dmin·mn
 *   Q6_K         256    210  ql[128], qh[64], i8 scales[16], d     x = d·sc·q
 *
 * h of element j in Q5_0 and Q5_1 is bit j of qh, read as one little-endian number.
 *
 * All types decode 32 consecutive elements at a time; part p of a block holds elements 32p …
 * 32p+31, l = 0 … 31 counts inside the part. In the K types:
 *
 *   Q2_K  q  = (qs[32·(p/4) + l] >> 2·(p mod 4)) & 3. Group g = 2p + l/16 has sc = low nibble and
 *         mn = high nibble of scales[g].
 *   Q3_K  q  = the same two bits, minus 4 when bit p of hmask[l] is clear. Group g as in Q2_K; its
 *         six-bit sc has the low nibble of scales[g] (g < 8) or the high nibble of scales[g − 8],
 *         and above it bits 2·(g/4), 2·(g/4)+1 of scales[8 + g mod 4].
 *   Q4_K  q  = low (p even) or high (p odd) nibble of qs[32·(p/2) + l]. For p < 4: sc = scales[p] &
 *         63, mn = scales[p+4] & 63; else sc = (scales[p+4] & 15) | (scales[p−4] >> 6) << 4 and
 *         mn = (scales[p+4] >> 4) | (scales[p] >> 6) << 4.
 *   Q5_K  as Q4_K, q + 16 when bit p of qh[l] is set.
 *   Q6_K  q  = (nibble | two bits << 4) − 32 with h = p/4, k = p mod 4: the low (k < 2) or high
 *         nibble of ql[64h + 32·(k mod 2) + l], and bits 2k, 2k+1 of qh[32h + l];
 *         sc = scales[2p + l/16].
 *
 * Products are evaluated as (d·sc)·q − (dmin·mn) in float, each operation rounded, by every
 * instruction set: a weight has the same value everywhere. */
#ifndef MHA_KERNEL_WIDEN_H
#define MHA_KERNEL_WIDEN_H

#include "base/half.h"
#include "kernel/kernel.h"
#include <string.h>

static inline uint16_t mha_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline float mha_load_f16(const uint8_t *p)
{
    return mha_f16_widen(mha_load_u16(p));
}

/* The scale and the minimum of part p in Q4_K and Q5_K, six bits each, from scales[12]. */
static inline void mha_k4_scales(const uint8_t *scales, size_t p, uint8_t *sc, uint8_t *mn)
{
    if (p < 4) {
        *sc = scales[p] & 63;
        *mn = scales[p + 4] & 63;
    } else {
        *sc = (uint8_t)((scales[p + 4] & 15) | (scales[p - 4] >> 6) << 4);
        *mn = (uint8_t)((scales[p + 4] >> 4) | (scales[p] >> 6) << 4);
    }
}

/* The scale of group g in Q3_K, from scales[12]; −32 … 31. */
static inline int mha_k3_scale(const uint8_t *scales, size_t g)
{
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    const int high = scales[8 + g % 4] >> 2 * (g / 4) & 3;

    return (low | high << 4) - 32;
}

/* The sixteen levels of IQ4_NL, denser near zero. */
extern const int8_t mha_iq4_nl_levels[16];

void mha_ref_widen_f32(float *dst, const void *src, size_t n);
void mha_ref_widen_f16(float *dst, const void *src, size_t n);
void mha_ref_widen_bf16(float *dst, const void *src, size_t n);
void mha_ref_widen_f64(float *dst, const void *src, size_t n);
void mha_ref_widen_q4_0(float *dst, const void *src, size_t n);
void mha_ref_widen_q4_1(float *dst, const void *src, size_t n);
void mha_ref_widen_q5_0(float *dst, const void *src, size_t n);
void mha_ref_widen_q5_1(float *dst, const void *src, size_t n);
void mha_ref_widen_q8_0(float *dst, const void *src, size_t n);
void mha_ref_widen_q2_k(float *dst, const void *src, size_t n);
void mha_ref_widen_q3_k(float *dst, const void *src, size_t n);
void mha_ref_widen_q4_k(float *dst, const void *src, size_t n);
void mha_ref_widen_q5_k(float *dst, const void *src, size_t n);
void mha_ref_widen_q6_k(float *dst, const void *src, size_t n);
void mha_ref_widen_iq4_nl(float *dst, const void *src, size_t n);

/* Sums in double: the value that faster kernels are tested against. */
float mha_ref_dot_f32(const void *row, const float *x, size_t n);
float mha_ref_dot_f16(const void *row, const float *x, size_t n);
float mha_ref_dot_bf16(const void *row, const float *x, size_t n);
float mha_ref_dot_f64(const void *row, const float *x, size_t n);
float mha_ref_dot_q4_0(const void *row, const float *x, size_t n);
float mha_ref_dot_q4_1(const void *row, const float *x, size_t n);
float mha_ref_dot_q5_0(const void *row, const float *x, size_t n);
float mha_ref_dot_q5_1(const void *row, const float *x, size_t n);
float mha_ref_dot_q8_0(const void *row, const float *x, size_t n);
float mha_ref_dot_q2_k(const void *row, const float *x, size_t n);
float mha_ref_dot_q3_k(const void *row, const float *x, size_t n);
float mha_ref_dot_q4_k(const void *row, const float *x, size_t n);
float mha_ref_dot_q5_k(const void *row, const float *x, size_t n);
float mha_ref_dot_q6_k(const void *row, const float *x, size_t n);
float mha_ref_dot_iq4_nl(const void *row, const float *x, size_t n);

#endif
