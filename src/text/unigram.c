/* unigram.c: a word becomes the row of pieces with the largest sum of scores (log probabilities).
 *
 *     best[0] = 0,  best[j] = max over pieces word[i..j) of best[i] + score
 *
 * A character at which no piece of one character starts can also be unknown, at the cost of
 * (smallest score − 10). Of equal sums the first found counts, in the order of i and of length.
 *
 * The two libraries that have this model differ in details that can decide between near-equal sums:
 * Hugging Face's adds in double precision; SentencePiece rounds every sum to float, and prefers
 * pieces of the user's own by a bonus for every byte. */
#include "text/scored.h"

#include "base/fail.h"
#include "text/trie.h"
#include "text/unicode.h"

#include <math.h>

#define UNKNOWN_PENALTY 10.0
#define UNREACHED       UINT32_MAX

typedef struct unigram {
    mha_trie trie;  /* values are indices */
    double *scores; /* [n] by index */
    int32_t *ids;   /* [n] */
    double unknown_score;
    bool sentencepiece;
    mha_scored_unknown unknown;
} unigram;

/* The best row of pieces that ends at a byte. */
typedef struct path {
    double score;
    uint32_t start; /* of its last piece; UNREACHED when there is no row */
    int32_t index;  /* of its last piece, -1 for an unknown character */
} path;

static void offer(const unigram *u, path *to, double score, size_t start, int32_t index)
{
    if (u->sentencepiece)
        score = (double)(float)score;
    if (to->start == UNREACHED || score > to->score)
        *to = (path){score, (uint32_t)start, index};
}

static void extend(const unigram *u, path *paths, const char *word, size_t n, size_t at)
{
    uint32_t node = MHA_TRIE_ROOT, c;
    size_t len = mha_char_next(word + at, &c);
    double so_far = paths[at].score;
    bool single = false;
    for (size_t end = at; end < n;) {
        node = mha_trie_step(&u->trie, node, (uint8_t)word[end++]);
        if (node == MHA_TRIE_NONE)
            break;
        int32_t index = mha_trie_value(&u->trie, node);
        if (index < 0)
            continue;
        offer(u, &paths[end], so_far + u->scores[index], at, index);
        single = single || end == at + len;
    }
    if (!single)
        offer(u, &paths[at + len], so_far + u->unknown_score, at, -1);
}

/* Reverses x->tokens from `first` on. */
static void reverse(mha_model_scratch *x, size_t first)
{
    for (size_t i = first, k = x->n; i + 1 < k; i++) {
        mha_token t = x->tokens[i];
        x->tokens[i] = x->tokens[--k];
        x->tokens[k] = t;
    }
}

static bool is_unknown(const unigram *u, const path *p)
{
    return p->index < 0 || (!u->sentencepiece && u->ids[p->index] == u->unknown.id);
}

static mha_status add_unknown(const unigram *u, mha_model_scratch *x, const char *word,
                              size_t start, size_t end, mha_err *err)
{
    size_t first = x->n;
    MHA_TRY(mha_scored_unknown_add(&u->unknown, x, word, start, end, err));
    /* Hugging Face's library gives all bytes of a run the range of the run. */
    for (size_t i = first; !u->sentencepiece && i < x->n; i++) {
        x->tokens[i].start = (uint32_t)start;
        x->tokens[i].end = (uint32_t)end;
    }
    reverse(x, first);
    return MHA_OK;
}

/* Appends the tokens of the best row, from its end. */
static mha_status walk_back(const unigram *u, const path *paths, const char *word, size_t n,
                            mha_model_scratch *x, mha_err *err)
{
    for (size_t end = n; end > 0;) {
        const path *p = &paths[end];
        size_t start = p->start;
        if (is_unknown(u, p)) {
            while (start > 0 && is_unknown(u, &paths[start]))
                start = paths[start].start;
            MHA_TRY(add_unknown(u, x, word, start, end, err));
        } else {
            MHA_TRY(mha_model_scratch_add(x, u->ids[p->index], start, end, err));
        }
        end = start;
    }
    return MHA_OK;
}

static mha_status tokenize(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err)
{
    const unigram *u = state;
    size_t first = x->n;
    void *memory;
    uint32_t c;
    MHA_TRY(mha_model_scratch_memory(&memory, x, n + 1, sizeof(path), err));
    path *paths = memory;
    for (size_t i = 1; i <= n; i++)
        paths[i].start = UNREACHED;
    paths[0] = (path){.index = -1};
    for (size_t i = 0; i < n; i += mha_char_next(word + i, &c))
        extend(u, paths, word, n, i);
    MHA_TRY(walk_back(u, paths, word, n, x, err));
    reverse(x, first);
    return MHA_OK;
}

static void unigram_free(void *state)
{
    unigram *u = state;
    mha_trie_release(&u->trie);
    mha_free(u->scores);
    mha_free(u->ids);
    mha_free(u);
}

static const struct mha_model_kind unigram_kind = {"Unigram", tokenize, unigram_free};

/* --- making the model ------------------------------------------------------------------------ */

static bool is_in_text(const mha_scored_piece *p, bool sentencepiece)
{
    return !sentencepiece || p->type == MHA_PIECE_NORMAL || p->type == MHA_PIECE_USER;
}

static mha_status build_trie(unigram *u, const mha_scored_options *o, mha_err *err)
{
    void *p;
    size_t n = 0;
    MHA_TRY(mha_alloc_raw(&p, o->n, sizeof(mha_trie_key), err));
    mha_trie_key *keys = p;
    for (size_t i = 0; i < o->n; i++) {
        if (is_in_text(&o->pieces[i], u->sentencepiece))
            keys[n++] = (mha_trie_key){o->pieces[i].s, o->pieces[i].n, (int32_t)i};
    }
    mha_status status = mha_trie_build(&u->trie, keys, n, err);
    mha_free(keys);
    return status;
}

/* A bonus that makes any row with the user's own piece the best one. */
static double user_score(const mha_scored_piece *p, double largest)
{
    return (double)(float)((double)((float)p->n * (float)largest) - 0.1);
}

static mha_status copy_pieces(unigram *u, const mha_scored_options *o, mha_err *err)
{
    void *scores, *ids;
    double smallest = (double)INFINITY, largest = -(double)INFINITY;
    MHA_TRY(mha_alloc_raw(&scores, o->n, sizeof *u->scores, err));
    u->scores = scores;
    MHA_TRY(mha_alloc_raw(&ids, o->n, sizeof *u->ids, err));
    u->ids = ids;
    for (size_t i = 0; i < o->n; i++) {
        const mha_scored_piece *p = &o->pieces[i];
        if (!isfinite(p->score))
            return mha_fail(err, MHA_ERR_FORMAT, "piece %zu: the score is not finite", i);
        if (u->sentencepiece && p->type != MHA_PIECE_NORMAL)
            continue;
        smallest = fmin(smallest, p->score);
        largest = fmax(largest, p->score);
    }
    for (size_t i = 0; i < o->n; i++) {
        const mha_scored_piece *p = &o->pieces[i];
        bool user = u->sentencepiece && p->type == MHA_PIECE_USER;
        u->scores[i] = user ? user_score(p, largest) : p->score;
        u->ids[i] = p->id;
    }
    u->unknown_score = smallest - UNKNOWN_PENALTY;
    if (u->sentencepiece)
        u->unknown_score = (double)((float)smallest - (float)UNKNOWN_PENALTY);
    return MHA_OK;
}

static mha_status init(unigram *u, const mha_scored_options *o, bool sentencepiece, mha_err *err)
{
    u->sentencepiece = sentencepiece;
    mha_scored_unknown_init(&u->unknown, o);
    MHA_TRY(copy_pieces(u, o, err));
    return build_trie(u, o, err);
}

mha_status mha_unigram_new(mha_model *out, const mha_scored_options *options, bool sentencepiece,
                           mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc(&p, 1, sizeof(unigram), err));
    unigram *u = p;
    mha_status status = init(u, options, sentencepiece, err);
    if (status != MHA_OK) {
        unigram_free(u);
        return status;
    }
    *out = (mha_model){&unigram_kind, u};
    return MHA_OK;
}
