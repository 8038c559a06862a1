/* pieces.c: lists of pieces and where they come from. It may not decide where to split. */
#include "text/pieces.h"

#include "base/mem.h"
#include "text/unicode.h"

void mha_pieces_release(mha_pieces *p)
{
    mha_free(p->v);
    *p = (mha_pieces){0};
}

mha_status mha_pieces_add(mha_pieces *p, size_t start, size_t end, int32_t added, mha_err *err)
{
    if (start >= end)
        return MHA_OK;
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 64;
        void *v = p->v;
        mha_status status = mha_grow(&v, p->n, capacity, sizeof *p->v, err);
        if (status != MHA_OK)
            return status;
        p->v = v;
        p->capacity = capacity;
    }
    p->v[p->n++] = (mha_piece){(uint32_t)start, (uint32_t)end, added};
    return MHA_OK;
}

void mha_split_swap(mha_split *s)
{
    mha_pieces pieces = s->pieces;
    s->pieces = s->next;
    s->next = pieces;
    s->next.n = 0;
}

void mha_split_swap_text(mha_split *s)
{
    mha_aligned text = s->text;
    s->text = s->spare;
    s->spare = text;
    s->spare.n = 0;
    s->data = s->text.data;
    s->from = s->text.from;
    s->n = s->text.n;
}

mha_span mha_split_range(const mha_split *s, size_t start, size_t end)
{
    if (s->from)
        return (mha_span){s->from[start].start, s->from[end - 1].end};
    return (mha_span){(uint32_t)mha_char_floor(s->data, start),
                      (uint32_t)mha_char_ceil(s->data, s->n, end)};
}
