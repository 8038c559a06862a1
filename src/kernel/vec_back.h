/* vec_back.h: the row kernels of gradients on whole vectors, in the words of vec_rows.h, which says
 * what holds here too. */
#ifndef MHA_KERNEL_VEC_BACK_H
#define MHA_KERNEL_VEC_BACK_H

#include "kernel/vec_rows.h"

static void rows_softmax_back(float *ds, const float *p, float delta, size_t n)
{
    const vf d = vf_set1(delta);
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(ds + i, vf_mul(vf_load(p + i), vf_sub(vf_load(ds + i), d)));
    if (i < n) {
        const size_t r = n - i;
        const vf s = vf_sub(vf_load_first(ds + i, r), d);
        vf_store_first(ds + i, vf_mul(vf_load_first(p + i, r), s), r);
    }
}

/* One row of norm_back: what its passes read, and what the earlier passes found. */
typedef struct norm_row {
    const float *dy, *x, *w;
    double mean, r;         /* μ and 1/sqrt(σ² + eps) */
    double mean_g, mean_gx; /* of g and of g·x̂ */
} norm_row;

/* g = dy·w and x̂ of the `count` elements at i, exact and in double. Lanes beyond are 0 in g. */
VEC_INLINE void norm_row_load(const norm_row *row, size_t i, size_t count, vd *g, vd *xhat)
{
    const vf x = count == VF ? vf_load(row->x + i) : vf_load_first(row->x + i, count);
    const vf dy = count == VF ? vf_load(row->dy + i) : vf_load_first(row->dy + i, count);

    *xhat = vd_mul(vd_sub(vd_widen(x), vd_set1(row->mean)), vd_set1(row->r));
    *g = vd_widen(dy);
    if (row->w != NULL) {
        const vf w = count == VF ? vf_load(row->w + i) : vf_load_first(row->w + i, count);
        *g = vd_mul(*g, vd_widen(w));
    }
}

VEC_INLINE vf norm_row_gradient(const norm_row *row, size_t i, size_t count)
{
    vd g, xhat;

    norm_row_load(row, i, count, &g, &xhat);
    const vd rest = vd_fma(xhat, vd_set1(-row->mean_gx), vd_sub(g, vd_set1(row->mean_g)));
    return vd_narrow(vd_mul(rest, vd_set1(row->r)));
}

static void rows_norm_back(float *dx, const float *dy, const float *x, const float *w, size_t n,
                           float eps, bool center)
{
    norm_row row = {.dy = dy, .x = x, .w = w};
    vd gs = vd_set1(0.0), gxs = gs, g, xhat;
    size_t i = 0;

    row.mean = center ? sum_of(x, n, 0.0, 1) / (double)n : 0.0;
    row.r = 1.0 / sqrt(sum_of(x, n, row.mean, 2) / (double)n + (double)eps);
    for (; i < n; i += VF) {
        norm_row_load(&row, i, n - i < VF ? n - i : VF, &g, &xhat);
        gs = vd_add(gs, g);
        gxs = vd_fma(g, xhat, gxs);
    }
    row.mean_g = center ? vd_sum(gs) / (double)n : 0.0;
    row.mean_gx = vd_sum(gxs) / (double)n;
    for (i = 0; i + VF <= n; i += VF)
        vf_store(dx + i, norm_row_gradient(&row, i, VF));
    if (i < n)
        vf_store_first(dx + i, norm_row_gradient(&row, i, n - i), n - i);
}

VEC_INLINE void map_back(float *dy, const float *x, size_t n, vf (*slope)(vf))
{
    size_t i = 0;

    for (; i + VF <= n; i += VF)
        vf_store(dy + i, vf_mul(vf_load(dy + i), slope(vf_load(x + i))));
    if (i < n) {
        const size_t r = n - i;
        vf_store_first(dy + i, vf_mul(vf_load_first(dy + i, r), slope(vf_load_first(x + i, r))), r);
    }
}

static void rows_none_back(float *dy, const float *x, size_t n)
{
    (void)dy;
    (void)x;
    (void)n;
}

static void rows_gelu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_gelu);
}

static void rows_gelu_tanh_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_gelu_tanh);
}

static void rows_quick_gelu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_quick_gelu);
}

static void rows_silu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_silu);
}

static void rows_relu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_relu);
}

static void rows_tanh_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_tanh);
}

static void rows_elu_back(float *dy, const float *x, size_t n)
{
    map_back(dy, x, n, slope_elu);
}

#endif
