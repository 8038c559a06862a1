/* units.h: what importance and pruning take out at once: a head, the heads of one key/value group,
 * or all heads of an attention step; and documents run under many sets of gates. */
#ifndef MHA_ANALYSIS_UNITS_H
#define MHA_ANALYSIS_UNITS_H

#include "mha/analysis.h"

typedef struct mha_units {
    const mha_model_info *info;
    mha_unit kind;
    size_t stride;        /* H: row length of gates */
    size_t gates;         /* A·H */
    bool all_heads;       /* every head of the model is a unit */
    mha_unit_place *item; /* [count] in the order of attention steps and heads */
    size_t count;
} mha_units;

/* choice may be NULL: all. A group or step with any chosen head is a unit, whole. */
mha_status mha_units_init(mha_units *u, const mha_model *model, mha_unit kind,
                          const mha_choice *choice, mha_err *err);
void mha_units_release(mha_units *u);
/* Sets the gates [A, H] of one unit. */
void mha_units_set(const mha_units *u, size_t unit, float *gates, float value);
void mha_units_set_all(const mha_units *u, float *gates, float value); /* of all heads there are */
/* Sums of x [A, H] over each unit's heads: out [count]. */
void mha_units_sum(const mha_units *u, const double *x, double *out);

/* A part of a long computation, shown as a share of the whole. */
typedef struct mha_share {
    mha_progress progress; /* NULL: nobody looks */
    void *context;
    double before, part, total;
} mha_share;
int mha_share_step(void *share, double done, double total); /* an mha_progress */
/* Moves on to the next part. */
void mha_share_next(mha_share *s, double part);

/* One document under one set of gates. */
typedef struct mha_variant {
    size_t document;    /* index in docs */
    const float *gates; /* [A, H] */
} mha_variant;

/* loss [count] and hits [count] (or NULL) of documents under gates. Runs in pieces of a size that
 * depends on nothing but the order of the variants. */
mha_status mha_variants_loss(mha_engine *e, const mha_document *docs, const mha_variant *variants,
                             size_t count, double *loss, size_t *hits, mha_share *share,
                             mha_err *err);

#endif
