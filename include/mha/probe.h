/* mha/probe.h: watching what every head does while the forward pass runs.
 *
 * A probe says first what it wants, then gets it in row blocks: nothing unwanted is computed or
 * kept, and no T×S map ever exists unless a probe builds one from the blocks it is given. */
#ifndef MHA_PROBE_H
#define MHA_PROBE_H

#include "mha/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a value is taken. Per head: [rows, S] or [rows, K] blocks of one head. Per layer: [rows, D]
 * blocks with head 0. K is the head width. */
typedef enum mha_site {
    MHA_SITE_STATS = 0, /* row statistics of the pattern, see mha_row_stats; data is NULL */
    MHA_SITE_PATTERN,   /* [rows, S] attention weights, masked entries exactly 0 */
    MHA_SITE_SCORES,    /* [rows, S] what enters the softmax; masked entries −∞ */
    MHA_SITE_Q,         /* [rows, K] after its norm and rotary, before the scale */
    MHA_SITE_K,         /* [rows of keys, K] of key/value head `head` */
    MHA_SITE_V,         /* [rows of keys, K] of key/value head `head`, as projected */
    /* The second projections of a model with global tokens: what the rows of those are made with.
     */
    MHA_SITE_Q_GLOBAL, /* [rows, K] */
    MHA_SITE_K_GLOBAL, /* [rows of keys, K] */
    MHA_SITE_V_GLOBAL, /* [rows of keys, K] */
    MHA_SITE_Z,        /* [rows, K] head output after gates, before W_O */
    MHA_SITE_HEAD_OUT, /* [rows, D] z·W_O of one head, without bias */
    MHA_SITE_ATTN_OUT, /* [rows, D] Σ_h z·W_O + b_O of an attention step; comes after its heads */
    MHA_SITE_EMBED,    /* [rows, D] the first block's input */
    MHA_SITE_RESID,    /* [rows, D] the residual stream after a whole block */
    MHA_SITE_HIDDEN,   /* [rows, D] after the last stack's final norm */
    MHA_SITE_LOGITS,   /* [rows, V] or [1, classes] */
    MHA_SITE_COUNT,

    /* Sites of the reverse pass (mha_engine_gradient): ∂loss/∂ the site of the same name, of each
     * document's own loss. Masked entries are exactly 0. The gradient of HEAD_OUT is that of
     * ATTN_OUT for every head. */
    MHA_SITE_D_PATTERN = MHA_SITE_COUNT, /* [rows, S], with mha_block.weights */
    MHA_SITE_D_SCORES,                   /* [rows, S], with mha_block.weights */
    MHA_SITE_D_Q,                        /* [rows, K] */
    MHA_SITE_D_K,        /* [rows of keys, K], summed over the heads that share it */
    MHA_SITE_D_V,        /* [rows of keys, K], summed over the heads that share it */
    MHA_SITE_D_Z,        /* [rows, K] of the gated z */
    MHA_SITE_D_ATTN_OUT, /* [rows, D] */
    MHA_SITE_D_EMBED,    /* [rows, D] */
    MHA_SITE_D_RESID,    /* [rows, D] */
    MHA_SITE_D_HIDDEN,   /* [rows, D] */
    MHA_SITE_ALL_COUNT
} mha_site;
const char *mha_site_name(mha_site site); /* "pattern", "head_out", … as in array names */

/* Statistics of one row of attention weights p over its visible keys; sums in double.
 * Undefined values are NaN (see each). Positions count tokens of the document. */
typedef struct mha_row_stats {
    uint32_t visible;  /* keys that the mask lets through; 0: all others NaN */
    double entropy;    /* −Σ p ln p, nats; with a sink over the keys, renormalised */
    double max_weight; /* max p */
    double distance;   /* Σ p·|i − j|, self-attention only */
    double offset;     /* Σ p·(j − i), self-attention only */
    double self, prev, next, first; /* p at j = i, i−1, i+1, 0; NaN where that key is not visible
                                       or the attention is not self-attention */
    double special; /* mass on the document's special tokens; NaN when it has no flags */
    double sink;    /* mass that went to the learned sink; 0 without one */
} mha_row_stats;

/* A block of consecutive query rows (for K and V: key rows) of one document. */
typedef struct mha_block {
    mha_site site;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer;
    uint32_t head;     /* index on axis H (for K and V: on axis G); 0 for per-layer sites */
    size_t document;   /* index in the caller's array */
    size_t first;      /* first row of the block, in positions of the document */
    size_t rows, cols; /* data is [rows, cols] with `stride` floats from row to row */
    size_t total_rows; /* rows of the whole array: T of the document (S for K and V) */
    const float *data;
    size_t stride;
    const mha_row_stats *stats; /* [rows], only for MHA_SITE_STATS */
    const float *weights;       /* [rows, cols], same stride: the attention weights beside their
                                   gradients, only for MHA_SITE_D_PATTERN and _D_SCORES */
    const uint32_t *target; /* [cols] of patterns, scores and their gradients over the edges of a
                               graph, which are one row [1, E]: the node that each edge ends in */
} mha_block;

/* A probe. For one site and one (layer, head) blocks arrive in document and row order (batch by
 * batch where the reverse pass is watched: layers come from the last to the first), from one thread
 * at a time; different heads may arrive at the same time from different threads, as `worker`
 * tells (0 <= worker < threads of the engine). A non-zero return ends the run, which then returns
 * MHA_ERR_CANCELLED. */
typedef struct mha_probe {
    uint32_t sites; /* bit set: 1u << MHA_SITE_PATTERN | … */
    /* Whether this (stack, kind, layer, head) is wanted; head is UINT32_MAX for "any head of that
     * layer". NULL: all. Per-layer sites are asked with kind MHA_SELF and head UINT32_MAX. */
    bool (*wants)(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head);
    int (*deliver)(void *context, const mha_block *block, size_t worker);
    void *context;
} mha_probe;

#ifdef __cplusplus
}
#endif
#endif
