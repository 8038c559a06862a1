/* labels.c: tokens as a reader wants to see them: whole characters, no markers of the vocabulary,
 * white space visible. The text is always valid UTF-8. */
#include "cli/labels.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX       256 /* bytes of one label; longer words are cut */
#define CHARACTER_SPAN 4   /* tokens that one character can be made of, at most */

typedef struct builder {
    const mha_tokenizer *tokenizer;
    const mha_tokens *tokens;
    const uint32_t *cell;
    bool pieces; /* WordPiece tokens keep their mark: "##ing" is not "ing" */
    char text[TEXT_MAX];
    size_t n;
} builder;

/* Adds the bytes of token i. */
static void add_token(builder *b, size_t i)
{
    const mha_tokens *t = b->tokens;
    bool continues;
    size_t room = TEXT_MAX - b->n;
    if (!b->tokenizer) {
        int n = snprintf(b->text + b->n, room, "%s%" PRId32, b->n ? " " : "", t->id[i]);
        b->n += n > 0 && (size_t)n < room ? (size_t)n : 0;
        return;
    }
    if (t->special[i] || b->pieces) {
        const char *piece = mha_tokenizer_piece(b->tokenizer, t->id[i]);
        size_t n = piece ? strnlen(piece, room) : 0;
        memcpy(b->text + b->n, piece ? piece : "", n);
        b->n += n;
        return;
    }
    size_t n = mha_tokenizer_bytes(b->tokenizer, t->id[i], b->text + b->n, room, &continues);
    b->n += n < room ? n : room;
}

/* Adds all tokens of the cell that begins at token i; returns the token behind them. */
static size_t add_cell(builder *b, size_t i)
{
    uint32_t cell = b->cell[i];
    for (; i < b->tokens->n && b->cell[i] == cell; i++)
        add_token(b, i);
    return i;
}

/* What a code point looks like in a label; NULL: like itself. */
static const char *visible(uint32_t cp)
{
    switch (cp) {
    case '\n':
        return "\xe2\x86\xb5"; /* ↵ */
    case '\t':
        return "\xe2\x87\xa5"; /* ⇥ */
    case 0xfffd:
        return NULL;
    default:
        return cp < ' ' || cp == 0x7f ? "\xef\xbf\xbd" : NULL;
    }
}

/* The bytes as valid, visible UTF-8 without the spaces around them. */
static mha_status text_finish(const builder *b, mha_arena *arena, char **out, mha_err *err)
{
    char clean[4 * TEXT_MAX];
    size_t used = 0, at = 0, n = b->n;
    while (at < n && b->text[at] == ' ')
        at++;
    while (n > at && b->text[n - 1] == ' ')
        n--;
    if (at == n && b->n > 0)
        return mha_arena_strdup(out, arena, "\xe2\x90\xa3", err); /* ␣ */
    while (at < n) {
        uint32_t cp = 0xfffd;
        size_t length = mha_utf8_decode(b->text + at, n - at, &cp);
        const char *shown = length ? visible(cp) : "\xef\xbf\xbd";
        size_t shown_n = shown ? strlen(shown) : length;
        memcpy(clean + used, shown ? shown : b->text + at, shown_n);
        used += shown_n;
        at += length ? length : 1;
    }
    return mha_arena_strndup(out, arena, clean, used, err);
}

/* Whether the cell at token `next` belongs to the label that began at token `first`. */
static bool cell_joins(const builder *b, mha_label_mode mode, size_t first, size_t next)
{
    const mha_tokens *t = b->tokens;
    if (mode == MHA_LABEL_WORDS && t->word[first] >= 0 && t->word[first] == t->word[next] &&
        t->type[first] == t->type[next])
        return true;
    return b->tokenizer && !t->special[next] && next - first < CHARACTER_SPAN &&
           !mha_utf8_valid(b->text, b->n);
}

/* Builds the label that begins at token *i and moves *i behind it; returns how many cells it
 * covers. */
static size_t label_build(builder *b, mha_label_mode mode, size_t last, size_t *i)
{
    size_t first = *i, count = 1;
    b->n = 0;
    *i = add_cell(b, first);
    while (*i < b->tokens->n && b->cell[*i] <= last && cell_joins(b, mode, first, *i)) {
        *i = add_cell(b, *i);
        count++;
    }
    /* Bytes that never became a character are no reason to join anything. */
    if (mode != MHA_LABEL_WORDS && count > 1 && !mha_utf8_valid(b->text, b->n)) {
        b->n = 0;
        *i = add_cell(b, first);
        return 1;
    }
    return count;
}

mha_status mha_labels_make(mha_labels *l, const mha_tokenizer *tokenizer, const mha_cells *cells,
                           mha_label_mode mode, mha_err *err)
{
    const mha_tokens *t = cells->tokens;
    builder b = {.tokenizer = tokenizer, .tokens = t, .cell = cells->cell};
    b.pieces = mode == MHA_LABEL_TOKENS && t->n > 0 && cells->cell[t->n - 1] == t->n - 1 &&
               tokenizer && strcmp(mha_tokenizer_kind(tokenizer), "WordPiece") == 0;
    *l = (mha_labels){0};
    if (mode == MHA_LABEL_NONE)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&l->items, cells->last - cells->first + 1, sizeof *l->items, err));
    size_t i = 0;
    while (i < t->n && cells->cell[i] < cells->first)
        i++;
    while (i < t->n && cells->cell[i] <= cells->last) {
        char *text;
        size_t cell = cells->cell[i], count = label_build(&b, mode, cells->last, &i);
        MHA_TRY(text_finish(&b, &l->text, &text, err));
        l->items[l->count++] = (mha_label){text, cell - cells->first, count};
    }
    return MHA_OK;
}

void mha_labels_release(mha_labels *l)
{
    mha_free(l->items);
    mha_arena_release(&l->text);
    *l = (mha_labels){0};
}
