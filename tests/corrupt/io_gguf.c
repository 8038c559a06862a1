/* io_gguf: broken GGUF files, each with the answer of the reader. */
#include "support/test.h"

#include "io/gguf.h"
#include "support/corruption.h"

#define FILE_NAME "model.gguf"

/* Header with the numbers of tensors and of metadata pairs. */
#define HEAD(tensors, pairs) "t|GGUF| i3 q" #tensors " q" #pairs " "

/* Metadata values: type number, then the value. */
#define ARCH                    "s|general.architecture| i8 s|llama| "
#define ALIGN(value)            "s|general.alignment| i4 i" #value " "
#define ARRAY(key, type, count) "s|" key "| i9 i" #type " q" #count " "
#define TOKENS2                 ARRAY("tokenizer.ggml.tokens", 8, 2) "s|a| s|b| "

/* Tensor info: name, number of axes, axes (fastest first), type, offset. */
#define INFO(name, axes, type, offset) "s|" name "| " axes " i" #type " q" #offset " "
#define F32_8(name, offset)            INFO(name, "i1 q8", 0, offset)
#define DATA                           "a32 z32"

static const corruption rows[] = {
    /* the frame */
    {"empty file", "", MHA_ERR_FORMAT, "magic: needs 4 bytes, 0 left"},
    {"magic cut", "t|GGU|", MHA_ERR_FORMAT, "magic: needs 4 bytes, 3 left"},
    {"older format", "t|ggjt| i3 z40", MHA_ERR_FORMAT, "not a GGUF file"},
    {"safetensors under this name", "j|{}|", MHA_ERR_FORMAT, "not a GGUF file"},
    {"version cut", "t|GGUF| h3", MHA_ERR_FORMAT, "version: needs 4 bytes"},
    {"version 0", "t|GGUF| i0 q0 q0", MHA_ERR_UNSUPPORTED, "GGUF version 0"},
    {"version 1", "t|GGUF| i1 i0 i0", MHA_ERR_UNSUPPORTED, "GGUF version 1; 2 and 3"},
    {"version 4", "t|GGUF| i4 q0 q0", MHA_ERR_UNSUPPORTED, "GGUF version 4"},
    {"big-endian", "t|GGUF| x00000003 z16", MHA_ERR_UNSUPPORTED, "big-endian"},
    {"counts cut", "t|GGUF| i3 q0 i0", MHA_ERR_FORMAT, "metadata count: needs 8 bytes"},
    {"more tensors than the limit", HEAD(1001, 0) "z40000", MHA_ERR_LIMIT, "at most 1000"},
    {"more tensors than fit", HEAD(10, 0) "z100", MHA_ERR_FORMAT, "10 tensors do not fit"},
    {"2^64-1 tensors", HEAD(-1, 0), MHA_ERR_LIMIT, "18446744073709551615 tensors"},
    {"more pairs than fit", HEAD(0, 1000) "z100", MHA_ERR_FORMAT, "1000 metadata pairs do not fit"},
    {"2^64-1 pairs", HEAD(0, -1) "z100", MHA_ERR_FORMAT, "do not fit"},
    {"bytes behind the metadata", HEAD(0, 1) ARCH "z64", MHA_ERR_FORMAT, "trailing bytes"},

    /* metadata */
    {"key of length 2^64-1", HEAD(0, 1) "q-1 z40", MHA_ERR_FORMAT,
     "metadata key: needs 18446744073709551615 bytes"},
    {"key one byte past the end", HEAD(0, 1) "q21 z20", MHA_ERR_FORMAT,
     "metadata key: needs 21 bytes, 20 left"},
    {"empty key", HEAD(0, 1) "s|| i4 i1 z4", MHA_ERR_FORMAT, "metadata key of 0 bytes"},
    {"key of 65536 bytes", HEAD(0, 1) "q65536 w97,65536 i4 i1", MHA_ERR_FORMAT,
     "metadata key of 65536 bytes"},
    {"key is not UTF-8", HEAD(0, 1) "q2 xc328 i4 i1 z4", MHA_ERR_FORMAT,
     "metadata key is not valid"},
    {"key holds NUL", HEAD(0, 1) "q3 x610062 i4 i1 z4", MHA_ERR_FORMAT,
     "metadata key is not valid"},
    {"type cut", HEAD(0, 1) "s|abcdef| h4", MHA_ERR_FORMAT, "abcdef: needs 4 bytes, 2 left"},
    {"type 13", HEAD(0, 1) "s|k| i13 z8", MHA_ERR_FORMAT, "k: unknown value type 13"},
    {"type 2^32-1", HEAD(0, 1) "s|k| i-1 z8", MHA_ERR_FORMAT, "unknown value type 4294967295"},
    {"value cut", HEAD(0, 1) "s|k| i10 i1 h0", MHA_ERR_FORMAT, "k: needs 8 bytes, 6 left"},
    {"bool of value 2", HEAD(0, 1) "s|k| i7 b2", MHA_ERR_FORMAT, "k: a bool of value 2"},
    {"string past the end", HEAD(0, 1) "s|k| i8 q5 t|abcd|", MHA_ERR_FORMAT,
     "k: needs 5 bytes, 4 left"},
    {"string of length 2^63", HEAD(0, 1) "s|k| i8 q0x8000000000000000", MHA_ERR_FORMAT,
     "needs 9223372036854775808 bytes"},
    {"the same key twice", HEAD(0, 2) ARCH ARCH, MHA_ERR_FORMAT,
     "\"general.architecture\" is there twice"},
    {"array of arrays", HEAD(0, 1) ARRAY("k", 9, 1) "i4 q1 i1", MHA_ERR_FORMAT,
     "k: an array of arrays"},
    {"array of unknown type", HEAD(0, 1) ARRAY("k", 13, 1) "z8", MHA_ERR_FORMAT,
     "k: unknown value type 13"},
    {"array one element too long", HEAD(0, 1) ARRAY("k", 4, 3) "z11", MHA_ERR_FORMAT,
     "k: an array of 3 elements, 11 bytes left"},
    {"array of 2^61+1 elements of 8 bytes", HEAD(0, 1) "s|k| i9 i10 q0x2000000000000001 z8",
     MHA_ERR_FORMAT, "k: an array of 2305843009213693953 elements"},
    {"array of 2^64-1 strings", HEAD(0, 1) ARRAY("k", 8, -1) "z64", MHA_ERR_FORMAT,
     "k: an array of 18446744073709551615 elements"},
    {"string of an array past the end", HEAD(0, 1) ARRAY("k", 8, 2) "s|a| q9 t|abcdefgh|",
     MHA_ERR_FORMAT, "k: needs 9 bytes, 8 left"},
    {"bool of an array of value 3", HEAD(0, 1) ARRAY("k", 7, 3) "b0 b1 b3", MHA_ERR_FORMAT,
     "k: a bool of value 3"},

    /* keys with a meaning */
    {"alignment is a u64", HEAD(0, 1) "s|general.alignment| i10 q32", MHA_ERR_FORMAT,
     "general.alignment: expected u32, found u64"},
    {"alignment is a string", HEAD(0, 1) "s|general.alignment| i8 s|32|", MHA_ERR_FORMAT,
     "expected u32, found string"},
    {"alignment 0", HEAD(0, 1) ALIGN(0), MHA_ERR_FORMAT, "0 is not a power of two"},
    {"alignment 4", HEAD(0, 1) ALIGN(4), MHA_ERR_FORMAT, "4 is not a power of two from 8 up"},
    {"alignment 24", HEAD(0, 1) ALIGN(24), MHA_ERR_FORMAT, "24 is not a power of two"},
    {"alignment 2^32-1", HEAD(0, 1) ALIGN(-1), MHA_ERR_FORMAT, "4294967295 is not a power"},
    {"alignment beyond the file", HEAD(1, 1) ALIGN(2147483648) F32_8("a", 0) DATA, MHA_ERR_FORMAT,
     "\"a\" needs 32 bytes at byte 2147483648: the file is cut short"},
    {"tokens are a string", HEAD(0, 1) "s|tokenizer.ggml.tokens| i8 s|a|", MHA_ERR_FORMAT,
     "expected an array of string, found string"},
    {"tokens are integers", HEAD(0, 1) ARRAY("tokenizer.ggml.tokens", 4, 1) "i1", MHA_ERR_FORMAT,
     "expected an array of string, found one of u32"},
    {"merges are integers", HEAD(0, 2) TOKENS2 ARRAY("tokenizer.ggml.merges", 5, 1) "i1",
     MHA_ERR_FORMAT, "tokenizer.ggml.merges: expected an array of string, found one of i32"},
    {"too few scores", HEAD(0, 2) TOKENS2 ARRAY("tokenizer.ggml.scores", 6, 1) "f1", MHA_ERR_FORMAT,
     "tokenizer.ggml.scores has 1 elements, tokenizer.ggml.tokens 2"},
    {"scores are integers", HEAD(0, 2) TOKENS2 ARRAY("tokenizer.ggml.scores", 5, 2) "i1 i1",
     MHA_ERR_FORMAT, "expected an array of f32, found one of i32"},
    {"scores without tokens", HEAD(0, 1) ARRAY("tokenizer.ggml.scores", 6, 1) "f1", MHA_ERR_FORMAT,
     "tokenizer.ggml.tokens 0"},
    {"too many token types", HEAD(0, 2) TOKENS2 ARRAY("tokenizer.ggml.token_type", 5, 3) "z12",
     MHA_ERR_FORMAT, "token_type has 3 elements"},
    {"token types are bytes", HEAD(0, 2) TOKENS2 ARRAY("tokenizer.ggml.token_type", 0, 2) "z2",
     MHA_ERR_FORMAT, "expected an array of i32, found one of u8"},

    /* tensor infos */
    {"tensor name of length 2^64-1", HEAD(1, 0) "q-1 z32", MHA_ERR_FORMAT,
     "tensor name: needs 18446744073709551615"},
    {"empty tensor name", HEAD(1, 0) F32_8("", 0) DATA, MHA_ERR_FORMAT, "tensor name of 0 bytes"},
    {"tensor name of 64 bytes", HEAD(1, 0) "q64 w97,64 i1 q8 i0 q0 " DATA, MHA_ERR_FORMAT,
     "tensor name of 64 bytes (1 to 63)"},
    {"tensor name is not UTF-8", HEAD(1, 0) "q1 xff i1 q8 i0 q0 " DATA, MHA_ERR_FORMAT,
     "tensor name is not valid UTF-8"},
    {"the same tensor twice", HEAD(2, 0) F32_8("a", 0) F32_8("a", 32) DATA "z32", MHA_ERR_FORMAT,
     "tensor \"a\" is there twice"},
    {"no axes", HEAD(1, 0) INFO("a", "i0", 0, 0) "z8 " DATA, MHA_ERR_FORMAT, "0 dimensions"},
    {"five axes", HEAD(1, 0) INFO("a", "i5 q8 q1 q1 q1 q1", 0, 0) DATA, MHA_ERR_FORMAT,
     "5 dimensions (1 to 4)"},
    {"2^32-1 axes", HEAD(1, 0) INFO("a", "i-1", 0, 0) "z64", MHA_ERR_FORMAT, "4294967295 dim"},
    {"axes cut", HEAD(1, 0) "s|abcdefghij| i4 q8 q1 i1", MHA_ERR_FORMAT, "abcdefghij: needs 8"},
    {"product overflows to 0", HEAD(1, 0) INFO("a", "i2 q0x100000000 q0x100000000", 0, 0) DATA,
     MHA_ERR_FORMAT, "\"a\": the size of the shape overflows"},
    {"product beyond 2^63", HEAD(1, 0) INFO("a", "i1 q0x8000000000000000", 24, 0) DATA,
     MHA_ERR_FORMAT, "overflows"},
    {"bytes beyond 2^63", HEAD(1, 0) INFO("a", "i1 q0x2000000000000000", 0, 0) DATA, MHA_ERR_FORMAT,
     "overflows"},
    {"bytes overflow to 32", HEAD(1, 0) INFO("a", "i1 q0x4000000000000008", 0, 0) DATA,
     MHA_ERR_FORMAT, "overflows"},
    {"half a block of Q4_0", HEAD(1, 0) INFO("a", "i2 q16 q2", 2, 0) DATA, MHA_ERR_FORMAT,
     "rows of 16 elements are not whole Q4_0 blocks of 32"},
    {"part of a block of Q6_K", HEAD(1, 0) INFO("a", "i2 q320 q4", 14, 0) "a32 z1050",
     MHA_ERR_FORMAT, "rows of 320 elements are not whole Q6_K blocks of 256"},
    {"removed type 4", HEAD(1, 0) INFO("a", "i1 q32", 4, 0) DATA, MHA_ERR_UNSUPPORTED, "type Q4_2"},
    {"runtime type Q8_1", HEAD(1, 0) INFO("a", "i1 q32", 9, 0) DATA, MHA_ERR_UNSUPPORTED,
     "tensor \"a\": elements of type Q8_1 are not supported"},
    {"type IQ2_XS", HEAD(1, 0) INFO("a", "i1 q256", 17, 0) "a32 z74", MHA_ERR_UNSUPPORTED,
     "type IQ2_XS"},
    {"type IQ4_XS", HEAD(1, 0) INFO("a", "i1 q256", 23, 0) "a32 z136", MHA_ERR_UNSUPPORTED,
     "type IQ4_XS"},
    {"type TQ1_0", HEAD(1, 0) INFO("a", "i1 q256", 34, 0) "a32 z54", MHA_ERR_UNSUPPORTED,
     "type TQ1_0"},
    {"type MXFP4", HEAD(1, 0) INFO("a", "i1 q32", 39, 0) DATA, MHA_ERR_UNSUPPORTED, "type MXFP4"},
    {"unused type 31", HEAD(1, 0) INFO("a", "i1 q8", 31, 0) DATA, MHA_ERR_UNSUPPORTED,
     "unknown type 31"},
    {"type 2^32-1", HEAD(1, 0) INFO("a", "i1 q8", -1, 0) DATA, MHA_ERR_UNSUPPORTED,
     "unknown type 4294967295"},

    /* places of tensors */
    {"first tensor not at 0", HEAD(1, 0) F32_8("a", 32) DATA "z32", MHA_ERR_FORMAT,
     "\"a\" begins at byte 32 of the data, expected 0"},
    {"gap between tensors", HEAD(2, 0) F32_8("a", 0) F32_8("b", 64) DATA "z64", MHA_ERR_FORMAT,
     "\"b\" begins at byte 64 of the data, expected 32"},
    {"overlapping tensors", HEAD(2, 0) F32_8("a", 0) F32_8("b", 0) DATA "z32", MHA_ERR_FORMAT,
     "\"b\" begins at byte 0 of the data, expected 32"},
    {"offset not aligned", HEAD(2, 0) INFO("a", "i1 q1", 0, 0) F32_8("b", 4) DATA "z4",
     MHA_ERR_FORMAT, "\"b\" begins at byte 4 of the data, expected 32"},
    {"offset of 2^64-32", HEAD(1, 0) F32_8("a", 0xffffffffffffffe0) DATA, MHA_ERR_FORMAT,
     "begins at byte 18446744073709551584"},
    {"tensor larger than the file", HEAD(1, 0) INFO("a", "i1 q1000", 0, 0) DATA, MHA_ERR_FORMAT,
     "\"a\" of 4000 bytes at byte 0 of the data: the file is cut short"},
    {"last byte missing", HEAD(1, 0) F32_8("a", 0) "a32 z31", MHA_ERR_FORMAT, "cut short"},
    {"no data at all", HEAD(1, 0) F32_8("a", 0), MHA_ERR_FORMAT, "cut short"},
    {"one byte behind the last tensor", HEAD(1, 0) F32_8("a", 0) DATA "z1", MHA_ERR_FORMAT,
     "trailing bytes"},

    /* odd but legal */
    {"nothing in it", HEAD(0, 0), MHA_OK, ""},
    {"version 2", "t|GGUF| i2 q0 q0", MHA_OK, ""},
    {"vocabulary only", HEAD(0, 2) ARCH TOKENS2, MHA_OK, ""},
    {"vocabulary only, padded", HEAD(0, 2) ARCH TOKENS2 "a32", MHA_OK, ""},
    {"empty array", HEAD(0, 1) ARRAY("k", 8, 0), MHA_OK, ""},
    {"tensor name of 63 bytes", HEAD(1, 0) "q63 w97,63 i1 q8 i0 q0 " DATA, MHA_OK, ""},
    {"padding behind the last tensor", HEAD(1, 0) INFO("a", "i1 q1", 0, 0) "a32 z32", MHA_OK, ""},
    {"no padding behind the last tensor", HEAD(1, 0) INFO("a", "i1 q1", 0, 0) "a32 z4", MHA_OK, ""},
    {"alignment 8", HEAD(2, 1) ALIGN(8) INFO("a", "i1 q1", 0, 0) F32_8("b", 8) "a8 z40", MHA_OK,
     ""},
};

static mha_status read(const unsigned char *data, size_t n, mha_err *err)
{
    mha_tensor_list list = {0};
    mha_gguf *g = NULL;
    mha_status status = mha_gguf_parse(&g, &list, data, n, FILE_NAME, 0, 1000, err);
    if (status != MHA_OK)
        assert_int_equal(list.count, 0);
    mha_gguf_free(g);
    mha_tensor_list_release(&list);
    return status;
}

static void test_table(void **state)
{
    corruption_run(rows, sizeof rows / sizeof *rows, read, FILE_NAME);
}

static void test_sweep(void **state)
{
    corruption_sweep(HEAD(2, 4) ARCH TOKENS2 ARRAY("k", 7, 2) "b0 b1 s|x| i12 d0.5 " F32_8("a", 0)
                         INFO("b", "i2 q32 q2", 8, 32) "a32 z32 z68",
                     read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
