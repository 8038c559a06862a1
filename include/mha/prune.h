/* mha/prune.h: smaller models: which heads go, whether the weights can do without them, and the
 * directory that the smaller model is written to.
 *
 * Heads are marked in arrays [A, H] by attention step (order of mha_model_info.attn) and index on
 * axis H, with rows as long as those of mha_document.gates. */
#ifndef MHA_PRUNE_H
#define MHA_PRUNE_H

#include "mha/analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mha_prune_mode {
    MHA_PRUNE_SLICE = 0, /* rows of W_Q, W_K, W_V and columns of W_O leave the weights; all heads of
                            an attention step may go */
    MHA_PRUNE_MASK       /* columns of W_O become 0: nothing gets smaller, but the result is a model
                            like any other */
} mha_prune_mode;

typedef struct mha_prune {
    mha_prune_mode mode;
    const bool *remove;       /* [A, H] */
    const float *const *mean; /* [A] of [H·K], means of z: what removed heads wrote on average,
                                 mean·W_O, goes into the output bias. NULL: nothing does */
    bool force;               /* replaces a directory that holds a model */
    const char *tokenizer; /* text of a tokenizer.json to write beside the weights of a model that
                              has none as a file (GGUF), or NULL */
} mha_prune;

/* Which versions of Transformers open what is written, as far as known: a bit set. This library
 * always does. */
enum { MHA_OPENS_TRANSFORMERS_4 = 1, MHA_OPENS_TRANSFORMERS_5 = 2 };

typedef struct mha_pruned {
    size_t removed, left; /* heads */
    uint64_t parameters;  /* of the written model */
    uint64_t bytes;       /* of its weights */
    unsigned opens;
    const char *why; /* what keeps the other versions from it; NULL: nothing */
} mha_pruned;

/* Whether the request can be met. MHA_ERR_ARG: no head is marked, or heads that share keys and
 * values with heads that stay: the message names the nearest request. MHA_ERR_UNSUPPORTED says what
 * else stands against it: heads that no matrix W_O follows, a norm over all heads, weights that
 * layers share, no bias to fold means into, a GGUF file whose model has no Hugging Face form. */
mha_status mha_prune_check(const mha_model *model, const mha_prune *p, mha_err *err);
/* The request nearest to p that groups of shared keys and values allow: out [A, H]; a group is
 * whole when at least half of it is asked for, and one is when nothing else would be left of the
 * request. Returns whether that is p itself. */
bool mha_prune_nearest(const mha_model *model, const mha_prune *p, bool *out);

/* Writes the model without the marked heads in Hugging Face layout: config.json, weights (in as
 * many files as before), tokenizer and other small files. The directory appears whole or not at
 * all, and is opened once before it does. Heads keep their original numbers (mha_attn_info).
 * Blocks of GGUF files become float32, exactly. The errors of mha_prune_check; MHA_ERR_IO: the
 * directory cannot be written, or exists; MHA_ERR_CANCELLED. */
mha_status mha_prune_write(const mha_model *model, const char *path, const mha_prune *p,
                           mha_pruned *out, mha_progress progress, void *progress_context,
                           mha_err *err);

/* --- which heads ------------------------------------------------------------------------------ */

/* A search for the heads to remove (methods D5): units of heads, what each is worth, and how much
 * of the attention's multiply-adds may stay. */
typedef struct mha_prune_search {
    const mha_unit_place *units; /* [count] candidates; everything else stays */
    size_t count;
    const double *score;    /* [count] higher is worth more: Fisher information, as a rule */
    const double *gradient; /* [documents, count] ∂L/∂gate of each document's loss, or NULL */
    size_t documents;
    double tokens, target_tokens; /* of a document, on average; target: of an encoder–decoder's */
} mha_prune_search;

/* Marks in remove [A, H] the n units of least score. */
mha_status mha_prune_least(bool *remove, const mha_model *model, const mha_prune_search *s,
                           size_t n, mha_err *err);
/* Keeps the units of highest score for their cost until no further one fits into `budget` (a
 * fraction of what the attention of all heads costs: projections, scores, weighted values). With
 * gradients, exchanges units of an attention step while that lowers the squared norm of the sum of
 * the removed units' gradients: heads that make up for each other go together. MHA_ERR_ARG: the
 * budget is not between 0 and 1, or what has to stay is over it. */
mha_status mha_prune_fit(bool *remove, const mha_model *model, const mha_prune_search *s,
                         double budget, mha_err *err);
/* Multiply-adds of the attention of one document, without the marked heads (NULL: of all). */
double mha_prune_cost(const mha_model *model, const bool *remove, double tokens,
                      double target_tokens);

/* Means of z of every head over all rows of the documents, as mha_prune.mean takes them. The errors
 * of mha_engine_run, and MHA_ERR_ARG: an attention step that no document reaches. */
typedef struct mha_head_means mha_head_means;
mha_status mha_head_means_new(mha_head_means **out, mha_engine *e, const mha_model *model,
                              const mha_document *docs, size_t count, mha_progress progress,
                              void *progress_context, mha_err *err);
void mha_head_means_free(mha_head_means *m);
const float *const *mha_head_means_get(const mha_head_means *m); /* [A] of [H·K]; borrowed */

#ifdef __cplusplus
}
#endif
#endif
