/* io_checkpoint: saved models on disk: directories, shards, GGUF files whole and split, and what is
 * said of those that cannot be opened. */
#include "support/test.h"

#include "base/mem.h"
#include "io/checkpoint.h"
#include "io/json.h"
#include "support/bytes.h"
#include "support/tempdir.h"

#include <string.h>

#define TENSOR(name) "'" name "':{'dtype':'F32','shape':[2],'data_offsets':[0,8]}"
#define INDEX        "model.safetensors.index.json"

static const char *put(void **state, const char *name, const char *recipe)
{
    size_t n = 0;
    const char *path = tempdir_path(state, name);
    unsigned char *data = bytes_make(recipe, &n);
    file_write(path, data, n);
    mha_free(data);
    return path;
}

static void put_text(void **state, const char *name, const char *text)
{
    file_write(tempdir_path(state, name), text, strlen(text));
}

static mha_checkpoint *open_good(const char *path)
{
    mha_checkpoint *c = NULL;
    mha_err err = {0};
    if (mha_checkpoint_open(&c, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return c;
}

static void refused(const char *path, mha_status status, const char *message)
{
    mha_checkpoint *c = NULL;
    mha_err err = {0};
    assert_int_equal(mha_checkpoint_open(&c, path, NULL, &err), status);
    assert_null(c);
    if (!strstr(err.message, message))
        fail_msg("expected \"%s\" in \"%s\"", message, err.message);
}

static float first_float(const mha_tensor *t)
{
    float value = 0;
    assert_non_null(t);
    memcpy(&value, t->data, sizeof value);
    return value;
}

/* ------------------------------------------------------------------------------- directories */

static void test_directory(void **state)
{
    put_text(state, "config.json", "{\"model_type\": \"gpt2\", \"n\": Infinity}");
    put(state, "model.safetensors", "j|{" TENSOR("wte.weight") "}| f5 f6");
    mha_checkpoint *c = open_good(*state);
    assert_string_equal(c->format, "safetensors");
    assert_int_equal(c->tensor_count, 1);
    assert_int_equal(c->file_count, 1);
    assert_true(first_float(mha_checkpoint_find(c, "wte.weight")) == 5.0F);
    assert_null(mha_checkpoint_find(c, "wpe.weight"));
    assert_null(c->gguf);
    assert_string_equal(json_string_value(mha_json_at(c->config, "model_type")), "gpt2");
    assert_int_equal(mha_checkpoint_check(c, NULL), MHA_OK);
    mha_checkpoint_close(c);
}

static void test_wrappers_are_cut_off(void **state)
{
    put_text(state, "config.json", "{}");
    put(state, "model.safetensors",
        "j|{" TENSOR("module._orig_mod.a") ",'module.b':{'dtype':'F32','shape':[1],"
                                           "'data_offsets':[8,12]},'module.':{'dtype':'F32','shape'"
                                           ":[1],'data_offsets':[12,16]}}| "
                                           "f1 f2 f3 f4");
    mha_checkpoint *c = open_good(*state);
    assert_true(first_float(mha_checkpoint_find(c, "a")) == 1.0F);
    assert_true(first_float(mha_checkpoint_find(c, "b")) == 3.0F);
    assert_true(first_float(mha_checkpoint_find(c, "module.")) == 4.0F);
    assert_string_equal(c->tensors[0].name, "a");
    mha_checkpoint_close(c);
    put(state, "model.safetensors",
        "j|{" TENSOR("module.a") ",'a':{'dtype':'F32','shape':[1],'data_offsets':[8,12]}}| z12");
    refused(*state, MHA_ERR_FORMAT, "tensor \"a\" is there twice");
}

static void test_shards(void **state)
{
    put_text(state, "config.json", "{}");
    put(state, "one.safetensors", "j|{" TENSOR("a") "}| f1 f2");
    put(state, "two.safetensors", "j|{" TENSOR("b") "}| f3 f4");
    put_text(state, INDEX,
             "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"b\":\"two.safetensors\","
             "\"a\":\"one.safetensors\"}}");
    mha_checkpoint *c = open_good(*state);
    assert_int_equal(c->file_count, 2);
    assert_int_equal(c->tensor_count, 2);
    const mha_tensor *b = mha_checkpoint_find(c, "b");
    assert_true(first_float(b) == 3.0F);
    assert_non_null(strstr(c->files[b->file].path, "/two.safetensors"));
    assert_true(first_float(mha_checkpoint_find(c, "a")) == 1.0F);
    mha_checkpoint_close(c);
}

static void test_broken_shards(void **state)
{
    static const struct {
        const char *index;
        mha_status status;
        const char *message;
    } rows[] = {
        {"[]", MHA_ERR_FORMAT, "weight_map is missing"},
        {"{\"weight_map\":{}}", MHA_ERR_FORMAT, "weight_map is missing, empty"},
        {"{\"weight_map\":[\"a\"]}", MHA_ERR_FORMAT, "not an object"},
        {"{\"weight_map\":{\"a\":1}}", MHA_ERR_FORMAT, "\"a\" is not mapped to a plain file name"},
        {"{\"weight_map\":{\"a\":\"\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"..\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"d\\\\one.safetensors\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\\u0000x\"}}", MHA_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"none.safetensors\"}}", MHA_ERR_IO, "none.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"one.safetensors\"}}", MHA_ERR_FORMAT,
         "tensor \"c\" is not in one.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\","
         "\"x\":\"two.safetensors\"}}",
         MHA_ERR_FORMAT, "tensor \"b\" is not in one.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}}", MHA_ERR_FORMAT,
         "duplicate"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"cut.safetensors\"}}", MHA_ERR_FORMAT,
         "cut.safetensors: tensor \"b\""},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"x\":\"twin.safetensors\"}}", MHA_ERR_FORMAT,
         "\"a\""},
    };
    put_text(state, "config.json", "{}");
    put(state, "one.safetensors", "j|{" TENSOR("a") "}| f1 f2");
    put(state, "two.safetensors", "j|{" TENSOR("b") "}| f3 f4");
    put(state, "cut.safetensors", "j|{" TENSOR("b") "}| f3");
    put(state, "twin.safetensors",
        "j|{" TENSOR("a") ",'x':{'dtype':'U8','shape':[0],'data_offsets':[8,8]}}| f3 f4");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text(state, INDEX, rows[i].index);
        refused(*state, rows[i].status, rows[i].message);
    }
}

static void test_what_is_not_a_model(void **state)
{
    refused(tempdir_path(state, "none"), MHA_ERR_IO, "none: no such model directory or file");
    refused(*state, MHA_ERR_FORMAT, "neither model.safetensors nor");
    put_text(state, "pytorch_model.bin", "x");
    refused(*state, MHA_ERR_FORMAT, "config.json is missing");
    remove(tempdir_path(state, "pytorch_model.bin"));
    put_text(state, "adapter_model.safetensors", "x");
    refused(*state, MHA_ERR_UNSUPPORTED, "only an adapter (adapter_model.safetensors)");
    remove(tempdir_path(state, "adapter_model.safetensors"));
    put_text(state, "adapter_model.bin", "x");
    refused(*state, MHA_ERR_UNSUPPORTED, "only an adapter (adapter_model.bin)");
    put_text(state, "my.pt", "x");
    refused(tempdir_path(state, "my.pt"), MHA_ERR_UNSUPPORTED, "give the directory that holds it");
    const char *file = put(state, "model.safetensors", "j|{}|");
    refused(*state, MHA_ERR_FORMAT, "config.json is missing");
    refused(file, MHA_ERR_UNSUPPORTED, "give the directory");
    put_text(state, "config.json", "[1]");
    refused(*state, MHA_ERR_FORMAT, "config.json: the top level is not an object");
    put_text(state, "config.json", "{\"a\":}");
    refused(*state, MHA_ERR_FORMAT, "config.json: line 1");
    refused(tempdir_path(state, "config.json"), MHA_ERR_UNSUPPORTED, "neither a model directory");
}

static void test_limits(void **state)
{
    mha_checkpoint *c = NULL;
    mha_err err = {0};
    put_text(state, "config.json", "{}");
    put(state, "model.safetensors", "j|{" TENSOR("a") "}| z8");
    mha_checkpoint_limits few = {.max_tensors = 1, .max_header = 1000};
    assert_int_equal(mha_checkpoint_open(&c, *state, &few, &err), MHA_OK);
    mha_checkpoint_close(c);
    few.max_header = 10;
    assert_int_equal(mha_checkpoint_open(&c, *state, &few, &err), MHA_ERR_LIMIT);
    assert_non_null(strstr(err.message, "model.safetensors: header of"));
}

/* -------------------------------------------------------------------------------------- GGUF */

#define ARCH  "s|general.architecture| i8 s|toy| "
#define A1(o) "s|a| i1 q2 i0 q" #o " "

static void test_gguf(void **state)
{
    const char *path =
        put(state, "m.gguf",
            "t|GGUF| i3 q1 q9 " ARCH "s|toy.block_count| i4 i12 s|toy.eps| i6 f0.5 "
            "s|toy.heads| i9 i5 q2 i4 i8 s|toy.on| i7 b1 s|toy.name| i8 s|x| s|toy.inf| i12 "
            "q0x7ff0000000000000 s|tokenizer.ggml.tokens| i9 i8 q1 s|a| s|toy.big| i10 q-1 " A1(
                0) "a32 f7 f8");
    mha_checkpoint *c = open_good(path);
    assert_string_equal(c->format, "GGUF");
    assert_non_null(c->gguf);
    assert_true(first_float(mha_checkpoint_find(c, "a")) == 7.0F);
    const json_t *k = c->config;
    assert_string_equal(json_string_value(json_object_get(k, "general.architecture")), "toy");
    assert_int_equal(json_integer_value(json_object_get(k, "block_count")), 12);
    assert_true(json_real_value(json_object_get(k, "eps")) == 0.5);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(k, "heads"), 1)), 8);
    assert_true(json_is_true(json_object_get(k, "on")));
    assert_string_equal(json_string_value(json_object_get(k, "name")), "x");
    assert_true(json_real_value(json_object_get(k, "inf")) > 1e308);
    assert_true(json_real_value(json_object_get(k, "big")) == 0x1p64);
    assert_null(json_object_get(k, "tokenizer.ggml.tokens"));
    assert_int_equal(json_object_size(k), 8);
    mha_checkpoint_close(c);
}

static void test_broken_gguf(void **state)
{
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q0"), MHA_ERR_FORMAT,
            "general.architecture is missing");
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q1 s|general.architecture| i4 i1"), MHA_ERR_FORMAT,
            "expected string, found u32");
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q1 s|general.architecture| i8 s||"), MHA_ERR_FORMAT,
            "general.architecture of 0 bytes");
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q2 " ARCH "s|toy.x| i8 q1 xff"), MHA_ERR_FORMAT,
            "x is not valid UTF-8");
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q3 " ARCH "s|toy.x| i4 i1 s|x| i4 i2"),
            MHA_ERR_FORMAT, "metadata has both \"x\" and \"toy.x\"");
    refused(put(state, "a.gguf", "t|GGUF| i3 q0 q2 " ARCH "q2000 w97,2000 i4 i1"), MHA_ERR_LIMIT,
            "a metadata key of 2000 bytes");
}

#define SPLIT(no, count, total)                                                                    \
    "s|split.no| i2 h" #no " s|split.count| i2 h" #count " s|split.tensors.count| i5 i" #total " "

static void test_split_gguf(void **state)
{
    const char *first = put(state, "m-00001-of-00002.gguf",
                            "t|GGUF| i3 q1 q4 " ARCH SPLIT(0, 2, 2) A1(0) "a32 f1 f2");
    refused(first, MHA_ERR_IO, "m-00002-of-00002.gguf");
    const char *second = put(state, "m-00002-of-00002.gguf",
                             "t|GGUF| i3 q1 q3 " SPLIT(1, 2, 2) "s|b| i1 q2 i0 q0 a32 f3 f4");
    mha_checkpoint *c = open_good(first);
    assert_int_equal(c->file_count, 2);
    assert_true(first_float(mha_checkpoint_find(c, "a")) == 1.0F);
    assert_true(first_float(mha_checkpoint_find(c, "b")) == 3.0F);
    assert_int_equal(mha_checkpoint_find(c, "b")->file, 1);
    mha_checkpoint_close(c);
    refused(second, MHA_ERR_ARG, "m-00001-of-00002.gguf");

    put(state, "m-00002-of-00002.gguf",
        "t|GGUF| i3 q1 q3 " SPLIT(0, 2, 2) "s|b| i1 q2 i0 q0 a32 f3 f4");
    refused(first, MHA_ERR_FORMAT, "say 1 of 2, the name 2 of 2");
    put(state, "m-00002-of-00002.gguf", "t|GGUF| i3 q1 q0 s|b| i1 q2 i0 q0 a32 f3 f4");
    refused(first, MHA_ERR_FORMAT, "the name 2 of 2");
    put(state, "m-00002-of-00002.gguf", "t|GGUF| i3 q1 q3 " SPLIT(1, 2, 2) A1(0) "a32 f3 f4");
    refused(first, MHA_ERR_FORMAT, "tensor \"a\" is there twice");
    put(state, "m-00002-of-00002.gguf", "t|GGUF| i3 q0 q3 " SPLIT(1, 2, 2));
    refused(first, MHA_ERR_FORMAT, "split.tensors.count is 2, the files hold 1");
    refused(put(state, "renamed.gguf", "t|GGUF| i3 q1 q4 " ARCH SPLIT(0, 2, 2) A1(0) "a32 z8"),
            MHA_ERR_FORMAT, "one of 2 files of a split model");
}

/* ------------------------------------------------------------------------------- fingerprints */

static void fingerprint(void **state, const char *config, const char *weights, char hex[65])
{
    put_text(state, "config.json", config);
    put(state, "model.safetensors", weights);
    mha_checkpoint *c = open_good(*state);
    assert_int_equal(mha_checkpoint_fingerprint(c, hex, NULL), MHA_OK);
    mha_checkpoint_close(c);
}

static void test_fingerprint(void **state)
{
    char base[65], same[65], other[65];
    fingerprint(state, "{\"a\":1,\"b\":[2]}", "j|{" TENSOR("x") "}| f1 f2", base);
    assert_int_equal(strlen(base), 64);
    fingerprint(state, "{ \"b\":[2],\n\"a\":1 }", "j|{" TENSOR("x") "}  | f3 f4", same);
    assert_string_equal(base, same);
    fingerprint(state, "{\"a\":1,\"b\":[3]}", "j|{" TENSOR("x") "}| f1 f2", other);
    assert_string_not_equal(base, other);
    fingerprint(state, "{\"a\":1,\"b\":[2]}", "j|{" TENSOR("y") "}| f1 f2", other);
    assert_string_not_equal(base, other);
    fingerprint(state, "{\"a\":1,\"b\":[2]}",
                "j|{'x':{'dtype':'F32','shape':[1,2],'data_offsets':[0,8]}}| f1 f2", other);
    assert_string_not_equal(base, other);
    fingerprint(state, "{\"a\":1,\"b\":[2]}",
                "j|{'x':{'dtype':'I32','shape':[2],'data_offsets':[0,8]}}| f1 f2", other);
    assert_string_not_equal(base, other);
}

static void test_hash(void **state)
{
    char hex[65];
    put_text(state, "config.json", "{}");
    put(state, "model.safetensors", "j|{}|");
    mha_checkpoint *c = open_good(*state);
    assert_int_equal(mha_checkpoint_hash_file(c, 0, hex, NULL), MHA_OK);
    /* sha256sum of 02 00 00 00 00 00 00 00 7b 7d */
    assert_string_equal(hex, "411a485216e432ece6b9af94fa32154cf79a2a56d4f81266baa50063f45092bd");
    assert_int_equal(mha_checkpoint_hash_file(c, 1, hex, NULL), MHA_ERR_ARG);
    mha_checkpoint_close(c);
}

#define IN_TEMPDIR(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TEMPDIR(test_directory),  IN_TEMPDIR(test_wrappers_are_cut_off),
        IN_TEMPDIR(test_shards),     IN_TEMPDIR(test_broken_shards),
        IN_TEMPDIR(test_limits),     IN_TEMPDIR(test_what_is_not_a_model),
        IN_TEMPDIR(test_gguf),       IN_TEMPDIR(test_broken_gguf),
        IN_TEMPDIR(test_split_gguf), IN_TEMPDIR(test_fingerprint),
        IN_TEMPDIR(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
