/* scored_bpe.c: SentencePiece's BPE. There is no list of merges: any two neighbours are joined when
 * that makes a piece, the piece with the largest score first, the leftmost of equal ones. Pieces of
 * the user's own are found first and never joined to anything.
 *
 * Pieces that are marked as unused are left out. SentencePiece makes them and takes them apart
 * again, which only shows when other pieces can be reached through them alone. */
#include "text/scored.h"

#include "base/fail.h"
#include "text/merging.h"
#include "text/trie.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

/* A piece of at most 8 bytes: they are the key. */
typedef struct short_slot {
    uint64_t bytes;
    uint32_t n; /* 0: the slot is free */
    int32_t index;
} short_slot;

typedef struct scored_bpe {
    mha_map index;     /* of pieces that text can become, by their bytes */
    short_slot *slots; /* the short ones again: nearly all that is looked up is one of them. Open
                          addressing, a power of two slots */
    size_t slot_mask;
    uint32_t *ranks; /* [n] by index: the largest score has rank 0 */
    int32_t *ids;    /* [n] */
    mha_trie user;
    size_t longest;        /* bytes of a piece */
    bool splits;           /* U+2581 is a piece, so that text can be cut before it */
    bool before_mark[256]; /* bytes that stand before U+2581 inside of a piece */
    mha_scored_unknown unknown;
} scored_bpe;

/* A word on its way: mha_merging's symbols hold indices of pieces as ids. */
typedef struct joining {
    const scored_bpe *b;
    const char *word;
} joining;

#define MARK   "\xe2\x96\x81"
#define MARK_N ((size_t)3)

#define SHORT_MAX ((size_t)8)

/* The slot of a short piece, or the free one where it belongs. SplitMix64's finaliser under the
 * map's secret seed: pieces cannot be chosen to collide. */
static short_slot *find_slot(const scored_bpe *b, const char *s, size_t n, uint64_t *bytes)
{
    *bytes = 0;
    for (size_t i = 0; i < n; i++)
        *bytes |= (uint64_t)(unsigned char)s[i] << 8 * i;
    uint64_t x = *bytes ^ b->index.seed;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    for (size_t i = (size_t)(x ^ x >> 31);; i++) {
        short_slot *slot = &b->slots[i & b->slot_mask];
        if (slot->n == 0 || (slot->bytes == *bytes && slot->n == n))
            return slot;
    }
}

static int32_t find_index(const scored_bpe *b, const char *s, size_t n)
{
    uint64_t index, bytes;
    if (n <= SHORT_MAX) {
        const short_slot *slot = find_slot(b, s, n, &bytes);
        return slot->n > 0 ? slot->index : -1;
    }
    return n <= b->longest && mha_map_get(&b->index, s, n, &index) ? (int32_t)index : -1;
}

/* Pieces of the user's own have this rank: no joint makes them. */
#define RANK_USER UINT32_MAX

static bool is_user(const scored_bpe *b, int32_t index)
{
    return index >= 0 && b->ranks[index] == RANK_USER;
}

static bool find_joint(const void *state, const mha_merging *w, const mha_symbol *left,
                       const mha_symbol *right, uint32_t *rank, int32_t *index)
{
    const joining *j = state;
    (void)w;
    if (is_user(j->b, left->id) || is_user(j->b, right->id))
        return false;
    *index = find_index(j->b, j->word + left->at, (size_t)left->n + right->n);
    if (*index < 0)
        return false;
    *rank = j->b->ranks[*index];
    return true;
}

static void split_symbols(const scored_bpe *b, mha_merging *w, const char *word, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        int32_t index = -1;
        size_t len = 0;
        if (b->user.n > 0)
            len = mha_trie_longest(&b->user, MHA_TRIE_ROOT, word + i, n - i, &index);
        if (len == 0) {
            len = mha_char_next(word + i, &c);
            index = find_index(b, word + i, len);
        }
        mha_merging_add(w, index, len);
        i += len;
    }
}

static mha_status tokenize_part(const scored_bpe *b, const char *word, size_t start, size_t end,
                                mha_model_scratch *x, mha_err *err)
{
    joining j = {b, word + start};
    mha_merging w;
    MHA_TRY(mha_merging_init(&w, x, end - start, err));
    split_symbols(b, &w, j.word, end - start);
    mha_merging_run(&w, find_joint, &j);
    for (size_t i = 0; i < w.n; i++) {
        const mha_symbol *s = &w.symbols[i];
        size_t from = start + s->at, to = from + s->n;
        if (s->n == 0)
            continue;
        if (s->id >= 0) {
            MHA_TRY(mha_model_scratch_add(x, b->ids[s->id], from, to, err));
            continue;
        }
        for (; i + 1 < w.n && w.symbols[i + 1].n > 0 && w.symbols[i + 1].id < 0; i++)
            to += w.symbols[i + 1].n;
        MHA_TRY(mha_scored_unknown_add(&b->unknown, x, word, from, to, err));
    }
    return MHA_OK;
}

/* The next place behind `at` that no piece reaches across: before a mark, where no piece has the
 * byte before it and a mark in a row. */
static size_t next_cut(const scored_bpe *b, const char *word, size_t n, size_t at)
{
    while (b->splits && ++at + MARK_N <= n) {
        const char *mark = memchr(word + at, MARK[0], n - at);
        if (!mark)
            return n;
        at = (size_t)(mark - word);
        if (n - at >= MARK_N && memcmp(mark, MARK, MARK_N) == 0 &&
            !b->before_mark[(unsigned char)word[at - 1]])
            return at;
    }
    return n;
}

static mha_status tokenize(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err)
{
    const scored_bpe *b = state;
    for (size_t at = 0; at < n;) {
        size_t end = next_cut(b, word, n, at);
        MHA_TRY(tokenize_part(b, word, at, end, x, err));
        at = end;
    }
    return MHA_OK;
}

static void scored_bpe_free(void *state)
{
    scored_bpe *b = state;
    mha_map_release(&b->index);
    mha_trie_release(&b->user);
    mha_free(b->slots);
    mha_free(b->ranks);
    mha_free(b->ids);
    mha_free(b);
}

static const struct mha_model_kind scored_bpe_kind = {"SentencePiece BPE", tokenize,
                                                      scored_bpe_free};

/* --- making the model ------------------------------------------------------------------------ */

static int by_score(const void *a, const void *b)
{
    const mha_scored_piece *x = *(const mha_scored_piece *const *)a;
    const mha_scored_piece *y = *(const mha_scored_piece *const *)b;
    return (x->score < y->score) - (x->score > y->score);
}

static mha_status rank_pieces(scored_bpe *b, const mha_scored_options *o, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc_raw(&p, o->n, sizeof(const mha_scored_piece *), err));
    const mha_scored_piece **sorted = p;
    for (size_t i = 0; i < o->n; i++)
        sorted[i] = &o->pieces[i];
    if (o->n > 0)
        qsort(sorted, o->n, sizeof *sorted, by_score);
    uint32_t rank = 0;
    for (size_t i = 0; i < o->n; i++) {
        rank += i > 0 && sorted[i]->score < sorted[i - 1]->score;
        b->ranks[sorted[i] - o->pieces] = rank;
    }
    mha_free(p);
    return MHA_OK;
}

/* At least half of the slots stay free. */
static mha_status make_slots(scored_bpe *b, size_t n, mha_err *err)
{
    void *p;
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    MHA_TRY(mha_alloc(&p, slots, sizeof *b->slots, err));
    b->slots = p;
    b->slot_mask = slots - 1;
    return MHA_OK;
}

static mha_status index_piece(scored_bpe *b, const mha_scored_piece *piece, size_t i, mha_err *err)
{
    if (piece->type != MHA_PIECE_NORMAL && piece->type != MHA_PIECE_USER)
        return MHA_OK;
    if (piece->type == MHA_PIECE_USER)
        b->ranks[i] = RANK_USER;
    if (piece->n > b->longest)
        b->longest = piece->n;
    for (size_t k = 1; k + MARK_N <= piece->n; k++) {
        if (memcmp(piece->s + k, MARK, MARK_N) == 0)
            b->before_mark[(unsigned char)piece->s[k - 1]] = true;
    }
    if (piece->n > 0 && piece->n <= SHORT_MAX) {
        uint64_t bytes;
        short_slot *slot = find_slot(b, piece->s, piece->n, &bytes);
        *slot = (short_slot){bytes, (uint32_t)piece->n, (int32_t)i};
    }
    return mha_map_set(&b->index, piece->s, piece->n, i, NULL, err);
}

static mha_status build_user(scored_bpe *b, const mha_scored_options *o, mha_err *err)
{
    void *p;
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += o->pieces[i].type == MHA_PIECE_USER;
    if (n == 0)
        return MHA_OK;
    MHA_TRY(mha_alloc_raw(&p, n, sizeof(mha_trie_key), err));
    mha_trie_key *keys = p;
    n = 0;
    for (size_t i = 0; i < o->n; i++) {
        if (o->pieces[i].type == MHA_PIECE_USER)
            keys[n++] = (mha_trie_key){o->pieces[i].s, o->pieces[i].n, (int32_t)i};
    }
    mha_status status = mha_trie_build(&b->user, keys, n, err);
    mha_free(keys);
    return status;
}

static mha_status init(scored_bpe *b, const mha_scored_options *o, mha_err *err)
{
    void *ranks, *ids;
    MHA_TRY(mha_alloc_raw(&ranks, o->n, sizeof *b->ranks, err));
    b->ranks = ranks;
    MHA_TRY(mha_alloc_raw(&ids, o->n, sizeof *b->ids, err));
    b->ids = ids;
    mha_scored_unknown_init(&b->unknown, o);
    MHA_TRY(rank_pieces(b, o, err));
    MHA_TRY(make_slots(b, o->n, err));
    MHA_TRY(mha_map_reserve(&b->index, o->n, err));
    for (size_t i = 0; i < o->n; i++) {
        b->ids[i] = o->pieces[i].id;
        MHA_TRY(index_piece(b, &o->pieces[i], i, err));
    }
    b->splits = find_index(b, MARK, MARK_N) >= 0;
    return build_user(b, o, err);
}

mha_status mha_scored_bpe_new(mha_model *out, const mha_scored_options *options, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc(&p, 1, sizeof(scored_bpe), err));
    scored_bpe *b = p;
    mha_map_init(&b->index);
    mha_status status = init(b, options, err);
    if (status != MHA_OK) {
        scored_bpe_free(b);
        return status;
    }
    *out = (mha_model){&scored_bpe_kind, b};
    return MHA_OK;
}
