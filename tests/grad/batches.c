/* batches.c: what must not change gradients: how documents are batched and ordered, the number of
 * threads, a memory limit that makes blocks run twice, kernels of another instruction set. And the
 * score that comes of them: the mean of |gradient of one document| and nothing else. */
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 90 }; /* about 1,500 tokens: more than one batch */

static char models[][24] = {"bert-mlm", "bert-class", "gpt2-lm",     "llama-gqa.gguf", "gemma3",
                            "t5",       "qwen3",      "deberta-mlm", "deberta-conv"};

typedef struct corpus {
    subject_document made[COUNT];
    mha_document doc[COUNT];
    double loss[COUNT];
    double *gates; /* [COUNT, A, H] */
    size_t n;      /* A·H */
    double most;   /* largest of gates: what rounding is measured by. In a document whose terms
                      cancel out, nothing is left to measure it by, and BLAS rounds rows of a large
                      product otherwise than those of a small one */
    double worst;  /* largest difference so far, of `most` */
} corpus;

static void corpus_make(corpus *c, const subject *s)
{
    c->n = s->info->attn_count * s->heads;
    c->gates = calloc(COUNT * c->n, sizeof *c->gates);
    for (size_t d = 0; d < COUNT; d++) {
        subject_document_make(&c->made[d], s, 5 + d * 7 % 24, (subject_gates)(d % GATES_COUNT),
                              d % 3 == 0, d);
        c->doc[d] = c->made[d].doc;
        if (d % 11 == 5 && s->info->head != MHA_HEAD_CLASS)
            c->doc[d].predict_n = 0; /* nothing to predict: no loss, gradient 0 */
    }
    subject_gradient(s, c->doc, COUNT, c->loss, c->gates);
    for (size_t i = 0; i < COUNT * c->n; i++)
        c->most = fmax(c->most, fabs(c->gates[i]));
}

static void corpus_free(corpus *c)
{
    for (size_t d = 0; d < COUNT; d++)
        subject_document_free(&c->made[d]);
    free(c->gates);
}

static void same(const subject *s, const char *what, size_t d, corpus *c, double loss,
                 const double *gates, double tolerance)
{
    double e = 0;
    for (size_t i = 0; i < c->n; i++) {
        double here = fabs(gates[i] - c->gates[d * c->n + i]) / c->most;
        if (!(here <= e) && !isnan(e)) /* keeps NaN */
            e = here;
    }
    if (c->doc[d].predict_n == 0) {
        assert_true(isnan(loss) && isnan(c->loss[d]));
        for (size_t i = 0; i < c->n; i++)
            assert_true(gates[i] == 0 && c->gates[d * c->n + i] == 0);
        return;
    }
    if (!(e <= tolerance) || !(fabs(loss - c->loss[d]) <= tolerance * (1 + fabs(loss))))
        fail_msg("%s, %s: document %zu differs by %g", s->name, what, d, e);
    c->worst = fmax(c->worst, e);
}

static void one_by_one(const subject *s, corpus *c)
{
    double *gates = calloc(c->n, sizeof *gates), loss;
    for (size_t d = 0; d < COUNT; d++) {
        subject_gradient(s, &c->doc[d], 1, &loss, gates);
        same(s, "one by one", d, c, loss, gates, 2.5e-6);
    }
    free(gates);
}

static void reversed(const subject *s, corpus *c)
{
    mha_document doc[COUNT];
    double *gates = calloc(COUNT * c->n, sizeof *gates), loss[COUNT];
    for (size_t d = 0; d < COUNT; d++)
        doc[d] = c->doc[COUNT - 1 - d];
    subject_gradient(s, doc, COUNT, loss, gates);
    for (size_t d = 0; d < COUNT; d++)
        same(s, "reversed", COUNT - 1 - d, c, loss[d], gates + d * c->n, 2.5e-6);
    free(gates);
}

/* The same bytes, whatever the options. */
static void with_options(const subject *s, corpus *c, const char *what,
                         const mha_engine_options *options, double tolerance)
{
    subject other = *s;
    mha_err err = {0};
    double *gates = calloc(COUNT * c->n, sizeof *gates), loss[COUNT];
    if (mha_engine_new(&other.e, s->m, options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    subject_gradient(&other, c->doc, COUNT, loss, gates);
    for (size_t d = 0; d < COUNT; d++)
        same(s, what, d, c, loss[d], gates + d * c->n, tolerance);
    mha_engine_free(other.e);
    free(gates);
}

/* The smallest limit that the run accepts: blocks are recomputed then. */
static uint64_t least_memory(const subject *s, const corpus *c)
{
    double *gates = calloc(COUNT * c->n, sizeof *gates), loss[COUNT];
    mha_gradient out = {.loss = loss, .gates = gates};
    uint64_t refused = 0, accepted = (uint64_t)1 << 40;
    while (accepted - refused > 1000) {
        mha_engine_options o = {.memory = refused + (accepted - refused) / 2};
        mha_engine *e;
        mha_err err = {0};
        assert_int_equal(mha_engine_new(&e, s->m, &o, &err), MHA_OK);
        mha_status st = mha_engine_gradient(e, c->doc, COUNT, &out, NULL, NULL, &err);
        uint64_t told; /* beforehand, and what the limit goes by */
        assert_int_equal(mha_engine_gradient_bytes(e, c->doc, COUNT, false, &told, &err), st);
        assert_true(st != MHA_OK || told <= o.memory);
        if (st == MHA_OK)
            accepted = o.memory;
        else {
            assert_int_equal(st, MHA_ERR_NOMEM);
            refused = o.memory;
        }
        mha_engine_free(e);
    }
    free(gates);
    return accepted;
}

static void check_model(void **state)
{
    subject s;
    corpus c;
    memset(&c, 0, sizeof c);
    subject_open(&s, *state, NULL, 0);
    corpus_make(&c, &s);
    one_by_one(&s, &c);
    reversed(&s, &c);
    with_options(&s, &c, "three threads", &(mha_engine_options){.threads = 3}, 0);
    with_options(&s, &c, "one thread", &(mha_engine_options){.threads = 1}, 0);
    with_options(&s, &c, "portable kernels", &(mha_engine_options){.isa = "ref"}, 5e-6);
    uint64_t least = least_memory(&s, &c);
    with_options(&s, &c, "recomputed", &(mha_engine_options){.memory = least}, 0);
    print_message(
        "note: %-16s the same by itself, in any order, with portable kernels to %.1e of the "
        "largest; recomputed in %.2f MB\n",
        s.name, c.worst, (double)least / 1e6);
    corpus_free(&c);
    subject_close(&s);
}

/* methods D1: the absolute value is taken of one document's gradient, not of a batch's sum. */
static void signs_do_not_cancel(void **state)
{
    subject s;
    subject_open(&s, "gpt2-lm", NULL, 0);
    subject_document made;
    subject_document_make(&made, &s, 9, GATES_NONE, true, 3);
    mha_prediction turned[TERMS_MAX];
    mha_document doc[3] = {made.doc, made.doc, made.doc};
    size_t n = s.info->attn_count * s.heads;
    double *g = calloc(3 * n, sizeof *g), loss[3];
    for (size_t t = 0; t < made.terms.count; t++) /* the same difference the other way round */
        turned[t] = (mha_prediction){made.terms.term[t].row, made.terms.term[t].against,
                                     made.terms.term[t].id};
    doc[1].predict = turned;
    subject_gradient(&s, doc, 3, loss, g);
    assert_true(fabs(loss[0] + loss[1]) < 1e-5);
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs(g[i] + g[n + i]) <= 1e-5 * (1 + fabs(g[i])));
        assert_true(fabs(g[i] - g[2 * n + i]) <= 1e-5 * (1 + fabs(g[i])));
        double sum = fabs(g[i]) + fabs(g[n + i]) + fabs(g[2 * n + i]);
        assert_true(fabs(sum - 3 * fabs(g[i])) <= 1e-4 * (1 + sum));
    }
    free(g);
    subject_document_free(&made);
    subject_close(&s);
}

int main(void)
{
    enum { MODELS = sizeof models / sizeof models[0] };
    struct CMUnitTest tests[MODELS + 1] = {cmocka_unit_test(signs_do_not_cancel)};
    for (size_t i = 0; i < MODELS; i++)
        tests[i + 1] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
