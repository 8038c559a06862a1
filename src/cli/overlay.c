/* overlay.c: attention drawn over the picture: for every chosen head the weights from one row, the
 * class token's or a patch's, or from the mean of several. */
#include "cli/overlay.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/select.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TITLE_BYTES 24

typedef struct overlay {
    mha_cli *cli;
    const mha_output *out;
    mha_chart_options *chart;
    mha_selection selection;
    size_t first, last; /* rows whose mean is shown */
    size_t grid_rows, grid_cols;
    size_t *slot;   /* [A, H] place of a chosen head */
    double *weight; /* [heads, rows of the model] */
    mha_heat **maps;
    char (*text)[TITLE_BYTES];
    const char **titles;
} overlay;

bool mha_overlay_wanted(const mha_cli *cli)
{
    return mha_args_has(&cli->args, MHA_OPT_IMAGE) && !mha_args_has(&cli->args, MHA_OPT_EXACT) &&
           !mha_args_has(&cli->args, MHA_OPT_COLS);
}

/* The first row, where there is a class token; else the user says which. */
static mha_status rows_choose(overlay *o, mha_err *err)
{
    const mha_signal_info *s = &o->cli->info->signal;
    bool given = mha_args_has(&o->cli->args, MHA_OPT_ROWS);
    if (!given && s->extra == 0)
        return mha_fail(err, MHA_ERR_ARG,
                        "the model has no class token: choose a patch with --rows");
    MHA_TRY(mha_args_range(&o->cli->args, MHA_OPT_ROWS, &o->first, &o->last, err));
    if (o->last >= s->rows)
        return mha_fail(err, MHA_ERR_ARG, "--rows: the model has rows 0 to %" PRIu32, s->rows - 1);
    return MHA_OK;
}

static mha_status prepare(overlay *o, mha_err *err)
{
    mha_cli *cli = o->cli;
    MHA_TRY(mha_open_inputs(cli, err));
    if (cli->inputs.given != 1)
        return mha_fail(err, MHA_ERR_ARG, "heatmap draws one document and these are %zu",
                        cli->inputs.given);
    MHA_TRY(mha_selection_make(&o->selection, cli, err));
    MHA_TRY(rows_choose(o, err));
    const mha_selection *s = &o->selection;
    const mha_signal_info *signal = &cli->info->signal;
    size_t heads = 0;
    o->grid_rows = signal->height / signal->patch;
    o->grid_cols = signal->width / signal->patch;
    MHA_TRY(mha_alloc((void **)&o->slot, s->info->attn_count * s->stride, sizeof *o->slot, err));
    MHA_TRY(mha_alloc((void **)&o->weight, s->count * signal->rows, sizeof *o->weight, err));
    MHA_TRY(mha_alloc((void **)&o->maps, s->count, sizeof *o->maps, err));
    MHA_TRY(mha_alloc((void **)&o->text, s->count, sizeof *o->text, err));
    MHA_TRY(mha_alloc((void **)&o->titles, s->count, sizeof *o->titles, err));
    for (size_t a = 0; a < s->info->attn_count; a++)
        for (uint32_t h = 0; h < s->info->attn[a].heads; h++) {
            const mha_attn_info *step = &s->info->attn[a];
            if (!mha_selection_has(s, a, h))
                continue;
            snprintf(o->text[heads], TITLE_BYTES, "%" PRIu32 ".%" PRIu32, step->layer,
                     (uint32_t)step->head_ids[h]);
            o->titles[heads] = o->text[heads];
            o->slot[a * s->stride + h] = heads++;
        }
    return MHA_OK;
}

static int row_add(void *context, const mha_map_row *r)
{
    overlay *o = context;
    const mha_selection *s = &o->selection;
    size_t step = mha_attn_find(s->info, r->stack, r->kind, r->layer);
    if (r->row < o->first || r->row > o->last)
        return 0;
    double *w = o->weight + o->slot[step * s->stride + r->head] * o->cli->info->signal.rows;
    for (size_t i = 0; i < r->n; i++)
        w[r->first + i] += (double)r->weights[i] / (double)(o->last - o->first + 1);
    return 0;
}

static mha_status maps_make(overlay *o, mha_err *err)
{
    const mha_signal_info *signal = &o->cli->info->signal;
    for (size_t i = 0; i < o->selection.count; i++) {
        const double *w = o->weight + i * signal->rows + signal->extra;
        MHA_TRY(
            mha_heat_new(&o->maps[i], o->grid_rows, o->grid_cols, SIZE_MAX, MHA_POOL_MEAN, err));
        for (size_t r = 0; r < o->grid_rows; r++)
            for (size_t c = 0; c < o->grid_cols; c++) {
                float value = (float)w[r * o->grid_cols + c];
                mha_heat_add(o->maps[i], r, c, &value, 1);
            }
    }
    return MHA_OK;
}

/* Who looks, and how much of what it sees is not in the picture. */
static void note_print(const overlay *o, char *out, size_t size)
{
    const mha_signal_info *signal = &o->cli->info->signal;
    double outside = 0;
    char who[64];
    for (size_t i = 0; i < o->selection.count; i++)
        for (size_t k = 0; k < signal->extra; k++)
            outside += o->weight[i * signal->rows + k] / (double)o->selection.count;
    if (o->first != o->last)
        snprintf(who, sizeof who, "rows %zu to %zu (mean)", o->first, o->last);
    else if (o->first == 0 && signal->extra > 0)
        snprintf(who, sizeof who, "the class token");
    else if (o->first < signal->extra)
        snprintf(who, sizeof who, "special row %zu", o->first);
    else
        snprintf(who, sizeof who, "the framed patch");
    int n = snprintf(out, size, "Attention of %s.", who);
    if (signal->extra > 0 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " %.0f %% of it%s is on %s, not on patches.",
                 outside * 100, o->selection.count > 1 ? ", on average," : "",
                 signal->extra == 1 ? "the class token" : "class and register tokens");
}

static mha_status figure_draw(overlay *o, mha_err *err)
{
    const mha_input *in = &o->cli->inputs.items[0];
    const mha_signal_info *signal = &o->cli->info->signal;
    char note[256], about[128];
    bool patch = o->first == o->last && o->first >= signal->extra;
    size_t at = patch ? o->first - signal->extra : 0;
    note_print(o, note, sizeof note);
    snprintf(about, sizeof about, "%s, %zu head%s over one picture.", o->cli->info->family,
             o->selection.count, o->selection.count > 1 ? "s" : "");
    mha_overlay figure = {
        .rgb = in->seen.rgb,
        .picture_width = in->seen.width,
        .picture_height = in->seen.height,
        .patch = signal->patch,
        .maps = (const mha_heat *const *)o->maps,
        .count = o->selection.count,
        .titles = o->titles,
        .mark_row = patch ? (int)(at / o->grid_cols) : -1,
        .mark_col = patch ? (int)(at % o->grid_cols) : -1,
        .note = note,
    };
    o->chart->about = about;
    o->cli->writing = true;
    return mha_chart_overlay(&figure, o->chart, o->out->path, err);
}

static mha_status run(overlay *o, mha_err *err)
{
    int special = mha_args_choice(&o->cli->args, MHA_OPT_SPECIAL);
    mha_map_rows *rows;
    MHA_TRY(prepare(o, err));
    mha_view view = {special < 0 ? MHA_SPECIAL_KEEP : (mha_special)special, NULL};
    mha_choice choice = mha_selection_choice(&o->selection);
    const mha_document *doc = o->cli->inputs.documents;
    MHA_TRY(mha_map_rows_new(&rows, o->cli->model, doc, 1, &choice, &view, row_add, o, err));
    const mha_probe *probes[] = {mha_map_rows_probe(rows)};
    mha_status status;
    if (mha_args_has(&o->cli->args, MHA_OPT_DRY_RUN)) {
        status = mha_print_plan(o->cli, probes, 1, 0, err);
    } else {
        mha_note_fed(o->cli);
        status = mha_run_documents(o->cli, doc, 1, probes, 1, err);
        if (status == MHA_OK)
            status = maps_make(o, err);
        if (status == MHA_OK)
            status = figure_draw(o, err);
    }
    mha_map_rows_free(rows);
    return status;
}

mha_status mha_overlay_draw(mha_cli *cli, const mha_output *out, mha_chart_options *chart,
                            mha_err *err)
{
    overlay o = {.cli = cli, .out = out, .chart = chart};
    mha_status status = run(&o, err);
    for (size_t i = 0; o.maps != NULL && i < o.selection.count; i++)
        mha_heat_free(o.maps[i]);
    mha_free(o.maps);
    mha_free(o.text);
    mha_free(o.titles);
    mha_free(o.slot);
    mha_free(o.weight);
    mha_selection_release(&o.selection);
    return status;
}
