/* headchart.c: one column of a table of heads as a picture. It reads the finished table, so that
 * picture and table cannot differ. */
#include "cli/headchart.h"
#include "base/fail.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL_BYTES 40

typedef char label[LABEL_BYTES];

static int64_t cell_int(const mha_table *t, size_t row, const char *column)
{
    int64_t value = 0;
    mha_table_get_int(t, row, mha_table_find(t, column), &value);
    return value;
}

static double cell_real(const mha_table *t, size_t row, const char *column)
{
    size_t at = column ? mha_table_find(t, column) : MHA_NO_COLUMN;
    return at == MHA_NO_COLUMN ? (double)NAN : mha_table_get_real(t, row, at);
}

/* The column that numbers the heads of a layer, or NULL. */
static const char *head_column(const mha_table *t)
{
    if (mha_table_find(t, "head") != MHA_NO_COLUMN)
        return "head";
    return mha_table_find(t, "group") != MHA_NO_COLUMN ? "group" : NULL;
}

/* "3", or "dec.cross.3" where the model has more than one stack or kind; with the head, "3.7". */
static void row_label(const mha_headchart *c, size_t row, bool head, label out)
{
    const mha_table *t = c->table;
    const mha_model_info *info = c->cli->info;
    const mha_attn_info *first = &info->attn[0], *last = &info->attn[info->attn_count - 1];
    bool full = first->stack != last->stack || first->kind != last->kind;
    int n = 0;
    if (full)
        n = snprintf(out, LABEL_BYTES, "%s.%s.",
                     mha_table_get_text(t, row, mha_table_find(t, "stack")),
                     mha_table_get_text(t, row, mha_table_find(t, "kind")));
    n += snprintf(out + n, LABEL_BYTES - (size_t)n, "%" PRId64, cell_int(t, row, "layer"));
    if (head && head_column(t))
        snprintf(out + n, LABEL_BYTES - (size_t)n, ".%" PRId64, cell_int(t, row, head_column(t)));
}

typedef struct bars {
    mha_bar *items;
    label *labels;
    char whiskers[32];
} bars;

static mha_status bars_make(bars *b, const mha_headchart *c, mha_bars *figure, mha_err *err)
{
    const mha_table *t = c->table;
    size_t n = mha_table_rows(t);
    bool whiskers = false;
    double confidence = 0.95;
    MHA_TRY(mha_args_real(&c->cli->args, MHA_OPT_CI, 0, 1, &confidence, err));
    snprintf(b->whiskers, sizeof b->whiskers, "%g %% interval", 100 * confidence);
    MHA_TRY(mha_alloc((void **)&b->items, n, sizeof *b->items, err));
    MHA_TRY(mha_alloc((void **)&b->labels, n, sizeof *b->labels, err));
    for (size_t i = 0; i < n; i++) {
        row_label(c, i, true, b->labels[i]);
        b->items[i] = (mha_bar){b->labels[i], cell_real(t, i, c->column), cell_real(t, i, c->lo),
                                cell_real(t, i, c->hi)};
        whiskers = whiskers || isfinite(b->items[i].lo);
    }
    const mha_column *column = mha_table_column(t, mha_table_find(t, c->column));
    *figure = (mha_bars){b->items, n, c->name ? c->name : column->name,
                         c->unit ? c->unit : column->unit, whiskers ? b->whiskers : NULL};
    return MHA_OK;
}

static void bars_release(bars *b)
{
    mha_free(b->items);
    mha_free(b->labels);
}

static mha_status bars_draw(const mha_headchart *c, const char *path,
                            const mha_chart_options *chart, mha_err *err)
{
    bars b = {0};
    mha_bars figure;
    mha_status status = bars_make(&b, c, &figure, err);
    if (status == MHA_OK)
        status = mha_chart_bars(&figure, chart, path, err);
    bars_release(&b);
    return status;
}

/* Whether table row `row` is of this attention step. */
static bool row_of_step(const mha_headchart *c, size_t row, const mha_attn_info *a)
{
    const mha_table *t = c->table;
    return strcmp(mha_table_get_text(t, row, mha_table_find(t, "stack")),
                  mha_stack_name(a->stack)) == 0 &&
           strcmp(mha_table_get_text(t, row, mha_table_find(t, "kind")), mha_kind_name(a->kind)) ==
               0 &&
           cell_int(t, row, "layer") == (int64_t)a->layer;
}

/* The line of each table row in the picture: the model's own order, whatever the table's, with the
 * rows of one attention step on one line. */
static size_t lines_find(const mha_headchart *c, size_t *line, label *labels)
{
    const mha_model_info *info = c->cli->info;
    size_t count = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        bool any = false;
        for (size_t i = 0; i < mha_table_rows(c->table); i++)
            if (row_of_step(c, i, &info->attn[a])) {
                line[i] = count;
                row_label(c, i, false, labels[count]);
                any = true;
            }
        count += any;
    }
    return count;
}

typedef struct headmap {
    label *labels, *numbers;
    const char **row_labels, **col_labels;
    size_t *line;
    double *values;
} headmap;

static mha_status headmap_make(headmap *m, const mha_headchart *c, mha_headmap *figure,
                               mha_err *err)
{
    const mha_table *t = c->table;
    size_t n = mha_table_rows(t), cols = 0, cells;
    MHA_TRY(mha_alloc((void **)&m->line, n, sizeof *m->line, err));
    MHA_TRY(mha_alloc((void **)&m->labels, n, sizeof *m->labels, err));
    size_t rows = lines_find(c, m->line, m->labels);
    for (size_t i = 0; i < n; i++) {
        size_t head = (size_t)cell_int(t, i, head_column(t));
        cols = head + 1 > cols ? head + 1 : cols;
    }
    if (mha_mul_overflows(rows, cols, &cells))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    MHA_TRY(mha_alloc((void **)&m->values, cells, sizeof *m->values, err));
    MHA_TRY(mha_alloc((void **)&m->numbers, cols, sizeof *m->numbers, err));
    MHA_TRY(mha_alloc((void **)&m->row_labels, rows, sizeof *m->row_labels, err));
    MHA_TRY(mha_alloc((void **)&m->col_labels, cols, sizeof *m->col_labels, err));
    for (size_t i = 0; i < cells; i++)
        m->values[i] = (double)NAN;
    for (size_t i = 0; i < n; i++)
        m->values[m->line[i] * cols + (size_t)cell_int(t, i, head_column(t))] =
            cell_real(t, i, c->column);
    for (size_t i = 0; i < rows; i++)
        m->row_labels[i] = m->labels[i];
    for (size_t i = 0; i < cols; i++) {
        snprintf(m->numbers[i], LABEL_BYTES, "%zu", i);
        m->col_labels[i] = m->numbers[i];
    }
    const mha_column *column = mha_table_column(t, mha_table_find(t, c->column));
    *figure = (mha_headmap){.values = m->values,
                            .rows = rows,
                            .cols = cols,
                            .row_labels = m->row_labels,
                            .col_labels = m->col_labels,
                            .col_name = head_column(t),
                            .value_name = c->name ? c->name : column->name,
                            .unit = c->unit ? c->unit : column->unit,
                            .diverging = c->diverging};
    return MHA_OK;
}

static void headmap_release(headmap *m)
{
    mha_free(m->labels);
    mha_free(m->numbers);
    mha_free(m->row_labels);
    mha_free(m->col_labels);
    mha_free(m->line);
    mha_free(m->values);
}

static mha_status map_draw(const mha_headchart *c, const char *path, const mha_chart_options *chart,
                           mha_err *err)
{
    headmap m = {0};
    mha_headmap figure;
    mha_status status = headmap_make(&m, c, &figure, err);
    if (status == MHA_OK)
        status = mha_chart_headmap(&figure, chart, path, err);
    headmap_release(&m);
    return status;
}

mha_status mha_headchart_draw(const mha_headchart *c, bool map, const char *path,
                              const mha_chart_options *chart, mha_err *err)
{
    mha_chart_options options = *chart;
    char about[128];
    snprintf(about, sizeof about, "%s, %zu documents, %zu tokens.", c->cli->info->family,
             c->cli->inputs.count, c->cli->inputs.tokens);
    options.about = about;
    c->cli->writing = true;
    return map ? map_draw(c, path, &options, err) : bars_draw(c, path, &options, err);
}

mha_status mha_headchart_draw_both(const mha_headchart *c, size_t top, const char *path,
                                   const mha_chart_options *chart, mha_err *err)
{
    headmap m = {0};
    bars b = {0};
    mha_headmap upper;
    mha_bars lower;
    mha_chart_options options = *chart;
    char about[160];
    size_t n = mha_table_rows(c->table);
    snprintf(about, sizeof about, "%s, %zu documents, %zu tokens; bars: %s%zu of %zu.",
             c->cli->info->family, c->cli->inputs.count, c->cli->inputs.tokens,
             top < n ? "the first " : "", top < n ? top : n, n);
    options.about = about;
    c->cli->writing = true;
    mha_status status = headmap_make(&m, c, &upper, err);
    if (status == MHA_OK)
        status = bars_make(&b, c, &lower, err);
    if (status == MHA_OK) {
        lower.count = top < n ? top : n;
        status = mha_chart_heads(&upper, &lower, &options, path, err);
    }
    headmap_release(&m);
    bars_release(&b);
    return status;
}
