/* table.c: tables in memory: making, filling, reading, sorting. It may not know how a table looks
 * in a file. */
#include "store/table.h"

#include "store/number.h"

#include "base/fail.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const mha_table_sections[] = {"tool", "model", "input", "settings", "checks", NULL};

static mha_status table_fill(mha_table *t, const char *command, const mha_column *columns,
                             size_t count, mha_err *err)
{
    void *p = NULL;
    mha_meta *section = NULL;
    MHA_TRY(mha_text_clean(&t->command, &t->arena, command, err));
    MHA_TRY(mha_arena_alloc(&p, &t->arena, count, sizeof *columns, err));
    t->columns = p;
    t->column_count = count;
    for (size_t i = 0; i < count; i++) {
        char *name = NULL, *unit = NULL, *description = NULL;
        MHA_TRY(mha_text_clean(&name, &t->arena, columns[i].name, err));
        MHA_TRY(mha_text_clean(&unit, &t->arena, columns[i].unit, err));
        MHA_TRY(mha_text_clean(&description, &t->arena, columns[i].description, err));
        t->columns[i] = (mha_column){name, unit, description, columns[i].type};
    }
    MHA_TRY(mha_meta_new(&t->sections, &t->arena, false, err));
    for (const char *const *name = mha_table_sections; *name; name++)
        MHA_TRY(mha_meta_object(&section, t->sections, *name, err));
    return MHA_OK;
}

mha_status mha_table_new(mha_table **out, const char *command, const mha_column *columns,
                         size_t count, mha_err *err)
{
    void *t = NULL;
    MHA_TRY(mha_alloc(&t, 1, sizeof **out, err));
    mha_status status = table_fill(t, command, columns, count, err);
    if (status != MHA_OK) {
        mha_table_free(t);
        return status;
    }
    *out = t;
    return MHA_OK;
}

void mha_table_free(mha_table *t)
{
    if (!t)
        return;
    mha_free(t->cells);
    mha_arena_release(&t->arena);
    mha_free(t);
}

mha_status mha_table_section(mha_meta **out, mha_table *t, const char *name, mha_err *err)
{
    mha_meta_entry *e = mha_meta_find(t->sections, name);
    if (!e)
        return mha_meta_object(out, t->sections, name, err);
    *out = e->as.node;
    return MHA_OK;
}

const mha_meta *mha_table_get_section(const mha_table *t, const char *name)
{
    return mha_meta_get(t->sections, name);
}

mha_status mha_table_add_row(mha_table *t, mha_err *err)
{
    if (t->rows == t->capacity) {
        size_t more = t->capacity ? 2 * t->capacity : 16, row;
        void *cells = t->cells;
        if (mha_mul_overflows(t->column_count, sizeof *t->cells, &row))
            return mha_fail(err, MHA_ERR_NOMEM, "a table of %zu columns", t->column_count);
        MHA_TRY(mha_grow(&cells, t->rows, more, row, err));
        t->cells = cells;
        t->capacity = more;
    }
    t->rows++;
    return MHA_OK;
}

const mha_cell *mha_table_cell(const mha_table *t, size_t row, size_t column)
{
    assert(row < t->rows && column < t->column_count);
    return &t->cells[row * t->column_count + column];
}

static mha_cell *last_cell(mha_table *t, size_t column, mha_column_type type)
{
    assert(t->rows > 0 && column < t->column_count && t->columns[column].type == type);
    (void)type;
    return &t->cells[(t->rows - 1) * t->column_count + column];
}

void mha_table_set_real(mha_table *t, size_t column, double value)
{
    mha_cell *cell = last_cell(t, column, MHA_COLUMN_REAL);
    cell->defined = isfinite(value);
    cell->as.real = value;
}

void mha_table_set_int(mha_table *t, size_t column, int64_t value)
{
    mha_cell *cell = last_cell(t, column, MHA_COLUMN_INT);
    cell->defined = true;
    cell->as.integer = value;
}

mha_status mha_table_set_text(mha_table *t, size_t column, const char *value, mha_err *err)
{
    mha_cell *cell = last_cell(t, column, MHA_COLUMN_TEXT);
    char *copy = NULL;
    cell->defined = false;
    if (!value)
        return MHA_OK;
    MHA_TRY(mha_text_clean(&copy, &t->arena, value, err));
    cell->as.text = copy;
    cell->defined = true;
    return MHA_OK;
}

mha_status mha_table_set_ints(mha_table *t, size_t column, const int64_t *values, size_t n,
                              mha_err *err)
{
    mha_cell *cell = last_cell(t, column, MHA_COLUMN_INTS);
    void *p = NULL;
    size_t size;
    cell->defined = false;
    if (mha_mul_overflows(n, sizeof *values, &size) ||
        mha_add_overflows(size, sizeof(mha_ints), &size))
        return mha_fail(err, MHA_ERR_NOMEM, "a list of %zu integers", n);
    MHA_TRY(mha_arena_alloc(&p, &t->arena, size, 1, err));
    mha_ints *ints = p;
    ints->n = n;
    if (n > 0)
        memcpy(ints->values, values, n * sizeof *values);
    cell->as.ints = ints;
    cell->defined = true;
    return MHA_OK;
}

const char *mha_table_command(const mha_table *t)
{
    return t->command;
}

size_t mha_table_rows(const mha_table *t)
{
    return t->rows;
}

size_t mha_table_columns(const mha_table *t)
{
    return t->column_count;
}

const mha_column *mha_table_column(const mha_table *t, size_t column)
{
    assert(column < t->column_count);
    return &t->columns[column];
}

size_t mha_table_find(const mha_table *t, const char *name)
{
    for (size_t i = 0; i < t->column_count; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return i;
    return MHA_NO_COLUMN;
}

double mha_table_get_real(const mha_table *t, size_t row, size_t column)
{
    const mha_cell *cell = mha_table_cell(t, row, column);
    if (!cell->defined)
        return (double)NAN;
    switch (t->columns[column].type) {
    case MHA_COLUMN_REAL:
        return cell->as.real;
    case MHA_COLUMN_INT:
        return (double)cell->as.integer;
    default:
        return (double)NAN;
    }
}

bool mha_table_get_int(const mha_table *t, size_t row, size_t column, int64_t *out)
{
    const mha_cell *cell = mha_table_cell(t, row, column);
    if (!cell->defined || t->columns[column].type != MHA_COLUMN_INT)
        return false;
    *out = cell->as.integer;
    return true;
}

const char *mha_table_get_text(const mha_table *t, size_t row, size_t column)
{
    const mha_cell *cell = mha_table_cell(t, row, column);
    return cell->defined && t->columns[column].type == MHA_COLUMN_TEXT ? cell->as.text : NULL;
}

const int64_t *mha_table_get_ints(const mha_table *t, size_t row, size_t column, size_t *n)
{
    const mha_cell *cell = mha_table_cell(t, row, column);
    bool there = cell->defined && t->columns[column].type == MHA_COLUMN_INTS;
    *n = there ? cell->as.ints->n : 0;
    return there ? cell->as.ints->values : NULL;
}

/* --- sorting --------------------------------------------------------------------------------- */

/* qsort is not stable: the row's old place decides between equals. */
struct sort_key {
    const mha_cell *cell;
    size_t row;
    mha_column_type type;
    int sign;
};

static int ints_compare(const mha_ints *a, const mha_ints *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

int mha_cell_compare(const mha_cell *a, const mha_cell *b, mha_column_type type)
{
    switch (type) {
    case MHA_COLUMN_REAL:
        return (a->as.real > b->as.real) - (a->as.real < b->as.real);
    case MHA_COLUMN_INT:
        return (a->as.integer > b->as.integer) - (a->as.integer < b->as.integer);
    case MHA_COLUMN_TEXT:
        return strcmp(a->as.text, b->as.text);
    case MHA_COLUMN_INTS:
        return ints_compare(a->as.ints, b->as.ints);
    }
    return 0;
}

static int key_compare(const void *pa, const void *pb)
{
    const struct sort_key *a = pa, *b = pb;
    int order = 0;
    if (a->cell->defined != b->cell->defined)
        return a->cell->defined ? -1 : 1;
    if (a->cell->defined)
        order = a->sign * mha_cell_compare(a->cell, b->cell, a->type);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

mha_status mha_table_sort(mha_table *t, size_t column, bool descending, mha_err *err)
{
    assert(column < t->column_count);
    void *p = NULL, *cells = NULL;
    size_t width = t->column_count * sizeof *t->cells;
    if (t->rows == 0)
        return MHA_OK;
    MHA_TRY(mha_alloc(&p, t->rows, sizeof(struct sort_key), err));
    struct sort_key *keys = p;
    mha_status status = mha_alloc(&cells, t->capacity, width, err);
    if (status != MHA_OK) {
        mha_free(keys);
        return status;
    }
    for (size_t i = 0; i < t->rows; i++)
        keys[i] = (struct sort_key){mha_table_cell(t, i, column), i, t->columns[column].type,
                                    descending ? -1 : 1};
    qsort(keys, t->rows, sizeof *keys, key_compare);
    for (size_t i = 0; i < t->rows; i++)
        memcpy((char *)cells + i * width, (const char *)t->cells + keys[i].row * width, width);
    mha_free(t->cells);
    t->cells = cells;
    mha_free(keys);
    return MHA_OK;
}

void mha_table_cut(mha_table *t, size_t rows)
{
    if (rows >= t->rows)
        return;
    /* Rows that are added later start out undefined. */
    memset(t->cells + rows * t->column_count, 0,
           (t->rows - rows) * t->column_count * sizeof *t->cells);
    t->rows = rows;
}
