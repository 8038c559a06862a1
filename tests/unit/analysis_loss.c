/* analysis_loss: what each kind of model is to predict, term by term. */
#include "support/fixture.h"
#include "support/test.h"

#include "mha/analysis.h"

#include <string.h>

static const int32_t ids[6] = {2, 7, 8, 9, 10, 3};
static const uint8_t special[6] = {1, 0, 0, 0, 0, 1};
static const int32_t target[3] = {0, 5, 6};

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

static void expect_term(const mha_document *d, size_t t, uint32_t row, int32_t id, int32_t against)
{
    assert_int_equal(d->predict[t].row, row);
    assert_int_equal(d->predict[t].id, id);
    assert_int_equal(d->predict[t].against, against);
}

static void test_next(void **state)
{
    mha_model *m = open_model("gpt2-lm");
    const mha_document docs[3] = {{.ids = ids, .n = 6}, {.ids = ids, .n = 1}, {.ids = ids, .n = 2}};
    mha_losses *l;
    size_t n;
    assert_int_equal(mha_losses_new(&l, m, docs, NULL, 3, NULL, NULL), MHA_OK);
    assert_int_equal(mha_losses_kind(l), MHA_LOSS_NEXT);
    const mha_document *d = mha_losses_documents(l, &n);
    assert_int_equal(n, 2);
    assert_int_equal(mha_losses_skipped(l), 1);
    assert_int_equal(mha_losses_index(l, 1), 2);
    assert_int_equal(mha_losses_terms(l), 6);
    assert_int_equal(d[0].predict_n, 5);
    for (size_t t = 0; t < 5; t++)
        expect_term(&d[0], t, (uint32_t)t, ids[t + 1], -1);
    mha_losses_free(l);
    mha_model_close(m);
}

static void test_target(void **state)
{
    mha_model *m = open_model("t5");
    const mha_document docs[3] = {{.ids = ids, .n = 6, .target_ids = target, .target_n = 3},
                                  {.ids = ids, .n = 6, .target_ids = target, .target_n = 1},
                                  {.ids = ids, .n = 6}};
    const mha_truth truths[3] = {{0, -1, 1, NULL, 0}, {1, -1, -1, NULL, 0}, {2, -1, 1, NULL, 0}};
    mha_losses *l;
    size_t n;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 3, NULL, NULL), MHA_OK);
    const mha_document *d = mha_losses_documents(l, &n);
    assert_int_equal(n, 1); /* a start token alone predicts nothing; nor does no target */
    assert_int_equal(d[0].predict_n, 3);
    expect_term(&d[0], 0, 0, 5, -1);
    expect_term(&d[0], 1, 1, 6, -1);
    expect_term(&d[0], 2, 2, 1, -1); /* the end token */
    mha_losses_free(l);
    mha_model_close(m);
}

static void test_class(void **state)
{
    mha_model *m = open_model("bert-class");
    const mha_document docs[2] = {{.ids = ids, .n = 6}, {.ids = ids, .n = 5}};
    mha_truth truths[2] = {{0, 2, -1, NULL, 0}, {1, -1, -1, NULL, 0}};
    mha_losses *l;
    mha_err err = {0};
    size_t n;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 2, NULL, NULL), MHA_OK);
    const mha_document *d = mha_losses_documents(l, &n);
    assert_int_equal(n, 1);
    expect_term(&d[0], 0, 0, 2, -1);
    mha_losses_free(l);
    truths[1].label = (int32_t)mha_model_info_get(m)->classes;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 2, NULL, &err), MHA_ERR_LIMIT);
    assert_string_equal(err.message, "document 1: label 3 is outside the 3 classes of the model");
    mha_model_close(m);
}

static void test_masked_draws(void **state)
{
    enum { N = 40, DOCS = 200 };
    mha_model *m = open_model("bert-mlm");
    int32_t many[N];
    uint8_t flags[N] = {[0] = 1, [N - 1] = 1};
    mha_document docs[DOCS];
    mha_truth truths[DOCS];
    mha_losses *l, *again;
    size_t n, times[N] = {0};
    for (int32_t i = 0; i < N; i++)
        many[i] = 5 + i;
    for (size_t i = 0; i < DOCS; i++) {
        docs[i] = (mha_document){.ids = many, .n = N, .special = flags};
        truths[i] = (mha_truth){.index = i, .label = -1, .end = -1};
    }
    mha_loss_options o = {.mask_id = 4, .seed = 9};
    assert_int_equal(mha_losses_new(&l, m, docs, truths, DOCS, &o, NULL), MHA_OK);
    const mha_document *d = mha_losses_documents(l, &n);
    assert_int_equal(n, DOCS);
    for (size_t i = 0; i < DOCS; i++) {
        assert_int_equal(d[i].predict_n, 6); /* 0.15 · 38 = 5.7 */
        for (size_t t = 0; t < 6; t++) {
            uint32_t row = d[i].predict[t].row;
            assert_true(t == 0 || row > d[i].predict[t - 1].row);
            assert_int_equal(d[i].ids[row], 4);
            expect_term(&d[i], t, row, 5 + (int32_t)row, -1);
            times[row]++;
        }
        size_t changed = 0;
        for (size_t k = 0; k < N; k++)
            changed += d[i].ids[k] != many[k];
        assert_int_equal(changed, 6);
    }
    assert_true(times[0] == 0 && times[N - 1] == 0);
    for (size_t k = 1; k + 1 < N; k++)
        assert_in_range(times[k], 12, 60); /* 31.6 expected */
    /* the draw depends on seed and index, not on company */
    assert_int_equal(mha_losses_new(&again, m, docs + 7, truths + 7, 1, &o, NULL), MHA_OK);
    const mha_document *alone = mha_losses_documents(again, &n);
    assert_memory_equal(alone->ids, d[7].ids, sizeof many);
    assert_memory_not_equal(alone->ids, d[8].ids, sizeof many);
    mha_losses_free(again);
    mha_losses_free(l);
    mha_model_close(m);
}

static void test_masked_given(void **state)
{
    mha_model *m = open_model("bert-mlm");
    const int32_t masked[6] = {2, 7, 4, 9, 4, 3};
    const mha_document docs[3] = {{.ids = masked, .n = 6, .special = special},
                                  {.ids = ids, .n = 1, .special = special},
                                  {.ids = ids, .n = 3, .special = special}};
    mha_truth truths[3] = {{0, -1, -1, ids, 6}, {1, -1, -1, NULL, 0}, {2, -1, -1, NULL, 0}};
    mha_loss_options o = {.mask_id = 4};
    mha_losses *l;
    mha_err err = {0};
    size_t n;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 3, &o, NULL), MHA_OK);
    const mha_document *d = mha_losses_documents(l, &n);
    assert_int_equal(n, 2); /* the second has special tokens only */
    assert_ptr_equal(d[0].ids, masked);
    assert_int_equal(d[0].predict_n, 2);
    expect_term(&d[0], 0, 2, 8, -1);
    expect_term(&d[0], 1, 4, 10, -1);
    assert_int_equal(d[1].predict_n, 1); /* at least one */
    mha_losses_free(l);
    truths[0].unmasked_n = 5;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 3, &o, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message,
                        "document 0: its target has 5 tokens and its text with the masks 6");
    o.mask_id = -1;
    assert_int_equal(mha_losses_new(&l, m, docs, truths, 3, &o, NULL), MHA_ERR_UNSUPPORTED);
    mha_model_close(m);
}

static void test_difference(void **state)
{
    static const char *const models[4] = {"gpt2-lm", "t5", "bert-mlm", "bert-class"};
    const uint32_t rows[4] = {5, 2, 4, 0};
    const int32_t masked[6] = {2, 4, 8, 9, 4, 3};
    for (size_t i = 0; i < 4; i++) {
        mha_model *m = open_model(models[i]);
        const mha_document doc = {.ids = i == 2 ? masked : ids,
                                  .n = 6,
                                  .target_ids = i == 1 ? target : NULL,
                                  .target_n = i == 1 ? 3 : 0};
        mha_loss_options o = {.kind = MHA_LOSS_LOGIT_DIFF, .mask_id = 4, .better = 2, .worse = 1};
        mha_losses *l;
        size_t n;
        assert_int_equal(mha_losses_new(&l, m, &doc, NULL, 1, &o, NULL), MHA_OK);
        const mha_document *d = mha_losses_documents(l, &n);
        assert_int_equal(d->predict_n, 1);
        expect_term(d, 0, rows[i], 2, 1);
        mha_losses_free(l);
        o.worse = 2;
        assert_int_equal(mha_losses_new(&l, m, &doc, NULL, 1, &o, NULL), MHA_ERR_ARG);
        o.worse = 1 << 20;
        assert_int_equal(mha_losses_new(&l, m, &doc, NULL, 1, &o, NULL), MHA_ERR_LIMIT);
        mha_model_close(m);
    }
}

static void test_wrong_loss(void **state)
{
    mha_model *m = open_model("gpt2-lm");
    const mha_document doc = {.ids = ids, .n = 6};
    mha_loss_options o = {.kind = MHA_LOSS_CLASS};
    mha_losses *l;
    mha_err err = {0};
    assert_int_equal(mha_losses_new(&l, m, &doc, NULL, 1, &o, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "'class'"));
    mha_model_close(m);
    m = open_model("bert-base");
    assert_int_equal(mha_losses_new(&l, m, &doc, NULL, 1, NULL, &err), MHA_ERR_UNSUPPORTED);
    assert_null(l);
    mha_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),         cmocka_unit_test(test_target),
        cmocka_unit_test(test_class),        cmocka_unit_test(test_masked_draws),
        cmocka_unit_test(test_masked_given), cmocka_unit_test(test_difference),
        cmocka_unit_test(test_wrong_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
