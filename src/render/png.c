/* png.c: writing PNG through libpng. Figures are flat areas and a little text, so the fast end of
 * zlib and no filters compress them as well as anything. libpng reports errors by longjmp: it is
 * called in one function only, which holds nothing that would have to be freed. */
#include "render/png.h"

#include "base/fail.h"
#include "base/mem.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define COMPRESSION 3
#define TABLE_SIZE  4096
#define RAMP        62 /* shades from background to text */
#define RAMP_ERROR  4  /* steps of 255 that a shade may be off */
#define INCH_IN_M   0.0254
#define FREE_SLOT   UINT32_MAX
#define SIDE_MAX    1000000

/* --- one call of libpng ------------------------------------------------------------------------
 */

typedef struct job {
    mha_png_sink to;
    size_t width, height;
    const mha_png_info *info;
    const unsigned char *pixels;
    size_t stride;
    bool indexed;
    png_color palette[256];
    int colors;
    unsigned char *row; /* scratch for one row of true colour */
    char message[128];
} job;

static void on_error(png_structp png, png_const_charp message)
{
    job *j = png_get_error_ptr(png);
    snprintf(j->message, sizeof j->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_write(png_structp png, png_bytep bytes, size_t n)
{
    const job *j = png_get_io_ptr(png);
    j->to.write(j->to.context, bytes, n);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static void header_write(png_structp png, png_infop info, job *j)
{
    png_text texts[2];
    int count = 0;
    memset(texts, 0, sizeof texts);
    png_set_IHDR(png, info, (png_uint_32)j->width, (png_uint_32)j->height, 8,
                 j->indexed ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (j->indexed)
        png_set_PLTE(png, info, j->palette, j->colors);
    if (j->info->dpi > 0) {
        png_uint_32 per_meter = (png_uint_32)(j->info->dpi / INCH_IN_M + 0.5);
        png_set_pHYs(png, info, per_meter, per_meter, PNG_RESOLUTION_METER);
    }
    const char *const keys[] = {"Title", "Software"};
    const char *const values[] = {j->info->title, j->info->software};
    for (int i = 0; i < 2; i++) {
        if (!values[i])
            continue;
        texts[count].compression = PNG_ITXT_COMPRESSION_NONE;
        texts[count].key = (png_charp)(uintptr_t)keys[i];
        texts[count].text = (png_charp)(uintptr_t)values[i];
        texts[count].itxt_length = strlen(values[i]);
        count++;
    }
    png_set_text(png, info, texts, count);
    png_write_info(png, info);
}

static void row_unpack(const job *j, size_t y)
{
    const unsigned char *from = j->pixels + y * j->stride;
    for (size_t x = 0; x < j->width; x++) {
        uint32_t pixel;
        memcpy(&pixel, from + 4 * x, 4);
        j->row[3 * x] = (unsigned char)(pixel >> 16);
        j->row[3 * x + 1] = (unsigned char)(pixel >> 8);
        j->row[3 * x + 2] = (unsigned char)pixel;
    }
}

static void rows_write(png_structp png, const job *j)
{
    for (size_t y = 0; y < j->height; y++) {
        if (!j->indexed)
            row_unpack(j, y);
        png_write_row(png, j->indexed ? j->pixels + y * j->stride : j->row);
    }
}

static mha_status job_run(job *j, mha_err *err)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, j, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory for a PNG");
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return mha_fail(err, MHA_ERR_INTERNAL, "libpng: %s", j->message);
    }
    png_set_write_fn(png, j, on_write, on_flush);
    png_set_user_limits(png, SIDE_MAX, SIDE_MAX);
    png_set_compression_level(png, COMPRESSION);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    header_write(png, info, j);
    rows_write(png, j);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return MHA_OK;
}

static void stream_write(void *stream, const unsigned char *bytes, size_t n)
{
    fwrite(bytes, 1, n, stream);
}

mha_png_sink mha_png_to_stream(FILE *f)
{
    return (mha_png_sink){stream_write, f};
}

static mha_status size_check(size_t width, size_t height, mha_err *err)
{
    if (width > SIDE_MAX || height > SIDE_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "a PNG of %zu x %zu pixels: at most %d a side", width,
                        height, SIDE_MAX);
    return MHA_OK;
}

mha_status mha_png_write_indexed(mha_png_sink to, const mha_raster *raster, size_t colors,
                                 const mha_png_info *info, mha_err *err)
{
    MHA_TRY(size_check(raster->width, raster->height, err));
    job j = {.to = to,
             .width = raster->width,
             .height = raster->height,
             .info = info,
             .pixels = raster->pixels,
             .stride = raster->width,
             .indexed = true,
             .colors = (int)colors};
    for (size_t i = 0; i < colors; i++)
        j.palette[i] =
            (png_color){raster->palette[i].r, raster->palette[i].g, raster->palette[i].b};
    return job_run(&j, err);
}

/* --- finding a palette -------------------------------------------------------------------------
 */

/* Colours met so far and the palette's entry that each is drawn with. */
typedef struct palette {
    mha_color colors[256];
    size_t count;
    size_t ramp; /* first of the RAMP shades from background to text */
    size_t met;
    uint32_t keys[TABLE_SIZE];
    uint8_t indices[TABLE_SIZE];
} palette;

static uint32_t pack(mha_color c)
{
    return (uint32_t)c.r << 16 | (uint32_t)c.g << 8 | c.b;
}

/* The slot of a colour: its own, or a free one. The table is never more than half full. */
static size_t slot_of(const palette *p, uint32_t color)
{
    size_t slot = (color * 2654435761u) >> 20;
    while (p->keys[slot] != FREE_SLOT && p->keys[slot] != color)
        slot = (slot + 1) % TABLE_SIZE;
    return slot;
}

/* Adds a colour unless it is there. */
static void palette_add(palette *p, mha_color color)
{
    size_t slot = slot_of(p, pack(color));
    if (p->keys[slot] != FREE_SLOT)
        return;
    p->keys[slot] = pack(color);
    p->indices[slot] = (uint8_t)p->count;
    p->colors[p->count++] = color;
    p->met++;
}

static void palette_init(palette *p, const mha_png_colors *colors)
{
    memset(p->keys, 0xff, sizeof p->keys);
    p->count = p->met = 0;
    for (size_t i = 0; i < 256 && colors->map; i++)
        palette_add(p, colors->map[i]);
    p->ramp = p->count;
    for (size_t i = 0; i < RAMP; i++) {
        mha_color shade = mha_color_mix(colors->background, colors->text, (double)i / (RAMP - 1));
        palette_add(p, shade);
        /* The ramp has a place for each of its shades, met before or not. */
        if (p->count < p->ramp + i + 1)
            p->colors[p->count++] = shade;
    }
}

static int distance(mha_color a, mha_color b)
{
    int r = abs(a.r - b.r), g = abs(a.g - b.g), blue = abs(a.b - b.b);
    return r > g ? (r > blue ? r : blue) : (g > blue ? g : blue);
}

/* The palette's entry for a colour that was not met before: one of the ramp's or, while there is
 * room, its own; -1 when there is none that will do. */
static int palette_match(palette *p, uint32_t color)
{
    mha_color c = {(uint8_t)(color >> 16), (uint8_t)(color >> 8 & 255), (uint8_t)(color & 255)};
    mha_color from = p->colors[p->ramp], to = p->colors[p->ramp + RAMP - 1];
    double t = (double)(c.g - from.g) / (to.g - from.g);
    long i = lround(t * (RAMP - 1));
    if (i >= 0 && i < RAMP && distance(c, p->colors[p->ramp + (size_t)i]) <= RAMP_ERROR)
        return (int)p->ramp + (int)i;
    if (p->count == 256)
        return -1;
    p->colors[p->count] = c;
    return (int)p->count++;
}

/* Fills out[height, width] with palette indices; false when the palette will not do. */
static bool pixels_index(palette *p, unsigned char *out, const unsigned char *pixels, size_t width,
                         size_t height, size_t stride)
{
    uint32_t last = FREE_SLOT;
    uint8_t last_index = 0;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            uint32_t color;
            memcpy(&color, pixels + y * stride + 4 * x, 4);
            color &= 0xffffff;
            if (color != last) {
                size_t slot = slot_of(p, color);
                if (p->keys[slot] == FREE_SLOT) {
                    int match = palette_match(p, color);
                    if (match < 0 || p->met >= TABLE_SIZE / 2)
                        return false;
                    p->keys[slot] = color;
                    p->indices[slot] = (uint8_t)match;
                    p->met++;
                }
                last = color;
                last_index = p->indices[slot];
            }
            *out++ = last_index;
        }
    }
    return true;
}

mha_status mha_png_write_rgb(mha_png_sink to, const unsigned char *pixels, size_t width,
                             size_t height, size_t stride, const mha_png_colors *colors,
                             const mha_png_info *info, mha_err *err)
{
    MHA_TRY(size_check(width, height, err));
    job j = {.to = to, .width = width, .height = height, .info = info};
    palette p;
    void *indices = NULL, *row = NULL;
    MHA_TRY(mha_alloc_raw(&indices, width * height, 1, err));
    mha_status status = mha_alloc_raw(&row, width, 3, err);
    if (status != MHA_OK) {
        mha_free(indices);
        return status;
    }
    palette_init(&p, colors);
    j.indexed = pixels_index(&p, indices, pixels, width, height, stride);
    j.pixels = j.indexed ? indices : pixels;
    j.stride = j.indexed ? width : stride;
    j.row = row;
    j.colors = (int)p.count;
    for (size_t i = 0; i < p.count; i++)
        j.palette[i] = (png_color){p.colors[i].r, p.colors[i].g, p.colors[i].b};
    status = job_run(&j, err);
    mha_free(indices);
    mha_free(row);
    return status;
}
