/* save_compare.c: whether two bound models run the same program: every number of every step that is
 * not a weight, but for the heads that one of them has lost. What a config of another format could
 * not say shows here. */
#include "model/save.h"
#include <math.h>
#include <stdio.h>

/* Numbers of GGUF files are float32, and configs hold them in decimals. */
static bool near(double a, double b)
{
    return fabs(a - b) <= 2e-6 * fmax(fabs(a), fabs(b));
}

static bool same_norm(const mha_norm_args *a, const mha_norm_args *b)
{
    return a->kind == b->kind && a->n == b->n && near((double)a->eps, (double)b->eps);
}

static bool same_floats(const float *a, const float *b, size_t n)
{
    if ((a == NULL) != (b == NULL))
        return false;
    for (size_t i = 0; a != NULL && i < n; i++)
        if (!near((double)a[i], (double)b[i]))
            return false;
    return true;
}

static const char *attention_differs(const mha_attn_args *a, const mha_attn_args *b)
{
    uint32_t half = a->rope_width / 2;
    if (a->width != b->width || a->keys != b->keys || !near((double)a->scale, (double)b->scale))
        return "scale";
    if (a->mask != b->mask || a->window != b->window || a->repeat != b->repeat)
        return "mask";
    if (!same_norm(&a->q_norm, &b->q_norm) || !same_norm(&a->k_norm, &b->k_norm))
        return "norm of queries and keys";
    if ((a->rope == MHA_ROPE_NONE) != (b->rope == MHA_ROPE_NONE) ||
        a->rope_width != b->rope_width || a->rope_long_from != b->rope_long_from ||
        !near((double)a->rope_mscale, (double)b->rope_mscale) ||
        !same_floats(a->rope_freq, b->rope_freq, half) ||
        !same_floats(a->rope_long, b->rope_long, half))
        return "rotary positions";
    if (a->bias != b->bias || a->bias_buckets != b->bias_buckets ||
        a->bias_max_distance != b->bias_max_distance ||
        a->bias_bidirectional != b->bias_bidirectional || a->bias_bf16 != b->bias_bf16 ||
        !near((double)a->bias_factor, (double)b->bias_factor))
        return "position bias";
    if (a->rel.out != b->rel.out || !same_norm(&a->rel_norm, &b->rel_norm) ||
        (a->rel_k.data == NULL) != (b->rel_k.data == NULL) ||
        (a->rel_q.data == NULL) != (b->rel_q.data == NULL) || a->rel_buckets != b->rel_buckets ||
        a->rel_distance != b->rel_distance)
        return "relative positions";
    if (!near((double)a->softcap, (double)b->softcap) || (a->sinks == NULL) != (b->sinks == NULL))
        return "softcap";
    return NULL;
}

static const char *step_differs(const mha_step *a, const mha_step *b)
{
    if (a->op != b->op || a->dst != b->dst || a->src != b->src)
        return "program";
    switch (a->op) {
    case MHA_OP_EMBED:
        return a->embed.kind == b->embed.kind && a->embed.offset == b->embed.offset &&
                       near((double)a->embed.scale, (double)b->embed.scale)
                   ? NULL
                   : "embedding";
    case MHA_OP_NORM:
        return same_norm(&a->norm, &b->norm) ? NULL : "norm";
    case MHA_OP_ATTN:
        return attention_differs(&a->attn, &b->attn);
    case MHA_OP_MLP:
        return a->mlp.width == b->mlp.width && a->mlp.act == b->mlp.act &&
                       (a->mlp.gate.data == NULL) == (b->mlp.gate.data == NULL)
                   ? NULL
                   : "activation";
    case MHA_OP_ACT:
        return a->act == b->act ? NULL : "activation";
    case MHA_OP_SCALE:
        return near((double)a->scale.by, (double)b->scale.by) &&
                       (a->scale.w == NULL) == (b->scale.w == NULL)
                   ? NULL
                   : "factor";
    case MHA_OP_CONV:
        return a->conv.kind == b->conv.kind && a->conv.size == b->conv.size &&
                       a->conv.stride == b->conv.stride && a->conv.rows == b->conv.rows &&
                       a->conv.skip == b->conv.skip
                   ? NULL
                   : "filters";
    case MHA_OP_POOL:
        return a->pool.kind == b->pool.kind && a->pool.id == b->pool.id &&
                       a->pool.skip == b->pool.skip
                   ? NULL
                   : "pooling";
    case MHA_OP_LOGITS:
        return !near((double)a->logits.softcap, (double)b->logits.softcap) ? "softcap"
               : a->logits.separator != b->logits.separator                ? "separator"
                                                                           : NULL;
    default:
        return NULL;
    }
}

static const char *steps_differ(const mha_steps *a, const mha_steps *b)
{
    if (a->count != b->count)
        return "program";
    for (size_t i = 0; i < a->count; i++) {
        const char *what = step_differs(&a->step[i], &b->step[i]);
        if (what != NULL)
            return what;
    }
    return NULL;
}

const char *mha_save_differs(const struct mha_model *a, const struct mha_model *b)
{
    const char *what = NULL;
    if (a->stack_count != b->stack_count || a->width != b->width || a->vocab != b->vocab)
        return "shape";
    for (size_t i = 0; i < a->stack_count && what == NULL; i++) {
        if (a->stack[i].layers != b->stack[i].layers)
            return "number of layers";
        what = steps_differ(&a->stack[i].prologue, &b->stack[i].prologue);
        for (uint32_t l = 0; l < a->stack[i].layers && what == NULL; l++)
            what = steps_differ(&a->stack[i].block[l], &b->stack[i].block[l]);
        if (what == NULL)
            what = steps_differ(&a->stack[i].epilogue, &b->stack[i].epilogue);
    }
    return what != NULL ? what : steps_differ(&a->head, &b->head);
}
