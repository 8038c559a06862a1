/* field.c: typed access to JSON fields. It may not know any field by name. */
#include "text/field.h"

#include "base/fail.h"

#include <string.h>

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static bool has_type(const json_t *v, json_type type)
{
    return type == JSON_TRUE ? json_is_boolean(v) : json_typeof(v) == type;
}

mha_status mha_field_get(json_t **out, const json_t *o, const char *where, const char *key,
                         json_type type, bool required, mha_err *err)
{
    json_t *v = json_object_get(o, key);
    *out = NULL;
    if (!v || json_is_null(v)) {
        if (!required)
            return MHA_OK;
        return mha_fail(err, MHA_ERR_FORMAT, "%s.%s: expected %s, found %s", where, key,
                        type_name(type), v ? "null" : "nothing");
    }
    if (!has_type(v, type))
        return mha_fail(err, MHA_ERR_FORMAT, "%s.%s: expected %s, found %s", where, key,
                        type_name(type), type_name(json_typeof(v)));
    *out = v;
    return MHA_OK;
}

mha_status mha_field_bool(bool *out, const json_t *o, const char *where, const char *key,
                          bool required, mha_err *err)
{
    json_t *v;
    MHA_TRY(mha_field_get(&v, o, where, key, JSON_TRUE, required, err));
    if (v)
        *out = json_is_true(v);
    return MHA_OK;
}

mha_status mha_field_int(int64_t *out, const json_t *o, const char *where, const char *key,
                         bool required, mha_err *err)
{
    json_t *v;
    MHA_TRY(mha_field_get(&v, o, where, key, JSON_INTEGER, required, err));
    if (v)
        *out = json_integer_value(v);
    return MHA_OK;
}

mha_status mha_field_string(const char **out, size_t *n, const json_t *o, const char *where,
                            const char *key, bool required, mha_err *err)
{
    json_t *v;
    MHA_TRY(mha_field_get(&v, o, where, key, JSON_STRING, required, err));
    if (v) {
        *out = json_string_value(v);
        *n = json_string_length(v);
    }
    return MHA_OK;
}

mha_status mha_field_expect(const json_t *v, const char *where, json_type type, mha_err *err)
{
    if (has_type(v, type))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: expected %s, found %s", where, type_name(type),
                    type_name(json_typeof(v)));
}

mha_status mha_field_kind(size_t *out, const json_t *o, const char *where, const char *const *names,
                          size_t count, mha_err *err)
{
    const char *type = NULL;
    size_t n;
    MHA_TRY(mha_field_expect(o, where, JSON_OBJECT, err));
    MHA_TRY(mha_field_string(&type, &n, o, where, "type", true, err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], type) == 0) {
            *out = i;
            return MHA_OK;
        }
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: \"%s\" is not supported", where, type);
}
