/* statistics.c: see statistics.h.
 *
 * The bootstrap is two matrix products. With w_bd how often resample b drew document d,
 *   r*_bc = r_c + Σ_d w_bd (sum_dc − r_c·count_dc) / Σ_d w_bd count_dc.
 * The residuals are small where r_c is near the truth, so that float32 products lose nothing that
 * an interval could show; the w are whole numbers. Counts depend on masks and lengths, hence most
 * columns share theirs: equal columns of counts are multiplied once. */
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/gemm.h"
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Blocks of resamples and of documents: small enough to stay in cache, and the same whatever else
 * happens, because a product's bits may depend on its shape. */
#define RESAMPLE_BLOCK 256
#define DOCUMENT_BLOCK 1024
/* Keeps these draws apart from other uses of the user's seed. */
#define STREAM ((uint64_t)1 << 40)

double mha_tree_sum(const double *x, size_t n)
{
    if (n == 0)
        return 0;
    if (n == 1)
        return x[0];
    size_t half = 1;
    while (half * 2 < n)
        half *= 2;
    return mha_tree_sum(x, half) + mha_tree_sum(x + half, n - half);
}

typedef struct bootstrap {
    const mha_ratios *ratios;
    const double *value;
    size_t resamples, classes; /* different columns of counts */
    uint32_t *class_of;        /* [columns] */
    uint32_t *member;          /* [columns] first column of each class */
    uint32_t *parent;          /* [columns] class that each was split from */
    double *sum, *count;       /* [columns] of one document */
    float *w;                  /* [RESAMPLE_BLOCK, documents] */
    float *x, *n;              /* [DOCUMENT_BLOCK, columns], [DOCUMENT_BLOCK, classes] */
    float *wx, *wn;            /* [RESAMPLE_BLOCK, columns], [RESAMPLE_BLOCK, classes] */
    float *r;                  /* [columns, resamples] r* − r, NaN where no row was drawn */
} bootstrap;

/* Splits classes whose columns differ in this document. */
static void refine(bootstrap *b)
{
    size_t before = b->classes;
    for (size_t c = 0; c < b->ratios->columns; c++) {
        uint32_t from = b->class_of[c];
        if (b->count[c] == b->count[b->member[from]])
            continue;
        size_t k = before;
        while (k < b->classes && (b->parent[k] != from || b->count[b->member[k]] != b->count[c]))
            k++;
        if (k == b->classes) {
            b->member[k] = (uint32_t)c;
            b->parent[k] = from;
            b->classes++;
        }
        b->class_of[c] = (uint32_t)k;
    }
}

static void classify(bootstrap *b)
{
    b->classes = 1;
    for (size_t d = 0; d < b->ratios->documents; d++) {
        b->ratios->get(b->ratios->context, d, b->sum, b->count);
        refine(b);
    }
}

static void draw(bootstrap *b, uint64_t seed, size_t first, size_t rows)
{
    size_t D = b->ratios->documents;
    memset(b->w, 0, rows * D * sizeof *b->w);
    for (size_t i = 0; i < rows; i++) {
        mha_rng rng;
        mha_rng_seed(&rng, seed, STREAM + first + i);
        for (size_t d = 0; d < D; d++)
            b->w[i * D + mha_rng_below(&rng, D)] += 1;
    }
}

static void gather(bootstrap *b, size_t first, size_t rows)
{
    size_t C = b->ratios->columns;
    for (size_t i = 0; i < rows; i++) {
        b->ratios->get(b->ratios->context, first + i, b->sum, b->count);
        for (size_t c = 0; c < C; c++) {
            double x = b->sum[c] - b->value[c] * b->count[c];
            b->x[i * C + c] = isfinite(x) ? (float)x : 0; /* undefined columns are left out below */
        }
        for (size_t k = 0; k < b->classes; k++)
            b->n[i * b->classes + k] = (float)b->count[b->member[k]];
    }
}

static void resample(bootstrap *b, uint64_t seed, size_t first, size_t rows)
{
    size_t D = b->ratios->documents, C = b->ratios->columns, U = b->classes;
    draw(b, seed, first, rows);
    for (size_t d = 0; d < D; d += DOCUMENT_BLOCK) {
        size_t docs = D - d < DOCUMENT_BLOCK ? D - d : DOCUMENT_BLOCK;
        float beta = d > 0 ? 1 : 0;
        gather(b, d, docs);
        mha_gemm(false, false, rows, C, docs, 1, b->w + d, D, b->x, C, beta, b->wx, C);
        mha_gemm(false, false, rows, U, docs, 1, b->w + d, D, b->n, U, beta, b->wn, U);
    }
    for (size_t c = 0; c < C; c++)
        for (size_t i = 0; i < rows; i++) {
            float n = b->wn[i * U + b->class_of[c]];
            b->r[c * b->resamples + first + i] = n > 0 ? b->wx[i * C + c] / n : NAN;
        }
}

void mha_quantiles(double *x, size_t n, double confidence, double *lo, double *hi)
{
    double tail = (1 - confidence) / 2;
    *lo = *hi = (double)NAN;
    if (n == 0)
        return;
    gsl_sort(x, 1, n);
    *lo = gsl_stats_quantile_from_sorted_data(x, 1, n, tail);
    *hi = gsl_stats_quantile_from_sorted_data(x, 1, n, 1 - tail);
}

/* sorted: [resamples] scratch. */
static void interval(const bootstrap *b, size_t c, double confidence, double *sorted, double *lo,
                     double *hi)
{
    size_t n = 0;
    *lo = *hi = (double)NAN;
    for (size_t i = 0; i < b->resamples; i++) {
        float r = b->r[c * b->resamples + i];
        if (!isnan(r))
            sorted[n++] = (double)r;
    }
    if (n == 0 || isnan(b->value[c]))
        return;
    mha_quantiles(sorted, n, confidence, lo, hi);
    *lo += b->value[c];
    *hi += b->value[c];
}

static mha_status make(bootstrap *b, mha_err *err)
{
    size_t D = b->ratios->documents, C = b->ratios->columns, draws, results;
    size_t docs = D < DOCUMENT_BLOCK ? D : DOCUMENT_BLOCK;
    size_t rows = b->resamples < RESAMPLE_BLOCK ? b->resamples : RESAMPLE_BLOCK;
    if (mha_mul_overflows(rows, D, &draws) || mha_mul_overflows(C, b->resamples, &results))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for %zu resamples of %zu documents",
                        b->resamples, D);
    MHA_TRY(mha_alloc((void **)&b->class_of, C, sizeof *b->class_of, err));
    MHA_TRY(mha_alloc((void **)&b->member, C, sizeof *b->member, err));
    MHA_TRY(mha_alloc((void **)&b->parent, C, sizeof *b->parent, err));
    MHA_TRY(mha_alloc((void **)&b->sum, C, sizeof *b->sum, err));
    MHA_TRY(mha_alloc((void **)&b->count, C, sizeof *b->count, err));
    classify(b);
    MHA_TRY(mha_alloc_raw((void **)&b->w, draws, sizeof *b->w, err));
    MHA_TRY(mha_alloc_raw((void **)&b->x, docs * C, sizeof *b->x, err));
    MHA_TRY(mha_alloc_raw((void **)&b->n, docs * b->classes, sizeof *b->n, err));
    MHA_TRY(mha_alloc_raw((void **)&b->wx, rows * C, sizeof *b->wx, err));
    MHA_TRY(mha_alloc_raw((void **)&b->wn, rows * b->classes, sizeof *b->wn, err));
    return mha_alloc_raw((void **)&b->r, results, sizeof *b->r, err);
}

static void release(bootstrap *b)
{
    mha_free(b->class_of);
    mha_free(b->member);
    mha_free(b->parent);
    mha_free(b->sum);
    mha_free(b->count);
    mha_free(b->w);
    mha_free(b->x);
    mha_free(b->n);
    mha_free(b->wx);
    mha_free(b->wn);
    mha_free(b->r);
}

/* Ranks of all columns in every resample, then their quantiles. Where a column had no row its rank
 * is the last. */
static mha_status rank_intervals(const bootstrap *b, double confidence, const mha_intervals *out,
                                 mha_err *err)
{
    size_t C = b->ratios->columns, R = b->resamples, cells;
    double *value = NULL, *ranks = NULL;
    size_t *rank = NULL;
    mha_status st = MHA_OK;
    if (mha_mul_overflows(C, R, &cells))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for the ranks of %zu columns", C);
    MHA_TRY_GOTO(st, mha_alloc_raw((void **)&value, C, sizeof *value, err), out);
    MHA_TRY_GOTO(st, mha_alloc_raw((void **)&rank, C, sizeof *rank, err), out);
    MHA_TRY_GOTO(st, mha_alloc_raw((void **)&ranks, cells, sizeof *ranks, err), out);
    for (size_t i = 0; i < R && st == MHA_OK; i++) {
        for (size_t c = 0; c < C; c++) {
            double x = b->value[c] + (double)b->r[c * R + i];
            value[c] = isnan(x) ? -(double)INFINITY : x;
        }
        st = mha_ranks(value, C, rank, err);
        for (size_t c = 0; c < C && st == MHA_OK; c++)
            ranks[c * R + i] = (double)rank[c];
    }
    for (size_t c = 0; c < C && st == MHA_OK; c++) {
        double lo, hi;
        mha_quantiles(ranks + c * R, R, confidence, &lo, &hi);
        out->rank_lo[c] = floor(lo);
        out->rank_hi[c] = ceil(hi);
    }
out:
    mha_free(value);
    mha_free(rank);
    mha_free(ranks);
    return st;
}

mha_status mha_bootstrap_ranks(const mha_ratios *ratios, const double *value, size_t resamples,
                               double confidence, uint64_t seed, const mha_intervals *out,
                               mha_err *err)
{
    for (size_t c = 0; c < ratios->columns; c++) {
        out->lo[c] = out->hi[c] = (double)NAN;
        if (out->rank_lo != NULL)
            out->rank_lo[c] = out->rank_hi[c] = (double)NAN;
    }
    if (ratios->documents < 2 || ratios->columns == 0 || resamples == 0)
        return MHA_OK;
    mha_gemm_init(); /* an engine did it, unless results came from files */
    bootstrap b = {.ratios = ratios, .value = value, .resamples = resamples};
    double *sorted = NULL;
    mha_status st = make(&b, err);
    if (st == MHA_OK)
        st = mha_alloc_raw((void **)&sorted, resamples, sizeof *sorted, err);
    if (st == MHA_OK) {
        for (size_t i = 0; i < resamples; i += RESAMPLE_BLOCK)
            resample(&b, seed, i, resamples - i < RESAMPLE_BLOCK ? resamples - i : RESAMPLE_BLOCK);
        for (size_t c = 0; c < ratios->columns; c++)
            interval(&b, c, confidence, sorted, &out->lo[c], &out->hi[c]);
    }
    if (st == MHA_OK && out->rank_lo != NULL)
        st = rank_intervals(&b, confidence, out, err);
    mha_free(sorted);
    release(&b);
    return st;
}

mha_status mha_bootstrap(const mha_ratios *ratios, const double *value, size_t resamples,
                         double confidence, uint64_t seed, double *lo, double *hi, mha_err *err)
{
    mha_intervals out = {.lo = lo, .hi = hi};
    return mha_bootstrap_ranks(ratios, value, resamples, confidence, seed, &out, err);
}
