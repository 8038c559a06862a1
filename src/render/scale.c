/* scale.c: colour scales and ticks. It may not draw. */
#include "render/scale.h"

#include "base/fail.h"
#include "base/mem.h"
#include "render/color.h"
#include "store/number.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct extent {
    double lo, hi;
    size_t count;
} extent;

static extent extent_of(const mha_heat *const *maps, size_t count)
{
    extent e = {HUGE_VAL, -HUGE_VAL, 0};
    for (size_t m = 0; m < count; m++) {
        for (size_t r = 0; maps[m] && r < maps[m]->tile_rows; r++) {
            for (size_t c = 0; c < maps[m]->tile_cols; c++) {
                double v = mha_heat_get(maps[m], r, c);
                if (isnan(v))
                    continue;
                e.lo = v < e.lo ? v : e.lo;
                e.hi = v > e.hi ? v : e.hi;
                e.count++;
            }
        }
    }
    return e;
}

static int double_compare(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

/* The value at MHA_CLIP_RANK of all tiles that are not masked. */
static mha_status clip_value(double *out, const mha_heat *const *maps, size_t count, size_t values,
                             mha_err *err)
{
    void *p = NULL;
    size_t n = 0;
    MHA_TRY(mha_alloc_raw(&p, values, sizeof(double), err));
    double *all = p;
    for (size_t m = 0; m < count; m++)
        for (size_t r = 0; maps[m] && r < maps[m]->tile_rows; r++)
            for (size_t c = 0; c < maps[m]->tile_cols; c++) {
                all[n] = mha_heat_get(maps[m], r, c);
                n += !isnan(all[n]);
                if (n == values)
                    break;
            }
    qsort(all, n, sizeof *all, double_compare);
    *out = all[(size_t)floor(MHA_CLIP_RANK * (double)(n - 1))];
    mha_free(all);
    return MHA_OK;
}

mha_status mha_color_scale_of(mha_color_scale *out, const mha_heat *const *maps, size_t count,
                              mha_scale kind, mha_err *err)
{
    extent e = extent_of(maps, count);
    mha_color_scale s = {.kind = kind, .lo = 0, .hi = e.count && e.hi > 0 ? e.hi : 1};
    if (e.count && e.lo < 0) {
        s.kind = MHA_SCALE_LINEAR;
        s.hi = fmax(-e.lo, e.hi);
        s.lo = -s.hi;
    } else if (kind == MHA_SCALE_LOG) {
        s.lo = pow(10, ceil(log10(s.hi) - 1e-9) - MHA_LOG_DECADES);
    } else if (kind == MHA_SCALE_CLIP && e.count) {
        double value = 0;
        MHA_TRY(clip_value(&value, maps, count, e.count, err));
        if (value > 0)
            s.hi = value;
        s.clipped = e.hi > s.hi;
    }
    *out = s;
    return MHA_OK;
}

bool mha_heat_negative(const mha_heat *h)
{
    extent e = extent_of(&h, 1);
    return e.count > 0 && e.lo < 0;
}

double mha_color_scale_at(const mha_color_scale *s, double value)
{
    double at = s->kind == MHA_SCALE_LOG ? (value > 0 ? log(value / s->lo) / log(s->hi / s->lo) : 0)
                                         : (value - s->lo) / (s->hi - s->lo);
    return at < 0 ? 0 : at > 1 ? 1 : at;
}

uint8_t mha_color_scale_level(const mha_color_scale *s, double value)
{
    if (isnan(value))
        return MHA_LEVEL_MASKED;
    return (uint8_t)lround(mha_color_scale_at(s, value) * MHA_LEVEL_TOP);
}

/* The step is the smallest of 1, 2, 5 times a power of ten that gives at most `most` intervals. */
mha_ticks mha_ticks_of(double lo, double hi, size_t most)
{
    assert(hi > lo && most > 0);
    double rough = (hi - lo) / (double)most, power = pow(10, floor(log10(rough)));
    double parts = rough / power, nice = parts <= 1 + 1e-9   ? 1
                                         : parts <= 2 + 1e-9 ? 2
                                         : parts <= 5 + 1e-9 ? 5
                                                             : 10;
    mha_ticks t = {.step = nice * power};
    int decimals = -(int)floor(log10(t.step) + 1e-9);
    t.decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
    t.first = ceil(lo / t.step - 1e-9) * t.step;
    t.count = (size_t)floor((hi - t.first) / t.step + 1e-9) + 1;
    return t;
}

void mha_label_minus(char text[MHA_LABEL_SIZE])
{
    size_t n = strlen(text);
    if (text[0] != '-' || n + 3 > MHA_LABEL_SIZE)
        return;
    memmove(text + 3, text + 1, n);
    memcpy(text, "\xE2\x88\x92", 3);
}

void mha_label_number(char out[MHA_LABEL_SIZE], double value)
{
    mha_number_format(out, value, 3);
    mha_label_minus(out);
}
