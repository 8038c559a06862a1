/* readout.c: losses of predicted rows, chunk by chunk, and ∂loss/∂logits pushed straight back
 * through the read-out matrix: no [terms, V] array stands.
 *
 * Cross-entropy of id: lse(s) − s_id, gradient softmax(s) − 1_id. Difference: s_against − s_id. */
#include "engine/readout.h"
#include "base/fail.h"
#include "base/mem.h"
#include "engine/direct.h"
#include "engine/matmul.h"
#include "engine/weights.h"
#include <math.h>
#include <string.h>

static bool head_pools(const struct mha_model *m)
{
    for (size_t i = 0; i < m->head.count; i++)
        if (m->head.step[i].op == MHA_OP_POOL)
            return true;
    return false;
}

static mha_status check_terms(const struct mha_model *m, const mha_document *doc, size_t index,
                              mha_err *err)
{
    size_t rows = head_pools(m) ? 1 : mha_side_tokens(m, doc, m->stack_count - 1);
    uint32_t V = m->head.step[m->head.count - 1].logits.w.out;
    for (size_t t = 0; t < doc->predict_n; t++) {
        const mha_prediction *p = &doc->predict[t];
        if (p->row >= rows)
            return mha_fail(err, MHA_ERR_ARG, "document %zu: a prediction at row %u of %zu", index,
                            p->row, rows);
        if (p->id < 0 || (uint32_t)p->id >= V || p->against >= (int32_t)V)
            return mha_fail(err, MHA_ERR_LIMIT,
                            "document %zu: label %d is outside the %u of the model", index,
                            p->id < 0 || (uint32_t)p->id >= V ? p->id : p->against, V);
    }
    return MHA_OK;
}

mha_status mha_readout_check_all(const mha_engine *e, const mha_document *docs, size_t count,
                                 mha_err *err)
{
    const struct mha_model *m = e->model;
    if (m->head.count == 0)
        return mha_fail(err, MHA_ERR_ARG,
                        "the model has no read-out, so there is no loss to measure");
    if (m->info.head == MHA_HEAD_SPAN)
        return mha_fail(err, MHA_ERR_ARG,
                        "the model reads out where an answer starts and ends: no loss is defined");
    if (m->info.head == MHA_HEAD_EMBEDDING)
        return mha_fail(err, MHA_ERR_ARG, "the model reads out an embedding: no loss is defined");
    bool number = m->head.step[m->head.count - 1].logits.w.out == 1;
    for (size_t d = 0; d < count; d++) {
        mha_err why;
        if (number && docs[d].own == NULL)
            return mha_fail(err, MHA_ERR_ARG,
                            "the model's read-out is one number: no loss is defined");
        if (m->stack_count == 2 && docs[d].target_n == 0)
            return mha_fail(err, MHA_ERR_ARG, "document %zu has no target (--target)", d);
        mha_status st = mha_engine_check(e, &docs[d], &why);
        if (st != MHA_OK)
            return mha_fail(err, st, "document %zu: %s", d, why.message);
        MHA_TRY(check_terms(m, &docs[d], d, err));
    }
    return MHA_OK;
}

mha_status mha_readout_init(mha_readout *r, const mha_forward *f, mha_err *err)
{
    void *p;
    r->pooled = head_pools(f->m);
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
            r->term_row[r->first[d] + t] = r->pooled ? d : side->offset[d] + term->row;
        }
    return MHA_OK;
}

void mha_readout_release(mha_readout *r)
{
    mha_free(r->term_row);
    mha_free(r->first);
}

mha_status mha_readout_empty(mha_readout *r, size_t docs)
{
    for (size_t d = 0; d < docs; d++) {
        r->loss[d] = (double)NAN;
        if (r->hits != NULL)
            r->hits[d] = 0;
    }
    return MHA_OK;
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
    double value, size, bias; /* of a direct pass */
} term;

typedef struct logits_job {
    mha_forward *f;
    const mha_logits_args *a;
    float *logits; /* [rows of the chunk, V]; becomes the gradient */
    size_t first;  /* first term of the chunk */
    term *terms;
} logits_job;

/* Whether id is the most likely one: the first of equals. */
static bool is_top(const float *s, int32_t id, float max)
{
    if (s[id] < max)
        return false;
    for (int32_t i = 0; i < id; i++)
        if (s[i] >= max)
            return false;
    return true;
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

/* Derivative of s = cap·tanh(x/cap) by x, given s. */
static float softcap_slope(float s, float cap)
{
    return cap != 0 ? 1 - s / cap * (s / cap) : 1;
}

/* Loss of a difference of logits; with `weight` != 0 s becomes its gradient times weight. */
static term difference(float *s, size_t V, const mha_prediction *p, double weight, float cap)
{
    term out = {.loss = (double)s[p->against] - (double)s[p->id], .hit = s[p->id] > s[p->against]};
    if (weight == 0)
        return out;
    float d_id = softcap_slope(s[p->id], cap), d_against = softcap_slope(s[p->against], cap);
    memset(s, 0, V * sizeof *s);
    s[p->id] -= d_id * (float)weight;
    s[p->against] += d_against * (float)weight;
    return out;
}

/* Cross-entropy; s is used up: it becomes exp(s − max), and with `weight` != 0 the gradient. */
static term cross_entropy(const mha_kernels *k, float *s, size_t V, const mha_prediction *p,
                          double weight, float cap, float max)
{
    double l, id = (double)s[p->id];
    term out = {.hit = is_top(s, p->id, max)};
    if (weight != 0 && cap != 0) { /* the derivative of the softcap needs the logits themselves */
        double lse = 0;
        for (size_t v = 0; v < V; v++)
            lse += exp((double)(s[v] - max));
        lse = (double)max + log(lse);
        for (size_t v = 0; v < V; v++) {
            double t = (double)s[v] / (double)cap;
            double d = exp((double)s[v] - lse) - (v == (size_t)p->id);
            s[v] = (float)(d * weight * (1 - t * t));
        }
        out.loss = lse - id;
        return out;
    }
    k->exp_sum(s, V, max, &l);
    out.loss = (double)max + log(l) - id;
    if (weight != 0) {
        k->scale(s, V, (float)(weight / l));
        s[p->id] -= (float)weight;
    }
    return out;
}

/* The caller's loss; s becomes its gradient times weight when that is not 0. */
static mha_status own(term *out, float *s, size_t V, const mha_document *doc,
                      const mha_prediction *p, double weight, float cap, float max, mha_err *err)
{
    void *gradient = NULL;
    if (weight != 0)
        MHA_TRY(mha_alloc(&gradient, V, sizeof(float), err));
    out->loss = doc->own->term(doc->own->context, p, s, V, gradient);
    out->hit = is_top(s, p->id, max);
    for (size_t v = 0; gradient != NULL && v < V; v++)
        s[v] = (float)((double)((float *)gradient)[v] * weight * (double)softcap_slope(s[v], cap));
    mha_free(gradient);
    if (isfinite(out->loss))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_NUMERIC, "the caller's loss: NaN or infinity");
}

static term direct(float *s, size_t V, const mha_prediction *p, double weight, float cap, float max,
                   const float *b)
{
    bool hit = p->against >= 0 ? s[p->id] > s[p->against] : is_top(s, p->id, max);
    mha_direct_term t = mha_direct_read(s, V, p, weight, cap, max, b);
    return (term){.loss = t.loss, .hit = hit, .value = t.value, .size = t.size, .bias = t.bias};
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
    double weight = r->gradient ? 1.0 / (double)doc->predict_n : 0;
    float *s = j->logits + i * V, cap = j->a->softcap;
    if (cap != 0 && r->direct == NULL)
        k->softcap(s, V, cap);
    float max = k->max(s, V);
    if (!isfinite(max))
        return mha_fail(err, MHA_ERR_NUMERIC, "logits of document %zu: NaN or infinity",
                        j->f->first_document + d);
    if (r->direct != NULL)
        j->terms[t] = direct(s, V, p, weight, cap, max, j->a->b);
    else if (doc->own != NULL)
        return own(&j->terms[t], s, V, doc, p, weight, cap, max, err);
    else
        j->terms[t] = p->against >= 0 ? difference(s, V, p, weight, cap)
                                      : cross_entropy(k, s, V, p, weight, cap, max);
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
            if (r->direct != NULL) {
                r->direct[d].value += terms[t].value;
                r->direct[d].size += terms[t].size;
                r->direct[d].bias += terms[t].bias;
            }
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
    size_t V = j->a->w.out, D = f->reg_width[s->src], chunk = mha_logits_chunk(r->terms, V);
    mha_epilogue ep = {.bias = j->a->b, .act = MHA_ACT_NONE};
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_OUT, chunk * V, sizeof(float), &p, err));
    j->logits = p;
    for (size_t t = 0; t < r->terms; t += chunk) {
        size_t n = r->terms - t < chunk ? r->terms - t : chunk;
        j->first = t;
        MHA_TRY(mha_matmul(f->e, j->logits, V, src + t * D, D, n, &j->a->w, &ep, err));
        MHA_TRY(mha_pool_run(f->e->pool, n, term_task, j, err));
        if (!r->gradient)
            continue;
        MHA_TRY(mha_weights_linear(r->weights, &j->a->w, j->a->b, j->logits, V, src + t * D, D, n,
                                   err));
        MHA_TRY(mha_matmul_back(f->e, r->d_source + t * D, D, j->logits, V, n, &j->a->w, 0, err));
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
