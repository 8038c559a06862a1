/* op_attn_back.c: ATTN reversed: output projection, gates, the row-block core, rotary and per-head
 * norms, projections. */
#include "base/fail.h"
#include "engine/direct.h"
#include "engine/edges.h"
#include "engine/global.h"
#include "engine/matmul.h"
#include "engine/weights.h"
#include <string.h>

/* One attention step being reversed. */
typedef struct attn_back {
    mha_backward *b;
    const mha_saved *s;
    const mha_attn_args *a;
    const mha_rows *queries, *keys;
    mha_kind kind;
    uint32_t sites; /* bit set of the sites that probes want of this step */
    mha_attention_back core;
    float *dq_global; /* queries of global tokens, or NULL */
    float *dgate;     /* [Nq, H·K] of what the output gate's projection gave, or NULL */
} attn_back;

static mha_status deliver(const attn_back *t, mha_site site, const float *x, const mha_rows *rows,
                          uint32_t heads, size_t width, mha_err *err)
{
    if (!(t->sites & mha_site_bit(site)))
        return MHA_OK;
    return mha_forward_deliver(t->b->f, t->b->watch, site, t->kind, t->s->layer, x, rows, heads,
                               width, err);
}

/* ---- gates ------------------------------------------------------------------------------------
 */

typedef struct gate_job {
    const attn_back *t;
    const float *dz;
} gate_job;

/* One document: ∂L/∂gate of each head = Σ ⟨dz, z − fill⟩ over its rows, with z before the gate; in
 * a direct pass what the head wrote: Σ ⟨dz, gate·z + (1 − gate)·fill⟩. */
static mha_status gate_gradients(void *context, size_t d, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const gate_job *j = context;
    const mha_backward *b = j->t->b;
    const mha_saved *s = j->t->s;
    const mha_forward *f = b->f;
    const mha_document *doc = &f->docs[d];
    const float *fill = doc->fill != NULL ? doc->fill->z[s->attn] : NULL;
    const float *gates = doc->gates != NULL ? doc->gates + s->attn * f->gate_stride : NULL;
    size_t K = j->t->a->width, H = j->t->a->heads, first = j->t->queries->offset[d];
    double *out = b->gates + (d * f->m->info.attn_count + s->attn) * f->gate_stride;
    for (size_t r = first; r < j->t->queries->offset[d + 1]; r++)
        for (size_t h = 0; h < H; h++) {
            size_t at = (r * H + h) * K;
            double gate = gates != NULL ? (double)gates[h] : 1;
            out[h] += (b->direct != NULL ? gate : 1) *
                      (double)f->k->dot[MHA_F32](j->dz + at, s->z + at, K);
            if (fill == NULL)
                continue;
            size_t row = doc->fill->rows == 1 ? 0 : r - first;
            out[h] -= (b->direct != NULL ? gate - 1 : 1) *
                      (double)f->k->dot[MHA_F32](j->dz + at, fill + (row * H + h) * K, K);
        }
    return MHA_OK;
}

/* x ← gate·x, and + (1 − gate)·fill when `filled`: dz of the gated z becomes that of z; or the z
 * that was kept becomes the gated one. */
static void apply_gates(const attn_back *t, float *x, bool filled)
{
    const mha_forward *f = t->b->f;
    size_t K = t->a->width, H = t->a->heads;
    for (size_t d = 0; d < f->doc_count; d++) {
        const mha_document *doc = &f->docs[d];
        size_t first = t->queries->offset[d], end = t->queries->offset[d + 1];
        const float *fill = filled && doc->fill != NULL ? doc->fill->z[t->s->attn] : NULL;
        for (size_t r = first; doc->gates != NULL && r < end; r++)
            for (size_t h = 0; h < H; h++) {
                float gate = doc->gates[t->s->attn * f->gate_stride + h], *at = x + (r * H + h) * K;
                size_t row = fill == NULL || doc->fill->rows == 1 ? 0 : r - first;
                f->k->scale(at, K, gate);
                if (fill != NULL)
                    f->k->axpy(at, 1 - gate, fill + (row * H + h) * K, K);
            }
    }
}

typedef struct open_job {
    const mha_saved *s;
    float *dz, *dgate;
    size_t width; /* H·K */
} open_job;

/* With y = g⊙z, g = sigmoid(t): dt = dy∘z∘g∘(1 − g), then dz = dy∘g in place. */
static mha_status open_rows(void *context, mha_row_range range, mha_err *err)
{
    (void)err;
    const open_job *j = context;
    size_t end = (range.first + range.count) * j->width;
    for (size_t i = range.first * j->width; i < end; i++) {
        float g = j->s->open[i];
        j->dgate[i] = j->dz[i] * j->s->opened[i] * g * (1 - g);
        j->dz[i] *= g;
    }
    return MHA_OK;
}

static mha_status gate_back(attn_back *t, float *dz, mha_err *err)
{
    size_t HK = (size_t)t->a->heads * t->a->width;
    void *p;
    if (t->s->open == NULL)
        return MHA_OK;
    MHA_TRY(
        mha_scratch_get(t->b->f->e, MHA_SCRATCH_DGATE, t->s->rows * HK, sizeof(float), &p, err));
    t->dgate = p;
    open_job j = {t->s, dz, p, HK};
    return mha_rows_run(t->b->f, t->s->rows, open_rows, &j, err);
}

/* dz of the gated z from the step's output, and the gradients of W_O, b_O and the gates. */
static mha_status output_back(const attn_back *t, float *dz, mha_err *err)
{
    mha_backward *b = t->b;
    const mha_attn_args *a = t->a;
    const float *dy = b->d[t->s->step->dst];
    size_t HK = (size_t)a->heads * a->width;
    MHA_TRY(deliver(t, MHA_SITE_D_ATTN_OUT, dy, t->queries, 1, a->o.out, err));
    if (b->direct != NULL)
        mha_direct_add(b, MHA_DIRECT_BIAS, a->ob, 0, dy, t->s->rows, a->o.out);
    if (b->weights != NULL) {
        void *z;
        MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_Q, t->s->rows * HK, sizeof(float), &z, err));
        memcpy(z, t->s->z, t->s->rows * HK * sizeof(float));
        apply_gates(t, z, true);
        MHA_TRY(mha_weights_linear(b->weights, &a->o, a->ob, dy, a->o.out, z, HK, t->s->rows, err));
    }
    MHA_TRY(mha_matmul_back(b->f->e, dz, HK, dy, a->o.out, t->s->rows, &a->o, 0, err));
    mha_backward_used(b, t->s->step->dst);
    MHA_TRY(deliver(t, MHA_SITE_D_Z, dz, t->queries, a->heads, a->width, err));
    gate_job j = {t, dz};
    if (b->gates == NULL)
        return MHA_OK;
    return mha_pool_run(b->f->e->pool, b->f->doc_count, gate_gradients, &j, err);
}

/* ---- rotary and per-head norms ----------------------------------------------------------------
 */

typedef struct unturn_job {
    const mha_forward *f;
    const mha_attn_args *a;
    const mha_norm_args *norm;
    const mha_rotary_pair *rotary;
    const mha_rows *rows;
    float *d;       /* [N, heads·K] gradient, in place */
    const float *x; /* [N, heads·K] before the norm, NULL without one */
    uint32_t heads;
} unturn_job;

/* Rotation by minus the angle; PAIR rows go back from half-split to interleaved order. */
static void rotate_back(const unturn_job *j, const mha_rotary *rotary, float *d, size_t position)
{
    size_t half = rotary->half;
    const float *cs = rotary->cos + position * half, *sn = rotary->sin + position * half;
    float out[MHA_HEAD_WIDTH_MAX];
    bool pair = j->a->rope == MHA_ROPE_PAIR;
    for (size_t i = 0; i < half; i++) {
        float first = d[i] * cs[i] + d[i + half] * sn[i];
        float second = d[i + half] * cs[i] - d[i] * sn[i];
        out[pair ? 2 * i : i] = first;
        out[pair ? 2 * i + 1 : i + half] = second;
    }
    memcpy(d, out, 2 * half * sizeof *d);
}

static mha_status rotate_rows(void *context, mha_row_range range, mha_err *err)
{
    (void)err;
    const unturn_job *j = context;
    size_t K = j->a->width, d = mha_rows_document(j->rows, j->f->doc_count, range.first);
    for (size_t r = range.first; r < range.first + range.count; r++) {
        while (r >= j->rows->offset[d + 1])
            d++;
        size_t first = j->rows->offset[d];
        const mha_rotary *rotary = mha_rotary_of(j->rotary, j->rows->offset[d + 1] - first);
        for (uint32_t h = 0; h < j->heads; h++)
            rotate_back(j, rotary, j->d + (r * j->heads + h) * K, r - first);
    }
    return MHA_OK;
}

static mha_status norm_rows(void *context, mha_row_range range, mha_err *err)
{
    (void)err;
    const unturn_job *j = context;
    size_t ld = (size_t)j->heads * j->a->width, n = j->norm->n; /* of a head, or of all of them */
    for (size_t at = range.first * ld; at < (range.first + range.count) * ld; at += n)
        j->f->k->norm_back(j->d + at, j->d + at, j->x + at, j->norm->w, n, j->norm->eps,
                           j->norm->kind == MHA_NORM_LAYER);
    return MHA_OK;
}

/* d of q or k as attention sees them becomes d of what the projection gave. */
static mha_status unturn(const attn_back *t, unturn_job *j, mha_err *err)
{
    size_t values = j->rows->total * j->heads * j->a->width;
    if (j->a->rope != MHA_ROPE_NONE)
        MHA_TRY(mha_rows_run(t->b->f, j->rows->total, rotate_rows, j, err));
    if (j->x == NULL)
        return MHA_OK;
    MHA_TRY(mha_weights_norm(t->b->weights, j->norm, j->d, j->x, values / j->norm->n, err));
    return mha_rows_run(t->b->f, j->rows->total, norm_rows, j, err);
}

/* ---- projections ------------------------------------------------------------------------------
 */

static mha_status project_weights(const attn_back *t, const float *dq, const float *dk,
                                  const float *dv, mha_err *err)
{
    const mha_attn_args *a = t->a;
    const mha_weights *w = t->b->weights;
    const float *x = t->s->x, *from = t->kind == MHA_CROSS ? t->b->f->reg[MHA_E] : x;
    size_t keys = t->keys->total;
    if (t->dgate != NULL)
        MHA_TRY(mha_weights_linear(w, &a->output_gate, a->output_gate_b, t->dgate,
                                   a->output_gate.out, x, a->q.in, t->s->rows, err));
    MHA_TRY(mha_weights_linear(w, &a->q, a->qb, dq, a->q.out, x, a->q.in, t->s->rows, err));
    MHA_TRY(mha_weights_linear(w, &a->k, a->kb, dk, a->k.out, from, a->k.in, keys, err));
    return mha_weights_linear(w, &a->v, a->vb, dv, a->v.out, from, a->v.in, keys, err);
}

/* Gradients of the projections' inputs: dq into the source, dk and dv into the source or the
 * memory. */
static mha_status project_back(const attn_back *t, const float *dq, const float *dk,
                               const float *dv, mha_err *err)
{
    mha_backward *b = t->b;
    const mha_attn_args *a = t->a;
    bool cross = t->kind == MHA_CROSS;
    mha_register src = t->s->step->src;
    mha_engine *e = b->f->e;
    size_t keys = t->keys->total;
    float *dx;
    MHA_TRY(mha_backward_into(b, src, t->s->rows, a->q.in, &dx, err));
    MHA_TRY(mha_matmul_back(e, dx, a->q.in, dq, a->q.out, t->s->rows, &a->q, 0, err));
    if (t->dgate != NULL)
        MHA_TRY(mha_matmul_back(e, dx, a->q.in, t->dgate, a->output_gate.out, t->s->rows,
                                &a->output_gate, 1, err));
    if (cross) {
        mha_backward_pass(b, src, dx);
        MHA_TRY(mha_backward_into(b, MHA_E, keys, a->k.in, &dx, err));
    }
    MHA_TRY(mha_matmul_back(e, dx, a->k.in, dk, a->k.out, keys, &a->k, cross ? 0 : 1, err));
    MHA_TRY(mha_matmul_back(e, dx, a->v.in, dv, a->v.out, keys, &a->v, 1, err));
    MHA_TRY(mha_globals_back_project(&t->core, t->dq_global, t->s->x, dx, err));
    mha_backward_pass(b, cross ? MHA_E : src, dx);
    return MHA_OK;
}

/* dz → dq (over the kept q), dk, dv, with the sites in between. */
static mha_status core_back(attn_back *t, const float *dz, mha_err *err)
{
    mha_backward *b = t->b;
    const mha_attn_args *a = t->a;
    size_t GK = (size_t)a->kv_heads * a->width;
    void *dk, *dv;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_DK, t->keys->total * GK, sizeof(float), &dk, err));
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_DV, t->keys->total * GK, sizeof(float), &dv, err));
    t->core = (mha_attention_back){.f = b->f,
                                   .a = a,
                                   .saved = t->s,
                                   .dz = dz,
                                   .dk = dk,
                                   .dv = dv,
                                   .queries = t->queries,
                                   .keys = t->keys,
                                   .watch = b->watch,
                                   .weights = b->weights,
                                   .kind = t->kind,
                                   .sites = t->sites};
    MHA_TRY(mha_globals_back_begin(&t->core, err));
    MHA_TRY(a->mask == MHA_MASK_EDGES ? mha_edges_back_run(&t->core, err)
                                      : mha_attention_back_run(&t->core, err));
    MHA_TRY(mha_globals_back_split(&t->core, t->s->q, &t->dq_global, err));
    MHA_TRY(deliver(t, MHA_SITE_D_Q, t->s->q, t->queries, a->heads, a->width, err));
    MHA_TRY(deliver(t, MHA_SITE_D_K, dk, t->keys, a->kv_heads, a->width, err));
    return deliver(t, MHA_SITE_D_V, dv, t->keys, a->kv_heads, a->width, err);
}

static mha_status source_back(const attn_back *t, mha_err *err)
{
    mha_forward *f = t->b->f;
    const mha_attn_args *a = t->a;
    const mha_saved *s = t->s;
    mha_rotary_pair rotary;
    MHA_TRY(mha_rotary_get(f->e, a, t->queries, &rotary, err));
    unturn_job q = {f, a, &a->q_norm, &rotary, t->queries, s->q, s->q_in, a->heads};
    unturn_job k = {f, a, &a->k_norm, &rotary, t->keys, t->core.dk, s->k_in, a->kv_heads};
    MHA_TRY(unturn(t, &q, err));
    MHA_TRY(unturn(t, &k, err));
    MHA_TRY(project_weights(t, s->q, t->core.dk, t->core.dv, err));
    return project_back(t, s->q, t->core.dk, t->core.dv, err);
}

/* All heads are pruned: the output is b_O, and nothing flows back. */
static mha_status constant_back(const attn_back *t, mha_err *err)
{
    mha_backward *b = t->b;
    const float *dy = b->d[t->s->step->dst];
    MHA_TRY(deliver(t, MHA_SITE_D_ATTN_OUT, dy, t->queries, 1, t->a->o.out, err));
    if (b->direct != NULL)
        mha_direct_add(b, MHA_DIRECT_BIAS, t->a->ob, 0, dy, t->s->rows, t->a->o.out);
    MHA_TRY(mha_weights_linear(b->weights, &t->a->o, t->a->ob, dy, t->a->o.out, NULL, 0, t->s->rows,
                               err));
    mha_backward_used(b, t->s->step->dst);
    return MHA_OK;
}

mha_status mha_op_attn_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const uint32_t core_sites = mha_site_bit(MHA_SITE_D_PATTERN) | mha_site_bit(MHA_SITE_D_SCORES) |
                                mha_site_bit(MHA_SITE_D_Q) | mha_site_bit(MHA_SITE_D_K) |
                                mha_site_bit(MHA_SITE_D_V);
    const mha_attn_args *a = &s->step->attn;
    mha_stack_id stack = b->f->m->stack[s->at].id;
    bool cross = a->keys == MHA_KEYS_MEMORY;
    attn_back t = {.b = b,
                   .s = s,
                   .a = a,
                   .queries = &b->f->side[s->at],
                   .keys = &b->f->side[cross ? 0 : s->at],
                   .kind = cross ? MHA_CROSS : MHA_SELF};
    t.sites = mha_watch_sites(b->watch, stack, t.kind, s->layer);
    if (a->heads == 0)
        return constant_back(&t, err);
    void *dz;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_DZ, s->rows * a->heads * a->width, sizeof(float),
                            &dz, err));
    MHA_TRY(output_back(&t, dz, err));
    if (b->direct != NULL)
        return MHA_OK;
    bool lowest = s->attn == 0 || b->f->m->info.attn[s->attn - 1].stack != stack;
    b->stopped = lowest && !b->deep; /* no gate lies below */
    if (b->stopped && !(t.sites & core_sites))
        return MHA_OK;
    apply_gates(&t, dz, false);
    MHA_TRY(gate_back(&t, dz, err));
    MHA_TRY(core_back(&t, dz, err));
    return b->stopped ? MHA_OK : source_back(&t, err);
}
