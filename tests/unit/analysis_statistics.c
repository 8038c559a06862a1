/* analysis_statistics: the fixed tree, and bootstrap intervals against the same draws recomputed by
 * their definition in double. */
#include "support/test.h"

#include "analysis/statistics.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_tree_is_fixed(void **state)
{
    /* Numbers of such different sizes that the order of additions shows. */
    const double x[7] = {1e16, 1, -1e16, 1, 3, 1e-3, 7};
    double left = (x[0] + x[1]) + (x[2] + x[3]), right = (x[4] + x[5]) + x[6];
    assert_true(mha_tree_sum(x, 7) == left + right);
    assert_true(mha_tree_sum(x, 4) == left);
    assert_true(mha_tree_sum(x, 1) == x[0]);
    assert_true(mha_tree_sum(x, 0) == 0);
    /* Finished nodes can be put together again, and zeros behind change nothing. */
    double longer[16] = {0};
    memcpy(longer, x, sizeof x);
    assert_true(mha_tree_sum(longer, 16) == left + right);
}

enum { DOCS = 1300, COLUMNS = 3, RESAMPLES = 600 };

typedef struct table {
    double sum[DOCS][COLUMNS], count[DOCS][COLUMNS];
} table;

static void get(const void *context, size_t document, double *sum, double *count)
{
    const table *t = context;
    memcpy(sum, t->sum[document], sizeof t->sum[document]);
    memcpy(count, t->count[document], sizeof t->count[document]);
}

/* Column 1 has its own counts, column 2 none. */
static void make_table(table *t, double *value)
{
    mha_rng r;
    mha_rng_seed(&r, 3, 0);
    memset(t, 0, sizeof *t);
    for (size_t d = 0; d < DOCS; d++) {
        t->count[d][0] = 1 + (double)mha_rng_below(&r, 50);
        t->count[d][1] = (double)mha_rng_below(&r, 3);
        t->sum[d][0] = t->count[d][0] * (5 + mha_rng_normal(&r));
        t->sum[d][1] = t->count[d][1] * mha_rng_uniform(&r);
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        double sum = 0, count = 0;
        for (size_t d = 0; d < DOCS; d++) {
            sum += t->sum[d][c];
            count += t->count[d][c];
        }
        value[c] = count > 0 ? sum / count : (double)NAN;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

static void define_interval(const table *t, size_t c, uint64_t seed, double *lo, double *hi)
{
    static double r[RESAMPLES];
    for (size_t b = 0; b < RESAMPLES; b++) {
        double sum = 0, count = 0;
        mha_rng rng;
        mha_rng_seed(&rng, seed, ((uint64_t)1 << 40) + b);
        for (size_t i = 0; i < DOCS; i++) {
            size_t d = (size_t)mha_rng_below(&rng, DOCS);
            sum += t->sum[d][c];
            count += t->count[d][c];
        }
        r[b] = sum / count;
    }
    qsort(r, RESAMPLES, sizeof *r, ascending);
    *lo = quantile(r, RESAMPLES, 0.05);
    *hi = quantile(r, RESAMPLES, 0.95);
}

static void test_intervals_by_definition(void **state)
{
    static table t;
    double value[COLUMNS], lo[COLUMNS], hi[COLUMNS];
    make_table(&t, value);
    mha_ratios ratios = {DOCS, COLUMNS, get, &t};
    assert_int_equal(mha_bootstrap(&ratios, value, RESAMPLES, 0.9, 11, lo, hi, NULL), MHA_OK);
    for (size_t c = 0; c < 2; c++) {
        double want_lo, want_hi;
        define_interval(&t, c, 11, &want_lo, &want_hi);
        double width = want_hi - want_lo;
        assert_true(want_lo < value[c] && value[c] < want_hi);
        assert_true(fabs(lo[c] - want_lo) < 1e-5 * width);
        assert_true(fabs(hi[c] - want_hi) < 1e-5 * width);
    }
    assert_true(isnan(lo[2]) && isnan(hi[2]));
}

/* For a mean of normal numbers the interval is that of theory: ±1.96·σ/√n. */
static void test_intervals_have_the_right_width(void **state)
{
    static table t;
    double value[COLUMNS], lo[COLUMNS], hi[COLUMNS];
    mha_rng r;
    mha_rng_seed(&r, 4, 0);
    memset(&t, 0, sizeof t);
    for (size_t d = 0; d < DOCS; d++) {
        t.sum[d][0] = mha_rng_normal(&r);
        t.count[d][0] = 1;
    }
    value[0] = 0;
    for (size_t d = 0; d < DOCS; d++)
        value[0] += t.sum[d][0] / DOCS;
    value[1] = value[2] = (double)NAN;
    mha_ratios ratios = {DOCS, COLUMNS, get, &t};
    assert_int_equal(mha_bootstrap(&ratios, value, 4000, 0.95, 1, lo, hi, NULL), MHA_OK);
    assert_true(fabs((hi[0] - lo[0]) / 2 - 1.96 / sqrt(DOCS)) <= 0.1 * 1.96 / sqrt(DOCS));
}

static void test_seed_decides(void **state)
{
    static table t;
    double value[COLUMNS], lo[3][COLUMNS], hi[3][COLUMNS];
    const uint64_t seeds[3] = {1, 1, 2};
    make_table(&t, value);
    mha_ratios ratios = {DOCS, COLUMNS, get, &t};
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            mha_bootstrap(&ratios, value, RESAMPLES, 0.9, seeds[i], lo[i], hi[i], NULL), MHA_OK);
    assert_memory_equal(lo[0], lo[1], 2 * sizeof(double));
    assert_memory_equal(hi[0], hi[1], 2 * sizeof(double));
    assert_true(lo[0][0] != lo[2][0]);
}

static void test_too_little(void **state)
{
    static table t;
    double value[COLUMNS], lo[COLUMNS], hi[COLUMNS];
    make_table(&t, value);
    mha_ratios one = {1, COLUMNS, get, &t}, two = {2, COLUMNS, get, &t};
    assert_int_equal(mha_bootstrap(&one, value, 100, 0.9, 1, lo, hi, NULL), MHA_OK);
    assert_true(isnan(lo[0]) && isnan(hi[0]));
    assert_int_equal(mha_bootstrap(&two, value, 0, 0.9, 1, lo, hi, NULL), MHA_OK);
    assert_true(isnan(lo[0]) && isnan(hi[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_is_fixed),
        cmocka_unit_test(test_intervals_by_definition),
        cmocka_unit_test(test_intervals_have_the_right_width),
        cmocka_unit_test(test_seed_decides),
        cmocka_unit_test(test_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
