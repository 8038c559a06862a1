/* replay.c: attention during generation. The maps that are put together from the rows of single
 * steps are those of the reference's one pass over the whole text, and ours, for every model that
 * generates. Limits: 1e-5 on probabilities against the reference, 1e-6 against our own pass, 2e-6
 * where that pass is itself more than 1e-6 off the reference: a model that magnifies roundings
 * magnifies those between the two orders of adding too. 1e-5 of 1 + |score| on scores. */
#include "mha/trace.h"
#include "support/fixture.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

static mha_trace *run(mha_engine *e, const mha_model *m, const mha_document *doc)
{
    mha_trace *t;
    mha_err err = {0};
    mha_trace_options o = {.sites = 1u << MHA_SITE_PATTERN | 1u << MHA_SITE_SCORES};
    if (mha_trace_new(&t, m, doc, 1, &o, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_probe *probes[] = {mha_trace_probe(t)};
    if (mha_engine_run(e, doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return t;
}

static double difference(const mha_trace *a, const mha_trace *b, const char *site)
{
    double worst = 0;
    assert_int_equal(mha_trace_count(a, 0), mha_trace_count(b, 0));
    for (size_t i = 0; i < mha_trace_count(a, 0); i++) {
        const mha_trace_array *x = mha_trace_get(a, 0, i), *y = mha_trace_get(b, 0, i);
        size_t n = 1;
        assert_string_equal(x->name, y->name);
        for (size_t d = 0; d < x->dims; d++) {
            assert_int_equal(x->shape[d], y->shape[d]);
            n *= x->shape[d];
        }
        if (strstr(x->name, site) == NULL)
            continue;
        const float *p = x->data, *q = y->data;
        for (size_t k = 0; k < n; k++) {
            if (isinf(p[k]) || isinf(q[k]))
                assert_true(p[k] == q[k]);
            else
                worst = fmax(worst, fabs((double)p[k] - (double)q[k]) / (1 + fabs((double)p[k])));
        }
    }
    return worst;
}

static double off_reference(const mha_trace *t, const fixture *f)
{
    double worst = 0;
    size_t maps = 0;
    for (size_t i = 0; i < mha_trace_count(t, 0); i++) {
        const mha_trace_array *x = mha_trace_get(t, 0, i);
        const fixture_array *want = fixture_find(f, x->name);
        const float *p = x->data;
        if (strstr(x->name, ".pattern") == NULL)
            continue;
        assert_non_null(want);
        size_t n = x->shape[0] * x->shape[1] * x->shape[2];
        assert_int_equal(n, want->shape[0] * want->shape[1] * want->shape[2]);
        for (size_t k = 0; k < n; k++)
            worst = fmax(worst, fabs((double)p[k] - want->value[k]));
        maps++;
    }
    assert_true(maps > 0);
    return worst;
}

static void check_model(void **state)
{
    const char *model = *state;
    char path[1024], expected[128];
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    fixture_path(path, sizeof path, model, NULL);
    fixture_expected_of(model, expected, sizeof expected);
    assert_int_equal(mha_model_open(&m, path, NULL, &err), MHA_OK);
    mha_head_kind head = mha_model_info_get(m)->head;
    if (head != MHA_HEAD_NEXT && head != MHA_HEAD_TARGET) {
        mha_model_close(m);
        return;
    }
    assert_int_equal(mha_engine_new(&e, m, NULL, &err), MHA_OK);
    double reference = 0, pass = 0, own = 0, scores = 0;
    for (int n = 0; n < 2; n++) {
        fixture f;
        if (!fixture_open(&f, expected, n))
            continue;
        mha_document doc = f.doc;
        size_t tokens = head == MHA_HEAD_TARGET ? doc.target_n : doc.n;
        mha_trace *whole = run(e, m, &doc);
        doc.generated = tokens - (tokens + 2) / 3;
        mha_trace *steps = run(e, m, &doc);
        own = fmax(own, difference(whole, steps, ".pattern"));
        scores = fmax(scores, difference(whole, steps, ".scores"));
        reference = fmax(reference, off_reference(steps, &f));
        pass = fmax(pass, off_reference(whole, &f));
        mha_trace_free(whole);
        mha_trace_free(steps);
        fixture_close(&f);
    }
    print_message("note: %-20s by steps: %.1e off the reference, %.1e off one pass\n", model,
                  reference, own);
    assert_true(reference <= 1e-5 && own <= (pass > 1e-6 ? 2e-6 : 1e-6) && scores <= 1e-5);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX];
    fixture_models_find(&models);
    for (size_t i = 0; i < models.count; i++)
        tests[i] = (struct CMUnitTest){models.name[i], check_model, NULL, NULL, models.name[i]};
    return _cmocka_run_group_tests("replay", tests, models.count, NULL, NULL);
}
