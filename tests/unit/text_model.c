/* text_model: tries and models. Byte-pair merges are compared with a naive implementation that
 * searches the whole word for the first pair at every step. */
#include "support/test.h"

#include "base/rng.h"
#include "text/bytelevel.h"
#include "text/model.h"
#include "text/trie.h"

#include <stdio.h>
#include <string.h>

/* --- tries ----------------------------------------------------------------------------------- */

static void test_trie(void **state)
{
    mha_trie_key keys[] = {{"abc", 3, 1}, {"ab", 2, 2}, {"b", 1, 3},
                           {"abc", 3, 4}, {"", 0, 5},   {"a\0b", 3, 6}};
    mha_trie t;
    int32_t value = -1;
    assert_int_equal(mha_trie_build(&t, keys, 6, NULL), MHA_OK);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "abcd", 4, &value), 3);
    assert_int_equal(value, 1);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "abd", 3, &value), 2);
    assert_int_equal(value, 2);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "abc", 1, &value), 0);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "a\0b", 3, &value), 3);
    assert_int_equal(value, 6);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "", 0, &value), 0);
    uint32_t node = mha_trie_walk(&t, "a", 1);
    assert_int_not_equal(node, MHA_TRIE_NONE);
    assert_int_equal(mha_trie_longest(&t, node, "bc", 2, &value), 2);
    assert_int_equal(mha_trie_walk(&t, "ax", 2), MHA_TRIE_NONE);
    assert_int_equal(mha_trie_walk(&t, "", 0), MHA_TRIE_ROOT);
    mha_trie_release(&t);

    assert_int_equal(mha_trie_build(&t, NULL, 0, NULL), MHA_OK);
    assert_int_equal(mha_trie_longest(&t, MHA_TRIE_ROOT, "a", 1, &value), 0);
    mha_trie_release(&t);
}

static void test_trie_limits(void **state)
{
    mha_trie t;
    mha_err err;
    void *p;
    assert_int_equal(mha_alloc(&p, MHA_TRIE_KEY_MAX + 1, 1, NULL), MHA_OK);
    memset(p, 'a', MHA_TRIE_KEY_MAX + 1);
    mha_trie_key key = {p, MHA_TRIE_KEY_MAX, 0};
    assert_int_equal(mha_trie_build(&t, &key, 1, NULL), MHA_OK);
    mha_trie_release(&t);
    key.n++;
    assert_int_equal(mha_trie_build(&t, &key, 1, &err), MHA_ERR_LIMIT);
    mha_free(p);
}

/* --- vocabularies ---------------------------------------------------------------------------- */

typedef struct words {
    mha_arena arena;
    mha_vocab vocab;
    mha_model model;
    mha_model_scratch scratch;
} words;

static void add_piece(words *w, const char *s, size_t n)
{
    mha_err err;
    if (mha_vocab_add(&w->vocab, &w->arena, s, n, (int64_t)w->vocab.n, &err) != MHA_OK)
        fail_msg("%s", err.message);
}

static void words_init(words *w, const char *const *pieces)
{
    *w = (words){0};
    mha_vocab_init(&w->vocab);
    for (; pieces && *pieces; pieces++)
        add_piece(w, *pieces, strlen(*pieces));
}

static void words_release(words *w)
{
    mha_model_release(&w->model);
    mha_model_scratch_release(&w->scratch);
    mha_vocab_release(&w->vocab);
    mha_arena_release(&w->arena);
}

/* The tokens of a word, each with its range: "un[0,2) ##able[2,6)". */
static const char *tokens(words *w, const char *word, size_t n)
{
    static char out[8192];
    mha_err err;
    size_t at = 0;
    w->scratch.n = 0;
    if (w->model.kind->tokenize(w->model.state, word, n, &w->scratch, &err) != MHA_OK)
        fail_msg("%s", err.message);
    out[0] = '\0';
    for (size_t i = 0; i < w->scratch.n && at < sizeof out; i++) {
        mha_token t = w->scratch.tokens[i];
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s[%u,%u)", i ? " " : "",
                               w->vocab.pieces[t.id].s, t.start, t.end);
    }
    return out;
}

static void test_vocab(void **state)
{
    words w;
    mha_err err;
    static const char *const pieces[] = {"a", "b", NULL};
    words_init(&w, pieces);
    assert_int_equal(mha_vocab_id(&w.vocab, "b", 1), 1);
    assert_int_equal(mha_vocab_id(&w.vocab, "c", 1), -1);
    assert_int_equal(mha_vocab_add(&w.vocab, &w.arena, "c", 1, 1, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "pieces \"b\" and \"c\" both have the id 1");
    assert_int_equal(mha_vocab_add(&w.vocab, &w.arena, "c", 1, -1, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_vocab_add(&w.vocab, &w.arena, "c", 1, MHA_VOCAB_IDS_MAX, &err),
                     MHA_ERR_LIMIT);
    /* A piece that comes again answers to its last id; ids may have gaps. */
    assert_int_equal(mha_vocab_add(&w.vocab, &w.arena, "a", 1, 7, &err), MHA_OK);
    assert_int_equal(mha_vocab_id(&w.vocab, "a", 1), 7);
    assert_int_equal(w.vocab.count, 2);
    assert_int_equal(w.vocab.n, 8);
    assert_null(mha_vocab_piece_get(&w.vocab, 5));
    assert_null(mha_vocab_piece_get(&w.vocab, 8));
    assert_null(mha_vocab_piece_get(&w.vocab, -1));
    words_release(&w);
}

/* --- WordPiece ------------------------------------------------------------------------------- */

static void test_wordpiece(void **state)
{
    words w;
    static const char *const pieces[] = {"[UNK]", "un",         "##aff",    "##able", "##a",
                                         "ab",    "##\xc3\xa9", "\xc3\xa9", "##ab",   NULL};
    words_init(&w, pieces);
    mha_wordpiece_options o = {.unknown = 0, .prefix = "##", .prefix_n = 2, .max_chars = 7};
    assert_int_equal(mha_wordpiece_new(&w.model, &w.vocab, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w, "unable", 6), "un[0,2) ##able[2,6)");
    assert_string_equal(tokens(&w, "ab", 2), "ab[0,2)");
    /* The longest match is taken even where it leads nowhere. */
    assert_string_equal(tokens(&w, "unabl", 5), "[UNK][0,5)");
    assert_string_equal(tokens(&w, "\xc3\xa9\xc3\xa9", 4), "\xc3\xa9[0,2) ##\xc3\xa9[2,4)");
    /* 7 characters of 14 bytes are not too long, 8 are. */
    assert_string_equal(tokens(&w, "éééa", 7), "é[0,2) ##é[2,4) ##é[4,6) ##a[6,7)");
    assert_string_equal(tokens(&w, "abababab", 8), "[UNK][0,8)");
    assert_string_equal(tokens(&w, "##a", 3), "##a[0,3)");
    words_release(&w);
}

/* --- BPE ------------------------------------------------------------------------------------- */

static mha_bpe_merge merge(const char *left, const char *right)
{
    return (mha_bpe_merge){left, right, strlen(left), strlen(right)};
}

static void test_bpe(void **state)
{
    words w;
    static const char *const pieces[] = {"a", "b", "c", "ab", "bc", "abc", "?", "abab", NULL};
    mha_bpe_merge merges[] = {merge("b", "c"), merge("a", "b"), merge("ab", "c")};
    mha_bpe_options o = {.merges = merges, .merge_count = 3, .prefix = "", .suffix = ""};
    words_init(&w, pieces);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w, "abc", 3), "a[0,1) bc[1,3)");
    assert_string_equal(tokens(&w, "abab", 4), "ab[0,2) ab[2,4)");
    /* Unknown characters are dropped, and ranges count without them. */
    assert_string_equal(tokens(&w, "axb", 3), "ab[0,2)");
    assert_string_equal(tokens(&w, "x", 1), "");
    mha_model_release(&w.model);

    o.unknown = "?";
    o.unknown_n = 1;
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w, "axyb", 4), "a[0,1) ?[1,2) ?[2,3) b[3,4)");
    mha_model_release(&w.model);

    o.fuse_unknown = true;
    o.ignore_merges = true;
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w, "axyéb", 6), "a[0,1) ?[1,5) b[5,6)");
    assert_string_equal(tokens(&w, "abab", 4), "abab[0,4)");
    words_release(&w);
}

static void test_bpe_affixes(void **state)
{
    words w;
    static const char *const pieces[] = {"a", "##b", "##c", "##c</w>", "##bc</w>", "a</w>", NULL};
    mha_bpe_merge merges[] = {merge("##b", "##c</w>")};
    mha_bpe_options o = {.merges = merges,
                         .merge_count = 1,
                         .prefix = "##",
                         .prefix_n = 2,
                         .suffix = "</w>",
                         .suffix_n = 4};
    words_init(&w, pieces);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w, "abc", 3), "a[0,1) ##bc</w>[1,3)");
    assert_string_equal(tokens(&w, "a", 1), "a</w>[0,1)");
    words_release(&w);
}

static void test_bpe_broken(void **state)
{
    words w;
    mha_err err;
    static const char *const pieces[] = {"a", "b", "ab", NULL};
    mha_bpe_merge merges[] = {merge("a", "b"), merge("ab", "c")};
    mha_bpe_options o = {.merges = merges, .merge_count = 2, .prefix = "", .suffix = ""};
    words_init(&w, pieces);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "merges[1]: \"c\" is not in the vocabulary");
    merges[1] = merge("b", "a");
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "merges[1]: \"ba\" is not in the vocabulary");
    words_release(&w);
    assert_false(mha_bpe_merge_split(&merges[0], "ab", 2));
    assert_false(mha_bpe_merge_split(&merges[0], "a b c", 5));
    assert_true(mha_bpe_merge_split(&merges[0], "a bc", 4));
    assert_int_equal(merges[0].right_n, 2);
}

enum { LETTERS = 6, MERGES = 60, WORD_MAX = 200, PIECE_MAX = 64 };

/* Merges of random pieces that exist, over letters that stand for single bytes. */
static size_t random_merges(words *w, mha_rng *rng, mha_bpe_merge *merges)
{
    size_t n = 0;
    while (n < MERGES) {
        const mha_vocab_piece *a = &w->vocab.pieces[mha_rng_below(rng, w->vocab.n)];
        const mha_vocab_piece *b = &w->vocab.pieces[mha_rng_below(rng, w->vocab.n)];
        char joined[2 * PIECE_MAX];
        bool listed = a->n + b->n > PIECE_MAX;
        for (size_t i = 0; i < n && !listed; i++)
            listed = merges[i].left_n == a->n && !memcmp(merges[i].left, a->s, a->n) &&
                     merges[i].right_n == b->n && !memcmp(merges[i].right, b->s, b->n);
        if (listed)
            continue;
        memcpy(joined, a->s, a->n);
        memcpy(joined + a->n, b->s, b->n);
        merges[n++] = (mha_bpe_merge){a->s, b->s, a->n, b->n};
        if (mha_vocab_id(&w->vocab, joined, a->n + b->n) < 0)
            add_piece(w, joined, a->n + b->n);
        if (w->vocab.n > 2 * MERGES)
            fail();
    }
    return n;
}

/* The lengths of the pieces that the naive algorithm ends with. */
static size_t naive(const mha_bpe_merge *merges, size_t count, const char *word, size_t n,
                    size_t lengths[WORD_MAX])
{
    size_t parts = n;
    for (size_t i = 0; i < n; i++)
        lengths[i] = 1;
    for (size_t m = 0; m < count;) {
        size_t at = 0, i = 0;
        for (; i + 1 < parts; at += lengths[i++]) {
            if (lengths[i] == merges[m].left_n && lengths[i + 1] == merges[m].right_n &&
                !memcmp(word + at, merges[m].left, lengths[i]) &&
                !memcmp(word + at + lengths[i], merges[m].right, lengths[i + 1]))
                break;
        }
        if (i + 1 >= parts) {
            m++;
            continue;
        }
        lengths[i] += lengths[i + 1];
        memmove(lengths + i + 1, lengths + i + 2, (parts - i - 2) * sizeof *lengths);
        parts--;
        m = 0;
    }
    return parts;
}

/* Pieces that two merges can make are left out: there the reference implementation, which is
 * followed, ranks a pair by a merge that it has seen before. */
static bool ambiguous(const mha_bpe_merge *merges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            char a[2 * PIECE_MAX], b[2 * PIECE_MAX];
            size_t n = merges[i].left_n + merges[i].right_n;
            memcpy(a, merges[i].left, merges[i].left_n);
            memcpy(a + merges[i].left_n, merges[i].right, merges[i].right_n);
            memcpy(b, merges[k].left, merges[k].left_n);
            memcpy(b + merges[k].left_n, merges[k].right, merges[k].right_n);
            if (n == merges[k].left_n + merges[k].right_n && memcmp(a, b, n) == 0)
                return true;
        }
    }
    return false;
}

static size_t check_random(uint64_t seed)
{
    static const char *const letters[] = {"a", "b", "c", "d", "e", "f", NULL};
    words w;
    mha_rng rng;
    mha_bpe_merge merges[MERGES];
    words_init(&w, letters);
    mha_rng_seed(&rng, seed, 0);
    size_t count = random_merges(&w, &rng, merges), compared = 0;
    while (ambiguous(merges, count))
        count--;
    mha_bpe_options o = {.merges = merges, .merge_count = count, .prefix = "", .suffix = ""};
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    for (size_t round = 0; round < 20; round++) {
        char word[WORD_MAX];
        size_t lengths[WORD_MAX], n = 1 + mha_rng_below(&rng, WORD_MAX - 1);
        for (size_t i = 0; i < n; i++)
            word[i] = (char)('a' + mha_rng_below(&rng, round % 2 ? LETTERS : 2));
        size_t parts = naive(merges, count, word, n, lengths);
        tokens(&w, word, n);
        assert_int_equal(w.scratch.n, parts);
        for (size_t i = 0; i < parts; i++)
            assert_int_equal(w.scratch.tokens[i].end - w.scratch.tokens[i].start, lengths[i]);
        compared++;
    }
    words_release(&w);
    return compared;
}

static void test_bpe_against_naive(void **state)
{
    size_t compared = 0;
    for (uint64_t seed = 1; seed <= 100; seed++)
        compared += check_random(seed);
    assert_int_equal(compared, 2000);
}

/* A word of a million symbols that all merge, in a time that a quadratic algorithm could not keep.
 */
static void test_bpe_long_word(void **state)
{
    words w;
    static const char *const pieces[] = {"a", "aa", "aaaa", "aaaaaaaa", NULL};
    mha_bpe_merge merges[] = {merge("a", "a"), merge("aa", "aa"), merge("aaaa", "aaaa")};
    mha_bpe_options o = {.merges = merges, .merge_count = 3, .prefix = "", .suffix = ""};
    size_t n = 1000003;
    void *p;
    words_init(&w, pieces);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_int_equal(mha_alloc_raw(&p, n, 1, NULL), MHA_OK);
    memset(p, 'a', n);
    tokens(&w, p, n);
    assert_int_equal(w.scratch.n, 125000 + 2);
    assert_int_equal(w.scratch.tokens[125000].id, 1);
    assert_int_equal(w.scratch.tokens[125001].end, n);
    mha_free(p);
    words_release(&w);
}

static void byte_vocab(words *w, int missing)
{
    words_init(w, NULL);
    for (int byte = 0; byte < 256; byte++) {
        char c[2];
        uint32_t mapped = mha_byte_to_char((uint8_t)byte);
        size_t n = 1;
        c[0] = (char)mapped;
        if (mapped >= 0x80) {
            c[0] = (char)(0xc0 | mapped >> 6);
            c[1] = (char)(0x80 | (mapped & 0x3f));
            n = 2;
        }
        if (byte != missing)
            add_piece(w, c, n);
    }
}

static void test_bytes(void **state)
{
    words w;
    mha_bpe_merge merges[] = {merge("\xc4\xa0", "t"), merge("\xc3\xa9", "x")};
    mha_bpe_options o = {.merges = merges,
                         .merge_count = 2,
                         .prefix = "",
                         .suffix = "",
                         .bytes = true,
                         .ignore_merges = true};
    byte_vocab(&w, -1);
    add_piece(&w, "\xc4\xa0t", 3);
    add_piece(&w, "\xc3\xa9x", 3);
    add_piece(&w,
              "\xc4\xa0"
              "abc",
              5);
    assert_int_equal(mha_bpe_known_bytes(&w.vocab), 256);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(w.model.kind->name, "byte-level BPE");
    assert_string_equal(tokens(&w, " t", 2), "Ġt[0,2)");
    assert_string_equal(tokens(&w, " ta", 3), "Ġt[0,2) a[2,3)");
    /* The byte 0xe9 is the letter é of the alphabet. */
    assert_string_equal(tokens(&w, "\xe9x", 2), "éx[0,2)");
    assert_string_equal(tokens(&w, " abc", 4), "Ġabc[0,4)");
    words_release(&w);
}

/* A byte that the vocabulary lacks is dropped; the tokens behind it keep the ranges that counting
 * the bytes of the pieces gives. */
static void test_missing_byte(void **state)
{
    words w;
    mha_bpe_options o = {.prefix = "", .suffix = "", .bytes = true};
    byte_vocab(&w, 4);
    assert_int_equal(mha_bpe_new(&w.model, &w.vocab, &w.arena, &o, NULL), MHA_OK);
    assert_string_equal(tokens(&w,
                               "a\x04"
                               "bc",
                               4),
                        "a[0,1) b[1,2) c[1,2)");
    assert_string_equal(tokens(&w, "ab", 2), "a[0,1) b[1,2)");
    assert_string_equal(tokens(&w, "\x04", 1), "");
    words_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trie),          cmocka_unit_test(test_trie_limits),
        cmocka_unit_test(test_vocab),         cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_bpe),           cmocka_unit_test(test_bpe_affixes),
        cmocka_unit_test(test_bpe_broken),    cmocka_unit_test(test_bpe_against_naive),
        cmocka_unit_test(test_bpe_long_word), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_missing_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
