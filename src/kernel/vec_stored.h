/* vec_stored.h: decoding of stored types and their products with a vector, on x86 vectors.
 *
 * Layouts and formulas: widen.h. A part of 32 elements is first unpacked to 32 signed bytes with
 * its scales, by AVX2 for both vector widths; only the step from bytes to floats differs. */
#ifndef MHA_KERNEL_VEC_STORED_H
#define MHA_KERNEL_VEC_STORED_H

#include "kernel/vec_rows.h"
#include "kernel/widen.h"

/* Loops over the vectors of a part, or over chains of sums, are unrolled by pragma (gcc and clang
 * know it): else gcc keeps the array in memory and every addition waits for a store. */
enum { VEC_PART = 32, VEC_CHAINS = 4 };

/* ---- plain types ---- */

/* VF elements of a stored type at p. */
typedef vf vec_loader(const uint8_t *p);

static inline vf load_f32(const uint8_t *p)
{
    return vf_load((const float *)(const void *)p);
}

static inline vf load_f16(const uint8_t *p)
{
    return vf_load_f16(p);
}

static inline vf load_bf16(const uint8_t *p)
{
    return vf_load_bf16(p);
}

static inline vf load_f64(const uint8_t *p)
{
    return vd_narrow(vd_load(p));
}

/* The last r < VF elements; the other lanes are 0. */
VEC_INLINE vf load_tail(const uint8_t *p, size_t r, size_t size, vec_loader *load)
{
    uint8_t whole[VF * sizeof(double)] = {0};

    memcpy(whole, p, r * size);
    return load(whole);
}

VEC_INLINE void widen_plain(float *dst, const void *src, size_t n, size_t size, vec_loader *load)
{
    const uint8_t *p = src;
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(dst + i, load(p + i * size));
    if (i < n)
        vf_store_first(dst + i, load_tail(p + i * size, n - i, size, load), n - i);
}

VEC_INLINE float chains_sum(const vf a[VEC_CHAINS])
{
    return (float)vd_sum(vd_widen(vf_add(vf_add(a[0], a[1]), vf_add(a[2], a[3]))));
}

VEC_INLINE float dot_plain(const void *row, const float *x, size_t n, size_t size, vec_loader *load)
{
    const uint8_t *p = row;
    vf sum[VEC_CHAINS] = {vf_set1(0.0F), vf_set1(0.0F), vf_set1(0.0F), vf_set1(0.0F)};
    size_t i = 0;

    for (; i + VEC_CHAINS * VF <= n; i += VEC_CHAINS * VF) {
#pragma GCC unroll 4
        for (size_t c = 0; c < VEC_CHAINS; c++)
            sum[c] = vf_fma(load(p + (i + c * VF) * size), vf_load(x + i + c * VF), sum[c]);
    }
    for (; i + VF <= n; i += VF)
        sum[0] = vf_fma(load(p + i * size), vf_load(x + i), sum[0]);
    if (i < n) {
        const vf last = load_tail(p + i * size, n - i, size, load);
        sum[1] = vf_fma(last, vf_load_first(x + i, n - i), sum[1]);
    }
    return chains_sum(sum);
}

/* ---- block types ---- */

/* 32 elements: q·scale − min, with a scale and a min for each half. */
typedef struct part32 {
    __m256i q;
    float scale[2], min[2];
} part32;

typedef part32 vec_unpacker(const uint8_t *block, size_t part);

static inline float half_at(const uint8_t *p)
{
    return _cvtsh_ss(mha_load_u16(p));
}

static inline __m256i bytes_at(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline __m256i byte_mask(__m256i v, int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

/* Every byte of v, shifted right and masked. */
static inline __m256i byte_field(__m256i v, size_t shift, int mask)
{
    return byte_mask(_mm256_srl_epi16(v, _mm_cvtsi32_si128((int)shift)), mask);
}

/* 16 bytes: their low nibbles, then their high nibbles. */
static inline __m256i nibbles_at(const uint8_t *p)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);

    return byte_mask(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), 15);
}

/* All ones in the bytes of v that have every bit of `bits`. */
static inline __m256i bytes_with(__m256i v, __m256i bits)
{
    return _mm256_cmpeq_epi8(_mm256_and_si256(v, bits), bits);
}

/* 16 in byte j when bit j of the 32-bit number at p is set, else 0. */
static inline __m256i fifth_bits_at(const uint8_t *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i source =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(word), source);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ULL);

    return byte_mask(bytes_with(spread, bit), 16);
}

static inline part32 unpack_q4_0(const uint8_t *block, size_t part)
{
    const float d = half_at(block);

    (void)part;
    return (part32){.q = _mm256_sub_epi8(nibbles_at(block + 2), _mm256_set1_epi8(8)),
                    .scale = {d, d}};
}

static inline part32 unpack_q4_1(const uint8_t *block, size_t part)
{
    const float d = half_at(block), m = half_at(block + 2);

    (void)part;
    return (part32){.q = nibbles_at(block + 4), .scale = {d, d}, .min = {-m, -m}};
}

static inline part32 unpack_q5_0(const uint8_t *block, size_t part)
{
    const float d = half_at(block);
    const __m256i q = _mm256_or_si256(nibbles_at(block + 6), fifth_bits_at(block + 2));

    (void)part;
    return (part32){.q = _mm256_sub_epi8(q, _mm256_set1_epi8(16)), .scale = {d, d}};
}

static inline part32 unpack_q5_1(const uint8_t *block, size_t part)
{
    const float d = half_at(block), m = half_at(block + 2);
    const __m256i q = _mm256_or_si256(nibbles_at(block + 8), fifth_bits_at(block + 4));

    (void)part;
    return (part32){.q = q, .scale = {d, d}, .min = {-m, -m}};
}

static inline part32 unpack_q8_0(const uint8_t *block, size_t part)
{
    const float d = half_at(block);

    (void)part;
    return (part32){.q = bytes_at(block + 2), .scale = {d, d}};
}

static inline part32 unpack_iq4_nl(const uint8_t *block, size_t part)
{
    const float d = half_at(block);
    const __m128i levels = _mm_loadu_si128((const __m128i *)(const void *)mha_iq4_nl_levels);

    (void)part;
    return (part32){
        .q = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), nibbles_at(block + 2)),
        .scale = {d, d}};
}

static inline part32 unpack_q2_k(const uint8_t *block, size_t part)
{
    const float d = half_at(block + 80), dmin = half_at(block + 82);
    const uint8_t s0 = block[2 * part], s1 = block[2 * part + 1];

    return (part32){.q = byte_field(bytes_at(block + 16 + 32 * (part / 4)), 2 * (part % 4), 3),
                    .scale = {d * (float)(s0 & 15), d * (float)(s1 & 15)},
                    .min = {dmin * (float)(s0 >> 4), dmin * (float)(s1 >> 4)}};
}

static inline part32 unpack_q3_k(const uint8_t *block, size_t part)
{
    const float d = half_at(block + 108);
    const __m256i q = byte_field(bytes_at(block + 32 + 32 * (part / 4)), 2 * (part % 4), 3);
    const __m256i high = bytes_with(bytes_at(block), _mm256_set1_epi8((char)(1 << part)));
    const __m256i four = _mm256_andnot_si256(high, _mm256_set1_epi8(4));
    const uint8_t *scales = block + 96;

    return (part32){.q = _mm256_sub_epi8(q, four),
                    .scale = {d * (float)mha_k3_scale(scales, 2 * part),
                              d * (float)mha_k3_scale(scales, 2 * part + 1)}};
}

/* The common part of Q4_K and Q5_K: their scales, applied to the numbers q. */
static inline part32 part_k4(const uint8_t *block, size_t part, __m256i q)
{
    uint8_t sc, mn;

    mha_k4_scales(block + 4, part, &sc, &mn);
    const float d = half_at(block) * (float)sc, m = half_at(block + 2) * (float)mn;
    return (part32){.q = q, .scale = {d, d}, .min = {m, m}};
}

static inline part32 unpack_q4_k(const uint8_t *block, size_t part)
{
    const __m256i qs = bytes_at(block + 16 + 32 * (part / 2));

    return part_k4(block, part, byte_field(qs, 4 * (part % 2), 15));
}

static inline part32 unpack_q5_k(const uint8_t *block, size_t part)
{
    const __m256i qs = bytes_at(block + 48 + 32 * (part / 2));
    const __m256i high = bytes_with(bytes_at(block + 16), _mm256_set1_epi8((char)(1 << part)));
    const __m256i q = _mm256_or_si256(byte_field(qs, 4 * (part % 2), 15), byte_mask(high, 16));

    return part_k4(block, part, q);
}

static inline part32 unpack_q6_k(const uint8_t *block, size_t part)
{
    const size_t h = part / 4, k = part % 4;
    const float d = half_at(block + 208);
    const __m256i low = byte_field(bytes_at(block + 64 * h + 32 * (k % 2)), 4 * (k / 2), 15);
    const __m256i high = byte_field(bytes_at(block + 128 + 32 * h), 2 * k, 3);
    const __m256i q = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
    const uint8_t *scales = block + 192 + 2 * part;

    return (part32){.q = _mm256_sub_epi8(q, _mm256_set1_epi8(32)),
                    .scale = {d * (float)(int8_t)scales[0], d * (float)(int8_t)scales[1]}};
}

/* v ← the 32 values. Product and difference are rounded apart, as in the portable decoding. */
VEC_INLINE void part_values(vf v[VEC_PART / VF], const part32 *part)
{
    vf_from_bytes(v, part->q);
#pragma GCC unroll 4
    for (size_t k = 0; k < VEC_PART / VF; k++) {
        const size_t half = 2 * k * VF / VEC_PART;
        v[k] = vf_sub(vf_mul(v[k], vf_set1(part->scale[half])), vf_set1(part->min[half]));
    }
}

VEC_INLINE void widen_blocks(float *dst, const void *src, size_t n, size_t elements, size_t bytes,
                             vec_unpacker *unpack)
{
    const uint8_t *block = src;

    for (size_t i = 0; i < n; i += elements, block += bytes) {
        for (size_t p = 0; p < elements / VEC_PART; p++) {
            const part32 part = unpack(block, p);
            vf v[VEC_PART / VF];
            part_values(v, &part);
#pragma GCC unroll 4
            for (size_t k = 0; k < VEC_PART / VF; k++)
                vf_store(dst + i + p * VEC_PART + k * VF, v[k]);
        }
    }
}

VEC_INLINE float dot_blocks(const void *row, const float *x, size_t n, size_t elements,
                            size_t bytes, vec_unpacker *unpack)
{
    const uint8_t *block = row;
    vf sum[VEC_CHAINS] = {vf_set1(0.0F), vf_set1(0.0F), vf_set1(0.0F), vf_set1(0.0F)};

    for (size_t i = 0; i < n; i += elements, block += bytes) {
        for (size_t p = 0; p < elements / VEC_PART; p++) {
            const part32 part = unpack(block, p);
            vf v[VEC_PART / VF];
            part_values(v, &part);
#pragma GCC unroll 4
            for (size_t k = 0; k < VEC_PART / VF; k++)
                sum[k] = vf_fma(v[k], vf_load(x + i + p * VEC_PART + k * VF), sum[k]);
        }
    }
    return chains_sum(sum);
}

/* ---- the functions of the tables ---- */

static void widen_f32(float *dst, const void *src, size_t n)
{
    widen_plain(dst, src, n, 4, load_f32);
}

static float dot_f32(const void *row, const float *x, size_t n)
{
    return dot_plain(row, x, n, 4, load_f32);
}

static void widen_f16(float *dst, const void *src, size_t n)
{
    widen_plain(dst, src, n, 2, load_f16);
}

static float dot_f16(const void *row, const float *x, size_t n)
{
    return dot_plain(row, x, n, 2, load_f16);
}

static void widen_bf16(float *dst, const void *src, size_t n)
{
    widen_plain(dst, src, n, 2, load_bf16);
}

static float dot_bf16(const void *row, const float *x, size_t n)
{
    return dot_plain(row, x, n, 2, load_bf16);
}

static void widen_f64(float *dst, const void *src, size_t n)
{
    widen_plain(dst, src, n, 8, load_f64);
}

static float dot_f64(const void *row, const float *x, size_t n)
{
    return dot_plain(row, x, n, 8, load_f64);
}

static void widen_q4_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 18, unpack_q4_0);
}

static float dot_q4_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 18, unpack_q4_0);
}

static void widen_q4_1(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 20, unpack_q4_1);
}

static float dot_q4_1(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 20, unpack_q4_1);
}

static void widen_q5_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 22, unpack_q5_0);
}

static float dot_q5_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 22, unpack_q5_0);
}

static void widen_q5_1(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 24, unpack_q5_1);
}

static float dot_q5_1(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 24, unpack_q5_1);
}

static void widen_q8_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 34, unpack_q8_0);
}

static float dot_q8_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 34, unpack_q8_0);
}

static void widen_q2_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 256, 84, unpack_q2_k);
}

static float dot_q2_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 256, 84, unpack_q2_k);
}

static void widen_q3_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 256, 110, unpack_q3_k);
}

static float dot_q3_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 256, 110, unpack_q3_k);
}

static void widen_q4_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 256, 144, unpack_q4_k);
}

static float dot_q4_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 256, 144, unpack_q4_k);
}

static void widen_q5_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 256, 176, unpack_q5_k);
}

static float dot_q5_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 256, 176, unpack_q5_k);
}

static void widen_q6_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 256, 210, unpack_q6_k);
}

static float dot_q6_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 256, 210, unpack_q6_k);
}

static void widen_iq4_nl(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, 32, 18, unpack_iq4_nl);
}

static float dot_iq4_nl(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, 32, 18, unpack_iq4_nl);
}

#endif
