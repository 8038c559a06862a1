/* op_logits.c: LOGITS: the read-out, in chunks of rows so that no [N, V] matrix ever stands. */
#include "base/fail.h"
#include "engine/matmul.h"
#include "engine/readout.h"
#include <math.h>

/* Rows [first, first + rows) of the source, all of one document, as logits in `out`. */
static mha_status logits_rows(mha_forward *f, const mha_step *s, size_t first, size_t rows,
                              float *out, mha_err *err)
{
    const mha_logits_args *a = &s->logits;
    size_t D = f->reg_width[s->src], V = a->w.out;
    mha_epilogue ep = {.bias = a->b, .act = MHA_ACT_NONE};
    MHA_TRY(mha_matmul(f->e, out, V, f->reg[s->src] + first * D, D, rows, &a->w, &ep, err));
    if (a->softcap != 0)
        f->k->softcap(out, rows * V, a->softcap);
    if (isfinite(f->k->dot[MHA_F32](out, out, rows * V)))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_NUMERIC, "logits: NaN or infinity in rows %zu to %zu", first,
                    first + rows - 1);
}

/* Rows of the document's question never win against those of its text. */
static void lower_question(const mha_logits_args *a, const mha_document *doc, size_t first,
                           size_t rows, float *chunk)
{
    if (a->separator == UINT32_MAX)
        return;
    size_t end = mha_question_rows(doc, a->separator);
    for (size_t t = first ? first : 1; t < first + rows && t < end; t++)
        for (size_t c = 0; c < a->w.out; c++)
            chunk[(t - first) * a->w.out + c] -= 1e6f;
}

/* One document's rows, chunk by chunk, to the probes. */
static mha_status logits_document(mha_forward *f, const mha_step *s, size_t d, size_t first,
                                  size_t rows, float *chunk, size_t chunk_rows, mha_err *err)
{
    size_t V = s->logits.w.out;
    for (size_t r = 0; r < rows; r += chunk_rows) {
        size_t n = rows - r < chunk_rows ? rows - r : chunk_rows;
        MHA_TRY(logits_rows(f, s, first + r, n, chunk, err));
        lower_question(&s->logits, &f->docs[d], r, n, chunk);
        mha_block b = {.site = MHA_SITE_LOGITS,
                       .stack = f->m->stack[f->at].id,
                       .kind = MHA_SELF,
                       .document = f->first_document + d,
                       .first = r,
                       .rows = n,
                       .cols = V,
                       .total_rows = rows,
                       .data = chunk,
                       .stride = V};
        MHA_TRY(mha_watch_deliver(f->watch, &b, 0, err));
    }
    return MHA_OK;
}

size_t mha_logits_chunk(size_t rows, size_t vocab)
{
    size_t most = MHA_LOGITS_FLOATS / vocab;
    most = most < 8 ? 8 : most > MHA_TILE_ROWS ? MHA_TILE_ROWS : most;
    size_t chunks = (rows + most - 1) / most;
    return chunks > 0 ? (rows + chunks - 1) / chunks : 0;
}

mha_status mha_op_logits(mha_forward *f, const mha_step *s, mha_err *err)
{
    if (f->readout != NULL)
        return mha_readout_logits(f, s, err);
    const mha_rows *side = &f->side[f->at];
    size_t V = s->logits.w.out, rows = f->reg_rows[s->src];
    bool pooled = rows == f->doc_count && rows != side->total;
    if (f->logits_out != NULL)
        return logits_rows(f, s, rows - 1, 1, f->logits_out, err);

    size_t chunk_rows = mha_logits_chunk(rows, V);
    void *chunk;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_OUT, chunk_rows * V, sizeof(float), &chunk, err));
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first = pooled ? d : side->offset[d];
        size_t n = pooled ? 1 : side->offset[d + 1] - side->offset[d];
        MHA_TRY(logits_document(f, s, d, first, n, chunk, chunk_rows, err));
    }
    return MHA_OK;
}
