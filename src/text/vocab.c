/* vocab.c: the two tables behind mha_vocab. It may not know where pieces come from. */
#include "text/vocab.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

void mha_vocab_init(mha_vocab *v)
{
    *v = (mha_vocab){0};
    mha_map_init(&v->ids);
}

void mha_vocab_release(mha_vocab *v)
{
    mha_map_release(&v->ids);
    mha_free(v->pieces);
    *v = (mha_vocab){0};
}

static mha_status reserve(mha_vocab *v, size_t n, mha_err *err)
{
    if (n <= v->capacity)
        return MHA_OK;
    size_t capacity = v->capacity * 2 > n ? v->capacity * 2 : n;
    if (capacity < 1024)
        capacity = 1024;
    void *pieces = v->pieces;
    MHA_TRY(mha_grow(&pieces, v->n, capacity, sizeof *v->pieces, err));
    v->pieces = pieces;
    v->capacity = capacity;
    return MHA_OK;
}

/* The start of a piece for messages: it need not end in a NUL. */
#define SHOWN(n) ((int)((n) < 40 ? (n) : 40))

mha_status mha_vocab_add(mha_vocab *v, mha_arena *arena, const char *piece, size_t n, int64_t id,
                         mha_err *err)
{
    char *copy;
    bool replaced;
    if (id < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "piece \"%.*s\" has the id %lld", SHOWN(n), piece,
                        (long long)id);
    if (id >= MHA_VOCAB_IDS_MAX || n > UINT32_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "piece \"%.*s\" has the id %lld, ids end at %lld",
                        SHOWN(n), piece, (long long)id, (long long)MHA_VOCAB_IDS_MAX - 1);
    MHA_TRY(reserve(v, (size_t)id + 1, err));
    mha_vocab_piece *slot = &v->pieces[id];
    if (slot->s)
        return mha_fail(err, MHA_ERR_FORMAT, "pieces \"%.40s\" and \"%.*s\" both have the id %lld",
                        slot->s, SHOWN(n), piece, (long long)id);
    MHA_TRY(mha_arena_strndup(&copy, arena, piece, n, err));
    MHA_TRY(mha_map_set(&v->ids, copy, n, (uint64_t)id, &replaced, err));
    *slot = (mha_vocab_piece){copy, (uint32_t)n};
    v->count += !replaced;
    if ((size_t)id >= v->n)
        v->n = (size_t)id + 1;
    return MHA_OK;
}

int32_t mha_vocab_id(const mha_vocab *v, const char *piece, size_t n)
{
    uint64_t id;
    return mha_map_get(&v->ids, piece, n, &id) ? (int32_t)id : -1;
}

int32_t mha_vocab_byte_piece(const mha_vocab *v, uint8_t byte)
{
    char piece[8];
    return mha_vocab_id(v, piece, (size_t)snprintf(piece, sizeof piece, "<0x%02X>", byte));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int mha_byte_of_piece(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return -1;
    int high = hex_digit(s[3]), low = hex_digit(s[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

const mha_vocab_piece *mha_vocab_piece_get(const mha_vocab *v, int64_t id)
{
    if (id < 0 || (uint64_t)id >= v->n || !v->pieces[id].s)
        return NULL;
    return &v->pieces[id];
}
