/* collect.c: see collect.h. Arrays are made before the run, so that heads may come from different
 * threads at once. */
#include "support/collect.h"
#include "mha/input.h"
#include "support/test.h"
#include <stdlib.h>
#include <string.h>

static void push(collection *c, collected a)
{
    if (!(c->sites & 1u << a.site))
        return;
    c->array = realloc(c->array, (c->count + 1) * sizeof *c->array);
    assert_non_null(c->array);
    a.value = calloc(a.heads * a.rows * a.cols, sizeof *a.value);
    if (a.site == MHA_SITE_D_PATTERN || a.site == MHA_SITE_D_SCORES)
        a.weights = calloc(a.heads * a.rows * a.cols, sizeof *a.weights);
    a.next = calloc(a.heads, sizeof *a.next);
    c->array[c->count++] = a;
}

static void push_attention(collection *c, const mha_attn_info *at, const mha_document *doc,
                           size_t document, size_t T, size_t S)
{
    collected a = {.stack = at->stack, .kind = at->kind, .layer = at->layer, .document = document};
    size_t rows = at->edges ? 1 : T;
    size_t cols = at->edges ? mha_graph_edges(doc->graph, at->self_loops, NULL, NULL) : S;
    const struct {
        mha_site site;
        size_t heads, rows, cols;
    } sites[] = {
        {MHA_SITE_PATTERN, at->heads, rows, cols},  {MHA_SITE_D_PATTERN, at->heads, rows, cols},
        {MHA_SITE_D_SCORES, at->heads, rows, cols}, {MHA_SITE_D_Q, at->heads, T, at->width},
        {MHA_SITE_D_K, at->kv_heads, S, at->width}, {MHA_SITE_D_V, at->kv_heads, S, at->width},
        {MHA_SITE_D_Z, at->heads, T, at->width},    {MHA_SITE_D_ATTN_OUT, 1, T, at->out}};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        a.site = sites[i].site;
        a.heads = sites[i].heads;
        a.rows = sites[i].rows;
        a.cols = sites[i].cols;
        push(c, a);
    }
}

static void push_document(collection *c, const mha_model_info *info, const mha_document *doc,
                          size_t d)
{
    for (size_t i = 0; i < info->attn_count; i++) {
        const mha_attn_info *at = &info->attn[i];
        size_t own = at->stack == MHA_DEC && info->head == MHA_HEAD_TARGET ? doc->target_n : doc->n;
        push_attention(c, at, doc, d, own, at->kind == MHA_CROSS ? doc->n : own);
    }
    for (mha_stack_id s = 0; s < MHA_STACK_COUNT; s++) {
        bool target = s == MHA_DEC && info->head == MHA_HEAD_TARGET;
        collected a = {.stack = s, .document = d, .heads = 1};
        a.rows = target ? doc->target_n : doc->n;
        if (info->layers[s] == 0)
            continue;
        a.cols = info->stream[s][0];
        a.site = MHA_SITE_D_EMBED;
        push(c, a);
        a.cols = info->stream[s][info->layers[s] + 1];
        a.site = MHA_SITE_D_HIDDEN;
        push(c, a);
        a.site = MHA_SITE_D_RESID;
        for (a.layer = 0; a.layer < info->layers[s]; a.layer++) {
            a.cols = info->stream[s][a.layer + 1];
            push(c, a);
        }
    }
}

void collection_make(collection *c, const mha_model *m, const mha_document *docs, size_t count,
                     uint32_t sites)
{
    memset(c, 0, sizeof *c);
    c->sites = sites;
    c->documents = count;
    for (size_t d = 0; d < count; d++)
        push_document(c, mha_model_info_get(m), &docs[d], d);
}

void collection_free(collection *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->array[i].value);
        free(c->array[i].weights);
        free(c->array[i].next);
    }
    free(c->array);
}

const collected *collection_find(const collection *c, mha_site site, mha_stack_id stack,
                                 mha_kind kind, uint32_t layer, size_t document)
{
    for (size_t i = 0; i < c->count; i++) {
        const collected *a = &c->array[i];
        if (a->site == site && a->stack == stack && a->kind == kind && a->layer == layer &&
            a->document == document)
            return a;
    }
    return NULL;
}

static int deliver(void *context, const mha_block *b, size_t worker)
{
    (void)worker;
    collection *c = context;
    const collected *a = collection_find(c, b->site, b->stack, b->kind, b->layer, b->document);
    if (a == NULL || b->head >= a->heads || b->total_rows != a->rows || b->cols != a->cols ||
        a->next[b->head] != b->first || b->first + b->rows > a->rows ||
        (a->weights != NULL) != (b->weights != NULL)) {
        c->broken = true;
        return 1;
    }
    for (size_t r = 0; r < b->rows; r++) {
        size_t at = (b->head * a->rows + b->first + r) * a->cols;
        memcpy(a->value + at, b->data + r * b->stride, a->cols * sizeof *a->value);
        if (a->weights != NULL)
            memcpy(a->weights + at, b->weights + r * b->stride, a->cols * sizeof *a->value);
    }
    a->next[b->head] += b->rows;
    return 0;
}

mha_probe collection_probe(collection *c)
{
    return (mha_probe){.sites = c->sites, .deliver = deliver, .context = c};
}
