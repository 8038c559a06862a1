/* bind_attn.c: what the arguments of an attention step say together: head counts and widths, masks,
 * rotary frequencies, position biases, norms of queries and keys. May not look at tensors. */
#include "base/fail.h"
#include "base/half.h"
#include "model/binder.h"
#include <math.h>
#include <string.h>

static bool same_rope(const mha_rope_settings *a, const mha_rope_settings *b)
{
    return a->width == b->width && a->head_width == b->head_width && a->theta == b->theta &&
           a->scaling == b->scaling && a->divisors == b->divisors &&
           a->long_divisors == b->long_divisors && a->positions == b->positions &&
           a->original == b->original;
}

static mha_status fill_rope(mha_binder *b, const mha_rope_settings *s, mha_rope_entry *e)
{
    float *freq, *longer;
    uint32_t n = s->width / 2;
    MHA_TRY(mha_arena_alloc((void **)&freq, b->memory, n, sizeof *freq, b->err));
    MHA_TRY(mha_arena_alloc((void **)&longer, b->memory, n, sizeof *longer, b->err));
    mha_status status = mha_rope_fill(freq, &e->mscale, s, b->err);
    if (status == MHA_OK)
        status = mha_rope_fill_long(longer, &e->long_from, s, b->err);
    if (status != MHA_OK)
        return mha_fail_prefix(b->err, status, b->config_file);
    e->settings = *s;
    e->freq = freq;
    e->freq_long = e->long_from > 0 ? longer : NULL;
    return MHA_OK;
}

static mha_status bind_rope(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    if (a->rope_width == 0)
        a->rope_width = a->width;
    if (d->theta.kind != MHA_VALUE_NUMBER)
        return mha_bind_misfit(b, s, "rope needs theta=NUMBER");
    if (d->scaling.kind != MHA_VALUE_JSON && d->scaling.kind != MHA_VALUE_NULL)
        return mha_bind_misfit(b, s, "scaling is not an object");
    uint32_t half = a->rope_width / 2;
    if ((d->divisors != NULL && d->divisor_count != half) ||
        (d->long_divisors != NULL && d->long_divisor_count != half))
        return mha_bind_misfit(b, s, "%u and %u divisors for %u frequencies", d->divisor_count,
                               d->long_divisor_count, half);
    const mha_rope_settings settings = {
        .width = a->rope_width,
        .head_width = a->width,
        .theta = d->theta.number,
        .scaling = d->scaling.kind == MHA_VALUE_JSON ? d->scaling.json : NULL,
        .divisors = d->divisors,
        .long_divisors = d->long_divisors,
        .positions = d->positions,
        .original = d->original,
    };
    mha_rope_entry *e = NULL;
    for (size_t i = 0; i < MHA_ROPE_CACHE && e == NULL; i++)
        if (b->rope[i].freq != NULL && same_rope(&b->rope[i].settings, &settings))
            e = &b->rope[i];
    if (e == NULL) {
        e = &b->rope[b->rope_next++ % MHA_ROPE_CACHE];
        MHA_TRY(fill_rope(b, &settings, e));
    }
    a->rope_freq = e->freq;
    a->rope_long = e->freq_long;
    a->rope_long_from = e->long_from;
    a->rope_mscale = e->mscale;
    if (d->frequencies != NULL && d->frequency_count != half)
        return mha_bind_misfit(b, s, "%u frequencies for %u pairs", d->frequency_count, half);
    if (d->frequencies != NULL)
        a->rope_freq = d->frequencies;
    return MHA_OK;
}

/* The table of relative positions: [buckets, H]. */
static mha_status bind_bias(const mha_binder *b, const mha_spec_step *s, mha_draft *d,
                            uint32_t heads)
{
    mha_attn_args *a = &d->step.attn;
    a->bias = MHA_BIAS_BUCKETS;
    a->bias_buckets = d->bucket_count / heads;
    /* half of the buckets of a side are single distances, the others grow up to `distance` */
    uint32_t exact = a->bias_buckets / (a->bias_bidirectional ? 4 : 2);
    if (d->bucket_count % heads != 0 || exact == 0 || a->bias_max_distance <= exact)
        return mha_bind_misfit(b, s,
                               "%u numbers for %u heads and distance %u are no table of buckets",
                               d->bucket_count, heads, a->bias_max_distance);
    return MHA_OK;
}

/* Slopes: with p the largest power of two <= H, m^1 … m^p of m = 2^(−8/p); the heads beyond p get
 * the odd powers of 2^(−4/p). Press et al. 2022, and its code for other numbers of heads. */
static mha_status bind_alibi(mha_binder *b, const mha_spec_step *s, mha_draft *d, uint32_t heads)
{
    mha_attn_args *a = &d->step.attn;
    float *slope;
    uint32_t p = 1;
    if (a->bias_table != NULL)
        return mha_bind_misfit(b, s, "alibi and buckets");
    MHA_TRY(mha_arena_alloc((void **)&slope, b->memory, heads, sizeof *slope, b->err));
    while (2 * p <= heads)
        p *= 2;
    float base = (float)exp2(-8.0 / p), extra = (float)exp2(-4.0 / p);
    for (uint32_t h = 0; h < heads; h++) {
        slope[h] = h < p ? powf(base, (float)(h + 1)) : powf(extra, (float)(2 * (h - p) + 1));
        if (a->bias_bf16)
            slope[h] = mha_bf16_round(slope[h]);
    }
    a->bias = MHA_BIAS_ALIBI;
    a->bias_table = slope;
    a->bias_factor = d->alibi;
    return MHA_OK;
}

/* The position biases are those of all heads that the model once had: keeps the columns of the
 * heads that are left. */
static mha_status keep_biases(mha_binder *b, mha_attn_args *a)
{
    const mha_narrow *n = &b->narrow;
    uint32_t rows = a->bias == MHA_BIAS_BUCKETS ? a->bias_buckets : 1;
    float *kept;
    if (!n->active || a->bias == MHA_BIAS_NONE)
        return MHA_OK;
    MHA_TRY(
        mha_arena_alloc((void **)&kept, b->memory, (size_t)rows * n->heads, sizeof *kept, b->err));
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t h = 0; h < n->heads; h++)
            kept[(size_t)r * n->heads + h] = a->bias_table[(size_t)r * n->all_heads + n->ids[h]];
    a->bias_table = kept;
    return MHA_OK;
}

/* Gains for one head, or for all of them together. */
static mha_status qk_norm(const mha_binder *b, const mha_spec_step *s, const mha_draft *d,
                          const char *name, mha_norm_args *norm, uint32_t heads)
{
    if (norm->n == 0)
        return MHA_OK;
    if (norm->n != d->step.attn.width && norm->n != heads * d->step.attn.width)
        return mha_bind_misfit(b, s, "%s has %u gains for %u heads of %u", name, norm->n, heads,
                               d->step.attn.width);
    norm->kind = (mha_norm_kind)d->qk_norm;
    norm->eps = d->qk_eps;
    return MHA_OK;
}

static mha_status bind_blocks(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    if (a->mask != MHA_MASK_FULL || a->keys == MHA_KEYS_MEMORY)
        return mha_bind_misfit(b, s, "blocks go with no other mask");
    a->mask = MHA_MASK_BLOCKS;
    a->window = d->block;
    return MHA_OK;
}

/* Second projections: global tokens have rows of their own kind under a window. */
static mha_status bind_globals(mha_binder *b, const mha_spec_step *s, const mha_attn_args *a,
                               uint32_t in)
{
    uint32_t inner = a->heads * a->width;
    MHA_TRY(mha_bind_linear_check(b, s, "q_global", &a->q_global, inner, in));
    MHA_TRY(mha_bind_linear_check(b, s, "k_global", &a->k_global, inner, in));
    MHA_TRY(mha_bind_linear_check(b, s, "v_global", &a->v_global, inner, in));
    if (a->mask != MHA_MASK_WINDOW || a->kv_heads != a->heads)
        return mha_bind_misfit(b, s,
                               "global tokens need a window that looks both ways, and as many "
                               "key/value heads as heads");
    if (b->model->stack_count > 1)
        return mha_bind_misfit(b, s, "only the first stack has global tokens");
    if (a->rope != MHA_ROPE_NONE || a->q_norm.n != 0 || a->k_norm.n != 0 || a->bias_table != NULL)
        return mha_bind_misfit(b, s, "global tokens have no rope, norms or position bias");
    return MHA_OK;
}

/* A table of relative positions and what makes keys or queries of it. With logarithmic buckets the
 * first half of a side are single distances, and the others must have some left. */
static mha_status bind_relative(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    uint32_t inner = a->heads * a->width, span = a->rel.out / 2;
    if (a->rel_k.data == NULL && a->rel_q.data == NULL)
        return mha_bind_misfit(b, s, "relative needs relative_k=…, relative_q=… or both");
    if (a->rel_k.data != NULL)
        MHA_TRY(mha_bind_linear_check(b, s, "relative_k", &a->rel_k, inner, a->rel.in));
    if (a->rel_q.data != NULL)
        MHA_TRY(mha_bind_linear_check(b, s, "relative_q", &a->rel_q, inner, a->rel.in));
    if (a->rel.in_out || a->rel.out % 2 != 0 || span == 0)
        return mha_bind_misfit(b, s, "%u rows are no table of relative positions", a->rel.out);
    if (a->rel_norm.n != 0 && a->rel_norm.n != a->rel.in)
        return mha_bind_misfit(b, s, "relative_norm has %u gains for rows of %u", a->rel_norm.n,
                               a->rel.in);
    a->rel_norm.kind = (mha_norm_kind)d->qk_norm;
    a->rel_norm.eps = d->qk_eps;
    if (a->rel_buckets != 0 &&
        (a->rel_buckets != span || a->rel_buckets < 2 || a->rel_distance < a->rel_buckets / 2 + 2))
        return mha_bind_misfit(b, s, "%u buckets a side up to distance %u in a table of %u rows",
                               a->rel_buckets, a->rel_distance, a->rel.out);
    if (a->kv_heads != a->heads || a->keys != MHA_KEYS_SELF || a->q_global.data != NULL ||
        a->rope != MHA_ROPE_NONE || a->score != MHA_SCORE_DOT)
        return mha_bind_misfit(b, s,
                               "relative goes with plain heads over their own keys: no shared "
                               "keys, memory, global tokens or rope");
    return MHA_OK;
}

/* What makes a gate for every number of z, and a bias of what documents say about pairs of tokens:
 * the same C numbers for all steps. */
static mha_status bind_gate_pair(mha_binder *b, const mha_spec_step *s, mha_draft *d, uint32_t in)
{
    mha_attn_args *a = &d->step.attn;
    uint32_t *width = &b->model->info.pair_width;
    if (a->output_gate.data != NULL)
        MHA_TRY(
            mha_bind_linear_check(b, s, "output_gate", &a->output_gate, a->heads * a->width, in));
    if (a->output_gate.data != NULL && d->edges)
        return mha_bind_misfit(b, s, "edges have no output gate");
    if (a->pair == NULL || a->heads == 0)
        return MHA_OK;
    a->pair_width = d->pair_count / a->heads;
    if (d->pair_count % a->heads != 0 || a->pair_width == 0 ||
        (*width != 0 && *width != a->pair_width))
        return mha_bind_misfit(b, s, "pair: %u numbers for %u heads", d->pair_count, a->heads);
    if (a->keys != MHA_KEYS_SELF || a->mask != MHA_MASK_FULL || a->q_global.data != NULL)
        return mha_bind_misfit(b, s, "pair goes with the full mask over a step's own keys");
    *width = a->pair_width;
    return MHA_OK;
}

/* Additive scores: attention over the edges of a graph, which has no order and no distances. */
static mha_status bind_edges(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    uint32_t inner = a->heads * a->width;
    bool outer = a->a_q != NULL && a->a_k != NULL && a->a == NULL;
    bool within = a->a != NULL && a->a_q == NULL && a->a_k == NULL;
    if (a->score != MHA_SCORE_ADDITIVE || !d->edges)
        return mha_bind_misfit(b, s, "score=additive and edges belong together");
    if (!outer && !within)
        return mha_bind_misfit(b, s, "an additive score needs a=…, or both a_q=… and a_k=…");
    if ((outer && (d->a_q_count != inner || d->a_k_count != inner)) ||
        (within && d->a_count != inner))
        return mha_bind_misfit(b, s, "%u, %u and %u numbers for %u heads of %u", d->a_count,
                               d->a_q_count, d->a_k_count, a->heads, a->width);
    if (a->kv_heads != a->heads || a->keys != MHA_KEYS_SELF || a->mask != MHA_MASK_FULL ||
        a->rope != MHA_ROPE_NONE || a->bias != MHA_BIAS_NONE || a->sinks != NULL ||
        a->softcap != 0 || a->q_norm.n != 0 || a->k_norm.n != 0 || a->pair != NULL)
        return mha_bind_misfit(b, s, "edges go with additive scores and nothing else");
    if (b->model->features == 0)
        return mha_bind_misfit(b, s, "edges need a graph: nodes come first");
    a->mask = MHA_MASK_EDGES;
    return MHA_OK;
}

/* W_O, or what stands for it where heads are put side by side or averaged. */
static mha_status bind_merge(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    uint32_t inner = a->heads * a->width;
    if (d->merge != MHA_MERGE_PROJECT)
        MHA_TRY(
            mha_bind_plain(b, s, "o", &a->o, d->merge == MHA_MERGE_MEAN ? a->width : inner, inner));
    else if (a->o.data == NULL)
        return mha_bind_misfit(b, s, "needs o=…");
    if (d->out_bias_count != 0 && d->out_bias_count != a->o.out)
        return mha_bind_misfit(b, s, "%u biases for an output %u wide", d->out_bias_count,
                               a->o.out);
    return mha_bind_linear_check(b, s, "o", &a->o, a->o.out, inner);
}

mha_status mha_bind_attention(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    if (a->kv_heads == 0)
        a->kv_heads = a->heads; /* both 0 when all heads are pruned */
    const mha_narrow *n = &b->narrow;
    uint32_t all_heads = n->active ? n->all_heads : a->heads;
    a->head_ids = n->active ? n->ids : NULL;
    if (all_heads == 0 || all_heads > UINT16_MAX || a->width == 0)
        return mha_bind_misfit(b, s, "%u heads of width %u", a->heads, a->width);
    if (a->heads > 0 && a->heads % a->kv_heads != 0)
        return mha_bind_misfit(b, s, "%u heads cannot share %u key/value heads", a->heads,
                               a->kv_heads);
    uint64_t inner = (uint64_t)a->heads * a->width, shared = (uint64_t)a->kv_heads * a->width;
    if (inner > INT32_MAX)
        return mha_bind_misfit(b, s, "%u heads of width %u are too many", a->heads, a->width);
    uint32_t in = b->width[s->src], memory = a->keys == MHA_KEYS_MEMORY ? b->width[MHA_E] : in;
    if (memory == 0)
        return mha_bind_misfit(b, s, "no encoder ran before: keys=memory has nothing to read");
    MHA_TRY(mha_bind_linear_check(b, s, "q", &a->q, (uint32_t)inner, in));
    MHA_TRY(mha_bind_linear_check(b, s, "k", &a->k, (uint32_t)shared, memory));
    MHA_TRY(mha_bind_linear_check(b, s, "v", &a->v, (uint32_t)shared, memory));
    MHA_TRY(bind_merge(b, s, d));
    if (a->keys == MHA_KEYS_MEMORY && (d->causal || a->window > 0 || a->rope != MHA_ROPE_NONE))
        return mha_bind_misfit(b, s, "memory has no order: no causal, window or rope");
    a->mask = d->causal ? (a->window > 0 ? MHA_MASK_CAUSAL_WINDOW : MHA_MASK_CAUSAL)
                        : (a->window > 0 ? MHA_MASK_WINDOW : MHA_MASK_FULL);
    if (d->block > 0)
        MHA_TRY(bind_blocks(b, s, d));
    if (a->q_global.data != NULL || a->k_global.data != NULL || a->v_global.data != NULL)
        MHA_TRY(bind_globals(b, s, a, in));
    MHA_TRY(qk_norm(b, s, d, "q_norm", &a->q_norm, a->heads));
    MHA_TRY(qk_norm(b, s, d, "k_norm", &a->k_norm, a->kv_heads));
    a->rope_mscale = 1;
    if (a->rope != MHA_ROPE_NONE)
        MHA_TRY(bind_rope(b, s, d));
    else
        a->rope_width = 0;
    if (a->bias_table != NULL)
        MHA_TRY(bind_bias(b, s, d, all_heads));
    if (d->alibi != 0)
        MHA_TRY(bind_alibi(b, s, d, all_heads));
    MHA_TRY(keep_biases(b, a));
    if (a->rel.data != NULL)
        MHA_TRY(bind_relative(b, s, d));
    if (a->sinks != NULL && d->sink_count != a->heads)
        return mha_bind_misfit(b, s, "%u sinks for %u heads", d->sink_count, a->heads);
    MHA_TRY(bind_gate_pair(b, s, d, in));
    if (a->softcap < 0)
        return mha_bind_misfit(b, s, "softcap = %g is negative", (double)a->softcap);
    if (d->edges || a->score != MHA_SCORE_DOT)
        MHA_TRY(bind_edges(b, s, d));
    else if (a->scale == 0)
        return mha_bind_misfit(b, s, "needs scale=…");
    b->width[s->dst] = a->o.out;
    return mha_bind_part_rope(b, s, a);
}
