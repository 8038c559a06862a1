/* store_arrays: arrays into files, read back with the readers of io. */
#include "support/test.h"

#include "io/npy.h"
#include "mha/table.h"
#include "support/tempdir.h"

#include <string.h>

static const float weights[] = {0.25f, 0.75f, 1, 0, 0.5f, 0.5f};
static const int64_t ids[] = {7, -1};

/* pattern [3, 2] in two pieces, an empty array, ids [2]. */
static void arrays_write(const char *path)
{
    mha_arrays *a = NULL;
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    assert_int_equal(
        mha_arrays_declare(a, "enc.self.0.pattern", MHA_ARRAY_F32, (size_t[]){3, 2}, 2, NULL),
        MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "empty", MHA_ARRAY_F64, (size_t[]){0, 2}, 2, NULL),
                     MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "ids", MHA_ARRAY_I64, (size_t[]){2}, 1, NULL), MHA_OK);
    assert_int_equal(mha_arrays_write(a, weights, 4, NULL), MHA_OK);
    assert_int_equal(mha_arrays_write(a, weights + 4, 2, NULL), MHA_OK);
    assert_int_equal(mha_arrays_write(a, ids, 2, NULL), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, NULL), MHA_OK);
}

static void test_npz(void **state)
{
    const char *path = tempdir_path(state, "a.npz");
    mha_npz *z = NULL;
    mha_npy array;
    size_t i = 0;
    float values[6];
    int64_t back[2];
    arrays_write(path);
    assert_int_equal(mha_npz_open(&z, path, 0, NULL), MHA_OK);
    assert_int_equal(mha_npz_count(z), 3);
    assert_true(mha_npz_find(z, "enc.self.0.pattern", &i));
    assert_int_equal(mha_npz_get(z, i, &array, NULL), MHA_OK);
    assert_int_equal(array.type, MHA_F32);
    assert_int_equal(array.rank, 2);
    assert_int_equal(array.shape[0], 3);
    assert_int_equal(array.shape[1], 2);
    mha_npy_f32(values, &array);
    assert_memory_equal(values, weights, sizeof weights);
    assert_true(mha_npz_find(z, "ids", &i));
    assert_int_equal(mha_npz_get(z, i, &array, NULL), MHA_OK);
    assert_int_equal(mha_npy_i64(back, &array, path, NULL), MHA_OK);
    assert_memory_equal(back, ids, sizeof ids);
    assert_true(mha_npz_find(z, "empty", &i));
    assert_int_equal(mha_npz_get(z, i, &array, NULL), MHA_OK);
    assert_int_equal(array.count, 0);
    mha_npz_close(z);
}

static void test_safetensors(void **state)
{
    const char *path = tempdir_path(state, "a.safetensors");
    arrays_write(path);
    /* u64 length | JSON | data: the declared order, without gaps. */
    const char *text = file_text(path);
    uint64_t header;
    memcpy(&header, text, sizeof header);
    const char *data = text + 8 + header;
    assert_non_null(strstr(text + 8, "\"enc.self.0.pattern\""));
    assert_non_null(strstr(text + 8, "\"dtype\":\"I64\""));
    assert_memory_equal(data, weights, sizeof weights);
    assert_memory_equal(data + sizeof weights, ids, sizeof ids);
}

static void test_npy(void **state)
{
    const char *path = tempdir_path(state, "a.npy");
    mha_arrays *a = NULL;
    mha_npy array;
    mha_err err = {0};
    double value = 0;
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F64, NULL, 0, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "y", MHA_ARRAY_F64, NULL, 0, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "x and y"));
    assert_int_equal(mha_arrays_write(a, &(double){2.5}, 1, NULL), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, NULL), MHA_OK);
    const char *text = file_text(path);
    assert_int_equal(mha_npy_parse(&array, (const unsigned char *)text, 128 + 8, path, NULL),
                     MHA_OK);
    assert_int_equal(array.rank, 0);
    mha_npy_f64(&value, &array);
    assert_true(value == 2.5);
}

static void test_nothing_is_left_of_a_broken_write(void **state)
{
    const char *path = tempdir_path(state, "a.npz");
    mha_arrays *a = NULL;
    mha_err err = {0};
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){3}, 1, NULL), MHA_OK);
    assert_int_equal(mha_arrays_declare(a, "x", MHA_ARRAY_F32, (size_t[]){3}, 1, &err),
                     MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "x comes twice"));
    assert_int_equal(
        mha_arrays_declare(a, "y", MHA_ARRAY_F32, (size_t[]){SIZE_MAX / 2, SIZE_MAX / 2}, 2, NULL),
        MHA_ERR_LIMIT);
    assert_int_equal(mha_arrays_write(a, weights, 2, NULL), MHA_OK);
    assert_int_equal(mha_arrays_commit(a, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "x lacks 4 bytes"));
    assert_int_equal(mha_arrays_open(&a, path, MHA_FORMAT_AUTO, false, NULL), MHA_OK);
    mha_arrays_abort(a);
    mha_arrays_abort(NULL);
    assert_int_equal(
        mha_arrays_open(&a, tempdir_path(state, "a.csv"), MHA_FORMAT_AUTO, false, &err),
        MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "not as csv"));
    assert_int_equal(directory_count(*state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_npz, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_safetensors, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_npy, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_left_of_a_broken_write, tempdir_setup,
                                        tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
