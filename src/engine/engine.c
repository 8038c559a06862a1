/* engine.c: making an engine, checking documents, and running them batch by batch. */
#include "engine/engine.h"
#include "base/fail.h"
#include "base/mem.h"
#include "engine/global.h"
#include "kernel/gemm.h"
#include "mha/input.h"
#include <string.h>

mha_status mha_engine_new(mha_engine **out, const mha_model *model,
                          const mha_engine_options *options, mha_err *err)
{
    static const mha_engine_options defaults;
    const mha_engine_options *o = options != NULL ? options : &defaults;
    void *p;
    *out = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof(mha_engine), err));
    mha_engine *e = p;
    e->model = model;
    e->memory_limit = o->memory;
    mha_gemm_init();
    mha_status st = mha_kernels_get(&e->kernels, o->isa, err);
    if (st == MHA_OK)
        st = mha_pool_new(&e->pool, o->threads, err);
    if (st != MHA_OK) {
        mha_engine_free(e);
        return st;
    }
    *out = e;
    return MHA_OK;
}

void mha_engine_free(mha_engine *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < MHA_SCRATCH_COUNT; i++)
        mha_free(e->scratch[i]);
    for (size_t i = 0; i < e->rotary_count; i++) {
        mha_free(e->rotary[i].cos);
        mha_free(e->rotary[i].sin);
    }
    mha_pool_free(e->pool);
    mha_free(e);
}

size_t mha_engine_threads(const mha_engine *e)
{
    return mha_pool_threads(e->pool);
}

const char *mha_engine_isa(const mha_engine *e)
{
    return e->kernels->isa;
}

mha_status mha_scratch_get(mha_engine *e, mha_scratch which, size_t count, size_t size, void **out,
                           mha_err *err)
{
    size_t bytes;
    if (mha_mul_overflows(count, size, &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "%zu elements of %zu bytes: too large", count, size);
    if (bytes > e->scratch_bytes[which]) {
        mha_free(e->scratch[which]);
        e->scratch[which] = NULL;
        e->scratch_bytes[which] = 0;
        MHA_TRY(mha_alloc_raw(&e->scratch[which], bytes, 1, err));
        e->scratch_bytes[which] = bytes;
    }
    *out = e->scratch[which];
    return MHA_OK;
}

/* ---- checking documents -----------------------------------------------------------------------
 */

static mha_status check_ids(const mha_engine *e, const int32_t *ids, size_t n, const char *what,
                            mha_err *err)
{
    const struct mha_model *m = e->model;
    if (n == 0)
        return mha_fail(err, MHA_ERR_LIMIT, "%s has no tokens", what);
    if (m->max_positions != 0 && n > m->max_positions)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "%s has %zu tokens, the model's position table ends at %u (--max-tokens %u "
                        "truncates)",
                        what, n, m->max_positions, m->max_positions);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->vocab)
            return mha_fail(err, MHA_ERR_LIMIT,
                            "%s: id %d at position %zu is outside the vocabulary of %u", what,
                            ids[i], i, m->vocab);
    return MHA_OK;
}

static mha_status check_source(const mha_engine *e, const mha_document *doc, mha_err *err)
{
    const mha_signal_info *f = &e->model->info.signal;
    if (f->channels == 0 && doc->features != NULL)
        return mha_fail(err, MHA_ERR_ARG, "the model reads token ids, not features");
    if (f->channels == 0)
        return check_ids(e, doc->ids, doc->n, "the text", err);
    if (doc->features == NULL || doc->n != f->rows)
        return mha_fail(err, MHA_ERR_ARG, "the model reads features [%u, %u, %u], not token ids",
                        f->channels, f->height, f->width);
    return MHA_OK;
}

/* A read-out at a certain token needs one. */
static mha_status check_pool(const struct mha_model *m, const mha_document *doc, mha_err *err)
{
    size_t row, rows = mha_side_tokens(m, doc, m->stack_count - 1);
    for (size_t i = 0; i < m->head.count && rows > 0; i++)
        if (m->head.step[i].op == MHA_OP_POOL &&
            !mha_pool_row(&m->head.step[i].pool, doc, rows, &row))
            return mha_fail(err, MHA_ERR_LIMIT,
                            "the text has no token %u, at which the model answers",
                            m->head.step[i].pool.id);
    return MHA_OK;
}

static mha_status check_graph(const struct mha_model *m, const mha_document *doc, mha_err *err)
{
    const mha_graph *g = doc->graph;
    if (g == NULL)
        return mha_fail(err, MHA_ERR_ARG, "the model reads graphs (--graph), not tokens");
    if (g->features != m->features)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "the graph's nodes have %u features, the model takes %u", g->features,
                        m->features);
    if (g->nodes == 0 || doc->n != g->nodes)
        return mha_fail(err, MHA_ERR_LIMIT, "a graph of %u nodes as %zu tokens", g->nodes, doc->n);
    for (size_t i = 0; i < g->edges; i++)
        if (g->source[i] >= g->nodes || g->target[i] >= g->nodes)
            return mha_fail(err, MHA_ERR_LIMIT, "edge %zu from %u to %u: the graph has %u nodes", i,
                            g->source[i], g->target[i], g->nodes);
    return MHA_OK;
}

static mha_status check(const mha_engine *e, const mha_document *doc, bool needs_target,
                        mha_err *err)
{
    const struct mha_model *m = e->model;
    MHA_TRY(mha_globals_check(m, doc, err));
    if (m->features > 0)
        return check_graph(m, doc, err);
    if (doc->graph != NULL)
        return mha_fail(err, MHA_ERR_ARG, "the model reads tokens, not a graph (--graph)");
    MHA_TRY(check_source(e, doc, err));
    if ((m->info.pair_width > 0) != (doc->pair != NULL))
        return mha_fail(err, MHA_ERR_ARG,
                        doc->pair != NULL
                            ? "the model does not read numbers about pairs of tokens"
                            : "the model also reads [n, n, %u] numbers about pairs of "
                              "tokens",
                        m->info.pair_width);
    for (size_t i = 0; doc->types != NULL && i < doc->n; i++)
        if (doc->types[i] != 0 && doc->types[i] >= m->types)
            return mha_fail(err, MHA_ERR_LIMIT,
                            "token type %u at position %zu: the model has %u types", doc->types[i],
                            i, m->types);
    if (needs_target)
        MHA_TRY(check_ids(e, doc->target_ids, doc->target_n, "the target (--target)", err));
    return check_pool(m, doc, err);
}

mha_status mha_engine_check(const mha_engine *e, const mha_document *doc, mha_err *err)
{
    return check(e, doc, e->model->stack_count == 2 && doc->target_n > 0, err);
}

/* ---- running ----------------------------------------------------------------------------------
 */

static mha_status plan(const mha_engine *e, const mha_watch *watch, const mha_document *docs,
                       size_t count, mha_plan *out, mha_err *err)
{
    const struct mha_model *m = e->model;
    mha_plan_make(out, m, watch, false);
    if (out->head && m->head.count == 0)
        return mha_fail(err, MHA_ERR_ARG, "the model has no read-out, so no logits");
    bool needs_target = m->stack_count == 2 && out->stack[1].runs;
    for (size_t d = 0; d < count; d++) {
        mha_err why;
        mha_status st = check(e, &docs[d], needs_target, &why);
        if (st != MHA_OK && count > 1)
            return mha_fail(err, st, "document %zu: %s", d, why.message);
        if (st != MHA_OK)
            return mha_fail(err, st, "%s", why.message);
    }
    return mha_plan_cost(out, e, watch, docs, count, err);
}

mha_status mha_engine_plan(mha_engine *e, const mha_document *docs, size_t count,
                           const mha_probe *const *probes, size_t probe_count, mha_plan_info *out,
                           mha_err *err)
{
    mha_watch watch = {probes, probe_count};
    mha_plan p;
    MHA_TRY(plan(e, &watch, docs, count, &p, err));
    *out = p.info;
    return MHA_OK;
}

size_t mha_engine_gate_heads(const mha_engine *e)
{
    const mha_model_info *info = &e->model->info;
    uint32_t most = 0;
    for (size_t i = 0; i < info->attn_count; i++)
        most = info->attn[i].heads > most ? info->attn[i].heads : most;
    return most;
}

mha_status mha_engine_run(mha_engine *e, const mha_document *docs, size_t count,
                          const mha_probe *const *probes, size_t probe_count, mha_progress progress,
                          void *progress_context, mha_err *err)
{
    mha_watch watch = {probes, probe_count};
    mha_plan p;
    MHA_TRY(plan(e, &watch, docs, count, &p, err));
    MHA_TRY(mha_plan_check(e, p.info.bytes, err));
    double done = 0, total = mha_plan_work(&p, e->model, docs, count);
    for (size_t first = 0, n; first < count; first += n) {
        n = mha_batch_count(docs, count, first, MHA_BATCH_TOKENS);
        if (docs[first].generated > 0) {
            MHA_TRY(mha_decoder_replay(e, &docs[first], first, &watch, err));
            continue;
        }
        mha_forward f = {.e = e,
                         .m = e->model,
                         .k = e->kernels,
                         .watch = &watch,
                         .plan = &p,
                         .docs = docs + first,
                         .doc_count = n,
                         .first_document = first,
                         .gate_stride = mha_engine_gate_heads(e),
                         .progress = progress,
                         .progress_context = progress_context,
                         .done = done,
                         .total = total};
        mha_status st = mha_batch_init(&f, err);
        if (st == MHA_OK)
            st = mha_forward_run(&f, err);
        mha_batch_release(&f);
        if (st != MHA_OK)
            return st;
        done = f.done;
    }
    return mha_checkpoint_check(e->model->checkpoint, err);
}
