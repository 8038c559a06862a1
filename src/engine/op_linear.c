/* op_linear.c: LINEAR and MLP: matrix products with what belongs to them. */
#include "base/fail.h"
#include "engine/engine.h"
#include "engine/matmul.h"

/* ---- LINEAR: y = W·x + b --------------------------------------------------------------------- */

mha_status mha_op_linear(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_linear_args *a = &s->linear;
    size_t rows = f->reg_rows[s->src];
    mha_epilogue ep = {.bias = a->b, .act = MHA_ACT_NONE};
    const float *x = f->reg[s->src];
    size_t ldx = f->reg_width[s->src];
    void *y;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LINEAR, rows * a->w.out, sizeof(float), &y, err));
    MHA_TRY(mha_matmul(f->e, y, a->w.out, x, ldx, rows, &a->w, &ep, err));
    float *dst; /* may be the source's own memory, so only now */
    MHA_TRY(mha_register_make(f, s->dst, rows, a->w.out, &dst, err));
    f->k->widen[MHA_F32](dst, y, rows * a->w.out);
    return MHA_OK;
}

/* ---- MLP: y = down·f(up·x + b_up) + b_down, or down·(f(gate·x) ⊙ up·x) ----------------------- */

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

mha_status mha_op_mlp(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_mlp_args *a = &s->mlp;
    size_t rows = f->reg_rows[s->src], D_in = a->up.in, D_out = a->down.out;
    size_t chunk = rows < MHA_MLP_ROWS ? rows : MHA_MLP_ROWS;
    void *up, *gate = NULL;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_UP, chunk * a->width, sizeof(float), &up, err));
    if (a->gate.data != NULL)
        MHA_TRY(
            mha_scratch_get(f->e, MHA_SCRATCH_GATE, chunk * a->width, sizeof(float), &gate, err));
    const float *src = f->reg[s->src];
    float *dst; /* chunk by chunk, so it may be the source itself when the widths agree */
    MHA_TRY(mha_register_make(f, s->dst, rows, D_out, &dst, err));
    for (size_t r = 0; r < rows; r += chunk) {
        size_t n = rows - r < chunk ? rows - r : chunk;
        MHA_TRY(mlp_chunk(f, a, dst + r * D_out, src + r * D_in, n, up, gate, err));
    }
    return MHA_OK;
}
