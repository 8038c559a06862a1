/* pretokenizer.h: the pre-tokenizers of a tokenizer file, which split text into words.
 *
 * BertPreTokenizer, ByteLevel, Metaspace, Split, Punctuation, Digits, Whitespace, WhitespaceSplit,
 * CharDelimiterSplit, FixedLength and sequences of them. Others are refused by name. */
#ifndef MHA_TEXT_PRETOKENIZER_H
#define MHA_TEXT_PRETOKENIZER_H

#include "io/json.h"
#include "mha/err.h"
#include "text/normalizer.h"
#include "text/pieces.h"
#include "text/regex.h"
#include <stdbool.h>

typedef struct mha_pretokenizer {
    const struct mha_pretokenizer_kind *kind;
    mha_regex *regex; /* Split, ByteLevel */
    mha_cut_behaviour behaviour;
    bool invert;           /* Split */
    bool add_prefix_space; /* ByteLevel */
    bool use_regex;
    bool keep_bytes;         /* ByteLevel: the text stays as it is, the model maps its bytes */
    uint32_t delimiter;      /* CharDelimiterSplit; Metaspace: what stands for a space */
    mha_space_prefix prefix; /* Metaspace */
    bool split;              /* Metaspace: at every delimiter */
    int64_t length;          /* FixedLength: characters */
} mha_pretokenizer;

typedef struct mha_pretokenizers {
    mha_pretokenizer *v;
    size_t n;
} mha_pretokenizers;

/* `json` may be NULL or null. */
mha_status mha_pretokenizers_parse(mha_pretokenizers *out, const json_t *json, mha_err *err);
void mha_pretokenizers_release(mha_pretokenizers *p);

/* What the last Metaspace writes for a space, 0 when there is none. */
uint32_t mha_pretokenizers_space_mark(const mha_pretokenizers *p);

/* When the last one is ByteLevel, nobody but the model looks at the mapped text, and a model that
 * maps bytes itself can be given the bytes: asks for that, and tells whether it will be so. */
bool mha_pretokenizers_keep_bytes(mha_pretokenizers *p);

mha_status mha_pretokenizers_apply(const mha_pretokenizers *p, mha_split *split, mha_err *err);

#endif
