/* importance_shapley.c: Shapley values of units (methods D6). The worth of a set of units is minus
 * the loss with only that set present.
 *
 * Every document draws its own orders of removal, in pairs of an order and its reverse: the
 * reversed order meets each unit among the units that the other met it without, which evens out
 * much of the chance. A unit's value on a document is its mean rise over the document's orders;
 * documents and orders are drawn together, so that intervals over documents hold both.
 *
 * Once a whole round of removals stays within 1 % of the distance from full to empty, the rest of
 * the order has nothing to take away: what is left is shared evenly. Each order's rises sum to
 * L(none) − L(all) exactly, so the values do too. */
#include "analysis/importance.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

#define PAIRS_IN_ALL 25
#define TOLERANCE    0.01
/* Orders walked at once, and removals that each tries in one round. */
#define WALKERS 32
#define ROUNDS  12
#define LEAST   4

size_t mha_shapley_pairs(const mha_importance_options *o, size_t documents)
{
    return o->draws > 0 ? o->draws : (PAIRS_IN_ALL + documents - 1) / documents;
}

/* One order of removal, on its way. */
typedef struct walker {
    size_t document, sample; /* document: within the window */
    size_t *order;           /* [units] */
    size_t removed;
    double loss; /* with `removed` units gone */
    bool done;
} walker;

typedef struct shapley {
    mha_importance_job *j;
    size_t pairs, step; /* removals of a round */
    walker walkers[WALKERS];
    size_t count;
    float *gates;         /* [WALKERS, step, A, H] */
    float *closed;        /* [A, H] no unit left */
    mha_variant *list;    /* [WALKERS·step] or [2·documents] */
    double *loss;         /* of the list */
    double *full, *empty; /* [window] losses of all and of no units */
    double finished, all; /* removals, for the progress */
    double weight;        /* of one order in its sample */
} shapley;

/* The next `work` removals as a share of the window. */
static mha_share share_of(const shapley *s, double work)
{
    mha_share share = s->j->share;
    share.before += share.part * s->finished / s->all;
    share.part *= work / s->all;
    return share;
}

/* ---- one round -------------------------------------------------------------------------------
 */

/* Where a walker stands in a round: its variants are list[first … first + n). */
static size_t round_size(const shapley *s, const walker *w)
{
    size_t left =
        s->j->m->units.count - 1 - w->removed; /* the last removal leaves nothing: known */
    return left < s->step ? left : s->step;
}

static size_t list_walker(shapley *s, const walker *w, size_t at)
{
    const mha_units *u = &s->j->m->units;
    size_t n = round_size(s, w);
    for (size_t i = 0; i < n; i++) {
        float *gates = s->gates + (at + i) * u->gates;
        memcpy(gates, s->j->base, u->gates * sizeof *gates);
        for (size_t k = 0; k <= w->removed + i; k++)
            mha_units_set(u, w->order[k], gates, 0);
        s->list[at + i] = (mha_variant){s->j->first + w->document, gates};
    }
    return n;
}

static void add_rise(shapley *s, const walker *w, size_t at, double rise)
{
    mha_importance *m = s->j->m;
    m->score[w->sample * m->units.count + w->order[at]] += rise * s->weight;
}

/* Shares what is left of the way down to the empty model among the units that are left. */
static void finish(shapley *s, walker *w)
{
    size_t U = s->j->m->units.count, left = U - w->removed;
    for (size_t k = w->removed; k < U; k++)
        add_rise(s, w, k, (s->empty[w->document] - w->loss) / (double)left);
    s->finished += (double)left;
    w->done = true;
}

static void advance(shapley *s, walker *w, const double *loss, size_t n)
{
    double empty = s->empty[w->document], span = fabs(empty - s->full[w->document]);
    bool near = true;
    for (size_t i = 0; i < n; i++) {
        add_rise(s, w, w->removed, loss[i] - w->loss);
        w->loss = loss[i];
        w->removed++;
        near = near && fabs(loss[i] - empty) <= TOLERANCE * span;
    }
    s->finished += (double)n;
    if (near || w->removed + 1 == s->j->m->units.count)
        finish(s, w);
}

static mha_status walk(shapley *s, mha_err *err)
{
    for (;;) {
        size_t total = 0, at = 0;
        for (size_t i = 0; i < s->count; i++)
            if (!s->walkers[i].done)
                total += list_walker(s, &s->walkers[i], total);
        if (total == 0)
            return MHA_OK;
        mha_share share = share_of(s, (double)total);
        MHA_TRY(mha_variants_loss(s->j->e, s->j->docs, s->list, total, s->loss, NULL, &share, err));
        for (size_t i = 0; i < s->count; i++) {
            walker *w = &s->walkers[i];
            size_t n = w->done ? 0 : round_size(s, w);
            if (!w->done)
                advance(s, w, s->loss + at, n);
            at += n;
        }
    }
}

/* ---- all orders ------------------------------------------------------------------------------
 */

static void start_pair(shapley *s, size_t d, size_t pair, mha_rng *rng)
{
    const mha_importance *m = s->j->m;
    size_t U = m->units.count;
    walker *a = &s->walkers[s->count], *b = a + 1;
    for (size_t u = 0; u < U; u++)
        a->order[u] = u;
    mha_shuffle(a->order, U, rng);
    for (size_t u = 0; u < U; u++)
        b->order[u] = a->order[U - 1 - u];
    for (walker *w = a; w <= b; w++) {
        w->document = d;
        w->sample = m->samples == m->documents ? s->j->first + d : pair;
        w->removed = 0;
        w->loss = s->full[d];
        w->done = false;
        if (U == 1)
            finish(s, w);
    }
    s->count += 2;
}

static mha_status run_orders(shapley *s, mha_err *err)
{
    const mha_importance *m = s->j->m;
    for (size_t d = 0; d < s->j->count; d++) {
        mha_rng rng;
        mha_rng_seed(&rng, m->options.seed, MHA_STREAM_ORDERS + s->j->index[s->j->first + d]);
        for (size_t pair = 0; pair < s->pairs; pair++) {
            start_pair(s, d, pair, &rng);
            bool last = d + 1 == s->j->count && pair + 1 == s->pairs;
            if (s->count < WALKERS && !last)
                continue;
            MHA_TRY(walk(s, err));
            s->count = 0;
        }
    }
    return MHA_OK;
}

/* Losses of the whole and of the empty model. */
static mha_status run_ends(shapley *s, mha_err *err)
{
    size_t D = s->j->count, first = s->j->first;
    mha_share share = share_of(s, 2 * (double)D);
    for (size_t d = 0; d < D; d++) {
        s->list[2 * d] = (mha_variant){first + d, s->j->base};
        s->list[2 * d + 1] = (mha_variant){first + d, s->closed};
    }
    MHA_TRY(mha_variants_loss(s->j->e, s->j->docs, s->list, 2 * D, s->loss, NULL, &share, err));
    for (size_t d = 0; d < D; d++) {
        s->full[d] = s->j->loss[first + d] = s->loss[2 * d];
        s->empty[d] = s->loss[2 * d + 1];
    }
    s->finished = 2 * (double)D;
    return MHA_OK;
}

static mha_status make(shapley *s, mha_err *err)
{
    const mha_units *u = &s->j->m->units;
    size_t D = s->j->count, round = WALKERS * s->step;
    size_t list = round > 2 * D ? round : 2 * D;
    for (size_t i = 0; i < WALKERS; i++)
        MHA_TRY(mha_alloc((void **)&s->walkers[i].order, u->count, sizeof(size_t), err));
    MHA_TRY(mha_alloc((void **)&s->gates, round, u->gates * sizeof *s->gates, err));
    MHA_TRY(mha_alloc((void **)&s->closed, u->gates, sizeof *s->closed, err));
    MHA_TRY(mha_alloc((void **)&s->list, list, sizeof *s->list, err));
    MHA_TRY(mha_alloc((void **)&s->loss, list, sizeof *s->loss, err));
    MHA_TRY(mha_alloc((void **)&s->full, D, 2 * sizeof *s->full, err));
    s->empty = s->full + D;
    memcpy(s->closed, s->j->base, u->gates * sizeof *s->closed);
    for (size_t i = 0; i < u->count; i++)
        mha_units_set(u, i, s->closed, 0);
    return MHA_OK;
}

static void release(shapley *s)
{
    for (size_t i = 0; i < WALKERS; i++)
        mha_free(s->walkers[i].order);
    mha_free(s->gates);
    mha_free(s->closed);
    mha_free(s->list);
    mha_free(s->loss);
    mha_free(s->full);
}

mha_status mha_importance_shapley(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    size_t U = m->units.count, D = j->count, first = m->samples == m->documents ? j->first : 0;
    size_t samples = m->samples == m->documents ? D : m->samples;
    shapley s = {.j = j, .pairs = mha_shapley_pairs(&m->options, m->documents)};
    s.step = U / ROUNDS > LEAST ? U / ROUNDS : LEAST;
    s.all = 2 * (double)D + 2 * (double)D * (double)s.pairs * (double)U;
    /* where pairs of orders are the samples each has its own rises, not a part of the document's */
    s.weight = 1 / (double)(2 * (m->samples == m->documents ? s.pairs : 1));
    mha_status st = make(&s, err);
    if (st == MHA_OK)
        st = run_ends(&s, err);
    if (st == MHA_OK)
        st = run_orders(&s, err);
    for (size_t d = 0; d < D && st == MHA_OK; d++)
        j->empty[j->first + d] = s.empty[d];
    if (st == MHA_OK)
        memcpy(m->rise + first * U, m->score + first * U, samples * U * sizeof *m->rise);
    release(&s);
    return st;
}
