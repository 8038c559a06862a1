/* collect.h: a probe that keeps the gradients of all sites of a pass as arrays, and checks on the
 * way that blocks come as promised. */
#ifndef MHA_TEST_COLLECT_H
#define MHA_TEST_COLLECT_H

#include "mha/run.h"

/* One site of one layer and document: [heads, rows, cols]. */
typedef struct collected {
    mha_site site;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer;
    size_t document, heads, rows, cols;
    float *value, *weights; /* weights: what came beside them, or NULL */
    size_t *next;           /* [heads] rows that came; the next block must start there */
} collected;

typedef struct collection {
    collected *array;
    size_t count, documents;
    uint32_t sites; /* of the probe */
    bool broken;    /* a block came out of order or did not fit */
} collection;

/* Room for the sites of these documents. */
void collection_make(collection *c, const mha_model *m, const mha_document *docs, size_t count,
                     uint32_t sites);
void collection_free(collection *c);
mha_probe collection_probe(collection *c);
/* NULL when there is none. */
const collected *collection_find(const collection *c, mha_site site, mha_stack_id stack,
                                 mha_kind kind, uint32_t layer, size_t document);

#endif
