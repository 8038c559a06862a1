/* unicode.h: the properties of characters that tokenizers ask for, and UTF-8 that is known to be
 * valid. Properties follow the installed utf8proc; characters that Unicode assigned after the
 * tables of the reference implementation were made can differ from it. */
#ifndef MHA_TEXT_UNICODE_H
#define MHA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool mha_char_is_space(uint32_t c);      /* White_Space */
bool mha_char_is_punct(uint32_t c);      /* P*, and every ASCII character that prints and is no
                                            letter, digit or space */
bool mha_char_is_numeric(uint32_t c);    /* N* */
bool mha_char_is_word(uint32_t c);       /* alphabetic, marks, Nd, Pc and the joiners */
bool mha_char_is_mark(uint32_t c);       /* M* */
bool mha_char_is_nonspacing(uint32_t c); /* Mn */
bool mha_char_is_control(uint32_t c);    /* Cc, Cf, Cs, Co */
bool mha_char_is_cjk(uint32_t c);        /* the ideograph blocks that BERT puts spaces around */

/* Whether b goes on with the grapheme cluster that a belongs to. *state is 0 at the start of a text
 * and carried from pair to pair. */
bool mha_char_joins(uint32_t a, uint32_t b, int32_t *state);

/* Lower case without context: 1 or 2 characters. */
size_t mha_char_lower(uint32_t c, uint32_t out[2]);

/* Longest full decomposition of one character (U+FDFA under NFKD). */
#define MHA_CHAR_DECOMPOSED_MAX 18

uint8_t mha_char_combining(uint32_t c); /* canonical combining class */
/* Full canonical (or compatibility) decomposition; at least one character. */
size_t mha_char_decompose(uint32_t c, bool compatibility, uint32_t out[MHA_CHAR_DECOMPOSED_MAX]);
/* The primary composite of two characters, 0 when they do not compose. */
uint32_t mha_char_compose(uint32_t a, uint32_t b);

/* Decodes the character at s, which must be valid UTF-8, and returns its length. */
static inline size_t mha_char_next(const char *s, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *c = u[0];
        return 1;
    }
    if (u[0] < 0xe0) {
        *c = (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
        return 2;
    }
    if (u[0] < 0xf0) {
        *c = (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
        return 3;
    }
    *c = (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 |
         (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    return 4;
}

/* Whether a byte starts a character. */
static inline bool mha_char_starts(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* The first position in [at, n] that starts a character or is n; the last one in [0, at]. */
static inline size_t mha_char_ceil(const char *s, size_t n, size_t at)
{
    while (at < n && !mha_char_starts(s[at]))
        at++;
    return at;
}

static inline size_t mha_char_floor(const char *s, size_t at)
{
    while (at > 0 && !mha_char_starts(s[at]))
        at--;
    return at;
}

bool mha_ascii_only(const char *s, size_t n);

#endif
