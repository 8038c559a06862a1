/* base_rng: the generator's sequence, which saved results depend on, and its distributions. */
#include "support/test.h"

#include "base/rng.h"

#include <math.h>

static void test_reference_sequence(void **state)
{
    /* The first outputs of xoshiro256++ from the state 1, 2, 3, 4. */
    static const uint64_t expected[] = {
        0x2800001u,       0x3800067u,          0xcc00003800067u,
        0xcc201994400b2u, 0x8012a2019ac433cdu, 0x8a69978acdee33bau,
    };
    mha_rng r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(mha_rng_next(&r) == expected[i]);
}

static void test_seeding_never_changes(void **state)
{
    /* Computed by another program from the definition in rng.c. */
    static const struct {
        uint64_t seed, stream, first, second;
    } table[] = {
        {0, 0, 0x84f09bf307c1073au, 0xc82ffb597ceee51bu},
        {42, 0, 0xab4c4adfbb450230u, 0x16c758048460b512u},
        {42, 1, 0x3814afc50eb70728u, 0xdf9a98f739c9d6ddu},
        {UINT64_MAX, 7, 0x65ae75e5db3a3fc7u, 0xe7bdfc01d0e710dbu},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        mha_rng r;
        mha_rng_seed(&r, table[i].seed, table[i].stream);
        assert_true(mha_rng_next(&r) == table[i].first);
        assert_true(mha_rng_next(&r) == table[i].second);
    }
}

static void test_uniform_moments(void **state)
{
    enum { N = 200000 };
    double sum = 0, squares = 0;
    mha_rng r;
    mha_rng_seed(&r, 1, 0);
    for (int i = 0; i < N; i++) {
        double u = mha_rng_uniform(&r);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    /* Five standard errors: 5·√(1/12/N) and 5·√(4/45/N). */
    assert_true(fabs(sum / N - 0.5) < 0.0033);
    assert_true(fabs(squares / N - 1.0 / 3) < 0.0034);
}

static void test_below_is_unbiased(void **state)
{
    enum { N = 60000, BOUND = 6 };
    int counts[BOUND] = {0};
    double chi_squared = 0;
    mha_rng r;
    mha_rng_seed(&r, 2, 0);
    for (int i = 0; i < N; i++) {
        uint64_t x = mha_rng_below(&r, BOUND);
        assert_true(x < BOUND);
        counts[x]++;
    }
    for (int i = 0; i < BOUND; i++)
        chi_squared += pow(counts[i] - N / BOUND, 2) / (N / BOUND);
    assert_true(chi_squared < 25.7); /* p = 1e-4 with 5 degrees of freedom */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(mha_rng_below(&r, 1), 0);
        assert_true(mha_rng_below(&r, UINT64_MAX) < UINT64_MAX);
        /* Here half of all draws are rejected. */
        assert_true(mha_rng_below(&r, ((uint64_t)1 << 63) + 1) <= (uint64_t)1 << 63);
    }
}

static void test_normal_moments(void **state)
{
    enum { N = 200000 };
    double sum = 0, squares = 0, fourth = 0;
    int inside = 0;
    mha_rng r;
    mha_rng_seed(&r, 3, 0);
    for (int i = 0; i < N; i++) {
        double x = mha_rng_normal(&r);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        inside += fabs(x) < 1.0;
    }
    /* Five standard errors each; erf(1/√2) of a normal lies within one deviation. */
    assert_true(fabs(sum / N) < 0.0112);
    assert_true(fabs(squares / N - 1) < 0.0159);
    assert_true(fabs(fourth / N - 3) < 0.11);
    assert_true(fabs((double)inside / N - erf(sqrt(0.5))) < 0.0053);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_sequence), cmocka_unit_test(test_seeding_never_changes),
        cmocka_unit_test(test_uniform_moments),    cmocka_unit_test(test_below_is_unbiased),
        cmocka_unit_test(test_normal_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
