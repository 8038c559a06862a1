/* ref.c: portable C for every kernel. Accuracy comes first here: transcendental functions are those
 * of libm in double, sums are double, and results are rounded to float once. The faster tables are
 * tested against this one. */
#include "kernel/kernel.h"

#include "kernel/tables.h"
#include "kernel/widen.h"
#include <assert.h>
#include <math.h>

static float ref_max(const float *s, size_t n)
{
    float m = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (isnan(s[i]))
            return s[i];
        if (s[i] > m)
            m = s[i];
    }
    return m;
}

static void ref_exp_sum(float *s, size_t n, float m, double *l)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        s[i] = (float)exp((double)s[i] - (double)m);
        sum += (double)s[i];
    }
    *l = sum;
}

static void ref_exp_stats(float *s, size_t n, float m, mha_exp_sums *out)
{
    double l = 0.0, u = 0.0, w = 0.0;

    for (size_t i = 0; i < n; i++) {
        const double t = (double)s[i] - (double)m;
        s[i] = (float)exp(t);
        const double e = (double)s[i];
        if (e == 0.0)
            continue; /* t may be −∞, and −∞·0 is not 0 */
        l += e;
        u += t * e;
        w += (double)i * e;
    }
    *out = (mha_exp_sums){.l = l, .u = u, .w = w};
}

static void ref_softmax_back(float *ds, const float *p, float delta, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ds[i] = (float)((double)p[i] * ((double)ds[i] - (double)delta));
}

static void ref_scale(float *x, size_t n, float a)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= a;
}

static void ref_add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void ref_mul(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}

static void ref_axpy(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)y[i] + (double)a * (double)x[i]);
}

static void ref_softcap(float *s, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++)
        s[i] = (float)((double)cap * tanh((double)s[i] / (double)cap));
}

static void ref_layer_norm(float *y, const float *x, const float *w, const float *b, size_t n,
                           float eps)
{
    double mean = 0.0, variance = 0.0;

    for (size_t i = 0; i < n; i++)
        mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - mean;
        variance += d * d;
    }
    const double r = 1.0 / sqrt(variance / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        const double gain = w != NULL ? (double)w[i] : 1.0;
        const double shift = b != NULL ? (double)b[i] : 0.0;
        y[i] = (float)(((double)x[i] - mean) * r * gain + shift);
    }
}

static void ref_rms_norm(float *y, const float *x, const float *w, size_t n, float eps)
{
    double squares = 0.0;

    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    const double r = 1.0 / sqrt(squares / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * r * (w != NULL ? (double)w[i] : 1.0));
}

static void ref_norm_back(float *dx, const float *dy, const float *x, const float *w, size_t n,
                          float eps, bool center)
{
    double mean = 0.0, square = 0.0, gs = 0.0, gxs = 0.0;

    for (size_t i = 0; center && i < n; i++)
        mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double r = 1.0 / sqrt(square / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        const double g = (double)dy[i] * (w != NULL ? (double)w[i] : 1.0);
        gs += g;
        gxs += g * (((double)x[i] - mean) * r);
    }
    const double mean_g = center ? gs / (double)n : 0.0, mean_gx = gxs / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double g = (double)dy[i] * (w != NULL ? (double)w[i] : 1.0);
        dx[i] = (float)(r * (g - mean_g - ((double)x[i] - mean) * r * mean_gx));
    }
}

/* Activations as functions of one double. x·σ(z) is x/(1 + e^(−z)), which neither cancels for
 * negative x nor overflows to NaN. */
static double gelu(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_tanh(double x)
{
    const double z = 2.0 * sqrt(M_2_PI) * (x + 0.044715 * x * x * x);

    return x / (1.0 + exp(-z));
}

static double quick_gelu(double x)
{
    return x / (1.0 + exp(-1.702 * x));
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double relu(double x)
{
    return x < 0.0 ? 0.0 : x; /* keeps NaN */
}

static double elu(double x)
{
    return x < 0.0 ? expm1(x) : x;
}

static double identity(double x)
{
    return x;
}

static void map(float *x, size_t n, double (*f)(double))
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)f((double)x[i]);
}

static void map_mul(float *g, const float *u, size_t n, double (*f)(double))
{
    for (size_t i = 0; i < n; i++)
        g[i] = (float)(f((double)g[i]) * (double)u[i]);
}

static void ref_none(float *x, size_t n)
{
    map(x, n, identity);
}

static void ref_none_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, identity);
}

static void ref_gelu(float *x, size_t n)
{
    map(x, n, gelu);
}

static void ref_gelu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, gelu);
}

static void ref_gelu_tanh(float *x, size_t n)
{
    map(x, n, gelu_tanh);
}

static void ref_gelu_tanh_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, gelu_tanh);
}

static void ref_quick_gelu(float *x, size_t n)
{
    map(x, n, quick_gelu);
}

static void ref_quick_gelu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, quick_gelu);
}

static void ref_silu(float *x, size_t n)
{
    map(x, n, silu);
}

static void ref_silu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, silu);
}

static void ref_relu(float *x, size_t n)
{
    map(x, n, relu);
}

static void ref_relu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, relu);
}

static void ref_tanh(float *x, size_t n)
{
    map(x, n, tanh);
}

static void ref_tanh_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, tanh);
}

static void ref_elu(float *x, size_t n)
{
    map(x, n, elu);
}

static void ref_elu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, elu);
}

/* Their derivatives. Those of x·s(x), where s rises from 0 to 1 and s(−x) = 1 − s(x), satisfy
 * f'(x) = 1 − f'(−x): only the left side is evaluated, where nothing cancels against 1. Beyond
 * SLOPE_END they are 0 and 1 in float, and infinity needs no case of its own. */
#define SLOPE_END 128.0

/* f' from a = |x| for f = x·σ(z) with odd z: f'(−a) = σ(−z)·(1 − a·z'·σ(z)), where z and its
 * derivative dz are those at a. */
static double sigmoid_times_slope(double x, double a, double z, double dz)
{
    const double left = 1.0 / (1.0 + exp(z)) * (1.0 - a * dz / (1.0 + exp(-z)));

    return x < 0.0 ? left : 1.0 - left;
}

/* min(|x|, SLOPE_END), keeping NaN. */
static double slope_argument(double x)
{
    return fabs(x) > SLOPE_END ? SLOPE_END : fabs(x);
}

static double gelu_slope(double x)
{
    const double a = slope_argument(x);
    const double density = exp(-0.5 * a * a) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
    const double left = 0.5 * erfc(a * M_SQRT1_2) - a * density;

    return x < 0.0 ? left : 1.0 - left;
}

static double gelu_tanh_slope(double x)
{
    const double a = slope_argument(x), k = 2.0 * sqrt(M_2_PI);

    return sigmoid_times_slope(x, a, k * (a + 0.044715 * a * a * a),
                               k * (1.0 + 3.0 * 0.044715 * a * a));
}

static double quick_gelu_slope(double x)
{
    const double a = slope_argument(x);

    return sigmoid_times_slope(x, a, 1.702 * a, 1.702);
}

static double silu_slope(double x)
{
    const double a = slope_argument(x);

    return sigmoid_times_slope(x, a, a, 1.0);
}

static double relu_slope(double x)
{
    if (isnan(x))
        return x;
    return x > 0.0 ? 1.0 : 0.0;
}

/* 1 − tanh² x = 1/cosh² x, which does not cancel. */
static double tanh_slope(double x)
{
    const double r = 1.0 / cosh(x);

    return r * r;
}

static double elu_slope(double x)
{
    return x < 0.0 ? exp(x) : isnan(x) ? x : 1.0;
}

static void map_back(float *dy, const float *x, size_t n, double (*slope)(double))
{
    for (size_t i = 0; i < n; i++)
        dy[i] = (float)((double)dy[i] * slope((double)x[i]));
}

static void ref_none_back(float *dy, const float *x, size_t n)
{
    (void)dy;
    (void)x;
    (void)n;
}

static void ref_gelu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, gelu_slope);
}

static void ref_gelu_tanh_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, gelu_tanh_slope);
}

static void ref_quick_gelu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, quick_gelu_slope);
}

static void ref_silu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, silu_slope);
}

static void ref_relu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, relu_slope);
}

static void ref_tanh_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, tanh_slope);
}

static void ref_elu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, elu_slope);
}

static void ref_rope_half(float *x, const float *cos, const float *sin, size_t n)
{
    const size_t r = n / 2;

    for (size_t i = 0; i < r; i++) {
        const double a = (double)x[i], b = (double)x[i + r];
        x[i] = (float)(a * (double)cos[i] - b * (double)sin[i]);
        x[i + r] = (float)(b * (double)cos[i] + a * (double)sin[i]);
    }
}

static void ref_rope_pair(float *x, const float *cos, const float *sin, size_t n)
{
    float second[MHA_ROPE_MAX / 2]; /* the first half is written over pairs that were read */
    const size_t r = n / 2;

    assert(n <= MHA_ROPE_MAX);
    for (size_t i = 0; i < r; i++) {
        const double a = (double)x[2 * i], b = (double)x[2 * i + 1];
        x[i] = (float)(a * (double)cos[i] - b * (double)sin[i]);
        second[i] = (float)(b * (double)cos[i] + a * (double)sin[i]);
    }
    if (r > 0)
        memcpy(x + r, second, r * sizeof *x);
}

const mha_kernels mha_kernels_ref = {
    .isa = "ref",
    .widen = {[MHA_F32] = mha_ref_widen_f32,
              [MHA_F16] = mha_ref_widen_f16,
              [MHA_BF16] = mha_ref_widen_bf16,
              [MHA_F64] = mha_ref_widen_f64,
              [MHA_Q4_0] = mha_ref_widen_q4_0,
              [MHA_Q4_1] = mha_ref_widen_q4_1,
              [MHA_Q5_0] = mha_ref_widen_q5_0,
              [MHA_Q5_1] = mha_ref_widen_q5_1,
              [MHA_Q8_0] = mha_ref_widen_q8_0,
              [MHA_Q2_K] = mha_ref_widen_q2_k,
              [MHA_Q3_K] = mha_ref_widen_q3_k,
              [MHA_Q4_K] = mha_ref_widen_q4_k,
              [MHA_Q5_K] = mha_ref_widen_q5_k,
              [MHA_Q6_K] = mha_ref_widen_q6_k,
              [MHA_IQ4_NL] = mha_ref_widen_iq4_nl},
    .dot = {[MHA_F32] = mha_ref_dot_f32,
            [MHA_F16] = mha_ref_dot_f16,
            [MHA_BF16] = mha_ref_dot_bf16,
            [MHA_F64] = mha_ref_dot_f64,
            [MHA_Q4_0] = mha_ref_dot_q4_0,
            [MHA_Q4_1] = mha_ref_dot_q4_1,
            [MHA_Q5_0] = mha_ref_dot_q5_0,
            [MHA_Q5_1] = mha_ref_dot_q5_1,
            [MHA_Q8_0] = mha_ref_dot_q8_0,
            [MHA_Q2_K] = mha_ref_dot_q2_k,
            [MHA_Q3_K] = mha_ref_dot_q3_k,
            [MHA_Q4_K] = mha_ref_dot_q4_k,
            [MHA_Q5_K] = mha_ref_dot_q5_k,
            [MHA_Q6_K] = mha_ref_dot_q6_k,
            [MHA_IQ4_NL] = mha_ref_dot_iq4_nl},
    .max = ref_max,
    .exp_sum = ref_exp_sum,
    .exp_stats = ref_exp_stats,
    .softmax_back = ref_softmax_back,
    .scale = ref_scale,
    .add = ref_add,
    .mul = ref_mul,
    .axpy = ref_axpy,
    .softcap = ref_softcap,
    .layer_norm = ref_layer_norm,
    .rms_norm = ref_rms_norm,
    .norm_back = ref_norm_back,
    .act = {[MHA_ACT_NONE] = ref_none,
            [MHA_ACT_GELU] = ref_gelu,
            [MHA_ACT_GELU_TANH] = ref_gelu_tanh,
            [MHA_ACT_QUICK_GELU] = ref_quick_gelu,
            [MHA_ACT_SILU] = ref_silu,
            [MHA_ACT_RELU] = ref_relu,
            [MHA_ACT_TANH] = ref_tanh,
            [MHA_ACT_ELU] = ref_elu},
    .act_mul = {[MHA_ACT_NONE] = ref_none_mul,
                [MHA_ACT_GELU] = ref_gelu_mul,
                [MHA_ACT_GELU_TANH] = ref_gelu_tanh_mul,
                [MHA_ACT_QUICK_GELU] = ref_quick_gelu_mul,
                [MHA_ACT_SILU] = ref_silu_mul,
                [MHA_ACT_RELU] = ref_relu_mul,
                [MHA_ACT_TANH] = ref_tanh_mul,
                [MHA_ACT_ELU] = ref_elu_mul},
    .act_back = {[MHA_ACT_NONE] = ref_none_back,
                 [MHA_ACT_GELU] = ref_gelu_back,
                 [MHA_ACT_GELU_TANH] = ref_gelu_tanh_back,
                 [MHA_ACT_QUICK_GELU] = ref_quick_gelu_back,
                 [MHA_ACT_SILU] = ref_silu_back,
                 [MHA_ACT_RELU] = ref_relu_back,
                 [MHA_ACT_TANH] = ref_tanh_back,
                 [MHA_ACT_ELU] = ref_elu_back},
    .rope_half = ref_rope_half,
    .rope_pair = ref_rope_pair,
};
