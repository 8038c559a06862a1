/* readout.c: losses of predicted rows, chunk by chunk, and ∂loss/∂logits pushed straight back
 * through the read-out matrix: no [terms, V] array stands.
 *
 * Cross-entropy of id: lse(s) − s_id, gradient softmax(s) − 1_id. Difference: s_against − s_id. */
#include "engine/readout.h"
#include "base/fail.h"
#include "base/mem.h"
#include "engine/matmul.h"
#include <math.h>
#include <string.h>

static bool head_pools(const struct mha_model *m)
{
    for (size_t i = 0; i < m->head.count; i++)
        if (m->head.step[i].op == MHA_OP_POOL)
            return true;
    return false;
}

static mha_status check_term(const mha_readout *r, const mha_forward *f, size_t d,
                             const mha_prediction *p, mha_err *err)
{
    const mha_rows *side = &f->side[f->m->stack_count - 1];
    size_t rows = r->pooled ? 1 : side->offset[d + 1] - side->offset[d];
    const mha_step *last = &f->m->head.step[f->m->head.count - 1];
    uint32_t V = last->logits.w.out;
    if (p->row >= rows)
        return mha_fail(err, MHA_ERR_ARG, "document %zu: a prediction at row %u of %zu",
                        f->first_document + d, p->row, rows);
    if (p->id < 0 || (uint32_t)p->id >= V || p->against >= (int32_t)V)
        return mha_fail(err, MHA_ERR_LIMIT, "document %zu: label %d is outside the %u of the model",
                        f->first_document + d, p->id, V);
    return MHA_OK;
}

mha_status mha_readout_init(mha_readout *r, const mha_forward *f, bool gradient, mha_err *err)
{
    void *p;
    r->pooled = head_pools(f->m);
    r->gradient = gradient;
    MHA_TRY(mha_alloc(&p, f->doc_count + 1, sizeof(size_t), err));
    r->first = p;
    for (size_t d = 0; d < f->doc_count; d++)
        r->first[d + 1] = r->first[d] + f->docs[d].predict_n;
    r->terms = r->first[f->doc_count];
    MHA_TRY(mha_alloc(&p, r->terms, sizeof(size_t), err));
    r->term_row = p;
    const mha_rows *side = &f->side[f->m->stack_count - 1];
    for (size_t d = 0; d < f->doc_count; d++)
        for (size_t t = 0; t < f->docs[d].predict_n; t++) {
            const mha_prediction *term = &f->docs[d].predict[t];
            MHA_TRY(check_term(r, f, d, term, err));
            r->term_row[r->first[d] + t] = r->pooled ? d : side->offset[d] + term->row;
        }
    return MHA_OK;
}

void mha_readout_release(mha_readout *r)
{
    mha_free(r->term_row);
    mha_free(r->first);
}

mha_status mha_readout_gather(mha_forward *f, mha_err *err)
{
    mha_readout *r = f->readout;
    if (r->pooled)
        return MHA_OK;
    size_t D = f->reg_width[MHA_X];
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_ROWS, r->terms * D, sizeof(float), &p, err));
    float *rows = p;
    for (size_t t = 0; t < r->terms; t++) {
        memcpy(rows + t * D, f->reg[MHA_X] + r->term_row[t] * D, D * sizeof(float));
    }
    f->reg[MHA_X] = rows;
    f->reg_rows[MHA_X] = r->terms;
    return MHA_OK;
}

mha_status mha_readout_scatter(mha_backward *b, mha_err *err)
{
    const mha_readout *r = b->f->readout;
    if (r->pooled || !b->live[MHA_X])
        return MHA_OK;
    size_t D = b->width[MHA_X], N = b->f->side[b->f->at].total;
    void *p;
    float *dx;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_ROWS, r->terms * D, sizeof(float), &p, err));
    memcpy(p, b->d[MHA_X], r->terms * D * sizeof(float));
    mha_backward_used(b, MHA_X);
    MHA_TRY(mha_backward_into(b, MHA_X, N, D, &dx, err));
    memset(dx, 0, N * D * sizeof *dx);
    for (size_t t = 0; t < r->terms; t++)
        b->f->k->add(dx + r->term_row[t] * D, (const float *)p + t * D, D);
    mha_backward_pass(b, MHA_X, dx);
    return MHA_OK;
}

/* ---- LOGITS -----------------------------------------------------------------------------------
 */

typedef struct term {
    double loss;
    bool hit;
} term;

typedef struct logits_job {
    mha_forward *f;
    const mha_logits_args *a;
    float *logits; /* [rows of the chunk, V]; becomes the gradient */
    size_t first;  /* first term of the chunk */
    term *terms;
} logits_job;

static size_t argmax(const float *s, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (s[i] > s[best])
            best = i;
    return best;
}

/* Which document a term belongs to. */
static size_t term_document(const mha_readout *r, size_t docs, size_t t)
{
    mha_rows rows = {.offset = r->first};
    size_t d = mha_rows_document(&rows, docs, t);
    while (t >= r->first[d + 1]) /* documents without terms share an offset */
        d++;
    return d;
}

/* s ← ∂loss/∂s·weight. cap: derivative of the softcap that made s. */
static void row_gradient(const mha_kernels *k, float *s, size_t V, const mha_prediction *p,
                         double weight, double lse, float cap)
{
    if (p->against >= 0) {
        float f_id = 1, f_other = 1;
        if (cap != 0) {
            f_id = 1 - s[p->id] / cap * (s[p->id] / cap);
            f_other = 1 - s[p->against] / cap * (s[p->against] / cap);
        }
        memset(s, 0, V * sizeof *s);
        s[p->id] -= f_id * (float)weight;
        s[p->against] += f_other * (float)weight;
        return;
    }
    if (cap != 0) {
        for (size_t j = 0; j < V; j++) {
            double y = exp((double)s[j] - lse) - (j == (size_t)p->id);
            double t = (double)s[j] / (double)cap;
            s[j] = (float)(y * weight * (1 - t * t));
        }
        return;
    }
    double sum;
    k->exp_sum(s, V, (float)lse, &sum); /* softmax, but for the rounding of lse, which sum undoes */
    k->scale(s, V, (float)(weight / sum));
    s[p->id] -= (float)weight;
}

static mha_status term_task(void *context, size_t i, size_t worker, mha_err *err)
{
    (void)worker;
    const logits_job *j = context;
    const mha_readout *r = j->f->readout;
    const mha_kernels *k = j->f->k;
    size_t V = j->a->w.out, t = j->first + i, d = term_document(r, j->f->doc_count, t);
    const mha_document *doc = &j->f->docs[d];
    const mha_prediction *p = &doc->predict[t - r->first[d]];
    float *s = j->logits + i * V;
    if (j->a->softcap != 0)
        k->softcap(s, V, j->a->softcap);
    float m = k->max(s, V);
    if (!isfinite(m))
        return mha_fail(err, MHA_ERR_NUMERIC, "logits of document %zu: NaN or infinity",
                        j->f->first_document + d);
    double lse = 0;
    if (p->against >= 0) {
        j->terms[t].loss = (double)s[p->against] - (double)s[p->id];
        j->terms[t].hit = s[p->id] > s[p->against];
    } else {
        for (size_t v = 0; v < V; v++)
            lse += exp((double)(s[v] - m));
        lse = (double)m + log(lse);
        j->terms[t].loss = lse - (double)s[p->id];
        j->terms[t].hit = argmax(s, V) == (size_t)p->id;
    }
    if (r->gradient)
        row_gradient(k, s, V, p, 1.0 / (double)doc->predict_n, lse, j->a->softcap);
    return MHA_OK;
}

/* Means over each document's terms, in order. */
static void sum_terms(const mha_forward *f, const term *terms)
{
    mha_readout *r = f->readout;
    for (size_t d = 0; d < f->doc_count; d++) {
        double sum = 0;
        size_t n = r->first[d + 1] - r->first[d], hits = 0;
        for (size_t t = r->first[d]; t < r->first[d + 1]; t++) {
            sum += terms[t].loss;
            hits += terms[t].hit;
        }
        r->loss[d] = n > 0 ? sum / (double)n : (double)NAN;
        if (r->hits != NULL)
            r->hits[d] = hits;
    }
}

static mha_status run_chunks(mha_forward *f, const mha_step *s, logits_job *j, const float *src,
                             mha_err *err)
{
    mha_readout *r = f->readout;
    size_t V = j->a->w.out, D = f->reg_width[s->src], chunk = MHA_LOGITS_FLOATS / V;
    chunk = chunk < 8 ? 8 : chunk > MHA_TILE_ROWS ? MHA_TILE_ROWS : chunk;
    mha_epilogue ep = {.bias = j->a->b, .act = MHA_ACT_NONE};
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_OUT, chunk * V, sizeof(float), &p, err));
    j->logits = p;
    for (size_t t = 0; t < r->terms; t += chunk) {
        size_t n = r->terms - t < chunk ? r->terms - t : chunk;
        j->first = t;
        MHA_TRY(mha_matmul(f->e, j->logits, V, src + t * D, D, n, &j->a->w, &ep, err));
        MHA_TRY(mha_pool_run(f->e->pool, n, term_task, j, err));
        if (r->gradient)
            MHA_TRY(
                mha_matmul_back(f->e, r->d_source + t * D, D, j->logits, V, n, &j->a->w, 0, err));
    }
    return MHA_OK;
}

mha_status mha_readout_logits(mha_forward *f, const mha_step *s, mha_err *err)
{
    mha_readout *r = f->readout;
    size_t D = f->reg_width[s->src], rows = f->reg_rows[s->src];
    void *p;
    /* pooled: a document without a label still has its row; every other case has one row a term */
    if (r->pooled && r->terms != rows)
        return mha_fail(err, MHA_ERR_ARG, "every document of a classifier needs one label");
    if (r->gradient) {
        MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_DREAD, rows * D, sizeof(float), &p, err));
        r->d_source = p;
    }
    MHA_TRY(mha_alloc(&p, r->terms, sizeof(term), err));
    logits_job j = {.f = f, .a = &s->logits, .terms = p};
    mha_status st = run_chunks(f, s, &j, f->reg[s->src], err);
    if (st == MHA_OK)
        sum_terms(f, j.terms);
    mha_free(j.terms);
    return st;
}
