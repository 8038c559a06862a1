/* render_font: widths of the bundled font, and the canvas's PNG palette. */
#include "support/test.h"

#include "render/font.h"
#include "render/png.h"
#include "support/image.h"
#include "support/tempdir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Liberation Sans has the advance widths of Arial: in 1/2048 of the size a digit is 1139 wide, a
 * space 569, 'i' 455 and 'W' 1933. */
static void test_widths(void **state)
{
    static const struct {
        const char *text;
        int units;
    } cases[] = {{"0123456789", 11390}, {" ", 569}, {"i", 455}, {"W", 1933}, {"", 0}};
    mha_font *f = NULL;
    assert_int_equal(mha_font_open(&f, NULL, NULL), MHA_OK);
    assert_string_equal(mha_font_family(f), "Liberation Sans");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (double size = 3; size < 80; size *= 1.7) {
            double want = cases[i].units / 2048.0 * size;
            assert_true(fabs(mha_font_width(f, cases[i].text, size) - want) < 0.002 * size + 0.01);
        }
    assert_false(mha_font_missing(f));
    mha_font_close(f);
    mha_font_close(NULL);
}

/* A character that no font has: a code point that is not assigned. */
static void test_missing_characters(void **state)
{
    mha_font *f = NULL;
    assert_int_equal(mha_font_open(&f, NULL, NULL), MHA_OK);
    mha_font_width(f, "Ж…λ×", 7);
    assert_false(mha_font_missing(f));
    assert_true(mha_font_width(f, "a\U0003FFF0", 7) > 0);
    assert_true(mha_font_missing(f));
    mha_font_close(f);
}

/* Two fonts at once, opened and closed in any order. */
static void test_fonts_are_independent(void **state)
{
    mha_font *a = NULL, *b = NULL;
    assert_int_equal(mha_font_open(&a, NULL, NULL), MHA_OK);
    double width = mha_font_width(a, "attention", 7);
    assert_int_equal(mha_font_open(&b, NULL, NULL), MHA_OK);
    mha_font_close(a);
    assert_true(mha_font_width(b, "attention", 7) == width);
    assert_int_equal(mha_font_open(&a, NULL, NULL), MHA_OK);
    assert_true(mha_font_width(a, "attention", 7) == width);
    mha_font_close(b);
    mha_font_close(a);
}

/* Whoever draws a thousand figures keeps no thousand files open. */
static void test_closing_gives_the_file_back(void **state)
{
    mha_font *f = NULL;
    int before = dup(0);
    close(before);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mha_font_open(&f, NULL, NULL), MHA_OK);
        mha_font_width(f, "attention", 7);
        mha_font_close(f);
    }
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

/* --- palettes ----------------------------------------------------------------------------------
 */

static const mha_color white = {255, 255, 255}, ink = {0x1c, 0x1c, 0x1c};

static unsigned char *pixels_make(size_t n, uint32_t (*color)(size_t))
{
    unsigned char *pixels = malloc(4 * n);
    assert_non_null(pixels);
    for (size_t i = 0; i < n; i++) {
        uint32_t c = color(i);
        memcpy(pixels + 4 * i, &c, 4);
    }
    return pixels;
}

static void round_trip(const char *path, const unsigned char *pixels, size_t width, size_t height,
                       const mha_color *map)
{
    mha_png_colors colors = {map, white, ink};
    mha_png_info info = {.dpi = 300, .title = "ünïcode"};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(mha_png_write_rgb(mha_png_to_stream(f), pixels, width, height, 4 * width,
                                       &colors, &info, NULL),
                     MHA_OK);
    assert_int_equal(fclose(f), 0);
}

static uint32_t grey_or_red(size_t i)
{
    return i % 2 ? 0xff0000 : (uint32_t)(0x1c + i % 200) * 0x10101;
}

/* Shades of text may move a little; a colour of its own may not. Byte 25 of a PNG is its colour
 * type: 3 is indexed, 2 true colour. */
static void test_shades_of_text_are_few(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    unsigned char *pixels = pixels_make(400, grey_or_red);
    round_trip(path, pixels, 40, 10, NULL);
    assert_int_equal(file_text(path)[25], 3);
    image got = image_open(path);
    for (unsigned i = 0; i < 400; i++) {
        uint32_t c = image_at(&got, i % 40, i / 40), want = grey_or_red(i);
        if (i % 2)
            assert_int_equal(c, want);
        else
            assert_true(labs((long)(c & 255) - (long)(want & 255)) <= 4);
    }
    image_close(&got);
    free(pixels);
}

static uint32_t level_color(size_t i)
{
    return (uint32_t)(i % 200) << 8 | 0x30;
}

/* The map's colours stay exactly what they are. */
static void test_map_colors_are_exact(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    mha_color map[256];
    unsigned char *pixels = pixels_make(400, level_color);
    for (size_t i = 0; i < 256; i++)
        map[i] = (mha_color){0, (uint8_t)(i % MHA_PNG_MAP_COLORS), 0x30};
    for (size_t i = 0; i < 400; i++)
        if (i % 200 >= MHA_PNG_MAP_COLORS)
            memset(pixels + 4 * i, 0x55, 4);
    round_trip(path, pixels, 20, 20, map);
    assert_int_equal(file_text(path)[25], 3);
    image got = image_open(path);
    for (unsigned i = 0; i < 400; i++)
        if (i % 200 < MHA_PNG_MAP_COLORS)
            assert_int_equal(image_at(&got, i % 20, i / 20), level_color(i));
    image_close(&got);
    free(pixels);
}

static uint32_t many_colors(size_t i)
{
    return (uint32_t)(i * 40503) & 0xffffff;
}

static void test_many_colors_are_true_colour(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    unsigned char *pixels = pixels_make(1000, many_colors);
    round_trip(path, pixels, 50, 20, NULL);
    assert_int_equal(file_text(path)[25], 2);
    image got = image_open(path);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(image_at(&got, i % 50, i / 50), many_colors(i));
    image_close(&got);
    free(pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_missing_characters),
        cmocka_unit_test(test_fonts_are_independent),
        cmocka_unit_test(test_closing_gives_the_file_back),
        cmocka_unit_test_setup_teardown(test_shades_of_text_are_few, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_map_colors_are_exact, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_many_colors_are_true_colour, tempdir_setup,
                                        tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
