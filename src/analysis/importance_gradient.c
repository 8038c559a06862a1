/* importance_gradient.c: importance from the gradients of gates (methods D1, D5):
 *
 *     ∂L_d/∂g_u = Σ_{h∈u} ∂L_d/∂g_h,   GRADIENT: mean_d |∂L_d/∂g_u|,   FISHER: mean_d (∂L_d/∂g_u)²
 *
 * The absolute value and the square are of one document's gradient, never of a batch's: order and
 * company of the documents change nothing.
 *
 * DLA (methods E9) is the same with the reverse pass kept to the residual stream: the gradients are
 * then what each head wrote itself, c_u, the loss rises by −c_u when that is taken out of the
 * logits, and all parts of the model together must give the logits (completeness). */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>

#define COMPLETE 1e-4 /* what rounding may leave */

void mha_importance_take_gradient(mha_importance *m, size_t sample, const double *gradient)
{
    size_t U = m->units.count;
    double *score = m->score + sample * U, *rise = m->rise + sample * U;
    mha_units_sum(&m->units, gradient, score);
    for (size_t u = 0; u < U; u++) {
        double g = score[u];
        rise[u] = -g;
        score[u] = m->options.method == MHA_DLA      ? -g
                   : m->options.method == MHA_FISHER ? g * g
                                                     : fabs(g);
    }
}

/* |Σ parts − value| over the largest of them and of the logits that they are part of. */
static double incompleteness(const mha_direct *direct, const double *heads, size_t count)
{
    double sum = direct->embed + direct->mlp + direct->bias;
    double most = fmax(fmax(fabs(direct->embed), fabs(direct->mlp)), fabs(direct->bias));
    for (size_t i = 0; i < count; i++) {
        sum += heads[i];
        most = fmax(most, fabs(heads[i]));
    }
    most = fmax(most, direct->size);
    return most > 0 ? fabs(sum - direct->value) / most : 0;
}

static mha_status check_completeness(mha_importance_job *j, const mha_direct *direct,
                                     const double *heads, mha_err *err)
{
    mha_importance *m = j->m;
    for (size_t i = 0; i < j->count; i++) {
        double error = incompleteness(&direct[i], heads + i * m->units.gates, m->units.gates);
        m->summary.completeness = fmax(m->summary.completeness, error);
        if (!(error <= COMPLETE))
            return mha_fail(err, MHA_ERR_NUMERIC,
                            "document %zu: the parts of the model do not sum to its logits: off by "
                            "%.1e of them",
                            j->index[j->first + i], error);
    }
    return MHA_OK;
}

mha_status mha_importance_gradient(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    double *gradient = NULL;
    mha_direct *direct = NULL;
    mha_document *docs = NULL;
    mha_status st = MHA_OK;
    MHA_TRY_GOTO(st, mha_alloc((void **)&docs, j->count, sizeof *docs, err), out);
    MHA_TRY_GOTO(
        st, mha_alloc((void **)&gradient, j->count, m->units.gates * sizeof *gradient, err), out);
    for (size_t i = 0; i < j->count; i++) {
        docs[i] = j->docs[j->first + i];
        docs[i].gates = j->base;
    }
    if (m->options.method == MHA_DLA)
        MHA_TRY_GOTO(st, mha_alloc((void **)&direct, j->count, sizeof *direct, err), out);
    mha_gradient out = {.loss = j->loss + j->first, .gates = gradient, .direct = direct};
    st = mha_engine_gradient(j->e, docs, j->count, &out, mha_share_step, &j->share, err);
    for (size_t i = 0; i < j->count && st == MHA_OK; i++)
        mha_importance_take_gradient(m, j->first + i, gradient + i * m->units.gates);
    if (direct != NULL && st == MHA_OK)
        st = check_completeness(j, direct, gradient, err);
out:
    mha_free(docs);
    mha_free(gradient);
    mha_free(direct);
    return st;
}
