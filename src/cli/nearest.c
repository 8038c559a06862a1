/* nearest.c: edit distance, for suggestions after a mistyped command, option or value. It prints
 * nothing; the caller words the message. */
#include "cli/nearest.h"

#include <string.h>

#define LETTERS 64

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: d[i][j] is the distance of the first i letters of a and j of b. */
size_t mha_edit_distance(const char *a, const char *b)
{
    size_t d[LETTERS][LETTERS];
    size_t n = strnlen(a, LETTERS - 1), m = strnlen(b, LETTERS - 1);
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = smaller(replaced, smaller(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

void mha_nearest_try(mha_nearest *n, const char *candidate)
{
    size_t distance = mha_edit_distance(n->word, candidate);
    if (n->best && distance >= n->distance)
        return;
    n->best = candidate;
    n->distance = distance;
}
