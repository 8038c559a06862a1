/* attention_back.c: the reverse of the row-block core. Pattern rows are recomputed from the kept
 * log-sum-exp, block by block; nothing T×S exists here either.
 *
 *   P = exp(s − lse)      dP = dz·Vᵀ      δ_i = ⟨dz_i, z_i⟩ = Σ_j P_ij dP_ij
 *   dS = P∘(dP − δ)       dv += Pᵀ·dz     dq = scale·dS·k     dk += scale·dSᵀ·q
 * With a softcap s = c·tanh(x/c) a factor 1 − (s/c)² follows dS. With a sink P is short of 1 and
 * the same formula holds, because the dropped column has no gradient of its own; the sink itself
 * has −P_sink·δ. The gradient of a table of relative positions is the sum of dS along diagonals. */
#include "base/fail.h"
#include "base/mem.h"
#include "base/turn.h"
#include "engine/attention.h"
#include "engine/pair.h"
#include "engine/relative.h"
#include "engine/weights.h"
#include "kernel/gemm.h"
#include <math.h>
#include <string.h>

typedef struct back_job {
    const mha_attention_back *t;
    float *s, *ds, *factor, *bias; /* [threads] slices */
    size_t size, bias_size;
    mha_relative rel;
    unsigned char *spans; /* [threads] lists of spans */
    size_t span_count;
    mha_turn *turn;   /* [G]: blocks of one head are delivered in order; NULL: none wanted */
    double *diagonal; /* [threads][T + S] sums of dS by j − i; NULL: not wanted */
    double *table;    /* [documents][buckets, H] */
    double *sinks;    /* [documents][H]; NULL: not wanted */
    double *pairs;    /* [documents][H, C]; NULL: not wanted */
} back_job;

typedef struct back_block {
    const mha_attention_back *t;
    mha_layout *l;
    uint32_t head;
    size_t doc, first, rows, worker;
    size_t T;               /* of the document */
    float *s, *ds, *factor; /* [rows, l->width] */
    const float *bias;
    const mha_relative *rel;   /* its a is NULL without relative terms */
    float *q;                  /* [rows, K], stride H·K; becomes dq */
    const float *dz, *z, *lse; /* at this block's first row */
    const float *k, *v;        /* at the document's first key */
    float *dk, *dv;
    double *diagonal, *sink; /* where the gradients of the table and of the sink are summed */
    double *pair;            /* [C] the same of the head's weights of pairs; NULL: not wanted */
} back_block;

/* ---- sites ------------------------------------------------------------------------------------
 */

static bool wants(const mha_attention_back *t, mha_site site, uint32_t head)
{
    return (t->sites & mha_site_bit(site)) &&
           mha_watch_wants(t->watch, site, t->f->m->stack[t->f->at].id, t->kind, t->f->layer, head);
}

/* Rows of dP or dS as whole rows of S, with the weights beside them. */
static mha_status deliver(const back_block *b, mha_site site, size_t worker, mha_err *err)
{
    const mha_attention_back *t = b->t;
    mha_block out = {.site = site,
                     .stack = t->f->m->stack[t->f->at].id,
                     .kind = t->kind,
                     .layer = t->f->layer,
                     .head = b->head,
                     .document = t->f->first_document + b->doc,
                     .first = b->first,
                     .rows = b->rows,
                     .cols = b->l->width,
                     .total_rows = b->T,
                     .data = b->ds,
                     .weights = b->s,
                     .stride = b->l->width};
    return mha_watch_deliver(t->watch, &out, worker, err);
}

/* ---- one block --------------------------------------------------------------------------------
 */

static mha_relative_block relative_of(const back_block *b, const mha_span *span, float *s)
{
    const float *k = b->k + span->lo * b->t->a->kv_heads * b->t->a->width;
    return (mha_relative_block){b->head, b->first, b->rows,      span->lo,   span->hi - span->lo,
                                b->q,    k,        s + span->at, b->l->width};
}

static const float *pair_of(const back_block *b, size_t r, const mha_span *span)
{
    return mha_pair_of(b->t->f, b->doc, b->first + r, b->T) + span->lo * b->t->a->pair_width;
}

/* Scores of one span once more, exactly as the forward pass made them. */
static void span_again(back_block *b, const mha_span *span)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t n = span->hi - span->lo, width = b->l->width;
    float *s = b->s + span->at, *factor = b->factor + span->at;
    mha_gemm(false, true, b->rows, n, K, a->scale, b->q, HK, b->k + span->lo * GK, GK, 0, s, width);
    if (b->rel->a != NULL) {
        mha_relative_block x = relative_of(b, span, b->s);
        mha_relative_add(b->rel, &x, b->worker);
    }
    for (size_t r = 0; r < b->rows; r++, s += width, factor += width) {
        if (a->softcap != 0) {
            kn->softcap(s, n, a->softcap);
            for (size_t j = 0; j < n; j++)
                factor[j] = 1 - s[j] / a->softcap * (s[j] / a->softcap);
        }
        if (b->bias != NULL)
            kn->add(s, mha_bias_row(a, b->bias, b->T - 1 - (b->first + r)) + span->lo, n);
        if (a->pair != NULL)
            mha_pair_add(kn, a, b->head, pair_of(b, r, span), n, s);
        for (size_t j = 0; span->times > 1 && j < n; j++)
            s[j] += logf((float)span->times);
    }
}

/* P = exp(s − lse) where a row sees, 0 elsewhere. */
static void pattern_again(back_block *b)
{
    double sum;
    for (size_t k = 0; k < b->l->count; k++)
        span_again(b, &b->l->spans[k]);
    for (size_t r = 0; r < b->rows; r++) {
        float *s = b->s + r * b->l->width;
        mha_layout_row(b->l, b->first + r, s);
        for (size_t k = 0; k < b->l->run_count; k++)
            b->t->f->k->exp_sum(b->l->runs[k].s, b->l->runs[k].n, b->lse[r], &sum);
        mha_layout_fill(b->l, s, 0);
    }
}

/* dv += Pᵀ·dz and dP = dz·Vᵀ */
static void values_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t width = b->l->width;
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        size_t n = span->hi - span->lo, at = span->lo * GK;
        mha_gemm(true, false, n, K, b->rows, 1, b->s + span->at, width, b->dz, HK, 1, b->dv + at,
                 GK);
        mha_gemm(false, true, b->rows, n, K, 1, b->dz, HK, b->v + at, GK, 0, b->ds + span->at,
                 width);
    }
}

/* What the relative terms give to q, in memory of its own, while q is still there; NULL: there are
 * none. */
static const float *relative_back(back_block *b)
{
    if (b->rel->a == NULL)
        return NULL;
    size_t GK = (size_t)b->t->a->kv_heads * b->t->a->width;
    float *dq = mha_relative_queries(b->rel, b->rows, b->worker);
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        mha_relative_block x = relative_of(b, span, b->ds);
        mha_relative_back(b->rel, &x, b->dk + span->lo * GK, dq, b->worker);
    }
    return dq;
}

/* dk += scale·dSᵀ·q, then dq = scale·dS·k over q; and what relative terms give to both. */
static void scores_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t width = b->l->width;
    const float *dq = relative_back(b);
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        mha_gemm(true, false, span->hi - span->lo, K, b->rows, a->scale, b->ds + span->at, width,
                 b->q, HK, 1, b->dk + span->lo * GK, GK);
    }
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        mha_gemm(false, false, b->rows, K, span->hi - span->lo, a->scale, b->ds + span->at, width,
                 b->k + span->lo * GK, GK, k > 0, b->q, HK);
    }
    for (size_t r = 0; dq != NULL && r < b->rows; r++)
        b->t->f->k->add(b->q + r * HK, dq + r * K, K);
}

/* dS = P∘(dP − δ) in place. */
static void softmax_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, width = b->l->width;
    for (size_t r = 0; r < b->rows; r++) {
        float delta = kn->dot[MHA_F32](b->dz + r * HK, b->z + r * HK, K);
        kn->softmax_back(b->ds + r * width, b->s + r * width, delta, width);
        if (b->sink != NULL)
            *b->sink -= exp((double)a->sinks[b->head] - (double)b->lse[r]) * (double)delta;
    }
}

/* Sums of dS by relative position, at T − 1 − i + j. */
static void sum_diagonals(const back_block *b)
{
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        for (size_t r = 0; r < b->rows; r++) {
            const float *ds = b->ds + r * b->l->width + span->at;
            double *to = b->diagonal + (b->T - 1 - (b->first + r)) + span->lo;
            for (size_t j = 0; j < span->hi - span->lo; j++)
                to[j] += (double)ds[j];
        }
    }
}

static void sum_pairs(const back_block *b)
{
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        for (size_t r = 0; r < b->rows; r++)
            mha_pair_back(b->t->a, pair_of(b, r, span), span->hi - span->lo,
                          b->ds + r * b->l->width + span->at, b->pair);
    }
}

static mha_status block_back(back_block *b, mha_turn *turn, size_t ticket, size_t worker,
                             mha_err *err)
{
    const mha_attn_args *a = b->t->a;
    bool pattern = wants(b->t, MHA_SITE_D_PATTERN, b->head);
    bool scores = wants(b->t, MHA_SITE_D_SCORES, b->head);
    mha_layout_block(b->l, b->first, b->rows, pattern || scores);
    size_t width = b->l->width;
    pattern_again(b);
    values_back(b);
    if (pattern || scores) {
        for (size_t r = 0; r < b->rows; r++) {
            mha_layout_row(b->l, b->first + r, b->ds + r * width);
            mha_layout_fill(b->l, b->ds + r * width, 0);
        }
        mha_turn_wait(turn, ticket);
    }
    if (pattern)
        MHA_TRY(deliver(b, MHA_SITE_D_PATTERN, worker, err));
    softmax_back(b);
    if (scores)
        MHA_TRY(deliver(b, MHA_SITE_D_SCORES, worker, err));
    if (b->diagonal != NULL)
        sum_diagonals(b);
    if (b->pair != NULL)
        sum_pairs(b);
    for (size_t r = 0; r < b->rows && a->softcap != 0; r++)
        b->t->f->k->mul(b->ds + r * width, b->factor + r * width, width);
    scores_back(b);
    return MHA_OK;
}

/* ---- heads and documents ----------------------------------------------------------------------
 */

static mha_sight sight_of(const mha_attention_back *t, size_t d)
{
    mha_sight s = {.a = t->a, .keys = t->keys->offset[d + 1] - t->keys->offset[d]};
    if (t->saved->k_global != NULL) {
        s.global = t->f->globals[d].at;
        s.globals = t->f->globals[d].count;
    }
    return s;
}

/* Sums along diagonals of one head of one document become sums by bucket. */
static void fill_table(const back_job *j, uint32_t head, size_t d, const double *diagonal, size_t T,
                       size_t S)
{
    const mha_attn_args *a = j->t->a;
    double *table = j->table + d * a->bias_buckets * a->heads;
    for (size_t x = 0; x + 1 < T + S; x++) {
        uint32_t b = mha_bias_bucket((int64_t)x - (int64_t)(T - 1), a->bias_buckets,
                                     a->bias_max_distance, a->bias_bidirectional);
        table[(size_t)b * a->heads + head] += diagonal[x];
    }
}

/* All rows of one head of one document. */
static mha_status head_back(const back_job *j, uint32_t head, size_t d, size_t worker, mha_err *err)
{
    const mha_attention_back *t = j->t;
    const mha_attn_args *a = t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t T = t->queries->offset[d + 1] - t->queries->offset[d], rows;
    size_t g = (size_t)head * a->kv_heads / a->heads, key = t->keys->offset[d] * GK + g * K;
    mha_layout l = {.sight = sight_of(t, d)};
    mha_layout_init(&l, j->spans + worker * mha_layout_bytes(j->span_count), j->span_count);
    float *bias = j->bias != NULL ? j->bias + worker * j->bias_size : NULL;
    if (bias != NULL)
        mha_bias_fill(a, head, T, l.sight.keys, bias);
    double *diagonal = j->diagonal != NULL ? j->diagonal + worker * j->bias_size : NULL;
    if (diagonal != NULL)
        memset(diagonal, 0, j->bias_size * sizeof *diagonal);
    for (size_t first = 0; first < T; first += rows) {
        size_t left = MHA_BLOCK_ROWS - first % MHA_BLOCK_ROWS;
        size_t q = (t->queries->offset[d] + first) * HK + head * K;
        rows = mha_sight_rows(&l.sight, first, left < T - first ? left : T - first);
        bool global = mha_sight_is_global(&l.sight, first);
        back_block b = {
            .t = t,
            .l = &l,
            .head = head,
            .doc = d,
            .first = first,
            .rows = rows,
            .worker = worker,
            .T = T,
            .s = j->s + worker * j->size,
            .ds = j->ds + worker * j->size,
            .factor = j->factor + worker * j->size,
            .bias = bias,
            .rel = &j->rel,
            .q = t->saved->q + q,
            .dz = t->dz + q,
            .z = (t->saved->opened != NULL ? t->saved->opened : t->saved->z) + q,
            .lse = t->saved->lse + head * t->queries->total + t->queries->offset[d] + first,
            .k = (global ? t->saved->k_global : t->saved->k) + key,
            .v = (global ? t->saved->v_global : t->saved->v) + key,
            .dk = (global ? t->dk_global : t->dk) + key,
            .dv = (global ? t->dv_global : t->dv) + key,
            .diagonal = diagonal,
            .sink = j->sinks != NULL ? j->sinks + d * a->heads + head : NULL,
            .pair = j->pairs != NULL ? j->pairs + (d * a->heads + head) * a->pair_width : NULL};
        MHA_TRY(block_back(&b, j->turn != NULL ? &j->turn[g] : NULL, d, worker, err));
    }
    if (diagonal != NULL)
        fill_table(j, head, d, diagonal, T, l.sight.keys);
    return MHA_OK;
}

/* One document and key/value head: its query heads in turn, so that dk and dv are summed in one
 * fixed order. */
static mha_status task(void *context, size_t index, size_t worker, mha_err *err)
{
    const back_job *j = context;
    const mha_attn_args *a = j->t->a;
    size_t d = index / a->kv_heads, g = index % a->kv_heads, group = a->heads / a->kv_heads;
    mha_status st = MHA_OK;
    for (size_t h = g * group; h < (g + 1) * group && st == MHA_OK; h++)
        st = head_back(j, (uint32_t)h, d, worker, err);
    if (j->turn != NULL) /* also after an error: others wait for it */
        mha_turn_done(&j->turn[g], d);
    return st;
}

/* One head of all documents in turn, where gradients of relative positions are summed over them. */
static mha_status head_task(void *context, size_t g, size_t worker, mha_err *err)
{
    const back_job *j = context;
    mha_status st = MHA_OK;
    for (size_t d = 0; d < j->t->f->doc_count; d++) {
        if (st == MHA_OK)
            st = head_back(j, (uint32_t)g, d, worker, err);
        if (j->turn != NULL)
            mha_turn_done(&j->turn[g], d);
    }
    return st;
}

/* Room for the lists of spans and for the largest block of scores. */
static mha_status measure(back_job *j, mha_err *err)
{
    const uint32_t whole = mha_site_bit(MHA_SITE_D_PATTERN) | mha_site_bit(MHA_SITE_D_SCORES);
    const mha_attention_back *t = j->t;
    mha_engine *e = t->f->e;
    void *p;
    for (size_t d = 0; d < t->f->doc_count; d++) {
        mha_sight sight = sight_of(t, d);
        size_t most = mha_sight_most(&sight);
        j->span_count = most > j->span_count ? most : j->span_count;
    }
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_SPANS, mha_pool_threads(e->pool),
                            mha_layout_bytes(j->span_count), &p, err));
    j->spans = p;
    for (size_t d = 0; d < t->f->doc_count; d++) {
        mha_sight sight = sight_of(t, d);
        size_t T = t->queries->offset[d + 1] - t->queries->offset[d];
        mha_extent x = mha_sight_extent(&sight, 0, T, MHA_BLOCK_ROWS, p);
        size_t size = t->sites & whole ? MHA_BLOCK_ROWS * sight.keys : x.floats;
        j->size = size > j->size ? size : j->size;
        j->bias_size = T + sight.keys > j->bias_size ? T + sight.keys : j->bias_size;
    }
    return MHA_OK;
}

/* Runs the tasks; with turns only when something is delivered. */
static mha_status run_tasks(back_job *j, mha_err *err)
{
    const mha_attention_back *t = j->t;
    const uint32_t delivered = mha_site_bit(MHA_SITE_D_PATTERN) | mha_site_bit(MHA_SITE_D_SCORES);
    uint32_t G = t->a->kv_heads;
    bool by_heads = j->rel.dk != NULL || j->rel.dq != NULL; /* then H = G */
    size_t tasks = by_heads ? G : t->f->doc_count * G;
    mha_task fn = by_heads ? head_task : task;
    if (!(t->sites & delivered))
        return mha_pool_run(t->f->e->pool, tasks, fn, j, err);
    void *p;
    MHA_TRY(mha_alloc(&p, G, sizeof(mha_turn), err));
    j->turn = p;
    for (uint32_t g = 0; g < G; g++)
        mha_turn_init(&j->turn[g]);
    mha_status st = mha_pool_run(t->f->e->pool, tasks, fn, j, err);
    for (uint32_t g = 0; g < G; g++)
        mha_turn_release(&j->turn[g]);
    mha_free(j->turn);
    return st;
}

/* What one document adds to the gradients of the table, the sinks and the weights of pairs. */
static void add_sums(const back_job *j, size_t d)
{
    const mha_attention_back *t = j->t;
    const mha_attn_args *a = t->a;
    size_t n = (size_t)a->bias_buckets * a->heads, pairs = (size_t)a->heads * a->pair_width;
    if (j->table != NULL)
        mha_weights_vector(t->weights, a->bias_table, j->table + d * n, 0, n);
    if (j->sinks != NULL)
        mha_weights_vector(t->weights, a->sinks, j->sinks + d * a->heads, 0, a->heads);
    if (j->pairs != NULL)
        mha_weights_vector(t->weights, a->pair, j->pairs + d * pairs, 0, pairs);
}

/* With the gradients of the table of relative positions, of the sinks and of the weights of pairs,
 * when they are wanted: summed for each document by itself, then added document after document. */
static mha_status run_sums(back_job *j, mha_err *err)
{
    const mha_attention_back *t = j->t;
    const mha_attn_args *a = t->a;
    size_t n = (size_t)a->bias_buckets * a->heads, docs = t->f->doc_count;
    size_t threads = mha_pool_threads(t->f->e->pool);
    bool table = a->bias == MHA_BIAS_BUCKETS && mha_weights_wants(t->weights, a->bias_table);
    const size_t count[] = {table ? threads * j->bias_size : 0, table ? docs * n : 0,
                            mha_weights_wants(t->weights, a->sinks) ? docs * a->heads : 0,
                            mha_weights_wants(t->weights, a->pair) ? docs * a->heads * a->pair_width
                                                                   : 0};
    enum { SUMS = sizeof count / sizeof *count };
    void *p[SUMS] = {NULL};
    mha_status st = MHA_OK;
    for (size_t i = 0; i < SUMS && st == MHA_OK; i++)
        st = mha_alloc(&p[i], count[i], sizeof(double), err);
    j->diagonal = p[0];
    j->table = p[1];
    j->sinks = p[2];
    j->pairs = p[3];
    if (st == MHA_OK)
        st = run_tasks(j, err);
    for (size_t d = 0; d < docs && st == MHA_OK; d++)
        add_sums(j, d);
    for (size_t i = 0; i < SUMS; i++)
        mha_free(p[i]);
    return st;
}

mha_status mha_attention_back_run(mha_attention_back *t, mha_err *err)
{
    mha_engine *e = t->f->e;
    size_t threads = mha_pool_threads(e->pool), GK = (size_t)t->a->kv_heads * t->a->width;
    back_job j = {.t = t};
    void *p;
    memset(t->dk, 0, t->keys->total * GK * sizeof(float));
    memset(t->dv, 0, t->keys->total * GK * sizeof(float));
    MHA_TRY(measure(&j, err));
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_SCORES, threads * j.size, sizeof(float), &p, err));
    j.s = p;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_PAIR, 2 * threads * j.size, sizeof(float), &p, err));
    j.ds = p;
    j.factor = j.ds + threads * j.size;
    if (t->a->bias != MHA_BIAS_NONE) {
        MHA_TRY(
            mha_scratch_get(e, MHA_SCRATCH_BIAS, threads * j.bias_size, sizeof(float), &p, err));
        j.bias = p;
    }
    MHA_TRY(mha_relative_make(&j.rel, t->f, t->a, mha_rows_longest(t->queries),
                              mha_rows_longest(t->keys), err));
    MHA_TRY(mha_relative_back_begin(&j.rel, t->weights, err));
    MHA_TRY(t->weights != NULL ? run_sums(&j, err) : run_tasks(&j, err));
    return mha_relative_back_end(&j.rel, t->weights, err);
}
