/* plan.c: what a run has to compute, and what that takes, worked out before anything runs. */
#include "base/fail.h"
#include "engine/edges.h"
#include "engine/relative.h"
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
        if (n > 0 && tokens + most > limit)
            break;
        tokens += most;
        n++;
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

/* ---- what it takes ----------------------------------------------------------------------------
 */

typedef struct cost {
    size_t floats[MHA_SCRATCH_COUNT];
    double multiply_adds;
} cost;

static void need(cost *c, mha_scratch which, size_t floats)
{
    if (floats > c->floats[which])
        c->floats[which] = floats;
}

static void need_wide(cost *c, const mha_weight *w)
{
    if (w->data != NULL && (w->type != MHA_F32 || w->group != w->out))
        need(c, MHA_SCRATCH_WIDE, (size_t)w->out * w->in);
}

static double matrix(const mha_weight *w, size_t rows)
{
    return w->data != NULL ? (double)w->out * w->in * (double)rows : 0;
}

/* Scores and weighted values over all visible pairs of one document. */
static double pair_cost(const mha_attn_args *a, size_t T, size_t S)
{
    double pairs = (double)T * (double)S;
    bool causal = a->mask == MHA_MASK_CAUSAL || a->mask == MHA_MASK_CAUSAL_WINDOW;
    if (causal)
        pairs /= 2;
    if (a->window > 0 && a->window < S)
        pairs = (double)T * a->window;
    return 2 * pairs * a->width * a->heads;
}

typedef struct batch_size {
    const mha_document *docs;
    size_t count, rows[2], longest[2], threads;
} batch_size;

static void relative_cost(cost *c, const struct mha_model *m, const mha_attn_args *a, size_t at,
                          const batch_size *b)
{
    mha_relative_size size = mha_relative_measure(a, b->longest[at], b->longest[at]);
    c->multiply_adds += matrix(&a->rel_k, size.rows) + matrix(&a->rel_q, size.rows);
    for (size_t d = 0; d < b->count; d++) {
        size_t T = mha_side_tokens(m, &b->docs[d], at);
        c->multiply_adds += mha_relative_cost(a, T, T);
    }
    need(c, MHA_SCRATCH_REL_ROWS, 2 * b->longest[at]);
    need(c, MHA_SCRATCH_REL_TABLE, size.rows * a->rel.in);
    need(c, MHA_SCRATCH_REL_KEYS, 2 * size.rows * a->heads * a->width);
    need(c, MHA_SCRATCH_REL_TILES, b->threads * size.tile);
    need_wide(c, &a->rel_k);
    need_wide(c, &a->rel_q);
}

static void attn_cost(cost *c, const struct mha_model *m, const mha_step *s, size_t at,
                      const batch_size *b)
{
    const mha_attn_args *a = &s->attn;
    size_t key_side = a->keys == MHA_KEYS_MEMORY ? 0 : at;
    size_t rows = b->rows[at], keys = b->rows[key_side], GK = (size_t)a->kv_heads * a->width;
    c->multiply_adds +=
        matrix(&a->q, rows) + matrix(&a->k, keys) + matrix(&a->v, keys) + matrix(&a->o, rows);
    bool edges = a->mask == MHA_MASK_EDGES;
    for (size_t d = 0; !edges && d < b->count; d++)
        c->multiply_adds += pair_cost(a, mha_side_tokens(m, &b->docs[d], at),
                                      mha_side_tokens(m, &b->docs[d], key_side));
    if (a->q_global.data != NULL) {
        c->multiply_adds += matrix(&a->k_global, keys) + matrix(&a->v_global, keys);
        need(c, MHA_SCRATCH_K_GLOBAL, keys * GK);
        need(c, MHA_SCRATCH_V_GLOBAL, keys * GK);
    }
    if (edges)
        c->multiply_adds += mha_edges_cost(a, b->docs, b->count);
    need(c, MHA_SCRATCH_Q, rows * a->heads * a->width);
    need(c, MHA_SCRATCH_K, keys * GK);
    need(c, MHA_SCRATCH_V, keys * GK);
    need(c, MHA_SCRATCH_SCORES,
         edges ? mha_edges_floats(a, b->docs, b->count, rows)
               : b->threads * MHA_BLOCK_ROWS * b->longest[key_side]);
    if (a->bias != MHA_BIAS_NONE)
        need(c, MHA_SCRATCH_BIAS, b->threads * (b->longest[at] + b->longest[key_side]));
    if (a->rel.data != NULL)
        relative_cost(c, m, a, at, b);
    need_wide(c, &a->q);
    need_wide(c, &a->k);
    need_wide(c, &a->v);
    need_wide(c, &a->o);
}

static void mlp_cost(cost *c, const mha_mlp_args *a, size_t rows)
{
    size_t chunk = rows < MHA_MLP_ROWS ? rows : MHA_MLP_ROWS;
    c->multiply_adds += matrix(&a->up, rows) + matrix(&a->gate, rows) + matrix(&a->down, rows);
    need(c, MHA_SCRATCH_UP, chunk * a->width);
    if (a->gate.data != NULL)
        need(c, MHA_SCRATCH_GATE, chunk * a->width);
    need_wide(c, &a->up);
    need_wide(c, &a->gate);
    need_wide(c, &a->down);
}

static void step_cost(cost *c, const struct mha_model *m, const mha_step *s, size_t at,
                      const batch_size *b)
{
    static const mha_scratch registers[MHA_REGISTER_COUNT] = {MHA_SCRATCH_X, MHA_SCRATCH_B,
                                                              MHA_SCRATCH_C, MHA_SCRATCH_E};
    size_t rows = b->rows[at];
    need(c, registers[s->dst], rows * s->width);
    switch (s->op) {
    case MHA_OP_ATTN:
        attn_cost(c, m, s, at, b);
        break;
    case MHA_OP_MLP:
        mlp_cost(c, &s->mlp, rows);
        break;
    case MHA_OP_CONV:
        if (s->conv.kind != MHA_CONV_TOKENS)
            rows = b->count * s->conv.rows;
        need(c, registers[s->dst], rows * s->conv.w.out);
        need(c, MHA_SCRATCH_LINEAR, rows * s->conv.w.out);
        c->multiply_adds += matrix(&s->conv.w, rows);
        need_wide(c, &s->conv.w);
        break;
    case MHA_OP_LINEAR:
        c->multiply_adds += matrix(&s->linear.w, rows);
        need(c, MHA_SCRATCH_LINEAR, rows * s->linear.w.out);
        need_wide(c, &s->linear.w);
        break;
    case MHA_OP_LOGITS:
        c->multiply_adds += matrix(&s->logits.w, rows);
        need(c, MHA_SCRATCH_OUT, mha_logits_chunk(rows, s->logits.w.out) * s->logits.w.out);
        need_wide(c, &s->logits.w);
        break;
    default:
        break;
    }
}

static void steps_cost(cost *c, const struct mha_model *m, const mha_steps *steps, size_t count,
                       size_t at, const batch_size *b)
{
    for (size_t i = 0; i < count; i++)
        step_cost(c, m, &steps->step[i], at, b);
}

static void batch_cost(cost *c, const mha_plan *plan, const struct mha_model *m,
                       const batch_size *b)
{
    for (size_t at = 0; at < m->stack_count; at++) {
        const mha_stack *st = &m->stack[at];
        const mha_stack_plan *p = &plan->stack[at];
        if (!p->runs)
            continue;
        steps_cost(c, m, &st->prologue, st->prologue.count, at, b);
        for (uint32_t l = 0; l < p->layers; l++)
            steps_cost(c, m, &st->block[l], l + 1 == p->layers ? p->last_steps : st->block[l].count,
                       at, b);
        if (p->epilogue)
            steps_cost(c, m, &st->epilogue, st->epilogue.count, at, b);
    }
    if (m->stack_count == 2)
        need(c, MHA_SCRATCH_E, b->rows[0] * m->stack[0].stream[m->stack[0].layers + 1]);
    if (plan->head)
        steps_cost(c, m, &m->head, m->head.count, m->stack_count - 1, b);
}

void mha_plan_cost(mha_plan *plan, const mha_engine *e, const mha_document *docs, size_t count)
{
    const struct mha_model *m = e->model;
    cost c;
    memset(&c, 0, sizeof c);
    plan->info.batches = 0;
    for (size_t first = 0, n; first < count; first += n) {
        n = mha_batch_count(docs, count, first, MHA_BATCH_TOKENS);
        batch_size b = {.docs = docs + first, .count = n, .threads = mha_pool_threads(e->pool)};
        for (size_t at = 0; at < m->stack_count; at++)
            for (size_t d = 0; d < n; d++) {
                size_t t = mha_side_tokens(m, &docs[first + d], at);
                b.rows[at] += t;
                b.longest[at] = t > b.longest[at] ? t : b.longest[at];
            }
        batch_cost(&c, plan, m, &b);
        plan->info.batches++;
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < MHA_SCRATCH_COUNT; i++)
        bytes += (uint64_t)c.floats[i] * sizeof(float);
    plan->info.bytes = bytes;
    plan->info.multiply_adds = (uint64_t)c.multiply_adds;
    for (size_t at = 0; at < m->stack_count; at++)
        plan->info.layers[m->stack[at].id] = plan->stack[at].layers;
}

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
               (a->q_global.data != NULL ? 2 * rows * a->width * a->heads : 0);
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

mha_status mha_plan_gradient(mha_plan *plan, const mha_engine *e, const mha_document *docs,
                             size_t count, size_t tokens, mha_keeping keeping, bool *recompute,
                             mha_err *err)
{
    const struct mha_model *m = e->model;
    uint64_t all = 0, block = 0, inputs = 0;
    bool gradient = keeping != MHA_KEEP_NOTHING;
    mha_plan_cost(plan, e, docs, count);
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
