/* io_gguf: what a good file gives. Broken ones are in tests/corrupt. */
#include "support/test.h"

#include "base/mem.h"
#include "io/gguf.h"
#include "support/bytes.h"

#include <stdio.h>
#include <string.h>

typedef struct opened {
    unsigned char *data;
    size_t n;
    mha_gguf *g;
    mha_tensor_list list;
} opened;

static void open_recipe(opened *o, const char *recipe)
{
    mha_err err = {0};
    *o = (opened){0};
    o->data = bytes_make(recipe, &o->n);
    if (mha_gguf_parse(&o->g, &o->list, o->data, o->n, "m.gguf", 3, 100, &err) != MHA_OK)
        fail_msg("%s", err.message);
}

static void close_recipe(opened *o)
{
    mha_gguf_free(o->g);
    mha_tensor_list_release(&o->list);
    mha_free(o->data);
}

/* One pair of every type. */
#define SCALARS                                                                                    \
    "t|GGUF| i3 q0 q13 s|u8| i0 b250 s|i8| i1 b-3 s|u16| i2 h65000 s|i16| i3 h-300 s|u32| i4 i-1 " \
    "s|i32| i5 i-70000 s|f32| i6 f0.1 s|bool| i7 b1 s|string| i8 s|héllo| s|u64| i10 q-1 "        \
    "s|i64| i11 q-1234567890123 s|f64| i12 d0.1 s|small| i10 q99"

static int64_t int_at(const mha_gguf *g, const char *key)
{
    bool found = false;
    int64_t value = 0;
    assert_int_equal(mha_gguf_get_int(g, key, &found, &value, NULL), MHA_OK);
    assert_true(found);
    return value;
}

static void test_scalars(void **state)
{
    opened o;
    open_recipe(&o, SCALARS);
    assert_int_equal(int_at(o.g, "u8"), 250);
    assert_int_equal(int_at(o.g, "i8"), -3);
    assert_int_equal(int_at(o.g, "u16"), 65000);
    assert_int_equal(int_at(o.g, "i16"), -300);
    assert_true(int_at(o.g, "u32") == 4294967295);
    assert_int_equal(int_at(o.g, "i32"), -70000);
    assert_true(int_at(o.g, "i64") == -1234567890123);
    assert_int_equal(int_at(o.g, "small"), 99);
    bool found = false, truth = false;
    double real = 0;
    mha_gguf_string s = {0};
    assert_int_equal(mha_gguf_get_real(o.g, "f32", &found, &real, NULL), MHA_OK);
    assert_true(found && real == (double)0.1F);
    assert_int_equal(mha_gguf_get_real(o.g, "f64", &found, &real, NULL), MHA_OK);
    assert_true(found && real == 0.1);
    assert_int_equal(mha_gguf_get_bool(o.g, "bool", &found, &truth, NULL), MHA_OK);
    assert_true(found && truth);
    assert_int_equal(mha_gguf_get_string(o.g, "string", &found, &s, NULL), MHA_OK);
    assert_true(found && s.n == 6 && memcmp(s.s, "héllo", 6) == 0);
    assert_int_equal(mha_gguf_entry_count(o.g), 13);
    assert_int_equal(mha_gguf_entry_at(o.g, 8)->kind, MHA_GGUF_STRING);
    close_recipe(&o);
}

static void test_absent_and_wrong(void **state)
{
    opened o;
    mha_err err = {0};
    bool found = true, truth = false;
    int64_t i = 0;
    double real = 0;
    size_t count = 0;
    mha_gguf_kind kind;
    mha_gguf_string s = {0};
    open_recipe(&o, SCALARS);
    assert_int_equal(mha_gguf_get_int(o.g, "none", &found, &i, &err), MHA_OK);
    assert_false(found);
    assert_int_equal(mha_gguf_get_array(o.g, "none", &found, &kind, &count, &err), MHA_OK);
    assert_false(found);
    assert_int_equal(mha_gguf_get_int(o.g, "u64", &found, &i, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "m.gguf: u64: the value does not fit into 63 bits");
    assert_int_equal(mha_gguf_get_int(o.g, "f32", &found, &i, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "m.gguf: f32: expected an integer, found f32");
    assert_int_equal(mha_gguf_get_int(o.g, "bool", &found, &i, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_get_real(o.g, "u8", &found, &real, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_get_bool(o.g, "u8", &found, &truth, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_get_string(o.g, "u8", &found, &s, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_get_array(o.g, "u8", &found, &kind, &count, &err), MHA_ERR_FORMAT);
    close_recipe(&o);
}

static void test_arrays(void **state)
{
    opened o;
    mha_err err = {0};
    open_recipe(&o, "t|GGUF| i2 q0 q3 s|w| i9 i8 q3 s|ab| s|| s|xyz| s|n| i9 i3 q2 h-1 h7 "
                    "s|r| i9 i6 q2 f0.5 f-2");
    bool found = false;
    mha_gguf_kind kind = MHA_GGUF_U8;
    size_t count = 0;
    mha_gguf_string strings[3];
    int64_t ints[2];
    float reals[2];
    assert_int_equal(mha_gguf_get_array(o.g, "w", &found, &kind, &count, &err), MHA_OK);
    assert_true(found && kind == MHA_GGUF_STRING && count == 3);
    assert_int_equal(mha_gguf_array_strings(o.g, "w", strings, 3, &err), MHA_OK);
    assert_true(strings[0].n == 2 && memcmp(strings[0].s, "ab", 2) == 0);
    assert_int_equal(strings[1].n, 0);
    assert_true(strings[2].n == 3 && memcmp(strings[2].s, "xyz", 3) == 0);
    assert_int_equal(mha_gguf_array_ints(o.g, "n", ints, 2, &err), MHA_OK);
    assert_int_equal(ints[0], -1);
    assert_int_equal(ints[1], 7);
    assert_int_equal(mha_gguf_array_reals(o.g, "r", reals, 2, &err), MHA_OK);
    assert_true(reals[0] == 0.5F && reals[1] == -2.0F);
    assert_int_equal(mha_gguf_array_ints(o.g, "n", ints, 1, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "m.gguf: n: expected 1 elements, found 2");
    assert_int_equal(mha_gguf_array_ints(o.g, "r", ints, 2, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message,
                        "m.gguf: r: expected an array of integers, found an array of f32");
    assert_int_equal(mha_gguf_array_reals(o.g, "w", reals, 3, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_array_strings(o.g, "n", strings, 2, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_gguf_array_ints(o.g, "none", ints, 2, &err), MHA_ERR_FORMAT);
    close_recipe(&o);
}

/* Shapes are turned round: the file's first axis is the fastest. */
static void test_tensors(void **state)
{
    opened o;
    open_recipe(&o, "t|GGUF| i3 q3 q1 s|general.alignment| i4 i64 "
                    "s|a| i2 q3 q2 i0 q0 s|b| i1 q32 i20 q64 s|c| i4 q256 q1 q2 q1 i14 q128 "
                    "a64 f1 f2 f3 f4 f5 f6 a64 z18 a64 z420");
    const mha_tensor *t = o.list.items;
    assert_int_equal(o.list.count, 3);
    assert_string_equal(t[0].name, "a");
    assert_int_equal(t[0].rank, 2);
    assert_int_equal(t[0].shape[0], 2);
    assert_int_equal(t[0].shape[1], 3);
    assert_int_equal(t[0].type, MHA_F32);
    assert_int_equal(t[0].file, 3);
    float second = 0;
    memcpy(&second, t[0].data + 4, 4);
    assert_true(second == 2.0F);
    assert_int_equal(t[1].type, MHA_IQ4_NL);
    assert_int_equal(t[1].bytes, 18);
    assert_ptr_equal(t[1].data, t[0].data + 64);
    assert_int_equal(t[2].type, MHA_Q6_K);
    assert_int_equal(t[2].rank, 4);
    assert_int_equal(t[2].shape[1], 2);
    assert_int_equal(t[2].shape[3], 256);
    assert_int_equal(t[2].bytes, 420);
    assert_ptr_equal(t[2].data, o.data + o.n - 420);
    close_recipe(&o);
}

/* Type numbers and the bytes of one block, as the format has fixed them. */
static void test_types(void **state)
{
    static const struct {
        unsigned id, elements, bytes;
        mha_dtype type;
    } rows[] = {
        {0, 1, 4, MHA_F32},       {1, 1, 2, MHA_F16},       {2, 32, 18, MHA_Q4_0},
        {3, 32, 20, MHA_Q4_1},    {6, 32, 22, MHA_Q5_0},    {7, 32, 24, MHA_Q5_1},
        {8, 32, 34, MHA_Q8_0},    {10, 256, 84, MHA_Q2_K},  {11, 256, 110, MHA_Q3_K},
        {12, 256, 144, MHA_Q4_K}, {13, 256, 176, MHA_Q5_K}, {14, 256, 210, MHA_Q6_K},
        {20, 32, 18, MHA_IQ4_NL}, {24, 1, 1, MHA_I8},       {25, 1, 2, MHA_I16},
        {26, 1, 4, MHA_I32},      {27, 1, 8, MHA_I64},      {28, 1, 8, MHA_F64},
        {30, 1, 2, MHA_BF16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char recipe[160];
        opened o;
        snprintf(recipe, sizeof recipe, "t|GGUF| i3 q1 q0 s|a| i1 q%u i%u q0 a32 z%u",
                 rows[i].elements, rows[i].id, rows[i].bytes);
        open_recipe(&o, recipe);
        assert_int_equal(o.list.items[0].type, rows[i].type);
        assert_int_equal(o.list.items[0].bytes, rows[i].bytes);
        close_recipe(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars), cmocka_unit_test(test_absent_and_wrong),
        cmocka_unit_test(test_arrays),  cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
