/* charsmap.h: the precompiled table of character rules that SentencePiece models carry: which byte
 * sequences are rewritten, and to what.
 *
 * Layout: u32 bytes of the trie | the trie, a double array of u32 units | replacements, each ending
 * in a NUL. All numbers are little-endian. The table is hostile input. */
#ifndef MHA_TEXT_CHARSMAP_H
#define MHA_TEXT_CHARSMAP_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_charsmap {
    uint32_t *units; /* [unit_count] */
    size_t unit_count;
    char *pool; /* [pool_n], valid UTF-8, ends in a NUL */
    size_t pool_n;
} mha_charsmap;

typedef struct mha_charsmap_match {
    size_t n;       /* bytes that are rewritten, 0: no rule */
    const char *to; /* borrowed */
    size_t to_n;
} mha_charsmap_match;

/* Copies the table. */
mha_status mha_charsmap_read(mha_charsmap *out, const void *bytes, size_t n, mha_err *err);
/* The same from base64, as tokenizer files have it. */
mha_status mha_charsmap_read_base64(mha_charsmap *out, const char *text, size_t n, mha_err *err);
void mha_charsmap_release(mha_charsmap *m);

/* The rule for the shortest, or else the longest, prefix of s[0..n) that has one. */
mha_charsmap_match mha_charsmap_find(const mha_charsmap *m, const char *s, size_t n, bool shortest);

#endif
