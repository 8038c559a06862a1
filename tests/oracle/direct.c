/* direct.c: what every head, the embedding, the MLPs and the biases write into the logits, against
 * the naive double-precision pass run again with everything but the residual stream frozen and one
 * part silent: what its logits then lack, that part wrote. The parts together must be the logits of
 * the plain naive pass. Prints the largest errors of each model. */
#include "base/mem.h"
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENTS = 3 };

/* ---- the naive side ---------------------------------------------------------------------------
 */

typedef struct oracle {
    naive *n;
    const subject_document *d;
    naive_frozen frozen;
    double *direction; /* [terms, classes] */
    double value;      /* ⟨direction, logits⟩ of the plain pass */
    double size;       /* of the logits that it is a difference of */
} oracle;

static double along(oracle *o, const naive_result *r)
{
    double sum = 0;
    o->size = 0;
    for (size_t t = 0; t < o->d->doc.predict_n; t++)
        for (size_t v = 0; v < r->classes; v++) {
            double s = r->uncapped[o->d->doc.predict[t].row * r->classes + v];
            sum += o->direction[t * r->classes + v] * s;
            double own = v == (size_t)o->d->doc.predict[t].id ? 1 / (double)o->d->doc.predict_n : 0;
            o->size += (o->direction[t * r->classes + v] + 2 * own) * fabs(s);
        }
    return sum;
}

/* The derivative of the loss by the logits as they come out. */
static void direction_make(oracle *o, const naive_result *r)
{
    size_t V = r->classes, n = o->d->doc.predict_n;
    o->direction = calloc(n * V, sizeof *o->direction);
    for (size_t t = 0; t < n; t++) {
        const mha_prediction *p = &o->d->doc.predict[t];
        const double *s = r->logits + p->row * V;
        double sum = 0, *out = o->direction + t * V;
        for (size_t v = 0; v < V; v++)
            sum += exp(s[v]);
        for (size_t v = 0; v < V && p->against < 0; v++)
            out[v] = exp(s[v]) / sum / (double)n;
        if (p->against >= 0)
            out[p->against] = 1 / (double)n;
        out[p->id] -= 1 / (double)n;
    }
}

static void oracle_open(oracle *o, const subject *s, const subject_document *d)
{
    naive_result r;
    memset(o, 0, sizeof *o);
    o->n = s->n;
    o->d = d;
    s->n->frozen = &o->frozen;
    naive_run(s->n, &d->doc, d->exact, NULL, &r);
    direction_make(o, &r);
    o->value = along(o, &r);
    o->frozen.again = true;
    naive_result_release(&r);
}

static void oracle_close(oracle *o)
{
    o->n->frozen = NULL;
    free(o->frozen.value);
    free(o->direction);
}

/* What is left of the value with parts silent. */
static double without(oracle *o, unsigned silent, size_t attn, size_t head)
{
    naive_result r;
    o->frozen.silent = silent;
    o->frozen.attn = attn;
    o->frozen.head = head;
    o->frozen.at = 0;
    naive_run(o->n, &o->d->doc, o->d->exact, NULL, &r);
    double value = along(o, &r);
    naive_result_release(&r);
    return value;
}

/* ---- one document -----------------------------------------------------------------------------
 */

typedef struct errors {
    double parts, sum; /* over the largest part */
} errors;

static void check_document(const subject *s, const subject_document *d, const mha_direct *direct,
                           const double *heads, errors *worst)
{
    size_t H = s->heads, n = s->info->attn_count * H, count = 0;
    double *ours = calloc(n + 4, sizeof *ours), *theirs = calloc(n + 4, sizeof *theirs);
    double sum = 0, most = 0;
    oracle o;
    oracle_open(&o, s, d);
    assert_true(fabs(direct->size - o.size) <= 1e-5 * (1 + o.size));
    assert_true(fabs(without(&o, 0, 0, 0) - o.value) <= 1e-12 * (1 + fabs(o.value)));
    for (size_t a = 0; a < s->info->attn_count; a++)
        for (size_t h = 0; h < s->info->attn[a].heads; h++, count++) {
            ours[count] = heads[a * H + h];
            theirs[count] = o.value - without(&o, NAIVE_HEAD, a, h);
        }
    ours[count] = direct->embed;
    theirs[count++] = o.value - without(&o, NAIVE_EMBED, 0, 0);
    ours[count] = direct->mlp;
    theirs[count++] = o.value - without(&o, NAIVE_MLP, 0, 0);
    ours[count] = direct->bias;
    theirs[count++] = without(&o, NAIVE_EMBED | NAIVE_MLP | NAIVE_HEAD, SIZE_MAX, 0);
    for (size_t i = 0; i < count; i++) {
        sum += ours[i];
        most = fmax(most, fabs(theirs[i]));
    }
    double off = fmax(fabs(sum - direct->value), fabs(sum - o.value)) / most;
    worst->sum = fmax(worst->sum, off);
    ours[count] = direct->value;
    theirs[count++] = o.value;
    double parts = largest_error(ours, theirs, count);
    worst->parts = fmax(worst->parts, parts);
    if (!(parts <= 1e-5) || !(off <= 1e-5))
        fail_msg("%s, %zu tokens: parts differ by %g, their sum by %g", s->name, d->doc.n, parts,
                 off);
    oracle_close(&o);
    free(ours);
    free(theirs);
}

static void direct_run(const subject *s, const mha_document *docs, size_t count, double *loss,
                       double *heads, mha_direct *direct)
{
    mha_err err = {0};
    mha_gradient out = {.loss = loss, .gates = heads, .direct = direct};
    if (mha_engine_gradient(s->e, docs, count, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", s->name, err.message);
}

/* Several documents at once; and each alone gives the same bits. */
static void check_documents(const subject *s, subject_gates gates, bool difference, errors *worst)
{
    static const size_t lengths[DOCUMENTS] = {2, 7, 19};
    size_t n = s->info->attn_count * s->heads;
    subject_document d[DOCUMENTS];
    mha_document docs[DOCUMENTS];
    mha_direct direct[DOCUMENTS], alone;
    double loss[DOCUMENTS], *heads = calloc((DOCUMENTS + 1) * n, sizeof *heads), own;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        subject_document_make(&d[i], s, lengths[i], gates, difference, 11 * gates + i);
        docs[i] = d[i].doc;
    }
    direct_run(s, docs, DOCUMENTS, loss, heads, direct);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        double reference = naive_loss(s->n, &docs[i], d[i].exact, NULL);
        assert_true(fabs(loss[i] - reference) <= 1e-5 * (1 + fabs(reference)));
        check_document(s, &d[i], &direct[i], heads + i * n, worst);
        direct_run(s, &docs[i], 1, &own, heads + DOCUMENTS * n, &alone);
        assert_true(fabs(alone.embed - direct[i].embed) <= 1e-5 * (1 + fabs(alone.embed)));
        assert_true(largest_error(heads + i * n, heads + DOCUMENTS * n, n) <= 1e-5);
    }
    for (size_t i = 0; i < DOCUMENTS; i++)
        subject_document_free(&d[i]);
    free(heads);
}

static void check_subject(const subject *s, const char *what)
{
    errors worst = {0};
    for (int difference = 0; difference < 2; difference++)
        for (subject_gates g = 0; g < GATES_COUNT; g++)
            check_documents(s, g, difference, &worst);
    print_message("note: %-24s direct parts %.1e of the largest   their sum %.1e\n", what,
                  worst.parts, worst.sum);
}

/* ---- models -----------------------------------------------------------------------------------
 */

static char models[][24] = {"gpt2-lm",    "gpt2-inverse", "gpt2-class",   "llama-gqa", "mistral",
                            "qwen2",      "qwen3",        "gemma3",       "t5",        "t5-gated",
                            "t5-resaved", "bert-token",   "roberta-token"};

static void check_model(void **state)
{
    subject s;
    subject_open(&s, *state, NULL, 0);
    check_subject(&s, s.name);
    subject_close(&s);
}

/* What no model here has: logits capped (the parts are those of the logits before the cap, in the
 * direction of the capped ones), branches side by side, a mean of all rows. */
typedef struct variant {
    const char *what, *model, *family, *from, *to;
    double softcap;
    bool parallel, mean_pool;
} variant;

static variant variants[] = {
    {"capped logits", "gemma3", "gemma3", "softcap=softcap", "softcap=2.5", 2.5, false, false},
    {"capped logits", "gpt2-lm", "gpt2", "logits X w=lm", "logits X w=lm softcap=2.5", 2.5, false,
     false},
    {"parallel branches", "gpt2-lm", "gpt2",
     "    X <- add B\n    B <- norm X w=ln2 eps=eps\n    B <- mlp B up=up down=down act=act\n"
     "    X <- add B\n",
     "    C <- norm X w=ln2 eps=eps\n    C <- mlp C up=up down=down act=act\n    X <- add B\n"
     "    X <- add C\n",
     0, true, false},
    {"mean pool", "gpt2-class", "gpt2", "pool X last", "pool X mean", 0, false, true},
};

static void check_variant(void **state)
{
    const variant *v = *state;
    subject s;
    char *family = subject_family(v->family, v->from, v->to);
    subject_open(&s, v->model, family, 0);
    s.n->logit_softcap = v->softcap;
    s.n->parallel = v->parallel;
    s.n->mean_pool = v->mean_pool;
    check_subject(&s, v->what);
    subject_close(&s);
    mha_free(family);
}

/* Under the least memory limit that is enough blocks run twice: the same bits. */
static void check_memory(void **state)
{
    subject s;
    subject_document d;
    mha_direct direct, again;
    double loss, heads[2][NAIVE_ATTN_MAX * 8];
    mha_err err = {0};
    mha_status st = MHA_ERR_NOMEM;
    int tries = 0;
    subject_open(&s, *state, NULL, 0);
    subject_document_make(&d, &s, 140, GATES_RANDOM, false, 3);
    direct_run(&s, &d.doc, 1, &loss, heads[0], &direct);
    mha_gradient out = {.loss = &loss, .gates = heads[1], .direct = &again};
    for (uint64_t memory = 1 << 18; st == MHA_ERR_NOMEM; memory += memory / 64) {
        mha_engine_options o = {.memory = memory};
        mha_engine_free(s.e);
        assert_int_equal(mha_engine_new(&s.e, s.m, &o, &err), MHA_OK);
        st = mha_engine_gradient(s.e, &d.doc, 1, &out, NULL, NULL, &err);
        tries++;
    }
    assert_int_equal(st, MHA_OK);
    assert_true(tries > 1);
    assert_memory_equal(&direct, &again, sizeof direct);
    assert_memory_equal(heads[0], heads[1], s.info->attn_count * s.heads * sizeof(double));
    subject_document_free(&d);
    subject_close(&s);
}

/* An activation between the stream and the logits; an encoder's heads write to no logit. */
static void check_refusals(void **state)
{
    static const char *const names[] = {"bert-class", "bert-mlm", "roberta-mlm",
                                        "distilbert-class"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        subject s;
        subject_document d;
        mha_direct direct;
        mha_err err = {0};
        mha_gradient out = {.direct = &direct};
        subject_open(&s, names[i], NULL, 0);
        subject_document_make(&d, &s, 7, GATES_NONE, false, 1);
        assert_int_equal(mha_engine_gradient(s.e, &d.doc, 1, &out, NULL, NULL, &err),
                         MHA_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "activation (ACT)"));
        subject_document_free(&d);
        subject_close(&s);
    }
}

static void check_encoder(void **state)
{
    subject s;
    subject_document d;
    mha_direct direct;
    double loss, heads[NAIVE_ATTN_MAX * 8];
    (void)state;
    subject_open(&s, "t5", NULL, 0);
    subject_document_make(&d, &s, 12, GATES_NONE, false, 1);
    direct_run(&s, &d.doc, 1, &loss, heads, &direct);
    for (size_t a = 0; a < s.info->attn_count; a++)
        for (size_t h = 0; h < s.info->attn[a].heads; h++)
            assert_int_equal(s.info->attn[a].stack == MHA_ENC, heads[a * s.heads + h] == 0);
    subject_document_free(&d);
    subject_close(&s);
}

/* |Σ parts − value| over the largest of them. */
static double incompleteness(const mha_direct *direct, const double *heads, size_t n)
{
    double sum = direct->embed + direct->mlp + direct->bias;
    double most = fmax(fmax(fabs(direct->embed), fabs(direct->mlp)), fabs(direct->value));
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(heads[i]));
        sum += heads[i];
    }
    return fabs(sum - direct->value) / most;
}

/* How far the parts of one model miss its logits; −1 when it is refused for its activation, −2 when
 * it has no loss. */
static double fixture_incompleteness(const char *name)
{
    static mha_prediction first = {0, 0, 1};
    char base[128];
    subject s;
    fixture f;
    mha_direct direct;
    mha_err err = {0};
    double loss, heads[512];
    mha_gradient out = {.loss = &loss, .gates = heads, .direct = &direct};
    subject_open(&s, name, NULL, 0);
    size_t n = s.info->attn_count * s.heads;
    assert_in_range(n, 1, 512);
    fixture_expected_of(name, base, sizeof base);
    assert_true(fixture_open(&f, base, 0));
    terms t = {.count = 0};
    if (f.doc.graph == NULL)
        t = terms_of(s.m, &f.doc, false);
    f.doc.predict = t.count > 0 ? t.term : &first;
    f.doc.predict_n = t.count > 0 ? t.count : 1;
    mha_status st = mha_engine_gradient(s.e, &f.doc, 1, &out, NULL, NULL, &err);
    if (st != MHA_OK && st != MHA_ERR_ARG && st != MHA_ERR_UNSUPPORTED)
        fail_msg("%s: %s", name, err.message);
    fixture_close(&f);
    subject_close(&s);
    return st == MHA_OK ? incompleteness(&direct, heads, n) : st == MHA_ERR_UNSUPPORTED ? -1 : -2;
}

/* The parts of every model here that has a loss sum to its logits, or it is refused. */
static void check_complete(void **state)
{
    static fixture_models found;
    size_t whole = 0, refused = 0;
    double worst = 0;
    (void)state;
    fixture_models_find(&found);
    for (size_t i = 0; i < found.count; i++) {
        double off = fixture_incompleteness(found.name[i]);
        if (!(off <= 1e-5))
            fail_msg("%s: the parts miss the logits by %g of the largest", found.name[i], off);
        whole += off >= 0;
        refused += off == -1;
        worst = fmax(worst, off);
    }
    print_message("note: the parts of %zu models sum to their logits within %.1e of the largest; "
                  "%zu refused for an activation\n",
                  whole, worst, refused);
    assert_true(whole > 40 && refused > 10);
}

int main(void)
{
    enum {
        MODELS = sizeof models / sizeof models[0],
        VARIANTS = sizeof variants / sizeof *variants
    };
    static char limited[][16] = {"llama-rope3", "t5", "gemma3"};
    struct CMUnitTest tests[MODELS + VARIANTS + 6] = {cmocka_unit_test(check_complete),
                                                      cmocka_unit_test(check_refusals),
                                                      cmocka_unit_test(check_encoder)};
    size_t n = 3;
    for (size_t i = 0; i < MODELS; i++)
        tests[n++] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    for (size_t i = 0; i < VARIANTS; i++)
        tests[n++] = (struct CMUnitTest){variants[i].what, check_variant, NULL, NULL, &variants[i]};
    for (size_t i = 0; i < 3; i++)
        tests[n++] =
            (struct CMUnitTest){"under a memory limit", check_memory, NULL, NULL, limited[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
