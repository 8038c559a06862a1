/* naive_decoder.c: GPT-2, and Llama with its relatives (Mistral, Qwen2, Qwen3, Gemma 3). */
#include "io/json.h"
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

static bool classifies(const naive *n)
{
    const json_t *arch = json_array_get(json_object_get(n->file->config, "architectures"), 0);
    return json_is_string(arch) && strstr(json_string_value(arch), "ForSequence") != NULL;
}

/* The last row's classes, or the next token's logits at every row. */
static void read_out(pass *p, double *x, size_t T, size_t D, const char *table)
{
    size_t C = (size_t)json_object_size(json_object_get(p->n->file->config, "id2label"));
    size_t V = (size_t)config_number(p->n, "vocab_size", 0);
    pass_hidden(p, x, T, D);
    if (classifies(p->n)) {
        double *y = pass_pool(p, x, T, D, true);
        pass_logits(p, product(p, y, 1, D, C, pass_tensor(p, true, "score.weight"), NULL), 1, C);
        return;
    }
    const double *w = pass_tensor(p, false, "lm_head.weight");
    if (w == NULL)
        w = pass_tensor(p, true, "%s", table);
    pass_logits(p, product(p, x, T, D, V, w, NULL), T, V);
}

/* ---- GPT-2: every matrix is stored [in, out] --------------------------------------------------
 */

static double *conv(pass *p, const double *x, size_t T, size_t in, size_t out, const char *name)
{
    return product_in_out(p, x, T, in, out, pass_tensor(p, true, "h.%u.%s.weight", p->layer, name),
                          out, 0, pass_tensor(p, true, "h.%u.%s.bias", p->layer, name));
}

static double *norm_of(pass *p, const double *x, size_t T, size_t D, const char *name)
{
    return layer_norm(p, x, T, D, pass_tensor(p, true, "h.%u.%s.weight", p->layer, name),
                      pass_tensor(p, true, "h.%u.%s.bias", p->layer, name),
                      config_number(p->n, "layer_norm_epsilon", 1e-5));
}

static void gpt2_block(pass *p, double *x, size_t T, size_t D, size_t H, size_t F)
{
    size_t K = D / H;
    double *b = norm_of(p, x, T, D, "ln_1"), *part[3];
    for (size_t i = 0; i < 3; i++)
        part[i] =
            product_in_out(p, b, T, D, D, pass_tensor(p, true, "h.%u.attn.c_attn.weight", p->layer),
                           3 * D, i * D, pass_tensor(p, true, "h.%u.attn.c_attn.bias", p->layer));
    attend_options o = {.heads = H, .kv_heads = H, .width = K, .kind = MHA_SELF, .causal = true};
    o.scale = 1 / sqrt((double)K);
    if (config_number(p->n, "scale_attn_by_inverse_layer_idx", 0) != 0)
        o.scale /= p->layer + 1;
    for (size_t i = 0; i < 2 && p->n->head_norms; i++)
        part[i] = norm_of(p, part[i], T, D, "ln_2");
    double *z = attend(p, &o, part[0], part[1], part[2], T, T);
    double *y = conv(p, z, T, D, D, "attn.c_proj"), *beside = norm_of(p, x, T, D, "ln_2");
    pass_nudge(p, MHA_SITE_ATTN_OUT, MHA_SELF, y, D, 0);
    add(x, y, T * D);
    b = p->n->parallel ? beside : norm_of(p, x, T, D, "ln_2");
    double *h = conv(p, b, T, D, F, "mlp.c_fc");
    activate(config_text(p->n, "activation_function", "gelu_new"), h, T * F);
    y = conv(p, h, T, F, D, "mlp.c_proj");
    pass_freeze(p, NAIVE_MLP, y, T * D);
    add(x, y, T * D);
    pass_nudge(p, MHA_SITE_RESID, MHA_SELF, x, D, 0);
}

void naive_gpt2(pass *p)
{
    const naive *n = p->n;
    size_t T = p->doc->n, D = (size_t)config_number(n, "n_embd", 0);
    size_t H = (size_t)config_number(n, "n_head", 0);
    size_t F = (size_t)config_number(n, "n_inner", 4 * (double)D);
    p->prefix = "transformer.";
    p->stack = MHA_DEC;
    const double *tok = pass_tensor(p, true, "wte.weight");
    const double *pos = pass_tensor(p, true, "wpe.weight");
    double *x = pass_memory(p, T * D);
    for (size_t t = 0; t < T; t++) {
        add(x + t * D, tok + (size_t)p->doc->ids[t] * D, D);
        add(x + t * D, pos + t * D, D);
    }
    pass_nudge(p, MHA_SITE_EMBED, MHA_SELF, x, D, 0);
    pass_freeze(p, NAIVE_EMBED, x, T * D);
    size_t layers = (size_t)config_number(n, "n_layer", 0);
    for (p->layer = 0; p->layer < layers; p->layer++)
        gpt2_block(p, x, T, D, H, F);
    x = layer_norm(p, x, T, D, pass_tensor(p, true, "ln_f.weight"),
                   pass_tensor(p, true, "ln_f.bias"), config_number(n, "layer_norm_epsilon", 1e-5));
    read_out(p, x, T, D, "wte.weight");
}

/* ---- Llama and its relatives ------------------------------------------------------------------
 */

typedef struct decoder {
    pass *p;
    size_t T, D, H, G, K, F;
    double eps, plus;
    const char *act;
    bool gemma;
} decoder;

static double *rms_at(const decoder *d, const double *x, const char *name)
{
    pass *p = d->p;
    return rms_norm(p, x, d->T, d->D, pass_tensor(p, true, "layers.%u.%s.weight", p->layer, name),
                    d->plus, d->eps);
}

/* Projection, norm of each head where the file has one, rotation. */
static double *heads_of(const decoder *d, const double *x, size_t heads, const char *name,
                        const char *norm, const double *freq)
{
    pass *p = d->p;
    double *y = linear(p, x, d->T, d->D, heads * d->K, "layers.%u.self_attn.%s", p->layer, name);
    const double *w = norm != NULL
                          ? pass_tensor(p, false, "layers.%u.self_attn.%s.weight", p->layer, norm)
                          : NULL;
    if (w != NULL)
        y = rms_norm(p, y, d->T * heads, d->K, w, d->plus, d->eps);
    if (freq != NULL)
        rotate(y, d->T, heads, d->K, freq, p->n->rope_pair);
    return y;
}

static double *attention(const decoder *d, const double *x)
{
    pass *p = d->p;
    const naive *n = p->n;
    const json_t *kinds = json_object_get(n->file->config, "layer_types");
    const char *kind = json_string_value(json_array_get(kinds, p->layer));
    bool sliding = kind != NULL && strcmp(kind, "sliding_attention") == 0;
    const char *rope = "rope_parameters";
    if (d->gemma)
        rope = sliding ? "rope_parameters.sliding_attention" : "rope_parameters.full_attention";
    const double *freq = frequencies(p, rope, d->K, 10000);
    attend_options o = {.heads = d->H, .kv_heads = d->G, .width = d->K, .kind = MHA_SELF};
    o.causal = true;
    o.scale = 1 / sqrt(d->gemma ? config_number(n, "query_pre_attn_scalar", 0) : (double)d->K);
    if (sliding || strcmp(config_text(n, "model_type", ""), "mistral") == 0)
        o.window = (size_t)config_number(n, "sliding_window", 0);
    double *q = heads_of(d, x, d->H, "q_proj", "q_norm", freq);
    double *k = heads_of(d, x, d->G, "k_proj", "k_norm", freq);
    double *v = heads_of(d, x, d->G, "v_proj", NULL, NULL);
    double *z = attend(p, &o, q, k, v, d->T, d->T);
    double *y = linear(p, z, d->T, d->H * d->K, d->D, "layers.%u.self_attn.o_proj", p->layer);
    pass_nudge(p, MHA_SITE_ATTN_OUT, MHA_SELF, y, d->D, 0);
    return y;
}

static double *mlp(const decoder *d, const double *x)
{
    pass *p = d->p;
    double *g = linear(p, x, d->T, d->D, d->F, "layers.%u.mlp.gate_proj", p->layer);
    double *u = linear(p, x, d->T, d->D, d->F, "layers.%u.mlp.up_proj", p->layer);
    activate(d->act, g, d->T * d->F);
    for (size_t i = 0; i < d->T * d->F; i++)
        g[i] *= u[i];
    double *y = linear(p, g, d->T, d->F, d->D, "layers.%u.mlp.down_proj", p->layer);
    pass_freeze(p, NAIVE_MLP, y, d->T * d->D);
    return y;
}

static void llama_block(const decoder *d, double *x)
{
    size_t n = d->T * d->D;
    double *y = attention(d, rms_at(d, x, "input_layernorm"));
    if (d->gemma)
        y = rms_at(d, y, "post_attention_layernorm");
    add(x, y, n);
    y = rms_at(d, x, d->gemma ? "pre_feedforward_layernorm" : "post_attention_layernorm");
    y = mlp(d, y);
    if (d->gemma)
        y = rms_at(d, y, "post_feedforward_layernorm");
    add(x, y, n);
    pass_nudge(d->p, MHA_SITE_RESID, MHA_SELF, x, d->D, 0);
}

void naive_llama(pass *p)
{
    const naive *n = p->n;
    decoder d = {.p = p, .T = p->doc->n};
    d.gemma = strcmp(config_text(n, "model_type", ""), "gemma3_text") == 0;
    d.plus = d.gemma;
    d.D = (size_t)config_number(n, "hidden_size", 0);
    d.H = (size_t)config_number(n, "num_attention_heads", 0);
    d.G = (size_t)config_number(n, "num_key_value_heads", (double)d.H);
    d.K = (size_t)config_number(n, "head_dim", (double)(d.D / d.H));
    d.F = (size_t)config_number(n, "intermediate_size", 0);
    d.eps = config_number(n, "rms_norm_eps", 1e-6);
    d.act = config_text(n, d.gemma ? "hidden_activation" : "hidden_act", "silu");
    p->prefix = "model.";
    p->stack = MHA_DEC;
    const double *tok = pass_tensor(p, true, "embed_tokens.weight");
    double *x = pass_memory(p, d.T * d.D);
    for (size_t t = 0; t < d.T; t++)
        add(x + t * d.D, tok + (size_t)p->doc->ids[t] * d.D, d.D);
    if (d.gemma)
        scale_by(x, d.T * d.D, sqrt((double)d.D));
    pass_nudge(p, MHA_SITE_EMBED, MHA_SELF, x, d.D, 0);
    pass_freeze(p, NAIVE_EMBED, x, d.T * d.D);
    size_t layers = (size_t)config_number(n, "num_hidden_layers", 0);
    for (p->layer = 0; p->layer < layers; p->layer++)
        llama_block(&d, x);
    x = rms_norm(p, x, d.T, d.D, pass_tensor(p, true, "norm.weight"), d.plus, d.eps);
    read_out(p, x, d.T, d.D, "embed_tokens.weight");
}
