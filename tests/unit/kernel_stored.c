/* kernel_stored: decoding of stored types and products with stored rows, on every instruction set.
 * tests/data/quant holds random blocks with their values from another implementation. */
#include "support/test.h"

#include "support/rows.h"

#include "base/filemap.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static row x_row, y_row;

/* A stored row at an odd address: mapped files promise nothing. */
static unsigned char stored_cells[8 * ROW_MAX + 1];
static unsigned char *const stored = stored_cells + 1;

static char *fixture(mha_dtype type, const char *suffix, size_t *size)
{
    char path[64], *bytes;
    mha_err err = {0};

    snprintf(path, sizeof path, "tests/data/quant/%s.%s", mha_dtype_get(type)->name, suffix);
    if (mha_file_read(&bytes, size, path, 1 << 20, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return bytes;
}

static void test_block_types_against_fixtures(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (int t = MHA_Q4_0; t < MHA_DTYPE_FLOAT_COUNT; t++) {
        const mha_dtype_info *info = mha_dtype_get((mha_dtype)t);
        size_t size, value_size;
        char *blocks = fixture((mha_dtype)t, "bin", &size);
        char *values = fixture((mha_dtype)t, "f32", &value_size);
        const size_t n = value_size / sizeof(float);
        assert_int_equal(size / info->bytes * info->block, n);
        assert_true(n >= 256 && n <= ROW_MAX);
        memcpy(stored, blocks, size);
        for (size_t k = 0; k < count; k++) {
            float *y = row_start(&y_row, n, 1);
            tables[k]->widen[t](y, stored, n);
            row_check_guards(&y_row);
            assert_memory_equal(y, values, value_size);
        }
        mha_free(blocks);
        mha_free(values);
    }
}

static void test_q4_0_by_hand(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        float y[32];
        stored[0] = 0x00;
        stored[1] = 0x3c; /* 1 as f16 */
        for (int j = 0; j < 16; j++)
            stored[2 + j] = (unsigned char)(j | (15 - j) << 4);
        tables[k]->widen[MHA_Q4_0](y, stored, 32);
        for (int j = 0; j < 16; j++) {
            assert_true(y[j] == (float)(j - 8));
            assert_true(y[j + 16] == (float)(7 - j));
        }
    }
}

/* All 65,536 halves, by the definition: (−1)^s · 2^(e − 25) · (1024 + f), or 2^−24 · f for e = 0.
 */
static double half_value(unsigned h)
{
    const int exponent = (int)(h >> 10 & 31U);
    const double fraction = (double)(h & 1023U), sign = (h & 0x8000U) != 0 ? -1.0 : 1.0;

    if (exponent == 31)
        return fraction != 0.0 ? (double)NAN : sign * HUGE_VAL;
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024.0 + fraction, exponent - 25));
}

static void assert_same_number(float got, double want)
{
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_true((double)got == want && (signbit(got) != 0) == (signbit(want) != 0));
}

static void test_every_half_and_bfloat(void **state)
{
    enum { ROW = 1021 };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (unsigned first = 0; first < 0x10000U; first += ROW) {
            const size_t n = first + ROW <= 0x10000U ? ROW : 0x10000U - first;
            float *y = row_start(&y_row, n, first % 3);
            for (size_t j = 0; j < n; j++) {
                const uint16_t h = (uint16_t)(first + j);
                memcpy(stored + 2 * j, &h, sizeof h);
            }
            tables[k]->widen[MHA_F16](y, stored, n);
            for (size_t j = 0; j < n; j++)
                assert_same_number(y[j], half_value(first + (unsigned)j));
            tables[k]->widen[MHA_BF16](y, stored, n);
            for (size_t j = 0; j < n; j++) {
                const uint32_t bits = (uint32_t)(first + j) << 16;
                float want;
                memcpy(&want, &bits, sizeof want);
                assert_same_number(y[j], (double)want);
            }
            row_check_guards(&y_row);
        }
    }
}

static void test_f32_copies_and_f64_rounds(void **state)
{
    static const double in[] = {0.1,    -0.0,          1e-45,           3e-46,    1e39, -1e300,
                                1e-300, 1.0 + 0x1p-24, 1.0 + 0x1.8p-23, HUGE_VAL, 2.5};
    enum { N = sizeof in / sizeof *in };
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = row_length(i);
            float *y = row_start(&y_row, n, i % 3);
            for (size_t j = 0; j < n; j++)
                memcpy(stored + 8 * j, &in[j % N], sizeof *in);
            tables[k]->widen[MHA_F64](y, stored, n);
            for (size_t j = 0; j < n; j++)
                assert_same_number(y[j], (double)(float)in[j % N]);
            row_check_guards(&y_row);
            tables[k]->widen[MHA_F32](y, stored, n);
            if (n > 0)
                assert_memory_equal(y, stored, n * sizeof *y);
            row_check_guards(&y_row);
        }
    }
}

/* Bytes with every pattern, but finite scales of a usual size where f16 or plain numbers stand. */
static void fill_stored(mha_dtype type, size_t n, mha_rng *g)
{
    const mha_dtype_info *info = mha_dtype_get(type);
    const size_t bytes = n / info->block * info->bytes;

    for (size_t j = 0; j < bytes; j++)
        stored[j] = (unsigned char)mha_rng_below(g, 256);
    if (info->block == 1) {
        for (size_t j = 0; j < n; j++) {
            const double v = 2.0 * mha_rng_uniform(g) - 1.0;
            const float f = (float)v;
            uint32_t bits;
            memcpy(&bits, &f, sizeof bits);
            const uint16_t bf = (uint16_t)(bits >> 16);
            const uint16_t half =
                (uint16_t)(0x2c00U + mha_rng_below(g, 0x1000) + (mha_rng_below(g, 2) << 15));
            if (type == MHA_F32)
                memcpy(stored + 4 * j, &f, sizeof f);
            else if (type == MHA_F64)
                memcpy(stored + 8 * j, &v, sizeof v);
            else
                memcpy(stored + 2 * j, type == MHA_BF16 ? &bf : &half, sizeof half);
        }
        return;
    }
    const size_t at = type == MHA_Q2_K ? 80 : type == MHA_Q3_K ? 108 : type == MHA_Q6_K ? 208 : 0;
    for (size_t j = 0; j < bytes; j += info->bytes) {
        stored[j + at + 1] = (unsigned char)(0x20 | (stored[j + at + 1] & 0x83)); /* d */
        if (at + 3 < info->bytes) /* m or dmin where there is one, else any two bytes */
            stored[j + at + 3] = (unsigned char)(0x20 | (stored[j + at + 3] & 0x83));
    }
}

/* Products against sums of the decoded values in long double; decoding against `ref`, to the bit.
 */
static void test_random_rows_of_every_type(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_rng g;

    mha_rng_seed(&g, 31, 0);
    for (int t = 0; t < MHA_DTYPE_FLOAT_COUNT; t++) {
        const size_t block = mha_dtype_get((mha_dtype)t)->block;
        for (size_t i = 0; i < row_length_count(); i++) {
            const size_t n = block == 256 ? i % 9 * 256 : row_length(i) / block * block;
            float *x = row_start(&x_row, n, i % 5), want[ROW_MAX];
            fill_stored((mha_dtype)t, n, &g);
            fill_uniform(x, n, &g, -1.0, 1.0);
            tables[0]->widen[t](want, stored, n);
            long double sum = 0.0L, size = 0.0L;
            for (size_t j = 0; j < n; j++) {
                assert_true(isfinite(want[j]));
                sum += (long double)want[j] * (long double)x[j];
                size += fabsl((long double)want[j] * (long double)x[j]);
            }
            for (size_t k = 0; k < count; k++) {
                float *y = row_start(&y_row, n, i % 4);
                tables[k]->widen[t](y, stored, n);
                row_check_guards(&y_row);
                if (n > 0)
                    assert_memory_equal(y, want, n * sizeof *y);
                const float dot = tables[k]->dot[t](stored, x, n);
                assert_true(fabsl((long double)dot - sum) <= 6e-7L * size);
            }
        }
    }
}

static void test_dot_of_nothing_is_zero(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t k = 0; k < count; k++) {
        for (int t = 0; t < MHA_DTYPE_FLOAT_COUNT; t++)
            assert_true(tables[k]->dot[t](stored, x_row.cells, 0) == 0.0F);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_types_against_fixtures),
        cmocka_unit_test(test_q4_0_by_hand),
        cmocka_unit_test(test_every_half_and_bfloat),
        cmocka_unit_test(test_f32_copies_and_f64_rounds),
        cmocka_unit_test(test_random_rows_of_every_type),
        cmocka_unit_test(test_dot_of_nothing_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
