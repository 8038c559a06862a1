/* vec_math.h: exponential, hyperbolic tangent, the activations and their derivatives on whole
 * vectors.
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

/* The tail of the normal distribution is written Φ(−a) = e^(−a²/2)·R(a) for a in 0 … 15, where R,
 * half the scaled complementary error function, is smooth: ½ + s·p(s) with s = 0.3a/(1 + 0.3a) and
 * p of degree 7 (relative error 2e-8 for small a, 2e-7 for a <= 14; beyond, Φ(−a) is below the
 * smallest float). */
static inline vf gelu_ratio(vf a)
{
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
    return vf_fma(p, s, vf_set1(0.5F));
}

/* e^(−a²/2). The rounding error of a² is carried along, because the exponential would multiply it
 * by a²/2. */
static inline vf gelu_exp(vf a)
{
    const vf square = vf_mul(a, a);
    const vf lost = vf_fms(a, a, square);
    const vf e = vf_exp_inside(vf_max(vf_set1(VEC_EXP_ZERO), vf_mul(vf_set1(-0.5F), square)));
    return vf_fnma(vf_mul(vf_set1(0.5F), lost), e, e);
}

/* x·Φ(x) = max(x, 0) − a·Φ(−a) with a = |x|. */
static inline vf act_gelu(vf x)
{
    const vf a = vf_min(vf_set1(15.0F), vf_abs(x));

    return vf_fnma(a, vf_mul(gelu_ratio(a), gelu_exp(a)), vf_max(vf_set1(0.0F), x));
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

/* e^x − 1 = 2t/(1 − t) with t = tanh(x/2), which is exact for small x too. */
static inline vf act_elu(vf x)
{
    const vf t = vf_tanh(vf_mul(vf_set1(0.5F), x));
    const vf left = vf_div(vf_add(t, t), vf_sub(vf_set1(1.0F), t));

    return vf_select(vf_less(x, vf_set1(0.0F)), left, x);
}

/* Derivatives. f of all the GELUs and of SiLU is x·s(x) with s(−x) = 1 − s(x), so f'(x) is
 * 1 − f'(−x): only the left side is evaluated, where nothing cancels against 1. */
static inline vf slope_mirror(vf x, vf left)
{
    return vf_select(vf_less(x, vf_set1(0.0F)), left, vf_sub(vf_set1(1.0F), left));
}

/* min(|x|, 128), keeping NaN: there the slopes are 0 and 1, and no product overflows. */
static inline vf slope_argument(vf x)
{
    return vf_min(vf_set1(128.0F), vf_abs(x));
}

/* e^(−z) for z >= 0. */
static inline vf slope_exp(vf z)
{
    return vf_exp_inside(vf_max(vf_set1(VEC_EXP_ZERO), vf_sub(vf_set1(0.0F), z)));
}

/* f' of x·σ(z) with odd z, from z and its derivative dz at a = |x|: with e = e^(−z) and
 * q = σ(z) = 1/(1 + e), f'(−a) = e·q·(1 − a·dz·q). */
static inline vf sigmoid_times_slope(vf x, vf a, vf z, vf dz)
{
    const vf one = vf_set1(1.0F), e = slope_exp(z);
    const vf q = vf_div(one, vf_add(one, e));

    return slope_mirror(x, vf_mul(vf_mul(e, q), vf_fnma(vf_mul(a, dz), q, one)));
}

/* f'(−a) = Φ(−a) − a·φ(a) = e^(−a²/2)·(R(a) − a/√(2π)). */
static inline vf slope_gelu(vf x)
{
    const vf a = vf_min(vf_set1(15.0F), vf_abs(x));
    const vf factor = vf_fnma(vf_set1(0.3989422804014327F), a, gelu_ratio(a));

    return slope_mirror(x, vf_mul(gelu_exp(a), factor));
}

static inline vf slope_gelu_tanh(vf x)
{
    const float k = 1.5957691216057308F; /* 2√(2/π) */
    const vf a = slope_argument(x), square = vf_mul(a, a);
    const vf z = vf_mul(a, vf_fma(square, vf_set1(0.044715F * k), vf_set1(k)));
    const vf dz = vf_fma(square, vf_set1(3.0F * 0.044715F * k), vf_set1(k));

    return sigmoid_times_slope(x, a, z, dz);
}

static inline vf slope_quick_gelu(vf x)
{
    const vf a = slope_argument(x), k = vf_set1(1.702F);

    return sigmoid_times_slope(x, a, vf_mul(k, a), k);
}

static inline vf slope_silu(vf x)
{
    const vf a = slope_argument(x);

    return sigmoid_times_slope(x, a, a, vf_set1(1.0F));
}

static inline vf slope_relu(vf x)
{
    const vf step = vf_select(vf_less(vf_set1(0.0F), x), vf_set1(1.0F), vf_set1(0.0F));

    return vf_select(vf_is_nan(x), x, step);
}

/* 1 − tanh² x = 4e/(1 + e)² with e = e^(−2|x|), which does not cancel. */
static inline vf slope_tanh(vf x)
{
    const vf a = slope_argument(x), e = slope_exp(vf_add(a, a));
    const vf q = vf_div(vf_set1(2.0F), vf_add(vf_set1(1.0F), e));

    return vf_mul(e, vf_mul(q, q));
}

/* e^x on the left, 1 from 0 on. */
static inline vf slope_elu(vf x)
{
    const vf step =
        vf_select(vf_less(x, vf_set1(0.0F)), slope_exp(slope_argument(x)), vf_set1(1.0F));

    return vf_select(vf_is_nan(x), x, step);
}

#endif
