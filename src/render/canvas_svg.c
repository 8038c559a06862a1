/* canvas_svg.c: SVG of our own, because cairo's turns text into outlines: here it is text that can
 * be searched, edited and set in the paper's font. Rasters are PNG inside, drawn without smoothing.
 * Every string is escaped, and characters that XML does not allow are replaced. */
#include "render/canvas.h"
#include "render/png.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/number.h"

#include <string.h>

/* Points a cell. A viewer that may not smooth smaller cells leaves out every second one. */
#define SMOOTH_BELOW 1.5

static void number(mha_canvas *c, const char *name, double value)
{
    char text[MHA_NUMBER_SIZE];
    mha_number_fixed(text, value, 2);
    char *point = strchr(text, '.');
    for (char *end = text + strlen(text); point && end[-1] == '0'; end--)
        end[-1] = '\0';
    if (point && point[1] == '\0')
        *point = '\0';
    fprintf(c->stream, " %s=\"%s\"", name, text);
}

static void escaped(FILE *f, const char *s)
{
    size_t n = strlen(s);
    uint32_t cp = 0;
    for (size_t i = 0, len; i < n; i += len) {
        len = mha_utf8_decode(s + i, n - i, &cp);
        bool bad = len == 0 || cp < 0x20 || cp == 0x7f || cp == 0xfffe || cp == 0xffff;
        len += len == 0;
        if (bad)
            fputs("\xEF\xBF\xBD", f);
        else if (cp == '&')
            fputs("&amp;", f);
        else if (cp == '<')
            fputs("&lt;", f);
        else if (cp == '>')
            fputs("&gt;", f);
        else if (cp == '"')
            fputs("&quot;", f);
        else
            fwrite(s + i, 1, len, f);
    }
}

static void fill(mha_canvas *c, mha_color color)
{
    fprintf(c->stream, " fill=\"#%02x%02x%02x\"", color.r, color.g, color.b);
}

static void svg_rect(mha_canvas *c, double x, double y, double width, double height,
                     mha_color color)
{
    fputs("<rect", c->stream);
    number(c, "x", x);
    number(c, "y", y);
    number(c, "width", width);
    number(c, "height", height);
    fill(c, color);
    fputs("/>\n", c->stream);
}

/* " M1.5 2" of a path. */
static void path_point(mha_canvas *c, const char *letter, mha_point p)
{
    char x[MHA_NUMBER_SIZE], y[MHA_NUMBER_SIZE];
    mha_number_fixed(x, p.x, 2);
    mha_number_fixed(y, p.y, 2);
    fprintf(c->stream, "%s%s %s", letter, x, y);
}

static void svg_curve(mha_canvas *c, const mha_point curve[3], double line, mha_color color)
{
    fputs("<path d=\"", c->stream);
    path_point(c, "M", curve[0]);
    path_point(c, " Q", curve[1]);
    path_point(c, " ", curve[2]);
    fputs("\" fill=\"none\"", c->stream);
    number(c, "stroke-width", line);
    fprintf(c->stream, " stroke=\"#%02x%02x%02x\"/>\n", color.r, color.g, color.b);
}

static void svg_disc(mha_canvas *c, mha_point centre, double radius, double line, mha_color color)
{
    fputs("<circle", c->stream);
    number(c, "cx", centre.x);
    number(c, "cy", centre.y);
    number(c, "r", radius);
    if (line > 0) {
        number(c, "stroke-width", line);
        fprintf(c->stream, " fill=\"none\" stroke=\"#%02x%02x%02x\"", color.r, color.g, color.b);
    } else
        fill(c, color);
    fputs("/>\n", c->stream);
}

static void svg_path(mha_canvas *c, const mha_point *points, size_t count, double line,
                     mha_color color)
{
    fputs("<path d=\"", c->stream);
    for (size_t i = 0; i < count; i++)
        path_point(c, i == 0 ? "M" : " L", points[i]);
    if (line > 0) {
        fputs("\" fill=\"none\" stroke-linejoin=\"round\"", c->stream);
        number(c, "stroke-width", line);
        fprintf(c->stream, " stroke=\"#%02x%02x%02x\"/>\n", color.r, color.g, color.b);
        return;
    }
    fputs(" Z\"", c->stream);
    fill(c, color);
    fputs("/>\n", c->stream);
}

static void svg_text(mha_canvas *c, const char *text, double size, double x, double y,
                     mha_anchor anchor, double angle, mha_color color)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    char turn[3][MHA_NUMBER_SIZE];
    fputs("<text", c->stream);
    number(c, "x", x);
    number(c, "y", y);
    number(c, "font-size", size);
    if (anchor != MHA_ANCHOR_START)
        fprintf(c->stream, " text-anchor=\"%s\"", anchors[anchor]);
    if (angle != 0) {
        mha_number_fixed(turn[0], -angle, 0);
        mha_number_fixed(turn[1], x, 2);
        mha_number_fixed(turn[2], y, 2);
        fprintf(c->stream, " transform=\"rotate(%s %s %s)\"", turn[0], turn[1], turn[2]);
    }
    fill(c, color);
    fputc('>', c->stream);
    escaped(c->stream, text);
    fputs("</text>\n", c->stream);
}

/* --- images: PNG in base64 ------------------------------------------------------------------- */

typedef struct base64 {
    FILE *f;
    unsigned char rest[3]; /* bytes that wait for their group of three */
    size_t n;
} base64;

static void base64_group(base64 *b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = (uint32_t)b->rest[0] << 16 | (uint32_t)b->rest[1] << 8 | b->rest[2];
    char out[4] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63],
                   digits[group & 63]};
    for (size_t i = b->n + 1; i < 4; i++)
        out[i] = '=';
    fwrite(out, 1, 4, b->f);
    b->n = 0;
    memset(b->rest, 0, sizeof b->rest);
}

static void base64_write(void *context, const unsigned char *bytes, size_t n)
{
    base64 *b = context;
    for (size_t i = 0; i < n; i++) {
        b->rest[b->n++] = bytes[i];
        if (b->n == 3)
            base64_group(b);
    }
}

/* The PNG writer takes true colours as cairo has them. */
static mha_status raster_write(mha_png_sink to, const mha_raster *raster, const mha_png_info *info,
                               mha_err *err)
{
    mha_png_colors none = {0};
    uint32_t *packed;
    if (raster->rgb == NULL)
        return mha_png_write_indexed(to, raster, 256, info, err);
    MHA_TRY(mha_alloc((void **)&packed, raster->width * raster->height, sizeof *packed, err));
    for (size_t row = 0; row < raster->height; row++)
        for (size_t col = 0; col < raster->width; col++) {
            mha_color c = mha_raster_at(raster, row, col);
            packed[row * raster->width + col] =
                (uint32_t)c.r << 16 | (uint32_t)c.g << 8 | (uint32_t)c.b;
        }
    mha_status status =
        mha_png_write_rgb(to, (const unsigned char *)packed, raster->width, raster->height,
                          raster->width * sizeof *packed, &none, info, err);
    mha_free(packed);
    return status;
}

static void svg_image(mha_canvas *c, double x, double y, double width, double height,
                      const mha_raster *raster)
{
    base64 encoder = {.f = c->stream};
    mha_png_info info = {0};
    mha_raster large;
    mha_err err;
    mha_status status = mha_raster_enlarge(&large, raster, width, height, &err);
    fputs("<image", c->stream);
    number(c, "x", x);
    number(c, "y", y);
    number(c, "width", width);
    number(c, "height", height);
    fprintf(c->stream, " preserveAspectRatio=\"none\"%s xlink:href=\"data:image/png;base64,",
            width / (double)raster->width < SMOOTH_BELOW
                ? ""
                : " style=\"image-rendering:optimizeSpeed;image-rendering:pixelated\"");
    if (status == MHA_OK)
        status = raster_write((mha_png_sink){base64_write, &encoder}, &large, &info, &err);
    if (encoder.n > 0)
        base64_group(&encoder);
    fputs("\"/>\n", c->stream);
    if (status != MHA_OK)
        mha_canvas_fail(c, &err);
    mha_raster_release(&large);
}

/* --- the document ------------------------------------------------------------------------------
 */

static mha_status svg_finish(mha_canvas *c, mha_err *err)
{
    (void)err;
    fputs("</g>\n</svg>\n", c->stream);
    return MHA_OK;
}

static void svg_close(mha_canvas *c)
{
    mha_free(c);
}

static const mha_canvas_ops svg_ops = {svg_rect, svg_text, svg_image,  svg_curve,
                                       svg_disc, svg_path, svg_finish, svg_close};

/* Arial and Helvetica are as wide as the bundled font, letter by letter: where it is not installed,
 * the figure looks the same in them. */
static void header_write(mha_canvas *c, const mha_canvas_setup *setup)
{
    char text[2][MHA_NUMBER_SIZE];
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
          "xmlns:xlink=\"http://www.w3.org/1999/xlink\"",
          c->stream);
    mha_number_fixed(text[0], c->width / MHA_POINTS_PER_MM, 2);
    mha_number_fixed(text[1], c->height / MHA_POINTS_PER_MM, 2);
    fprintf(c->stream, " width=\"%smm\" height=\"%smm\"", text[0], text[1]);
    mha_number_fixed(text[0], c->width, 2);
    mha_number_fixed(text[1], c->height, 2);
    fprintf(c->stream, " viewBox=\"0 0 %s %s\">\n", text[0], text[1]);
    if (setup->title) {
        fputs("<title>", c->stream);
        escaped(c->stream, setup->title);
        fputs("</title>\n", c->stream);
    }
    if (setup->creator) {
        fputs("<metadata>", c->stream);
        escaped(c->stream, setup->creator);
        fputs("</metadata>\n", c->stream);
    }
    fputs("<g xml:space=\"preserve\" font-family=\"'", c->stream);
    escaped(c->stream, mha_font_family(c->font));
    fputs("', Arial, Helvetica, sans-serif\">\n", c->stream);
    svg_rect(c, 0, 0, c->width, c->height, setup->background);
}

mha_status mha_canvas_svg_new(mha_canvas **out, const mha_canvas_setup *setup, mha_err *err)
{
    void *p = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof(mha_canvas), err));
    mha_canvas *c = p;
    *c = (mha_canvas){.ops = &svg_ops,
                      .font = setup->font,
                      .stream = setup->stream,
                      .width = setup->width,
                      .height = setup->height,
                      .pixel = 72 / setup->dpi};
    header_write(c, setup);
    *out = c;
    return MHA_OK;
}
