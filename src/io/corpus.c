/* corpus.c: files of documents: their lines, and the formats that are read line by line (.txt,
 * .tsv, .jsonl, .fasta). Knows nothing of tokens. Texts stay where the file was read; only what
 * JSON escapes have changed is copied. */
#include "io/corpus.h"

#include "base/fail.h"
#include "base/filemap.h"
#include "base/utf8.h"
#include "io/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BYTES_DEFAULT ((uint64_t)1 << 30)
#define COLUMNS_MAX   64
#define FIELDS        4

static const char *const field_names[FIELDS] = {"text", "pair", "target", "label"};

/* ----------------------------------------------------------------------------------- lines */

static size_t utf8_error(const char *s, size_t n)
{
    uint32_t cp = 0;
    size_t at = 0, step = 1;
    while (at < n && (step = mha_utf8_decode(s + at, n - at, &cp)) > 0 && cp != 0)
        at += step;
    return at;
}

mha_status mha_lines_next(mha_lines *l, bool *more, mha_err *err)
{
    if (l->number == 0 && l->end - l->next >= 3 && memcmp(l->next, "\xEF\xBB\xBF", 3) == 0)
        l->next += 3;
    *more = l->next < l->end;
    if (!*more)
        return MHA_OK;
    l->number++;
    l->text = l->next;
    char *newline = memchr(l->next, '\n', (size_t)(l->end - l->next));
    char *stop = newline ? newline : l->end;
    l->next = newline ? newline + 1 : l->end;
    if (newline && stop > l->text && stop[-1] == '\r')
        stop--;
    *stop = '\0';
    l->n = (size_t)(stop - l->text);
    if (l->n > MHA_CORPUS_LINE_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: line %zu: %zu bytes, at most %zu", l->file,
                        l->number, l->n, MHA_CORPUS_LINE_MAX);
    if (mha_utf8_valid(l->text, l->n) && !memchr(l->text, 0, l->n))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: byte %zu is not text in UTF-8", l->file,
                    l->number, utf8_error(l->text, l->n) + 1);
}

mha_status mha_corpus_add(mha_corpus *c, const mha_corpus_document *d, mha_err *err)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 64;
        MHA_TRY(mha_grow((void **)&c->documents, c->capacity, capacity, sizeof *c->documents, err));
        c->capacity = capacity;
    }
    c->documents[c->count++] = *d;
    return MHA_OK;
}

static bool is_blank(const mha_lines *l)
{
    return l->text[strspn(l->text, " \t")] == '\0';
}

/* -------------------------------------------------------------------------- .txt and .tsv */

static mha_status read_txt(mha_corpus *c, mha_lines *l, mha_err *err)
{
    for (bool more;;) {
        MHA_TRY(mha_lines_next(l, &more, err));
        if (!more)
            return MHA_OK;
        if (is_blank(l)) {
            c->empty_lines++;
            continue;
        }
        mha_corpus_document d = {.text = l->text, .text_n = l->n, .line = l->number};
        MHA_TRY(mha_corpus_add(c, &d, err));
    }
}

/* An empty field is an absent one, but a document always has a text. */
static void set_field(mha_corpus_document *d, int field, const char *s, size_t n)
{
    const char **const texts[FIELDS] = {&d->text, &d->pair, &d->target, &d->label};
    size_t *const sizes[FIELDS] = {&d->text_n, &d->pair_n, &d->target_n, &d->label_n};
    if (n == 0 && field != 0)
        return;
    *texts[field] = s;
    *sizes[field] = n;
}

static int find_field(const char *name)
{
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(name, field_names[i]) == 0)
            return i;
    }
    return -1;
}

/* Cuts the line at its tabs; *count is the number of cells, also beyond COLUMNS_MAX. */
static void split_cells(mha_lines *l, char *cells[COLUMNS_MAX], size_t *count)
{
    char *p = l->text;
    for (*count = 0;; (*count)++) {
        char *tab = strchr(p, '\t');
        if (*count < COLUMNS_MAX)
            cells[*count] = p;
        if (!tab)
            break;
        *tab = '\0';
        p = tab + 1;
    }
    (*count)++;
}

/* fields[i] = which field column i is, or -1 for columns that are not ours. */
static mha_status read_header(mha_lines *l, int fields[COLUMNS_MAX], size_t *columns, mha_err *err)
{
    char *cells[COLUMNS_MAX];
    bool more = false, seen[FIELDS] = {false};
    MHA_TRY(mha_lines_next(l, &more, err));
    if (!more)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: no header line", l->file);
    split_cells(l, cells, columns);
    if (*columns > COLUMNS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: line 1: %zu columns, at most %d", l->file,
                        *columns, COLUMNS_MAX);
    for (size_t i = 0; i < *columns; i++) {
        fields[i] = find_field(cells[i]);
        if (fields[i] >= 0 && seen[fields[i]])
            return mha_fail(err, MHA_ERR_FORMAT, "%s: line 1: column \"%s\" is there twice",
                            l->file, cells[i]);
        if (fields[i] >= 0)
            seen[fields[i]] = true;
    }
    if (!seen[0])
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: line 1: the header has no column \"text\" (beside it: pair, target, "
                        "label)",
                        l->file);
    return MHA_OK;
}

static mha_status read_tsv(mha_corpus *c, mha_lines *l, mha_err *err)
{
    int fields[COLUMNS_MAX];
    char *cells[COLUMNS_MAX];
    size_t columns = 0, found = 0;
    MHA_TRY(read_header(l, fields, &columns, err));
    for (bool more;;) {
        MHA_TRY(mha_lines_next(l, &more, err));
        if (!more)
            return MHA_OK;
        if (l->n == 0) {
            c->empty_lines++;
            continue;
        }
        split_cells(l, cells, &found);
        if (found != columns)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: %zu fields, the header has %zu",
                            l->file, l->number, found, columns);
        mha_corpus_document d = {.line = l->number};
        for (size_t i = 0; i < columns; i++) {
            if (fields[i] >= 0)
                set_field(&d, fields[i], cells[i], strlen(cells[i]));
        }
        MHA_TRY(mha_corpus_add(c, &d, err));
    }
}

/* ---------------------------------------------------------------------------------- .jsonl */

static mha_status json_field(mha_corpus *c, mha_corpus_document *d, int field, const json_t *value,
                             const char *where, mha_err *err)
{
    char number[32], *copy = NULL;
    const char *s = json_string_value(value);
    size_t n = json_string_length(value);
    if (!value || json_is_null(value))
        return MHA_OK;
    if (json_is_integer(value) && strcmp(field_names[field], "label") == 0) {
        n = (size_t)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        s = number;
    }
    if (!s)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: \"%s\" is not a string", where,
                        field_names[field]);
    MHA_TRY(mha_arena_strndup(&copy, &c->arena, s, n, err));
    set_field(d, field, copy, n);
    return MHA_OK;
}

static mha_status json_document(mha_corpus *c, const json_t *root, size_t line, const char *where,
                                mha_err *err)
{
    mha_corpus_document d = {.line = line};
    if (!json_is_object(root))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not an object", where);
    for (int i = 0; i < FIELDS; i++)
        MHA_TRY(json_field(c, &d, i, json_object_get(root, field_names[i]), where, err));
    if (!d.text)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: \"text\" is missing", where);
    return mha_corpus_add(c, &d, err);
}

static mha_status read_jsonl(mha_corpus *c, mha_lines *l, mha_err *err)
{
    for (bool more;;) {
        json_t *root = NULL;
        char where[512];
        MHA_TRY(mha_lines_next(l, &more, err));
        if (!more)
            return MHA_OK;
        if (is_blank(l)) {
            c->empty_lines++;
            continue;
        }
        snprintf(where, sizeof where, "%s: line %zu", l->file, l->number);
        MHA_TRY(mha_json_parse(&root, l->text, l->n, where, err));
        mha_status status = json_document(c, root, l->number, where, err);
        json_decref(root);
        MHA_TRY(status);
    }
}

/* ---------------------------------------------------------------------------------- .fasta */

/* Moves the line's letters to `to`, without spaces; returns the place behind them. */
static mha_status add_residues(mha_lines *l, char **to, mha_err *err)
{
    for (const char *p = l->text; *p; p++) {
        if (*p == ' ' || *p == '\t')
            continue;
        if (!isalpha((unsigned char)*p) && *p != '*' && *p != '-' && *p != '.')
            return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: '%c' in a sequence", l->file,
                            l->number, isprint((unsigned char)*p) ? *p : '?');
        *(*to)++ = *p;
    }
    return MHA_OK;
}

/* The sequence of a record is put together in place, over its own lines. */
static mha_status read_fasta(mha_corpus *c, mha_lines *l, mha_err *err)
{
    mha_corpus_document d = {0};
    char *start = NULL, *to = NULL;
    for (bool more = true; more;) {
        MHA_TRY(mha_lines_next(l, &more, err));
        if (more && l->text[0] != '>') {
            if (!start && !is_blank(l))
                return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: expected '>' and a name",
                                l->file, l->number);
            if (start)
                MHA_TRY(add_residues(l, &to, err));
            continue;
        }
        if (start) {
            *to = '\0';
            d.text = start;
            d.text_n = (size_t)(to - start);
            MHA_TRY(mha_corpus_add(c, &d, err));
        }
        if (more) {
            start = to = l->text;
            d.line = l->number;
        }
    }
    return MHA_OK;
}

/* ------------------------------------------------------------------------------------ files */

static mha_status read_kind(mha_corpus *c, mha_corpus_kind kind, size_t n, const char *file,
                            mha_err *err)
{
    mha_lines l = {.next = c->text, .end = c->text + n, .file = file};
    switch (kind) {
    case MHA_CORPUS_TXT:
        return read_txt(c, &l, err);
    case MHA_CORPUS_TSV:
        return read_tsv(c, &l, err);
    case MHA_CORPUS_JSONL:
        return read_jsonl(c, &l, err);
    case MHA_CORPUS_CONLLU:
        return mha_corpus_read_conllu(c, &l, err);
    case MHA_CORPUS_FASTA:
        return read_fasta(c, &l, err);
    case MHA_CORPUS_IDS_JSON:
        return mha_corpus_read_ids_json(c, c->text, n, file, err);
    }
    return mha_fail(err, MHA_ERR_INTERNAL, "%s: corpus kind %d", file, (int)kind);
}

mha_status mha_corpus_parse(mha_corpus **out, mha_corpus_kind kind, char *text, size_t n,
                            const char *file, mha_err *err)
{
    mha_corpus *c = NULL;
    mha_status status = mha_alloc((void **)&c, 1, sizeof *c, err);
    if (status != MHA_OK) {
        mha_free(text);
        return status;
    }
    c->text = text;
    if (!text) /* an empty file */
        status = mha_alloc((void **)&c->text, 1, 1, err);
    if (status == MHA_OK)
        status = read_kind(c, kind, n, file, err);
    if (status != MHA_OK) {
        mha_corpus_close(c);
        return status;
    }
    *out = c;
    return MHA_OK;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

static mha_status open_text(mha_corpus **out, mha_corpus_kind kind, const char *path,
                            uint64_t max_bytes, mha_err *err)
{
    char *text = NULL;
    size_t n = 0;
    MHA_TRY(mha_file_read(&text, &n, path, max_bytes, err));
    return mha_corpus_parse(out, kind, text, n, path, err);
}

mha_status mha_corpus_open(mha_corpus **out, const char *path, uint64_t max_bytes, mha_err *err)
{
    static const char *const suffixes[] = {".txt", ".tsv", ".jsonl", ".conllu", ".fasta"};
    for (int kind = 0; kind <= MHA_CORPUS_FASTA; kind++) {
        if (has_suffix(path, suffixes[kind]))
            return open_text(out, (mha_corpus_kind)kind, path,
                             max_bytes ? max_bytes : BYTES_DEFAULT, err);
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED,
                    "%s: the suffix is none of .txt .tsv .jsonl .conllu .fasta", path);
}

mha_status mha_corpus_open_ids(mha_corpus **out, const char *path, uint64_t max_bytes, mha_err *err)
{
    mha_filemap f;
    uint64_t most = max_bytes ? max_bytes : BYTES_DEFAULT;
    if (has_suffix(path, ".json"))
        return open_text(out, MHA_CORPUS_IDS_JSON, path, most, err);
    bool archive = has_suffix(path, ".npz");
    if (!archive && !has_suffix(path, ".npy"))
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the suffix is none of .npy .npz .json",
                        path);
    MHA_TRY(mha_filemap_open(&f, path, err));
    mha_status status = MHA_OK;
    if (f.size > most)
        status = mha_fail(err, MHA_ERR_LIMIT, "%s: larger than %llu bytes", path,
                          (unsigned long long)most);
    if (status == MHA_OK)
        status = mha_corpus_parse_numpy(out, archive, f.data, f.size, path, most, err);
    /* A file that shrank meanwhile has given zeros for ids. */
    if (status == MHA_OK) {
        status = mha_filemap_check(&f, err);
        if (status != MHA_OK) {
            mha_corpus_close(*out);
            *out = NULL;
        }
    }
    mha_filemap_close(&f);
    return status;
}

void mha_corpus_close(mha_corpus *c)
{
    if (!c)
        return;
    mha_free(c->documents);
    mha_arena_release(&c->arena);
    mha_free(c->text);
    mha_free(c);
}

size_t mha_corpus_count(const mha_corpus *c)
{
    return c->count;
}

mha_corpus_document mha_corpus_get(const mha_corpus *c, size_t i)
{
    return c->documents[i];
}

size_t mha_corpus_empty_lines(const mha_corpus *c)
{
    return c->empty_lines;
}
