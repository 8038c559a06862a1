/* canvas_cairo.c: PNG and PDF through cairo. In PNG every edge is moved to the nearest pixel, and
 * rasters are copied pixel by pixel; in PDF rasters are images without interpolation, enlarged so
 * that a viewer which smooths them anyway blurs edges only. */
#include "render/canvas.h"
#include "render/png.h"

#include "base/fail.h"
#include "base/mem.h"

#include <cairo-pdf.h>
#include <math.h>
#include <string.h>

typedef struct cairo_canvas {
    mha_canvas base;
    cairo_surface_t *surface;
    cairo_t *cr;
    mha_png_info info;
    mha_png_colors colors;
} cairo_canvas;

static cairo_canvas *self(mha_canvas *c)
{
    return (cairo_canvas *)c;
}

static void source_set(cairo_t *cr, mha_color color)
{
    cairo_set_source_rgb(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0);
}

static mha_status status_of(cairo_status_t status, mha_err *err)
{
    if (status == CAIRO_STATUS_SUCCESS)
        return MHA_OK;
    return mha_fail(err, status == CAIRO_STATUS_NO_MEMORY ? MHA_ERR_NOMEM : MHA_ERR_INTERNAL,
                    "cairo: %s", cairo_status_to_string(status));
}

static void text_draw(mha_canvas *c, const char *text, double size, double x, double y,
                      mha_anchor anchor, double angle, mha_color color)
{
    double turn = angle * M_PI / 180;
    double back = anchor == MHA_ANCHOR_START ? 0 : mha_font_width(c->font, text, size);
    if (anchor == MHA_ANCHOR_MIDDLE)
        back /= 2;
    source_set(self(c)->cr, color);
    mha_font_show(c->font, self(c)->cr, text, size, x - back * cos(turn), y + back * sin(turn),
                  angle);
}

static void canvas_close(mha_canvas *c)
{
    if (self(c)->cr)
        cairo_destroy(self(c)->cr);
    if (self(c)->surface)
        cairo_surface_destroy(self(c)->surface);
    mha_free(c);
}

/* Takes the surface over, and paints the background. */
static mha_status canvas_make(mha_canvas **out, const mha_canvas_setup *setup,
                              const mha_canvas_ops *ops, cairo_surface_t *surface, mha_err *err)
{
    void *p = NULL;
    mha_status status = status_of(cairo_surface_status(surface), err);
    if (status == MHA_OK)
        status = mha_alloc(&p, 1, sizeof(cairo_canvas), err);
    if (status != MHA_OK) {
        cairo_surface_destroy(surface);
        return status;
    }
    cairo_canvas *c = p;
    c->base = (mha_canvas){.ops = ops,
                           .font = setup->font,
                           .stream = setup->stream,
                           .width = setup->width,
                           .height = setup->height};
    c->info = (mha_png_info){setup->dpi, setup->title, setup->creator};
    c->colors = (mha_png_colors){NULL, setup->background, setup->text};
    c->surface = surface;
    c->cr = cairo_create(surface);
    source_set(c->cr, setup->background);
    cairo_paint(c->cr);
    *out = &c->base;
    return MHA_OK;
}

/* cairo has cubic curves only: their inner points lie two thirds of the way to the one of ours. */
static void curve_draw(mha_canvas *c, const mha_point curve[3], double line, mha_color color)
{
    cairo_t *cr = self(c)->cr;
    const mha_point *a = &curve[0], *m = &curve[1], *b = &curve[2];
    source_set(cr, color);
    cairo_set_line_width(cr, line);
    cairo_move_to(cr, a->x, a->y);
    cairo_curve_to(cr, a->x + (m->x - a->x) * 2 / 3, a->y + (m->y - a->y) * 2 / 3,
                   b->x + (m->x - b->x) * 2 / 3, b->y + (m->y - b->y) * 2 / 3, b->x, b->y);
    cairo_stroke(cr);
}

static void disc_draw(mha_canvas *c, mha_point centre, double radius, double line, mha_color color)
{
    cairo_t *cr = self(c)->cr;
    source_set(cr, color);
    cairo_set_line_width(cr, line);
    cairo_new_sub_path(cr);
    cairo_arc(cr, centre.x, centre.y, radius, 0, 2 * M_PI);
    if (line > 0)
        cairo_stroke(cr);
    else
        cairo_fill(cr);
}

static void path_draw(mha_canvas *c, const mha_point *points, size_t count, double line,
                      mha_color color)
{
    cairo_t *cr = self(c)->cr;
    source_set(cr, color);
    cairo_set_line_width(cr, line);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_new_path(cr); /* text leaves a point */
    for (size_t i = 0; i < count; i++)
        cairo_line_to(cr, points[i].x, points[i].y);
    if (line > 0)
        cairo_stroke(cr);
    else
        cairo_fill(cr);
}

/* --- PNG ---------------------------------------------------------------------------------------
 */

/* Pixels from `from` up to but without `to`, inside 0..limit; at least one where length > 0. */
static void pixel_span(double start, double length, double pixel, int limit, int *from, int *to)
{
    double a = round(start / pixel), b = round((start + length) / pixel);
    if (b < a + 1)
        b = a + 1;
    *from = a < 0 ? 0 : a > limit ? limit : (int)a;
    *to = b < 0 ? 0 : b > limit ? limit : (int)b;
}

static uint32_t pixel_pack(mha_color c)
{
    return (uint32_t)c.r << 16 | (uint32_t)c.g << 8 | c.b;
}

typedef struct pixel_box {
    int left, right, top, bottom;
    unsigned char *pixels;
    size_t stride;
} pixel_box;

static pixel_box box_open(mha_canvas *c, double x, double y, double width, double height)
{
    pixel_box b;
    cairo_surface_t *surface = self(c)->surface;
    cairo_surface_flush(surface);
    pixel_span(x, width, c->pixel, cairo_image_surface_get_width(surface), &b.left, &b.right);
    pixel_span(y, height, c->pixel, cairo_image_surface_get_height(surface), &b.top, &b.bottom);
    b.pixels = cairo_image_surface_get_data(surface);
    b.stride = (size_t)cairo_image_surface_get_stride(surface);
    return b;
}

static void box_close(mha_canvas *c, const pixel_box *b)
{
    cairo_surface_mark_dirty_rectangle(self(c)->surface, b->left, b->top, b->right - b->left,
                                       b->bottom - b->top);
}

static uint32_t *box_row(const pixel_box *b, int y)
{
    /* cairo aligns its rows. */
    return (uint32_t *)(void *)(b->pixels + (size_t)y * b->stride);
}

static void png_rect(mha_canvas *c, double x, double y, double width, double height,
                     mha_color color)
{
    pixel_box b = box_open(c, x, y, width, height);
    uint32_t pixel = pixel_pack(color);
    for (int row = b.top; row < b.bottom; row++)
        for (int col = b.left; col < b.right; col++)
            box_row(&b, row)[col] = pixel;
    box_close(c, &b);
}

/* Output pixel p of n shows raster pixel floor((p + 1/2) size / n). */
static void png_image(mha_canvas *c, double x, double y, double width, double height,
                      const mha_raster *raster)
{
    pixel_box b = box_open(c, x, y, width, height);
    size_t across = (size_t)(b.right - b.left), down = (size_t)(b.bottom - b.top);
    size_t last = SIZE_MAX;
    if (raster->palette != NULL)
        self(c)->colors.map = raster->palette;
    for (size_t row = 0; row < down; row++) {
        uint32_t *to = box_row(&b, b.top + (int)row) + b.left;
        size_t from = (2 * row + 1) * raster->height / (2 * down);
        if (from == last) {
            memcpy(to, box_row(&b, b.top + (int)row - 1) + b.left, across * sizeof *to);
            continue;
        }
        for (size_t col = 0; col < across; col++)
            to[col] = pixel_pack(
                mha_raster_at(raster, from, (2 * col + 1) * raster->width / (2 * across)));
        last = from;
    }
    box_close(c, &b);
}

static mha_status png_finish(mha_canvas *c, mha_err *err)
{
    cairo_surface_t *surface = self(c)->surface;
    MHA_TRY(status_of(cairo_status(self(c)->cr), err));
    cairo_surface_flush(surface);
    return mha_png_write_rgb(mha_png_to_stream(c->stream), cairo_image_surface_get_data(surface),
                             (size_t)cairo_image_surface_get_width(surface),
                             (size_t)cairo_image_surface_get_height(surface),
                             (size_t)cairo_image_surface_get_stride(surface), &self(c)->colors,
                             &self(c)->info, err);
}

static const mha_canvas_ops png_ops = {png_rect,  text_draw, png_image,  curve_draw,
                                       disc_draw, path_draw, png_finish, canvas_close};

mha_status mha_canvas_png_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err)
{
    double scale = setup->dpi / 72;
    double width = ceil(setup->width * scale - 0.01), height = ceil(setup->height * scale - 0.01);
    if (width > 32767 || height > 32767)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "a PNG of %.0f x %.0f pixels: cairo takes at most 32767 a side", width,
                        height);
    MHA_TRY(canvas_make(out, setup, &png_ops,
                        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height),
                        err));
    (*out)->pixel = 1 / scale;
    cairo_scale(self(*out)->cr, scale, scale);
    return MHA_OK;
}

/* --- PDF ---------------------------------------------------------------------------------------
 */

static void pdf_rect(mha_canvas *c, double x, double y, double width, double height,
                     mha_color color)
{
    cairo_t *cr = self(c)->cr;
    source_set(cr, color);
    cairo_rectangle(cr, x, y, width, height);
    cairo_fill(cr);
}

static void raster_copy(cairo_surface_t *to, const mha_raster *raster)
{
    pixel_box b = {.pixels = cairo_image_surface_get_data(to),
                   .stride = (size_t)cairo_image_surface_get_stride(to)};
    for (size_t row = 0; row < raster->height; row++)
        for (size_t col = 0; col < raster->width; col++)
            box_row(&b, (int)row)[col] = pixel_pack(mha_raster_at(raster, row, col));
    cairo_surface_mark_dirty(to);
}

static mha_status pdf_image_draw(mha_canvas *c, double x, double y, double width, double height,
                                 const mha_raster *raster, mha_err *err)
{
    cairo_t *cr = self(c)->cr;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)raster->width, (int)raster->height);
    mha_status status = status_of(cairo_surface_status(image), err);
    if (status == MHA_OK) {
        raster_copy(image, raster);
        cairo_save(cr);
        cairo_translate(cr, x, y);
        cairo_scale(cr, width / (double)raster->width, height / (double)raster->height);
        cairo_set_source_surface(cr, image, 0, 0);
        cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
        cairo_rectangle(cr, 0, 0, (double)raster->width, (double)raster->height);
        cairo_fill(cr);
        cairo_restore(cr);
    }
    cairo_surface_destroy(image);
    return status;
}

static void pdf_image(mha_canvas *c, double x, double y, double width, double height,
                      const mha_raster *raster)
{
    mha_raster large;
    mha_err err;
    mha_status status = mha_raster_enlarge(&large, raster, width, height, &err);
    if (status == MHA_OK)
        status = pdf_image_draw(c, x, y, width, height, &large, &err);
    if (status != MHA_OK)
        mha_canvas_fail(c, &err);
    mha_raster_release(&large);
}

static mha_status pdf_finish(mha_canvas *c, mha_err *err)
{
    cairo_show_page(self(c)->cr);
    cairo_surface_finish(self(c)->surface);
    MHA_TRY(status_of(cairo_status(self(c)->cr), err));
    return status_of(cairo_surface_status(self(c)->surface), err);
}

static const mha_canvas_ops pdf_ops = {pdf_rect,  text_draw, pdf_image,  curve_draw,
                                       disc_draw, path_draw, pdf_finish, canvas_close};

/* Errors stay in the stream, where the commit of the file finds them. */
static cairo_status_t stream_write(void *stream, const unsigned char *bytes, unsigned int n)
{
    fwrite(bytes, 1, n, stream);
    return CAIRO_STATUS_SUCCESS;
}

mha_status mha_canvas_pdf_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err)
{
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(stream_write, setup->stream,
                                                                   setup->width, setup->height);
    /* No date: the same figure is the same file. */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
    if (setup->title)
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, setup->title);
    if (setup->creator)
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, setup->creator);
    MHA_TRY(canvas_make(out, setup, &pdf_ops, surface, err));
    (*out)->pixel = 72 / setup->dpi;
    return MHA_OK;
}
