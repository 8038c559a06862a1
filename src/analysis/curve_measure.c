/* curve_measure.c: losses of the evaluation documents under every set of gates of a pruning curve.
 * Sets are run in groups that fill a batch; a group is what an interrupted run keeps. */
#include "analysis/curve.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include <string.h>

/* Streams of the user's seed for random orders; importance has those below. */
#define STREAM ((uint64_t)8 << 40)
/* Tokens of a group: about two batches. */
#define GROUP_TOKENS 8192

typedef struct measuring {
    mha_curve_job *j;
    mha_curve_values *v;
    size_t *orders; /* [2 + orders, units] */
    size_t order_count;
    size_t *step, *order; /* [sets] */
    float *gates;         /* [group, A, H] */
    mha_variant *list;    /* [group, documents] */
    size_t *hits;         /* [group, documents] */
    double *kept;         /* [2, group, documents] loss and metric as the partial result has them */
    size_t group;
} measuring;

size_t mha_curve_set(const mha_curve *c, size_t step, size_t order)
{
    size_t orders = 2 + c->options.orders;
    return step == 0 ? 0 : step == c->steps ? 1 : 2 + (step - 1) * orders + order;
}

static size_t set_count(const mha_curve *c)
{
    return 2 + (c->steps - 1) * (2 + c->options.orders);
}

static void orders_make(measuring *m)
{
    const mha_curve *c = m->j->c;
    size_t U = c->units.count;
    for (size_t o = 0; o < m->order_count; o++)
        for (size_t i = 0; i < U; i++)
            m->orders[o * U + i] = o == 1 ? c->order[U - 1 - i] : c->order[i];
    for (size_t o = 2; o < m->order_count; o++) {
        mha_rng rng;
        mha_rng_seed(&rng, c->options.seed, STREAM + o);
        for (size_t i = 0; i < U; i++)
            m->orders[o * U + i] = i; /* not to depend on the ranking */
        mha_shuffle(m->orders + o * U, U, &rng);
    }
}

static void sets_make(measuring *m)
{
    const mha_curve *c = m->j->c;
    for (size_t s = 0; s <= c->steps; s++)
        for (size_t o = 0; o < m->order_count; o++) {
            size_t set = mha_curve_set(c, s, o);
            m->step[set] = s;
            m->order[set] = s == 0 || s == c->steps ? 0 : o;
        }
}

static mha_status make(measuring *m, mha_err *err)
{
    const mha_curve_job *j = m->j;
    const mha_units *u = &j->c->units;
    size_t D = j->count, tokens = 0, cells;
    for (size_t d = 0; d < D; d++)
        tokens += j->docs[d].n + j->docs[d].target_n;
    m->order_count = 2 + j->c->options.orders;
    m->v->sets = set_count(j->c);
    m->group = tokens < GROUP_TOKENS ? GROUP_TOKENS / tokens : 1;
    m->group = m->group < m->v->sets ? m->group : m->v->sets;
    if (mha_mul_overflows(m->v->sets, D, &cells))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for %zu documents", D);
    MHA_TRY(mha_alloc((void **)&m->v->loss, cells, sizeof(double), err));
    MHA_TRY(mha_alloc((void **)&m->v->metric, cells, sizeof(double), err));
    MHA_TRY(mha_alloc((void **)&m->orders, m->order_count, u->count * sizeof(size_t), err));
    MHA_TRY(mha_alloc((void **)&m->step, m->v->sets, sizeof *m->step, err));
    MHA_TRY(mha_alloc((void **)&m->order, m->v->sets, sizeof *m->order, err));
    MHA_TRY(mha_alloc((void **)&m->gates, m->group, u->gates * sizeof *m->gates, err));
    MHA_TRY(mha_alloc((void **)&m->list, m->group, D * sizeof *m->list, err));
    MHA_TRY(mha_alloc((void **)&m->hits, m->group, D * sizeof *m->hits, err));
    return mha_alloc((void **)&m->kept, m->group, 2 * D * sizeof *m->kept, err);
}

static void release(measuring *m)
{
    mha_free(m->orders);
    mha_free(m->step);
    mha_free(m->order);
    mha_free(m->gates);
    mha_free(m->list);
    mha_free(m->hits);
    mha_free(m->kept);
}

/* Sets first … first + n − 1 on all documents. */
static mha_status run_group(measuring *m, size_t first, size_t n, mha_err *err)
{
    const mha_curve_job *j = m->j;
    const mha_units *u = &j->c->units;
    size_t D = j->count;
    for (size_t i = 0; i < n; i++) {
        float *gates = m->gates + i * u->gates;
        const size_t *order = m->orders + m->order[first + i] * u->count;
        mha_units_set_all(u, gates, 1);
        for (size_t k = 0; k < mha_curve_removed(j->c, m->step[first + i]); k++)
            mha_units_set(u, order[k], gates, 0);
        for (size_t d = 0; d < D; d++)
            m->list[i * D + d] = (mha_variant){d, gates};
    }
    MHA_TRY(mha_variants_loss(j->e, j->docs, m->list, n * D, m->kept, m->hits, &m->j->share, err));
    for (size_t i = 0; i < n * D; i++)
        m->kept[n * D + i] = (double)m->hits[i] / (double)j->docs[i % D].predict_n;
    return MHA_OK;
}

static mha_status run(measuring *m, mha_err *err)
{
    mha_curve_job *j = m->j;
    size_t D = j->count;
    double part = j->share.part;
    j->share.part = 0;
    for (size_t first = 0, n; first < m->v->sets; first += n) {
        n = m->v->sets - first < m->group ? m->v->sets - first : m->group;
        mha_share_next(&j->share, part * (double)n / (double)m->v->sets);
        if (!mha_partial_get(j->partial, MHA_PARTIAL_SETS + first, m->kept, 2 * n * D)) {
            MHA_TRY(run_group(m, first, n, err));
            MHA_TRY(mha_partial_put(j->partial, MHA_PARTIAL_SETS + first, m->kept, 2 * n * D, err));
        }
        memcpy(m->v->loss + first * D, m->kept, n * D * sizeof *m->kept);
        memcpy(m->v->metric + first * D, m->kept + n * D, n * D * sizeof *m->kept);
    }
    return MHA_OK;
}

mha_status mha_curve_measure(mha_curve_values *v, mha_curve_job *j, mha_err *err)
{
    measuring m = {.j = j, .v = v};
    *v = (mha_curve_values){0};
    mha_status st = make(&m, err);
    if (st == MHA_OK) {
        orders_make(&m);
        sets_make(&m);
        st = run(&m, err);
    }
    release(&m);
    return st;
}

void mha_curve_values_release(mha_curve_values *v)
{
    mha_free(v->loss);
    mha_free(v->metric);
    *v = (mha_curve_values){0};
}
