/* relative.h: the relative terms of the scores: queries against positions, and positions against
 * keys. The table's rows that the batch can need are projected once a step; the terms are made for
 * tiles of queries and keys, whose distances share a few rows, so nothing T×S or S×rows exists. */
#ifndef MHA_ENGINE_RELATIVE_H
#define MHA_ENGINE_RELATIVE_H

#include "engine/engine.h"

struct mha_weights;

typedef struct mha_relative {
    mha_forward *f;
    const mha_attn_args *a; /* NULL: the step has no such terms */
    uint32_t *row; /* row of the table for distance i − j at `zero` + i − j, less `first` */
    size_t zero;
    size_t first, rows; /* the rows of the table that any distance has */
    size_t most;        /* rows that one tile needs at most */
    float *table;       /* [rows, D] normed */
    float *k, *q;       /* [rows, H·K] what they are projected to, or NULL */
    float *dk, *dq;     /* gradients of those, or NULL: not wanted */
    float *tiles;       /* [threads] */
} mha_relative;

/* A block of score rows of one head and one run of keys. */
typedef struct mha_relative_block {
    uint32_t head;
    size_t query, rows, key, keys; /* positions of the first ones, and how many */
    const float *q, *k;            /* of these, stride H·K */
    float *s;                      /* [rows, keys], or the gradient of that */
    size_t stride;
} mha_relative_block;

/* The row of distance d = i − j. */
uint32_t mha_relative_row(const mha_attn_args *a, int64_t d);

/* Ready for documents of up to T queries and S keys. */
mha_status mha_relative_make(mha_relative *r, mha_forward *f, const mha_attn_args *a, size_t T,
                             size_t S, mha_err *err);
/* s += scale·(q_i·rk_δ + rq_δ·k_j) */
void mha_relative_add(const mha_relative *r, const mha_relative_block *b, size_t worker);

/* Makes room for the gradients of the projected rows when `weights` wants something of the table or
 * its projections. Blocks of one head then come one after the other. */
mha_status mha_relative_back_begin(mha_relative *r, const struct mha_weights *weights,
                                   mha_err *err);
/* Zeros [rows, K] in the worker's own memory, for dq below. */
float *mha_relative_queries(const mha_relative *r, size_t rows, size_t worker);
/* From dS in b->s: adds to dk (at key b->key, stride H·K) and to dq [rows, K]. */
void mha_relative_back(const mha_relative *r, const mha_relative_block *b, float *dk, float *dq,
                       size_t worker);
/* Gradients of the projections, of the norm and of the table. */
mha_status mha_relative_back_end(const mha_relative *r, const struct mha_weights *weights,
                                 mha_err *err);

/* What a step takes for documents of up to T queries and S keys. */
typedef struct mha_relative_size {
    size_t first, rows, most, tile; /* tile: floats of one thread */
} mha_relative_size;
mha_relative_size mha_relative_measure(const mha_attn_args *a, size_t T, size_t S);
/* Multiply-adds of the terms of one document. */
double mha_relative_cost(const mha_attn_args *a, size_t T, size_t S);

#endif
