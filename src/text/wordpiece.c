/* wordpiece.c: WordPiece. A word is matched from the left, each time with the longest piece there
 * is; pieces inside of a word carry the prefix "##", so that their search starts at the trie's node
 * behind it. When any place has no match, the whole word is one unknown token. */
#include "text/model.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/trie.h"

typedef struct wordpiece {
    mha_trie trie;
    uint32_t inside; /* node behind the prefix, MHA_TRIE_NONE when no piece has it */
    int32_t unknown;
    size_t max_chars;
} wordpiece;

static mha_status tokenize(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err)
{
    const wordpiece *w = state;
    size_t first = x->n;
    size_t at = 0;
    if (n <= w->max_chars || mha_utf8_count(word, n) <= w->max_chars) {
        while (at < n) {
            uint32_t node = at == 0 ? MHA_TRIE_ROOT : w->inside;
            int32_t id = -1;
            size_t len = 0;
            if (node != MHA_TRIE_NONE)
                len = mha_trie_longest(&w->trie, node, word + at, n - at, &id);
            if (len == 0)
                break;
            MHA_TRY(mha_model_scratch_add(x, id, at, at + len, err));
            at += len;
        }
    }
    if (at == n)
        return MHA_OK;
    x->n = first;
    return mha_model_scratch_add(x, w->unknown, 0, n, err);
}

static void wordpiece_free(void *state)
{
    wordpiece *w = state;
    mha_trie_release(&w->trie);
    mha_free(w);
}

static const struct mha_model_kind wordpiece_kind = {"WordPiece", tokenize, wordpiece_free};

/* A piece that was given a second id answers to that one only. */
static mha_status build_trie(mha_trie *trie, const mha_vocab *vocab, mha_err *err)
{
    void *p;
    size_t count = 0;
    MHA_TRY(mha_alloc(&p, vocab->n, sizeof(mha_trie_key), err));
    mha_trie_key *keys = p;
    for (size_t id = 0; id < vocab->n; id++) {
        const mha_vocab_piece *piece = &vocab->pieces[id];
        if (piece->s && mha_vocab_id(vocab, piece->s, piece->n) == (int32_t)id)
            keys[count++] = (mha_trie_key){piece->s, piece->n, (int32_t)id};
    }
    mha_status status = mha_trie_build(trie, keys, count, err);
    mha_free(keys);
    return status;
}

mha_status mha_wordpiece_new(mha_model *out, const mha_vocab *vocab,
                             const mha_wordpiece_options *options, mha_err *err)
{
    void *p;
    if (options->max_chars < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "max_input_chars_per_word is %lld",
                        (long long)options->max_chars);
    MHA_TRY(mha_alloc(&p, 1, sizeof(wordpiece), err));
    wordpiece *w = p;
    mha_status status = build_trie(&w->trie, vocab, err);
    if (status != MHA_OK) {
        mha_free(w);
        return status;
    }
    w->unknown = options->unknown;
    w->max_chars = (size_t)options->max_chars;
    w->inside = mha_trie_walk(&w->trie, options->prefix, options->prefix_n);
    *out = (mha_model){&wordpiece_kind, w};
    return MHA_OK;
}
