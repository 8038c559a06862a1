/* temporary.h: names for outputs that are not finished yet. */
#ifndef MHA_BASE_TEMPORARY_H
#define MHA_BASE_TEMPORARY_H

#include <stddef.h>

/* Bytes that a temporary name is longer than its path, with the NUL behind it. */
#define MHA_TEMPORARY_SUFFIX sizeof ".0123456789abcdef.tmp"

/* PATH.NUMBER.tmp with a number that nobody else has just used. */
void mha_temporary_name(char *out, size_t size, const char *path);

#endif
