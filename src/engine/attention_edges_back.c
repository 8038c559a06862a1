/* attention_edges_back.c: gradients through additive attention over edges; attention_edges.c is the
 * forward pass. Weights are computed anew from q, k and one log-sum-exp a row:
 *
 *   p_ij = exp(s_ij − lse_i)     dp_ij = dz_i·v_j     δ_i = dz_i·z_i = Σ_j p_ij dp_ij
 *   ds = p(dp − δ)               dv_j += p_ij dz_i
 *   of a·f(q + k):               dq_i, dk_j += ds·a·f'(q_i + k_j),  da += ds·f(q_i + k_j)
 *   of f(t), t = a_q·q + a_k·k:  dq_i += ds·f'(t)·a_q, dk_j += ds·f'(t)·a_k,
 *                                da_q += ds·f'(t)·q_i, da_k += ds·f'(t)·k_j
 *
 * Heads share no element of q, k and v, so each head is one task and sums in one fixed order. */
#include "base/fail.h"
#include "engine/edges.h"
#include "engine/weights.h"
#include <math.h>
#include <string.h>

typedef struct back_job {
    const mha_attention_back *t;
    mha_edges e;
    float *room; /* [threads][size] */
    size_t size;
    double *sums; /* [threads][2·K] */
} back_job;

typedef struct back_head {
    const mha_attention_back *t;
    const mha_edges *e;
    uint32_t head;
    size_t worker;
    float *p, *ds;            /* [E] by target */
    float *p_out, *ds_out;    /* [E] by place, for probes */
    float *of_query, *of_key; /* [N] a_q·q and a_k·k */
    float *d_query, *d_key;   /* [N] their gradients */
    float *row;               /* [K] */
    double *sums;             /* [2·K] gradients of a, or of a_q and a_k */
} back_head;

static size_t at(const back_head *b, size_t r)
{
    return (r * b->t->a->heads + b->head) * b->t->a->width;
}

static float bent(float t, float slope)
{
    return t > 0 ? t : slope * t;
}

/* Scores of the edges into row i, exactly as the forward pass made them. */
static void scores_again(const back_head *b, size_t i)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width;
    const float *q = b->t->saved->q + at(b, i), *weight = a->a != NULL ? a->a + b->head * K : NULL;
    for (size_t e = b->e->first[i]; e < b->e->first[i + 1]; e++) {
        size_t from = b->e->from[e];
        const float *k = b->t->saved->k + at(b, from);
        float sum = 0;
        for (size_t c = 0; weight != NULL && c < K; c++)
            sum += weight[c] * bent(q[c] + k[c], a->slope);
        b->p[e] = weight != NULL ? sum : bent(b->of_query[i] + b->of_key[from], a->slope);
    }
}

/* p and dp of the edges into row i; their share of dv. */
static void pattern_back(const back_head *b, size_t i)
{
    const mha_attention_back *t = b->t;
    const mha_kernels *k = t->f->k;
    size_t K = t->a->width, first = b->e->first[i], n = b->e->first[i + 1] - first;
    const float *dz = t->dz + at(b, i);
    double sum;
    scores_again(b, i);
    k->exp_sum(b->p + first, n, t->saved->lse[b->head * t->queries->total + i], &sum);
    for (size_t e = first; e < first + n; e++) {
        size_t from = at(b, b->e->from[e]);
        k->axpy(t->dv + from, b->p[e], dz, K);
        b->ds[e] = k->dot[MHA_F32](dz, t->saved->v + from, K);
    }
}

/* dp becomes ds. */
static void softmax_back(const back_head *b, size_t i)
{
    const mha_attention_back *t = b->t;
    const mha_kernels *k = t->f->k;
    size_t first = b->e->first[i], n = b->e->first[i + 1] - first;
    float delta = k->dot[MHA_F32](t->dz + at(b, i), t->saved->z + at(b, i), t->a->width);
    k->softmax_back(b->ds + first, b->p + first, delta, n);
}

/* Of a·f(q + k): dk of the sources, and dq over q. */
static void inner_back(const back_head *b, size_t i)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width;
    float *q = b->t->saved->q + at(b, i), *dq = b->row;
    const float *weight = a->a + b->head * K;
    memset(dq, 0, K * sizeof *dq);
    for (size_t e = b->e->first[i]; e < b->e->first[i + 1]; e++) {
        const float *k = b->t->saved->k + at(b, b->e->from[e]);
        float *dk = b->t->dk + at(b, b->e->from[e]), ds = b->ds[e];
        for (size_t c = 0; c < K; c++) {
            float t = q[c] + k[c], d = ds * weight[c] * (t > 0 ? 1 : a->slope);
            dq[c] += d;
            dk[c] += d;
            b->sums[c] += (double)(ds * bent(t, a->slope));
        }
    }
    memcpy(q, dq, K * sizeof *q);
}

/* Of f(a_q·q + a_k·k): what both ends get, as numbers. */
static void outer_back(const back_head *b, size_t i)
{
    float slope = b->t->a->slope;
    for (size_t e = b->e->first[i]; e < b->e->first[i + 1]; e++) {
        size_t from = b->e->from[e];
        float d = b->ds[e] * (b->of_query[i] + b->of_key[from] > 0 ? 1 : slope);
        b->d_query[i] += d;
        b->d_key[from] += d;
    }
}

static void nodes_begin(const back_head *b)
{
    const mha_attention_back *t = b->t;
    const mha_kernels *k = t->f->k;
    size_t K = t->a->width;
    for (size_t r = 0; r < t->queries->total; r++) {
        b->of_query[r] = k->dot[MHA_F32](t->a->a_q + b->head * K, t->saved->q + at(b, r), K);
        b->of_key[r] = k->dot[MHA_F32](t->a->a_k + b->head * K, t->saved->k + at(b, r), K);
        b->d_query[r] = b->d_key[r] = 0;
    }
}

/* Numbers of nodes become rows: dk, and dq over q. */
static void nodes_end(const back_head *b)
{
    const mha_attention_back *t = b->t;
    const mha_kernels *k = t->f->k;
    size_t K = t->a->width;
    for (size_t r = 0; r < t->queries->total; r++) {
        float *q = t->saved->q + at(b, r);
        const float *key = t->saved->k + at(b, r);
        for (size_t c = 0; c < K; c++) {
            b->sums[c] += (double)(b->d_query[r] * q[c]);
            b->sums[K + c] += (double)(b->d_key[r] * key[c]);
        }
        memset(q, 0, K * sizeof *q);
        k->axpy(q, b->d_query[r], t->a->a_q + b->head * K, K);
        k->axpy(t->dk + at(b, r), b->d_key[r], t->a->a_k + b->head * K, K);
    }
}

static void add_sums(const back_head *b)
{
    const mha_attention_back *t = b->t;
    const float *const vectors[] = {t->a->a != NULL ? t->a->a : t->a->a_q, t->a->a_k};
    size_t K = t->a->width;
    for (size_t v = 0; v < 2; v++)
        if (mha_weights_wants(t->weights, vectors[v]))
            mha_weights_vector(t->weights, vectors[v], b->sums + v * K, b->head * K, K);
}

static bool wants(const back_head *b, mha_site site)
{
    const mha_attention_back *t = b->t;
    return (t->sites & mha_site_bit(site)) &&
           mha_watch_wants(t->watch, site, t->f->m->stack[t->f->at].id, t->kind, t->f->layer,
                           b->head);
}

static mha_status deliver(const back_head *b, mha_site site, mha_err *err)
{
    const mha_forward *f = b->t->f;
    if (!wants(b, site))
        return MHA_OK;
    for (size_t e = 0; e < b->e->count; e++) {
        b->p_out[b->e->place[e]] = b->p[e];
        b->ds_out[b->e->place[e]] = b->ds[e];
    }
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first = b->e->documents[d], n = b->e->documents[d + 1] - first;
        mha_block out = {.site = site,
                         .stack = f->m->stack[f->at].id,
                         .kind = b->t->kind,
                         .layer = f->layer,
                         .head = b->head,
                         .document = f->first_document + d,
                         .rows = 1,
                         .cols = n,
                         .total_rows = 1,
                         .data = b->ds_out + first,
                         .weights = b->p_out + first,
                         .stride = n,
                         .target = b->e->target + first};
        MHA_TRY(mha_watch_deliver(b->t->watch, &out, b->worker, err));
    }
    return MHA_OK;
}

static mha_status head_run(const back_head *b, mha_err *err)
{
    size_t rows = b->t->queries->total;
    bool outer = b->t->a->a == NULL;
    if (outer)
        nodes_begin(b);
    for (size_t i = 0; i < rows; i++)
        pattern_back(b, i);
    MHA_TRY(deliver(b, MHA_SITE_D_PATTERN, err));
    for (size_t i = 0; i < rows; i++)
        softmax_back(b, i);
    MHA_TRY(deliver(b, MHA_SITE_D_SCORES, err));
    for (size_t i = 0; i < rows; i++)
        outer ? outer_back(b, i) : inner_back(b, i);
    if (outer)
        nodes_end(b);
    add_sums(b);
    return MHA_OK;
}

static mha_status head_back(void *context, size_t head, size_t worker, mha_err *err)
{
    const back_job *j = context;
    const mha_attention_back *t = j->t;
    size_t rows = t->queries->total, E = j->e.count, K = t->a->width;
    float *edges = j->room + worker * j->size, *nodes = edges + 4 * E;
    back_head b = {.t = t,
                   .e = &j->e,
                   .head = (uint32_t)head,
                   .worker = worker,
                   .p = edges,
                   .ds = edges + E,
                   .p_out = edges + 2 * E,
                   .ds_out = edges + 3 * E,
                   .of_query = nodes,
                   .of_key = nodes + rows,
                   .d_query = nodes + 2 * rows,
                   .d_key = nodes + 3 * rows,
                   .row = nodes + 4 * rows,
                   .sums = j->sums + worker * 2 * K};
    memset(b.sums, 0, 2 * K * sizeof *b.sums);
    return head_run(&b, err);
}

mha_status mha_edges_back_run(mha_attention_back *t, mha_err *err)
{
    mha_engine *e = t->f->e;
    size_t rows = t->queries->total, K = t->a->width, threads = mha_pool_threads(e->pool);
    back_job j = {.t = t};
    void *p;
    memset(t->dk, 0, rows * t->a->heads * K * sizeof(float));
    memset(t->dv, 0, rows * t->a->heads * K * sizeof(float));
    MHA_TRY(mha_edges_make(&j.e, t->f, t->queries, t->a->self_loops, err));
    j.size = 4 * (j.e.count + rows) + K;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_PAIR, threads * j.size, sizeof(float), &p, err));
    j.room = p;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_STATS, threads * 2 * K, sizeof(double), &p, err));
    j.sums = p;
    return mha_pool_run(e->pool, t->a->heads, head_back, &j, err);
}
