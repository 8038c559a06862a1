/* normalizer_charsmap.c: the two normalizers that rewrite by a precompiled table of character
 * rules: Precompiled, as tokenizer.json files have it, and SentencePiece's own. They differ where
 * several characters in a row have a rule together, and in what they do to spaces; each follows the
 * library whose files it reads. */
#include "text/normalizer_private.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/component.h"
#include "text/field.h"
#include "text/unicode.h"

#include <string.h>

/* --- Precompiled ----------------------------------------------------------------------------- */

/* A grapheme cluster of fewer bytes than this is looked up as a whole. The shortest rule that its
 * start matches then stands for the whole of it; that loses marks, but it is what the models were
 * trained with. */
#define CLUSTER_BYTES 6

typedef struct rewriting {
    const mha_aligned *src;
    mha_aligned *dst;
    size_t at; /* bytes of src that the result accounts for */
    bool pending;
    uint32_t c; /* the last character, whose change may still grow */
    int32_t change;
} rewriting;

static mha_status flush(rewriting *r, mha_err *err)
{
    if (!r->pending)
        return MHA_OK;
    r->pending = false;
    return mha_aligned_put_edit(r->dst, r->src, &r->at, r->c, r->change, err);
}

static mha_status put(rewriting *r, uint32_t c, int32_t change, mha_err *err)
{
    MHA_TRY(flush(r, err));
    r->pending = true;
    r->c = c;
    r->change = change;
    return MHA_OK;
}

/* `old` characters become s[0..n). Characters beyond `old` are inserted; where there are fewer, the
 * last character that stands there swallows the rest. Nothing swallows what is dropped at the very
 * start: from there on, ranges lag behind, as they do in the reference implementation. */
static mha_status replace(rewriting *r, size_t old, const char *s, size_t n, mha_err *err)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        uint32_t c;
        i += mha_char_next(s + i, &c);
        MHA_TRY(put(r, c, count >= old, err));
    }
    if (count < old && r->pending)
        r->change -= (int32_t)(old - count);
    return MHA_OK;
}

/* Bytes of the grapheme cluster at the start of s[0..n), and its characters. */
static size_t cluster(const char *s, size_t n, size_t *count)
{
    uint32_t previous, next;
    int32_t state = 0;
    size_t at = mha_char_next(s, &previous);
    *count = 1;
    while (at < n) {
        size_t len = mha_char_next(s + at, &next);
        if (previous < 0x80 && next < 0x80 && previous != '\r')
            break;
        if (!mha_char_joins(previous, next, &state))
            break;
        at += len;
        previous = next;
        ++*count;
    }
    return at;
}

static mha_status rewrite_cluster(rewriting *r, const mha_charsmap *map, const char *s, size_t n,
                                  size_t count, bool *changed, mha_err *err)
{
    if (n < CLUSTER_BYTES) {
        mha_charsmap_match whole = mha_charsmap_find(map, s, n, true);
        if (whole.n > 0) {
            *changed = true;
            return replace(r, count, whole.to, whole.to_n, err);
        }
    }
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(s + i, &c);
        mha_charsmap_match one = mha_charsmap_find(map, s + i, len, true);
        *changed = *changed || one.n > 0;
        MHA_TRY(one.n > 0 ? replace(r, 1, one.to, one.to_n, err) : put(r, c, 0, err));
        i += len;
    }
    return MHA_OK;
}

mha_status mha_precompiled_parse(mha_normalizer *n, mha_arena *arena, const json_t *o,
                                 const char *where, mha_err *err)
{
    const char *s;
    size_t size;
    (void)arena;
    MHA_TRY(mha_field_string(&s, &size, o, where, "precompiled_charsmap", true, err));
    mha_status status = mha_charsmap_read_base64(&n->charsmap, s, size, err);
    return status == MHA_OK ? status : mha_fail_prefix(err, status, where);
}

mha_status mha_precompiled_apply(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *src = &work->text;
    rewriting r = {.src = src, .dst = &work->spare};
    bool changed = false;
    for (size_t i = 0; i < src->n;) {
        size_t count;
        size_t len = cluster(src->data + i, src->n - i, &count);
        MHA_TRY(rewrite_cluster(&r, &n->charsmap, src->data + i, len, count, &changed, err));
        i += len;
    }
    MHA_TRY(flush(&r, err));
    if (changed)
        mha_normalizing_swap(work);
    else
        work->spare.n = 0;
    return MHA_OK;
}

/* --- SentencePiece --------------------------------------------------------------------------- */

#define MARK   "\xe2\x96\x81"
#define MARK_N ((size_t)3)

enum sentencepiece_flags { REMOVE_EXTRA = 1, PREFIX_FIRST = 2, PREFIX_ALWAYS = 4 };

/* What the start of a text becomes: n bytes of it, as s[0..size). */
typedef struct prefix {
    const char *s;
    size_t size, n;
} prefix;

static prefix next_prefix(const mha_normalizer *n, const char *s, size_t left)
{
    int32_t kept;
    uint32_t c;
    size_t len = n->kept.n > 0 ? mha_trie_longest(&n->kept, MHA_TRIE_ROOT, s, left, &kept) : 0;
    if (len > 0)
        return (prefix){s, len, len};
    if (n->charsmap.units) {
        mha_charsmap_match rule = mha_charsmap_find(&n->charsmap, s, left, false);
        if (rule.n > 0)
            return (prefix){rule.to, rule.to_n, rule.n};
    }
    len = mha_char_next(s, &c);
    return (prefix){s, len, len};
}

/* The last character, and what else came from the same one, also stands for what was dropped behind
 * it, up to `end`; 0 when nothing was. */
static void stretch_last(mha_aligned *a, uint32_t end)
{
    for (size_t i = end > 0 ? a->n : 0; i > 0 && a->from[i - 1].start == a->from[a->n - 1].start;
         i--)
        a->from[i - 1].end = end;
}

static mha_status put_marked(mha_aligned *a, const char *s, size_t n, mha_span from, mha_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool space = s[i] == ' ';
        MHA_TRY(mha_aligned_put(a, space ? MARK : s + i, space ? MARK_N : 1, from, err));
    }
    return MHA_OK;
}

static bool ends_with_mark(const mha_aligned *a)
{
    return a->n >= MARK_N && memcmp(a->data + a->n - MARK_N, MARK, MARK_N) == 0;
}

/* Appends the normalised form of the text from byte `at` on. */
static mha_status put_rest(const mha_normalizer *n, const mha_aligned *src, size_t at,
                           mha_aligned *dst, mha_err *err)
{
    bool remove = n->flags & REMOVE_EXTRA, behind_space = remove;
    uint32_t dropped = 0; /* end of what was dropped behind the last character */
    while (at < src->n) {
        prefix p = next_prefix(n, src->data + at, src->n - at);
        mha_span from = {src->from[at].start, src->from[at + p.n - 1].end};
        while (behind_space && p.size > 0 && *p.s == ' ') {
            p.s++;
            p.size--;
        }
        if (p.size == 0) {
            dropped = from.end;
        } else {
            stretch_last(dst, dropped);
            dropped = 0;
            MHA_TRY(put_marked(dst, p.s, p.size, from, err));
            behind_space = remove && p.s[p.size - 1] == ' ';
        }
        at += p.n;
    }
    stretch_last(dst, dropped);
    while (remove && ends_with_mark(dst))
        dst->n -= MARK_N;
    return MHA_OK;
}

static mha_status apply_sentencepiece(const mha_normalizer *n, mha_normalizing *work, mha_err *err)
{
    const mha_aligned *src = &work->text;
    size_t at = 0;
    prefix p = {0};
    for (; at < src->n; at += p.n) {
        p = next_prefix(n, src->data + at, src->n - at);
        if (!(n->flags & REMOVE_EXTRA) || p.size != 1 || *p.s != ' ')
            break;
    }
    bool first = (n->flags & PREFIX_FIRST) && work->start == 0;
    if (at < src->n && (first || (n->flags & PREFIX_ALWAYS))) {
        mha_span from = {src->from[at].start, src->from[at + p.n - 1].end};
        MHA_TRY(mha_aligned_put(&work->spare, MARK, MARK_N, from, err));
    }
    MHA_TRY(put_rest(n, src, at, &work->spare, err));
    mha_normalizing_swap(work);
    return MHA_OK;
}

static const struct mha_normalizer_kind sentencepiece_kind = {"SentencePiece", 0, NULL,
                                                              apply_sentencepiece};

mha_status mha_normalizers_add_sentencepiece(mha_normalizers *out,
                                             const mha_sentencepiece_rules *rules, mha_err *err)
{
    if (out->n == MHA_COMPONENTS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "more than %d normalizers", MHA_COMPONENTS_MAX);
    mha_normalizer *n = &out->v[out->n++];
    n->kind = &sentencepiece_kind;
    n->flags = (rules->remove_extra_spaces ? REMOVE_EXTRA : 0) |
               (rules->prefix == MHA_SPACE_FIRST ? PREFIX_FIRST : 0) |
               (rules->prefix == MHA_SPACE_ALWAYS ? PREFIX_ALWAYS : 0);
    if (rules->charsmap)
        MHA_TRY(mha_charsmap_read(&n->charsmap, rules->charsmap, rules->charsmap_n, err));
    if (rules->kept_n == 0)
        return MHA_OK;
    return mha_trie_build(&n->kept, rules->kept, rules->kept_n, err);
}
