/* importance.h: what the methods of importance share: one run's state, and the matrix of samples
 * (documents, as a rule) by units that every method but L0 fills. */
#ifndef MHA_ANALYSIS_IMPORTANCE_H
#define MHA_ANALYSIS_IMPORTANCE_H

#include "analysis/units.h"

/* Streams of the user's seed, one for each use that draws; see mha_rng_seed. */
#define MHA_STREAM_PARTNERS ((uint64_t)3 << 40)
#define MHA_STREAM_ORDERS   ((uint64_t)4 << 40)
#define MHA_STREAM_GATES    ((uint64_t)5 << 40)

struct mha_importance {
    mha_units units;
    mha_importance_options options;
    mha_importance_row *rows; /* [units] */
    mha_importance_summary summary;
    size_t documents, samples;
    double *score, *rise; /* [samples, units]; NULL for L0 */
};

/* A fill that the engine lets through where a gate is closed. */
typedef struct mha_filling {
    const mha_model_info *info;
    mha_fill fill;
    float **z; /* [A] owned */
} mha_filling;

/* Documents are measured in windows of this many, so that a run can be interrupted between them.
 * Nothing but a replacement that is drawn from another document crosses a window. */
#define MHA_WINDOW 64

typedef struct mha_importance_job {
    mha_importance *m;
    mha_engine *e;
    const mha_model *model;
    const mha_document *docs; /* [m->documents] */
    size_t *index;            /* [m->documents] in the whole corpus: what draws depend on */
    float *base;              /* [A, H] gates before anything is removed */
    double *loss;             /* [m->documents] of the whole model */
    double *empty;            /* [m->documents] SHAPLEY: without any unit */
    mha_filling mean;         /* ABLATE_MEAN */
    mha_share share;          /* of the current window; total 1 */
    uint64_t work[2];         /* the summary's multiply-adds before the window */
    size_t first, count;      /* the window: documents first … first + count − 1 */
} mha_importance_job;

/* Each fills score, rise and loss of the documents of a window. */
mha_status mha_importance_gradient(mha_importance_job *j, mha_err *err); /* GRADIENT, FISHER, DLA */
mha_status mha_importance_ablate(mha_importance_job *j, mha_err *err);   /* ABLATE_… */
mha_status mha_importance_all_but_one(mha_importance_job *j, mha_err *err);
mha_status mha_importance_shapley(mha_importance_job *j, mha_err *err);
/* Fills rows and summary itself. */
mha_status mha_importance_l0(mha_importance_job *j, mha_err *err);

/* Defaults of what is drawn, and the cost of learning gates in passes over all documents. */
size_t mha_ablation_draws(const mha_importance_options *o);
size_t mha_shapley_pairs(const mha_importance_options *o, size_t documents);
double mha_l0_passes(size_t documents);

/* One row of samples from a document's gate gradients [A, H], or what its heads wrote (DLA). */
void mha_importance_take_gradient(mha_importance *m, size_t sample, const double *gradient);
/* Scores, intervals and ranks from the samples. */
mha_status mha_importance_conclude(mha_importance *m, mha_err *err);

void mha_filling_release(mha_filling *f);
/* Means of z over all rows of the documents, one row a step; heads whose gate in `base` is closed
 * are 0: pruned heads stay pruned. MHA_ERR_ARG: a step that no document reaches. */
mha_status mha_filling_mean(mha_filling *f, const mha_importance_job *j, const mha_document *docs,
                            size_t count, mha_share *share, mha_err *err);
/* z of document `from` at the positions of document `to`: a shorter one starts again. */
mha_status mha_filling_take(mha_filling *f, const mha_importance_job *j, const mha_document *from,
                            const mha_document *to, mha_err *err);

#endif
