/* io_cursor: bounded little-endian reads. */
#include "support/test.h"

#include "io/cursor.h"

static void test_reads(void **state)
{
    static const unsigned char data[] = {1, 0x34, 0x12, 4, 3, 2, 0xf1, 8, 7, 6, 5, 4, 3, 2, 0xf1};
    mha_cursor c = {.data = data, .size = sizeof data, .file = "f"};
    uint8_t a = 0;
    uint16_t b = 0;
    uint32_t d = 0;
    uint64_t e = 0;
    assert_int_equal(mha_cursor_u8(&c, &a, "a", NULL), MHA_OK);
    assert_int_equal(mha_cursor_u16(&c, &b, "b", NULL), MHA_OK);
    assert_int_equal(mha_cursor_u32(&c, &d, "d", NULL), MHA_OK);
    assert_int_equal(mha_cursor_left(&c), 8);
    assert_int_equal(mha_cursor_u64(&c, &e, "e", NULL), MHA_OK);
    assert_int_equal(a, 1);
    assert_int_equal(b, 0x1234);
    assert_int_equal(d, 0xf1020304);
    assert_true(e == 0xf102030405060708);
    assert_int_equal(mha_cursor_left(&c), 0);
}

static void test_refuses_without_moving(void **state)
{
    static const unsigned char data[5] = {0};
    mha_cursor c = {.data = data, .size = sizeof data, .file = "some.file"};
    mha_err err = {0};
    uint32_t d = 0;
    uint64_t e = 77;
    const unsigned char *p = NULL;
    assert_int_equal(mha_cursor_seek(&c, 2, "start", &err), MHA_OK);
    assert_int_equal(mha_cursor_u64(&c, &e, "field e", &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "some.file: at byte 2: field e: needs 8 bytes, 3 left");
    assert_true(e == 77);
    assert_int_equal(mha_cursor_u32(&c, &d, "field d", &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_cursor_bytes(&c, &p, UINT64_MAX, "bytes", &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_cursor_left(&c), 3);
    assert_int_equal(mha_cursor_bytes(&c, &p, 3, "bytes", &err), MHA_OK);
    assert_ptr_equal(p, data + 2);
    assert_int_equal(mha_cursor_bytes(&c, &p, 0, "nothing", &err), MHA_OK);
}

static void test_seek(void **state)
{
    static const unsigned char data[5] = {0};
    mha_cursor c = {.data = data, .size = sizeof data, .file = "f"};
    mha_err err = {0};
    assert_int_equal(mha_cursor_seek(&c, 5, "end", &err), MHA_OK);
    assert_int_equal(mha_cursor_seek(&c, 6, "table", &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "f: table at byte 6 is past the end, byte 5");
    assert_int_equal(mha_cursor_seek(&c, UINT64_MAX, "table", &err), MHA_ERR_FORMAT);
    assert_int_equal(c.at, 5);
}

static void test_no_memory_behind_an_empty_file(void **state)
{
    mha_cursor c = {.file = "empty"};
    const unsigned char *p = NULL;
    uint8_t a = 0;
    assert_int_equal(mha_cursor_bytes(&c, &p, 0, "nothing", NULL), MHA_OK);
    assert_int_equal(mha_cursor_u8(&c, &a, "byte", NULL), MHA_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses_without_moving),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_no_memory_behind_an_empty_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
