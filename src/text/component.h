/* component.h: what normalizers, pre-tokenizers and decoders of a tokenizer file share. */
#ifndef MHA_TEXT_COMPONENT_H
#define MHA_TEXT_COMPONENT_H

#include "io/json.h"
#include "mha/err.h"
#include "text/regex.h"

/* Components of one kind in one file, sequences unrolled. */
#define MHA_COMPONENTS_MAX 64

/* The field "pattern": {"String": …} or {"Regex": …}. */
mha_status mha_component_pattern(mha_regex **out, const json_t *o, const char *where, mha_err *err);

/* Called for every component that is not a sequence, in order; `where` names it. */
typedef mha_status (*mha_component_visit)(void *context, const json_t *component, const char *where,
                                          mha_err *err);

/* Visits a component, or what a (nested) {"type": "Sequence", KEY: […]} holds. `json` may be NULL
 * or null: nothing is visited. */
mha_status mha_component_each(const json_t *json, const char *where, const char *key,
                              mha_component_visit visit, void *context, mha_err *err);

#endif
