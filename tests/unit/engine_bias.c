/* engine_bias: ALiBi by head and key against the reference implementation's numbers, also for
 * positions that bfloat16 does not tell apart, and slopes of head counts that are no power of two.
 */
#include "engine/attention.h"
#include "model/program.h"
#include "support/fixture.h"
#include "support/test.h"

enum { KEYS = 1100 };

static const mha_attn_args *first_attention(const mha_model *m)
{
    const mha_steps *block = &((const struct mha_model *)m)->stack[0].block[0];
    for (size_t i = 0; i < block->count; i++)
        if (block->step[i].op == MHA_OP_ATTN)
            return &block->step[i].attn;
    fail_msg("no attention");
    return NULL;
}

static mha_model *open_model(const char *name)
{
    char path[1024];
    mha_model *m;
    mha_err err = {0};
    fixture_path(path, sizeof path, name, NULL);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return m;
}

/* Six heads: four slopes of 2^−2, and two between them. */
static void test_slopes(void **state)
{
    static const float slopes[6] = {0.25F, 0.0625F, 0.015625F, 0.00390625F, 0.5F, 0.125F};
    static float bias[KEYS];
    mha_model *m = open_model("bloom");
    const mha_attn_args *a = first_attention(m);
    assert_int_equal(a->bias, MHA_BIAS_ALIBI);
    assert_int_equal(a->heads, 6);
    for (uint32_t h = 0; h < 6; h++) {
        mha_bias_fill(a, h, KEYS, KEYS, bias);
        for (size_t j = 0; j < KEYS; j++)
            if (bias[j] != slopes[h] * (float)j)
                fail_msg("head %u, key %zu: %g", h, j, (double)bias[j]);
    }
    assert_ptr_equal(mha_bias_row(a, bias, 7), bias); /* the same for every query */
    mha_model_close(m);
}

/* Slope, position and product in bfloat16, then the factor. */
static void test_rounded(void **state)
{
    static const struct {
        size_t key;
        float half, root; /* of slopes 1/2 and 2^−1/2 */
    } cases[] = {{1, 0.5F, 0.70703125F}, {3, 1.5F, 2.125F},     {37, 18.5F, 26.125F},
                 {255, 127.5F, 180.0F},  {257, 128.0F, 181.0F}, {259, 130.0F, 184.0F},
                 {511, 256.0F, 362.0F},  {1027, 512.0F, 724.0F}};
    static const float table[2] = {0.5F, 0.70703125F};
    static float bias[2][KEYS];
    const mha_attn_args a = {.heads = 2,
                             .bias = MHA_BIAS_ALIBI,
                             .bias_table = table,
                             .bias_factor = 0.25F,
                             .bias_bf16 = true};
    for (uint32_t h = 0; h < 2; h++)
        mha_bias_fill(&a, h, 1, KEYS, bias[h]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t j = cases[i].key;
        if (bias[0][j] != 0.25F * cases[i].half || bias[1][j] != 0.25F * cases[i].root)
            fail_msg("key %zu: %g and %g", j, (double)bias[0][j], (double)bias[1][j]);
    }
}

/* The family that needs the rounding asks for it, and divides by the root of the head's width. */
static void test_asked_for(void **state)
{
    mha_model *m = open_model("falcon-alibi");
    const mha_attn_args *a = first_attention(m);
    assert_int_equal(a->bias, MHA_BIAS_ALIBI);
    assert_true(a->bias_bf16);
    assert_true(a->bias_factor == 0.5F); /* heads of 4 */
    assert_int_equal(a->rope, MHA_ROPE_NONE);
    mha_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
