/* image.c: reading PNG with libpng's simplified interface, apart from what the library writes with.
 */
#include "support/image.h"

#include "support/test.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

image image_open(const char *path)
{
    png_image png;
    memset(&png, 0, sizeof png);
    png.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_file(&png, path))
        fail_msg("%s: %s", path, png.message);
    png.format = PNG_FORMAT_RGB;
    image i = {png.width, png.height, malloc(PNG_IMAGE_SIZE(png))};
    assert_non_null(i.pixels);
    if (!png_image_finish_read(&png, NULL, i.pixels, 0, NULL))
        fail_msg("%s: %s", path, png.message);
    return i;
}

void image_close(image *i)
{
    free(i->pixels);
}

uint32_t image_at(const image *i, unsigned x, unsigned y)
{
    assert_true(x < i->width && y < i->height);
    const unsigned char *p = i->pixels + 3 * ((size_t)y * i->width + x);
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static void file_copy(const char *from, const char *to)
{
    char buffer[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

void image_expect(const char *path, const char *name)
{
    char reference[256];
    snprintf(reference, sizeof reference, "tests/data/render/%s.png", name);
    if (getenv("RENDER_REWRITE")) {
        file_copy(path, reference);
        return;
    }
    image got = image_open(path), want = image_open(reference);
    if (got.width != want.width || got.height != want.height)
        fail_msg("%s: %u x %u pixels, expected %u x %u", name, got.width, got.height, want.width,
                 want.height);
    size_t n = (size_t)want.width * want.height, far = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        int most = 0;
        for (size_t c = 0; c < 3; c++) {
            int d = abs(got.pixels[3 * i + c] - want.pixels[3 * i + c]);
            sum += d;
            most = d > most ? d : most;
        }
        far += most > 48;
    }
    double mean = sum / (3 * (double)n), share = (double)far / (double)n;
    if (mean > 1 || share > 0.005)
        fail_msg("%s: mean difference %.3f, %.2f %% of the pixels are far off", name, mean,
                 100 * share);
    image_close(&got);
    image_close(&want);
}
