/* headchart.c: one column of the table of heads as a picture. It reads the finished table, so that
 * picture and table cannot differ. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/headtable.h"

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

static double cell_real(const mha_table *t, size_t row, const char *column, const char *suffix)
{
    char name[LABEL_BYTES];
    snprintf(name, sizeof name, "%s%s", column, suffix);
    size_t at = mha_table_find(t, name);
    return at == MHA_NO_COLUMN ? (double)NAN : mha_table_get_real(t, row, at);
}

/* "3", or "dec.cross.3" where the model has more than one stack or kind; with the head, "3.7". */
static void row_label(const mha_headtable *h, size_t row, bool head, label out)
{
    const mha_table *t = h->table;
    const mha_model_info *info = h->cli->info;
    const mha_attn_info *first = &info->attn[0], *last = &info->attn[info->attn_count - 1];
    bool full = first->stack != last->stack || first->kind != last->kind;
    int n = 0;
    if (full)
        n = snprintf(out, LABEL_BYTES, "%s.%s.",
                     mha_table_get_text(t, row, mha_table_find(t, "stack")),
                     mha_table_get_text(t, row, mha_table_find(t, "kind")));
    n += snprintf(out + n, LABEL_BYTES - (size_t)n, "%" PRId64, cell_int(t, row, "layer"));
    if (head)
        snprintf(out + n, LABEL_BYTES - (size_t)n, ".%" PRId64, cell_int(t, row, "head"));
}

static mha_status bars_draw(mha_headtable *h, const mha_output *out, const mha_chart_options *chart,
                            mha_err *err)
{
    const mha_table *t = h->table;
    size_t n = mha_table_rows(t);
    bool heads = mha_table_find(t, "head") != MHA_NO_COLUMN;
    mha_bar *bars = NULL;
    label *labels = NULL;
    double confidence = 0.95;
    char whiskers[32];
    mha_status status;
    MHA_TRY_GOTO(status, mha_args_real(&h->cli->args, MHA_OPT_CI, 0, 1, &confidence, err), out);
    snprintf(whiskers, sizeof whiskers, "%g %% interval", 100 * confidence);
    MHA_TRY_GOTO(status, mha_alloc((void **)&bars, n, sizeof *bars, err), out);
    MHA_TRY_GOTO(status, mha_alloc((void **)&labels, n, sizeof *labels, err), out);
    for (size_t i = 0; i < n; i++) {
        row_label(h, i, heads, labels[i]);
        bars[i] = (mha_bar){labels[i], cell_real(t, i, h->column, ""),
                            cell_real(t, i, h->column, "_lo"), cell_real(t, i, h->column, "_hi")};
    }
    const mha_column *c = mha_table_column(t, mha_table_find(t, h->column));
    mha_bars figure = {bars, n, c->name, c->unit, h->intervals ? whiskers : NULL};
    status = mha_chart_bars(&figure, chart, out->path, err);
out:
    mha_free(bars);
    mha_free(labels);
    return status;
}

/* The place of each table row in the picture: rows of one stack, kind and layer share a line. */
static size_t lines_find(const mha_headtable *h, size_t *line, label *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < mha_table_rows(h->table); i++) {
        label name;
        size_t at = 0;
        row_label(h, i, false, name);
        while (at < count && strcmp(labels[at], name) != 0)
            at++;
        if (at == count)
            memcpy(labels[count++], name, sizeof name);
        line[i] = at;
    }
    return count;
}

typedef struct headmap {
    label *labels, *numbers;
    const char **row_labels, **col_labels;
    size_t *line;
    double *values;
} headmap;

static mha_status headmap_make(headmap *m, mha_headtable *h, mha_headmap *figure, mha_err *err)
{
    const mha_table *t = h->table;
    size_t n = mha_table_rows(t), cols = 0, cells;
    MHA_TRY(mha_alloc((void **)&m->line, n, sizeof *m->line, err));
    MHA_TRY(mha_alloc((void **)&m->labels, n, sizeof *m->labels, err));
    size_t rows = lines_find(h, m->line, m->labels);
    for (size_t i = 0; i < n; i++) {
        size_t head = (size_t)cell_int(t, i, "head");
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
        m->values[m->line[i] * cols + (size_t)cell_int(t, i, "head")] =
            cell_real(t, i, h->column, "");
    for (size_t i = 0; i < rows; i++)
        m->row_labels[i] = m->labels[i];
    for (size_t i = 0; i < cols; i++) {
        snprintf(m->numbers[i], LABEL_BYTES, "%zu", i);
        m->col_labels[i] = m->numbers[i];
    }
    const mha_column *c = mha_table_column(t, mha_table_find(t, h->column));
    *figure = (mha_headmap){.values = m->values,
                            .rows = rows,
                            .cols = cols,
                            .row_labels = m->row_labels,
                            .col_labels = m->col_labels,
                            .value_name = c->name,
                            .unit = c->unit,
                            .diverging = strcmp(c->name, "offset") == 0};
    return MHA_OK;
}

static mha_status map_draw(mha_headtable *h, const mha_output *out, const mha_chart_options *chart,
                           mha_err *err)
{
    headmap m = {0};
    mha_headmap figure;
    mha_status status = headmap_make(&m, h, &figure, err);
    if (status == MHA_OK)
        status = mha_chart_headmap(&figure, chart, out->path, err);
    mha_free(m.labels);
    mha_free(m.numbers);
    mha_free(m.row_labels);
    mha_free(m.col_labels);
    mha_free(m.line);
    mha_free(m.values);
    return status;
}

mha_status mha_headtable_draw(mha_headtable *h, const mha_output *out,
                              const mha_chart_options *chart, mha_err *err)
{
    const mha_args *args = &h->cli->args;
    mha_chart_options options = *chart;
    char about[128];
    if (mha_args_has(args, MHA_OPT_PER_DOCUMENT))
        return mha_fail(err, MHA_ERR_ARG, "a chart shows heads; --per-document is for tables");
    snprintf(about, sizeof about, "%s, %zu documents, %zu tokens.", h->cli->info->family,
             h->cli->inputs.count, h->cli->inputs.tokens);
    options.about = about;
    h->cli->writing = true;
    if (mha_args_has(args, MHA_OPT_TOP) || mha_args_has(args, MHA_OPT_BY_LAYER))
        return bars_draw(h, out, &options, err);
    return map_draw(h, out, &options, err);
}
