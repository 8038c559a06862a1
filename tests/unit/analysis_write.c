/* analysis_write: what the rules of a checkpoint do to one row of logits. */
#include "support/test.h"

#include "mha/analysis.h"

#include <math.h>

enum { V = 6 };
static const float logits[V] = {1, -2, 3, 4, -1, 0};

static void apply(const mha_generation *rules, const int32_t *ids, size_t n, size_t prompt,
                  size_t limit, float *out)
{
    mha_generation_apply(rules, logits, V, ids, n, prompt, limit, out);
}

static const mha_generation none = {
    .first = -1, .last = -1, .repeat_penalty = 1, .length_penalty = 1};

static void test_nothing(void **state)
{
    float out[V];
    apply(&none, (int32_t[]){2, 2}, 2, 1, 9, out);
    for (size_t v = 0; v < V; v++)
        assert_float_equal(out[v], logits[v], 0);
}

static void test_penalty(void **state)
{
    mha_generation rules = none;
    float out[V];
    rules.repeat_penalty = 2;
    apply(&rules, (int32_t[]){1, 3, 3, 1}, 4, 1, 9, out); /* each id once */
    assert_float_equal(out[1], -4, 0);
    assert_float_equal(out[3], 2, 0);
    assert_float_equal(out[2], 3, 0);
}

static void test_repeats(void **state)
{
    mha_generation rules = none;
    float out[V];
    rules.no_repeat = 2; /* 2 3 2 4 2: neither 3 nor 4 may follow */
    apply(&rules, (int32_t[]){2, 3, 2, 4, 2}, 5, 1, 9, out);
    for (size_t v = 0; v < V; v++)
        assert_int_equal(isinf(out[v]), v == 3 || v == 4 ? isinf(-INFINITY) : 0);
    rules.no_repeat = 1;
    apply(&rules, (int32_t[]){5}, 1, 1, 9, out);
    assert_true(isinf(out[5]) && !isinf(out[4]));
    rules.no_repeat = 3; /* longer than what stands there */
    apply(&rules, (int32_t[]){5}, 1, 1, 9, out);
    assert_float_equal(out[5], logits[5], 0);
}

static void test_ends(void **state)
{
    mha_generation rules = none;
    int32_t ends[] = {0, 5}, never[] = {2}, first[] = {4};
    float out[V];
    rules.ends = (mha_ids){ends, 2};
    rules.never = (mha_ids){never, 1};
    rules.never_first = (mha_ids){first, 1};
    rules.min_length = 3; /* counts the prompt */
    apply(&rules, (int32_t[]){3, 3}, 2, 2, 9, out);
    assert_true(isinf(out[0]) && isinf(out[5]) && isinf(out[2]) && isinf(out[4]));
    assert_float_equal(out[3], 4, 0);
    apply(&rules, (int32_t[]){3, 3, 1}, 3, 2, 9, out);
    assert_true(!isinf(out[0]) && isinf(out[2]) && !isinf(out[4]));
    rules.min_new = 2; /* does not */
    apply(&rules, (int32_t[]){3, 3, 1}, 3, 2, 9, out);
    assert_true(isinf(out[0]));
}

static void test_forced(void **state)
{
    mha_generation rules = none;
    int32_t first[] = {4};
    float out[V];
    rules.first = 1;
    rules.last = 5;
    rules.never_first = (mha_ids){first, 1};
    apply(&rules, (int32_t[]){0}, 1, 1, 3, out);
    for (size_t v = 0; v < V; v++)
        assert_true(v == 1 ? out[v] == 0 : isinf(out[v]));
    apply(&rules, (int32_t[]){0, 1}, 2, 1, 3, out); /* the first that is not forced */
    assert_true(isinf(out[4]) && !isinf(out[0]));
    apply(&rules, (int32_t[]){0, 1, 3}, 3, 1, 3, out);
    for (size_t v = 0; v < V; v++)
        assert_true(v == 5 ? out[v] == 0 : isinf(out[v]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
