/* utf8.h: strict UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
#ifndef MHA_BASE_UTF8_H
#define MHA_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one code point of s[0..n). Returns its length 1..4, or 0 when the bytes there are not
 * valid UTF-8 (or n is 0); *cp is set only on success. */
size_t mha_utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Writes cp to out[0..4) and returns the length 1..4; 0 for surrogates and above U+10FFFF. */
size_t mha_utf8_encode(uint32_t cp, char out[4]);
bool mha_utf8_valid(const char *s, size_t n);
size_t mha_utf8_count(const char *s, size_t n); /* code points; s must be valid */

#endif
