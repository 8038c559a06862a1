/* tape.c: records and buffers of a recording pass. */
#include "engine/tape.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

/* Floats that one task copies. */
#define COPY_FLOATS ((size_t)1 << 16)

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

/* Passes over like batches ask for like buffers in the same order: each finds the one of the pass
 * before, already in memory. */
mha_status mha_tape_alloc(mha_tape *t, size_t count, float **out, mha_err *err)
{
    if (t->used == t->buffer_capacity) {
        size_t more = t->buffer_capacity == 0 ? 64 : t->buffer_capacity * 2;
        void *p = t->buffer;
        MHA_TRY(mha_grow(&p, t->buffer_capacity, more, sizeof *t->buffer, err));
        t->buffer = p;
        t->buffer_capacity = more;
    }
    struct mha_tape_buffer *b = &t->buffer[t->used];
    if (t->used == t->owned) {
        b->at = NULL;
        b->floats = 0;
        t->owned++;
    }
    if (b->floats < count || b->at == NULL) {
        mha_free(b->at);
        b->at = NULL;
        b->floats = 0;
        void *p;
        MHA_TRY(mha_alloc_raw(&p, count, sizeof(float), err));
        b->at = p;
        b->floats = count;
    }
    t->used++;
    *out = b->at;
    return MHA_OK;
}

typedef struct copy_job {
    float *dst;
    const float *src;
    size_t count;
} copy_job;

static mha_status copy_piece(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const copy_job *j = context;
    size_t first = task * COPY_FLOATS, left = j->count - first;
    memcpy(j->dst + first, j->src + first,
           (left < COPY_FLOATS ? left : COPY_FLOATS) * sizeof *j->dst);
    return MHA_OK;
}

mha_status mha_tape_keep(mha_tape *t, const float *src, size_t count, float **out, mha_err *err)
{
    MHA_TRY(mha_tape_alloc(t, count, out, err));
    copy_job j = {*out, src, count};
    return mha_pool_run(t->pool, (count + COPY_FLOATS - 1) / COPY_FLOATS, copy_piece, &j, err);
}

mha_status mha_tape_source(mha_forward *f, mha_register src, mha_err *err)
{
    if (f->tape == NULL || f->keeping != MHA_KEEP_SOURCES)
        return MHA_OK;
    return mha_tape_keep(f->tape, f->reg[src], f->reg_rows[src] * f->reg_width[src], &f->saved->x,
                         err);
}

void mha_tape_clear(mha_tape *t)
{
    t->used = t->count = 0;
}

void mha_tape_release(mha_tape *t)
{
    for (size_t i = 0; i < t->owned; i++)
        mha_free(t->buffer[i].at);
    mha_free(t->buffer);
    mha_free(t->step);
    memset(t, 0, sizeof *t);
}
