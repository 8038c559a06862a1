/* bytelevel.c: the byte alphabet, computed rather than tabulated. It may not touch text. */
#include "text/bytelevel.h"

#include "text/unicode.h"

/* Bytes below 0x21, 0x7f–0xa0 and 0xad are the ones that are moved. */
uint32_t mha_byte_to_char(uint8_t byte)
{
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7f && byte <= 0xa0)
        return 0x121u + (byte - 0x7fu);
    if (byte == 0xad)
        return 0x143;
    return byte;
}

int mha_char_to_byte(uint32_t c)
{
    if (c >= 0x100 && c <= 0x120)
        return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142)
        return (int)(c - 0x121 + 0x7f);
    if (c == 0x143)
        return 0xad;
    if (c > 0xff || mha_byte_to_char((uint8_t)c) != c)
        return -1;
    return (int)c;
}

size_t mha_bytes_of_piece(const char *s, size_t n, char *out, size_t cap)
{
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += mha_char_next(s + i, &c);
        int byte = mha_char_to_byte(c);
        if (byte < 0)
            return (size_t)-1;
        if (count < cap)
            out[count] = (char)byte;
        count++;
    }
    return count;
}
