/* number.c: formatting of single values. It may not know of tables, and it may not depend on the
 * locale that the calling program has chosen. */
#include "store/number.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* printf takes the point from the locale, which may even be several bytes long: whatever is not
 * part of a number in the C locale is that point. Returns the new length. */
static size_t point_restore(char *s)
{
    size_t n = 0;
    bool inside = false;
    for (const char *p = s; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e';
        if (plain || !inside)
            s[n++] = plain ? *p : '.';
        inside = !plain;
    }
    s[n] = '\0';
    return n;
}

size_t mha_number_format(char out[MHA_NUMBER_SIZE], double value, int digits)
{
    assert(isfinite(value));
    snprintf(out, MHA_NUMBER_SIZE, "%.*g", digits, value == 0 ? 0.0 : value);
    return point_restore(out);
}

size_t mha_number_fixed(char out[MHA_NUMBER_SIZE], double value, int decimals)
{
    assert(fabs(value) < 1e15 && decimals >= 0 && decimals <= 9);
    /* "-0.00" says nothing that "0.00" does not. */
    if (fabs(value) < 0.5 * pow(10, -decimals))
        value = 0;
    snprintf(out, MHA_NUMBER_SIZE, "%.*f", decimals, value);
    return point_restore(out);
}

void mha_number_json_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        switch (c) {
        case '"':
        case '\\':
            fputc('\\', f);
            fputc(c, f);
            break;
        case '\n':
            fputs("\\n", f);
            break;
        case '\r':
            fputs("\\r", f);
            break;
        case '\t':
            fputs("\\t", f);
            break;
        default:
            if (c < 0x20 || c == 0x7f)
                fprintf(f, "\\u%04x", c);
            else
                fputc(c, f);
        }
    }
    fputc('"', f);
}

mha_status mha_text_clean(char **out, mha_arena *a, const char *s, mha_err *err)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t n = strlen(s), bad = 0, size, used = 0;
    uint32_t cp;
    for (size_t i = 0, len; i < n; i += len) {
        len = mha_utf8_decode(s + i, n - i, &cp);
        bad += len == 0;
        len += len == 0;
    }
    if (bad == 0)
        return mha_arena_strndup(out, a, s, n, err);
    if (mha_mul_overflows(bad, sizeof replacement - 2, &size) || mha_add_overflows(n, size, &size))
        return mha_fail(err, MHA_ERR_LIMIT, "text of %zu bytes is too long", n);
    void *copy = NULL;
    MHA_TRY(mha_arena_alloc(&copy, a, size + 1, 1, err));
    *out = copy;
    for (size_t i = 0, len; i < n; i += len) {
        len = mha_utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            memcpy(*out + used, replacement, sizeof replacement - 1);
            used += sizeof replacement - 1;
            len = 1;
        } else {
            memcpy(*out + used, s + i, len);
            used += len;
        }
    }
    return MHA_OK;
}

size_t mha_text_escape(char out[MHA_ESCAPE_SIZE], uint32_t cp)
{
    if (cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0))
        return 0;
    int n = cp == '\n'   ? snprintf(out, MHA_ESCAPE_SIZE, "\\n")
            : cp == '\t' ? snprintf(out, MHA_ESCAPE_SIZE, "\\t")
                         : snprintf(out, MHA_ESCAPE_SIZE, "\\x%02x", (unsigned)cp);
    return (size_t)n;
}
