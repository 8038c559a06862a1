/* normalizer.c: a table of normalizers, each with what it reads from the file and what it does to
 * an aligned text. Every rewriting gives new characters the range of the character they come from,
 * as the reference implementation does. It may not split the text. */
#include "text/normalizer_private.h"

#include "base/fail.h"
#include "text/bytelevel.h"
#include "text/component.h"
#include "text/field.h"
#include "text/normal_form.h"
#include "text/unicode.h"

#include <string.h>

enum bert_flags { BERT_CLEAN = 1, BERT_CJK = 2, BERT_ACCENTS = 4, BERT_LOWER = 8 };
enum strip_flags { STRIP_LEFT = 1, STRIP_RIGHT = 2 };
enum form_flags { FORM_COMPATIBILITY = 1, FORM_COMPOSE = 2 };

/* What becomes of one character: 0 to 3 characters in out[]. */
typedef size_t (*char_rule)(unsigned flags, uint32_t c, uint32_t out[3]);

/* Rewrites character by character; new characters keep the old one's range. */
static mha_status rewrite(mha_normalizing *work, char_rule rule, unsigned flags, mha_err *err)
{
    const mha_aligned *src = &work->text;
    for (size_t i = 0; i < src->n;) {
        uint32_t c, out[3];
        mha_span from = src->from[i];
        i += mha_char_next(src->data + i, &c);
        size_t n = rule(flags, c, out);
        for (size_t k = 0; k < n; k++)
            MHA_TRY(mha_aligned_put_char(&work->spare, out[k], from, err));
    }
    mha_normalizing_swap(work);
    return MHA_OK;
}

/* The same in place, for ASCII text and rules that keep ASCII and do not lengthen it. */
static void rewrite_ascii(mha_aligned *text, char_rule rule, unsigned flags)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->n; i++) {
        uint32_t out[3];
        if (rule(flags, (unsigned char)text->data[i], out) == 0)
            continue;
        text->data[kept] = (char)out[0];
        text->from[kept++] = text->from[i];
    }
    text->n = kept;
}

/* --- BertNormalizer -------------------------------------------------------------------------- */

static mha_status parse_bert(mha_normalizer *n, mha_arena *arena, const json_t *o,
                             const char *where, mha_err *err)
{
    bool clean = false, cjk = false, lower = false;
    (void)arena;
    MHA_TRY(mha_field_bool(&clean, o, where, "clean_text", true, err));
    MHA_TRY(mha_field_bool(&cjk, o, where, "handle_chinese_chars", true, err));
    MHA_TRY(mha_field_bool(&lower, o, where, "lowercase", true, err));
    bool accents = lower;
    MHA_TRY(mha_field_bool(&accents, o, where, "strip_accents", false, err));
    n->flags = (clean ? BERT_CLEAN : 0) | (cjk ? BERT_CJK : 0) | (accents ? BERT_ACCENTS : 0) |
               (lower ? BERT_LOWER : 0);
    return MHA_OK;
}

static size_t bert_clean(unsigned flags, uint32_t c, uint32_t out[3])
{
    if (flags & BERT_CLEAN) {
        /* Tab, newline and carriage return are control characters, but white space first. */
        bool blank = c == '\t' || c == '\n' || c == '\r';
        if (!blank && (c == 0 || c == 0xfffd || mha_char_is_control(c)))
            return 0;
        if (blank || mha_char_is_space(c))
            c = ' ';
    }
    if ((flags & BERT_CJK) && mha_char_is_cjk(c)) {
        out[0] = out[2] = ' ';
        out[1] = c;
        return 3;
    }
    out[0] = c;
    return 1;
}

static size_t bert_lower(unsigned flags, uint32_t c, uint32_t out[3])
{
    if ((flags & BERT_ACCENTS) && mha_char_is_nonspacing(c))
        return 0;
    if (flags & BERT_LOWER)
        return mha_char_lower(c, out);
    out[0] = c;
    return 1;
}

static size_t bert_ascii(unsigned flags, uint32_t c, uint32_t out[3])
{
    return bert_clean(flags, c, out) == 0 ? 0 : bert_lower(flags, out[0], out);
}

static mha_status apply_bert(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    if (mha_ascii_only(work->text.data, work->text.n)) {
        rewrite_ascii(&work->text, bert_ascii, n->flags);
        return MHA_OK;
    }
    if (n->flags & (BERT_CLEAN | BERT_CJK))
        MHA_TRY(rewrite(work, bert_clean, n->flags, err));
    if (n->flags & BERT_ACCENTS) {
        MHA_TRY(mha_normal_form(&work->text, &work->spare, false, false, err));
        mha_normalizing_swap(work);
    }
    if (n->flags & (BERT_ACCENTS | BERT_LOWER))
        MHA_TRY(rewrite(work, bert_lower, n->flags, err));
    return MHA_OK;
}

/* --- Lowercase, StripAccents ----------------------------------------------------------------- */

static size_t lower(unsigned flags, uint32_t c, uint32_t out[3])
{
    (void)flags;
    return mha_char_lower(c, out);
}

static mha_status apply_lowercase(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    (void)n;
    if (!mha_ascii_only(work->text.data, work->text.n))
        return rewrite(work, lower, 0, err);
    rewrite_ascii(&work->text, lower, 0);
    return MHA_OK;
}

static size_t without_marks(unsigned flags, uint32_t c, uint32_t out[3])
{
    (void)flags;
    out[0] = c;
    return !mha_char_is_mark(c);
}

static mha_status apply_strip_accents(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    (void)n;
    if (mha_ascii_only(work->text.data, work->text.n))
        return MHA_OK;
    return rewrite(work, without_marks, 0, err);
}

/* --- NFC, NFD, NFKC, NFKD -------------------------------------------------------------------- */

/* Nothing below U+0300 changes under NFC, and no byte of it is as large as 0xcc. */
static bool below_u300(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] >= 0xcc)
            return false;
    }
    return true;
}

static mha_status apply_form(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *text = &work->text;
    bool same = n->flags == FORM_COMPOSE ? below_u300(text->data, text->n)
                                         : mha_ascii_only(text->data, text->n);
    if (same)
        return MHA_OK;
    MHA_TRY(mha_normal_form(text, &work->spare, n->flags & FORM_COMPATIBILITY,
                            n->flags & FORM_COMPOSE, err));
    mha_normalizing_swap(work);
    return MHA_OK;
}

/* --- Strip ----------------------------------------------------------------------------------- */

static mha_status parse_strip(mha_normalizer *n, mha_arena *arena, const json_t *o,
                              const char *where, mha_err *err)
{
    bool left = false, right = false;
    (void)arena;
    MHA_TRY(mha_field_bool(&left, o, where, "strip_left", true, err));
    MHA_TRY(mha_field_bool(&right, o, where, "strip_right", true, err));
    n->flags = (left ? STRIP_LEFT : 0) | (right ? STRIP_RIGHT : 0);
    return MHA_OK;
}

static mha_status apply_strip(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *text = &work->text;
    size_t start = 0, end = text->n;
    uint32_t c;
    while ((n->flags & STRIP_LEFT) && start < end) {
        size_t len = mha_char_next(text->data + start, &c);
        if (!mha_char_is_space(c))
            break;
        start += len;
    }
    while ((n->flags & STRIP_RIGHT) && end > start) {
        size_t last = mha_char_floor(text->data, end - 1);
        mha_char_next(text->data + last, &c);
        if (!mha_char_is_space(c))
            break;
        end = last;
    }
    MHA_TRY(mha_aligned_put_slice(&work->spare, text, start, end, err));
    mha_normalizing_swap(work);
    return MHA_OK;
}

/* --- Replace, Prepend ------------------------------------------------------------------------ */

static mha_status parse_content(mha_normalizer *n, mha_arena *arena, const json_t *o,
                                const char *where, const char *key, mha_err *err)
{
    const char *s;
    char *copy;
    MHA_TRY(mha_field_string(&s, &n->content_n, o, where, key, true, err));
    MHA_TRY(mha_arena_strndup(&copy, arena, s, n->content_n, err));
    n->content = copy;
    return MHA_OK;
}

static mha_status parse_replace(mha_normalizer *n, mha_arena *arena, const json_t *o,
                                const char *where, mha_err *err)
{
    MHA_TRY(parse_content(n, arena, o, where, "content", err));
    return mha_component_pattern(&n->regex, o, where, err);
}

/* The replacement has the range of the last character that it replaces; where there is none, of an
 * empty match at the very start, it stands before the text. */
static mha_status apply_replace(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *text = &work->text;
    if (text->n == 0)
        return MHA_OK;
    MHA_TRY(mha_regex_cut(n->regex, work->regex, text->data, text->n, work->cuts, err));
    for (size_t i = 0; i < work->cuts->n; i++) {
        mha_cut cut = work->cuts->v[i];
        if (!cut.match) {
            MHA_TRY(mha_aligned_put_slice(&work->spare, text, cut.start, cut.end, err));
            continue;
        }
        mha_span from = {work->start, work->start};
        if (cut.end > 0)
            from = text->from[cut.end - 1];
        MHA_TRY(mha_aligned_put(&work->spare, n->content, n->content_n, from, err));
    }
    mha_normalizing_swap(work);
    return MHA_OK;
}

static mha_status parse_prepend(mha_normalizer *n, mha_arena *arena, const json_t *o,
                                const char *where, mha_err *err)
{
    return parse_content(n, arena, o, where, "prepend", err);
}

static mha_status apply_prepend(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *text = &work->text;
    if (text->n == 0)
        return MHA_OK;
    MHA_TRY(mha_aligned_put(&work->spare, n->content, n->content_n, text->from[0], err));
    MHA_TRY(mha_aligned_put_slice(&work->spare, text, 0, text->n, err));
    mha_normalizing_swap(work);
    return MHA_OK;
}

/* --- ByteLevel ------------------------------------------------------------------------------- */

static mha_status apply_byte_level(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    (void)n;
    const mha_aligned *text = &work->text;
    for (size_t i = 0; i < text->n; i++)
        MHA_TRY(mha_aligned_put_char(&work->spare, mha_byte_to_char((uint8_t)text->data[i]),
                                     text->from[i], err));
    mha_normalizing_swap(work);
    return MHA_OK;
}

/* --- Nmt ------------------------------------------------------------------------------------- */

/* Control characters go; other kinds of space, and what stands for space, become spaces. */
static size_t nmt(unsigned flags, uint32_t c, uint32_t out[3])
{
    (void)flags;
    if ((c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f ||
        c == 0x8f || c == 0x9f)
        return 0;
    bool space = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                 (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xfeff || c == 0xfffd;
    out[0] = space ? ' ' : c;
    return 1;
}

static mha_status apply_nmt(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    (void)n;
    return rewrite(work, nmt, 0, err);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct mha_normalizer_kind kinds[] = {
    {"BertNormalizer", 0, parse_bert, apply_bert},
    {"NFC", FORM_COMPOSE, NULL, apply_form},
    {"NFD", 0, NULL, apply_form},
    {"NFKC", FORM_COMPATIBILITY | FORM_COMPOSE, NULL, apply_form},
    {"NFKD", FORM_COMPATIBILITY, NULL, apply_form},
    {"Lowercase", 0, NULL, apply_lowercase},
    {"StripAccents", 0, NULL, apply_strip_accents},
    {"Strip", 0, parse_strip, apply_strip},
    {"Replace", 0, parse_replace, apply_replace},
    {"Prepend", 0, parse_prepend, apply_prepend},
    {"ByteLevel", 0, NULL, apply_byte_level},
    {"Nmt", 0, NULL, apply_nmt},
    {"Precompiled", 0, mha_precompiled_parse, mha_precompiled_apply},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

typedef struct parsing {
    mha_normalizers *out;
    mha_arena *arena;
} parsing;

static mha_status parse_one(void *context, const json_t *o, const char *where, mha_err *err)
{
    parsing *p = context;
    const char *names[KIND_COUNT];
    size_t kind;
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i] = kinds[i].name;
    MHA_TRY(mha_field_kind(&kind, o, where, names, KIND_COUNT, err));
    if (p->out->n == MHA_COMPONENTS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d normalizers", where,
                        MHA_COMPONENTS_MAX);
    mha_normalizer *n = &p->out->v[p->out->n++];
    n->kind = &kinds[kind];
    n->flags = kinds[kind].flags;
    return kinds[kind].parse ? kinds[kind].parse(n, p->arena, o, where, err) : MHA_OK;
}

mha_status mha_normalizers_parse(mha_normalizers *out, mha_arena *arena, const json_t *json,
                                 mha_err *err)
{
    void *v;
    parsing p = {out, arena};
    *out = (mha_normalizers){0};
    MHA_TRY(mha_alloc(&v, MHA_COMPONENTS_MAX, sizeof *out->v, err));
    out->v = v;
    return mha_component_each(json, "normalizer", "normalizers", parse_one, &p, err);
}

void mha_normalizers_release(mha_normalizers *n)
{
    for (size_t i = 0; i < n->n; i++) {
        mha_regex_free(n->v[i].regex);
        mha_charsmap_release(&n->v[i].charsmap);
        mha_trie_release(&n->v[i].kept);
    }
    mha_free(n->v);
    *n = (mha_normalizers){0};
}

mha_status mha_normalizers_apply(const mha_normalizers *n, mha_normalizing *work, mha_err *err)
{
    for (size_t i = 0; i < n->n; i++)
        MHA_TRY(n->v[i].kind->apply(&n->v[i], work, err));
    return MHA_OK;
}
