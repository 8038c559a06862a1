/* trace.c: a probe that keeps what it is given, as named arrays. Arrays are made before the run;
 * delivery only copies, so that different heads may come from different threads at once. */
#include "probe/trace.h"
#include "base/fail.h"
#include "base/mem.h"
#include "probe/watch.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- before the run --------------------------------------------------------------------------
 */

static mha_status check(const mha_trace *t, mha_err *err)
{
    const uint32_t kept =
        (1u << MHA_SITE_COUNT) - 1 - (1u << MHA_SITE_STATS) - (1u << MHA_SITE_ATTN_OUT);
    uint32_t sites = t->options.sites;
    if (sites == 0 || sites & ~kept)
        return mha_fail(err, MHA_ERR_ARG, "a trace of no site that it can keep");
    if (sites & (1u << MHA_SITE_LOGITS) && t->info->head == MHA_HEAD_NONE)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the model has no head: no logits",
                        t->info->path);
    bool globals = false;
    for (size_t a = 0; a < t->info->attn_count; a++)
        globals = globals || t->info->attn[a].globals;
    if (sites & MHA_GLOBAL_SITES && !globals)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the model has no global tokens",
                        t->info->path);
    return MHA_OK;
}

static size_t element_size(const mha_trace_array *a)
{
    return a->type == MHA_ARRAY_I64 ? sizeof(int64_t) : sizeof(float);
}

/* Elements of an array; *overflows is set when they or their bytes do not fit. */
static size_t elements(const mha_trace_array *a, bool *overflows)
{
    size_t n = 1, bytes;
    for (size_t i = 0; i < a->dims; i++)
        *overflows |= mha_mul_overflows(n, a->shape[i], &n);
    *overflows |= mha_mul_overflows(n, element_size(a), &bytes);
    return n;
}

static mha_status check_size(const mha_trace *t, mha_err *err)
{
    size_t total = 0;
    bool overflows = false;
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->documents[i].count; k++) {
            const mha_trace_array *a = &t->documents[i].arrays[k];
            size_t n = elements(a, &overflows);
            overflows |= mha_add_overflows(total, n * element_size(a), &total);
        }
    uint64_t limit = t->options.limit;
    if (overflows)
        return mha_fail(err, MHA_ERR_NOMEM, "the arrays are larger than any memory");
    if (limit > 0 && total > limit)
        return mha_fail(err, MHA_ERR_NOMEM, "the arrays take %zu bytes, the limit is %llu", total,
                        (unsigned long long)limit);
    return MHA_OK;
}

/* One block for each document; its arrays lie behind each other in it. */
static mha_status make_arrays(mha_trace *t, mha_err *err)
{
    bool overflows = false; /* not any more: check_size was here */
    for (size_t i = 0; i < t->count; i++) {
        mha_trace_document *d = &t->documents[i];
        size_t total = 0, at = 0;
        for (size_t k = 0; k < d->count; k++)
            if (d->arrays[k].type == MHA_ARRAY_F32)
                total += elements(&d->arrays[k], &overflows);
        MHA_TRY(mha_alloc((void **)&d->values, total, sizeof *d->values, err));
        for (size_t k = 0; k < d->count; k++) {
            mha_trace_array *a = &d->arrays[k];
            if (a->type != MHA_ARRAY_F32)
                continue;
            a->data = d->values + at;
            at += elements(a, &overflows);
        }
    }
    return MHA_OK;
}

/* ---- during the run --------------------------------------------------------------------------
 */

static bool wants(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head)
{
    const mha_trace *t = context;
    switch (site) {
    case MHA_SITE_EMBED:
    case MHA_SITE_HIDDEN:
        return mha_chosen_has_stack(&t->chosen, stack);
    case MHA_SITE_RESID:
        return mha_chosen_has_layer(&t->chosen, stack, layer);
    case MHA_SITE_LOGITS:
        return true;
    case MHA_SITE_K:
    case MHA_SITE_V: /* head counts key/value heads: all of the layer are kept */
        return mha_chosen_has(&t->chosen, stack, kind, layer, UINT32_MAX);
    default:
        return mha_chosen_has(&t->chosen, stack, kind, layer, head);
    }
}

/* Rows of a generation end at the keys that there were; behind them weights are 0. */
static void copy_rows(const mha_block *block, size_t cols, float *out)
{
    for (size_t r = 0; r < block->rows; r++) {
        memcpy(out + r * cols, block->data + r * block->stride, block->cols * sizeof *out);
        for (size_t c = block->cols; c < cols; c++)
            out[r * cols + c] = block->site == MHA_SITE_SCORES ? -INFINITY : 0;
    }
}

/* A row of cells goes to its head's map; out is the document's array. */
static int row_done(void *context, const mha_block *block, const mha_reader_row *row)
{
    float *out = (float *)context + row->row * row->cells;
    (void)block;
    for (size_t c = 0; c < row->cells; c++)
        out[c] = (float)row->merged->p[c];
    return 0;
}

/* The block's head on the first axis. */
static size_t head_number(const mha_trace *t, const mha_block *block)
{
    if (block->site == MHA_SITE_K || block->site == MHA_SITE_V)
        return block->head;
    size_t a = mha_chosen_step(&t->chosen, block->stack, block->kind, block->layer);
    return t->chosen.slot[a * t->chosen.stride + block->head];
}

static int deliver(void *context, const mha_block *block, size_t worker)
{
    mha_trace *t = context;
    (void)worker;
    assert(block->document < t->count);
    mha_trace_document *d = &t->documents[block->document];
    size_t place = mha_trace_place(t, block->site, block->stack, block->kind, block->layer);
    if (d->at[place] == 0)
        return 0; /* a decoder's part of a document without a target */
    const mha_trace_array *a = &d->arrays[d->at[place] - 1];
    float *out = d->values + ((const float *)a->data - d->values);
    if (a->dims == 3)
        out += head_number(t, block) * a->shape[1] * a->shape[2];
    if (block->target != NULL) /* [H, E] */
        out += head_number(t, block) * a->shape[1];
    if (block->site == MHA_SITE_PATTERN && t->reads)
        return mha_reader_add(&t->reader, block, row_done, out);
    size_t cols = a->shape[a->dims - 1];
    assert(block->cols <= cols);
    copy_rows(block, cols, out + block->first * cols);
    return 0;
}

/* ---- the interface ---------------------------------------------------------------------------
 */

static mha_status fill(mha_trace *t, mha_err *err)
{
    MHA_TRY(mha_chosen_init(&t->chosen, t->info, &t->options.choice, err));
    MHA_TRY(check(t, err));
    for (int s = 0; s < MHA_STACK_COUNT; s++)
        if (t->info->layers[s] > t->max_layers)
            t->max_layers = t->info->layers[s];
    t->places = mha_trace_place(t, MHA_SITE_RESID, MHA_STACK_COUNT, MHA_SELF, 0);
    MHA_TRY(mha_alloc((void **)&t->documents, t->count, sizeof *t->documents, err));
    const mha_view *view = &t->options.view;
    t->reads = t->options.sites & (1u << MHA_SITE_PATTERN) &&
               (view->special != MHA_SPECIAL_KEEP || view->words != NULL);
    if (t->reads)
        MHA_TRY(mha_reader_init(&t->reader, &t->chosen, t->docs, t->count, view->special,
                                view->words, err));
    MHA_TRY(mha_trace_list(t, err));
    MHA_TRY(check_size(t, err));
    return make_arrays(t, err);
}

mha_status mha_trace_new(mha_trace **out, const mha_model *model, const mha_document *docs,
                         size_t count, const mha_trace_options *options, mha_err *err)
{
    mha_trace *t;
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&t, 1, sizeof *t, err));
    t->info = mha_model_info_get(model);
    t->docs = docs;
    t->count = count;
    t->options = *options;
    t->probe =
        (mha_probe){.sites = options->sites, .wants = wants, .deliver = deliver, .context = t};
    mha_status st = fill(t, err);
    if (st != MHA_OK) {
        mha_trace_free(t);
        return st;
    }
    *out = t;
    return MHA_OK;
}

void mha_trace_free(mha_trace *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; t->documents != NULL && i < t->count; i++) {
        mha_trace_document *d = &t->documents[i];
        mha_free(d->arrays);
        mha_free(d->values);
        mha_free(d->at);
    }
    mha_free(t->documents);
    mha_reader_release(&t->reader);
    mha_arena_release(&t->memory);
    mha_chosen_release(&t->chosen);
    mha_free(t);
}

const mha_probe *mha_trace_probe(const mha_trace *t)
{
    return &t->probe;
}

size_t mha_trace_count(const mha_trace *t, size_t document)
{
    return t->documents[document].count;
}

const mha_trace_array *mha_trace_get(const mha_trace *t, size_t document, size_t i)
{
    return &t->documents[document].arrays[i];
}

const mha_trace_array *mha_trace_find(const mha_trace *t, size_t document, const char *name)
{
    const mha_trace_document *d = &t->documents[document];
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->arrays[i].name, name) == 0)
            return &d->arrays[i];
    return NULL;
}
