/* bind_config.c: the values of the config section, what the names and functions of expressions
 * mean, and the messages that say which config keys an expression came from. */
#include "base/fail.h"
#include "io/json.h"
#include "model/binder.h"
#include "model/refuse.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const json_t *mha_binder_config(const mha_binder *b, const char *key)
{
    const json_t *before = json_object_get(b->original, key); /* of a pruned model */
    if (before != NULL)
        return json_is_null(before) ? NULL : before;
    if (!b->gguf)
        return mha_json_at(b->checkpoint->config, key);
    const json_t *j = json_object_get(b->checkpoint->config, key);
    return json_is_null(j) ? NULL : j;
}

/* `key.*`: all keys with that beginning, as an object of their ends. NULL when there is none. */
static mha_status collect_object(mha_binder *b, const char *key, const json_t **out)
{
    size_t n = strlen(key) - 1; /* with the point */
    json_t *object = NULL, *value;
    const char *name;
    *out = NULL;
    json_object_foreach(b->checkpoint->config, name, value)
    {
        if (strncmp(name, key, n) != 0)
            continue;
        if (object == NULL) {
            object = json_object();
            if (json_array_append_new(b->objects, object) != 0)
                return mha_fail(b->err, MHA_ERR_NOMEM, "out of memory");
        }
        if (json_object_set(object, name + n, value) != 0)
            return mha_fail(b->err, MHA_ERR_NOMEM, "out of memory");
    }
    *out = object;
    return MHA_OK;
}

static mha_status eval_keys(mha_binder *b, const mha_spec_words *keys, mha_value *out,
                            const char **key)
{
    for (size_t i = 0; i < keys->count; i++) {
        const char *k = keys->word[i];
        size_t n = strlen(k);
        const json_t *j = NULL;
        if (n > 2 && strcmp(k + n - 2, ".*") == 0)
            MHA_TRY(collect_object(b, k, &j));
        else
            j = mha_binder_config(b, k);
        if (j == NULL || json_is_null(j))
            continue;
        *out = mha_value_of_json(j);
        *key = k;
        return MHA_OK;
    }
    return MHA_OK;
}

static bool has_null(const mha_binder *b, const mha_spec_words *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (json_is_null(json_object_get(b->checkpoint->config, keys->word[i])))
            return true;
    return false;
}

static mha_status eval_var(mha_binder *b, const mha_spec_var *v)
{
    mha_value *out = &b->values[b->value_count];
    const char **key = &b->value_key[b->value_count];
    const mha_spec_words *keys = b->gguf ? &v->gguf : &v->keys;
    if (v->per_layer) {
        b->value_count++; /* has a value only inside a layer */
        return MHA_OK;
    }
    if (!v->computed)
        MHA_TRY(eval_keys(b, keys, out, key));
    const mha_expr *fallback = v->value;
    if (v->if_null != NULL && has_null(b, keys))
        fallback = v->if_null;
    if (*key == NULL && fallback != NULL)
        MHA_TRY(mha_binder_value(b, fallback, v->line, out));
    else if (*key == NULL)
        return mha_fail(b->err, MHA_ERR_FORMAT, "%s: the key %s is missing", b->config_file,
                        keys->count > 0 ? keys->word[0] : v->name);
    b->value_count++;
    return MHA_OK;
}

mha_status mha_bind_config(mha_binder *b)
{
    for (size_t i = 0; i < b->spec->var_count; i++)
        MHA_TRY(eval_var(b, &b->spec->vars[i]));
    MHA_TRY(mha_refuse_unread(b));
    for (size_t i = 0; i < b->spec->check_count; i++) {
        const mha_spec_check *check = &b->spec->checks[i];
        bool holds;
        MHA_TRY(mha_binder_truth(b, check->expr, check->line, true, &holds));
        if (holds)
            continue;
        char reasons[200];
        mha_binder_reasons(b, check->expr, reasons, sizeof reasons);
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED, "%s: %s needs %s%s", b->config_file,
                        b->spec->name, mha_expr_text(check->expr), reasons);
    }
    return MHA_OK;
}

/* --------------------------------------------------------------------------- expressions */

static mha_status scope_name(void *context, const char *name, mha_value *out, mha_err *err)
{
    mha_binder *b = context;
    *out = (mha_value){.kind = MHA_VALUE_NUMBER};
    if (strcmp(name, "l") == 0) {
        if (b->layer < 0)
            return mha_fail(err, MHA_ERR_FORMAT, "l is only known inside a block");
        out->number = b->layer;
        return MHA_OK;
    }
    if (strcmp(name, "gguf") == 0) {
        out->number = b->gguf;
        return MHA_OK;
    }
    if (strcmp(name, "arch") == 0) {
        *out = (mha_value){.kind = MHA_VALUE_STRING, .string = b->arch};
        return MHA_OK;
    }
    const mha_narrow *n = &b->narrow;
    if (n->active && (strcmp(name, n->heads_name) == 0 ||
                      (n->kv_name != NULL && strcmp(name, n->kv_name) == 0))) {
        out->number = strcmp(name, n->heads_name) == 0 ? n->heads : n->kv_heads;
        return MHA_OK;
    }
    for (size_t i = 0; i < b->value_count; i++)
        if (strcmp(b->spec->vars[i].name, name) == 0) {
            const mha_spec_var *v = &b->spec->vars[i];
            *out = b->values[i];
            mha_scope scope = mha_binder_scope(b);
            return v->per_layer ? mha_expr_value(v->value, &scope, out, err) : MHA_OK;
        }
    return mha_fail(err, MHA_ERR_INTERNAL, "%s has no value yet", name);
}

static bool is_word(const char *words, const char *word)
{
    size_t n = word == NULL ? 0 : strlen(word);
    for (size_t w; n > 0 && *(words += strspn(words, " ")) != '\0'; words += w) {
        w = strcspn(words, " ");
        if (w == n && memcmp(words, word, n) == 0)
            return true;
    }
    return false;
}

static mha_status call_among(const mha_value *list, const mha_value *words, mha_value *out,
                             mha_err *err)
{
    bool is_list = list->kind == MHA_VALUE_JSON && json_is_array(list->json);
    if ((!is_list && list->kind != MHA_VALUE_NULL) || words->kind != MHA_VALUE_STRING)
        return mha_fail(err, MHA_ERR_FORMAT, "among() needs a list and a string");
    out->number = 1;
    for (size_t i = 0; is_list && i < json_array_size(list->json); i++)
        if (!is_word(words->string, json_string_value(json_array_get(list->json, i))))
            out->number = 0;
    return MHA_OK;
}

static mha_status call_at(const mha_value *list, const mha_value *index, mha_value *out,
                          mha_err *err)
{
    *out = *list;
    if (list->kind != MHA_VALUE_JSON || !json_is_array(list->json))
        return MHA_OK;
    const json_t *element = NULL;
    if (index->kind == MHA_VALUE_NUMBER && index->number >= 0)
        element = json_array_get(list->json, (size_t)index->number);
    if (element == NULL)
        return mha_fail(err, MHA_ERR_FORMAT, "at() beyond a list of %zu elements",
                        json_array_size(list->json));
    *out = mha_value_of_json(element);
    return MHA_OK;
}

/* Whether `word` is one of the parts of `text` between its bars and blanks. */
static bool text_holds(const char *text, const char *word)
{
    static const char bounds[] = "| \t";
    for (size_t n; *(text += strspn(text, bounds)) != '\0'; text += n) {
        n = strcspn(text, bounds);
        if (strlen(word) == n && strncasecmp(text, word, n) == 0)
            return true;
    }
    return false;
}

static mha_status call_holds(const mha_value *list, const mha_value *word, mha_value *out,
                             mha_err *err)
{
    out->number = 0;
    if (word->kind != MHA_VALUE_STRING)
        return mha_fail(err, MHA_ERR_FORMAT, "holds() needs a word");
    if (list->kind == MHA_VALUE_STRING)
        out->number = text_holds(list->string, word->string);
    for (size_t i = 0; list->kind == MHA_VALUE_JSON && i < json_array_size(list->json); i++) {
        const char *element = json_string_value(json_array_get(list->json, i));
        if (element != NULL && strcmp(element, word->string) == 0)
            out->number = 1;
    }
    return MHA_OK;
}

/* The parser checked the number of arguments and that tensor names are literals. */
static mha_status scope_call(void *context, const char *name, const mha_value *args, size_t count,
                             mha_value *out, mha_err *err)
{
    const mha_binder *b = context;
    *out = (mha_value){.kind = MHA_VALUE_NUMBER};
    if (strcmp(name, "has") == 0) {
        out->number = mha_binder_find(b, args[0].string) != NULL;
        return MHA_OK;
    }
    if (strcmp(name, "rows") == 0) {
        const mha_tensor *t = mha_binder_find(b, args[0].string);
        if (t == NULL || t->rank == 0)
            return mha_fail(err, MHA_ERR_FORMAT, "there is no tensor %s with rows", args[0].string);
        out->number = (double)t->shape[0];
        return MHA_OK;
    }
    if (strcmp(name, "len") == 0) {
        if (args[0].kind != MHA_VALUE_JSON)
            return mha_fail(err, MHA_ERR_FORMAT, "len() of something that is no list");
        out->number = json_is_array(args[0].json) ? (double)json_array_size(args[0].json)
                                                  : (double)json_object_size(args[0].json);
        return MHA_OK;
    }
    if (strcmp(name, "at") == 0)
        return call_at(&args[0], &args[1], out, err);
    if (strcmp(name, "holds") == 0)
        return call_holds(&args[0], &args[1], out, err);
    if (strcmp(name, "among") == 0)
        return call_among(&args[0], &args[1], out, err);
    for (size_t i = 0; i < count; i++)
        if (args[i].kind != MHA_VALUE_NUMBER)
            return mha_fail(err, MHA_ERR_FORMAT, "%s() needs numbers", name);
    out->number = strcmp(name, "min") == 0   ? fmin(args[0].number, args[1].number)
                  : strcmp(name, "max") == 0 ? fmax(args[0].number, args[1].number)
                                             : floor(args[0].number);
    return MHA_OK;
}

mha_scope mha_binder_scope(mha_binder *b)
{
    return (mha_scope){scope_name, scope_call, b};
}

struct reasons {
    const mha_binder *b;
    char *out;
    size_t size, used;
};

static void add_reason(void *context, const char *name)
{
    struct reasons *r = context;
    for (size_t i = 0; i < r->b->value_count; i++) {
        if (strcmp(r->b->spec->vars[i].name, name) != 0 || r->b->spec->vars[i].per_layer ||
            r->used >= r->size)
            continue;
        const mha_value *v = &r->b->values[i];
        const char *key = r->b->value_key[i] != NULL ? r->b->value_key[i] : name;
        char text[64] = {0}; /* of lists only the beginning */
        size_t size = 0;
        if (v->kind == MHA_VALUE_NUMBER)
            snprintf(text, sizeof text, "%.9g", v->number);
        else if (v->kind == MHA_VALUE_JSON)
            size = json_dumpb(v->json, text, sizeof text - 1, JSON_COMPACT);
        const char *value = v->kind == MHA_VALUE_STRING ? v->string
                            : v->kind == MHA_VALUE_NULL ? "null"
                                                        : text;
        int n = snprintf(r->out + r->used, r->size - r->used, "%s%s = %.60s%s",
                         r->used == 0 ? " (" : ", ", key, value, size >= sizeof text ? "…" : "");
        r->used += n > 0 ? (size_t)n : 0;
    }
}

void mha_binder_reasons(const mha_binder *b, const mha_expr *e, char *out, size_t size)
{
    struct reasons r = {b, out, size - 2, 0};
    out[0] = '\0';
    mha_expr_names(e, add_reason, &r);
    size_t n = strlen(out);
    if (n > 0) {
        out[n] = ')';
        out[n + 1] = '\0';
    }
}

/* Puts the line of the description before an error of an expression, and the values behind it. */
static mha_status expr_error(const mha_binder *b, const mha_expr *e, size_t line, mha_status status)
{
    if (b->err == NULL || status == MHA_OK)
        return status;
    char reasons[200];
    mha_binder_reasons(b, e, reasons, sizeof reasons);
    return mha_fail(b->err, status, "%s: %s:%zu: %s: %.150s%s", b->config_file, b->spec->file, line,
                    mha_expr_text(e), b->err->message, reasons);
}

mha_status mha_binder_value(mha_binder *b, const mha_expr *e, size_t line, mha_value *out)
{
    mha_scope scope = mha_binder_scope(b);
    return expr_error(b, e, line, mha_expr_value(e, &scope, out, b->err));
}

mha_status mha_binder_number(mha_binder *b, const mha_expr *e, size_t line, double *out)
{
    mha_scope scope = mha_binder_scope(b);
    return expr_error(b, e, line, mha_expr_number(e, &scope, out, b->err));
}

mha_status mha_binder_truth(mha_binder *b, const mha_expr *e, size_t line, bool absent, bool *out)
{
    *out = absent;
    if (e == NULL)
        return MHA_OK;
    mha_scope scope = mha_binder_scope(b);
    return expr_error(b, e, line, mha_expr_truth(e, &scope, out, b->err));
}

mha_status mha_binder_count(mha_binder *b, const mha_expr *e, size_t line, const char *what,
                            uint32_t *out)
{
    double v;
    MHA_TRY(mha_binder_number(b, e, line, &v));
    if (v >= 0 && v <= INT32_MAX && v == floor(v)) {
        *out = (uint32_t)v;
        return MHA_OK;
    }
    char reasons[200];
    mha_binder_reasons(b, e, reasons, sizeof reasons);
    return mha_fail(b->err, MHA_ERR_FORMAT,
                    "%s: %s = %s is %.9g, not a whole number from 0 to 2^31%s", b->config_file,
                    what, mha_expr_text(e), v, reasons);
}
