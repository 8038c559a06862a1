/* bind_attn.c: what the arguments of an attention step say together: head counts and widths, masks,
 * rotary frequencies, position biases, norms of queries and keys. May not look at tensors. */
#include "base/fail.h"
#include "model/binder.h"
#include "model/rope.h"
#include <math.h>
#include <string.h>

static mha_status bind_rope(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    if (a->rope_width == 0)
        a->rope_width = a->width;
    if (d->theta.kind != MHA_VALUE_NUMBER)
        return mha_bind_misfit(b, s, "rope needs theta=NUMBER");
    const json_t *scaling = d->scaling.kind == MHA_VALUE_JSON ? d->scaling.json : NULL;
    if (d->scaling.kind != MHA_VALUE_JSON && d->scaling.kind != MHA_VALUE_NULL)
        return mha_bind_misfit(b, s, "scaling is not an object");
    if (d->divisors != NULL && d->divisor_count != a->rope_width / 2)
        return mha_bind_misfit(b, s, "%u divisors for %u frequencies", d->divisor_count,
                               a->rope_width / 2);
    for (size_t i = 0; i < MHA_ROPE_CACHE; i++) {
        const mha_rope_entry *e = &b->rope[i];
        if (e->freq != NULL && e->width == a->rope_width && e->theta == d->theta.number &&
            e->scaling == scaling && e->divisors == d->divisors) {
            a->rope_freq = e->freq;
            a->rope_mscale = e->mscale;
            return MHA_OK;
        }
    }
    float *freq;
    mha_rope_settings settings = {a->rope_width, a->width,    d->theta.number,
                                  scaling,       d->divisors, d->positions};
    MHA_TRY(mha_arena_alloc((void **)&freq, b->memory, a->rope_width / 2, sizeof *freq, b->err));
    mha_status status = mha_rope_fill(freq, &a->rope_mscale, &settings, b->err);
    if (status != MHA_OK)
        return mha_fail_prefix(b->err, status, b->config_file);
    a->rope_freq = freq;
    b->rope[b->rope_next++ % MHA_ROPE_CACHE] = (mha_rope_entry){
        a->rope_width, d->theta.number, scaling, d->divisors, freq, a->rope_mscale};
    return MHA_OK;
}

/* The table of relative positions: [buckets, H]. */
static mha_status bind_bias(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    a->bias = MHA_BIAS_BUCKETS;
    a->bias_buckets = d->bucket_count / a->heads;
    /* half of the buckets of a side are single distances, the others grow up to `distance` */
    uint32_t exact = a->bias_buckets / (a->bias_bidirectional ? 4 : 2);
    if (d->bucket_count % a->heads != 0 || exact == 0 || a->bias_max_distance <= exact)
        return mha_bind_misfit(b, s,
                               "%u numbers for %u heads and distance %u are no table of buckets",
                               d->bucket_count, a->heads, a->bias_max_distance);
    return MHA_OK;
}

static mha_status qk_norm(const mha_binder *b, const mha_spec_step *s, const mha_draft *d,
                          const char *name, mha_norm_args *norm)
{
    if (norm->n == 0)
        return MHA_OK;
    if (norm->n != d->step.attn.width)
        return mha_bind_misfit(b, s, "%s has %u gains for heads of %u", name, norm->n,
                               d->step.attn.width);
    norm->kind = (mha_norm_kind)d->qk_norm;
    norm->eps = d->qk_eps;
    return MHA_OK;
}

mha_status mha_bind_attention(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_attn_args *a = &d->step.attn;
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    if (a->heads == 0 || a->heads > UINT16_MAX || a->width == 0)
        return mha_bind_misfit(b, s, "%u heads of width %u", a->heads, a->width);
    if (a->heads % a->kv_heads != 0)
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
    MHA_TRY(mha_bind_linear_check(b, s, "o", &a->o, a->o.out, (uint32_t)inner));
    if (a->keys == MHA_KEYS_MEMORY && (d->causal || a->window > 0 || a->rope != MHA_ROPE_NONE))
        return mha_bind_misfit(b, s, "memory has no order: no causal, window or rope");
    a->mask = d->causal ? (a->window > 0 ? MHA_MASK_CAUSAL_WINDOW : MHA_MASK_CAUSAL)
                        : (a->window > 0 ? MHA_MASK_WINDOW : MHA_MASK_FULL);
    MHA_TRY(qk_norm(b, s, d, "q_norm", &a->q_norm));
    MHA_TRY(qk_norm(b, s, d, "k_norm", &a->k_norm));
    a->rope_mscale = 1;
    if (a->rope != MHA_ROPE_NONE)
        MHA_TRY(bind_rope(b, s, d));
    else
        a->rope_width = 0;
    if (a->bias_table != NULL)
        MHA_TRY(bind_bias(b, s, d));
    if (a->softcap < 0)
        return mha_bind_misfit(b, s, "softcap = %g is negative", (double)a->softcap);
    b->width[s->dst] = a->o.out;
    return MHA_OK;
}
