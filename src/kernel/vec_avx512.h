/* vec_avx512.h: the vector vocabulary on 512-bit registers: AVX-512 F, BW, DQ, VL. The words and
 * their meaning are those of vec_avx2.h. */
#ifndef MHA_KERNEL_VEC_AVX512_H
#define MHA_KERNEL_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { VF = 16 };

typedef __m512 vf;
typedef __mmask16 vm;
typedef struct vd {
    __m512d lo, hi;
} vd;

static inline vf vf_set1(float a)
{
    return _mm512_set1_ps(a);
}

static inline vf vf_iota(void) /* 0, 1, 2, … */
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

static inline vm vm_first(size_t r) /* the first r lanes, r <= VF */
{
    return (vm)((1U << r) - 1U);
}

static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vf_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}

static inline vf vf_load_first(const float *p, size_t r) /* the other lanes are 0 */
{
    return _mm512_maskz_loadu_ps(vm_first(r), p);
}

static inline void vf_store_first(float *p, vf a, size_t r)
{
    _mm512_mask_storeu_ps(p, vm_first(r), a);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c) /* a·b + c */
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_fms(vf a, vf b, vf c) /* a·b − c */
{
    return _mm512_fmsub_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c) /* c − a·b */
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm512_andnot_ps(vf_set1(-0.0F), a);
}

static inline vf vf_copysign(vf magnitude, vf sign)
{
    return _mm512_or_ps(vf_abs(magnitude), _mm512_and_ps(vf_set1(-0.0F), sign));
}

static inline vf vf_round(vf a) /* to the nearest whole number, ties to even */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_ldexp(vf a, vf n) /* a·2^n for whole n, rounded once */
{
    return _mm512_scalef_ps(a, n);
}

static inline vm vf_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vm vf_is_nan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}

static inline vm vm_none(void)
{
    return 0;
}

static inline vm vm_or(vm a, vm b)
{
    return (vm)(a | b);
}

static inline int vm_any(vm a)
{
    return a != 0;
}

static inline vf vf_select(vm choice, vf yes, vf no)
{
    return _mm512_mask_blend_ps(choice, no, yes);
}

static inline float vf_reduce_max(vf a)
{
    return _mm512_reduce_max_ps(a);
}

/* a0 a2 a4 … b0 b2 … and a1 a3 a5 … b1 b3 … */
static inline void vf_unzip(vf *even, vf *odd, vf a, vf b)
{
    const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);

    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(e, _mm512_set1_epi32(1)), b);
}

static inline vd vd_set1(double a)
{
    return (vd){_mm512_set1_pd(a), _mm512_set1_pd(a)};
}

static inline vd vd_widen(vf a)
{
    return (vd){_mm512_cvtps_pd(_mm512_castps512_ps256(a)),
                _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1))};
}

static inline vf vd_narrow(vd a)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.lo)), _mm512_cvtpd_ps(a.hi),
                              1);
}

static inline vd vd_load(const uint8_t *p) /* VF stored doubles */
{
    return (vd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 64)};
}

static inline vd vd_add(vd a, vd b)
{
    return (vd){_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)};
}

static inline vd vd_sub(vd a, vd b)
{
    return (vd){_mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi)};
}

static inline vd vd_mul(vd a, vd b)
{
    return (vd){_mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi)};
}

static inline vd vd_fma(vd a, vd b, vd c)
{
    return (vd){_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)};
}

static inline double vd_sum(vd a)
{
    const __m512d s = _mm512_add_pd(a.lo, a.hi);
    const __m256d t = _mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd(s, 1));
    const __m128d u = _mm_add_pd(_mm256_castpd256_pd128(t), _mm256_extractf128_pd(t, 1));

    return _mm_cvtsd_f64(_mm_add_sd(u, _mm_unpackhi_pd(u, u)));
}

/* Stored types: VF elements at p, which need not be aligned. */
static inline vf vf_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline vf vf_load_bf16(const uint8_t *p)
{
    const __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* The 32 signed bytes of q as floats. */
static inline void vf_from_bytes(vf v[32 / VF], __m256i q)
{
    v[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(q)));
    v[1] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(q, 1)));
}

#endif
