/* heatmap.c: the figure of one map. Its width is given; the height follows from the cells, which
 * are square where that gives a sensible figure. */
#include "render/axis.h"
#include "render/heat.h"

#include "base/fail.h"

#include <math.h>

#define LABEL_SHARE  0.28 /* of the width, for labels at the left and below */
#define FLATTEST     0.2  /* of the width: height of a map with few rows */
#define TALLEST      1.5
#define BAR_SHORTEST 36.0

typedef struct heatmap_layout {
    const mha_heatmap *figure;
    const mha_heat *map; /* the figure's own, or `coarse` */
    mha_heat *coarse;
    mha_color_scale scale;
    mha_colorbar bar;
    mha_axis_layout rows, cols;
    double width, height; /* of the map */
} heatmap_layout;

/* Cells are square unless the map would be a line or a tower. */
static double map_height(const mha_heat *h, double width)
{
    double ratio = (double)h->tile_rows / (double)h->tile_cols;
    return width * fmin(fmax(ratio, FLATTEST), TALLEST);
}

static mha_status axes_make(heatmap_layout *l, mha_figure *f, mha_err *err)
{
    const mha_heat *h = l->map;
    double longest = LABEL_SHARE * f->width;
    MHA_TRY(mha_axis_make(&l->rows, f, &l->figure->rows, h->rows, h->tile_rows * h->tile, true,
                          l->height, longest, 0, err));
    l->width = f->width - l->rows.room - l->bar.width - 2 * MHA_FIGURE_LINE;
    l->height = map_height(h, l->width);
    return mha_axis_make(&l->cols, f, &l->figure->cols, h->cols, h->tile_cols * h->tile, false,
                         l->width, longest, l->rows.room, err);
}

/* Whole pixels, so that the cells fill the frame. */
static void size_snap(heatmap_layout *l, const mha_figure *f)
{
    l->width = floor(l->width / f->pixel) * f->pixel;
    l->height = fmax(1, round(l->height / f->pixel)) * f->pixel;
}

static mha_status layout_make(heatmap_layout *l, mha_figure *f, mha_err *err)
{
    const mha_heat *h = l->figure->map;
    const char *value_name = l->figure->value_name ? l->figure->value_name : "attention weight";
    /* How wide the map can get decides whether its tiles are large enough to be seen. */
    double guess = f->width * 0.8;
    size_t factor = mha_figure_coarsening(f, h, guess, map_height(h, guess));
    if (factor > 1)
        MHA_TRY(mha_heat_coarsen(&l->coarse, h, factor, err));
    l->map = l->coarse ? l->coarse : h;
    MHA_TRY(mha_color_scale_of(&l->scale, &l->map, 1, f->options->scale, err));
    MHA_TRY(mha_colorbar_make(&l->bar, f, &l->scale, value_name, err));
    l->width = guess;
    l->height = map_height(l->map, guess);
    /* The labels' size follows from the map's size, and the other way round: once more. */
    MHA_TRY(axes_make(l, f, err));
    MHA_TRY(axes_make(l, f, err));
    if (l->width < f->width / 4)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for its map",
                        f->width / MHA_POINTS_PER_MM);
    size_snap(l, f);
    MHA_TRY(mha_figure_note_tiles(f, l->map, err));
    return mha_axes_note(&l->rows, &l->cols, f, err);
}

static mha_status heatmap_draw(const heatmap_layout *l, mha_figure *f, mha_err *err)
{
    double line = MHA_FIGURE_LINE, x = l->rows.room + line, y = line;
    double bar_height = fmax(l->height, BAR_SHORTEST);
    double content = fmax(fmax(l->height + l->cols.room, bar_height), l->bar.name_width);
    MHA_TRY(mha_figure_begin(f, content + 2 * line, x, err));
    x = mha_canvas_snap(f->canvas, x + f->left) - f->left;
    y = mha_canvas_snap(f->canvas, y + f->top) - f->top;
    MHA_TRY(mha_figure_map(f, l->map, &l->scale, x, y, l->width, l->height, err));
    mha_figure_frame(f, x, y, l->width, l->height);
    mha_axis_draw(&l->rows, f, x, y, l->height);
    mha_axis_draw(&l->cols, f, x, y + l->height, l->width);
    mha_colorbar_draw(&l->bar, f, x + l->width, y, bar_height, content - bar_height);
    return mha_figure_end(f, err);
}

mha_status mha_chart_heatmap(const mha_heatmap *figure, const mha_chart_options *o,
                             const char *path, mha_err *err)
{
    mha_figure f;
    heatmap_layout l = {.figure = figure};
    mha_status status = mha_figure_open(&f, o, path, mha_heat_negative(figure->map), err);
    if (status == MHA_OK)
        status = layout_make(&l, &f, err);
    if (status == MHA_OK)
        status = heatmap_draw(&l, &f, err);
    mha_heat_free(l.coarse);
    mha_figure_close(&f);
    return status;
}
