/* figures: pictures against reference images, and colours of cells against values that are known.
 */
#include "support/test.h"

#include "mha/chart.h"
#include "support/image.h"
#include "support/tempdir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {"[CLS]", "The", "cat", "sat",      "on",     "the",
                                    "mat",   ",",   "un",  "##believ", "##ably", "[SEP]"};
enum { WORDS = sizeof words / sizeof *words };

static size_t labels_make(mha_label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        labels[i] = (mha_label){words[i % WORDS], i, 1};
    return n;
}

/* p(i, j) falls with the distance from the previous token; `first` of it goes to the first. */
static mha_heat *map_make(size_t n, bool causal, double first, size_t limit, mha_pooling pooling)
{
    float row[512];
    mha_heat *h = NULL;
    assert_true(n <= 512);
    assert_int_equal(mha_heat_new(&h, n, n, limit, pooling, NULL), MHA_OK);
    for (size_t i = 0; i < n; i++) {
        size_t visible = causal ? i + 1 : n;
        double sum = 0;
        for (size_t j = 0; j < visible; j++) {
            double d = fabs((double)j - ((double)i - 1));
            row[j] = (float)exp(-d * (1 + 0.1 * (double)(i % 3)));
            sum += (double)row[j];
        }
        for (size_t j = 0; j < visible; j++)
            row[j] = (float)((double)row[j] / sum * (1 - first) + (j == 0 ? first : 0));
        mha_heat_add(h, i, 0, row, visible);
    }
    return h;
}

static const mha_chart_options plain = {.dpi = 150};

static void test_heatmap_of_tokens(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    mha_label labels[WORDS];
    mha_heat *h = map_make(WORDS, false, 0.2, 1024, MHA_POOL_MAX);
    mha_axis rows = {.name = "query", .labels = labels, .count = labels_make(labels, WORDS)};
    mha_axis cols = {.name = "key", .labels = labels, .count = WORDS};
    mha_heatmap figure = {.map = h, .rows = rows, .cols = cols};
    mha_chart_options o = plain;
    o.title = "BERT, head 4.7";
    assert_int_equal(mha_chart_heatmap(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "heatmap_tokens");
    mha_heat_free(h);
}

static void test_heatmap_dark_with_log_scale(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    mha_heat *h = map_make(40, true, 0.3, 1024, MHA_POOL_MAX);
    mha_heatmap figure = {.map = h, .rows = {.name = "query"}, .cols = {.name = "key"}};
    mha_chart_options o = plain;
    o.dark = true;
    o.scale = MHA_SCALE_LOG;
    assert_int_equal(mha_chart_heatmap(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "heatmap_dark_log");
    mha_heat_free(h);
}

static void test_heatmap_pooled_and_thinned(void **state)
{
    const char *path = tempdir_path(state, "a.png"), *caption = tempdir_path(state, "a.txt");
    mha_label labels[60];
    mha_heat *h = map_make(60, true, 0.3, 30, MHA_POOL_MEAN);
    mha_axis axis = {.labels = labels, .count = labels_make(labels, 60)};
    mha_heatmap figure = {.map = h, .rows = axis, .cols = axis};
    mha_chart_options o = plain;
    o.caption = caption;
    o.about = "Head 4.7 of BERT.";
    o.scale = MHA_SCALE_CLIP;
    o.colormap = "viridis";
    assert_int_equal(mha_heat_tile(h), 2);
    assert_int_equal(mha_chart_heatmap(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "heatmap_pooled");
    const char *text = file_text(caption);
    assert_int_equal(
        strncmp(text, "Head 4.7 of BERT. Colours: attention weight, linear from 0 to", 61), 0);
    assert_non_null(strstr(text, "the 99th percentile"));
    assert_non_null(strstr(text, "Each point is the mean of 2 × 2 weights. Grey is masked. "
                                 "One label in 2 is shown.\n"));
    mha_heat_free(h);
}

static void test_grid(void **state)
{
    static const char *const numbers[] = {"0", "1", "2", "3"};
    const char *path = tempdir_path(state, "a.png");
    const mha_heat *maps[12];
    mha_heat *owned[12] = {NULL};
    for (size_t i = 0; i < 12; i++) {
        if (i != 7)
            owned[i] = map_make(24, true, 0.08 * (double)i, 256, MHA_POOL_MAX);
        maps[i] = owned[i];
    }
    mha_grid figure = {.maps = maps,
                       .rows = 3,
                       .cols = 4,
                       .row_labels = numbers,
                       .col_labels = numbers,
                       .row_name = "layer",
                       .col_name = "head"};
    mha_chart_options o = plain;
    o.title = "All heads";
    assert_int_equal(mha_chart_grid(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "grid");
    for (size_t i = 0; i < 12; i++)
        mha_heat_free(owned[i]);
}

static void test_headmap(void **state)
{
    static const double values[] = {0.004, -0.0021, NAN, 0.0001, 0.0033, -0.004, 0, 0.0019};
    const char *path = tempdir_path(state, "a.png");
    mha_headmap figure = {
        .values = values, .rows = 2, .cols = 4, .value_name = "signed", .unit = "nats"};
    assert_int_equal(mha_chart_headmap(&figure, &plain, path, NULL), MHA_OK);
    image_expect(path, "headmap");
}

static void test_bars(void **state)
{
    static const mha_bar bars[] = {{"4.7", 0.31, 0.28, 0.35},
                                   {"2.0", 0.22, 0.2, 0.25},
                                   {"11.3", 0.05, (double)NAN, (double)NAN},
                                   {"0.1", -0.04, -0.06, -0.01}};
    const char *path = tempdir_path(state, "a.png");
    mha_bars figure = {.bars = bars,
                       .count = 4,
                       .value_name = "score",
                       .unit = "nats",
                       .whiskers = "95 % interval"};
    assert_int_equal(mha_chart_bars(&figure, &plain, path, NULL), MHA_OK);
    image_expect(path, "bars");
}

/* --- what a picture says, checked without a reference ------------------------------------------
 */

/* Number of pixels of exactly this colour. */
static size_t color_count(const image *i, uint32_t color)
{
    size_t n = 0;
    for (unsigned y = 0; y < i->height; y++)
        for (unsigned x = 0; x < i->width; x++)
            n += image_at(i, x, y) == color;
    return n;
}

/* In an exact picture pixel (j, i) is the weight of query i and key j: white for 0, the darkest
 * colour for the largest, grey for masked. */
static void test_exact(void **state)
{
    static const float rows[3][3] = {{1, 0, 0}, {0.5f, 0.5f, 0}, {0, 0.25f, 0.75f}};
    const char *path = tempdir_path(state, "a.png");
    mha_heat *h = NULL;
    assert_int_equal(mha_heat_new(&h, 3, 3, SIZE_MAX, MHA_POOL_MAX, NULL), MHA_OK);
    for (size_t i = 0; i < 3; i++)
        mha_heat_add(h, i, 0, rows[i], i + 1);
    mha_chart_options o = {.colormap = "greys"};
    assert_int_equal(mha_chart_exact(h, &o, path, NULL), MHA_OK);
    image got = image_open(path);
    assert_int_equal(got.width, 3);
    assert_int_equal(got.height, 3);
    assert_int_equal(image_at(&got, 0, 2), 0xffffff);
    uint32_t darkest = image_at(&got, 0, 0), half = image_at(&got, 0, 1);
    assert_int_equal(image_at(&got, 1, 1), half);
    assert_true(darkest < half && half < 0xffffff);
    assert_true(image_at(&got, 2, 2) < half && image_at(&got, 2, 2) > darkest);
    assert_int_equal(image_at(&got, 1, 0), image_at(&got, 2, 0));
    assert_int_equal(image_at(&got, 1, 0), image_at(&got, 2, 1));
    assert_true(image_at(&got, 1, 0) > half && image_at(&got, 1, 0) < 0xffffff);
    image_close(&got);
    assert_int_equal(mha_chart_exact(h, &o, tempdir_path(state, "a.pdf"), NULL), MHA_ERR_ARG);
    mha_heat_free(h);
}

/* One cell in four has a weight, the others none: a quarter of the map has the darkest colour, and
 * every cell is the same number of pixels give or take one. */
static void test_cells_fill_the_map(void **state)
{
    static const float row[2] = {0, 1}, zero[2] = {0, 0};
    const char *path = tempdir_path(state, "a.png");
    mha_heat *h = NULL;
    mha_axis bare = {.bare = true};
    assert_int_equal(mha_heat_new(&h, 2, 2, 1024, MHA_POOL_MAX, NULL), MHA_OK);
    mha_heat_add(h, 0, 0, row, 2);
    mha_heat_add(h, 1, 0, zero, 2);
    mha_heatmap figure = {.map = h, .rows = bare, .cols = bare};
    assert_int_equal(mha_chart_heatmap(&figure, &plain, path, NULL), MHA_OK);
    image got = image_open(path);
    assert_int_equal(got.width, 502); /* 85 mm at 150 dpi */
    /* The upper right cell: from its middle to both sides. */
    unsigned y = got.height / 4, first = 0, last = 0;
    uint32_t dark = 0;
    for (unsigned x = 0; x < got.width && !dark; x++)
        if (image_at(&got, x, y) < 0x303060)
            dark = image_at(&got, first = x, y);
    for (unsigned x = first; image_at(&got, x, y) == dark; x++)
        last = x;
    size_t side = last - first + 1;
    size_t area = color_count(&got, dark);
    assert_in_range(area, side * (side - 1), side * (side + 1) + 100 /* the bar's end */);
    assert_in_range(side, 200, 230);
    image_close(&got);
    mha_heat_free(h);
}

/* The resolution is in the file: pHYs in pixels a metre. */
static void test_dpi_is_in_the_file(void **state)
{
    const char *path = tempdir_path(state, "a.png");
    mha_bar bar = {"a", 1, (double)NAN, (double)NAN};
    mha_bars figure = {.bars = &bar, .count = 1, .value_name = "score"};
    mha_chart_options o = {.dpi = 600, .width_mm = 50, .creator = "mha-inspect 9"};
    assert_int_equal(mha_chart_bars(&figure, &o, path, NULL), MHA_OK);
    image got = image_open(path);
    assert_int_equal(got.width, 1182); /* 50 / 25.4 · 600, rounded up */
    image_close(&got);
    const unsigned char *bytes = (const unsigned char *)file_text(path);
    const unsigned char wanted[] = {'p', 'H', 'Y', 's', 0, 0, 0x5c, 0x46, 0, 0, 0x5c, 0x46, 1};
    bool found = false;
    for (size_t i = 0; i < 2000; i++)
        found = found || memcmp(bytes + i, wanted, sizeof wanted) == 0;
    assert_true(found); /* 23622 */
}

/* Two triangles with a bridge, a loop, an edge that is there twice, and a node that stands alone.
 */
static const uint32_t from[] = {0, 1, 2, 3, 4, 5, 2, 3, 0, 1, 1},
                      to[] = {1, 2, 0, 4, 5, 3, 3, 2, 0, 0, 2};
enum { EDGES = sizeof from / sizeof *from };

static mha_network network(const float *const *weights, size_t rows, size_t cols)
{
    return (mha_network){.nodes = 7,
                         .edges = EDGES,
                         .source = from,
                         .target = to,
                         .weights = weights,
                         .rows = rows,
                         .cols = cols};
}

static void test_network(void **state)
{
    static const float w[EDGES] = {0.5f, 0.1f, 1, 0.02f, 0.3f, 0.8f, 0.2f, 0.6f, 0.9f, 0, 0.4f};
    const char *path = tempdir_path(state, "network.png");
    const float *const weights[] = {w};
    mha_network figure = network(weights, 1, 1);
    assert_int_equal(mha_chart_network(&figure, &plain, path, NULL), MHA_OK);
    image_expect(path, "network");
}

static void test_networks(void **state)
{
    static const float w[EDGES] = {0.5f, 0.1f, 1, 0.02f, 0.3f, 0.8f, 0.2f, 0.6f, 0.9f, 0, 0.4f};
    static const float v[EDGES] = {0.05f, 0.4f, 0.3f};
    static const char *const titles[] = {"0.0", "0.1", "1.0", NULL};
    const char *path = tempdir_path(state, "networks.png");
    const float *const weights[] = {w, v, v, NULL};
    mha_network figure = network(weights, 2, 2);
    mha_chart_options o = plain;
    figure.titles = titles;
    o.dark = true;
    o.scale = MHA_SCALE_LOG;
    assert_int_equal(mha_chart_network(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "networks_dark");
}

static void test_network_limits(void **state)
{
    const char *path = tempdir_path(state, "limits.png");
    const float *const weights[] = {NULL};
    mha_network one = {.nodes = 1, .weights = weights, .rows = 1, .cols = 1};
    mha_network huge = {.nodes = 4097, .weights = weights, .rows = 1, .cols = 1};
    mha_network none = {.nodes = 0, .weights = weights, .rows = 1, .cols = 1};
    assert_int_equal(mha_chart_network(&one, &plain, path, NULL), MHA_OK);
    assert_int_equal(mha_chart_network(&huge, &plain, path, NULL), MHA_ERR_LIMIT);
    assert_int_equal(mha_chart_network(&none, &plain, path, NULL), MHA_ERR_ARG);
}

/* Two panels, a band, a gap in one line, a line that is all gaps, and a range of nothing. */
static void test_lines(void **state)
{
    enum { N = 6 };
    const double none = (double)NAN;
    const double x[N] = {0, 0.2, 0.4, 0.6, 0.8, 1};
    const double a[N] = {3.1, 3.12, 3.2, 3.5, 4.4, 7}, b[N] = {3.1, 3.5, 4.2, 5, 6.1, 7};
    const double lo[N] = {3.1, 3.2, 3.6, 4.3, 5.5, 7}, hi[N] = {3.1, 3.9, 5.1, 6, 6.9, 7};
    const double gap[N] = {3.1, 5, none, 6.5, 6.9, 7}, gaps[N] = {none, none, none, none, none, 1};
    const double flat[N] = {0.25, 0.25, 0.25, 0.25, 0.25, 0.25};
    const mha_line above[] = {{.y = a}, {b, lo, hi}, {.y = gap}};
    const mha_line below[] = {{.y = flat}, {gaps, gaps, gaps}, {.y = flat}};
    const mha_line_panel panels[] = {{"loss", "nats", above}, {"metric", NULL, below}};
    const char *const names[] = {"least important first", "random orders", "most important first"};
    const char *path = tempdir_path(state, "lines.png");
    mha_lines figure = {x, N, "heads removed", names, 3, panels, 1, 0.4, "A sentence."};
    assert_int_equal(mha_chart_lines(&figure, &plain, path, NULL), MHA_OK);
    image_expect(path, "lines");
    mha_chart_options o = plain;
    o.dark = o.force = true;
    o.width_mm = 50;
    figure.panel_count = 2;
    figure.mark = none;
    figure.note = NULL;
    assert_int_equal(mha_chart_lines(&figure, &o, path, NULL), MHA_OK);
    image_expect(path, "lines_dark_narrow");
    figure.count = 1;
    assert_int_equal(mha_chart_lines(&figure, &o, path, NULL), MHA_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heatmap_of_tokens, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_heatmap_dark_with_log_scale, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_heatmap_pooled_and_thinned, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_grid, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_headmap, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_bars, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_lines, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_exact, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_cells_fill_the_map, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_dpi_is_in_the_file, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_network, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_networks, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_network_limits, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
