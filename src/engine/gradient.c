/* gradient.c: losses, and gradients of every head's gate, batch by batch.
 *
 * With memory enough the forward pass records every step and the reverse pass reads the tape once.
 * Otherwise only X before each block is kept, and each block runs once more, recording, just before
 * it is reversed: one forward pass more, and the tape of one block instead of all. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/readout.h"
#include "engine/tape.h"
#include <string.h>

typedef struct losses {
    mha_engine *e;
    const mha_document *docs;
    size_t count;
    double *loss, *gates;
    size_t *hits;
    mha_progress progress;
    void *progress_context;
    bool recompute;
} losses;

/* ---- one batch --------------------------------------------------------------------------------
 */

static mha_status reverse_recorded(mha_backward *b, mha_err *err)
{
    MHA_TRY(mha_backward_run(b, b->f->head_start, err));
    MHA_TRY(mha_readout_scatter(b, err));
    return mha_backward_run(b, 0, err);
}

static mha_status reverse_again(mha_backward *b, mha_err *err)
{
    mha_forward *f = b->f;
    MHA_TRY(mha_backward_run(b, 0, err));
    MHA_TRY(mha_readout_scatter(b, err));
    for (size_t at = f->m->stack_count; at-- > 0;)
        for (uint32_t l = f->m->stack[at].layers + 1; l-- > 0 && b->stopped != at;) {
            mha_tape_clear(f->tape);
            MHA_TRY(mha_forward_again(f, at, l, err));
            MHA_TRY(mha_backward_run(b, 0, err));
        }
    return MHA_OK;
}

static mha_status reverse(mha_forward *f, double *gates, mha_err *err)
{
    size_t last = f->m->stack_count - 1;
    const mha_step *logits = &f->m->head.step[f->m->head.count - 1];
    mha_backward b = {.f = f, .gates = gates, .at = last, .stopped = SIZE_MAX};
    b.d[logits->src] = f->readout->d_source;
    b.rows[logits->src] = f->reg_rows[logits->src];
    b.width[logits->src] = f->reg_width[logits->src];
    b.live[logits->src] = true;
    return f->inputs != NULL ? reverse_again(&b, err) : reverse_recorded(&b, err);
}

static size_t input_count(const struct mha_model *m)
{
    size_t n = 0;
    for (size_t at = 0; at < m->stack_count; at++)
        n += m->stack[at].layers + 1;
    return n;
}

static mha_status run_batch(const losses *l, mha_forward *f, mha_err *err)
{
    size_t A = f->m->info.attn_count, first = f->first_document;
    mha_readout r = {.loss = l->loss + first,
                     .hits = l->hits != NULL ? l->hits + first : NULL,
                     .gradient = l->gates != NULL};
    mha_tape tape = {0};
    mha_status st = MHA_OK;
    f->readout = &r;
    if (l->gates != NULL && !l->recompute)
        f->tape = &tape;
    if (l->gates != NULL && l->recompute) {
        f->head_tape = &tape;
        void *p = NULL;
        st = mha_alloc(&p, input_count(f->m), sizeof(float *), err);
        f->inputs = p;
    }
    if (st == MHA_OK)
        st = mha_forward_run(f, err);
    if (st == MHA_OK && l->gates != NULL && r.terms > 0)
        st = reverse(f, l->gates + first * A * f->gate_stride, err);
    for (size_t i = 0; f->inputs != NULL && i < input_count(f->m); i++)
        mha_free(f->inputs[i]);
    mha_free(f->inputs);
    mha_tape_release(&tape);
    mha_readout_release(&r);
    return st;
}

/* ---- all batches ------------------------------------------------------------------------------
 */

static mha_status run_all(losses *l, mha_err *err)
{
    mha_engine *e = l->e;
    MHA_TRY(mha_readout_check_all(e, l->docs, l->count, err));
    mha_watch nobody = {NULL, 0};
    mha_plan plan;
    mha_plan_make(&plan, e->model, &nobody, true);
    size_t tokens = l->gates != NULL ? MHA_GRADIENT_TOKENS : MHA_BATCH_TOKENS;
    MHA_TRY(mha_plan_gradient(&plan, e, l->docs, l->count, tokens, l->gates != NULL, &l->recompute,
                              err));
    double done = 0, total = mha_plan_work(&plan, e->model, l->docs, l->count);
    for (size_t first = 0, n; first < l->count; first += n) {
        n = mha_batch_count(l->docs, l->count, first, tokens);
        mha_forward f = {.e = e,
                         .m = e->model,
                         .k = e->kernels,
                         .watch = &nobody,
                         .plan = &plan,
                         .docs = l->docs + first,
                         .doc_count = n,
                         .first_document = first,
                         .gate_stride = mha_engine_gate_heads(e),
                         .progress = l->progress,
                         .progress_context = l->progress_context,
                         .done = done,
                         .total = total};
        mha_status st = mha_batch_init(&f, err);
        if (st == MHA_OK)
            st = run_batch(l, &f, err);
        mha_batch_release(&f);
        if (st != MHA_OK)
            return st;
        done = f.done;
    }
    return mha_checkpoint_check(e->model->checkpoint, err);
}

mha_status mha_engine_loss(mha_engine *e, const mha_document *docs, size_t count, double *loss,
                           size_t *hits, mha_progress progress, void *progress_context,
                           mha_err *err)
{
    losses l = {.e = e,
                .docs = docs,
                .count = count,
                .loss = loss,
                .hits = hits,
                .progress = progress,
                .progress_context = progress_context};
    return run_all(&l, err);
}

mha_status mha_engine_gradient(mha_engine *e, const mha_document *docs, size_t count,
                               const mha_gradient *out, mha_progress progress,
                               void *progress_context, mha_err *err)
{
    losses l = {.e = e,
                .docs = docs,
                .count = count,
                .loss = out->loss,
                .hits = out->hits,
                .gates = out->gates,
                .progress = progress,
                .progress_context = progress_context};
    void *own = NULL;
    if (l.loss == NULL) { /* the pass itself needs somewhere to put them */
        MHA_TRY(mha_alloc(&own, count, sizeof(double), err));
        l.loss = own;
    }
    if (l.gates != NULL)
        memset(l.gates, 0,
               count * e->model->info.attn_count * mha_engine_gate_heads(e) * sizeof(double));
    mha_status st = run_all(&l, err);
    mha_free(own);
    return st;
}
