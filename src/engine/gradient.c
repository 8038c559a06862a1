/* gradient.c: losses, and gradients of every head's gate, batch by batch.
 *
 * With memory enough the forward pass records every step and the reverse pass reads the tape once.
 * Otherwise only X before each block is kept, and each block runs once more, recording, just before
 * it is reversed: one forward pass more, and the tape of one block instead of all. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/direct.h"
#include "engine/readout.h"
#include "engine/tape.h"
#include "engine/weights.h"
#include <string.h>

typedef struct losses {
    mha_engine *e;
    const mha_document *docs;
    size_t count;
    double *loss, *gates;
    mha_direct *direct; /* NULL: gradients */
    size_t *hits;
    mha_watch watch;
    mha_weights *weights; /* NULL: none wanted */
    mha_progress progress;
    void *progress_context;
    bool gradient; /* anything but losses */
    bool deep;     /* anything from below the lowest attention step of a stack */
    bool recompute;
} losses;

/* ---- one batch --------------------------------------------------------------------------------
 */

static mha_status reverse(const losses *l, mha_forward *f, mha_err *err)
{
    const mha_watch nobody = {NULL, 0};
    const mha_step *logits = &f->m->head.step[f->m->head.count - 1];
    mha_backward b = {.f = f, .watch = &l->watch, .weights = l->weights, .deep = l->deep};
    if (l->direct != NULL)
        b.direct = l->direct + f->first_document;
    if (l->gates != NULL)
        b.gates = l->gates + f->first_document * f->m->info.attn_count * f->gate_stride;
    b.d[logits->src] = f->readout->d_source;
    b.rows[logits->src] = f->reg_rows[logits->src];
    b.width[logits->src] = f->reg_width[logits->src];
    b.live[logits->src] = true;
    f->watch = &nobody; /* blocks that run once more were seen already */
    return mha_backward_run(&b, err);
}

static size_t part_count(const struct mha_model *m)
{
    size_t n = 0;
    for (size_t at = 0; at < m->stack_count; at++)
        n += m->stack[at].layers + 2;
    return n;
}

static mha_keeping keeping_of(const losses *l)
{
    return !l->gradient         ? MHA_KEEP_NOTHING
           : l->direct != NULL  ? MHA_KEEP_DIRECT
           : l->weights != NULL ? MHA_KEEP_SOURCES
                                : MHA_KEEP_STEPS;
}

/* Readies the forward pass for being reversed: all records, or only what each part starts from. */
static mha_status record(const losses *l, mha_forward *f, mha_tape *tape, mha_err *err)
{
    void *p;
    if (!l->gradient)
        return MHA_OK;
    f->keeping = keeping_of(l);
    if (l->recompute) {
        f->head_tape = tape;
        MHA_TRY(mha_alloc(&p, part_count(f->m), sizeof(float *), err));
        f->inputs = p;
        return MHA_OK;
    }
    f->tape = tape;
    MHA_TRY(mha_alloc(&p, part_count(f->m) + 1, sizeof(size_t), err));
    f->starts = p;
    return MHA_OK;
}

static mha_status run_batch(const losses *l, mha_forward *f, mha_tape *tape, mha_err *err)
{
    size_t first = f->first_document;
    mha_readout r = {.loss = l->loss + first,
                     .hits = l->hits != NULL ? l->hits + first : NULL,
                     .direct = l->direct != NULL ? l->direct + first : NULL,
                     .weights = l->weights,
                     .gradient = l->gradient};
    mha_tape_clear(tape);
    f->readout = &r;
    mha_status st = record(l, f, tape, err);
    if (st == MHA_OK)
        st = mha_forward_run(f, err);
    if (st == MHA_OK && l->gradient && r.terms > 0)
        st = reverse(l, f, err);
    for (size_t i = 0; f->inputs != NULL && i < part_count(f->m); i++)
        mha_free(f->inputs[i]);
    mha_free(f->inputs);
    mha_free(f->starts);
    mha_readout_release(&r);
    return st;
}

/* ---- all batches ------------------------------------------------------------------------------
 */

static mha_status run_batches(const losses *l, const mha_plan *plan, size_t tokens, mha_tape *tape,
                              mha_err *err)
{
    mha_engine *e = l->e;
    double done = 0, total = mha_plan_work(plan, e->model, l->docs, l->count);
    for (size_t first = 0, n; first < l->count; first += n) {
        n = mha_batch_count(l->docs, l->count, first, tokens);
        mha_forward f = {.e = e,
                         .m = e->model,
                         .k = e->kernels,
                         .watch = &l->watch,
                         .plan = plan,
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
            st = run_batch(l, &f, tape, err);
        mha_batch_release(&f);
        if (st != MHA_OK)
            return st;
        done = f.done;
    }
    return mha_checkpoint_check(e->model->checkpoint, err);
}

static mha_status run_all(losses *l, mha_err *err)
{
    mha_engine *e = l->e;
    MHA_TRY(mha_readout_check_all(e, l->docs, l->count, err));
    if (l->direct != NULL)
        MHA_TRY(mha_direct_check(e->model, err));
    for (size_t d = 0; l->direct != NULL && d < l->count; d++)
        if (l->docs[d].own != NULL)
            return mha_fail(err, MHA_ERR_ARG,
                            "document %zu: a loss of the caller's own has no direct attribution",
                            d);
    mha_plan plan;
    mha_plan_make(&plan, e->model, &l->watch, true);
    size_t tokens = l->gradient ? MHA_GRADIENT_TOKENS : MHA_BATCH_TOKENS;
    MHA_TRY(mha_plan_gradient(&plan, e, &l->watch, l->docs, l->count, tokens, keeping_of(l),
                              &l->recompute, err));
    mha_tape tape = {.pool = e->pool};
    mha_status st = run_batches(l, &plan, tokens, &tape, err);
    mha_tape_release(&tape);
    return st;
}

mha_status mha_engine_gradient_bytes(mha_engine *e, const mha_document *docs, size_t count,
                                     bool direct, uint64_t *bytes, mha_err *err)
{
    static const mha_watch nobody;
    mha_plan plan;
    bool recompute;
    mha_plan_make(&plan, e->model, &nobody, true);
    MHA_TRY(mha_plan_gradient(&plan, e, &nobody, docs, count, MHA_GRADIENT_TOKENS,
                              direct ? MHA_KEEP_DIRECT : MHA_KEEP_STEPS, &recompute, err));
    *bytes = plan.info.bytes;
    return MHA_OK;
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

/* Bit set of all sites that any probe may want. */
static uint32_t watched(const mha_gradient *out)
{
    uint32_t sites = 0;
    for (size_t i = 0; i < out->probe_count; i++)
        sites |= out->probes[i]->sites;
    return sites;
}

static mha_status run_gradient(losses *l, const mha_gradient *out, mha_err *err)
{
    mha_weights weights;
    void *own = NULL;
    if (l->loss == NULL) { /* the pass itself needs somewhere to put them */
        MHA_TRY(mha_alloc(&own, l->count, sizeof(double), err));
        l->loss = own;
    }
    mha_status st = MHA_OK;
    if (out->weight_count > 0) {
        st = mha_weights_init(&weights, l->e, out->weights, out->weight_count, err);
        l->weights = &weights;
    }
    if (st == MHA_OK)
        st = run_all(l, err);
    if (l->weights != NULL)
        mha_weights_release(l->weights);
    mha_free(own);
    return st;
}

mha_status mha_engine_gradient(mha_engine *e, const mha_document *docs, size_t count,
                               const mha_gradient *out, mha_progress progress,
                               void *progress_context, mha_err *err)
{
    uint32_t sites = watched(out), reversed = sites >> MHA_SITE_COUNT;
    bool deep = out->weight_count > 0 || (sites & mha_site_bit(MHA_SITE_D_EMBED)) != 0;
    losses l = {.e = e,
                .docs = docs,
                .count = count,
                .loss = out->loss,
                .hits = out->hits,
                .gates = out->gates,
                .direct = out->direct,
                .watch = {out->probes, out->probe_count},
                .gradient = out->gates != NULL || out->direct != NULL || reversed != 0 ||
                            out->weight_count > 0,
                .deep = deep,
                .progress = progress,
                .progress_context = progress_context};
    if (sites & mha_site_bit(MHA_SITE_LOGITS))
        return mha_fail(err, MHA_ERR_ARG, "logits are not handed out by a pass with losses");
    if (l.direct != NULL && out->weight_count > 0)
        return mha_fail(err, MHA_ERR_ARG, "a direct pass has no gradients of weights");
    if (l.direct != NULL)
        memset(l.direct, 0, count * sizeof *l.direct);
    if (l.gates != NULL)
        memset(l.gates, 0,
               count * e->model->info.attn_count * mha_engine_gate_heads(e) * sizeof(double));
    return run_gradient(&l, out, err);
}
