/* kernel.h: the numeric leaf functions, chosen once by what the processor can do.
 *
 * `ref` fills every pointer with portable C; faster instruction sets overwrite what they have. Leaf
 * functions know nothing of models: rows of floats in, rows of floats out, no allocation, no
 * errors. Lengths may be odd and pointers unaligned. Every kernel is tested against `ref`. */
#ifndef MHA_KERNEL_KERNEL_H
#define MHA_KERNEL_KERNEL_H

#include "base/act.h"
#include "base/dtype.h"
#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one pass over e_j = exp(s_j − m) leaves behind (methods: streaming entropy):
 * l = Σ e_j,  u = Σ (s_j − m) e_j,  w = Σ j·e_j with j counted from 0 at the row's first element.
 * Entropy in nats is ln l − u/l; the expected index w/l. Sums are carried in double, or in float
 * over at most 1,024 elements before they are added to a double. */
typedef struct mha_exp_sums {
    double l, u, w;
} mha_exp_sums;

/* The widest head whose pairs can be rotated and reordered in place. */
enum { MHA_ROPE_MAX = 8192 };

typedef struct mha_kernels {
    const char *isa; /* "ref", "avx2", "avx512" */

    /* dst[0..n) = stored values; n is a whole number of blocks. F32 copies, F64 rounds. */
    void (*widen[MHA_DTYPE_FLOAT_COUNT])(float *dst, const void *src, size_t n);
    /* Σ row_i·x_i over a stored row: the matrix–vector products of generation. */
    float (*dot[MHA_DTYPE_FLOAT_COUNT])(const void *row, const float *x, size_t n);

    float (*max)(const float *s, size_t n); /* −∞ for n = 0; NaN elements give NaN */
    /* s[j] ← exp(s[j] − m) for finite m >= max s; −∞ gives exactly 0 (and adds 0 to u). */
    void (*exp_sum)(float *s, size_t n, float m, double *l); /* only Σ e_j */
    void (*exp_stats)(float *s, size_t n, float m, mha_exp_sums *out);

    /* The gradient of softmax: ds ← p·(ds − delta), where delta = Σ p·ds. */
    void (*softmax_back)(float *ds, const float *p, float delta, size_t n);

    void (*scale)(float *x, size_t n, float a);                /* x ← a·x */
    void (*add)(float *y, const float *x, size_t n);           /* y ← y + x */
    void (*mul)(float *y, const float *x, size_t n);           /* y ← y·x */
    void (*axpy)(float *y, float a, const float *x, size_t n); /* y ← y + a·x */
    void (*softcap)(float *s, size_t n, float cap);            /* s ← cap·tanh(s/cap) */

    /* y = (x − μ)/sqrt(σ² + eps)·w + b, biased variance; w or b NULL: 1 or 0. y may be x. */
    void (*layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n,
                       float eps);
    /* y = x/sqrt(mean x² + eps)·w. y may be x. */
    void (*rms_norm)(float *y, const float *x, const float *w, size_t n, float eps);
    /* The gradient of layer_norm (center) or rms_norm by x: with r = 1/sqrt(σ² + eps) (rms_norm:
     * mean x² for σ², 0 for μ), x̂ = (x − μ)·r and g = dy·w,
     * dx = r·(g − mean g − x̂·mean(g·x̂)); rms_norm without mean g. w NULL: 1. dx may be dy. */
    void (*norm_back)(float *dx, const float *dy, const float *x, const float *w, size_t n,
                      float eps, bool center);

    void (*act[MHA_ACT_COUNT])(float *x, size_t n);                       /* x ← f(x) */
    void (*act_mul[MHA_ACT_COUNT])(float *g, const float *u, size_t n);   /* g ← f(g)·u */
    void (*act_back[MHA_ACT_COUNT])(float *dy, const float *x, size_t n); /* dy ← dy·f'(x) */

    /* Rotary embedding of one head's row: pairs (x[i], x[i+r]) of `x`, r = n/2:
     * y[i] = x[i]·cos[i] − x[i+r]·sin[i],  y[i+r] = x[i+r]·cos[i] + x[i]·sin[i]. In place. */
    void (*rope_half)(float *x, const float *cos, const float *sin, size_t n);
    /* Pairs (x[2i], x[2i+1]); the result is written in half-split order: y[i], y[i+r]. In place;
     * n <= MHA_ROPE_MAX. */
    void (*rope_pair)(float *x, const float *cos, const float *sin, size_t n);
} mha_kernels;

/* The best table for this processor, or the one named by `isa` ("ref", "avx2", "avx512"), or by the
 * environment variable MHA_ISA when isa is NULL. MHA_ERR_UNSUPPORTED when the processor or the
 * build lacks it, naming those it has. *out is borrowed and constant. */
mha_status mha_kernels_get(const mha_kernels **out, const char *isa, mha_err *err);

/* For the tests: all tables that this machine can run, `ref` first. Returns their number. */
size_t mha_kernels_list(const mha_kernels **out, size_t cap);

#endif
