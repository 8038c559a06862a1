/* mha/table.h: results as tables and arrays, and the files they are written to.
 *
 * A table has columns (name, unit, description), rows, and metadata in sections: tool, model,
 * input, settings, checks. JSON holds all of it, CSV and text the columns and rows. The same table
 * gives the same bytes wherever it is written: numbers have nine significant digits, sections and
 * their entries keep the order in which they were added, and nothing of the machine goes in.
 *
 * Files appear whole or not at all; "-" is standard output; an existing file is an error without
 * `force`. A table belongs to one thread at a time. */
#ifndef MHA_TABLE_H
#define MHA_TABLE_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- formats ------------------------------------------------------------------------------- */

typedef enum mha_format {
    MHA_FORMAT_AUTO = 0, /* by the path's suffix */
    MHA_FORMAT_JSON,
    MHA_FORMAT_CSV,
    MHA_FORMAT_TEXT, /* suffix .txt */
    MHA_FORMAT_NPZ,
    MHA_FORMAT_NPY,
    MHA_FORMAT_SAFETENSORS,
    MHA_FORMAT_PNG,
    MHA_FORMAT_PDF,
    MHA_FORMAT_SVG,
    MHA_FORMAT_HTML,
    MHA_FORMAT_COUNT
} mha_format;

/* The name that --format takes, e.g. "json"; "auto" for MHA_FORMAT_AUTO. */
const char *mha_format_name(mha_format f);
/* The format of a name; MHA_FORMAT_AUTO when there is none of that name. */
mha_format mha_format_named(const char *name);
/* The format of a path's suffix, in any case; MHA_FORMAT_AUTO when the suffix says nothing. */
mha_format mha_format_of_path(const char *path);

/* --- metadata ------------------------------------------------------------------------------ */

/* An ordered list of entries, each with a name (in an object) or without (in a list). Names and
 * texts are copied. Adding a name again replaces its value and keeps its place. */
typedef struct mha_meta mha_meta;

/* `name` is NULL exactly when m is a list. A real that is NaN or infinite is stored as null; a
 * NULL text too. */
mha_status mha_meta_text(mha_meta *m, const char *name, const char *value, mha_err *err);
mha_status mha_meta_int(mha_meta *m, const char *name, int64_t value, mha_err *err);
mha_status mha_meta_real(mha_meta *m, const char *name, double value, mha_err *err);
mha_status mha_meta_bool(mha_meta *m, const char *name, bool value, mha_err *err);
/* A new, empty object or list below m; *out belongs to m. */
mha_status mha_meta_object(mha_meta **out, mha_meta *m, const char *name, mha_err *err);
mha_status mha_meta_list(mha_meta **out, mha_meta *m, const char *name, mha_err *err);

/* Reading: false when there is no entry of that name, or it is of another type. An integer is also
 * a real. The text and the child are borrowed. */
bool mha_meta_get_text(const mha_meta *m, const char *name, const char **out);
bool mha_meta_get_int(const mha_meta *m, const char *name, int64_t *out);
bool mha_meta_get_real(const mha_meta *m, const char *name, double *out);
bool mha_meta_get_bool(const mha_meta *m, const char *name, bool *out);
const mha_meta *mha_meta_get(const mha_meta *m, const char *name); /* an object or list, or NULL */

/* --- tables -------------------------------------------------------------------------------- */

typedef enum mha_column_type {
    MHA_COLUMN_REAL = 0,
    MHA_COLUMN_INT,
    MHA_COLUMN_TEXT,
    MHA_COLUMN_INTS, /* a list of integers: [1, 2] in JSON, "1 2" in CSV and text */
} mha_column_type;

typedef struct mha_column {
    const char *name;        /* as in the contract, e.g. "entropy_norm" */
    const char *unit;        /* e.g. "nats", "tokens"; "" when there is none */
    const char *description; /* one sentence */
    mha_column_type type;
} mha_column;

typedef struct mha_table mha_table;

#define MHA_NO_COLUMN SIZE_MAX

/* `command` names the schema: "mha-inspect/COMMAND/1". The columns are copied. */
mha_status mha_table_new(mha_table **out, const char *command, const mha_column *columns,
                         size_t count, mha_err *err);
void mha_table_free(mha_table *t);

/* The section of that name, made when it is not there yet; *out belongs to t. JSON has tool, model,
 * input, settings and checks always and in this order, then any others in the order they came. */
mha_status mha_table_section(mha_meta **out, mha_table *t, const char *name, mha_err *err);

/* Adds a row whose cells are all undefined. The setters below write to the last row. */
mha_status mha_table_add_row(mha_table *t, mha_err *err);
/* The column must be of that type (an assert). A real that is NaN or infinite is undefined. */
void mha_table_set_real(mha_table *t, size_t column, double value);
void mha_table_set_int(mha_table *t, size_t column, int64_t value);
mha_status mha_table_set_text(mha_table *t, size_t column, const char *value, mha_err *err);
mha_status mha_table_set_ints(mha_table *t, size_t column, const int64_t *values, size_t n,
                              mha_err *err);

const char *mha_table_command(const mha_table *t);
size_t mha_table_rows(const mha_table *t);
size_t mha_table_columns(const mha_table *t);
const mha_column *mha_table_column(const mha_table *t, size_t column);
/* The index of the column of that name, or MHA_NO_COLUMN. */
size_t mha_table_find(const mha_table *t, const char *name);
const mha_meta *mha_table_get_section(const mha_table *t, const char *name); /* or NULL */

/* A cell's value. An undefined cell is NaN, false or NULL. An integer is also a real. */
double mha_table_get_real(const mha_table *t, size_t row, size_t column);
bool mha_table_get_int(const mha_table *t, size_t row, size_t column, int64_t *out);
const char *mha_table_get_text(const mha_table *t, size_t row, size_t column);
/* [n], borrowed; n = 0 and NULL when undefined. */
const int64_t *mha_table_get_ints(const mha_table *t, size_t row, size_t column, size_t *n);

/* Sorts the rows by one column, stably; undefined cells go last in either direction. Texts are
 * compared by bytes, lists of integers element by element. */
mha_status mha_table_sort(mha_table *t, size_t column, bool descending, mha_err *err);
/* Keeps the first `rows` rows. */
void mha_table_cut(mha_table *t, size_t rows);

/* How a table is laid out as text. Zero-initialised: as for a pipe, every column on one line. */
typedef struct mha_text_style {
    bool terminal;   /* for a person at a terminal: names may break over lines; columns that are
                        undefined throughout are left out; where there is no room, so are those
                        that are the same in every row (said once below the table) and then others
                        (named there); and one column has a bar in each row */
    bool color;      /* ANSI colours; the caller looks at NO_COLOR */
    bool ascii;      /* bars of '#' in place of block elements */
    size_t width;    /* columns of the terminal, 0: as wide as needed */
    const char *bar; /* name of the column that is drawn as a bar; NULL: none */
} mha_text_style;

/* JSON has one section, column or row a line. CSV is that of RFC 4180 with LF line ends, in UTF-8.
 * format: JSON, CSV or TEXT, or AUTO; AUTO on "-" is TEXT. Other formats are MHA_ERR_ARG.
 * `style` is for text and may be NULL. */
mha_status mha_table_write(const mha_table *t, const char *path, mha_format format, bool force,
                           const mha_text_style *style, mha_err *err);

/* Reads a table back from what mha_table_write wrote as JSON or CSV (by suffix; otherwise JSON when
 * the first byte is '{'). CSV has no command (""), units, descriptions or sections. A column's type
 * is that of its values: an undefined column is real. A real column that holds whole numbers only
 * comes back as integers, which mha_table_get_real reads just the same. MHA_ERR_FORMAT: broken. */
mha_status mha_table_open(mha_table **out, const char *path, mha_err *err);

/* --- arrays -------------------------------------------------------------------------------- */

typedef enum mha_array_type { MHA_ARRAY_F32 = 0, MHA_ARRAY_I64, MHA_ARRAY_F64 } mha_array_type;

/* A file of named arrays in C order: NPZ (stored, not compressed), safetensors, or NPY, which takes
 * one array and drops its name. First declare every array, then write their elements in the order
 * of declaration, each in as many pieces as is convenient: no array has to be in memory whole. */
typedef struct mha_arrays mha_arrays;

mha_status mha_arrays_open(mha_arrays **out, const char *path, mha_format format, bool force,
                           mha_err *err);
/* At most 8 dimensions. MHA_ERR_ARG: the name is there already, or a second array for NPY. */
mha_status mha_arrays_declare(mha_arrays *a, const char *name, mha_array_type type,
                              const size_t *shape, size_t dims, mha_err *err);
/* The next n elements of the declared arrays; a piece may not cross from one array to the next. */
mha_status mha_arrays_write(mha_arrays *a, const void *elements, size_t n, mha_err *err);
/* Finishes the file, and frees a in any case. MHA_ERR_ARG: elements are missing. */
mha_status mha_arrays_commit(mha_arrays *a, mha_err *err);
/* Drops what was written and frees a. NULL is fine. */
void mha_arrays_abort(mha_arrays *a);

#ifdef __cplusplus
}
#endif
#endif
