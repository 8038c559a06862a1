/* cursor.c: bounds-checked little-endian reads. No reader of the library looks at bytes of a file
 * in any other way before their place has been checked here. It may not allocate or know formats.
 */
#include "io/cursor.h"

#include "base/fail.h"

size_t mha_cursor_left(const mha_cursor *c)
{
    return c->size - c->at;
}

mha_status mha_cursor_bytes(mha_cursor *c, const unsigned char **out, uint64_t n, const char *what,
                            mha_err *err)
{
    if (n > mha_cursor_left(c))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: %s: needs %llu bytes, %zu left",
                        c->file, c->at, what, (unsigned long long)n, mha_cursor_left(c));
    *out = c->data ? c->data + c->at : NULL;
    c->at += (size_t)n;
    return MHA_OK;
}

static mha_status read_le(mha_cursor *c, uint64_t *out, unsigned n, const char *what, mha_err *err)
{
    const unsigned char *p = NULL;
    MHA_TRY(mha_cursor_bytes(c, &p, n, what, err));
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    *out = value;
    return MHA_OK;
}

mha_status mha_cursor_u8(mha_cursor *c, uint8_t *out, const char *what, mha_err *err)
{
    uint64_t value = 0;
    MHA_TRY(read_le(c, &value, 1, what, err));
    *out = (uint8_t)value;
    return MHA_OK;
}

mha_status mha_cursor_u16(mha_cursor *c, uint16_t *out, const char *what, mha_err *err)
{
    uint64_t value = 0;
    MHA_TRY(read_le(c, &value, 2, what, err));
    *out = (uint16_t)value;
    return MHA_OK;
}

mha_status mha_cursor_u32(mha_cursor *c, uint32_t *out, const char *what, mha_err *err)
{
    uint64_t value = 0;
    MHA_TRY(read_le(c, &value, 4, what, err));
    *out = (uint32_t)value;
    return MHA_OK;
}

mha_status mha_cursor_u64(mha_cursor *c, uint64_t *out, const char *what, mha_err *err)
{
    return read_le(c, out, 8, what, err);
}

mha_status mha_cursor_seek(mha_cursor *c, uint64_t at, const char *what, mha_err *err)
{
    if (at > c->size)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s at byte %llu is past the end, byte %zu",
                        c->file, what, (unsigned long long)at, c->size);
    c->at = (size_t)at;
    return MHA_OK;
}
