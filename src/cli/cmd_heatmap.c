/* cmd_heatmap.c: pictures of maps. Every map is pooled while its rows arrive, so a long text takes
 * no more memory than its picture. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/answers.h"
#include "cli/figure.h"
#include "cli/labels.h"
#include "cli/netmap.h"
#include "cli/overlay.h"
#include "cli/select.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GRID_LIMIT       256 /* tiles a side of one map among many */
#define GRID_TITLE_BYTES 24
#define GRID_COLUMNS_MAX 4 /* of chosen heads that form no rectangle */

/* One side of the maps: its tokens, the cells they are merged to, and what is shown of them. */
typedef struct side {
    mha_cells cells;
    uint32_t *cell; /* [tokens] owned */
    size_t count;   /* cells of the whole side */
} side;

typedef struct heatmap {
    mha_cli *cli;
    mha_output out;
    mha_chart_options chart;
    mha_selection selection;
    const mha_attn_info *step; /* the stack and kind of all maps */
    mha_words *words;          /* of the one document; NULL: tokens */
    side rows, cols;
    mha_heat **maps; /* [count] */
    size_t *steps;   /* [count] attention step of each */
    uint32_t *heads; /* [count] index on axis H of each */
    size_t count;
    size_t *slot; /* [A, H] index in maps */
} heatmap;

/* All chosen heads have to show the same kind of map. */
static mha_status step_choose(heatmap *h, mha_err *err)
{
    const mha_model_info *info = h->cli->info;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        if (!mha_selection_heads(&h->selection, a))
            continue;
        if (!h->step)
            h->step = step;
        if (h->step->stack != step->stack || h->step->kind != step->kind)
            return mha_fail(err, MHA_ERR_ARG,
                            "%s.%s and %s.%s are different maps: choose with --stack and --kind",
                            mha_stack_name(h->step->stack), mha_kind_name(h->step->kind),
                            mha_stack_name(step->stack), mha_kind_name(step->kind));
    }
    return MHA_OK;
}

/* `id` cuts the side to what is shown. words: [tokens], NULL: not merged. */
static mha_status side_make(side *s, const heatmap *h, const mha_tokens *tokens,
                            const int32_t *words, mha_option_id id, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&s->cell, tokens->n, sizeof *s->cell, err));
    s->count = mha_words_cells(words, tokens->n, s->cell);
    s->cells = (mha_cells){tokens, s->cell, 0, s->count - 1};
    MHA_TRY(mha_args_range(&h->cli->args, id, &s->cells.first, &s->cells.last, err));
    if (s->cells.first >= s->count)
        return mha_fail(err, MHA_ERR_ARG, "%s: the map ends at %zu", mha_options[id].name,
                        s->count - 1);
    s->cells.last = s->cells.last < s->count ? s->cells.last : s->count - 1;
    return MHA_OK;
}

static mha_status sides_make(heatmap *h, mha_err *err)
{
    const mha_cli *cli = h->cli;
    const mha_input *in = &cli->inputs.items[0];
    bool reads_encoder = cli->info->layers[MHA_ENC] && cli->info->layers[MHA_DEC];
    bool target_rows = reads_encoder && h->step->stack == MHA_DEC;
    bool target_cols = target_rows && h->step->kind == MHA_SELF;
    if (mha_args_has(&cli->args, MHA_OPT_WORDS))
        MHA_TRY(mha_inputs_words(&h->words, cli, err));
    const int32_t *source = h->words ? h->words->source : NULL;
    const int32_t *target = h->words ? h->words->target : NULL;
    MHA_TRY(side_make(&h->rows, h, target_rows ? &in->target : &in->source,
                      target_rows ? target : source, MHA_OPT_ROWS, err));
    return side_make(&h->cols, h, target_cols ? &in->target : &in->source,
                     target_cols ? target : source, MHA_OPT_COLS, err);
}

static mha_status maps_make(heatmap *h, mha_err *err)
{
    const mha_selection *s = &h->selection;
    size_t rows = h->rows.cells.last - h->rows.cells.first + 1;
    size_t cols = h->cols.cells.last - h->cols.cells.first + 1;
    size_t limit = mha_args_has(&h->cli->args, MHA_OPT_EXACT) ? SIZE_MAX
                   : s->count == 1                            ? MHA_HEAT_LIMIT
                                                              : GRID_LIMIT;
    MHA_TRY(mha_alloc((void **)&h->maps, s->count, sizeof *h->maps, err));
    MHA_TRY(mha_alloc((void **)&h->steps, s->count, sizeof *h->steps, err));
    MHA_TRY(mha_alloc((void **)&h->heads, s->count, sizeof *h->heads, err));
    MHA_TRY(mha_alloc((void **)&h->slot, s->info->attn_count * s->stride, sizeof *h->slot, err));
    for (size_t a = 0; a < s->info->attn_count; a++) {
        for (uint32_t head = 0; head < s->info->attn[a].heads; head++) {
            if (!mha_selection_has(s, a, head))
                continue;
            size_t at = h->count++;
            h->slot[a * s->stride + head] = at;
            h->steps[at] = a;
            h->heads[at] = head;
            MHA_TRY(mha_heat_new(&h->maps[at], rows, cols, limit, MHA_POOL_MAX, err));
        }
    }
    return MHA_OK;
}

/* Puts a run of cells into its picture, as far as it shows them. */
static int row_show(void *context, const mha_map_row *r)
{
    const heatmap *h = context;
    const mha_cells *rows = &h->rows.cells, *cols = &h->cols.cells;
    size_t step = mha_attn_find(h->selection.info, r->stack, r->kind, r->layer);
    size_t from = r->first > cols->first ? r->first : cols->first;
    size_t to = r->first + r->n < cols->last + 1 ? r->first + r->n : cols->last + 1;
    if (r->row < rows->first || r->row > rows->last || from >= to)
        return 0;
    mha_heat_add(h->maps[h->slot[step * h->selection.stride + r->head]], r->row - rows->first,
                 from - cols->first, r->weights + (from - r->first), to - from);
    return 0;
}

/* --- figures ------------------------------------------------------------------------------- */

/* Rows of a picture or spectrum are no tokens: their labels are their numbers. */
static const mha_tokenizer *side_tokenizer(const heatmap *h, const mha_cells *cells)
{
    const mha_input *in = &h->cli->inputs.items[0];
    return in->features && cells->tokens == &in->source ? NULL : h->cli->tokenizer;
}

static mha_status single_draw(heatmap *h, mha_err *err)
{
    int choice = mha_args_choice(&h->cli->args, MHA_OPT_LABELS);
    mha_label_mode mode = choice < 0 ? MHA_LABEL_TOKENS : (mha_label_mode)choice;
    mha_labels rows = {0}, cols = {0};
    if (mha_args_has(&h->cli->args, MHA_OPT_EXACT))
        return mha_chart_exact(h->maps[0], &h->chart, h->out.path, err);
    const mha_cells *r = &h->rows.cells, *c = &h->cols.cells;
    mha_status status = mha_labels_make(&rows, side_tokenizer(h, r), r, mode, err);
    if (status == MHA_OK)
        status = mha_labels_make(&cols, side_tokenizer(h, c), c, mode, err);
    bool bare = mode == MHA_LABEL_NONE;
    mha_heatmap figure = {
        .map = h->maps[0],
        .rows = {"query", rows.items, rows.count, h->rows.cells.first, bare},
        .cols = {"key", cols.items, cols.count, h->cols.cells.first, bare},
    };
    if (status == MHA_OK)
        status = mha_chart_heatmap(&figure, &h->chart, h->out.path, err);
    mha_labels_release(&rows);
    mha_labels_release(&cols);
    return status;
}

/* The places of a grid. Chosen heads that are a rectangle of layers and heads stand in it; others
 * stand one after the other under their names. */
typedef struct places {
    size_t rows, cols;
    bool rectangle;
    const mha_heat **maps;                 /* [rows, cols] */
    const char **row_labels, **col_labels; /* of a rectangle */
    const char **titles;                   /* [rows, cols] otherwise */
    char (*text)[GRID_TITLE_BYTES];        /* what the labels point to */
} places;

/* Whether every layer that has chosen heads has the same ones, and more than one layer has. */
static bool rectangle_find(const heatmap *h, size_t *rows, size_t *cols)
{
    const mha_selection *s = &h->selection;
    size_t first = h->steps[0];
    *rows = 0;
    *cols = mha_selection_heads(s, first);
    for (size_t a = 0; a < s->info->attn_count; a++) {
        if (!mha_selection_heads(s, a))
            continue;
        ++*rows;
        for (uint32_t head = 0; head < s->stride; head++)
            if (mha_selection_has(s, a, head) != mha_selection_has(s, first, head))
                return false;
    }
    return *rows > 1 && *cols > 1;
}

static mha_status places_alloc(places *p, size_t count, mha_err *err)
{
    size_t total = p->rows * p->cols;
    MHA_TRY(mha_alloc((void **)&p->maps, total, sizeof *p->maps, err));
    MHA_TRY(mha_alloc((void **)&p->titles, total, sizeof *p->titles, err));
    MHA_TRY(mha_alloc((void **)&p->row_labels, p->rows, sizeof *p->row_labels, err));
    MHA_TRY(mha_alloc((void **)&p->col_labels, p->cols, sizeof *p->col_labels, err));
    return mha_alloc((void **)&p->text, p->rectangle ? p->rows + p->cols : count, sizeof *p->text,
                     err);
}

static void places_release(places *p)
{
    mha_free(p->maps);
    mha_free(p->titles);
    mha_free(p->row_labels);
    mha_free(p->col_labels);
    mha_free(p->text);
}

static mha_status places_make(places *p, const heatmap *h, mha_err *err)
{
    const mha_attn_info *attn = h->cli->info->attn;
    *p = (places){0};
    p->rectangle = rectangle_find(h, &p->rows, &p->cols);
    if (!p->rectangle) {
        p->cols = h->count < GRID_COLUMNS_MAX ? h->count : GRID_COLUMNS_MAX;
        p->rows = (h->count + p->cols - 1) / p->cols;
    }
    MHA_TRY(places_alloc(p, h->count, err));
    for (size_t i = 0; i < h->count; i++) {
        const mha_attn_info *step = &attn[h->steps[i]];
        uint32_t layer = step->layer, head = step->head_ids[h->heads[i]];
        size_t row = i / p->cols, col = i % p->cols;
        p->maps[i] = h->maps[i];
        if (!p->rectangle) {
            snprintf(p->text[i], GRID_TITLE_BYTES, "%" PRIu32 ".%" PRIu32, layer, head);
            p->titles[i] = p->text[i];
            continue;
        }
        if (col == 0) {
            snprintf(p->text[row], GRID_TITLE_BYTES, "%" PRIu32, layer);
            p->row_labels[row] = p->text[row];
        }
        if (row == 0) {
            snprintf(p->text[p->rows + col], GRID_TITLE_BYTES, "%" PRIu32, head);
            p->col_labels[col] = p->text[p->rows + col];
        }
    }
    return MHA_OK;
}

static mha_status grid_draw(heatmap *h, mha_err *err)
{
    places p;
    mha_status status = places_make(&p, h, err);
    mha_grid figure = {
        .maps = (const mha_heat *const *)p.maps,
        .rows = p.rows,
        .cols = p.cols,
        .row_labels = p.rectangle ? p.row_labels : NULL,
        .col_labels = p.rectangle ? p.col_labels : NULL,
        .titles = p.rectangle ? NULL : p.titles,
        .row_name = p.rectangle ? "layer" : NULL,
        .col_name = p.rectangle ? "head" : NULL,
    };
    if (status == MHA_OK)
        status = mha_chart_grid(&figure, &h->chart, h->out.path, err);
    places_release(&p);
    return status;
}

/* Opens the caption: which model, which heads, how many tokens. */
static void about_print(const heatmap *h, char *out, size_t size)
{
    const mha_attn_info *step = &h->cli->info->attn[h->steps[0]];
    bool words = h->words != NULL;
    char heads[64];
    if (h->count == 1)
        snprintf(heads, sizeof heads, "head %" PRIu32 ".%" PRIu32, step->layer,
                 step->head_ids[h->heads[0]]);
    else
        snprintf(heads, sizeof heads, "%zu heads", h->count);
    snprintf(out, size, "%s, %s.%s, %s, %zu queries and %zu keys%s.", h->cli->info->family,
             mha_stack_name(step->stack), mha_kind_name(step->kind), heads, h->rows.count,
             h->cols.count, words ? " (words: sum over keys, mean over queries)" : "");
}

static mha_status prepare(heatmap *h, mha_err *err)
{
    mha_cli *cli = h->cli;
    MHA_TRY(mha_selection_make(&h->selection, cli, err));
    if (h->selection.count > 1 && mha_args_has(&cli->args, MHA_OPT_EXACT))
        return mha_fail(err, MHA_ERR_ARG, "--exact draws one head: choose it with --heads");
    MHA_TRY(step_choose(h, err));
    MHA_TRY(sides_make(h, err));
    return maps_make(h, err);
}

static mha_status draw(heatmap *h, mha_map_rows *rows, mha_err *err)
{
    const mha_probe *probes[] = {mha_map_rows_probe(rows)};
    char about[256];
    if (mha_args_has(&h->cli->args, MHA_OPT_DRY_RUN))
        return mha_print_plan(h->cli, probes, 1, 0, err);
    mha_note_fed(h->cli);
    MHA_TRY(mha_run_documents(h->cli, h->cli->inputs.documents, 1, probes, 1, err));
    about_print(h, about, sizeof about);
    h->chart.about = about;
    h->cli->writing = true;
    return h->count == 1 ? single_draw(h, err) : grid_draw(h, err);
}

static mha_status heatmap_run(heatmap *h, mha_err *err)
{
    int special = mha_args_choice(&h->cli->args, MHA_OPT_SPECIAL);
    mha_cli *cli = h->cli;
    mha_map_rows *rows;
    MHA_TRY(mha_open_inputs(cli, err));
    if (cli->inputs.given != 1)
        return mha_fail(err, MHA_ERR_ARG,
                        "heatmap draws one document and these are %zu; --max-docs 1 takes the "
                        "first",
                        cli->inputs.given);
    MHA_TRY(mha_inputs_write_on(cli, err));
    if (cli->inputs.documents[0].graph)
        return mha_netmap_run(cli, &h->out, &h->chart, err);
    MHA_TRY(prepare(h, err));
    mha_view view = {special < 0 ? MHA_SPECIAL_KEEP : (mha_special)special, h->words};
    mha_choice choice = mha_selection_choice(&h->selection);
    MHA_TRY(mha_map_rows_new(&rows, h->cli->model, h->cli->inputs.documents, 1, &choice, &view,
                             row_show, h, err));
    mha_status status = draw(h, rows, err);
    mha_map_rows_free(rows);
    return status;
}

static void heatmap_release(heatmap *h)
{
    for (size_t i = 0; i < h->count; i++)
        mha_heat_free(h->maps[i]);
    mha_free(h->maps);
    mha_free(h->steps);
    mha_free(h->heads);
    mha_free(h->slot);
    mha_free(h->rows.cell);
    mha_free(h->cols.cell);
    mha_free(h->words);
    mha_selection_release(&h->selection);
}

mha_status mha_cmd_heatmap(mha_cli *cli, mha_err *err)
{
    heatmap h = {.cli = cli};
    bool exact = mha_args_has(&cli->args, MHA_OPT_EXACT);
    MHA_TRY(mha_output_choose(&h.out, cli,
                              exact ? MHA_FORMAT_BIT(MHA_FORMAT_PNG) : MHA_FORMATS_FIGURE,
                              MHA_FORMAT_AUTO, err));
    MHA_TRY(mha_figure_options(&h.chart, cli, &h.out, err));
    if (mha_overlay_wanted(cli))
        return mha_overlay_draw(cli, &h.out, &h.chart, err);
    mha_status status = heatmap_run(&h, err);
    heatmap_release(&h);
    return status;
}
