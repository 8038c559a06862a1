/* mha/run.h: running a model on documents, with probes watching.
 *
 * Documents are packed, never padded: a batch is one matrix of all their tokens, and attention
 * never crosses a document. Results do not depend on the number of threads. */
#ifndef MHA_RUN_H
#define MHA_RUN_H

#include "mha/probe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mha_engine mha_engine;

typedef struct mha_engine_options {
    size_t threads;  /* 0: one for each processor */
    const char *isa; /* NULL: the best one, or the environment's MHA_ISA */
    uint64_t memory; /* bytes that a run may plan for beyond the mapped weights; 0: no limit */
} mha_engine_options;

/* One term of a document's loss, read off row `row` of the read-out (of the decoder where there are
 * two stacks; row 0 for a CLASS head). Cross-entropy of `id` in nats, or, with against >= 0,
 * logit[against] − logit[id]: lower is better in both. A document's loss is the mean of its terms.
 */
typedef struct mha_prediction {
    uint32_t row;
    int32_t id, against; /* against −1: cross-entropy */
} mha_prediction;

/* The caller's own loss of one term. logits: [n] of its row, as the model gives them (after a
 * softcap). Returns the loss and, where gradient is not NULL, fills gradient [n] with its
 * derivative by each logit. Called from several threads at once, for different terms. A loss that
 * is NaN or infinite ends the run (MHA_ERR_NUMERIC). */
typedef struct mha_own_loss {
    double (*term)(void *context, const mha_prediction *p, const float *logits, size_t n,
                   float *gradient);
    void *context;
} mha_own_loss;

/* What a closed gate lets through instead of a head's own output z. z[a] is [rows, H·K] of
 * attention step a; rows is 1 for a mean that all positions share, else at least the document's
 * length. */
typedef struct mha_fill {
    const float *const *z; /* [A]; an entry may be NULL: zero */
    size_t rows;
} mha_fill;

/* One document: token ids exactly as they are fed; or, for a model of graphs, one graph. */
typedef struct mha_document {
    const int32_t *ids; /* [n], n >= 1; not read with features */
    size_t n;
    const float *features; /* [channels, height, width] for a model that reads features instead of
                              ids: n is then mha_model_info.signal.rows */
    /* [n, n, C] numbers about token i and token j, for a model that reads some of each pair
     * (mha_model_info.pair_width); NULL: none. They are the model's own input: nothing norms them.
     */
    const float *pair;
    const uint8_t *types;      /* [n] token types, NULL: 0 */
    const uint8_t *special;    /* [n] 1 for special tokens, NULL: unknown */
    const uint8_t *global;     /* [n] 1 for global tokens, of a model that has some; NULL: its own
                                  choice (none, the first token, or the question) */
    const int32_t *target_ids; /* [target_n] what a decoder with memory is fed, NULL: none */
    size_t target_n;
    const uint8_t *target_special;
    /* So many of the last tokens of a decoder's side were generated: they are fed one by one behind
     * a key/value cache, as generation does it. Watched can be PATTERN, SCORES and STATS then; a
     * row's block ends at the keys that there were. 0: all at once. */
    size_t generated;
    const struct mha_graph *graph; /* mha/input.h; then n is its nodes, and nobody reads ids */
    const float *gates;   /* [A, H] by attention step (order of mha_model_info.attn) and head: z of
                             each   head becomes gate·z + (1 − gate)·fill. NULL: all 1. H is the
                             largest   count of heads of any step: mha_engine_gate_heads. */
    const mha_fill *fill; /* NULL: zero */
    const mha_prediction *predict; /* [predict_n] terms of the loss, by rising row */
    size_t predict_n;
    const mha_own_loss *own; /* of those terms, whose ids then mean what the caller wants; NULL:
                                cross-entropy or difference */
} mha_document;

/* Makes an engine for one model: thread pool, kernels, scratch that is reused from run to run.
 * The model must outlive it. options may be NULL. */
mha_status mha_engine_new(mha_engine **out, const mha_model *model,
                          const mha_engine_options *options, mha_err *err);
void mha_engine_free(mha_engine *e);
size_t mha_engine_threads(const mha_engine *e);
const char *mha_engine_isa(const mha_engine *e);

/* What a run would take, without running. */
typedef struct mha_plan_info {
    uint64_t bytes;         /* activations and scratch, beyond the mapped weights */
    uint64_t multiply_adds; /* of all matrix products */
    size_t batches;
    uint32_t layers[MHA_STACK_COUNT]; /* blocks that would run in each stack */
} mha_plan_info;
mha_status mha_engine_plan(mha_engine *e, const mha_document *docs, size_t count,
                           const mha_probe *const *probes, size_t probe_count, mha_plan_info *out,
                           mha_err *err);

/* Progress of a long run: done of total units of work; non-zero return cancels. */
typedef int (*mha_progress)(void *context, double done, double total);

/* Runs the documents in order, in batches that depend on the documents only. Stops after the last
 * layer that any probe wants; the read-out runs only for MHA_SITE_LOGITS.
 * MHA_ERR_LIMIT: a document is empty or longer than the model's position table, or an id is outside
 * the vocabulary (checked before anything runs); MHA_ERR_NOMEM: over the memory limit;
 * MHA_ERR_NUMERIC: NaN or infinity in the activations, with layer and site; MHA_ERR_CANCELLED. */
mha_status mha_engine_run(mha_engine *e, const mha_document *docs, size_t count,
                          const mha_probe *const *probes, size_t probe_count, mha_progress progress,
                          void *progress_context, mha_err *err);

/* Row length of a document's gates. */
size_t mha_engine_gate_heads(const mha_engine *e);

/* Loss of each document in nats (NaN for one without terms) and how many of its terms had their id
 * as the most likely one; hits may be NULL. Only rows that have terms are read out. The errors of
 * mha_engine_run, and MHA_ERR_ARG for a model without a read-out or a term outside its rows. */
mha_status mha_engine_loss(mha_engine *e, const mha_document *docs, size_t count, double *loss,
                           size_t *hits, mha_progress progress, void *progress_context,
                           mha_err *err);

/* Gradient of the sum of all documents' losses by one stored tensor. */
typedef struct mha_weight_gradient {
    const char *tensor; /* its name in the files: a plain float tensor that a step uses */
    float *out;         /* [elements] in the order of the file; the gradient is added to it */
} mha_weight_gradient;

/* What the parts of a model wrote into one document's logits, read in one direction: with norms at
 * the scale that they had, and logits before any softcap (direct logit attribution). The direction
 * is that of each term's loss: logit[against] − logit[id], or, of a cross-entropy, the mean of all
 * logits, each weighted with its probability as it stands, − logit[id]. Negative lowers the loss.
 * value = all heads + embed + mlp + bias, but for rounding. */
typedef struct mha_direct {
    double value; /* mean over the document's terms, as is every part */
    double size;  /* of the logits that value is a difference of: the sum of both sides' means */
    double embed; /* what the first block reads */
    double mlp;   /* all MLPs together, with their own biases */
    double bias;  /* output projections, norms, linear steps and the read-out */
} mha_direct;

/* What mha_engine_gradient writes; what is NULL is not computed. */
typedef struct mha_gradient {
    double *loss;  /* [documents] */
    double *gates; /* [documents, A, H] ∂loss/∂gate of each document's own loss */
    /* [documents] Makes the reverse pass a direct one, which follows the residual stream only:
     * `gates` is then what each head wrote (0 for an encoder's head whose decoder reads it through
     * keys and values), gates and fills included, and no site below D_Z comes. NULL: gradients. */
    mha_direct *direct;
    size_t *hits; /* [documents] */
    /* Watch the pass: values of forward sites (but LOGITS) as it goes up, gradients of the sites
     * MHA_SITE_D_… as it comes down again, batch by batch. A batch without any term is not
     * reversed: its gradients are 0 and do not come. */
    const mha_probe *const *probes;
    size_t probe_count;
    const mha_weight_gradient *weights;
    size_t weight_count;
} mha_gradient;

/* Losses and their gradients. Documents never share the gradient of a gate or a site: order and
 * batching change nothing. The errors of mha_engine_loss; MHA_ERR_ARG for a tensor that has no
 * gradient, for a probe of LOGITS, for weights of a direct pass and for the direct pass of a loss
 * of the caller's own; MHA_ERR_UNSUPPORTED for a tensor of a block type, and a direct pass where an
 * activation stands between the stream and the logits.
 */
mha_status mha_engine_gradient(mha_engine *e, const mha_document *docs, size_t count,
                               const mha_gradient *out, mha_progress progress,
                               void *progress_context, mha_err *err);

/* The bytes that gradients of gates, or a direct pass, would take beyond the weights, without
 * running; MHA_ERR_NOMEM over the memory limit. */
mha_status mha_engine_gradient_bytes(mha_engine *e, const mha_document *docs, size_t count,
                                     bool direct, uint64_t *bytes, mha_err *err);

/* Losses with one head at a time taken out: variant[d][a][h] is document d's loss with the gate of
 * head h of attention step a set to 0 (its fill let through). Exact, and shares the work below the
 * head: about half of one full pass a head. */
typedef struct mha_ablation {
    double *base;    /* [documents] */
    double *variant; /* [documents, A, H] */
    size_t *hits;    /* [documents, A, H] or NULL */
    /* Multiply-adds of the matrix products that ran, all and those of the blocks alone; and what
     * one full pass for each head would have taken. */
    uint64_t multiply_adds, block_multiply_adds;
    uint64_t naive_multiply_adds, naive_block_multiply_adds;
} mha_ablation;
mha_status mha_engine_ablate(mha_engine *e, const mha_document *docs, size_t count,
                             mha_ablation *out, mha_progress progress, void *progress_context,
                             mha_err *err);

/* The bytes that it would take beyond the weights, without running; MHA_ERR_NOMEM over the memory
 * limit. */
mha_status mha_engine_ablate_bytes(mha_engine *e, const mha_document *docs, size_t count,
                                   uint64_t *bytes, mha_err *err);

/* Checks one document against the model without running it: the errors of mha_engine_run. */
mha_status mha_engine_check(const mha_engine *e, const mha_document *doc, mha_err *err);

/* Step-by-step generation with a key/value cache. The document's ids (and its target_ids for a
 * decoder with memory) are the prompt. logits: [vocab], of the next token after what was fed. */
typedef struct mha_decoder mha_decoder;
mha_status mha_decoder_new(mha_decoder **out, mha_engine *e, const mha_document *prompt,
                           size_t capacity, mha_err *err);
void mha_decoder_free(mha_decoder *d);
/* Borrowed until the next step. */
const float *mha_decoder_logits(const mha_decoder *d);
/* A second decoder in the state of `from`. */
mha_status mha_decoder_fork(mha_decoder **out, const mha_decoder *from, mha_err *err);
/* Gives `to`, a fork of the same decoder, the state of `from`. */
void mha_decoder_copy(mha_decoder *to, const mha_decoder *from);
/* Feeds one more token. MHA_ERR_LIMIT past the capacity or the position table. */
mha_status mha_decoder_step(mha_decoder *d, int32_t id, mha_err *err);

#ifdef __cplusplus
}
#endif
#endif
