/* importance_gradient.c: importance from the gradients of gates (methods D1, D5):
 *
 *     ∂L_d/∂g_u = Σ_{h∈u} ∂L_d/∂g_h,   GRADIENT: mean_d |∂L_d/∂g_u|,   FISHER: mean_d (∂L_d/∂g_u)²
 *
 * The absolute value and the square are of one document's gradient, never of a batch's: order and
 * company of the documents change nothing. */
#include "analysis/importance.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>

/* Documents whose gradients stand at once. */
#define CHUNK 256

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

static mha_status run_chunk(mha_importance_job *j, size_t first, size_t n, mha_document *docs,
                            double *gradient, double *loss, mha_err *err)
{
    mha_importance *m = j->m;
    for (size_t i = 0; i < n; i++) {
        docs[i] = j->docs[first + i];
        docs[i].gates = j->base;
    }
    mha_gradient out = {.loss = loss + first, .gates = gradient};
    mha_share_next(&j->share, (double)n / (double)m->documents);
    MHA_TRY(mha_engine_gradient(j->e, docs, n, &out, mha_share_step, &j->share, err));
    for (size_t i = 0; i < n; i++)
        mha_importance_take_gradient(m, first + i, gradient + i * m->units.gates);
    return MHA_OK;
}

mha_status mha_importance_gradient(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    size_t D = m->documents, most = D < CHUNK ? D : CHUNK;
    double *gradient = NULL, *loss = NULL;
    mha_document *docs = NULL;
    mha_status st = MHA_OK;
    j->share.part = 0;
    MHA_TRY_GOTO(st, mha_alloc((void **)&docs, most, sizeof *docs, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&loss, D, sizeof *loss, err), out);
    MHA_TRY_GOTO(st, mha_alloc((void **)&gradient, most, m->units.gates * sizeof *gradient, err),
                 out);
    for (size_t first = 0, n; first < D && st == MHA_OK; first += n) {
        n = D - first < CHUNK ? D - first : CHUNK;
        st = run_chunk(j, first, n, docs, gradient, loss, err);
    }
    if (st == MHA_OK)
        m->summary.loss = mha_tree_sum(loss, D) / (double)D;
out:
    mha_free(docs);
    mha_free(loss);
    mha_free(gradient);
    return st;
}
