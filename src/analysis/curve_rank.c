/* curve_rank.c: in which order a pruning curve removes units: by one ranking, by a ranking that is
 * made again at every step, or greedily. Ranks on its own documents, never on those that measure
 * the curve. */
#include "analysis/curve.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

#define CANDIDATES     10
#define PASSES_OF_GRAD 3

typedef struct ranking {
    mha_curve_job *j;
    bool *gone;     /* [units] */
    bool *heads;    /* [A, H] that are left, as a choice */
    float *gates;   /* [A, H] */
    double *score;  /* [units] of units that are left; −inf for those that are gone */
    double *rise;   /* [units] */
    size_t *rank;   /* [units] */
    size_t removed; /* units in the order so far */
    double passes;  /* of all there is to do */
} ranking;

/* ---- one ranking -----------------------------------------------------------------------------
 */

static void remove_unit(ranking *r, size_t unit)
{
    mha_curve *c = r->j->c;
    const mha_unit_place *p = &c->units.item[unit];
    c->order[r->removed++] = unit;
    r->gone[unit] = true;
    mha_units_set(&c->units, unit, r->gates, 0);
    for (uint32_t h = p->first; h < p->first + p->count; h++)
        r->heads[p->step * c->units.stride + h] = false;
}

/* Scores the units that are left. */
static mha_status score_left(ranking *r, mha_importance_options *o, mha_err *err)
{
    mha_curve_job *j = r->j;
    size_t U = j->c->units.count, n, at = 0;
    mha_importance *m;
    o->choice.heads = r->heads;
    o->gates = r->gates;
    MHA_TRY(mha_importance_run(&m, j->e, j->model, j->ranking, o, mha_share_step, &j->share, err));
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    for (size_t u = 0; u < U; u++) {
        bool left = !r->gone[u] && at < n;
        r->score[u] = left ? rows[at].score : -(double)INFINITY;
        r->rise[u] = left ? rows[at].rise : (double)INFINITY;
        at += left;
    }
    j->c->summary.reliability = mha_importance_summary_get(m)->reliability;
    mha_importance_free(m);
    return mha_ranks(r->score, U, r->rank, err);
}

/* Removes the least important `count` of the units that are left. */
static void remove_least(ranking *r, size_t count)
{
    size_t U = r->j->c->units.count, left = U - r->removed;
    for (size_t place = left; place > left - count; place--)
        for (size_t u = 0; u < U; u++)
            if (!r->gone[u] && r->rank[u] == place) {
                remove_unit(r, u);
                break;
            }
}

/* ---- by one ranking --------------------------------------------------------------------------
 */

static mha_status rank_saved(ranking *r, mha_err *err)
{
    const mha_curve *c = r->j->c;
    for (size_t u = 0; u < c->units.count; u++) {
        const mha_unit_place *p = &c->units.item[u];
        r->score[u] = c->options.scores[p->step * c->units.stride + p->first];
    }
    MHA_TRY(mha_ranks(r->score, c->units.count, r->rank, err));
    remove_least(r, c->units.count);
    return MHA_OK;
}

static mha_status rank_once(ranking *r, mha_err *err)
{
    const mha_curve *c = r->j->c;
    mha_importance_options o = c->options.ranking;
    if (c->options.scores != NULL)
        return rank_saved(r, err);
    MHA_TRY(score_left(r, &o, err));
    remove_least(r, c->units.count);
    return MHA_OK;
}

/* ---- again at every step ---------------------------------------------------------------------
 */

/* Takes over the part of the order that an interrupted run had. */
static void continue_order(ranking *r)
{
    size_t U = r->j->c->units.count;
    for (size_t n = U; n > 0; n--) {
        if (!mha_partial_get(r->j->partial, MHA_PARTIAL_ORDER, r->score, n))
            continue;
        for (size_t i = 0; i < n; i++)
            if (r->score[i] >= 0 && r->score[i] < (double)U && !r->gone[(size_t)r->score[i]])
                remove_unit(r, (size_t)r->score[i]);
        return;
    }
}

static mha_status keep_order(ranking *r, mha_err *err)
{
    for (size_t i = 0; i < r->removed; i++)
        r->score[i] = (double)r->j->c->order[i];
    return mha_partial_put(r->j->partial, MHA_PARTIAL_ORDER, r->score, r->removed, err);
}

static mha_status rank_again(ranking *r, mha_err *err)
{
    mha_curve *c = r->j->c;
    mha_importance_options o = c->options.ranking;
    o.resamples = 0;
    o.partial = NULL; /* the order so far is kept instead */
    continue_order(r);
    for (size_t s = 1; s <= c->steps; s++) {
        size_t until = mha_curve_removed(c, s);
        if (r->removed >= until)
            continue;
        mha_share_next(&r->j->share, r->passes / (double)c->steps);
        MHA_TRY(score_left(r, &o, err));
        remove_least(r, until - r->removed);
        MHA_TRY(keep_order(r, err));
    }
    return MHA_OK;
}

/* ---- greedily --------------------------------------------------------------------------------
 */

/* The unit that is left, not yet taken, and comes first: by least score or by least rise. */
static size_t first_of(const ranking *r, const bool *taken, const double *value)
{
    size_t best = SIZE_MAX;
    for (size_t u = 0; u < r->j->c->units.count; u++)
        if (!r->gone[u] && !taken[u] && (best == SIZE_MAX || value[u] < value[best]))
            best = u;
    return best;
}

static mha_status candidates_choose(ranking *r, size_t *list, size_t n, mha_err *err)
{
    bool *taken;
    MHA_TRY(mha_alloc((void **)&taken, r->j->c->units.count, sizeof *taken, err));
    for (size_t i = 0; i < n; i++) {
        list[i] = first_of(r, taken, i % 2 == 0 ? r->score : r->rise);
        taken[list[i]] = true;
    }
    mha_free(taken);
    return MHA_OK;
}

/* Mean losses over the ranking documents with each candidate gone as well: loss [n]. */
static mha_status try_candidates(ranking *r, const size_t *list, size_t n, double *loss,
                                 mha_err *err)
{
    const mha_units *units = &r->j->c->units;
    size_t D;
    const mha_document *docs = mha_losses_documents(r->j->ranking, &D);
    float *gates = NULL;
    mha_variant *variants = NULL;
    double *each = NULL;
    mha_status st = MHA_OK;
    MHA_TRY_GOTO(st, mha_alloc((void **)&gates, n, units->gates * sizeof *gates, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&variants, D, n * sizeof *variants, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&each, D, n * sizeof *each, err), out);
    for (size_t i = 0; i < n; i++) {
        memcpy(gates + i * units->gates, r->gates, units->gates * sizeof *gates);
        mha_units_set(units, list[i], gates + i * units->gates, 0);
        for (size_t d = 0; d < D; d++)
            variants[i * D + d] = (mha_variant){d, gates + i * units->gates};
    }
    st = mha_variants_loss(r->j->e, docs, variants, n * D, each, NULL, &r->j->share, err);
    for (size_t i = 0; i < n && st == MHA_OK; i++)
        loss[i] = mha_tree_sum(each + i * D, D) / (double)D;
out:
    mha_free(gates);
    mha_free(variants);
    mha_free(each);
    return st;
}

static size_t candidate_count(const mha_curve *c, size_t left)
{
    size_t most = c->options.candidates > 0 ? c->options.candidates : CANDIDATES;
    return left < most ? left : most;
}

static mha_status greedy_step(ranking *r, mha_err *err)
{
    const mha_curve *c = r->j->c;
    size_t left = c->units.count - r->removed, n = candidate_count(c, left), best = 0;
    mha_importance_options o = c->options.ranking;
    size_t *list = NULL;
    double *loss = NULL, all = (double)c->units.count * (PASSES_OF_GRAD + (double)n);
    mha_status st = MHA_OK;
    o.method = MHA_GRADIENT;
    o.partial = NULL;
    o.resamples = 0;
    MHA_TRY_GOTO(st, mha_alloc((void **)&list, n, sizeof *list, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&loss, n, sizeof *loss, err), out);
    mha_share_next(&r->j->share, r->passes * PASSES_OF_GRAD / all);
    if (left > n)
        MHA_TRY_GOTO(st, score_left(r, &o, err), out);
    MHA_TRY_GOTO(st, candidates_choose(r, list, n, err), out);
    mha_share_next(&r->j->share, r->passes * (double)n / all);
    MHA_TRY_GOTO(st, try_candidates(r, list, n, loss, err), out);
    for (size_t i = 1; i < n; i++)
        best = loss[i] < loss[best] ? i : best;
    remove_unit(r, list[best]);
    st = keep_order(r, err);
out:
    mha_free(list);
    mha_free(loss);
    return st;
}

static mha_status rank_greedily(ranking *r, mha_err *err)
{
    continue_order(r);
    while (r->removed < r->j->c->units.count)
        MHA_TRY(greedy_step(r, err));
    return MHA_OK;
}

/* ---- all of it -------------------------------------------------------------------------------
 */

double mha_curve_rank_passes(const mha_curve_job *j)
{
    const mha_curve *c = j->c;
    if (c->options.scores != NULL)
        return 0;
    if (c->options.mode == MHA_CURVE_GREEDY)
        return (double)c->units.count *
               (PASSES_OF_GRAD + (double)candidate_count(c, c->units.count));
    double once = mha_importance_passes(j->model, j->ranking, &c->options.ranking);
    return c->options.mode == MHA_CURVE_KEPT ? once : once * (double)c->steps / 2;
}

static mha_status run(ranking *r, mha_err *err)
{
    mha_curve *c = r->j->c;
    mha_status st = c->options.mode == MHA_CURVE_KEPT       ? rank_once(r, err)
                    : c->options.mode == MHA_CURVE_RESCORED ? rank_again(r, err)
                                                            : rank_greedily(r, err);
    if (c->options.mode != MHA_CURVE_KEPT)
        c->summary.reliability = (double)NAN;
    return st;
}

mha_status mha_curve_rank(mha_curve_job *j, mha_err *err)
{
    const mha_units *u = &j->c->units;
    ranking r = {.j = j, .passes = j->share.part};
    mha_status st = MHA_OK;
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.gone, u->count, sizeof *r.gone, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.heads, u->gates, sizeof *r.heads, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.gates, u->gates, sizeof *r.gates, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.score, u->count, sizeof *r.score, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.rise, u->count, sizeof *r.rise, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&r.rank, u->count, sizeof *r.rank, err), out);
    mha_units_set_all(u, r.gates, 1);
    for (size_t i = 0; i < u->count; i++)
        for (uint32_t h = 0; h < u->item[i].count; h++)
            r.heads[u->item[i].step * u->stride + u->item[i].first + h] = true;
    if (j->c->options.mode != MHA_CURVE_KEPT)
        j->share.part = 0; /* the first step moves on from here */
    st = run(&r, err);
out:
    mha_free(r.gone);
    mha_free(r.heads);
    mha_free(r.gates);
    mha_free(r.score);
    mha_free(r.rise);
    mha_free(r.rank);
    return st;
}
