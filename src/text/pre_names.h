/* pre_names.h: how the pre-tokenizers that GGUF files only name split text. */
#ifndef MHA_TEXT_PRE_NAMES_H
#define MHA_TEXT_PRE_NAMES_H

#include "io/json.h"
#include "mha/err.h"
#include <stdbool.h>

#define MHA_PRE_STEPS_MAX 8

typedef struct mha_pre_kind {
    const char *names; /* with a space before and behind each */
    bool nfc;
    bool ignore_merges;
    bool add_bos;     /* unless the file says otherwise */
    bool around;      /* CLS and SEP around a text, unless the file says otherwise */
    bool doubled;     /* two SEP between segments, as RoBERTa has it */
    bool mask_lstrip; /* the mask token swallows the space before it */
    /* "@…" names a component, anything else is a regular expression whose matches are isolated. */
    const char *steps[MHA_PRE_STEPS_MAX];
} mha_pre_kind;

/* NULL when the name is not known. */
const mha_pre_kind *mha_pre_kind_find(const char *name);
/* *out (json_decref) is an object with "normalizer", "pre_tokenizer" and "decoder". */
mha_status mha_pre_kind_describe(json_t **out, const mha_pre_kind *kind, mha_err *err);

#endif
