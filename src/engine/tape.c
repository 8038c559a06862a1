/* tape.c: records and buffers of a recording pass. */
#include "engine/tape.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

mha_status mha_tape_step(mha_forward *f, const mha_step *s, mha_err *err)
{
    mha_tape *t = f->tape;
    if (t == NULL || s->op == MHA_OP_LOGITS) /* the read-out is differentiated on the spot */
        return MHA_OK;
    if (t->count == t->capacity) {
        size_t more = t->capacity == 0 ? 64 : t->capacity * 2;
        void *p = t->step;
        MHA_TRY(mha_grow(&p, t->capacity, more, sizeof *t->step, err));
        t->step = p;
        t->capacity = more;
    }
    f->saved = &t->step[t->count++];
    *f->saved = (mha_saved){.step = s,
                            .layer = f->layer,
                            .at = f->at,
                            .attn = f->attn,
                            .rows = f->reg_rows[s->src],
                            .width = f->reg_width[s->src]};
    return MHA_OK;
}

mha_status mha_tape_alloc(mha_tape *t, size_t count, float **out, mha_err *err)
{
    if (t->buffers == t->buffer_capacity) {
        size_t more = t->buffer_capacity == 0 ? 64 : t->buffer_capacity * 2;
        void *p = t->buffer;
        MHA_TRY(mha_grow(&p, t->buffer_capacity, more, sizeof *t->buffer, err));
        t->buffer = p;
        t->buffer_capacity = more;
    }
    void *p;
    MHA_TRY(mha_alloc_raw(&p, count, sizeof(float), err));
    *out = t->buffer[t->buffers++] = p;
    return MHA_OK;
}

mha_status mha_tape_keep(mha_tape *t, const float *src, size_t count, float **out, mha_err *err)
{
    MHA_TRY(mha_tape_alloc(t, count, out, err));
    memcpy(*out, src, count * sizeof(float));
    return MHA_OK;
}

mha_status mha_tape_source(mha_forward *f, mha_register src, mha_err *err)
{
    if (f->tape == NULL || !f->keep_sources)
        return MHA_OK;
    return mha_tape_keep(f->tape, f->reg[src], f->reg_rows[src] * f->reg_width[src], &f->saved->x,
                         err);
}

void mha_tape_clear(mha_tape *t)
{
    for (size_t i = 0; i < t->buffers; i++)
        mha_free(t->buffer[i]);
    t->buffers = t->count = 0;
}

void mha_tape_release(mha_tape *t)
{
    mha_tape_clear(t);
    mha_free(t->buffer);
    mha_free(t->step);
    memset(t, 0, sizeof *t);
}
