/* number.h: numbers and texts as they stand in results: the same bytes in every locale. */
#ifndef MHA_STORE_NUMBER_H
#define MHA_STORE_NUMBER_H

#include "base/mem.h"

#include <stdio.h>

#define MHA_NUMBER_SIZE 32

#define MHA_NUMBER_DIGITS 9 /* significant digits in files */

/* 1 to 17 significant digits, no trailing zeros, '.' as the point, "0" for negative zero. The value
 * must be finite. Returns the length. */
size_t mha_number_format(char out[MHA_NUMBER_SIZE], double value, int digits);

/* A fixed number of decimals, rounded; '.' as the point. |value| < 1e15, decimals <= 9. */
size_t mha_number_fixed(char out[MHA_NUMBER_SIZE], double value, int decimals);

/* Writes s as a JSON string with its quotes. s is valid UTF-8. */
void mha_number_json_text(FILE *f, const char *s);

/* *out = a copy of s in which every byte that is not part of valid UTF-8 became U+FFFD. */
mha_status mha_text_clean(char **out, mha_arena *a, const char *s, mha_err *err);

/* Control characters must neither steer a terminal nor break a figure. When cp is one, out is how
 * it is shown instead ("\n", "\t", "\x1b") and the length is returned; otherwise 0. */
#define MHA_ESCAPE_SIZE 8
size_t mha_text_escape(char out[MHA_ESCAPE_SIZE], uint32_t cp);

#endif
