/* io_torchfile: what torch.save wrote, in both forms, element by element. */
#include "support/test.h"

#include "base/filemap.h"
#include "io/torchfile.h"

#include <string.h>

typedef struct expected {
    const char *name;
    mha_dtype type;
    uint32_t rank;
    uint64_t shape[2];
    const void *elements;
    size_t bytes;
} expected;

static const float plain[] = {0, 1, 2, 3, 4, 5}, turned[] = {0, 3, 1, 4, 2, 5},
                   slice[] = {3, 4, 5, 6, 7, 8}, column[] = {1, 4, 7, 10}, parameter[] = {1.5f},
                   scalar[] = {2.5f};
static const uint16_t half[] = {0x3800, 0xc000}, bf16[] = {0x3f00, 0xc000};
static const double one_tenth[] = {0.1};
static const int64_t longs[] = {-1, (int64_t)1 << 40};
static const unsigned char bools[] = {1, 0};

static const expected tensors[] = {
    {"plain", MHA_F32, 2, {2, 3}, plain, sizeof plain},
    {"tied", MHA_F32, 2, {2, 3}, plain, sizeof plain},
    {"turned", MHA_F32, 2, {3, 2}, turned, sizeof turned},
    {"slice", MHA_F32, 2, {2, 3}, slice, sizeof slice},
    {"column", MHA_F32, 1, {4}, column, sizeof column},
    {"half", MHA_F16, 1, {2}, half, sizeof half},
    {"bf16", MHA_BF16, 1, {2}, bf16, sizeof bf16},
    {"double", MHA_F64, 1, {1}, one_tenth, sizeof one_tenth},
    {"long", MHA_I64, 2, {1, 2}, longs, sizeof longs},
    {"bool", MHA_BOOL, 1, {2}, bools, sizeof bools},
    {"parameter", MHA_F32, 1, {1}, parameter, sizeof parameter},
    {"scalar", MHA_F32, 0, {0}, scalar, sizeof scalar},
    {"empty", MHA_F32, 2, {0, 3}, NULL, 0},
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static void expect_views(const char *path)
{
    mha_filemap map;
    mha_tensor_list list = {0};
    mha_err err = {0};
    assert_int_equal(mha_filemap_open(&map, path, &err), MHA_OK);
    mha_status status = mha_torchfile_parse(&list, map.data, map.size, path, 7, 100, &err);
    if (status != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(list.count, TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        const mha_tensor *t = &list.items[i];
        assert_string_equal(t->name, tensors[i].name);
        assert_int_equal(t->type, tensors[i].type);
        assert_int_equal(t->rank, tensors[i].rank);
        assert_memory_equal(t->shape, tensors[i].shape, t->rank * sizeof *t->shape);
        assert_int_equal(t->bytes, tensors[i].bytes);
        assert_int_equal(t->file, 7);
        if (t->bytes > 0)
            assert_memory_equal(t->data, tensors[i].elements, t->bytes);
    }
    assert_ptr_equal(list.items[0].data, list.items[1].data);
    mha_tensor_list_release(&list);
    assert_int_equal(mha_torchfile_parse(&list, map.data, map.size, path, 0, TENSORS - 1, &err),
                     MHA_ERR_LIMIT);
    mha_tensor_list_release(&list);
    mha_filemap_close(&map);
}

static void test_both_forms(void **state)
{
    (void)state;
    expect_views("tests/data/torch/views.bin");
    expect_views("tests/data/torch/views.stream.bin");
}

static void test_nothing_is_run(void **state)
{
    (void)state;
    const char *path = "tests/data/torch/evil.bin";
    mha_filemap map;
    mha_tensor_list list = {0};
    mha_err err = {0};
    assert_int_equal(mha_filemap_open(&map, path, &err), MHA_OK);
    assert_int_equal(mha_torchfile_parse(&list, map.data, map.size, path, 0, 100, &err),
                     MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "evil.bin: names posix.system"));
    assert_int_equal(list.count, 0);
    mha_tensor_list_release(&list);
    mha_filemap_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms),
        cmocka_unit_test(test_nothing_is_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
