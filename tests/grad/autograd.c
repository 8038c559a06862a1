/* autograd.c: gate gradients against automatic differentiation in float64 (gradient.N.npz): within
 * 1e-4 of the largest, and the same ranking of heads. Prints the largest error of each model. */
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

static char models[][24] = {
    "bert-mlm",       "bert-tf",          "bert-class", "roberta-mlm",    "roberta-class",
    "distilbert-mlm", "distilbert-class", "gpt2-lm",    "gpt2-lm.gguf",   "gpt2-inverse",
    "gpt2-class",     "gpt2-f16",         "llama-gqa",  "llama-gqa.gguf", "llama-bf16",
    "llama-rope3",    "llama-rope3.gguf", "mistral",    "qwen2",          "qwen2.gguf",
    "qwen3",          "qwen3.gguf",       "gemma3",     "gemma3.gguf",    "t5",
    "t5-gated",       "t5-resaved",       "bart",       "bart-class",     "mbart",
    "marian",
};

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
    print_message("note: %-18s gate gradients %.1e of the largest   rank correlation %.4f\n",
                  s.name, worst, correlation);
    subject_close(&s);
}

int main(void)
{
    enum { MODELS = sizeof models / sizeof models[0] };
    struct CMUnitTest tests[MODELS];
    for (size_t i = 0; i < MODELS; i++)
        tests[i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
