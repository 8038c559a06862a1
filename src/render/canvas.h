/* canvas.h: what figures are drawn on. A figure is drawn once, with these calls, and comes out as
 * PNG, PDF or SVG.
 *
 * The unit is the point (1/72 inch), the origin the upper left corner. Drawing calls return
 * nothing: the first error stays in the canvas and mha_canvas_finish reports it. Where the output
 * has pixels, edges of rectangles lie on them, so that lines and cells are crisp. */
#ifndef MHA_RENDER_CANVAS_H
#define MHA_RENDER_CANVAS_H

#include "mha/chart.h"
#include "render/color.h"
#include "render/font.h"

#include <stdio.h>

#define MHA_POINTS_PER_MM (72 / 25.4)

typedef enum mha_anchor { MHA_ANCHOR_START = 0, MHA_ANCHOR_MIDDLE, MHA_ANCHOR_END } mha_anchor;

/* Indexed pixels or true colours, from the top. */
typedef struct mha_raster {
    const uint8_t *pixels; /* [height, width] */
    size_t width, height;
    const mha_color *palette; /* [256]; the same for all rasters of a canvas, which it outlives */
    const unsigned char
        *rgb; /* [height, width, 3] in the place of pixels and palette; NULL: those */
} mha_raster;

/* *out = the raster with every pixel repeated so often that it has about 300 pixels an inch at the
 * size of width x height points. PDF and SVG get it this way: a viewer that smooths images in spite
 * of all blurs nothing but the cells' edges. Release *out, after an error too. */
mha_status mha_raster_enlarge(mha_raster *out, const mha_raster *raster, double width,
                              double height, mha_err *err);
void mha_raster_release(mha_raster *r); /* frees the pixels; only for what this module made */

/* The colour of one pixel. */
mha_color mha_raster_at(const mha_raster *raster, size_t row, size_t col);

typedef struct mha_canvas mha_canvas;

typedef struct mha_point {
    double x, y;
} mha_point;

typedef struct mha_canvas_ops {
    void (*rect)(mha_canvas *c, double x, double y, double width, double height, mha_color color);
    void (*text)(mha_canvas *c, const char *text, double size, double x, double y,
                 mha_anchor anchor, double angle, mha_color color);
    void (*image)(mha_canvas *c, double x, double y, double width, double height,
                  const mha_raster *raster);
    void (*curve)(mha_canvas *c, const mha_point curve[3], double line, mha_color color);
    void (*disc)(mha_canvas *c, mha_point centre, double radius, double line, mha_color color);
    void (*path)(mha_canvas *c, const mha_point *points, size_t count, double line,
                 mha_color color);
    mha_status (*finish)(mha_canvas *c, mha_err *err);
    void (*close)(mha_canvas *c);
} mha_canvas_ops;

/* What every kind of canvas begins with. */
struct mha_canvas {
    const mha_canvas_ops *ops;
    mha_font *font; /* borrowed */
    FILE *stream;   /* borrowed; its errors are found by whoever commits the file */
    double width, height;
    double pixel; /* the smallest thing that can be told apart, in points */
    mha_status status;
    mha_err err;
};

typedef struct mha_canvas_setup {
    double width, height; /* points */
    double dpi;           /* of PNG */
    mha_color background, text;
    const char *title, *creator; /* metadata; NULL: none */
    mha_font *font;
    FILE *stream;
} mha_canvas_setup;

mha_status mha_canvas_png_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err);
mha_status mha_canvas_pdf_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err);
mha_status mha_canvas_svg_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err);

/* Writes the file; the canvas can only be closed after that. */
mha_status mha_canvas_finish(mha_canvas *c, mha_err *err);
void mha_canvas_close(mha_canvas *c);

void mha_canvas_rect(mha_canvas *c, double x, double y, double width, double height,
                     mha_color color);
/* One line; (x, y) is where the anchor lies on the baseline; `angle` in degrees counter-clockwise
 * about it. */
void mha_canvas_text(mha_canvas *c, const char *text, double size, double x, double y,
                     mha_anchor anchor, double angle, mha_color color);
/* Every pixel of the raster is a rectangle of the output: never smoothed. */
void mha_canvas_image(mha_canvas *c, double x, double y, double width, double height,
                      const mha_raster *raster);
/* A line from curve[0] to curve[2], drawn towards curve[1] (a quadratic Bézier curve). Curves,
 * discs and paths are antialiased. */
void mha_canvas_curve(mha_canvas *c, const mha_point curve[3], double line, mha_color color);
/* A disc; with line > 0 only its rim, of that width, its middle at the radius. */
void mha_canvas_disc(mha_canvas *c, mha_point centre, double radius, double line, mha_color color);
/* A line through the points, in their order; with line 0 the area inside of them. */
void mha_canvas_path(mha_canvas *c, const mha_point *points, size_t count, double line,
                     mha_color color);
/* The outline of a rectangle, `line` wide, outside of it. */
void mha_canvas_frame(mha_canvas *c, double x, double y, double width, double height, double line,
                      mha_color color);

/* For the canvases: keeps the first error. */
void mha_canvas_fail(mha_canvas *c, const mha_err *err);

/* Nearest number of points that is a whole number of pixels. */
double mha_canvas_snap(const mha_canvas *c, double points);

#endif
