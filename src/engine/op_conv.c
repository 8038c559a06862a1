/* op_conv.c: CONV: pictures and sounds become rows. What a filter sees of its source is unfolded
 * into one row, and the filters are then one matrix product:
 *
 *   PATCHES  row (i, j) of the grid:  channel, line and column of patch (i, j), none overlapping
 *   FRAMES   row t:  channel c, step s:  features[c][t·stride + s − pad], 0 outside
 *   ROWS     row t:  channel c, step s:  row t·stride + s − pad of the source, column c
 *   TOKENS   the same for each document's rows, with stride 1
 *
 * Nothing that has a gate lies below the first three, so the reverse pass ends there. */
#include "base/fail.h"
#include "engine/backward.h"
#include "engine/matmul.h"
#include "engine/tape.h"
#include "engine/weights.h"
#include <string.h>

/* Floats of one chunk of unfolded rows. */
#define CONV_FLOATS ((size_t)1 << 20)

typedef struct conv_job {
    const mha_conv_args *a;
    const float *source; /* of one document */
    float *unfolded;     /* [rows of the chunk, in] */
    size_t first;        /* first row of the chunk, from the first that is not skipped */
} conv_job;

static void unfold_patch(const mha_conv_args *a, const float *x, size_t r, float *out)
{
    size_t across = a->width / a->size, i = r / across * a->size, j = r % across * a->size;
    for (size_t c = 0; c < a->channels; c++)
        for (size_t y = 0; y < a->size; y++, out += a->size)
            memcpy(out, x + (c * a->height + i + y) * a->width + j, a->size * sizeof *out);
}

static void unfold_steps(const mha_conv_args *a, const float *x, size_t r, float *out)
{
    size_t by_channel = a->kind == MHA_CONV_FRAMES ? a->width : 1;
    size_t by_step = a->kind == MHA_CONV_FRAMES ? 1 : a->channels;
    for (size_t c = 0; c < a->channels; c++)
        for (size_t s = 0; s < a->size; s++) {
            size_t at = r * a->stride + s;
            bool outside = at < a->pad || at - a->pad >= a->width;
            *out++ = outside ? 0 : x[c * by_channel + (at - a->pad) * by_step];
        }
}

static mha_status unfold_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const conv_job *j = context;
    for (size_t r = rows.first; r < rows.first + rows.count; r++) {
        float *out = j->unfolded + r * j->a->w.in;
        if (j->a->kind == MHA_CONV_PATCHES)
            unfold_patch(j->a, j->source, j->first + r, out);
        else
            unfold_steps(j->a, j->source, j->first + r, out);
    }
    return MHA_OK;
}

size_t mha_conv_chunk(const mha_conv_args *a, size_t rows)
{
    size_t most = CONV_FLOATS / a->w.in > 0 ? CONV_FLOATS / a->w.in : 1;
    return most < rows ? most : rows;
}

/* One document's rows behind the skipped ones, into dst [rows, D]. */
static mha_status conv_document(mha_forward *f, const mha_conv_args *a, const float *source,
                                float *dst, mha_err *err)
{
    size_t rows = a->rows - a->skip, in = a->w.in, D = a->w.out, chunk = mha_conv_chunk(a, rows);
    mha_epilogue ep = {.bias = a->b, .act = MHA_ACT_NONE};
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_UP, chunk * in, sizeof(float), &p, err));
    for (size_t r = 0; r < rows; r += chunk) {
        conv_job j = {a, source, p, r};
        size_t n = rows - r < chunk ? rows - r : chunk;
        MHA_TRY(mha_rows_run(f, n, unfold_rows, &j, err));
        MHA_TRY(mha_matmul(f->e, dst + r * D, D, j.unfolded, in, n, &a->w, &ep, err));
    }
    return MHA_OK;
}

/* The arguments for document d, and its first row in dst. */
static mha_conv_args args_of(const mha_forward *f, const mha_conv_args *a, size_t d, size_t *first)
{
    const size_t *offset = f->side[f->at].offset;
    mha_conv_args own = *a;
    *first = d * a->rows;
    if (a->kind == MHA_CONV_TOKENS) {
        *first = offset[d];
        own.width = own.rows = (uint32_t)(offset[d + 1] - offset[d]);
    }
    return own;
}

mha_status mha_op_conv(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_conv_args *a = &s->conv;
    bool tokens = a->kind == MHA_CONV_TOKENS;
    size_t D = a->w.out, rows = tokens ? f->side[f->at].total : f->doc_count * a->rows;
    void *y;
    float *dst;
    if (tokens)
        MHA_TRY(mha_tape_source(f, s->src, err));
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LINEAR, rows * D, sizeof(float), &y, err));
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first;
        mha_conv_args own = args_of(f, a, d, &first);
        size_t each = (size_t)own.channels * own.height * own.width; /* floats of its source */
        const float *x = tokens                     ? f->reg[s->src] + first * own.channels
                         : a->kind == MHA_CONV_ROWS ? f->reg[s->src] + d * each
                                                    : f->docs[d].features;
        float *out = (float *)y + first * D;
        memset(out, 0, own.skip * D * sizeof *out);
        MHA_TRY(conv_document(f, &own, x, out + own.skip * D, err));
    }
    MHA_TRY(mha_register_make(f, s->dst, rows, D, &dst, err));
    f->k->widen[MHA_F32](dst, y, rows * D);
    return MHA_OK;
}

/* ---- reversed, for rows of documents ------------------------------------------------------------
 */

/* Adds the gradient of unfolded rows first … first + n − 1 to that of the rows that they are of. */
static void fold(const mha_conv_args *a, const float *du, size_t first, size_t n, float *dx)
{
    for (size_t r = first; r < first + n; r++)
        for (size_t c = 0; c < a->channels; c++)
            for (size_t s = 0; s < a->size; s++, du++) {
                size_t at = r + s;
                if (at >= a->pad && at - a->pad < a->width)
                    dx[(at - a->pad) * a->channels + c] += *du;
            }
}

/* One document: dW and db from its rows once more unfolded, then dx. x is NULL without weights. */
static mha_status document_back(mha_backward *b, const mha_conv_args *a, const float *x,
                                const float *dy, float *dx, mha_err *err)
{
    size_t rows = a->rows, in = a->w.in, D = a->w.out, chunk = mha_conv_chunk(a, rows);
    void *p;
    MHA_TRY(mha_scratch_get(b->f->e, MHA_SCRATCH_UP, chunk * in, sizeof(float), &p, err));
    memset(dx, 0, rows * a->channels * sizeof *dx);
    for (size_t r = 0; r < rows; r += chunk) {
        conv_job j = {a, x, p, r};
        size_t n = rows - r < chunk ? rows - r : chunk;
        if (b->weights != NULL) {
            MHA_TRY(mha_rows_run(b->f, n, unfold_rows, &j, err));
            MHA_TRY(mha_weights_linear(b->weights, &a->w, a->b, dy + r * D, D, p, in, n, err));
        }
        MHA_TRY(mha_matmul_back(b->f->e, p, in, dy + r * D, D, n, &a->w, 0, err));
        fold(a, p, r, n, dx);
    }
    return MHA_OK;
}

mha_status mha_op_conv_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    const mha_conv_args *a = &s->step->conv;
    mha_forward *f = b->f;
    size_t C = a->channels;
    void *p;
    float *dx;
    if (a->kind != MHA_CONV_TOKENS) {
        mha_backward_used(b, s->step->dst);
        return MHA_OK;
    }
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LINEAR, s->rows * C, sizeof(float), &p, err));
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first;
        mha_conv_args own = args_of(f, a, d, &first);
        const float *x = s->x != NULL ? s->x + first * C : NULL;
        MHA_TRY(document_back(b, &own, x, b->d[s->step->dst] + first * a->w.out,
                              (float *)p + first * C, err));
    }
    mha_backward_used(b, s->step->dst);
    MHA_TRY(mha_backward_into(b, s->step->src, s->rows, C, &dx, err));
    f->k->widen[MHA_F32](dx, p, s->rows * C);
    mha_backward_pass(b, s->step->src, dx);
    return MHA_OK;
}
