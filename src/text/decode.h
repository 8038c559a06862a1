/* decode.h: the decoders of a tokenizer file, which turn pieces back into text.
 *
 * WordPiece, ByteLevel, BPEDecoder, Metaspace, ByteFallback, Replace, Strip, Fuse and sequences of
 * them. Others are refused by name. */
#ifndef MHA_TEXT_DECODE_H
#define MHA_TEXT_DECODE_H

#include "base/buf.h"
#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include "text/regex.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct mha_decoder {
    const struct mha_decoder_kind *kind;
    const char *affix; /* WordPiece: the prefix; BPEDecoder: the suffix; Metaspace: what stands for
                          a space; Replace: the replacement; Strip: the character */
    size_t affix_n;
    mha_regex *regex;    /* Replace */
    const char *pattern; /* Replace: a literal pattern, else NULL */
    size_t pattern_n;
    int64_t start, stop; /* Strip: characters at most at each end */
    bool keep_first;     /* Metaspace: a space at the very start is not one that was added */
    bool cleanup;        /* WordPiece: no spaces before punctuation and contractions */
} mha_decoder;

typedef struct mha_decoders {
    mha_decoder *v;
    size_t n;
} mha_decoders;

/* Strings one after the other: the i-th ends at ends[i]. */
typedef struct mha_strings {
    mha_buf bytes;
    size_t *ends;
    size_t n, capacity;
} mha_strings;

void mha_strings_init(mha_strings *s, size_t ceiling);
void mha_strings_release(mha_strings *s);
/* Adds bytes to the string that is being made; mha_strings_end ends it. */
mha_status mha_strings_add(mha_strings *s, const char *bytes, size_t n, mha_err *err);
mha_status mha_strings_end(mha_strings *s, mha_err *err);

/* `json` may be NULL or null. */
mha_status mha_decoders_parse(mha_decoders *out, mha_arena *arena, const json_t *json,
                              mha_err *err);
/* What the decoders turn into a space where pieces have it: *n bytes, NULL when there is no such
 * thing. */
const char *mha_decoders_space_mark(const mha_decoders *d, size_t *n);
/* Whether pieces like "<0xE2>" become bytes. */
bool mha_decoders_have_bytes(const mha_decoders *d);
void mha_decoders_release(mha_decoders *d);
/* Rewrites *pieces, whose strings are valid UTF-8; joined, they are the text. Without any decoder a
 * space goes between pieces. */
mha_status mha_decoders_apply(const mha_decoders *d, mha_strings *pieces, mha_err *err);

#endif
