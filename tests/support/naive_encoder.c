/* naive_encoder.c: BERT, RoBERTa, DistilBERT and DeBERTa, each by the names in its own files. */
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

/* The same parts under several sets of names. */
typedef struct names {
    const char *prefix, *block;
    const char *q, *k, *v, *o, *norm1, *up, *down, *norm2;
} names;

static const names bert = {"bert.",
                           "encoder.layer",
                           "attention.self.query",
                           "attention.self.key",
                           "attention.self.value",
                           "attention.output.dense",
                           "attention.output.LayerNorm",
                           "intermediate.dense",
                           "output.dense",
                           "output.LayerNorm"};
static const names deberta = {"deberta.",
                              "encoder.layer",
                              "attention.self.query_proj",
                              "attention.self.key_proj",
                              "attention.self.value_proj",
                              "attention.output.dense",
                              "attention.output.LayerNorm",
                              "intermediate.dense",
                              "output.dense",
                              "output.LayerNorm"};
static const names distil = {"distilbert.",      "transformer.layer", "attention.q_lin",
                             "attention.k_lin",  "attention.v_lin",   "attention.out_lin",
                             "sa_layer_norm",    "ffn.lin1",          "ffn.lin2",
                             "output_layer_norm"};

typedef struct encoder {
    pass *p;
    const names *name;
    size_t T, D, H, F;
    double eps;
    const char *act, *type;
} encoder;

static double *norm_at(const encoder *e, const double *x, const char *name)
{
    pass *p = e->p;
    return layer_norm(
        p, x, e->T, e->D, pass_tensor(p, true, "%s.%u.%s.weight", e->name->block, p->layer, name),
        pass_tensor(p, true, "%s.%u.%s.bias", e->name->block, p->layer, name), e->eps);
}

static double *linear_at(const encoder *e, const double *x, size_t in, size_t out, const char *name)
{
    return linear(e->p, x, e->T, in, out, "%s.%u.%s", e->name->block, e->p->layer, name);
}

/* sigmoid of the values, [T, D] */
static double *value_gate(const encoder *e, const double *x)
{
    double *g = linear_at(e, x, e->D, e->D, e->name->v);
    for (size_t i = 0; i < e->T * e->D; i++)
        g[i] = 1 / (1 + exp(-g[i]));
    return g;
}

/* What the document's numbers about pairs of tokens add to the scores, [H, T, T]. */
static double *pair_bias(const encoder *e)
{
    const naive *n = e->p->n;
    size_t T = e->T, C = n->pair_width;
    double *bias = pass_memory(e->p, e->H * T * T);
    for (size_t h = 0; h < e->H; h++)
        for (size_t ij = 0; ij < T * T; ij++)
            for (size_t c = 0; c < C; c++)
                bias[h * T * T + ij] += n->pair[h * C + c] * (double)e->p->doc->pair[ij * C + c];
    return bias;
}

static double *block(const encoder *e, double *x)
{
    pass *p = e->p;
    size_t T = e->T, D = e->D, K = D / e->H;
    const double *input = x;
    attend_options o = {.heads = e->H, .kv_heads = e->H, .width = K, .kind = MHA_SELF};
    o.scale = 1 / sqrt((double)K);
    if (e->name == &deberta)
        naive_relative(p, &o, T, D, e->eps);
    if (p->n->value_gate)
        o.open = value_gate(e, x);
    if (p->n->pair != NULL)
        o.bias = pair_bias(e);
    double *q = linear_at(e, x, D, D, e->name->q), *k = linear_at(e, x, D, D, e->name->k);
    double *v = linear_at(e, x, D, D, e->name->v), *z = attend(p, &o, q, k, v, T, T);
    double *y = linear_at(e, z, D, D, e->name->o);
    pass_nudge(p, MHA_SITE_ATTN_OUT, MHA_SELF, y, D, 0);
    add(y, x, T * D);
    x = norm_at(e, y, e->name->norm1);
    double *h = linear_at(e, x, D, e->F, e->name->up);
    activate(e->act, h, T * e->F);
    y = linear_at(e, h, e->F, D, e->name->down);
    pass_freeze(p, NAIVE_MLP, y, T * D);
    add(y, x, T * D);
    x = norm_at(e, y, e->name->norm2);
    if (p->layer == 0)
        x = naive_convolved(p, input, x, T, D, e->eps);
    pass_nudge(p, MHA_SITE_RESID, MHA_SELF, x, D, 0);
    return x;
}

static double *embed(const encoder *e)
{
    pass *p = e->p;
    const mha_document *doc = p->doc;
    size_t D = e->D, shift = 0;
    if (strcmp(e->type, "roberta") == 0)
        shift = (size_t)config_number(p->n, "pad_token_id", 1) + 1;
    const double *tok = pass_tensor(p, true, "embeddings.word_embeddings.weight");
    const double *pos =
        pass_tensor(p, e->name != &deberta, "embeddings.position_embeddings.weight");
    const double *typ = pass_tensor(p, false, "embeddings.token_type_embeddings.weight");
    double *x = pass_memory(p, e->T * D);
    for (size_t t = 0; t < e->T; t++) {
        add(x + t * D, tok + (size_t)doc->ids[t] * D, D);
        if (pos != NULL)
            add(x + t * D, pos + (t + shift) * D, D);
        if (typ != NULL)
            add(x + t * D, typ + (doc->types != NULL ? doc->types[t] : 0) * D, D);
    }
    x = layer_norm(p, x, e->T, D, pass_tensor(p, true, "embeddings.LayerNorm.weight"),
                   pass_tensor(p, true, "embeddings.LayerNorm.bias"), e->eps);
    pass_nudge(p, MHA_SITE_EMBED, MHA_SELF, x, D, 0);
    pass_freeze(p, NAIVE_EMBED, x, e->T * D);
    return x;
}

static void classify(const encoder *e, const double *x)
{
    pass *p = e->p;
    size_t D = e->D, C = (size_t)json_object_size(json_object_get(p->n->file->config, "id2label"));
    double *y = pass_pool(p, x, e->T, D, false);
    const char *last = "classifier";
    if (strcmp(e->type, "bert") == 0 || e->name == &deberta)
        y = linear(p, y, 1, D, D, "pooler.dense");
    else if (strcmp(e->type, "distilbert") == 0)
        y = linear(p, y, 1, D, D, "pre_classifier");
    else {
        y = linear(p, y, 1, D, D, "classifier.dense");
        last = "classifier.out_proj";
    }
    const char *act = e->name == &distil ? "relu" : "tanh";
    activate(config_text(p->n, "pooler_hidden_act", act), y, D);
    pass_logits(p, linear(p, y, 1, D, C, "%s", last), 1, C);
}

static void classify_tokens(const encoder *e, const double *x)
{
    pass *p = e->p;
    size_t C = (size_t)json_object_size(json_object_get(p->n->file->config, "id2label"));
    pass_logits(p, linear(p, x, e->T, e->D, C, "classifier"), e->T, C);
}

static void predict_masked(const encoder *e, const double *x)
{
    static const char *const parts[4][4] = {
        {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
         "cls.predictions.decoder.weight", "cls.predictions.bias"},
        {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.bias"},
        {"vocab_transform", "vocab_layer_norm", "vocab_projector.weight", "vocab_projector.bias"},
        {"lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm",
         "lm_predictions.lm_head.decoder.weight", "lm_predictions.lm_head.bias"}};
    pass *p = e->p;
    size_t D = e->D, V = (size_t)config_number(p->n, "vocab_size", 0), which = 0;
    if (strcmp(e->type, "roberta") == 0)
        which = 1;
    else if (strcmp(e->type, "distilbert") == 0)
        which = 2;
    else if (e->name == &deberta && config_number(p->n, "legacy", 1) == 0)
        which = 3;
    const char *const *name = parts[which];
    double *y = linear(p, x, e->T, D, D, "%s", name[0]);
    activate(which == 1 ? "gelu" : e->act, y, e->T * D);
    y = layer_norm(p, y, e->T, D, pass_tensor(p, true, "%s.weight", name[1]),
                   pass_tensor(p, true, "%s.bias", name[1]), e->eps);
    const double *w = pass_tensor(p, false, "%s", name[2]);
    if (w == NULL)
        w = pass_tensor(p, true, "embeddings.word_embeddings.weight");
    pass_logits(p, product(p, y, e->T, D, V, w, pass_tensor(p, true, "%s", name[3])), e->T, V);
}

void naive_encoder(pass *p)
{
    const naive *n = p->n;
    encoder e = {.p = p, .type = config_text(n, "model_type", ""), .T = p->doc->n};
    bool d = strcmp(e.type, "distilbert") == 0;
    e.name = d ? &distil : strcmp(e.type, "deberta-v2") == 0 ? &deberta : &bert;
    e.D = (size_t)config_number(n, d ? "dim" : "hidden_size", 0);
    e.H = (size_t)config_number(n, d ? "n_heads" : "num_attention_heads", 0);
    e.F = (size_t)config_number(n, d ? "hidden_dim" : "intermediate_size", 0);
    e.eps = config_number(n, "layer_norm_eps", 1e-12);
    e.act = config_text(n, d ? "activation" : "hidden_act", "gelu");
    p->prefix = strcmp(e.type, "roberta") == 0 ? "roberta." : e.name->prefix;
    p->stack = MHA_ENC;
    double *x = embed(&e);
    size_t layers = (size_t)config_number(n, d ? "n_layers" : "num_hidden_layers", 0);
    for (p->layer = 0; p->layer < layers; p->layer++)
        x = block(&e, x);
    pass_hidden(p, x, e.T, e.D);
    const json_t *arch = json_array_get(json_object_get(n->file->config, "architectures"), 0);
    const char *kind = json_is_string(arch) ? json_string_value(arch) : "";
    if (strstr(kind, "ForSequenceClassification") != NULL)
        classify(&e, x);
    else if (strstr(kind, "ForTokenClassification") != NULL)
        classify_tokens(&e, x);
    else if (strstr(kind, "ForMaskedLM") != NULL)
        predict_masked(&e, x);
}
