/* base_fail: messages of mha_fail. */
#include "support/test.h"

#include "base/fail.h"

#include <string.h>

static void test_message_and_status(void **state)
{
    mha_err err = {0};
    assert_int_equal(mha_fail(&err, MHA_ERR_FORMAT, "%s: %d", "file", 7), MHA_ERR_FORMAT);
    assert_int_equal(err.status, MHA_ERR_FORMAT);
    assert_string_equal(err.message, "file: 7");
    assert_int_equal(mha_fail(NULL, MHA_ERR_IO, "lost"), MHA_ERR_IO);
}

static void test_prefix_and_aliased_argument(void **state)
{
    mha_err err = {0};
    mha_fail(&err, MHA_ERR_FORMAT, "bad key");
    assert_int_equal(mha_fail_prefix(&err, MHA_ERR_FORMAT, "a.json"), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "a.json: bad key");
    mha_fail(&err, MHA_ERR_IO, "[%s]", err.message);
    assert_string_equal(err.message, "[a.json: bad key]");
    assert_int_equal(mha_fail_prefix(NULL, MHA_ERR_IO, "x"), MHA_ERR_IO);
}

static void test_what_steers_a_terminal_is_replaced(void **state)
{
    mha_err err = {0};
    /* ESC, newline, DEL; the C1 control U+009B; a byte that is not UTF-8; then real UTF-8. */
    mha_fail(&err, MHA_ERR_FORMAT, "%s", "a\x1b[2J\n\x7f|\xc2\x9b|\xff|\xc3\xa9\xe4\xb8\xad");
    assert_string_equal(err.message, "a?[2J??|??|?|\xc3\xa9\xe4\xb8\xad");
}

static void test_long_messages_are_cut(void **state)
{
    mha_err err = {0};
    char text[2 * MHA_ERR_MESSAGE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    mha_fail(&err, MHA_ERR_LIMIT, "%s", text);
    assert_int_equal(strlen(err.message), MHA_ERR_MESSAGE - 1);
    assert_string_equal(err.message + MHA_ERR_MESSAGE - 5, "x...");
    text[MHA_ERR_MESSAGE - 1] = '\0';
    mha_fail(&err, MHA_ERR_LIMIT, "%s", text);
    assert_string_equal(err.message, text);
}

static mha_status step(mha_status status, int *calls)
{
    ++*calls;
    return status;
}

static mha_status try_two(mha_status first, int *calls)
{
    MHA_TRY(step(first, calls));
    MHA_TRY(step(MHA_OK, calls));
    return MHA_OK;
}

static void test_try_returns_at_the_first_error(void **state)
{
    int calls = 0;
    assert_int_equal(try_two(MHA_OK, &calls), MHA_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(try_two(MHA_ERR_NUMERIC, &calls), MHA_ERR_NUMERIC);
    assert_int_equal(calls, 3);
}

static void test_every_status_has_its_name(void **state)
{
    assert_string_equal(mha_status_name(MHA_OK), "ok");
    assert_string_equal(mha_status_name(MHA_ERR_ARG), "arg");
    for (int a = MHA_OK; a <= MHA_ERR_INTERNAL; a++)
        for (int b = a + 1; b <= MHA_ERR_INTERNAL + 1; b++)
            assert_string_not_equal(mha_status_name((mha_status)a), mha_status_name((mha_status)b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_and_status),
        cmocka_unit_test(test_prefix_and_aliased_argument),
        cmocka_unit_test(test_what_steers_a_terminal_is_replaced),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_try_returns_at_the_first_error),
        cmocka_unit_test(test_every_status_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
