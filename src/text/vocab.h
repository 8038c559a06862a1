/* vocab.h: the pieces of a model, by id and by their bytes. */
#ifndef MHA_TEXT_VOCAB_H
#define MHA_TEXT_VOCAB_H

#include "base/map.h"
#include "base/mem.h"
#include "mha/err.h"
#include <stddef.h>
#include <stdint.h>

/* Ids from 0 to this less one: a table of all ids is held in memory. */
#define MHA_VOCAB_IDS_MAX ((int64_t)1 << 22)

typedef struct mha_vocab_piece {
    const char *s; /* NUL-terminated; NULL for an id without a piece */
    uint32_t n;
} mha_vocab_piece;

typedef struct mha_vocab {
    mha_map ids; /* of the pieces' bytes */
    mha_vocab_piece *pieces;
    size_t n, capacity; /* n: the largest id + 1 */
    size_t count;       /* different pieces */
} mha_vocab;

void mha_vocab_init(mha_vocab *v);
void mha_vocab_release(mha_vocab *v);

/* Adds a piece, copying it into the arena. MHA_ERR_FORMAT for an id that is negative or taken,
 * MHA_ERR_LIMIT for one that is too large. A piece that is there already gets the new id. */
mha_status mha_vocab_add(mha_vocab *v, mha_arena *arena, const char *piece, size_t n, int64_t id,
                         mha_err *err);
/* -1 when absent. */
int32_t mha_vocab_id(const mha_vocab *v, const char *piece, size_t n);
/* The id of "<0xE2>", the piece of a single byte; -1 when absent. */
int32_t mha_vocab_byte_piece(const mha_vocab *v, uint8_t byte);
/* The byte that a piece is of, -1 for other pieces. */
int mha_byte_of_piece(const char *s, size_t n);
/* NULL when the id has no piece. */
const mha_vocab_piece *mha_vocab_piece_get(const mha_vocab *v, int64_t id);

#endif
