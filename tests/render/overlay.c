/* overlay: maps over a picture: which patch has which colour, what stays grey, and the whole figure
 * against a reference image. */
#include "support/test.h"

#include "mha/chart.h"
#include "support/image.h"
#include "support/tempdir.h"

#include <math.h>
#include <string.h>

enum { SIDE = 96, PATCH = 16, GRID = SIDE / PATCH };

/* A ball before a slope. */
static void scene(unsigned char rgb[SIDE * SIDE * 3])
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            unsigned char *p = rgb + (y * SIDE + x) * 3;
            bool ball = (x - 60) * (x - 60) + (y - 36) * (y - 36) < 400;
            p[0] = (unsigned char)(ball ? 220 : x * 2);
            p[1] = (unsigned char)(ball ? 120 : 160 - y);
            p[2] = (unsigned char)(ball ? 40 : 200);
        }
}

static mha_heat *map_make(size_t side, size_t peak_row, size_t peak_col, double width)
{
    mha_heat *h;
    assert_int_equal(mha_heat_new(&h, side, side, SIZE_MAX, MHA_POOL_MEAN, NULL), MHA_OK);
    for (size_t r = 0; r < side; r++)
        for (size_t c = 0; c < side; c++) {
            double d = hypot((double)r - (double)peak_row, (double)c - (double)peak_col);
            float value = (float)(0.3 * exp(-d * d / width));
            mha_heat_add(h, r, c, &value, 1);
        }
    return h;
}

static void test_whole_figure(void **state)
{
    static unsigned char rgb[SIDE * SIDE * 3];
    const char *path = tempdir_path(state, "a.png");
    mha_heat *maps[] = {map_make(GRID, 2, 3, 0.6), map_make(GRID, 5, 0, 6),
                        map_make(GRID, 0, 5, 2)};
    const char *const titles[] = {"0.1", "0.2", "1.0"};
    mha_overlay figure = {.rgb = rgb,
                          .picture_width = SIDE,
                          .picture_height = SIDE,
                          .patch = PATCH,
                          .maps = (const mha_heat *const *)maps,
                          .count = 3,
                          .titles = titles,
                          .mark_row = 4,
                          .mark_col = 1,
                          .note = "Attention of the framed patch."};
    mha_chart_options o = {.dpi = 150, .width_mm = 120};
    scene(rgb);
    assert_int_equal(mha_chart_overlay(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "overlay");
    for (size_t i = 0; i < 3; i++)
        mha_heat_free(maps[i]);
}

static void near(double a, double b, double by)
{
    assert_true(fabs(a - b) <= by);
}

/* Pixels of one colour and the box that they lie in. */
typedef struct area {
    size_t count;
    unsigned left, right, top, bottom;
} area;

static area area_of(const image *i, uint32_t color)
{
    area a = {0, UINT32_MAX, 0, UINT32_MAX, 0};
    for (unsigned y = 0; y < i->height; y++)
        for (unsigned x = 0; x < i->width; x++) {
            if (image_at(i, x, y) != color)
                continue;
            a.count++;
            a.left = x < a.left ? x : a.left;
            a.right = x + 1 > a.right ? x + 1 : a.right;
            a.top = y < a.top ? y : a.top;
            a.bottom = y + 1 > a.bottom ? y + 1 : a.bottom;
        }
    return a;
}

/* A grey picture of 9 × 9 pixels has 2 × 2 patches of 4, of which the lower left has all; the last
 * line and column belong to none. */
static void test_patches(void **state)
{
    enum { EDGE = 9 };
    unsigned char rgb[EDGE * EDGE * 3];
    const char *path = tempdir_path(state, "a.png");
    mha_heat *map;
    const float zero = 0, one = 1;
    memset(rgb, 100, sizeof rgb);
    assert_int_equal(mha_heat_new(&map, 2, 2, SIZE_MAX, MHA_POOL_MEAN, NULL), MHA_OK);
    for (size_t i = 0; i < 4; i++)
        mha_heat_add(map, i / 2, i % 2, i == 2 ? &one : &zero, 1);
    mha_overlay figure = {.rgb = rgb,
                          .picture_width = EDGE,
                          .picture_height = EDGE,
                          .patch = 4,
                          .maps = (const mha_heat *const *)&map,
                          .count = 1,
                          .mark_row = -1};
    mha_chart_options o = {.dpi = 150, .width_mm = 60};
    assert_int_equal(mha_chart_overlay(&figure, &o, path, NULL), MHA_OK);
    image i = image_open(path);
    /* 100 under 90 % of the map's last colour, fcfdbf, and under 40 % of its first, 000004 */
    area top = area_of(&i, 0xedeeb6), rest = area_of(&i, 0x3c3c3e), grey = area_of(&i, 0x646464);
    double patch = (double)(rest.right - rest.left) / 2, panel = patch * EDGE / 4;
    near((double)top.count, patch * patch, 3 * patch);
    near((double)rest.count, 3 * patch * patch, 6 * patch);
    assert_true(top.left == rest.left && top.right < rest.right && top.bottom == rest.bottom);
    near(top.top, rest.top + patch, 1.5);
    near((double)grey.count, panel * panel + panel * panel * 17 / 81, 8 * patch);
    image_close(&i);
    mha_heat_free(map);
}

static void test_formats(void **state)
{
    unsigned char rgb[PATCH * PATCH * 3] = {0};
    mha_heat *map = map_make(1, 0, 0, 1);
    mha_overlay figure = {.rgb = rgb,
                          .picture_width = PATCH,
                          .picture_height = PATCH,
                          .patch = PATCH,
                          .maps = (const mha_heat *const *)&map,
                          .count = 1,
                          .mark_row = -1};
    mha_chart_options o = {.width_mm = 50};
    const char *svg = tempdir_path(state, "a.svg"), *pdf = tempdir_path(state, "a.pdf");
    assert_int_equal(mha_chart_overlay(&figure, &o, svg, NULL), MHA_OK);
    const char *text = file_text(svg);
    const char *first = strstr(text, "<image"), *second = strstr(first + 1, "<image");
    assert_true(first != NULL && second != NULL && strstr(second + 1, "<image") != NULL); /* bar */
    assert_int_equal(mha_chart_overlay(&figure, &o, pdf, NULL), MHA_OK);
    assert_memory_equal(file_text(pdf), "%PDF-", 5);
    mha_err err = {0};
    o.width_mm = 8;
    assert_int_equal(mha_chart_overlay(&figure, &o, svg, &err), MHA_ERR_ARG);
    mha_heat_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole_figure, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_patches, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_formats, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
