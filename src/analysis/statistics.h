/* statistics.h: sums and intervals over documents. Knows documents by number and columns of sums;
 * nothing of attention. */
#ifndef MHA_ANALYSIS_STATISTICS_H
#define MHA_ANALYSIS_STATISTICS_H

#include "mha/err.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mha_rng mha_rng;

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

/* Where the intervals of a ranking go, each [columns]; the ranks may be NULL. */
typedef struct mha_intervals {
    double *lo, *hi;           /* of each column's ratio, as mha_bootstrap has them */
    double *rank_lo, *rank_hi; /* of its place among all columns, 1 for the largest: the smallest
                                  and largest whole ranks of the interval */
} mha_intervals;
mha_status mha_bootstrap_ranks(const mha_ratios *ratios, const double *value, size_t resamples,
                               double confidence, uint64_t seed, const mha_intervals *out,
                               mha_err *err);

/* The lower and upper (1 ∓ confidence)/2 quantiles of x [n], which is sorted in place; NaN when n
 * is 0. */
void mha_quantiles(double *x, size_t n, double confidence, double *lo, double *hi);

/* --- orders ---------------------------------------------------------------------------------- */

/* rank [n]: place of each x, 1 for the largest; of equals the first comes first. */
mha_status mha_ranks(const double *x, size_t n, size_t *rank, mha_err *err);

/* Rank correlations; NaN for n < 2 or when either side is constant. Equal values share their mean
 * rank (Spearman), and τ-b is corrected for them (Kendall). */
mha_status mha_spearman(const double *x, const double *y, size_t n, double *out, mha_err *err);
double mha_kendall(const double *x, const double *y, size_t n);

/* How well the columns' ranking would come out again: the documents are split at random into
 * halves, `splits` times, each half ranks the columns by its own mean, and the mean Spearman
 * correlation r of the two becomes that of the whole, 2r/(1 + r) (Spearman–Brown). x: [documents,
 * columns]. NaN for fewer than four documents or two columns. */
mha_status mha_split_half(const double *x, size_t documents, size_t columns, size_t splits,
                          uint64_t seed, double *out, mha_err *err);
/* 2r/(1 + r); r itself where it is not positive. */
double mha_spearman_brown(double r);

/* A uniformly drawn order of x [n]. */
void mha_shuffle(size_t *x, size_t n, mha_rng *rng);

#endif
