/* curve.c: the pruning experiment (methods D1, D7): an order of removal from some documents, losses
 * and metric along it on others, beside random orders and the opposite order. */
#include "analysis/curve.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

#define DEFAULT_STEPS      10
#define DEFAULT_CONFIDENCE 0.95

size_t mha_curve_removed(const mha_curve *c, size_t step)
{
    return (size_t)floor((double)step * (double)c->units.count / (double)c->steps + 0.5);
}

/* ---- before ----------------------------------------------------------------------------------
 */

/* With a saved ranking only the units that it has can go. */
static void keep_scored(mha_curve *c)
{
    size_t n = 0;
    for (size_t u = 0; c->options.scores != NULL && u < c->units.count; u++) {
        const mha_unit_place *p = &c->units.item[u];
        if (!isnan(c->options.scores[p->step * c->units.stride + p->first]))
            c->units.item[n++] = *p;
    }
    if (c->options.scores != NULL)
        c->units.count = n;
}

static mha_status check(const mha_curve_job *j, mha_err *err)
{
    const mha_curve_options *o = &j->c->options;
    size_t n = 0;
    if (!(o->confidence > 0 && o->confidence < 1))
        return mha_fail(err, MHA_ERR_ARG, "confidence %g is not between 0 and 1", o->confidence);
    if (j->count == 0)
        return mha_fail(err, MHA_ERR_ARG, "no document has anything to predict");
    if (j->ranking != NULL)
        mha_losses_documents(j->ranking, &n);
    if (o->scores == NULL && n == 0)
        return mha_fail(err, MHA_ERR_ARG, "no document ranks the heads");
    if (o->scores != NULL && o->mode != MHA_CURVE_KEPT)
        return mha_fail(err, MHA_ERR_ARG, "a saved ranking is kept as it is");
    if (j->c->units.count == 0)
        return mha_fail(err, MHA_ERR_ARG, "the ranking has none of the chosen heads");
    return MHA_OK;
}

static mha_status prepare(mha_curve_job *j, mha_err *err)
{
    mha_curve *c = j->c;
    mha_curve_options *o = &c->options;
    const mha_importance_options *r = &o->ranking;
    if (o->confidence == 0)
        o->confidence = DEFAULT_CONFIDENCE;
    c->summary.reliability = (double)NAN;
    MHA_TRY(mha_units_init(&c->units, j->model, r->unit, &r->choice, err));
    keep_scored(c);
    MHA_TRY(check(j, err));
    c->steps = o->steps > 0 ? o->steps : DEFAULT_STEPS;
    c->steps = c->steps < c->units.count ? c->steps : c->units.count;
    MHA_TRY(mha_alloc((void **)&c->order, c->units.count, sizeof *c->order, err));
    MHA_TRY(mha_alloc((void **)&c->removed, c->units.count, sizeof *c->removed, err));
    return mha_alloc((void **)&c->points, c->steps + 1, sizeof *c->points, err);
}

/* Everything that the numbers depend on. */
static void key_make(const mha_curve_job *j, char key[65])
{
    const mha_curve *c = j->c;
    const mha_curve_options *o = &c->options;
    const mha_importance_options *r = &o->ranking;
    size_t n = 0;
    uint64_t numbers[] = {o->mode,   r->method, r->unit,       r->draws,      c->steps,
                          o->orders, o->seed,   o->candidates, c->units.count};
    mha_sha256 h;
    mha_sha256_init(&h);
    mha_sha256_add(&h, "curve", sizeof "curve");
    mha_sha256_add(&h, c->units.info->fingerprint, sizeof c->units.info->fingerprint);
    mha_sha256_add(&h, mha_engine_isa(j->e), strlen(mha_engine_isa(j->e)) + 1);
    mha_sha256_add(&h, numbers, sizeof numbers);
    for (size_t u = 0; u < c->units.count; u++) {
        uint32_t place[] = {c->units.item[u].step, c->units.item[u].first};
        mha_sha256_add(&h, place, sizeof place);
    }
    if (o->scores != NULL)
        mha_sha256_add(&h, o->scores, c->units.gates * sizeof *o->scores);
    const mha_document *ranking = j->ranking != NULL ? mha_losses_documents(j->ranking, &n) : NULL;
    mha_key_documents(&h, ranking, n);
    mha_key_documents(&h, r->reference, r->reference_count);
    mha_key_documents(&h, j->docs, j->count);
    mha_sha256_hex(&h, key);
}

/* ---- the run ---------------------------------------------------------------------------------
 */

/* Tokens of documents: what a pass over them costs. */
static double tokens_of(const mha_document *docs, size_t n)
{
    double tokens = 0;
    for (size_t d = 0; d < n; d++)
        tokens += (double)(docs[d].n + docs[d].target_n);
    return tokens;
}

static mha_status measure(mha_curve_job *j, mha_err *err)
{
    mha_curve_values values = {0};
    size_t n = 0;
    const mha_document *ranking = j->ranking != NULL ? mha_losses_documents(j->ranking, &n) : NULL;
    double sets = (double)mha_curve_set(j->c, j->c->steps - 1, 1 + j->c->options.orders) + 1;
    double rank = mha_curve_rank_passes(j) * tokens_of(ranking, n);
    double run = sets * tokens_of(j->docs, j->count);
    j->share.total = 1;
    j->share.part = rank / (rank + run);
    MHA_TRY(mha_curve_rank(j, err));
    j->share.before = rank / (rank + run);
    j->share.part = run / (rank + run);
    mha_status st = mha_curve_measure(&values, j, err);
    if (st == MHA_OK)
        st = mha_curve_summarise(j->c, &values, j->count, err);
    mha_curve_values_release(&values);
    return st;
}

static mha_status run(mha_curve_job *j, mha_err *err)
{
    mha_curve *c = j->c;
    char key[65];
    MHA_TRY(prepare(j, err));
    key_make(j, key);
    MHA_TRY(mha_partial_open(&j->partial, c->options.partial, key, c->options.resume, err));
    mha_status st = mha_partial_end(j->partial, measure(j, err), err);
    mha_partial_free(j->partial);
    for (size_t i = 0; st == MHA_OK && i < c->units.count; i++)
        c->removed[i] = c->units.item[c->order[i]];
    return st;
}

mha_status mha_curve_run(mha_curve **out, mha_engine *e, const mha_model *model,
                         const mha_losses *ranking, const mha_losses *evaluation,
                         const mha_curve_options *options, mha_progress progress,
                         void *progress_context, mha_err *err)
{
    mha_curve *c;
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&c, 1, sizeof *c, err));
    mha_curve_job j = {.c = c,
                       .e = e,
                       .model = model,
                       .ranking = ranking,
                       .share = {.progress = progress, .context = progress_context}};
    c->options = *options;
    j.docs = mha_losses_documents(evaluation, &j.count);
    mha_status st = run(&j, err);
    if (st != MHA_OK) {
        mha_curve_free(c);
        return st;
    }
    *out = c;
    return MHA_OK;
}

void mha_curve_free(mha_curve *c)
{
    if (c == NULL)
        return;
    mha_units_release(&c->units);
    mha_free(c->order);
    mha_free(c->removed);
    mha_free(c->points);
    mha_free(c);
}

const mha_curve_point *mha_curve_points(const mha_curve *c, size_t *count)
{
    *count = c->steps + 1;
    return c->points;
}

const mha_unit_place *mha_curve_order(const mha_curve *c, size_t *count)
{
    *count = c->units.count;
    return c->removed;
}

const mha_curve_summary *mha_curve_summary_get(const mha_curve *c)
{
    return &c->summary;
}
