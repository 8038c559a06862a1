/* merging.h: joining neighbours of a row of symbols, the best pair first: what all kinds of BPE
 * have in common. */
#ifndef MHA_TEXT_MERGING_H
#define MHA_TEXT_MERGING_H

#include "text/model.h"

typedef struct mha_symbol {
    int32_t id;              /* -1: no piece (yet) */
    uint32_t previous, next; /* UINT32_MAX at the ends */
    uint32_t at, n;          /* bytes of the word; n = 0 once joined to its left neighbour */
} mha_symbol;

typedef struct mha_merging {
    mha_symbol *symbols;
    struct mha_candidate *heap;
    size_t n, waiting;
    uint32_t end; /* bytes that the symbols cover */
} mha_merging;

/* Whether two neighbours can be joined, to which piece, and how early: the smallest rank is joined
 * first, the leftmost of equal ones. */
typedef bool (*mha_merging_find)(const void *state, const mha_merging *w, const mha_symbol *left,
                                 const mha_symbol *right, uint32_t *rank, int32_t *id);

/* Room for at most `most` symbols, in the memory of x. */
mha_status mha_merging_init(mha_merging *w, mha_model_scratch *x, size_t most, mha_err *err);
/* Adds a symbol of the next n bytes. */
void mha_merging_add(mha_merging *w, int32_t id, size_t n);
void mha_merging_run(mha_merging *w, mha_merging_find find, const void *state);
/* Appends what is left as tokens. */
mha_status mha_merging_emit(const mha_merging *w, mha_model_scratch *x, mha_err *err);

#endif
