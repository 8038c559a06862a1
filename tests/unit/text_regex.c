/* text_regex: patterns in Ruby's syntax matched by PCRE2, and the bounds of matching. Expected cuts
 * are written by hand from the syntax's documentation. */
#include "support/test.h"

#include "base/mem.h"
#include "text/regex.h"

#include <stdio.h>
#include <string.h>

/* The cuts of a text as one string: matches in brackets. */
static const char *cut(const char *pattern, bool literal, const char *text)
{
    static char out[1024];
    mha_err err;
    mha_regex *r;
    mha_regex_scratch x;
    mha_cuts cuts = {0};
    size_t n = 0;
    if (mha_regex_new(&r, pattern, strlen(pattern), literal, &err) != MHA_OK)
        fail_msg("%s: %s", pattern, err.message);
    mha_regex_scratch_init(&x, strlen(text));
    assert_int_equal(mha_regex_cut(r, &x, text, strlen(text), &cuts, &err), MHA_OK);
    out[0] = '\0';
    for (size_t i = 0; i < cuts.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, cuts.v[i].match ? "[%.*s]" : "%.*s",
                              (int)(cuts.v[i].end - cuts.v[i].start), text + cuts.v[i].start);
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&x);
    mha_regex_free(r);
    return out;
}

static void test_same_syntax(void **state)
{
    assert_string_equal(cut("\\p{L}+", false, "ab 1é"), "[ab] 1[é]");
    assert_string_equal(cut("(?i:'s|'ll)|\\d{1,3}", false, "it'S 12345"), "it['S] [123][45]");
    assert_string_equal(cut("\\s+(?!\\S)|\\s+", false, "a   b"), "a[  ][ ]b");
    assert_string_equal(cut("[^\\s\\p{L}]?+x++", false, "-xx x"), "[-xx] [x]");
    assert_string_equal(cut("(?<=a)b|(?<!a)c", false, "abcac"), "a[b][c]ac");
}

static void test_other_syntax(void **state)
{
    /* ^ and $ are ends of lines, always; . is no newline unless (?m). */
    assert_string_equal(cut("^.", false, "ab\ncd"), "[a]b\n[c]d");
    assert_string_equal(cut("b$", false, "ab\nab"), "a[b]\na[b]");
    assert_string_equal(cut("(?m).+", false, "a\nb"), "[a\nb]");
    assert_string_equal(cut("\\h+", false, "xbeefy"), "x[beef]y");
    assert_string_equal(cut("\\u0041\\v?", false, "A\vB"), "[A\v]B");
    assert_string_equal(cut("a{,2}b", false, "aaab"), "a[aab]");
    assert_string_equal(cut("a{x}", false, "a{x}"), "[a{x}]");
    /* Words have marks, but no fractions outside of Latin-1; U+180E is no space. */
    assert_string_equal(cut("\\w+", false, "a\xcc\x81_1\xe2\x91\xa0"), "[a\xcc\x81_1]\xe2\x91\xa0");
    assert_string_equal(cut("\\s", false, "\xe1\xa0\x8e \xc2\xa0"), "\xe1\xa0\x8e[ ][\xc2\xa0]");
    assert_string_equal(cut("\\bx\\B", false, "xy ax"), "[x]y ax");
    /* Union of classes, and a hyphen at an inner edge. */
    assert_string_equal(cut("[a[.,]b]+", false, "a,c.b"), "[a,]c[.b]");
    assert_string_equal(cut("[a[-c]]+", false, "a-bc"), "[a-]b[c]");
    assert_string_equal(cut("[]a]+", false, "]ab"), "[]a]b");
    /* Scripts, not script extensions: U+30FC is used with Han characters, but is not one. */
    assert_string_equal(cut("\\p{Katakana}", false, "ア"), "[ア]");
    assert_string_equal(cut("\\p{^Lu}", false, "Ab"), "A[b]");
}

static void test_literal(void **state)
{
    assert_string_equal(cut("a.b", true, "a.b axb"), "[a.b] axb");
    assert_string_equal(cut("(", true, "f(x)"), "f[(]x)");
}

static void test_empty_matches(void **state)
{
    /* Not right behind the match before. */
    assert_string_equal(cut("x*", false, "axb"), "[]a[x]b[]");
    assert_string_equal(cut("", true, "ab"), "[]a[]b[]");
    assert_string_equal(cut("(?=é)", false, "éé"), "[]é[]é");
}

static void test_far_matches(void **state)
{
    /* Matches are sought in windows of places; none may be lost at their edges. */
    for (size_t n = 0; n < 400; n++) {
        char text[1024] = {0};
        size_t at = 0;
        mha_err err;
        mha_regex *r;
        mha_regex_scratch x;
        mha_cuts cuts = {0};
        for (size_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, i % 3 ? "a" : "é");
        memcpy(text + at, "xyz", 4);
        assert_int_equal(mha_regex_new(&r, "xy", 2, false, &err), MHA_OK);
        mha_regex_scratch_init(&x, at + 3);
        assert_int_equal(mha_regex_cut(r, &x, text, at + 3, &cuts, &err), MHA_OK);
        size_t i = at > 0;
        assert_int_equal(cuts.n, i + 2);
        assert_true(cuts.v[i].match);
        assert_int_equal(cuts.v[i].start, at);
        assert_int_equal(cuts.v[i].end, at + 2);
        mha_cuts_release(&cuts);
        mha_regex_scratch_release(&x);
        mha_regex_free(r);
    }
}

static void expect_refused(const char *pattern, mha_status status, const char *says)
{
    mha_err err;
    mha_regex *r;
    assert_int_equal(mha_regex_new(&r, pattern, strlen(pattern), false, &err), status);
    assert_null(r);
    if (!strstr(err.message, says))
        fail_msg("%s: the message lacks \"%s\": %s", pattern, says, err.message);
}

static void test_refused(void **state)
{
    expect_refused("a(", MHA_ERR_FORMAT, "regular expression: ");
    expect_refused("[a", MHA_ERR_FORMAT, "regular expression: ");
    expect_refused("\\p{Klingon}", MHA_ERR_FORMAT, "regular expression: ");
    expect_refused("ab[a-z&&[^b]]", MHA_ERR_UNSUPPORTED, "byte 6: the intersection");
    expect_refused("[a[^b]]", MHA_ERR_UNSUPPORTED, "byte 2: this class inside of a class");
    expect_refused("[[:alpha:]]", MHA_ERR_UNSUPPORTED, "a POSIX bracket");
    expect_refused("a{1,3}+", MHA_ERR_UNSUPPORTED, "+ behind {");
    expect_refused("\\Ga", MHA_ERR_UNSUPPORTED, "the escape \\G");
    expect_refused("\\C", MHA_ERR_UNSUPPORTED, "the escape \\C");
    expect_refused("[\\W]", MHA_ERR_UNSUPPORTED, "the escape \\W");
    expect_refused("(?R)", MHA_ERR_UNSUPPORTED, "this group option");
    expect_refused("(?1)", MHA_ERR_UNSUPPORTED, "this kind of group");
    expect_refused("(*LIMIT_MATCH=1)a", MHA_ERR_UNSUPPORTED, "(*");
    expect_refused("(?s)a", MHA_ERR_UNSUPPORTED, "this group option");
    expect_refused("\\pL", MHA_ERR_UNSUPPORTED, "\\p without");
}

static void test_too_long(void **state)
{
    mha_err err;
    mha_regex *r;
    void *p;
    size_t n = MHA_REGEX_MAX + 1;
    assert_int_equal(mha_alloc(&p, n, 1, NULL), MHA_OK);
    memset(p, 'a', n);
    assert_int_equal(mha_regex_new(&r, p, n, false, &err), MHA_ERR_LIMIT);
    mha_free(p);
}

/* Every pair of pattern and text must end, one way or the other, and say why. */
static void expect_limit(const char *pattern, size_t n)
{
    mha_err err;
    mha_regex *r;
    mha_regex_scratch x;
    mha_cuts cuts = {0};
    void *p;
    assert_int_equal(mha_alloc(&p, n, 1, NULL), MHA_OK);
    memset(p, 'a', n);
    assert_int_equal(mha_regex_new(&r, pattern, strlen(pattern), false, &err), MHA_OK);
    mha_regex_scratch_init(&x, n);
    assert_int_equal(mha_regex_cut(r, &x, p, n, &cuts, &err), MHA_ERR_LIMIT);
    assert_non_null(strstr(err.message, "a regular expression of the tokenizer"));
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&x);
    mha_regex_free(r);
    mha_free(p);
}

static void test_catastrophic(void **state)
{
    expect_limit("(a+)+[bc]", 64);
    expect_limit("(?:a|a)*[bc]", 64);
    expect_limit("(a|aa)+[^a]", 100);
}

/* Common patterns on long runs are not taken for catastrophes. */
static void test_long_runs(void **state)
{
    static const char pattern[] = "[^\\r\\n\\p{L}]?\\p{L}+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    size_t n = 300000;
    mha_err err;
    mha_regex *r;
    mha_regex_scratch x;
    mha_cuts cuts = {0};
    void *p;
    assert_int_equal(mha_alloc(&p, n, 1, NULL), MHA_OK);
    memset(p, ' ', n / 2);
    memset((char *)p + n / 2, 'a', n - n / 2);
    assert_int_equal(mha_regex_new(&r, pattern, strlen(pattern), false, &err), MHA_OK);
    mha_regex_scratch_init(&x, n);
    if (mha_regex_cut(r, &x, p, n, &cuts, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(cuts.n, 2);
    assert_int_equal(cuts.v[0].end, n / 2 - 1);
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&x);
    mha_regex_free(r);
    mha_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_syntax), cmocka_unit_test(test_other_syntax),
        cmocka_unit_test(test_literal),     cmocka_unit_test(test_empty_matches),
        cmocka_unit_test(test_far_matches), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_long),    cmocka_unit_test(test_catastrophic),
        cmocka_unit_test(test_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
