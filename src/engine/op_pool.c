/* op_pool.c: POOL: one row of the source for each document: its first, its last, or the mean. */
#include "base/fail.h"
#include "engine/backward.h"
#include <string.h>

static void pool_document(const mha_forward *f, mha_pool_kind kind, const float *x, size_t rows,
                          size_t D, float *y)
{
    if (kind != MHA_POOL_MEAN) {
        memcpy(y, x + (kind == MHA_POOL_LAST ? rows - 1 : 0) * D, D * sizeof *y);
        return;
    }
    memset(y, 0, D * sizeof *y);
    for (size_t r = 0; r < rows; r++)
        f->k->add(y, x + r * D, D);
    f->k->scale(y, D, 1.0f / (float)rows);
}

mha_status mha_op_pool(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_rows *side = &f->side[f->at];
    size_t D = f->reg_width[s->src];
    const float *src = f->reg[s->src];
    float *dst;
    if (s->dst == s->src)
        return mha_fail(err, MHA_ERR_INTERNAL, "pool: needs two registers");
    MHA_TRY(mha_register_make(f, s->dst, f->doc_count, D, &dst, err));
    for (size_t d = 0; d < f->doc_count; d++)
        pool_document(f, s->pool, src + side->offset[d] * D, side->offset[d + 1] - side->offset[d],
                      D, dst + d * D);
    return MHA_OK;
}

/* The pooled row's gradient goes back to the rows that it came from; all others get 0. */
mha_status mha_op_pool_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const mha_rows *side = &b->f->side[s->at];
    const mha_kernels *k = b->f->k;
    const float *dy = b->d[s->step->dst];
    size_t D = s->width;
    float *dx;
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, D, &dx, err));
    memset(dx, 0, s->rows * D * sizeof *dx);
    for (size_t d = 0; d < b->f->doc_count; d++) {
        size_t first = side->offset[d], end = side->offset[d + 1];
        if (s->step->pool == MHA_POOL_FIRST)
            end = first + 1;
        if (s->step->pool == MHA_POOL_LAST)
            first = end - 1;
        for (size_t r = first; r < end; r++)
            k->axpy(dx + r * D, 1.0f / (float)(end - first), dy + d * D, D);
    }
    mha_backward_used(b, s->step->dst);
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}
