/* expr.h: the expressions of family descriptions: numbers, strings and config values.
 *
 *   a ? b : c    || && !    == != < <= > >= ~    + - * / %    unary -    ^ (right associative)
 *   name   'text'   12.5e-6   null   list[i]   f(x, …)
 *
 * `~` matches a string against a pattern with `*`. Truth values are the numbers 0 and 1; null, 0,
 * '' and empty lists are false. Names and functions are the caller's: nothing here knows of
 * models, and nothing here has side effects. Nesting is bounded. */
#ifndef MHA_MODEL_EXPR_H
#define MHA_MODEL_EXPR_H

#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum mha_value_kind {
    MHA_VALUE_NULL,
    MHA_VALUE_NUMBER,
    MHA_VALUE_STRING,
    MHA_VALUE_JSON /* a list or an object */
} mha_value_kind;

/* Strings and JSON are borrowed from the config or from the description. */
typedef struct mha_value {
    mha_value_kind kind;
    double number;
    const char *string;
    const json_t *json;
} mha_value;

typedef struct mha_expr mha_expr;

/* Parses the longest expression at *text and moves *text behind it (to a blank, a word that cannot
 * continue an expression, or the end). Nodes live in the arena. MHA_ERR_FORMAT says what was
 * expected; the caller knows the line. */
mha_status mha_expr_parse(mha_expr **out, mha_arena *arena, const char **text, mha_err *err);

#define MHA_EXPR_ARGS_MAX 4

/* What names and functions mean. The number of arguments is checked by `call`. */
typedef struct mha_scope {
    mha_status (*name)(void *context, const char *name, mha_value *out, mha_err *err);
    mha_status (*call)(void *context, const char *name, const mha_value *args, size_t count,
                       mha_value *out, mha_err *err);
    void *context;
} mha_scope;

/* MHA_ERR_FORMAT for operands of a wrong kind or an index outside its list. */
mha_status mha_expr_value(const mha_expr *e, const mha_scope *scope, mha_value *out, mha_err *err);
/* The same, where only a number makes sense. */
mha_status mha_expr_number(const mha_expr *e, const mha_scope *scope, double *out, mha_err *err);
mha_status mha_expr_truth(const mha_expr *e, const mha_scope *scope, bool *out, mha_err *err);

/* The expression as it is written in the description. */
const char *mha_expr_text(const mha_expr *e);
/* Whether the value is one of truth: of a comparison, &&, ||, !, has() or among(), or of a choice
 * with such a branch. */
bool mha_expr_is_truth(const mha_expr *e);
/* Calls visit for every name in the expression, in order; names of functions are left out. */
void mha_expr_names(const mha_expr *e, void (*visit)(void *context, const char *name),
                    void *context);
/* Calls visit for every function call; `text` is its first argument when that is a string literal,
 * else NULL. */
void mha_expr_calls(const mha_expr *e,
                    void (*visit)(void *context, const char *name, const char *text,
                                  size_t arguments),
                    void *context);

bool mha_value_truth(const mha_value *v);
/* A number, string or null of JSON as a value; true and false are 1 and 0. */
mha_value mha_value_of_json(const json_t *j);
/* Does `text` match a pattern in which `*` stands for any run of characters? */
bool mha_glob(const char *pattern, const char *text);

#endif
