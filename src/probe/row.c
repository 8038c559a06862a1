/* row.c: softmax of one row with its statistics; see row.h for the formulas. */
#include "probe/row.h"
#include <math.h>
#include <string.h>

#define UNDEFINED ((double)NAN)

static void stats_undefined(mha_row_stats *st)
{
    st->visible = 0;
    st->entropy = st->max_weight = st->distance = st->offset = UNDEFINED;
    st->self = st->prev = st->next = st->first = st->special = UNDEFINED;
    st->sink = 0;
}

/* p at key j, NaN where the mask hides it or it does not exist. */
static double weight_at(const mha_row *r, double inverse, size_t j)
{
    for (size_t k = 0; k < r->run_count && r->runs[k].first <= j; k++)
        if (j - r->runs[k].first < r->runs[k].n)
            return (double)r->runs[k].s[j - r->runs[k].first] * inverse;
    return UNDEFINED;
}

static double special_mass(const mha_row *r, double inverse)
{
    double sum = 0;
    for (size_t i = 0, k = 0; i < r->special_count; i++) {
        size_t j = r->special[i];
        while (k < r->run_count && r->runs[k].first + r->runs[k].n <= j)
            k++;
        if (k < r->run_count && r->runs[k].first <= j)
            sum += (double)r->runs[k].s[j - r->runs[k].first];
    }
    return sum * inverse;
}

/* Keys before and from the diagonal on are summed apart, so that both Σ p(j − i) and Σ p|i − j|
 * come from sums of j·e_j: left part i·ℓ − w, right part w − i·ℓ. */
static void exp_around_diagonal(const mha_kernels *k, const mha_row *r, const mha_run *run, float m,
                                mha_exp_sums *all, double *left, double *right)
{
    size_t split = r->query <= run->first ? 0 : r->query - run->first;
    if (split > run->n)
        split = run->n;
    mha_exp_sums a = {0, 0, 0}, b = {0, 0, 0};
    if (split > 0)
        k->exp_stats(run->s, split, m, &a);
    if (split < run->n)
        k->exp_stats(run->s + split, run->n - split, m, &b);
    double i = (double)r->query, first = (double)run->first;
    *left += (i - first) * a.l - a.w;
    *right += b.w + (first + (double)split - i) * b.l;
    all->l += a.l + b.l;
    all->u += a.u + b.u;
}

static void fill_diagonal(const mha_row *r, double inverse, double left, double right,
                          mha_row_stats *st)
{
    st->distance = (left + right) * inverse;
    st->offset = (right - left) * inverse;
    st->self = weight_at(r, inverse, r->query);
    st->prev = r->query > 0 ? weight_at(r, inverse, r->query - 1) : UNDEFINED;
    st->next = weight_at(r, inverse, r->query + 1);
    st->first = weight_at(r, inverse, 0);
}

/* max with NaN winning */
static float row_max(const mha_kernels *k, const mha_row *r)
{
    float m = -INFINITY;
    for (size_t i = 0; i < r->run_count; i++) {
        float run = k->max(r->runs[i].s, r->runs[i].n);
        m = run > m || isnan(run) ? run : m;
    }
    return m;
}

static void exp_runs(const mha_kernels *k, const mha_row *r, float m, bool stats,
                     mha_exp_sums *sums, double *left, double *right)
{
    for (size_t i = 0; i < r->run_count; i++) {
        const mha_run *run = &r->runs[i];
        mha_exp_sums one = {0, 0, 0};
        if (stats && r->query != MHA_NO_DIAGONAL) {
            exp_around_diagonal(k, r, run, m, sums, left, right);
            continue;
        }
        if (stats)
            k->exp_stats(run->s, run->n, m, &one);
        else
            k->exp_sum(run->s, run->n, m, &one.l);
        sums->l += one.l;
        sums->u += one.u;
    }
}

float mha_row_weigh(const mha_kernels *k, mha_row *r, mha_row_stats *st)
{
    size_t visible = 0;
    for (size_t i = 0; i < r->run_count; i++)
        visible += r->runs[i].n;
    if (st != NULL)
        stats_undefined(st);
    if (visible == 0)
        return 0;
    float m = row_max(k, r); /* of the keys alone, so that ℓ >= 1 whatever the sink */
    if (!isfinite(m))
        return NAN;
    r->max = m;

    double left = 0, right = 0;
    mha_exp_sums sums = {0, 0, 0};
    exp_runs(k, r, m, st != NULL, &sums, &left, &right);
    double sink = r->sink != NULL ? exp((double)*r->sink - (double)m) : 0;
    double inverse = 1.0 / (sums.l + sink);
    if (st != NULL) {
        st->visible = (uint32_t)visible;
        double h = log(sums.l) - sums.u / sums.l;
        st->entropy = h > 0 ? h : 0;
        st->max_weight = inverse;
        st->sink = sink * inverse;
        if (r->query != MHA_NO_DIAGONAL)
            fill_diagonal(r, inverse, left, right, st);
        if (r->has_special)
            st->special = special_mass(r, inverse);
    }
    return (float)inverse;
}

static double defined_at(const double *p, const uint8_t *seen, size_t n, size_t j)
{
    return j < n && seen[j] ? p[j] : UNDEFINED;
}

/* H = −Σ (p/s) ln(p/s) = ln s − (Σ p ln p)/s with s = Σ p; 0·ln 0 = 0. */
void mha_row_define(const double *p, const uint8_t *seen, size_t n, size_t i, mha_row_stats *st)
{
    double s = 0, plogp = 0, most = 0, distance = 0, offset = 0;
    memset(st, 0, sizeof *st);
    for (size_t j = 0; j < n; j++) {
        if (!seen[j])
            continue;
        st->visible++;
        s += p[j];
        if (p[j] > 0)
            plogp += p[j] * log(p[j]);
        most = p[j] > most ? p[j] : most;
        double d = (double)j - (double)i;
        distance += p[j] * fabs(d);
        offset += p[j] * d;
    }
    double h = s > 0 ? log(s) - plogp / s : UNDEFINED;
    bool defined = st->visible > 0, self = i != SIZE_MAX && defined;
    st->entropy = h < 0 ? 0 : h;
    st->max_weight = defined ? most : UNDEFINED;
    st->distance = self ? distance : UNDEFINED;
    st->offset = self ? offset : UNDEFINED;
    st->self = self ? defined_at(p, seen, n, i) : UNDEFINED;
    st->prev = self && i > 0 ? defined_at(p, seen, n, i - 1) : UNDEFINED;
    st->next = self ? defined_at(p, seen, n, i + 1) : UNDEFINED;
    st->first = self ? defined_at(p, seen, n, 0) : UNDEFINED;
    st->special = UNDEFINED;
}
