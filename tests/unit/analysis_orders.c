/* analysis_orders: ranks, rank correlations and their intervals, by hand and by definition. */
#include "support/test.h"

#include "analysis/statistics.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#define NEAR(x, y) assert_true(fabs((x) - (y)) < 1e-12)

static void test_ranks(void **state)
{
    const double x[6] = {2, 5, 2, 9, -1, 5};
    const size_t want[6] = {4, 2, 5, 1, 6, 3};
    size_t rank[6];
    assert_int_equal(mha_ranks(x, 6, rank, NULL), MHA_OK);
    assert_memory_equal(rank, want, sizeof want);
    assert_int_equal(mha_ranks(x, 0, rank, NULL), MHA_OK);
}

static void test_correlations(void **state)
{
    const double x[5] = {1, 2, 3, 4, 5}, y[5] = {2, 1, 4, 3, 5}, z[5] = {1, 1, 2, 2, 3};
    const double constant[5] = {7, 7, 7, 7, 7};
    double r;
    /* 1 − 6 Σ d²/(n(n² − 1)) with Σ d² = 4; two of ten pairs disagree */
    assert_int_equal(mha_spearman(x, y, 5, &r, NULL), MHA_OK);
    NEAR(r, 0.8);
    NEAR(mha_kendall(x, y, 5), 0.6);
    /* ties: Pearson of mean ranks (1.5, 1.5, 3.5, 3.5, 5); τ-b = 8/sqrt(10·8) */
    assert_int_equal(mha_spearman(x, z, 5, &r, NULL), MHA_OK);
    NEAR(r, 9 / sqrt(10 * 9.0));
    NEAR(mha_kendall(x, z, 5), 8 / sqrt(80));
    assert_int_equal(mha_spearman(x, constant, 5, &r, NULL), MHA_OK);
    assert_true(isnan(r) && isnan(mha_kendall(x, constant, 5)));
    assert_int_equal(mha_spearman(x, y, 1, &r, NULL), MHA_OK);
    assert_true(isnan(r));
}

static void test_spearman_brown(void **state)
{
    assert_true(fabs(mha_spearman_brown(0.8) - 0.8888889) < 1e-7);
    NEAR(mha_spearman_brown(1), 1);
    NEAR(mha_spearman_brown(-0.5), -0.5);
}

enum { DOCS = 40, COLUMNS = 6 };

static double noisy[DOCS * COLUMNS];

/* Column c has mean c and noise of the given size. */
static void make_noisy(double noise)
{
    mha_rng rng;
    mha_rng_seed(&rng, 11, 0);
    for (size_t i = 0; i < DOCS * COLUMNS; i++)
        noisy[i] = (double)(i % COLUMNS) + noise * mha_rng_normal(&rng);
}

static void test_split_half(void **state)
{
    double stable, shaky, few;
    make_noisy(0.01);
    assert_int_equal(mha_split_half(noisy, DOCS, COLUMNS, 20, 1, &stable, NULL), MHA_OK);
    NEAR(stable, 1);
    make_noisy(20);
    assert_int_equal(mha_split_half(noisy, DOCS, COLUMNS, 20, 1, &shaky, NULL), MHA_OK);
    assert_true(shaky < 0.9);
    assert_int_equal(mha_split_half(noisy, 3, COLUMNS, 20, 1, &few, NULL), MHA_OK);
    assert_true(isnan(few));
}

static void get(const void *context, size_t document, double *sum, double *count)
{
    const double *x = context;
    for (size_t c = 0; c < COLUMNS; c++) {
        sum[c] = x[document * COLUMNS + c];
        count[c] = 1;
    }
}

static void test_rank_intervals(void **state)
{
    double value[COLUMNS], lo[COLUMNS], hi[COLUMNS], lo_alone[COLUMNS], hi_alone[COLUMNS];
    double rank_lo[COLUMNS], rank_hi[COLUMNS];
    mha_ratios ratios = {.documents = DOCS, .columns = COLUMNS, .get = get, .context = noisy};
    make_noisy(3);
    for (size_t c = 0; c < COLUMNS; c++) {
        value[c] = 0;
        for (size_t d = 0; d < DOCS; d++)
            value[c] += noisy[d * COLUMNS + c] / DOCS;
    }
    mha_intervals out = {lo, hi, rank_lo, rank_hi};
    assert_int_equal(mha_bootstrap_ranks(&ratios, value, 500, 0.9, 3, &out, NULL), MHA_OK);
    assert_int_equal(mha_bootstrap(&ratios, value, 500, 0.9, 3, lo_alone, hi_alone, NULL), MHA_OK);
    assert_memory_equal(lo, lo_alone, sizeof lo);
    assert_memory_equal(hi, hi_alone, sizeof hi);
    size_t rank[COLUMNS];
    assert_int_equal(mha_ranks(value, COLUMNS, rank, NULL), MHA_OK);
    for (size_t c = 0; c < COLUMNS; c++) {
        assert_true(rank_lo[c] >= 1 && rank_hi[c] <= COLUMNS && rank_lo[c] <= rank_hi[c]);
        assert_true(rank_lo[c] == floor(rank_lo[c]) && rank_hi[c] == floor(rank_hi[c]));
        assert_true(rank_lo[c] <= (double)rank[c] && (double)rank[c] <= rank_hi[c]);
    }
    /* columns a whole unit apart with means known to a tenth never change places */
    make_noisy(0.1);
    for (size_t c = 0; c < COLUMNS; c++)
        value[c] = (double)c;
    assert_int_equal(mha_bootstrap_ranks(&ratios, value, 500, 0.9, 3, &out, NULL), MHA_OK);
    for (size_t c = 0; c < COLUMNS; c++)
        assert_true(rank_lo[c] == COLUMNS - (double)c && rank_hi[c] == rank_lo[c]);
}

static void test_shuffle(void **state)
{
    /* all six orders of three things, about equally often */
    size_t seen[27] = {0};
    mha_rng rng;
    mha_rng_seed(&rng, 5, 0);
    for (int i = 0; i < 6000; i++) {
        size_t x[3] = {0, 1, 2};
        mha_shuffle(x, 3, &rng);
        seen[x[0] * 9 + x[1] * 3 + x[2]]++;
    }
    size_t orders = 0;
    for (size_t i = 0; i < 27; i++)
        if (seen[i] > 0) {
            assert_in_range(seen[i], 850, 1150);
            orders++;
        }
    assert_int_equal(orders, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),          cmocka_unit_test(test_correlations),
        cmocka_unit_test(test_spearman_brown), cmocka_unit_test(test_split_half),
        cmocka_unit_test(test_rank_intervals), cmocka_unit_test(test_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
