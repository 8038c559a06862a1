/* bpe.c: byte-pair encoding. A word starts as its characters (or bytes); the pair of neighbours
 * that comes first in the list of merges is joined, leftmost first, until no pair is in the list.
 * The joining itself is merging.c's. */
#include "text/model.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/merging.h"
#include "text/unicode.h"

#include <string.h>

typedef struct merge_slot {
    uint64_t pair; /* left id << 32 | right id; EMPTY_PAIR for a free slot */
    uint32_t rank;
    int32_t id; /* of the joined piece */
} merge_slot;

#define EMPTY_PAIR UINT64_MAX

typedef struct bpe {
    const mha_vocab *vocab;
    merge_slot *merges; /* open addressing, a power of two slots */
    size_t mask;
    uint64_t seed;
    const char *prefix, *suffix;
    size_t prefix_n, suffix_n;
    bool has_unknown, fuse_unknown, ignore_merges, bytes, byte_fallback;
    int32_t unknown;       /* -1: named, but not in the vocabulary */
    int32_t byte_ids[256]; /* of the byte alphabet, or with byte_fallback of "<0x41>"; -1: the
                              vocabulary does not have it */
    mha_map whole;         /* with bytes and ignore_merges: the ids of pieces by their bytes */
} bpe;

/* --- merges ---------------------------------------------------------------------------------- */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* SplitMix64's finaliser under the map's secret seed: pairs cannot be chosen to collide. */
static size_t slot_of(const bpe *b, uint64_t pair)
{
    uint64_t x = pair ^ b->seed;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (size_t)(x ^ x >> 31) & b->mask;
}

static const merge_slot *find_merge(const bpe *b, int32_t left, int32_t right)
{
    uint64_t pair = pair_of(left, right);
    for (size_t i = slot_of(b, pair);; i = (i + 1) & b->mask) {
        if (b->merges[i].pair == pair)
            return &b->merges[i];
        if (b->merges[i].pair == EMPTY_PAIR)
            return NULL;
    }
}

/* A pair that is listed twice has its last rank. */
static void set_merge(bpe *b, uint64_t pair, uint32_t rank, int32_t id)
{
    size_t i = slot_of(b, pair);
    while (b->merges[i].pair != EMPTY_PAIR && b->merges[i].pair != pair)
        i = (i + 1) & b->mask;
    b->merges[i] = (merge_slot){pair, rank, id};
}

static mha_status unknown_piece(size_t rank, const char *piece, size_t n, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "merges[%zu]: \"%.*s\" is not in the vocabulary", rank,
                    (int)(n < 40 ? n : 40), piece);
}

static mha_status add_merge(bpe *b, mha_buf *joined, const mha_bpe_merge *m, size_t rank,
                            mha_err *err)
{
    int32_t left = mha_vocab_id(b->vocab, m->left, m->left_n);
    int32_t right = mha_vocab_id(b->vocab, m->right, m->right_n);
    if (left < 0)
        return unknown_piece(rank, m->left, m->left_n, err);
    if (right < 0)
        return unknown_piece(rank, m->right, m->right_n, err);
    if (m->left_n == 0 || m->right_n <= b->prefix_n)
        return mha_fail(err, MHA_ERR_FORMAT, "merges[%zu]: an empty piece", rank);
    mha_buf_clear(joined);
    MHA_TRY(mha_buf_add(joined, m->left, m->left_n, err));
    MHA_TRY(mha_buf_add(joined, m->right + b->prefix_n, m->right_n - b->prefix_n, err));
    int32_t id = mha_vocab_id(b->vocab, joined->data, joined->size);
    if (id < 0)
        return unknown_piece(rank, joined->data, joined->size, err);
    set_merge(b, pair_of(left, right), (uint32_t)rank, id);
    return MHA_OK;
}

static mha_status build_merges(bpe *b, const mha_bpe_options *o, mha_err *err)
{
    size_t slots = 16;
    void *p;
    if (o->merge_count > UINT32_MAX / 4)
        return mha_fail(err, MHA_ERR_LIMIT, "%zu merges", o->merge_count);
    while (slots < o->merge_count * 2)
        slots *= 2;
    MHA_TRY(mha_alloc_raw(&p, slots, sizeof *b->merges, err));
    b->merges = p;
    b->mask = slots - 1;
    b->seed = b->vocab->ids.seed;
    for (size_t i = 0; i < slots; i++)
        b->merges[i].pair = EMPTY_PAIR;

    mha_buf joined;
    mha_buf_init(&joined, SIZE_MAX / 2);
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < o->merge_count; i++)
        status = add_merge(b, &joined, &o->merges[i], i, err);
    mha_buf_release(&joined);
    return status;
}

/* The pair of two neighbours in the list of merges. */
static bool find_pair(const void *state, const mha_merging *w, const mha_symbol *left,
                      const mha_symbol *right, uint32_t *rank, int32_t *id)
{
    (void)w;
    const merge_slot *m = find_merge(state, left->id, right->id);
    if (!m)
        return false;
    *rank = m->rank;
    *id = m->id;
    return true;
}

/* --- words ----------------------------------------------------------------------------------- */

/* The piece of one character, with what its place in the word adds to it. */
static mha_status character_id(const bpe *b, const char *c, size_t n, bool first, bool last,
                               int32_t *id, mha_err *err)
{
    bool prefix = !first && b->prefix_n > 0, suffix = last && b->suffix_n > 0;
    *id = -1;
    if (!prefix && !suffix) {
        *id = mha_vocab_id(b->vocab, c, n);
        return MHA_OK;
    }
    mha_buf piece;
    mha_buf_init(&piece, SIZE_MAX / 2);
    mha_status status = mha_buf_add(&piece, b->prefix, prefix ? b->prefix_n : 0, err);
    if (status == MHA_OK)
        status = mha_buf_add(&piece, c, n, err);
    if (status == MHA_OK)
        status = mha_buf_add(&piece, b->suffix, suffix ? b->suffix_n : 0, err);
    if (status == MHA_OK)
        *id = mha_vocab_id(b->vocab, piece.data, piece.size);
    mha_buf_release(&piece);
    return status;
}

/* The pieces of a character's bytes, when the vocabulary has them all. They do not end a run of
 * unknown characters: that one comes behind them, as in the reference implementation. */
static bool add_fallback(const bpe *b, mha_merging *w, const char *c, size_t n)
{
    if (!b->byte_fallback)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (b->byte_ids[(uint8_t)c[i]] < 0)
            return false;
    }
    for (size_t i = 0; i < n; i++)
        mha_merging_add(w, b->byte_ids[(uint8_t)c[i]], 1);
    return true;
}

static mha_status split_characters(const bpe *b, mha_merging *w, const char *word, size_t n,
                                   mha_err *err)
{
    size_t unknown = 0; /* bytes of unknown characters that are not yet a symbol */
    for (size_t i = 0; i < n;) {
        uint32_t c;
        int32_t id;
        size_t len = mha_char_next(word + i, &c);
        MHA_TRY(character_id(b, word + i, len, i == 0, i + len == n, &id, err));
        i += len;
        if (id < 0 && add_fallback(b, w, word + i - len, len))
            continue;
        if (id < 0 && !b->has_unknown)
            continue;
        if (id < 0 && b->unknown < 0)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "a character is not in the vocabulary, and neither is unk_token");
        if (unknown > 0 && (id >= 0 || !b->fuse_unknown)) {
            mha_merging_add(w, b->unknown, unknown);
            unknown = 0;
        }
        if (id >= 0)
            mha_merging_add(w, id, len);
        else
            unknown += len;
    }
    if (unknown > 0)
        mha_merging_add(w, b->unknown, unknown);
    return MHA_OK;
}

static void split_bytes(const bpe *b, mha_merging *w, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = b->byte_ids[(uint8_t)word[i]];
        if (id >= 0)
            mha_merging_add(w, id, 1);
    }
}

/* Moves *byte to the byte whose character in the byte alphabet covers position `at` of the mapped
 * word; *end is where that character ends. */
static void walk_to(const char *word, size_t n, size_t at, size_t *byte, size_t *end)
{
    while (*end <= at && *byte + 1 < n) {
        ++*byte;
        *end += mha_byte_to_char((uint8_t)word[*byte]) < 0x80 ? 1 : 2;
    }
}

/* Tokens behind an unknown byte that was dropped: the reference implementation counts the bytes of
 * the pieces, as the byte alphabet writes them, from the start of the word. */
static void shift_tokens(const bpe *b, mha_model_scratch *x, size_t first, const char *word,
                         size_t n)
{
    size_t mapped = 0, byte = 0;
    size_t end = mha_byte_to_char((uint8_t)word[0]) < 0x80 ? 1 : 2;
    for (size_t i = first; i < x->n; i++) {
        walk_to(word, n, mapped, &byte, &end);
        x->tokens[i].start = (uint32_t)byte;
        mapped += b->vocab->pieces[x->tokens[i].id].n;
        walk_to(word, n, mapped - 1, &byte, &end);
        x->tokens[i].end = (uint32_t)byte + 1;
    }
}

/* The id of the word when it is a piece itself, -1 otherwise. */
static int32_t whole_id(const bpe *b, const char *word, size_t n)
{
    uint64_t id;
    if (!b->bytes)
        return mha_vocab_id(b->vocab, word, n);
    return mha_map_get(&b->whole, word, n, &id) ? (int32_t)id : -1;
}

static mha_status tokenize(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err)
{
    const bpe *b = state;
    size_t first = x->n;
    if (b->ignore_merges) {
        int32_t id = whole_id(b, word, n);
        if (id >= 0)
            return mha_model_scratch_add(x, id, 0, n, err);
    }
    mha_merging w;
    MHA_TRY(mha_merging_init(&w, x, n, err));
    if (b->bytes)
        split_bytes(b, &w, word, n);
    else
        MHA_TRY(split_characters(b, &w, word, n, err));
    bool dropped = b->bytes && w.n < n;
    mha_merging_run(&w, find_pair, b);
    MHA_TRY(mha_merging_emit(&w, x, err));
    if (dropped)
        shift_tokens(b, x, first, word, n);
    return MHA_OK;
}

/* --- making the model ------------------------------------------------------------------------ */

static void bpe_free(void *state)
{
    bpe *b = state;
    mha_map_release(&b->whole);
    mha_free(b->merges);
    mha_free(b);
}

static const struct mha_model_kind bpe_kind = {"BPE", tokenize, bpe_free};
static const struct mha_model_kind byte_bpe_kind = {"byte-level BPE", tokenize, bpe_free};
static const struct mha_model_kind bytes_kind = {"bytes", tokenize, bpe_free};
static const struct mha_model_kind sentencepiece_bpe_kind = {"SentencePiece BPE", tokenize,
                                                             bpe_free};

static int32_t byte_id(const mha_vocab *vocab, uint8_t byte)
{
    char c[4];
    return mha_vocab_id(vocab, c, mha_utf8_encode(mha_byte_to_char(byte), c));
}

bool mha_bpe_merge_split(mha_bpe_merge *out, const char *s, size_t n)
{
    const char *space = memchr(s, ' ', n);
    if (!space || memchr(space + 1, ' ', n - (size_t)(space + 1 - s)))
        return false;
    *out = (mha_bpe_merge){s, space + 1, (size_t)(space - s), n - (size_t)(space + 1 - s)};
    return true;
}

size_t mha_bpe_known_bytes(const mha_vocab *vocab)
{
    size_t known = 0;
    for (unsigned byte = 0; byte < 256; byte++)
        known += byte_id(vocab, (uint8_t)byte) >= 0;
    return known;
}

/* Pieces with characters outside of the byte alphabet never match bytes. */
static mha_status build_whole(bpe *b, mha_arena *arena, mha_err *err)
{
    for (size_t id = 0; id < b->vocab->n; id++) {
        const mha_vocab_piece *piece = &b->vocab->pieces[id];
        void *bytes;
        if (!piece->s || mha_vocab_id(b->vocab, piece->s, piece->n) != (int32_t)id)
            continue;
        MHA_TRY(mha_arena_alloc(&bytes, arena, piece->n, 1, err));
        size_t n = mha_bytes_of_piece(piece->s, piece->n, bytes, piece->n);
        if (n != (size_t)-1 && n > 0)
            MHA_TRY(mha_map_set(&b->whole, bytes, n, id, NULL, err));
    }
    return MHA_OK;
}

static mha_status init(bpe *b, mha_arena *arena, const mha_bpe_options *o, mha_err *err)
{
    char *prefix, *suffix;
    MHA_TRY(mha_arena_strndup(&prefix, arena, o->prefix, o->prefix_n, err));
    MHA_TRY(mha_arena_strndup(&suffix, arena, o->suffix, o->suffix_n, err));
    b->prefix = prefix;
    b->prefix_n = o->prefix_n;
    b->suffix = suffix;
    b->suffix_n = o->suffix_n;
    b->has_unknown = o->unknown != NULL;
    b->unknown = o->unknown ? mha_vocab_id(b->vocab, o->unknown, o->unknown_n) : -1;
    b->fuse_unknown = o->fuse_unknown;
    b->ignore_merges = o->ignore_merges;
    b->bytes = o->bytes;
    b->byte_fallback = o->byte_fallback;
    for (unsigned byte = 0; byte < 256; byte++)
        b->byte_ids[byte] = o->byte_fallback ? mha_vocab_byte_piece(b->vocab, (uint8_t)byte)
                                             : byte_id(b->vocab, (uint8_t)byte);
    if (b->bytes && b->ignore_merges)
        MHA_TRY(build_whole(b, arena, err));
    return build_merges(b, o, err);
}

mha_status mha_bpe_new(mha_model *out, const mha_vocab *vocab, mha_arena *arena,
                       const mha_bpe_options *options, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc(&p, 1, sizeof(bpe), err));
    bpe *b = p;
    b->vocab = vocab;
    mha_map_init(&b->whole);
    mha_status status = init(b, arena, options, err);
    if (status != MHA_OK) {
        bpe_free(b);
        return status;
    }
    bool byte_level = mha_bpe_known_bytes(vocab) >= MHA_BPE_BYTES_ENOUGH;
    const struct mha_model_kind *kind = byte_level && options->merge_count == 0 ? &bytes_kind
                                        : byte_level                            ? &byte_bpe_kind
                                        : options->byte_fallback ? &sentencepiece_bpe_kind
                                                                 : &bpe_kind;
    *out = (mha_model){kind, b};
    return MHA_OK;
}
