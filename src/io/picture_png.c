/* picture_png.c: decoding PNG through libpng, which reports errors by longjmp: everything that has
 * to be freed lives in `job` or belongs to libpng. */
#include "io/picture.h"

#include "base/fail.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Memory of one ancillary chunk, and how many of them libpng keeps. */
#define CHUNK_BYTES (8 << 20)
#define CHUNKS      1000

typedef struct job {
    const unsigned char *data;
    size_t size, at;
    const char *file;
    uint64_t max_pixels;
    mha_picture *out;
    mha_err *err;
    mha_status status; /* of an error of our own */
    char message[128]; /* of libpng's */
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

static void on_read(png_structp png, png_bytep out, size_t n)
{
    job *j = png_get_io_ptr(png);
    if (n > j->size - j->at)
        png_error(png, "the file ends too early");
    memcpy(out, j->data + j->at, n);
    j->at += n;
}

/* Everything becomes 8-bit RGB. */
static void set_transforms(png_structp png, png_infop info)
{
    png_byte color = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (depth == 16)
        png_set_strip_16(png);
    if (!(color & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
}

/* false when an error of our own ended it; libpng's jump past it. */
static bool decode(job *j, png_structp png, png_infop info)
{
    png_set_read_fn(png, j, on_read);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, CHUNK_BYTES);
    png_set_chunk_cache_max(png, CHUNKS);
    png_read_info(png, info);
    png_uint_32 width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    j->status = mha_picture_make(j->out, width, height, j->file, j->max_pixels, j->err);
    if (j->status != MHA_OK)
        return false;
    set_transforms(png, info);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width * 3)
        png_error(png, "an unusual kind of pixels");
    for (int pass = 0; pass < passes; pass++)
        for (png_uint_32 y = 0; y < height; y++)
            png_read_row(png, j->out->rgb + (size_t)y * width * 3, NULL);
    png_read_end(png, NULL);
    return true;
}

mha_status mha_picture_png(mha_picture *out, const unsigned char *data, size_t size,
                           const char *file, uint64_t max_pixels, mha_err *err)
{
    job j = {
        .data = data, .size = size, .file = file, .max_pixels = max_pixels, .out = out, .err = err};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &j, on_error, on_warning);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    if (info == NULL) {
        png_destroy_read_struct(&png, NULL, NULL);
        return mha_fail(err, MHA_ERR_NOMEM, "%s: no memory for libpng", file);
    }
    bool broken = setjmp(png_jmpbuf(png)) != 0;
    if (!broken)
        decode(&j, png, info);
    png_destroy_read_struct(&png, &info, NULL);
    return broken ? mha_fail(err, MHA_ERR_FORMAT, "%s: not a sound PNG file: %s", file, j.message)
                  : j.status;
}
