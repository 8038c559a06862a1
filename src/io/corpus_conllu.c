/* corpus_conllu.c: CoNLL-U treebanks (universaldependencies.org/format.html): the text of each
 * sentence, its words' places in it, heads and relations.
 *
 * A sentence is comment lines ("# text = …" among them), one line of ten tab-separated columns a
 * word, and an empty line. "3-4" in the first column is one surface form of the words 3 and 4;
 * "5.1" is a word that is not in the text and is skipped. */
#include "base/fail.h"
#include "io/corpus.h"

#include <string.h>

#define COLUMNS    10
#define DIGITS_MAX 9

enum { ID = 0, FORM = 1, HEAD = 6, DEPREL = 7, MISC = 9 };

/* The sentence that is being read. Words are collected in `words` and copied when it ends. */
typedef struct sentence {
    mha_corpus *c;
    mha_lines *l;
    char *text;  /* of the comment, or NULL */
    size_t at;   /* bytes of the text that are used up */
    char *built; /* the text put together from the forms when there is no comment */
    size_t built_n, built_capacity;
    bool glued; /* no space before the next form */
    mha_corpus_word *words;
    size_t count, capacity;
    uint32_t range_last; /* words up to this one share the bytes of a range */
    uint32_t range_start, range_end;
    size_t first_line;
} sentence;

static mha_status line_fails(const sentence *s, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: %s", s->l->file, s->l->number, what);
}

/* A number of at most nine digits at *p, which moves behind it. */
static bool take_number(const char **p, uint32_t *out)
{
    uint32_t value = 0;
    int n = 0;
    for (; n < DIGITS_MAX && **p >= '0' && **p <= '9'; (*p)++, n++)
        value = value * 10 + (uint32_t)(**p - '0');
    *out = value;
    return n > 0;
}

/* ------------------------------------------------------------------------ places in the text */

/* Spaces that a text may hold between its words: ASCII ones, U+00A0, U+2002 … U+200A, U+3000. */
static size_t space_bytes(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    if (*p == ' ' || *p == '\t')
        return 1;
    if (u[0] == 0xC2 && u[1] == 0xA0)
        return 2;
    if (u[0] == 0xE2 && u[1] == 0x80 && u[2] >= 0x82 && u[2] <= 0x8A)
        return 3;
    return u[0] == 0xE3 && u[1] == 0x80 && u[2] == 0x80 ? 3 : 0;
}

static mha_status find_form(sentence *s, const char *form, uint32_t *start, uint32_t *end,
                            mha_err *err)
{
    size_t n = strlen(form);
    for (size_t space; (space = space_bytes(s->text + s->at)) > 0;)
        s->at += space;
    if (strncmp(s->text + s->at, form, n) != 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: line %zu: the form \"%s\" is not next in the sentence's text",
                        s->l->file, s->l->number, form);
    *start = (uint32_t)s->at;
    s->at += n;
    *end = (uint32_t)s->at;
    return MHA_OK;
}

/* Without a text comment the forms are the text, with spaces but where MISC has SpaceAfter=No. */
static mha_status append_form(sentence *s, const char *form, const char *misc, uint32_t *start,
                              uint32_t *end, mha_err *err)
{
    size_t n = strlen(form), need = s->built_n + n + 2;
    if (need > MHA_CORPUS_LINE_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: line %zu: a sentence of more than %zu bytes",
                        s->l->file, s->l->number, MHA_CORPUS_LINE_MAX);
    if (need > s->built_capacity) {
        MHA_TRY(mha_grow((void **)&s->built, s->built_capacity, 2 * need, 1, err));
        s->built_capacity = 2 * need;
    }
    if (s->built_n > 0 && !s->glued)
        s->built[s->built_n++] = ' ';
    *start = (uint32_t)s->built_n;
    memcpy(s->built + s->built_n, form, n + 1);
    s->built_n += n;
    *end = (uint32_t)s->built_n;
    s->glued = strstr(misc, "SpaceAfter=No") != NULL;
    return MHA_OK;
}

static mha_status place_form(sentence *s, char *const cells[COLUMNS], uint32_t *start,
                             uint32_t *end, mha_err *err)
{
    if (cells[FORM][0] == '\0')
        return line_fails(s, "an empty form", err);
    if (s->text)
        return find_form(s, cells[FORM], start, end, err);
    return append_form(s, cells[FORM], cells[MISC], start, end, err);
}

/* ------------------------------------------------------------------------------------ rows */

static mha_status read_range(sentence *s, char *const cells[COLUMNS], uint32_t first, uint32_t last,
                             mha_err *err)
{
    if (first != s->count + 1 || last < first || s->range_last >= first)
        return line_fails(s, "a range of words out of order", err);
    s->range_last = last;
    return place_form(s, cells, &s->range_start, &s->range_end, err);
}

static mha_status add_word(sentence *s, char *const cells[COLUMNS], mha_err *err)
{
    mha_corpus_word w = {.start = s->range_start, .end = s->range_end, .head = -1};
    const char *head = cells[HEAD];
    uint32_t number = 0;
    if (s->count >= s->range_last)
        MHA_TRY(place_form(s, cells, &w.start, &w.end, err));
    if (strcmp(head, "_") != 0) {
        if (!take_number(&head, &number) || *head)
            return line_fails(s, "the head is not a number", err);
        w.head = (int32_t)number - 1;
    }
    w.deprel = cells[DEPREL];
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        MHA_TRY(mha_grow((void **)&s->words, s->capacity, capacity, sizeof *s->words, err));
        s->capacity = capacity;
    }
    s->words[s->count++] = w;
    return MHA_OK;
}

static mha_status read_row(sentence *s, mha_err *err)
{
    char *cells[COLUMNS] = {0};
    size_t n = 0;
    for (char *p = s->l->text; p; n++) {
        if (n == COLUMNS)
            return line_fails(s, "more than 10 columns", err);
        cells[n] = p;
        p = strchr(p, '\t');
        if (p)
            *p++ = '\0';
    }
    if (n != COLUMNS)
        return line_fails(s, "fewer than 10 columns", err);
    const char *id = cells[ID];
    uint32_t first = 0, last = 0;
    if (!take_number(&id, &first))
        return line_fails(s, "the first column is not a word's number", err);
    if (*id == '.') {
        id++;
        return take_number(&id, &last) && *id == '\0'
                   ? MHA_OK
                   : line_fails(s, "the first column is not a word's number", err);
    }
    if (*id == '-') {
        id++;
        if (!take_number(&id, &last) || *id)
            return line_fails(s, "the first column is not a word's number", err);
        return read_range(s, cells, first, last, err);
    }
    if (*id || first != s->count + 1)
        return line_fails(s, "the words are not numbered one after the other", err);
    return add_word(s, cells, err);
}

static mha_status read_comment(sentence *s, mha_err *err)
{
    static const char key[] = "# text =";
    if (strncmp(s->l->text, key, sizeof key - 1) != 0)
        return MHA_OK;
    if (s->text || s->count > 0)
        return line_fails(s, "a second \"# text\" in one sentence", err);
    s->text = s->l->text + sizeof key - 1;
    s->text += *s->text == ' ';
    return MHA_OK;
}

static mha_status end_sentence(sentence *s, mha_err *err)
{
    mha_corpus_word *words = NULL;
    char *built = NULL;
    if (s->count == 0)
        return s->first_line == 0 ? MHA_OK : line_fails(s, "a sentence without words", err);
    if (s->range_last > s->count)
        return line_fails(s, "a range of words passes the sentence's end", err);
    for (size_t i = 0; i < s->count; i++) {
        if (s->words[i].head >= (int32_t)s->count)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: line %zu: word %zu has the head %d of %zu words", s->l->file,
                            s->first_line, i + 1, s->words[i].head + 1, s->count);
    }
    if (s->text)
        for (size_t space; (space = space_bytes(s->text + s->at)) > 0;)
            s->at += space;
    if (s->text && s->text[s->at])
        return line_fails(s, "the sentence's text goes on behind its last word", err);
    MHA_TRY(mha_arena_alloc((void **)&words, &s->c->arena, s->count, sizeof *words, err));
    memcpy(words, s->words, s->count * sizeof *words);
    if (!s->text)
        MHA_TRY(mha_arena_strndup(&built, &s->c->arena, s->built, s->built_n, err));
    mha_corpus_document d = {.text = s->text ? s->text : built,
                             .text_n = s->text ? strlen(s->text) : s->built_n,
                             .words = words,
                             .words_n = s->count,
                             .line = s->first_line};
    MHA_TRY(mha_corpus_add(s->c, &d, err));
    s->text = NULL;
    s->at = s->count = s->built_n = s->first_line = 0;
    s->range_last = 0;
    s->glued = false;
    return MHA_OK;
}

static mha_status read_sentences(sentence *s, mha_err *err)
{
    for (bool more;;) {
        MHA_TRY(mha_lines_next(s->l, &more, err));
        if (!more)
            return end_sentence(s, err);
        if (s->l->n == 0) {
            MHA_TRY(end_sentence(s, err));
            continue;
        }
        if (s->first_line == 0)
            s->first_line = s->l->number;
        MHA_TRY(s->l->text[0] == '#' && s->count == 0 ? read_comment(s, err) : read_row(s, err));
    }
}

mha_status mha_corpus_read_conllu(mha_corpus *c, mha_lines *l, mha_err *err)
{
    sentence s = {.c = c, .l = l};
    mha_status status = read_sentences(&s, err);
    mha_free(s.words);
    mha_free(s.built);
    return status;
}
