/* naive.c: the naive double-precision forward pass against the reference runs, so that what the
 * gradients are tested with is right itself, and the engine's losses against it. */
#include "support/naive.h"
#include "support/fixture.h"
#include "support/terms.h"
#include "support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char models[][24] = {
    "bert-mlm",     "bert-class", "bert-base",      "roberta-mlm",      "roberta-class",
    "roberta-old",  "gpt2-class", "distilbert-mlm", "distilbert-class", "gpt2-lm",
    "gpt2-inverse", "gpt2-f16",   "llama-gqa",      "llama-bf16",       "llama-rope3",
    "mistral",      "qwen2",      "qwen3",          "gemma3",           "t5",
    "t5-gated",     "t5-resaved", "deberta-mlm",    "deberta-class",    "deberta-original",
    "deberta-conv"};

static double largest(const double *ours, const fixture_array *a)
{
    double worst = 0;
    size_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        n *= (size_t)a->shape[d];
    for (size_t i = 0; i < n; i++) {
        double e = fabs(ours[i] - a->value[i]) / (1 + fabs(a->value[i]));
        if (!(e <= worst))
            worst = e;
    }
    return worst;
}

static void compare(const fixture *f, const char *model, const char *name, const double *ours,
                    double *worst)
{
    const fixture_array *a = fixture_find(f, name);
    if (a == NULL || ours == NULL)
        fail_msg("%s: no %s", model, name);
    double e = largest(ours, a);
    if (!(e <= 1e-9))
        fail_msg("%s: %s differs by %g", model, name, e);
    *worst = fmax(*worst, e);
}

static void check_arrays(const char *model, const mha_model *m, const fixture *f,
                         const naive_result *r, double *worst)
{
    const mha_model_info *info = mha_model_info_get(m);
    char name[64];
    assert_int_equal(r->attn_count, info->attn_count);
    for (size_t a = 0; a < r->attn_count; a++) {
        const mha_attn_info *at = &info->attn[a];
        snprintf(name, sizeof name, "%s.%s.%u.pattern", mha_stack_name(at->stack),
                 mha_kind_name(at->kind), at->layer);
        compare(f, model, name, r->attn[a].pattern, worst);
    }
    snprintf(name, sizeof name, "%s.hidden", mha_stack_name(info->attn[r->attn_count - 1].stack));
    compare(f, model, name, r->hidden, worst);
    if (info->head != MHA_HEAD_NONE)
        compare(f, model, "logits", r->logits, worst);
}

static void check_loss(const char *model, mha_engine *e, const mha_document *doc,
                       const naive_result *r, double *worst)
{
    mha_err err = {0};
    double loss;
    size_t hits;
    if (doc->predict_n == 0)
        return;
    if (mha_engine_loss(e, doc, 1, &loss, &hits, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", model, err.message);
    if (!(fabs(loss - r->loss) <= 1e-5 * (1 + fabs(r->loss))))
        fail_msg("%s: loss %.9g, naive %.9g", model, loss, r->loss);
    assert_int_equal(hits, r->hits);
    *worst = fmax(*worst, fabs(loss - r->loss));
}

static void check_model(void **state)
{
    const char *model = *state;
    char path[1024], expected[128];
    double arrays = 0, losses = 0;
    mha_err err = {0};
    mha_model *m;
    mha_engine *e;
    fixture f;
    fixture_path(path, sizeof path, model, NULL);
    fixture_expected_of(model, expected, sizeof expected);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK ||
        mha_engine_new(&e, m, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    naive *n = naive_open(path);
    for (int d = 0; d < 2; d++) {
        assert_true(fixture_open(&f, expected, d));
        for (int difference = 0; difference < 2; difference++) {
            terms t = terms_of(m, &f.doc, difference);
            f.doc.predict = t.term;
            f.doc.predict_n = t.count;
            naive_result r;
            naive_run(n, &f.doc, NULL, NULL, &r);
            check_arrays(model, m, &f, &r, &arrays);
            check_loss(model, e, &f.doc, &r, &losses);
            naive_result_release(&r);
        }
        fixture_close(&f);
    }
    print_message("note: %-18s naive arrays %.1e   engine losses %.1e\n", model, arrays, losses);
    naive_close(n);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    struct CMUnitTest tests[sizeof models / sizeof models[0]];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        tests[i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
