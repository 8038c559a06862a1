/* trace_list.c: which arrays a trace keeps of each document, with their names and shapes (those of
 * the files that `maps` writes). Values of whole-number arrays are filled in here, those that come
 * from the run are not. */
#include "base/fail.h"
#include "base/mem.h"
#include "mha/input.h"
#include "probe/trace.h"
#include "probe/watch.h"
#include <stdio.h>
#include <string.h>

/* Per-head sites by step; then embed and hidden by stack, logits, and resid by stack and layer. */
size_t mha_trace_place(const mha_trace *t, mha_site site, mha_stack_id stack, mha_kind kind,
                       uint32_t layer)
{
    size_t A = t->info->attn_count, base = MHA_TRACE_HEAD_SITES * A;
    switch (site) {
    case MHA_SITE_EMBED:
        return base + stack;
    case MHA_SITE_HIDDEN:
        return base + MHA_STACK_COUNT + stack;
    case MHA_SITE_LOGITS:
        return base + 2 * MHA_STACK_COUNT;
    case MHA_SITE_RESID:
        return base + 2 * MHA_STACK_COUNT + 1 + stack * t->max_layers + layer;
    default:
        return (size_t)(site - MHA_SITE_PATTERN) * A +
               mha_chosen_step(&t->chosen, stack, kind, layer);
    }
}

static bool keeps(const mha_trace *t, mha_site site)
{
    return t->options.sites & (1u << site);
}

static mha_trace_array *add(mha_trace_document *d, size_t dims, size_t a, size_t b, size_t c)
{
    mha_trace_array *array = &d->arrays[d->count++];
    *array = (mha_trace_array){.dims = dims, .shape = {a, b, c}};
    return array;
}

static mha_trace_array *add_at(mha_trace_document *d, size_t place, size_t dims, size_t a, size_t b,
                               size_t c)
{
    mha_trace_array *array = add(d, dims, a, b, c);
    d->at[place] = (uint32_t)d->count;
    return array;
}

/* Whole numbers are few: they are made at once. */
static mha_status add_ints(mha_trace *t, mha_trace_document *d, int64_t **values, size_t n,
                           mha_err *err)
{
    mha_trace_array *array = add(d, 1, n, 0, 0);
    array->type = MHA_ARRAY_I64;
    MHA_TRY(mha_arena_alloc((void **)values, &t->memory, n, sizeof **values, err));
    array->data = *values;
    return MHA_OK;
}

/* Edges of a step, whose patterns are [H, E]. */
static size_t edges_of(const mha_attn_info *step, const mha_document *doc)
{
    return mha_graph_edges(doc->graph, step->self_loops, NULL, NULL);
}

static void add_head_site(const mha_trace *t, mha_trace_document *d, mha_site site, size_t H,
                          size_t document, const mha_attn_info *step)
{
    size_t place = mha_trace_place(t, site, step->stack, step->kind, step->layer);
    const mha_document *doc = &t->docs[document];
    size_t T = mha_step_queries(t->info, step, doc), S = mha_step_keys(t->info, step, doc);
    if (step->edges && (site == MHA_SITE_PATTERN || site == MHA_SITE_SCORES)) {
        add_at(d, place, 2, H, edges_of(step, doc), 0);
        return;
    }
    switch (site) {
    case MHA_SITE_PATTERN:
        if (t->reads) {
            T = mha_reader_queries(&t->reader, step, document)->count;
            S = mha_reader_keys(&t->reader, step, document)->count;
        }
        add_at(d, place, 3, H, T, S);
        return;
    case MHA_SITE_SCORES:
        add_at(d, place, 3, H, T, S);
        return;
    case MHA_SITE_K:
    case MHA_SITE_V:
        add_at(d, place, 3, step->kv_heads, S, step->width);
        return;
    case MHA_SITE_HEAD_OUT:
        add_at(d, place, 3, H, T, step->out);
        return;
    default: /* q, z */
        add_at(d, place, 3, H, T, step->width);
    }
}

static void name_last(mha_trace_document *d, const mha_attn_info *step, const char *site)
{
    mha_trace_array *array = &d->arrays[d->count - 1];
    snprintf(array->name, sizeof array->name, "%s.%s.%u.%s", mha_stack_name(step->stack),
             mha_kind_name(step->kind), step->layer, site);
}

static mha_status add_heads(mha_trace *t, mha_trace_document *d, size_t a, mha_err *err)
{
    int64_t *numbers;
    MHA_TRY(add_ints(t, d, &numbers, t->chosen.count[a], err));
    for (uint32_t h = 0; h < t->info->attn[a].heads; h++) {
        uint32_t slot = t->chosen.slot[a * t->chosen.stride + h];
        if (slot != MHA_NOT_CHOSEN)
            numbers[slot] = t->info->attn[a].head_ids[h];
    }
    name_last(d, &t->info->attn[a], "heads");
    return MHA_OK;
}

/* [2, E]: sources, then targets. */
static mha_status add_edges(mha_trace *t, mha_trace_document *d, const mha_document *doc,
                            const mha_attn_info *step, mha_err *err)
{
    size_t n = edges_of(step, doc);
    int64_t *values;
    uint32_t *ends;
    MHA_TRY(add_ints(t, d, &values, 2 * n, err));
    d->arrays[d->count - 1].dims = 2;
    d->arrays[d->count - 1].shape[0] = 2;
    d->arrays[d->count - 1].shape[1] = n;
    name_last(d, step, "edge_index");
    MHA_TRY(mha_alloc((void **)&ends, 2 * n, sizeof *ends, err));
    mha_graph_edges(doc->graph, step->self_loops, ends, ends + n);
    for (size_t i = 0; i < 2 * n; i++)
        values[i] = ends[i];
    mha_free(ends);
    return MHA_OK;
}

static mha_status add_step(mha_trace *t, mha_trace_document *d, size_t document, size_t a,
                           mha_err *err)
{
    const mha_attn_info *step = &t->info->attn[a];
    size_t H = t->chosen.count[a], before = d->count;
    if (H == 0)
        return MHA_OK;
    if (step->edges && (keeps(t, MHA_SITE_PATTERN) || keeps(t, MHA_SITE_SCORES)))
        MHA_TRY(add_edges(t, d, &t->docs[document], step, err));
    for (mha_site site = MHA_SITE_PATTERN; site <= MHA_SITE_HEAD_OUT; site++) {
        if (!keeps(t, site) || (mha_site_bit(site) & MHA_GLOBAL_SITES && !step->globals))
            continue;
        add_head_site(t, d, site, H, document, step);
        name_last(d, step, mha_site_name(site));
    }
    return d->count > before ? add_heads(t, d, a, err) : MHA_OK;
}

static void add_layer_site(const mha_trace *t, mha_trace_document *d, mha_site site,
                           mha_stack_id stack, uint32_t layer, size_t T)
{
    size_t place = mha_trace_place(t, site, stack, MHA_SELF, layer);
    size_t at = site == MHA_SITE_EMBED   ? 0
                : site == MHA_SITE_RESID ? layer + 1
                                         : t->info->layers[stack] + 1;
    mha_trace_array *array = add_at(d, place, 2, T, t->info->stream[stack][at], 0);
    if (site == MHA_SITE_RESID)
        snprintf(array->name, sizeof array->name, "%s.%u.resid", mha_stack_name(stack), layer);
    else
        snprintf(array->name, sizeof array->name, "%s.%s", mha_stack_name(stack),
                 mha_site_name(site));
}

static mha_status add_stack(mha_trace *t, mha_trace_document *d, size_t document,
                            mha_stack_id stack, mha_err *err)
{
    const mha_document *doc = &t->docs[document];
    size_t T = mha_stack_reads_target(t->info, stack) ? doc->target_n : doc->n;
    bool chosen = mha_chosen_has_stack(&t->chosen, stack);
    if (T == 0)
        return MHA_OK;
    if (chosen && keeps(t, MHA_SITE_EMBED))
        add_layer_site(t, d, MHA_SITE_EMBED, stack, 0, T);
    for (uint32_t l = 0; l < t->info->layers[stack]; l++) {
        for (size_t a = 0; a < t->info->attn_count; a++)
            if (t->info->attn[a].stack == stack && t->info->attn[a].layer == l)
                MHA_TRY(add_step(t, d, document, a, err));
        if (keeps(t, MHA_SITE_RESID) && mha_chosen_has_layer(&t->chosen, stack, l))
            add_layer_site(t, d, MHA_SITE_RESID, stack, l, T);
    }
    if (chosen && keeps(t, MHA_SITE_HIDDEN))
        add_layer_site(t, d, MHA_SITE_HIDDEN, stack, 0, T);
    return MHA_OK;
}

static mha_status add_ids(mha_trace *t, mha_trace_document *d, const char *name, const int32_t *ids,
                          size_t n, mha_err *err)
{
    int64_t *values;
    MHA_TRY(add_ints(t, d, &values, n, err));
    for (size_t i = 0; i < n; i++)
        values[i] = ids != NULL ? ids[i] : (int64_t)i; /* nodes of a graph have their numbers */
    mha_trace_array *array = &d->arrays[d->count - 1];
    snprintf(array->name, sizeof array->name, "%s", name);
    return MHA_OK;
}

static void add_logits(const mha_trace *t, mha_trace_document *d, const mha_document *doc)
{
    const mha_model_info *info = t->info;
    mha_stack_id last = MHA_STACK_COUNT;
    while (info->layers[--last] == 0)
        ;
    size_t T = mha_stack_reads_target(info, last) ? doc->target_n : doc->n;
    size_t place = mha_trace_place(t, MHA_SITE_LOGITS, last, MHA_SELF, 0);
    size_t width = info->classes > 0 ? info->classes : info->vocab;
    if (T == 0)
        return;
    bool one = info->head == MHA_HEAD_CLASS || info->head == MHA_HEAD_EMBEDDING;
    mha_trace_array *array =
        one ? add_at(d, place, 1, width, 0, 0) : add_at(d, place, 2, T, width, 0);
    snprintf(array->name, sizeof array->name, "logits");
}

static mha_status list_document(mha_trace *t, size_t index, mha_err *err)
{
    const mha_model_info *info = t->info;
    const mha_document *doc = &t->docs[index];
    mha_trace_document *d = &t->documents[index];
    /* ids, target_ids, logits; embed and hidden; edges, sites and heads of a step; resid */
    size_t most = 3 + 2 * (size_t)MHA_STACK_COUNT + info->attn_count * (MHA_TRACE_HEAD_SITES + 2) +
                  MHA_STACK_COUNT * t->max_layers;
    MHA_TRY(mha_alloc((void **)&d->arrays, most, sizeof *d->arrays, err));
    MHA_TRY(mha_alloc((void **)&d->at, t->places, sizeof *d->at, err));
    if (doc->ids != NULL)
        MHA_TRY(add_ids(t, d, "ids", doc->ids, doc->n, err));
    if (doc->target_n > 0)
        MHA_TRY(add_ids(t, d, "target_ids", doc->target_ids, doc->target_n, err));
    for (mha_stack_id stack = 0; stack < MHA_STACK_COUNT; stack++)
        MHA_TRY(add_stack(t, d, index, stack, err));
    if (keeps(t, MHA_SITE_LOGITS))
        add_logits(t, d, doc);
    return MHA_OK;
}

mha_status mha_trace_list(mha_trace *t, mha_err *err)
{
    for (size_t i = 0; i < t->count; i++)
        MHA_TRY(list_document(t, i, err));
    return MHA_OK;
}
