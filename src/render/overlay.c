/* overlay.c: maps laid over the picture that they are about, one panel a map, behind the picture
 * itself. Every patch is a square of one colour: nothing is smoothed between patches. */
#include "render/figure.h"
#include "render/heat.h"

#include "base/fail.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define GAP         3.0 /* points between panels */
#define TITLE_LINE  1.25
#define COLUMNS_MAX 12
#define NARROWEST   6.0 /* points, of a panel */
#define BAR_LOWEST  36.0
#define BAR_TALLEST 240.0
#define FRAME       0.3
#define MARK        1.0     /* line around the patch that looks */
#define COLORMAP    "magma" /* dark where nothing is: bright patches stand out of any picture */
/* How much of the map's colour covers the grey picture: at the lowest and at the highest value. */
#define COVER_LOW  0.40
#define COVER_HIGH 0.90

typedef struct overlay_layout {
    const mha_overlay *figure;
    mha_color_scale scale;
    mha_colorbar bar;
    size_t columns, lines; /* of panels */
    double width, height;  /* of one panel */
    double title, title_size;
    unsigned char *rgb; /* [height, width, 3] one panel's pixels */
} overlay_layout;

/* A few panels stand in one line; more make a block, nearly square, with few empty places. */
static size_t columns_of(size_t panels)
{
    size_t side = 1, best;
    while (side * side < panels)
        side++;
    best = side;
    for (size_t n = side; n <= side + 2 && n < panels; n++) {
        size_t lines = (panels + n - 1) / n, least = (panels + best - 1) / best;
        best = lines * n < least * best ? n : best;
    }
    best = panels <= 4 ? panels : best;
    return best < COLUMNS_MAX ? best : COLUMNS_MAX;
}

static mha_status place(overlay_layout *l, mha_figure *f, mha_err *err)
{
    const mha_overlay *g = l->figure;
    size_t panels = g->count + 1;
    double all = f->width - l->bar.width - 2 * FRAME;
    l->columns = columns_of(panels);
    l->lines = (panels + l->columns - 1) / l->columns;
    l->title_size = fmax(fmin(f->size, 5), f->size - 1);
    l->title = l->title_size * TITLE_LINE;
    l->width = (all - (double)(l->columns - 1) * GAP) / (double)l->columns;
    if (l->width < NARROWEST)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for %zu maps a row",
                        f->width / MHA_POINTS_PER_MM, l->columns);
    l->width = floor(l->width / f->pixel) * f->pixel;
    l->height = l->width * (double)g->picture_height / (double)g->picture_width;
    l->height = fmax(1, round(l->height / f->pixel)) * f->pixel;
    return MHA_OK;
}

/* --- pixels ------------------------------------------------------------------------------------
 */

static unsigned char mix(double under, double over, double cover)
{
    return (unsigned char)(under * (1 - cover) + over * cover + 0.5);
}

static void cover_pixel(unsigned char *to, const unsigned char *from, mha_color color, double cover)
{
    double grey = 0.299 * from[0] + 0.587 * from[1] + 0.114 * from[2];
    to[0] = mix(grey, color.r, cover);
    to[1] = mix(grey, color.g, cover);
    to[2] = mix(grey, color.b, cover);
}

/* The picture in grey under the colours of the map; what no patch covers stays grey. */
static void panel_fill(const overlay_layout *l, const mha_figure *f, const mha_heat *map)
{
    const mha_overlay *g = l->figure;
    for (size_t y = 0; y < g->picture_height; y++)
        for (size_t x = 0; x < g->picture_width; x++) {
            size_t at = (y * g->picture_width + x) * 3, r = y / g->patch, c = x / g->patch;
            bool covered = r < map->tile_rows && c < map->tile_cols;
            double value = covered ? mha_heat_get(map, r, c) : 0;
            double share = covered ? mha_color_scale_at(&l->scale, value) : 0;
            mha_color color = f->palette[mha_color_scale_level(&l->scale, value)];
            cover_pixel(l->rgb + at, g->rgb + at, color,
                        covered ? COVER_LOW + (COVER_HIGH - COVER_LOW) * share : 0);
        }
}

/* --- drawing -----------------------------------------------------------------------------------
 */

/* The patch whose attention is shown, framed. */
static void mark_draw(const overlay_layout *l, mha_figure *f, double x, double y)
{
    const mha_overlay *g = l->figure;
    double across = l->width / (double)g->picture_width;
    double down = l->height / (double)g->picture_height;
    if (g->mark_row < 0)
        return;
    double left = x + (double)g->mark_col * (double)g->patch * across;
    double top = y + (double)g->mark_row * (double)g->patch * down;
    double width = (double)g->patch * across, height = (double)g->patch * down;
    mha_canvas_frame(f->canvas, f->left + left, f->top + top, width, height, MARK,
                     (mha_color){0xff, 0xff, 0xff});
    mha_canvas_frame(f->canvas, f->left + left, f->top + top, width, height, MARK / 2,
                     (mha_color){0xd0, 0x10, 0x10});
}

static mha_status panel_draw(const overlay_layout *l, mha_figure *f, size_t panel, mha_err *err)
{
    const mha_overlay *g = l->figure;
    const char *name = panel == 0 ? "picture" : g->titles != NULL ? g->titles[panel - 1] : "";
    double x = FRAME + (double)(panel % l->columns) * (l->width + GAP);
    double y = FRAME + l->title + (double)(panel / l->columns) * (l->height + GAP + l->title);
    char *title;
    MHA_TRY(mha_figure_text(&title, f, name, err));
    MHA_TRY(mha_figure_fit(&title, f, title, l->title_size, l->width + GAP, err));
    mha_figure_put(f, title, l->title_size, x + l->width / 2,
                   y - 2 - MHA_FONT_DESCENT * l->title_size / 2, MHA_ANCHOR_MIDDLE, 0, f->text);
    x = mha_canvas_snap(f->canvas, x + f->left) - f->left;
    y = mha_canvas_snap(f->canvas, y + f->top) - f->top;
    if (panel > 0)
        panel_fill(l, f, g->maps[panel - 1]);
    mha_raster raster = {.width = g->picture_width,
                         .height = g->picture_height,
                         .rgb = panel == 0 ? g->rgb : l->rgb};
    mha_canvas_image(f->canvas, f->left + x, f->top + y, l->width, l->height, &raster);
    mha_canvas_frame(f->canvas, f->left + x, f->top + y, l->width, l->height, FRAME, f->line);
    mark_draw(l, f, x, y);
    return MHA_OK;
}

static mha_status draw(const overlay_layout *l, mha_figure *f, mha_err *err)
{
    double block = (double)l->lines * (l->height + GAP + l->title) - GAP;
    double bar_height = fmin(fmax(block - l->title, BAR_LOWEST), BAR_TALLEST);
    double content = fmax(block, l->title + fmax(bar_height, l->bar.name_width));
    double right = FRAME + (double)l->columns * (l->width + GAP) - GAP;
    MHA_TRY(mha_figure_begin(f, content + 2 * FRAME, FRAME, err));
    for (size_t panel = 0; panel <= l->figure->count; panel++)
        MHA_TRY(panel_draw(l, f, panel, err));
    mha_colorbar_draw(&l->bar, f, right, FRAME + l->title, bar_height,
                      content - l->title - bar_height);
    return mha_figure_end(f, err);
}

static mha_status layout_make(overlay_layout *l, mha_figure *f, mha_err *err)
{
    const mha_overlay *g = l->figure;
    const char *name = g->value_name != NULL ? g->value_name : "attention weight";
    void *p = NULL;
    MHA_TRY(mha_color_scale_of(&l->scale, g->maps, g->count, f->options->scale, err));
    MHA_TRY(mha_colorbar_make(&l->bar, f, &l->scale, name, err));
    MHA_TRY(place(l, f, err));
    MHA_TRY(mha_figure_say(f, err,
                           "The picture is as the model sees it; in the maps it is grey, and the "
                           "higher a patch's value the more of it its colour covers."));
    if (g->note != NULL)
        MHA_TRY(mha_figure_note(f, err, "%s", g->note));
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->picture_height * g->picture_width, 3, err));
    l->rgb = p;
    return MHA_OK;
}

mha_status mha_chart_overlay(const mha_overlay *figure, const mha_chart_options *o,
                             const char *path, mha_err *err)
{
    mha_figure f;
    mha_chart_options own = *o;
    overlay_layout l = {.figure = figure};
    own.colormap = o->colormap != NULL ? o->colormap : COLORMAP;
    assert(figure->count > 0 && figure->patch > 0);
    mha_status status = mha_figure_open(&f, &own, path, false, err);
    if (status == MHA_OK)
        status = layout_make(&l, &f, err);
    if (status == MHA_OK)
        status = draw(&l, &f, err);
    mha_figure_close(&f);
    return status;
}
