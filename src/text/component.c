/* component.c: unrolling sequences and reading patterns. It may not know what components do. */
#include "text/component.h"

#include "base/fail.h"
#include "text/field.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 8
#define WHERE_MAX 160

mha_status mha_component_pattern(mha_regex **out, const json_t *o, const char *where, mha_err *err)
{
    json_t *pattern;
    char inner[WHERE_MAX];
    const char *s = NULL;
    size_t n = 0;
    MHA_TRY(mha_field_get(&pattern, o, where, "pattern", JSON_OBJECT, true, err));
    snprintf(inner, sizeof inner, "%s.pattern", where);
    MHA_TRY(mha_field_string(&s, &n, pattern, inner, "String", false, err));
    bool literal = s != NULL;
    if (!literal)
        MHA_TRY(mha_field_string(&s, &n, pattern, inner, "Regex", true, err));
    mha_status status = mha_regex_new(out, s, n, literal, err);
    return status == MHA_OK ? status : mha_fail_prefix(err, status, inner);
}

static mha_status each(const json_t *json, const char *where, const char *key, int depth,
                       mha_component_visit visit, void *context, mha_err *err)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!type || strcmp(type, "Sequence") != 0)
        return visit(context, json, where, err);
    json_t *list, *item;
    size_t i;
    if (depth == DEPTH_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: sequences nested deeper than %d", where,
                        DEPTH_MAX);
    MHA_TRY(mha_field_get(&list, json, where, key, JSON_ARRAY, true, err));
    json_array_foreach(list, i, item)
    {
        char inner[WHERE_MAX];
        snprintf(inner, sizeof inner, "%s.%s[%zu]", where, key, i);
        MHA_TRY(each(item, inner, key, depth + 1, visit, context, err));
    }
    return MHA_OK;
}

mha_status mha_component_each(const json_t *json, const char *where, const char *key,
                              mha_component_visit visit, void *context, mha_err *err)
{
    if (!json || json_is_null(json))
        return MHA_OK;
    return each(json, where, key, 0, visit, context, err);
}
