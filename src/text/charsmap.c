/* charsmap.c: reading and walking the table of character rules. Every index is checked where it is
 * used: a broken table finds no rule, it never leads out of the table. It may not rewrite text. */
#include "text/charsmap.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <string.h>

#define TABLE_MAX ((size_t)64 << 20)

static uint32_t load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static mha_status copy_units(mha_charsmap *m, const unsigned char *trie, size_t bytes, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc_raw(&p, bytes / 4, sizeof *m->units, err));
    m->units = p;
    m->unit_count = bytes / 4;
    for (size_t i = 0; i < m->unit_count; i++)
        m->units[i] = load_u32(trie + 4 * i);
    return MHA_OK;
}

mha_status mha_charsmap_read(mha_charsmap *out, const void *bytes, size_t n, mha_err *err)
{
    const unsigned char *data = bytes;
    *out = (mha_charsmap){0};
    if (n < 8 || n > TABLE_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "precompiled_charsmap has %zu bytes", n);
    size_t trie = load_u32(data);
    if (trie == 0 || trie % 4 != 0 || trie >= n - 4)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "precompiled_charsmap: a trie of %zu bytes in a table of %zu", trie, n);
    const char *pool = (const char *)data + 4 + trie;
    size_t pool_n = n - 4 - trie;
    if (pool[pool_n - 1] != '\0' || !mha_utf8_valid(pool, pool_n))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "precompiled_charsmap: the replacements are not UTF-8 with a NUL behind");
    mha_status status = copy_units(out, data + 4, trie, err);
    if (status == MHA_OK)
        status = mha_strndup(&out->pool, pool, pool_n, err);
    out->pool_n = pool_n;
    if (status != MHA_OK)
        mha_charsmap_release(out);
    return status;
}

void mha_charsmap_release(mha_charsmap *m)
{
    mha_free(m->units);
    mha_free(m->pool);
    *m = (mha_charsmap){0};
}

/* --- base64 ---------------------------------------------------------------------------------- */

/* The six bits of a letter, -1 for others. */
static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes s[0..n), n a multiple of 4, into out[] and returns the bytes; (size_t)-1 when it is no
 * base64. */
static size_t decode_base64(const char *s, size_t n, unsigned char *out)
{
    size_t used = 0, padding = 0;
    while (padding < 2 && padding < n && s[n - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            bool pad = i + k >= n - padding;
            int v = pad ? 0 : sextet(s[i + k]);
            if (v < 0)
                return (size_t)-1;
            bits = bits << 6 | (uint32_t)v;
        }
        for (int shift = 16; shift >= 0; shift -= 8)
            out[used++] = (unsigned char)(bits >> shift);
    }
    return used - padding;
}

mha_status mha_charsmap_read_base64(mha_charsmap *out, const char *text, size_t n, mha_err *err)
{
    void *bytes;
    *out = (mha_charsmap){0};
    if (n % 4 != 0 || n / 4 > TABLE_MAX / 3)
        return mha_fail(err, MHA_ERR_FORMAT, "precompiled_charsmap: %zu letters are no base64", n);
    MHA_TRY(mha_alloc_raw(&bytes, n / 4 * 3, 1, err));
    size_t decoded = decode_base64(text, n, bytes);
    mha_status status = decoded == (size_t)-1
                            ? mha_fail(err, MHA_ERR_FORMAT, "precompiled_charsmap is no base64")
                            : mha_charsmap_read(out, bytes, decoded, err);
    mha_free(bytes);
    return status;
}

/* --- the double array ------------------------------------------------------------------------ */

/* A unit holds the offset to its children, the byte that leads to it, and whether a value hangs
 * below it; a unit with the topmost bit set is such a value. */
static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200u) >> 6);
}

static uint32_t unit_label(uint32_t unit)
{
    return unit & 0x800000ffu;
}

static bool unit_has_value(uint32_t unit)
{
    return unit >> 8 & 1;
}

/* The replacement at a place of the pool; false when the table points nowhere. */
static bool replacement(const mha_charsmap *m, uint32_t at, mha_charsmap_match *out)
{
    if (at >= m->pool_n || !mha_char_starts(m->pool[at]))
        return false;
    out->to = m->pool + at;
    out->to_n = strlen(out->to);
    return true;
}

mha_charsmap_match mha_charsmap_find(const mha_charsmap *m, const char *s, size_t n, bool shortest)
{
    mha_charsmap_match found = {0};
    size_t at = unit_offset(m->units[0]);
    for (size_t i = 0; i < n && s[i] != '\0'; i++) {
        at ^= (unsigned char)s[i];
        if (at >= m->unit_count || unit_label(m->units[at]) != (unsigned char)s[i])
            break;
        uint32_t unit = m->units[at];
        at ^= unit_offset(unit);
        if (at >= m->unit_count)
            break;
        /* A rule that ends inside of a character would leave broken text behind it. */
        bool whole = i + 1 == n || mha_char_starts(s[i + 1]);
        if (whole && unit_has_value(unit) && replacement(m, m->units[at] & 0x7fffffffu, &found)) {
            found.n = i + 1;
            if (shortest)
                break;
        }
    }
    return found;
}
