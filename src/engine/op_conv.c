/* op_conv.c: CONV: pictures and sounds become rows. What a filter sees of its source is unfolded
 * into one row, and the filters are then one matrix product:
 *
 *   PATCHES  row (i, j) of the grid:  channel, line and column of patch (i, j), none overlapping
 *   FRAMES   row t:  channel c, step s:  features[c][t·stride + s − pad], 0 outside
 *   ROWS     row t:  channel c, step s:  row t·stride + s − pad of the source, column c
 *
 * Nothing that has a gate lies below it, so the reverse pass ends here. */
#include "base/fail.h"
#include "engine/backward.h"
#include "engine/matmul.h"
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

/* One document's rows behind the skipped ones, into dst [rows, D]. */
static mha_status conv_document(mha_forward *f, const mha_conv_args *a, const float *source,
                                float *dst, mha_err *err)
{
    size_t rows = a->rows - a->skip, in = a->w.in, D = a->w.out;
    size_t chunk = CONV_FLOATS / in > 0 ? CONV_FLOATS / in : 1;
    mha_epilogue ep = {.bias = a->b, .act = MHA_ACT_NONE};
    void *p;
    chunk = chunk < rows ? chunk : rows;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_UP, chunk * in, sizeof(float), &p, err));
    for (size_t r = 0; r < rows; r += chunk) {
        conv_job j = {a, source, p, r};
        size_t n = rows - r < chunk ? rows - r : chunk;
        MHA_TRY(mha_rows_run(f, n, unfold_rows, &j, err));
        MHA_TRY(mha_matmul(f->e, dst + r * D, D, j.unfolded, in, n, &a->w, &ep, err));
    }
    return MHA_OK;
}

mha_status mha_op_conv(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_conv_args *a = &s->conv;
    size_t D = a->w.out, floats = f->doc_count * a->rows * D;
    size_t each = (size_t)a->channels * a->height * a->width; /* floats of a document's source */
    void *y;
    float *dst;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LINEAR, floats, sizeof(float), &y, err));
    for (size_t d = 0; d < f->doc_count; d++) {
        const float *x = a->kind == MHA_CONV_ROWS ? f->reg[s->src] + d * each : f->docs[d].features;
        float *out = (float *)y + d * a->rows * D;
        memset(out, 0, a->skip * D * sizeof *out);
        MHA_TRY(conv_document(f, a, x, out + a->skip * D, err));
    }
    MHA_TRY(mha_register_make(f, s->dst, f->doc_count * a->rows, D, &dst, err));
    f->k->widen[MHA_F32](dst, y, floats);
    return MHA_OK;
}

mha_status mha_op_conv_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    (void)err;
    mha_backward_used(b, s->step->dst);
    return MHA_OK;
}
