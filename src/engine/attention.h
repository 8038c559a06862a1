/* attention.h: the row-block attention core: between projected q, k, v and the heads' outputs z. */
#ifndef MHA_ENGINE_ATTENTION_H
#define MHA_ENGINE_ATTENTION_H

#include "engine/engine.h"

/* One attention step on one batch. q is overwritten by z, block by block. */
typedef struct mha_attention {
    mha_forward *f;
    const mha_attn_args *a;
    float *q;           /* [Nq, H·K] */
    const float *k, *v; /* [Nk, G·K]; v is NULL when depth is SCORES */
    const mha_rows *queries, *keys;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer, sites; /* bit set of the sites that probes want of this step */
    mha_depth depth;
} mha_attention;

/* Runs all heads over all documents of the batch and delivers STATS, SCORES, PATTERN and Z. */
mha_status mha_attention_run(mha_attention *t, mha_err *err);

/* The visible keys [*lo, *hi) of query i (counted among the keys) under the step's mask. */
void mha_mask_span(const mha_attn_args *a, size_t i, size_t keys, size_t *lo, size_t *hi);

/* T5's bucket of a relative position r = key − query (methods F): exact up to a half, then by
 * logarithm, the last bucket from max_distance on. The logarithm is float32 like the reference's.
 */
uint32_t mha_bias_bucket(int64_t r, uint32_t buckets, uint32_t max_distance, bool bidirectional);

#endif
