/* map.c: a map's tiles as a coloured raster, and the colour bar that says what the colours are. */
#include "render/figure.h"

#include "base/fail.h"
#include "store/number.h"

#include <math.h>
#include <string.h>

#define BAR_WIDTH    5.0
#define BAR_COLUMNS  16
#define BAR_GAP      6.0 /* between the map and its bar */
#define NAME_LONGEST 0.7 /* of the width */
#define TICK_ROOM    2.2 /* of the size: nearest distance of two ticks */

size_t mha_figure_coarsening(const mha_figure *f, const mha_heat *h, double width, double height)
{
    double across = (double)h->tile_cols * f->pixel / width;
    double down = (double)h->tile_rows * f->pixel / height;
    double factor = ceil(fmax(across, down) - 1e-9);
    return factor < 1 ? 1 : (size_t)factor;
}

void mha_figure_levels(uint8_t *levels, const mha_heat *h, const mha_color_scale *scale)
{
    for (size_t r = 0; r < h->tile_rows; r++)
        for (size_t c = 0; c < h->tile_cols; c++)
            *levels++ = mha_color_scale_level(scale, mha_heat_get(h, r, c));
}

mha_status mha_figure_map(mha_figure *f, const mha_heat *h, const mha_color_scale *scale, double x,
                          double y, double width, double height, mha_err *err)
{
    void *p = NULL;
    MHA_TRY(mha_alloc_raw(&p, h->tile_rows * h->tile_cols, 1, err));
    uint8_t *pixels = p;
    mha_figure_levels(pixels, h, scale);
    mha_raster raster = {pixels, h->tile_cols, h->tile_rows, f->palette, NULL};
    mha_canvas_image(f->canvas, f->left + x, f->top + y, width, height, &raster);
    mha_free(pixels);
    return MHA_OK;
}

static bool has_masked(const mha_heat *h)
{
    for (size_t i = 0; i < h->tile_rows * h->tile_cols; i++)
        if (h->seen[i] == 0)
            return true;
    return false;
}

mha_status mha_figure_note_tiles(mha_figure *f, const mha_heat *h, mha_err *err)
{
    if (h->tile > 1)
        MHA_TRY(mha_figure_note(f, err, "Each point is the %s of %zu × %zu weights.",
                                h->pooling == MHA_POOL_MAX ? "maximum" : "mean", h->tile, h->tile));
    return has_masked(h) ? mha_figure_say(f, err, "Grey is masked.") : MHA_OK;
}

/* --- the colour bar ----------------------------------------------------------------------------
 */

typedef struct bar_tick {
    double at; /* 0 at the lower end, 1 at the upper */
    char text[MHA_LABEL_SIZE + 8];
} bar_tick;

#define BAR_TICKS_MAX 16

static void tick_set(bar_tick *tick, const mha_colorbar *bar, double value, const char *text,
                     const char *before)
{
    char number[MHA_LABEL_SIZE];
    mha_label_number(number, value);
    tick->at = mha_color_scale_at(bar->scale, value);
    snprintf(tick->text, sizeof tick->text, "%s%s", text ? "" : before, text ? text : number);
}

/* Both ends always, and round numbers between them where there is room. */
static size_t bar_ticks(const mha_colorbar *bar, double room, bar_tick ticks[BAR_TICKS_MAX])
{
    const mha_color_scale *s = bar->scale;
    size_t n = 0;
    bool log_scale = s->kind == MHA_SCALE_LOG;
    mha_ticks inner = mha_ticks_of(s->lo, s->hi, 5);
    tick_set(&ticks[n++], bar, s->lo, bar->lo, log_scale ? "≤ " : "");
    tick_set(&ticks[n++], bar, s->hi, bar->hi, s->clipped ? "≥ " : "");
    for (size_t i = 0; i < (log_scale ? MHA_LOG_DECADES + 1 : inner.count); i++) {
        double value = log_scale ? pow(10, ceil(log10(s->lo)) + (double)i)
                                 : inner.first + (double)i * inner.step;
        double at = mha_color_scale_at(s, value);
        if (n == BAR_TICKS_MAX || bar->hi || at < room || at > 1 - room)
            continue;
        tick_set(&ticks[n++], bar, fabs(value) < inner.step * 1e-6 ? 0 : value, NULL, "");
    }
    return n;
}

mha_status mha_colorbar_make(mha_colorbar *out, mha_figure *f, const mha_color_scale *scale,
                             const char *value_name, mha_err *err)
{
    static const char *const kinds[] = {"", ", log scale", ", clipped"};
    char name[256];
    char *copy = NULL;
    bar_tick ticks[BAR_TICKS_MAX];
    double widest = 0;
    snprintf(name, sizeof name, "%s%s", value_name,
             scale->kind == MHA_SCALE_CLIP && !scale->clipped ? "" : kinds[scale->kind]);
    MHA_TRY(mha_figure_text(&copy, f, name, err));
    MHA_TRY(mha_figure_fit(&copy, f, copy, f->size, NAME_LONGEST * f->width, err));
    *out = (mha_colorbar){.scale = scale, .name = copy, .lo = out->lo, .hi = out->hi};
    size_t n = bar_ticks(out, 0.1, ticks);
    for (size_t i = 0; i < n; i++)
        widest = fmax(widest, mha_figure_width(f, ticks[i].text, f->size));
    out->width = BAR_GAP + BAR_WIDTH + MHA_FIGURE_LINE + MHA_FIGURE_TICK + MHA_FIGURE_GAP + widest +
                 f->size * (MHA_FONT_LINE + 0.2);
    out->name_width = mha_figure_width(f, copy, f->size);
    return out->hi ? MHA_OK : mha_figure_say_scale(f, scale, value_name, err);
}

mha_status mha_figure_say_scale(mha_figure *f, const mha_color_scale *scale, const char *value_name,
                                mha_err *err)
{
    char lo[MHA_LABEL_SIZE], hi[MHA_LABEL_SIZE];
    mha_label_number(lo, scale->lo);
    mha_label_number(hi, scale->hi);
    if (scale->kind == MHA_SCALE_LOG)
        return mha_figure_say(f, err, "Colours: %s, logarithmic from %s (and below) to %s.",
                              value_name, lo, hi);
    if (scale->clipped)
        return mha_figure_say(f, err,
                              "Colours: %s, linear from %s to %s, the 99th percentile; higher "
                              "values have the top colour.",
                              value_name, lo, hi);
    return mha_figure_say(f, err, "Colours: %s, linear from %s to %s.", value_name, lo, hi);
}

void mha_colorbar_draw(const mha_colorbar *bar, mha_figure *f, double x, double y, double height,
                       double below)
{
    /* Several columns, so that a viewer that smooths it does not fade its sides. */
    uint8_t levels[MHA_LEVEL_TOP + 1][BAR_COLUMNS];
    mha_raster raster = {levels[0], BAR_COLUMNS, MHA_LEVEL_TOP + 1, f->palette, NULL};
    bar_tick ticks[BAR_TICKS_MAX];
    double left = x + BAR_GAP, right = left + BAR_WIDTH, widest = 0;
    for (size_t i = 0; i <= MHA_LEVEL_TOP; i++)
        memset(levels[i], (int)(MHA_LEVEL_TOP - i), BAR_COLUMNS);
    mha_canvas_image(f->canvas, f->left + left, f->top + y, BAR_WIDTH, height, &raster);
    mha_figure_frame(f, left, y, BAR_WIDTH, height);
    size_t n = bar_ticks(bar, TICK_ROOM / 2 * f->size / height, ticks);
    for (size_t i = 0; i < n; i++) {
        double at = y + height * (1 - ticks[i].at), from = right + MHA_FIGURE_LINE;
        /* The ends' labels stay beside the bar. */
        double base =
            fmin(fmax(at + MHA_FONT_MIDDLE * f->size, y + MHA_FONT_ASCENT * f->size), y + height);
        mha_figure_rect(f, from, at - MHA_FIGURE_LINE / 2, MHA_FIGURE_TICK, MHA_FIGURE_LINE,
                        f->line);
        mha_figure_put(f, ticks[i].text, f->size, from + MHA_FIGURE_TICK + MHA_FIGURE_GAP, base,
                       MHA_ANCHOR_START, 0, f->text);
        widest = fmax(widest, mha_figure_width(f, ticks[i].text, f->size));
    }
    bool longer = bar->name_width > height;
    mha_figure_put(f, bar->name, f->size,
                   right + MHA_FIGURE_LINE + MHA_FIGURE_TICK + MHA_FIGURE_GAP + widest +
                       f->size * MHA_FONT_LINE,
                   y + (longer ? height + below : height) / 2, MHA_ANCHOR_MIDDLE, 90, f->text);
}
