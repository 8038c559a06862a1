/* pretokenizer.c: a table of pre-tokenizers. Each one cuts the pieces that are there into smaller
 * ones; ByteLevel can also rewrite the text. None may touch a piece that is an added token. */
#include "text/pretokenizer_private.h"

#include "base/fail.h"
#include "base/mem.h"
#include "text/bytelevel.h"
#include "text/component.h"
#include "text/field.h"
#include "text/unicode.h"

#include <string.h>

mha_status mha_pieces_cut(const mha_pretokenizer *p, mha_split *work, mha_cutter cut,
                          mha_cut_behaviour behaviour, mha_err *err)
{
    for (size_t i = 0; i < work->pieces.n; i++) {
        mha_piece piece = work->pieces.v[i];
        if (piece.added >= 0) {
            MHA_TRY(mha_pieces_add(&work->next, piece.start, piece.end, piece.added, err));
            continue;
        }
        work->cuts->n = 0;
        MHA_TRY(cut(p, work, work->data + piece.start, piece.end - piece.start, err));
        mha_cuts_fold(work->cuts, behaviour);
        for (size_t k = 0; k < work->cuts->n; k++) {
            mha_cut c = work->cuts->v[k];
            MHA_TRY(mha_pieces_add(&work->next, (size_t)piece.start + c.start,
                                   (size_t)piece.start + c.end, -1, err));
        }
    }
    mha_split_swap(work);
    return MHA_OK;
}

/* --- cutters --------------------------------------------------------------------------------- */

/* Every character that `is` holds for is a match of its own. */
static mha_status cut_characters(mha_cuts *cuts, const char *s, size_t n, bool (*is)(uint32_t c),
                                 mha_err *err)
{
    size_t rest = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(s + i, &c);
        if (is(c)) {
            if (rest < i)
                MHA_TRY(mha_cuts_add(cuts, rest, i, false, err));
            MHA_TRY(mha_cuts_add(cuts, i, i + len, true, err));
            rest = i + len;
        }
        i += len;
    }
    return rest < n ? mha_cuts_add(cuts, rest, n, false, err) : MHA_OK;
}

static mha_status cut_space(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                            mha_err *err)
{
    (void)p;
    return cut_characters(work->cuts, s, n, mha_char_is_space, err);
}

static mha_status cut_punct(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                            mha_err *err)
{
    (void)p;
    return cut_characters(work->cuts, s, n, mha_char_is_punct, err);
}

static mha_status cut_numeric(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                              mha_err *err)
{
    (void)p;
    return cut_characters(work->cuts, s, n, mha_char_is_numeric, err);
}

static mha_status cut_delimiter(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                                mha_err *err)
{
    size_t rest = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(s + i, &c);
        if (c == p->delimiter) {
            MHA_TRY(mha_cuts_add(work->cuts, rest, i, false, err));
            rest = i + len;
        }
        i += len;
    }
    return mha_cuts_add(work->cuts, rest, n, false, err);
}

enum word_class { CLASS_SPACE, CLASS_WORD, CLASS_OTHER };

static enum word_class word_class(uint32_t c)
{
    if (mha_char_is_word(c))
        return CLASS_WORD;
    return mha_char_is_space(c) ? CLASS_SPACE : CLASS_OTHER;
}

/* Runs of word characters and runs of what is neither that nor space: \w+|[^\w\s]+ */
static mha_status cut_words(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                            mha_err *err)
{
    size_t start = 0;
    enum word_class run = CLASS_SPACE;
    (void)p;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(s + i, &c);
        enum word_class class = word_class(c);
        if (class != run) {
            if (run != CLASS_SPACE)
                MHA_TRY(mha_cuts_add(work->cuts, start, i, false, err));
            start = i;
            run = class;
        }
        i += len;
    }
    return run != CLASS_SPACE ? mha_cuts_add(work->cuts, start, n, false, err) : MHA_OK;
}

static mha_status cut_regex(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                            mha_err *err)
{
    MHA_TRY(mha_regex_cut(p->regex, work->regex, s, n, work->cuts, err));
    for (size_t i = 0; p->invert && i < work->cuts->n; i++)
        work->cuts->v[i].match = !work->cuts->v[i].match;
    return MHA_OK;
}

/* --- BertPreTokenizer, Whitespace, WhitespaceSplit, CharDelimiterSplit ----------------------- */

static mha_status apply_bert(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    MHA_TRY(mha_pieces_cut(p, work, cut_space, MHA_CUT_REMOVED, err));
    return mha_pieces_cut(p, work, cut_punct, MHA_CUT_ISOLATED, err);
}

static mha_status apply_whitespace(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_words, MHA_CUT_ISOLATED, err);
}

static mha_status apply_whitespace_split(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_space, MHA_CUT_REMOVED, err);
}

static mha_status parse_delimiter(mha_pretokenizer *p, const json_t *o, const char *where,
                                  mha_err *err)
{
    const char *s;
    size_t n;
    MHA_TRY(mha_field_string(&s, &n, o, where, "delimiter", true, err));
    if (n == 0 || mha_char_next(s, &p->delimiter) != n)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.delimiter: expected one character, found \"%s\"",
                        where, s);
    return MHA_OK;
}

static mha_status apply_delimiter(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_delimiter, MHA_CUT_ISOLATED, err);
}

/* --- FixedLength ------------------------------------------------------------------------------ */

static mha_status parse_length(mha_pretokenizer *p, const json_t *o, const char *where,
                               mha_err *err)
{
    p->length = 5;
    MHA_TRY(mha_field_int(&p->length, o, where, "length", false, err));
    if (p->length < 1)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.length is %lld", where, (long long)p->length);
    return MHA_OK;
}

static mha_status cut_lengths(const mha_pretokenizer *p, mha_split *work, const char *s, size_t n,
                              mha_err *err)
{
    size_t start = 0;
    int64_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += mha_char_next(s + i, &c);
        if (++count == p->length || i == n) {
            MHA_TRY(mha_cuts_add(work->cuts, start, i, false, err));
            start = i;
            count = 0;
        }
    }
    return MHA_OK;
}

static mha_status apply_length(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_lengths, MHA_CUT_ISOLATED, err);
}

/* --- Split, Punctuation, Digits -------------------------------------------------------------- */

static mha_status parse_behaviour(mha_pretokenizer *p, const json_t *o, const char *where,
                                  bool required, mha_err *err)
{
    static const char *const names[] = {
        [MHA_CUT_REMOVED] = "Removed",
        [MHA_CUT_ISOLATED] = "Isolated",
        [MHA_CUT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [MHA_CUT_MERGED_WITH_NEXT] = "MergedWithNext",
        [MHA_CUT_CONTIGUOUS] = "Contiguous",
    };
    const char *s = "Isolated";
    size_t n;
    MHA_TRY(mha_field_string(&s, &n, o, where, "behavior", required, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], s) == 0) {
            p->behaviour = (mha_cut_behaviour)i;
            return MHA_OK;
        }
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s.behavior: \"%s\" is not supported", where, s);
}

static mha_status parse_split(mha_pretokenizer *p, const json_t *o, const char *where, mha_err *err)
{
    MHA_TRY(parse_behaviour(p, o, where, true, err));
    MHA_TRY(mha_field_bool(&p->invert, o, where, "invert", true, err));
    return mha_component_pattern(&p->regex, o, where, err);
}

static mha_status apply_split(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_regex, p->behaviour, err);
}

static mha_status parse_punctuation(mha_pretokenizer *p, const json_t *o, const char *where,
                                    mha_err *err)
{
    return parse_behaviour(p, o, where, false, err);
}

static mha_status apply_punctuation(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_punct, p->behaviour, err);
}

static mha_status parse_digits(mha_pretokenizer *p, const json_t *o, const char *where,
                               mha_err *err)
{
    bool individual = false;
    MHA_TRY(mha_field_bool(&individual, o, where, "individual_digits", true, err));
    p->behaviour = individual ? MHA_CUT_ISOLATED : MHA_CUT_CONTIGUOUS;
    return MHA_OK;
}

static mha_status apply_digits(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    return mha_pieces_cut(p, work, cut_numeric, p->behaviour, err);
}

/* --- ByteLevel ------------------------------------------------------------------------------- */

static const char gpt2_words[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static mha_status parse_byte_level(mha_pretokenizer *p, const json_t *o, const char *where,
                                   mha_err *err)
{
    p->use_regex = true;
    MHA_TRY(mha_field_bool(&p->add_prefix_space, o, where, "add_prefix_space", true, err));
    MHA_TRY(mha_field_bool(&p->use_regex, o, where, "use_regex", false, err));
    if (!p->use_regex)
        return MHA_OK;
    return mha_regex_new(&p->regex, gpt2_words, sizeof gpt2_words - 1, false, err);
}

/* Copies a piece into `spare`, byte by byte mapped or not, and moves its bounds there. */
static mha_status copy_piece(mha_split *work, mha_piece *piece, bool map, mha_err *err)
{
    size_t start = work->spare.n;
    for (size_t i = piece->start; i < piece->end; i++) {
        mha_span from = mha_split_range(work, i, i + 1);
        if (map)
            MHA_TRY(mha_aligned_put_char(&work->spare, mha_byte_to_char((uint8_t)work->data[i]),
                                         from, err));
        else
            MHA_TRY(mha_aligned_put(&work->spare, work->data + i, 1, from, err));
    }
    piece->start = (uint32_t)start;
    piece->end = (uint32_t)work->spare.n;
    return MHA_OK;
}

static bool wants_space(const mha_split *work, const mha_piece *piece)
{
    return piece->added < 0 && work->data[piece->start] != ' ';
}

/* Puts a space, which has the range of the first character, before every piece without one. */
static mha_status prefix_spaces(mha_split *work, mha_err *err)
{
    bool any = false;
    for (size_t i = 0; i < work->pieces.n; i++)
        any = any || wants_space(work, &work->pieces.v[i]);
    if (!any)
        return MHA_OK;
    for (size_t i = 0; i < work->pieces.n; i++) {
        mha_piece *piece = &work->pieces.v[i];
        bool space = wants_space(work, piece);
        if (space) {
            mha_span first = mha_split_range(work, piece->start, (size_t)piece->start + 1);
            MHA_TRY(mha_aligned_put(&work->spare, " ", 1, first, err));
        }
        MHA_TRY(copy_piece(work, piece, false, err));
        piece->start -= space;
    }
    mha_split_swap_text(work);
    return MHA_OK;
}

static mha_status map_bytes(mha_split *work, mha_err *err)
{
    for (size_t i = 0; i < work->pieces.n; i++)
        MHA_TRY(copy_piece(work, &work->pieces.v[i], work->pieces.v[i].added < 0, err));
    mha_split_swap_text(work);
    return MHA_OK;
}

static mha_status apply_byte_level(const mha_pretokenizer *p, mha_split *work, mha_err *err)
{
    if (p->add_prefix_space)
        MHA_TRY(prefix_spaces(work, err));
    if (p->use_regex)
        MHA_TRY(mha_pieces_cut(p, work, cut_regex, MHA_CUT_ISOLATED, err));
    return p->keep_bytes ? MHA_OK : map_bytes(work, err);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct mha_pretokenizer_kind kinds[] = {
    {"BertPreTokenizer", NULL, apply_bert},
    {"ByteLevel", parse_byte_level, apply_byte_level},
    {"Metaspace", mha_metaspace_parse, mha_metaspace_apply},
    {"Split", parse_split, apply_split},
    {"Punctuation", parse_punctuation, apply_punctuation},
    {"Digits", parse_digits, apply_digits},
    {"Whitespace", NULL, apply_whitespace},
    {"WhitespaceSplit", NULL, apply_whitespace_split},
    {"CharDelimiterSplit", parse_delimiter, apply_delimiter},
    {"FixedLength", parse_length, apply_length},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static mha_status parse_one(void *context, const json_t *o, const char *where, mha_err *err)
{
    mha_pretokenizers *out = context;
    const char *names[KIND_COUNT];
    size_t kind;
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i] = kinds[i].name;
    MHA_TRY(mha_field_kind(&kind, o, where, names, KIND_COUNT, err));
    if (out->n == MHA_COMPONENTS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d pre-tokenizers", where,
                        MHA_COMPONENTS_MAX);
    mha_pretokenizer *p = &out->v[out->n++];
    p->kind = &kinds[kind];
    return kinds[kind].parse ? kinds[kind].parse(p, o, where, err) : MHA_OK;
}

mha_status mha_pretokenizers_parse(mha_pretokenizers *out, const json_t *json, mha_err *err)
{
    void *v;
    *out = (mha_pretokenizers){0};
    MHA_TRY(mha_alloc(&v, MHA_COMPONENTS_MAX, sizeof *out->v, err));
    out->v = v;
    return mha_component_each(json, "pre_tokenizer", "pretokenizers", parse_one, out, err);
}

void mha_pretokenizers_release(mha_pretokenizers *p)
{
    for (size_t i = 0; i < p->n; i++)
        mha_regex_free(p->v[i].regex);
    mha_free(p->v);
    *p = (mha_pretokenizers){0};
}

uint32_t mha_pretokenizers_space_mark(const mha_pretokenizers *p)
{
    for (size_t i = p->n; i-- > 0;) {
        if (p->v[i].kind->apply == mha_metaspace_apply)
            return p->v[i].delimiter;
    }
    return 0;
}

bool mha_pretokenizers_keep_bytes(mha_pretokenizers *p)
{
    if (p->n == 0 || p->v[p->n - 1].kind->apply != apply_byte_level)
        return false;
    p->v[p->n - 1].keep_bytes = true;
    return true;
}

mha_status mha_pretokenizers_apply(const mha_pretokenizers *p, mha_split *split, mha_err *err)
{
    for (size_t i = 0; i < p->n; i++)
        MHA_TRY(p->v[i].kind->apply(&p->v[i], split, err));
    return MHA_OK;
}
