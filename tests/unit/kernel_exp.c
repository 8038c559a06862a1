/* kernel_exp: maximum, exponentials and their streamed sums, on every instruction set. */
#include "support/test.h"

#include "support/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

static row s_row;

static void assert_near(double got, double want, double relative, double absolute)
{
    if (!(fabs(got - want) <= relative * fabs(want) + absolute))
        fail_msg("got %.17g, expected %.17g", got, want);
}

/* Entropy in nats and expected index of softmax(s), as the engine takes them from the sums. */
static double entropy_of(const mha_exp_sums *e)
{
    return log(e->l) - e->u / e->l;
}

static void test_max(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 11, k);
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            float *s = row_start(&s_row, n, i % 5);
            fill_uniform(s, n, &g, -3.0, -1.0);
            float want = -INFINITY;
            for (size_t j = 0; j < n; j++)
                want = s[j] > want ? s[j] : want;
            assert_true(tables[k]->max(s, n) == want);
            /* The maximum is found in every place, and so is a NaN. */
            for (size_t j = 0; j<n; j += n> 70 ? 13 : 1) {
                const float kept = s[j];
                s[j] = 7.0F;
                assert_true(tables[k]->max(s, n) == 7.0F);
                s[j] = NAN;
                assert_true(isnan(tables[k]->max(s, n)));
                s[j] = kept;
            }
            for (size_t j = 0; j < n; j++)
                s[j] = -INFINITY;
            assert_true(tables[k]->max(s, n) == -INFINITY);
        }
    }
}

/* Every kind of argument, one by one: the exponential itself, where s − 0 is exact. */
static void test_exp_is_accurate_everywhere(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        double worst = 0.0;
        for (double from = -105.0; from < 0.0; from += 0.25) {
            float *s = row_start(&s_row, 2048, 1);
            float x[2048];
            for (size_t j = 0; j < 2048; j++)
                x[j] = (float)(from + 0.25 * (double)j / 2047.0);
            double l;
            memcpy(s, x, sizeof x);
            tables[k]->exp_sum(s, 2048, 0.0F, &l);
            for (size_t j = 0; j < 2048; j++) {
                const double ulps = ulp_distance(s[j], exp((double)x[j]));
                worst = ulps > worst ? ulps : worst;
            }
        }
        print_message("exp on %s: at most %.3f ulp\n", tables[k]->isa, worst);
        assert_true(worst <= 1.0);
    }
}

static void test_exp_of_special_scores(void **state)
{
    static const float in[] = {0.0F,     -0.0F,        -INFINITY, -FLT_MAX, -1e30F,
                               -150.0F,  -103.98F,     -103.97F,  -104.5F,  -87.4F,
                               -FLT_MIN, -FLT_MIN / 8, 0.0F};
    enum { N = sizeof in / sizeof *in };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (size_t pad = 0; pad < 20; pad++) { /* in whole vectors and in masked ones */
            float *s = row_start(&s_row, N + pad, pad % 3);
            mha_exp_sums sums;
            double l = 0.0, u = 0.0;
            for (size_t j = 0; j < N + pad; j++)
                s[j] = j < N ? in[j] : -INFINITY;
            tables[k]->exp_stats(s, N + pad, 0.0F, &sums);
            for (size_t j = 0; j < N; j++) {
                const double want = exp((double)in[j]);
                assert_true(ulp_distance(s[j], want) <= 1.0);
                l += want;
                if (want > 1e-300)
                    u += want * (double)in[j];
            }
            for (size_t j = N; j < N + pad; j++)
                assert_true(s[j] == 0.0F);
            assert_true(s[2] == 0.0F && s[3] == 0.0F && s[5] == 0.0F && s[6] == 0.0F);
            assert_true(s[0] == 1.0F && s[1] == 1.0F && s[10] == 1.0F);
            assert_near(sums.l, l, 1e-7, 0.0);
            assert_near(sums.u, u, 1e-6, 0.0);
            row_check_guards(&s_row);
        }
    }
}

/* The statistics against their definitions in double, from the same scores. */
static void test_stats_against_definitions(void **state)
{
    static const double spreads[] = {0.01, 1.0, 8.0, 60.0, 2000.0};
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    for (size_t k = 0; k < count; k++) {
        mha_rng_seed(&g, 5, 0);
        for (size_t i = 1; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            const double spread = spreads[i % 5], centre = i % 3 == 0 ? 40.0 : -3.0;
            float *s = row_start(&s_row, n, i % 7), x[ROW_MAX];
            fill_uniform(s, n, &g, centre - spread, centre);
            for (size_t j = 3; j < n; j += 11)
                s[j] = -INFINITY;
            memcpy(x, s, n * sizeof *x);
            const float m = tables[k]->max(s, n);
            mha_exp_sums sums;
            tables[k]->exp_stats(s, n, m, &sums);
            row_check_guards(&s_row);

            double l = 0.0, index = 0.0, entropy = 0.0;
            for (size_t j = 0; j < n; j++) {
                const double t = (double)x[j] - (double)m;
                const double e = exp(t);
                /* s − m is rounded once, by half a spacing of its own size. */
                if (t > -HUGE_VAL)
                    assert_near((double)s[j], e, 1.2e-7 - t * 0x1p-24, 0x1p-149);
                else
                    assert_true(s[j] == 0.0F);
                l += e;
                index += (double)j * e;
            }
            for (size_t j = 0; j < n; j++) {
                const double p = exp((double)x[j] - (double)m) / l;
                entropy -= p > 0.0 ? p * log(p) : 0.0;
            }
            assert_near(sums.l, l, 5e-7, 0.0);
            assert_near(sums.w, index, 1e-6, 0.0);
            assert_near(entropy_of(&sums), entropy, 1e-6, 1e-6);

            double only_l = -1.0;
            float again[ROW_MAX];
            memcpy(again, s, n * sizeof *again);
            memcpy(s, x, n * sizeof *s);
            tables[k]->exp_sum(s, n, m, &only_l);
            assert_near(only_l, sums.l, 1e-15, 0.0);
            assert_memory_equal(s, again, n * sizeof *s); /* both kernels give the same weights */
        }
    }
}

/* Hand values: softmax(2, 1, 0) has 0.8323956 nats; (1, 3, 2, 0) worked out to seven digits. */
static void test_stats_by_hand(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        mha_exp_sums a, b;
        float three[] = {2.0F, 1.0F, 0.0F}, four[] = {1.0F, 3.0F, 2.0F, 0.0F};
        tables[k]->exp_stats(three, 3, 2.0F, &a);
        assert_near(entropy_of(&a), 0.8323956, 0.0, 1e-7);
        tables[k]->exp_stats(four, 4, 3.0F, &b);
        assert_near(b.l, 1.5530018, 0.0, 2e-7);
        assert_near(b.u, -0.7879112, 0.0, 2e-7);
        assert_near(b.w, 1.8851201, 0.0, 3e-7);
        assert_near(entropy_of(&b), 0.9475370, 0.0, 2e-7);
        assert_near(b.w / b.l, 1.2138557, 0.0, 2e-7);
        assert_near(1.0 / b.l, 0.6439143, 0.0, 1e-7);
    }
}

/* Five scores around −110000 against which a finite mask constant would win: the three future keys
 * are not in the row at all. The differences are exact in float. */
static void test_large_negative_scores(void **state)
{
    static const double want[] = {1.126e-8, 0.942084, 5.21e-8, 7.56e-9, 0.057916};
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        float s[] = {-110208.0547F, -110189.8125F, -110206.5234F, -110208.4531F, -110192.6016F};
        mha_exp_sums sums;
        tables[k]->exp_stats(s, 5, tables[k]->max(s, 5), &sums);
        for (size_t j = 0; j < 5; j++)
            assert_near(s[j] / sums.l, want[j], 1e-3, 5e-7);
    }
}

/* The same row in two blocks of keys, merged as the streaming formula says. */
static void test_block_merge_by_hand(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        mha_exp_sums a, b;
        float first[] = {1.0F, 3.0F}, second[] = {2.0F, 0.0F};
        tables[k]->exp_stats(first, 2, 3.0F, &a);
        tables[k]->exp_stats(second, 2, 2.0F, &b);
        assert_near(a.l, 1.1353353, 0.0, 1e-7);
        assert_near(a.u, -0.2706706, 0.0, 1e-7);
        assert_near(a.w, 1.0, 0.0, 1e-7);
        const double c = exp(-1.0), w = b.w + 2.0 * b.l; /* the second block starts at index 2 */
        assert_near(w, 2.4060058, 0.0, 2e-7);
        const double l = a.l + c * b.l, u = a.u + c * (b.u - b.l);
        assert_near(log(l) - u / l, 0.9475370, 0.0, 2e-7);
        assert_near((a.w + c * w) / l, 1.2138557, 0.0, 2e-7);
    }
}

static void test_alignment_changes_nothing(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;
    float x[700];

    mha_rng_seed(&g, 3, 0);
    fill_uniform(x, 700, &g, -9.0, 0.0);
    for (size_t k = 0; k < count; k++) {
        mha_exp_sums base = {0}, sums;
        for (size_t offset = 0; offset < 16; offset++) {
            float *s = row_start(&s_row, 700, offset);
            memcpy(s, x, sizeof x);
            tables[k]->exp_stats(s, 700, 0.0F, offset == 0 ? &base : &sums);
            if (offset > 0)
                assert_memory_equal(&base, &sums, sizeof sums);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_exp_is_accurate_everywhere),
        cmocka_unit_test(test_exp_of_special_scores),
        cmocka_unit_test(test_stats_against_definitions),
        cmocka_unit_test(test_stats_by_hand),
        cmocka_unit_test(test_large_negative_scores),
        cmocka_unit_test(test_block_merge_by_hand),
        cmocka_unit_test(test_alignment_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
