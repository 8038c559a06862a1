/* autograd.c: gate gradients against automatic differentiation in float64 (gradient.N.npz): within
 * 1e-4 of the largest, and the same ranking of heads. Prints the largest error of each model. */
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of |x|, 0 the smallest. */
static void rank_of(const double *x, size_t n, double *rank)
{
    for (size_t i = 0; i < n; i++) {
        rank[i] = 0;
        for (size_t j = 0; j < n; j++)
            rank[i] += fabs(x[j]) < fabs(x[i]) ? 1 : fabs(x[j]) == fabs(x[i]) && j != i ? 0.5 : 0;
    }
}

static double rank_correlation(const double *a, const double *b, size_t n)
{
    double *ra = calloc(n, sizeof *ra), *rb = calloc(n, sizeof *rb);
    double mean = ((double)n - 1) / 2, both = 0, aa = 0, bb = 0;
    rank_of(a, n, ra);
    rank_of(b, n, rb);
    for (size_t i = 0; i < n; i++) {
        both += (ra[i] - mean) * (rb[i] - mean);
        aa += (ra[i] - mean) * (ra[i] - mean);
        bb += (rb[i] - mean) * (rb[i] - mean);
    }
    free(ra);
    free(rb);
    return both / sqrt(aa * bb);
}

static double check_document(const subject *s, const char *base, int d, double *correlation)
{
    fixture f, g;
    mha_prediction term[TERMS_MAX];
    float gates[NAIVE_ATTN_MAX * 32];
    double ours[NAIVE_ATTN_MAX * 32], loss;
    size_t n = s->info->attn_count * s->heads;
    if (!fixture_gradient_open(&g, base, d)) /* a document of one token has nothing to predict */
        return 0;
    assert_true(fixture_open(&f, base, d) && n <= NAIVE_ATTN_MAX * 32);
    fixture_set_terms(&f.doc, &g, term, TERMS_MAX, gates);
    subject_gradient(s, &f.doc, 1, &loss, ours);
    const fixture_array *want = fixture_find(&g, "gates");
    assert_true(want != NULL && want->shape[0] * want->shape[1] == n);
    double e = largest_error(ours, want->value, n), r = rank_correlation(ours, want->value, n);
    if (!(e <= 1e-4) || !(r >= 0.999))
        fail_msg("%s, document %d: differs by %g, rank correlation %g", s->name, d, e, r);
    double reference = fixture_find(&g, "loss")->value[0];
    if (!(fabs(loss - reference) <= 1e-5 * (1 + fabs(reference))))
        fail_msg("%s, document %d: loss %.9g, reference %.9g", s->name, d, loss, reference);
    *correlation = fmin(*correlation, r);
    fixture_close(&f);
    fixture_close(&g);
    return e;
}

static void check_model(void **state)
{
    char base[128];
    subject s;
    double correlation = 1;
    subject_open(&s, *state, NULL, 0);
    fixture_expected_of(s.name, base, sizeof base);
    double worst = check_document(&s, base, 0, &correlation);
    worst = fmax(worst, check_document(&s, base, 1, &correlation));
    assert_true(worst > 0);
    print_message("note: %-20s gate gradients %.1e of the largest   rank correlation %.4f\n",
                  s.name, worst, correlation);
    subject_close(&s);
}

/* A model without gradients has no loss, and must say so. */
static void check_lossless(void **state)
{
    char path[1024];
    double loss;
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    fixture f;
    mha_prediction term = {0, 0, -1};
    fixture_path(path, sizeof path, *state, NULL);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(mha_engine_new(&e, m, NULL, &err), MHA_OK);
    fixture_expected_of(*state, path, sizeof path);
    assert_true(fixture_open(&f, path, 1));
    f.doc.predict = &term;
    f.doc.predict_n = 1;
    if (mha_engine_loss(e, &f.doc, 1, &loss, NULL, NULL, NULL, &err) != MHA_ERR_ARG)
        fail_msg("%s has a loss, but no gradient.1.npz", (const char *)*state);
    assert_non_null(strstr(err.message, "loss"));
    fixture_close(&f);
    mha_engine_free(e);
    mha_model_close(m);
}

static bool has_gradients(const char *model)
{
    char base[128];
    fixture_expected_of(model, base, sizeof base);
    for (int d = 0; d < 2; d++) {
        fixture g;
        if (!fixture_gradient_open(&g, base, d))
            continue;
        fixture_close(&g);
        return true;
    }
    return false;
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX];
    fixture_models_find(&models);
    for (size_t i = 0; i < models.count; i++)
        tests[i] = (struct CMUnitTest){models.name[i],
                                       has_gradients(models.name[i]) ? check_model : check_lossless,
                                       NULL, NULL, models.name[i]};
    return _cmocka_run_group_tests("gradients", tests, models.count, NULL, NULL);
}
