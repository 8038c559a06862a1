/* canvas.c: what all canvases share. It may not know in which format the figure ends. */
#include "render/canvas.h"

#include "base/fail.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

#define ENLARGED_DPI  300
#define ENLARGED_SIDE 1200 /* pixels that are enough at any size */

mha_status mha_canvas_finish(mha_canvas *c, mha_err *err)
{
    if (c->status != MHA_OK) {
        if (err)
            *err = c->err;
        return c->status;
    }
    return c->ops->finish(c, err);
}

void mha_canvas_close(mha_canvas *c)
{
    if (c)
        c->ops->close(c);
}

void mha_canvas_fail(mha_canvas *c, const mha_err *err)
{
    if (c->status != MHA_OK)
        return;
    c->status = err->status;
    c->err = *err;
}

void mha_canvas_rect(mha_canvas *c, double x, double y, double width, double height,
                     mha_color color)
{
    if (c->status == MHA_OK && width > 0 && height > 0)
        c->ops->rect(c, x, y, width, height, color);
}

void mha_canvas_text(mha_canvas *c, const char *text, double size, double x, double y,
                     mha_anchor anchor, double angle, mha_color color)
{
    if (c->status == MHA_OK && *text)
        c->ops->text(c, text, size, x, y, anchor, angle, color);
}

void mha_canvas_image(mha_canvas *c, double x, double y, double width, double height,
                      const mha_raster *raster)
{
    if (c->status == MHA_OK && width > 0 && height > 0)
        c->ops->image(c, x, y, width, height, raster);
}

void mha_canvas_curve(mha_canvas *c, const mha_point curve[3], double line, mha_color color)
{
    if (c->status == MHA_OK && line > 0)
        c->ops->curve(c, curve, line, color);
}

void mha_canvas_disc(mha_canvas *c, mha_point centre, double radius, double line, mha_color color)
{
    if (c->status == MHA_OK && radius > 0)
        c->ops->disc(c, centre, radius, line, color);
}

void mha_canvas_path(mha_canvas *c, const mha_point *points, size_t count, double line,
                     mha_color color)
{
    if (c->status == MHA_OK)
        c->ops->path(c, points, count, line, color);
}

void mha_canvas_frame(mha_canvas *c, double x, double y, double width, double height, double line,
                      mha_color color)
{
    mha_canvas_rect(c, x - line, y - line, width + 2 * line, line, color);
    mha_canvas_rect(c, x - line, y + height, width + 2 * line, line, color);
    mha_canvas_rect(c, x - line, y, line, height, color);
    mha_canvas_rect(c, x + width, y, line, height, color);
}

double mha_canvas_snap(const mha_canvas *c, double points)
{
    return round(points / c->pixel) * c->pixel;
}

mha_color mha_raster_at(const mha_raster *raster, size_t row, size_t col)
{
    size_t at = row * raster->width + col;
    if (raster->rgb == NULL)
        return raster->palette[raster->pixels[at]];
    return (mha_color){raster->rgb[3 * at], raster->rgb[3 * at + 1], raster->rgb[3 * at + 2]};
}

/* `factor` copies of a pixel of `bytes` bytes. */
static void pixel_repeat(uint8_t *to, const uint8_t *from, size_t bytes, size_t factor)
{
    for (size_t i = 0; i < factor; i++)
        memcpy(to + i * bytes, from, bytes);
}

mha_status mha_raster_enlarge(mha_raster *out, const mha_raster *raster, double width,
                              double height, mha_err *err)
{
    size_t longest = raster->width > raster->height ? raster->width : raster->height, count;
    size_t bytes = raster->rgb != NULL ? 3 : 1;
    double wanted = fmin(ENLARGED_SIDE, fmax(width, height) / 72 * ENLARGED_DPI);
    size_t factor = (double)longest >= wanted ? 1 : (size_t)(wanted / (double)longest);
    const uint8_t *from = raster->rgb != NULL ? raster->rgb : raster->pixels;
    void *pixels = NULL;
    *out = (mha_raster){.palette = raster->palette};
    if (mha_mul_overflows(raster->width * factor, raster->height * factor, &count))
        return mha_fail(err, MHA_ERR_NOMEM, "an image of %zu x %zu pixels", raster->width,
                        raster->height);
    MHA_TRY(mha_alloc_raw(&pixels, count, bytes, err));
    uint8_t *to = pixels;
    if (bytes == 3)
        out->rgb = to;
    else
        out->pixels = to;
    out->width = raster->width * factor;
    out->height = raster->height * factor;
    size_t line = out->width * bytes;
    for (size_t row = 0; row < raster->height; row++) {
        for (size_t col = 0; col < raster->width; col++)
            pixel_repeat(to + col * factor * bytes, from + (row * raster->width + col) * bytes,
                         bytes, factor);
        for (size_t copy = 1; copy < factor; copy++)
            memcpy(to + copy * line, to, line);
        to += factor * line;
    }
    return MHA_OK;
}

void mha_raster_release(mha_raster *r)
{
    mha_free((void *)(uintptr_t)r->pixels);
    mha_free((void *)(uintptr_t)r->rgb);
    *r = (mha_raster){0};
}
