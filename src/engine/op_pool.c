/* op_pool.c: POOL: one row of the source for each document: its first, its last, or the mean. */
#include "base/fail.h"
#include "engine/engine.h"
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
