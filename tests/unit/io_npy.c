/* io_npy: NumPy arrays read from .npy and .npz, and archives written in pieces. */
#include "support/test.h"

#include "base/mem.h"
#include "io/npy.h"
#include "io/npz_write.h"
#include "support/bytes.h"
#include "support/tempdir.h"

#include <math.h>
#include <string.h>

#define V1 "x934e554d50590100 "
#define HEADER(descr, order, shape)                                                                \
    "n~{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }   \n~ "

static unsigned char *parse(mha_npy *a, const char *recipe)
{
    size_t n = 0;
    mha_err err = {0};
    unsigned char *data = bytes_make(recipe, &n);
    if (mha_npy_parse(a, data, n, "f.npy", &err) != MHA_OK)
        fail_msg("%s", err.message);
    return data;
}

static void check_reals(const char *recipe, const double *expected, size_t n)
{
    mha_npy a;
    double wide[16];
    float narrow[16];
    unsigned char *data = parse(&a, recipe);
    assert_int_equal(a.count, n);
    mha_npy_f64(wide, &a);
    mha_npy_f32(narrow, &a);
    for (size_t i = 0; i < n; i++) {
        if (isnan(expected[i])) {
            assert_true(isnan(wide[i]) && isnan(narrow[i]));
            continue;
        }
        assert_true(wide[i] == expected[i]);
        assert_true(narrow[i] == (float)expected[i]);
    }
    mha_free(data);
}

#define CHECK_REALS(recipe, ...)                                                                   \
    check_reals(recipe, (const double[]){__VA_ARGS__},                                             \
                sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void check_ints(const char *recipe, const int64_t *expected, size_t n)
{
    mha_npy a;
    int64_t values[16];
    double reals[16];
    unsigned char *data = parse(&a, recipe);
    assert_false(mha_npy_is_float(&a));
    assert_int_equal(a.count, n);
    assert_int_equal(mha_npy_i64(values, &a, "f", NULL), MHA_OK);
    mha_npy_f64(reals, &a);
    for (size_t i = 0; i < n; i++) {
        assert_true(values[i] == expected[i]);
        assert_true(reals[i] == (double)expected[i]);
    }
    mha_free(data);
}

#define CHECK_INTS(recipe, ...)                                                                    \
    check_ints(recipe, (const int64_t[]){__VA_ARGS__},                                             \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void test_floats(void **state)
{
    CHECK_REALS(V1 HEADER("<f4", "False", "(3,)") "f1.5 f-0.1 f1e30", 1.5, (double)-0.1F,
                (double)1e30F);
    CHECK_REALS(V1 HEADER("<f8", "False", "(2,)") "d0.1 d-3", 0.1, -3);
    CHECK_REALS(V1 HEADER(">f4", "False", "(2,)") "x3fc00000 xc0000000", 1.5, -2);
    CHECK_REALS(V1 HEADER(">f8", "False", "()") "x3ff8000000000000", 1.5);
    CHECK_REALS(V1 HEADER("=f4", "False", "(1,)") "f2", 2);
    /* 1, -2, the largest, the smallest normal, the smallest, zero, infinity, NaN */
    CHECK_REALS(V1 HEADER("<f2", "False",
                          "(8,)") "h0x3c00 h0xc000 h0x7bff h0x0400 h0x0001 h0x0000 h0x7c00 h0x7e00",
                1, -2, 65504, 0x1p-14, 0x1p-24, 0, INFINITY, (double)NAN);
}

static void test_ints(void **state)
{
    CHECK_INTS(V1 HEADER("<i8", "False", "(2,)") "q-1 q0x7fffffffffffffff", -1, INT64_MAX);
    CHECK_INTS(V1 HEADER("<i4", "False", "(2,)") "i-2147483648 i7", INT32_MIN, 7);
    CHECK_INTS(V1 HEADER("<u4", "False", "(1,)") "i-1", UINT32_MAX);
    CHECK_INTS(V1 HEADER("<i2", "False", "(2,)") "h-2 h300", -2, 300);
    CHECK_INTS(V1 HEADER("<u2", "False", "(1,)") "h65535", 65535);
    CHECK_INTS(V1 HEADER("|i1", "False", "(2,)") "b-2 b127", -2, 127);
    CHECK_INTS(V1 HEADER("|u1", "False", "(1,)") "b254", 254);
    CHECK_INTS(V1 HEADER("<u1", "False", "(1,)") "b254", 254);
    CHECK_INTS(V1 HEADER("|b1", "False", "(2,)") "b0 b1", 0, 1);
    CHECK_INTS(V1 HEADER(">i4", "False", "(1,)") "xfffffffe", -2);
    CHECK_INTS(V1 HEADER("<u8", "False", "(1,)") "q5", 5);
}

static void test_ints_that_are_none(void **state)
{
    mha_npy a;
    mha_err err = {0};
    int64_t value = 0;
    unsigned char *data = parse(&a, V1 HEADER("<f4", "False", "(1,)") "f1");
    assert_int_equal(mha_npy_i64(&value, &a, "f.npy", &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "f.npy: expected integers, found F32");
    mha_free(data);
    data = parse(&a, V1 HEADER("<u8", "False", "(1,)") "q-1");
    assert_int_equal(mha_npy_i64(&value, &a, "f.npy", &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "f.npy: element 0 is beyond int64");
    mha_free(data);
}

/* Column-major files come out row-major: [[1,2,3],[4,5,6]] and a [2,2,2]. */
static void test_fortran_order(void **state)
{
    CHECK_REALS(V1 HEADER("<f4", "True", "(2, 3)") "f1 f4 f2 f5 f3 f6", 1, 2, 3, 4, 5, 6);
    CHECK_INTS(V1 HEADER("|u1", "True", "(2, 2, 2)") "b1 b5 b3 b7 b2 b6 b4 b8", 1, 2, 3, 4, 5, 6, 7,
               8);
    CHECK_REALS(V1 HEADER("<f4", "True", "(2,)") "f1 f2", 1, 2);
}

static void test_headers(void **state)
{
    mha_npy a;
    unsigned char *data =
        parse(&a, "x934e554d50590200 m|{\"shape\":(2L,1),'fortran_order':False,\"descr\":'<f4'}"
                  "                  \n| f1 f2");
    assert_int_equal(a.rank, 2);
    assert_int_equal(a.shape[0], 2);
    assert_int_equal(a.shape[1], 1);
    mha_free(data);
    data = parse(&a, "x934e554d50590300 m|{'descr':'<f4','fortran_order':False,'shape':(0,5),}"
                     "         |");
    assert_int_equal(a.count, 0);
    mha_free(data);
}

/* ---------------------------------------------------------------------------------- archives */

static void write_archive(void **state, const char *path)
{
    mha_outfile f = {0};
    mha_npz_writer w;
    mha_err err = {0};
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int64_t ids[] = {-1, 7};
    const uint64_t shape[] = {2, 3};
    assert_int_equal(mha_outfile_open(&f, path, true, &err), MHA_OK);
    mha_npz_writer_init(&w, &f);
    assert_int_equal(mha_npz_writer_begin(&w, "a//b", MHA_F32, shape, 2, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_add(&w, x, 5, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_begin(&w, "early", MHA_F32, shape, 2, &err), MHA_ERR_ARG);
    assert_int_equal(mha_npz_writer_add(&w, (const char *)x + 5, 19, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_add(&w, x, 1, &err), MHA_ERR_ARG);
    assert_int_equal(mha_npz_writer_begin(&w, "bf", MHA_BF16, shape, 2, &err), MHA_ERR_ARG);
    assert_int_equal(mha_npz_writer_begin(&w, "", MHA_F32, shape, 2, &err), MHA_ERR_ARG);
    assert_int_equal(mha_npz_writer_begin(&w, "ids", MHA_I64, shape, 1, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_finish(&w, &err), MHA_ERR_ARG);
    assert_int_equal(mha_npz_writer_add(&w, ids, sizeof ids, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_begin(&w, "ü", MHA_F64, NULL, 0, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_add(&w, (const double[]){0.25}, 8, &err), MHA_OK);
    assert_int_equal(mha_npz_writer_finish(&w, &err), MHA_OK);
    mha_npz_writer_release(&w);
    assert_int_equal(mha_outfile_commit(&f, &err), MHA_OK);
}

static void test_round_trip(void **state)
{
    const char *path = tempdir_path(state, "a.npz");
    mha_npz *z = NULL;
    mha_npy a;
    mha_err err = {0};
    size_t i = 9;
    float x[6];
    int64_t ids[2];
    double d = 0;
    write_archive(state, path);
    assert_int_equal(mha_npz_open(&z, path, 0, &err), MHA_OK);
    assert_int_equal(mha_npz_count(z), 3);
    assert_string_equal(mha_npz_name(z, 0), "a//b");
    assert_true(mha_npz_find(z, "a//b", &i) && i == 0);
    assert_int_equal(mha_npz_get(z, i, &a, &err), MHA_OK);
    assert_int_equal(a.rank, 2);
    assert_int_equal(a.shape[1], 3);
    mha_npy_f32(x, &a);
    assert_true(x[0] == 1.0F && x[5] == 6.0F);
    assert_true(mha_npz_find(z, "ids", &i));
    assert_int_equal(mha_npz_get(z, i, &a, &err), MHA_OK);
    assert_int_equal(mha_npy_i64(ids, &a, "f", &err), MHA_OK);
    assert_int_equal(ids[0], -1);
    assert_int_equal(ids[1], 7);
    assert_true(mha_npz_find(z, "ü", &i));
    assert_int_equal(mha_npz_get(z, i, &a, &err), MHA_OK);
    mha_npy_f64(&d, &a);
    assert_true(a.rank == 0 && d == 0.25);
    assert_false(mha_npz_find(z, "x", &i));
    mha_npz_close(z);
}

/* The header as numpy.save writes it: version 1, 64 bytes to the first element. */
static void test_npy_header(void **state)
{
    mha_buf b;
    const uint64_t shape[] = {3, 4};
    mha_buf_init(&b, 1000);
    assert_int_equal(mha_npy_header(&b, MHA_F32, shape, 2, NULL), MHA_OK);
    assert_int_equal(b.size % 64, 0);
    assert_memory_equal(b.data, "\x93NUMPY\x01\0", 8);
    assert_int_equal(b.data[8] + 10, b.size);
    assert_int_equal(b.data[b.size - 1], '\n');
    assert_non_null(strstr(b.data + 10, "'shape': (3, 4), }"));
    mha_buf_clear(&b);
    assert_int_equal(mha_npy_header(&b, MHA_I64, shape, 1, NULL), MHA_OK);
    assert_non_null(
        strstr(b.data + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"));
    mha_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_ints),
        cmocka_unit_test(test_ints_that_are_none),
        cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_headers),
        cmocka_unit_test_setup_teardown(test_round_trip, tempdir_setup, tempdir_teardown),
        cmocka_unit_test(test_npy_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
