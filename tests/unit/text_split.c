/* text_split: cutting text into words. The table of behaviours is the one that the reference
 * implementation documents; the other pieces are written by hand. */
#include "support/test.h"

#include "io/json.h"
#include "text/pre_names.h"
#include "text/pretokenizer.h"

#include <stdio.h>
#include <string.h>

/* The pieces of a text, each with its range: "a[0,1) b[1,2)". */
static const char *split_json(const json_t *o, const char *text)
{
    static char out[4096];
    mha_err err = {0};
    mha_pretokenizers p;
    mha_regex_scratch regex;
    mha_cuts cuts = {0};
    mha_split s = {.data = text, .n = strlen(text), .regex = &regex, .cuts = &cuts};
    s.text.ceiling = s.spare.ceiling = 10000;
    mha_regex_scratch_init(&regex, s.n);
    if (mha_pretokenizers_parse(&p, o, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(mha_pieces_add(&s.pieces, 0, s.n, -1, &err), MHA_OK);
    assert_int_equal(mha_pretokenizers_apply(&p, &s, &err), MHA_OK);
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < s.pieces.n; i++) {
        mha_piece piece = s.pieces.v[i];
        mha_span from = mha_split_range(&s, piece.start, piece.end);
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%.*s[%u,%u)", i ? " " : "",
                               (int)(piece.end - piece.start), s.data + piece.start, from.start,
                               from.end);
    }
    mha_pretokenizers_release(&p);
    mha_pieces_release(&s.pieces);
    mha_pieces_release(&s.next);
    mha_aligned_release(&s.text);
    mha_aligned_release(&s.spare);
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&regex);
    return out;
}

/* `json` with ' for ". */
static const char *split(const char *json, const char *text)
{
    char copy[1024];
    json_t *o;
    mha_err err;
    snprintf(copy, sizeof copy, "%s", json);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    if (mha_json_parse(&o, copy, strlen(copy), "test", &err) != MHA_OK)
        fail_msg("%s", err.message);
    const char *out = split_json(o, text);
    json_decref(o);
    return out;
}

static void test_behaviours(void **state)
{
    static const char *const table[][2] = {
        {"Removed", "the[0,3) final[4,9) countdown[11,20)"},
        {"Isolated", "the[0,3) -[3,4) final[4,9) -[9,10) -[10,11) countdown[11,20)"},
        {"MergedWithPrevious", "the-[0,4) final-[4,10) -[10,11) countdown[11,20)"},
        {"MergedWithNext", "the[0,3) -final[3,9) -[9,10) -countdown[10,20)"},
        {"Contiguous", "the[0,3) -[3,4) final[4,9) --[9,11) countdown[11,20)"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char json[256];
        snprintf(json, sizeof json,
                 "{'type':'Split','pattern':{'String':'-'},'behavior':'%s','invert':false}",
                 table[i][0]);
        assert_string_equal(split(json, "the-final--countdown"), table[i][1]);
        snprintf(json, sizeof json,
                 "{'type':'Split','pattern':{'Regex':'[^-]+'},'behavior':'%s','invert':true}",
                 table[i][0]);
        if (i < 1)
            assert_string_equal(split(json, "the-final--countdown"), table[i][1]);
    }
}

static void test_merged_at_the_ends(void **state)
{
    assert_string_equal(split("{'type':'Split','pattern':{'String':'-'},"
                              "'behavior':'MergedWithPrevious','invert':false}",
                              "-a-"),
                        "-[0,1) a-[1,3)");
    assert_string_equal(split("{'type':'Split','pattern':{'String':'-'},"
                              "'behavior':'MergedWithNext','invert':false}",
                              "-a-"),
                        "-a[0,2) -[2,3)");
}

static void test_kinds(void **state)
{
    assert_string_equal(split("{'type':'BertPreTokenizer'}", "a b,c\xe3\x80\x80$"),
                        "a[0,1) b[2,3) ,[3,4) c[4,5) $[8,9)");
    assert_string_equal(split("{'type':'Whitespace'}", "don't  \xc2\xbd!? x"),
                        "don[0,3) '[3,4) t[4,5) \xc2\xbd!?[7,11) x[12,13)");
    assert_string_equal(split("{'type':'WhitespaceSplit'}", " a,b \n c"), "a,b[1,4) c[7,8)");
    assert_string_equal(split("{'type':'Punctuation'}", "a!!b"), "a[0,1) ![1,2) ![2,3) b[3,4)");
    assert_string_equal(split("{'type':'Punctuation','behavior':'Contiguous'}", "a!!b"),
                        "a[0,1) !![1,3) b[3,4)");
    assert_string_equal(split("{'type':'Digits','individual_digits':true}", "a12\xc2\xbd"),
                        "a[0,1) 1[1,2) 2[2,3) \xc2\xbd[3,5)");
    assert_string_equal(split("{'type':'Digits','individual_digits':false}", "a12b"),
                        "a[0,1) 12[1,3) b[3,4)");
    assert_string_equal(split("{'type':'CharDelimiterSplit','delimiter':'\xc3\xa9'}",
                              "a\xc3\xa9\xc3\xa9"
                              "b"),
                        "a[0,1) b[5,6)");
}

static void test_byte_level(void **state)
{
    assert_string_equal(split("{'type':'ByteLevel','add_prefix_space':false}", "a  b\xc3\xa9's"),
                        "a[0,1) Ġ[1,2) ĠbÃ©[2,6) 's[6,8)");
    /* The added space has the range of the first character. */
    assert_string_equal(split("{'type':'ByteLevel','add_prefix_space':true}", "\xc3\xa9 b"),
                        "ĠÃ©[0,2) Ġb[2,4)");
    assert_string_equal(split("{'type':'ByteLevel','add_prefix_space':true}", " a"), "Ġa[0,2)");
    assert_string_equal(split("{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},"
                              "{'type':'ByteLevel','add_prefix_space':true,'use_regex':false}]}",
                              "a b,"),
                        "Ġa[0,1) Ġb,[2,4)");
    /* What comes behind sees mapped text: 0xb2 is a superscript two by itself. */
    assert_string_equal(split("{'type':'Sequence','pretokenizers':[{'type':'ByteLevel',"
                              "'add_prefix_space':false},{'type':'Digits',"
                              "'individual_digits':true}]}",
                              "\xd0\xb2"),
                        "Ð[0,2) ²[0,2)");
}

static const char *split_named(const char *name, const char *text)
{
    json_t *o;
    mha_err err;
    const mha_pre_kind *kind = mha_pre_kind_find(name);
    assert_non_null(kind);
    assert_int_equal(mha_pre_kind_describe(&o, kind, &err), MHA_OK);
    const char *out = split_json(json_object_get(o, "pre_tokenizer"), text);
    json_decref(o);
    return out;
}

static void test_names(void **state)
{
    static const char *const names[] = {
        "gpt-2",  "phi-2",     "mpt",         "olmo",         "modern-bert",   "roberta-bpe",
        "smollm", "starcoder", "command-r",   "default",      "falcon",        "bloom",
        "llama3", "llama-bpe", "llama-v3",    "dbrx",         "qwen2",         "tekken",
        "gpt-4o", "llama4",    "deepseek-v3", "deepseek-llm", "deepseek-coder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_not_equal(split_named(names[i], "Hello, world 123 don't \xe6\x9d\xb1"), "");
    assert_null(mha_pre_kind_find("no-such"));
    assert_null(mha_pre_kind_find(""));
    assert_null(mha_pre_kind_find("gpt-2 phi-2"));
    assert_null(mha_pre_kind_find("gpt"));
}

static void test_named_words(void **state)
{
    assert_string_equal(split_named("gpt-2", "a 1234 b!"), "a[0,1) Ġ1234[1,6) Ġb[6,8) ![8,9)");
    assert_string_equal(split_named("smollm", "a 12"), "a[0,1) Ġ[1,2) 1[2,3) 2[3,4)");
    assert_string_equal(split_named("llama3", "12345 I'M\n"),
                        "123[0,3) 45[3,5) ĠI[5,7) 'M[7,9) Ċ[9,10)");
    assert_string_equal(split_named("qwen2", "12 a"), "1[0,1) 2[1,2) Ġa[2,4)");
    assert_string_equal(split_named("gpt-4o", "camelCase I'll"),
                        "camel[0,5) Case[5,9) ĠI'll[9,14)");
    assert_string_equal(split_named("tekken", "It's 12"), "It[0,2) 's[2,4) Ġ[4,5) 1[5,6) 2[6,7)");
    assert_string_equal(split_named("falcon", "a--1234"), "a[0,1) --[1,3) 123[3,6) 4[6,7)");
    assert_string_equal(split_named("bloom", "ab cd, e"), "ab[0,2) Ġcd[2,5) ,[5,6) Ġe[6,8)");
    assert_string_equal(split_named("deepseek-llm", "ab \xce\xb1 12\n"),
                        "ab[0,2) ĠÎ±[2,5) Ġ[5,6) 12[6,8) Ċ[8,9)");
    assert_string_equal(split_named("deepseek-v3", "1234 !ab"), "123[0,3) 4[3,4) Ġ![4,6) ab[6,8)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behaviours), cmocka_unit_test(test_merged_at_the_ends),
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_named_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
