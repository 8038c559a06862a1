/* naive_t5.c: T5: encoder, decoder with cross-attention, relative position buckets. */
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct t5 {
    pass *p;
    size_t D, H, K, F, buckets, distance;
    double eps;
    const char *act;
    bool gated;
} t5;

static double *rms(const t5 *m, const double *x, size_t rows, const char *name)
{
    return rms_norm(m->p, x, rows, m->D, pass_tensor(m->p, true, "%s.weight", name), 0, m->eps);
}

/* Which bucket key − query falls into. The logarithm is taken in single precision, as the model was
 * trained with: at whole powers its rounding decides. */
static size_t bucket(const t5 *m, long relative, bool both_ways)
{
    size_t n = both_ways ? m->buckets / 2 : m->buckets, base = 0;
    if (both_ways && relative > 0)
        base = n;
    size_t away = (size_t)(both_ways ? labs(relative) : relative < 0 ? -relative : 0), half = n / 2;
    if (away < half)
        return base + away;
    float log_ratio = logf((float)away / (float)half);
    log_ratio = log_ratio / (float)log((double)m->distance / (double)half) * (float)(n - half);
    size_t far = half + (size_t)log_ratio;
    return base + (far < n ? far : n - 1);
}

static double *bias(const t5 *m, const char *stack, size_t T, bool both_ways)
{
    pass *p = m->p;
    const double *table = pass_tensor(
        p, true, "%s.block.0.layer.0.SelfAttention.relative_attention_bias.weight", stack);
    double *b = pass_memory(p, m->H * T * T);
    for (size_t h = 0; h < m->H; h++)
        for (size_t i = 0; i < T; i++)
            for (size_t j = 0; j < T; j++)
                b[(h * T + i) * T + j] = table[bucket(m, (long)j - (long)i, both_ways) * m->H + h];
    return b;
}

/* One attention sub-layer: x += o(attend(norm x, memory or itself)). */
static void attention(const t5 *m, double *x, size_t T, const char *place, const char *name,
                      const double *memory, size_t S, attend_options *o)
{
    pass *p = m->p;
    char norm[128];
    size_t HK = m->H * m->K;
    snprintf(norm, sizeof norm, "%s.layer_norm", place);
    double *b = rms(m, x, T, norm);
    const double *keys = memory != NULL ? memory : b;
    double *q = linear(p, b, T, m->D, HK, "%s.%s.q", place, name);
    double *k = linear(p, keys, S, m->D, HK, "%s.%s.k", place, name);
    double *v = linear(p, keys, S, m->D, HK, "%s.%s.v", place, name);
    o->heads = o->kv_heads = m->H;
    o->width = m->K;
    o->scale = 1;
    double *z = attend(p, o, q, k, v, T, S);
    double *y = linear(p, z, T, HK, m->D, "%s.%s.o", place, name);
    pass_nudge(p, MHA_SITE_ATTN_OUT, o->kind, y, m->D, 0);
    add(x, y, T * m->D);
}

static void feed_forward(const t5 *m, double *x, size_t T, const char *place)
{
    pass *p = m->p;
    char norm[128];
    snprintf(norm, sizeof norm, "%s.layer_norm", place);
    double *b = rms(m, x, T, norm);
    double *h =
        linear(p, b, T, m->D, m->F, "%s.DenseReluDense.%s", place, m->gated ? "wi_0" : "wi");
    activate(m->act, h, T * m->F);
    if (m->gated) {
        double *u = linear(p, b, T, m->D, m->F, "%s.DenseReluDense.wi_1", place);
        for (size_t i = 0; i < T * m->F; i++)
            h[i] *= u[i];
    }
    double *y = linear(p, h, T, m->F, m->D, "%s.DenseReluDense.wo", place);
    pass_freeze(p, NAIVE_MLP, y, T * m->D);
    add(x, y, T * m->D);
}

static double *embed(const t5 *m, const int32_t *ids, size_t T)
{
    const double *tok = pass_tensor(m->p, true, "shared.weight");
    double *x = pass_memory(m->p, T * m->D);
    for (size_t t = 0; t < T; t++)
        add(x + t * m->D, tok + (size_t)ids[t] * m->D, m->D);
    pass_nudge(m->p, MHA_SITE_EMBED, MHA_SELF, x, m->D, 0);
    pass_freeze(m->p, NAIVE_EMBED, x, T * m->D);
    return x;
}

/* One whole stack; the decoder's cross-attention reads memory [S, D]. */
static double *stack(const t5 *m, const char *name, const int32_t *ids, size_t T, size_t layers,
                     const double *memory, size_t S)
{
    pass *p = m->p;
    char place[96];
    p->layer = 0;
    double *x = embed(m, ids, T), *b = bias(m, name, T, memory == NULL);
    for (p->layer = 0; p->layer < layers; p->layer++) {
        size_t part = 0;
        attend_options self = {.kind = MHA_SELF, .causal = memory != NULL, .bias = b};
        attend_options cross = {.kind = MHA_CROSS};
        snprintf(place, sizeof place, "%s.block.%u.layer.%zu", name, p->layer, part++);
        attention(m, x, T, place, "SelfAttention", NULL, T, &self);
        snprintf(place, sizeof place, "%s.block.%u.layer.%zu", name, p->layer, part);
        if (memory != NULL) {
            attention(m, x, T, place, "EncDecAttention", memory, S, &cross);
            part++;
        }
        snprintf(place, sizeof place, "%s.block.%u.layer.%zu", name, p->layer, part);
        feed_forward(m, x, T, place);
        pass_nudge(p, MHA_SITE_RESID, MHA_SELF, x, m->D, 0);
    }
    snprintf(place, sizeof place, "%s.final_layer_norm", name);
    double *hidden = rms(m, x, T, place);
    pass_hidden(p, hidden, T, m->D);
    return hidden;
}

void naive_t5(pass *p)
{
    const naive *n = p->n;
    t5 m = {.p = p};
    m.D = (size_t)config_number(n, "d_model", 0);
    m.H = (size_t)config_number(n, "num_heads", 0);
    m.K = (size_t)config_number(n, "d_kv", 64);
    m.F = (size_t)config_number(n, "d_ff", 0);
    m.buckets = (size_t)config_number(n, "relative_attention_num_buckets", 32);
    m.distance = (size_t)config_number(n, "relative_attention_max_distance", 128);
    m.eps = config_number(n, "layer_norm_epsilon", 1e-6);
    m.gated = strstr(config_text(n, "feed_forward_proj", "relu"), "gated") != NULL;
    m.act = m.gated ? "gelu_new" : "relu";
    size_t layers = (size_t)config_number(n, "num_layers", 0);
    size_t S = p->doc->n, T = p->doc->target_n, V = (size_t)config_number(n, "vocab_size", 0);
    p->stack = MHA_ENC;
    double *memory = stack(&m, "encoder", p->doc->ids, S, layers, NULL, 0);
    p->stack = MHA_DEC;
    layers = (size_t)config_number(n, "num_decoder_layers", (double)layers);
    double *x = stack(&m, "decoder", p->doc->target_ids, T, layers, memory, S);
    bool tied = config_number(n, "tie_word_embeddings", 1) != 0;
    const double *w = pass_tensor(p, false, "lm_head.weight");
    double *y = pass_memory(p, T * m.D);
    memcpy(y, x, T * m.D * sizeof *y);
    if (config_number(n, "scale_decoder_outputs", tied) != 0)
        scale_by(y, T * m.D, 1 / sqrt((double)m.D));
    if (w == NULL)
        w = pass_tensor(p, true, "shared.weight");
    pass_logits(p, product(p, y, T, m.D, V, w, NULL), T, V);
}
