/* render_scale: maps pooled as they arrive, colour scales, ticks, colour maps. */
#include "support/test.h"

#include "render/color.h"
#include "render/heat.h"
#include "render/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- maps --------------------------------------------------------------------------------------
 */

static mha_heat *heat_of(const float *values, size_t rows, size_t cols, size_t limit,
                         mha_pooling pooling)
{
    mha_heat *h = NULL;
    assert_int_equal(mha_heat_new(&h, rows, cols, limit, pooling, NULL), MHA_OK);
    for (size_t r = 0; r < rows; r++)
        mha_heat_add(h, r, 0, values + r * cols, cols);
    return h;
}

static const float square[] = {0.5f, 0.25f, 0, 0.125f, 0.75f, 0.5f, 0.25f, 0.0625f, 1};

static void test_nothing_is_pooled_within_the_limit(void **state)
{
    mha_heat *h = heat_of(square, 3, 3, 3, MHA_POOL_MAX);
    assert_int_equal(mha_heat_tile(h), 1);
    assert_int_equal(mha_heat_rows(h), 3);
    assert_int_equal(mha_heat_cols(h), 3);
    for (size_t i = 0; i < 9; i++)
        assert_true(mha_heat_get(h, i / 3, i % 3) == (double)square[i]);
    mha_heat_free(h);
}

/* Tiles of 2 x 2 over 3 x 3 cells: those at the edges have fewer cells. */
static void test_pooling(void **state)
{
    mha_heat *max = heat_of(square, 3, 3, 2, MHA_POOL_MAX);
    mha_heat *mean = heat_of(square, 3, 3, 2, MHA_POOL_MEAN);
    assert_int_equal(mha_heat_tile(max), 2);
    assert_true(mha_heat_get(max, 0, 0) == 0.75);
    assert_true(mha_heat_get(max, 0, 1) == 0.5);
    assert_true(mha_heat_get(max, 1, 0) == 0.25);
    assert_true(mha_heat_get(max, 1, 1) == 1);
    assert_true(mha_heat_get(mean, 0, 0) == (0.5 + 0.25 + 0.125 + 0.75) / 4);
    assert_true(mha_heat_get(mean, 0, 1) == 0.25);
    assert_true(mha_heat_get(mean, 1, 0) == (0.25 + 0.0625) / 2);
    assert_true(mha_heat_get(mean, 1, 1) == 1);
    mha_heat_free(max);
    mha_heat_free(mean);
}

/* Masked cells neither lower a mean nor count as 0; a tile without weights is undefined. */
static void test_masked_cells(void **state)
{
    static const float one[] = {0.5f, NAN};
    mha_heat *h = NULL;
    assert_int_equal(mha_heat_new(&h, 4, 4, 2, MHA_POOL_MEAN, NULL), MHA_OK);
    mha_heat_add(h, 0, 0, one, 2);
    mha_heat_add(h, 3, 2, one, 1);
    mha_heat_add(h, 2, 4, one, 0);
    assert_true(mha_heat_get(h, 0, 0) == 0.5);
    assert_true(isnan(mha_heat_get(h, 0, 1)));
    assert_true(isnan(mha_heat_get(h, 1, 0)));
    assert_true(mha_heat_get(h, 1, 1) == 0.5);
    mha_heat_free(h);
}

/* Pooling twice is pooling once: tiles of 2, then 3 of them, against tiles of 6. */
static void test_coarsening(void **state)
{
    float values[17 * 11];
    for (size_t i = 0; i < 17 * 11; i++)
        values[i] = (float)((i * 7919) % 256) / 256;
    for (int p = 0; p < 2; p++) {
        mha_pooling pooling = (mha_pooling)p;
        mha_heat *fine = heat_of(values, 17, 11, 9, pooling), *coarse = NULL;
        mha_heat *once = heat_of(values, 17, 11, 3, pooling);
        assert_int_equal(mha_heat_tile(fine), 2);
        assert_int_equal(mha_heat_coarsen(&coarse, fine, 3, NULL), MHA_OK);
        assert_int_equal(mha_heat_tile(coarse), 6);
        for (size_t r = 0; r < 3; r++)
            for (size_t c = 0; c < 2; c++)
                assert_true(mha_heat_get(coarse, r, c) == mha_heat_get(once, r, c));
        mha_heat_free(fine);
        mha_heat_free(coarse);
        mha_heat_free(once);
    }
}

static void test_bad_maps(void **state)
{
    mha_heat *h = NULL;
    assert_int_equal(mha_heat_new(&h, 0, 3, 8, MHA_POOL_MAX, NULL), MHA_ERR_ARG);
    assert_int_equal(mha_heat_new(&h, 3, 3, 0, MHA_POOL_MAX, NULL), MHA_ERR_ARG);
    assert_int_equal(mha_heat_new(&h, SIZE_MAX, SIZE_MAX, SIZE_MAX, MHA_POOL_MAX, NULL),
                     MHA_ERR_NOMEM);
    assert_null(h);
    /* A long text takes no more than its tiles. */
    assert_int_equal(mha_heat_new(&h, 1000000000, 1000000000, 4, MHA_POOL_MAX, NULL), MHA_OK);
    assert_int_equal(mha_heat_tile(h), 250000000);
    mha_heat_free(h);
}

/* --- colour scales -----------------------------------------------------------------------------
 */

static mha_color_scale scale_of(const float *values, size_t n, mha_scale kind)
{
    mha_heat *h = heat_of(values, 1, n, n, MHA_POOL_MAX);
    const mha_heat *maps[] = {NULL, h};
    mha_color_scale s;
    assert_int_equal(mha_color_scale_of(&s, maps, 2, kind, NULL), MHA_OK);
    mha_heat_free(h);
    return s;
}

static void test_linear_scale(void **state)
{
    mha_color_scale s = scale_of((const float[]){0.25f, 0.5f}, 2, MHA_SCALE_LINEAR);
    assert_true(s.lo == 0 && s.hi == 0.5 && !s.clipped);
    assert_int_equal(mha_color_scale_level(&s, 0), 0);
    assert_int_equal(mha_color_scale_level(&s, 0.25), 127);
    assert_int_equal(mha_color_scale_level(&s, 0.5), 254);
    assert_int_equal(mha_color_scale_level(&s, 9), 254);
    assert_int_equal(mha_color_scale_level(&s, (double)NAN), MHA_LEVEL_MASKED);
    s = scale_of((const float[]){0, 0}, 2, MHA_SCALE_LINEAR);
    assert_true(s.lo == 0 && s.hi == 1);
    s = scale_of((const float[]){NAN}, 1, MHA_SCALE_CLIP);
    assert_true(s.lo == 0 && s.hi == 1);
}

static void test_log_scale(void **state)
{
    mha_color_scale s = scale_of((const float[]){0, 1}, 2, MHA_SCALE_LOG);
    assert_true(fabs(s.lo - 1e-4) < 1e-18 && s.hi == 1);
    assert_int_equal(mha_color_scale_level(&s, 0), 0);
    assert_int_equal(mha_color_scale_level(&s, 1e-9), 0);
    assert_int_equal(mha_color_scale_level(&s, 1e-2), 127);
    assert_int_equal(mha_color_scale_level(&s, 1), 254);
    /* The lower end is a power of ten. */
    s = scale_of((const float[]){0.5f, 0.03125f}, 2, MHA_SCALE_LOG);
    assert_true(fabs(s.lo - 1e-4) < 1e-18 && s.hi == 0.5);
    s = scale_of((const float[]){0.03125f}, 1, MHA_SCALE_LOG);
    assert_true(fabs(s.lo - 1e-5) < 1e-18);
}

static void test_clipped_scale(void **state)
{
    float values[200];
    for (size_t i = 0; i < 200; i++)
        values[i] = (float)((i * 37) % 200); /* each of 0 … 199 once */
    mha_color_scale s = scale_of(values, 200, MHA_SCALE_CLIP);
    assert_true(s.hi == 197 && s.clipped); /* ⌊0.99 · 199⌋ */
    assert_int_equal(mha_color_scale_level(&s, 199), 254);
    s = scale_of((const float[]){1, 1}, 2, MHA_SCALE_CLIP);
    assert_true(s.hi == 1 && !s.clipped);
}

static void test_signed_values_are_symmetric(void **state)
{
    mha_color_scale s = scale_of((const float[]){-0.5f, 0.25f}, 2, MHA_SCALE_LOG);
    assert_int_equal(s.kind, MHA_SCALE_LINEAR);
    assert_true(s.lo == -0.5 && s.hi == 0.5);
    assert_int_equal(mha_color_scale_level(&s, 0), 127);
}

/* --- ticks and numbers -------------------------------------------------------------------------
 */

static void ticks_expect(double lo, double hi, double first, double step, size_t count,
                         int decimals)
{
    mha_ticks t = mha_ticks_of(lo, hi, 5);
    assert_true(fabs(t.first - first) < 1e-12 && fabs(t.step - step) < 1e-12);
    assert_int_equal(t.count, count);
    assert_int_equal(t.decimals, decimals);
}

static void test_ticks(void **state)
{
    ticks_expect(0, 1, 0, 0.2, 6, 1);
    ticks_expect(0, 0.9, 0, 0.2, 5, 1);
    ticks_expect(0, 0.0951, 0, 0.02, 5, 2);
    ticks_expect(-0.06, 0.35, 0, 0.1, 4, 1);
    ticks_expect(100, 159, 100, 20, 3, 0);
    ticks_expect(-3, 7, -2, 2, 5, 0);
    ticks_expect(0, 20000, 0, 5000, 5, 0);
}

static void test_label_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},     {0.90912, "0.909"}, {-0.5, "−0.5"},     {12345, "1.23e+04"},
                 {100, "100"}, {-0.0, "0"},        {0.0001, "0.0001"}, {1.25e-7, "1.25e-07"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[MHA_LABEL_SIZE];
        mha_label_number(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

/* --- colour maps -------------------------------------------------------------------------------
 */

static void test_colormaps(void **state)
{
    mha_color p[256];
    assert_false(mha_colormap_fill("jet", p));
    assert_null(mha_colormap_name(mha_colormap_count()));
    for (size_t m = 0; m < mha_colormap_count(); m++) {
        const char *name = mha_colormap_name(m);
        assert_true(mha_colormap_fill(name, p));
        bool diverging = strcmp(name, "balance") == 0;
        double before = mha_color_luminance(p[0]);
        int direction = mha_color_luminance(p[254]) > before ? 1 : -1;
        /* Lightness changes steadily; in the diverging map it rises to the middle, then falls. */
        for (size_t i = 1; i <= MHA_LEVEL_TOP; i++) {
            double y = mha_color_luminance(p[i]);
            if (diverging)
                direction = i <= 127 ? 1 : -1;
            assert_true((y - before) * direction > -0.004);
            before = y;
        }
    }
    /* viridis: 0x440154 and 0xfde725 at its ends, 0x21918c in its middle. */
    assert_true(mha_colormap_fill("viridis", p));
    assert_memory_equal(&p[0], ((const uint8_t[]){0x44, 0x01, 0x54}), 3);
    assert_memory_equal(&p[127], ((const uint8_t[]){0x21, 0x91, 0x8c}), 3);
    assert_memory_equal(&p[254], ((const uint8_t[]){0xfd, 0xe7, 0x25}), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_pooled_within_the_limit),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_masked_cells),
        cmocka_unit_test(test_coarsening),
        cmocka_unit_test(test_bad_maps),
        cmocka_unit_test(test_linear_scale),
        cmocka_unit_test(test_log_scale),
        cmocka_unit_test(test_clipped_scale),
        cmocka_unit_test(test_signed_values_are_symmetric),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_label_numbers),
        cmocka_unit_test(test_colormaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
