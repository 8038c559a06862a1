/* op_linear.c: LINEAR and MLP: matrix products with what belongs to them. */
#include "base/fail.h"
#include "engine/direct.h"
#include "engine/matmul.h"
#include "engine/tape.h"
#include "engine/weights.h"
#include <string.h>

/* ---- LINEAR: y = W·x + b --------------------------------------------------------------------- */

mha_status mha_op_linear(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_linear_args *a = &s->linear;
    size_t rows = f->reg_rows[s->src];
    mha_epilogue ep = {.bias = a->b, .act = MHA_ACT_NONE};
    const float *x = f->reg[s->src];
    size_t ldx = f->reg_width[s->src];
    void *y;
    MHA_TRY(mha_tape_source(f, s->src, err));
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LINEAR, rows * a->w.out, sizeof(float), &y, err));
    MHA_TRY(mha_matmul(f->e, y, a->w.out, x, ldx, rows, &a->w, &ep, err));
    float *dst; /* may be the source's own memory, so only now */
    MHA_TRY(mha_register_make(f, s->dst, rows, a->w.out, &dst, err));
    f->k->widen[MHA_F32](dst, y, rows * a->w.out);
    return MHA_OK;
}

/* dx = dy·W */
mha_status mha_op_linear_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const mha_weight *w = &s->step->linear.w;
    void *p;
    float *dx;
    const float *dy = b->d[s->step->dst];
    if (b->direct != NULL)
        mha_direct_add(b, MHA_DIRECT_BIAS, s->step->linear.b, 0, dy, s->rows, w->out);
    MHA_TRY(mha_weights_linear(b->weights, w, s->step->linear.b, dy, w->out, s->x, w->in, s->rows,
                               err));
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_LINEAR, s->rows * w->in, sizeof(float), &p, err));
    MHA_TRY(mha_matmul_back(b->f->e, p, w->in, dy, w->out, s->rows, w, 0, err));
    mha_backward_used(b, s->step->dst);
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, w->in, &dx, err));
    b->f->k->widen[MHA_F32](dx, p, s->rows * w->in);
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}

/* ---- MLP: y = down·f(up·x + b_up) + b_down, or down·(f(gate·x) ⊙ up·x) ----------------------- */

/* One chunk of rows while the tape keeps what comes before the activation: the products are stored
 * first and activated in a copy. */
static mha_status mlp_chunk_recording(mha_forward *f, const mha_mlp_args *a, float *dst,
                                      const float *src, size_t rows, size_t first, float *up,
                                      mha_err *err)
{
    size_t F = a->width, n = rows * F;
    mha_epilogue up_bias = {.bias = a->up_b, .act = MHA_ACT_NONE};
    mha_epilogue gate_bias = {.bias = a->gate_b, .act = MHA_ACT_NONE};
    mha_epilogue out = {.bias = a->down_b, .act = MHA_ACT_NONE};
    float *kept_up = f->saved->up + first * F;
    MHA_TRY(mha_matmul(f->e, kept_up, F, src, a->up.in, rows, &a->up, &up_bias, err));
    if (a->gate.data != NULL) {
        float *kept = f->saved->gate + first * F;
        MHA_TRY(mha_matmul(f->e, kept, F, src, a->gate.in, rows, &a->gate, &gate_bias, err));
        memcpy(up, kept, n * sizeof(float));
        f->k->act_mul[a->act](up, kept_up, n);
    } else {
        memcpy(up, kept_up, n * sizeof(float));
        f->k->act[a->act](up, n);
    }
    return mha_matmul(f->e, dst, a->down.out, up, F, rows, &a->down, &out, err);
}

/* One chunk of rows: the [rows, F] intermediate exists for a chunk only. */
static mha_status mlp_chunk(mha_forward *f, const mha_mlp_args *a, float *dst, const float *src,
                            size_t rows, float *up, float *gate, mha_err *err)
{
    size_t D_in = a->up.in, D_out = a->down.out, F = a->width;
    mha_epilogue hidden = {.bias = a->up_b, .act = a->act};
    if (gate != NULL) {
        mha_epilogue plain = {.bias = a->gate_b, .act = MHA_ACT_NONE};
        MHA_TRY(mha_matmul(f->e, gate, F, src, D_in, rows, &a->gate, &plain, err));
        hidden.gate = gate;
    }
    MHA_TRY(mha_matmul(f->e, up, F, src, D_in, rows, &a->up, &hidden, err));
    mha_epilogue out = {.bias = a->down_b, .act = MHA_ACT_NONE};
    return mha_matmul(f->e, dst, D_out, gate != NULL ? gate : up, F, rows, &a->down, &out, err);
}

size_t mha_mlp_chunk(size_t rows, size_t width)
{
    size_t most = MHA_MLP_FLOATS / width;
    most = most < MHA_MLP_LEAST_ROWS ? MHA_MLP_LEAST_ROWS : most;
    most = most > MHA_MLP_MOST_ROWS ? MHA_MLP_MOST_ROWS : most;
    return rows < most ? rows : most;
}

mha_status mha_op_mlp(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_mlp_args *a = &s->mlp;
    size_t rows = f->reg_rows[s->src], D_in = a->up.in, D_out = a->down.out;
    size_t chunk = mha_mlp_chunk(rows, a->width);
    void *up, *gate = NULL;
    MHA_TRY(mha_tape_source(f, s->src, err));
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_UP, chunk * a->width, sizeof(float), &up, err));
    if (a->gate.data != NULL)
        MHA_TRY(
            mha_scratch_get(f->e, MHA_SCRATCH_GATE, chunk * a->width, sizeof(float), &gate, err));
    bool recording = f->tape != NULL && f->keeping != MHA_KEEP_DIRECT;
    if (recording) {
        MHA_TRY(mha_tape_alloc(f->tape, rows * a->width, &f->saved->up, err));
        if (gate != NULL)
            MHA_TRY(mha_tape_alloc(f->tape, rows * a->width, &f->saved->gate, err));
    }
    const float *src = f->reg[s->src];
    float *dst; /* chunk by chunk, so it may be the source itself when the widths agree */
    MHA_TRY(mha_register_make(f, s->dst, rows, D_out, &dst, err));
    for (size_t r = 0; r < rows; r += chunk) {
        size_t n = rows - r < chunk ? rows - r : chunk;
        if (recording)
            MHA_TRY(mlp_chunk_recording(f, a, dst + r * D_out, src + r * D_in, n, r, up, err));
        else
            MHA_TRY(mlp_chunk(f, a, dst + r * D_out, src + r * D_in, n, up, gate, err));
    }
    if (f->tape != NULL && f->keeping == MHA_KEEP_DIRECT)
        return mha_tape_keep(f->tape, dst, rows * D_out, &f->saved->y, err);
    return MHA_OK;
}

typedef struct mlp_back {
    const mha_kernels *k;
    const mha_mlp_args *a;
    float *dh, *dg; /* in: gradient of the hidden row; out: of up·x and gate·x */
    const float *up, *gate;
} mlp_back;

/* h = f(a): da = dh·f'(a). h = f(g)·u: du = dh·f(g), dg = dh·u·f'(g). */
static mha_status mlp_rows_back(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const mlp_back *j = context;
    size_t F = j->a->width, at = rows.first * F, n = rows.count * F;
    if (j->gate == NULL) {
        j->k->act_back[j->a->act](j->dh + at, j->up + at, n);
        return MHA_OK;
    }
    memcpy(j->dg + at, j->gate + at, n * sizeof(float));
    j->k->act_mul[j->a->act](j->dg + at, j->dh + at, n); /* du */
    j->k->mul(j->dh + at, j->up + at, n);
    j->k->act_back[j->a->act](j->dh + at, j->gate + at, n); /* dg */
    return MHA_OK;
}

/* dW and db of down from dy: the hidden rows are made once more. */
static mha_status mlp_down_weights(mha_backward *b, const mha_saved *s, const float *dy,
                                   size_t first, size_t rows, mha_err *err)
{
    const mha_mlp_args *a = &s->step->mlp;
    const mha_kernels *k = b->f->k;
    size_t F = a->width, n = rows * F;
    void *h;
    if (b->weights == NULL)
        return MHA_OK;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_UP, n, sizeof(float), &h, err));
    memcpy(h, (s->gate != NULL ? s->gate : s->up) + first * F, n * sizeof(float));
    if (s->gate != NULL)
        k->act_mul[a->act](h, s->up + first * F, n);
    else
        k->act[a->act](h, n);
    return mha_weights_linear(b->weights, &a->down, a->down_b, dy, a->down.out, h, F, rows, err);
}

/* Rows [first, first + rows): dx from dy, which may be the same memory. */
static mha_status mlp_chunk_back(mha_backward *b, const mha_saved *s, float *dx, const float *dy,
                                 size_t first, size_t rows, float *dh, float *dg, mha_err *err)
{
    const mha_mlp_args *a = &s->step->mlp;
    size_t F = a->width, D = a->up.in;
    bool gated = s->gate != NULL;
    mha_engine *e = b->f->e;
    mlp_back j = {b->f->k, a, dh, dg, s->up + first * F, gated ? s->gate + first * F : NULL};
    const float *x = s->x != NULL ? s->x + first * D : NULL, *du = gated ? dg : dh;
    dy += first * a->down.out;
    MHA_TRY(mlp_down_weights(b, s, dy, first, rows, err));
    MHA_TRY(mha_matmul_back(e, dh, F, dy, a->down.out, rows, &a->down, 0, err));
    MHA_TRY(mha_rows_run(b->f, rows, mlp_rows_back, &j, err));
    MHA_TRY(mha_weights_linear(b->weights, &a->up, a->up_b, du, F, x, D, rows, err));
    MHA_TRY(mha_matmul_back(e, dx + first * D, D, du, F, rows, &a->up, 0, err));
    if (!gated)
        return MHA_OK;
    MHA_TRY(mha_weights_linear(b->weights, &a->gate, a->gate_b, dh, F, x, D, rows, err));
    return mha_matmul_back(e, dx + first * D, D, dh, F, rows, &a->gate, 1, err);
}

mha_status mha_op_mlp_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const mha_mlp_args *a = &s->step->mlp;
    size_t chunk = mha_mlp_chunk(s->rows, a->width);
    if (s->step->dst == s->step->src && a->up.in != a->down.out)
        return mha_fail(err, MHA_ERR_INTERNAL, "mlp: in place with another width");
    if (b->direct != NULL) {
        mha_direct_add(b, MHA_DIRECT_MLP, s->y, a->down.out, b->d[s->step->dst], s->rows,
                       a->down.out);
        mha_backward_used(b, s->step->dst);
        return MHA_OK;
    }
    void *dh, *dg = NULL;
    float *dx;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_DUP, chunk * a->width, sizeof(float), &dh, err));
    if (s->gate != NULL)
        MHA_TRY(
            mha_scratch_get(b->f->e, MHA_SCRATCH_DGATE, chunk * a->width, sizeof(float), &dg, err));
    const float *dy = b->d[s->step->dst];
    mha_backward_used(b, s->step->dst);
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, a->up.in, &dx, err));
    for (size_t r = 0; r < s->rows; r += chunk) {
        size_t n = s->rows - r < chunk ? s->rows - r : chunk;
        MHA_TRY(mlp_chunk_back(b, s, dx, dy, r, n, dh, dg, err));
    }
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}
