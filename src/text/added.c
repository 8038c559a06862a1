/* added.c: the list of added tokens and the search for them by two tries, one for the original text
 * and one for the normalised text. It may not find tokens across pieces. */
#include "text/added.h"

#include "base/fail.h"
#include "text/unicode.h"

#include <string.h>

void mha_added_init(mha_added *a)
{
    *a = (mha_added){.largest = -1};
    mha_map_init(&a->by_content);
}

void mha_added_release(mha_added *a)
{
    mha_map_release(&a->by_content);
    mha_trie_release(&a->plain);
    mha_trie_release(&a->normalized);
    mha_free(a->v);
    *a = (mha_added){.largest = -1};
}

const mha_added_token *mha_added_find(const mha_added *a, const char *content, size_t n)
{
    uint64_t i;
    return mha_map_get(&a->by_content, content, n, &i) ? &a->v[i] : NULL;
}

/* Ids are given out behind the model's pieces, counted, not numbered: a vocabulary with holes is
 * taken for a smaller one. */
static int64_t expected_id(const mha_added *a, const mha_vocab *vocab, const mha_added_token *t)
{
    const mha_added_token *known = mha_added_find(a, t->content, t->n);
    if (known)
        return known->id;
    int32_t id = mha_vocab_id(vocab, t->content, t->n);
    if (id >= 0)
        return id;
    int64_t next = (int64_t)vocab->count;
    return a->largest >= next ? (int64_t)a->largest + 1 : next;
}

static mha_status check_id(const mha_added *a, const mha_vocab *vocab, const mha_added_token *t,
                           mha_err *err)
{
    int64_t expected = expected_id(a, vocab, t);
    const mha_vocab_piece *taken = mha_vocab_piece_get(vocab, t->id);
    if (t->id != expected)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "added token \"%.40s\" has the id %d, its place in the vocabulary is %lld",
                        t->content, t->id, (long long)expected);
    if (expected >= MHA_VOCAB_IDS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "added token \"%.40s\" has the id %d, ids end at %lld",
                        t->content, t->id, (long long)MHA_VOCAB_IDS_MAX - 1);
    if (taken && (taken->n != t->n || memcmp(taken->s, t->content, t->n) != 0))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "added token \"%.40s\" and piece \"%.40s\" both have the id %d", t->content,
                        taken->s, t->id);
    return MHA_OK;
}

static mha_status reserve(mha_added *a, mha_err *err)
{
    if (a->n < a->capacity)
        return MHA_OK;
    size_t capacity = a->capacity ? a->capacity * 2 : 16;
    void *v = a->v;
    MHA_TRY(mha_grow(&v, a->n, capacity, sizeof *a->v, err));
    a->v = v;
    a->capacity = capacity;
    return MHA_OK;
}

mha_status mha_added_add(mha_added *a, mha_arena *arena, const mha_vocab *vocab,
                         mha_added_token token, mha_err *err)
{
    char *content;
    uint64_t known;
    if (token.n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "added token %d is empty", token.id);
    MHA_TRY(mha_arena_strndup(&content, arena, token.content, token.n, err));
    token.content = content;
    MHA_TRY(check_id(a, vocab, &token, err));
    if (mha_map_get(&a->by_content, content, token.n, &known)) {
        a->v[known] = token;
        return MHA_OK;
    }
    MHA_TRY(reserve(a, err));
    MHA_TRY(mha_map_set(&a->by_content, content, token.n, a->n, NULL, err));
    a->v[a->n++] = token;
    if (token.id > a->largest)
        a->largest = token.id;
    return MHA_OK;
}

/* --- building the tries ---------------------------------------------------------------------- */

/* The content of a token as normalised text has it, appended to *all. */
static mha_status normalized_content(const mha_added_token *t, const mha_normalizers *normalizers,
                                     mha_normalizing *work, mha_err *err)
{
    work->text.n = 0;
    work->text.ceiling = work->spare.ceiling = ((size_t)1 << 20) + 16 * t->n;
    MHA_TRY(mha_aligned_put_original(&work->text, t->content, t->n, 0, err));
    return mha_normalizers_apply(normalizers, work, err);
}

static mha_status normalize_all(mha_added *a, mha_arena *arena, const mha_normalizers *normalizers,
                                mha_normalizing *work, mha_err *err)
{
    for (size_t i = 0; i < a->n; i++) {
        mha_added_token *t = &a->v[i];
        char *copy;
        t->sought = t->content;
        t->sought_n = t->n;
        if (!t->normalized)
            continue;
        MHA_TRY(normalized_content(t, normalizers, work, err));
        MHA_TRY(mha_arena_strndup(&copy, arena, work->text.data, work->text.n, err));
        t->sought = copy;
        t->sought_n = work->text.n;
    }
    return MHA_OK;
}

static mha_status build_trie(mha_trie *trie, const mha_added *a, bool normalized, mha_err *err)
{
    void *p;
    size_t n = 0;
    MHA_TRY(mha_alloc(&p, a->n, sizeof(mha_trie_key), err));
    mha_trie_key *keys = p;
    for (size_t i = 0; i < a->n; i++) {
        const mha_added_token *t = &a->v[i];
        if (t->normalized == normalized)
            keys[n++] = (mha_trie_key){t->sought, t->sought_n, (int32_t)i};
    }
    mha_status status = mha_trie_build(trie, keys, n, err);
    mha_free(keys);
    return status;
}

mha_status mha_added_finish(mha_added *a, mha_arena *arena, const mha_normalizers *normalizers,
                            mha_err *err)
{
    size_t bytes = 0;
    mha_cuts cuts = {0};
    mha_regex_scratch regex;
    for (size_t i = 0; i < a->n; i++)
        bytes += a->v[i].n;
    mha_regex_scratch_init(&regex, bytes);
    mha_normalizing work = {.regex = &regex, .cuts = &cuts};
    mha_status status = normalize_all(a, arena, normalizers, &work, err);
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&regex);
    mha_aligned_release(&work.text);
    mha_aligned_release(&work.spare);
    if (status == MHA_OK)
        status = build_trie(&a->plain, a, false, err);
    if (status == MHA_OK)
        status = build_trie(&a->normalized, a, true, err);
    return status;
}

/* --- searching ------------------------------------------------------------------------------- */

static bool word_before(const char *s, size_t at)
{
    uint32_t c;
    if (at == 0)
        return false;
    mha_char_next(s + mha_char_floor(s, at - 1), &c);
    return mha_char_is_word(c);
}

static bool word_behind(const char *s, size_t n, size_t at)
{
    uint32_t c;
    if (at == n)
        return false;
    mha_char_next(s + at, &c);
    return mha_char_is_word(c);
}

/* The start of the white space that ends at `at`, not before `floor`. */
static size_t space_before(const char *s, size_t floor, size_t at)
{
    while (at > floor) {
        uint32_t c;
        size_t previous = mha_char_floor(s, at - 1);
        mha_char_next(s + previous, &c);
        if (!mha_char_is_space(c))
            break;
        at = previous;
    }
    return at;
}

static size_t space_behind(const char *s, size_t n, size_t at)
{
    while (at < n) {
        uint32_t c;
        size_t len = mha_char_next(s + at, &c);
        if (!mha_char_is_space(c))
            break;
        at += len;
    }
    return at;
}

static mha_status split_piece(const mha_added *a, const mha_trie *trie, mha_split *split,
                              mha_piece piece, mha_err *err)
{
    const char *s = split->data + piece.start;
    size_t n = piece.end - piece.start, base = piece.start;
    size_t rest = 0; /* what lies before is dealt with */
    for (size_t i = 0; i < n;) {
        int32_t index;
        size_t len = mha_trie_longest(trie, MHA_TRIE_ROOT, s + i, n - i, &index);
        if (len == 0) {
            i++;
            continue;
        }
        const mha_added_token *t = &a->v[index];
        size_t start = i, end = i + len;
        i = end;
        if (t->single_word && (word_before(s, start) || word_behind(s, n, end)))
            continue;
        /* A token before this one can have swallowed the space, or more, already. */
        if (t->lstrip)
            start = rest < start ? space_before(s, rest, start) : rest;
        if (t->rstrip)
            end = space_behind(s, n, end);
        MHA_TRY(mha_pieces_add(&split->next, base + rest, base + start, -1, err));
        MHA_TRY(mha_pieces_add(&split->next, base + start, base + end, index, err));
        rest = end;
    }
    return mha_pieces_add(&split->next, base + rest, base + n, -1, err);
}

mha_status mha_added_split(const mha_added *a, bool normalized, mha_split *split, mha_err *err)
{
    const mha_trie *trie = normalized ? &a->normalized : &a->plain;
    for (size_t i = 0; i < split->pieces.n; i++) {
        mha_piece piece = split->pieces.v[i];
        if (piece.added >= 0)
            MHA_TRY(mha_pieces_add(&split->next, piece.start, piece.end, piece.added, err));
        else
            MHA_TRY(split_piece(a, trie, split, piece, err));
    }
    mha_split_swap(split);
    return MHA_OK;
}
