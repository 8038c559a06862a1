/* io_safetensors: broken safetensors files, each with the answer of the reader. */
#include "support/test.h"

#include "io/safetensors.h"
#include "support/corruption.h"

#define FILE_NAME "model.safetensors"

/* One tensor `a` of two float32 with the given dtype, shape and offsets. */
#define ONE(dtype, shape, offsets)                                                                 \
    "j|{'a':{'dtype':" dtype ",'shape':" shape ",'data_offsets':" offsets "}}| "
#define GOOD      "{'dtype':'F32','shape':[2],'data_offsets':[0,8]}"
#define GOOD_NEXT "{'dtype':'F32','shape':[2],'data_offsets':[8,16]}"

static const corruption rows[] = {
    /* the frame */
    {"empty file", "", MHA_ERR_FORMAT, "header length: needs 8 bytes, 0 left"},
    {"seven bytes", "z7", MHA_ERR_FORMAT, "header length: needs 8 bytes, 7 left"},
    {"header of no bytes", "q0", MHA_ERR_FORMAT, "does not begin with '{'"},
    {"header longer than the file", "q100 t|{}|", MHA_ERR_FORMAT, "header: needs 100 bytes, 2"},
    {"header length of 2^64-1", "q-1 t|{}|", MHA_ERR_LIMIT, "header of 18446744073709551615"},
    {"header length above the limit", "q100000001 t|{}|", MHA_ERR_LIMIT, "at most 100000000"},
    {"space before the brace", "j| {}|", MHA_ERR_FORMAT, "does not begin with '{'"},
    {"top level is an array", "j|[]|", MHA_ERR_FORMAT, "does not begin with '{'"},
    {"header is a pickle", "q2 x8002", MHA_ERR_FORMAT, "does not begin with '{'"},
    {"header is not UTF-8", "q6 t|{\"| xff t|\":1}|", MHA_ERR_FORMAT, "not valid UTF-8"},
    {"overlong UTF-8", "q7 t|{\"| xc080 t|\":1}|", MHA_ERR_FORMAT, "not valid UTF-8"},
    {"header cut in the middle", "j|{'a':{'dtype':'F32'|", MHA_ERR_FORMAT, "line 1"},
    {"text behind the object", "j|{} x|", MHA_ERR_FORMAT, "line 1"},
    {"NUL padding behind the object", "q4 t|{}| z2", MHA_ERR_FORMAT, "line 1"},
    {"trailing comma", "j|{'a':" GOOD ",}| z8", MHA_ERR_FORMAT, "line 1"},
    {"unescaped control character", "q8 t|{\"| x01 t|\":{}}|", MHA_ERR_FORMAT, "line 1"},
    {"the same name twice", "j|{'a':" GOOD ",'a':" GOOD "}| z8", MHA_ERR_FORMAT, "duplicate"},
    {"the same key twice",
     "j|{'a':{'dtype':'F32','dtype':'F32','shape':[2],'data_offsets':[0,8]}}"
     "| z8",
     MHA_ERR_FORMAT, "duplicate"},
    {"nested too deep", "j|{'a':[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}|", MHA_ERR_LIMIT,
     "nested deeper than 16"},
    {"name of NUL", "j|{'\\u0000':" GOOD "}| z8", MHA_ERR_FORMAT, "NUL"},
    {"empty name", "j|{'':" GOOD "}| z8", MHA_ERR_FORMAT, "name of 0 bytes"},
    {"lone surrogate in a name", "j|{'\\ud800':" GOOD "}| z8", MHA_ERR_FORMAT, "line 1"},

    /* the metadata */
    {"metadata is an array", "j|{'__metadata__':[]}|", MHA_ERR_FORMAT, "__metadata__ is not"},
    {"metadata value is a number", "j|{'__metadata__':{'k':1}}|", MHA_ERR_FORMAT,
     "\"k\" is not a string"},
    {"metadata is null", "j|{'__metadata__':null}|", MHA_ERR_FORMAT, "__metadata__ is not"},

    /* one entry */
    {"entry is a number", "j|{'a':1}|", MHA_ERR_FORMAT, "tensor \"a\": its entry is not an object"},
    {"entry is null", "j|{'a':null}|", MHA_ERR_FORMAT, "tensor \"a\": its entry is not an object"},
    {"dtype missing", "j|{'a':{'shape':[2],'data_offsets':[0,8]}}| z8", MHA_ERR_FORMAT,
     "\"a\": dtype is missing"},
    {"shape missing", "j|{'a':{'dtype':'F32','data_offsets':[0,8]}}| z8", MHA_ERR_FORMAT,
     "\"a\": shape is missing"},
    {"offsets missing", "j|{'a':{'dtype':'F32','shape':[2]}}| z8", MHA_ERR_FORMAT,
     "\"a\": data_offsets is missing"},
    {"a fourth key", "j|{'a':{'dtype':'F32','shape':[2],'data_offsets':[0,8],'x':1}}| z8",
     MHA_ERR_FORMAT, "\"a\": keys beside"},
    {"dtype is a number", ONE("32", "[2]", "[0,8]") "z8", MHA_ERR_FORMAT, "dtype is not a string"},
    {"dtype is unknown", ONE("'F33'", "[2]", "[0,8]") "z8", MHA_ERR_FORMAT,
     "unknown dtype \"F33\""},
    {"dtype in lower case", ONE("'f32'", "[2]", "[0,8]") "z8", MHA_ERR_FORMAT, "\"f32\""},
    {"dtype of another format", ONE("'Q4_0'", "[32]", "[0,18]") "z18", MHA_ERR_FORMAT, "\"Q4_0\""},
    {"8-bit floats", ONE("'F8_E4M3'", "[8]", "[0,8]") "z8", MHA_ERR_UNSUPPORTED,
     "type F8_E4M3 are not supported"},
    {"4-bit floats", ONE("'F4'", "[16]", "[0,8]") "z8", MHA_ERR_UNSUPPORTED, "type F4"},
    {"complex numbers", ONE("'C64'", "[1]", "[0,8]") "z8", MHA_ERR_UNSUPPORTED, "type C64"},
    {"shape is a number", ONE("'F32'", "2", "[0,8]") "z8", MHA_ERR_FORMAT, "shape is not an array"},
    {"dimension is negative", ONE("'F32'", "[-2]", "[0,8]") "z8", MHA_ERR_FORMAT, "dimension 0"},
    {"dimension is a real", ONE("'F32'", "[2.0]", "[0,8]") "z8", MHA_ERR_FORMAT, "dimension 0"},
    {"dimension with an exponent", ONE("'F32'", "[2e0]", "[0,8]") "z8", MHA_ERR_FORMAT,
     "dimension 0"},
    {"dimension is a string", ONE("'F32'", "[1,'2']", "[0,8]") "z8", MHA_ERR_FORMAT, "dimension 1"},
    {"dimension is NaN", ONE("'F32'", "[NaN]", "[0,8]") "z8", MHA_ERR_FORMAT, "dimension 0"},
    {"dimension of 2^64", ONE("'F32'", "[18446744073709551616]", "[0,8]") "z8", MHA_ERR_FORMAT,
     "dimension 0"},
    {"nine dimensions", ONE("'F32'", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "z8", MHA_ERR_LIMIT,
     "9 dimensions"},
    {"product overflows to 0", ONE("'F32'", "[4294967296,4294967296]", "[0,0]"), MHA_ERR_FORMAT,
     "overflows"},
    {"byte size overflows to 8", ONE("'F32'", "[4611686018427387906]", "[0,8]") "z8",
     MHA_ERR_FORMAT, "overflows"},
    {"offsets are an object", ONE("'F32'", "[2]", "{}") "z8", MHA_ERR_FORMAT, "not two whole"},
    {"one offset", ONE("'F32'", "[2]", "[8]") "z8", MHA_ERR_FORMAT, "not two whole"},
    {"three offsets", ONE("'F32'", "[2]", "[0,8,8]") "z8", MHA_ERR_FORMAT, "not two whole"},
    {"negative offset", ONE("'F32'", "[2]", "[-8,0]") "z8", MHA_ERR_FORMAT, "not two whole"},
    {"offset is a real", ONE("'F32'", "[2]", "[0,8.0]") "z8", MHA_ERR_FORMAT, "not two whole"},
    {"offsets turned round", ONE("'F32'", "[2]", "[8,0]") "z8", MHA_ERR_FORMAT,
     "end at 0 before they begin at 8"},
    {"offsets past the end", ONE("'F32'", "[2]", "[0,8]") "z7", MHA_ERR_FORMAT, "cut short"},
    {"offsets near 2^63", ONE("'F32'", "[2]", "[9223372036854775799,9223372036854775807]") "z8",
     MHA_ERR_FORMAT, "cut short"},
    {"fewer bytes than the shape needs", ONE("'F32'", "[2]", "[0,4]") "z4", MHA_ERR_FORMAT,
     "need 8 bytes, data_offsets give 4"},
    {"more bytes than the shape needs", ONE("'F32'", "[2]", "[0,12]") "z12", MHA_ERR_FORMAT,
     "need 8 bytes, data_offsets give 12"},
    {"bytes for an empty tensor", ONE("'F32'", "[0,2]", "[0,8]") "z8", MHA_ERR_FORMAT,
     "need 0 bytes"},

    /* all entries together */
    {"gap before the first tensor", ONE("'F32'", "[2]", "[8,16]") "z16", MHA_ERR_FORMAT,
     "\"a\" begins at byte 8 of the data, a gap"},
    {"gap between tensors",
     "j|{'a':" GOOD ",'b':{'dtype':'F32','shape':[1],'data_offsets':[12,16]}}| z16", MHA_ERR_FORMAT,
     "\"b\" begins at byte 12 of the data, a gap after byte 8"},
    {"overlapping tensors",
     "j|{'a':" GOOD ",'b':{'dtype':'F32','shape':[2],'data_offsets':[4,12]}}| z12", MHA_ERR_FORMAT,
     "\"b\" begins at byte 4 of the data, an overlap up to byte 8"},
    {"two names for the same bytes", "j|{'a':" GOOD ",'b':" GOOD "}| z8", MHA_ERR_FORMAT,
     "an overlap"},
    {"one byte behind the last tensor", "j|{'a':" GOOD "}| z9", MHA_ERR_FORMAT, "trailing bytes"},
    {"a zip behind the last tensor", "j|{'a':" GOOD "}| z8 t|PK|", MHA_ERR_FORMAT,
     "trailing bytes"},
    {"data without tensors", "j|{}| z8", MHA_ERR_FORMAT, "trailing bytes"},

    /* odd but legal */
    {"no tensors", "j|{}|", MHA_OK, ""},
    {"padded header", "j|{'a':" GOOD "}     | z8", MHA_OK, ""},
    {"metadata", "j|{'__metadata__':{'format':'pt'},'a':" GOOD "}| z8", MHA_OK, ""},
    {"scalar", ONE("'F32'", "[]", "[0,4]") "z4", MHA_OK, ""},
    {"empty tensor", ONE("'F32'", "[3,0]", "[0,0]"), MHA_OK, ""},
    {"order of names is not that of the data", "j|{'b':" GOOD_NEXT ",'a':" GOOD "}| z16", MHA_OK,
     ""},
};

static mha_status read(const unsigned char *data, size_t n, mha_err *err)
{
    mha_tensor_list list = {0};
    mha_status status =
        mha_safetensors_parse(&list, data, n, FILE_NAME, 0, MHA_SAFETENSORS_HEADER_MAX, 1000, err);
    if (status != MHA_OK)
        assert_int_equal(list.count, 0);
    mha_tensor_list_release(&list);
    return status;
}

static void test_table(void **state)
{
    corruption_run(rows, sizeof rows / sizeof *rows, read, FILE_NAME);
}

static void test_sweep(void **state)
{
    corruption_sweep("j|{'a':" GOOD ",'b':" GOOD_NEXT "}| z16", read);
}

/* The number of tensors is bounded before anything of their size is allocated. */
static void test_too_many(void **state)
{
    mha_err err = {0};
    mha_tensor_list list = {0};
    static const char file[] = "\x0f\0\0\0\0\0\0\0{\"a\":0,\"b\":0  }";
    mha_status status = mha_safetensors_parse(&list, (const unsigned char *)file, 8 + 15, FILE_NAME,
                                              0, 1000, 0, &err);
    assert_int_equal(status, MHA_ERR_LIMIT);
    mha_tensor_list_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
