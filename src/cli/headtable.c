/* headtable.c: rows of `heads`. The numbers are the library's; this file decides their order. */
#include "cli/headtable.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/headchart.h"
#include "cli/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHECKED_TOKENS 16
#define COLUMNS_MAX    (5 + 3 * MHA_HEADS_COLUMNS)
#define NAME_BYTES     40

/* Where things stand in the table; MHA_NO_COLUMN: nowhere. */
typedef struct layout {
    mha_column columns[COLUMNS_MAX];
    char names[2 * MHA_HEADS_COLUMNS][NAME_BYTES];
    size_t count, named;
    size_t document, stack, kind, layer, head;
    size_t value[MHA_HEADS_COLUMNS], lo[MHA_HEADS_COLUMNS], hi[MHA_HEADS_COLUMNS];
} layout;

static size_t layout_add(layout *l, const char *name, const char *unit, const char *description,
                         mha_column_type type)
{
    l->columns[l->count] = (mha_column){name, unit, description, type};
    return l->count++;
}

static size_t layout_add_bound(layout *l, const mha_column *c, const char *suffix,
                               const char *description)
{
    char *name = l->names[l->named++];
    snprintf(name, NAME_BYTES, "%s_%s", c->name, suffix);
    return layout_add(l, name, c->unit, description, MHA_COLUMN_REAL);
}

static bool has_sink(const mha_model_info *info)
{
    for (size_t i = 0; i < info->attn_count; i++)
        if (info->attn[i].sink)
            return true;
    return false;
}

static void layout_make(layout *l, const mha_headtable *h)
{
    const mha_args *args = &h->cli->args;
    const mha_column *columns = mha_heads_columns();
    bool layers = mha_args_has(args, MHA_OPT_BY_LAYER);
    *l = (layout){.document = MHA_NO_COLUMN, .head = MHA_NO_COLUMN};
    if (mha_args_has(args, MHA_OPT_PER_DOCUMENT))
        l->document = layout_add(l, "document", "", "from 0", MHA_COLUMN_INT);
    l->stack = layout_add(l, "stack", "", "enc, dec or graph", MHA_COLUMN_TEXT);
    l->kind = layout_add(l, "kind", "", "self or cross", MHA_COLUMN_TEXT);
    l->layer = layout_add(l, "layer", "", "from 0", MHA_COLUMN_INT);
    if (!layers)
        l->head = layout_add(l, "head", "", "original number, from 0", MHA_COLUMN_INT);
    for (size_t c = 0; c < MHA_HEADS_COLUMNS; c++) {
        l->lo[c] = l->hi[c] = l->value[c] = MHA_NO_COLUMN;
        if (c != MHA_HEADS_SINK_MASS || has_sink(h->cli->info))
            l->value[c] = layout_add(l, columns[c].name, columns[c].unit, columns[c].description,
                                     columns[c].type);
    }
    for (size_t c = 0; h->intervals && c < MHA_HEADS_COLUMNS; c++) {
        if (c == MHA_HEADS_ROWS || l->value[c] == MHA_NO_COLUMN)
            continue;
        l->lo[c] = layout_add_bound(l, &columns[c], "lo", "lower end of the interval");
        l->hi[c] = layout_add_bound(l, &columns[c], "hi", "upper end of the interval");
    }
}

mha_status mha_headtable_sorting(mha_headtable *h, mha_err *err)
{
    const char *name = mha_args_get(&h->cli->args, MHA_OPT_SORT);
    const mha_column *columns = mha_heads_columns();
    h->column = columns[MHA_HEADS_ENTROPY].name;
    h->sorted = name != NULL;
    if (!name)
        return MHA_OK;
    h->ascending = *name == '-';
    mha_nearest nearest = {.word = name + h->ascending};
    for (size_t c = 0; c < MHA_HEADS_COLUMNS; c++)
        mha_nearest_try(&nearest, columns[c].name);
    if (nearest.distance)
        return mha_fail(err, MHA_ERR_ARG, "--sort: no column '%s'; the nearest is '%s'",
                        nearest.word, nearest.best);
    h->column = nearest.best;
    return MHA_OK;
}

static mha_status row_add(mha_table *t, const layout *l, const mha_head_row *r, size_t document,
                          mha_err *err)
{
    MHA_TRY(mha_table_add_row(t, err));
    if (l->document != MHA_NO_COLUMN)
        mha_table_set_int(t, l->document, (int64_t)document);
    MHA_TRY(mha_table_set_text(t, l->stack, mha_stack_name(r->stack), err));
    MHA_TRY(mha_table_set_text(t, l->kind, mha_kind_name(r->kind), err));
    mha_table_set_int(t, l->layer, r->layer);
    if (l->head != MHA_NO_COLUMN)
        mha_table_set_int(t, l->head, r->head);
    for (size_t c = 0; c < MHA_HEADS_COLUMNS; c++) {
        if (l->value[c] == MHA_NO_COLUMN)
            continue;
        if (l->columns[l->value[c]].type == MHA_COLUMN_REAL)
            mha_table_set_real(t, l->value[c], r->values[c]);
        else if (isfinite(r->values[c]))
            mha_table_set_int(t, l->value[c], llround(r->values[c]));
        if (l->lo[c] == MHA_NO_COLUMN)
            continue;
        mha_table_set_real(t, l->lo[c], r->lo[c]);
        mha_table_set_real(t, l->hi[c], r->hi[c]);
    }
    return MHA_OK;
}

/* The mean of the heads of rows[0 .. n), each column over those that define it. */
static mha_head_row layer_mean(const mha_head_row *rows, size_t n)
{
    mha_head_row mean = rows[0];
    for (size_t c = 0; c < MHA_HEADS_COLUMNS; c++) {
        double sum = 0;
        size_t defined = 0;
        for (size_t i = 0; i < n; i++) {
            if (!isnan(rows[i].values[c])) {
                sum += rows[i].values[c];
                defined++;
            }
        }
        mean.values[c] = defined ? sum / (double)defined : (double)NAN;
    }
    return mean;
}

static mha_status layers_fill(mha_table *t, const layout *l, const mha_head_row *rows, size_t count,
                              mha_err *err)
{
    for (size_t first = 0, n; first < count; first += n) {
        for (n = 1; first + n < count && rows[first + n].stack == rows[first].stack &&
                    rows[first + n].kind == rows[first].kind &&
                    rows[first + n].layer == rows[first].layer;)
            n++;
        mha_head_row mean = layer_mean(rows + first, n);
        MHA_TRY(row_add(t, l, &mean, 0, err));
    }
    return MHA_OK;
}

static mha_status documents_fill(mha_headtable *h, const layout *l, mha_err *err)
{
    size_t count = mha_heads_count(h->heads);
    mha_head_row *rows;
    MHA_TRY(mha_alloc((void **)&rows, count, sizeof *rows, err));
    mha_status status = MHA_OK;
    for (size_t d = 0; d < h->cli->inputs.count && status == MHA_OK; d++) {
        if (!mha_heads_document(h->heads, d, rows))
            continue;
        for (size_t i = 0; i < count && status == MHA_OK; i++)
            status = row_add(h->table, l, &rows[i], h->cli->inputs.items[d].index, err);
    }
    mha_free(rows);
    return status;
}

static mha_status rows_fill(mha_headtable *h, const layout *l, mha_err *err)
{
    const mha_head_row *rows;
    size_t count;
    if (l->document != MHA_NO_COLUMN)
        return documents_fill(h, l, err);
    MHA_TRY(mha_heads_result(h->heads, &rows, &count, err));
    if (l->head == MHA_NO_COLUMN)
        return layers_fill(h->table, l, rows, count, err);
    for (size_t i = 0; i < count; i++)
        MHA_TRY(row_add(h->table, l, &rows[i], 0, err));
    return MHA_OK;
}

static mha_status settings_describe(mha_headtable *h, mha_err *err)
{
    const mha_args *args = &h->cli->args;
    const char *special = mha_args_get(args, MHA_OPT_SPECIAL);
    uint64_t resamples = 2000, seed = 0;
    double confidence = 0.95;
    mha_meta *m;
    MHA_TRY(mha_table_section(&m, h->table, "settings", err));
    MHA_TRY(mha_meta_text(m, "special", special ? special : "keep", err));
    MHA_TRY(mha_meta_text(m, "averaging", "all rows of all documents", err));
    if (!h->intervals)
        return MHA_OK;
    MHA_TRY(mha_args_uint(args, MHA_OPT_BOOTSTRAP, 0, UINT64_MAX, &resamples, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_CI, 0, 1, &confidence, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_SEED, 0, UINT64_MAX, &seed, err));
    MHA_TRY(mha_meta_int(m, "bootstrap", (int64_t)resamples, err));
    MHA_TRY(mha_meta_real(m, "ci", confidence, err));
    return mha_meta_int(m, "seed", (int64_t)seed, err);
}

static mha_status checks_describe(mha_headtable *h, mha_err *err)
{
    mha_checks checks;
    mha_meta *m;
    int32_t start;
    if (h->cli->maps) {
        MHA_TRY(mha_table_section(&m, h->table, "checks", err));
        MHA_TRY(mha_meta_real(m, "row_sum_error", mha_maps_row_sum_error(h->cli->maps), err));
        return mha_meta_int(m, "skipped_rows", (int64_t)mha_heads_skipped(h->heads), err);
    }
    mha_document d = mha_inputs_complete(h->cli, 0, &start);
    MHA_TRY(mha_checks_run(&checks, h->cli->engine, h->cli->model, &d, CHECKED_TOKENS, err));
    MHA_TRY(mha_table_section(&m, h->table, "checks", err));
    MHA_TRY(mha_meta_int(m, "tokens", (int64_t)checks.tokens, err));
    MHA_TRY(mha_meta_real(m, "row_sum_error", checks.row_sum_error, err));
    MHA_TRY(mha_meta_real(m, "masked_mass", checks.masked_mass, err));
    MHA_TRY(mha_meta_real(m, "head_sum_error", checks.head_sum_error, err));
    return mha_meta_int(m, "skipped_rows", (int64_t)mha_heads_skipped(h->heads), err);
}

mha_status mha_headtable_fill(mha_headtable *h, mha_err *err)
{
    layout l;
    layout_make(&l, h);
    MHA_TRY(mha_table_new(&h->table, "heads", l.columns, l.count, err));
    MHA_TRY(mha_result_describe(h->table, h->cli, err));
    MHA_TRY(settings_describe(h, err));
    MHA_TRY(checks_describe(h, err));
    return rows_fill(h, &l, err);
}

mha_status mha_headtable_arrange(mha_headtable *h, mha_err *err)
{
    uint64_t top = SIZE_MAX;
    size_t column = mha_table_find(h->table, h->column);
    MHA_TRY(mha_args_uint(&h->cli->args, MHA_OPT_TOP, 1, SIZE_MAX, &top, err));
    if (column == MHA_NO_COLUMN)
        return mha_fail(err, MHA_ERR_ARG, "--sort: this model has no column '%s'", h->column);
    if (h->sorted)
        MHA_TRY(mha_table_sort(h->table, column, !h->ascending, err));
    if (top < mha_table_rows(h->table))
        mha_table_cut(h->table, top);
    return MHA_OK;
}

mha_status mha_headtable_draw(mha_headtable *h, const mha_output *out,
                              const mha_chart_options *chart, mha_err *err)
{
    const mha_args *args = &h->cli->args;
    char lo[NAME_BYTES], hi[NAME_BYTES];
    if (mha_args_has(args, MHA_OPT_PER_DOCUMENT))
        return mha_fail(err, MHA_ERR_ARG, "a chart shows heads; --per-document is for tables");
    snprintf(lo, sizeof lo, "%s_lo", h->column);
    snprintf(hi, sizeof hi, "%s_hi", h->column);
    mha_headchart c = {.cli = h->cli,
                       .table = h->table,
                       .column = h->column,
                       .lo = lo,
                       .hi = hi,
                       .diverging = strcmp(h->column, "offset") == 0};
    bool map = !mha_args_has(args, MHA_OPT_TOP) && !mha_args_has(args, MHA_OPT_BY_LAYER);
    return mha_headchart_draw(&c, map, out->path, chart, err);
}

void mha_headtable_release(mha_headtable *h)
{
    mha_table_free(h->table);
    mha_heads_free(h->heads);
    mha_free(h->words);
    mha_selection_release(&h->selection);
}
