/* op_attn.c: ATTN: projections, per-head norms and rotary, the row-block core, output projection.
 */
#include "base/fail.h"
#include "engine/edges.h"
#include "engine/fork.h"
#include "engine/global.h"
#include "engine/matmul.h"
#include "engine/tape.h"
#include "kernel/gemm.h"
#include <math.h>
#include <string.h>

/* ---- norm and rotary of q or k, in place ------------------------------------------------------
 */

typedef struct turn_job {
    const mha_forward *f;
    const mha_attn_args *a;
    const mha_norm_args *norm;
    const mha_rotary_pair *rotary;
    const mha_rows *rows;
    float *x; /* [N, heads·K] */
    uint32_t heads;
} turn_job;

static size_t document_length(const mha_rows *rows, size_t d)
{
    return rows->past + rows->offset[d + 1] - rows->offset[d];
}

static void norm_row(const turn_job *j, float *x)
{
    const mha_kernels *k = j->f->k;
    if (j->norm->kind == MHA_NORM_RMS)
        k->rms_norm(x, x, j->norm->w, j->norm->n, j->norm->eps);
    else
        k->layer_norm(x, x, j->norm->w, j->norm->b, j->norm->n, j->norm->eps);
}

static void turn_head(const turn_job *j, const mha_rotary *rotary, float *x, size_t position)
{
    const float *cs = rotary->cos + position * rotary->half;
    const float *sn = rotary->sin + position * rotary->half;
    if (j->a->rope == MHA_ROPE_PAIR)
        j->f->k->rope_pair(x, cs, sn, j->a->rope_width);
    else
        j->f->k->rope_half(x, cs, sn, j->a->rope_width);
}

static mha_status turn_rows(void *context, mha_row_range range, mha_err *err)
{
    (void)err;
    const turn_job *j = context;
    size_t d = mha_rows_document(j->rows, j->f->doc_count, range.first);
    size_t ld = (size_t)j->heads * j->a->width;
    for (size_t r = range.first; r < range.first + range.count; r++) {
        while (r >= j->rows->offset[d + 1])
            d++;
        float *x = j->x + r * ld;
        for (size_t c = 0; j->norm->n != 0 && c < ld; c += j->norm->n) /* a head, or all of them */
            norm_row(j, x + c);
        const mha_rotary *rotary = mha_rotary_of(j->rotary, document_length(j->rows, d));
        for (size_t c = 0; rotary != NULL && c < ld; c += j->a->width)
            turn_head(j, rotary, x + c, j->rows->past + r - j->rows->offset[d]);
    }
    return MHA_OK;
}

static mha_status turn_all(mha_forward *f, const mha_attn_args *a, const mha_norm_args *norm,
                           const mha_rotary_pair *rotary, const mha_rows *rows, float *x,
                           uint32_t heads, mha_err *err)
{
    if (norm->n == 0 && a->rope == MHA_ROPE_NONE)
        return MHA_OK;
    turn_job j = {f, a, norm, rotary, rows, x, heads};
    return mha_rows_run(f, rows->total, turn_rows, &j, err);
}

/* ---- q, k, v ----------------------------------------------------------------------------------
 */

static mha_status deliver(const mha_attention *t, mha_site site, const float *x,
                          const mha_rows *rows, uint32_t heads, size_t width, mha_err *err)
{
    return mha_forward_deliver(t->f, t->f->watch, site, t->kind, t->layer, x, rows, heads, width,
                               err);
}

/* Where k or v of this step live: scratch, or the cache of a generation (new rows behind old). */
static mha_status key_memory(mha_forward *f, mha_scratch which, float *cached, size_t rows,
                             size_t width, size_t past, float **all, float **fresh, mha_err *err)
{
    if (cached != NULL) {
        *all = cached;
        *fresh = cached + past * width;
        return MHA_OK;
    }
    void *p;
    MHA_TRY(mha_scratch_get(f->e, which, rows * width, sizeof(float), &p, err));
    *all = *fresh = p;
    return MHA_OK;
}

static mha_status project(mha_forward *f, float *y, const float *x, size_t ldx, size_t rows,
                          const mha_weight *w, const float *bias, mha_err *err)
{
    mha_epilogue ep = {.bias = bias, .act = MHA_ACT_NONE};
    return mha_matmul(f->e, y, w->out, x, ldx, rows, w, &ep, err);
}

/* Keys and values: projected from the source register (self) or the memory (cross). Rows that a
 * cache already holds are not projected again. */
static mha_status make_keys(mha_attention *t, const float *src, size_t ldx, const mha_rows *rows,
                            const mha_rotary_pair *rotary, mha_err *err)
{
    mha_forward *f = t->f;
    const mha_attn_args *a = t->a;
    size_t GK = (size_t)a->kv_heads * a->width;
    mha_kv_cache *c = f->cache != NULL ? &f->cache[f->attn] : NULL;
    float *k, *v, *fresh_k, *fresh_v;
    MHA_TRY(key_memory(f, MHA_SCRATCH_K, c != NULL ? c->k : NULL, rows->total, GK, rows->past, &k,
                       &fresh_k, err));
    MHA_TRY(key_memory(f, MHA_SCRATCH_V, c != NULL ? c->v : NULL, rows->total, GK, rows->past, &v,
                       &fresh_v, err));
    t->k = k;
    t->v = v;
    if (c != NULL && t->kind == MHA_CROSS && c->filled)
        return MHA_OK;
    MHA_TRY(project(f, fresh_k, src, ldx, rows->total, &a->k, a->kb, err));
    if (f->tape != NULL && a->k_norm.n != 0)
        MHA_TRY(mha_tape_keep(f->tape, k, rows->total * GK, &f->saved->k_in, err));
    MHA_TRY(turn_all(f, a, &a->k_norm, rotary, rows, fresh_k, a->kv_heads, err));
    if (c != NULL)
        c->filled = true;
    if (t->depth == MHA_DEPTH_SCORES && !(t->sites & mha_site_bit(MHA_SITE_V)) && c == NULL)
        return MHA_OK;
    return project(f, fresh_v, src, ldx, rows->total, &a->v, a->vb, err);
}

/* The output gate of every number of z: sigmoid(W_g·x + b_g), [Nq, H·K]. */
static mha_status make_gate(mha_attention *t, const float *src, size_t ldx, mha_err *err)
{
    const mha_attn_args *a = t->a;
    mha_forward *f = t->f;
    size_t rows = t->queries->total, count = rows * a->heads * a->width;
    void *p;
    if (a->output_gate.data == NULL || t->depth == MHA_DEPTH_SCORES)
        return MHA_OK;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_GATE, count, sizeof(float), &p, err));
    float *gate = p;
    MHA_TRY(project(f, gate, src, ldx, rows, &a->output_gate, a->output_gate_b, err));
    for (size_t i = 0; i < count; i++)
        gate[i] = 1 / (1 + expf(-gate[i]));
    t->open = gate;
    return MHA_OK;
}

/* ---- output -----------------------------------------------------------------------------------
 */

typedef struct head_out_job {
    const mha_attention *t;
    const float *w; /* W_O as floats */
    size_t ld;
    bool transposed;
    float *out; /* [threads][64, D] */
} head_out_job;

/* z_h·W_O of one head for all documents, block by block. */
static mha_status head_out(void *context, size_t h, size_t worker, mha_err *err)
{
    const head_out_job *j = context;
    const mha_attention *t = j->t;
    size_t K = t->a->width, HK = (size_t)t->a->heads * K, D = t->a->o.out;
    const float *w = j->transposed ? j->w + h * K : j->w + h * K * j->ld;
    float *out = j->out + worker * MHA_BLOCK_ROWS * D;
    if (!mha_watch_wants(t->f->watch, MHA_SITE_HEAD_OUT, t->stack, t->kind, t->layer, (uint32_t)h))
        return MHA_OK;
    for (size_t d = 0; d < t->f->doc_count; d++) {
        size_t T = t->queries->offset[d + 1] - t->queries->offset[d];
        for (size_t r = 0; r < T; r += MHA_BLOCK_ROWS) {
            size_t n = T - r < MHA_BLOCK_ROWS ? T - r : MHA_BLOCK_ROWS;
            const float *z = t->q + (t->queries->offset[d] + r) * HK + h * K;
            mha_gemm(false, j->transposed, n, D, K, 1, z, HK, w, j->ld, 0, out, D);
            mha_block b = {.site = MHA_SITE_HEAD_OUT,
                           .stack = t->stack,
                           .kind = t->kind,
                           .layer = t->layer,
                           .head = (uint32_t)h,
                           .document = t->f->first_document + d,
                           .first = r,
                           .rows = n,
                           .cols = D,
                           .total_rows = T,
                           .data = out,
                           .stride = D};
            MHA_TRY(mha_watch_deliver(t->f->watch, &b, worker, err));
        }
    }
    return MHA_OK;
}

static mha_status deliver_head_out(mha_attention *t, mha_err *err)
{
    if (!(t->sites & mha_site_bit(MHA_SITE_HEAD_OUT)))
        return MHA_OK;
    mha_engine *e = t->f->e;
    head_out_job j = {.t = t};
    void *p;
    MHA_TRY(mha_weight_floats(e, &t->a->o, &j.w, &j.ld, &j.transposed, err));
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_OUT,
                            mha_pool_threads(e->pool) * MHA_BLOCK_ROWS * t->a->o.out, sizeof(float),
                            &p, err));
    j.out = p;
    return mha_pool_run(e->pool, t->a->heads, head_out, &j, err);
}

/* q, k, v for the reverse pass, and room for what the core adds. */
static mha_status keep_for_backward(mha_attention *t, const mha_rows *keys, mha_err *err)
{
    mha_tape *tape = t->f->tape;
    if (tape == NULL)
        return MHA_OK;
    mha_saved *s = t->f->saved;
    size_t N = t->queries->total, HK = (size_t)t->a->heads * t->a->width;
    size_t GK = (size_t)t->a->kv_heads * t->a->width;
    MHA_TRY(mha_tape_alloc(tape, N * HK, &s->z, err));
    t->z = s->z;
    if (t->f->keeping == MHA_KEEP_DIRECT)
        return MHA_OK;
    MHA_TRY(mha_tape_keep(tape, t->q, N * HK, &s->q, err));
    MHA_TRY(mha_tape_keep(tape, t->k, keys->total * GK, &s->k, err));
    MHA_TRY(mha_tape_keep(tape, t->v, keys->total * GK, &s->v, err));
    if (t->open != NULL) {
        MHA_TRY(mha_tape_keep(tape, t->open, N * HK, &s->open, err));
        MHA_TRY(mha_tape_alloc(tape, N * HK, &s->opened, err));
        t->opened = s->opened;
    }
    MHA_TRY(mha_tape_alloc(tape, N * t->a->heads, &s->lse, err));
    t->lse = s->lse;
    return MHA_OK;
}

/* ---- the op -----------------------------------------------------------------------------------
 */

static mha_status run(mha_attention *t, const mha_step *s, const mha_rows *keys, mha_err *err)
{
    mha_forward *f = t->f;
    const mha_attn_args *a = t->a;
    bool cross = t->kind == MHA_CROSS;
    mha_rotary_pair rotary;
    MHA_TRY(mha_rotary_get(f->e, a, t->queries, &rotary, err));
    const float *src = f->reg[s->src];
    size_t D = f->reg_width[s->src];
    MHA_TRY(mha_tape_source(f, s->src, err));
    MHA_TRY(project(f, t->q, src, D, t->queries->total, &a->q, a->qb, err));
    if (f->tape != NULL && a->q_norm.n != 0)
        MHA_TRY(mha_tape_keep(f->tape, t->q, t->queries->total * a->heads * a->width,
                              &f->saved->q_in, err));
    MHA_TRY(turn_all(f, a, &a->q_norm, &rotary, t->queries, t->q, a->heads, err));
    MHA_TRY(make_keys(t, cross ? f->reg[MHA_E] : src, cross ? f->reg_width[MHA_E] : D, keys,
                      &rotary, err));
    MHA_TRY(deliver(t, MHA_SITE_Q, t->q, t->queries, a->heads, a->width, err));
    MHA_TRY(deliver(t, MHA_SITE_K, t->k, keys, a->kv_heads, a->width, err));
    MHA_TRY(deliver(t, MHA_SITE_V, t->v, keys, a->kv_heads, a->width, err));
    MHA_TRY(mha_globals_project(t, src, D, err));
    MHA_TRY(make_gate(t, src, D, err));
    MHA_TRY(keep_for_backward(t, keys, err));
    MHA_TRY(a->mask == MHA_MASK_EDGES ? mha_edges_run(t, err) : mha_attention_run(t, err));
    if (t->depth != MHA_DEPTH_FULL && !(t->sites & mha_site_bit(MHA_SITE_HEAD_OUT)))
        return MHA_OK;
    MHA_TRY(deliver_head_out(t, err));
    float *dst;
    MHA_TRY(mha_register_make(f, s->dst, t->queries->total, a->o.out, &dst, err));
    MHA_TRY(
        project(f, dst, t->q, (size_t)a->heads * a->width, t->queries->total, &a->o, a->ob, err));
    if (f->fork != NULL)
        return mha_fork_heads(f, a, t->q, s->dst, err);
    return deliver(t, MHA_SITE_ATTN_OUT, dst, t->queries, 1, a->o.out, err);
}

/* All heads are pruned: dst ← b_O in every row, or 0. */
static mha_status run_empty(mha_attention *t, const mha_step *s, mha_err *err)
{
    mha_forward *f = t->f;
    size_t rows = t->queries->total, D = s->attn.o.out;
    float *dst;
    if (t->depth != MHA_DEPTH_FULL)
        return MHA_OK;
    MHA_TRY(mha_register_make(f, s->dst, rows, D, &dst, err));
    memset(dst, 0, rows * D * sizeof *dst);
    for (size_t r = 0; s->attn.ob != NULL && r < rows; r++)
        memcpy(dst + r * D, s->attn.ob, D * sizeof *dst);
    return deliver(t, MHA_SITE_ATTN_OUT, dst, t->queries, 1, D, err);
}

mha_status mha_op_attn(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_attn_args *a = &s->attn;
    bool cross = a->keys == MHA_KEYS_MEMORY;
    mha_rows *own = &f->side[f->at];
    mha_attention t = {.f = f,
                       .a = a,
                       .queries = own,
                       .stack = f->m->stack[f->at].id,
                       .kind = cross ? MHA_CROSS : MHA_SELF,
                       .layer = f->layer,
                       .depth = f->depth};
    t.sites = mha_watch_sites(f->watch, t.stack, t.kind, t.layer);
    void *q;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_Q, own->total * a->heads * a->width, sizeof(float),
                            &q, err));
    t.q = q;
    /* all keys that a query can see: with a cache also those of earlier steps */
    size_t with_past[2] = {0, own->past + own->total};
    mha_rows extended = {.offset = with_past, .docs = 1, .total = own->total + own->past};
    const mha_rows *fresh = cross ? &f->side[0] : own;
    t.keys = !cross && own->past > 0 ? &extended : fresh;
    mha_status st = a->heads > 0 ? run(&t, s, fresh, err) : run_empty(&t, s, err);
    f->attn++;
    return st;
}
