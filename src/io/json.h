/* json.h: reading JSON found in the wild with jansson.
 *
 * Real files hold NaN, Infinity, -Infinity and integers beyond 64 bits (model_max_length: 1e30
 * written out in digits). Integers beyond 64 bits are read as reals; Infinity and reals beyond the
 * range of a double as ±DBL_MAX; NaN as the string "NaN", because jansson has no NaN: whoever
 * expects a number there still finds none. Duplicate keys are refused; nesting and the number of
 * values are bounded. */
#ifndef MHA_IO_JSON_H
#define MHA_IO_JSON_H

#include "mha/err.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define MHA_JSON_DEPTH_MAX  64
#define MHA_JSON_VALUES_MAX ((uint64_t)1 << 26)
/* An object or array weighs as much as this many plain values: that is about its memory. */
#define MHA_JSON_CONTAINER 8

/* *out is owned: json_decref. `file` is used in messages: "FILE: line 3: …". The top level is an
 * object or an array; a byte order mark before it is skipped. */
mha_status mha_json_parse(json_t **out, const char *text, size_t n, const char *file, mha_err *err);
/* The same with own ceilings for the nesting and the number of values. */
mha_status mha_json_parse_bounded(json_t **out, const char *text, size_t n, const char *file,
                                  unsigned max_depth, uint64_t max_values, mha_err *err);
/* Reads a whole file of at most 512 MiB. */
mha_status mha_json_open(json_t **out, const char *path, mha_err *err);

/* Value at a dotted path such as "rope_parameters.rope_theta"; NULL when any part is absent or
 * null. A key that itself contains the dots is found too, and first. */
json_t *mha_json_at(const json_t *root, const char *path);

/* A real under the rules above for NaN and infinities; NULL when memory is out. */
json_t *mha_json_real_new(double value);

#endif
