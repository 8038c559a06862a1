/* lines.c: lines with bands over one axis, in panels one above the other. The names stand once,
 * above the first panel, and the axis has its numbers once, under the last. */
#include "base/fail.h"
#include "render/figure.h"

#include <assert.h>
#include <math.h>

#define ASPECT    0.46 /* height of a panel over its width */
#define BETWEEN   9.0  /* points, from panel to panel */
#define LINE      1.1
#define BAND      0.2  /* of the line's colour in its band */
#define EDGE      0.05 /* of the range, beyond the farthest value */
#define SWATCH    12.0
#define GRID      0.35
#define LINES_MAX 4

typedef struct panel {
    const mha_line_panel *figure;
    double lo, hi;
    mha_ticks ticks;
    char name[128];
} panel;

typedef struct lines_layout {
    const mha_lines *figure;
    panel *panels;
    mha_ticks ticks; /* of x */
    double left;     /* from the content's edge to the panels */
    double width, height;
    double legend; /* height of the names */
    mha_color colors[LINES_MAX];
    bool drawn[LINES_MAX]; /* not all gaps: it has a name */
    mha_point *points;     /* [2·count] scratch */
} lines_layout;

/* ---- layout -----------------------------------------------------------------------------------
 */

/* Whether any value is there. */
static bool include_all(panel *p, const double *values, size_t count)
{
    bool any = false;
    for (size_t i = 0; values && i < count; i++)
        if (isfinite(values[i])) {
            p->lo = fmin(p->lo, values[i]);
            p->hi = fmax(p->hi, values[i]);
            any = true;
        }
    return any;
}

static void panel_make(panel *p, bool drawn[LINES_MAX], const mha_lines *g,
                       const mha_line_panel *figure)
{
    bool unit = figure->unit && *figure->unit;
    *p = (panel){.figure = figure, .lo = (double)INFINITY, .hi = (double)-INFINITY};
    snprintf(p->name, sizeof p->name, unit ? "%s (%s)" : "%s", figure->value_name,
             unit ? figure->unit : "");
    for (size_t i = 0; i < g->lines; i++) {
        drawn[i] |= include_all(p, figure->lines[i].y, g->count);
        include_all(p, figure->lines[i].lo, g->count);
        include_all(p, figure->lines[i].hi, g->count);
    }
    if (!(p->hi >= p->lo)) /* nothing but gaps */
        p->lo = p->hi = 0;
    double margin = p->hi > p->lo ? EDGE * (p->hi - p->lo) : 0.5;
    p->lo -= margin;
    p->hi += margin;
    p->ticks = mha_ticks_of(p->lo, p->hi, 4);
}

static void tick_text(const mha_ticks *t, size_t i, char out[MHA_LABEL_SIZE])
{
    double value = t->first + (double)i * t->step;
    mha_label_number(out, fabs(value) < t->step * 1e-6 ? 0 : value);
}

static double ticks_width(const mha_ticks *t, const mha_figure *f)
{
    double widest = 0;
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < t->count; i++) {
        tick_text(t, i, text);
        widest = fmax(widest, mha_figure_width(f, text, f->size));
    }
    return widest;
}

static double name_width(const lines_layout *l, const mha_figure *f, size_t i)
{
    return SWATCH + MHA_FIGURE_GAP + mha_figure_width(f, l->figure->names[i], f->size);
}

/* Names in their order, as many on a line as fit; draws them when y is not NULL. */
static double legend_flow(const lines_layout *l, mha_figure *f, const double *y)
{
    double x = l->left, line = f->size * MHA_FONT_LINE, down = 0;
    for (size_t i = 0; i < l->figure->lines; i++) {
        double wide = name_width(l, f, i);
        if (!l->drawn[i])
            continue;
        if (x > l->left && x + wide > f->width) {
            x = l->left;
            down += line;
        }
        if (y) {
            double base = *y + down + f->size * MHA_FONT_ASCENT;
            mha_figure_rect(f, x, base - f->size * 0.3 - LINE / 2, SWATCH, LINE * 1.4,
                            l->colors[i]);
            mha_figure_put(f, l->figure->names[i], f->size, x + SWATCH + MHA_FIGURE_GAP, base,
                           MHA_ANCHOR_START, 0, f->text);
        }
        x += wide + 2 * f->size;
    }
    return down + line;
}

static void colors_choose(lines_layout *l, const mha_figure *f)
{
    static const mha_color light[LINES_MAX] = {
        {0x00, 0x72, 0xb2}, {0x77, 0x77, 0x77}, {0xd5, 0x5e, 0x00}, {0x00, 0x9e, 0x73}};
    static const mha_color dark[LINES_MAX] = {
        {0x5f, 0xb4, 0xee}, {0xa8, 0xa8, 0xa8}, {0xf0, 0x8a, 0x4b}, {0x4c, 0xc9, 0xa4}};
    for (size_t i = 0; i < LINES_MAX; i++)
        l->colors[i] = f->options->dark ? dark[i] : light[i];
}

static mha_status layout_make(lines_layout *l, mha_figure *f, mha_err *err)
{
    const mha_lines *g = l->figure;
    void *p = NULL;
    double widest = 0;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->panel_count, sizeof *l->panels, err));
    l->panels = p;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, 2 * g->count, sizeof *l->points, err));
    l->points = p;
    for (size_t i = 0; i < g->panel_count; i++) {
        panel_make(&l->panels[i], l->drawn, g, &g->panels[i]);
        widest = fmax(widest, ticks_width(&l->panels[i].ticks, f));
    }
    l->ticks = mha_ticks_of(g->x[0], g->x[g->count - 1], 6);
    l->left = f->size * MHA_FONT_LINE + widest + 2 * MHA_FIGURE_GAP + MHA_FIGURE_TICK;
    l->width = f->width - l->left - fmax(2, ticks_width(&l->ticks, f) / 2);
    if (l->width < f->width / 4)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for lines",
                        f->width / MHA_POINTS_PER_MM);
    l->height = ASPECT * l->width;
    l->legend = legend_flow(l, f, NULL) + MHA_FIGURE_GAP;
    colors_choose(l, f);
    return g->note ? mha_figure_note(f, err, "%s", g->note) : MHA_OK;
}

/* ---- drawing ----------------------------------------------------------------------------------
 */

static double x_at(const lines_layout *l, double x)
{
    const mha_lines *g = l->figure;
    return l->left + l->width * (x - g->x[0]) / (g->x[g->count - 1] - g->x[0]);
}

static double y_at(const lines_layout *l, const panel *p, double top, double y)
{
    return top + l->height * (p->hi - y) / (p->hi - p->lo);
}

static mha_point point_at(const lines_layout *l, const mha_figure *f, const panel *p, double top,
                          size_t i, double y)
{
    return (mha_point){f->left + x_at(l, l->figure->x[i]), f->top + y_at(l, p, top, y)};
}

static bool stands(const mha_line *line, bool band, size_t i)
{
    return band ? isfinite(line->lo[i]) && isfinite(line->hi[i]) : isfinite(line->y[i]);
}

/* The stretches of a line between its gaps, or of its band. */
static void stretches_draw(const lines_layout *l, mha_figure *f, const panel *p, double top,
                           size_t which, bool band)
{
    const mha_line *line = &p->figure->lines[which];
    mha_color color = l->colors[which];
    for (size_t i = 0, n, count = l->figure->count; i < count; i += n + 1) {
        for (n = 0; i + n < count && stands(line, band, i + n); n++)
            l->points[n] = point_at(l, f, p, top, i + n, band ? line->hi[i + n] : line->y[i + n]);
        if (n < 2)
            continue;
        for (size_t k = 0; band && k < n; k++)
            l->points[2 * n - 1 - k] = point_at(l, f, p, top, i + k, line->lo[i + k]);
        if (band)
            mha_canvas_path(f->canvas, l->points, 2 * n, 0,
                            mha_color_mix(f->background, color, BAND));
        else
            mha_canvas_path(f->canvas, l->points, n, LINE, color);
    }
}

static void panel_draw(const lines_layout *l, mha_figure *f, const panel *p, double top)
{
    mha_color faint = mha_color_mix(f->background, f->text, 0.14);
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < l->figure->lines; i++)
        if (p->figure->lines[i].lo)
            stretches_draw(l, f, p, top, i, true);
    for (size_t i = 0; i < p->ticks.count; i++) {
        double y = y_at(l, p, top, p->ticks.first + (double)i * p->ticks.step);
        mha_figure_rect(f, l->left, y - GRID / 2, l->width, GRID, faint);
        mha_figure_rect(f, l->left - MHA_FIGURE_TICK, y - MHA_FIGURE_LINE / 2, MHA_FIGURE_TICK,
                        MHA_FIGURE_LINE, f->line);
        tick_text(&p->ticks, i, text);
        mha_figure_put(f, text, f->size, l->left - MHA_FIGURE_TICK - MHA_FIGURE_GAP,
                       y + 0.36 * f->size, MHA_ANCHOR_END, 0, f->text);
    }
    if (isfinite(l->figure->mark))
        mha_figure_rect(f, x_at(l, l->figure->mark) - MHA_FIGURE_LINE / 2, top, MHA_FIGURE_LINE,
                        l->height, f->muted);
    for (size_t i = l->figure->lines; i-- > 0;) /* the first on top */
        stretches_draw(l, f, p, top, i, false);
    mha_figure_frame(f, l->left, top, l->width, l->height);
    mha_figure_put(f, p->name, f->size, f->size * MHA_FONT_ASCENT, top + l->height / 2,
                   MHA_ANCHOR_MIDDLE, 90, f->text);
}

static void x_axis_draw(const lines_layout *l, mha_figure *f, double bottom)
{
    char text[MHA_LABEL_SIZE];
    double base = bottom + MHA_FIGURE_TICK + MHA_FIGURE_GAP + MHA_FONT_ASCENT * f->size;
    for (size_t i = 0; i < l->ticks.count; i++) {
        double x = x_at(l, l->ticks.first + (double)i * l->ticks.step);
        mha_figure_rect(f, x - MHA_FIGURE_LINE / 2, bottom, MHA_FIGURE_LINE, MHA_FIGURE_TICK,
                        f->line);
        tick_text(&l->ticks, i, text);
        mha_figure_put(f, text, f->size, x, base, MHA_ANCHOR_MIDDLE, 0, f->text);
    }
    mha_figure_put(f, l->figure->x_name, f->size, l->left + l->width / 2,
                   base + f->size * MHA_FONT_LINE, MHA_ANCHOR_MIDDLE, 0, f->text);
}

static void figure_draw(const lines_layout *l, mha_figure *f)
{
    double y = 0;
    legend_flow(l, f, &y);
    y = l->legend;
    for (size_t i = 0; i < l->figure->panel_count; i++) {
        panel_draw(l, f, &l->panels[i], y);
        y += l->height + BETWEEN;
    }
    x_axis_draw(l, f, y - BETWEEN);
}

static double figure_height(const lines_layout *l, const mha_figure *f)
{
    double below = MHA_FIGURE_TICK + MHA_FIGURE_GAP + 2 * f->size * MHA_FONT_LINE + 1;
    return l->legend + (double)l->figure->panel_count * (l->height + BETWEEN) - BETWEEN + below;
}

mha_status mha_chart_lines(const mha_lines *figure, const mha_chart_options *o, const char *path,
                           mha_err *err)
{
    mha_figure f;
    lines_layout l = {.figure = figure};
    assert(figure->lines >= 1 && figure->lines <= LINES_MAX && figure->panel_count >= 1);
    mha_status status = mha_figure_open(&f, o, path, false, err);
    if (status == MHA_OK && !(figure->count >= 2 && figure->x[figure->count - 1] > figure->x[0]))
        status = mha_fail(err, MHA_ERR_ARG, "%s: a line needs two points", path);
    if (status == MHA_OK)
        status = layout_make(&l, &f, err);
    if (status == MHA_OK)
        status = mha_figure_begin(&f, figure_height(&l, &f), l.left, err);
    if (status == MHA_OK) {
        figure_draw(&l, &f);
        status = mha_figure_end(&f, err);
    }
    mha_figure_close(&f);
    return status;
}
