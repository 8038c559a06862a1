/* mask.h: which keys does query i see: the one answer that every kind of mask gives, as spans of
 * keys, and how a block of rows lays out the scores of the keys that any of its rows sees. Dense
 * attention is one span; the cost of a block follows the spans. */
#ifndef MHA_ENGINE_MASK_H
#define MHA_ENGINE_MASK_H

#include "model/program.h"
#include "probe/row.h"

/* Keys lo … hi − 1, each of which the pattern lists `times` times: its weight counts that often,
 * so that ln(times) is added to its score. */
typedef struct mha_span {
    size_t lo, hi;
    uint32_t times;
    size_t at; /* column of key lo in the score rows of a block */
} mha_span;

/* One step's mask on one document. Queries are counted among the keys (row + past). */
typedef struct mha_sight {
    const mha_attn_args *a;
    size_t keys;            /* S */
    const uint32_t *global; /* ascending positions of tokens that see all and are seen by all */
    size_t globals;
} mha_sight;

/* No more spans than this has any row, or any block of rows. */
size_t mha_sight_most(const mha_sight *s);
bool mha_sight_is_global(const mha_sight *s, size_t i);
/* How many of `rows` rows from i on may share a block: those whose pattern is of the same kind. */
size_t mha_sight_rows(const mha_sight *s, size_t i, size_t rows);
/* The keys that any of the rows first … last sees, which share a block: ascending and disjoint.
 * Returns their number. */
size_t mha_sight_spans(const mha_sight *s, size_t first, size_t last, mha_span *out);

/* What T rows take: pairs of queries and keys that are multiplied, and floats of the largest
 * block of scores. `room` holds mha_sight_most spans. */
typedef struct mha_extent {
    double pairs;
    size_t floats;
} mha_extent;
mha_extent mha_sight_extent(const mha_sight *s, size_t past, size_t T, size_t block,
                            mha_span *room);

/* The score rows of one block. */
typedef struct mha_layout {
    mha_sight sight;
    mha_span *spans; /* of all rows of the block */
    size_t count, width;
    mha_span *row_spans;
    mha_run *runs; /* of the row that mha_layout_row was called for */
    size_t run_count;
} mha_layout;

/* Bytes for the lists of a layout whose rows have at most `most` spans. */
size_t mha_layout_bytes(size_t most);
void mha_layout_init(mha_layout *l, void *room, size_t most);
/* Lays out rows first … first + rows − 1. `whole`: key j is column j of a row of S, else the spans
 * stand side by side. */
void mha_layout_block(mha_layout *l, size_t first, size_t rows, bool whole);
/* Finds what row i sees in its score row `s`: l->runs. */
void mha_layout_row(mha_layout *l, size_t i, float *s);
/* Everything in that row between the runs becomes `value`: −∞ for scores, 0 for weights. */
void mha_layout_fill(const mha_layout *l, float *s, float value);

#endif
