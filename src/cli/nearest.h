/* nearest.h: the closest name to one that was mistyped. */
#ifndef MHA_CLI_NEAREST_H
#define MHA_CLI_NEAREST_H

#include <stddef.h>

/* How many letters have to be inserted, dropped, replaced or swapped with their neighbour. Letters
 * after the 63rd are ignored: no name is that long. */
size_t mha_edit_distance(const char *a, const char *b);

/* Keeps the better of two candidates: start with *best = NULL. The first of equals stays. */
typedef struct mha_nearest {
    const char *word;
    const char *best;
    size_t distance;
} mha_nearest;
void mha_nearest_try(mha_nearest *n, const char *candidate);

#endif
