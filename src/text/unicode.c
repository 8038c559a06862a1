/* unicode.c: character properties from utf8proc, with a comparison or two in front so that ASCII
 * never gets there. It may not know about any tokenizer: what is done with a property is decided by
 * normalizer.c and pretokenizer.c. */
#include "text/unicode.h"

#include <string.h>
#include <utf8proc.h>

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

static bool between(uint32_t c, uint32_t first, uint32_t last)
{
    return c - first <= last - first;
}

bool mha_char_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || between(c, 9, 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || between(c, 0x2000, 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool mha_char_is_punct(uint32_t c)
{
    if (c < 0x80)
        return between(c, 33, 47) || between(c, 58, 64) || between(c, 91, 96) ||
               between(c, 123, 126);
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool mha_char_is_numeric(uint32_t c)
{
    if (c < 0x80)
        return between(c, '0', '9');
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

/* Letters outside the category L that are alphabetic: circled and squared Latin ones. */
static bool is_enclosed_letter(uint32_t c)
{
    return between(c, 0x24b6, 0x24e9) || between(c, 0x1f130, 0x1f149) ||
           between(c, 0x1f150, 0x1f169) || between(c, 0x1f170, 0x1f189);
}

bool mha_char_is_word(uint32_t c)
{
    if (c < 0x80)
        return between(c, '0', '9') || between(c | 0x20, 'a', 'z') || c == '_';
    utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200c || c == 0x200d || is_enclosed_letter(c);
}

bool mha_char_is_mark(uint32_t c)
{
    if (c < 0x300)
        return false;
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool mha_char_is_nonspacing(uint32_t c)
{
    return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN;
}

bool mha_char_is_control(uint32_t c)
{
    if (c < 0x80)
        return c < 0x20 || c == 0x7f;
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO;
}

/* The sixth block starts at U+2B920, not at U+2B820 where Unicode has it: that is what the
 * tokenizers in use were trained with. */
bool mha_char_is_cjk(uint32_t c)
{
    if (c < 0x3400)
        return false;
    return between(c, 0x4e00, 0x9fff) || between(c, 0x3400, 0x4dbf) ||
           between(c, 0x20000, 0x2a6df) || between(c, 0x2a700, 0x2b73f) ||
           between(c, 0x2b740, 0x2b81f) || between(c, 0x2b920, 0x2ceaf) ||
           between(c, 0xf900, 0xfaff) || between(c, 0x2f800, 0x2fa1f);
}

bool mha_char_joins(uint32_t a, uint32_t b, int32_t *state)
{
    return !utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, state);
}

size_t mha_char_lower(uint32_t c, uint32_t out[2])
{
    if (c < 0x80) {
        out[0] = between(c, 'A', 'Z') ? c | 0x20 : c;
        return 1;
    }
    if (c == 0x130) {
        /* The only character with a longer lower case: i and a dot above. */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

uint8_t mha_char_combining(uint32_t c)
{
    if (c < 0x300)
        return 0;
    return (uint8_t)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

size_t mha_char_decompose(uint32_t c, bool compatibility, uint32_t out[MHA_CHAR_DECOMPOSED_MAX])
{
    if (c < 0xa0) {
        out[0] = c;
        return 1;
    }
    utf8proc_int32_t parts[MHA_CHAR_DECOMPOSED_MAX];
    int options = compatibility ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, parts,
                                                 MHA_CHAR_DECOMPOSED_MAX, options, &boundary);
    if (n < 1 || n > MHA_CHAR_DECOMPOSED_MAX) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++)
        out[i] = (uint32_t)parts[i];
    return (size_t)n;
}

uint32_t mha_char_compose(uint32_t a, uint32_t b)
{
    /* Below U+0300 nothing is the second half of a composite. */
    if (b < 0x300)
        return 0;
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    utf8proc_ssize_t n = utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return n == 1 ? (uint32_t)pair[0] : 0;
}

bool mha_ascii_only(const char *s, size_t n)
{
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, s + i, 8);
        seen |= word;
    }
    for (; i < n; i++)
        seen |= (uint64_t)(unsigned char)s[i];
    return (seen & 0x8080808080808080u) == 0;
}
