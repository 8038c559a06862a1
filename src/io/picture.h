/* picture.h: reading PNG and JPEG files as RGB pixels, and resizing them.
 *
 * Pixels are what image libraries of the Python world give for `convert("RGB")`: palettes and grey
 * are expanded, transparency is dropped without blending, of 16 bits the upper 8 are kept. Colour
 * profiles and orientation tags are not applied. */
#ifndef MHA_IO_PICTURE_H
#define MHA_IO_PICTURE_H

#include "mha/input.h"

#define MHA_PICTURE_PIXELS_MAX ((uint64_t)100000000)

/* data[0..size) is a whole PNG or JPEG file, told by its first bytes. max_pixels 0: the default.
 * MHA_ERR_FORMAT for a broken or cut file, _LIMIT for a large one, _UNSUPPORTED otherwise. */
mha_status mha_picture_parse(mha_picture *out, const unsigned char *data, size_t size,
                             const char *file, uint64_t max_pixels, mha_err *err);

/* The two decoders; *out is empty before. */
mha_status mha_picture_png(mha_picture *out, const unsigned char *data, size_t size,
                           const char *file, uint64_t max_pixels, mha_err *err);
mha_status mha_picture_jpeg(mha_picture *out, const unsigned char *data, size_t size,
                            const char *file, uint64_t max_pixels, mha_err *err);
/* Memory for the pixels of a picture of that size, checked against max_pixels. */
mha_status mha_picture_make(mha_picture *out, uint64_t width, uint64_t height, const char *file,
                            uint64_t max_pixels, mha_err *err);

typedef enum mha_resample {
    MHA_RESAMPLE_NEAREST = 0, /* the numbers of Pillow */
    MHA_RESAMPLE_LANCZOS,
    MHA_RESAMPLE_BILINEAR,
    MHA_RESAMPLE_BICUBIC
} mha_resample;

/* *out = `in` with another size. Filters widen with the reduction (antialiasing) and work in fixed
 * point, columns before rows, as Pillow's do: the same bytes come out. */
mha_status mha_picture_resize(mha_picture *out, const mha_picture *in, uint32_t width,
                              uint32_t height, mha_resample how, mha_err *err);

#endif
