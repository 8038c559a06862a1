/* embedded.h: files that the build turned into arrays (tools/embed). */
#ifndef MHA_BASE_EMBEDDED_H
#define MHA_BASE_EMBEDDED_H

#include <stddef.h>

struct mha_embedded {
    const char *name; /* the file's name without directory and suffix */
    const char *text; /* its bytes, and a NUL behind them */
    size_t size;
};

#endif
