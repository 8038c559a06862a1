/* curve_summary.c: points of a pruning curve and the numbers that sum it up (methods D7), with
 * f(x) the metric after the fraction x is gone:
 *
 *     area = ∫ f(x)/f(0) dx by trapezoids,   keeps = max { x : f(x) ≥ 0.99·f(0) }
 *
 * Intervals resample documents; the whole and the pruned model see the same draw. */
#include "analysis/curve.h"
#include "analysis/statistics.h"
#include "base/mem.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

#define STREAM ((uint64_t)9 << 40)
#define KEEPS  0.99
#define BAND   0.95

static double area_of(const mha_curve *c, const double *f)
{
    double area = 0;
    for (size_t s = 1; s <= c->steps; s++)
        area += (c->points[s].fraction - c->points[s - 1].fraction) * (f[s] + f[s - 1]) / 2;
    return f[0] > 0 ? area / f[0] : (double)NAN;
}

static double keeps_of(const mha_curve *c, const double *f)
{
    double fraction = (double)NAN;
    for (size_t s = 0; s <= c->steps && f[0] > 0; s++)
        if (f[s] >= KEEPS * f[0])
            fraction = c->points[s].fraction;
    return fraction;
}

/* ---- points ----------------------------------------------------------------------------------
 */

static double mean_of(const double *x, size_t set, size_t documents)
{
    return mha_tree_sum(x + set * documents, documents) / (double)documents;
}

/* band: [orders] scratch. */
static mha_curve_band band_of(const mha_curve *c, const double *x, size_t step, size_t documents,
                              double *band)
{
    mha_curve_band b = {(double)NAN, (double)NAN, (double)NAN};
    size_t n = c->options.orders;
    if (n == 0)
        return b;
    for (size_t o = 0; o < n; o++)
        band[o] = mean_of(x, mha_curve_set(c, step, 2 + o), documents);
    b.mean = mha_tree_sum(band, n) / (double)n;
    mha_quantiles(band, n, BAND, &b.lo, &b.hi);
    return b;
}

static void points_make(mha_curve *c, const mha_curve_values *v, size_t documents, double *band)
{
    for (size_t s = 0; s <= c->steps; s++) {
        mha_curve_point *p = &c->points[s];
        size_t own = mha_curve_set(c, s, 0), reverse = mha_curve_set(c, s, 1);
        p->removed = mha_curve_removed(c, s);
        p->fraction = (double)p->removed / (double)c->units.count;
        p->loss = mean_of(v->loss, own, documents);
        p->metric = mean_of(v->metric, own, documents);
        p->loss_random = band_of(c, v->loss, s, documents, band);
        p->metric_random = band_of(c, v->metric, s, documents, band);
        p->loss_reverse = mean_of(v->loss, reverse, documents);
        p->metric_reverse = mean_of(v->metric, reverse, documents);
    }
}

/* ---- intervals -------------------------------------------------------------------------------
 */

/* f [steps + 1] on one resample of the documents. */
static void resample(const mha_curve *c, const mha_curve_values *v, size_t documents, mha_rng *rng,
                     double *f)
{
    memset(f, 0, (c->steps + 1) * sizeof *f);
    for (size_t i = 0; i < documents; i++) {
        size_t d = mha_rng_below(rng, documents);
        for (size_t s = 0; s <= c->steps; s++)
            f[s] += v->metric[mha_curve_set(c, s, 0) * documents + d];
    }
}

/* areas, keeps: [resamples] scratch; draws in which the whole model has no metric count for none.
 */
static void intervals(mha_curve *c, const mha_curve_values *v, size_t documents, double *f,
                      double *areas, double *keeps)
{
    size_t n = 0;
    for (size_t b = 0; b < c->options.resamples; b++) {
        mha_rng rng;
        mha_rng_seed(&rng, c->options.seed, STREAM + b);
        resample(c, v, documents, &rng, f);
        areas[n] = area_of(c, f);
        keeps[n] = keeps_of(c, f);
        n += !isnan(areas[n]);
    }
    mha_curve_summary *s = &c->summary;
    mha_quantiles(areas, n, c->options.confidence, &s->area_lo, &s->area_hi);
    mha_quantiles(keeps, n, c->options.confidence, &s->keeps_lo, &s->keeps_hi);
}

static void summary_make(mha_curve *c, double *f)
{
    mha_curve_summary *s = &c->summary;
    for (size_t i = 0; i <= c->steps; i++)
        f[i] = c->points[i].metric;
    s->area = area_of(c, f);
    s->keeps = keeps_of(c, f);
    for (size_t i = 0; i <= c->steps; i++)
        f[i] = c->points[i].metric_random.mean;
    s->area_random = area_of(c, f);
    for (size_t i = 0; i <= c->steps; i++)
        f[i] = c->points[i].metric_reverse;
    s->area_reverse = area_of(c, f);
    s->area_lo = s->area_hi = s->keeps_lo = s->keeps_hi = (double)NAN;
}

mha_status mha_curve_summarise(mha_curve *c, const mha_curve_values *v, size_t documents,
                               mha_err *err)
{
    size_t B = c->options.resamples, room = B > c->options.orders ? B : c->options.orders;
    double *f = NULL, *x = NULL;
    c->summary.documents = documents;
    mha_status st = mha_alloc((void **)&f, c->steps + 1, sizeof *f, err);
    if (st == MHA_OK)
        st = mha_alloc((void **)&x, room, 2 * sizeof *x, err);
    if (st == MHA_OK) {
        points_make(c, v, documents, x);
        summary_make(c, f);
        if (documents >= 2 && B > 0)
            intervals(c, v, documents, f, x, x + room);
    }
    mha_free(f);
    mha_free(x);
    return st;
}
