/* grid.c: many small maps side by side, the whole layer×head grid or chosen heads. Each map is as
 * wide as the page allows; what is smaller than a pixel is pooled, and said. */
#include "render/axis.h"
#include "render/heat.h"

#include "base/fail.h"

#include <math.h>
#include <string.h>

#define GAP_SHARE   0.08 /* of a map's width, between maps */
#define GAP_MIN     0.8
#define GAP_MAX     4.0
#define TITLE_LINE  1.25 /* of the titles' size */
#define TITLE_SHARE 0.9  /* of a map's width: the widest title */
#define FLATTEST    0.2
#define TALLEST     2.0
#define FRAME       0.3
#define BAR_TALLEST 240.0
#define BAR_LOWEST  36.0

typedef struct grid_layout {
    const mha_grid *figure;
    const mha_heat **maps; /* [rows, cols] as they are drawn, NULL: empty */
    mha_heat **coarse;     /* [rows, cols] those of them that are ours */
    mha_color_scale scale;
    mha_colorbar bar;
    mha_label *row_labels, *col_labels;
    mha_axis row_axis, col_axis;
    mha_axis_layout rows, cols;
    double width, height; /* of one map */
    double gap, title;    /* between maps; above each map */
    double title_size;
} grid_layout;

static const mha_heat *first_map(const mha_grid *g)
{
    for (size_t i = 0; i < g->rows * g->cols; i++)
        if (g->maps[i])
            return g->maps[i];
    return NULL;
}

static mha_status shapes_check(const mha_grid *g, mha_err *err)
{
    const mha_heat *first = first_map(g);
    if (!first)
        return mha_fail(err, MHA_ERR_ARG, "a grid without maps");
    for (size_t i = 0; i < g->rows * g->cols; i++)
        if (g->maps[i] && (g->maps[i]->tile_rows != first->tile_rows ||
                           g->maps[i]->tile_cols != first->tile_cols))
            return mha_fail(err, MHA_ERR_ARG, "a grid of maps of %zu x %zu and of %zu x %zu tiles",
                            first->tile_rows, first->tile_cols, g->maps[i]->tile_rows,
                            g->maps[i]->tile_cols);
    return MHA_OK;
}

static mha_status arrays_make(grid_layout *l, mha_figure *f, mha_err *err)
{
    const mha_grid *g = l->figure;
    size_t count = g->rows * g->cols;
    void *p = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, count, sizeof *l->maps, err));
    l->maps = p;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, count, sizeof *l->coarse, err));
    l->coarse = p;
    memcpy(l->maps, g->maps, count * sizeof *l->maps);
    return MHA_OK;
}

/* Numbers of layers and heads lie flat and at full size: where they have no room, every second or
 * fifth is there, which nobody can misread. */
static mha_status labels_make(mha_label **out, mha_axis *axis, mha_figure *f,
                              const char *const *texts, size_t count, const char *name,
                              double pitch, bool vertical, mha_err *err)
{
    static const size_t steps[] = {1, 2, 5, 10, 20, 50, 100};
    void *p = NULL;
    double need = f->size * 1.15;
    size_t step = steps[0];
    *axis = (mha_axis){.name = name, .bare = !texts && !name};
    if (!texts)
        return MHA_OK;
    for (size_t i = 0; i < count && !vertical; i++)
        need = fmax(need, mha_figure_width(f, texts[i], f->size) + 0.5 * f->size);
    for (size_t i = 1; i < sizeof steps / sizeof *steps && pitch * (double)step < need; i++)
        step = steps[i];
    MHA_TRY(mha_arena_alloc(&p, &f->arena, count, sizeof **out, err));
    *out = p;
    for (size_t i = 0; i < count; i += step)
        (*out)[axis->count++] = (mha_label){texts[i], i, 1};
    axis->labels = *out;
    return MHA_OK;
}

/* The grid's width without the labels decides on the size of the maps, and that on the labels. */
static mha_status place(grid_layout *l, mha_figure *f, mha_err *err)
{
    const mha_grid *g = l->figure;
    const mha_heat *map = first_map(g);
    double ratio = (double)map->tile_rows / (double)map->tile_cols;
    double all = f->width - l->rows.room - l->bar.width - 2 * FRAME;
    double share = all / (double)g->cols;
    l->gap = fmin(fmax(share * GAP_SHARE, GAP_MIN), GAP_MAX);
    l->width = (all - (double)(g->cols - 1) * l->gap) / (double)g->cols;
    l->height = l->width * fmin(fmax(ratio, FLATTEST), TALLEST);
    l->title_size = fmax(fmin(f->size, 5), f->size - 1);
    l->title = g->titles ? l->title_size * TITLE_LINE : 0;
    double across = l->width + l->gap, down = l->height + l->gap + l->title;
    MHA_TRY(labels_make(&l->row_labels, &l->row_axis, f, g->row_labels, g->rows, g->row_name, down,
                        true, err));
    MHA_TRY(labels_make(&l->col_labels, &l->col_axis, f, g->col_labels, g->cols, g->col_name,
                        across, false, err));
    MHA_TRY(mha_axis_make(&l->rows, f, &l->row_axis, g->rows, g->rows, true, down * (double)g->rows,
                          f->width / 4, 0, err));
    return mha_axis_make(&l->cols, f, &l->col_axis, g->cols, g->cols, false,
                         across * (double)g->cols, f->width / 4, l->rows.room, err);
}

static mha_status coarsen(grid_layout *l, const mha_figure *f, mha_err *err)
{
    const mha_grid *g = l->figure;
    size_t factor = mha_figure_coarsening(f, first_map(g), l->width, l->height);
    for (size_t i = 0; i < g->rows * g->cols && factor > 1; i++) {
        if (!g->maps[i])
            continue;
        MHA_TRY(mha_heat_coarsen(&l->coarse[i], g->maps[i], factor, err));
        l->maps[i] = l->coarse[i];
    }
    return MHA_OK;
}

static mha_status bar_make(grid_layout *l, mha_figure *f, const mha_heat *const *maps, mha_err *err)
{
    const mha_grid *g = l->figure;
    const char *name = g->value_name ? g->value_name : "attention weight";
    MHA_TRY(mha_color_scale_of(&l->scale, maps, g->rows * g->cols, f->options->scale, err));
    l->bar = (mha_colorbar){0};
    if (g->own_scale) {
        l->bar.lo = l->scale.kind == MHA_SCALE_LOG ? "low" : "0";
        l->bar.hi = l->scale.kind == MHA_SCALE_CLIP ? "99 %" : "max";
    }
    return mha_colorbar_make(&l->bar, f, &l->scale, name, err);
}

static mha_status layout_make(grid_layout *l, mha_figure *f, mha_err *err)
{
    const mha_grid *g = l->figure;
    MHA_TRY(arrays_make(l, f, err));
    MHA_TRY(bar_make(l, f, g->maps, err));
    MHA_TRY(place(l, f, err));
    MHA_TRY(place(l, f, err));
    if (l->width < 4 * f->pixel || l->width < 1.5)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for %zu maps a row",
                        f->width / MHA_POINTS_PER_MM, g->cols);
    l->width = floor(l->width / f->pixel) * f->pixel;
    l->height = fmax(1, round(l->height / f->pixel)) * f->pixel;
    MHA_TRY(coarsen(l, f, err));
    /* Means of means are lower than means. */
    MHA_TRY(mha_color_scale_of(&l->scale, l->maps, g->rows * g->cols, f->options->scale, err));
    if (g->own_scale)
        MHA_TRY(mha_figure_note(f, err, "Every map has its own colours, up to its own maximum."));
    for (size_t i = 0; i < g->rows * g->cols; i++)
        if (l->maps[i])
            return mha_figure_note_tiles(f, l->maps[i], err);
    return MHA_OK;
}

/* --- drawing -----------------------------------------------------------------------------------
 */

static mha_status map_draw(const grid_layout *l, mha_figure *f, size_t i, double x, double y,
                           mha_err *err)
{
    const mha_grid *g = l->figure;
    mha_color_scale scale = l->scale;
    char *title = NULL;
    if (!l->maps[i])
        return MHA_OK;
    if (g->own_scale)
        MHA_TRY(mha_color_scale_of(&scale, &l->maps[i], 1, f->options->scale, err));
    if (g->titles && g->titles[i]) {
        MHA_TRY(mha_figure_text(&title, f, g->titles[i], err));
        MHA_TRY(mha_figure_fit(&title, f, title, l->title_size, l->width + l->gap, err));
        mha_figure_put(f, title, l->title_size, x + l->width / 2,
                       y - 2 - MHA_FONT_DESCENT * l->title_size / 2, MHA_ANCHOR_MIDDLE, 0, f->text);
    }
    x = mha_canvas_snap(f->canvas, x + f->left) - f->left;
    y = mha_canvas_snap(f->canvas, y + f->top) - f->top;
    MHA_TRY(mha_figure_map(f, l->maps[i], &scale, x, y, l->width, l->height, err));
    mha_canvas_frame(f->canvas, f->left + x, f->top + y, l->width, l->height, FRAME, f->line);
    return MHA_OK;
}

static mha_status grid_draw(const grid_layout *l, mha_figure *f, mha_err *err)
{
    const mha_grid *g = l->figure;
    double x = l->rows.room + FRAME, across = l->width + l->gap;
    double down = l->height + l->gap + l->title;
    double grid_height = (double)g->rows * down - l->gap;
    double bar_height = fmin(fmax(grid_height - l->title, BAR_LOWEST), BAR_TALLEST);
    double content =
        fmax(grid_height + l->cols.room, l->title + fmax(bar_height, l->bar.name_width));
    MHA_TRY(mha_figure_begin(f, content + 2 * FRAME, x, err));
    for (size_t r = 0; r < g->rows; r++)
        for (size_t c = 0; c < g->cols; c++)
            MHA_TRY(map_draw(l, f, r * g->cols + c, x + (double)c * across,
                             FRAME + l->title + (double)r * down, err));
    mha_axis_draw(&l->rows, f, x, FRAME + l->title - (l->gap + l->title) / 2,
                  down * (double)g->rows);
    mha_axis_draw(&l->cols, f, x - l->gap / 2, FRAME + grid_height, across * (double)g->cols);
    mha_colorbar_draw(&l->bar, f, x + across * (double)g->cols - l->gap, FRAME + l->title,
                      bar_height, content - l->title - bar_height);
    return mha_figure_end(f, err);
}

mha_status mha_chart_grid(const mha_grid *figure, const mha_chart_options *o, const char *path,
                          mha_err *err)
{
    mha_figure f;
    grid_layout l = {.figure = figure};
    bool negative = false;
    for (size_t i = 0; i < figure->rows * figure->cols; i++)
        negative = negative || (figure->maps[i] && mha_heat_negative(figure->maps[i]));
    mha_status status = mha_figure_open(&f, o, path, negative, err);
    if (status == MHA_OK)
        status = shapes_check(figure, err);
    if (status == MHA_OK)
        status = layout_make(&l, &f, err);
    if (status == MHA_OK)
        status = grid_draw(&l, &f, err);
    for (size_t i = 0; l.coarse && i < figure->rows * figure->cols; i++)
        mha_heat_free(l.coarse[i]);
    mha_figure_close(&f);
    return status;
}
