/* aligned.h: a text that was rewritten, with the range of the original text behind every byte.
 *
 * All bytes of one character have the same range. Ranges are in bytes of the original text. */
#ifndef MHA_TEXT_ALIGNED_H
#define MHA_TEXT_ALIGNED_H

#include "mha/err.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mha_span {
    uint32_t start, end;
} mha_span;

typedef struct mha_aligned {
    char *data;     /* valid UTF-8 */
    mha_span *from; /* [n] */
    size_t n, capacity;
    size_t ceiling; /* more bytes than this are MHA_ERR_LIMIT */
} mha_aligned;

void mha_aligned_release(mha_aligned *a);
/* Room for `more` further bytes. */
mha_status mha_aligned_reserve(mha_aligned *a, size_t more, mha_err *err);
/* Appends n bytes that all come from `from`. */
mha_status mha_aligned_put(mha_aligned *a, const char *bytes, size_t n, mha_span from,
                           mha_err *err);
mha_status mha_aligned_put_char(mha_aligned *a, uint32_t c, mha_span from, mha_err *err);
/* Appends original text that starts at byte `base` of the original. */
mha_status mha_aligned_put_original(mha_aligned *a, const char *text, size_t n, uint32_t base,
                                    mha_err *err);
/* Appends src[start..end). */
mha_status mha_aligned_put_slice(mha_aligned *a, const mha_aligned *src, size_t start, size_t end,
                                 mha_err *err);
/* Appends a character that came out of src by an edit: change 0 replaces the next character of src,
 * which starts at *at, -k swallows k more behind it, +1 inserts and shares the range of what is
 * before. */
mha_status mha_aligned_put_edit(mha_aligned *a, const mha_aligned *src, size_t *at, uint32_t c,
                                int32_t change, mha_err *err);

#endif
