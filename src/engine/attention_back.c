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
#include <string.h>

typedef struct back_job {
    const mha_attention_back *t;
    float *s, *ds, *factor, *bias; /* [threads] slices */
    size_t size, bias_size;
} back_job;

typedef struct back_block {
    const mha_attention_back *t;
    uint32_t head;
    size_t doc, first, rows, lo, n; /* query rows; keys lo … lo + n − 1 */
    float *s, *ds, *factor;         /* [rows, n] */
    const float *bias;
    float *q;                          /* [rows, K], stride H·K; becomes dq */
    const float *k, *v, *dz, *z, *lse; /* at this block's first row and key */
    float *dk, *dv;
} back_block;

/* Scores once more, exactly as the forward pass made them, then P = exp(s − lse). */
static void pattern_again(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t T = b->t->queries->offset[b->doc + 1] - b->t->queries->offset[b->doc];
    size_t S = b->t->keys->offset[b->doc + 1] - b->t->keys->offset[b->doc];
    mha_gemm(false, true, b->rows, b->n, K, a->scale, b->q, HK, b->k, GK, 0, b->s, b->n);
    for (size_t r = 0; r < b->rows; r++) {
        float *s = b->s + r * b->n;
        size_t lo, hi;
        double sum;
        if (a->softcap != 0) {
            kn->softcap(s, b->n, a->softcap);
            for (size_t j = 0; j < b->n; j++)
                b->factor[r * b->n + j] = 1 - s[j] / a->softcap * (s[j] / a->softcap);
        }
        if (b->bias != NULL)
            kn->add(s, mha_bias_row(a, b->bias, T - 1 - (b->first + r)) + b->lo, b->n);
        mha_mask_span(a, b->first + r, S, &lo, &hi);
        memset(s, 0, (lo - b->lo) * sizeof *s);
        kn->exp_sum(s + (lo - b->lo), hi - lo, b->lse[r], &sum);
        memset(s + (hi - b->lo), 0, (b->lo + b->n - hi) * sizeof *s);
    }
}

static void block_back(back_block *b)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    pattern_again(b);
    mha_gemm(true, false, b->n, K, b->rows, 1, b->s, b->n, b->dz, HK, 1, b->dv, GK);
    mha_gemm(false, true, b->rows, b->n, K, 1, b->dz, HK, b->v, GK, 0, b->ds, b->n);
    for (size_t r = 0; r < b->rows; r++) {
        float *p = b->s + r * b->n, *ds = b->ds + r * b->n;
        float delta = kn->dot[MHA_F32](b->dz + r * HK, b->z + r * HK, K);
        kn->softmax_back(ds, p, delta, b->n);
        if (a->softcap != 0)
            kn->mul(ds, b->factor + r * b->n, b->n);
    }
    mha_gemm(true, false, b->n, K, b->rows, a->scale, b->ds, b->n, b->q, HK, 1, b->dk, GK);
    mha_gemm(false, false, b->rows, K, b->n, a->scale, b->ds, b->n, b->k, GK, 0, b->q, HK);
}

/* All rows of one head of one document. */
static void head_back(const back_job *j, uint32_t head, size_t d, size_t worker)
{
    const mha_attention_back *t = j->t;
    const mha_attn_args *a = t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t T = t->queries->offset[d + 1] - t->queries->offset[d];
    size_t S = t->keys->offset[d + 1] - t->keys->offset[d];
    size_t g = (size_t)head * a->kv_heads / a->heads;
    float *bias = j->bias != NULL ? j->bias + worker * j->bias_size : NULL;
    if (bias != NULL)
        mha_bias_fill(a, head, T, S, bias);
    for (size_t first = 0; first < T; first += MHA_BLOCK_ROWS) {
        size_t rows = T - first < MHA_BLOCK_ROWS ? T - first : MHA_BLOCK_ROWS, lo, hi, ignored;
        mha_mask_span(a, first, S, &lo, &ignored);
        mha_mask_span(a, first + rows - 1, S, &ignored, &hi);
        size_t q = (t->queries->offset[d] + first) * HK + head * K;
        size_t k = (t->keys->offset[d] + lo) * GK + g * K;
        back_block b = {.t = t,
                        .head = head,
                        .doc = d,
                        .first = first,
                        .rows = rows,
                        .lo = lo,
                        .n = hi - lo,
                        .s = j->s + worker * j->size,
                        .ds = j->ds + worker * j->size,
                        .factor = j->factor + worker * j->size,
                        .bias = bias,
                        .q = t->saved->q + q,
                        .k = t->saved->k + k,
                        .v = t->saved->v + k,
                        .dz = t->dz + q,
                        .z = t->saved->z + q,
                        .lse = t->saved->lse + head * t->queries->total + t->queries->offset[d] +
                               first,
                        .dk = t->dk + k,
                        .dv = t->dv + k};
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

mha_status mha_attention_back_run(mha_attention_back *t, mha_err *err)
{
    mha_engine *e = t->f->e;
    size_t threads = mha_pool_threads(e->pool), S = 0, T = 0;
    for (size_t d = 0; d < t->f->doc_count; d++) {
        size_t keys = t->keys->offset[d + 1] - t->keys->offset[d];
        size_t rows = t->queries->offset[d + 1] - t->queries->offset[d];
        S = keys > S ? keys : S;
        T = rows > T ? rows : T;
    }
    size_t GK = (size_t)t->a->kv_heads * t->a->width;
    memset(t->dk, 0, t->keys->total * GK * sizeof(float));
    memset(t->dv, 0, t->keys->total * GK * sizeof(float));
    back_job j = {.t = t, .size = MHA_BLOCK_ROWS * S, .bias_size = T + S};
    void *p;
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
