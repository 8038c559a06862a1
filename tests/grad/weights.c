/* weights.c: gradients of stored tensors: every tensor of every family against central differences
 * of the naive pass at single elements (drawn ones and the largest), whole tensors against
 * automatic differentiation, and what must not change them. Prints the largest error of each model.
 */
#include "base/rng.h"
#include "support/subject.h"
#include "support/test.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS_MAX = 128, DOCUMENTS = 3 };

static char models[][24] = {"bert-mlm",
                            "bert-class",
                            "roberta-mlm",
                            "roberta-class",
                            "distilbert-class",
                            "distilbert-mlm",
                            "gpt2-lm",
                            "gpt2-class",
                            "gpt2-f16",
                            "llama-gqa",
                            "llama-rope3",
                            "mistral",
                            "llama-bf16",
                            "qwen2",
                            "qwen3",
                            "gemma3",
                            "t5",
                            "t5-gated",
                            "t5-resaved",
                            "deberta-mlm",
                            "deberta-class",
                            "deberta-original",
                            "deberta-conv"};

typedef struct wanted {
    mha_weight_gradient list[TENSORS_MAX];
    size_t elements[TENSORS_MAX], count;
} wanted;

/* All tensors that the model uses. */
static void wanted_make(wanted *w, const mha_model *m)
{
    w->count = 0;
    for (size_t i = 0; i < mha_model_tensor_count(m); i++) {
        mha_tensor_info t = mha_model_tensor(m, i);
        size_t n = 1;
        for (uint32_t d = 0; d < t.rank; d++)
            n *= (size_t)t.shape[d];
        if (!t.used)
            continue;
        assert_in_range(w->count, 0, TENSORS_MAX - 1);
        w->elements[w->count] = n;
        w->list[w->count++] = (mha_weight_gradient){t.name, calloc(n, sizeof(float))};
    }
}

static void wanted_free(wanted *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->list[i].out);
}

static void run(const subject *s, const mha_document *docs, size_t count, const wanted *w)
{
    mha_err err = {0};
    mha_gradient out = {.weights = w->list, .weight_count = w->count};
    if (mha_engine_gradient(s->e, docs, count, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", s->name, err.message);
}

static double difference(const subject *s, const subject_document *d, size_t count, double *element)
{
    double at = *element, sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        *element = at + side * SUBJECT_STEP;
        for (size_t i = 0; i < count; i++)
            sum += side * naive_loss(s->n, &d[i].doc, d[i].exact, NULL);
    }
    *element = at;
    return sum / (2 * SUBJECT_STEP);
}

static double largest_of(const wanted *w, size_t i, size_t *at)
{
    double most = 0;
    for (size_t k = 0; k < w->elements[i]; k++)
        if (fabs((double)w->list[i].out[k]) > most) {
            most = fabs((double)w->list[i].out[k]);
            *at = k;
        }
    return most;
}

/* The largest element of all tensors. */
static double largest_of_all(const wanted *w)
{
    double most = 0;
    size_t at = 0;
    for (size_t i = 0; i < w->count; i++)
        most = fmax(most, largest_of(w, i, &at));
    return most;
}

static bool is_key_bias(const char *name)
{
    static const char *const ends[] = {"key.bias",    "k_lin.bias",      ".k.bias",
                                       "k_proj.bias", "key_global.bias", "pos_key_proj.bias"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strlen(name) > strlen(ends[i]) &&
            strcmp(name + strlen(name) - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* What errors of tensor i are measured by. Biases of keys have gradient 0 where nothing turns the
 * keys, because a softmax does not see a constant: what is left of them is rounding, and has to be
 * small beside the other tensors. */
static double scale_of(const wanted *w, size_t i, size_t *at)
{
    double most = largest_of(w, i, at), all = largest_of_all(w);
    if (most > 1e-5 * all)
        return most;
    if (!is_key_bias(w->list[i].tensor))
        fail_msg("%s has gradient %g beside %g", w->list[i].tensor, most, all);
    return 1e-2 * all;
}

static double check_tensor(const subject *s, const subject_document *d, size_t count,
                           const wanted *w, size_t i, mha_rng *rng)
{
    const mha_weight_gradient *g = &w->list[i];
    naive_tensor *t = naive_tensor_find(s->n, g->tensor);
    size_t largest = 0, n = w->elements[i];
    double worst = 0, scale = scale_of(w, i, &largest);
    if (t == NULL)
        fail_msg("%s: %s", s->name, g->tensor);
    assert_int_equal(t->count, n);
    for (int draw = 0; draw < 8; draw++) {
        size_t k = draw == 0 ? largest : mha_rng_below(rng, n);
        double e = fabs((double)g->out[k] - difference(s, d, count, &t->value[k])) / scale;
        if (!(e <= 1e-4))
            fail_msg("%s: %s, element %zu: differs by %g of %g", s->name, g->tensor, k, e, scale);
        worst = fmax(worst, e);
    }
    return worst;
}

static void make_documents(const subject *s, subject_document *d, mha_document *docs)
{
    static const subject_gates gates[DOCUMENTS] = {GATES_NONE, GATES_FILL, GATES_RANDOM};
    for (size_t i = 0; i < DOCUMENTS; i++) {
        subject_document_make(&d[i], s, 12 + 5 * i, gates[i], i == 1, i);
        if (s->info->family[0] == 'b' && i > 0) { /* both token types of BERT */
            static uint8_t types[64];
            memset(types + 5, 1, sizeof types - 5);
            d[i].doc.types = types;
        }
        docs[i] = d[i].doc;
    }
}

static void check_model(void **state)
{
    double worst = 0;
    subject s;
    mha_rng rng;
    wanted w;
    subject_document d[DOCUMENTS];
    mha_document docs[DOCUMENTS];
    subject_open(&s, *state, NULL, 0);
    naive_close(s.n); /* the names of this very file */
    char path[1024];
    fixture_path(path, sizeof path, s.name, NULL);
    s.n = naive_open(path);
    mha_rng_seed(&rng, 11, 0);
    make_documents(&s, d, docs);
    wanted_make(&w, s.m);
    run(&s, docs, DOCUMENTS, &w);
    for (size_t i = 0; i < w.count; i++)
        worst = fmax(worst, check_tensor(&s, d, DOCUMENTS, &w, i, &rng));
    print_message("note: %-18s %3zu tensors %.1e of the largest\n", s.name, w.count, worst);
    wanted_free(&w);
    for (size_t i = 0; i < DOCUMENTS; i++)
        subject_document_free(&d[i]);
    subject_close(&s);
}

/* ---- whole tensors ----------------------------------------------------------------------------
 */

static void autograd(void **state)
{
    double worst = 0;
    subject s;
    fixture f, g;
    wanted w;
    mha_prediction term[TERMS_MAX];
    float gates[NAIVE_ATTN_MAX * 32];
    subject_open(&s, *state, NULL, 0);
    assert_true(fixture_open(&f, s.name, 1) && fixture_gradient_open(&g, s.name, 1));
    fixture_set_terms(&f.doc, &g, term, TERMS_MAX, gates);
    wanted_make(&w, s.m);
    run(&s, &f.doc, 1, &w);
    for (size_t i = 0; i < w.count; i++) {
        char name[256];
        snprintf(name, sizeof name, "weights/%s", w.list[i].tensor);
        const fixture_array *want = fixture_find(&g, name);
        if (want == NULL && strcmp(w.list[i].tensor, "final_logits_bias") == 0)
            continue; /* a constant over there */
        if (want == NULL)
            fail_msg("%s: no %s", s.name, name);
        double error = 0, scale = scale_of(&w, i, &(size_t){0});
        for (size_t k = 0; k < w.elements[i]; k++)
            error = fmax(error, fabs((double)w.list[i].out[k] - want->value[k]));
        if (!(error <= 1e-4 * scale))
            fail_msg("%s: %s differs by %g of %g", s.name, name, error, scale);
        worst = fmax(worst, error / scale);
    }
    print_message("note: %-18s %3zu tensors, autograd: %.1e of the largest\n", s.name, w.count,
                  worst);
    wanted_free(&w);
    fixture_close(&f);
    fixture_close(&g);
    subject_close(&s);
}

/* ---- what changes nothing ---------------------------------------------------------------------
 */

static void same(const wanted *a, const wanted *b, double tolerance)
{
    for (size_t i = 0; i < a->count; i++) {
        double error = 0, scale = scale_of(b, i, &(size_t){0});
        for (size_t k = 0; k < a->elements[i]; k++)
            error = fmax(error, fabs((double)a->list[i].out[k] - (double)b->list[i].out[k]));
        if (!(error <= tolerance * scale))
            fail_msg("%s differs by %g of %g", a->list[i].tensor, error, scale);
    }
}

/* Gradients are added: documents one by one give the sum; threads change no bit, and neither do
 * blocks that run twice; a tensor alone gets what it gets among all. */
static void sums(void **state)
{
    enum { COUNT = 80 };
    subject s;
    subject_document d[COUNT];
    mha_document docs[COUNT];
    wanted all, other;
    mha_err err = {0};
    subject_open(&s, *state, NULL, 0);
    for (size_t i = 0; i < COUNT; i++) {
        subject_document_make(&d[i], &s, 4 + i % 20, (subject_gates)(i % GATES_COUNT), false, i);
        docs[i] = d[i].doc;
    }
    wanted_make(&all, s.m);
    run(&s, docs, COUNT, &all);

    wanted_make(&other, s.m);
    for (size_t i = 0; i < COUNT; i++)
        run(&s, &docs[i], 1, &other);
    same(&other, &all, 1e-5);
    wanted_free(&other);

    wanted_make(&other, s.m);
    for (size_t i = 0; i < other.count; i += 3) {
        wanted one = {.list = {other.list[i]}, .elements = {other.elements[i]}, .count = 1};
        run(&s, docs, COUNT, &one);
        assert_memory_equal(one.list[0].out, all.list[i].out, one.elements[0] * sizeof(float));
    }
    wanted_free(&other);

    mha_status st = MHA_ERR_NOMEM;
    for (uint64_t memory = 1 << 20; st == MHA_ERR_NOMEM; memory += memory / 64) {
        mha_engine_options o = {.memory = memory, .threads = 3};
        wanted_make(&other, s.m);
        mha_gradient out = {.weights = other.list, .weight_count = other.count};
        mha_engine_free(s.e);
        assert_int_equal(mha_engine_new(&s.e, s.m, &o, &err), MHA_OK);
        st = mha_engine_gradient(s.e, docs, COUNT, &out, NULL, NULL, &err);
        if (st == MHA_ERR_NOMEM)
            wanted_free(&other);
    }
    assert_int_equal(st, MHA_OK);
    same(&other, &all, 0);
    wanted_free(&other);
    wanted_free(&all);
    for (size_t i = 0; i < COUNT; i++)
        subject_document_free(&d[i]);
    subject_close(&s);
}

/* ---- refusals ---------------------------------------------------------------------------------
 */

static void refused(const char *model, const char *tensor, mha_status status, const char *message)
{
    mha_err err = {0};
    float out[8192];
    mha_model *m;
    mha_engine *e;
    char path[1024];
    int32_t ids[] = {3, 4, 5};
    mha_prediction term = {0, 4, -1};
    mha_document doc = {.ids = ids, .n = 3, .predict = &term, .predict_n = 1};
    fixture_path(path, sizeof path, model, NULL);
    assert_int_equal(mha_model_open(&m, path, NULL, &err), MHA_OK);
    assert_int_equal(mha_engine_new(&e, m, NULL, &err), MHA_OK);
    mha_weight_gradient want = {tensor, out};
    mha_gradient g = {.weights = &want, .weight_count = 1};
    assert_int_equal(mha_engine_gradient(e, &doc, 1, &g, NULL, NULL, &err), status);
    if (strstr(err.message, message) == NULL || strstr(err.message, tensor) == NULL)
        fail_msg("%s", err.message);
    mha_engine_free(e);
    mha_model_close(m);
}

static void refusals(void **state)
{
    refused("gpt2-lm", "transformer.wte.bias", MHA_ERR_ARG, "does not exist");
    refused("bert-tf", "cls.seq_relationship.weight", MHA_ERR_ARG, "no step uses it");
    refused("llama-rope3.gguf", "rope_freqs.weight", MHA_ERR_ARG, "has no gradient");
    refused("llama-quant.gguf", "blk.0.attn_q.weight", MHA_ERR_UNSUPPORTED, "plain float");
}

int main(void)
{
    static fixture_models all;
    static char summed[][16] = {"bert-mlm",    "gpt2-lm",       "qwen3",       "t5-gated",
                                "deberta-mlm", "deberta-class", "deberta-conv"};
    static struct CMUnitTest tests[64];
    size_t n = 0;
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(refusals);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        tests[n++] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        tests[n++] = (struct CMUnitTest){"sums", sums, NULL, NULL, summed[i]};
    fixture_detailed_find(&all);
    for (size_t i = 0; i < all.count; i++)
        tests[n++] = (struct CMUnitTest){"autograd", autograd, NULL, NULL, all.name[i]};
    assert(n <= sizeof tests / sizeof *tests);
    return _cmocka_run_group_tests("weights", tests, n, NULL, NULL);
}
