/* curve.h: what the parts of a pruning curve share: first an order of removal, then losses of the
 * model with its first units gone, then numbers about them. */
#ifndef MHA_ANALYSIS_CURVE_H
#define MHA_ANALYSIS_CURVE_H

#include "analysis/partial.h"
#include "analysis/units.h"

struct mha_curve {
    mha_units units;
    mha_curve_options options;
    size_t *order;           /* [units] */
    mha_unit_place *removed; /* [units] the same as places */
    mha_curve_point *points; /* [steps + 1] */
    size_t steps;
    mha_curve_summary summary;
};

typedef struct mha_curve_job {
    mha_curve *c;
    mha_engine *e;
    const mha_model *model;
    const mha_losses *ranking;
    const mha_document *docs; /* [count] that measure */
    size_t count;
    mha_partial *partial;
    mha_share share;
} mha_curve_job;

/* Units that are gone after step s. */
size_t mha_curve_removed(const mha_curve *c, size_t step);

/* Fills order. */
mha_status mha_curve_rank(mha_curve_job *j, mha_err *err);
/* About how many passes over the ranking documents that takes. */
double mha_curve_rank_passes(const mha_curve_job *j);

/* Losses and metrics of each set of gates that the curve needs: [sets, documents]. */
typedef struct mha_curve_values {
    double *loss, *metric;
    size_t sets;
} mha_curve_values;
/* Which set has the first units of an order gone after step s. order: 0 the curve's own, 1 its
 * reverse, from 2 on random ones. The whole and the empty model are the same for all. */
size_t mha_curve_set(const mha_curve *c, size_t step, size_t order);
mha_status mha_curve_measure(mha_curve_values *v, mha_curve_job *j, mha_err *err);
void mha_curve_values_release(mha_curve_values *v);

/* Fills points and summary. */
mha_status mha_curve_summarise(mha_curve *c, const mha_curve_values *v, size_t documents,
                               mha_err *err);

/* Numbers of vectors in the partial result. */
#define MHA_PARTIAL_ORDER ((uint64_t)1 << 32)
#define MHA_PARTIAL_SETS  ((uint64_t)2 << 32)

#endif
