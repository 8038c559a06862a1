/* formats: PDF and SVG hold real text, the same bytes every time; bad options are refused. */
#include "support/test.h"

#include "base/utf8.h"
#include "mha/chart.h"
#include "support/tempdir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two characters of two byte tokens each and an ordinary token, with what a label must survive. */
static const mha_label labels[] = {{"東", 0, 2}, {"京", 2, 2}, {"<a & \"b\">\n\x01\xE6", 4, 1}};

static mha_heat *map_make(void)
{
    mha_heat *h = NULL;
    assert_int_equal(mha_heat_new(&h, 5, 5, 1024, MHA_POOL_MAX, NULL), MHA_OK);
    for (size_t i = 0; i < 5; i++) {
        float row[5];
        for (size_t j = 0; j <= i; j++)
            row[j] = 1 / (float)(i + 1);
        mha_heat_add(h, i, 0, row, i + 1);
    }
    return h;
}

static mha_status figure_write(const char *path, const mha_chart_options *o, mha_err *err)
{
    mha_heat *h = map_make();
    mha_axis axis = {.name = "query", .labels = labels, .count = 3};
    mha_heatmap figure = {.map = h, .rows = axis, .cols = axis};
    mha_status status = mha_chart_heatmap(&figure, o, path, err);
    mha_heat_free(h);
    return status;
}

static size_t occurrences(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

static void test_svg_is_text(void **state)
{
    const char *path = tempdir_path(state, "a.svg");
    mha_chart_options o = {.title = "Head 4.7 & others"};
    assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
    const char *text = file_text(path);
    assert_true(mha_utf8_valid(text, strlen(text)));
    assert_non_null(strstr(text, ">Head 4.7 &amp; others</text>"));
    /* Once a character on each axis, not once a token. */
    assert_int_equal(occurrences(text, ">東</text>"), 2);
    assert_int_equal(occurrences(text, ">京</text>"), 2);
    assert_int_equal(occurrences(text, "&lt;a &amp; &quot;b&quot;&gt;\\n\\x01\xEF\xBF\xBD<"), 2);
    assert_non_null(strstr(text, ">attention weight</text>"));
    assert_non_null(strstr(text, "width=\"85.00mm\""));
    assert_non_null(strstr(text, "data:image/png;base64,"));
    assert_null(strstr(text, "<path"));
    assert_null(strstr(text, "<glyph"));
}

/* Labels over two cells stand in the middle of both: the first one's middle is one cell below the
 * map's edge, the second one's three. */
static void test_svg_label_positions(void **state)
{
    const char *path = tempdir_path(state, "a.svg");
    mha_chart_options o = {0};
    double y[2], image_y = 0, image_height = 0, x;
    assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
    const char *text = file_text(path);
    const char *image = strstr(text, "<image");
    assert_non_null(image);
    assert_int_equal(sscanf(image, "<image x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x,
                            &image_y, &x, &image_height),
                     4);
    for (int i = 0; i < 2; i++) {
        const char *label = strstr(text, i ? ">京<" : ">東<"), *start = label;
        while (strncmp(start, "<text", 5) != 0)
            start--;
        assert_int_equal(sscanf(start, "<text x=\"%lf\" y=\"%lf\"", &x, &y[i]), 2);
    }
    double cell = image_height / 5;
    assert_true(fabs(y[1] - y[0] - 2 * cell) < 0.02);
    assert_true(fabs(y[0] - 0.35 * 7 - (image_y + cell)) < 0.02);
}

static void test_same_bytes_every_time(void **state)
{
    static const char *const names[] = {"pdf", "svg", "png"};
    for (size_t i = 0; i < 3; i++) {
        char file[16], *first;
        mha_chart_options o = {.title = "t", .force = true, .dpi = 72};
        snprintf(file, sizeof file, "a.%s", names[i]);
        const char *path = tempdir_path(state, file);
        assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
        size_t size = 0;
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        first = calloc(1, 1 << 16);
        assert_non_null(first);
        size = fread(first, 1, 1 << 16, f);
        fclose(f);
        assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
        assert_memory_equal(file_text(path), first, size);
        free(first);
    }
}

static void test_pdf_has_the_font_and_no_date(void **state)
{
    const char *path = tempdir_path(state, "a.pdf");
    mha_chart_options o = {.creator = "mha-inspect 9"};
    char *bytes = calloc(1, 1 << 20);
    assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
    FILE *f = fopen(path, "rb");
    assert_true(f && bytes);
    size_t n = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    assert_memory_equal(bytes, "%PDF-", 5);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\0')
            bytes[i] = ' ';
    assert_non_null(strstr(bytes, "LiberationSans"));
    assert_null(strstr(bytes, "CreationDate"));
    free(bytes);
}

/* What pdftotext finds is what a reader finds. */
static void test_pdf_text_is_found(void **state)
{
    const char *path = tempdir_path(state, "a.pdf"), *out = tempdir_path(state, "out.txt");
    char command[600];
    mha_chart_options o = {.title = "Head 4.7"};
    assert_int_equal(figure_write(path, &o, NULL), MHA_OK);
    snprintf(command, sizeof command, "pdftotext '%s' '%s' 2>/dev/null", path, out);
    if (system("command -v pdftotext >/dev/null 2>&1") != 0)
        skip();
    assert_int_equal(system(command), 0);
    assert_non_null(strstr(file_text(out), "Head 4.7"));
    assert_non_null(strstr(file_text(out), "attention weight"));
}

static void test_options_are_checked(void **state)
{
    static const struct {
        const char *name;
        mha_chart_options o;
        const char *message;
    } cases[] = {
        {"a", {.dpi = 0}, "the suffix names no format"},
        {"a.csv", {.dpi = 0}, "not as csv"},
        {"a.png", {.colormap = "jet"}, "no colour map \"jet\""},
        {"a.png", {.width_mm = -3}, "a width in millimetres of -3"},
        {"a.png", {.width_mm = 5000}, "a width in millimetres of 5000"},
        {"a.png", {.dpi = 1e9}, "a resolution"},
        {"a.png", {.font_pt = 0.5}, "a font size"},
        {"a.png", {.font = "No Such Font"}, "no font of the name \"No Such Font\""},
        {"a.png", {.width_mm = 20, .font_pt = 40}, "no room"},
        {"a.png", {.width_mm = 1000, .dpi = 2400}, "at most 32767"},
        {"a.png", {.width_mm = NAN}, "a width"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mha_err err = {0};
        mha_status status = figure_write(tempdir_path(state, cases[i].name), &cases[i].o, &err);
        if (status == MHA_OK || !strstr(err.message, cases[i].message))
            fail_msg("case %zu: %s", i, err.message);
        assert_int_equal(directory_count(*state), 0);
    }
}

static void test_nothing_is_overwritten(void **state)
{
    mha_chart_options o = {0};
    mha_err err = {0};
    const char *path = tempdir_path(state, "a.svg");
    file_write(path, "mine", 4);
    assert_int_equal(figure_write(path, &o, &err), MHA_ERR_IO);
    assert_string_equal(file_text(path), "mine");
    o.force = true;
    assert_int_equal(figure_write(path, &o, &err), MHA_OK);
    assert_int_equal(directory_count(*state), 1);
}

/* Odd sizes: nothing may crash, and every figure must come out or be refused. */
static void test_odd_sizes(void **state)
{
    static const size_t sizes[][2] = {{1, 1}, {1, 400}, {400, 1}, {3, 4000}, {700, 7}, {2, 2}};
    static const char *const names[] = {"a.png", "a.svg", "a.pdf"};
    for (size_t i = 0; i < 18; i++) {
        size_t rows = sizes[i / 3][0], cols = sizes[i / 3][1];
        float *row = calloc(cols, sizeof *row);
        mha_heat *h = NULL;
        mha_err err = {0};
        mha_chart_options o = {.force = true, .dpi = 60, .scale = (mha_scale)(i % 3)};
        assert_int_equal(mha_heat_new(&h, rows, cols, 512, MHA_POOL_MEAN, NULL), MHA_OK);
        for (size_t r = 0; r < rows; r++)
            mha_heat_add(h, r, 0, row, cols);
        mha_heatmap figure = {.map = h, .rows = {.name = "query"}, .cols = {.name = "key"}};
        if (mha_chart_heatmap(&figure, &o, tempdir_path(state, names[i % 3]), &err) != MHA_OK)
            fail_msg("%zu x %zu: %s", rows, cols, err.message);
        const mha_heat *maps[] = {h, NULL, h};
        mha_grid grid = {.maps = maps, .rows = 3, .cols = 1, .own_scale = true};
        if (mha_chart_grid(&grid, &o, tempdir_path(state, names[i % 3]), &err) != MHA_OK)
            fail_msg("grid of %zu x %zu: %s", rows, cols, err.message);
        mha_heat_free(h);
        free(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_svg_is_text, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_svg_label_positions, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_same_bytes_every_time, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_pdf_has_the_font_and_no_date, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_pdf_text_is_found, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_options_are_checked, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_overwritten, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_odd_sizes, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
