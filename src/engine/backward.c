/* backward.c: the reverse pass over one batch: the loop over the tape's records, the register
 * gradients that ops share, and what is delivered between the parts of a stack. */
#include "engine/backward.h"
#include "base/fail.h"
#include "engine/direct.h"
#include "engine/readout.h"
#include "engine/tape.h"

/* LOGITS is not here: the read-out differentiates it on the spot (readout.c). */
static const mha_op_backward ops[MHA_OP_COUNT] = {
    [MHA_OP_EMBED] = mha_op_embed_back,   [MHA_OP_CONV] = mha_op_conv_back,
    [MHA_OP_LINEAR] = mha_op_linear_back, [MHA_OP_NORM] = mha_op_norm_back,
    [MHA_OP_ATTN] = mha_op_attn_back,     [MHA_OP_MLP] = mha_op_mlp_back,
    [MHA_OP_ACT] = mha_op_act_back,       [MHA_OP_SCALE] = mha_op_scale_back,
    [MHA_OP_ADD] = mha_op_add_back,       [MHA_OP_POOL] = mha_op_pool_back,
};

static const mha_scratch gradient_scratch[MHA_REGISTER_COUNT] = {
    [MHA_X] = MHA_SCRATCH_DX,
    [MHA_B] = MHA_SCRATCH_DB,
    [MHA_C] = MHA_SCRATCH_DC,
    [MHA_E] = MHA_SCRATCH_DE,
};

/* ---- gradients of registers -------------------------------------------------------------------
 */

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

/* ---- parts ------------------------------------------------------------------------------------
 */

/* The last records of the tape, down to record `from`. */
static mha_status reverse_records(mha_backward *b, size_t from, mha_err *err)
{
    mha_tape *t = b->f->tape;
    while (t->count > from && !b->stopped) {
        const mha_saved *s = &t->step[--t->count];
        b->f->at = s->at;
        b->f->layer = s->layer;
        b->f->attn = s->attn;
        if (b->live[s->step->dst])
            MHA_TRY(ops[s->step->op](b, s, err));
    }
    return MHA_OK;
}

/* The records are on the tape already, or are made now. */
static mha_status reverse_part(mha_backward *b, size_t at, uint32_t part, mha_err *err)
{
    mha_forward *f = b->f;
    if (f->inputs != NULL) {
        mha_tape_clear(f->tape);
        MHA_TRY(mha_forward_again(f, at, part, err));
        return reverse_records(b, 0, err);
    }
    size_t i = mha_forward_part(f->m, at, part);
    f->tape->count = f->starts[i + 1];
    return reverse_records(b, f->starts[i], err);
}

/* The gradient of X after a part, when the part comes next. */
static mha_status deliver_stream(mha_backward *b, size_t at, uint32_t part, mha_err *err)
{
    mha_forward *f = b->f;
    uint32_t layers = f->m->stack[at].layers;
    mha_site site = part == 0       ? MHA_SITE_D_EMBED
                    : part > layers ? MHA_SITE_D_HIDDEN
                                    : MHA_SITE_D_RESID;
    if (!b->live[MHA_X])
        return MHA_OK;
    f->at = at;
    return mha_forward_deliver(f, b->watch, site, MHA_SELF, site == MHA_SITE_D_RESID ? part - 1 : 0,
                               b->d[MHA_X], &f->side[at], 1, b->width[MHA_X], err);
}

/* What the stream held before the first block. */
static void add_embedding(mha_backward *b, size_t at)
{
    const mha_forward *f = b->f;
    const float *x = f->inputs != NULL ? f->inputs[mha_forward_part(f->m, at, 1)] : f->embedded;
    if (b->direct != NULL && b->live[MHA_X])
        mha_direct_add(b, MHA_DIRECT_EMBED, x, b->width[MHA_X], b->d[MHA_X], b->rows[MHA_X],
                       b->width[MHA_X]);
}

static mha_status reverse_stack(mha_backward *b, size_t at, mha_err *err)
{
    b->stopped = false;
    for (uint32_t part = b->f->m->stack[at].layers + 2; part-- > 0 && !b->stopped;) {
        MHA_TRY(deliver_stream(b, at, part, err));
        if (part > 0 || b->weights != NULL)
            MHA_TRY(reverse_part(b, at, part, err));
        else
            add_embedding(b, at);
    }
    return MHA_OK;
}

/* Going from the decoder to the encoder: the memory was the encoder's X. */
static void enter_encoder(mha_backward *b)
{
    b->d[MHA_X] = b->d[MHA_E];
    b->rows[MHA_X] = b->rows[MHA_E];
    b->width[MHA_X] = b->width[MHA_E];
    b->live[MHA_X] = b->live[MHA_E];
    b->live[MHA_B] = b->live[MHA_C] = b->live[MHA_E] = false;
}

mha_status mha_backward_run(mha_backward *b, mha_err *err)
{
    mha_forward *f = b->f;
    size_t last = f->m->stack_count - 1, from = 0;
    if (f->inputs == NULL)
        from = f->starts[mha_forward_part(f->m, last, f->m->stack[last].layers + 2)];
    b->gathered = !f->readout->pooled;
    MHA_TRY(reverse_records(b, from, err));
    MHA_TRY(mha_readout_scatter(b, err));
    b->gathered = false;
    MHA_TRY(reverse_stack(b, last, err));
    if (last == 0 || b->direct != NULL) /* keys and values are no direct path */
        return MHA_OK;
    enter_encoder(b);
    return reverse_stack(b, 0, err);
}
