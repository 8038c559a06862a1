/* op_pool.c: POOL: one row of the source for each document: its first, its last, that of a token,
 * or the mean of all. */
#include "base/fail.h"
#include "engine/backward.h"
#include <string.h>

bool mha_pool_row(const mha_pool_args *a, const mha_document *doc, size_t rows, size_t *row)
{
    *row = a->kind == MHA_POOL_LAST ? rows - 1 : a->skip;
    if (a->kind != MHA_POOL_TOKEN)
        return true;
    for (size_t i = doc->n < rows ? doc->n : rows; i > 0; i--)
        if ((uint32_t)doc->ids[i - 1] == a->id) {
            *row = i - 1;
            return true;
        }
    return false;
}

/* The rows of document d's side that become its row, as numbers in the packed matrix. */
static mha_status pooled_rows(const mha_forward *f, const mha_pool_args *a, size_t at, size_t d,
                              size_t *first, size_t *end, mha_err *err)
{
    const mha_rows *side = &f->side[at];
    size_t row;
    *first = side->offset[d];
    *end = side->offset[d + 1];
    if (a->kind == MHA_POOL_MEAN) {
        *first += a->skip;
        return MHA_OK;
    }
    if (!mha_pool_row(a, &f->docs[d], *end - *first, &row))
        return mha_fail(err, MHA_ERR_LIMIT, "document %zu: no token %u, which the model reads",
                        f->first_document + d, a->id);
    *first += row;
    *end = *first + 1;
    return MHA_OK;
}

mha_status mha_op_pool(mha_forward *f, const mha_step *s, mha_err *err)
{
    size_t D = f->reg_width[s->src];
    const float *src = f->reg[s->src];
    float *dst;
    if (s->dst == s->src)
        return mha_fail(err, MHA_ERR_INTERNAL, "pool: needs two registers");
    MHA_TRY(mha_register_make(f, s->dst, f->doc_count, D, &dst, err));
    memset(dst, 0, f->doc_count * D * sizeof *dst);
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first, end;
        MHA_TRY(pooled_rows(f, &s->pool, f->at, d, &first, &end, err));
        for (size_t r = first; r < end; r++)
            f->k->add(dst + d * D, src + r * D, D);
        if (end - first > 1)
            f->k->scale(dst + d * D, D, 1.0f / (float)(end - first));
    }
    return MHA_OK;
}

/* The pooled row's gradient goes back to the rows that it came from; all others get 0. */
mha_status mha_op_pool_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const mha_kernels *k = b->f->k;
    const float *dy = b->d[s->step->dst];
    size_t D = s->width;
    float *dx;
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, D, &dx, err));
    memset(dx, 0, s->rows * D * sizeof *dx);
    for (size_t d = 0; d < b->f->doc_count; d++) {
        size_t first, end;
        MHA_TRY(pooled_rows(b->f, &s->step->pool, s->at, d, &first, &end, err));
        for (size_t r = first; r < end; r++)
            k->axpy(dx + r * D, 1.0f / (float)(end - first), dy + d * D, D);
    }
    mha_backward_used(b, s->step->dst);
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}
