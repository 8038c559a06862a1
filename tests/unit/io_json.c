/* io_json: JSON as it is found in the wild. */
#include "support/test.h"

#include "io/json.h"
#include "support/tempdir.h"

#include <float.h>
#include <math.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    mha_err err = {0};
    if (mha_json_parse(&root, text, strlen(text), "f.json", &err) != MHA_OK)
        fail_msg("%s", err.message);
    return root;
}

static void refused(const char *text, mha_status status, const char *message)
{
    json_t *root = NULL;
    mha_err err = {0};
    assert_int_equal(mha_json_parse(&root, text, strlen(text), "f.json", &err), status);
    assert_null(root);
    if (strncmp(err.message, message, strlen(message)) != 0)
        fail_msg("expected \"%s\", got \"%s\"", message, err.message);
}

static double real_at(const json_t *root, const char *path)
{
    const json_t *value = mha_json_at(root, path);
    assert_true(json_is_real(value));
    return json_real_value(value);
}

static void test_numbers_beyond_json(void **state)
{
    json_t *root = parse("{\"a\": Infinity, \"b\": -Infinity, \"c\": NaN, \"d\": [Infinity,NaN],"
                         " \"e\": 1000000000000000019884624838656, \"f\": -9223372036854775809,"
                         " \"g\": 1e400, \"h\": -1e400, \"i\": 1e-400, \"j\": 9223372036854775807,"
                         " \"k\": -9223372036854775808, \"l\": 9223372036854775808}");
    assert_true(real_at(root, "a") == DBL_MAX);
    assert_true(real_at(root, "b") == -DBL_MAX);
    assert_string_equal(json_string_value(mha_json_at(root, "c")), "NaN");
    assert_true(json_real_value(json_array_get(mha_json_at(root, "d"), 0)) == DBL_MAX);
    assert_true(real_at(root, "e") == 1e30);
    assert_true(real_at(root, "f") == -0x1p63);
    assert_true(real_at(root, "g") == DBL_MAX);
    assert_true(real_at(root, "h") == -DBL_MAX);
    assert_true(real_at(root, "i") == 0);
    assert_true(json_integer_value(mha_json_at(root, "j")) == INT64_MAX);
    assert_true(json_integer_value(mha_json_at(root, "k")) == INT64_MIN);
    assert_true(real_at(root, "l") == 0x1p63);
    json_decref(root);
}

/* Inside strings nothing is rewritten, whatever stands before the string's end. */
static void test_strings_stay(void **state)
{
    json_t *root = parse("{\"NaN\": \"Infinity, NaN, 1e999\", \"q\\\"NaN\": \"\\\\\", \"x\": NaN}");
    assert_string_equal(json_string_value(json_object_get(root, "NaN")), "Infinity, NaN, 1e999");
    assert_string_equal(json_string_value(json_object_get(root, "q\"NaN")), "\\");
    assert_string_equal(json_string_value(json_object_get(root, "x")), "NaN");
    json_decref(root);
    root = parse("[\"a\\u0000b\"]");
    assert_int_equal(json_string_length(json_array_get(root, 0)), 3);
    json_decref(root);
}

static void test_byte_order_mark(void **state)
{
    json_t *root = parse("\xEF\xBB\xBF{\"a\":1}");
    assert_int_equal(json_integer_value(mha_json_at(root, "a")), 1);
    json_decref(root);
}

static void test_refusals(void **state)
{
    refused("", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":1,\n\"a\":2}", MHA_ERR_FORMAT, "f.json: line 2: duplicate object key");
    refused("{\"a\":1}\n\n}", MHA_ERR_FORMAT, "f.json: line 3: ");
    refused("{\"a\":01}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":+1}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":NaNa}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":1-2}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":--Infinity}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":0x10}", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":\"b", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":\"b\\", MHA_ERR_FORMAT, "f.json: line 1: ");
    refused("{\"a\":\"\xff\"}", MHA_ERR_FORMAT, "f.json: line ");
    refused("// no\n{}", MHA_ERR_FORMAT, "f.json: line 1: ");
}

static void test_ceilings(void **state)
{
    char deep[2 * MHA_JSON_DEPTH_MAX + 3] = {0};
    memset(deep, '[', MHA_JSON_DEPTH_MAX + 1);
    memset(deep + MHA_JSON_DEPTH_MAX + 1, ']', MHA_JSON_DEPTH_MAX + 1);
    refused(deep, MHA_ERR_LIMIT, "f.json: line 1: JSON nested deeper than 64 levels");
    deep[MHA_JSON_DEPTH_MAX] = ' ';
    deep[MHA_JSON_DEPTH_MAX + 1] = ' ';
    json_decref(parse(deep));

    json_t *root = NULL;
    mha_err err = {0};
    const char *text = "[1,2,3,[4]]";
    assert_int_equal(mha_json_parse_bounded(&root, text, strlen(text), "f", 2, 19, &err), MHA_OK);
    json_decref(root);
    assert_int_equal(mha_json_parse_bounded(&root, text, strlen(text), "f", 2, 18, &err),
                     MHA_ERR_LIMIT);
    assert_string_equal(err.message, "f: line 1: more than 18 JSON values");

    char digits[1100];
    memset(digits, '1', sizeof digits);
    digits[0] = '[';
    digits[sizeof digits - 2] = ']';
    digits[sizeof digits - 1] = '\0';
    refused(digits, MHA_ERR_FORMAT, "f.json: line 1: a number of 1097 characters");
}

static void test_paths(void **state)
{
    json_t *root =
        parse("{\"a\":{\"b\":{\"c\":1}},\"a.b.d\":2,\"n\":null,\"a.b\":{\"e\":3},\"s\":\"\"}");
    assert_int_equal(json_integer_value(mha_json_at(root, "a.b.c")), 1);
    assert_int_equal(json_integer_value(mha_json_at(root, "a.b.d")), 2);
    assert_null(mha_json_at(root, "n"));
    assert_null(mha_json_at(root, "a.x.c"));
    assert_null(mha_json_at(root, "s.x"));
    assert_null(mha_json_at(root, "a.b.c.d"));
    assert_null(mha_json_at(NULL, "a"));
    json_decref(root);
}

static void test_files(void **state)
{
    json_t *root = NULL;
    mha_err err = {0};
    const char *path = tempdir_path(state, "config.json");
    file_write(path, "{\"a\": [1, 2]}\n", 14);
    assert_int_equal(mha_json_open(&root, path, &err), MHA_OK);
    assert_int_equal(json_array_size(mha_json_at(root, "a")), 2);
    json_decref(root);
    assert_int_equal(mha_json_open(&root, tempdir_path(state, "absent.json"), &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "absent.json"));
}

static void test_reals(void **state)
{
    json_t *a = mha_json_real_new(INFINITY), *b = mha_json_real_new((double)NAN),
           *c = mha_json_real_new(-1.5);
    assert_true(json_real_value(a) == DBL_MAX);
    assert_string_equal(json_string_value(b), "NaN");
    assert_true(json_real_value(c) == -1.5);
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_beyond_json),
        cmocka_unit_test(test_strings_stay),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_paths),
        cmocka_unit_test_setup_teardown(test_files, tempdir_setup, tempdir_teardown),
        cmocka_unit_test(test_reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
