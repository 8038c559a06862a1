/* importance_alone.c: all-but-one (Michel et al. 2019): how far each unit can stand in for its
 * whole attention step.
 *
 *     rise_d,u = L_d(no unit of the step) − L_d(only u of the step)
 *
 * All other steps stay as they are. Choosing the best unit of a step by this number on the same
 * documents is optimistic: confirm it on others. */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

typedef struct alone {
    mha_importance_job *j;
    float *gates;     /* [1 + steps + units, A, H]: everything, each step empty, each unit alone */
    size_t *empty_of; /* [units] which set of gates has the unit's step empty */
    size_t sets;
    mha_variant *list; /* [sets] */
    double *loss;      /* [sets] */
} alone;

static float *next_set(alone *a)
{
    const mha_units *u = &a->j->m->units;
    float *gates = a->gates + a->sets++ * u->gates;
    memcpy(gates, a->j->base, u->gates * sizeof *gates);
    return gates;
}

static mha_status make(alone *a, mha_err *err)
{
    const mha_units *u = &a->j->m->units;
    size_t sets = 1 + u->info->attn_count + u->count;
    MHA_TRY(mha_alloc((void **)&a->gates, sets, u->gates * sizeof *a->gates, err));
    MHA_TRY(mha_alloc((void **)&a->empty_of, u->count, sizeof *a->empty_of, err));
    MHA_TRY(mha_alloc((void **)&a->list, sets, sizeof *a->list, err));
    MHA_TRY(mha_alloc((void **)&a->loss, sets, sizeof *a->loss, err));
    next_set(a);
    for (size_t i = 0; i < u->count; i++) {
        size_t step = u->item[i].step;
        bool again = i > 0 && u->item[i - 1].step == step;
        a->empty_of[i] = again ? a->empty_of[i - 1] : a->sets;
        if (!again)
            memset(next_set(a) + step * u->stride, 0, u->stride * sizeof *a->gates);
    }
    for (size_t i = 0; i < u->count; i++) {
        float *gates = next_set(a);
        memset(gates + u->item[i].step * u->stride, 0, u->stride * sizeof *gates);
        mha_units_set(u, i, gates, 1);
    }
    return MHA_OK;
}

static mha_status run_document(alone *a, size_t d, mha_err *err)
{
    mha_importance *m = a->j->m;
    size_t U = m->units.count;
    for (size_t s = 0; s < a->sets; s++)
        a->list[s] = (mha_variant){d, a->gates + s * m->units.gates};
    mha_share share = a->j->share;
    share.part /= (double)a->j->count;
    share.before += share.part * (double)(d - a->j->first);
    MHA_TRY(mha_variants_loss(a->j->e, a->j->docs, a->list, a->sets, a->loss, NULL, &share, err));
    a->j->loss[d] = a->loss[0];
    for (size_t u = 0; u < U; u++)
        m->score[d * U + u] = m->rise[d * U + u] =
            a->loss[a->empty_of[u]] - a->loss[a->sets - U + u];
    return MHA_OK;
}

mha_status mha_importance_all_but_one(mha_importance_job *j, mha_err *err)
{
    alone a = {.j = j};
    mha_status st = make(&a, err);
    for (size_t d = j->first; d < j->first + j->count && st == MHA_OK; d++)
        st = run_document(&a, d, err);
    mha_free(a.gates);
    mha_free(a.empty_of);
    mha_free(a.list);
    mha_free(a.loss);
    return st;
}
