/* weights.c: gradients of stored tensors, added in the layout of the file. */
#include "engine/weights.h"
#include "base/fail.h"
#include "base/mem.h"
#include "kernel/gemm.h"
#include <string.h>

/* Outputs of one task of a matrix's gradient, and columns of one task of a sum over rows. */
#define WEIGHT_TILE 256

/* ---- which tensors ----------------------------------------------------------------------------
 */

static size_t index_of(const struct mha_model *m, const mha_tensor *t)
{
    return (size_t)(t - m->checkpoint->tensors);
}

/* The stored tensor that a matrix is a view of; NULL: it was computed when the model was opened. */
static const mha_tensor *tensor_of(const struct mha_model *m, const mha_weight *w)
{
    const mha_tensor *t = w->data != NULL ? mha_checkpoint_find(m->checkpoint, w->name) : NULL;
    bool inside = t != NULL && w->data >= t->data && w->data < t->data + t->bytes;
    return inside ? t : NULL;
}

static const mha_vector *source_of(const struct mha_model *m, const float *values)
{
    for (size_t i = 0; i < m->vector_count; i++)
        if (m->vectors[i].values == values)
            return &m->vectors[i];
    return NULL;
}

/* What of a step has a gradient. */
typedef struct parts {
    const mha_weight *matrix[11];
    const float *vector[22];
} parts;

static parts parts_of(const mha_step *s)
{
    const mha_attn_args *a = &s->attn;
    switch (s->op) {
    case MHA_OP_EMBED:
        return s->embed.kind == MHA_EMBED_NODE ? (parts){{NULL}, {NULL}}
                                               : (parts){{&s->embed.table}, {NULL}};
    case MHA_OP_CONV:
        return s->conv.kind == MHA_CONV_TOKENS ? (parts){{&s->conv.w}, {s->conv.b}}
                                               : (parts){{NULL}, {NULL}};
    case MHA_OP_LINEAR:
        return (parts){{&s->linear.w}, {s->linear.b}};
    case MHA_OP_NORM:
        return (parts){{NULL}, {s->norm.w, s->norm.b}};
    case MHA_OP_ATTN:
        return (parts){
            {&a->q, &a->k, &a->v, &a->o, &a->q_global, &a->k_global, &a->v_global, &a->rel,
             &a->rel_k, &a->rel_q, &a->output_gate},
            {a->qb,         a->kb,         a->vb,
             a->ob,         a->q_norm.w,   a->q_norm.b,
             a->k_norm.w,   a->k_norm.b,   a->bias == MHA_BIAS_BUCKETS ? a->bias_table : NULL,
             a->sinks,      a->qb_global,  a->kb_global,
             a->vb_global,  a->a,          a->a_q,
             a->a_k,        a->rel_kb,     a->rel_qb,
             a->rel_norm.w, a->rel_norm.b, a->output_gate_b,
             a->pair}};
    case MHA_OP_MLP:
        return (parts){{&s->mlp.up, &s->mlp.gate, &s->mlp.down},
                       {s->mlp.up_b, s->mlp.gate_b, s->mlp.down_b}};
    case MHA_OP_LOGITS:
        return (parts){{&s->logits.w}, {s->logits.b}};
    default:
        return (parts){{NULL}, {NULL}};
    }
}

static void mark_steps(const struct mha_model *m, const mha_steps *steps, bool *has)
{
    for (size_t i = 0; i < steps->count; i++) {
        parts p = parts_of(&steps->step[i]);
        for (size_t k = 0; k < sizeof p.matrix / sizeof *p.matrix; k++) {
            const mha_tensor *t = p.matrix[k] != NULL ? tensor_of(m, p.matrix[k]) : NULL;
            if (t != NULL)
                has[index_of(m, t)] = true;
        }
        for (size_t k = 0; k < sizeof p.vector / sizeof *p.vector; k++) {
            const mha_vector *v = p.vector[k] != NULL ? source_of(m, p.vector[k]) : NULL;
            if (v != NULL)
                has[index_of(m, v->tensor)] = true;
        }
    }
}

static mha_status find_wanted(mha_weights *w, const mha_weight_gradient *wanted, size_t count,
                              const bool *has, mha_err *err)
{
    const struct mha_model *m = w->e->model;
    for (size_t i = 0; i < count; i++) {
        const mha_tensor *t = mha_checkpoint_find(m->checkpoint, wanted[i].tensor);
        if (t == NULL || !has[index_of(m, t)])
            return mha_fail(err, MHA_ERR_ARG, "%s: tensor %s %s", m->info.path, wanted[i].tensor,
                            t == NULL ? "does not exist" : "has no gradient: no step uses it");
        if (mha_dtype_get(t->type)->block != 1)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: tensor %s is %s: only plain float types have gradients",
                            m->info.path, t->name, mha_dtype_get(t->type)->name);
        w->of[index_of(m, t)] = wanted[i].out;
    }
    return MHA_OK;
}

mha_status mha_weights_init(mha_weights *w, mha_engine *e, const mha_weight_gradient *wanted,
                            size_t count, mha_err *err)
{
    const struct mha_model *m = e->model;
    size_t tensors = m->checkpoint->tensor_count;
    void *p, *has;
    *w = (mha_weights){.e = e};
    MHA_TRY(mha_alloc(&has, tensors, sizeof(bool), err));
    for (size_t at = 0; at < m->stack_count; at++) {
        mark_steps(m, &m->stack[at].prologue, has);
        for (uint32_t l = 0; l < m->stack[at].layers; l++)
            mark_steps(m, &m->stack[at].block[l], has);
        mark_steps(m, &m->stack[at].epilogue, has);
    }
    mark_steps(m, &m->head, has);
    mha_status st = mha_alloc(&p, tensors, sizeof(float *), err);
    if (st == MHA_OK) {
        w->of = p;
        st = find_wanted(w, wanted, count, has, err);
    }
    mha_free(has);
    return st;
}

void mha_weights_release(mha_weights *w)
{
    mha_free(w->of);
}

/* Where the gradient of the view's first element lies. */
static float *first_of(const mha_weights *w, const mha_weight *m)
{
    const mha_tensor *t = tensor_of(w->e->model, m);
    float *out = t != NULL ? w->of[index_of(w->e->model, t)] : NULL;
    return out != NULL ? out + (size_t)(m->data - t->data) / mha_dtype_get(t->type)->bytes : NULL;
}

/* ---- vectors ----------------------------------------------------------------------------------
 */

bool mha_weights_wants(const mha_weights *w, const float *vector)
{
    if (w == NULL || vector == NULL)
        return false;
    const mha_vector *v = source_of(w->e->model, vector);
    return v != NULL && w->of[index_of(w->e->model, v->tensor)] != NULL;
}

void mha_weights_vector(const mha_weights *w, const float *vector, const double *values,
                        size_t first, size_t n)
{
    const mha_vector *v = source_of(w->e->model, vector);
    float *out = w->of[index_of(w->e->model, v->tensor)];
    for (size_t k = 0; k < n; k++) {
        uint64_t i = first + k;
        out[v->at + i / v->group * v->step + i % v->group] += (float)values[k];
    }
}

typedef struct sum_job {
    const mha_weights *w;
    const float *vector, *dy;
    size_t ldy, rows, cols;
} sum_job;

static mha_status sum_columns(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const sum_job *j = context;
    double sum[WEIGHT_TILE] = {0};
    size_t first = task * WEIGHT_TILE, left = j->cols - first;
    size_t n = left < WEIGHT_TILE ? left : WEIGHT_TILE;
    for (size_t r = 0; r < j->rows; r++) {
        const float *row = j->dy + r * j->ldy + first;
        for (size_t c = 0; c < n; c++)
            sum[c] += (double)row[c];
    }
    mha_weights_vector(j->w, j->vector, sum, first, n);
    return MHA_OK;
}

/* vector += Σ over rows of dy. */
static mha_status add_rows(const mha_weights *w, const float *vector, const float *dy, size_t ldy,
                           size_t rows, size_t cols, mha_err *err)
{
    if (!mha_weights_wants(w, vector))
        return MHA_OK;
    sum_job j = {w, vector, dy, ldy, rows, cols};
    return mha_pool_run(w->e->pool, (cols + WEIGHT_TILE - 1) / WEIGHT_TILE, sum_columns, &j, err);
}

/* ---- matrices ---------------------------------------------------------------------------------
 */

typedef struct matrix_job {
    const mha_weight *m;
    float *out; /* at the view's first element */
    const float *dy, *x;
    size_t ldy, ldx, rows, per_group;
} matrix_job;

/* Some outputs of one group: rows of the stored matrix, or its columns when it is stored [in, out].
 */
static mha_status matrix_tile(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const matrix_job *j = context;
    const mha_weight *m = j->m;
    size_t g = task / j->per_group, at = task % j->per_group * WEIGHT_TILE;
    size_t n = m->group - at < WEIGHT_TILE ? m->group - at : WEIGHT_TILE;
    const float *dy = j->dy + g * m->group + at;
    float *out = j->out + (g * m->group_stride + at) * (m->in_out ? 1 : m->stride);
    if (m->in_out)
        mha_gemm(true, false, m->in, n, j->rows, 1, j->x, j->ldx, dy, j->ldy, 1, out, m->stride);
    else
        mha_gemm(true, false, n, m->in, j->rows, 1, dy, j->ldy, j->x, j->ldx, 1, out, m->stride);
    return MHA_OK;
}

mha_status mha_weights_linear(const mha_weights *w, const mha_weight *m, const float *b,
                              const float *dy, size_t ldy, const float *x, size_t ldx, size_t rows,
                              mha_err *err)
{
    if (w == NULL || rows == 0)
        return MHA_OK;
    MHA_TRY(add_rows(w, b, dy, ldy, rows, m->out, err));
    float *out = first_of(w, m);
    if (out == NULL)
        return MHA_OK;
    matrix_job j = {m, out, dy, x, ldy, ldx, rows, (m->group + WEIGHT_TILE - 1) / WEIGHT_TILE};
    return mha_pool_run(w->e->pool, m->out / m->group * j.per_group, matrix_tile, &j, err);
}

float *mha_weights_row(const mha_weights *w, const mha_weight *m, size_t r)
{
    float *out = w != NULL ? first_of(w, m) : NULL;
    return out != NULL ? out + (r / m->group * m->group_stride + r % m->group) * m->stride : NULL;
}

/* ---- norms ------------------------------------------------------------------------------------
 */

typedef struct norm_job {
    const mha_kernels *k;
    const mha_norm_args *a;
    const float *dy, *x;
    float *out; /* [rows, n] dy·x̂ */
    size_t rows;
} norm_job;

static mha_status norm_products(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const norm_job *j = context;
    size_t n = j->a->n, end = (task + 1) * MHA_BLOCK_ROWS;
    for (size_t r = task * MHA_BLOCK_ROWS; r < end && r < j->rows; r++) {
        float *out = j->out + r * n;
        if (j->a->kind == MHA_NORM_LAYER)
            j->k->layer_norm(out, j->x + r * n, NULL, NULL, n, j->a->eps);
        else
            j->k->rms_norm(out, j->x + r * n, NULL, n, j->a->eps);
        j->k->mul(out, j->dy + r * n, n);
    }
    return MHA_OK;
}

mha_status mha_weights_norm(const mha_weights *w, const mha_norm_args *a, const float *dy,
                            const float *x, size_t rows, mha_err *err)
{
    if (w == NULL)
        return MHA_OK;
    MHA_TRY(add_rows(w, a->b, dy, a->n, rows, a->n, err));
    if (!mha_weights_wants(w, a->w))
        return MHA_OK;
    void *p;
    MHA_TRY(mha_scratch_get(w->e, MHA_SCRATCH_DGAIN, rows * a->n, sizeof(float), &p, err));
    norm_job j = {w->e->kernels, a, dy, x, p, rows};
    MHA_TRY(mha_pool_run(w->e->pool, (rows + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS, norm_products,
                         &j, err));
    return add_rows(w, a->w, p, a->n, rows, a->n, err);
}
