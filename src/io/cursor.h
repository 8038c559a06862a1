/* cursor.h: the one way in which bytes of a file are read: a bounded cursor over memory.
 * Every read checks the bounds first and fails with "FILE: at byte N: WHAT: needs X bytes, Y left".
 */
#ifndef MHA_IO_CURSOR_H
#define MHA_IO_CURSOR_H

#include "mha/err.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mha_cursor {
    const unsigned char *data;
    size_t size, at;
    const char *file; /* borrowed, for messages */
} mha_cursor;

/* Little-endian reads; `what` names the field in the message. */
mha_status mha_cursor_u8(mha_cursor *c, uint8_t *out, const char *what, mha_err *err);
mha_status mha_cursor_u16(mha_cursor *c, uint16_t *out, const char *what, mha_err *err);
mha_status mha_cursor_u32(mha_cursor *c, uint32_t *out, const char *what, mha_err *err);
mha_status mha_cursor_u64(mha_cursor *c, uint64_t *out, const char *what, mha_err *err);
/* *out = n borrowed bytes. */
mha_status mha_cursor_bytes(mha_cursor *c, const unsigned char **out, uint64_t n, const char *what,
                            mha_err *err);
mha_status mha_cursor_seek(mha_cursor *c, uint64_t at, const char *what, mha_err *err);
size_t mha_cursor_left(const mha_cursor *c);

#endif
