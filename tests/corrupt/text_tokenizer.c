/* text_tokenizer: broken and hostile tokenizer.json files, each with the answer of the reader. */
#include "support/test.h"

#include "base/fail.h"
#include "base/mem.h"
#include "support/bytes.h"
#include "support/corruption.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME "tokenizer.json"

static mha_status read_json(const unsigned char *data, size_t n, mha_err *err)
{
    mha_tokenizer *t = NULL;
    MHA_TRY(mha_tokenizer_parse(&t, (const char *)data, n, FILE_NAME, err));
    mha_tokenizer_free(t);
    return MHA_OK;
}

/* Recipes quote with ~, as patterns hold |. */
#define T(text) "t~" text "~ "

#define WP_FIELDS                                                                                  \
    "\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100"
#define WP      "\"model\":{\"type\":\"WordPiece\"," WP_FIELDS ",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2}}"
#define BPE(x)  "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}," x "}"
#define FILE(x) T("{" x "," WP "}")

static const corruption whole[] = {
    {"WordPiece", T("{" WP "}"), MHA_OK, ""},
    {"BPE", T("{" BPE("\"merges\":[\"a b\"]") "}"), MHA_OK, ""},
    {"BPE without a type",
     T("{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
       "\"merges\":[[\"a\",\"b\"]]}}"),
     MHA_OK, ""},
    {"merges that start with a version", T("{" BPE("\"merges\":[\"#version: 0.2\",\"a b\"]") "}"),
     MHA_OK, ""},
    {"empty file", "", MHA_ERR_FORMAT, "line 1"},
    {"a list", T("[]"), MHA_ERR_FORMAT, "tokenizer: expected an object, found a list"},
    {"cut short", T("{\"model\":{\"vocab\":{\"a\":"), MHA_ERR_FORMAT, "line 1"},
    {"no model", T("{\"version\":\"1.0\"}"), MHA_ERR_FORMAT,
     "tokenizer.model: expected an object, found nothing"},
    {"model is null", T("{\"model\":null}"), MHA_ERR_FORMAT, "found null"},
    {"model is a string", T("{\"model\":\"BPE\"}"), MHA_ERR_FORMAT, "found a string"},
    {"another version", FILE("\"version\":\"2.0\""), MHA_ERR_UNSUPPORTED, "version \"2.0\""},
    {"an unknown model", T("{\"model\":{\"type\":\"Other\",\"vocab\":{\"a\":0}}}"),
     MHA_ERR_UNSUPPORTED, "model: \"Other\" is not supported"},
    {"WordLevel", T("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}"), MHA_ERR_FORMAT,
     "model.unk_token: expected a string"},
    {"WordLevel without a type", T("{\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}"), MHA_OK,
     ""},
    {"type is a number", T("{\"model\":{\"type\":1}}"), MHA_ERR_FORMAT, "model.type: expected a"},
    {"a key twice", T("{" WP "," WP "}"), MHA_ERR_FORMAT, "duplicate"},
};

static const corruption vocab[] = {
    {"no vocabulary", T("{\"model\":{\"type\":\"BPE\",\"merges\":[]}}"), MHA_ERR_FORMAT,
     "model.vocab: expected an object, found nothing"},
    {"empty vocabulary", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{}}}"),
     MHA_ERR_FORMAT, "model.vocab is empty"},
    {"vocabulary is a list", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":[\"a\"]}}"),
     MHA_ERR_FORMAT, "model.vocab: expected an object, found a list"},
    {"id is a string", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":\"0\"}}}"),
     MHA_ERR_FORMAT, "the id of \"a\" is no integer"},
    {"id is a real", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0.5}}}"),
     MHA_ERR_FORMAT, "is no integer"},
    {"negative id", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":-1}}}"),
     MHA_ERR_FORMAT, "piece \"a\" has the id -1"},
    {"id of many millions",
     T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":4194304}}}"), MHA_ERR_LIMIT,
     "ids end at 4194303"},
    {"id beyond 64 bits",
     T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":99999999999999999999}}}"),
     MHA_ERR_FORMAT, "is no integer"},
    {"an id twice", T("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0,\"b\":0}}}"),
     MHA_ERR_FORMAT, "both have the id 0"},
    {"unknown piece is not there",
     T("{\"model\":{\"type\":\"WordPiece\"," WP_FIELDS ",\"vocab\":{\"a\":0}}}"), MHA_ERR_FORMAT,
     "unk_token \"?\" is not in the vocabulary"},
    {"no prefix",
     T("{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0},"
       "\"max_input_chars_per_word\":9}}"),
     MHA_ERR_FORMAT, "model.continuing_subword_prefix: expected a string, found nothing"},
    {"negative word length",
     T("{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0},"
       "\"continuing_subword_prefix\":\"\",\"max_input_chars_per_word\":-1}}"),
     MHA_ERR_FORMAT, "max_input_chars_per_word is -1"},
    {"a piece of 4097 bytes",
     T("{\"model\":{\"type\":\"WordPiece\"," WP_FIELDS
       ",\"vocab\":{\"?\":0,\"") "w97,4097 " T("\":1}}}"),
     MHA_ERR_LIMIT, "a piece of 4097 bytes"},
};

static const corruption merges[] = {
    {"no merges", T("{" BPE("\"x\":1") "}"), MHA_ERR_FORMAT,
     "model.merges: expected a list, found nothing"},
    {"merges are an object", T("{" BPE("\"merges\":{}") "}"), MHA_ERR_FORMAT,
     "model.merges: expected a list, found an object"},
    {"left piece is not there", T("{" BPE("\"merges\":[\"a b\",\"x b\"]") "}"), MHA_ERR_FORMAT,
     "model: merges[1]: \"x\" is not in the vocabulary"},
    {"right piece is not there", T("{" BPE("\"merges\":[\"a x\"]") "}"), MHA_ERR_FORMAT,
     "merges[0]: \"x\""},
    {"joined piece is not there", T("{" BPE("\"merges\":[\"b a\"]") "}"), MHA_ERR_FORMAT,
     "merges[0]: \"ba\""},
    {"one piece", T("{" BPE("\"merges\":[\"ab\"]") "}"), MHA_ERR_FORMAT,
     "model.merges[0]: expected two pieces"},
    {"three pieces", T("{" BPE("\"merges\":[\"a b a\"]") "}"), MHA_ERR_FORMAT, "two pieces"},
    {"a list of three", T("{" BPE("\"merges\":[[\"a\",\"b\",\"a\"]]") "}"), MHA_ERR_FORMAT,
     "two pieces"},
    {"a list of numbers", T("{" BPE("\"merges\":[[0,1]]") "}"), MHA_ERR_FORMAT, "two pieces"},
    {"an empty piece", T("{\"model\":{\"vocab\":{\"\":0,\"a\":1},\"merges\":[[\"\",\"a\"]]}}"),
     MHA_ERR_FORMAT, "merges[0]: an empty piece"},
    {"a piece without the prefix",
     T("{" BPE("\"merges\":[\"a b\"],\"continuing_subword_prefix\":\"##\"") "}"), MHA_ERR_FORMAT,
     "merges[0]: an empty piece"},
    {"byte fallback and a suffix",
     T("{" BPE("\"merges\":[],\"byte_fallback\":true,\"end_of_word_suffix\":\"x\"") "}"),
     MHA_ERR_UNSUPPORTED, "\"byte_fallback\" together with a prefix or suffix"},
    {"dropout", T("{" BPE("\"merges\":[],\"dropout\":0.1") "}"), MHA_ERR_UNSUPPORTED, "dropout"},
    {"dropout of zero", T("{" BPE("\"merges\":[],\"dropout\":0.0") "}"), MHA_OK, ""},
    {"unk_token is a number", T("{" BPE("\"merges\":[],\"unk_token\":7") "}"), MHA_ERR_FORMAT,
     "model.unk_token: expected a string, found an integer"},
};

#define UNIGRAM(x) T("{\"model\":{\"type\":\"Unigram\"," x "}}")

static const corruption unigram[] = {
    {"Unigram", UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1.5]]"), MHA_OK, ""},
    {"without a type", T("{\"model\":{\"unk_id\":0,\"vocab\":[[\"?\",0]]}}"), MHA_OK, ""},
    {"nothing is unknown", UNIGRAM("\"unk_id\":null,\"vocab\":[[\"?\",0]]"), MHA_OK, ""},
    {"a piece twice", UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",1],[\"a\",2]]"), MHA_OK,
     ""},
    {"no vocabulary", UNIGRAM("\"unk_id\":0"), MHA_ERR_FORMAT, "model.vocab: expected a list"},
    {"vocabulary is an object", UNIGRAM("\"vocab\":{\"a\":0}"), MHA_ERR_FORMAT,
     "model.vocab: expected a list, found an object"},
    {"empty vocabulary", UNIGRAM("\"unk_id\":0,\"vocab\":[]"), MHA_ERR_FORMAT,
     "model.vocab is empty"},
    {"unk_id behind the end", UNIGRAM("\"unk_id\":1,\"vocab\":[[\"?\",0]]"), MHA_ERR_FORMAT,
     "model.unk_id is 1, the vocabulary has 1 pieces"},
    {"negative unk_id", UNIGRAM("\"unk_id\":-2,\"vocab\":[[\"?\",0]]"), MHA_ERR_FORMAT,
     "model.unk_id is -2"},
    {"a piece alone", UNIGRAM("\"unk_id\":0,\"vocab\":[\"?\"]"), MHA_ERR_FORMAT,
     "model.vocab[0]: expected a piece and its score"},
    {"a piece without a score", UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\"]]"), MHA_ERR_FORMAT,
     "model.vocab[0]: expected a piece and its score"},
    {"a score that is text", UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\",\"0\"]]"), MHA_ERR_FORMAT,
     "model.vocab[0]: expected a piece and its score"},
    {"a score that is not finite", UNIGRAM("\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",NaN]]"),
     MHA_ERR_FORMAT, "model.vocab[1]: expected a piece and its score"},
    {"a piece of 4097 bytes",
     T("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"") "w97,4097 " T("\",0]]}}"),
     MHA_ERR_LIMIT, "a piece of 4097 bytes"},
};

#define ADDED(x) FILE("\"added_tokens\":[" x "]")
#define FLAGS                                                                                      \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"                \
    "\"special\":true"
#define TOKEN(id, content) "{\"id\":" id ",\"content\":\"" content "\"," FLAGS "}"

static const corruption added[] = {
    {"behind the vocabulary", ADDED(TOKEN("3", "<x>") "," TOKEN("4", "<y>")), MHA_OK, ""},
    {"a piece of the vocabulary", ADDED(TOKEN("1", "a")), MHA_OK, ""},
    {"a token twice", ADDED(TOKEN("3", "<x>") "," TOKEN("3", "<x>")), MHA_OK, ""},
    {"not a list", FILE("\"added_tokens\":{}"), MHA_ERR_FORMAT,
     "tokenizer.added_tokens: expected a list"},
    {"not objects", ADDED("1"), MHA_ERR_FORMAT, "added_tokens[0]: expected an object"},
    {"no content", ADDED("{\"id\":3}"), MHA_ERR_FORMAT, "added_tokens[0].content: expected a"},
    {"no flags", ADDED("{\"id\":3,\"content\":\"<x>\"}"), MHA_ERR_FORMAT,
     "added_tokens[0].single_word: expected a boolean, found nothing"},
    {"empty content", ADDED(TOKEN("3", "")), MHA_ERR_FORMAT, "added token 3 is empty"},
    {"negative id", ADDED(TOKEN("-3", "<x>")), MHA_ERR_FORMAT, "-3 is out of range"},
    {"id beyond 32 bits", ADDED(TOKEN("4294967299", "<x>")), MHA_ERR_FORMAT, "out of range"},
    {"id with a gap", ADDED(TOKEN("4", "<x>")), MHA_ERR_FORMAT,
     "\"<x>\" has the id 4, its place in the vocabulary is 3"},
    {"id of another piece", ADDED(TOKEN("1", "<x>")), MHA_ERR_FORMAT, "its place"},
    {"another id of a piece", ADDED(TOKEN("3", "a")), MHA_ERR_FORMAT,
     "added_tokens[0]: added token \"a\" has the id 3, its place in the vocabulary is 1"},
    {"an id twice", ADDED(TOKEN("3", "<x>") "," TOKEN("3", "<y>")), MHA_ERR_FORMAT,
     "added_tokens[1]: added token \"<y>\" has the id 3"},
    {"content of 4097 bytes",
     T("{\"added_tokens\":[{\"id\":3,\"content\":\"") "w97,4097 " T("\"," FLAGS "}]," WP "}"),
     MHA_ERR_LIMIT, "a piece of 4097 bytes"},
};

#define NORM(x) FILE("\"normalizer\":" x)
#define PRE(x)  FILE("\"pre_tokenizer\":" x)
#define SPLIT(pattern)                                                                             \
    PRE("{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":" pattern "}")
#define NESTED4 "{\"type\":\"Sequence\",\"normalizers\":["
#define NESTED  NESTED4 NESTED4 NESTED4 NESTED4

static const corruption components[] = {
    {"null parts", FILE("\"normalizer\":null,\"pre_tokenizer\":null,\"decoder\":null"), MHA_OK, ""},
    {"empty sequence", NORM("{\"type\":\"Sequence\",\"normalizers\":[]}"), MHA_OK, ""},
    {"normalizer is a string", NORM("\"NFC\""), MHA_ERR_FORMAT, "normalizer: expected an object"},
    {"normalizer without a type", NORM("{}"), MHA_ERR_FORMAT, "normalizer.type: expected a string"},
    {"unknown normalizer in a sequence",
     NORM("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},{\"type\":\"Nope\"}]}"),
     MHA_ERR_UNSUPPORTED, "normalizer.normalizers[1]: \"Nope\""},
    {"SentencePiece has no name here", NORM("{\"type\":\"SentencePiece\"}"), MHA_ERR_UNSUPPORTED,
     "normalizer: \"SentencePiece\""},
    {"sequence without a list", NORM("{\"type\":\"Sequence\"}"), MHA_ERR_FORMAT,
     "normalizer.normalizers: expected a list, found nothing"},
    {"nested deeply", NORM(NESTED NESTED NESTED "]}]}]}]}]}]}]}]}]}]}]}]}"), MHA_ERR_LIMIT,
     "nested deeper than 8"},
    {"BertNormalizer without fields", NORM("{\"type\":\"BertNormalizer\"}"), MHA_ERR_FORMAT,
     "normalizer.clean_text: expected a boolean"},
    {"Replace without a pattern", NORM("{\"type\":\"Replace\",\"content\":\"\"}"), MHA_ERR_FORMAT,
     "normalizer.pattern: expected an object"},
    {"unknown pre-tokenizer", PRE("{\"type\":\"UnicodeScripts\"}"), MHA_ERR_UNSUPPORTED,
     "pre_tokenizer: \"UnicodeScripts\" is not supported"},
    {"Metaspace without its mark", PRE("{\"type\":\"Metaspace\"}"), MHA_ERR_FORMAT,
     "pre_tokenizer.replacement: expected a string"},
    {"Metaspace with a long mark", PRE("{\"type\":\"Metaspace\",\"replacement\":\"ab\"}"),
     MHA_ERR_FORMAT, "pre_tokenizer.replacement: expected one character"},
    {"Metaspace with another scheme",
     PRE("{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}"),
     MHA_ERR_UNSUPPORTED, "pre_tokenizer.prepend_scheme: \"last\""},
    {"Metaspace of old",
     PRE("{\"type\":\"Metaspace\",\"replacement\":\"_\",\"str_rep\":\"_\","
         "\"add_prefix_space\":false}"),
     MHA_OK, ""},
    {"FixedLength of nothing", PRE("{\"type\":\"FixedLength\",\"length\":0}"), MHA_ERR_FORMAT,
     "pre_tokenizer.length is 0"},
    {"unknown behaviour",
     PRE("{\"type\":\"Split\",\"behavior\":\"Shuffled\",\"invert\":false,"
         "\"pattern\":{\"String\":\"a\"}}"),
     MHA_ERR_UNSUPPORTED, "pre_tokenizer.behavior: \"Shuffled\""},
    {"pattern of another kind", SPLIT("{\"Glob\":\"*\"}"), MHA_ERR_FORMAT,
     "pre_tokenizer.pattern.Regex: expected a string"},
    {"broken pattern", SPLIT("{\"Regex\":\"(a\"}"), MHA_ERR_FORMAT,
     "pre_tokenizer.pattern: regular expression: "},
    {"unsupported pattern", SPLIT("{\"Regex\":\"[a&&b]\"}"), MHA_ERR_UNSUPPORTED,
     "pre_tokenizer.pattern: regular expression, byte 2: the intersection"},
    {"a pattern that grows without end", SPLIT("{\"Regex\":\"(((a{999}){999}){999}){999}\"}"),
     MHA_ERR_FORMAT, "regular expression"},
    {"a pattern of 40 KB",
     T("{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"
       "\"pattern\":{\"Regex\":\"") "w97,40000 " T("\"}}," WP "}"),
     MHA_ERR_LIMIT, "regular expression of 40000 bytes"},
    {"groups nested deeply",
     T("{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"
       "\"pattern\":{\"Regex\":\"") "w40,10000 w41,10000 " T("\"}}," WP "}"),
     MHA_ERR_FORMAT, "regular expression"},
    {"delimiter of two characters", PRE("{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\"}"),
     MHA_ERR_FORMAT, "pre_tokenizer.delimiter: expected one character"},
    {"unknown decoder", FILE("\"decoder\":{\"type\":\"CTC\"}"), MHA_ERR_UNSUPPORTED,
     "decoder: \"CTC\" is not supported"},
    {"Strip of two characters",
     FILE("\"decoder\":{\"type\":\"Strip\",\"content\":\"ab\",\"start\":1,\"stop\":0}"),
     MHA_ERR_FORMAT, "decoder.content: expected one character"},
    {"Replace decoder without a pattern",
     FILE("\"decoder\":{\"type\":\"Replace\",\"content\":\" \"}"), MHA_ERR_FORMAT,
     "decoder.pattern: expected an object"},
    {"Metaspace decoder without its mark",
     FILE("\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\"}"), MHA_ERR_FORMAT,
     "decoder.replacement is empty"},
    {"decoder without a prefix", FILE("\"decoder\":{\"type\":\"WordPiece\",\"cleanup\":true}"),
     MHA_ERR_FORMAT, "decoder.prefix: expected a string"},
};

#define POST(x) FILE("\"post_processor\":" x)
#define TEMPLATE(single, pair, special)                                                            \
    POST("{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair                \
         "],\"special_tokens\":{" special "}}")
#define SEQ(id)  "{\"Sequence\":{\"id\":\"" id "\",\"type_id\":0}}"
#define SPEC(id) "{\"SpecialToken\":{\"id\":\"" id "\",\"type_id\":0}}"

static const corruption templates[] = {
    {"a template", TEMPLATE(SPEC("x") "," SEQ("A"), SEQ("A") "," SEQ("B"), "\"x\":{\"ids\":[0,1]}"),
     MHA_OK, ""},
    {"unknown kind", POST("{\"type\":\"Other\"}"), MHA_ERR_UNSUPPORTED,
     "post_processor: \"Other\""},
    {"no pair", POST("{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}"),
     MHA_ERR_FORMAT, "post_processor.pair: expected a list"},
    {"second sequence of one", TEMPLATE(SEQ("B"), "", ""), MHA_ERR_FORMAT,
     "post_processor.single[0]: there is no sequence \"B\" here"},
    {"third sequence", TEMPLATE("", SEQ("C"), ""), MHA_ERR_FORMAT, "no sequence \"C\""},
    {"token that is not listed", TEMPLATE(SPEC("x"), "", ""), MHA_ERR_FORMAT,
     "\"x\" is not among special_tokens"},
    {"token without ids", TEMPLATE(SPEC("x"), "", "\"x\":{}"), MHA_ERR_FORMAT,
     "post_processor.special_tokens.x.ids: expected a list"},
    {"id outside of the vocabulary", TEMPLATE(SPEC("x"), "", "\"x\":{\"ids\":[3]}"), MHA_ERR_FORMAT,
     "the id 3 is outside of the vocabulary of 3"},
    {"negative id", TEMPLATE(SPEC("x"), "", "\"x\":{\"ids\":[-1]}"), MHA_ERR_FORMAT, "the id -1"},
    {"neither one nor the other", TEMPLATE("{}", "", ""), MHA_ERR_FORMAT,
     "neither SpecialToken nor Sequence"},
    {"type id of 300", TEMPLATE("{\"Sequence\":{\"id\":\"A\",\"type_id\":300}}", "", ""),
     MHA_ERR_FORMAT, "type_id: 300 is not in 0–255"},
    {"BertProcessing with an id outside",
     POST("{\"type\":\"BertProcessing\",\"cls\":[\"?\",0],\"sep\":[\"a\",9]}"), MHA_ERR_FORMAT,
     "post_processor.sep: the id 9"},
    {"BertProcessing with one field", POST("{\"type\":\"BertProcessing\",\"cls\":[\"?\"]}"),
     MHA_ERR_FORMAT, "post_processor.cls: expected a token and its id"},
    {"two templates",
     POST("{\"type\":\"Sequence\",\"processors\":["
          "{\"type\":\"BertProcessing\",\"cls\":[\"?\",0],\"sep\":[\"a\",1]},"
          "{\"type\":\"BertProcessing\",\"cls\":[\"?\",0],\"sep\":[\"a\",1]}]}"),
     MHA_ERR_UNSUPPORTED, "processors[1]: a second post-processor"},
};

#define RUN(table) corruption_run(table, sizeof table / sizeof *table, read_json, FILE_NAME)

static void test_whole(void **state)
{
    RUN(whole);
}

static void test_vocab(void **state)
{
    RUN(vocab);
}

static void test_merges(void **state)
{
    RUN(merges);
}

static void test_unigram(void **state)
{
    RUN(unigram);
}

static void test_added(void **state)
{
    RUN(added);
}

static void test_components(void **state)
{
    RUN(components);
}

static void test_templates(void **state)
{
    RUN(templates);
}

static void test_sweep(void **state)
{
    corruption_sweep(
        T("{\"added_tokens\":[" TOKEN(
            "3", "<x>") "],\"normalizer\":{\"type\":\"Lowercase\"},"
                        "\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
                        "\"invert\":true,"
                        "\"pattern\":{\"Regex\":\"\\\\s+|[^a-z]{2}\"}},"
                        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
                        "[" SPEC("x") "," SEQ("A") "],\"pair\":[" SEQ("A") "," SEQ(
                            "B") "],\"special_tokens\":{\"x\":{\"ids\":[3]}}},"
                                 "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\","
                                 "\"cleanup\":true}," WP "}"),
        read_json);
}

/* Patterns and normalizers that are well-formed and cannot be carried out on every text. */
static void test_hostile_on_text(void **state)
{
    static const struct {
        const char *recipe;
        const char *says;
    } rows[] = {
        {SPLIT("{\"Regex\":\"(a+)+[bc]\"}"), "a regular expression of the tokenizer"},
        {SPLIT("{\"Regex\":\"(a|aa)+[^a]\"}"), "a regular expression of the tokenizer"},
        {NORM("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a+)+[bc]\"},\"content\":\"\"}"),
         "a regular expression of the tokenizer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        mha_err err;
        mha_tokenizer *t;
        mha_tokens k = {0};
        char text[100];
        unsigned char *data = bytes_make(rows[i].recipe, &n);
        memset(text, 'a', sizeof text);
        if (mha_tokenizer_parse(&t, (const char *)data, n, FILE_NAME, &err) != MHA_OK)
            fail_msg("%s", err.message);
        assert_int_equal(mha_tokenizer_encode(t, text, sizeof text, NULL, 0, true, &k, &err),
                         MHA_ERR_LIMIT);
        assert_non_null(strstr(err.message, rows[i].says));
        mha_tokens_release(&k);
        mha_tokenizer_free(t);
        mha_free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),           cmocka_unit_test(test_vocab),
        cmocka_unit_test(test_merges),          cmocka_unit_test(test_added),
        cmocka_unit_test(test_unigram),         cmocka_unit_test(test_components),
        cmocka_unit_test(test_templates),       cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_hostile_on_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
