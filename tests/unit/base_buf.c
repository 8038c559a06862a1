/* base_buf: growth and the ceiling of the byte buffer. */
#include "support/test.h"

#include "base/buf.h"

#include <string.h>

static void test_adds_in_order(void **state)
{
    mha_buf b;
    mha_buf_init(&b, 1000);
    assert_null(b.data);
    assert_int_equal(mha_buf_adds(&b, "layer ", NULL), MHA_OK);
    assert_int_equal(mha_buf_addf(&b, NULL, "%d.%s", 3, "head"), MHA_OK);
    assert_int_equal(mha_buf_add(&b, "\0x", 2, NULL), MHA_OK);
    assert_int_equal(b.size, 14);
    assert_memory_equal(b.data, "layer 3.head\0x", 15);
    mha_buf_clear(&b);
    assert_int_equal(b.size, 0);
    assert_string_equal(b.data, "");
    mha_buf_release(&b);
    assert_null(b.data);
}

static void test_empty_text_gives_a_string(void **state)
{
    mha_buf b;
    mha_buf_init(&b, 0);
    assert_int_equal(mha_buf_add(&b, NULL, 0, NULL), MHA_OK);
    assert_string_equal(b.data, "");
    mha_buf_release(&b);
}

static void test_ceiling_is_exact(void **state)
{
    mha_buf b;
    mha_err err = {0};
    mha_buf_init(&b, 10);
    assert_int_equal(mha_buf_adds(&b, "12345678", NULL), MHA_OK);
    assert_int_equal(mha_buf_addf(&b, &err, "%s", "abc"), MHA_ERR_LIMIT);
    assert_string_equal(err.message, "text of more than 10 bytes");
    assert_string_equal(b.data, "12345678");
    assert_int_equal(mha_buf_add(&b, "", SIZE_MAX, NULL), MHA_ERR_LIMIT);
    assert_int_equal(mha_buf_adds(&b, "90", NULL), MHA_OK);
    assert_string_equal(b.data, "1234567890");
    assert_int_equal(mha_buf_adds(&b, "x", NULL), MHA_ERR_LIMIT);
    mha_buf_release(&b);
}

static void test_many_small_adds(void **state)
{
    mha_buf b;
    mha_buf_init(&b, SIZE_MAX);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(mha_buf_addf(&b, NULL, "%05d", i), MHA_OK);
    assert_int_equal(b.size, 500000);
    assert_memory_equal(b.data + 5 * 31415, "31415", 5);
    assert_int_equal(strlen(b.data), b.size);
    mha_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds_in_order),
        cmocka_unit_test(test_empty_text_gives_a_string),
        cmocka_unit_test(test_ceiling_is_exact),
        cmocka_unit_test(test_many_small_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
