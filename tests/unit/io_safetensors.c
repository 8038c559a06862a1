/* io_safetensors: what a good file gives. Broken ones are in tests/corrupt. */
#include "support/test.h"

#include "base/mem.h"
#include "io/safetensors.h"
#include "support/bytes.h"

static void test_tensors(void **state)
{
    size_t n = 0;
    unsigned char *data =
        bytes_make("j|{'__metadata__':{'format':'pt'},"
                   "'b':{'dtype':'I64','shape':[1],'data_offsets':[12,20]},"
                   "'a.weight':{'shape':[2,3],'dtype':'F16','data_offsets':[0,12]}}   |"
                   "h0x3c00 h0x4000 h0x4200 h0x4400 h0x4500 h0x4600 q-5",
                   &n);
    mha_tensor_list list = {0};
    mha_err err = {0};
    assert_int_equal(mha_safetensors_parse(&list, data, n, "f", 7, 1000, 2, &err), MHA_OK);
    assert_int_equal(list.count, 2);
    const mha_tensor *b = &list.items[0], *a = &list.items[1];
    assert_string_equal(a->name, "a.weight");
    assert_int_equal(a->type, MHA_F16);
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->shape[0], 2);
    assert_int_equal(a->shape[1], 3);
    assert_int_equal(a->bytes, 12);
    assert_int_equal(a->file, 7);
    assert_ptr_equal(a->data, data + n - 20);
    assert_string_equal(b->name, "b");
    assert_int_equal(b->type, MHA_I64);
    assert_ptr_equal(b->data, data + n - 8);
    mha_tensor_list_release(&list);
    mha_free(data);
}

/* Every element type that can be read, by its name and size. */
static void test_types(void **state)
{
    static const struct {
        const char *recipe;
        mha_dtype type;
    } rows[] = {
        {"j|{'a':{'dtype':'F32','shape':[],'data_offsets':[0,4]}}| z4", MHA_F32},
        {"j|{'a':{'dtype':'BF16','shape':[1],'data_offsets':[0,2]}}| z2", MHA_BF16},
        {"j|{'a':{'dtype':'F64','shape':[1],'data_offsets':[0,8]}}| z8", MHA_F64},
        {"j|{'a':{'dtype':'I8','shape':[1],'data_offsets':[0,1]}}| z1", MHA_I8},
        {"j|{'a':{'dtype':'I16','shape':[1],'data_offsets':[0,2]}}| z2", MHA_I16},
        {"j|{'a':{'dtype':'I32','shape':[1],'data_offsets':[0,4]}}| z4", MHA_I32},
        {"j|{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}}| z1", MHA_U8},
        {"j|{'a':{'dtype':'U16','shape':[1],'data_offsets':[0,2]}}| z2", MHA_U16},
        {"j|{'a':{'dtype':'U32','shape':[1],'data_offsets':[0,4]}}| z4", MHA_U32},
        {"j|{'a':{'dtype':'U64','shape':[1],'data_offsets':[0,8]}}| z8", MHA_U64},
        {"j|{'a':{'dtype':'BOOL','shape':[1],'data_offsets':[0,1]}}| z1", MHA_BOOL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = 0;
        unsigned char *data = bytes_make(rows[i].recipe, &n);
        mha_tensor_list list = {0};
        assert_int_equal(mha_safetensors_parse(&list, data, n, "f", 0, 1000, 1, NULL), MHA_OK);
        assert_int_equal(list.items[0].type, rows[i].type);
        mha_tensor_list_release(&list);
        mha_free(data);
    }
}

/* A second file appends; a broken one leaves the list as it was. */
static void test_appends(void **state)
{
    size_t n = 0;
    unsigned char *data =
        bytes_make("j|{'a':{'dtype':'U8','shape':[2],'data_offsets':[0,2]}}| b1 b2", &n);
    mha_tensor_list list = {0};
    assert_int_equal(mha_safetensors_parse(&list, data, n, "f", 0, 1000, 9, NULL), MHA_OK);
    assert_int_equal(mha_safetensors_parse(&list, data, n - 1, "g", 1, 1000, 9, NULL),
                     MHA_ERR_FORMAT);
    assert_int_equal(list.count, 1);
    assert_int_equal(mha_safetensors_parse(&list, data, n, "h", 2, 1000, 9, NULL), MHA_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].file, 0);
    assert_int_equal(list.items[1].file, 2);
    assert_int_equal(list.items[0].data[1], 2);
    mha_tensor_list_release(&list);
    mha_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_appends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
