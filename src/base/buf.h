/* buf.h: a growable byte buffer with a ceiling given at init, so that no input can make it grow
 * without bound. `data` always ends with a NUL that is not counted in `size`. */
#ifndef MHA_BASE_BUF_H
#define MHA_BASE_BUF_H

#include "mha/err.h"
#include <stddef.h>

typedef struct mha_buf {
    char *data; /* NULL while nothing was added */
    size_t size, capacity, ceiling;
} mha_buf;

void mha_buf_init(mha_buf *b, size_t ceiling);
void mha_buf_release(mha_buf *b);
void mha_buf_clear(mha_buf *b); /* size 0, memory kept */

/* MHA_ERR_LIMIT when the ceiling would be passed, MHA_ERR_NOMEM when memory is out. */
mha_status mha_buf_add(mha_buf *b, const void *bytes, size_t n, mha_err *err);
mha_status mha_buf_adds(mha_buf *b, const char *s, mha_err *err);
mha_status mha_buf_addf(mha_buf *b, mha_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
