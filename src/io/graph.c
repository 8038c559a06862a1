/* graph.c: graphs from JSON. Every number of nodes, edges and features is that of lists that are
 * really in the file, so that memory follows from the file's size; sparse features, which become
 * dense, have a ceiling of their own. */
#include "io/graph.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "io/json.h"

#include <float.h>
#include <math.h>

#define BYTES_DEFAULT ((uint64_t)512 << 20)
#define FEATURES_MAX  ((size_t)1 << 24) /* of a node */
#define VALUES_MAX    ((size_t)1 << 27) /* features of all nodes: 512 MiB */

typedef struct graph_file {
    mha_graph graph; /* first: what the caller holds */
    mha_arena memory;
} graph_file;

typedef struct reader {
    graph_file *g;
    const json_t *root;
    const char *file;
    mha_err *err;
} reader;

static mha_status get_list(const reader *r, const char *key, const json_t **out)
{
    *out = json_object_get(r->root, key);
    if (!json_is_array(*out))
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: \"%s\" is missing or not a list", r->file,
                        key);
    return MHA_OK;
}

static mha_status get_count(const reader *r, const char *key, uint32_t *out)
{
    const json_t *j = json_object_get(r->root, key);
    json_int_t v = json_is_integer(j) ? json_integer_value(j) : 0;
    if (v < 1 || v > INT32_MAX)
        return mha_fail(r->err, MHA_ERR_FORMAT,
                        "%s: \"%s\" is missing or not a whole number from 1 to %d", r->file, key,
                        INT32_MAX);
    *out = (uint32_t)v;
    return MHA_OK;
}

/* ---- edges ------------------------------------------------------------------------------------
 */

static mha_status read_ends(const reader *r, const json_t *list, size_t row, uint32_t **out)
{
    size_t n = json_array_size(list);
    MHA_TRY(mha_arena_alloc((void **)out, &r->g->memory, n, sizeof **out, r->err));
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);
        json_int_t v = json_is_integer(j) ? json_integer_value(j) : -1;
        if (v < 0 || v >= r->g->graph.nodes)
            return mha_fail(r->err, MHA_ERR_FORMAT,
                            "%s: edge_index[%zu][%zu] is not a node from 0 to %u", r->file, row, i,
                            r->g->graph.nodes - 1);
        (*out)[i] = (uint32_t)v;
    }
    return MHA_OK;
}

static mha_status read_edges(const reader *r)
{
    const json_t *list;
    uint32_t *source, *target;
    MHA_TRY(get_list(r, "edge_index", &list));
    const json_t *from = json_array_get(list, 0), *to = json_array_get(list, 1);
    if (json_array_size(list) != 2 || !json_is_array(from) || !json_is_array(to))
        return mha_fail(r->err, MHA_ERR_FORMAT,
                        "%s: edge_index is not a list of sources and a list of targets", r->file);
    if (json_array_size(from) != json_array_size(to))
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: edge_index has %zu sources and %zu targets",
                        r->file, json_array_size(from), json_array_size(to));
    MHA_TRY(read_ends(r, from, 0, &source));
    MHA_TRY(read_ends(r, to, 1, &target));
    r->g->graph.edges = json_array_size(from);
    r->g->graph.source = source;
    r->g->graph.target = target;
    return MHA_OK;
}

/* ---- features ---------------------------------------------------------------------------------
 */

/* Memory for the features of all nodes, zeroed. */
static mha_status make_features(const reader *r, size_t features, float **out)
{
    mha_graph *g = &r->g->graph;
    if (features < 1 || features > FEATURES_MAX || features > VALUES_MAX / g->nodes)
        return mha_fail(r->err, features < 1 ? MHA_ERR_FORMAT : MHA_ERR_LIMIT,
                        "%s: %zu features of each of %u nodes: from 1 to %zu, and %zu in all",
                        r->file, features, g->nodes, FEATURES_MAX, VALUES_MAX);
    MHA_TRY(
        mha_arena_alloc((void **)out, &r->g->memory, features * g->nodes, sizeof **out, r->err));
    g->features = (uint32_t)features;
    g->x = *out;
    return MHA_OK;
}

/* The list of one node. */
static mha_status get_row(const reader *r, const json_t *rows, const char *key, size_t i,
                          const json_t **out)
{
    *out = json_array_get(rows, i);
    if (!json_is_array(*out))
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: %s[%zu] is not a list", r->file, key, i);
    return MHA_OK;
}

static mha_status read_dense(const reader *r, const json_t *rows)
{
    float *x;
    const json_t *row;
    MHA_TRY(get_row(r, rows, "x", 0, &row));
    size_t n = json_array_size(row);
    MHA_TRY(make_features(r, n, &x));
    for (size_t i = 0; i < r->g->graph.nodes; i++) {
        MHA_TRY(get_row(r, rows, "x", i, &row));
        if (json_array_size(row) != n)
            return mha_fail(r->err, MHA_ERR_FORMAT, "%s: x[%zu] has %zu features, x[0] has %zu",
                            r->file, i, json_array_size(row), n);
        for (size_t k = 0; k < n; k++) {
            const json_t *j = json_array_get(row, k);
            double v = json_is_number(j) ? json_number_value(j) : (double)NAN;
            if (!(fabs(v) <= (double)FLT_MAX))
                return mha_fail(r->err, MHA_ERR_FORMAT, "%s: x[%zu][%zu] is not a finite number",
                                r->file, i, k);
            x[i * n + k] = (float)v;
        }
    }
    return MHA_OK;
}

static mha_status read_sparse(const reader *r, const json_t *rows)
{
    float *x;
    uint32_t features;
    MHA_TRY(get_count(r, "num_features", &features));
    MHA_TRY(make_features(r, features, &x));
    for (size_t i = 0; i < r->g->graph.nodes; i++) {
        const json_t *row;
        MHA_TRY(get_row(r, rows, "x_sparse_rows", i, &row));
        for (size_t k = 0; k < json_array_size(row); k++) {
            const json_t *j = json_array_get(row, k);
            json_int_t v = json_is_integer(j) ? json_integer_value(j) : -1;
            if (v < 0 || v >= features)
                return mha_fail(r->err, MHA_ERR_FORMAT,
                                "%s: x_sparse_rows[%zu][%zu] is not a feature from 0 to %u",
                                r->file, i, k, features - 1);
            x[i * features + (size_t)v] = 1;
        }
    }
    return MHA_OK;
}

static mha_status read_features(const reader *r)
{
    bool dense = json_object_get(r->root, "x") != NULL;
    bool sparse = json_object_get(r->root, "x_sparse_rows") != NULL;
    const char *key = dense ? "x" : "x_sparse_rows";
    const json_t *rows;
    if (dense == sparse)
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: %s \"x\" and \"x_sparse_rows\"", r->file,
                        dense ? "both" : "neither");
    MHA_TRY(get_list(r, key, &rows));
    if (json_array_size(rows) != r->g->graph.nodes)
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: %s has %zu rows for %u nodes", r->file, key,
                        json_array_size(rows), r->g->graph.nodes);
    return dense ? read_dense(r, rows) : read_sparse(r, rows);
}

/* ---- classes ----------------------------------------------------------------------------------
 */

static mha_status read_classes(const reader *r)
{
    mha_graph *g = &r->g->graph;
    const json_t *list = json_object_get(r->root, "y");
    int32_t *y;
    if (list == NULL || json_is_null(list))
        return MHA_OK;
    MHA_TRY(get_list(r, "y", &list));
    if (json_array_size(list) != g->nodes)
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: y has %zu classes for %u nodes", r->file,
                        json_array_size(list), g->nodes);
    MHA_TRY(mha_arena_alloc((void **)&y, &r->g->memory, g->nodes, sizeof *y, r->err));
    for (size_t i = 0; i < g->nodes; i++) {
        const json_t *j = json_array_get(list, i);
        json_int_t v = json_is_null(j) ? -1 : json_is_integer(j) ? json_integer_value(j) : -2;
        if (v < -1 || v > INT32_MAX)
            return mha_fail(r->err, MHA_ERR_FORMAT, "%s: y[%zu] is neither a class nor null",
                            r->file, i);
        y[i] = (int32_t)v;
    }
    g->y = y;
    return MHA_OK;
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static mha_status read_graph(const reader *r)
{
    if (!json_is_object(r->root))
        return mha_fail(r->err, MHA_ERR_FORMAT, "%s: not an object", r->file);
    MHA_TRY(get_count(r, "num_nodes", &r->g->graph.nodes));
    MHA_TRY(read_features(r));
    MHA_TRY(read_edges(r));
    return read_classes(r);
}

mha_status mha_graph_parse(mha_graph **out, const char *text, size_t n, const char *file,
                           mha_err *err)
{
    json_t *root = NULL;
    graph_file *g = NULL;
    *out = NULL;
    MHA_TRY(mha_json_parse(&root, text, n, file, err));
    mha_status status = mha_alloc((void **)&g, 1, sizeof *g, err);
    reader r = {.g = g, .root = root, .file = file, .err = err};
    if (status == MHA_OK)
        status = read_graph(&r);
    json_decref(root);
    if (status != MHA_OK) {
        mha_graph_close(g != NULL ? &g->graph : NULL);
        return status;
    }
    *out = &g->graph;
    return MHA_OK;
}

mha_status mha_graph_open(mha_graph **out, const char *path, uint64_t max_bytes, mha_err *err)
{
    char *text = NULL;
    size_t n = 0;
    *out = NULL;
    MHA_TRY(mha_file_read(&text, &n, path, max_bytes != 0 ? max_bytes : BYTES_DEFAULT, err));
    mha_status status = mha_graph_parse(out, text, n, path, err);
    mha_free(text);
    return status;
}

void mha_graph_close(mha_graph *g)
{
    if (g == NULL)
        return;
    graph_file *file = (graph_file *)(void *)g;
    mha_arena_release(&file->memory);
    mha_free(file);
}
