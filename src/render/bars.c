/* bars.c: horizontal bars with whiskers, in the order given. With more bars than can be labelled
 * every k-th label is there, and that is said. */
#include "render/axis.h"
#include "render/parts.h"

#include "base/fail.h"

#include <assert.h>
#include <math.h>

#define PITCH       1.45  /* of the text's size: from bar to bar */
#define TALLEST     620.0 /* points: an A4 page's text */
#define THICKNESS   0.68  /* of the pitch */
#define LABEL_SHARE 0.35  /* of the width */
#define WHISKER     0.6
#define EDGE        0.02 /* of the range, beyond the farthest end */
#define GRID        0.35

struct mha_bars_part {
    const mha_bars *figure;
    mha_label *labels;
    mha_axis axis;
    mha_axis_layout rows;
    mha_ticks ticks;
    double lo, hi;
    double width, height;
    double side; /* room at the right for half a tick label */
    char name[256];
};

typedef struct mha_bars_part bars_layout;

/* From 0, or below it, to the farthest end of a bar or whisker. */
static void range_find(bars_layout *l)
{
    const mha_bars *g = l->figure;
    for (size_t i = 0; i < g->count; i++) {
        const double ends[] = {g->bars[i].value, g->bars[i].lo, g->bars[i].hi};
        for (size_t k = 0; k < 3; k++) {
            if (!isfinite(ends[k]))
                continue;
            l->lo = fmin(l->lo, ends[k]);
            l->hi = fmax(l->hi, ends[k]);
        }
    }
    if (!(l->hi > l->lo))
        l->hi = l->lo + 1;
    /* The farthest whiskers stand clear of the edges. */
    double margin = EDGE * (l->hi - l->lo);
    l->hi += l->hi > 0 ? margin : 0;
    l->lo -= l->lo < 0 ? margin : 0;
}

static void tick_text(const bars_layout *l, size_t i, char out[MHA_LABEL_SIZE])
{
    double value = l->ticks.first + (double)i * l->ticks.step;
    mha_label_number(out, fabs(value) < l->ticks.step * 1e-6 ? 0 : value);
}

static double tick_width(const bars_layout *l, const mha_figure *f)
{
    double widest = 0;
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < l->ticks.count; i++) {
        tick_text(l, i, text);
        widest = fmax(widest, mha_figure_width(f, text, f->size));
    }
    return widest;
}

static mha_status layout_make(bars_layout *l, mha_figure *f, mha_err *err)
{
    const mha_bars *g = l->figure;
    void *p = NULL;
    bool unit = g->unit && *g->unit;
    snprintf(l->name, sizeof l->name, unit ? "%s (%s)" : "%s", g->value_name, unit ? g->unit : "");
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->count, sizeof *l->labels, err));
    l->labels = p;
    for (size_t i = 0; i < g->count; i++)
        l->labels[i] = (mha_label){g->bars[i].label, i, 1};
    l->axis = (mha_axis){.labels = l->labels, .count = g->count};
    l->height = fmin((double)g->count * f->size * PITCH, TALLEST);
    MHA_TRY(mha_axis_make(&l->rows, f, &l->axis, g->count, g->count, true, l->height,
                          LABEL_SHARE * f->width, 0, err));
    range_find(l);
    l->ticks = mha_ticks_of(l->lo, l->hi, 5);
    l->side = fmax(2, tick_width(l, f) / 2);
    l->width = f->width - l->rows.room - l->side - 2 * MHA_FIGURE_LINE;
    if (l->width < f->width / 4)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for bars",
                        f->width / MHA_POINTS_PER_MM);
    if (l->rows.every > 1)
        MHA_TRY(mha_figure_note(f, err, "One label in %zu is shown.", l->rows.every));
    if (l->rows.kind == MHA_AXIS_NUMBERS)
        MHA_TRY(mha_figure_note(f, err, "%zu bars, numbered in their order.", g->count));
    if (g->whiskers)
        MHA_TRY(mha_figure_note(f, err, "Whiskers: %s.", g->whiskers));
    return MHA_OK;
}

/* --- drawing -----------------------------------------------------------------------------------
 */

static double position(const bars_layout *l, double value)
{
    return l->width * (value - l->lo) / (l->hi - l->lo);
}

static void grid_draw(const bars_layout *l, mha_figure *f, double x, double y)
{
    mha_color faint = mha_color_mix(f->background, f->text, 0.14);
    char text[MHA_LABEL_SIZE];
    for (size_t i = 0; i < l->ticks.count; i++) {
        double at = x + position(l, l->ticks.first + (double)i * l->ticks.step);
        mha_figure_rect(f, at - GRID / 2, y, GRID, l->height, faint);
        mha_figure_rect(f, at - MHA_FIGURE_LINE / 2, y + l->height, MHA_FIGURE_LINE,
                        MHA_FIGURE_TICK, f->line);
        tick_text(l, i, text);
        mha_figure_put(f, text, f->size, at,
                       y + l->height + MHA_FIGURE_TICK + MHA_FIGURE_GAP + MHA_FONT_ASCENT * f->size,
                       MHA_ANCHOR_MIDDLE, 0, f->text);
    }
}

static void whisker_draw(const bars_layout *l, mha_figure *f, const mha_bar *bar, double x,
                         double middle, double pitch)
{
    double from = position(l, bar->lo), to = position(l, bar->hi);
    double cap = fmin(pitch * 0.36, 3);
    if (!isfinite(bar->lo) || !isfinite(bar->hi))
        return;
    mha_figure_rect(f, x + from, middle - WHISKER / 2, to - from, WHISKER, f->text);
    mha_figure_rect(f, x + from - WHISKER / 2, middle - cap / 2, WHISKER, cap, f->text);
    mha_figure_rect(f, x + to - WHISKER / 2, middle - cap / 2, WHISKER, cap, f->text);
}

static void bars_draw(const bars_layout *l, mha_figure *f, double x, double y)
{
    const mha_bars *g = l->figure;
    mha_color up = f->options->dark ? (mha_color){0x5f, 0xa8, 0xe6} : (mha_color){0x5b, 0x9b, 0xd5};
    mha_color down = (mha_color){0xe0, 0x8a, 0x5b};
    double pitch = l->height / (double)g->count, zero = position(l, 0);
    for (size_t i = 0; i < g->count; i++) {
        double top = y + (double)i * pitch, to = position(l, g->bars[i].value);
        if (!isfinite(g->bars[i].value))
            continue;
        mha_figure_rect(f, x + fmin(zero, to), top + pitch * (1 - THICKNESS) / 2, fabs(to - zero),
                        pitch * THICKNESS, g->bars[i].value < 0 ? down : up);
        whisker_draw(l, f, &g->bars[i], x, top + pitch / 2, pitch);
    }
    mha_figure_rect(f, x + zero - MHA_FIGURE_LINE / 2, y, MHA_FIGURE_LINE, l->height, f->text);
}

/* Ticks, their numbers, and the name under the bars. */
static double room_below(const mha_figure *f)
{
    return MHA_FIGURE_TICK + MHA_FIGURE_GAP + 2 * f->size * MHA_FONT_LINE + 1;
}

mha_status mha_bars_part_make(mha_bars_part **out, mha_part *part, mha_figure *f,
                              const mha_bars *figure, mha_err *err)
{
    void *p = NULL;
    assert(figure->value_name);
    if (figure->count == 0)
        return mha_fail(err, MHA_ERR_ARG, "%s: no bars to draw", f->path);
    MHA_TRY(mha_arena_alloc(&p, &f->arena, 1, sizeof **out, err));
    bars_layout *l = *out = p;
    l->figure = figure;
    MHA_TRY(layout_make(l, f, err));
    *part =
        (mha_part){l->height + room_below(f) + 2 * MHA_FIGURE_LINE, l->rows.room + MHA_FIGURE_LINE};
    return MHA_OK;
}

mha_status mha_bars_part_draw(const mha_bars_part *l, mha_figure *f, double y, mha_err *err)
{
    double x = l->rows.room + MHA_FIGURE_LINE;
    char *name = NULL;
    y += MHA_FIGURE_LINE;
    grid_draw(l, f, x, y);
    bars_draw(l, f, x, y);
    mha_figure_rect(f, x, y + l->height, l->width, MHA_FIGURE_LINE, f->line);
    mha_axis_draw(&l->rows, f, x, y, l->height);
    MHA_TRY(mha_figure_text(&name, f, l->name, err));
    mha_figure_put(f, name, f->size, x + l->width / 2,
                   y + l->height + room_below(f) - MHA_FONT_DESCENT * f->size, MHA_ANCHOR_MIDDLE, 0,
                   f->text);
    return MHA_OK;
}

mha_status mha_chart_bars(const mha_bars *figure, const mha_chart_options *o, const char *path,
                          mha_err *err)
{
    mha_figure f;
    mha_part part;
    mha_bars_part *bars = NULL;
    mha_status status = mha_figure_open(&f, o, path, false, err);
    if (status == MHA_OK)
        status = mha_bars_part_make(&bars, &part, &f, figure, err);
    if (status == MHA_OK)
        status = mha_figure_begin(&f, part.height, part.left, err);
    if (status == MHA_OK)
        status = mha_bars_part_draw(bars, &f, 0, err);
    if (status == MHA_OK)
        status = mha_figure_end(&f, err);
    mha_figure_close(&f);
    return status;
}
