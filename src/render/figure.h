/* figure.h: what the figures share: options, colours, the page with title and notes, text that is
 * fitted and wrapped, the colour bar. A figure is laid out first, since its height follows from
 * what is in it, and drawn then.
 *
 *   mha_figure_open     options checked, font and colours there (mha_figure_set_up: without a font)
 *   mha_figure_note     what a reader must know, as often as there is something
 *   mha_figure_begin    the canvas; the content goes from (0, 0) to (width, height) inside it
 *   mha_canvas_...      drawing, shifted by figure->left and figure->top
 *   mha_figure_end      notes, files
 *   mha_figure_close    in any case */
#ifndef MHA_RENDER_FIGURE_H
#define MHA_RENDER_FIGURE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "mha/chart.h"
#include "render/canvas.h"
#include "render/scale.h"

#define MHA_FIGURE_LINE 0.5 /* width of frames and ticks, points */
#define MHA_FIGURE_TICK 2.0 /* length of a tick */
#define MHA_FIGURE_GAP  2.0 /* between a tick and its label */

typedef struct mha_figure {
    const mha_chart_options *options;
    const char *path;
    mha_format format;
    mha_font *font;
    double width; /* of the content, points */
    double size;  /* of text, points */
    double dpi, pixel;
    mha_color background, text, muted, line, masked;
    mha_color palette[256];
    mha_arena arena;  /* texts of the layout */
    mha_buf notes;    /* sentences under the figure */
    mha_buf caption;  /* sentences for the caption only */
    mha_outfile file; /* from begin to end */
    mha_canvas *canvas;
    double left, top; /* where the content starts */
} mha_figure;

/* diverging: the default colours are those for signed values. Close in any case. */
mha_status mha_figure_set_up(mha_figure *f, const mha_chart_options *o, const char *path,
                             bool diverging, mha_err *err);
mha_status mha_figure_open(mha_figure *f, const mha_chart_options *o, const char *path,
                           bool diverging, mha_err *err);
void mha_figure_close(mha_figure *f);

/* Adds a sentence to the notes under the figure, which are in the caption too. */
mha_status mha_figure_note(mha_figure *f, mha_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a sentence to the caption only. */
mha_status mha_figure_say(mha_figure *f, mha_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* title_at: where the title starts, from the content's left edge. */
mha_status mha_figure_begin(mha_figure *f, double height, double title_at, mha_err *err);
mha_status mha_figure_end(mha_figure *f, mha_err *err);
/* The caption's file, when one was asked for; a part of mha_figure_end. */
mha_status mha_figure_write_caption(const mha_figure *f, mha_err *err);

/* --- text --------------------------------------------------------------------------------------
 */

/* *out = s with control characters escaped; in the figure's arena. */
mha_status mha_figure_text(char **out, mha_figure *f, const char *s, mha_err *err);
/* *out = s, or its beginning with an ellipsis, so that it is no wider than `width`. */
mha_status mha_figure_fit(char **out, mha_figure *f, const char *s, double size, double width,
                          mha_err *err);
double mha_figure_width(const mha_figure *f, const char *s, double size);
/* Draws relative to the content; otherwise as on the canvas. */
void mha_figure_put(mha_figure *f, const char *s, double size, double x, double y,
                    mha_anchor anchor, double angle, mha_color color);
void mha_figure_rect(mha_figure *f, double x, double y, double width, double height,
                     mha_color color);
void mha_figure_frame(mha_figure *f, double x, double y, double width, double height);

/* --- maps --------------------------------------------------------------------------------------
 */

/* How often a map must be halved and so on: tiles to make one, so that none is below a pixel. */
size_t mha_figure_coarsening(const mha_figure *f, const mha_heat *h, double width, double height);
/* levels: [tile_rows, tile_cols] */
void mha_figure_levels(uint8_t *levels, const mha_heat *h, const mha_color_scale *scale);
/* Draws the tiles into the rectangle, which is relative to the content. */
mha_status mha_figure_map(mha_figure *f, const mha_heat *h, const mha_color_scale *scale, double x,
                          double y, double width, double height, mha_err *err);
/* Notes how the tiles were pooled, when they were, and says what grey is, when there is any. */
mha_status mha_figure_note_tiles(mha_figure *f, const mha_heat *h, mha_err *err);

/* The colour bar: name and numbers to its right. */
typedef struct mha_colorbar {
    const mha_color_scale *scale;
    const char *name;    /* with the scale in words */
    const char *lo, *hi; /* texts in place of the numbers at the ends; NULL: the numbers */
    double width;        /* all of it */
    double name_width;   /* the height that the name takes, since it is turned */
} mha_colorbar;
mha_status mha_colorbar_make(mha_colorbar *out, mha_figure *f, const mha_color_scale *scale,
                             const char *value_name, mha_err *err);
/* Says in the caption what the colours are; a part of mha_colorbar_make where the ends are numbers.
 */
mha_status mha_figure_say_scale(mha_figure *f, const mha_color_scale *scale, const char *value_name,
                                mha_err *err);
/* `below` is free room under the bar for a long name: with the height at least name_width. */
void mha_colorbar_draw(const mha_colorbar *bar, mha_figure *f, double x, double y, double height,
                       double below);

#endif
