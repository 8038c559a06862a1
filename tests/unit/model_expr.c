/* model_expr: the expressions of family descriptions: values, precedence, errors, limits. */
#include "support/test.h"

#include "model/expr.h"

#include <math.h>
#include <string.h>

static mha_status name_value(void *context, const char *name, mha_value *out, mha_err *err)
{
    json_t *list = context;
    (void)err;
    *out = (mha_value){.kind = MHA_VALUE_NUMBER, .number = 12};
    if (strcmp(name, "s") == 0)
        *out = (mha_value){.kind = MHA_VALUE_STRING, .string = "gated-gelu"};
    else if (strcmp(name, "list") == 0)
        *out = (mha_value){.kind = MHA_VALUE_JSON, .json = list};
    else if (strcmp(name, "none") == 0)
        *out = (mha_value){.kind = MHA_VALUE_NULL};
    return MHA_OK;
}

/* f(a, b, …): the number of arguments plus the first of them. */
static mha_status call_value(void *context, const char *name, const mha_value *args, size_t count,
                             mha_value *out, mha_err *err)
{
    (void)context, (void)name, (void)err;
    *out = (mha_value){.kind = MHA_VALUE_NUMBER, .number = (double)count};
    if (count > 0)
        out->number += args[0].number;
    return MHA_OK;
}

/* Parses and evaluates; *rest is what the expression left of the text. */
static mha_status evaluate(const char *text, mha_value *out, const char **rest, mha_err *err)
{
    mha_arena arena = {0};
    mha_expr *e = NULL;
    json_t *list = json_pack("[s, i, [i]]", "full", 7, 1);
    const mha_scope scope = {name_value, call_value, list};
    const char *at = text;
    mha_status status = mha_expr_parse(&e, &arena, &at, err);
    if (status == MHA_OK)
        status = mha_expr_value(e, &scope, out, err);
    if (rest != NULL)
        *rest = at;
    if (status == MHA_OK && out->kind == MHA_VALUE_STRING) /* must outlive the arena */
        out->string = strcmp(out->string, "full") == 0 ? "full" : "other";
    mha_arena_release(&arena);
    json_decref(list);
    return status;
}

static void gives(const char *text, double expected)
{
    mha_value v = {0};
    mha_err err = {0};
    const char *rest = NULL;
    if (evaluate(text, &v, &rest, &err) != MHA_OK)
        fail_msg("%s: %s", text, err.message);
    if (v.kind != MHA_VALUE_NUMBER || fabs(v.number - expected) > 1e-12 * fabs(expected) ||
        *rest != '\0')
        fail_msg("%s: %.17g, expected %.17g, rest \"%s\"", text, v.number, expected, rest);
}

static void refuses(const char *text, mha_status status, const char *message)
{
    mha_value v;
    mha_err err = {0};
    mha_status found = evaluate(text, &v, NULL, &err);
    if (found != status || strstr(err.message, message) == NULL)
        fail_msg("%s: %s \"%s\"", text, mha_status_name(found), err.message);
}

static void test_arithmetic(void **state)
{
    gives("1 + 2 * 3", 7);
    gives("(1 + 2) * 3", 9);
    gives("10 - 4 - 3", 3);
    gives("100 / 10 / 5", 2);
    gives("17 % 5", 2);
    gives("2 ^ 3 ^ 2", 512); /* right associative */
    gives("-2 ^ 2", -4);     /* as in mathematics */
    gives("4 ^ -0.5", 0.5);
    gives("2 * -3", -6);
    gives("1.5e-6 * 2", 3e-6);
    gives(".5 + 1E2", 100.5);
    gives("H * 2", 24);
    gives("f(1, 2, 3) * 2", 8);
    gives("f()", 0);
}

static void test_truth(void **state)
{
    gives("1 == 1 && 2 != 3", 1);
    gives("0 || 0", 0);
    gives("1 || 0 && 0", 1);
    gives("!0 + 1", 2);
    gives("!none", 1);
    gives("!list", 0);
    gives("3 <= 3 && 3 >= 3 && 2 < 3 && 3 > 2", 1);
    gives("s == 'gated-gelu'", 1);
    gives("s == 12", 0);
    gives("none == null", 1);
    gives("s ~ 'gated-*' && !(s ~ 'gated')", 1);
    gives("0 ? 1 : 0 ? 2 : 3", 3);
    gives("1 ? 4 : none + 1", 4); /* the branch not taken is not evaluated */
    gives("0 && none + 1", 0);
    gives("1 || none + 1", 1);
}

static void test_lists(void **state)
{
    mha_value v = {0};
    mha_err err = {0};
    assert_int_equal(evaluate("list[0]", &v, NULL, &err), MHA_OK);
    assert_string_equal(v.string, "full");
    gives("list[1] + 1", 8);
    gives("list[2][0]", 1);
    gives("list[3 - 2]", 7);
}

/* An expression ends where nothing can continue it: the rest of the line is the caller's. */
static void test_end(void **state)
{
    const struct {
        const char *text, *rest;
    } cases[] = {{"1 + 2 width=3", "width=3"},
                 {"H causal", "causal"},
                 {"12 [3]", "[3]"},
                 {"K^-0.5 when 1", "when 1"},
                 {"3, 4", ", 4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mha_value v;
        mha_err err = {0};
        const char *rest = NULL;
        assert_int_equal(evaluate(cases[i].text, &v, &rest, &err), MHA_OK);
        assert_string_equal(rest, cases[i].rest);
    }
}

static void test_errors(void **state)
{
    refuses("", MHA_ERR_FORMAT, "the line ends");
    refuses("1 +", MHA_ERR_FORMAT, "the line ends");
    refuses("(1 + 2", MHA_ERR_FORMAT, "expected \")\"");
    refuses("1 ? 2", MHA_ERR_FORMAT, "expected \":\"");
    refuses("'open", MHA_ERR_FORMAT, "closing quote");
    refuses("* 2", MHA_ERR_FORMAT, "expected a value before \"* 2\"");
    refuses("1.2.3", MHA_ERR_FORMAT, "is not a number");
    refuses("f(1, 2, 3, 4, 5)", MHA_ERR_FORMAT, "too many arguments of f()");
    refuses("none + 1", MHA_ERR_FORMAT, "null where a number is needed");
    refuses("s * 2", MHA_ERR_FORMAT, "a string where a number is needed");
    refuses("1 ~ 'x'", MHA_ERR_FORMAT, "a number where a string is needed");
    refuses("H[0]", MHA_ERR_FORMAT, "a number where a list is needed");
    refuses("list[3]", MHA_ERR_FORMAT, "index 3 in a list of 3");
    refuses("list[-1]", MHA_ERR_FORMAT, "index -1");
    refuses("list[0.5]", MHA_ERR_FORMAT, "index 0.5");
    refuses("list[0/0]", MHA_ERR_FORMAT, "in a list of 3");
}

/* Neither nesting nor a long chain may exhaust the stack. */
static void test_limits(void **state)
{
    static char text[20001];
    const char *const pieces[] = {"(", "!", "-", "1+", "2^", "1?1:", "f(", "list["};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t n = strlen(pieces[i]);
        for (size_t at = 0; at + n < sizeof text; at += n)
            memcpy(text + at, pieces[i], n + 1);
        refuses(text, MHA_ERR_LIMIT, "an expression");
    }
}

static void test_glob(void **state)
{
    assert_true(mha_glob("*.position_ids", "bert.embeddings.position_ids"));
    assert_true(mha_glob("a*b*c", "aXbYbZc"));
    assert_true(mha_glob("*", ""));
    assert_true(mha_glob("abc", "abc"));
    assert_false(mha_glob("abc", "abcd"));
    assert_false(mha_glob("*.bias", "x.bias.y"));
    assert_false(mha_glob("", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_truth),
        cmocka_unit_test(test_lists),      cmocka_unit_test(test_end),
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_glob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
