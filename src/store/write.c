/* write.c: a table as JSON and as CSV, and the choice between the formats. It may not put anything
 * of the machine or the time into a file: the same table is the same bytes. Write errors are left
 * in the stream, where the output file's commit finds them. */
#include "store/number.h"
#include "store/table.h"

#include "base/fail.h"
#include "base/outfile.h"

#include <inttypes.h>
#include <string.h>

static void number_write(FILE *f, double value)
{
    char text[MHA_NUMBER_SIZE];
    fwrite(text, 1, mha_number_format(text, value, MHA_NUMBER_DIGITS), f);
}

static void ints_write(FILE *f, const mha_ints *ints, const char *between)
{
    for (size_t i = 0; i < ints->n; i++)
        fprintf(f, "%s%" PRId64, i ? between : "", ints->values[i]);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void cell_write_json(FILE *f, const mha_cell *cell, mha_column_type type)
{
    if (!cell->defined) {
        fputs("null", f);
        return;
    }
    switch (type) {
    case MHA_COLUMN_REAL:
        number_write(f, cell->as.real);
        break;
    case MHA_COLUMN_INT:
        fprintf(f, "%" PRId64, cell->as.integer);
        break;
    case MHA_COLUMN_TEXT:
        mha_number_json_text(f, cell->as.text);
        break;
    case MHA_COLUMN_INTS:
        fputc('[', f);
        ints_write(f, cell->as.ints, ", ");
        fputc(']', f);
        break;
    }
}

static void columns_write_json(const mha_table *t, FILE *f)
{
    for (size_t i = 0; i < t->column_count; i++) {
        fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", f);
        mha_number_json_text(f, t->columns[i].name);
        fputs(", \"unit\": ", f);
        mha_number_json_text(f, t->columns[i].unit);
        fputs(", \"description\": ", f);
        mha_number_json_text(f, t->columns[i].description);
        fputc('}', f);
    }
}

static void row_write_json(const mha_table *t, size_t row, FILE *f)
{
    fputc('{', f);
    for (size_t i = 0; i < t->column_count; i++) {
        if (i)
            fputs(", ", f);
        mha_number_json_text(f, t->columns[i].name);
        fputs(": ", f);
        cell_write_json(f, mha_table_cell(t, row, i), t->columns[i].type);
    }
    fputc('}', f);
}

/* One section, column or row a line: a person can read it, and so can diff. */
void mha_table_write_json(const mha_table *t, FILE *f)
{
    fputs("{\n  \"schema\": \"mha-inspect/", f);
    fputs(t->command, f);
    fputs("/1\"", f);
    for (const mha_meta_entry *e = t->sections->first; e; e = e->next) {
        fputs(",\n  ", f);
        mha_number_json_text(f, e->name);
        fputs(": ", f);
        mha_meta_write(e->as.node, f);
    }
    fputs(",\n  \"columns\": [", f);
    columns_write_json(t, f);
    fputs(t->column_count ? "\n  ],\n  \"rows\": [" : "],\n  \"rows\": [", f);
    for (size_t row = 0; row < t->rows; row++) {
        fputs(row ? ",\n    " : "\n    ", f);
        row_write_json(t, row, f);
    }
    fputs(t->rows ? "\n  ]\n}\n" : "]\n}\n", f);
}

/* --- CSV ------------------------------------------------------------------------------------- */

/* An empty text is quoted, since an empty field is an undefined one. */
static void text_write_csv(FILE *f, const char *s)
{
    if (*s && !strpbrk(s, ",\"\r\n")) {
        fputs(s, f);
        return;
    }
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static void cell_write_csv(FILE *f, const mha_cell *cell, mha_column_type type)
{
    if (!cell->defined)
        return;
    switch (type) {
    case MHA_COLUMN_REAL:
        number_write(f, cell->as.real);
        break;
    case MHA_COLUMN_INT:
        fprintf(f, "%" PRId64, cell->as.integer);
        break;
    case MHA_COLUMN_TEXT:
        text_write_csv(f, cell->as.text);
        break;
    case MHA_COLUMN_INTS:
        ints_write(f, cell->as.ints, " ");
        break;
    }
}

void mha_table_write_csv(const mha_table *t, FILE *f)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (i)
            fputc(',', f);
        text_write_csv(f, t->columns[i].name);
    }
    fputc('\n', f);
    for (size_t row = 0; row < t->rows; row++) {
        for (size_t i = 0; i < t->column_count; i++) {
            if (i)
                fputc(',', f);
            cell_write_csv(f, mha_table_cell(t, row, i), t->columns[i].type);
        }
        fputc('\n', f);
    }
}

/* --- files ----------------------------------------------------------------------------------- */

mha_status mha_table_write(const mha_table *t, const char *path, mha_format format, bool force,
                           const mha_text_style *style, mha_err *err)
{
    static const mha_text_style plain;
    mha_status status = MHA_OK;
    mha_outfile file;
    if (format == MHA_FORMAT_AUTO)
        format = strcmp(path, "-") == 0 ? MHA_FORMAT_TEXT : mha_format_of_path(path);
    if (format == MHA_FORMAT_AUTO)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s: the suffix names no format: expected .json, .csv or .txt", path);
    if (format != MHA_FORMAT_JSON && format != MHA_FORMAT_CSV && format != MHA_FORMAT_TEXT)
        return mha_fail(err, MHA_ERR_ARG, "%s: a table is written as json, csv or text, not as %s",
                        path, mha_format_name(format));
    MHA_TRY(mha_outfile_open(&file, path, force, err));
    if (format == MHA_FORMAT_JSON)
        mha_table_write_json(t, file.stream);
    else if (format == MHA_FORMAT_CSV)
        mha_table_write_csv(t, file.stream);
    else
        status = mha_table_write_text(t, style ? style : &plain, file.stream, err);
    if (status == MHA_OK)
        return mha_outfile_commit(&file, err);
    mha_outfile_abort(&file);
    return status;
}
