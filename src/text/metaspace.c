/* metaspace.c: the pre-tokenizer Metaspace. Spaces become a character that prints, usually U+2581,
 * one is put before the text, and words start at each of them. It may not touch added tokens. */
#include "text/pretokenizer_private.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/field.h"
#include "text/unicode.h"

#include <string.h>

/* Old files say add_prefix_space instead of prepend_scheme. */
static mha_status parse_prefix(mha_pretokenizer *p, const json_t *o, const char *where,
                               mha_err *err)
{
    static const char *const names[] = {
        [MHA_SPACE_NEVER] = "never",
        [MHA_SPACE_FIRST] = "first",
        [MHA_SPACE_ALWAYS] = "always",
    };
    bool add = true;
    size_t n;
    MHA_TRY(mha_field_bool(&add, o, where, "add_prefix_space", false, err));
    const char *s = add ? "always" : "never";
    MHA_TRY(mha_field_string(&s, &n, o, where, "prepend_scheme", false, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], s) == 0) {
            p->prefix = (mha_space_prefix)i;
            return MHA_OK;
        }
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s.prepend_scheme: \"%s\" is not supported", where,
                    s);
}

mha_status mha_metaspace_parse(mha_pretokenizer *p, const json_t *o, const char *where,
                               mha_err *err)
{
    const char *s;
    size_t n;
    MHA_TRY(mha_field_string(&s, &n, o, where, "replacement", true, err));
    if (n == 0 || mha_char_next(s, &p->delimiter) != n)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.replacement: expected one character, found \"%s\"",
                        where, s);
    p->split = true;
    MHA_TRY(mha_field_bool(&p->split, o, where, "split", false, err));
    return parse_prefix(p, o, where, err);
}

typedef struct space_mark {
    char s[4];
    size_t n;
} space_mark;

static bool starts_with_mark(const mha_split *work, const mha_piece *piece, const space_mark *mark)
{
    const char *s = work->data + piece->start;
    return *s == ' ' ||
           ((size_t)piece->end - piece->start >= mark->n && memcmp(s, mark->s, mark->n) == 0);
}

/* Copies a piece of text into `spare` with marks for spaces, and moves its bounds there. */
static mha_status mark_spaces(const mha_pretokenizer *p, mha_split *work, mha_piece *piece,
                              const space_mark *mark, mha_err *err)
{
    size_t start = work->spare.n;
    mha_span first = mha_split_range(work, piece->start, (size_t)piece->start + 1);
    bool prefix =
        p->prefix == MHA_SPACE_ALWAYS || (p->prefix == MHA_SPACE_FIRST && first.start == 0);
    if (prefix && !starts_with_mark(work, piece, mark))
        MHA_TRY(mha_aligned_put(&work->spare, mark->s, mark->n, first, err));
    for (size_t i = piece->start; i < piece->end;) {
        uint32_t c;
        size_t len = mha_char_next(work->data + i, &c);
        mha_span from = mha_split_range(work, i, i + len);
        if (c == ' ')
            MHA_TRY(mha_aligned_put(&work->spare, mark->s, mark->n, from, err));
        else
            MHA_TRY(mha_aligned_put(&work->spare, work->data + i, len, from, err));
        i += len;
    }
    piece->start = (uint32_t)start;
    piece->end = (uint32_t)work->spare.n;
    return MHA_OK;
}

static mha_status copy_added(mha_split *work, mha_piece *piece, mha_err *err)
{
    size_t start = work->spare.n;
    for (size_t i = piece->start; i < piece->end; i++)
        MHA_TRY(
            mha_aligned_put(&work->spare, work->data + i, 1, mha_split_range(work, i, i + 1), err));
    piece->start = (uint32_t)start;
    piece->end = (uint32_t)work->spare.n;
    return MHA_OK;
}

/* Every mark is a match, which the characters behind it join. */
static mha_status cut_marks(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                            mha_err *err)
{
    size_t rest = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(s + i, &c);
        if (c == p->delimiter) {
            if (rest < i)
                MHA_TRY(mha_cuts_add(work->cuts, rest, i, false, err));
            MHA_TRY(mha_cuts_add(work->cuts, i, i + len, true, err));
            rest = i + len;
        }
        i += len;
    }
    return rest < n ? mha_cuts_add(work->cuts, rest, n, false, err) : MHA_OK;
}

mha_status mha_metaspace_apply(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    space_mark mark;
    mark.n = mha_utf8_encode(p->delimiter, mark.s);
    for (size_t i = 0; i < work->pieces.n; i++) {
        mha_piece *piece = &work->pieces.v[i];
        MHA_TRY(piece->added < 0 ? mark_spaces(p, work, piece, &mark, err)
                                 : copy_added(work, piece, err));
    }
    mha_split_swap_text(work);
    return p->split ? mha_pieces_cut(p, work, cut_marks, MHA_CUT_MERGED_WITH_NEXT, err) : MHA_OK;
}
