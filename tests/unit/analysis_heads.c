/* analysis_heads: columns of known patterns, rows without special keys and of words, sums that do
 * not depend on how documents come, and what is undefined. */
#include "support/attention.h"
#include "support/test.h"

#include "base/rng.h"
#include "mha/analysis.h"

#include <math.h>
#include <string.h>

static const float t0[16] = {1, 0, 0, 0, .5f, .5f, 0, 0, .25f, .25f, .5f, 0, .7f, .1f, .1f, .1f};
static const mha_words alone[] = {{NULL, NULL}}; /* makes the pattern itself be read */

static mha_heads *begin(mha_model *m, const mha_heads_options *options, const mha_document *docs,
                        const mha_words *words, size_t count)
{
    mha_heads *h;
    mha_err err = {0};
    assert_int_equal(mha_heads_new(&h, m, options, &err), MHA_OK);
    assert_int_equal(mha_heads_begin(h, docs, words, count, 0, &err), MHA_OK);
    return h;
}

static const mha_head_row *result(mha_heads *h, size_t expected)
{
    const mha_head_row *rows;
    size_t count;
    mha_err err = {0};
    assert_int_equal(mha_heads_result(h, &rows, &count, &err), MHA_OK);
    assert_int_equal(count, expected);
    return rows;
}

static void near(double value, double expected)
{
    if (isnan(expected))
        assert_true(isnan(value));
    else
        assert_true(fabs(value - expected) <= 1e-6);
}

static void check(const mha_head_row *row, const double expected[MHA_HEADS_COLUMNS])
{
    for (int c = 0; c < MHA_HEADS_COLUMNS; c++)
        near(row->values[c], expected[c]);
}

/* Fixture T0 of the methods, on both ways: statistics of the softmax pass, and the pattern. */
static void test_known_pattern(void **state)
{
    const double expected[MHA_HEADS_COLUMNS] = {
        4,          0.6683290,   0.8749282, (1 + 2 + 2.8284271 + 2.5611285) / 4,
        0.675,      0.9125,      -0.9125,   0.525,
        0.2833333,  (double)NAN, 0.4833333, 0.6125,
        (double)NAN};
    mha_attn_info step = {.stack = MHA_DEC, .layer = 0, .heads = 1, .causal = true};
    mha_model m;
    fake_model(&m, &step, 1);
    const uint8_t special[] = {1, 0, 0, 0};
    mha_document doc = {.n = 4, .special = special};
    for (int way = 0; way < 2; way++)
        for (size_t height = 1; height <= 4; height++) {
            mha_heads *h = begin(&m, NULL, &doc, way ? alone : NULL, 1);
            assert_int_equal(mha_heads_probe(h)->sites,
                             1u << (way ? MHA_SITE_PATTERN : MHA_SITE_STATS));
            feed_pattern(mha_heads_probe(h), &step, 0, 0, t0, 4, 4, special, height);
            const mha_head_row *row = result(h, 1);
            assert_int_equal(row->stack, MHA_DEC);
            check(row, expected);
            mha_heads_free(h);
        }
}

/* Case 10: zeros give no NaN, and one visible key has no normalised entropy. */
static void test_zero_weights(void **state)
{
    const float p[9] = {1, 0, 0, .8f, .2f, 0, .1f, .7f, .2f};
    const float uniform[16] = {.25f, .25f, .25f, .25f, .25f, .25f, .25f, .25f,
                               .25f, .25f, .25f, .25f, .25f, .25f, .25f, .25f};
    const float one[1] = {1};
    mha_attn_info step = {.stack = MHA_ENC, .heads = 3};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document docs[3] = {{.n = 3}, {.n = 4}, {.n = 1}};
    for (int way = 0; way < 2; way++) {
        const mha_words words[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
        mha_heads *h = begin(&m, NULL, docs, way ? words : NULL, 3);
        const mha_probe *probe = mha_heads_probe(h);
        feed_pattern(probe, &step, 0, 0, p, 3, 3, NULL, 3);
        feed_pattern(probe, &step, 0, 1, uniform, 4, 4, NULL, 3);
        feed_pattern(probe, &step, 0, 2, one, 1, 1, NULL, 3);
        feed_pattern(probe, &step, 1, 2, one, 1, 1, NULL, 3);
        mha_head_row rows[3];
        assert_true(mha_heads_document(h, 0, rows));
        near(rows[0].values[MHA_HEADS_ROWS], 3);
        near(rows[0].values[MHA_HEADS_ENTROPY], 0.434074);
        near(rows[0].values[MHA_HEADS_ENTROPY_NORM], 0.434074 / log(3));
        near(rows[0].values[MHA_HEADS_NEXT_MASS], (0 + 0) / 2.0);
        assert_true(mha_heads_document(h, 1, rows));
        near(rows[0].values[MHA_HEADS_ENTROPY], 1.386294361);
        near(rows[0].values[MHA_HEADS_ENTROPY_NORM], 1);
        near(rows[0].values[MHA_HEADS_DISTANCE], 1.25);
        near(rows[0].values[MHA_HEADS_OFFSET], 0);
        near(rows[0].values[MHA_HEADS_NEXT_MASS], 0.25);
        assert_true(mha_heads_document(h, 2, rows));
        near(rows[0].values[MHA_HEADS_ENTROPY], 0);
        near(rows[0].values[MHA_HEADS_ENTROPY_NORM], (double)NAN);
        near(rows[0].values[MHA_HEADS_PREV_MASS], (double)NAN);
        near(rows[0].values[MHA_HEADS_FIRST_MASS], (double)NAN);
        near(rows[0].values[MHA_HEADS_SELF_MASS], 1);
        assert_false(mha_heads_document(h, 3, rows));

        /* Over the corpus: sums of rows, not means of means. */
        const mha_head_row *all = result(h, 3);
        near(all[0].values[MHA_HEADS_ROWS], 8);
        near(all[0].values[MHA_HEADS_ENTROPY], (3 * 0.434074 + 4 * 1.386294361) / 8);
        near(all[0].values[MHA_HEADS_ENTROPY_NORM], (3 * 0.434074 / log(3) + 4) / 7);
        near(all[1].values[MHA_HEADS_ENTROPY_NORM], (double)NAN);
        near(all[2].values[MHA_HEADS_ROWS], 0);
        near(all[2].values[MHA_HEADS_ENTROPY], (double)NAN);
        mha_heads_free(h);
    }
}

static void test_cross_attention_has_no_positions(void **state)
{
    const float p[6] = {.5f, .3f, .2f, .1f, .1f, .8f};
    mha_attn_info steps[] = {{.stack = MHA_ENC, .heads = 1},
                             {.stack = MHA_DEC, .heads = 1, .causal = true},
                             {.stack = MHA_DEC, .kind = MHA_CROSS, .heads = 1}};
    mha_model m;
    fake_model(&m, steps, 3);
    const uint8_t special[] = {0, 0, 1};
    mha_document doc = {.n = 3, .special = special, .target_n = 2};
    for (int way = 0; way < 2; way++) {
        mha_heads *h = begin(&m, NULL, &doc, way ? alone : NULL, 1);
        feed_pattern(mha_heads_probe(h), &steps[2], 0, 0, p, 2, 3, special, 1);
        const mha_head_row *row = result(h, 3) + 2;
        assert_int_equal(row->kind, MHA_CROSS);
        near(row->values[MHA_HEADS_ROWS], 2);
        near(row->values[MHA_HEADS_MAX_WEIGHT], 0.65);
        near(row->values[MHA_HEADS_SPECIAL_MASS], 0.5);
        for (int c = MHA_HEADS_DISTANCE; c <= MHA_HEADS_FIRST_MASS; c++)
            near(row->values[c], (double)NAN);
        mha_heads_free(h);
    }
}

static void test_special_keys_taken_out(void **state)
{
    /* Keys 0 and 3 are special: rows become (0, 3/4, 1/4, 0), (0, 1/2, 1/2, 0), none, (0, 0, 1, 0).
     */
    const float p[16] = {.5f, .3f, .1f, .1f, .2f, .3f, .3f, .2f, .5f, 0, 0, .5f, .4f, 0, .2f, .4f};
    const uint8_t special[] = {1, 0, 0, 1};
    mha_attn_info step = {.stack = MHA_ENC, .heads = 1};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document doc = {.n = 4, .special = special};
    mha_heads_options options = {.special = MHA_SPECIAL_RENORM};
    mha_heads *h = begin(&m, &options, &doc, NULL, 1);
    feed_pattern(mha_heads_probe(h), &step, 0, 0, p, 4, 4, special, 3);
    const mha_head_row *row = result(h, 1);
    double e0 = -.75 * log(.75) - .25 * log(.25), e1 = log(2);
    const double expected[MHA_HEADS_COLUMNS] = {
        3,
        (e0 + e1) / 3,
        (e0 + e1) / 3 / log(2),
        (exp(e0) + 2 + 1) / 3,
        (.75 + .5 + 1) / 3,
        (.75 * 1 + .25 * 2 + .5 * 1 + 1) / 3,
        (1.25 + .5 - 1) / 3,
        .5, /* visible in row 1 only: keys 0 and 3 are not */
        1,  /* rows 1, 3 look back at keys 0 (gone) and 2 */
        (.75 + .5) / 2,
        (double)NAN,
        (.6 + .4 + .8) / 3,
        (double)NAN,
    };
    check(row, expected);
    assert_int_equal(mha_heads_skipped(h), 1);
    mha_heads_free(h);
}

static void test_special_needs_flags(void **state)
{
    mha_attn_info step = {.stack = MHA_ENC, .heads = 1};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document doc = {.n = 4};
    for (int special = MHA_SPECIAL_KEEP; special <= MHA_SPECIAL_RENORM; special++) {
        mha_heads_options options = {.special = (mha_special)special};
        mha_heads *h;
        mha_err err = {0};
        assert_int_equal(mha_heads_new(&h, &m, &options, &err), MHA_OK);
        assert_int_equal(mha_heads_begin(h, &doc, NULL, 1, 0, &err),
                         special == MHA_SPECIAL_KEEP ? MHA_OK : MHA_ERR_ARG);
        mha_heads_free(h);
    }
}

/* Case 11: words (.75, .25), (.4, .6). */
static void test_words(void **state)
{
    const float p[9] = {.5f, .3f, .2f, .1f, .6f, .3f, .2f, .2f, .6f};
    const int32_t word[] = {0, 0, 1};
    const mha_words words[] = {{word, NULL}};
    mha_attn_info step = {.stack = MHA_ENC, .heads = 1};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document doc = {.n = 3};
    double e0 = -.75 * log(.75) - .25 * log(.25), e1 = -.4 * log(.4) - .6 * log(.6);
    const double expected[MHA_HEADS_COLUMNS] = {2,
                                                (e0 + e1) / 2,
                                                (e0 + e1) / 2 / log(2),
                                                (exp(e0) + exp(e1)) / 2,
                                                (.75 + .6) / 2,
                                                (.25 + .4) / 2,
                                                (.25 - .4) / 2,
                                                (.75 + .6) / 2,
                                                .4,
                                                .25,
                                                .4,
                                                (double)NAN,
                                                (double)NAN};
    for (size_t height = 1; height <= 3; height++) { /* a word may cross blocks */
        mha_heads *h = begin(&m, NULL, &doc, words, 1);
        feed_pattern(mha_heads_probe(h), &step, 0, 0, p, 3, 3, NULL, height);
        check(result(h, 1), expected);
        mha_heads_free(h);
    }
}

static void test_sink(void **state)
{
    const float p[2] = {.3f, .3f}; /* and .4 to the sink */
    mha_attn_info step = {.stack = MHA_DEC, .kind = MHA_CROSS, .heads = 1, .sink = true};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document doc = {.n = 2};
    mha_heads *h = begin(&m, NULL, &doc, alone, 1);
    feed_pattern(mha_heads_probe(h), &step, 0, 0, p, 1, 2, NULL, 1);
    const mha_head_row *row = result(h, 1);
    near(row->values[MHA_HEADS_ENTROPY], log(2)); /* over the keys, renormalised */
    near(row->values[MHA_HEADS_MAX_WEIGHT], .3);
    near(row->values[MHA_HEADS_SINK_MASS], .4);
    mha_heads_free(h);
}

static void test_selection_keeps_original_numbers(void **state)
{
    static const uint16_t pruned[] = {1, 4, 6};
    mha_attn_info steps[] = {{.stack = MHA_ENC, .heads = 2},
                             {.stack = MHA_ENC, .layer = 1, .heads = 3, .head_ids = pruned}};
    mha_model m;
    fake_model(&m, steps, 2);
    const bool marks[6] = {false, true, false, true, false, true};
    mha_heads_options options = {.choice = {.heads = marks}};
    mha_document doc = {.n = 1};
    mha_heads *h = begin(&m, &options, &doc, NULL, 1);
    const mha_probe *probe = mha_heads_probe(h);
    assert_false(probe->wants(probe->context, MHA_SITE_STATS, MHA_ENC, MHA_SELF, 0, 0));
    assert_true(probe->wants(probe->context, MHA_SITE_STATS, MHA_ENC, MHA_SELF, 0, 1));
    assert_true(probe->wants(probe->context, MHA_SITE_STATS, MHA_ENC, MHA_SELF, 1, UINT32_MAX));
    assert_false(probe->wants(probe->context, MHA_SITE_STATS, MHA_ENC, MHA_SELF, 1, 1));
    assert_false(probe->wants(probe->context, MHA_SITE_STATS, MHA_ENC, MHA_CROSS, 1, 0));
    assert_false(probe->wants(probe->context, MHA_SITE_STATS, MHA_DEC, MHA_SELF, 0, 0));
    const mha_head_row *rows = result(h, 3);
    assert_int_equal(rows[0].head, 1);
    assert_int_equal(rows[1].layer, 1);
    assert_int_equal(rows[1].head, 1);
    assert_int_equal(rows[2].head, 6);
    mha_heads_free(h);
}

enum { DOCS = 23, HEADS = 2, LONGEST = 12 };

typedef struct corpus {
    float p[DOCS][HEADS][LONGEST * LONGEST];
    mha_document docs[DOCS];
} corpus;

static void make_corpus(corpus *c)
{
    mha_rng r;
    mha_rng_seed(&r, 7, 0);
    for (size_t d = 0; d < DOCS; d++) {
        size_t n = 1 + (size_t)mha_rng_below(&r, LONGEST);
        c->docs[d] = (mha_document){.n = n};
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = 0; i < n; i++) {
                double sum = 0, x[LONGEST];
                for (size_t j = 0; j <= i; j++)
                    sum += x[j] = exp(2 * mha_rng_normal(&r));
                for (size_t j = 0; j < n; j++)
                    c->p[d][h][i * n + j] = j <= i ? (float)(x[j] / sum) : 0;
            }
    }
}

/* Runs the corpus in parts of `part` documents, blocks of `height` rows. */
static mha_heads *run_corpus(mha_model *m, const corpus *c, size_t part, size_t height)
{
    mha_heads *h;
    mha_err err = {0};
    mha_heads_options options = {.resamples = 300, .seed = 5};
    assert_int_equal(mha_heads_new(&h, m, &options, &err), MHA_OK);
    for (size_t first = 0; first < DOCS; first += part) {
        size_t count = DOCS - first < part ? DOCS - first : part;
        assert_int_equal(mha_heads_begin(h, c->docs + first, NULL, count, first, &err), MHA_OK);
        for (uint32_t head = 0; head < HEADS; head++)
            for (size_t d = 0; d < count; d++) {
                size_t n = c->docs[first + d].n;
                feed_pattern(mha_heads_probe(h), m->info.attn, head, d, c->p[first + d][head], n, n,
                             NULL, height);
            }
    }
    return h;
}

static void test_parts_do_not_show(void **state)
{
    static corpus c;
    mha_attn_info step = {.stack = MHA_DEC, .heads = HEADS, .causal = true};
    mha_model m;
    fake_model(&m, &step, 1);
    make_corpus(&c);
    mha_heads *whole = run_corpus(&m, &c, DOCS, 64);
    const mha_head_row *expected = result(whole, HEADS);
    for (size_t part = 1; part <= 8; part++) {
        mha_heads *h = run_corpus(&m, &c, part, part);
        const mha_head_row *rows = result(h, HEADS);
        for (size_t k = 0; k < HEADS; k++) {
            assert_memory_equal(rows[k].values, expected[k].values, sizeof rows[k].values);
            assert_memory_equal(rows[k].lo, expected[k].lo, sizeof rows[k].lo);
            assert_memory_equal(rows[k].hi, expected[k].hi, sizeof rows[k].hi);
        }
        mha_heads_free(h);
    }
    for (size_t k = 0; k < HEADS; k++) {
        assert_true(isnan(expected[k].lo[MHA_HEADS_ROWS]));
        assert_true(isnan(expected[k].lo[MHA_HEADS_NEXT_MASS]));
        for (int c2 = MHA_HEADS_ENTROPY; c2 < MHA_HEADS_NEXT_MASS; c2++) {
            assert_true(expected[k].lo[c2] < expected[k].values[c2]);
            assert_true(expected[k].hi[c2] > expected[k].values[c2]);
        }
    }
    mha_heads_free(whole);
}

static void test_wrong_calls(void **state)
{
    mha_attn_info step = {.stack = MHA_DEC, .heads = 1, .causal = true};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document docs[2] = {{.n = 1}, {.n = 1}};
    const mha_words words[2] = {{NULL, NULL}, {NULL, NULL}};
    mha_heads_options options = {.confidence = 1};
    mha_heads *h;
    mha_err err = {0};
    assert_int_equal(mha_heads_new(&h, &m, &options, &err), MHA_ERR_ARG);
    assert_null(h);
    h = begin(&m, NULL, docs, NULL, 2);
    assert_int_equal(mha_heads_begin(h, docs, NULL, 2, 1, &err), MHA_ERR_ARG);
    assert_int_equal(mha_heads_begin(h, docs, words, 2, 2, &err), MHA_ERR_ARG);
    assert_int_equal(mha_heads_begin(h, docs, NULL, 2, 2, &err), MHA_OK);
    mha_heads_free(h);
}

static void test_columns_are_named(void **state)
{
    const mha_column *c = mha_heads_columns();
    for (int i = 0; i < MHA_HEADS_COLUMNS; i++) {
        assert_non_null(c[i].name);
        assert_non_null(c[i].description);
    }
    assert_string_equal(c[MHA_HEADS_ENTROPY].unit, "nats");
    assert_string_equal(c[MHA_HEADS_SINK_MASS].name, "sink_mass");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_pattern),
        cmocka_unit_test(test_zero_weights),
        cmocka_unit_test(test_cross_attention_has_no_positions),
        cmocka_unit_test(test_special_keys_taken_out),
        cmocka_unit_test(test_special_needs_flags),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_selection_keeps_original_numbers),
        cmocka_unit_test(test_parts_do_not_show),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_columns_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
