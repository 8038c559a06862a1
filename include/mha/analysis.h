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

/* --- checks ---------------------------------------------------------------------------------- */

/* What a short run says about the engine on this model. */
typedef struct mha_checks {
    size_t tokens;         /* that were run */
    double row_sum_error;  /* max |Σ p − (1 − sink)| over all rows of all heads */
    double masked_mass;    /* max Σ p over keys that the mask hides */
    double head_sum_error; /* max |Σ_h z_h·W_O + b_O − output| over attention outputs, divided by
                              the largest |output| of its layer (at least 1) */
} mha_checks;

/* Runs the first max_tokens tokens of doc (0: 32) with all sites that the checks need. */
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

#ifdef __cplusplus
}
#endif
#endif
