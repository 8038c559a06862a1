/* kernel_gemm: matrix products in all four orientations, with strides, against plain sums. */
#include "support/test.h"

#include "base/rng.h"
#include "kernel/gemm.h"

#include <math.h>
#include <string.h>

enum { SIDE = 40, STRIDE = 47 };

static float a[SIDE * STRIDE], b[SIDE * STRIDE], c[SIDE * STRIDE], c0[SIDE * STRIDE];

static void check(bool at, bool bt, size_t m, size_t n, size_t k, float alpha, float beta)
{
    memcpy(c, c0, sizeof c);
    mha_gemm(at, bt, m, n, k, alpha, a, STRIDE, b, STRIDE, beta, c, STRIDE);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (size_t l = 0; l < k; l++) {
                const float x = at ? a[l * STRIDE + i] : a[i * STRIDE + l];
                const float y = bt ? b[j * STRIDE + l] : b[l * STRIDE + j];
                sum += (double)x * (double)y;
            }
            double want = (double)alpha * sum;
            if (beta != 0.0F)
                want += (double)beta * (double)c0[i * STRIDE + j];
            assert_true(fabs((double)c[i * STRIDE + j] - want) <= 1e-5);
            c[i * STRIDE + j] = c0[i * STRIDE + j];
        }
    }
    assert_memory_equal(c, c0, sizeof c); /* nothing between the rows was touched */
}

static void test_all_orientations(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {1, 40, 40}, {40, 1, 17}, {3, 5, 7},
                                      {40, 40, 40}, {17, 33, 1}, {16, 32, 8}, {39, 7, 31}};
    mha_rng g;

    mha_gemm_init();
    mha_rng_seed(&g, 9, 0);
    for (size_t i = 0; i < SIDE * STRIDE; i++) {
        a[i] = (float)(mha_rng_uniform(&g) - 0.5);
        b[i] = (float)(mha_rng_uniform(&g) - 0.5);
        c0[i] = (float)(mha_rng_uniform(&g) - 0.5);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int form = 0; form < 4; form++) {
            const bool at = (form & 1) != 0, bt = (form & 2) != 0;
            check(at, bt, sizes[i][0], sizes[i][1], sizes[i][2], 1.0F, 0.0F);
            check(at, bt, sizes[i][0], sizes[i][1], sizes[i][2], 0.125F, 1.0F);
            check(at, bt, sizes[i][0], sizes[i][1], sizes[i][2], -1.0F, 0.5F);
        }
    }
}

/* beta = 0 overwrites: what was there may be anything, NaN too. */
static void test_beta_zero_ignores_old_values(void **state)
{
    float x[4] = {1.0F, 2.0F, 3.0F, 4.0F}, y[4] = {5.0F, 6.0F, 7.0F, 8.0F};
    float z[4] = {NAN, INFINITY, NAN, -INFINITY};

    mha_gemm(false, false, 2, 2, 2, 1.0F, x, 2, y, 2, 0.0F, z, 2);
    assert_true(z[0] == 19.0F && z[1] == 22.0F && z[2] == 43.0F && z[3] == 50.0F);
    mha_gemm(false, true, 2, 2, 2, 1.0F, x, 2, y, 2, 0.0F, z, 2);
    assert_true(z[0] == 17.0F && z[1] == 23.0F && z[2] == 39.0F && z[3] == 53.0F);
}

static void test_empty_products(void **state)
{
    float x[2] = {1.0F, 2.0F}, z[2] = {3.0F, 4.0F};

    mha_gemm(false, false, 0, 2, 1, 1.0F, x, 1, x, 2, 0.0F, z, 2);
    mha_gemm(false, false, 1, 0, 1, 1.0F, x, 1, x, 1, 0.0F, z, 1);
    assert_true(z[0] == 3.0F && z[1] == 4.0F);
    mha_gemm(false, false, 1, 2, 0, 1.0F, x, 1, x, 2, 0.0F, z, 2); /* a sum over nothing */
    assert_true(z[0] == 0.0F && z[1] == 0.0F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orientations),
        cmocka_unit_test(test_beta_zero_ignores_old_values),
        cmocka_unit_test(test_empty_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
