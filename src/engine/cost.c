/* cost.c: memory and multiply-adds of a pass, worked out before it: every step asks here for the
 * scratch that its op will ask for, so that a limit on memory holds and refuses nothing that fits.
 * Whoever changes what an op takes changes it here too; tests/oracle/cost.c compares the two. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/edges.h"
#include "engine/global.h"
#include "engine/mask.h"
#include "engine/relative.h"
#include <string.h>

typedef struct cost {
    const struct mha_model *m;
    const mha_watch *watch;
    size_t threads;
    bool widens; /* as of mha_plan */
    uint64_t bytes[MHA_SCRATCH_COUNT];
    double multiply_adds;
    uint32_t *positions; /* room for the global tokens of one document … */
    mha_span *spans;     /* … and for the spans of one block */

    const mha_document *docs; /* the batch */
    size_t count, tokens[2], longest[2], globals;

    size_t at, layer; /* where in the model */
    mha_depth depth;
    size_t rows[MHA_REGISTER_COUNT];
} cost;

static void need(cost *c, mha_scratch which, size_t count, size_t size)
{
    uint64_t bytes = (uint64_t)count * size;
    if (bytes > c->bytes[which])
        c->bytes[which] = bytes;
}

static void need_floats(cost *c, mha_scratch which, size_t count)
{
    need(c, which, count, sizeof(float));
}

static void need_register(cost *c, mha_register r, size_t rows, size_t width)
{
    static const mha_scratch registers[MHA_REGISTER_COUNT] = {MHA_SCRATCH_X, MHA_SCRATCH_B,
                                                              MHA_SCRATCH_C, MHA_SCRATCH_E};
    need_floats(c, registers[r], rows * width);
    c->rows[r] = rows;
}

/* Whoever needs the matrix as floats: it is widened first unless it holds them. */
static void need_wide(cost *c, const mha_weight *w)
{
    if (w->type != MHA_F32 || w->group != w->out || w->mean ||
        (uintptr_t)w->data % sizeof(float) != 0)
        need_floats(c, MHA_SCRATCH_WIDE, (size_t)w->out * w->in);
}

/* Products of `rows` rows with a matrix, no more than `most` at once: few rows are multiplied with
 * the stored form. */
static void multiply_parts(cost *c, const mha_weight *w, size_t rows, size_t most)
{
    if (w->data == NULL)
        return;
    c->multiply_adds += (double)w->out * w->in * (double)rows;
    if (c->widens || most > MHA_DIRECT_ROWS || w->in_out)
        need_wide(c, w);
}

static void multiply(cost *c, const mha_weight *w, size_t rows)
{
    multiply_parts(c, w, rows, rows);
}

/* ---- attention ---------------------------------------------------------------------------------
 */

typedef struct attention {
    const mha_attn_args *a;
    size_t key_side, keys; /* the stack that the keys are of, and its rows */
    uint32_t sites;
    bool globals; /* second projections run */
} attention;

static bool wants(const attention *t, mha_site site)
{
    return t->sites & mha_site_bit(site);
}

/* Second projections; of queries those of global tokens unless a probe asks for all. */
static void globals_cost(cost *c, const attention *t)
{
    const mha_attn_args *a = t->a;
    size_t N = c->tokens[c->at];
    bool all = wants(t, MHA_SITE_Q_GLOBAL);
    need_floats(c, MHA_SCRATCH_K_GLOBAL, N * a->k_global.out);
    multiply(c, &a->k_global, N);
    if (c->depth != MHA_DEPTH_SCORES || wants(t, MHA_SITE_V_GLOBAL)) {
        need_floats(c, MHA_SCRATCH_V_GLOBAL, N * a->v_global.out);
        multiply(c, &a->v_global, N);
    }
    need_floats(c, MHA_SCRATCH_GATHER, c->globals * (all ? a->q_global.out : a->q_global.in));
    need_floats(c, MHA_SCRATCH_Q_GLOBAL, (all ? N : c->globals) * a->q_global.out);
    multiply(c, &a->q_global, all ? N : c->globals);
}

static void relative_cost(cost *c, const mha_attn_args *a)
{
    size_t longest = c->longest[c->at];
    mha_relative_size size = mha_relative_measure(a, longest, longest);
    need(c, MHA_SCRATCH_REL_ROWS, 2 * longest, sizeof(uint32_t));
    need_floats(c, MHA_SCRATCH_REL_TABLE, size.rows * a->rel.in);
    need_floats(c, MHA_SCRATCH_REL_KEYS, 2 * size.rows * a->heads * a->width);
    need_floats(c, MHA_SCRATCH_REL_TILES, c->threads * size.tile);
    multiply(c, &a->rel_k, size.rows);
    multiply(c, &a->rel_q, size.rows);
    for (size_t d = 0; d < c->count; d++) {
        size_t T = mha_side_tokens(c->m, &c->docs[d], c->at);
        c->multiply_adds += mha_relative_cost(a, T, T);
    }
}

/* Scores and weighted values: the mask itself says what blocks of rows take. */
static void blocks_cost(cost *c, const attention *t)
{
    const mha_attn_args *a = t->a;
    bool whole = wants(t, MHA_SITE_SCORES) || wants(t, MHA_SITE_PATTERN);
    size_t floats = 0, spans = 0;
    double pairs = 0;
    for (size_t d = 0; d < c->count; d++) {
        size_t T = mha_side_tokens(c->m, &c->docs[d], c->at);
        mha_sight sight = {.a = a, .keys = mha_side_tokens(c->m, &c->docs[d], t->key_side)};
        if (t->globals) {
            sight.global = c->positions;
            sight.globals = mha_globals_list(c->m->global, &c->docs[d], c->positions);
        }
        mha_extent x = mha_sight_extent(&sight, 0, T, MHA_BLOCK_ROWS, c->spans);
        size_t most = mha_sight_most(&sight);
        size_t block = whole ? (T < MHA_BLOCK_ROWS ? T : MHA_BLOCK_ROWS) * sight.keys : x.floats;
        floats = block > floats ? block : floats;
        spans = most > spans ? most : spans;
        pairs += x.pairs;
    }
    c->multiply_adds += pairs * a->heads * a->width * (c->depth == MHA_DEPTH_SCORES ? 1 : 2);
    c->multiply_adds += pairs * a->heads * a->pair_width;
    need(c, MHA_SCRATCH_SPANS, c->threads, mha_layout_bytes(spans));
    need_floats(c, MHA_SCRATCH_SCORES, c->threads * floats);
    if (a->bias != MHA_BIAS_NONE)
        need_floats(c, MHA_SCRATCH_BIAS,
                    c->threads * (c->longest[c->at] + c->longest[t->key_side]));
    if (wants(t, MHA_SITE_STATS))
        need(c, MHA_SCRATCH_STATS, c->threads * MHA_BLOCK_ROWS, sizeof(mha_row_stats));
    if (a->rel.data != NULL)
        relative_cost(c, a);
}

static void edges_cost(cost *c, const attention *t)
{
    size_t rows = c->tokens[c->at], edges = mha_edges_count(t->a, c->docs, c->count);
    need(c, MHA_SCRATCH_LISTS, c->count + rows + 2, sizeof(size_t));
    need(c, MHA_SCRATCH_EDGES, 4 * edges, sizeof(uint32_t));
    need_floats(c, MHA_SCRATCH_SCORES, 2 * (edges + rows));
    if (wants(t, MHA_SITE_STATS))
        need(c, MHA_SCRATCH_STATS, rows, sizeof(mha_row_stats));
    c->multiply_adds += mha_edges_cost(t->a, c->docs, c->count);
}

static void attn_cost(cost *c, const mha_step *s)
{
    const mha_attn_args *a = &s->attn;
    bool cross = a->keys == MHA_KEYS_MEMORY;
    size_t rows = c->tokens[c->at], GK = (size_t)a->kv_heads * a->width;
    attention t = {.a = a, .key_side = cross ? 0 : c->at};
    t.keys = c->tokens[t.key_side];
    t.sites = mha_watch_sites(c->watch, c->m->stack[c->at].id, cross ? MHA_CROSS : MHA_SELF,
                              (uint32_t)c->layer);
    t.globals = a->q_global.data != NULL && (c->globals > 0 || t.sites & MHA_GLOBAL_SITES);
    if (a->heads > 0) {
        need_floats(c, MHA_SCRATCH_Q, rows * a->heads * a->width);
        need_floats(c, MHA_SCRATCH_K, t.keys * GK);
        need_floats(c, MHA_SCRATCH_V, t.keys * GK);
        multiply(c, &a->q, rows);
        multiply(c, &a->k, t.keys);
        if (c->depth != MHA_DEPTH_SCORES || wants(&t, MHA_SITE_V))
            multiply(c, &a->v, t.keys);
        if (t.globals)
            globals_cost(c, &t);
        if (a->output_gate.data != NULL && c->depth != MHA_DEPTH_SCORES) {
            need_floats(c, MHA_SCRATCH_GATE, rows * a->heads * a->width);
            multiply(c, &a->output_gate, rows);
        }
        if (a->mask == MHA_MASK_EDGES)
            edges_cost(c, &t);
        else
            blocks_cost(c, &t);
    }
    if (c->depth != MHA_DEPTH_FULL && !wants(&t, MHA_SITE_HEAD_OUT))
        return;
    if (a->heads > 0 && wants(&t, MHA_SITE_HEAD_OUT)) {
        need_wide(c, &a->o);
        need_floats(c, MHA_SCRATCH_OUT, c->threads * MHA_BLOCK_ROWS * a->o.out);
    }
    need_register(c, s->dst, rows, a->o.out);
    if (a->heads > 0)
        multiply(c, &a->o, rows);
}

/* ---- other steps -------------------------------------------------------------------------------
 */

static void mlp_cost(cost *c, const mha_step *s)
{
    const mha_mlp_args *a = &s->mlp;
    size_t rows = c->rows[s->src], chunk = mha_mlp_chunk(rows, a->width);
    need_floats(c, MHA_SCRATCH_UP, chunk * a->width);
    if (a->gate.data != NULL)
        need_floats(c, MHA_SCRATCH_GATE, chunk * a->width);
    multiply(c, &a->up, rows);
    multiply(c, &a->gate, rows);
    multiply(c, &a->down, rows);
    need_register(c, s->dst, rows, s->width);
}

static void conv_cost(cost *c, const mha_step *s)
{
    const mha_conv_args *a = &s->conv;
    bool tokens = a->kind == MHA_CONV_TOKENS;
    size_t rows = tokens ? c->tokens[c->at] : c->count * a->rows;
    size_t longest = tokens ? c->longest[c->at] : a->rows - a->skip;
    size_t chunk = mha_conv_chunk(a, longest);
    need_floats(c, MHA_SCRATCH_UP, chunk * a->w.in);
    need_floats(c, MHA_SCRATCH_LINEAR, rows * a->w.out);
    multiply_parts(c, &a->w, rows - c->count * a->skip, chunk);
    need_register(c, s->dst, rows, a->w.out);
}

/* Logits are made document by document, losses of the rows of all documents together. */
static void logits_cost(cost *c, const mha_step *s, size_t rows)
{
    const mha_weight *w = &s->logits.w;
    size_t chunk = mha_logits_chunk(rows, w->out), most = chunk;
    if (mha_watch_wants(c->watch, MHA_SITE_LOGITS, c->m->stack[c->at].id, MHA_SELF, 0,
                        MHA_ANY_HEAD)) {
        bool pooled = rows == c->count && rows != c->tokens[c->at];
        most = pooled ? 1 : c->longest[c->at] < chunk ? c->longest[c->at] : chunk;
    }
    need_floats(c, MHA_SCRATCH_OUT, chunk * w->out);
    multiply_parts(c, w, rows, most);
}

static void step_cost(cost *c, const mha_step *s)
{
    size_t rows = c->rows[s->src];
    switch (s->op) {
    case MHA_OP_EMBED:
        need_register(c, s->dst, c->tokens[c->at], s->embed.width);
        if (s->embed.kind != MHA_EMBED_NODE)
            need_floats(c, MHA_SCRATCH_OUT, c->threads * s->embed.width);
        break;
    case MHA_OP_ATTN:
        attn_cost(c, s);
        break;
    case MHA_OP_MLP:
        mlp_cost(c, s);
        break;
    case MHA_OP_CONV:
        conv_cost(c, s);
        break;
    case MHA_OP_LINEAR:
        need_floats(c, MHA_SCRATCH_LINEAR, rows * s->linear.w.out);
        multiply(c, &s->linear.w, rows);
        need_register(c, s->dst, rows, s->linear.w.out);
        break;
    case MHA_OP_LOGITS:
        logits_cost(c, s, rows);
        break;
    case MHA_OP_POOL:
        need_register(c, s->dst, c->count, s->width);
        break;
    default:
        need_register(c, s->dst, rows, s->width);
        break;
    }
}

static void steps_cost(cost *c, const mha_steps *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        step_cost(c, &steps->step[i]);
}

/* ---- a pass ------------------------------------------------------------------------------------
 */

static void stack_cost(cost *c, const mha_stack_plan *p)
{
    const mha_stack *st = &c->m->stack[c->at];
    c->depth = MHA_DEPTH_FULL;
    c->layer = 0;
    steps_cost(c, &st->prologue, st->prologue.count);
    for (uint32_t l = 0; l < p->layers; l++) {
        bool last = l + 1 == p->layers;
        size_t count = last ? p->last_steps : st->block[l].count;
        c->layer = l;
        if (last && count > 0) {
            steps_cost(c, &st->block[l], count - 1);
            c->depth = p->last_depth;
            step_cost(c, &st->block[l].step[count - 1]);
        } else
            steps_cost(c, &st->block[l], count);
    }
    c->depth = MHA_DEPTH_FULL;
    if (p->epilogue)
        steps_cost(c, &st->epilogue, st->epilogue.count);
}

/* The encoder's output and the memory change places. */
static void exchange(cost *c)
{
    uint64_t bytes = c->bytes[MHA_SCRATCH_E];
    c->bytes[MHA_SCRATCH_E] = c->bytes[MHA_SCRATCH_X];
    c->bytes[MHA_SCRATCH_X] = bytes;
}

static void batch_cost(cost *c, const mha_plan *plan)
{
    for (c->at = 0; c->at < c->m->stack_count; c->at++) {
        if (!plan->stack[c->at].runs)
            continue;
        stack_cost(c, &plan->stack[c->at]);
        if (c->at == 0 && c->m->stack_count == 2)
            exchange(c);
    }
    c->at = c->m->stack_count - 1;
    if (plan->head)
        steps_cost(c, &c->m->head, c->m->head.count);
}

static void batch_measure(cost *c, const mha_document *docs, size_t count)
{
    c->docs = docs;
    c->count = count;
    c->globals = 0;
    for (size_t at = 0; at < c->m->stack_count; at++) {
        c->tokens[at] = c->longest[at] = 0;
        for (size_t d = 0; d < count; d++) {
            size_t t = mha_side_tokens(c->m, &docs[d], at);
            c->tokens[at] += t;
            c->longest[at] = t > c->longest[at] ? t : c->longest[at];
        }
    }
    for (size_t d = 0; c->m->global != NULL && d < count; d++)
        c->globals += mha_globals_list(c->m->global, &docs[d], c->positions);
}

/* Room for the longest document's lists. */
static mha_status cost_init(cost *c, const mha_document *docs, size_t count, mha_err *err)
{
    size_t longest = 0;
    void *p;
    for (size_t d = 0; c->m->global != NULL && d < count; d++)
        longest = docs[d].n > longest ? docs[d].n : longest;
    MHA_TRY(mha_alloc(&p, longest, sizeof *c->positions, err));
    c->positions = p;
    mha_status st = mha_alloc(&p, longest + 3, sizeof *c->spans, err);
    if (st != MHA_OK) {
        mha_free(c->positions);
        return st;
    }
    c->spans = p;
    return MHA_OK;
}

mha_status mha_plan_cost(mha_plan *plan, const mha_engine *e, const mha_watch *watch,
                         const mha_document *docs, size_t count, mha_err *err)
{
    cost c = {.m = e->model,
              .watch = watch,
              .threads = mha_pool_threads(e->pool),
              .widens = plan->widens};
    MHA_TRY(cost_init(&c, docs, count, err));
    plan->info.batches = 0;
    for (size_t first = 0, n; first < count; first += n) {
        n = mha_batch_count(docs, count, first, MHA_BATCH_TOKENS);
        batch_measure(&c, docs + first, n);
        batch_cost(&c, plan);
        plan->info.batches++;
    }
    mha_free(c.positions);
    mha_free(c.spans);
    plan->info.bytes = 0;
    for (size_t i = 0; i < MHA_SCRATCH_COUNT; i++)
        plan->info.bytes += c.bytes[i];
    plan->info.multiply_adds = (uint64_t)c.multiply_adds;
    for (size_t at = 0; at < c.m->stack_count; at++)
        plan->info.layers[c.m->stack[at].id] = plan->stack[at].layers;
    return MHA_OK;
}
