/* bytes.h: binary files written as text, so that a table of broken files can be read.
 *
 * A recipe is a row of tokens, white space between them:
 *   b7 h7 i7 q7     unsigned 8, 16, 32, 64 bits little-endian (also negative: b-1)
 *   f1.5 d1.5       float32, float64
 *   t|text|         the bytes of the text
 *   s|text|         u64 length and the bytes: a GGUF string
 *   j|{'a':1}|      the same with ' turned into ": a safetensors header
 *   n|text|         u16 length and the bytes: an NPY header of version 1
 *   m|text|         u32 length and the bytes: one of version 2
 *   t~text~         ~ instead of | everywhere, for texts that hold |
 *   x01ff           hexadecimal bytes
 *   z16             16 zero bytes
 *   w65,200         200 times the byte 65
 *   a32             zero bytes up to a multiple of 32 */
#ifndef MHA_TESTS_SUPPORT_BYTES_H
#define MHA_TESTS_SUPPORT_BYTES_H

#include <stddef.h>

/* Owned memory of exactly *n bytes (mha_free), so that a sanitizer sees the first byte behind.
 * Fails the test on a recipe that is not understood. */
unsigned char *bytes_make(const char *recipe, size_t *n);

#endif
