/* base_utf8: the edges of well-formed UTF-8. */
#include "support/test.h"

#include "base/utf8.h"

#include <string.h>

static void test_every_code_point_round_trips(void **state)
{
    for (uint32_t cp = 0; cp <= 0x110010; cp++) {
        char out[4];
        uint32_t back = 0;
        size_t n = mha_utf8_encode(cp, out);
        if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
            assert_int_equal(n, 0);
            continue;
        }
        size_t expected = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, expected);
        assert_int_equal(mha_utf8_decode(out, n, &back), n);
        assert_int_equal(back, cp);
        assert_int_equal(mha_utf8_decode(out, n - 1, &back), 0);
    }
}

static void test_malformed_sequences_are_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* a tail byte alone */
        "\xbf",             /* the same, last one */
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong U+007F */
        "\xe0\x80\x80",     /* overlong NUL in three */
        "\xe0\x9f\xbf",     /* overlong U+07FF */
        "\xf0\x80\x80\x80", /* overlong NUL in four */
        "\xf0\x8f\xbf\xbf", /* overlong U+FFFF */
        "\xed\xa0\x80",     /* U+D800 */
        "\xed\xbf\xbf",     /* U+DFFF */
        "\xf4\x90\x80\x80", /* U+110000 */
        "\xf5\x80\x80\x80", /* above */
        "\xff",             /* never in UTF-8 */
        "\xc3(",            /* no tail */
        "\xe2\x82(",        /* second tail missing */
        "\xf0\x9f\x98(",    /* third tail missing */
        "\xe2(\xa1",        /* first tail missing */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t cp = 7;
        size_t n = strlen(bad[i]);
        assert_int_equal(mha_utf8_decode(bad[i], n, &cp), 0);
        assert_int_equal(cp, 7);
        assert_false(mha_utf8_valid(bad[i], n));
    }
}

static void test_boundaries_are_accepted(void **state)
{
    static const struct {
        const char *text;
        uint32_t cp;
    } good[] = {
        {"\x7f", 0x7f},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint32_t cp = 0;
        size_t n = strlen(good[i].text);
        assert_int_equal(mha_utf8_decode(good[i].text, n, &cp), n);
        assert_int_equal(cp, good[i].cp);
    }
}

static void test_valid_and_count(void **state)
{
    static const char text[] = "na\xc3\xafve \xe4\xb8\xad\xf0\x9f\x98\x80";
    uint32_t cp = 7;
    assert_true(mha_utf8_valid(text, sizeof text - 1));
    assert_int_equal(mha_utf8_count(text, sizeof text - 1), 8);
    assert_false(mha_utf8_valid(text, sizeof text - 2));
    assert_true(mha_utf8_valid("a\0b", 3));
    assert_true(mha_utf8_valid(NULL, 0));
    assert_int_equal(mha_utf8_count(NULL, 0), 0);
    assert_int_equal(mha_utf8_decode("x", 0, &cp), 0);
    assert_int_equal(mha_utf8_decode("\0", 1, &cp), 1);
    assert_int_equal(cp, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_round_trips),
        cmocka_unit_test(test_malformed_sequences_are_refused),
        cmocka_unit_test(test_boundaries_are_accepted),
        cmocka_unit_test(test_valid_and_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
