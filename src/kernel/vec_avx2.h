/* vec_avx2.h: the vector vocabulary on 256-bit registers: AVX2, FMA, F16C.
 *
 * vec_avx512.h offers the same names on 512 bits. vec_math.h, vec_rows.h and vec_stored.h are
 * written in these words once; avx2.c and avx512.c, the only files compiled for those processors,
 * include one vocabulary each. A port needs this file and a table.
 *
 *   vf   VF floats          vm   a choice for each lane of a vf
 *   vd   the same lanes as doubles
 *
 * vf_max and vf_min give their second argument where either is NaN. */
#ifndef MHA_KERNEL_VEC_AVX2_H
#define MHA_KERNEL_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { VF = 8 };

typedef __m256 vf;
typedef __m256 vm;
typedef struct vd {
    __m256d lo, hi;
} vd;

static inline vf vf_set1(float a)
{
    return _mm256_set1_ps(a);
}

static inline vf vf_iota(void) /* 0, 1, 2, … */
{
    return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

static inline vm vm_first(size_t r) /* the first r lanes, r <= VF */
{
    static const int32_t window[2 * VF] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_castsi256_ps(
        _mm256_loadu_si256((const __m256i *)(const void *)(window + VF - r)));
}

static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vf_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}

static inline vf vf_load_first(const float *p, size_t r) /* the other lanes are 0 */
{
    return _mm256_maskload_ps(p, _mm256_castps_si256(vm_first(r)));
}

static inline void vf_store_first(float *p, vf a, size_t r)
{
    _mm256_maskstore_ps(p, _mm256_castps_si256(vm_first(r)), a);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c) /* a·b + c */
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_fms(vf a, vf b, vf c) /* a·b − c */
{
    return _mm256_fmsub_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c) /* c − a·b */
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm256_andnot_ps(vf_set1(-0.0F), a);
}

static inline vf vf_copysign(vf magnitude, vf sign)
{
    return _mm256_or_ps(vf_abs(magnitude), _mm256_and_ps(vf_set1(-0.0F), sign));
}

static inline vf vf_round(vf a) /* to the nearest whole number, ties to even */
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a·2^n for whole n in −252 … 254, rounded once: two steps, since 2^n itself may not be a float. */
static inline vf vf_ldexp(vf a, vf n)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i rest = _mm256_sub_epi32(whole, half);
    const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);

    return vf_mul(vf_mul(a, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

static inline vm vf_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vm vf_is_nan(vf a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}

static inline vm vm_none(void)
{
    return _mm256_setzero_ps();
}

static inline vm vm_or(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}

static inline int vm_any(vm a)
{
    return _mm256_movemask_ps(a) != 0;
}

static inline vf vf_select(vm choice, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, choice);
}

static inline float vf_reduce_max(vf a)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* a0 a2 a4 … b0 b2 … and a1 a3 a5 … b1 b3 … */
static inline void vf_unzip(vf *even, vf *odd, vf a, vf b)
{
    const vf e = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)); /* a0 a2 b0 b2 | a4 a6 b4 b6 */
    const vf o = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));

    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(e), _MM_SHUFFLE(3, 1, 2, 0)));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(o), _MM_SHUFFLE(3, 1, 2, 0)));
}

static inline vd vd_set1(double a)
{
    return (vd){_mm256_set1_pd(a), _mm256_set1_pd(a)};
}

static inline vd vd_widen(vf a)
{
    return (vd){_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
}

static inline vf vd_narrow(vd a)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(a.hi), _mm256_cvtpd_ps(a.lo));
}

static inline vd vd_load(const uint8_t *p) /* VF stored doubles */
{
    return (vd){_mm256_loadu_pd((const double *)(const void *)p),
                _mm256_loadu_pd((const double *)(const void *)(p + 32))};
}

static inline vd vd_add(vd a, vd b)
{
    return (vd){_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)};
}

static inline vd vd_sub(vd a, vd b)
{
    return (vd){_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)};
}

static inline vd vd_mul(vd a, vd b)
{
    return (vd){_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)};
}

static inline vd vd_fma(vd a, vd b, vd c)
{
    return (vd){_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}

static inline double vd_sum(vd a)
{
    const __m256d s = _mm256_add_pd(a.lo, a.hi);
    const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));

    return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
}

/* Stored types: VF elements at p, which need not be aligned. */
static inline vf vf_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vf vf_load_bf16(const uint8_t *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* The 32 signed bytes of q as floats. */
static inline void vf_from_bytes(vf v[32 / VF], __m256i q)
{
    const __m128i lo = _mm256_castsi256_si128(q), hi = _mm256_extracti128_si256(q, 1);

    v[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(lo));
    v[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(lo, 8)));
    v[2] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(hi));
    v[3] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(hi, 8)));
}

#endif
