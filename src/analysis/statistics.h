/* statistics.h: sums and intervals over documents. Knows documents by number and columns of sums;
 * nothing of attention. */
#ifndef MHA_ANALYSIS_STATISTICS_H
#define MHA_ANALYSIS_STATISTICS_H

#include "mha/err.h"
#include <stddef.h>
#include <stdint.h>

/* Σ x_i through the fixed tree whose nodes cover aligned powers of two of the indices: the result
 * depends on the values and their indices, not on how they were gathered; a zero for a missing
 * index changes nothing. */
double mha_tree_sum(const double *x, size_t n);

/* Columns of sums and counts by document: r_c = Σ_d sum_dc / Σ_d count_dc. */
typedef struct mha_ratios {
    size_t documents, columns;
    /* Fills sum [columns] and count [columns] of one document. Called many times for each. */
    void (*get)(const void *context, size_t document, double *sum, double *count);
    const void *context;
} mha_ratios;

/* Percentile bootstrap (Efron): documents are drawn with replacement `resamples` times and each r_c
 * is computed again; lo and hi [columns] are the (1 ∓ confidence)/2 quantiles, interpolated
 * linearly. value [columns] is r_c over all documents. All columns see the same draws. A column of
 * undefined value, or fewer than two documents: NaN. */
mha_status mha_bootstrap(const mha_ratios *ratios, const double *value, size_t resamples,
                         double confidence, uint64_t seed, double *lo, double *hi, mha_err *err);

#endif
