/* forward.c: the forward pass: a loop over the steps of the program and a table of ops. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "engine/fork.h"
#include "engine/readout.h"
#include "engine/tape.h"
#include <stdio.h>
#include <string.h>

static const mha_op_forward ops[MHA_OP_COUNT] = {
    [MHA_OP_EMBED] = mha_op_embed, [MHA_OP_CONV] = mha_op_conv,     [MHA_OP_LINEAR] = mha_op_linear,
    [MHA_OP_NORM] = mha_op_norm,   [MHA_OP_ATTN] = mha_op_attn,     [MHA_OP_MLP] = mha_op_mlp,
    [MHA_OP_ACT] = mha_op_act,     [MHA_OP_SCALE] = mha_op_scale,   [MHA_OP_ADD] = mha_op_add,
    [MHA_OP_POOL] = mha_op_pool,   [MHA_OP_LOGITS] = mha_op_logits,
};

void mha_forward_place(const mha_forward *f, char *out, size_t cap)
{
    snprintf(out, cap, "%s layer %u", mha_stack_name(f->m->stack[f->at].id), f->layer);
}

/* ---- what ops share ---------------------------------------------------------------------------
 */

static const mha_scratch register_scratch[MHA_REGISTER_COUNT] = {
    [MHA_X] = MHA_SCRATCH_X,
    [MHA_B] = MHA_SCRATCH_B,
    [MHA_C] = MHA_SCRATCH_C,
    [MHA_E] = MHA_SCRATCH_E,
};

mha_status mha_register_make(mha_forward *f, mha_register r, size_t rows, size_t width, float **out,
                             mha_err *err)
{
    void *p;
    MHA_TRY(mha_scratch_get(f->e, register_scratch[r], rows * width, sizeof(float), &p, err));
    f->reg[r] = *out = p;
    f->reg_rows[r] = rows;
    f->reg_width[r] = width;
    return MHA_OK;
}

size_t mha_rows_longest(const mha_rows *rows)
{
    size_t most = 0;
    for (size_t d = 0; d < rows->docs; d++)
        if (rows->offset[d + 1] - rows->offset[d] > most)
            most = rows->offset[d + 1] - rows->offset[d];
    return most;
}

size_t mha_rows_document(const mha_rows *rows, size_t docs, size_t row)
{
    size_t lo = 0, hi = docs;
    while (lo + 1 < hi) {
        size_t mid = (lo + hi) / 2;
        if (rows->offset[mid] <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

typedef struct rows_job {
    mha_rows_fn fn;
    void *context;
    size_t rows;
} rows_job;

static mha_status rows_task(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    const rows_job *j = context;
    size_t first = task * MHA_BLOCK_ROWS, left = j->rows - first;
    mha_row_range range = {first, left < MHA_BLOCK_ROWS ? left : MHA_BLOCK_ROWS};
    return j->fn(j->context, range, err);
}

mha_status mha_rows_run(mha_forward *f, size_t rows, mha_rows_fn fn, void *context, mha_err *err)
{
    rows_job j = {fn, context, rows};
    return mha_pool_run(f->e->pool, (rows + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS, rows_task, &j,
                        err);
}

/* ---- one stack --------------------------------------------------------------------------------
 */

mha_status mha_forward_deliver(const mha_forward *f, const mha_watch *watch, mha_site site,
                               mha_kind kind, uint32_t layer, const float *x, const mha_rows *rows,
                               uint32_t heads, size_t width, mha_err *err)
{
    mha_stack_id id = f->m->stack[f->at].id;
    size_t ld = heads * width;
    if (!mha_watch_wants(watch, site, id, kind, layer, MHA_ANY_HEAD))
        return MHA_OK;
    for (uint32_t h = 0; h < heads; h++)
        for (size_t d = 0; d < f->doc_count; d++) {
            size_t n = rows->offset[d + 1] - rows->offset[d];
            mha_block b = {.site = site,
                           .stack = id,
                           .kind = kind,
                           .layer = layer,
                           .head = h,
                           .document = f->first_document + d,
                           .rows = n,
                           .cols = width,
                           .total_rows = n,
                           .data = x + rows->offset[d] * ld + h * width,
                           .stride = ld};
            MHA_TRY(mha_watch_deliver(watch, &b, 0, err));
        }
    return MHA_OK;
}

/* The residual stream. */
static mha_status deliver_register(mha_forward *f, mha_site site, uint32_t layer, mha_err *err)
{
    return mha_forward_deliver(f, f->watch, site, MHA_SELF, layer, f->reg[MHA_X], &f->side[f->at],
                               1, f->reg_width[MHA_X], err);
}

static mha_status run_step(mha_forward *f, const mha_step *s, mha_err *err)
{
    MHA_TRY(mha_tape_step(f, s, err));
    return ops[s->op](f, s, err);
}

static mha_status run_steps(mha_forward *f, const mha_steps *steps, size_t count, mha_err *err)
{
    for (size_t i = 0; i < count; i++)
        MHA_TRY(run_step(f, &steps->step[i], err));
    return MHA_OK;
}

static mha_status report_progress(mha_forward *f, mha_err *err)
{
    f->done += (double)f->side[f->at].total;
    if (f->progress != NULL && f->progress(f->progress_context, f->done, f->total) != 0)
        return mha_fail(err, MHA_ERR_CANCELLED, "interrupted");
    return MHA_OK;
}

/* Index of the first attention step of block `layer` of stack `at`. */
static size_t first_attn(const mha_forward *f, size_t at, uint32_t layer)
{
    const mha_model_info *info = &f->m->info;
    for (size_t i = 0; i < info->attn_count; i++)
        if (info->attn[i].stack == f->m->stack[at].id && info->attn[i].layer >= layer)
            return i;
    return info->attn_count;
}

size_t mha_forward_part(const struct mha_model *m, size_t at, uint32_t part)
{
    return part + (at == 1 ? m->stack[0].layers + 2 : 0);
}

/* Notes where a part's records start; or keeps X before it when the reverse pass will run it once
 * more. The direct pass wants X before the first block in any case. */
static mha_status begin_part(mha_forward *f, uint32_t part, mha_err *err)
{
    size_t i = mha_forward_part(f->m, f->at, part);
    if (f->starts != NULL)
        f->starts[i] = f->tape->count;
    size_t n = f->reg_rows[MHA_X] * f->reg_width[MHA_X];
    if (f->starts != NULL && f->keeping == MHA_KEEP_DIRECT && part == 1)
        return mha_tape_keep(f->tape, f->reg[MHA_X], n, &f->embedded, err);
    if (f->inputs == NULL || part == 0)
        return MHA_OK;
    void *p;
    MHA_TRY(mha_alloc_raw(&p, n, sizeof(float), err));
    memcpy(p, f->reg[MHA_X], n * sizeof(float));
    f->inputs[i] = p;
    return MHA_OK;
}

mha_status mha_forward_again(mha_forward *f, size_t at, uint32_t part, mha_err *err)
{
    const mha_stack *st = &f->m->stack[at];
    size_t N = f->side[at].total, D = part > 0 ? st->stream[part - 1] : 0;
    const mha_steps *steps = part == 0           ? &st->prologue
                             : part > st->layers ? &st->epilogue
                                                 : &st->block[part - 1];
    float *x;
    f->at = at;
    if (f->work_at != at)
        MHA_TRY(mha_batch_work(f, err));
    f->layer = part > 0 ? part - 1 : 0;
    f->attn = first_attn(f, at, f->layer);
    f->depth = MHA_DEPTH_FULL;
    f->reg_rows[MHA_X] = 0;
    if (part > 0) {
        MHA_TRY(mha_register_make(f, MHA_X, N, D, &x, err));
        memcpy(x, f->inputs[mha_forward_part(f->m, at, part)], N * D * sizeof(float));
    }
    return run_steps(f, steps, steps->count, err);
}

/* The last wanted block may end after the attention step that is looked at. */
static mha_status run_blocks(mha_forward *f, const mha_stack *st, const mha_stack_plan *p,
                             mha_err *err)
{
    for (uint32_t l = 0; l < p->layers; l++) {
        const mha_steps *block = &st->block[l];
        bool last = l + 1 == p->layers;
        size_t count = last ? p->last_steps : block->count;
        f->layer = l;
        f->depth = MHA_DEPTH_FULL;
        MHA_TRY(begin_part(f, l + 1, err));
        if (last && count > 0) {
            MHA_TRY(run_steps(f, block, count - 1, err));
            f->depth = p->last_depth;
            MHA_TRY(run_step(f, &block->step[count - 1], err));
        } else
            MHA_TRY(run_steps(f, block, count, err));
        if (count == block->count)
            MHA_TRY(deliver_register(f, MHA_SITE_RESID, l, err));
        MHA_TRY(report_progress(f, err));
    }
    return MHA_OK;
}

static mha_status run_stack(mha_forward *f, size_t at, mha_err *err)
{
    const mha_stack *st = &f->m->stack[at];
    const mha_stack_plan *p = &f->plan->stack[at];
    f->at = at;
    f->attn = first_attn(f, at, 0);
    f->reg_rows[MHA_X] = f->reg_rows[MHA_B] = f->reg_rows[MHA_C] = 0;
    if (f->fork != NULL)
        MHA_TRY(mha_fork_stack(f, err));
    MHA_TRY(mha_batch_work(f, err));
    MHA_TRY(begin_part(f, 0, err));
    MHA_TRY(run_steps(f, &st->prologue, st->prologue.count, err));
    MHA_TRY(deliver_register(f, MHA_SITE_EMBED, 0, err));
    MHA_TRY(run_blocks(f, st, p, err));
    if (!p->epilogue)
        return MHA_OK;
    MHA_TRY(begin_part(f, st->layers + 1, err));
    MHA_TRY(run_steps(f, &st->epilogue, st->epilogue.count, err));
    return deliver_register(f, MHA_SITE_HIDDEN, 0, err);
}

/* The encoder's output becomes the memory E by changing places, without a copy. */
static void keep_memory(mha_forward *f)
{
    mha_engine *e = f->e;
    void *p = e->scratch[MHA_SCRATCH_E];
    size_t bytes = e->scratch_bytes[MHA_SCRATCH_E];
    e->scratch[MHA_SCRATCH_E] = e->scratch[MHA_SCRATCH_X];
    e->scratch_bytes[MHA_SCRATCH_E] = e->scratch_bytes[MHA_SCRATCH_X];
    e->scratch[MHA_SCRATCH_X] = p;
    e->scratch_bytes[MHA_SCRATCH_X] = bytes;
    f->reg[MHA_E] = f->reg[MHA_X];
    f->reg_rows[MHA_E] = f->reg_rows[MHA_X];
    f->reg_width[MHA_E] = f->reg_width[MHA_X];
}

/* The read-out: logits for probes, or losses of the rows that have terms. */
static mha_status run_head(mha_forward *f, mha_err *err)
{
    double before = f->e->multiply_adds;
    if (f->readout != NULL) {
        MHA_TRY(mha_readout_init(f->readout, f, err));
        if (f->readout->terms == 0)
            return mha_readout_empty(f->readout, f->doc_count);
        MHA_TRY(mha_readout_gather(f, err));
    }
    if (f->head_tape != NULL)
        f->tape = f->head_tape;
    if (f->starts != NULL)
        f->starts[mha_forward_part(f->m, f->at, f->m->stack[f->at].layers + 2)] = f->tape->count;
    mha_status st = run_steps(f, &f->m->head, f->m->head.count, err);
    f->e->readout_multiply_adds += f->e->multiply_adds - before;
    return st;
}

mha_status mha_forward_run(mha_forward *f, mha_err *err)
{
    size_t last = f->m->stack_count - 1;
    if (last == 1 && f->plan->stack[0].runs && !f->keep_memory) {
        MHA_TRY(run_stack(f, 0, err));
        keep_memory(f);
    }
    if (!f->plan->stack[last].runs)
        return MHA_OK;
    MHA_TRY(run_stack(f, last, err));
    return f->plan->head ? run_head(f, err) : MHA_OK;
}
