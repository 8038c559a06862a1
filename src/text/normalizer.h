/* normalizer.h: the normalizers of a tokenizer file, run one after the other on a stretch of text.
 *
 * BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend,
 * ByteLevel, Nmt, Precompiled and sequences of them. Others are refused by name. SentencePiece's
 * own normalizer has no name in such files: it is added by hand. */
#ifndef MHA_TEXT_NORMALIZER_H
#define MHA_TEXT_NORMALIZER_H

#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include "text/aligned.h"
#include "text/charsmap.h"
#include "text/cuts.h"
#include "text/regex.h"
#include "text/trie.h"

typedef struct mha_normalizer {
    const struct mha_normalizer_kind *kind;
    unsigned flags;      /* which parts are on, by kind */
    const char *content; /* Replace, Prepend */
    size_t content_n;
    mha_regex *regex;      /* Replace */
    mha_charsmap charsmap; /* Precompiled, SentencePiece */
    mha_trie kept;         /* SentencePiece: pieces of the user's own, which stay as they are */
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

/* What SentencePiece does to a text. Every space becomes U+2581. */
typedef enum mha_space_prefix {
    MHA_SPACE_NEVER,
    MHA_SPACE_FIRST, /* before the text, not behind a special token in it */
    MHA_SPACE_ALWAYS /* before every stretch between special tokens */
} mha_space_prefix;

typedef struct mha_sentencepiece_rules {
    const void *charsmap; /* NULL: none */
    size_t charsmap_n;
    bool remove_extra_spaces; /* at both ends, and all but one between words */
    mha_space_prefix prefix;
    mha_trie_key *kept; /* [kept_n], reordered */
    size_t kept_n;
} mha_sentencepiece_rules;

/* `json` may be NULL or null. Strings are copied into the arena. */
mha_status mha_normalizers_parse(mha_normalizers *out, mha_arena *arena, const json_t *json,
                                 mha_err *err);
/* Adds SentencePiece's normalizer behind those that were parsed. */
mha_status mha_normalizers_add_sentencepiece(mha_normalizers *out,
                                             const mha_sentencepiece_rules *rules, mha_err *err);
void mha_normalizers_release(mha_normalizers *n);
/* Rewrites work->text. */
mha_status mha_normalizers_apply(const mha_normalizers *n, mha_normalizing *work, mha_err *err);

#endif
