/* analysis_contacts: the average product correction by hand, and that order and height of the
 * blocks change nothing. */
#include "mha/attribute.h"
#include "support/attention.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

enum { N = 5, R = 3 };

/* Start and end token around three residues; what they weigh must not matter. Inner part
 *   A = .1 .2 .3   B = A + Aᵀ = .2 .6 .4   r = (1.2, 1.0, 1.0), t = 3.2
 *       .4 .1 .1                .6 .2 .2
 *       .1 .1 .2                .4 .2 .4
 *   B − r·rᵀ/t = −.25   .225    .025
 *                 .225 −.1125  −.1125
 *                 .025 −.1125   .0875 */
static const float first[N * N] = {.5f, .1f, .1f, .1f, .2f, .2f, .1f, .2f, .3f, .2f, .1f, .4f, .1f,
                                   .1f, .3f, .3f, .1f, .1f, .2f, .3f, .9f, 0,   0,   0,   .1f};
static const double corrected[R * R] = {-.25,   .225, .025,   .225, -.1125,
                                        -.1125, .025, -.1125, .0875};
/* The same weight everywhere: 0 after the correction. */
static const float second[N * N] = {.2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f,
                                    .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f, .2f};

static const int32_t ids[N] = {0, 4, 5, 6, 2};
static const float weights[] = {2, -3, 1.5f, 7};

static void model_make(mha_model *m, mha_attn_info *steps)
{
    steps[0] = (mha_attn_info){.stack = MHA_ENC, .layer = 0, .heads = 2, .original_heads = 2};
    steps[1] = (mha_attn_info){.stack = MHA_ENC, .layer = 1, .heads = 1, .original_heads = 2};
    static const uint16_t left[] = {0}; /* head 1.1 was pruned: its weight is not used */
    steps[1].head_ids = left;
    fake_model(m, steps, 2);
    m->contacts = (mha_contact_head){.weights = weights, .count = 4, .bias = -.5f, .end = 2};
}

static mha_contacts *begin(const mha_model *m, const mha_document *doc)
{
    mha_contacts *c;
    mha_err err = {0};
    assert_int_equal(mha_contacts_new(&c, m, doc, &err), MHA_OK);
    return c;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void test_by_hand(void **state)
{
    (void)state;
    mha_model m;
    mha_attn_info steps[2];
    model_make(&m, steps);
    mha_document doc = {.ids = ids, .n = N};
    float kept[R * R];
    for (size_t height = 1; height <= N; height++) {
        mha_contacts *c = begin(&m, &doc);
        const mha_probe *p = mha_contacts_probe(c);
        for (int k = 0; k < 3; k++) { /* another order of the heads at every height */
            int turn = (k + (int)height) % 3;
            if (turn == 0)
                feed_pattern(p, &steps[0], 0, 0, first, N, N, NULL, height);
            else if (turn == 1)
                feed_pattern(p, &steps[0], 1, 0, second, N, N, NULL, height);
            else
                feed_pattern(p, &steps[1], 0, 0, first, N, N, NULL, height);
        }
        const float *map = mha_contacts_map(c);
        for (int i = 0; i < R * R; i++)
            assert_true(fabs((double)map[i] - sigmoid(3.5 * corrected[i] - .5)) < 1e-6);
        if (height == 1)
            memcpy(kept, map, sizeof kept);
        assert_memory_equal(map, kept, sizeof kept);
        assert_memory_equal(mha_contacts_map(c), kept, sizeof kept); /* asked twice */
        mha_contacts_free(c);
    }
}

/* An end token in the middle: its row and column are 0 before anything is summed. */
static void test_end_inside(void **state)
{
    (void)state;
    mha_model m;
    mha_attn_info steps[2];
    model_make(&m, steps);
    const int32_t cut[N] = {0, 4, 2, 6, 2};
    mha_document doc = {.ids = cut, .n = N};
    mha_contacts *c = begin(&m, &doc);
    feed_pattern(mha_contacts_probe(c), &steps[0], 0, 0, first, N, N, NULL, 2);
    const float *map = mha_contacts_map(c);
    /* B = .2 0 .4 / 0 0 0 / .4 0 .4, r = (.6, 0, .8), t = 1.4 */
    assert_true(fabs((double)map[0] - sigmoid(2 * (.2 - .36 / 1.4) - .5)) < 1e-6);
    assert_true(fabs((double)map[2] - sigmoid(2 * (.4 - .48 / 1.4) - .5)) < 1e-6);
    assert_true(fabs((double)map[4] - sigmoid(-.5)) < 1e-6);
    mha_contacts_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_end_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
