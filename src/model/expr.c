/* expr.c: recursive descent into a small tree, and its evaluation. The grammar is in expr.h. */
#include "model/expr.h"
#include "base/fail.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Descriptions can come from users: neither parsing nor evaluation may exhaust the stack. */
enum { DEPTH_MAX = 64, HEIGHT_MAX = 200 };

typedef enum opcode {
    OP_NUMBER,
    OP_STRING,
    OP_NULL,
    OP_NAME,
    OP_CALL,
    OP_INDEX,
    OP_CHOICE, /* a ? b : c */
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_MORE,
    OP_MORE_EQUAL,
    OP_MATCH,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_NEGATE,
    OP_POWER
} opcode;

struct mha_expr {
    opcode op;
    double number;
    const char *string; /* literal, name of a variable or of a function */
    mha_expr *arg[MHA_EXPR_ARGS_MAX];
    size_t args;
    int height;       /* of the tree below and with this node */
    const char *text; /* source of the whole expression, only at the root */
};

typedef struct parser {
    mha_arena *arena;
    const char *at;
    int depth;
    mha_err *err;
} parser;

static mha_status parse_choice(parser *p, mha_expr **out);
static mha_status parse_unary(parser *p, mha_expr **out);

static mha_status node_attach(parser *p, mha_expr *node, mha_expr *arg)
{
    if (arg->height >= HEIGHT_MAX)
        return mha_fail(p->err, MHA_ERR_LIMIT, "an expression of more than %d steps", HEIGHT_MAX);
    if (node->height <= arg->height)
        node->height = arg->height + 1;
    node->arg[node->args++] = arg;
    return MHA_OK;
}

static mha_status node_new(parser *p, mha_expr **out, opcode op, mha_expr *a, mha_expr *b)
{
    MHA_TRY(mha_arena_alloc((void **)out, p->arena, 1, sizeof **out, p->err));
    (*out)->op = op;
    (*out)->height = 1;
    if (a != NULL)
        MHA_TRY(node_attach(p, *out, a));
    return b != NULL ? node_attach(p, *out, b) : MHA_OK;
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool accept(parser *p, const char *symbol)
{
    skip_blanks(p);
    size_t n = strlen(symbol);
    if (strncmp(p->at, symbol, n) != 0)
        return false;
    p->at += n;
    return true;
}

static mha_status expect(parser *p, const char *symbol)
{
    if (accept(p, symbol))
        return MHA_OK;
    return mha_fail(p->err, MHA_ERR_FORMAT, "expected \"%s\" before \"%.24s\"", symbol, p->at);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static mha_status parse_call(parser *p, mha_expr *e)
{
    e->op = OP_CALL;
    if (accept(p, ")"))
        return MHA_OK;
    do {
        if (e->args == MHA_EXPR_ARGS_MAX)
            return mha_fail(p->err, MHA_ERR_FORMAT, "too many arguments of %s()", e->string);
        mha_expr *arg;
        MHA_TRY(parse_choice(p, &arg));
        MHA_TRY(node_attach(p, e, arg));
    } while (accept(p, ","));
    return expect(p, ")");
}

static mha_status parse_word(parser *p, mha_expr **out)
{
    const char *start = p->at;
    while (is_word(*p->at))
        p->at++;
    size_t n = (size_t)(p->at - start);
    MHA_TRY(node_new(p, out, OP_NAME, NULL, NULL));
    if (n == 4 && memcmp(start, "null", 4) == 0) {
        (*out)->op = OP_NULL;
        return MHA_OK;
    }
    char *name;
    MHA_TRY(mha_arena_strndup(&name, p->arena, start, n, p->err));
    (*out)->string = name;
    if (*p->at != '(')
        return MHA_OK;
    p->at++;
    return parse_call(p, *out);
}

static mha_status parse_string(parser *p, mha_expr **out)
{
    const char *start = ++p->at, *end = strchr(start, '\'');
    if (end == NULL)
        return mha_fail(p->err, MHA_ERR_FORMAT, "a string without its closing quote: '%.24s",
                        start);
    char *string;
    MHA_TRY(mha_arena_strndup(&string, p->arena, start, (size_t)(end - start), p->err));
    p->at = end + 1;
    MHA_TRY(node_new(p, out, OP_STRING, NULL, NULL));
    (*out)->string = string;
    return MHA_OK;
}

/* Digits, a point and an exponent only: strtod alone would take "inf", "0x" and the locale's
 * decimal comma. */
static mha_status parse_number(parser *p, mha_expr **out)
{
    char digits[64];
    size_t n = 0;
    const char *s = p->at;
    while (isdigit((unsigned char)s[n]) || s[n] == '.')
        n++;
    if (s[n] == 'e' || s[n] == 'E') {
        size_t exponent = n + 1 + (s[n + 1] == '-' || s[n + 1] == '+');
        if (isdigit((unsigned char)s[exponent]))
            for (n = exponent; isdigit((unsigned char)s[n]);)
                n++;
    }
    char *end = digits;
    if (n < sizeof digits) {
        memcpy(digits, s, n);
        digits[n] = '\0';
        MHA_TRY(node_new(p, out, OP_NUMBER, NULL, NULL));
        (*out)->number = strtod(digits, &end);
    }
    if (end == digits || *end != '\0')
        return mha_fail(p->err, MHA_ERR_FORMAT, "\"%.24s\" is not a number", s);
    p->at += n;
    return MHA_OK;
}

static mha_status parse_primary(parser *p, mha_expr **out)
{
    skip_blanks(p);
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        MHA_TRY(parse_number(p, out));
    else if (*p->at == '\'')
        MHA_TRY(parse_string(p, out));
    else if (is_word(*p->at))
        MHA_TRY(parse_word(p, out));
    else if (accept(p, "(")) {
        MHA_TRY(parse_choice(p, out));
        MHA_TRY(expect(p, ")"));
    } else if (*p->at == '\0')
        return mha_fail(p->err, MHA_ERR_FORMAT, "the line ends where a value is expected");
    else
        return mha_fail(p->err, MHA_ERR_FORMAT, "expected a value before \"%.24s\"", p->at);
    /* Only a bracket that touches its list is an index: a blank ends the expression. */
    while (*p->at == '[') {
        p->at++;
        mha_expr *index;
        MHA_TRY(parse_choice(p, &index));
        MHA_TRY(expect(p, "]"));
        MHA_TRY(node_new(p, out, OP_INDEX, *out, index));
    }
    return MHA_OK;
}

static mha_status parse_power(parser *p, mha_expr **out)
{
    MHA_TRY(parse_primary(p, out));
    if (!accept(p, "^"))
        return MHA_OK;
    mha_expr *exponent;
    MHA_TRY(parse_unary(p, &exponent));
    return node_new(p, out, OP_POWER, *out, exponent);
}

static mha_status parse_unary(parser *p, mha_expr **out)
{
    if (++p->depth > DEPTH_MAX)
        return mha_fail(p->err, MHA_ERR_LIMIT, "an expression nested deeper than %d", DEPTH_MAX);
    mha_status status;
    mha_expr *operand;
    skip_blanks(p);
    if (p->at[0] == '-' || (p->at[0] == '!' && p->at[1] != '=')) {
        opcode op = *p->at++ == '-' ? OP_NEGATE : OP_NOT;
        status = parse_unary(p, &operand);
        if (status == MHA_OK)
            status = node_new(p, out, op, operand, NULL);
    } else {
        status = parse_power(p, out);
    }
    p->depth--;
    return status;
}

/* Binary operators by level, loosest first; longer symbols before their prefixes. */
static const struct binary {
    int level;
    const char *symbol;
    opcode op;
} binaries[] = {
    {0, "||", OP_OR},      {1, "&&", OP_AND},        {2, "==", OP_EQUAL},
    {2, "!=", OP_UNEQUAL}, {2, "<=", OP_LESS_EQUAL}, {2, ">=", OP_MORE_EQUAL},
    {2, "<", OP_LESS},     {2, ">", OP_MORE},        {2, "~", OP_MATCH},
    {3, "+", OP_ADD},      {3, "-", OP_SUBTRACT},    {4, "*", OP_MULTIPLY},
    {4, "/", OP_DIVIDE},   {4, "%", OP_MODULO},
};
enum { LEVELS = 5, BINARIES = sizeof binaries / sizeof *binaries };

static const struct binary *accept_binary(parser *p, int level)
{
    for (size_t i = 0; i < BINARIES; i++)
        if (binaries[i].level == level && accept(p, binaries[i].symbol))
            return &binaries[i];
    return NULL;
}

static mha_status parse_binary(parser *p, mha_expr **out, int level)
{
    if (level == LEVELS)
        return parse_unary(p, out);
    MHA_TRY(parse_binary(p, out, level + 1));
    const struct binary *b;
    while ((b = accept_binary(p, level)) != NULL) {
        mha_expr *right;
        MHA_TRY(parse_binary(p, &right, level + 1));
        MHA_TRY(node_new(p, out, b->op, *out, right));
    }
    return MHA_OK;
}

static mha_status parse_choice(parser *p, mha_expr **out)
{
    if (++p->depth > DEPTH_MAX)
        return mha_fail(p->err, MHA_ERR_LIMIT, "an expression nested deeper than %d", DEPTH_MAX);
    MHA_TRY(parse_binary(p, out, 0));
    if (accept(p, "?")) {
        mha_expr *yes, *no;
        MHA_TRY(parse_choice(p, &yes));
        MHA_TRY(expect(p, ":"));
        MHA_TRY(parse_choice(p, &no));
        MHA_TRY(node_new(p, out, OP_CHOICE, *out, yes));
        MHA_TRY(node_attach(p, *out, no));
    }
    p->depth--;
    return MHA_OK;
}

mha_status mha_expr_parse(mha_expr **out, mha_arena *arena, const char **text, mha_err *err)
{
    parser p = {arena, *text, 0, err};
    skip_blanks(&p);
    const char *start = p.at;
    MHA_TRY(parse_choice(&p, out));
    const char *end = p.at; /* without the blanks that a failed look for an operator skipped */
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    char *source;
    MHA_TRY(mha_arena_strndup(&source, arena, start, (size_t)(end - start), err));
    (*out)->text = source;
    *text = p.at;
    return MHA_OK;
}

const char *mha_expr_text(const mha_expr *e)
{
    return e->text;
}

void mha_expr_names(const mha_expr *e, void (*visit)(void *context, const char *name),
                    void *context)
{
    if (e->op == OP_NAME)
        visit(context, e->string);
    for (size_t i = 0; i < e->args; i++)
        mha_expr_names(e->arg[i], visit, context);
}

void mha_expr_calls(const mha_expr *e,
                    void (*visit)(void *context, const char *name, const char *text,
                                  size_t arguments),
                    void *context)
{
    if (e->op == OP_CALL) {
        bool literal = e->args > 0 && e->arg[0]->op == OP_STRING;
        visit(context, e->string, literal ? e->arg[0]->string : NULL, e->args);
    }
    for (size_t i = 0; i < e->args; i++)
        mha_expr_calls(e->arg[i], visit, context);
}

bool mha_expr_is_truth(const mha_expr *e)
{
    if (e->op == OP_CHOICE)
        return mha_expr_is_truth(e->arg[1]) || mha_expr_is_truth(e->arg[2]);
    if (e->op == OP_CALL)
        return strcmp(e->string, "has") == 0 || strcmp(e->string, "among") == 0;
    return e->op >= OP_OR && e->op <= OP_MATCH;
}

bool mha_value_truth(const mha_value *v)
{
    switch (v->kind) {
    case MHA_VALUE_NULL:
        return false;
    case MHA_VALUE_NUMBER:
        return v->number != 0;
    case MHA_VALUE_STRING:
        return v->string[0] != '\0';
    case MHA_VALUE_JSON:
        return json_is_array(v->json) ? json_array_size(v->json) > 0
                                      : json_object_size(v->json) > 0;
    }
    return false;
}

mha_value mha_value_of_json(const json_t *j)
{
    if (j == NULL || json_is_null(j))
        return (mha_value){.kind = MHA_VALUE_NULL};
    if (json_is_boolean(j))
        return (mha_value){.kind = MHA_VALUE_NUMBER, .number = json_is_true(j)};
    if (json_is_number(j))
        return (mha_value){.kind = MHA_VALUE_NUMBER, .number = json_number_value(j)};
    if (json_is_string(j))
        return (mha_value){.kind = MHA_VALUE_STRING, .string = json_string_value(j)};
    return (mha_value){.kind = MHA_VALUE_JSON, .json = j};
}

bool mha_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static const char *kind_name(const mha_value *v)
{
    static const char *const names[] = {"null", "a number", "a string", "a list or object"};
    return names[v->kind];
}

static bool values_equal(const mha_value *a, const mha_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case MHA_VALUE_NULL:
        return true;
    case MHA_VALUE_NUMBER:
        return a->number == b->number;
    case MHA_VALUE_STRING:
        return strcmp(a->string, b->string) == 0;
    case MHA_VALUE_JSON:
        return json_equal(a->json, b->json);
    }
    return false;
}

static double arithmetic(opcode op, double a, double b)
{
    switch (op) {
    case OP_LESS:
        return a < b;
    case OP_LESS_EQUAL:
        return a <= b;
    case OP_MORE:
        return a > b;
    case OP_MORE_EQUAL:
        return a >= b;
    case OP_ADD:
        return a + b;
    case OP_SUBTRACT:
        return a - b;
    case OP_MULTIPLY:
        return a * b;
    case OP_DIVIDE:
        return a / b;
    case OP_MODULO:
        return fmod(a, b);
    case OP_NEGATE:
        return -a;
    default:
        return pow(a, b);
    }
}

static mha_status eval_index(const mha_value *list, const mha_value *at, mha_value *out,
                             mha_err *err)
{
    if (list->kind != MHA_VALUE_JSON || !json_is_array(list->json))
        return mha_fail(err, MHA_ERR_FORMAT, "%s where a list is needed", kind_name(list));
    size_t n = json_array_size(list->json);
    if (at->kind != MHA_VALUE_NUMBER || !(at->number >= 0) || at->number >= (double)n ||
        at->number != floor(at->number))
        return mha_fail(err, MHA_ERR_FORMAT, "index %g in a list of %zu", at->number, n);
    *out = mha_value_of_json(json_array_get(list->json, (size_t)at->number));
    return MHA_OK;
}

/* Operators that need the values of both operands (or of the only one). */
static mha_status eval_operator(const mha_expr *e, const mha_scope *scope, mha_value *out,
                                mha_err *err)
{
    mha_value a = {0}, b = {.kind = MHA_VALUE_NUMBER};
    MHA_TRY(mha_expr_value(e->arg[0], scope, &a, err));
    if (e->args > 1)
        MHA_TRY(mha_expr_value(e->arg[1], scope, &b, err));
    if (e->op == OP_INDEX)
        return eval_index(&a, &b, out, err);
    out->kind = MHA_VALUE_NUMBER;
    if (e->op == OP_EQUAL || e->op == OP_UNEQUAL) {
        out->number = values_equal(&a, &b) == (e->op == OP_EQUAL);
        return MHA_OK;
    }
    mha_value_kind kind = e->op == OP_MATCH ? MHA_VALUE_STRING : MHA_VALUE_NUMBER;
    const mha_value *wrong = a.kind != kind ? &a : b.kind != kind ? &b : NULL;
    if (wrong != NULL)
        return mha_fail(err, MHA_ERR_FORMAT, "%s where %s is needed", kind_name(wrong),
                        e->op == OP_MATCH ? "a string" : "a number");
    out->number =
        e->op == OP_MATCH ? mha_glob(b.string, a.string) : arithmetic(e->op, a.number, b.number);
    return MHA_OK;
}

static mha_status eval_call(const mha_expr *e, const mha_scope *scope, mha_value *out, mha_err *err)
{
    mha_value args[MHA_EXPR_ARGS_MAX] = {{0}};
    for (size_t i = 0; i < e->args; i++)
        MHA_TRY(mha_expr_value(e->arg[i], scope, &args[i], err));
    return scope->call(scope->context, e->string, args, e->args, out, err);
}

mha_status mha_expr_value(const mha_expr *e, const mha_scope *scope, mha_value *out, mha_err *err)
{
    bool truth;
    *out = (mha_value){.kind = MHA_VALUE_NUMBER};
    switch (e->op) {
    case OP_NUMBER:
        out->number = e->number;
        return MHA_OK;
    case OP_STRING:
        *out = (mha_value){.kind = MHA_VALUE_STRING, .string = e->string};
        return MHA_OK;
    case OP_NULL:
        out->kind = MHA_VALUE_NULL;
        return MHA_OK;
    case OP_NAME:
        return scope->name(scope->context, e->string, out, err);
    case OP_CALL:
        return eval_call(e, scope, out, err);
    case OP_CHOICE:
        MHA_TRY(mha_expr_truth(e->arg[0], scope, &truth, err));
        return mha_expr_value(e->arg[truth ? 1 : 2], scope, out, err);
    case OP_OR:
    case OP_AND:
        MHA_TRY(mha_expr_truth(e->arg[0], scope, &truth, err));
        if (truth == (e->op == OP_AND))
            MHA_TRY(mha_expr_truth(e->arg[1], scope, &truth, err));
        out->number = truth;
        return MHA_OK;
    case OP_NOT:
        MHA_TRY(mha_expr_truth(e->arg[0], scope, &truth, err));
        out->number = !truth;
        return MHA_OK;
    default:
        return eval_operator(e, scope, out, err);
    }
}

mha_status mha_expr_number(const mha_expr *e, const mha_scope *scope, double *out, mha_err *err)
{
    mha_value v;
    MHA_TRY(mha_expr_value(e, scope, &v, err));
    if (v.kind != MHA_VALUE_NUMBER)
        return mha_fail(err, MHA_ERR_FORMAT, "%s where a number is needed", kind_name(&v));
    *out = v.number;
    return MHA_OK;
}

mha_status mha_expr_truth(const mha_expr *e, const mha_scope *scope, bool *out, mha_err *err)
{
    mha_value v;
    MHA_TRY(mha_expr_value(e, scope, &v, err));
    *out = mha_value_truth(&v);
    return MHA_OK;
}
