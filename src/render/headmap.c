/* headmap.c: one number for each head, as a coloured cell with the number in it. Numbers that would
 * be too small to read are left out, and that is said; the colours stay. */
#include "render/axis.h"
#include "render/heat.h"
#include "render/parts.h"

#include "base/fail.h"
#include "store/number.h"

#include <assert.h>
#include <math.h>

#define CELL_TALLEST  22.0 /* points */
#define CELL_FLATTEST 0.75 /* of a cell's width */
#define NUMBER_SHARE  0.84 /* of a cell's width */
#define NUMBER_LEAST  4.0
#define BAR_SHORTEST  36.0

struct mha_headmap_part {
    const mha_headmap *figure;
    double *values; /* [rows, cols] in units of `factor` */
    double factor;
    mha_heat *map;
    mha_color_scale scale;
    mha_colorbar bar;
    mha_label *row_labels, *col_labels;
    mha_axis row_axis, col_axis;
    mha_axis_layout rows, cols;
    double width, height;
    double number_size; /* 0: no numbers */
    int decimals;       /* of the numbers */
};

typedef struct mha_headmap_part headmap_layout;

/* Very small or large values are shown in thousandths, thousands and so on: digits that fit. */
static double factor_of(const mha_headmap *g)
{
    double largest = 0;
    for (size_t i = 0; i < g->rows * g->cols; i++)
        if (isfinite(g->values[i]))
            largest = fmax(largest, fabs(g->values[i]));
    return largest == 0 || (largest >= 0.05 && largest < 10000)
               ? 1
               : pow(10, 3 * floor(log10(largest) / 3));
}

static mha_status map_make(headmap_layout *l, mha_figure *f, mha_err *err)
{
    const mha_headmap *g = l->figure;
    void *p = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->rows * g->cols, sizeof *l->values, err));
    l->values = p;
    l->factor = factor_of(g);
    for (size_t i = 0; i < g->rows * g->cols; i++)
        l->values[i] = g->values[i] / l->factor;
    MHA_TRY(mha_heat_new(&l->map, g->rows, g->cols, SIZE_MAX, MHA_POOL_MAX, err));
    for (size_t r = 0; r < g->rows; r++)
        for (size_t c = 0; c < g->cols; c++) {
            float value = (float)l->values[r * g->cols + c];
            mha_heat_add(l->map, r, c, &value, 1);
        }
    return MHA_OK;
}

/* Values that are far from 0 and close to each other get all the colours; otherwise 0 is one end.
 */
static mha_status scale_make(headmap_layout *l, const mha_figure *f, mha_err *err)
{
    const mha_heat *map = l->map;
    double lo = HUGE_VAL;
    MHA_TRY(mha_color_scale_of(&l->scale, &map, 1, f->options->scale, err));
    for (size_t r = 0; r < map->tile_rows; r++)
        for (size_t c = 0; c < map->tile_cols; c++)
            lo = fmin(lo, mha_heat_get(map, r, c)); /* passes over NaN */
    if (l->figure->diverging && l->scale.kind == MHA_SCALE_LINEAR)
        l->scale.lo = -l->scale.hi;
    else if (l->scale.kind == MHA_SCALE_LINEAR && lo > l->scale.hi / 2 && lo < l->scale.hi)
        l->scale.lo = lo;
    return MHA_OK;
}

static mha_status labels_make(mha_label **out, mha_axis *axis, mha_figure *f,
                              const char *const *texts, size_t count, const char *name,
                              mha_err *err)
{
    void *p = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, count, sizeof **out, err));
    *out = p;
    for (size_t i = 0; i < count; i++) {
        char number[MHA_LABEL_SIZE], *copy = NULL;
        mha_number_fixed(number, (double)i, 0);
        MHA_TRY(mha_arena_strdup(&copy, &f->arena, texts ? texts[i] : number, err));
        (*out)[i] = (mha_label){copy, i, 1};
    }
    *axis = (mha_axis){.name = name, .labels = *out, .count = count};
    return MHA_OK;
}

static void number_format(const headmap_layout *l, double value, char out[MHA_LABEL_SIZE])
{
    mha_number_fixed(out, value, l->decimals);
    mha_label_minus(out);
}

static double widest_number(const headmap_layout *l, const mha_figure *f, double size)
{
    double widest = 0;
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < l->figure->rows * l->figure->cols; i++) {
        if (!isfinite(l->values[i]))
            continue;
        number_format(l, l->values[i], text);
        widest = fmax(widest, mha_figure_width(f, text, size));
    }
    return widest;
}

/* Decimals for three significant digits of the largest value, then fewer, until the numbers fit. */
static void numbers_fit(headmap_layout *l, const mha_figure *f)
{
    double largest = fmax(fabs(l->scale.lo), fabs(l->scale.hi));
    double cell = l->width / (double)l->figure->cols * NUMBER_SHARE;
    double tallest = l->height / (double)l->figure->rows * 0.75;
    int digits = (int)floor(log10(largest)) + 1; /* before the point */
    int most = digits >= 3 ? 0 : digits == 2 ? 1 : 2, least = most < 1 ? most : 1;
    for (l->decimals = most; l->decimals >= least; l->decimals--) {
        double unit = widest_number(l, f, 1);
        l->number_size = fmin(fmin(f->size, tallest), unit > 0 ? cell / unit : f->size);
        if (l->number_size >= NUMBER_LEAST)
            return;
    }
    l->number_size = 0;
}

static void place(headmap_layout *l, const mha_figure *f)
{
    const mha_headmap *g = l->figure;
    l->width = f->width - l->rows.room - l->bar.width - 2 * MHA_FIGURE_LINE;
    double cell = l->width / (double)g->cols;
    double tall = fmin(cell, fmax(CELL_TALLEST, cell * CELL_FLATTEST * 0.5));
    l->height = tall * (double)g->rows;
}

/* "NAME", "NAME (nats)", "NAME (× 0.001 nats)" */
static void name_make(const headmap_layout *l, char *out, size_t size)
{
    const mha_headmap *g = l->figure;
    char factor[MHA_NUMBER_SIZE];
    const char *unit = g->unit ? g->unit : "";
    mha_number_format(factor, l->factor, MHA_NUMBER_DIGITS);
    if (l->factor != 1)
        snprintf(out, size, "%s (× %s%s%s)", g->value_name, factor, *unit ? " " : "", unit);
    else
        snprintf(out, size, *unit ? "%s (%s)" : "%s", g->value_name, unit);
}

static mha_status layout_make(headmap_layout *l, mha_figure *f, mha_err *err)
{
    const mha_headmap *g = l->figure;
    char name[256];
    MHA_TRY(map_make(l, f, err));
    name_make(l, name, sizeof name);
    MHA_TRY(scale_make(l, f, err));
    MHA_TRY(mha_colorbar_make(&l->bar, f, &l->scale, name, err));
    MHA_TRY(labels_make(&l->row_labels, &l->row_axis, f, g->row_labels, g->rows,
                        g->row_name ? g->row_name : "layer", err));
    MHA_TRY(labels_make(&l->col_labels, &l->col_axis, f, g->col_labels, g->cols,
                        g->col_name ? g->col_name : "head", err));
    place(l, f);
    for (int pass = 0; pass < 2; pass++) {
        MHA_TRY(mha_axis_make(&l->rows, f, &l->row_axis, g->rows, g->rows, true, l->height,
                              f->width / 4, 0, err));
        place(l, f);
    }
    MHA_TRY(mha_axis_make(&l->cols, f, &l->col_axis, g->cols, g->cols, false, l->width,
                          f->width / 4, l->rows.room, err));
    if (l->width < f->width / 4)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for its map",
                        f->width / MHA_POINTS_PER_MM);
    numbers_fit(l, f);
    return MHA_OK;
}

/* --- drawing -----------------------------------------------------------------------------------
 */

/* White on the darker cells. The formula of equal contrast puts the limit at a luminance of 0.18,
 * but on saturated colours white is easier to read well above that. */
static mha_color ink_on(mha_color cell)
{
    return mha_color_luminance(cell) < 0.32 ? (mha_color){255, 255, 255}
                                            : (mha_color){0x14, 0x14, 0x14};
}

static void numbers_draw(const headmap_layout *l, mha_figure *f, double x, double y)
{
    const mha_headmap *g = l->figure;
    double across = l->width / (double)g->cols, down = l->height / (double)g->rows;
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < g->rows * g->cols && l->number_size > 0; i++) {
        if (!isfinite(l->values[i]))
            continue;
        uint8_t level = mha_color_scale_level(&l->scale, l->values[i]);
        number_format(l, l->values[i], text);
        mha_figure_put(f, text, l->number_size, x + ((double)(i % g->cols) + 0.5) * across,
                       y + ((double)(i / g->cols) + 0.5) * down + MHA_FONT_MIDDLE * l->number_size,
                       MHA_ANCHOR_MIDDLE, 0, ink_on(f->palette[level]));
    }
}

/* Thin lines of the background between the cells. */
static void gaps_draw(const headmap_layout *l, mha_figure *f, double x, double y)
{
    const mha_headmap *g = l->figure;
    double across = l->width / (double)g->cols, down = l->height / (double)g->rows;
    double line = fmin(0.5, across / 12);
    for (size_t c = 1; c < g->cols; c++)
        mha_figure_rect(f, x + (double)c * across - line / 2, y, line, l->height, f->background);
    for (size_t r = 1; r < g->rows; r++)
        mha_figure_rect(f, x, y + (double)r * down - line / 2, l->width, line, f->background);
}

static double bar_height(const headmap_layout *l)
{
    return fmax(l->height, BAR_SHORTEST);
}

static double content_height(const headmap_layout *l)
{
    return fmax(fmax(l->height + l->cols.room, bar_height(l)), l->bar.name_width);
}

bool mha_headmap_diverges(const mha_headmap *figure)
{
    for (size_t i = 0; i < figure->rows * figure->cols; i++)
        if (figure->values[i] < 0)
            return true;
    return figure->diverging;
}

mha_status mha_headmap_part_make(mha_headmap_part **out, mha_part *part, mha_figure *f,
                                 const mha_headmap *figure, mha_err *err)
{
    void *p = NULL;
    assert(figure->rows > 0 && figure->cols > 0 && figure->value_name);
    *out = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, 1, sizeof **out, err));
    headmap_layout *l = *out = p;
    l->figure = figure;
    MHA_TRY(layout_make(l, f, err));
    *part = (mha_part){content_height(l) + 2 * MHA_FIGURE_LINE, l->rows.room + MHA_FIGURE_LINE};
    return MHA_OK;
}

mha_status mha_headmap_part_draw(const mha_headmap_part *l, mha_figure *f, double y, mha_err *err)
{
    double x = l->rows.room + MHA_FIGURE_LINE;
    x = mha_canvas_snap(f->canvas, x + f->left) - f->left;
    y = mha_canvas_snap(f->canvas, y + MHA_FIGURE_LINE + f->top) - f->top;
    MHA_TRY(mha_figure_map(f, l->map, &l->scale, x, y, l->width, l->height, err));
    gaps_draw(l, f, x, y);
    mha_figure_frame(f, x, y, l->width, l->height);
    numbers_draw(l, f, x, y);
    mha_axis_draw(&l->rows, f, x, y, l->height);
    mha_axis_draw(&l->cols, f, x, y + l->height, l->width);
    mha_colorbar_draw(&l->bar, f, x + l->width, y, bar_height(l),
                      content_height(l) - bar_height(l));
    return MHA_OK;
}

void mha_headmap_part_release(mha_headmap_part *p)
{
    if (p != NULL)
        mha_heat_free(p->map);
}

mha_status mha_chart_headmap(const mha_headmap *figure, const mha_chart_options *o,
                             const char *path, mha_err *err)
{
    mha_figure f;
    mha_part part;
    mha_headmap_part *map = NULL;
    mha_status status = mha_figure_open(&f, o, path, mha_headmap_diverges(figure), err);
    if (status == MHA_OK)
        status = mha_headmap_part_make(&map, &part, &f, figure, err);
    if (status == MHA_OK)
        status = mha_figure_begin(&f, part.height, part.left, err);
    if (status == MHA_OK)
        status = mha_headmap_part_draw(map, &f, 0, err);
    if (status == MHA_OK)
        status = mha_figure_end(&f, err);
    mha_headmap_part_release(map);
    mha_figure_close(&f);
    return status;
}
