/* attention.h: the row-block attention core: between projected q, k, v and the heads' outputs z. */
#ifndef MHA_ENGINE_ATTENTION_H
#define MHA_ENGINE_ATTENTION_H

#include "engine/engine.h"
#include "engine/mask.h"

/* One attention step on one batch. q is overwritten by z, block by block. */
typedef struct mha_attention {
    mha_forward *f;
    const mha_attn_args *a;
    float *q;           /* [Nq, H·K] */
    const float *k, *v; /* [Nk, G·K]; v is NULL when depth is SCORES */
    /* What the rows of global tokens see instead, or NULL; their queries are in q already. */
    const float *k_global, *v_global;
    const mha_rows *queries, *keys;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer, sites; /* bit set of the sites that probes want of this step */
    mha_depth depth;
    const float *open; /* [Nq, H·K] the output gate, or NULL */
    /* Kept for the reverse pass, or NULL: z before the heads' gates [Nq, H·K], and also before the
     * output gate, [H, Nq]. */
    float *z, *opened, *lse;
} mha_attention;

/* Runs all heads over all documents of the batch and delivers STATS, SCORES, PATTERN and Z. */
mha_status mha_attention_run(mha_attention *t, mha_err *err);

/* Gradients through the same core: dz [Nq, H·K] of z before gates in, dq over saved->q, dk and dv
 * [Nk, G·K] (zeroed here) out. Delivers D_PATTERN and D_SCORES. */
typedef struct mha_attention_back {
    mha_forward *f;
    const mha_attn_args *a;
    const mha_saved *saved;
    const float *dz;
    float *dk, *dv;
    float *dk_global, *dv_global; /* zeroed by the caller; NULL without saved->k_global */
    const mha_rows *queries, *keys;
    const mha_watch *watch;
    const struct mha_weights *weights; /* wants the table of relative positions, or NULL */
    mha_kind kind;
    uint32_t sites; /* bit set of the sites that probes want of this step */
} mha_attention_back;
mha_status mha_attention_back_run(mha_attention_back *t, mha_err *err);

/* The position biases of head h: for buckets bias[x] of relative positions x − (T − 1), x < T + S −
 * 1; for ALiBi bias[j] of key positions j < S. */
void mha_bias_fill(const mha_attn_args *a, uint32_t h, size_t T, size_t S, float *bias);
/* What a query adds to its scores: the slice that starts there, given how many queries follow it.
 * ALiBi is the same for all: a constant for each query changes no softmax. */
const float *mha_bias_row(const mha_attn_args *a, const float *bias, size_t following);

/* The bucket of a relative position r = key − query (methods F): exact up to a half, then by
 * logarithm, the last bucket from max_distance on. The logarithm is float32 like the reference's.
 */
uint32_t mha_bias_bucket(int64_t r, uint32_t buckets, uint32_t max_distance, bool bidirectional);

#endif
