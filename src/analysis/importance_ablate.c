/* importance_ablate.c: importance by taking units out, exactly (methods D2):
 *
 *     rise_d,u = L_d(u replaced) − L_d
 *
 * The replacement is 0, the mean over reference documents, or what another document had at the
 * same position, averaged over draws. All single heads at once go through the engine's sweep,
 * which shares the work below a head; other units are documents under gates. */
#include "analysis/importance.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include <string.h>

#define DEFAULT_DRAWS 10
/* Bytes that the replacements of a group may take. */
#define FILL_BYTES ((uint64_t)256 << 20)

size_t mha_ablation_draws(const mha_importance_options *o)
{
    if (o->method != MHA_ABLATE_RESAMPLE)
        return 1;
    return o->draws > 0 ? o->draws : DEFAULT_DRAWS;
}

typedef struct ablation {
    mha_importance_job *j;
    mha_document *docs; /* [window] with gates and fill */
    double *loss;       /* [window] of the whole model */
    double *variant;    /* [window, A, H] or [window, units] */
    float *gates;       /* [units, A, H], one unit closed in each */
    mha_variant *list;  /* [window, 1 + units] */
    double *list_loss;
    mha_share share; /* of what runs now */
    bool sweep;
    size_t draws;
} ablation;

/* ---- losses with each unit taken out ---------------------------------------------------------
 */

static mha_status run_sweep(ablation *a, size_t n, mha_err *err)
{
    mha_importance *m = a->j->m;
    mha_share share = a->share;
    mha_ablation out = {.base = a->loss, .variant = a->variant};
    for (size_t i = 0; i < n; i++)
        a->docs[i].gates = NULL;
    MHA_TRY(mha_engine_ablate(a->j->e, a->docs, n, &out, mha_share_step, &share, err));
    m->summary.multiply_adds += out.multiply_adds;
    m->summary.naive_multiply_adds += out.naive_multiply_adds;
    return MHA_OK;
}

/* The same for any units: the whole document, then one variant a unit. */
static mha_status run_variants(ablation *a, size_t n, mha_err *err)
{
    const mha_importance *m = a->j->m;
    size_t U = m->units.count, k = 0;
    for (size_t i = 0; i < n; i++) {
        a->list[k++] = (mha_variant){i, a->j->base};
        for (size_t u = 0; u < U; u++)
            a->list[k++] = (mha_variant){i, a->gates + u * m->units.gates};
    }
    MHA_TRY(mha_variants_loss(a->j->e, a->docs, a->list, k, a->list_loss, NULL, &a->share, err));
    for (size_t i = 0; i < n; i++) {
        a->loss[i] = a->list_loss[i * (1 + U)];
        memcpy(a->variant + i * U, a->list_loss + i * (1 + U) + 1, U * sizeof *a->variant);
    }
    return MHA_OK;
}

/* Adds to the samples the rises of documents first … first + n − 1, which are in a->docs. */
static mha_status add_rises(ablation *a, size_t first, size_t n, mha_err *err)
{
    mha_importance *m = a->j->m;
    size_t U = m->units.count;
    MHA_TRY(a->sweep ? run_sweep(a, n, err) : run_variants(a, n, err));
    for (size_t i = 0; i < n; i++) {
        a->j->loss[first + i] = a->loss[i];
        for (size_t u = 0; u < U; u++) {
            const mha_unit_place *p = &m->units.item[u];
            size_t at =
                a->sweep ? i * m->units.gates + p->step * m->units.stride + p->first : i * U + u;
            m->score[(first + i) * U + u] += (a->variant[at] - a->loss[i]) / (double)a->draws;
        }
    }
    return MHA_OK;
}

/* ---- zero and mean ---------------------------------------------------------------------------
 */

static mha_status run_fixed(ablation *a, const mha_fill *fill, mha_err *err)
{
    const mha_importance_job *j = a->j;
    memcpy(a->docs, j->docs + j->first, j->count * sizeof *a->docs);
    for (size_t i = 0; i < j->count; i++)
        a->docs[i].fill = fill;
    a->share = j->share;
    return add_rises(a, j->first, j->count, err);
}

/* ---- resampling ------------------------------------------------------------------------------
 */

typedef struct partners {
    const mha_document *docs; /* [count] */
    size_t count;
    bool own;       /* docs are the measured documents themselves: a document is not its partner */
    size_t *chosen; /* [window, draws] */
    size_t *list;   /* [count] candidates */
} partners;

static bool long_enough(const mha_document *a, const mha_document *b)
{
    return a->n >= b->n && a->target_n >= b->target_n;
}

/* Draws the partners of one document without replacement, among those that are long enough, or
 * among all when none is; fewer candidates than draws come round again. */
static mha_status choose(ablation *a, partners *p, size_t slot, mha_err *err)
{
    size_t d = a->j->first + slot;
    const mha_document *doc = &a->j->docs[d];
    bool any = false;
    size_t n = 0;
    mha_rng rng;
    for (size_t i = 0; i < p->count; i++)
        any = any || ((!p->own || i != d) && long_enough(&p->docs[i], doc));
    for (size_t i = 0; i < p->count; i++)
        if ((!p->own || i != d) && (!any || long_enough(&p->docs[i], doc)))
            p->list[n++] = i;
    if (n == 0)
        return mha_fail(err, MHA_ERR_ARG,
                        "ablate-resample needs other documents: several, or a reference");
    mha_rng_seed(&rng, a->j->m->options.seed, MHA_STREAM_PARTNERS + a->j->index[d]);
    mha_shuffle(p->list, n, &rng);
    for (size_t k = 0; k < a->draws; k++)
        p->chosen[slot * a->draws + k] = p->list[k % n];
    return MHA_OK;
}

/* Bytes of one document's replacement. */
static uint64_t fill_bytes(const mha_importance *m, const mha_document *d)
{
    uint64_t width = 0;
    for (size_t a = 0; a < m->units.info->attn_count; a++)
        width += (uint64_t)m->units.info->attn[a].heads * m->units.info->attn[a].width;
    return width * sizeof(float) * (d->n > d->target_n ? d->n : d->target_n);
}

/* How many documents from slot `first` of the window on are measured together. */
static size_t group_size(const ablation *a, size_t first)
{
    const mha_importance_job *j = a->j;
    uint64_t bytes = 0;
    size_t n = 0;
    while (first + n < j->count) {
        bytes += fill_bytes(j->m, &j->docs[j->first + first + n]);
        if (n > 0 && bytes > FILL_BYTES)
            break;
        n++;
    }
    return n;
}

/* One draw for the documents in slots first … first + n − 1. fillings: [window] */
static mha_status run_draw(ablation *a, const partners *p, mha_filling *fillings, size_t first,
                           size_t n, size_t draw, mha_err *err)
{
    const mha_importance_job *j = a->j;
    mha_status st = MHA_OK;
    for (size_t i = 0; i < n && st == MHA_OK; i++) {
        const mha_document *from = &p->docs[p->chosen[(first + i) * a->draws + draw]];
        a->docs[i] = j->docs[j->first + first + i];
        st = mha_filling_take(&fillings[i], j, from, &a->docs[i], err);
        a->docs[i].fill = &fillings[i].fill;
    }
    if (st == MHA_OK)
        st = add_rises(a, j->first + first, n, err);
    for (size_t i = 0; i < n; i++)
        mha_filling_release(&fillings[i]);
    return st;
}

static mha_status run_draws(ablation *a, const partners *p, mha_filling *fillings, mha_err *err)
{
    const mha_importance_job *j = a->j;
    a->share = j->share;
    a->share.part = 0;
    for (size_t first = 0, n; first < j->count; first += n) {
        n = group_size(a, first);
        for (size_t k = 0; k < a->draws; k++) {
            double part = (double)n / (double)j->count / (double)a->draws;
            mha_share_next(&a->share, j->share.part * part);
            MHA_TRY(run_draw(a, p, fillings, first, n, k, err));
        }
    }
    return MHA_OK;
}

static mha_status run_resample(ablation *a, mha_err *err)
{
    const mha_importance_job *j = a->j;
    const mha_importance_options *o = &j->m->options;
    partners p = {.docs = o->reference, .count = o->reference_count};
    mha_filling *fillings = NULL;
    mha_status st = MHA_OK;
    if (p.docs == NULL)
        p = (partners){.docs = j->docs, .count = j->m->documents, .own = true};
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.chosen, j->count, a->draws * sizeof *p.chosen, err),
                 out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.list, p.count, sizeof *p.list, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&fillings, j->count, sizeof *fillings, err), out);
    for (size_t i = 0; i < j->count && st == MHA_OK; i++)
        st = choose(a, &p, i, err);
    if (st == MHA_OK)
        st = run_draws(a, &p, fillings, err);
out:
    mha_free(p.chosen);
    mha_free(p.list);
    mha_free(fillings);
    return st;
}

/* ---- all of it -------------------------------------------------------------------------------
 */

static mha_status make(ablation *a, mha_err *err)
{
    const mha_importance *m = a->j->m;
    size_t U = m->units.count, most = a->j->count;
    size_t row = a->sweep ? m->units.gates : U;
    MHA_TRY(mha_alloc((void **)&a->docs, most, sizeof *a->docs, err));
    MHA_TRY(mha_alloc((void **)&a->loss, most, sizeof *a->loss, err));
    MHA_TRY(mha_alloc((void **)&a->variant, most * row, sizeof *a->variant, err));
    if (a->sweep)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&a->list, most * (1 + U), sizeof *a->list, err));
    MHA_TRY(mha_alloc((void **)&a->list_loss, most * (1 + U), sizeof *a->list_loss, err));
    MHA_TRY(mha_alloc((void **)&a->gates, U, m->units.gates * sizeof *a->gates, err));
    for (size_t u = 0; u < U; u++) {
        float *gates = a->gates + u * m->units.gates;
        memcpy(gates, a->j->base, m->units.gates * sizeof *gates);
        mha_units_set(&m->units, u, gates, 0);
    }
    return MHA_OK;
}

static mha_status run(ablation *a, mha_err *err)
{
    switch (a->j->m->options.method) {
    case MHA_ABLATE_MEAN:
        return run_fixed(a, &a->j->mean.fill, err);
    case MHA_ABLATE_RESAMPLE:
        return run_resample(a, err);
    default:
        return run_fixed(a, NULL, err);
    }
}

mha_status mha_importance_ablate(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    size_t U = m->units.count;
    ablation a = {.j = j, .draws = mha_ablation_draws(&m->options)};
    a.sweep = m->units.all_heads && m->options.gates == NULL;
    mha_status st = make(&a, err);
    if (st == MHA_OK)
        st = run(&a, err);
    if (st == MHA_OK)
        memcpy(m->rise + j->first * U, m->score + j->first * U, j->count * U * sizeof *m->rise);
    mha_free(a.docs);
    mha_free(a.loss);
    mha_free(a.variant);
    mha_free(a.list);
    mha_free(a.list_loss);
    mha_free(a.gates);
    return st;
}
