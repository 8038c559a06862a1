/* direct.c: see direct.h. With the direction ds of the logits constant, and every part c of the
 * model that writes to the residual stream written as it was,
 *
 *     ⟨ds, s⟩ = Σ_c ⟨c, dx⟩ + Σ ⟨bias, dy⟩
 *
 * holds exactly (methods E9), whatever the order of norms: what flows back is the same linear map
 * for all parts. The logits are those before the softcap, which would break the sum. */
#include "engine/direct.h"
#include "base/fail.h"
#include "engine/readout.h"
#include <math.h>
#include <string.h>

/* ---- is there a direct path at all ------------------------------------------------------------
 */

/* Walks steps from the last to the first with the registers that the logits depend on directly. */
static mha_status walk(const mha_steps *steps, bool live[MHA_REGISTER_COUNT], mha_err *err)
{
    for (size_t i = steps->count; i-- > 0;) {
        const mha_step *s = &steps->step[i];
        if (s->op == MHA_OP_LOGITS)
            live[s->src] = true;
        if (s->op == MHA_OP_LOGITS || !live[s->dst])
            continue;
        if (s->op == MHA_OP_ACT)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "no direct attribution: an activation (ACT) stands between the "
                            "residual stream and the logits");
        if (s->op != MHA_OP_ADD)
            live[s->dst] = false;
        if (s->op != MHA_OP_ATTN && s->op != MHA_OP_MLP)
            live[s->src] = true;
    }
    return MHA_OK;
}

mha_status mha_direct_check(const struct mha_model *m, mha_err *err)
{
    const mha_stack *st = &m->stack[m->stack_count - 1];
    bool live[MHA_REGISTER_COUNT] = {false};
    MHA_TRY(walk(&m->head, live, err));
    MHA_TRY(walk(&st->epilogue, live, err));
    for (uint32_t l = st->layers; l-- > 0;)
        MHA_TRY(walk(&st->block[l], live, err));
    return MHA_OK;
}

/* ---- sums over documents ----------------------------------------------------------------------
 */

/* Document d's rows of a register that has `rows`: terms of the read-out, tokens, or one row each.
 */
static void rows_of(const mha_backward *b, size_t rows, size_t d, size_t *first, size_t *end)
{
    const mha_rows *side = &b->f->side[b->f->at];
    const size_t *offset = NULL;
    if (b->gathered)
        offset = b->f->readout->first;
    else if (rows == side->total)
        offset = side->offset;
    *first = offset != NULL ? offset[d] : d;
    *end = offset != NULL ? offset[d + 1] : d + 1;
}

void mha_direct_add(mha_backward *b, mha_direct_part part, const float *x, size_t stride,
                    const float *dy, size_t rows, size_t width)
{
    for (size_t d = 0; x != NULL && d < b->f->doc_count; d++) {
        mha_direct *out = &b->direct[d];
        size_t first, end;
        double sum = 0;
        rows_of(b, rows, d, &first, &end);
        for (size_t r = first; r < end; r++)
            for (size_t i = 0; i < width; i++)
                sum += (double)x[r * stride + i] * (double)dy[r * width + i];
        *(part == MHA_DIRECT_EMBED ? &out->embed
          : part == MHA_DIRECT_MLP ? &out->mlp
                                   : &out->bias) += sum;
    }
}

/* ---- norms and logits -------------------------------------------------------------------------
 */

void mha_direct_norm(float *dx, const float *dy, const float *x, const mha_norm_args *a, size_t n)
{
    bool center = a->kind == MHA_NORM_LAYER;
    double mean = 0, square = 0, mean_g = 0;
    for (size_t i = 0; center && i < n; i++)
        mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
        mean_g += (double)dy[i] * (a->w != NULL ? (double)a->w[i] : 1);
    }
    double r = 1 / sqrt(square / (double)n + (double)a->eps);
    mean_g = center ? mean_g / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        dx[i] = (float)(r * ((double)dy[i] * (a->w != NULL ? (double)a->w[i] : 1) - mean_g));
}

static double capped(float s, float cap)
{
    return cap != 0 ? (double)cap * tanh((double)s / (double)cap) : (double)s;
}

static double bias_at(const float *b, int32_t i)
{
    return b != NULL ? (double)b[i] : 0;
}

static mha_direct_term read_difference(float *s, size_t V, const mha_prediction *p, double weight,
                                       float cap, const float *b)
{
    double loss = capped(s[p->against], cap) - capped(s[p->id], cap);
    double value = (double)s[p->against] - (double)s[p->id];
    double size = fabs((double)s[p->against]) + fabs((double)s[p->id]);
    double bias = bias_at(b, p->against) - bias_at(b, p->id);
    memset(s, 0, V * sizeof *s);
    s[p->id] -= (float)weight;
    s[p->against] += (float)weight;
    return (mha_direct_term){loss, value * weight, size * weight, bias * weight};
}

mha_direct_term mha_direct_read(float *s, size_t V, const mha_prediction *p, double weight,
                                float cap, float max, const float *b)
{
    if (p->against >= 0)
        return read_difference(s, V, p, weight, cap, b);
    double top = capped(max, cap), id = (double)s[p->id], own = capped(s[p->id], cap);
    double sum = 0, value = 0, size = 0, bias = 0;
    for (size_t v = 0; v < V; v++) {
        double e = exp(capped(s[v], cap) - top);
        sum += e;
        value += e * (double)s[v];
        size += e * fabs((double)s[v]);
        bias += e * bias_at(b, (int32_t)v);
        s[v] = (float)e;
    }
    for (size_t v = 0; v < V; v++)
        s[v] = (float)((double)s[v] * weight / sum);
    s[p->id] -= (float)weight;
    return (mha_direct_term){top + log(sum) - own, weight * (value / sum - id),
                             weight * (size / sum + fabs(id)),
                             weight * (bias / sum - bias_at(b, p->id))};
}
