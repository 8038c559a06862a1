/* kernel_rows: sums, norms and rotations against formulas in double, on every instruction set. */
#include "support/test.h"

#include "support/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

static row a_row, b_row, c_row, d_row;

static void assert_close(float got, double want, double tolerance)
{
    if (!(fabs((double)got - want) <= tolerance))
        fail_msg("got %.9g, expected %.17g, within %g", (double)got, want, tolerance);
}

static void test_scale_add_axpy(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 1, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            float *y = row_start(&a_row, n, i % 5), *x = row_start(&b_row, n, (i + 2) % 7);
            float y0[ROW_MAX], x0[ROW_MAX];
            fill_uniform(y, n, &g, -2.0, 2.0);
            fill_uniform(x, n, &g, -2.0, 2.0);
            memcpy(y0, y, n * sizeof *y0);
            memcpy(x0, x, n * sizeof *x0);
            tables[k]->axpy(y, 0.3F, x, n);
            for (size_t j = 0; j < n; j++)
                assert_close(y[j], (double)y0[j] + (double)0.3F * (double)x0[j], 2.4e-7);
            memcpy(y, y0, n * sizeof *y0);
            tables[k]->add(y, x, n);
            for (size_t j = 0; j < n; j++)
                assert_true(y[j] == y0[j] + x0[j]);
            tables[k]->scale(y, n, 1.0F / 3.0F);
            for (size_t j = 0; j < n; j++)
                assert_true(y[j] == (y0[j] + x0[j]) * (1.0F / 3.0F));
            row_check_guards(&a_row);
            row_check_guards(&b_row);
            if (n > 0)
                assert_memory_equal(x, x0, n * sizeof *x0);
        }
    }
}

/* Denormals are numbers like others, whatever the instruction set. */
static void test_denormals_are_kept(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        float y[19], x[19];
        for (size_t j = 0; j < 19; j++) {
            y[j] = FLT_TRUE_MIN * (float)j;
            x[j] = FLT_TRUE_MIN * 2.0F;
        }
        tables[k]->add(y, x, 19);
        tables[k]->scale(y, 19, 2.0F);
        tables[k]->axpy(y, -1.0F, x, 19);
        for (size_t j = 0; j < 19; j++)
            assert_true(y[j] == FLT_TRUE_MIN * (float)(2 * j + 2));
        float zero[3] = {-0.0F, 0.0F, -0.0F};
        tables[k]->scale(zero, 3, 5.0F);
        assert_true(signbit(zero[0]) != 0 && signbit(zero[1]) == 0 && signbit(zero[2]) != 0);
    }
}

/* (x − μ)/sqrt(σ² + eps)·w + b and x/sqrt(mean x² + eps)·w in long double. */
static void layer_norm_formula(long double *y, const float *x, const float *w, const float *b,
                               size_t n, float eps)
{
    long double sum = 0.0L, square = 0.0L;

    for (size_t i = 0; i < n; i++)
        sum += (long double)x[i];
    const long double mean = sum / (long double)n;
    for (size_t i = 0; i < n; i++)
        square += ((long double)x[i] - mean) * ((long double)x[i] - mean);
    const long double deviation = sqrtl(square / (long double)n + (long double)eps);
    for (size_t i = 0; i < n; i++) {
        y[i] = ((long double)x[i] - mean) / deviation;
        y[i] =
            y[i] * (w != NULL ? (long double)w[i] : 1.0L) + (b != NULL ? (long double)b[i] : 0.0L);
    }
}

static void rms_norm_formula(long double *y, const float *x, const float *w, size_t n, float eps)
{
    long double square = 0.0L;

    for (size_t i = 0; i < n; i++)
        square += (long double)x[i] * (long double)x[i];
    const long double scale = sqrtl(square / (long double)n + (long double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (long double)x[i] / scale * (w != NULL ? (long double)w[i] : 1.0L);
}

/* One rounding of the normalised value and one of the result, each half a unit. */
static void check_norm(const float *y, const long double *want, const float *b, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const double shift = b != NULL ? fabs((double)b[j]) : 0.0;
        const double product = fabs((double)want[j]) + shift;
        assert_close(y[j], (double)want[j], 1.25e-7 * product + 1e-37);
    }
}

static void test_norms_over_lengths(void **state)
{
    static const float epsilons[] = {1e-5F, 1e-12F, 1e-6F};
    static long double want[ROW_MAX];
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 2, 0);
        for (size_t i = 2; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            const float eps = epsilons[i % 3];
            float *y = row_start(&a_row, n, i % 5), *x = row_start(&b_row, n, (i + 2) % 7);
            float *w = row_start(&c_row, n, i % 3), *b = row_start(&d_row, n, i % 4);
            fill_uniform(x, n, &g, -2.0, 3.0);
            fill_uniform(w, n, &g, 0.2, 2.0);
            fill_uniform(b, n, &g, -1.0, 1.0);
            for (int form = 0; form < 4; form++) {
                const float *gain = (form & 1) != 0 ? w : NULL;
                const float *shift = (form & 2) != 0 ? b : NULL;
                layer_norm_formula(want, x, gain, shift, n, eps);
                tables[k]->layer_norm(y, x, gain, shift, n, eps);
                check_norm(y, want, shift, n);
                rms_norm_formula(want, x, gain, n, eps);
                tables[k]->rms_norm(y, x, gain, n, eps);
                check_norm(y, want, NULL, n);
            }
            row_check_guards(&a_row);
            /* In place. */
            layer_norm_formula(want, x, w, b, n, eps);
            tables[k]->layer_norm(x, x, w, b, n, eps);
            check_norm(x, want, b, n);
            rms_norm_formula(want, w, b, n, eps);
            tables[k]->rms_norm(w, w, b, n, eps);
            check_norm(w, want, NULL, n);
            row_check_guards(&b_row);
            row_check_guards(&c_row);
        }
    }
}

/* A mean far above the deviation, as some residual streams have: one pass in float would lose
 * every digit of the variance. */
static void test_layer_norm_with_a_large_mean(void **state)
{
    static long double want[768];
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;
    float x[768], y[768];

    mha_rng_seed(&g, 4, 0);
    fill_uniform(x, 768, &g, 4095.0, 4097.0);
    layer_norm_formula(want, x, NULL, NULL, 768, 1e-5F);
    for (size_t k = 0; k < count; k++) {
        tables[k]->layer_norm(y, x, NULL, NULL, 768, 1e-5F);
        check_norm(y, want, NULL, 768);
    }
}

static void test_norms_by_hand(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        /* mean 2.5, variance 1.25: (x − 2.5)/1.118034 */
        const float x[4] = {1.0F, 2.0F, 3.0F, 4.0F}, w[4] = {1.0F, 1.0F, 2.0F, 2.0F};
        float y[4];
        tables[k]->layer_norm(y, x, w, NULL, 4, 0.0F);
        assert_close(y[0], -1.3416407865, 2e-7);
        assert_close(y[2], 0.8944271910, 2e-7);
        /* mean square 7.5 */
        tables[k]->rms_norm(y, x, w, 4, 0.0F);
        assert_close(y[0], 0.3651483717, 1e-7);
        assert_close(y[3], 2.9211869735, 5e-7);
        /* A constant row has no deviation: only eps is left, and the shift comes out. */
        const float same[4] = {7.0F, 7.0F, 7.0F, 7.0F};
        tables[k]->layer_norm(y, same, w, x, 4, 1e-5F);
        assert_memory_equal(y, x, sizeof x);
    }
}

static void fill_angles(float *c, float *s, size_t r, mha_rng *g)
{
    for (size_t i = 0; i < r; i++) {
        const double angle = 6.283 * mha_rng_uniform(g);
        c[i] = (float)cos(angle);
        s[i] = (float)sin(angle);
    }
}

static void test_rope(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 6, 0);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i) / 2 * 2, r = n / 2;
            float *x = row_start(&a_row, n, i % 5), *pairs = row_start(&b_row, n, i % 6);
            float *c = row_start(&c_row, r, i % 3), *s = row_start(&d_row, r, i % 4);
            float x0[ROW_MAX];
            fill_uniform(x, n, &g, -3.0, 3.0);
            fill_angles(c, s, r, &g);
            memcpy(x0, x, n * sizeof *x0);
            for (size_t j = 0; j < r; j++) { /* the same pairs, side by side */
                pairs[2 * j] = x0[j];
                pairs[2 * j + 1] = x0[j + r];
            }
            tables[k]->rope_half(x, c, s, n);
            tables[k]->rope_pair(pairs, c, s, n);
            for (size_t j = 0; j < r; j++) {
                const double a = (double)x0[j], b = (double)x0[j + r];
                const double cj = (double)c[j], sj = (double)s[j];
                assert_close(x[j], a * cj - b * sj, 5e-7);
                assert_close(x[j + r], b * cj + a * sj, 5e-7);
            }
            if (n > 0)
                assert_memory_equal(x, pairs, n * sizeof *x);
            row_check_guards(&a_row);
            row_check_guards(&b_row);
        }
    }
}

static void test_rope_by_hand(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        /* A quarter turn of the first pair, none of the second. */
        const float c[2] = {0.0F, 1.0F}, s[2] = {1.0F, 0.0F};
        float half[4] = {1.0F, 2.0F, 3.0F, 4.0F}, pair[4] = {1.0F, 2.0F, 3.0F, 4.0F};
        const float want_half[4] = {-3.0F, 2.0F, 1.0F, 4.0F};
        const float want_pair[4] = {-2.0F, 3.0F, 1.0F, 4.0F};
        tables[k]->rope_half(half, c, s, 4);
        tables[k]->rope_pair(pair, c, s, 4);
        for (size_t j = 0; j < 4; j++)
            assert_true(half[j] == want_half[j] && pair[j] == want_pair[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_add_axpy),
        cmocka_unit_test(test_denormals_are_kept),
        cmocka_unit_test(test_norms_over_lengths),
        cmocka_unit_test(test_layer_norm_with_a_large_mean),
        cmocka_unit_test(test_norms_by_hand),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_rope_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
