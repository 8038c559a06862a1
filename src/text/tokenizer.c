/* tokenizer.c: the pipeline. A segment of text is split at added tokens, normalised, split at
 * normalised added tokens, pre-tokenised, and its words are given to the model; the template puts
 * the segments together. All state of a call is on the call's own stack and heap. */
#include "text/tokenizer.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/tokenizer_private.h"
#include "text/unicode.h"

#include <string.h>

/* Longest text, and how much longer normalizers may make it. */
#define TEXT_MAX      ((size_t)1 << 30)
#define GROWTH_BASE   ((size_t)1 << 20)
#define GROWTH_FACTOR 16
#define DECODED_MAX   ((size_t)1 << 30)

/* What encoding one segment needs. */
typedef struct encoder {
    const mha_tokenizer *t;
    const char *text;
    size_t n;
    mha_split split;
    mha_normalizing normalizing;
    mha_cuts cuts;
    mha_regex_scratch regex;
    mha_model_scratch model;
    int32_t words; /* so far */
} encoder;

static void encoder_init(encoder *e, const mha_tokenizer *t, const char *text, size_t n)
{
    size_t ceiling = GROWTH_BASE + GROWTH_FACTOR * n;
    *e = (encoder){.t = t, .text = text, .n = n};
    mha_regex_scratch_init(&e->regex, n);
    e->split = (mha_split){.data = text, .n = n, .regex = &e->regex, .cuts = &e->cuts};
    e->split.text.ceiling = e->split.spare.ceiling = ceiling;
    e->normalizing = (mha_normalizing){.regex = &e->regex, .cuts = &e->cuts};
    e->normalizing.text.ceiling = e->normalizing.spare.ceiling = ceiling;
}

static void encoder_release(encoder *e)
{
    mha_pieces_release(&e->split.pieces);
    mha_pieces_release(&e->split.next);
    mha_aligned_release(&e->split.text);
    mha_aligned_release(&e->split.spare);
    mha_aligned_release(&e->normalizing.text);
    mha_aligned_release(&e->normalizing.spare);
    mha_cuts_release(&e->cuts);
    mha_regex_scratch_release(&e->regex);
    mha_model_scratch_release(&e->model);
}

/* Normalises the stretches between added tokens, each for itself, into one new text. */
static mha_status normalize(encoder *e, mha_err *err)
{
    mha_split *s = &e->split;
    mha_normalizing *work = &e->normalizing;
    for (size_t i = 0; i < s->pieces.n; i++) {
        mha_piece piece = s->pieces.v[i];
        size_t start = s->spare.n, n = piece.end - piece.start;
        if (piece.added >= 0) {
            MHA_TRY(
                mha_aligned_put_original(&s->spare, s->data + piece.start, n, piece.start, err));
        } else {
            work->text.n = work->spare.n = 0;
            work->start = piece.start;
            MHA_TRY(
                mha_aligned_put_original(&work->text, s->data + piece.start, n, piece.start, err));
            MHA_TRY(mha_normalizers_apply(&e->t->normalizers, work, err));
            MHA_TRY(mha_aligned_put_slice(&s->spare, &work->text, 0, work->text.n, err));
        }
        MHA_TRY(mha_pieces_add(&s->next, start, s->spare.n, piece.added, err));
    }
    mha_split_swap(s);
    mha_split_swap_text(s);
    return MHA_OK;
}

static mha_status split_words(encoder *e, mha_err *err)
{
    mha_split *s = &e->split;
    MHA_TRY(mha_pieces_add(&s->pieces, 0, e->n, -1, err));
    MHA_TRY(mha_added_split(&e->t->added, false, s, err));
    if (e->t->normalizers.n > 0)
        MHA_TRY(normalize(e, err));
    MHA_TRY(mha_added_split(&e->t->added, true, s, err));
    return mha_pretokenizers_apply(&e->t->pretokenizers, s, err);
}

/* Appends one token of a word with its range in the original text, trimmed by what the token shows:
 * the piece as stored, or what an added token matched. */
static mha_status add_token(encoder *e, mha_segment *out, int32_t word, mha_token token,
                            const mha_added_token *added, mha_err *err)
{
    mha_span range = mha_split_range(&e->split, token.start, token.end);
    mha_segment_token t = {token.id, range.start, range.end, word, added && added->special};
    const mha_vocab_piece *piece = mha_vocab_piece_get(&e->t->vocab, token.id);
    const char *shown = added ? e->split.data + token.start : piece->s;
    size_t n = added ? token.end - token.start : piece->n;
    mha_template_trim(&e->t->template, &t, out->n == 0, shown, n, e->text);
    return mha_segment_add(out, t, err);
}

/* Where pieces show spaces, a token that starts with one starts a word, also inside of what the
 * model was given as one word: many files have no pre-tokenizer at all. */
static bool starts_word(const encoder *e, const mha_token *token)
{
    size_t n = e->t->space_mark_n;
    return e->t->space_mark && token->end - token->start >= n &&
           memcmp(e->split.data + token->start, e->t->space_mark, n) == 0;
}

static mha_status encode_word(encoder *e, mha_segment *out, mha_piece piece, mha_err *err)
{
    int32_t word = e->words++;
    if (piece.added >= 0) {
        const mha_added_token *added = &e->t->added.v[piece.added];
        return add_token(e, out, word, (mha_token){added->id, piece.start, piece.end}, added, err);
    }
    e->model.n = 0;
    MHA_TRY(e->t->model.kind->tokenize(e->t->model.state, e->split.data + piece.start,
                                       piece.end - piece.start, &e->model, err));
    for (size_t i = 0; i < e->model.n; i++) {
        mha_token token = e->model.tokens[i];
        token.start += piece.start;
        token.end += piece.start;
        if (i > 0 && starts_word(e, &token))
            word = e->words++;
        MHA_TRY(add_token(e, out, word, token, NULL, err));
    }
    return MHA_OK;
}

static mha_status encode_segment(const mha_tokenizer *t, const char *text, size_t n,
                                 mha_segment *out, mha_err *err)
{
    encoder e;
    encoder_init(&e, t, text, n);
    mha_status status = split_words(&e, err);
    for (size_t i = 0; status == MHA_OK && i < e.split.pieces.n; i++)
        status = encode_word(&e, out, e.split.pieces.v[i], err);
    encoder_release(&e);
    return status;
}

static mha_status check_text(const char *text, size_t n, mha_err *err)
{
    if (n > TEXT_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "text of %zu bytes, at most %zu", n, TEXT_MAX);
    if (mha_ascii_only(text, n))
        return MHA_OK;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_utf8_decode(text + i, n - i, &c);
        if (len == 0)
            return mha_fail(err, MHA_ERR_FORMAT, "text is not UTF-8 at byte %zu", i);
        i += len;
    }
    return MHA_OK;
}

mha_status mha_tokenizer_encode(const mha_tokenizer *t, const char *text, size_t n,
                                const char *pair, size_t pair_n, bool with_special, mha_tokens *out,
                                mha_err *err)
{
    mha_segment segments[2] = {{0}};
    MHA_TRY(check_text(text, n, err));
    if (pair)
        MHA_TRY(check_text(pair, pair_n, err));
    mha_status status = encode_segment(t, text, n, &segments[0], err);
    if (status == MHA_OK && pair)
        status = encode_segment(t, pair, pair_n, &segments[1], err);
    if (status == MHA_OK)
        status = mha_template_apply(&t->template, &segments[0], pair ? &segments[1] : NULL,
                                    with_special, out, err);
    mha_segment_release(&segments[0]);
    mha_segment_release(&segments[1]);
    return status;
}

/* --- pieces ---------------------------------------------------------------------------------- */

size_t mha_tokenizer_vocab(const mha_tokenizer *t)
{
    return t->vocab_size;
}

const char *mha_tokenizer_kind(const mha_tokenizer *t)
{
    return t->model.kind->name;
}

const mha_tokenizer *mha_tokenizer_target(const mha_tokenizer *t)
{
    return t->target ? t->target : t;
}

const char *mha_tokenizer_note(const mha_tokenizer *t)
{
    return t->note;
}

static const mha_added_token *added_get(const mha_tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->vocab_size ? t->added_by_id[id] : NULL;
}

const char *mha_tokenizer_piece(const mha_tokenizer *t, int32_t id)
{
    const mha_added_token *added = added_get(t, id);
    if (added)
        return added->content;
    const mha_vocab_piece *piece = mha_vocab_piece_get(&t->vocab, id);
    return piece ? piece->s : NULL;
}

static size_t copy_bytes(const char *s, size_t n, char *out, size_t cap)
{
    if (n > 0 && cap > 0)
        memcpy(out, s, n < cap ? n : cap);
    return n;
}

static bool ends_with(const mha_vocab_piece *piece, const char *suffix)
{
    size_t n = suffix ? strlen(suffix) : 0;
    return n > 0 && piece->n >= n && memcmp(piece->s + piece->n - n, suffix, n) == 0;
}

/* A piece in the byte alphabet; the suffix that ends a word counts as the space behind it. */
static size_t byte_level_bytes(const mha_tokenizer *t, const mha_vocab_piece *piece, char *out,
                               size_t cap)
{
    bool last = ends_with(piece, t->word_suffix);
    size_t n = piece->n - (last ? strlen(t->word_suffix) : 0);
    size_t mapped = mha_bytes_of_piece(piece->s, n, out, cap);
    if (mapped == (size_t)-1)
        mapped = copy_bytes(piece->s, n, out, cap);
    if (last && mapped < cap)
        out[mapped] = ' ';
    return mapped + last;
}

/* A piece in which spaces are marked. */
static size_t marked_bytes(const mha_tokenizer *t, const mha_vocab_piece *piece, char *out,
                           size_t cap)
{
    size_t written = 0, mark_n = t->space_mark_n;
    int byte = t->byte_pieces ? mha_byte_of_piece(piece->s, piece->n) : -1;
    if (byte >= 0) {
        char c = (char)byte;
        return copy_bytes(&c, 1, out, cap);
    }
    for (size_t i = 0; i < piece->n; written++) {
        bool mark = piece->n - i >= mark_n && memcmp(piece->s + i, t->space_mark, mark_n) == 0;
        if (written < cap)
            out[written] = mark ? ' ' : piece->s[i];
        i += mark ? mark_n : 1;
    }
    return written;
}

size_t mha_tokenizer_bytes(const mha_tokenizer *t, int32_t id, char *out, size_t cap,
                           bool *continues)
{
    const mha_added_token *added = added_get(t, id);
    const mha_vocab_piece *piece = mha_vocab_piece_get(&t->vocab, id);
    bool joins = t->byte_alphabet || t->space_mark;
    if (continues)
        *continues = joins;
    if (added)
        return copy_bytes(added->content, added->n, out, cap);
    if (!piece)
        return 0;
    if (t->byte_alphabet)
        return byte_level_bytes(t, piece, out, cap);
    if (t->space_mark)
        return marked_bytes(t, piece, out, cap);
    size_t prefix_n = t->continuing_prefix ? strlen(t->continuing_prefix) : 0;
    joins = prefix_n > 0 && piece->n > prefix_n &&
            memcmp(piece->s, t->continuing_prefix, prefix_n) == 0;
    if (continues)
        *continues = joins;
    size_t skipped = joins ? prefix_n : 0;
    return copy_bytes(piece->s + skipped, piece->n - skipped, out, cap);
}

bool mha_tokenizer_is_special(const mha_tokenizer *t, int32_t id)
{
    const mha_added_token *added = added_get(t, id);
    return added && added->special;
}

int32_t mha_tokenizer_id(const mha_tokenizer *t, const char *piece)
{
    const mha_added_token *added = mha_added_find(&t->added, piece, strlen(piece));
    return added ? added->id : mha_vocab_id(&t->vocab, piece, strlen(piece));
}

int32_t mha_tokenizer_role(const mha_tokenizer *t, mha_token_role role)
{
    return t->roles[role];
}

static mha_status collect_pieces(const mha_tokenizer *t, const int32_t *ids, size_t n,
                                 mha_strings *pieces, mha_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const mha_added_token *added = added_get(t, ids[i]);
        const mha_vocab_piece *piece = mha_vocab_piece_get(&t->vocab, ids[i]);
        if (added ? added->special : !piece)
            continue;
        MHA_TRY(mha_strings_add(pieces, added ? added->sought : piece->s,
                                added ? added->sought_n : piece->n, err));
        MHA_TRY(mha_strings_end(pieces, err));
    }
    return MHA_OK;
}

mha_status mha_tokenizer_decode(const mha_tokenizer *t, const int32_t *ids, size_t n, char **out,
                                mha_err *err)
{
    mha_strings pieces;
    mha_strings_init(&pieces, DECODED_MAX);
    *out = NULL;
    mha_status status = collect_pieces(t, ids, n, &pieces, err);
    if (status == MHA_OK)
        status = mha_decoders_apply(&t->decoders, &pieces, err);
    if (status == MHA_OK)
        status =
            mha_strndup(out, pieces.bytes.data ? pieces.bytes.data : "", pieces.bytes.size, err);
    mha_strings_release(&pieces);
    return status;
}
