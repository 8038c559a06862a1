/* kernel_act: activations and the softcap against their formulas in extended precision. */
#include "support/test.h"

#include "support/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

static long double tanh_form(long double z)
{
    return 0.5L * (1.0L + tanhl(z));
}

/* The definitions, in forms other than those of the kernels. */
static long double formula(mha_act act, long double x)
{
    switch (act) {
    case MHA_ACT_GELU: /* Φ(x), from the side where it does not cancel */
        return x < 0.0L ? x * 0.5L * erfcl(-x / sqrtl(2.0L))
                        : x * (1.0L - 0.5L * erfcl(x / sqrtl(2.0L)));
    case MHA_ACT_GELU_TANH:
        return x *
               tanh_form(sqrtl(2.0L / 3.14159265358979323846264338L) * (x + 0.044715L * x * x * x));
    case MHA_ACT_QUICK_GELU:
        return x * tanh_form(0.851L * x);
    case MHA_ACT_SILU:
        return x * tanh_form(0.5L * x);
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

static const char *const names[MHA_ACT_COUNT] = {
    [MHA_ACT_NONE] = "none",           [MHA_ACT_GELU] = "gelu",
    [MHA_ACT_GELU_TANH] = "gelu_tanh", [MHA_ACT_QUICK_GELU] = "quick_gelu",
    [MHA_ACT_SILU] = "silu",           [MHA_ACT_RELU] = "relu",
    [MHA_ACT_TANH] = "tanh",           [MHA_ACT_ELU] = "elu",
};

static row x_row, u_row;

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
                float *x = row_start(&x_row, N, r % 4), in[N];
                for (size_t j = 0; j < N; j++)
                    in[j] = x[j] = (float)(-20.0 + (double)r + (double)j / N);
                tables[k]->act[act](x, N);
                row_check_guards(&x_row);
                for (size_t j = 0; j < N; j++) {
                    const double want = (double)formula((mha_act)act, (long double)in[j]);
                    const double error = fabs((double)x[j] - want);
                    /* Scaled by the larger of the argument and 1: a unit is a float rounding. */
                    const double scaled = error / fmax(1.0, fabs((double)in[j]));
                    worst = scaled > worst ? scaled : worst;
                }
            }
            print_message("%s on %s: at most %.2e\n", names[act], tables[k]->isa, worst);
            assert_true(worst <= 1.2e-7);
        }
    }
}

/* Relative error near zero, where a formula with 1 + … would lose it. */
static void test_small_arguments(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (int act = 0; act < MHA_ACT_COUNT; act++) {
            double worst = 0.0;
            for (float x = 1e-37F; x < 1.0F; x *= 1.01F) {
                float pair[2] = {x, -x};
                tables[k]->act[act](pair, 2);
                for (int side = 0; side < 2; side++) {
                    const long double in = side == 0 ? (long double)x : -(long double)x;
                    const double ulps = ulp_distance(pair[side], (double)formula((mha_act)act, in));
                    worst = ulps > worst ? ulps : worst;
                }
            }
            print_message("small %s on %s: at most %.2f ulp\n", names[act], tables[k]->isa, worst);
            assert_true(worst <= 3.0);
        }
    }
}

static void test_special_arguments(void **state)
{
    static const float in[] = {0.0F,    -0.0F,    FLT_MIN / 2, -FLT_MIN / 2, FLT_MIN, 1e-45F,
                               -1e-45F, FLT_MAX,  -FLT_MAX,    1e20F,        -1e20F,  104.0F,
                               -104.0F, -88.7F,   88.7F,       -13.9F,       -14.5F,  -15.5F,
                               15.5F,   INFINITY, 0.55F,       -0.55F,       0.5499F};
    enum { N = sizeof in / sizeof *in };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (int act = 0; act < MHA_ACT_COUNT; act++) {
            float x[N], with_nan[3] = {1.0F, NAN, 2.0F};
            memcpy(x, in, sizeof in);
            tables[k]->act[act](x, N);
            for (size_t j = 0; j < N; j++) {
                const double want = (double)formula((mha_act)act, (long double)in[j]);
                /* Far below −10 the result is a difference of nothing: absolute error there. */
                assert_true(ulp_distance(x[j], want) <= 3.0 || fabs((double)x[j] - want) <= 1e-12);
            }
            tables[k]->act[act](with_nan, 3);
            assert_true(isnan(with_nan[1]) && !isnan(with_nan[0]) && !isnan(with_nan[2]));
        }
    }
}

static void test_known_values(void **state)
{
    static const struct {
        mha_act act;
        double x, y;
    } table[] = {
        /* From tables of the normal distribution and of the hyperbolic tangent. */
        {MHA_ACT_GELU, 1.0, 0.8413447461},
        {MHA_ACT_GELU, -1.0, -0.1586552539},
        {MHA_ACT_GELU, 2.0, 1.9544997361},
        {MHA_ACT_GELU_TANH, 1.0, 0.8411919906},
        {MHA_ACT_QUICK_GELU, 1.0, 0.8457957659},
        {MHA_ACT_SILU, 1.0, 0.7310585786},
        {MHA_ACT_TANH, 1.0, 0.7615941560},
        {MHA_ACT_RELU, -2.0, 0.0},
        {MHA_ACT_ELU, -1.0, -0.6321205588},
        {MHA_ACT_ELU, 1.5, 1.5},
        {MHA_ACT_NONE, -2.0, -2.0},
    };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            float x = (float)table[i].x;
            tables[k]->act[table[i].act](&x, 1);
            assert_true(fabs((double)x - table[i].y) <= 2e-7);
        }
    }
}

static void test_act_mul(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 17, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            const int act = (int)(i % MHA_ACT_COUNT);
            float *x = row_start(&x_row, n, i % 5), *u = row_start(&u_row, n, i % 3);
            float in[ROW_MAX];
            fill_uniform(x, n, &g, -6.0, 6.0);
            fill_uniform(u, n, &g, -2.0, 2.0);
            memcpy(in, x, n * sizeof *in);
            tables[k]->act_mul[act](x, u, n);
            row_check_guards(&x_row);
            for (size_t j = 0; j < n; j++) {
                const double f = (double)formula((mha_act)act, (long double)in[j]);
                const double scale = fmax(1.0, fabs((double)in[j])) * fabs((double)u[j]);
                assert_true(fabs((double)x[j] - f * (double)u[j]) <= 1.8e-7 * scale);
            }
        }
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
                float *x = row_start(&x_row, n, i % 7), want[ROW_MAX];
                fill_uniform(x, n, &g, -4.0, 4.0);
                memcpy(want, x, n * sizeof *want);
                tables[0]->act[act](want, n);
                tables[k]->act[act](x, n);
                row_check_guards(&x_row);
                for (size_t j = 0; j < n; j++)
                    assert_true(fabsf(x[j] - want[j]) <= 3e-7F);
            }
        }
    }
}

static void test_softcap(void **state)
{
    static const float caps[] = {50.0F, 30.0F, 5.0F};
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 29, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            const float cap = caps[i % 3];
            float *x = row_start(&x_row, n, i % 4), in[ROW_MAX];
            fill_uniform(x, n, &g, i % 2 == 0 ? -200.0 : -1e-3, i % 2 == 0 ? 200.0 : 1e-3);
            memcpy(in, x, n * sizeof *in);
            tables[k]->softcap(x, n, cap);
            row_check_guards(&x_row);
            for (size_t j = 0; j < n; j++) {
                const double want = (double)cap * tanh((double)in[j] / (double)cap);
                assert_true(ulp_distance(x[j], want) <= 4.0);
            }
        }
        float infinite[2] = {INFINITY, -INFINITY};
        tables[k]->softcap(infinite, 2, 30.0F);
        assert_true(infinite[0] == 30.0F && infinite[1] == -30.0F);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy_between_minus_20_and_20),
        cmocka_unit_test(test_small_arguments),
        cmocka_unit_test(test_special_arguments),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_act_mul),
        cmocka_unit_test(test_vectors_agree_with_ref_over_lengths),
        cmocka_unit_test(test_softcap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
