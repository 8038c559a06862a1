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
    if (j < r->first || j - r->first >= r->n)
        return UNDEFINED;
    return (double)r->s[j - r->first] * inverse;
}

static double special_mass(const mha_row *r, double inverse)
{
    double sum = 0;
    for (size_t i = 0; i < r->special_count; i++) {
        size_t j = r->special[i];
        if (j >= r->first && j - r->first < r->n)
            sum += (double)r->s[j - r->first];
    }
    return sum * inverse;
}

/* Keys before and from the diagonal on are summed apart, so that both Σ p(j − i) and Σ p|i − j|
 * come from sums of j·e_j: left part i·ℓ − w, right part w − i·ℓ. Returns ℓ over all keys. */
static double exp_around_diagonal(const mha_kernels *k, mha_row *r, float m, mha_exp_sums *all,
                                  double *left, double *right)
{
    size_t split = r->query <= r->first ? 0 : r->query - r->first;
    if (split > r->n)
        split = r->n;
    mha_exp_sums a = {0, 0, 0}, b = {0, 0, 0};
    if (split > 0)
        k->exp_stats(r->s, split, m, &a);
    if (split < r->n)
        k->exp_stats(r->s + split, r->n - split, m, &b);
    double i = (double)r->query, first = (double)r->first;
    *left = (i - first) * a.l - a.w;
    *right = b.w + (first + (double)split - i) * b.l;
    all->l = a.l + b.l;
    all->u = a.u + b.u;
    return all->l;
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

float mha_row_weigh(const mha_kernels *k, mha_row *r, mha_row_stats *st)
{
    if (st != NULL)
        stats_undefined(st);
    if (r->n == 0)
        return 0;
    float m = k->max(r->s, r->n); /* of the keys alone, so that ℓ >= 1 whatever the sink */
    if (!isfinite(m))
        return NAN;
    r->max = m;

    double l = 0, left = 0, right = 0;
    mha_exp_sums sums = {0, 0, 0};
    if (st == NULL)
        k->exp_sum(r->s, r->n, m, &l);
    else if (r->query != MHA_NO_DIAGONAL)
        l = exp_around_diagonal(k, r, m, &sums, &left, &right);
    else {
        k->exp_stats(r->s, r->n, m, &sums);
        l = sums.l;
    }
    double sink = r->sink != NULL ? exp((double)*r->sink - (double)m) : 0;
    double inverse = 1.0 / (l + sink);
    if (st != NULL) {
        st->visible = (uint32_t)r->n;
        double h = log(l) - sums.u / l;
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
