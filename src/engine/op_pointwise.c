/* op_pointwise.c: the ops that treat every row by itself: NORM, ACT, SCALE, ADD. */
#include "base/fail.h"
#include "engine/direct.h"
#include "engine/tape.h"
#include "engine/weights.h"
#include <math.h>

typedef struct pointwise {
    const mha_forward *f;
    const mha_step *s;
    float *dst;
    const float *src;
    size_t width;
} pointwise;

static mha_status run(mha_forward *f, const mha_step *s, mha_rows_fn fn, mha_err *err)
{
    pointwise p = {.f = f, .s = s, .src = f->reg[s->src], .width = f->reg_width[s->src]};
    size_t rows = f->reg_rows[s->src];
    if (f->tape != NULL && s->op != MHA_OP_SCALE)
        MHA_TRY(mha_tape_keep(f->tape, p.src, rows * p.width, &f->saved->x, err));
    MHA_TRY(mha_register_make(f, s->dst, rows, p.width, &p.dst, err));
    return mha_rows_run(f, rows, fn, &p, err);
}

/* dst's gradient in, src's out; both [rows, width] and possibly the same memory. */
typedef struct pointwise_back {
    const mha_backward *b;
    const mha_saved *s;
    const float *dy;
    float *dx;
} pointwise_back;

static mha_status run_back(mha_backward *b, const mha_saved *s, mha_rows_fn fn, mha_err *err)
{
    pointwise_back p = {.b = b, .s = s, .dy = b->d[s->step->dst]};
    mha_backward_used(b, s->step->dst);
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, s->width, &p.dx, err));
    MHA_TRY(mha_rows_run(b->f, s->rows, fn, &p, err));
    mha_backward_pass(b, s->step->src, p.dx);
    return MHA_OK;
}

/* ---- NORM: y = (x − μ)/sqrt(σ² + eps)·w + b, or y = x/sqrt(mean x² + eps)·w -------------------
 */

static mha_status norm_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise *p = context;
    const mha_norm_args *a = &p->s->norm;
    for (size_t r = rows.first; r < rows.first + rows.count; r++) {
        const float *x = p->src + r * p->width;
        float *y = p->dst + r * p->width;
        if (a->kind == MHA_NORM_LAYER)
            p->f->k->layer_norm(y, x, a->w, a->b, p->width, a->eps);
        else
            p->f->k->rms_norm(y, x, a->w, p->width, a->eps);
    }
    return MHA_OK;
}

mha_status mha_op_norm(mha_forward *f, const mha_step *s, mha_err *err)
{
    return run(f, s, norm_rows, err);
}

static mha_status norm_rows_back(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise_back *p = context;
    const mha_norm_args *a = &p->s->step->norm;
    size_t n = p->s->width;
    for (size_t r = rows.first; r < rows.first + rows.count; r++)
        p->b->f->k->norm_back(p->dx + r * n, p->dy + r * n, p->s->x + r * n, a->w, n, a->eps,
                              a->kind == MHA_NORM_LAYER);
    return MHA_OK;
}

static mha_status norm_rows_direct(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise_back *p = context;
    size_t n = p->s->width;
    for (size_t r = rows.first; r < rows.first + rows.count; r++)
        mha_direct_norm(p->dx + r * n, p->dy + r * n, p->s->x + r * n, &p->s->step->norm, n);
    return MHA_OK;
}

mha_status mha_op_norm_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    if (b->direct != NULL) {
        mha_direct_add(b, MHA_DIRECT_BIAS, s->step->norm.b, 0, b->d[s->step->dst], s->rows,
                       s->width);
        return run_back(b, s, norm_rows_direct, err);
    }
    MHA_TRY(mha_weights_norm(b->weights, &s->step->norm, b->d[s->step->dst], s->x, s->rows, err));
    return run_back(b, s, norm_rows_back, err);
}

/* ---- ACT: y = f(x); SCALE: y = factor·x or w ⊙ x
 * ------------------------------------------------------ */

static mha_status copy_rows(const pointwise *p, mha_row_range rows)
{
    if (p->dst != p->src)
        p->f->k->widen[MHA_F32](p->dst + rows.first * p->width, p->src + rows.first * p->width,
                                rows.count * p->width);
    return MHA_OK;
}

static mha_status act_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise *p = context;
    copy_rows(p, rows);
    p->f->k->act[p->s->act](p->dst + rows.first * p->width, rows.count * p->width);
    return MHA_OK;
}

mha_status mha_op_act(mha_forward *f, const mha_step *s, mha_err *err)
{
    return run(f, s, act_rows, err);
}

static mha_status act_rows_back(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise_back *p = context;
    size_t first = rows.first * p->s->width, n = rows.count * p->s->width;
    if (p->dx != p->dy)
        p->b->f->k->widen[MHA_F32](p->dx + first, p->dy + first, n);
    p->b->f->k->act_back[p->s->step->act](p->dx + first, p->s->x + first, n);
    return MHA_OK;
}

mha_status mha_op_act_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    return run_back(b, s, act_rows_back, err);
}

/* The same forward and back: x becomes factor·x or w ⊙ x in place. */
static void scale_in_place(const mha_kernels *k, const mha_scale_args *a, float *x, size_t rows,
                           size_t width)
{
    if (a->w == NULL)
        k->scale(x, rows * width, a->by);
    for (size_t r = 0; a->w != NULL && r < rows; r++)
        k->mul(x + r * width, a->w, width);
}

static mha_status scale_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise *p = context;
    copy_rows(p, rows);
    scale_in_place(p->f->k, &p->s->scale, p->dst + rows.first * p->width, rows.count, p->width);
    return MHA_OK;
}

mha_status mha_op_scale(mha_forward *f, const mha_step *s, mha_err *err)
{
    return run(f, s, scale_rows, err);
}

static mha_status scale_rows_back(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise_back *p = context;
    size_t first = rows.first * p->s->width, n = rows.count * p->s->width;
    if (p->dx != p->dy)
        p->b->f->k->widen[MHA_F32](p->dx + first, p->dy + first, n);
    scale_in_place(p->b->f->k, &p->s->step->scale, p->dx + first, rows.count, p->s->width);
    return MHA_OK;
}

mha_status mha_op_scale_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    return run_back(b, s, scale_rows_back, err);
}

/* ---- ADD: y ← y + x. Every residual passes here, so this is where NaN and infinity are caught --
 */

static mha_status add_rows(void *context, mha_row_range rows, mha_err *err)
{
    const pointwise *p = context;
    float *y = p->dst + rows.first * p->width;
    size_t n = rows.count * p->width;
    p->f->k->add(y, p->src + rows.first * p->width, n);
    /* Σ y² is finite only when every element is (and below 1e16 or so, which no model reaches) */
    if (isfinite(p->f->k->dot[MHA_F32](y, y, n)))
        return MHA_OK;
    char place[64];
    mha_forward_place(p->f, place, sizeof place);
    return mha_fail(err, MHA_ERR_NUMERIC, "%s, residual: NaN or infinity in rows %zu to %zu", place,
                    rows.first, rows.first + rows.count - 1);
}

mha_status mha_op_add(mha_forward *f, const mha_step *s, mha_err *err)
{
    pointwise p = {.f = f, .s = s, .src = f->reg[s->src], .width = f->reg_width[s->src]};
    if (f->reg_rows[s->dst] != f->reg_rows[s->src] || f->reg_width[s->dst] != p.width)
        return mha_fail(err, MHA_ERR_INTERNAL, "add: registers of different shapes");
    p.dst = f->reg[s->dst];
    return mha_rows_run(f, f->reg_rows[s->src], add_rows, &p, err);
}

/* y keeps its gradient; x gets the same. */
mha_status mha_op_add_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    float *dx;
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, s->width, &dx, err));
    b->f->k->widen[MHA_F32](dx, b->d[s->step->dst], s->rows * s->width);
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}
