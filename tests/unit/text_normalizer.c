/* text_normalizer: characters, normal forms and normalizers, and where every byte of the result
 * comes from. Expected ranges follow from the rules in normal_form.c and were checked with the
 * reference implementation. */
#include "support/test.h"

#include "io/json.h"
#include "text/bytelevel.h"
#include "text/normalizer.h"
#include "text/unicode.h"

#include <stdio.h>
#include <string.h>

/* The result with the range of each character: "a[0,1)b[1,2)". */
static const char *normalize(const char *json, const char *text, mha_status expected)
{
    static char out[4096];
    mha_err err = {0};
    json_t *o;
    mha_arena arena = {0};
    mha_normalizers n;
    mha_regex_scratch regex;
    mha_cuts cuts = {0};
    mha_normalizing work = {.regex = &regex, .cuts = &cuts};
    work.text.ceiling = work.spare.ceiling = 1000;
    mha_regex_scratch_init(&regex, strlen(text));
    assert_int_equal(mha_json_parse(&o, json, strlen(json), "test", &err), MHA_OK);
    if (mha_normalizers_parse(&n, &arena, o, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(mha_aligned_put_original(&work.text, text, strlen(text), 0, &err), MHA_OK);
    mha_status status = mha_normalizers_apply(&n, &work, &err);
    if (status != expected)
        fail_msg("%s: %s", json, err.message);
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; status == MHA_OK && i < work.text.n;) {
        uint32_t c;
        size_t len = mha_char_next(work.text.data + i, &c);
        mha_span from = work.text.from[i];
        for (size_t k = 1; k < len; k++)
            assert_memory_equal(&from, &work.text.from[i + k], sizeof from);
        at += (size_t)snprintf(out + at, sizeof out - at, "%.*s[%u,%u)", (int)len,
                               work.text.data + i, from.start, from.end);
        i += len;
    }
    mha_normalizers_release(&n);
    mha_arena_release(&arena);
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&regex);
    mha_aligned_release(&work.text);
    mha_aligned_release(&work.spare);
    json_decref(o);
    return out;
}

#define CHECK(json, text, expected) assert_string_equal(normalize(json, text, MHA_OK), expected)

static void test_properties(void **state)
{
    assert_true(mha_char_is_space(0x85) && mha_char_is_space(0x3000) && mha_char_is_space('\v'));
    assert_false(mha_char_is_space(0x180e) || mha_char_is_space(0x200b));
    assert_true(mha_char_is_punct('$') && mha_char_is_punct('`') && mha_char_is_punct(0x3001));
    assert_false(mha_char_is_punct('a') || mha_char_is_punct(0xd7) || mha_char_is_punct(0x7f));
    assert_true(mha_char_is_numeric(0xbd) && mha_char_is_numeric(0x2167));
    assert_true(mha_char_is_word('_') && mha_char_is_word(0x301) && mha_char_is_word(0x24b6));
    assert_false(mha_char_is_word('-') || mha_char_is_word(0xb2));
    assert_true(mha_char_is_control(0xad) && mha_char_is_control(0xe000));
    assert_false(mha_char_is_control(0xa0) || mha_char_is_control(0x378));
    assert_true(mha_char_is_cjk(0x4e00) && mha_char_is_cjk(0x2f800));
    /* Kana and Hangul are written in words; U+2B820 is outside by an old mistake. */
    assert_false(mha_char_is_cjk(0x3042) || mha_char_is_cjk(0xac00) || mha_char_is_cjk(0x2b820));
    assert_true(mha_ascii_only("0123456789abcdef", 16));
    for (size_t i = 0; i < 17; i++) {
        char text[17] = "0123456789abcdef";
        text[i] = (char)0x80;
        assert_false(mha_ascii_only(text, 17));
    }
}

static void test_byte_alphabet(void **state)
{
    size_t moved = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t c = mha_byte_to_char((uint8_t)byte);
        assert_int_equal(mha_char_to_byte(c), byte);
        assert_false(mha_char_is_space(c) || mha_char_is_control(c));
        moved += c != byte;
    }
    assert_int_equal(moved, 68);
    assert_int_equal(mha_byte_to_char(' '), 0x120);
    assert_int_equal(mha_byte_to_char('\n'), 0x10a);
    assert_int_equal(mha_byte_to_char(0xad), 0x143);
    assert_int_equal(mha_char_to_byte(' '), -1);
    assert_int_equal(mha_char_to_byte(0x144), -1);
    char out[2];
    assert_int_equal(mha_bytes_of_piece("\xc4\xa0\xc3\xa9", 4, out, 2), 2);
    assert_memory_equal(out, " \xe9", 2);
    assert_int_equal(mha_bytes_of_piece("a b", 3, out, 2), (size_t)-1);
}

static void test_bert(void **state)
{
    static const char lower[] = "{'type':'BertNormalizer','clean_text':true,"
                                "'handle_chinese_chars':true,'strip_accents':null,"
                                "'lowercase':true}";
    char json[256];
    snprintf(json, sizeof json, "%s", lower);
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    CHECK(json, "A\tb\x07", "a[0,1) [1,2)b[2,3)");
    CHECK(json, "\xc3\x89!", "e[0,2)![2,3)");
    CHECK(json, "e\xcc\x81!", "e[0,1)![3,4)");
    CHECK(json, "\xe6\x9d\xb1", " [0,3)東[0,3) [0,3)");
    CHECK(json, "\xc4\xb0", "i[0,2)");
    CHECK(json, "\xef\xbf\xbd\xc2\xad\xe2\x80\xa8x", " [5,8)x[8,9)");
}

static void test_forms(void **state)
{
    CHECK("{\"type\":\"NFC\"}", "ae\xcc\x81z", "a[0,1)é[1,2)z[4,5)");
    CHECK("{\"type\":\"NFD\"}", "\xc3\xa9", "e[0,2)\xcc\x81[0,2)");
    CHECK("{\"type\":\"NFKC\"}", "\xef\xac\x83", "f[0,3)f[0,3)i[0,3)");
    CHECK("{\"type\":\"NFKD\"}", "\xc2\xbd", "1[0,2)\xe2\x81\x84[0,2)2[0,2)");
    /* The grave below (class 220) goes before the grave (230), and takes the place in the text. */
    CHECK("{\"type\":\"NFD\"}", "\xc3\xa0\xcc\x96", "a[0,2)\xcc\x96[2,4)\xcc\x80[2,4)");
    /* A mark between a letter and the mark it composes with: the composite stands first. */
    CHECK("{\"type\":\"NFC\"}", "a\xcc\x96\xcc\x80", "à[0,1)\xcc\x96[3,5)");
    /* A second mark of one class is blocked. */
    CHECK("{\"type\":\"NFC\"}", "a\xcc\x81\xcc\x80", "á[0,1)\xcc\x80[3,5)");
    /* Jamo compose two by two; U+0958 is excluded from composition. */
    CHECK("{\"type\":\"NFC\"}", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "각[0,3)");
    CHECK("{\"type\":\"NFC\"}", "\xe0\xa5\x98", "क[0,3)\xe0\xa4\xbc[0,3)");
    CHECK("{\"type\":\"NFC\"}", "\xcc\x81", "\xcc\x81[0,2)");
    CHECK("{\"type\":\"NFC\"}", "", "");
}

static void test_long_run_of_marks(void **state)
{
    char text[602] = "a", expected[602];
    for (size_t i = 0; i < 150; i++)
        memcpy(text + 1 + 4 * i, i % 2 ? "\xcc\x80\xcc\x96" : "\xcc\x96\xcc\x80", 4);
    size_t at = 1;
    expected[0] = 'a';
    for (size_t i = 0; i < 150; i++, at += 2)
        memcpy(expected + at, "\xcc\x96", 2);
    for (size_t i = 0; i < 150; i++, at += 2)
        memcpy(expected + at, "\xcc\x80", 2);
    expected[at] = '\0';
    const char *result = normalize("{\"type\":\"NFD\"}", text, MHA_OK);
    size_t k = 0;
    for (const char *c = result; *c; c++) {
        if (*c == '[')
            c = strchr(c, ')');
        else
            assert_int_equal(*c, expected[k++]);
    }
    assert_int_equal(k, at);
}

static void test_others(void **state)
{
    CHECK("{\"type\":\"Lowercase\"}", "A\xc4\xb0\xce\xa3", "a[0,1)i[1,3)\xcc\x87[1,3)σ[3,5)");
    CHECK("{\"type\":\"StripAccents\"}", "e\xcc\x81x", "e[0,1)x[3,4)");
    CHECK("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false}", " \xe3\x80\x80x ",
          "x[4,5) [5,6)");
    CHECK("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", " \n ", "");
    CHECK("{\"type\":\"Prepend\",\"prepend\":\"_\"}", "ab", "_[0,1)a[0,1)b[1,2)");
    CHECK("{\"type\":\"Prepend\",\"prepend\":\"_\"}", "", "");
    CHECK("{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"__\"}", "a b",
          "a[0,1)_[1,2)_[1,2)b[2,3)");
    /* The range of what is replaced is that of its last character. */
    CHECK("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"[ab]+\"},\"content\":\"x\"}", "abc",
          "x[1,2)c[2,3)");
    CHECK("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"^\"},\"content\":\"x\"}", "a",
          "x[0,0)a[0,1)");
    CHECK("{\"type\":\"ByteLevel\"}", " \xc3\xa9", "Ġ[0,1)Ã[1,3)©[1,3)");
    CHECK("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"Sequence\","
          "\"normalizers\":[{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"}]}]}",
          "\xc3\x89", "e[0,2)");
    CHECK("{\"type\":\"Sequence\",\"normalizers\":[]}", "A", "A[0,1)");
}

/* Each of these doubles the text; together they would make a gigabyte of one letter. */
static void test_growth_is_bounded(void **state)
{
    static const char one[] =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}";
    char json[4096];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (size_t i = 0; i < 30; i++)
        n += (size_t)snprintf(json + n, sizeof json - n, "%s%s", i ? "," : "", one);
    snprintf(json + n, sizeof json - n, "]}");
    normalize(json, "a", MHA_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_byte_alphabet),
        cmocka_unit_test(test_bert),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_long_run_of_marks),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_growth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
