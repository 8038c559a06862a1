/* pieces.h: a text on its way from the normalizers to the model, split into pieces. */
#ifndef MHA_TEXT_PIECES_H
#define MHA_TEXT_PIECES_H

#include "mha/err.h"
#include "text/aligned.h"
#include "text/cuts.h"
#include "text/regex.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mha_piece {
    uint32_t start, end; /* bytes of the text below */
    int32_t added;       /* index of the added token that this is, -1 for text */
} mha_piece;

typedef struct mha_pieces {
    mha_piece *v;
    size_t n, capacity;
} mha_pieces;

void mha_pieces_release(mha_pieces *p);
/* Empty pieces are not added. */
mha_status mha_pieces_add(mha_pieces *p, size_t start, size_t end, int32_t added, mha_err *err);

typedef struct mha_split {
    const char *data;     /* [n] */
    const mha_span *from; /* [n], NULL when the text is the original one */
    size_t n;
    mha_pieces pieces, next; /* `next` is where a stage puts its pieces before the two swap */
    mha_aligned text, spare; /* what `data` and `from` point into once the text was rewritten */
    mha_regex_scratch *regex;
    mha_cuts *cuts;
} mha_split;

/* Ends a stage: the pieces in `next` become the pieces. */
void mha_split_swap(mha_split *s);
/* Ends a rewriting stage: the text in `spare` becomes the text. */
void mha_split_swap_text(mha_split *s);

/* The range in the original text of bytes [start, end) of the text, end > start. Whole characters:
 * a part of one has its whole range. */
mha_span mha_split_range(const mha_split *s, size_t start, size_t end);

#endif
