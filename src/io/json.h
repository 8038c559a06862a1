/* json.h: reading JSON found in the wild with jansson.
 *
 * Real files hold NaN, Infinity, -Infinity and integers beyond 64 bits (model_max_length: 1e30
 * written out in digits): they are read as reals. Duplicate keys are refused, nesting is bounded.
 */
#ifndef MHA_IO_JSON_H
#define MHA_IO_JSON_H

#include "mha/err.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* *out is owned: json_decref. `file` is used in messages: "FILE: line 3: …". */
mha_status mha_json_parse(json_t **out, const char *text, size_t n, const char *file, mha_err *err);
/* Reads a whole file of at most 512 MiB. */
mha_status mha_json_open(json_t **out, const char *path, mha_err *err);

/* Value at a dotted path such as "rope_parameters.rope_theta"; NULL when any part is absent or
 * null. */
json_t *mha_json_at(const json_t *root, const char *path);

#endif
