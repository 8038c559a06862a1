/* text_spm: broken and hostile SentencePiece model files, each with the answer of the reader. */
#include "support/test.h"

#include "base/fail.h"
#include "support/corruption.h"
#include "text/spm.h"

#define FILE_NAME "spiece.model"

static mha_status read(const unsigned char *data, size_t n, mha_err *err)
{
    mha_spm m;
    MHA_TRY(mha_spm_read(&m, data, n, FILE_NAME, err));
    assert_true(m.n > 0 && m.unknown >= 0 && (size_t)m.unknown < m.n);
    mha_spm_release(&m);
    return MHA_OK;
}

/* Pieces: the unknown one, and "a" with the score -1. */
#define UNK "x0a09 x0a05 t|<unk>| x1802 "
#define A   "x0a08 x0a01 t|a| x15 f-1 "
#define OK  UNK A

static const corruption structure[] = {
    {"two pieces", OK, MHA_OK, ""},
    {"fields in another order", UNK "x0a0a x1801 x15 f-1 x0a01 t|a| ", MHA_OK, ""},
    {"an unknown number", OK "xf80107 ", MHA_OK, ""},
    {"an unknown long number", OK "xf901 q7 ", MHA_OK, ""},
    {"an unknown string", OK "xfa0102 t|xx| ", MHA_OK, ""},
    {"an unknown word", OK "xfd01 i7 ", MHA_OK, ""},
    {"a number of ten bytes", OK "xf801 xffffffffffffffffff01 ", MHA_OK, ""},
    {"empty file", "", MHA_ERR_FORMAT, "there are no pieces"},
    {"only settings", "x1202 x1801 ", MHA_ERR_FORMAT, "there are no pieces"},
    {"text", "t|version https://git-lfs| ", MHA_ERR_FORMAT, "at byte"},
    {"a number of eleven bytes", OK "xf801 xffffffffffffffffffff01 ", MHA_ERR_FORMAT,
     "a number is too long"},
    {"a number cut short", OK "xf801 xff ", MHA_ERR_FORMAT, "a number: needs 1 bytes, 0 left"},
    {"a key cut short", OK "xf8 ", MHA_ERR_FORMAT, "a number: needs 1 bytes"},
    {"a word cut short", OK "xfd01 x0102 ", MHA_ERR_FORMAT, "a field: needs 4 bytes, 2 left"},
    {"a long number cut short", OK "xf901 x01 ", MHA_ERR_FORMAT, "a field: needs 8 bytes, 1 left"},
    {"a string cut short", OK "xfa0105 t|xx| ", MHA_ERR_FORMAT, "a field: needs 5 bytes, 2 left"},
    {"a string of 2^63 bytes", OK "xfa01 x80808080808080808001 ", MHA_ERR_FORMAT,
     "a field: needs 9223372036854775808 bytes"},
    {"a group", OK "x0b ", MHA_ERR_FORMAT, "no field starts here (wire type 3)"},
    {"the end of a group", OK "x0c ", MHA_ERR_FORMAT, "wire type 4"},
    {"wire type 7", OK "x0f ", MHA_ERR_FORMAT, "wire type 7"},
    {"a field with the number 0", OK "x0001 ", MHA_ERR_FORMAT, "a field has the number 0"},
    {"pieces that are numbers", "x0801 ", MHA_ERR_FORMAT,
     "a part of the model: expected wire type 2, found 0"},
    {"settings that are numbers", OK "x1001 ", MHA_ERR_FORMAT, "expected wire type 2, found 0"},
};

static const corruption pieces[] = {
    {"a piece without text", UNK "x0a02 x1801 ", MHA_ERR_FORMAT, "piece 1 is empty"},
    {"an empty message", UNK "x0a00 ", MHA_ERR_FORMAT, "piece 1 is empty"},
    {"an empty piece", UNK "x0a02 x0a00 ", MHA_ERR_FORMAT, "piece 1 is empty"},
    {"no UTF-8", UNK "x0a03 x0a01 xff ", MHA_ERR_FORMAT, "piece 1 is no text"},
    {"half a character", UNK "x0a03 x0a01 xc3 ", MHA_ERR_FORMAT, "piece 1 is no text"},
    {"a surrogate", UNK "x0a05 x0a03 xeda080 ", MHA_ERR_FORMAT, "piece 1 is no text"},
    {"a NUL", UNK "x0a05 x0a03 x610062 ", MHA_ERR_FORMAT, "piece 1 is no text"},
    {"piece is a number", UNK "x0a02 x0801 ", MHA_ERR_FORMAT, "piece: expected wire type 2"},
    {"score is a number", UNK "x0a05 x0a01 t|a| x1001 ", MHA_ERR_FORMAT,
     "score: expected wire type 5, found 0"},
    {"score is a double", UNK "x0a0c x0a01 t|a| x11 d0 ", MHA_ERR_FORMAT,
     "score: expected wire type 5, found 1"},
    {"score is not a number", UNK "x0a08 x0a01 t|a| x15 x0000c07f ", MHA_ERR_FORMAT,
     "piece 1: the score is not finite"},
    {"score is infinite", UNK "x0a08 x0a01 t|a| x15 x000080ff ", MHA_ERR_FORMAT,
     "the score is not finite"},
    {"type 0", UNK "x0a05 x0a01 t|a| x1800 ", MHA_ERR_FORMAT, "piece 1: 0 is no type"},
    {"type 7", UNK "x0a05 x0a01 t|a| x1807 ", MHA_ERR_FORMAT, "piece 1: 7 is no type"},
    {"type is text", UNK "x0a06 x0a01 t|a| x1a01 t|a| ", MHA_ERR_FORMAT,
     "type: expected wire type 0, found 2"},
    {"a byte that is none", UNK "x0a05 x0a01 t|a| x1806 ", MHA_ERR_FORMAT,
     "piece 1: \"a\" names no byte"},
    {"a byte in small letters", UNK "x0a0a x0a06 t|<0xab>| x1806 ", MHA_ERR_FORMAT,
     "\"<0xab>\" names no byte"},
    {"a byte", UNK "x0a0a x0a06 t|<0xAB>| x1806 ", MHA_OK, ""},
    {"a piece that ends behind its message", UNK "x0a03 x0a05 t|a| ", MHA_ERR_FORMAT,
     "a field: needs 5 bytes, 1 left"},
};

#define TRAINER(n, fields)    OK "x12" n " " fields
#define NORMALIZER(n, fields) OK "x1a" n " " fields
#define MINUS_1               "xffffffffffffffffff01 "

static const corruption settings[] = {
    {"all of the trainer's", TRAINER("11", "x1802 xc00100 x980201 xc00200 xc80201 xd00201 "),
     MHA_OK, ""},
    {"Unigram", TRAINER("02", "x1801 "), MHA_OK, ""},
    {"words", TRAINER("02", "x1803 "), MHA_ERR_UNSUPPORTED, "a model of type 3 (words)"},
    {"characters", TRAINER("02", "x1804 "), MHA_ERR_UNSUPPORTED, "type 4 (characters)"},
    {"type 0", TRAINER("02", "x1800 "), MHA_ERR_UNSUPPORTED, "type 0 (?)"},
    {"type 2^64-1", TRAINER("0b", "x18 " MINUS_1), MHA_ERR_UNSUPPORTED,
     "type 18446744073709551615 (?)"},
    {"spaces behind words", TRAINER("03", "xc00101 "), MHA_ERR_UNSUPPORTED,
     "treat_whitespace_as_suffix"},
    {"byte fallback is text", TRAINER("04", "x9a0201 t|a| "), MHA_ERR_FORMAT,
     "byte_fallback: expected wire type 0"},
    {"no first piece", TRAINER("0c", "xc802 " MINUS_1), MHA_OK, ""},
    {"a first piece that is not there", TRAINER("03", "xc80263 "), MHA_OK, ""},
    {"the unknown piece at -1, but it is there", TRAINER("0c", "xc002 " MINUS_1), MHA_OK, ""},
    {"the unknown piece at -1 and not there", A "x120c xc002 " MINUS_1, MHA_ERR_FORMAT,
     "there is no piece for the unknown"},
    {"the unknown piece behind the end", A "x1203 xc00205 ", MHA_ERR_FORMAT,
     "there is no piece for the unknown"},
    {"an id of -2", TRAINER("0c", "xc002 xfeffffffffffffffff01 "), MHA_ERR_FORMAT, "unk_id is -2"},
    {"an id of many millions", TRAINER("06", "xd002 x80808002 "), MHA_ERR_FORMAT,
     "eos_id is 4194304"},
    {"an id that is text", TRAINER("04", "xda0201 t|a| "), MHA_ERR_FORMAT,
     "pad_id: expected wire type 0"},
    {"a table of rules", NORMALIZER("03", "x1201 t|x| "), MHA_OK, ""},
    {"a table that is a number", NORMALIZER("02", "x1001 "), MHA_ERR_FORMAT,
     "precompiled_charsmap: expected wire type 2"},
    {"no dummy prefix", NORMALIZER("02", "x1800 "), MHA_OK, ""},
    {"dummy prefix is text", NORMALIZER("03", "x1a01 t|a| "), MHA_ERR_FORMAT,
     "add_dummy_prefix: expected wire type 0"},
    {"extra spaces are a word", NORMALIZER("05", "x25 i1 "), MHA_ERR_FORMAT,
     "remove_extra_whitespaces: expected wire type 0, found 5"},
    {"spaces that are not marked", NORMALIZER("02", "x2800 "), MHA_ERR_UNSUPPORTED,
     "escape_whitespaces"},
    {"spaces that are marked", NORMALIZER("02", "x2801 "), MHA_OK, ""},
};

#define RUN(table) corruption_run(table, sizeof table / sizeof *table, read, FILE_NAME)

static void test_structure(void **state)
{
    RUN(structure);
}

static void test_pieces(void **state)
{
    RUN(pieces);
}

static void test_settings(void **state)
{
    RUN(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
