/* backward.c: the loop over the tape, and the register gradients that ops share. */
#include "engine/backward.h"
#include "base/fail.h"
#include "engine/tape.h"

static mha_status embed_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    (void)err;
    b->stopped = s->at; /* nothing that has a gate lies below the embedding */
    return MHA_OK;
}

/* LOGITS is not here: the read-out differentiates it on the spot (readout.c). */
static const mha_op_backward ops[MHA_OP_COUNT] = {
    [MHA_OP_EMBED] = embed_back,        [MHA_OP_LINEAR] = mha_op_linear_back,
    [MHA_OP_NORM] = mha_op_norm_back,   [MHA_OP_ATTN] = mha_op_attn_back,
    [MHA_OP_MLP] = mha_op_mlp_back,     [MHA_OP_ACT] = mha_op_act_back,
    [MHA_OP_SCALE] = mha_op_scale_back, [MHA_OP_ADD] = mha_op_add_back,
    [MHA_OP_POOL] = mha_op_pool_back,
};

static const mha_scratch gradient_scratch[MHA_REGISTER_COUNT] = {
    [MHA_X] = MHA_SCRATCH_DX,
    [MHA_B] = MHA_SCRATCH_DB,
    [MHA_C] = MHA_SCRATCH_DC,
    [MHA_E] = MHA_SCRATCH_DE,
};

mha_status mha_backward_into(mha_backward *b, mha_register r, size_t rows, size_t width,
                             float **out, mha_err *err)
{
    void *p;
    mha_scratch which = b->live[r] ? MHA_SCRATCH_DROW : gradient_scratch[r];
    if (b->live[r] && (b->rows[r] != rows || b->width[r] != width))
        return mha_fail(err, MHA_ERR_INTERNAL, "backward: a register changed its shape");
    MHA_TRY(mha_scratch_get(b->f->e, which, rows * width, sizeof(float), &p, err));
    *out = p;
    if (!b->live[r]) {
        b->d[r] = p;
        b->rows[r] = rows;
        b->width[r] = width;
    }
    return MHA_OK;
}

void mha_backward_pass(mha_backward *b, mha_register r, const float *contribution)
{
    if (contribution != b->d[r])
        b->f->k->add(b->d[r], contribution, b->rows[r] * b->width[r]);
    b->live[r] = true;
}

void mha_backward_used(mha_backward *b, mha_register r)
{
    b->live[r] = false;
}

/* Going from the decoder to the encoder: the memory was the encoder's X. */
static void enter_stack(mha_backward *b, size_t at)
{
    if (b->at == at)
        return;
    b->at = at;
    b->d[MHA_X] = b->d[MHA_E];
    b->rows[MHA_X] = b->rows[MHA_E];
    b->width[MHA_X] = b->width[MHA_E];
    b->live[MHA_X] = b->live[MHA_E];
    b->live[MHA_B] = b->live[MHA_C] = b->live[MHA_E] = false;
}

mha_status mha_backward_run(mha_backward *b, size_t from, mha_err *err)
{
    mha_tape *t = b->f->tape;
    while (t->count > from) {
        const mha_saved *s = &t->step[--t->count];
        if (s->at == b->stopped)
            continue;
        enter_stack(b, s->at);
        b->f->at = s->at;
        b->f->layer = s->layer;
        b->f->attn = s->attn;
        if (b->live[s->step->dst] || s->step->op == MHA_OP_EMBED)
            MHA_TRY(ops[s->step->op](b, s, err));
    }
    return MHA_OK;
}
