/* attention_back.c: the reverse of the row-block core. Pattern rows are recomputed from the kept
 * log-sum-exp, block by block; nothing T×S exists here either.
 *
 *   P = exp(s − lse)      dP = dz·Vᵀ      δ_i = ⟨dz_i, z_i⟩ = Σ_j P_ij dP_ij
 *   dS = P∘(dP − δ)       dv += Pᵀ·dz     dq = scale·dS·k     dk += scale·dSᵀ·q
 * With a softcap s = c·tanh(x/c) a factor 1 − (s/c)² follows dS. With a sink P is short of 1 and
 * the same formula holds, because the dropped column has no gradient of its own. */
#include "base/fail.h"
#include "engine/attention.h"
#include "kernel/gemm.h"
#include <math.h>
#include <string.h>

typedef struct back_job {
    const mha_attention_back *t;
    float *s, *ds, *factor, *bias; /* [threads] slices */
    size_t size, bias_size;
    unsigned char *spans; /* [threads] lists of spans */
    size_t span_count;
} back_job;

typedef struct back_block {
    const mha_attention_back *t;
    mha_layout *l;
    size_t first, rows;
    size_t T;               /* of the document */
    float *s, *ds, *factor; /* [rows, l->width] */
    const float *bias;
    float *q;                  /* [rows, K], stride H·K; becomes dq */
    const float *dz, *z, *lse; /* at this block's first row */
    const float *k, *v;        /* at the document's first key */
    float *dk, *dv;
} back_block;

/* Scores of one span once more, exactly as the forward pass made them. */
static void span_again(back_block *b, const mha_span *span)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t n = span->hi - span->lo, width = b->l->width;
    float *s = b->s + span->at, *factor = b->factor + span->at;
    mha_gemm(false, true, b->rows, n, K, a->scale, b->q, HK, b->k + span->lo * GK, GK, 0, s, width);
    for (size_t r = 0; r < b->rows; r++, s += width, factor += width) {
        if (a->softcap != 0) {
            kn->softcap(s, n, a->softcap);
            for (size_t j = 0; j < n; j++)
                factor[j] = 1 - s[j] / a->softcap * (s[j] / a->softcap);
        }
        if (b->bias != NULL)
            kn->add(s, mha_bias_row(a, b->bias, b->T - 1 - (b->first + r)) + span->lo, n);
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

/* dk += scale·dSᵀ·q, then dq = scale·dS·k over q. */
static void scores_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t width = b->l->width;
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
}

static void block_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K;
    mha_layout_block(b->l, b->first, b->rows, false);
    size_t width = b->l->width;
    pattern_again(b);
    values_back(b);
    for (size_t r = 0; r < b->rows; r++) {
        float *p = b->s + r * width, *ds = b->ds + r * width;
        float delta = kn->dot[MHA_F32](b->dz + r * HK, b->z + r * HK, K);
        kn->softmax_back(ds, p, delta, width);
        if (a->softcap != 0)
            kn->mul(ds, b->factor + r * width, width);
    }
    scores_back(b);
}

static mha_sight sight_of(const mha_attention_back *t, size_t d)
{
    return (mha_sight){.a = t->a, .keys = t->keys->offset[d + 1] - t->keys->offset[d]};
}

/* All rows of one head of one document. */
static void head_back(const back_job *j, uint32_t head, size_t d, size_t worker)
{
    const mha_attention_back *t = j->t;
    const mha_attn_args *a = t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t T = t->queries->offset[d + 1] - t->queries->offset[d], rows;
    size_t key = t->keys->offset[d] * GK + (size_t)head * a->kv_heads / a->heads * K;
    mha_layout l = {.sight = sight_of(t, d)};
    mha_layout_init(&l, j->spans + worker * mha_layout_bytes(j->span_count), j->span_count);
    float *bias = j->bias != NULL ? j->bias + worker * j->bias_size : NULL;
    if (bias != NULL)
        mha_bias_fill(a, head, T, l.sight.keys, bias);
    for (size_t first = 0; first < T; first += rows) {
        size_t left = MHA_BLOCK_ROWS - first % MHA_BLOCK_ROWS;
        size_t q = (t->queries->offset[d] + first) * HK + head * K;
        rows = mha_sight_rows(&l.sight, first, left < T - first ? left : T - first);
        back_block b = {.t = t,
                        .l = &l,
                        .first = first,
                        .rows = rows,
                        .T = T,
                        .s = j->s + worker * j->size,
                        .ds = j->ds + worker * j->size,
                        .factor = j->factor + worker * j->size,
                        .bias = bias,
                        .q = t->saved->q + q,
                        .dz = t->dz + q,
                        .z = t->saved->z + q,
                        .lse = t->saved->lse + head * t->queries->total + t->queries->offset[d] +
                               first,
                        .k = t->saved->k + key,
                        .v = t->saved->v + key,
                        .dk = t->dk + key,
                        .dv = t->dv + key};
        block_back(&b);
    }
}

/* One document and key/value head: its query heads in turn, so that dk and dv are summed in one
 * fixed order. */
static mha_status task(void *context, size_t index, size_t worker, mha_err *err)
{
    (void)err;
    const back_job *j = context;
    const mha_attn_args *a = j->t->a;
    size_t d = index / a->kv_heads, group = a->heads / a->kv_heads;
    uint32_t first = (uint32_t)(index % a->kv_heads * group);
    for (uint32_t h = first; h < first + group; h++)
        head_back(j, h, d, worker);
    return MHA_OK;
}

/* Room for the lists of spans and for the largest block of scores. */
static mha_status measure(back_job *j, mha_err *err)
{
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
        j->size = x.floats > j->size ? x.floats : j->size;
        j->bias_size = T + sight.keys > j->bias_size ? T + sight.keys : j->bias_size;
    }
    return MHA_OK;
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
    return mha_pool_run(e->pool, t->f->doc_count * t->a->kv_heads, task, &j, err);
}
