/* attention_edges.c: additive attention over the edges j → i of graphs, head by head:
 *
 *   s_ij = a·f(q_i + k_j)  or  f(a_q·q_i + a_k·k_j),  f(t) = t for t > 0, slope·t otherwise
 *   p_ij = exp(s_ij)/Σ_j' exp(s_ij')                  over the edges that end in i
 *   z_i  = Σ_j p_ij v_j                               0 for a node in which no edge ends
 *
 * An edge that is there twice counts twice. Weights lie by target, so that a node's edges are one
 * run of memory; probes get them in the order of mha_graph_edges. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/edges.h"
#include "mha/input.h"
#include "probe/row.h"
#include <math.h>
#include <string.h>

/* ---- the edges of a batch ---------------------------------------------------------------------
 */

static mha_status count_edges(size_t *documents, size_t *all, const mha_forward *f, bool loops,
                              mha_err *err)
{
    *all = 0;
    for (size_t d = 0; d < f->doc_count; d++) {
        documents[d] = *all;
        *all += mha_graph_edges(f->docs[d].graph, loops, NULL, NULL);
        if (*all >= UINT32_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "the graphs of one batch have %zu edges", *all);
    }
    documents[f->doc_count] = *all;
    return MHA_OK;
}

/* A stable sort by target: first [rows + 1] ends as offsets. */
static void sort_edges(const mha_forward *f, const mha_rows *rows, const size_t *documents,
                       const uint32_t *source, const uint32_t *target, size_t *first,
                       uint32_t *from, uint32_t *place)
{
    memset(first, 0, (rows->total + 1) * sizeof *first);
    for (size_t d = 0; d < f->doc_count; d++)
        for (size_t e = documents[d]; e < documents[d + 1]; e++)
            first[rows->offset[d] + target[e] + 1]++;
    for (size_t r = 0; r < rows->total; r++)
        first[r + 1] += first[r];
    for (size_t d = 0; d < f->doc_count; d++)
        for (size_t e = documents[d]; e < documents[d + 1]; e++) {
            size_t at = first[rows->offset[d] + target[e]]++;
            from[at] = (uint32_t)(rows->offset[d] + source[e]);
            place[at] = (uint32_t)e;
        }
    /* every offset has moved to the next one's place */
    memmove(first + 1, first, rows->total * sizeof *first);
    first[0] = 0;
}

mha_status mha_edges_make(mha_edges *out, mha_forward *f, const mha_rows *rows, bool self_loops,
                          mha_err *err)
{
    size_t head = f->doc_count + 1 + rows->total + 1, all;
    void *p;
    if (rows->total >= UINT32_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "the graphs of one batch have %zu nodes", rows->total);
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_LISTS, head, sizeof(size_t), &p, err));
    size_t *documents = p, *first = documents + f->doc_count + 1;
    MHA_TRY(count_edges(documents, &all, f, self_loops, err));
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_EDGES, 4 * all, sizeof(uint32_t), &p, err));
    uint32_t *from = p, *place = from + all, *target = place + all, *source = target + all;
    for (size_t d = 0; d < f->doc_count; d++)
        mha_graph_edges(f->docs[d].graph, self_loops, source + documents[d], target + documents[d]);
    sort_edges(f, rows, documents, source, target, first, from, place);
    *out = (mha_edges){.count = all,
                       .first = first,
                       .from = from,
                       .place = place,
                       .target = target,
                       .documents = documents};
    return MHA_OK;
}

size_t mha_edges_count(const mha_attn_args *a, const mha_document *docs, size_t count)
{
    size_t edges = 0;
    for (size_t d = 0; d < count; d++)
        edges += mha_graph_edges(docs[d].graph, a->self_loops, NULL, NULL);
    return edges;
}

double mha_edges_cost(const mha_attn_args *a, const mha_document *docs, size_t count)
{
    double edges = (double)mha_edges_count(a, docs, count), nodes = 0;
    for (size_t d = 0; d < count; d++)
        nodes += (double)docs[d].n;
    double scores = a->a != NULL ? edges : 2 * nodes;
    return (scores + edges) * a->heads * a->width;
}

/* ---- one head ---------------------------------------------------------------------------------
 */

typedef struct edge_job {
    mha_attention *t;
    mha_edges e;
    uint32_t head;
    float *s, *out;           /* [E] by target; by place */
    float *of_query, *of_key; /* [N] a_q·q and a_k·k of this head */
    mha_row_stats *stats;     /* [N] or NULL */
} edge_job;

static bool wants(const mha_attention *t, mha_site site, uint32_t head)
{
    return (t->sites & mha_site_bit(site)) &&
           mha_watch_wants(t->f->watch, site, t->stack, t->kind, t->layer, head);
}

/* Packed row r of q, k, v or z, at this head. */
static size_t at(const edge_job *j, size_t r)
{
    return (r * j->t->a->heads + j->head) * j->t->a->width;
}

static mha_status node_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const edge_job *j = context;
    const mha_attn_args *a = j->t->a;
    const mha_kernels *k = j->t->f->k;
    size_t K = a->width;
    for (size_t r = rows.first; r < rows.first + rows.count; r++) {
        j->of_query[r] = k->dot[MHA_F32](a->a_q + j->head * K, j->t->q + at(j, r), K);
        j->of_key[r] = k->dot[MHA_F32](a->a_k + j->head * K, j->t->k + at(j, r), K);
    }
    return MHA_OK;
}

static float bent(float t, float slope)
{
    return t > 0 ? t : slope * t;
}

/* a·f(q + k) */
static float inner_score(const float *a, const float *q, const float *k, size_t n, float slope)
{
    float sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += a[c] * bent(q[c] + k[c], slope);
    return sum;
}

static mha_status score_rows(void *context, mha_row_range rows, mha_err *err)
{
    (void)err;
    const edge_job *j = context;
    const mha_attn_args *a = j->t->a;
    size_t K = a->width;
    for (size_t i = rows.first; i < rows.first + rows.count; i++)
        for (size_t e = j->e.first[i]; e < j->e.first[i + 1]; e++) {
            size_t from = j->e.from[e];
            j->s[e] = a->a == NULL ? bent(j->of_query[i] + j->of_key[from], a->slope)
                                   : inner_score(a->a + j->head * K, j->t->q + at(j, i),
                                                 j->t->k + at(j, from), K, a->slope);
        }
    return MHA_OK;
}

static mha_status bad_scores(const edge_job *j, size_t i, mha_err *err)
{
    const mha_attention *t = j->t;
    size_t d = mha_rows_document(t->queries, t->f->doc_count, i);
    char place[64];
    mha_forward_place(t->f, place, sizeof place);
    return mha_fail(err, MHA_ERR_NUMERIC,
                    "%s, scores of head %u: NaN or infinity at node %zu of document %zu", place,
                    j->head, i - t->queries->offset[d], t->f->first_document + d);
}

/* z ← gate·z + (1 − gate)·fill */
static void gate_row(const edge_job *j, size_t d, size_t i, float *z)
{
    const mha_attention *t = j->t;
    const mha_forward *f = t->f;
    const mha_document *doc = &f->docs[d];
    size_t K = t->a->width, HK = (size_t)t->a->heads * K;
    float gate = doc->gates != NULL ? doc->gates[f->attn * f->gate_stride + j->head] : 1;
    if (gate == 1)
        return;
    f->k->scale(z, K, gate);
    const float *fill = doc->fill != NULL ? doc->fill->z[f->attn] : NULL;
    if (fill == NULL)
        return;
    size_t row = doc->fill->rows == 1 ? 0 : i - t->queries->offset[d];
    f->k->axpy(z, 1 - gate, fill + row * HK + (size_t)j->head * K, K);
}

/* Scores become weights; and these, where they are wanted, the row's z over its q, which no score
 * reads any more. */
static mha_status weigh_row(const edge_job *j, size_t d, size_t i, mha_err *err)
{
    const mha_attention *t = j->t;
    const mha_kernels *k = t->f->k;
    size_t K = t->a->width, n = j->e.first[i + 1] - j->e.first[i];
    float *s = j->s + j->e.first[i], *z = t->q + at(j, i);
    mha_run run = {.s = s, .n = n};
    mha_row row = {.runs = &run, .run_count = n > 0, .query = MHA_NO_DIAGONAL};
    float inverse = mha_row_weigh(k, &row, j->stats != NULL ? &j->stats[i] : NULL);
    if (!isfinite(inverse))
        return bad_scores(j, i, err);
    if (t->lse != NULL)
        t->lse[j->head * t->queries->total + i] = n > 0 ? row.max - logf(inverse) : 0;
    k->scale(s, n, inverse);
    if (t->depth == MHA_DEPTH_SCORES)
        return MHA_OK;
    memset(z, 0, K * sizeof *z);
    for (size_t e = 0; e < n; e++)
        k->axpy(z, s[e], t->v + at(j, j->e.from[j->e.first[i] + e]), K);
    if (t->z != NULL)
        memcpy(t->z + at(j, i), z, K * sizeof *z);
    gate_row(j, d, i, z);
    return MHA_OK;
}

static mha_status weigh_rows(void *context, mha_row_range rows, mha_err *err)
{
    const edge_job *j = context;
    const mha_rows *side = j->t->queries;
    size_t d = mha_rows_document(side, j->t->f->doc_count, rows.first);
    for (size_t i = rows.first; i < rows.first + rows.count; i++) {
        while (i >= side->offset[d + 1])
            d++;
        MHA_TRY(weigh_row(j, d, i, err));
    }
    return MHA_OK;
}

/* ---- delivery ---------------------------------------------------------------------------------
 */

static mha_block block_of(const edge_job *j, mha_site site, size_t d)
{
    const mha_attention *t = j->t;
    size_t n = t->queries->offset[d + 1] - t->queries->offset[d];
    return (mha_block){.site = site,
                       .stack = t->stack,
                       .kind = t->kind,
                       .layer = t->layer,
                       .head = j->head,
                       .document = t->f->first_document + d,
                       .rows = n,
                       .total_rows = n};
}

/* What s holds, as one row for each document. */
static mha_status deliver_edges(const edge_job *j, mha_site site, mha_err *err)
{
    const mha_forward *f = j->t->f;
    if (!wants(j->t, site, j->head))
        return MHA_OK;
    for (size_t e = 0; e < j->e.count; e++)
        j->out[j->e.place[e]] = j->s[e];
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t first = j->e.documents[d];
        mha_block b = block_of(j, site, d);
        b.rows = b.total_rows = 1;
        b.cols = b.stride = j->e.documents[d + 1] - first;
        b.data = j->out + first;
        b.target = j->e.target + first;
        MHA_TRY(mha_watch_deliver(f->watch, &b, 0, err));
    }
    return MHA_OK;
}

static mha_status deliver_nodes(const edge_job *j, mha_site site, mha_err *err)
{
    const mha_attention *t = j->t;
    if (!wants(t, site, j->head))
        return MHA_OK;
    for (size_t d = 0; d < t->f->doc_count; d++) {
        mha_block b = block_of(j, site, d);
        if (site == MHA_SITE_STATS)
            b.stats = j->stats + t->queries->offset[d];
        else {
            b.cols = t->a->width;
            b.stride = (size_t)t->a->heads * b.cols;
            b.data = t->q + at(j, t->queries->offset[d]);
        }
        MHA_TRY(mha_watch_deliver(t->f->watch, &b, 0, err));
    }
    return MHA_OK;
}

static mha_status head_run(edge_job *j, mha_err *err)
{
    mha_forward *f = j->t->f;
    size_t rows = j->t->queries->total;
    if (j->t->a->a == NULL)
        MHA_TRY(mha_rows_run(f, rows, node_rows, j, err));
    MHA_TRY(mha_rows_run(f, rows, score_rows, j, err));
    MHA_TRY(deliver_edges(j, MHA_SITE_SCORES, err));
    MHA_TRY(mha_rows_run(f, rows, weigh_rows, j, err));
    MHA_TRY(deliver_nodes(j, MHA_SITE_STATS, err));
    MHA_TRY(deliver_edges(j, MHA_SITE_PATTERN, err));
    return deliver_nodes(j, MHA_SITE_Z, err);
}

mha_status mha_edges_run(mha_attention *t, mha_err *err)
{
    mha_forward *f = t->f;
    size_t rows = t->queries->total;
    edge_job j = {.t = t};
    void *p;
    MHA_TRY(mha_edges_make(&j.e, f, t->queries, t->a->self_loops, err));
    MHA_TRY(
        mha_scratch_get(f->e, MHA_SCRATCH_SCORES, 2 * (j.e.count + rows), sizeof(float), &p, err));
    j.s = p;
    j.out = j.s + j.e.count;
    j.of_query = j.out + j.e.count;
    j.of_key = j.of_query + rows;
    if (t->sites & mha_site_bit(MHA_SITE_STATS)) {
        MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_STATS, rows, sizeof(mha_row_stats), &p, err));
        j.stats = p;
    }
    f->e->multiply_adds += mha_edges_cost(t->a, f->docs, f->doc_count);
    for (j.head = 0; j.head < t->a->heads; j.head++)
        MHA_TRY(head_run(&j, err));
    return MHA_OK;
}
