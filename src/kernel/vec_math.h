/* vec_math.h: exponential, hyperbolic tangent and the activations on whole vectors.
 *
 * Written in the words of vec_avx2.h or vec_avx512.h, one of which the including file chose.
 * Polynomials are minimax fits of relative error over the interval named beside them. */
#ifndef MHA_KERNEL_VEC_MATH_H
#define MHA_KERNEL_VEC_MATH_H

/* e^x rounds to 0 from here on (ln 2^−150 is −103.97) and to infinity from there on. */
#define VEC_EXP_ZERO     (-104.0F)
#define VEC_EXP_INFINITY 89.0F

/* e^x for VEC_EXP_ZERO <= x <= VEC_EXP_INFINITY or NaN; at most 1 ulp off.
 *
 * x = n·ln 2 + r with whole n and |r| <= ½ ln 2, so e^x = 2^n·e^r. ln 2 is subtracted in two parts;
 * e^r = 1 + r + r²·p(r), p of degree 4 (3e-9 for |r| <= 0.3467). */
static inline vf vf_exp_inside(vf x)
{
    const vf n = vf_round(vf_mul(x, vf_set1(0x1.715476p+0F)));
    vf r = vf_fnma(n, vf_set1(0x1.62e430p-1F), x);
    r = vf_fnma(n, vf_set1(-0x1.05c610p-29F), r);
    vf p = vf_set1(0x1.6a241ap-10F);
    p = vf_fma(p, r, vf_set1(0x1.1239f2p-7F));
    p = vf_fma(p, r, vf_set1(0x1.5558f2p-5F));
    p = vf_fma(p, r, vf_set1(0x1.555492p-3F));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2F));
    p = vf_fma(p, vf_mul(r, r), r);
    return vf_ldexp(vf_add(p, vf_set1(1.0F)), n);
}

static inline vf vf_exp(vf x)
{
    x = vf_max(vf_set1(VEC_EXP_ZERO), x);
    return vf_exp_inside(vf_min(vf_set1(VEC_EXP_INFINITY), x));
}

/* tanh x; relative error at most 3 ulp.
 *
 * |x| < 0.55:  x + x³·p(x²), which keeps the relative error for small x;
 * else         ±(1 − 2/(e^(2|x|) + 1)), where the subtraction no longer cancels. */
static inline vf vf_tanh(vf x)
{
    const vf a = vf_abs(x), y = vf_mul(x, x), one = vf_set1(1.0F), two = vf_set1(2.0F);
    vf p = vf_set1(-0.006274239809418897F);
    p = vf_fma(p, y, vf_set1(0.021071679240994273F));
    p = vf_fma(p, y, vf_set1(-0.05385230994956551F));
    p = vf_fma(p, y, vf_set1(0.13332586138773836F));
    p = vf_fma(p, y, vf_set1(-0.3333331755967494F));
    const vf small = vf_fma(vf_mul(x, y), p, x);
    const vf e = vf_exp(vf_mul(two, a));
    const vf large = vf_sub(one, vf_div(two, vf_add(e, one)));
    return vf_select(vf_less(a, vf_set1(0.55F)), small, vf_copysign(large, x));
}

/* x·σ(z) = x/(1 + e^(−z)): no cancellation for negative z, and −0 instead of NaN far out. */
static inline vf vf_sigmoid_times(vf x, vf minus_z)
{
    return vf_div(x, vf_add(vf_set1(1.0F), vf_exp(minus_z)));
}

static inline vf act_none(vf x)
{
    return x;
}

/* x·Φ(x) = max(x, 0) − a·Φ(−a) with a = |x|. The tail is written Φ(−a) = e^(−a²/2)·R(a), where R,
 * half the scaled complementary error function, is smooth: ½ + s·p(s) with s = 0.3a/(1 + 0.3a) and
 * p of degree 7 (relative error 2e-8 for small a, 2e-7 for a <= 14; beyond, Φ(−a) is below the
 * smallest float). The rounding error of a² is carried along, because e^(−a²/2) would multiply it
 * by a²/2. */
static inline vf act_gelu(vf x)
{
    const vf a = vf_min(vf_set1(15.0F), vf_abs(x)), half = vf_set1(0.5F);
    const vf b = vf_mul(vf_set1(0.3F), a);
    const vf s = vf_div(b, vf_add(b, vf_set1(1.0F)));
    vf p = vf_set1(0.036483278974286576F);
    p = vf_fma(p, s, vf_set1(-0.1314999517571233F));
    p = vf_fma(p, s, vf_set1(0.11039096864560614F));
    p = vf_fma(p, s, vf_set1(0.11406801592345303F));
    p = vf_fma(p, s, vf_set1(-0.046905611199682784F));
    p = vf_fma(p, s, vf_set1(-0.700791206667618F));
    p = vf_fma(p, s, vf_set1(1.4480644402635963F));
    p = vf_fma(p, s, vf_set1(-1.329809939223837F));
    const vf r = vf_fma(p, s, half);
    const vf square = vf_mul(a, a);
    const vf lost = vf_fms(a, a, square);
    const vf e = vf_exp_inside(vf_max(vf_set1(VEC_EXP_ZERO), vf_mul(vf_set1(-0.5F), square)));
    const vf phi = vf_mul(r, vf_fnma(vf_mul(half, lost), e, e));
    return vf_fnma(a, phi, vf_max(vf_set1(0.0F), x));
}

/* ½x(1 + tanh z) = x·σ(2z) with z = √(2/π)·(x + 0.044715x³). */
static inline vf act_gelu_tanh(vf x)
{
    const float k = -1.5957691216057308F; /* −2√(2/π) */
    const vf cubic = vf_fma(vf_mul(x, x), vf_set1(0.044715F * k), vf_set1(k));

    return vf_sigmoid_times(x, vf_mul(x, cubic));
}

static inline vf act_quick_gelu(vf x)
{
    return vf_sigmoid_times(x, vf_mul(x, vf_set1(-1.702F)));
}

static inline vf act_silu(vf x)
{
    return vf_sigmoid_times(x, vf_sub(vf_set1(0.0F), x));
}

static inline vf act_relu(vf x)
{
    return vf_max(vf_set1(0.0F), x);
}

static inline vf act_tanh(vf x)
{
    return vf_tanh(x);
}

#endif
