/* kernel_back: gradients against derivatives written in extended precision, and these against
 * central differences of the functions themselves. */
#include "support/test.h"

#include "support/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

static row dy_row, x_row, w_row, dx_row;

/* ---- activations ----------------------------------------------------------------------------- */

static const char *const names[MHA_ACT_COUNT] = {
    [MHA_ACT_NONE] = "none",           [MHA_ACT_GELU] = "gelu",
    [MHA_ACT_GELU_TANH] = "gelu_tanh", [MHA_ACT_QUICK_GELU] = "quick_gelu",
    [MHA_ACT_SILU] = "silu",           [MHA_ACT_RELU] = "relu",
    [MHA_ACT_TANH] = "tanh",           [MHA_ACT_ELU] = "elu",
};

static const long double pi = 3.14159265358979323846264338L;

static long double sigmoid(long double z)
{
    return 1.0L / (1.0L + expl(-z));
}

/* f of kernel.h. */
static long double function(mha_act act, long double x)
{
    switch (act) {
    case MHA_ACT_GELU:
        return x * 0.5L * erfcl(-x / sqrtl(2.0L));
    case MHA_ACT_GELU_TANH:
        return 0.5L * x * (1.0L + tanhl(sqrtl(2.0L / pi) * (x + 0.044715L * x * x * x)));
    case MHA_ACT_QUICK_GELU:
        return x * sigmoid(1.702L * x);
    case MHA_ACT_SILU:
        return x * sigmoid(x);
    case MHA_ACT_RELU:
        return x > 0.0L ? x : 0.0L;
    case MHA_ACT_TANH:
        return tanhl(x);
    case MHA_ACT_ELU:
        return x > 0.0L ? x : expm1l(x);
    case MHA_ACT_NONE:
    case MHA_ACT_COUNT:
        break;
    }
    return x;
}

/* f' by the rules of differentiation, term by term; good while |x| is moderate. */
static long double derivative(mha_act act, long double x)
{
    switch (act) {
    case MHA_ACT_GELU:
        return 0.5L * erfcl(-x / sqrtl(2.0L)) + x * expl(-0.5L * x * x) / sqrtl(2.0L * pi);
    case MHA_ACT_GELU_TANH: {
        const long double t = tanhl(sqrtl(2.0L / pi) * (x + 0.044715L * x * x * x));
        const long double inner = sqrtl(2.0L / pi) * (1.0L + 0.134145L * x * x);
        return 0.5L * (1.0L + t) + 0.5L * x * (1.0L - t * t) * inner;
    }
    case MHA_ACT_QUICK_GELU: {
        const long double s = sigmoid(1.702L * x);
        return s + 1.702L * x * s * (1.0L - s);
    }
    case MHA_ACT_SILU: {
        const long double s = sigmoid(x);
        return s + x * s * (1.0L - s);
    }
    case MHA_ACT_RELU:
        return x > 0.0L ? 1.0L : 0.0L;
    case MHA_ACT_TANH:
        return 1.0L - tanhl(x) * tanhl(x);
    case MHA_ACT_ELU:
        return x > 0.0L ? 1.0L : expl(x);
    case MHA_ACT_NONE:
    case MHA_ACT_COUNT:
        break;
    }
    return 1.0L;
}

static void test_derivatives_are_those_of_the_functions(void **state)
{
    const long double h = 1e-5L;

    for (int act = 0; act < MHA_ACT_COUNT; act++) {
        for (long double x = -11.98L; x < 12.0L; x += 0.037L) {
            const long double up = function((mha_act)act, x + h);
            const long double down = function((mha_act)act, x - h);
            const long double difference = (up - down) / (2.0L * h);
            assert_true(fabsl(difference - derivative((mha_act)act, x)) <= 1e-9L);
        }
    }
}

/* −20 … 20 densely, in rows of awkward length. */
static void test_accuracy_between_minus_20_and_20(void **state)
{
    enum { N = 1201, ROWS = 40 };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (int act = 0; act < MHA_ACT_COUNT; act++) {
            double worst = 0.0;
            for (size_t r = 0; r < ROWS; r++) {
                float *x = row_start(&x_row, N, r % 4), *dy = row_start(&dy_row, N, r % 3);
                for (size_t j = 0; j < N; j++) {
                    x[j] = (float)(-20.0 + (double)r + (double)j / N);
                    dy[j] = 1.0F;
                }
                tables[k]->act_back[act](dy, x, N);
                row_check_guards(&dy_row);
                for (size_t j = 0; j < N; j++) {
                    const double want = (double)derivative((mha_act)act, (long double)x[j]);
                    const double error = fabs((double)dy[j] - want);
                    worst = error > worst ? error : worst;
                }
            }
            print_message("slope of %s on %s: at most %.2e\n", names[act], tables[k]->isa, worst);
            assert_true(worst <= (k == 0 ? 6.5e-8 : 3e-7));
        }
    }
}

/* What is left of the slope far out keeps its leading digits: no cancellation against 1. */
static void test_tails(void **state)
{
    static const struct {
        mha_act act;
        float x;
        double slope;
    } table[] = {
        /* Computed with 30 digits. */
        {MHA_ACT_GELU, -6.0F, -3.5468709454e-8},
        {MHA_ACT_GELU_TANH, -5.0F, -1.5463619875e-6},
        {MHA_ACT_QUICK_GELU, -20.0F, -5.4407137188e-14},
        {MHA_ACT_SILU, -30.0F, -2.713710661e-12},
        {MHA_ACT_TANH, 20.0F, 1.6993417021e-17},
        {MHA_ACT_ELU, -30.0F, 9.3576229688e-14},
        {MHA_ACT_TANH, -20.0F, 1.6993417021e-17},
    };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            float dy = 1.0F;
            tables[k]->act_back[table[i].act](&dy, &table[i].x, 1);
            assert_true(fabs((double)dy - table[i].slope) <= 3e-6 * fabs(table[i].slope));
        }
    }
}

static void test_special_arguments(void **state)
{
    static const float left[] = {-128.0F, -200.0F, -1e20F, -FLT_MAX, -INFINITY};
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (int act = MHA_ACT_GELU; act < MHA_ACT_COUNT; act++) {
            for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
                const float x[2] = {left[i], -left[i]};
                float dy[2] = {3.0F, 3.0F};
                tables[k]->act_back[act](dy, x, 2);
                assert_true(dy[0] == 0.0F);
                assert_true(dy[1] == (act == MHA_ACT_TANH ? 0.0F : 3.0F));
            }
            const float zero[2] = {0.0F, -0.0F}, with_nan[3] = {1.0F, NAN, 2.0F};
            float at_zero[2] = {2.0F, 2.0F}, dy[3] = {1.0F, 1.0F, 1.0F};
            const float want = act == MHA_ACT_TANH || act == MHA_ACT_ELU ? 2.0F
                               : act == MHA_ACT_RELU                     ? 0.0F
                                                                         : 1.0F;
            tables[k]->act_back[act](at_zero, zero, 2);
            assert_true(at_zero[0] == want && at_zero[1] == want);
            tables[k]->act_back[act](dy, with_nan, 3);
            assert_true(isnan(dy[1]) && !isnan(dy[0]) && !isnan(dy[2]));
        }
        const float x[2] = {NAN, 5.0F};
        float dy[2] = {1.5F, -2.5F};
        tables[k]->act_back[MHA_ACT_NONE](dy, x, 2);
        assert_true(dy[0] == 1.5F && dy[1] == -2.5F);
    }
}

static void test_vectors_agree_with_ref_over_lengths(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 1; k < count; k++) {
        mha_rng_seed(&g, 23, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            for (int act = 0; act < MHA_ACT_COUNT; act++) {
                const size_t n = row_length(i);
                float *x = row_start(&x_row, n, i % 7), *dy = row_start(&dy_row, n, i % 5);
                float want[ROW_MAX], x0[ROW_MAX];
                fill_uniform(x, n, &g, -4.0, 4.0);
                fill_uniform(dy, n, &g, -1.0, 1.0);
                memcpy(want, dy, n * sizeof *want);
                memcpy(x0, x, n * sizeof *x0);
                tables[0]->act_back[act](want, x, n);
                tables[k]->act_back[act](dy, x, n);
                row_check_guards(&dy_row);
                if (n > 0)
                    assert_memory_equal(x, x0, n * sizeof *x0);
                for (size_t j = 0; j < n; j++)
                    assert_true(fabsf(dy[j] - want[j]) <= 4e-7F);
            }
        }
    }
}

/* ---- norms ----------------------------------------------------------------------------------- */

typedef struct norm_case {
    const float *dy, *x, *w;
    size_t n;
    float eps;
    bool center;
} norm_case;

/* Σ dy·norm(x), the function whose gradient by x norm_back gives; element `moved` of x by h. */
static long double norm_loss(const norm_case *c, size_t moved, long double h)
{
    long double mean = 0.0L, square = 0.0L, loss = 0.0L;

    for (size_t i = 0; c->center && i < c->n; i++)
        mean += ((long double)c->x[i] + (i == moved ? h : 0.0L)) / (long double)c->n;
    for (size_t i = 0; i < c->n; i++) {
        const long double d = (long double)c->x[i] + (i == moved ? h : 0.0L) - mean;
        square += d * d / (long double)c->n;
        loss += (long double)c->dy[i] * (c->w != NULL ? (long double)c->w[i] : 1.0L) * d;
    }
    return loss / sqrtl(square + (long double)c->eps);
}

/* By the chain rule through μ, σ² and d = x − μ, which is not the formula of the kernels:
 * ∂/∂x_i = g_i/s − Σg/(n·s) − d_i·Σ(g·d)/(n·s³) with s = sqrt(σ² + eps). */
static void norm_formula(long double *dx, const norm_case *c)
{
    const long double n = (long double)c->n;
    long double mean = 0.0L, square = 0.0L, gs = 0.0L, gds = 0.0L;

    for (size_t i = 0; c->center && i < c->n; i++)
        mean += (long double)c->x[i] / n;
    for (size_t i = 0; i < c->n; i++) {
        const long double d = (long double)c->x[i] - mean;
        const long double g = (long double)c->dy[i] * (c->w != NULL ? (long double)c->w[i] : 1.0L);
        square += d * d / n;
        gs += g;
        gds += g * d;
    }
    const long double s = sqrtl(square + (long double)c->eps);
    for (size_t i = 0; i < c->n; i++) {
        const long double g = (long double)c->dy[i] * (c->w != NULL ? (long double)c->w[i] : 1.0L);
        const long double d = (long double)c->x[i] - mean;
        dx[i] = g / s - (c->center ? gs / (n * s) : 0.0L) - d * gds / (n * s * s * s);
    }
}

static void check_norm(const float *dx, const norm_case *c)
{
    static long double want[ROW_MAX];
    long double largest = 0.0L;

    norm_formula(want, c);
    for (size_t j = 0; j < c->n; j++)
        largest = fmaxl(largest, fabsl(want[j]));
    for (size_t j = 0; j < c->n; j++) {
        /* One rounding to float; the rest is in double. */
        const double tolerance = 6e-8 * fabs((double)want[j]) + 1e-12 * (double)largest + 1e-12;
        assert_true(fabs((double)dx[j] - (double)want[j]) <= tolerance);
    }
}

static void test_norm_back_over_lengths(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 31, 0);
        for (size_t i = 2; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            float *dx = row_start(&dx_row, n, i % 5), *dy = row_start(&dy_row, n, (i + 2) % 7);
            float *x = row_start(&x_row, n, i % 3), *w = row_start(&w_row, n, i % 4);
            float dy0[ROW_MAX];
            fill_uniform(dy, n, &g, -1.0, 1.0);
            fill_uniform(x, n, &g, -2.0, 3.0);
            fill_uniform(w, n, &g, 0.2, 2.0);
            memcpy(dy0, dy, n * sizeof *dy0);
            for (int form = 0; form < 4; form++) {
                const norm_case c = {.dy = dy0,
                                     .x = x,
                                     .w = (form & 1) != 0 ? w : NULL,
                                     .n = n,
                                     .eps = i % 2 == 0 ? 1e-5F : 1e-6F,
                                     .center = (form & 2) != 0};
                tables[k]->norm_back(dx, dy, x, c.w, n, c.eps, c.center);
                row_check_guards(&dx_row);
                check_norm(dx, &c);
                tables[k]->norm_back(dy, dy, x, c.w, n, c.eps, c.center); /* in place */
                row_check_guards(&dy_row);
                assert_memory_equal(dy, dx, n * sizeof *dx);
                memcpy(dy, dy0, n * sizeof *dy0);
            }
        }
    }
}

static void test_norm_back_is_the_difference_quotient(void **state)
{
    enum { N = 37 };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    const long double h = 1e-5L;
    float dy[N], x[N], w[N], dx[N];
    mha_rng g;

    mha_rng_seed(&g, 37, 0);
    fill_uniform(dy, N, &g, -1.0, 1.0);
    fill_uniform(x, N, &g, 0.0, 3.0);
    fill_uniform(w, N, &g, 0.2, 2.0);
    for (size_t k = 0; k < count; k++) {
        for (int center = 0; center < 2; center++) {
            const norm_case c = {
                .dy = dy, .x = x, .w = w, .n = N, .eps = 1e-5F, .center = center != 0};
            tables[k]->norm_back(dx, dy, x, w, N, c.eps, c.center);
            for (size_t j = 0; j < N; j++) {
                const long double up = norm_loss(&c, j, h), down = norm_loss(&c, j, -h);
                assert_true(fabsl((up - down) / (2.0L * h) - (long double)dx[j]) <= 2e-7L);
            }
        }
    }
}

/* A mean far above the deviation, as some residual streams have. */
static void test_norm_back_with_a_large_mean(void **state)
{
    enum { N = 768 };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    float dy[N], x[N], dx[N];
    mha_rng g;

    mha_rng_seed(&g, 41, 0);
    fill_uniform(dy, N, &g, -1.0, 1.0);
    fill_uniform(x, N, &g, 4095.0, 4097.0);
    const norm_case c = {.dy = dy, .x = x, .n = N, .eps = 1e-5F, .center = true};
    for (size_t k = 0; k < count; k++) {
        tables[k]->norm_back(dx, dy, x, NULL, N, 1e-5F, true);
        check_norm(dx, &c);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static void test_mul_and_softmax_back(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 43, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            float *y = row_start(&dy_row, n, i % 5), *x = row_start(&x_row, n, (i + 2) % 7);
            float y0[ROW_MAX];
            fill_uniform(y, n, &g, -2.0, 2.0);
            fill_uniform(x, n, &g, 0.0, 1.0);
            memcpy(y0, y, n * sizeof *y0);
            tables[k]->mul(y, x, n);
            for (size_t j = 0; j < n; j++)
                assert_true(y[j] == y0[j] * x[j]);
            row_check_guards(&dy_row);
            memcpy(y, y0, n * sizeof *y0);
            tables[k]->softmax_back(y, x, 0.3F, n);
            for (size_t j = 0; j < n; j++) {
                const double want = (double)x[j] * ((double)y0[j] - (double)0.3F);
                assert_true(fabs((double)y[j] - want) <= 1.2e-7 * fabs(want));
            }
            row_check_guards(&dy_row);
        }
    }
}

/* softmax itself: L = Σ v·softmax(s), dL/ds = p·(v − Σ p·v). */
static void test_softmax_back_is_the_difference_quotient(void **state)
{
    enum { N = 21 };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    const double h = 1e-5;
    double s[N];
    float v[N], p[N], ds[N];
    mha_rng g;

    mha_rng_seed(&g, 47, 0);
    fill_uniform(v, N, &g, -1.0, 1.0);
    double total = 0.0, delta = 0.0;
    for (size_t j = 0; j < N; j++) {
        s[j] = 3.0 * mha_rng_uniform(&g);
        total += exp(s[j]);
    }
    for (size_t j = 0; j < N; j++) {
        p[j] = (float)(exp(s[j]) / total);
        delta += exp(s[j]) / total * (double)v[j];
    }
    for (size_t k = 0; k < count; k++) {
        memcpy(ds, v, sizeof ds);
        tables[k]->softmax_back(ds, p, (float)delta, N);
        for (size_t j = 0; j < N; j++) {
            double loss[2];
            for (int side = 0; side < 2; side++) {
                const double moved = exp(s[j] + (side == 0 ? -h : h)), rest = total - exp(s[j]);
                loss[side] = (delta * total + (moved - exp(s[j])) * (double)v[j]) / (rest + moved);
            }
            assert_true(fabs((loss[1] - loss[0]) / (2.0 * h) - (double)ds[j]) <= 1e-7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derivatives_are_those_of_the_functions),
        cmocka_unit_test(test_accuracy_between_minus_20_and_20),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_special_arguments),
        cmocka_unit_test(test_vectors_agree_with_ref_over_lengths),
        cmocka_unit_test(test_norm_back_over_lengths),
        cmocka_unit_test(test_norm_back_is_the_difference_quotient),
        cmocka_unit_test(test_norm_back_with_a_large_mean),
        cmocka_unit_test(test_mul_and_softmax_back),
        cmocka_unit_test(test_softmax_back_is_the_difference_quotient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
