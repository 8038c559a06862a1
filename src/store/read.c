/* read.c: a table back from its JSON. The file is somebody's input: everything in it is checked,
 * and nothing in it is taken for what this program would have written. */
#include "store/number.h"
#include "store/table.h"

#include "base/fail.h"
#include "base/filemap.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

#define TABLE_FILE_MAX ((size_t)256 << 20)
#define COLUMNS_MAX    ((size_t)4096)
#define SECTIONS_MAX   ((size_t)64)
#define CELLS_MAX      ((size_t)1 << 25) /* a row costs the file three bytes, and memory more */

/* Fills m from `from`, a JSON object or list. Names come once, as the parser has made sure, so they
 * are not looked up: that would take quadratic time. Recursion is bounded: the parser refuses deep
 * nesting. */
static mha_status meta_read(mha_meta *m, const json_t *from, mha_err *err);

static mha_status meta_read_value(mha_meta *m, const char *name, const json_t *value, mha_err *err)
{
    mha_meta_entry *e = NULL;
    char *text = NULL;
    MHA_TRY(mha_meta_append(&e, m, name, err));
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        MHA_TRY(mha_meta_new(&e->as.node, m->arena, json_is_array(value), err));
        e->type = META_NODE;
        return meta_read(e->as.node, value, err);
    case JSON_STRING:
        MHA_TRY(mha_text_clean(&text, m->arena, json_string_value(value), err));
        e->as.text = text;
        e->type = META_TEXT;
        break;
    case JSON_INTEGER:
        e->as.integer = json_integer_value(value);
        e->type = META_INT;
        break;
    case JSON_REAL:
        e->as.real = json_real_value(value);
        e->type = isfinite(e->as.real) ? META_REAL : META_NULL;
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        e->as.boolean = json_is_true(value);
        e->type = META_BOOL;
        break;
    case JSON_NULL:
        break;
    }
    return MHA_OK;
}

static mha_status meta_read(mha_meta *m, const json_t *from, mha_err *err)
{
    if (json_is_array(from)) {
        for (size_t i = 0; i < json_array_size(from); i++)
            MHA_TRY(meta_read_value(m, NULL, json_array_get(from, i), err));
        return MHA_OK;
    }
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from, name, value)
        MHA_TRY(meta_read_value(m, name, value, err));
    return MHA_OK;
}

/* true when every value of the list is an integer. */
static bool is_integers(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(json_array_get(list, i)))
            return false;
    return true;
}

/* The narrowest type that holds all values of a column. */
static mha_status column_type(mha_column *column, const json_t *rows, const char *file,
                              mha_err *err)
{
    bool real = false, integer = false, text = false, ints = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *v = json_object_get(json_array_get(rows, i), column->name);
        if (!v || json_is_null(v))
            continue;
        if (json_is_integer(v))
            integer = true;
        else if (json_is_real(v))
            real = true;
        else if (json_is_string(v))
            text = true;
        else if (json_is_array(v) && is_integers(v))
            ints = true;
        else
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: row %zu: %s: expected a number, a text or a list of integers",
                            file, i, column->name);
    }
    if (text + ints + (real || integer) > 1)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: column %s: values of different types", file,
                        column->name);
    column->type = text               ? MHA_COLUMN_TEXT
                   : ints             ? MHA_COLUMN_INTS
                   : integer && !real ? MHA_COLUMN_INT
                                      : MHA_COLUMN_REAL;
    return MHA_OK;
}

static mha_status column_read(mha_column *columns, size_t i, const json_t *root, const char *file,
                              mha_err *err)
{
    const json_t *from = json_array_get(json_object_get(root, "columns"), i);
    const char *name = json_string_value(json_object_get(from, "name"));
    const char *unit = json_string_value(json_object_get(from, "unit"));
    const char *description = json_string_value(json_object_get(from, "description"));
    if (!name || !*name)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: columns[%zu]: expected an object with a name",
                        file, i);
    for (size_t k = 0; k < i; k++)
        if (strcmp(columns[k].name, name) == 0)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: column %s comes twice", file, name);
    columns[i] =
        (mha_column){name, unit ? unit : "", description ? description : "", MHA_COLUMN_REAL};
    return column_type(&columns[i], json_object_get(root, "rows"), file, err);
}

static mha_status ints_read(mha_table *t, size_t column, const json_t *list, mha_err *err)
{
    void *p = NULL;
    size_t n = json_array_size(list);
    MHA_TRY(mha_alloc(&p, n, sizeof(int64_t), err));
    int64_t *values = p;
    for (size_t i = 0; i < n; i++)
        values[i] = json_integer_value(json_array_get(list, i));
    mha_status status = mha_table_set_ints(t, column, values, n, err);
    mha_free(values);
    return status;
}

static mha_status row_read(mha_table *t, const json_t *row, mha_err *err)
{
    MHA_TRY(mha_table_add_row(t, err));
    for (size_t i = 0; i < t->column_count; i++) {
        const json_t *v = json_object_get(row, t->columns[i].name);
        if (!v || json_is_null(v))
            continue;
        switch (t->columns[i].type) {
        case MHA_COLUMN_REAL:
            mha_table_set_real(t, i, json_number_value(v));
            break;
        case MHA_COLUMN_INT:
            mha_table_set_int(t, i, json_integer_value(v));
            break;
        case MHA_COLUMN_TEXT:
            MHA_TRY(mha_table_set_text(t, i, json_string_value(v), err));
            break;
        case MHA_COLUMN_INTS:
            MHA_TRY(ints_read(t, i, v, err));
            break;
        }
    }
    return MHA_OK;
}

/* Objects other than the known keys are sections. */
static mha_status sections_read(mha_table *t, const json_t *root, mha_err *err)
{
    const char *name;
    json_t *value;
    mha_meta *section = NULL;
    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        if (!json_is_object(value))
            continue;
        MHA_TRY(mha_table_section(&section, t, name, err));
        MHA_TRY(meta_read(section, value, err));
    }
    return MHA_OK;
}

/* *command = what stands between "mha-inspect/" and "/1". */
static mha_status schema_read(char **command, const json_t *root, const char *file, mha_err *err)
{
    static const char start[] = "mha-inspect/", end[] = "/1";
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not a table of this program: no schema", file);
    size_t n = strlen(schema), outer = sizeof start - 1 + sizeof end - 1;
    if (n <= outer || strncmp(schema, start, sizeof start - 1) != 0 ||
        strcmp(schema + n - (sizeof end - 1), end) != 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: schema: expected \"mha-inspect/COMMAND/1\", found \"%s\"", file,
                        schema);
    return mha_strndup(command, schema + sizeof start - 1, n - outer, err);
}

static mha_status shape_check(const json_t *root, const char *file, mha_err *err)
{
    const json_t *columns = json_object_get(root, "columns"), *rows = json_object_get(root, "rows");
    if (!json_is_array(columns) || !json_is_array(rows))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: expected lists \"columns\" and \"rows\"", file);
    if (json_array_size(columns) > COLUMNS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %zu columns", file, COLUMNS_MAX);
    if (json_object_size(root) > SECTIONS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %zu sections", file, SECTIONS_MAX);
    if (json_array_size(rows) > CELLS_MAX / (json_array_size(columns) + 1))
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %zu cells", file, CELLS_MAX);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!json_is_object(json_array_get(rows, i)))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: row %zu: expected an object", file, i);
    return MHA_OK;
}

static mha_status table_read(mha_table **out, const json_t *root, const char *command,
                             const char *file, mha_err *err)
{
    void *p = NULL;
    const json_t *rows = json_object_get(root, "rows");
    size_t count = json_array_size(json_object_get(root, "columns"));
    mha_status status = MHA_OK;
    MHA_TRY(mha_alloc(&p, count, sizeof(mha_column), err));
    mha_column *columns = p;
    for (size_t i = 0; i < count && status == MHA_OK; i++)
        status = column_read(columns, i, root, file, err);
    if (status == MHA_OK)
        status = mha_table_new(out, command, columns, count, err);
    mha_free(columns);
    if (status != MHA_OK)
        return status;
    status = sections_read(*out, root, err);
    for (size_t i = 0; i < json_array_size(rows) && status == MHA_OK; i++)
        status = row_read(*out, json_array_get(rows, i), err);
    if (status != MHA_OK) {
        mha_table_free(*out);
        *out = NULL;
    }
    return status;
}

mha_status mha_table_read_json(mha_table **out, const char *text, size_t n, const char *name,
                               mha_err *err)
{
    json_t *root = NULL;
    char *command = NULL;
    MHA_TRY(mha_json_parse(&root, text, n, name, err));
    mha_status status = schema_read(&command, root, name, err);
    if (status == MHA_OK)
        status = shape_check(root, name, err);
    if (status == MHA_OK)
        status = table_read(out, root, command, name, err);
    mha_free(command);
    json_decref(root);
    return status;
}

mha_status mha_table_open(mha_table **out, const char *path, mha_err *err)
{
    char *text = NULL;
    size_t n = 0, i = 0;
    MHA_TRY(mha_file_read(&text, &n, path, TABLE_FILE_MAX, err));
    mha_format format = mha_format_of_path(path);
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
        i++;
    bool json = format == MHA_FORMAT_JSON || (format != MHA_FORMAT_CSV && i < n && text[i] == '{');
    mha_status status = json ? mha_table_read_json(out, text, n, path, err)
                             : mha_table_read_csv(out, text, n, path, err);
    mha_free(text);
    return status;
}
