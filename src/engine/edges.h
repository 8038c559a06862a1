/* edges.h: attention over the edges of graphs: the edges of a batch by the node that they end in,
 * and the core between projected q, k, v and the heads' outputs z, which takes O(E) time and memory
 * where the row-block core would take O(N²). */
#ifndef MHA_ENGINE_EDGES_H
#define MHA_ENGINE_EDGES_H

#include "engine/attention.h"

/* All edges of a batch. Rows are those of the packed matrix. An edge's place is its position in the
 * list that mha_graph_edges gives of its document, these lists one after the other. */
typedef struct mha_edges {
    size_t count;         /* E */
    const size_t *first;  /* [rows + 1] edges that end in each row, by rising place */
    const uint32_t *from; /* [E] row that the edge comes from */
    const uint32_t *place;
    const uint32_t *target;  /* [E] by place: the node of its document that it ends in */
    const size_t *documents; /* [docs + 1] places of each document */
} mha_edges;

/* Lives until the next call of this, or of any other attention. MHA_ERR_LIMIT: 2^32 edges. */
mha_status mha_edges_make(mha_edges *out, mha_forward *f, const mha_rows *rows, bool self_loops,
                          mha_err *err);

/* Edges of one step over these documents, and its multiply-adds. */
size_t mha_edges_count(const mha_attn_args *a, const mha_document *docs, size_t count);
double mha_edges_cost(const mha_attn_args *a, const mha_document *docs, size_t count);

/* mha_attention_run and mha_attention_back_run for MHA_MASK_EDGES. PATTERN and SCORES come as one
 * row of edges for each document and head. */
mha_status mha_edges_run(mha_attention *t, mha_err *err);
mha_status mha_edges_back_run(mha_attention_back *t, mha_err *err);

#endif
