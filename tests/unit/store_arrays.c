/* store_arrays: files of named arrays, read back by the readers of io. */
#include "support/test.h"

#include "base/filemap.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "mha/table.h"
#include "support/tempdir.h"

#include <string.h>

static const float six[] = {1, 2, 3, 4, 5, 6.5F};
static const int64_t three[] = {-1, 7, (int64_t)1 << 40};

/* x [2,3] in pieces, an empty array, ids [3], a scalar. */
static void write_four(const char *path)
{
    mha_arrays *a = NULL;
    mha_err err = {0};
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, &err), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){2, 3}, 2, &err), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "none", MHA_ARRAY_F32, (size_t[]){0, 4}, 2, &err),
                     MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "ids", MHA_ARRAY_I64, (size_t[]){3}, 1, &err), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "s", MHA_ARRAY_F64, NULL, 0, &err), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){1}, 1, &err),
                     MHA_ERR_ARG);
    assert_int_equal(mha_arrays_write(a, six, 2, &err), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "late", MHA_ARRAY_F32, (size_t[]){1}, 1, &err),
                     MHA_ERR_ARG);
    assert_int_equal(mha_arrays_write(a, six, 5, &err), MHA_ERR_ARG);
    assert_int_equal(mha_arrays_write(a, six + 2, 4, &err), MHA_OK);
    assert_int_equal(mha_arrays_write(a, three, 3, &err), MHA_OK);
    assert_int_equal(mha_arrays_write(a, (double[]){0.1}, 1, &err), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, &err), MHA_OK);
}

static void test_npz(void **state)
{
    const char *path = tempdir_path(state, "a.npz");
    mha_npz *z = NULL;
    mha_npy a;
    float x[6];
    double s = 0;
    write_four(path);
    assert_int_equal(mha_npz_open(&z, path, 0, NULL), MHA_OK);
    assert_int_equal(mha_npz_count(z), 4);
    assert_int_equal(mha_npz_get(z, 0, &a, NULL), MHA_OK);
    assert_true(a.rank == 2 && a.shape[0] == 2 && a.shape[1] == 3);
    mha_npy_f32(x, &a);
    assert_memory_equal(x, six, sizeof six);
    assert_int_equal(mha_npz_get(z, 1, &a, NULL), MHA_OK);
    assert_int_equal(a.count, 0);
    assert_string_equal(mha_npz_name(z, 2), "ids");
    assert_int_equal(mha_npz_get(z, 3, &a, NULL), MHA_OK);
    mha_npy_f64(&s, &a);
    assert_true(s == 0.1);
    mha_npz_close(z);
}

static void test_safetensors(void **state)
{
    const char *path = tempdir_path(state, "a.safetensors");
    mha_filemap f;
    mha_tensor_list list = {0};
    mha_err err = {0};
    write_four(path);
    assert_int_equal(mha_filemap_open(&f, path, NULL), MHA_OK);
    if (mha_safetensors_parse(&list, f.data, f.size, path, 0, 1000, 10, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.items[0].name, "x");
    assert_int_equal(list.items[0].type, MHA_F32);
    assert_memory_equal(list.items[0].data, six, sizeof six);
    assert_int_equal((list.items[0].data - f.data) % 8, 0);
    assert_int_equal(list.items[1].bytes, 0);
    assert_int_equal(list.items[2].type, MHA_I64);
    assert_memory_equal(list.items[2].data, three, sizeof three);
    assert_int_equal(list.items[3].rank, 0);
    mha_tensor_list_release(&list);
    mha_filemap_close(&f);
}

static void test_npy(void **state)
{
    const char *path = tempdir_path(state, "a.npy");
    mha_arrays *a = NULL;
    mha_filemap f;
    mha_npy x;
    float values[6];
    mha_err err = {0};
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){6, 1}, 2, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "y", MHA_ARRAY_F32, (size_t[]){1}, 1, &err),
                     MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "y is the second"));
    assert_int_equal(mha_arrays_write(a, six, 6, NULL), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, NULL), MHA_OK);
    assert_int_equal(mha_filemap_open(&f, path, NULL), MHA_OK);
    assert_int_equal(mha_npy_parse(&x, f.data, f.size, path, NULL), MHA_OK);
    assert_int_equal((x.data - f.data) % 64, 0);
    mha_npy_f32(values, &x);
    assert_memory_equal(values, six, sizeof six);
    mha_filemap_close(&f);
}

/* What is not complete leaves no file. */
static void test_incomplete(void **state)
{
    static const char *const names[] = {"i.npz", "i.npy", "i.safetensors"};
    for (size_t i = 0; i < 3; i++) {
        const char *path = tempdir_path(state, names[i]);
        mha_arrays *a = NULL;
        mha_err err = {0};
        assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
        assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){7}, 1, NULL), MHA_OK);
        assert_int_equal(mha_arrays_write(a, six, 6, NULL), MHA_OK);
        assert_int_equal(mha_arrays_commit(a, &err), MHA_ERR_ARG);
        assert_non_null(strstr(err.message, "x lacks 1 elements"));
        assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
        mha_arrays_abort(a);
    }
    mha_arrays_abort(NULL);
    assert_int_equal(directory_count(*state), 0);
}

static void test_formats(void **state)
{
    mha_arrays *a = NULL;
    mha_err err = {0};
    assert_int_equal(
        mha_arrays_open(&a, tempdir_path(state, "a.csv"), MHA_FORMAT_AUTO, false, &err),
        MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "npz, npy or safetensors, not csv"));
    assert_int_equal(mha_arrays_open(&a, tempdir_path(state, "a"), MHA_FORMAT_AUTO, false, &err),
                     MHA_ERR_ARG);
    /* nothing declared */
    const char *path = tempdir_path(state, "e.npz");
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, NULL), MHA_OK);
    mha_npz *z = NULL;
    assert_int_equal(mha_npz_open(&z, path, 0, NULL), MHA_OK);
    assert_int_equal(mha_npz_count(z), 0);
    mha_npz_close(z);
}

/* The same arrays give the same bytes. */
static void test_deterministic(void **state)
{
    char first[4096] = {0};
    write_four(tempdir_path(state, "a.npz"));
    memcpy(first, file_text(tempdir_path(state, "a.npz")), sizeof first);
    write_four(tempdir_path(state, "b.npz"));
    assert_memory_equal(first, file_text(tempdir_path(state, "b.npz")), 1000);
}

#define IN_TEMPDIR(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TEMPDIR(test_npz),        IN_TEMPDIR(test_safetensors), IN_TEMPDIR(test_npy),
        IN_TEMPDIR(test_incomplete), IN_TEMPDIR(test_formats),     IN_TEMPDIR(test_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
