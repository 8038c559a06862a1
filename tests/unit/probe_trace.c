/* probe_trace: which arrays are kept of which model, their names, shapes and values; patterns seen
 * through a view; rows of maps without arrays. */
#include "support/attention.h"
#include "support/test.h"

#include "mha/trace.h"

#include <math.h>
#include <string.h>

#define BIT(site) (1u << MHA_SITE_##site)

/* An encoder of two layers and a decoder of one, D = 2, K = 1. */
typedef struct fixture {
    mha_attn_info steps[4];
    mha_model model;
    int32_t ids[3], target_ids[2];
    uint8_t special[3], target_special[2];
    mha_document doc;
} fixture;

static void make(fixture *f)
{
    static const uint16_t pruned[] = {2, 5};
    *f = (fixture){
        .steps = {{.stack = MHA_ENC, .layer = 0, .heads = 2},
                  {.stack = MHA_ENC, .layer = 1, .heads = 2, .kv_heads = 1, .head_ids = pruned},
                  {.stack = MHA_DEC, .layer = 0, .heads = 1, .causal = true},
                  {.stack = MHA_DEC, .kind = MHA_CROSS, .layer = 0, .heads = 1}},
        .ids = {7, 8, 9},
        .target_ids = {0, 4},
        .special = {0, 0, 1},
        .target_special = {1, 0}};
    fake_model(&f->model, f->steps, 4);
    f->doc = (mha_document){.ids = f->ids,
                            .n = 3,
                            .special = f->special,
                            .target_ids = f->target_ids,
                            .target_n = 2,
                            .target_special = f->target_special};
    f->model.info.head = MHA_HEAD_TARGET;
    f->model.info.vocab = 5;
}

static mha_trace *trace(fixture *f, const mha_trace_options *options)
{
    mha_trace *t;
    mha_err err = {0};
    mha_status st = mha_trace_new(&t, &f->model, &f->doc, 1, options, &err);
    if (st != MHA_OK)
        fail_msg("%s", err.message);
    return t;
}

static void expect_shape(const mha_trace *t, const char *name, size_t dims, size_t a, size_t b,
                         size_t c)
{
    const mha_trace_array *array = mha_trace_find(t, 0, name);
    if (array == NULL)
        fail_msg("no array %s", name);
    assert_int_equal(array->dims, dims);
    assert_int_equal(array->shape[0], a);
    assert_int_equal(dims > 1 ? array->shape[1] : b, b);
    assert_int_equal(dims > 2 ? array->shape[2] : c, c);
}

static void test_all_arrays(void **state)
{
    fixture f;
    make(&f);
    mha_trace_options options = {.sites = BIT(PATTERN) | BIT(SCORES) | BIT(Q) | BIT(K) | BIT(V) |
                                          BIT(Z) | BIT(HEAD_OUT) | BIT(EMBED) | BIT(RESID) |
                                          BIT(HIDDEN) | BIT(LOGITS)};
    mha_trace *t = trace(&f, &options);
    static const char *const order[] = {
        "ids",
        "target_ids",
        "enc.embed",
        "enc.self.0.pattern",
        "enc.self.0.scores",
        "enc.self.0.q",
        "enc.self.0.k",
        "enc.self.0.v",
        "enc.self.0.z",
        "enc.self.0.head_out",
        "enc.self.0.heads",
        "enc.0.resid",
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        assert_string_equal(mha_trace_get(t, 0, i)->name, order[i]);
    assert_int_equal(mha_trace_count(t, 0), 2 + (1 + 2 * 9 + 1) + (1 + 2 * 8 + 1 + 1) + 1);
    assert_string_equal(mha_trace_get(t, 0, mha_trace_count(t, 0) - 1)->name, "logits");
    expect_shape(t, "ids", 1, 3, 0, 0);
    expect_shape(t, "enc.embed", 2, 3, 2, 0);
    expect_shape(t, "enc.self.1.pattern", 3, 2, 3, 3);
    expect_shape(t, "enc.self.1.q", 3, 2, 3, 1);
    expect_shape(t, "enc.self.1.k", 3, 1, 3, 1);
    expect_shape(t, "enc.self.1.head_out", 3, 2, 3, 2);
    expect_shape(t, "dec.self.0.scores", 3, 1, 2, 2);
    expect_shape(t, "dec.cross.0.pattern", 3, 1, 2, 3);
    expect_shape(t, "dec.cross.0.v", 3, 1, 3, 1);
    expect_shape(t, "dec.cross.0.z", 3, 1, 2, 1);
    expect_shape(t, "dec.0.resid", 2, 2, 2, 0);
    expect_shape(t, "dec.hidden", 2, 2, 2, 0);
    expect_shape(t, "enc.hidden", 2, 3, 2, 0);
    expect_shape(t, "logits", 2, 2, 5, 0);
    const int64_t ids[] = {7, 8, 9}, heads[] = {2, 5};
    assert_memory_equal(mha_trace_find(t, 0, "ids")->data, ids, sizeof ids);
    assert_memory_equal(mha_trace_find(t, 0, "enc.self.1.heads")->data, heads, sizeof heads);
    assert_int_equal(mha_trace_find(t, 0, "enc.self.1.heads")->type, MHA_ARRAY_I64);
    assert_null(mha_trace_find(t, 0, "enc.self.2.pattern"));
    mha_trace_free(t);
}

static void test_no_decoder_without_a_target(void **state)
{
    fixture f;
    make(&f);
    f.doc.target_n = 0;
    mha_trace_options options = {.sites = BIT(PATTERN) | BIT(HIDDEN)};
    mha_trace *t = trace(&f, &options);
    assert_int_equal(mha_trace_count(t, 0), 1 + 4 + 1);
    assert_null(mha_trace_find(t, 0, "target_ids"));
    assert_null(mha_trace_find(t, 0, "dec.hidden"));
    mha_trace_free(t);
}

static void test_class_logits(void **state)
{
    fixture f;
    make(&f);
    f.model.info.head = MHA_HEAD_CLASS;
    f.model.info.classes = 3;
    mha_trace_options options = {.sites = BIT(LOGITS)};
    mha_trace *t = trace(&f, &options);
    expect_shape(t, "logits", 1, 3, 0, 0);
    const float x[3] = {1, 2, 3};
    feed_rows(mha_trace_probe(t), MHA_SITE_LOGITS, &f.steps[2], 0, 0, x, 1, 3, 1);
    assert_memory_equal(mha_trace_find(t, 0, "logits")->data, x, sizeof x);
    mha_trace_free(t);
}

static void test_values(void **state)
{
    fixture f;
    make(&f);
    const float pattern[2][9] = {{.5f, .3f, .2f, .1f, .6f, .3f, .2f, .2f, .6f},
                                 {.1f, .1f, .8f, .2f, .2f, .6f, .3f, .3f, .4f}};
    const float k[3] = {4, 5, 6}, resid[6] = {1, 2, 3, 4, 5, 6};
    const bool marks[8] = {false, false, false, true};
    const bool enc[2] = {false, true}, dec[1] = {false};
    for (size_t height = 1; height <= 3; height++) {
        mha_trace_options options = {.sites = BIT(PATTERN) | BIT(K) | BIT(RESID) | BIT(EMBED),
                                     .choice = {.heads = marks, .layers = {enc, dec}}};
        mha_trace *t = trace(&f, &options);
        const mha_probe *p = mha_trace_probe(t);
        assert_true(p->wants(p->context, MHA_SITE_PATTERN, MHA_ENC, MHA_SELF, 1, 1));
        assert_false(p->wants(p->context, MHA_SITE_PATTERN, MHA_ENC, MHA_SELF, 1, 0));
        assert_true(p->wants(p->context, MHA_SITE_K, MHA_ENC, MHA_SELF, 1, 0));
        assert_true(p->wants(p->context, MHA_SITE_RESID, MHA_ENC, MHA_SELF, 1, UINT32_MAX));
        assert_false(p->wants(p->context, MHA_SITE_RESID, MHA_ENC, MHA_SELF, 0, UINT32_MAX));
        assert_true(p->wants(p->context, MHA_SITE_EMBED, MHA_ENC, MHA_SELF, 0, UINT32_MAX));
        assert_false(p->wants(p->context, MHA_SITE_EMBED, MHA_DEC, MHA_SELF, 0, UINT32_MAX));
        feed_rows(p, MHA_SITE_PATTERN, &f.steps[1], 1, 0, pattern[1], 3, 3, height);
        feed_rows(p, MHA_SITE_K, &f.steps[1], 0, 0, k, 3, 1, height);
        feed_rows(p, MHA_SITE_RESID, &f.steps[1], 0, 0, resid, 3, 2, height);
        expect_shape(t, "enc.self.1.pattern", 3, 1, 3, 3);
        const int64_t heads[] = {5};
        assert_memory_equal(mha_trace_find(t, 0, "enc.self.1.heads")->data, heads, sizeof heads);
        assert_memory_equal(mha_trace_find(t, 0, "enc.self.1.pattern")->data, pattern[1],
                            sizeof pattern[1]);
        assert_memory_equal(mha_trace_find(t, 0, "enc.self.1.k")->data, k, sizeof k);
        assert_memory_equal(mha_trace_find(t, 0, "enc.1.resid")->data, resid, sizeof resid);
        assert_null(mha_trace_find(t, 0, "enc.0.resid"));
        mha_trace_free(t);
    }
}

static void expect_map(const mha_trace *t, const char *name, const double *expected, size_t rows,
                       size_t cols)
{
    const mha_trace_array *a = mha_trace_find(t, 0, name);
    assert_non_null(a);
    assert_int_equal(a->shape[1], rows);
    assert_int_equal(a->shape[2], cols);
    for (size_t i = 0; i < rows * cols; i++)
        assert_true(fabs((double)((const float *)a->data)[i] - expected[i]) <= 1e-6);
}

static const float pieces[9] = {.5f, .3f, .2f, .1f, .6f, .3f, .2f, .2f, .6f};

/* Case 11 of the known failures: merging conserves mass, and goes with averaging heads. */
static void test_words(void **state)
{
    const int32_t source[] = {0, 0, 1}, target[] = {-1, -1};
    const mha_words words[] = {{source, target}};
    const double merged[4] = {.75, .25, .4, .6};
    const float other[9] = {1, 0, 0, 0, 0, 1, .5f, .25f, .25f};
    const float cross[6] = {.1f, .2f, .7f, .5f, .5f, 0};
    fixture f;
    make(&f);
    mha_trace_options options = {.sites = BIT(PATTERN) | BIT(SCORES), .view = {.words = words}};
    for (size_t height = 1; height <= 3; height++) {
        mha_trace *t = trace(&f, &options);
        const mha_probe *p = mha_trace_probe(t);
        feed_rows(p, MHA_SITE_PATTERN, &f.steps[0], 0, 0, pieces, 3, 3, height);
        feed_rows(p, MHA_SITE_PATTERN, &f.steps[0], 1, 0, other, 3, 3, height);
        feed_rows(p, MHA_SITE_PATTERN, &f.steps[3], 0, 0, cross, 2, 3, height);
        /* rows (1, 0), (0, 1) and (.75, .25): the first two are one word */
        const double both[8] = {merged[0], merged[1], merged[2], merged[3], .5, .5, .75, .25};
        const mha_trace_array *a = mha_trace_find(t, 0, "enc.self.0.pattern");
        expect_shape(t, "enc.self.0.pattern", 3, 2, 2, 2);
        for (size_t i = 0; i < 8; i++)
            assert_true(fabs((double)((const float *)a->data)[i] - both[i]) <= 1e-6);
        /* Tokens of no word stand alone; source pieces are merged in cross-attention. */
        expect_map(t, "dec.cross.0.pattern", (double[]){.3, .7, 1, 0}, 2, 2);
        expect_shape(t, "enc.self.0.scores", 3, 2, 3, 3);
        mha_trace_free(t);
    }
}

static void test_special(void **state)
{
    fixture f;
    make(&f);
    f.special[1] = 1; /* keys 1 and 2 */
    mha_trace_options options = {.sites = BIT(PATTERN), .view = {.special = MHA_SPECIAL_MASS}};
    const float row[9] = {.5f, .3f, .2f, .1f, .6f, .3f, 0, .4f, .6f};
    mha_trace *t = trace(&f, &options);
    feed_rows(mha_trace_probe(t), MHA_SITE_PATTERN, &f.steps[0], 0, 0, row, 3, 3, 2);
    expect_map(t, "enc.self.0.pattern", (double[]){.5, 0, 0, .1, 0, 0, 0, 0, 0}, 3, 3);
    mha_trace_free(t);

    options.view.special = MHA_SPECIAL_RENORM;
    t = trace(&f, &options);
    feed_rows(mha_trace_probe(t), MHA_SITE_PATTERN, &f.steps[0], 0, 0, row, 3, 3, 2);
    expect_map(t, "enc.self.0.pattern", (double[]){1, 0, 0, 1, 0, 0, 0, 0, 0}, 3, 3);
    mha_trace_free(t);
}

static void test_refusals(void **state)
{
    fixture f;
    mha_trace *t;
    mha_err err = {0};
    make(&f);
    mha_trace_options options = {0};
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_ERR_ARG);
    options.sites = BIT(STATS);
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_ERR_ARG);
    options.sites = BIT(PATTERN);
    options.limit = (2 * 2 * 9 + 4 + 6) * sizeof(float) + (3 + 2 + 6) * sizeof(int64_t);
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_OK);
    mha_trace_free(t);
    options.limit--;
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_ERR_NOMEM);
    assert_null(t);
    options.limit = 0;
    options.view.special = MHA_SPECIAL_MASS;
    f.doc.target_special = NULL;
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_ERR_ARG);
    f.model.info.head = MHA_HEAD_NONE;
    options.sites = BIT(LOGITS);
    assert_int_equal(mha_trace_new(&t, &f.model, &f.doc, 1, &options, &err), MHA_ERR_UNSUPPORTED);
}

/* What a sink was given: NaN where nothing came. */
typedef struct heard {
    float map[4][4];
    int calls, stop_after;
} heard;

static int hear(void *context, const mha_map_row *row)
{
    heard *h = context;
    assert_int_equal(row->document, 0);
    assert_int_equal(row->stack, MHA_DEC);
    for (size_t i = 0; i < row->n; i++)
        h->map[row->row][row->first + i] = row->weights[i];
    return ++h->calls == h->stop_after;
}

static void expect_heard(const heard *h, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double got = (double)h->map[i][j], want = expected[i * n + j];
            assert_true(isnan(want) ? isnan(got) : fabs(got - want) <= 1e-6);
        }
}

#define HIDDEN ((double)NAN)

static void test_rows_of_maps(void **state)
{
    const float p[16] = {1, 0, 0, 0, .5f, .5f, 0, 0, .25f, .25f, .5f, 0, .7f, .1f, .1f, .1f};
    const uint8_t special[] = {0, 1, 0, 0};
    const int32_t source[] = {0, 1, 2, 2};
    const mha_words words[] = {{source, NULL}};
    mha_attn_info step = {.stack = MHA_DEC, .heads = 1, .causal = true};
    mha_model m;
    fake_model(&m, &step, 1);
    mha_document doc = {.n = 4, .special = special};
    const double tokens[16] = {1,   HIDDEN, HIDDEN, HIDDEN, .5, .5, HIDDEN, HIDDEN,
                               .25, .25,    .5,     HIDDEN, .7, .1, .1,     .1};
    const double left[16] = {1,   HIDDEN, HIDDEN, HIDDEN, .5, HIDDEN, HIDDEN, HIDDEN,
                             .25, HIDDEN, .5,     HIDDEN, .7, HIDDEN, .1,     .1};
    const double merged[9] = {1, HIDDEN, HIDDEN, .5, .5, HIDDEN, .475, .175, .35};
    const mha_view views[3] = {{0}, {.special = MHA_SPECIAL_MASS}, {.words = words}};
    const double *expected[3] = {tokens, left, merged};
    for (size_t v = 0; v < 3; v++)
        for (size_t height = 1; height <= 4; height++) {
            heard h = {.calls = 0};
            for (size_t i = 0; i < 16; i++)
                h.map[i / 4][i % 4] = NAN;
            mha_map_rows *rows;
            mha_err err = {0};
            assert_int_equal(mha_map_rows_new(&rows, &m, &doc, 1, NULL, &views[v], hear, &h, &err),
                             MHA_OK);
            const mha_probe *probe = mha_map_rows_probe(rows);
            assert_int_equal(feed_rows(probe, MHA_SITE_PATTERN, &step, 0, 0, p, 4, 4, height), 0);
            expect_heard(&h, expected[v], v == 2 ? 3 : 4);
            h.stop_after = h.calls + 1;
            assert_int_not_equal(feed_rows(probe, MHA_SITE_PATTERN, &step, 0, 0, p, 4, 4, height),
                                 0);
            mha_map_rows_free(rows);
        }
}

static void test_cells_of_words(void **state)
{
    const int32_t words[] = {-1, 0, 0, 1, -1, -1, 0, 2, 2, 2};
    const uint32_t expected[] = {0, 1, 1, 2, 3, 4, 5, 6, 6, 6};
    uint32_t cell[10];
    assert_int_equal(mha_words_cells(words, 10, cell), 7);
    assert_memory_equal(cell, expected, sizeof cell);
    assert_int_equal(mha_words_cells(NULL, 3, cell), 3);
    assert_int_equal(cell[2], 2);
    assert_int_equal(mha_words_cells(words, 0, cell), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrays),     cmocka_unit_test(test_no_decoder_without_a_target),
        cmocka_unit_test(test_class_logits),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_words),          cmocka_unit_test(test_special),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_rows_of_maps),
        cmocka_unit_test(test_cells_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
