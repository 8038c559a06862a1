/* mha/analysis.h: what the numbers of a run say about each head, and the model's own answers.
 *
 * An analysis is made for a model, gives a probe to a run, and is asked for its result afterwards:
 *
 *     mha_heads_new(&h, model, &options, &err);
 *     mha_heads_begin(h, docs, NULL, count, 0, &err);
 *     mha_engine_run(engine, docs, count, (const mha_probe *[]){mha_heads_probe(h)}, 1, …);
 *     mha_heads_result(h, &rows, &row_count, &err);
 *
 * Results do not depend on threads, or on how the documents were divided into runs. */
#ifndef MHA_ANALYSIS_H
#define MHA_ANALYSIS_H

#include "mha/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- descriptors of heads -------------------------------------------------------------------- */

typedef enum mha_heads_column {
    MHA_HEADS_ROWS = 0,
    MHA_HEADS_ENTROPY,
    MHA_HEADS_ENTROPY_NORM,
    MHA_HEADS_EFFECTIVE_KEYS,
    MHA_HEADS_MAX_WEIGHT,
    MHA_HEADS_DISTANCE,
    MHA_HEADS_OFFSET,
    MHA_HEADS_SELF_MASS,
    MHA_HEADS_PREV_MASS,
    MHA_HEADS_NEXT_MASS,
    MHA_HEADS_FIRST_MASS,
    MHA_HEADS_SPECIAL_MASS,
    MHA_HEADS_SINK_MASS,
    MHA_HEADS_COLUMNS
} mha_heads_column;

/* Name, unit and description of each column, [MHA_HEADS_COLUMNS]. */
const mha_column *mha_heads_columns(void);

typedef struct mha_heads_options {
    mha_choice choice;
    /* KEEP and MASS leave rows as they are: special_mass always stands in its own column, but under
     * MASS and RENORM a document of unknown special tokens is an error. RENORM: all other columns
     * describe the rows without special keys; rows with less than 1e-6 left are skipped and
     * counted. RENORM and words read the pattern itself, which is slower. */
    mha_special special;
    size_t resamples;  /* of the documents, for intervals; 0: none */
    double confidence; /* of the intervals, 0: 0.95 */
    uint64_t seed;
} mha_heads_options;

/* Means of one head; NaN where a column is not defined for it. */
typedef struct mha_head_row {
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer, head; /* head: the original number */
    double values[MHA_HEADS_COLUMNS];
    double lo[MHA_HEADS_COLUMNS], hi[MHA_HEADS_COLUMNS]; /* NaN without intervals, with fewer than
                                                            two documents, and for rows */
} mha_head_row;

typedef struct mha_heads mha_heads;

/* The model must outlive it; options may be NULL. */
mha_status mha_heads_new(mha_heads **out, const mha_model *model, const mha_heads_options *options,
                         mha_err *err);
void mha_heads_free(mha_heads *h);
/* Before each run: its documents, and the index of docs[0] in the whole corpus. Several runs may
 * follow each other in the order of the documents. words: [count] or NULL; rows are then those of
 * words (mha_view), and all runs have them or none. docs and words must outlive the run. Keeps
 * about 150 bytes a document and head. */
mha_status mha_heads_begin(mha_heads *h, const mha_document *docs, const mha_words *words,
                           size_t count, size_t first, mha_err *err);
const mha_probe *mha_heads_probe(const mha_heads *h); /* borrowed; good for all runs */

/* One row a chosen head, in the order of attention steps and heads; borrowed until the next call.
 * Mean over all rows of all documents; intervals are percentiles over resampled documents. */
mha_status mha_heads_result(mha_heads *h, const mha_head_row **rows, size_t *count, mha_err *err);
/* The same heads on one document alone, by its index in the whole corpus; no intervals. rows:
 * [mha_heads_count]. false when that document was not run. */
size_t mha_heads_count(const mha_heads *h);
bool mha_heads_document(const mha_heads *h, size_t document, mha_head_row *rows);
/* Rows that RENORM skipped, over all heads. */
uint64_t mha_heads_skipped(const mha_heads *h);

/* --- losses ---------------------------------------------------------------------------------- */

typedef enum mha_loss_kind {
    MHA_LOSS_AUTO = 0,   /* by the model's read-out */
    MHA_LOSS_NEXT,       /* tokens 1 … n − 1, each after those before it */
    MHA_LOSS_MASKED,     /* tokens that a mask stands for */
    MHA_LOSS_TARGET,     /* the decoder's tokens after its start token, and the end token */
    MHA_LOSS_CLASS,      /* the document's label */
    MHA_LOSS_LOGIT_DIFF, /* logit[worse] − logit[better] at the last position (a masked language
                            model: at the last mask token), or of two classes */
    MHA_LOSS_COUNT
} mha_loss_kind;
const char *mha_loss_name(mha_loss_kind kind); /* "auto", "next", …, "logit-diff" */

/* What a document is to predict, beyond its own tokens. */
typedef struct mha_truth {
    size_t index;  /* of the document in the whole corpus: what is drawn depends on it alone */
    int32_t label; /* CLASS; −1: none */
    int32_t end;   /* TARGET: the id after the target's last, −1: nothing is predicted there */
    const int32_t *unmasked; /* [unmasked_n] MASKED: the ids behind the mask tokens of the document,
                                of the same length; NULL: the tokens to mask are drawn */
    size_t unmasked_n;
} mha_truth;

typedef struct mha_loss_options {
    mha_loss_kind kind;
    double mask_rate;      /* MASKED: share of the tokens that are not special, at least one token;
                              0: 0.15 */
    int32_t mask_id;       /* MASKED; −1: unknown */
    int32_t better, worse; /* LOGIT_DIFF */
    uint64_t seed;
} mha_loss_options;

/* Documents with the terms of their loss: mha_document.predict. Each token to mask is replaced by
 * the mask token. Documents with nothing to predict are left out and counted. */
typedef struct mha_losses mha_losses;

/* truths: [count], NULL: nothing is known. docs, truths and what they point to must outlive it.
 * MHA_ERR_UNSUPPORTED: a model without a read-out, or of one output; MHA_ERR_ARG: a loss that is
 * not the model's; MHA_ERR_LIMIT: a label outside the model's classes or vocabulary;
 * MHA_ERR_FORMAT: `unmasked` does not fit its document. */
mha_status mha_losses_new(mha_losses **out, const mha_model *model, const mha_document *docs,
                          const mha_truth *truths, size_t count, const mha_loss_options *options,
                          mha_err *err);
void mha_losses_free(mha_losses *l);
mha_loss_kind mha_losses_kind(const mha_losses *l); /* never AUTO */
/* Those that predict something, in order; borrowed. */
const mha_document *mha_losses_documents(const mha_losses *l, size_t *count);
/* mha_truth.index of the i-th of them (without truths: its place among docs). */
size_t mha_losses_index(const mha_losses *l, size_t i);
size_t mha_losses_skipped(const mha_losses *l);
size_t mha_losses_terms(const mha_losses *l); /* of all documents together */

/* --- importance of heads --------------------------------------------------------------------- */

typedef enum mha_unit {
    MHA_UNIT_HEAD = 0,
    MHA_UNIT_KV_GROUP, /* the heads that read one key/value head */
    MHA_UNIT_LAYER     /* all heads of one attention step */
} mha_unit;

/* Heads `first` … `first + count − 1` (on axis H) of one attention step. */
typedef struct mha_unit_place {
    uint32_t step; /* position in mha_model_info.attn */
    uint32_t first, count;
    uint32_t number; /* HEAD: original number of the head; KV_GROUP: index of the group; LAYER: 0 */
} mha_unit_place;

/* What a score estimates, `score` being ranked and `rise` the estimated rise of the loss when the
 * unit is removed (methods D1, D2, D5, D6, D3, E9); all over a document first, then the mean of
 * documents. */
typedef enum mha_importance_method {
    MHA_GRADIENT = 0,    /* |∂L/∂gate|; rise −∂L/∂gate (Michel et al. 2019) */
    MHA_FISHER,          /* (∂L/∂gate)²; rise −∂L/∂gate (Kwon et al. 2022) */
    MHA_ABLATE_ZERO,     /* loss with the unit's output 0, less the loss with it */
    MHA_ABLATE_MEAN,     /* … with its mean over the reference's tokens in its place */
    MHA_ABLATE_RESAMPLE, /* … with another document's output at the same position; mean of draws */
    MHA_ALL_BUT_ONE,     /* rise when the unit is removed after all others of its attention step */
    MHA_SHAPLEY,         /* mean rise over random orders of removal (Held and Yang 2023) */
    MHA_L0,              /* chance that a learned gate stays open (Voita et al. 2019); no rise */
    MHA_DLA, /* direct logit attribution: minus what the unit itself wrote into the logits, in the
                direction of the loss (mha_direct); 0 for heads without a direct path */
    MHA_METHOD_COUNT
} mha_importance_method;
const char *mha_importance_name(mha_importance_method method); /* "gradient", "ablate-zero", … */

typedef struct mha_importance_options {
    mha_importance_method method;
    mha_unit unit;
    mha_choice choice; /* of the units; layers of it are not looked at */
    const mha_document
        *reference; /* ABLATE_MEAN, ABLATE_RESAMPLE: NULL: the documents themselves */
    size_t reference_count;
    size_t draws;       /* ABLATE_RESAMPLE: of each document, 0: 10; SHAPLEY: pairs of orders of
                           each document, 0: as many as make 25 in all */
    const float *gates; /* [A, H] of everything that is not removed: where earlier steps of pruning
                           have arrived; NULL: all open. */
    size_t resamples;   /* of the documents, for intervals; 0: none */
    double confidence;  /* 0: 0.95 */
    uint64_t seed;
    const char *partial; /* file that keeps what is there when the run ends or is cancelled, for the
                            caller to remove once the results are safe; NULL: none. Not for L0 */
    bool resume;         /* starts from that file, if it is there */
} mha_importance_options;

typedef struct mha_importance_row {
    mha_unit_place place;
    double score, rise;      /* rise is the contract's `signed` */
    double score_layer;      /* score over the l2 norm of its attention step's scores */
    double lo, hi;           /* of score; NaN without intervals */
    size_t rank;             /* 1: the most important */
    double rank_lo, rank_hi; /* whole numbers, or NaN */
} mha_importance_row;

/* What a user should see beside the scores; NaN where the method has none. */
typedef struct mha_importance_summary {
    size_t documents;
    double loss;        /* of the whole model, mean of documents */
    double reliability; /* split-half rank correlation of the whole, see D11; NaN below four
                           documents */
    double efficiency;  /* SHAPLEY: |Σ scores − (loss without units − loss)|, relative */
    double completeness; /* DLA: |Σ of all parts of the model − their value in the logits| over the
                            largest of them and of those logits, of the worst document */
    uint64_t multiply_adds, naive_multiply_adds; /* ABLATE_: as mha_ablation; 0: not counted */
} mha_importance_summary;

typedef struct mha_importance mha_importance;

/* Scores every chosen unit on the documents of `losses`, which must outlive it, as must the model.
 * The errors of mha_engine_loss, and MHA_ERR_ARG: no documents. DLA also those of a direct pass
 * (mha_gradient), and MHA_ERR_NUMERIC: the parts do not sum to the logits (completeness over 1e-4).
 */
mha_status mha_importance_run(mha_importance **out, mha_engine *e, const mha_model *model,
                              const mha_losses *losses, const mha_importance_options *options,
                              mha_progress progress, void *progress_context, mha_err *err);
/* The bytes that it would take beyond the weights, without running; MHA_ERR_NOMEM over the engine's
 * memory limit. */
mha_status mha_importance_bytes(uint64_t *out, mha_engine *e, const mha_model *model,
                                const mha_losses *losses, const mha_importance_options *options,
                                mha_err *err);
/* About how many forward passes over the documents that takes. */
double mha_importance_passes(const mha_model *model, const mha_losses *losses,
                             const mha_importance_options *options);
void mha_importance_free(mha_importance *m);
/* In the order of attention steps and heads; borrowed. */
const mha_importance_row *mha_importance_rows(const mha_importance *m, size_t *count);
const mha_importance_summary *mha_importance_summary_get(const mha_importance *m);
/* One document's own score and rise of unit `row`; false for a method that has none (L0). */
bool mha_importance_document(const mha_importance *m, size_t document, size_t row, double *score,
                             double *rise);
/* Agreement of two rankings of the same units: Spearman's and Kendall's (τ-b) rank correlation. */
mha_status mha_importance_agreement(const mha_importance *a, const mha_importance *b,
                                    double *spearman, double *kendall, mha_err *err);

/* --- pruning curves -------------------------------------------------------------------------- */

typedef enum mha_curve_mode {
    MHA_CURVE_KEPT = 0, /* by one ranking, the least important first */
    MHA_CURVE_RESCORED, /* ranked again at every step, with what is gone gone */
    MHA_CURVE_GREEDY    /* one by one the unit whose removal leaves the smallest loss: tried are
                           `candidates` units, half of them those of the least |∂L/∂gate|, half
                           those whose gradient promises the smallest rise (methods D7) */
} mha_curve_mode;

typedef struct mha_curve_options {
    mha_curve_mode mode;
    mha_importance_options ranking; /* method, unit, choice and so on; its partial is for KEPT */
    const double *scores; /* KEPT: [A, H] the ranking, in place of a method: for larger units that
                             of their first head; NULL: none. A unit of score NaN is not removed */
    size_t steps;         /* 0: 10; never more than units */
    size_t orders;        /* random orders for the band, 0: no band */
    size_t candidates;    /* GREEDY, 0: 10 */
    size_t resamples;     /* of the evaluation documents, for intervals; 0: none */
    double confidence;    /* 0: 0.95 */
    uint64_t seed;
    const char *partial; /* as of mha_importance_options */
    bool resume;
} mha_curve_options;

typedef struct mha_curve_band {
    double lo, mean, hi; /* 2.5 % and 97.5 % quantiles over random orders, and their mean */
} mha_curve_band;

/* After one step of removal; means over the evaluation documents. NaN without a band. */
typedef struct mha_curve_point {
    size_t removed;
    double fraction;     /* of the units that may be removed */
    double loss, metric; /* metric: the share of a document's predictions that are the likeliest (of
                            a logit difference: that are above 0) */
    mha_curve_band loss_random, metric_random;
    double loss_reverse, metric_reverse; /* the same units removed in the opposite order */
} mha_curve_point;

/* Summary numbers of metric/metric of the whole model, over the fraction removed; NaN where the
 * whole model's metric is 0. */
typedef struct mha_curve_summary {
    size_t documents;
    double area, area_lo, area_hi; /* under it, by trapezoids */
    double area_random, area_reverse;
    double keeps, keeps_lo, keeps_hi; /* the largest fraction where it is at least 0.99 */
    double reliability; /* of the ranking, see mha_importance_summary; NaN for other modes */
} mha_curve_summary;

typedef struct mha_curve mha_curve;

/* ranking: documents that rank units, NULL with scores. evaluation: documents that measure, which
 * should be others. MHA_ERR_ARG: no documents, nothing to remove. */
mha_status mha_curve_run(mha_curve **out, mha_engine *e, const mha_model *model,
                         const mha_losses *ranking, const mha_losses *evaluation,
                         const mha_curve_options *options, mha_progress progress,
                         void *progress_context, mha_err *err);
void mha_curve_free(mha_curve *c);
/* The first is the whole model, the last is without all units. Borrowed. */
const mha_curve_point *mha_curve_points(const mha_curve *c, size_t *count);
/* Units in the order in which they were removed; borrowed. */
const mha_unit_place *mha_curve_order(const mha_curve *c, size_t *count);
const mha_curve_summary *mha_curve_summary_get(const mha_curve *c);

/* --- checks ---------------------------------------------------------------------------------- */

/* What a short run says about the engine on this model. */
typedef struct mha_checks {
    size_t tokens;         /* that were run */
    double row_sum_error;  /* max |Σ p − (1 − sink)| over all rows of all heads */
    double masked_mass;    /* max Σ p over keys that the mask hides */
    double head_sum_error; /* max |Σ_h z_h·W_O + b_O − output| over attention outputs, divided by
                              the largest |output| of its layer (at least 1) */
} mha_checks;

/* Runs the first max_tokens tokens or nodes of doc (0: 32) with all sites that the checks need. */
mha_status mha_checks_run(mha_checks *out, mha_engine *e, const mha_model *model,
                          const mha_document *doc, size_t max_tokens, mha_err *err);

/* --- the model's own answers ----------------------------------------------------------------- */

typedef struct mha_answer {
    size_t document, position; /* position 0 for classes */
    uint32_t rank;             /* from 1 */
    int32_t id;                /* token or class */
    double prob;
} mha_answer;

/* The k largest of a row of logits with their probabilities (softmax in double), largest first,
 * ties by smaller id. Fills id, prob and rank of out [k]; returns how many: k or n. */
size_t mha_answer_top(const float *logits, size_t n, size_t k, mha_answer *out);
/* out[D] = mean of rows x [T, D], as sentence embeddings take it. */
void mha_answer_mean(const float *x, size_t rows, size_t width, float *out);

/* A stretch of tokens that answers a question. */
typedef struct mha_answer_span {
    size_t first, last;
    double prob;
} mha_answer_span;

/* The k likeliest stretches of at most `longest` tokens, likeliest first, ties by place: logits
 * [n, 2] of starts and ends, prob = p(start = first)·p(end = last), each a softmax over the tokens
 * that are `allowed` and token 0, which stands for no answer and is never one. Fills out [k] and
 * returns how many there are. Devlin et al. 2019, section 4.2. */
size_t mha_answer_spans(const float *logits, size_t n, const uint8_t *allowed, size_t longest,
                        size_t k, mha_answer_span *out);

/* Top k answers of whole documents, by the kind of the model's head: NEXT and TARGET at the last
 * position, MASKED at every position whose id is mask_id (−1: at every position), TOKEN at every
 * position, CLASS once; of one class alone the logistic of its logit. No logits are kept.
 * MHA_ERR_UNSUPPORTED for NONE and SPAN. */
typedef struct mha_answers mha_answers;
mha_status mha_answers_new(mha_answers **out, const mha_model *model, const mha_document *docs,
                           size_t count, int32_t mask_id, size_t k, mha_err *err);
void mha_answers_free(mha_answers *a);
const mha_probe *mha_answers_probe(const mha_answers *a);
/* In order of document, position and rank; borrowed. */
const mha_answer *mha_answers_get(const mha_answers *a, size_t *count);

/* out = a row of logits [vocab], changed by the rules: `ids` [n] stand on the decoder's side, the
 * first `prompt` of them given; `limit` new ones at most. Ids that may not come get −infinity. */
void mha_generation_apply(const mha_generation *rules, const float *logits, size_t vocab,
                          const int32_t *ids, size_t n, size_t prompt, size_t limit, float *out);

typedef struct mha_sampling {
    double temperature; /* > 0 */
    size_t top_k;       /* the k most probable only; 0: all */
    double top_p;       /* then the smallest set with at least this probability; 0 or 1: all */
    uint64_t seed, stream;
} mha_sampling;

/* Draws tokens one after another; the same seed, stream and logits give the same tokens. */
typedef struct mha_sampler mha_sampler;
mha_status mha_sampler_new(mha_sampler **out, size_t vocab, const mha_sampling *how, mha_err *err);
void mha_sampler_free(mha_sampler *s);
int32_t mha_sampler_next(mha_sampler *s, const float *logits); /* [vocab] */

/* Writing on after a prompt, which are the document's ids (its target_ids for a decoder with
 * memory). */
typedef struct mha_writing {
    const mha_generation *rules;
    size_t length;         /* new ids at most; the caller keeps to the position table */
    size_t beams;          /* > 1: beam search for the best whole text; else one token at a time */
    mha_sampler *sampler;  /* draws the tokens; NULL: the likeliest each (first of equals) */
    mha_progress progress; /* new ids so far, of `length` */
    void *progress_context;
} mha_writing;
/* ids [length], the end token included. *n: how many. *score may be NULL: beam search's
 * log-probability / n^penalty, 0 otherwise. The errors of mha_decoder_new and mha_decoder_step. */
mha_status mha_write(mha_engine *e, const mha_model *model, const mha_document *prompt,
                     const mha_writing *how, int32_t *ids, size_t *n, double *score, mha_err *err);

#ifdef __cplusplus
}
#endif
#endif
