/* orders.c: ranks and rank correlations; see statistics.h. Spearman is GSL's; Kendall's τ-b is not
 * there, and is counted pair by pair: there are hundreds of heads, not millions. */
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Keeps the draws of halves apart from other uses of the user's seed. */
#define STREAM ((uint64_t)2 << 40)

typedef struct entry {
    double x;
    size_t at;
} entry;

/* Larger first; of equals the first. */
static bool before(const entry *a, const entry *b)
{
    return a->x > b->x || (!(a->x < b->x) && a->at < b->at);
}

/* Merges the sorted runs [0, half) and [half, n) of a through b. */
static void merge(entry *a, entry *b, size_t half, size_t n)
{
    size_t i = 0, j = half, k = 0;
    while (i < half && j < n)
        b[k++] = before(&a[j], &a[i]) ? a[j++] : a[i++];
    while (i < half)
        b[k++] = a[i++];
    while (j < n)
        b[k++] = a[j++];
    memcpy(a, b, n * sizeof *a);
}

static void merge_sort(entry *a, entry *b, size_t n)
{
    if (n < 2)
        return;
    merge_sort(a, b, n / 2);
    merge_sort(a + n / 2, b + n / 2, n - n / 2);
    merge(a, b, n / 2, n);
}

mha_status mha_ranks(const double *x, size_t n, size_t *rank, mha_err *err)
{
    entry *a;
    size_t both;
    if (mha_mul_overflows(n, 2, &both))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory to rank %zu values", n);
    MHA_TRY(mha_alloc_raw((void **)&a, both, sizeof *a, err));
    for (size_t i = 0; i < n; i++)
        a[i] = (entry){x[i], i};
    merge_sort(a, a + n, n);
    for (size_t i = 0; i < n; i++)
        rank[a[i].at] = i + 1;
    mha_free(a);
    return MHA_OK;
}

static bool constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

mha_status mha_spearman(const double *x, const double *y, size_t n, double *out, mha_err *err)
{
    double *work;
    *out = (double)NAN;
    if (n < 2 || constant(x, n) || constant(y, n))
        return MHA_OK;
    MHA_TRY(mha_alloc_raw((void **)&work, n, 2 * sizeof *work, err));
    *out = gsl_stats_spearman(x, 1, y, 1, n, work);
    mha_free(work);
    return MHA_OK;
}

double mha_kendall(const double *x, const double *y, size_t n)
{
    double agree = 0, pairs_x = 0, pairs_y = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            int a = (x[i] > x[j]) - (x[i] < x[j]), b = (y[i] > y[j]) - (y[i] < y[j]);
            agree += a * b;
            pairs_x += a != 0;
            pairs_y += b != 0;
        }
    return pairs_x > 0 && pairs_y > 0 ? agree / sqrt(pairs_x * pairs_y) : (double)NAN;
}

double mha_spearman_brown(double r)
{
    return r > 0 ? 2 * r / (1 + r) : r;
}

/* Sums of the two halves: documents order[0 .. documents/2) and the rest. */
static void half_sums(const double *x, const size_t *order, size_t documents, size_t columns,
                      double *first, double *second)
{
    memset(first, 0, columns * sizeof *first);
    memset(second, 0, columns * sizeof *second);
    for (size_t i = 0; i < documents; i++) {
        double *sum = i < documents / 2 ? first : second;
        for (size_t c = 0; c < columns; c++)
            sum[c] += x[order[i] * columns + c];
    }
}

void mha_shuffle(size_t *order, size_t n, mha_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = mha_rng_below(rng, i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

mha_status mha_split_half(const double *x, size_t documents, size_t columns, size_t splits,
                          uint64_t seed, double *out, mha_err *err)
{
    double *sums = NULL, total = 0;
    size_t *order = NULL, defined = 0;
    mha_status st = MHA_OK;
    *out = (double)NAN;
    if (documents < 4 || columns < 2)
        return MHA_OK;
    MHA_TRY_GOTO(st, mha_alloc((void **)&sums, columns, 2 * sizeof *sums, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&order, documents, sizeof *order, err), out);
    for (size_t s = 0; s < splits && st == MHA_OK; s++) {
        mha_rng rng;
        double r;
        mha_rng_seed(&rng, seed, STREAM + s);
        for (size_t d = 0; d < documents; d++)
            order[d] = d;
        mha_shuffle(order, documents, &rng);
        half_sums(x, order, documents, columns, sums, sums + columns);
        st = mha_spearman(sums, sums + columns, columns, &r, err);
        if (st == MHA_OK && !isnan(r)) {
            total += r;
            defined++;
        }
    }
    if (st == MHA_OK && defined > 0)
        *out = mha_spearman_brown(total / (double)defined);
out:
    mha_free(sums);
    mha_free(order);
    return st;
}
