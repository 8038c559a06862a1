/* buf.c: the growable byte buffer. It may not pass its ceiling, whatever it is fed. */
#include "base/buf.h"

#include "base/fail.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 64

void mha_buf_init(mha_buf *b, size_t ceiling)
{
    *b = (mha_buf){.ceiling = ceiling};
}

void mha_buf_release(mha_buf *b)
{
    mha_free(b->data);
    b->data = NULL;
    b->size = b->capacity = 0;
}

void mha_buf_clear(mha_buf *b)
{
    b->size = 0;
    if (b->data)
        b->data[0] = '\0';
}

/* Makes room for n more bytes and the NUL. */
static mha_status buf_reserve(mha_buf *b, size_t n, mha_err *err)
{
    size_t needed, capacity;
    void *data = b->data;
    if (n > b->ceiling - b->size || mha_add_overflows(b->size + n, 1, &needed))
        return mha_fail(err, MHA_ERR_LIMIT, "text of more than %zu bytes", b->ceiling);
    if (needed <= b->capacity)
        return MHA_OK;
    if (mha_mul_overflows(b->capacity, 2, &capacity) || capacity > b->ceiling)
        capacity = needed;
    if (capacity < needed)
        capacity = needed;
    if (capacity < FIRST_CAPACITY)
        capacity = FIRST_CAPACITY;
    MHA_TRY(mha_grow(&data, b->size, capacity, 1, err));
    b->data = data;
    b->capacity = capacity;
    return MHA_OK;
}

mha_status mha_buf_add(mha_buf *b, const void *bytes, size_t n, mha_err *err)
{
    MHA_TRY(buf_reserve(b, n, err));
    if (n > 0)
        memcpy(b->data + b->size, bytes, n);
    b->size += n;
    b->data[b->size] = '\0';
    return MHA_OK;
}

mha_status mha_buf_adds(mha_buf *b, const char *s, mha_err *err)
{
    return mha_buf_add(b, s, strlen(s), err);
}

mha_status mha_buf_addf(mha_buf *b, mha_err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return mha_fail(err, MHA_ERR_ARG, "text cannot be formatted: \"%s\"", format);
    MHA_TRY(buf_reserve(b, (size_t)n, err));
    va_start(args, format);
    vsnprintf(b->data + b->size, (size_t)n + 1, format, args);
    va_end(args);
    b->size += (size_t)n;
    return MHA_OK;
}
