/* resample.c: resizing pictures with Pillow's semantics, byte for byte.
 *
 * Output position x looks at input position c = (x + 1/2)·s, s = in/out. A filter of support r is
 * widened by f = max(s, 1): inputs i with |i + 1/2 − c| < r·f take part, with weight
 * k((i + 1/2 − c)/f), normalised to sum 1. Weights are rounded to 22 fractional bits, sums are
 * integers, and the columns' result is rounded to 8 bits before the rows are done; only where a
 * picture becomes wider and lower the rows come first, as in Pillow 13. */
#include "io/picture.h"

#include "base/fail.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

#define FRACTION 22 /* 32 bits, less 8 of the pixel and 2 of overshoot */

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys' cubic with a = −1/2 */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct filter {
    double (*weight)(double x);
    double support;
} filters[] = {
    [MHA_RESAMPLE_LANCZOS] = {lanczos, 3},
    [MHA_RESAMPLE_BILINEAR] = {bilinear, 1},
    [MHA_RESAMPLE_BICUBIC] = {bicubic, 2},
};

/* What every output position of one axis takes. */
typedef struct taps {
    uint32_t *first, *count; /* [out] */
    int32_t *weight;         /* [out, most] */
    double *exact;           /* [most] scratch */
    size_t most;
} taps;

static void taps_release(taps *t)
{
    mha_free(t->first);
    mha_free(t->count);
    mha_free(t->weight);
    mha_free(t->exact);
}

static void taps_fill(taps *t, uint32_t x, uint32_t in, double scale, const struct filter *f)
{
    double wide = scale > 1 ? scale : 1, support = f->support * wide;
    double center = (x + 0.5) * scale, sum = 0;
    double low = floor(center - support + 0.5), high = floor(center + support + 0.5);
    uint32_t first = low > 0 ? (uint32_t)low : 0;
    uint32_t end = high < in ? (uint32_t)high : in;
    t->first[x] = first;
    t->count[x] = end - first;
    for (uint32_t i = 0; i < end - first; i++) {
        t->exact[i] = f->weight((first + i - center + 0.5) * (1 / wide));
        sum += t->exact[i];
    }
    for (uint32_t i = 0; i < end - first; i++) {
        double w = sum != 0 ? t->exact[i] / sum : t->exact[i];
        t->weight[x * t->most + i] = (int32_t)(w * (1 << FRACTION) + (w < 0 ? -0.5 : 0.5));
    }
}

static mha_status taps_make(taps *t, uint32_t in, uint32_t out, const struct filter *f,
                            mha_err *err)
{
    double scale = (double)in / out;
    size_t total;
    t->most = (size_t)ceil(f->support * (scale > 1 ? scale : 1)) * 2 + 1;
    if (mha_mul_overflows(t->most, out, &total))
        return mha_fail(err, MHA_ERR_LIMIT, "a picture of %u pixels becomes %u", in, out);
    MHA_TRY(mha_alloc((void **)&t->first, out, sizeof *t->first, err));
    MHA_TRY(mha_alloc((void **)&t->count, out, sizeof *t->count, err));
    MHA_TRY(mha_alloc((void **)&t->weight, total, sizeof *t->weight, err));
    MHA_TRY(mha_alloc((void **)&t->exact, t->most, sizeof *t->exact, err));
    for (uint32_t x = 0; x < out; x++)
        taps_fill(t, x, in, scale, f);
    return MHA_OK;
}

static unsigned char round_pixel(int32_t sum)
{
    int32_t v = sum >> FRACTION;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One output pixel: `step` bytes from one of its inputs to the next. */
static void pixel(const taps *t, uint32_t x, const unsigned char *in, size_t step,
                  unsigned char *out)
{
    int32_t sum[3] = {1 << (FRACTION - 1), 1 << (FRACTION - 1), 1 << (FRACTION - 1)};
    const int32_t *w = t->weight + x * t->most;
    const unsigned char *p = in + t->first[x] * step;
    for (uint32_t i = 0; i < t->count[x]; i++, p += step)
        for (int c = 0; c < 3; c++)
            sum[c] += w[i] * p[c];
    for (int c = 0; c < 3; c++)
        out[c] = round_pixel(sum[c]);
}

static mha_status resize_columns(mha_picture *out, const mha_picture *in, const struct filter *f,
                                 mha_err *err)
{
    taps t = {0};
    size_t wide = (size_t)in->width * 3, row = (size_t)out->width * 3;
    mha_status status = taps_make(&t, in->width, out->width, f, err);
    for (uint32_t y = 0; status == MHA_OK && y < in->height; y++)
        for (uint32_t x = 0; x < out->width; x++)
            pixel(&t, x, in->rgb + y * wide, 3, out->rgb + y * row + x * 3);
    taps_release(&t);
    return status;
}

static mha_status resize_rows(mha_picture *out, const mha_picture *in, const struct filter *f,
                              mha_err *err)
{
    taps t = {0};
    size_t row = (size_t)in->width * 3;
    mha_status status = taps_make(&t, in->height, out->height, f, err);
    for (uint32_t y = 0; status == MHA_OK && y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++)
            pixel(&t, y, in->rgb + x * 3, row, out->rgb + y * row + x * 3);
    taps_release(&t);
    return status;
}

static mha_status resize_both(mha_picture *out, const mha_picture *in, const struct filter *f,
                              mha_err *err)
{
    mha_picture between = {0};
    bool rows_first = out->width > in->width && out->height < in->height;
    mha_status status = mha_picture_make(&between, rows_first ? in->width : out->width,
                                         rows_first ? out->height : in->height, "a resized picture",
                                         UINT64_MAX, err);
    if (status == MHA_OK)
        status =
            rows_first ? resize_rows(&between, in, f, err) : resize_columns(&between, in, f, err);
    if (status == MHA_OK)
        status =
            rows_first ? resize_columns(out, &between, f, err) : resize_rows(out, &between, f, err);
    mha_picture_release(&between);
    return status;
}

static void resize_nearest(mha_picture *out, const mha_picture *in)
{
    double across = (double)in->width / out->width, down = (double)in->height / out->height;
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++) {
            size_t from_x = (size_t)((x + 0.5) * across), from_y = (size_t)((y + 0.5) * down);
            memcpy(out->rgb + ((size_t)y * out->width + x) * 3,
                   in->rgb + (from_y * in->width + from_x) * 3, 3);
        }
}

mha_status mha_picture_resize(mha_picture *out, const mha_picture *in, uint32_t width,
                              uint32_t height, mha_resample how, mha_err *err)
{
    static const char name[] = "a resized picture";
    *out = (mha_picture){0};
    mha_status status = mha_picture_make(out, width, height, name, MHA_PICTURE_PIXELS_MAX, err);
    if (status == MHA_OK && width == in->width && height == in->height)
        memcpy(out->rgb, in->rgb, (size_t)width * height * 3);
    else if (status == MHA_OK && how == MHA_RESAMPLE_NEAREST)
        resize_nearest(out, in);
    else if (status == MHA_OK && width == in->width)
        status = resize_rows(out, in, &filters[how], err);
    else if (status == MHA_OK && height == in->height)
        status = resize_columns(out, in, &filters[how], err);
    else if (status == MHA_OK)
        status = resize_both(out, in, &filters[how], err);
    if (status != MHA_OK)
        mha_picture_release(out);
    return status;
}
