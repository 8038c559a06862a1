/* analysis_prune: costs by hand, the order of worth, and exchanges that only gradients together
 * can see. */
#include "support/test.h"

#include "mha/prune.h"
#include "model/program.h"

#include <string.h>

/* Two steps of two plain heads, width 3, D 5. */
static mha_attn_info steps[] = {
    {.stack = MHA_ENC, .layer = 0, .heads = 2, .kv_heads = 2, .width = 3},
    {.stack = MHA_ENC, .layer = 1, .heads = 2, .kv_heads = 2, .width = 3}};
static const struct mha_model plain = {
    .info = {.attn = steps, .attn_count = 2, .width = 5, .layers = {2, 0}}};

static void test_costs(void **state)
{
    bool remove[4] = {true, false, false, false};
    /* a head: 2·7·5·3 (q, o) + 2·7·7·3 (scores, values) + 2·7·5·3 (k, v) */
    assert_true(mha_prune_cost(&plain, NULL, 7, 0) == 4 * (210 + 294 + 210));
    assert_true(mha_prune_cost(&plain, remove, 7, 0) == 3 * (210 + 294 + 210));
}

static void test_costs_of_groups_and_masks(void **state)
{
    mha_attn_info a[] = {
        {.stack = MHA_DEC, .heads = 4, .kv_heads = 2, .width = 3, .causal = true},
        {.stack = MHA_DEC, .kind = MHA_CROSS, .heads = 4, .kv_heads = 4, .width = 3}};
    struct mha_model m = {.info = {.attn = a, .attn_count = 2, .width = 5, .layers = {1, 1}}};
    bool one[8] = {true}, group[8] = {true, true};
    /* a target of 4 tokens: 10 pairs; 7 tokens to read: 28 pairs */
    double self = 4 * (2 * 4 * 15 + 2 * 10 * 3) + 2 * (2 * 4 * 15);
    double cross = 4 * (2 * 4 * 15 + 2 * 28 * 3 + 2 * 7 * 15);
    assert_true(mha_prune_cost(&m, NULL, 7, 4) == self + cross);
    assert_true(mha_prune_cost(&m, one, 7, 4) == self + cross - 180);
    assert_true(mha_prune_cost(&m, group, 7, 4) == self + cross - 360 - 120);
}

static const mha_unit_place four[] = {{0, 0, 1, 0}, {0, 1, 1, 1}, {1, 0, 1, 0}, {1, 1, 1, 1}};

static void test_least(void **state)
{
    double score[] = {0.5, -1, 3, 0.25};
    mha_prune_search s = {.units = four, .count = 4, .score = score};
    bool remove[4], wanted[4] = {false, true, false, true};
    assert_int_equal(mha_prune_least(remove, &plain, &s, 2, NULL), MHA_OK);
    assert_memory_equal(remove, wanted, sizeof wanted);
}

static void test_budget(void **state)
{
    double score[] = {0.5, 1, 3, 0.25};
    mha_prune_search s = {.units = four, .count = 4, .score = score, .tokens = 7};
    bool remove[4], wanted[4] = {true, false, false, true};
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 0.5, NULL), MHA_OK);
    assert_memory_equal(remove, wanted, sizeof wanted);
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 1, NULL), MHA_OK);
    assert_false(remove[0] || remove[1] || remove[2] || remove[3]);
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 0, NULL), MHA_OK);
    assert_true(remove[0] && remove[1] && remove[2] && remove[3]);
    mha_err err = {0};
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 1.5, &err), MHA_ERR_ARG);
    s.count = 2; /* the second step has to stay */
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 0.25, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "have to stay"));
}

/* Methods D1 and D5: gradients (1,2), (−1,1), (0,−2), information (2, 9)/3. */
static void test_exchange_of_the_reference(void **state)
{
    double gradient[] = {1, 2, -1, 1, 0, -2}, score[] = {2. / 3, 3};
    mha_prune_search s = {.units = four,
                          .count = 2,
                          .score = score,
                          .gradient = gradient,
                          .documents = 3,
                          .tokens = 7};
    bool remove[4], wanted[4] = {true, false, false, false};
    assert_int_equal(mha_prune_fit(remove, &plain, &s, 0.75, NULL), MHA_OK);
    assert_memory_equal(remove, wanted, sizeof wanted);
}

/* Of three heads two are to go. By information 0 and 1 (1 and 2 each), which add up to (3, 3):
 * 18; but 1 and 2 cancel. */
static void test_exchange_finds_heads_that_make_up_for_each_other(void **state)
{
    mha_attn_info a = {.stack = MHA_ENC, .heads = 3, .kv_heads = 3, .width = 3};
    struct mha_model m = {.info = {.attn = &a, .attn_count = 1, .width = 5, .layers = {1, 0}}};
    const mha_unit_place three[] = {{0, 0, 1, 0}, {0, 1, 1, 1}, {0, 2, 1, 2}};
    double gradient[] = {1, 2, -2.1, 1, 2, -2.1}, score[] = {1, 4, 4.41};
    mha_prune_search s = {.units = three, .count = 3, .score = score, .documents = 2, .tokens = 7};
    bool remove[3], plainly[3] = {true, true, false}, together[3] = {false, true, true};
    assert_int_equal(mha_prune_fit(remove, &m, &s, 1. / 3, NULL), MHA_OK);
    assert_memory_equal(remove, plainly, sizeof plainly);
    s.gradient = gradient;
    assert_int_equal(mha_prune_fit(remove, &m, &s, 1. / 3, NULL), MHA_OK);
    assert_memory_equal(remove, together, sizeof together);
}

static void test_nearest_groups(void **state)
{
    mha_attn_info a[] = {{.heads = 6, .kv_heads = 2}, {.heads = 6, .kv_heads = 2}};
    struct mha_model m = {.info = {.attn = a, .attn_count = 2}};
    bool out[12];
    /* two of three: the group; one of three: none */
    bool most[12] = {true, true, false, true, false, false}, whole[12] = {true, true, true};
    mha_prune p = {.remove = most};
    assert_false(mha_prune_nearest(&m, &p, out));
    assert_memory_equal(out, whole, sizeof whole);
    p.mode = MHA_PRUNE_MASK;
    assert_true(mha_prune_nearest(&m, &p, out));
    assert_memory_equal(out, most, sizeof most);
    /* one head alone: its group, for a request is never met by doing nothing */
    bool one[12] = {[7] = true}, its[12] = {[6] = true, [7] = true, [8] = true};
    p = (mha_prune){.remove = one};
    assert_false(mha_prune_nearest(&m, &p, out));
    assert_memory_equal(out, its, sizeof its);
    p.remove = its;
    assert_true(mha_prune_nearest(&m, &p, out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_costs_of_groups_and_masks),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_exchange_of_the_reference),
        cmocka_unit_test(test_exchange_finds_heads_that_make_up_for_each_other),
        cmocka_unit_test(test_nearest_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
