/* normalizer.h: the normalizers of a tokenizer file, run one after the other on a stretch of text.
 *
 * BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, ByteLevel
 * and sequences of them. Others are refused by name. */
#ifndef MHA_TEXT_NORMALIZER_H
#define MHA_TEXT_NORMALIZER_H

#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include "text/aligned.h"
#include "text/cuts.h"
#include "text/regex.h"

typedef struct mha_normalizer {
    const struct mha_normalizer_kind *kind;
    unsigned flags;      /* which parts are on, by kind */
    const char *content; /* Replace, Prepend */
    size_t content_n;
    mha_regex *regex; /* Replace */
} mha_normalizer;

typedef struct mha_normalizers {
    mha_normalizer *v;
    size_t n;
} mha_normalizers;

/* A stretch of text on its way through the normalizers. */
typedef struct mha_normalizing {
    mha_aligned text, spare;
    uint32_t start; /* where the stretch starts in the original text */
    mha_regex_scratch *regex;
    mha_cuts *cuts;
} mha_normalizing;

/* `json` may be NULL or null. Strings are copied into the arena. */
mha_status mha_normalizers_parse(mha_normalizers *out, mha_arena *arena, const json_t *json,
                                 mha_err *err);
void mha_normalizers_release(mha_normalizers *n);
/* Rewrites work->text. */
mha_status mha_normalizers_apply(const mha_normalizers *n, mha_normalizing *work, mha_err *err);

#endif
