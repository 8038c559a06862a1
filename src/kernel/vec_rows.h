/* vec_rows.h: the row kernels of kernel.h on whole vectors; the last, partial vector is masked.
 *
 * Written in the words of vec_avx2.h or vec_avx512.h, one of which the including file chose. All
 * functions are static: each including file gets its own set for its table. Order of summation
 * depends on the length alone, never on alignment. */
#ifndef MHA_KERNEL_VEC_ROWS_H
#define MHA_KERNEL_VEC_ROWS_H

#include "kernel/kernel.h"
#include "kernel/vec_math.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Loops that take an operation as an argument must be inlined to be worth having. */
#define VEC_INLINE static inline __attribute__((always_inline))

enum { VEC_CHUNK = 512 }; /* elements that a float accumulator takes before it goes to double */

static float rows_max(const float *s, size_t n)
{
    vf m = vf_set1(-INFINITY);
    vm nan = vm_none();
    size_t i = 0;

    for (; i + VF <= n; i += VF) {
        const vf x = vf_load(s + i);
        m = vf_max(m, x);
        nan = vm_or(nan, vf_is_nan(x));
    }
    if (i < n) {
        const vf x = vf_select(vm_first(n - i), vf_load_first(s + i, n - i), vf_set1(-INFINITY));
        m = vf_max(m, x);
        nan = vm_or(nan, vf_is_nan(x));
    }
    return vm_any(nan) ? NAN : vf_reduce_max(m);
}

/* s − m, cut where the exponential is 0 so that −∞ enters no product. */
VEC_INLINE vf exp_argument(vf s, vf m)
{
    return vf_max(vf_set1(VEC_EXP_ZERO), vf_sub(s, m));
}

VEC_INLINE vf exp_argument_first(const float *s, vf m, size_t r)
{
    return vf_select(vm_first(r), exp_argument(vf_load_first(s, r), m), vf_set1(VEC_EXP_ZERO));
}

static void rows_exp_sum(float *s, size_t n, float m, double *l)
{
    const vf vm0 = vf_set1(m);
    vd total = vd_set1(0.0);

    for (size_t start = 0; start < n; start += VEC_CHUNK) {
        const size_t end = n - start < VEC_CHUNK ? n : start + VEC_CHUNK;
        vf sum = vf_set1(0.0F);
        size_t i = start;
        for (; i + VF <= end; i += VF) {
            const vf e = vf_exp_inside(exp_argument(vf_load(s + i), vm0));
            vf_store(s + i, e);
            sum = vf_add(sum, e);
        }
        if (i < end) {
            const vf e = vf_exp_inside(exp_argument_first(s + i, vm0, end - i));
            vf_store_first(s + i, e, end - i);
            sum = vf_add(sum, e);
        }
        total = vd_add(total, vd_widen(sum));
    }
    *l = vd_sum(total);
}

/* Sums of one chunk, j counted from the chunk's start. */
typedef struct exp_chunk {
    vf l, u, w, j;
} exp_chunk;

VEC_INLINE void exp_chunk_add(exp_chunk *c, vf t, vf e)
{
    c->l = vf_add(c->l, e);
    c->u = vf_fma(t, e, c->u);
    c->w = vf_fma(c->j, e, c->w);
    c->j = vf_add(c->j, vf_set1((float)VF));
}

static void rows_exp_stats(float *s, size_t n, float m, mha_exp_sums *out)
{
    const vf vm0 = vf_set1(m);
    vd l = vd_set1(0.0), u = l, w = l;

    for (size_t start = 0; start < n; start += VEC_CHUNK) {
        const size_t end = n - start < VEC_CHUNK ? n : start + VEC_CHUNK;
        exp_chunk c = {vf_set1(0.0F), vf_set1(0.0F), vf_set1(0.0F), vf_iota()};
        size_t i = start;
        for (; i + VF <= end; i += VF) {
            const vf t = exp_argument(vf_load(s + i), vm0);
            const vf e = vf_exp_inside(t);
            vf_store(s + i, e);
            exp_chunk_add(&c, t, e);
        }
        if (i < end) {
            const vf t = exp_argument_first(s + i, vm0, end - i);
            const vf e = vf_exp_inside(t);
            vf_store_first(s + i, e, end - i);
            exp_chunk_add(&c, t, e);
        }
        const vd chunk_l = vd_widen(c.l);
        l = vd_add(l, chunk_l);
        u = vd_add(u, vd_widen(c.u));
        w = vd_add(w, vd_fma(vd_set1((double)start), chunk_l, vd_widen(c.w)));
    }
    *out = (mha_exp_sums){.l = vd_sum(l), .u = vd_sum(u), .w = vd_sum(w)};
}

static void rows_scale(float *x, size_t n, float a)
{
    const vf va = vf_set1(a);
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(x + i, vf_mul(vf_load(x + i), va));
    if (i < n)
        vf_store_first(x + i, vf_mul(vf_load_first(x + i, n - i), va), n - i);
}

static void rows_add(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(y + i, vf_add(vf_load(y + i), vf_load(x + i)));
    if (i < n) {
        const size_t r = n - i;
        vf_store_first(y + i, vf_add(vf_load_first(y + i, r), vf_load_first(x + i, r)), r);
    }
}

static void rows_mul(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(y + i, vf_mul(vf_load(y + i), vf_load(x + i)));
    if (i < n) {
        const size_t r = n - i;
        vf_store_first(y + i, vf_mul(vf_load_first(y + i, r), vf_load_first(x + i, r)), r);
    }
}

static void rows_axpy(float *y, float a, const float *x, size_t n)
{
    const vf va = vf_set1(a);
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(y + i, vf_fma(va, vf_load(x + i), vf_load(y + i)));
    if (i < n) {
        const size_t r = n - i;
        vf_store_first(y + i, vf_fma(va, vf_load_first(x + i, r), vf_load_first(y + i, r)), r);
    }
}

static void rows_softcap(float *s, size_t n, float cap)
{
    const vf c = vf_set1(cap);
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(s + i, vf_mul(c, vf_tanh(vf_div(vf_load(s + i), c))));
    if (i < n) {
        const vf x = vf_load_first(s + i, n - i);
        vf_store_first(s + i, vf_mul(c, vf_tanh(vf_div(x, c))), n - i);
    }
}

/* Σ (x − shift)^power for power 1 or 2, in double. */
VEC_INLINE double sum_of(const float *x, size_t n, double shift, int power)
{
    const vd vshift = vd_set1(shift);
    vd sum = vd_set1(0.0);
    size_t i = 0;

    for (; i + VF <= n; i += VF) {
        const vd d = vd_sub(vd_widen(vf_load(x + i)), vshift);
        sum = power == 2 ? vd_fma(d, d, sum) : vd_add(sum, d);
    }
    double total = vd_sum(sum);
    for (; i < n; i++) {
        const double d = (double)x[i] - shift;
        total += power == 2 ? d * d : d;
    }
    return total;
}

/* y = (x − mean)·r·w + b: one rounding to float, then one fused multiply-add in float. */
VEC_INLINE void normalise(float *y, const float *x, const float *w, const float *b, size_t n,
                          double mean, double r)
{
    const vd vmean = vd_set1(mean), vr = vd_set1(r);
    const vf one = vf_set1(1.0F), zero = vf_set1(0.0F);
    size_t i = 0;

    for (; i + VF <= n; i += VF) {
        const vf z = vd_narrow(vd_mul(vd_sub(vd_widen(vf_load(x + i)), vmean), vr));
        const vf gain = w != NULL ? vf_load(w + i) : one;
        const vf shift = b != NULL ? vf_load(b + i) : zero;
        vf_store(y + i, vf_fma(z, gain, shift));
    }
    if (i < n) {
        const size_t k = n - i;
        const vf z = vd_narrow(vd_mul(vd_sub(vd_widen(vf_load_first(x + i, k)), vmean), vr));
        const vf gain = w != NULL ? vf_load_first(w + i, k) : one;
        const vf shift = b != NULL ? vf_load_first(b + i, k) : zero;
        vf_store_first(y + i, vf_fma(z, gain, shift), k);
    }
}

static void rows_layer_norm(float *y, const float *x, const float *w, const float *b, size_t n,
                            float eps)
{
    const double mean = sum_of(x, n, 0.0, 1) / (double)n;
    const double variance = sum_of(x, n, mean, 2) / (double)n;

    normalise(y, x, w, b, n, mean, 1.0 / sqrt(variance + (double)eps));
}

static void rows_rms_norm(float *y, const float *x, const float *w, size_t n, float eps)
{
    const double square = sum_of(x, n, 0.0, 2) / (double)n;

    normalise(y, x, w, NULL, n, 0.0, 1.0 / sqrt(square + (double)eps));
}

VEC_INLINE void map(float *x, size_t n, vf (*f)(vf))
{
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(x + i, f(vf_load(x + i)));
    if (i < n)
        vf_store_first(x + i, f(vf_load_first(x + i, n - i)), n - i);
}

VEC_INLINE void map_mul(float *g, const float *u, size_t n, vf (*f)(vf))
{
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(g + i, vf_mul(f(vf_load(g + i)), vf_load(u + i)));
    if (i < n) {
        const size_t r = n - i;
        vf_store_first(g + i, vf_mul(f(vf_load_first(g + i, r)), vf_load_first(u + i, r)), r);
    }
}

static void rows_none(float *x, size_t n)
{
    (void)x;
    (void)n;
}

static void rows_none_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_none);
}

static void rows_gelu(float *x, size_t n)
{
    map(x, n, act_gelu);
}

static void rows_gelu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_gelu);
}

static void rows_gelu_tanh(float *x, size_t n)
{
    map(x, n, act_gelu_tanh);
}

static void rows_gelu_tanh_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_gelu_tanh);
}

static void rows_quick_gelu(float *x, size_t n)
{
    map(x, n, act_quick_gelu);
}

static void rows_quick_gelu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_quick_gelu);
}

static void rows_silu(float *x, size_t n)
{
    map(x, n, act_silu);
}

static void rows_silu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_silu);
}

static void rows_relu(float *x, size_t n)
{
    map(x, n, act_relu);
}

static void rows_relu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_relu);
}

static void rows_tanh(float *x, size_t n)
{
    map(x, n, act_tanh);
}

static void rows_tanh_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_tanh);
}

static void rows_elu(float *x, size_t n)
{
    map(x, n, act_elu);
}

static void rows_elu_mul(float *g, const float *u, size_t n)
{
    map_mul(g, u, n, act_elu);
}

static void rows_rope_half(float *x, const float *cos, const float *sin, size_t n)
{
    const size_t r = n / 2;
    float *first = x, *second = x + r;
    size_t i = 0;

    for (; i + VF <= r; i += VF) {
        const vf a = vf_load(first + i), b = vf_load(second + i);
        const vf c = vf_load(cos + i), s = vf_load(sin + i);
        vf_store(first + i, vf_fms(a, c, vf_mul(b, s)));
        vf_store(second + i, vf_fma(b, c, vf_mul(a, s)));
    }
    if (i < r) {
        const size_t k = r - i;
        const vf a = vf_load_first(first + i, k), b = vf_load_first(second + i, k);
        const vf c = vf_load_first(cos + i, k), s = vf_load_first(sin + i, k);
        vf_store_first(first + i, vf_fms(a, c, vf_mul(b, s)), k);
        vf_store_first(second + i, vf_fma(b, c, vf_mul(a, s)), k);
    }
}

/* Reordering first makes it the other kind, and both kinds give the same bits. */
static void rows_rope_pair(float *x, const float *cos, const float *sin, size_t n)
{
    float second[MHA_ROPE_MAX / 2]; /* the first half is written over pairs that were read */
    const size_t r = n / 2;
    size_t i = 0;

    assert(n <= MHA_ROPE_MAX);
    for (; i + VF <= r; i += VF) {
        vf even, odd;
        vf_unzip(&even, &odd, vf_load(x + 2 * i), vf_load(x + 2 * i + VF));
        vf_store(x + i, even);
        vf_store(second + i, odd);
    }
    for (; i < r; i++) {
        second[i] = x[2 * i + 1];
        x[i] = x[2 * i];
    }
    if (r > 0)
        memcpy(x + r, second, r * sizeof *x);
    rows_rope_half(x, cos, sin, n);
}

#endif
