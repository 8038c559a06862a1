/* csv.c: a table back from CSV as RFC 4180 has it, with CRLF or LF. CSV has no types: a column gets
 * the narrowest one that holds its fields. A field is cut out of the text once, and kept as a piece
 * of an arena; nothing is read past the end that the caller gives. */
#include "store/table.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX ((size_t)4096)

typedef struct csv_field {
    const char *text;
    bool quoted; /* "" is an empty text, nothing at all is undefined */
} csv_field;

typedef struct csv {
    const char *text, *file;
    size_t n, at, line;
    mha_buf piece; /* the field being read */
    mha_arena arena;
    csv_field *fields; /* [rows, columns] of all records, the header first */
    size_t count, capacity, columns;
    locale_t plain; /* numbers with '.', whatever the program's locale is */
} csv;

static mha_status field_keep(csv *c, bool quoted, mha_err *err)
{
    char *copy = NULL;
    if (c->count == c->capacity) {
        size_t more = c->capacity ? 2 * c->capacity : 64;
        void *fields = c->fields;
        MHA_TRY(mha_grow(&fields, c->count, more, sizeof *c->fields, err));
        c->fields = fields;
        c->capacity = more;
    }
    if (memchr(c->piece.data ? c->piece.data : "", '\0', c->piece.size))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: a NUL byte", c->file, c->line);
    MHA_TRY(mha_arena_strndup(&copy, &c->arena, c->piece.data ? c->piece.data : "", c->piece.size,
                              err));
    c->fields[c->count++] = (csv_field){copy, quoted};
    mha_buf_clear(&c->piece);
    return MHA_OK;
}

/* The inside of a quoted field, up to and with its closing quote. */
static mha_status quoted_read(csv *c, mha_err *err)
{
    size_t first = c->line;
    for (c->at++; c->at < c->n; c->at++) {
        char ch = c->text[c->at];
        if (ch == '"' && (c->at + 1 == c->n || c->text[c->at + 1] != '"')) {
            c->at++;
            return MHA_OK;
        }
        if (ch == '"')
            c->at++;
        if (ch == '\n')
            c->line++;
        MHA_TRY(mha_buf_add(&c->piece, &ch, 1, err));
    }
    return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: a quoted field without an end", c->file,
                    first);
}

/* true at the end of a record; c->at is then behind its line end. */
static bool record_ends(csv *c)
{
    if (c->at == c->n)
        return true;
    if (c->text[c->at] == '\r' && c->at + 1 < c->n && c->text[c->at + 1] == '\n')
        c->at++;
    if (c->text[c->at] != '\n')
        return false;
    c->at++;
    c->line++;
    return true;
}

static mha_status field_read(csv *c, mha_err *err)
{
    bool quoted = c->at < c->n && c->text[c->at] == '"';
    if (quoted)
        MHA_TRY(quoted_read(c, err));
    size_t start = c->at;
    while (c->at < c->n && !strchr(",\n\r\"", c->text[c->at]))
        c->at++;
    if ((quoted && c->at > start) || (c->at < c->n && c->text[c->at] == '"'))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: a quote in the middle of a field",
                        c->file, c->line);
    if (c->at > start)
        MHA_TRY(mha_buf_add(&c->piece, c->text + start, c->at - start, err));
    return field_keep(c, quoted, err);
}

static mha_status record_read(csv *c, mha_err *err)
{
    size_t first = c->count, line = c->line;
    for (;;) {
        MHA_TRY(field_read(c, err));
        if (record_ends(c))
            break;
        if (c->text[c->at] != ',')
            return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: a lone carriage return", c->file,
                            c->line);
        c->at++;
        if (c->count - first > COLUMNS_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "%s: line %zu: more than %zu fields", c->file, line,
                            COLUMNS_MAX);
    }
    if (first == 0)
        c->columns = c->count;
    if (c->count - first != c->columns)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: expected %zu fields, found %zu",
                        c->file, line, c->columns, c->count - first);
    return MHA_OK;
}

static bool field_int(const csv_field *f, int64_t *out)
{
    char *end = NULL;
    if (!(*f->text == '-' || (*f->text >= '0' && *f->text <= '9')))
        return false;
    errno = 0;
    *out = strtoll(f->text, &end, 10);
    return errno == 0 && end != f->text && *end == '\0';
}

static bool field_real(const csv *c, const csv_field *f, double *out)
{
    char *end = NULL;
    if (!(*f->text == '-' || *f->text == '.' || (*f->text >= '0' && *f->text <= '9')))
        return false;
    if (strpbrk(f->text, "xXpPnN"))
        return false;
    *out = strtod_l(f->text, &end, c->plain);
    return end != f->text && *end == '\0' && isfinite(*out);
}

static const csv_field *field_at(const csv *c, size_t row, size_t column)
{
    return &c->fields[row * c->columns + column];
}

static bool field_undefined(const csv_field *f)
{
    return !f->quoted && *f->text == '\0';
}

static mha_column_type column_type(const csv *c, size_t column)
{
    bool some = false, integer = true;
    for (size_t row = 1; row < c->count / c->columns; row++) {
        const csv_field *f = field_at(c, row, column);
        int64_t i;
        double r;
        if (field_undefined(f))
            continue;
        some = true;
        if (f->quoted || !field_real(c, f, &r))
            return MHA_COLUMN_TEXT;
        integer = integer && field_int(f, &i);
    }
    return some && integer ? MHA_COLUMN_INT : MHA_COLUMN_REAL;
}

static mha_status columns_make(mha_table **out, const csv *c, mha_err *err)
{
    void *p = NULL;
    mha_status status = MHA_OK;
    MHA_TRY(mha_alloc(&p, c->columns, sizeof(mha_column), err));
    mha_column *columns = p;
    for (size_t i = 0; i < c->columns && status == MHA_OK; i++) {
        const char *name = field_at(c, 0, i)->text;
        columns[i] = (mha_column){name, "", "", column_type(c, i)};
        if (*name == '\0')
            status =
                mha_fail(err, MHA_ERR_FORMAT, "%s: line 1: column %zu has no name", c->file, i + 1);
        for (size_t k = 0; k < i && status == MHA_OK; k++)
            if (strcmp(columns[k].name, name) == 0)
                status = mha_fail(err, MHA_ERR_FORMAT, "%s: column %s comes twice", c->file, name);
    }
    if (status == MHA_OK)
        status = mha_table_new(out, "", columns, c->columns, err);
    mha_free(columns);
    return status;
}

static mha_status row_make(mha_table *t, const csv *c, size_t row, mha_err *err)
{
    MHA_TRY(mha_table_add_row(t, err));
    for (size_t i = 0; i < c->columns; i++) {
        const csv_field *f = field_at(c, row, i);
        int64_t integer = 0;
        double real = 0;
        if (field_undefined(f))
            continue;
        if (t->columns[i].type == MHA_COLUMN_TEXT)
            MHA_TRY(mha_table_set_text(t, i, f->text, err));
        else if (t->columns[i].type == MHA_COLUMN_INT && field_int(f, &integer))
            mha_table_set_int(t, i, integer);
        else if (field_real(c, f, &real))
            mha_table_set_real(t, i, real);
    }
    return MHA_OK;
}

static mha_status csv_read(mha_table **out, csv *c, mha_err *err)
{
    mha_table *t = NULL;
    if (c->n >= 3 && memcmp(c->text, "\xEF\xBB\xBF", 3) == 0)
        c->at = 3;
    if (c->at == c->n)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: empty: expected a line with column names",
                        c->file);
    while (c->at < c->n)
        MHA_TRY(record_read(c, err));
    MHA_TRY(columns_make(&t, c, err));
    for (size_t row = 1; row < c->count / c->columns; row++) {
        mha_status status = row_make(t, c, row, err);
        if (status != MHA_OK) {
            mha_table_free(t);
            return status;
        }
    }
    *out = t;
    return MHA_OK;
}

mha_status mha_table_read_csv(mha_table **out, const char *text, size_t n, const char *name,
                              mha_err *err)
{
    if (!mha_utf8_valid(text, n))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not UTF-8", name);
    csv c = {.text = text, .file = name, .n = n, .line = 1};
    mha_buf_init(&c.piece, n);
    c.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    mha_status status = c.plain == (locale_t)0
                            ? mha_fail(err, MHA_ERR_NOMEM, "%s: no C locale", name)
                            : csv_read(out, &c, err);
    if (c.plain != (locale_t)0)
        freelocale(c.plain);
    mha_buf_release(&c.piece);
    mha_arena_release(&c.arena);
    mha_free(c.fields);
    return status;
}
