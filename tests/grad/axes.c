/* axes.c: kinds of attention, read-out and block that no model here has: the descriptions of GPT-2,
 * BERT and Llama are changed and so is the naive pass, and gradients of gates and of every tensor
 * are compared. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENTS = 3, TENSORS_MAX = 64 };

static double difference(const subject *s, const subject_document *d, double *element)
{
    double at = *element, sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        *element = at + side * SUBJECT_STEP;
        for (size_t i = 0; i < DOCUMENTS; i++)
            sum += side * naive_loss(s->n, &d[i].doc, d[i].exact, NULL);
    }
    *element = at;
    return sum / (2 * SUBJECT_STEP);
}

/* A few elements of every tensor, measured by the largest of it (and by a hundredth of the largest
 * of all where that is more: some tensors have gradient 0). */
static double check_tensors(const subject *s, const subject_document *d,
                            const mha_weight_gradient *list, size_t count)
{
    mha_rng rng;
    double all = 0, worst = 0;
    mha_rng_seed(&rng, 3, 0);
    for (size_t i = 0; i < count; i++) {
        const naive_tensor *t = naive_tensor_find(s->n, list[i].tensor);
        for (size_t k = 0; k < t->count; k++)
            all = fmax(all, fabs((double)list[i].out[k]));
    }
    for (size_t i = 0; i < count; i++) {
        const naive_tensor *t = naive_tensor_find(s->n, list[i].tensor);
        double most = 1e-2 * all;
        for (size_t k = 0; k < t->count; k++)
            most = fmax(most, fabs((double)list[i].out[k]));
        for (int draw = 0; draw < 5; draw++) {
            size_t k = mha_rng_below(&rng, t->count);
            double e = fabs((double)list[i].out[k] - difference(s, d, &t->value[k])) / most;
            if (!(e <= 1e-4))
                fail_msg("%s, element %zu: differs by %g of %g", t->name, k, e, most);
            worst = fmax(worst, e);
        }
    }
    return worst;
}

/* [n, n, C] numbers about pairs of tokens, where the model reads some. */
static float *draw_pairs(const subject *s, size_t n, uint64_t seed)
{
    size_t count = n * n * s->info->pair_width;
    mha_rng rng;
    if (count == 0)
        return NULL;
    float *pair = malloc(count * sizeof *pair);
    mha_rng_seed(&rng, 11, seed);
    for (size_t i = 0; i < count; i++)
        pair[i] = (float)(mha_rng_below(&rng, 2001)) / 1000 - 1;
    return pair;
}

static void check(const char *what, const char *model, subject *s)
{
    subject_document d[DOCUMENTS];
    mha_document docs[DOCUMENTS];
    size_t n = s->info->attn_count * s->heads, count = 0;
    double gates[DOCUMENTS * NAIVE_ATTN_MAX * 8], loss[DOCUMENTS], theirs[NAIVE_ATTN_MAX * 8];
    double worst = 0;
    float *pairs[DOCUMENTS];
    mha_weight_gradient list[TENSORS_MAX];
    mha_err err = {0};
    for (size_t i = 0; i < DOCUMENTS; i++) {
        subject_document_make(&d[i], s, 9 + 6 * i, (subject_gates)(i == 0 ? 0 : i + 2), i == 1, i);
        d[i].doc.pair = pairs[i] = draw_pairs(s, d[i].doc.n, i);
        docs[i] = d[i].doc;
    }
    for (size_t i = 0; i < mha_model_tensor_count(s->m); i++) {
        mha_tensor_info t = mha_model_tensor(s->m, i);
        if (t.used)
            list[count++] =
                (mha_weight_gradient){t.name, calloc((size_t)t.bytes / 4, sizeof(float))};
    }
    mha_gradient out = {.loss = loss, .gates = gates, .weights = list, .weight_count = count};
    if (mha_engine_gradient(s->e, docs, DOCUMENTS, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", what, err.message);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        double reference = naive_loss(s->n, &docs[i], d[i].exact, NULL);
        if (!(fabs(loss[i] - reference) <= 1e-5 * (1 + fabs(reference))))
            fail_msg("%s: loss %g, naive %g", what, loss[i], reference);
        subject_differences(s, &d[i], theirs);
        double e = largest_error(gates + i * n, theirs, n);
        if (!(e <= 1e-4))
            fail_msg("%s: gate gradients differ by %g", what, e);
        worst = fmax(worst, e);
    }
    double tensors = check_tensors(s, d, list, count);
    if (s->info->pair_width > 0) { /* a document must bring what the model reads */
        docs[0].pair = NULL;
        assert_int_equal(mha_engine_check(s->e, &docs[0], &err), MHA_ERR_ARG);
    }
    print_message("note: %-26s (%s) gates %.1e, tensors %.1e of the largest\n", what, model, worst,
                  tensors);
    for (size_t i = 0; i < count; i++)
        free(list[i].out);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        free(pairs[i]);
        subject_document_free(&d[i]);
    }
}

typedef struct axis {
    const char *what, *model, *family, *from, *to;
    void (*set)(subject *s);
} axis;

static void set_softcap(subject *s)
{
    s->n->attn_softcap = 1.5;
}

static void set_logit_softcap(subject *s)
{
    s->n->logit_softcap = 2.5;
}

static void set_window(subject *s)
{
    s->n->window = 6;
}

static void set_pair(subject *s)
{
    s->n->rope_pair = true;
}

static void set_mean(subject *s)
{
    s->n->mean_pool = true;
}

static void set_parallel(subject *s)
{
    s->n->parallel = true;
}

static void set_head_norms(subject *s)
{
    s->n->head_norms = true;
}

/* The biases of the three classes are the sinks of the three heads too. */
static void set_sinks(subject *s)
{
    s->n->sinks = naive_tensor_find(s->n, "classifier.bias")->value;
}

/* Three heads: the two slopes 2^(−4i) of two heads, then the first of four heads. */
static void set_alibi(subject *s)
{
    static const double slopes[] = {0.0625, 0.00390625, 0.25};
    assert_int_equal(s->heads, 3);
    s->n->alibi = slopes;
}

#define GPT2_BLOCK                                                                                 \
    "    X <- add B\n"                                                                             \
    "    B <- norm X w=ln2 eps=eps\n"                                                              \
    "    B <- mlp B up=up down=down act=act\n"                                                     \
    "    X <- add B\n"
#define GPT2_PARALLEL                                                                              \
    "    C <- norm X w=ln2 eps=eps\n"                                                              \
    "    C <- mlp C up=up down=down act=act\n"                                                     \
    "    X <- add B\n"                                                                             \
    "    X <- add C\n"

static axis axes[] = {
    {"softcap of scores", "gpt2-lm", "gpt2", "causal", "causal softcap=1.5", set_softcap},
    {"softcap of logits", "gpt2-lm", "gpt2", "logits X w=lm", "logits X w=lm softcap=2.5",
     set_logit_softcap},
    {"causal window", "gpt2-lm", "gpt2", "causal", "causal window=6", set_window},
    {"window to both sides", "bert-mlm", "bert", "scale=K^-0.5", "scale=K^-0.5 window=6",
     set_window},
    {"ALiBi", "bert-mlm", "bert", "scale=K^-0.5", "scale=K^-0.5 alibi=1", set_alibi},
    {"rotary of neighbours", "llama-gqa", "llama", "rope=gguf ? 'pair' : 'half'", "rope=pair",
     set_pair},
    {"mean pool", "gpt2-class", "gpt2", "pool X last", "pool X mean", set_mean},
    {"parallel branches", "gpt2-lm", "gpt2", GPT2_BLOCK, GPT2_PARALLEL, set_parallel},
    {"norms over all heads", "gpt2-lm", "gpt2", "causal",
     "causal q_norm=ln2 k_norm=ln2 norm=layer eps=eps", set_head_norms},
};

static void check_axis(void **state)
{
    const axis *a = *state;
    subject s;
    char *family = subject_family(a->family, a->from, a->to);
    subject_open(&s, a->model, family, 0);
    a->set(&s);
    check(a->what, a->model, &s);
    subject_close(&s);
    mha_free(family);
}

/* BERT's classifier with one more argument of its attention, and a slot for it. */
static void check_slot(const char *what, const char *argument, const char *declared,
                       void (*set)(subject *s))
{
    subject s;
    char to[80];
    snprintf(to, sizeof to, "scale=K^-0.5 %s", argument);
    char *once = subject_family("bert", "scale=K^-0.5", to);
    char *slot = strstr(once, "  prologue");
    mha_buf family;
    mha_buf_init(&family, 1 << 17);
    assert_non_null(slot);
    assert_int_equal(
        mha_buf_addf(&family, NULL, "%.*s%s%s", (int)(slot - once), once, declared, slot), MHA_OK);
    subject_open(&s, "bert-class", family.data, 0);
    set(&s);
    check(what, "bert-class", &s);
    subject_close(&s);
    mha_buf_release(&family);
    mha_free(once);
}

static void check_sinks(void **state)
{
    (void)state;
    check_slot("sinks", "sinks=snk", "    vector snk [H] classifier.bias\n", set_sinks);
}

/* The attention of Evoformers: a bias of pairs, here by the weights of the three classes, and an
 * output gate, here with the weights of the values; each alone, and both. */
static void set_pairs(subject *s)
{
    const naive_tensor *t = naive_tensor_find(s->n, "classifier.weight");
    s->n->pair = t->value;
    s->n->pair_width = t->count / s->heads;
    assert_int_equal(s->info->pair_width, s->n->pair_width);
}

static void set_output_gate(subject *s)
{
    s->n->value_gate = true;
}

static void set_evoformer(subject *s)
{
    set_pairs(s);
    set_output_gate(s);
}

#define PAIR_SLOT "    table pairs [H, D] classifier.weight\n"

static void check_pairs(void **state)
{
    (void)state;
    check_slot("bias of pairs", "pair=pairs", PAIR_SLOT, set_pairs);
}

static void check_output_gate(void **state)
{
    (void)state;
    check_slot("output gate", "output_gate=v", "", set_output_gate);
}

static void check_evoformer(void **state)
{
    (void)state;
    check_slot("pairs and output gate", "pair=pairs output_gate=v", PAIR_SLOT, set_evoformer);
}

int main(void)
{
    enum { SLOTS = 4, AXES = sizeof axes / sizeof *axes };
    struct CMUnitTest tests[SLOTS + AXES] = {
        cmocka_unit_test(check_sinks), cmocka_unit_test(check_pairs),
        cmocka_unit_test(check_output_gate), cmocka_unit_test(check_evoformer)};
    for (size_t i = 0; i < AXES; i++)
        tests[SLOTS + i] = (struct CMUnitTest){axes[i].what, check_axis, NULL, NULL, &axes[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
