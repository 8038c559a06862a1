/* importance_gradient.c: importance from the gradients of gates (methods D1, D5):
 *
 *     ∂L_d/∂g_u = Σ_{h∈u} ∂L_d/∂g_h,   GRADIENT: mean_d |∂L_d/∂g_u|,   FISHER: mean_d (∂L_d/∂g_u)²
 *
 * The absolute value and the square are of one document's gradient, never of a batch's: order and
 * company of the documents change nothing. */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>

void mha_importance_take_gradient(mha_importance *m, size_t sample, const double *gradient)
{
    size_t U = m->units.count;
    double *score = m->score + sample * U, *rise = m->rise + sample * U;
    mha_units_sum(&m->units, gradient, score);
    for (size_t u = 0; u < U; u++) {
        double g = score[u];
        rise[u] = -g;
        score[u] = m->options.method == MHA_FISHER ? g * g : fabs(g);
    }
}

mha_status mha_importance_gradient(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    double *gradient = NULL;
    mha_document *docs = NULL;
    mha_status st = MHA_OK;
    MHA_TRY_GOTO(st, mha_alloc((void **)&docs, j->count, sizeof *docs, err), out);
    MHA_TRY_GOTO(
        st, mha_alloc((void **)&gradient, j->count, m->units.gates * sizeof *gradient, err), out);
    for (size_t i = 0; i < j->count; i++) {
        docs[i] = j->docs[j->first + i];
        docs[i].gates = j->base;
    }
    mha_gradient out = {.loss = j->loss + j->first, .gates = gradient};
    st = mha_engine_gradient(j->e, docs, j->count, &out, mha_share_step, &j->share, err);
    for (size_t i = 0; i < j->count && st == MHA_OK; i++)
        mha_importance_take_gradient(m, j->first + i, gradient + i * m->units.gates);
out:
    mha_free(docs);
    mha_free(gradient);
    return st;
}
