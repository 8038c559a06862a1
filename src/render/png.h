/* png.h: PNG files, indexed where that loses nothing that can be seen. */
#ifndef MHA_RENDER_PNG_H
#define MHA_RENDER_PNG_H

#include "render/canvas.h"

/* Where the bytes go. Errors are the sink's own business. */
typedef struct mha_png_sink {
    void (*write)(void *context, const unsigned char *bytes, size_t n);
    void *context;
} mha_png_sink;

/* Into a stream, whose errors are found by whoever commits the file. */
mha_png_sink mha_png_to_stream(FILE *f);

typedef struct mha_png_info {
    double dpi; /* 0: not said */
    const char *title, *software;
} mha_png_info;

/* One byte a pixel, [height, width]. Only the first `colors` entries of the palette go in. */
mha_status mha_png_write_indexed(mha_png_sink to, const mha_raster *raster, size_t colors,
                                 const mha_png_info *info, mha_err *err);

/* The colours of a figure: its map's, and those between background and text, which antialiasing
 * makes. */
#define MHA_PNG_MAP_COLORS 193
typedef struct mha_png_colors {
    const mha_color *map; /* [256] with at most MHA_PNG_MAP_COLORS + 1 different ones; or NULL */
    mha_color background, text;
} mha_png_colors;

/* cairo's CAIRO_FORMAT_RGB24 pixels, 0x00RRGGBB in the machine's byte order, rows `stride` bytes
 * apart. Indexed where `colors` and few others are enough: the map's colours stay exactly what they
 * are, the shades of text become 62; otherwise true colour. */
mha_status mha_png_write_rgb(mha_png_sink to, const unsigned char *pixels, size_t width,
                             size_t height, size_t stride, const mha_png_colors *colors,
                             const mha_png_info *info, mha_err *err);

#endif
