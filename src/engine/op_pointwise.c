/* op_pointwise.c: the ops that treat every row by itself: NORM, ACT, SCALE, ADD. */
#include "base/fail.h"
#include "engine/engine.h"
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
    MHA_TRY(mha_register_make(f, s->dst, rows, p.width, &p.dst, err));
    return mha_rows_run(f, rows, fn, &p, err);
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

/* ---- ACT: y = f(x); SCALE: y = factor·x ------------------------------------------------------ */

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

static mha_status scale_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const pointwise *p = context;
    copy_rows(p, rows);
    p->f->k->scale(p->dst + rows.first * p->width, rows.count * p->width, p->s->scale);
    return MHA_OK;
}

mha_status mha_op_scale(mha_forward *f, const mha_step *s, mha_err *err)
{
    return run(f, s, scale_rows, err);
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
