/* sites.c: gradients of every site of the reverse pass: against central differences of the naive
 * pass at many single elements, and whole arrays against automatic differentiation. Prints the
 * largest error of each model. */
#include "base/rng.h"
#include "support/collect.h"
#include "support/subject.h"
#include "support/test.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REVERSED (((1u << MHA_SITE_ALL_COUNT) - 1) ^ ((1u << MHA_SITE_COUNT) - 1))

static char models[][24] = {"bert-mlm",      "bert-class",  "distilbert-mlm", "roberta-class",
                            "gpt2-lm",       "gpt2-class",  "llama-gqa",      "llama-gqa.gguf",
                            "mistral",       "qwen2",       "qwen3",          "gemma3",
                            "gemma3.gguf",   "t5",          "t5-gated",       "deberta-mlm",
                            "deberta-class", "deberta-conv"};

/* The site whose values a gradient belongs to. */
static mha_site value_site(mha_site site)
{
    switch (site) {
    case MHA_SITE_D_PATTERN:
        return MHA_SITE_PATTERN;
    case MHA_SITE_D_SCORES:
        return MHA_SITE_SCORES;
    case MHA_SITE_D_Q:
        return MHA_SITE_Q;
    case MHA_SITE_D_K:
        return MHA_SITE_K;
    case MHA_SITE_D_V:
        return MHA_SITE_V;
    case MHA_SITE_D_Z:
        return MHA_SITE_Z;
    case MHA_SITE_D_ATTN_OUT:
        return MHA_SITE_ATTN_OUT;
    case MHA_SITE_D_EMBED:
        return MHA_SITE_EMBED;
    case MHA_SITE_D_RESID:
        return MHA_SITE_RESID;
    default:
        return MHA_SITE_HIDDEN;
    }
}

static double largest(const collected *a)
{
    double most = 0;
    for (size_t i = 0; i < a->heads * a->rows * a->cols; i++)
        most = fmax(most, fabs((double)a->value[i]));
    return most;
}

static void gradient(const subject *s, const mha_document *docs, size_t count, collection *c,
                     double *gates)
{
    mha_err err = {0};
    mha_probe p = collection_probe(c);
    const mha_probe *probes[] = {&p};
    mha_gradient out = {.gates = gates, .probes = probes, .probe_count = 1};
    if (mha_engine_gradient(s->e, docs, count, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", s->name, err.message);
    assert_false(c->broken);
    for (size_t i = 0; i < c->count; i++)
        for (size_t h = 0; h < c->array[i].heads; h++)
            assert_int_equal(c->array[i].next[h], c->array[i].rows);
}

static double difference(const subject *s, const subject_document *d, const naive_nudge *at)
{
    naive_nudge nudge = *at;
    nudge.by = SUBJECT_STEP;
    double above = naive_loss(s->n, &d->doc, d->exact, &nudge);
    nudge.by = -SUBJECT_STEP;
    return (above - naive_loss(s->n, &d->doc, d->exact, &nudge)) / (2 * SUBJECT_STEP);
}

/* Some elements of one array, drawn; masked ones must be 0. */
static double check_elements(const subject *s, const subject_document *d, const collected *a,
                             mha_rng *rng)
{
    double most = largest(a), worst = 0;
    for (int draw = 0; draw < 12; draw++) {
        naive_nudge at = {value_site(a->site), a->stack, a->kind, a->layer, 0, 0, 0, 0};
        at.head = mha_rng_below(rng, a->heads);
        at.row = mha_rng_below(rng, a->rows);
        at.col = mha_rng_below(rng, a->cols);
        size_t i = (at.head * a->rows + at.row) * a->cols + at.col;
        if (a->weights != NULL && a->weights[i] == 0) {
            assert_true(a->value[i] == 0);
            continue;
        }
        double e = fabs((double)a->value[i] - difference(s, d, &at)) / most;
        if (!(e <= 1e-4))
            fail_msg("%s: %s of %s layer %u, head %zu, row %zu, column %zu: differs by %g of %g",
                     s->name, mha_site_name(a->site), mha_stack_name(a->stack), a->layer, at.head,
                     at.row, at.col, e, most);
        worst = fmax(worst, e);
    }
    return worst;
}

static void check_model(void **state)
{
    double worst = 0, alone[3 * NAIVE_ATTN_MAX * 32], beside[3 * NAIVE_ATTN_MAX * 32], loss[3];
    subject s;
    mha_rng rng;
    collection c;
    subject_document d[3];
    mha_document docs[3];
    subject_open(&s, *state, NULL, 0);
    mha_rng_seed(&rng, 5, 0);
    static const subject_gates gates[] = {GATES_NONE, GATES_FILL, GATES_RANDOM};
    for (size_t i = 0; i < 3; i++) {
        subject_document_make(&d[i], &s, 6 + 5 * i, gates[i], i == 1, i);
        docs[i] = d[i].doc;
    }
    collection_make(&c, s.m, docs, 3, REVERSED | 1u << MHA_SITE_PATTERN);
    gradient(&s, docs, 3, &c, beside);
    for (size_t i = 0; i < c.count; i++)
        if (c.array[i].site != MHA_SITE_PATTERN)
            worst = fmax(worst, check_elements(&s, &d[c.array[i].document], &c.array[i], &rng));
    /* the weights that come beside are the pattern; watching changes no more
     * than roundings (whole pattern rows are made for probes) */
    for (size_t i = 0; i < c.count; i++) {
        const collected *a = &c.array[i], *p;
        if (a->weights == NULL)
            continue;
        p = collection_find(&c, MHA_SITE_PATTERN, a->stack, a->kind, a->layer, a->document);
        for (size_t k = 0; k < a->heads * a->rows * a->cols; k++)
            assert_true(fabsf(a->weights[k] - p->value[k]) <= 2e-6f);
    }
    subject_gradient(&s, docs, 3, loss, alone);
    assert_true(largest_error(beside, alone, 3 * s.info->attn_count * s.heads) <= 5e-6);
    print_message("note: %-16s gradients of sites %.1e of the largest\n", s.name, worst);
    collection_free(&c);
    for (size_t i = 0; i < 3; i++)
        subject_document_free(&d[i]);
    subject_close(&s);
}

/* ---- the same whatever is wanted, and in blocks that run twice --------------------------------
 */

static void same_arrays(const collection *a, const collection *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const collected *x = &a->array[i];
        const collected *y = collection_find(b, x->site, x->stack, x->kind, x->layer, x->document);
        assert_non_null(y);
        assert_memory_equal(x->value, y->value, x->heads * x->rows * x->cols * sizeof(float));
    }
}

/* Each site alone gives what it gives beside all others: no shortcut leaves anything out. */
static void each_alone(void **state)
{
    subject s;
    collection all, one;
    subject_document d[2];
    subject_open(&s, *state, NULL, 0);
    subject_document_make(&d[0], &s, 9, GATES_RANDOM, false, 1);
    subject_document_make(&d[1], &s, 14, GATES_NONE, false, 2);
    mha_document docs[2] = {d[0].doc, d[1].doc};
    collection_make(&all, s.m, docs, 2, REVERSED);
    gradient(&s, docs, 2, &all, NULL);
    for (mha_site site = MHA_SITE_COUNT; site < MHA_SITE_ALL_COUNT; site++) {
        collection_make(&one, s.m, docs, 2, 1u << site);
        gradient(&s, docs, 2, &one, NULL);
        same_arrays(&one, &all);
        collection_free(&one);
    }
    collection_free(&all);
    subject_document_free(&d[0]);
    subject_document_free(&d[1]);
    subject_close(&s);
}

/* Long enough for several row blocks and many documents, with four threads, recorded and not. */
static void recomputed(void **state)
{
    enum { COUNT = 12 };
    subject s;
    subject_document d[COUNT];
    mha_document docs[COUNT];
    collection recorded, again;
    mha_err err = {0};
    subject_open(&s, *state, NULL, 0);
    for (size_t i = 0; i < COUNT; i++) {
        subject_document_make(&d[i], &s, i == 3 ? 150 : 5 + i, GATES_RANDOM, false, i);
        docs[i] = d[i].doc;
    }
    docs[7].predict_n = 0;
    collection_make(&recorded, s.m, docs, COUNT, REVERSED);
    gradient(&s, docs, COUNT, &recorded, NULL);
    mha_status st = MHA_ERR_NOMEM;
    mha_engine_free(s.e);
    for (uint64_t memory = 1 << 20; st == MHA_ERR_NOMEM; memory += memory / 64) {
        mha_engine_options o = {.memory = memory, .threads = 4};
        mha_gradient out = {.gates = calloc(COUNT * s.info->attn_count * s.heads, sizeof(double))};
        assert_int_equal(mha_engine_new(&s.e, s.m, &o, &err), MHA_OK);
        st = mha_engine_gradient(s.e, docs, COUNT, &out, NULL, NULL, &err);
        free(out.gates);
        if (st == MHA_ERR_NOMEM)
            mha_engine_free(s.e);
    }
    assert_int_equal(st, MHA_OK);
    collection_make(&again, s.m, docs, COUNT, REVERSED);
    gradient(&s, docs, COUNT, &again, NULL);
    same_arrays(&recorded, &again);
    collection_free(&recorded);
    collection_free(&again);
    for (size_t i = 0; i < COUNT; i++)
        subject_document_free(&d[i]);
    subject_close(&s);
}

/* ---- automatic differentiation ----------------------------------------------------------------
 */

static void compare(const subject *s, const collected *a, const char *name,
                    const fixture_array *want, double *worst)
{
    double most = 0, error = 0;
    size_t n = a->heads * a->rows * a->cols, total = 1;
    for (uint32_t i = 0; i < want->rank; i++)
        total *= (size_t)want->shape[i];
    assert_int_equal(n, total);
    for (size_t i = 0; i < n; i++) {
        if (a->weights != NULL && a->weights[i] == 0) /* masked: not ours to say */
            continue;
        most = fmax(most, fabs(want->value[i]));
        error = fmax(error, fabs((double)a->value[i] - want->value[i]));
    }
    if (!(error <= 1e-4 * most))
        fail_msg("%s: %s differs by %g of %g", s->name, name, error, most);
    *worst = fmax(*worst, error / most);
}

static void autograd(void **state)
{
    double worst = 0;
    subject s;
    fixture f, g;
    collection c;
    size_t found = 0;
    mha_prediction term[TERMS_MAX];
    float gates[NAIVE_ATTN_MAX * 32];
    subject_open(&s, *state, NULL, 0);
    assert_true(fixture_open(&f, s.name, 1) && fixture_gradient_open(&g, s.name, 1));
    fixture_set_terms(&f.doc, &g, term, TERMS_MAX, gates);
    collection_make(&c, s.m, &f.doc, 1, REVERSED);
    gradient(&s, &f.doc, 1, &c, NULL);
    for (size_t i = 0; i < c.count; i++) {
        const collected *a = &c.array[i];
        char name[64];
        const char *stack = mha_stack_name(a->stack), *site = mha_site_name(a->site);
        if (a->site == MHA_SITE_D_RESID)
            snprintf(name, sizeof name, "%s.%u.%s", stack, a->layer, site);
        else
            snprintf(name, sizeof name, "%s.%s.%u.%s", stack, mha_kind_name(a->kind), a->layer,
                     site);
        const fixture_array *want = fixture_find(&g, name);
        if (want == NULL)
            continue;
        compare(&s, a, name, want, &worst);
        found++;
    }
    assert_true(found > 3 * s.info->attn_count);
    print_message("note: %-16s %zu arrays, autograd: %.1e of the largest\n", s.name, found, worst);
    collection_free(&c);
    fixture_close(&f);
    fixture_close(&g);
    subject_close(&s);
}

static void logits_are_refused(void **state)
{
    subject s;
    subject_document d;
    mha_err err = {0};
    subject_open(&s, "gpt2-lm", NULL, 0);
    subject_document_make(&d, &s, 5, GATES_NONE, false, 1);
    collection c = {.sites = 1u << MHA_SITE_LOGITS};
    mha_probe p = collection_probe(&c);
    const mha_probe *probes[] = {&p};
    double loss;
    mha_gradient out = {.loss = &loss, .probes = probes, .probe_count = 1};
    assert_int_equal(mha_engine_gradient(s.e, &d.doc, 1, &out, NULL, NULL, &err), MHA_ERR_ARG);
    subject_document_free(&d);
    subject_close(&s);
}

int main(void)
{
    static fixture_models all;
    static char alone[][16] = {"bert-mlm", "gpt2-class", "qwen3", "t5"};
    static char twice[][16] = {"llama-gqa.gguf", "gemma3", "t5"};
    static struct CMUnitTest tests[64];
    size_t n = 0;
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(logits_are_refused);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        tests[n++] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        tests[n++] = (struct CMUnitTest){"each alone", each_alone, NULL, NULL, alone[i]};
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
        tests[n++] = (struct CMUnitTest){"recomputed", recomputed, NULL, NULL, twice[i]};
    fixture_detailed_find(&all);
    for (size_t i = 0; i < all.count; i++)
        tests[n++] = (struct CMUnitTest){"autograd", autograd, NULL, NULL, all.name[i]};
    assert(n <= sizeof tests / sizeof *tests);
    return _cmocka_run_group_tests("sites", tests, n, NULL, NULL);
}
