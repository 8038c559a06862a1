/* bind_conv.c: what the arguments of a step that reads features say together: how many rows of what
 * width they become. Sizes are fixed when the model is opened: every document has the same. */
#include "base/fail.h"
#include "model/binder.h"
#include <string.h>

enum { FEATURES_MAX = 1 << 28, ROWS_MAX = 1 << 20 };

/* Floats of a row that a filter sees. */
static mha_status check_filter(const mha_binder *b, const mha_spec_step *s, const mha_conv_args *a)
{
    uint64_t area = a->kind == MHA_CONV_PATCHES ? (uint64_t)a->size * a->size : a->size;
    uint64_t in = a->channels * area;
    if (a->size == 0 || a->stride == 0 || in != a->w.in)
        return mha_bind_misfit(b, s,
                               "w is [%u, %u]: no filters of size %u and stride %u over %u "
                               "channels",
                               a->w.out, a->w.in, a->size, a->stride, a->channels);
    if ((uint64_t)a->channels * a->height * a->width > FEATURES_MAX)
        return mha_bind_misfit(b, s, "%u × %u × %u features are too many", a->channels, a->height,
                               a->width);
    return MHA_OK;
}

/* Filters over the tokens around each one: every row keeps its place. */
static mha_status bind_tokens(mha_binder *b, const mha_spec_step *s, mha_conv_args *a)
{
    a->kind = MHA_CONV_TOKENS;
    a->channels = b->width[s->src];
    a->height = 1;
    MHA_TRY(check_filter(b, s, a));
    if (a->stride != 1 || a->size % 2 == 0 || a->pad != a->size / 2)
        return mha_bind_misfit(b, s,
                               "size=%u stride=%u pad=%u: in a block filters have an odd size, "
                               "stride 1 and half of their size as padding",
                               a->size, a->stride, a->pad);
    b->width[s->dst] = a->w.out;
    return MHA_OK;
}

mha_status mha_bind_conv(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_conv_args *a = &d->step.conv;
    mha_signal_info *f = &b->model->info.signal;
    bool patches = strcmp(s->op->name, "patches") == 0, frames = strcmp(s->op->name, "frames") == 0;
    uint64_t rows;
    if (b->layer >= 0 && !patches && !frames)
        return bind_tokens(b, s, a);
    a->kind = patches ? MHA_CONV_PATCHES : frames ? MHA_CONV_FRAMES : MHA_CONV_ROWS;
    if (b->layer >= 0 || b->model->stack_count != 1)
        return mha_bind_misfit(b, s, "belongs into the prologue of the first stack");
    if (a->kind == MHA_CONV_ROWS ? f->rows == 0 || f->extra > 0 : f->channels != 0)
        return mha_bind_misfit(b, s, "stands at the wrong place of the prologue");
    if (a->kind == MHA_CONV_ROWS) {
        a->channels = b->width[s->src];
        a->width = f->rows;
    }
    a->height = patches ? a->height : 1;
    a->stride = patches ? a->size : a->stride;
    MHA_TRY(check_filter(b, s, a));
    uint64_t wide = (uint64_t)a->width + 2 * (uint64_t)a->pad;
    if (a->size > wide || (patches && a->size > a->height))
        return mha_bind_misfit(b, s, "filters of size %u over %u × %u", a->size, a->height,
                               a->width);
    rows = (wide - a->size) / a->stride + 1;
    if (patches)
        rows = (uint64_t)(a->height / a->size) * (a->width / a->size);
    if (rows + a->skip > ROWS_MAX)
        return mha_bind_misfit(b, s, "%llu rows are too many", (unsigned long long)rows);
    a->rows = (uint32_t)rows + a->skip;
    if (a->kind != MHA_CONV_ROWS)
        *f = (mha_signal_info){a->channels, a->height, a->width, .patch = patches ? a->size : 0};
    f->rows = a->rows;
    f->extra = a->skip;
    b->width[s->dst] = a->w.out;
    return MHA_OK;
}
