/* field.h: typed fields of the JSON objects in a tokenizer file, with one message for all of them:
 * "WHERE.KEY: expected a boolean, found a string". */
#ifndef MHA_TEXT_FIELD_H
#define MHA_TEXT_FIELD_H

#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include <stdbool.h>

/* A field that is absent or null leaves *out as it was, unless `required`. */
mha_status mha_field_bool(bool *out, const json_t *o, const char *where, const char *key,
                          bool required, mha_err *err);
mha_status mha_field_int(int64_t *out, const json_t *o, const char *where, const char *key,
                         bool required, mha_err *err);
/* *out is borrowed from the JSON. */
mha_status mha_field_string(const char **out, size_t *n, const json_t *o, const char *where,
                            const char *key, bool required, mha_err *err);
/* The field itself: *out is borrowed, NULL when it is absent or null. JSON_TRUE stands for both
 * booleans. */
mha_status mha_field_get(json_t **out, const json_t *o, const char *where, const char *key,
                         json_type type, bool required, mha_err *err);

/* MHA_ERR_FORMAT unless `v` has the type; `where` names v itself. */
mha_status mha_field_expect(const json_t *v, const char *where, json_type type, mha_err *err);

/* The index of an object's "type" among `names`. MHA_ERR_UNSUPPORTED names a type that is not
 * there. */
mha_status mha_field_kind(size_t *out, const json_t *o, const char *where, const char *const *names,
                          size_t count, mha_err *err);

#endif
