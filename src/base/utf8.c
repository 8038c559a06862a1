/* utf8.c: strict UTF-8 by the table of well-formed byte sequences (Unicode Standard, table 3-7).
 * It may not repair anything: what to do with broken bytes is the caller's decision. */
#include "base/utf8.h"

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t mha_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    if (n == 0)
        return 0;
    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    if (u[0] < 0xc2 || u[0] > 0xf4)
        return 0;
    size_t len = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    if (n < len || !is_tail(u[1]))
        return 0;
    if (len == 2) {
        *cp = (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
        return 2;
    }
    /* The second byte rules out overlong forms, surrogates and what is above U+10FFFF. */
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f) || !is_tail(u[2]))
        return 0;
    if (len == 3) {
        *cp = (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
        return 3;
    }
    if (!is_tail(u[3]))
        return 0;
    *cp = (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 |
          (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    return 4;
}

size_t mha_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return 0;
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

bool mha_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = mha_utf8_decode(s + i, n - i, &cp);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

size_t mha_utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += !is_tail((unsigned char)s[i]);
    return count;
}
