/* bytes.c: the assembler of bytes.h. */
#include "support/bytes.h"

#include "base/buf.h"
#include "base/mem.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static void add(mha_buf *b, const void *p, size_t n)
{
    assert_int_equal(mha_buf_add(b, p, n, NULL), MHA_OK);
}

static void add_le(mha_buf *b, unsigned long long value, unsigned n)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    add(b, bytes, n);
}

static void add_fill(mha_buf *b, int byte, size_t n)
{
    unsigned char chunk[4096];
    memset(chunk, byte, sizeof chunk);
    for (size_t piece; n > 0; n -= piece) {
        piece = n < sizeof chunk ? n : sizeof chunk;
        add(b, chunk, piece);
    }
}

/* |text| (or ~text~) with its length before it in `prefix` bytes. Returns what follows. */
static const char *add_text(mha_buf *b, const char *p, unsigned prefix, int json)
{
    const char *end = *p == '|' || *p == '~' ? strchr(p + 1, *p) : NULL;
    if (!end)
        fail_msg("recipe: a text must stand between bars: %s", p);
    p++;
    if (prefix > 0)
        add_le(b, (unsigned long long)(end - p), prefix);
    for (; p < end; p++)
        add(b, json && *p == '\'' ? "\"" : p, 1);
    return end + 1;
}

static const char *add_hex(mha_buf *b, const char *p)
{
    char pair[3] = {0};
    while (*p && *p != ' ') {
        memcpy(pair, p, 2);
        add_fill(b, (int)strtoul(pair, NULL, 16), 1);
        p += 2;
    }
    return p;
}

static const char *add_number(mha_buf *b, char kind, const char *p)
{
    char *end = NULL;
    if (kind == 'f' || kind == 'd') {
        double value = strtod(p, &end);
        float narrow = (float)value;
        add(b, kind == 'd' ? (void *)&value : (void *)&narrow, kind == 'd' ? 8 : 4);
        return end;
    }
    unsigned long long value = strtoull(p, &end, 0);
    if (kind == 'z') {
        add_fill(b, 0, value);
    } else if (kind == 'w') {
        add_fill(b, (int)value, strtoull(end + 1, &end, 0));
    } else if (kind == 'a') {
        add_fill(b, 0, (value - b->size % value) % value);
    } else {
        const char *kinds = "bhiq", *found = strchr(kinds, kind);
        if (!found || end == p)
            fail_msg("recipe: unknown token %c%s", kind, p);
        add_le(b, value, 1U << (found - kinds));
    }
    return end;
}

/* Bytes of the length before a text. */
static unsigned text_prefix(char kind)
{
    return kind == 't' ? 0 : kind == 'n' ? 2 : kind == 'm' ? 4 : 8;
}

unsigned char *bytes_make(const char *recipe, size_t *n)
{
    mha_buf b;
    mha_buf_init(&b, (size_t)128 << 20);
    for (const char *p = recipe; *p;) {
        char kind = *p++;
        if (kind == ' ')
            continue;
        if (strchr("tsjnm", kind))
            p = add_text(&b, p, text_prefix(kind), kind == 'j');
        else
            p = kind == 'x' ? add_hex(&b, p) : add_number(&b, kind, p);
    }
    unsigned char *out = NULL;
    assert_int_equal(mha_alloc_raw((void **)&out, b.size, 1, NULL), MHA_OK);
    if (b.size > 0)
        memcpy(out, b.data, b.size);
    *n = b.size;
    mha_buf_release(&b);
    return out;
}
