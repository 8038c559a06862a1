/* plan.c: what a run has to compute, and what that takes, worked out before anything runs. */
#include "base/fail.h"
#include "engine/engine.h"
#include <string.h>

size_t mha_side_tokens(const struct mha_model *m, const mha_document *doc, size_t i)
{
    return m->stack_count == 2 && i == 1 ? doc->target_n : doc->n;
}

size_t mha_batch_count(const mha_document *docs, size_t count, size_t first, size_t limit)
{
    size_t tokens = 0, n = 0;
    for (size_t d = first; d < count; d++) {
        size_t most = docs[d].n > docs[d].target_n ? docs[d].n : docs[d].target_n;
        if (n > 0 && (tokens + most > limit || docs[d].generated > 0))
            break;
        tokens += most;
        n++;
        if (docs[d].generated > 0) /* a run of its own */
            break;
    }
    return n;
}

/* ---- which layers and steps -------------------------------------------------------------------
 */

static mha_kind step_kind(const mha_step *s)
{
    return s->attn.keys == MHA_KEYS_MEMORY ? MHA_CROSS : MHA_SELF;
}

/* How far into block l the probes look: number of steps, 0 for not at all. */
static size_t wanted_steps(const mha_stack *st, uint32_t l, const mha_watch *watch,
                           mha_depth *depth)
{
    const mha_steps *block = &st->block[l];
    *depth = MHA_DEPTH_FULL;
    if (mha_watch_wants(watch, MHA_SITE_RESID, st->id, MHA_SELF, l, MHA_ANY_HEAD))
        return block->count;
    const uint32_t after_values = mha_site_bit(MHA_SITE_Z) | mha_site_bit(MHA_SITE_HEAD_OUT);
    const uint32_t attention =
        after_values | mha_site_bit(MHA_SITE_ATTN_OUT) | mha_site_bit(MHA_SITE_STATS) |
        mha_site_bit(MHA_SITE_PATTERN) | mha_site_bit(MHA_SITE_SCORES) | mha_site_bit(MHA_SITE_Q) |
        mha_site_bit(MHA_SITE_K) | mha_site_bit(MHA_SITE_V) | MHA_GLOBAL_SITES;
    size_t steps = 0;
    for (size_t i = 0; i < block->count; i++) {
        if (block->step[i].op != MHA_OP_ATTN)
            continue;
        uint32_t sites = mha_watch_sites(watch, st->id, step_kind(&block->step[i]), l) & attention;
        if (sites == 0)
            continue;
        steps = i + 1;
        *depth = sites & mha_site_bit(MHA_SITE_ATTN_OUT) ? MHA_DEPTH_FULL
                 : sites & after_values                  ? MHA_DEPTH_Z
                                                         : MHA_DEPTH_SCORES;
    }
    return steps;
}

static void plan_stack(mha_stack_plan *p, const mha_stack *st, const mha_watch *watch, bool whole)
{
    memset(p, 0, sizeof *p);
    p->last_depth = MHA_DEPTH_FULL;
    if (whole || mha_watch_wants(watch, MHA_SITE_HIDDEN, st->id, MHA_SELF, 0, MHA_ANY_HEAD)) {
        p->layers = st->layers;
        p->last_steps = st->layers > 0 ? st->block[st->layers - 1].count : 0;
        p->epilogue = p->runs = true;
        return;
    }
    p->runs = mha_watch_wants(watch, MHA_SITE_EMBED, st->id, MHA_SELF, 0, MHA_ANY_HEAD);
    for (uint32_t l = 0; l < st->layers; l++) {
        mha_depth depth;
        size_t steps = wanted_steps(st, l, watch, &depth);
        if (steps == 0)
            continue;
        p->runs = true;
        p->layers = l + 1;
        p->last_steps = steps;
        p->last_depth = depth;
    }
}

void mha_plan_make(mha_plan *plan, const struct mha_model *m, const mha_watch *watch, bool read_out)
{
    memset(plan, 0, sizeof *plan);
    size_t last = m->stack_count - 1;
    plan->head = read_out || mha_watch_wants(watch, MHA_SITE_LOGITS, m->stack[last].id, MHA_SELF, 0,
                                             MHA_ANY_HEAD);
    plan_stack(&plan->stack[last], &m->stack[last], watch, plan->head);
    if (last == 1)
        plan_stack(&plan->stack[0], &m->stack[0], watch, plan->stack[1].runs);
}

/* ---- work and limits ---------------------------------------------------------------------------
 */

double mha_plan_work(const mha_plan *p, const struct mha_model *m, const mha_document *docs,
                     size_t count)
{
    double total = 0;
    for (size_t d = 0; d < count; d++)
        for (size_t at = 0; at < m->stack_count; at++)
            total += (double)mha_side_tokens(m, &docs[d], at) * p->stack[at].layers;
    return total;
}

mha_status mha_plan_check(const mha_engine *e, uint64_t bytes, mha_err *err)
{
    if (e->memory_limit == 0 || bytes <= e->memory_limit)
        return MHA_OK;
    return mha_fail(
        err, MHA_ERR_NOMEM,
        "the run needs %llu bytes beyond the weights, over the limit of %llu (--memory)",
        (unsigned long long)bytes, (unsigned long long)e->memory_limit);
}

/* Floats that the tape keeps of one step for `rows` rows. */
static uint64_t tape_floats(const struct mha_model *m, const mha_step *s, uint64_t rows,
                            mha_keeping keeping)
{
    const mha_attn_args *a = &s->attn;
    uint64_t source = keeping == MHA_KEEP_SOURCES ? rows * m->width : 0;
    bool direct = keeping == MHA_KEEP_DIRECT;
    switch (s->op) {
    case MHA_OP_NORM:
    case MHA_OP_ACT:
        return rows * s->width; /* neither changes it */
    case MHA_OP_ATTN:
        if (direct)
            return rows * a->width * a->heads;
        return source + rows * ((uint64_t)a->width * 2 * (a->heads + a->kv_heads) + a->heads) +
               (a->q_global.data != NULL ? 2 * rows * a->width * a->heads : 0) +
               (a->output_gate.data != NULL ? 2 * rows * a->width * a->heads : 0);
    case MHA_OP_MLP:
        if (direct)
            return rows * s->width;
        return source + rows * s->mlp.width * (s->mlp.gate.data != NULL ? 2 : 1);
    case MHA_OP_LINEAR:
    case MHA_OP_CONV:
        return source;
    default:
        return 0;
    }
}

mha_status mha_plan_gradient(mha_plan *plan, const mha_engine *e, const mha_watch *watch,
                             const mha_document *docs, size_t count, size_t tokens,
                             mha_keeping keeping, bool *recompute, mha_err *err)
{
    const struct mha_model *m = e->model;
    uint64_t all = 0, block = 0, inputs = 0;
    bool gradient = keeping != MHA_KEEP_NOTHING;
    plan->widens = gradient;
    MHA_TRY(mha_plan_cost(plan, e, watch, docs, count, err));
    for (size_t first = 0, n; gradient && first < count; first += n) {
        n = mha_batch_count(docs, count, first, tokens);
        uint64_t batch = 0, batch_inputs = 0;
        for (size_t at = 0; at < m->stack_count; at++) {
            uint64_t rows = 0;
            for (size_t d = 0; d < n; d++)
                rows += mha_side_tokens(m, &docs[first + d], at);
            for (uint32_t l = 0; l < m->stack[at].layers; l++) {
                uint64_t one = 0;
                for (size_t i = 0; i < m->stack[at].block[l].count; i++)
                    one += tape_floats(m, &m->stack[at].block[l].step[i], rows, keeping);
                batch += one;
                block = one > block ? one : block;
            }
            for (uint32_t l = 0; l <= m->stack[at].layers; l++)
                batch_inputs += rows * m->stack[at].stream[l];
        }
        all = batch > all ? batch : all;
        inputs = batch_inputs > inputs ? batch_inputs : inputs;
    }
    uint64_t scratch = plan->info.bytes * (gradient ? 2 : 1);
    plan->info.bytes = scratch + all * sizeof(float);
    *recompute = e->memory_limit != 0 && plan->info.bytes > e->memory_limit;
    if (*recompute)
        plan->info.bytes = scratch + (block + inputs) * sizeof(float);
    return mha_plan_check(e, plan->info.bytes, err);
}
