/* decode.c: a table of decoders, each rewriting a list of strings. It may not know ids: which
 * pieces there are was decided before. */
#include "text/decode.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/component.h"
#include "text/field.h"
#include "text/vocab.h"

#include <string.h>

struct mha_decoder_kind {
    const char *name;
    mha_status (*parse)(mha_decoder *d, mha_arena *arena, const json_t *o, const char *where,
                        mha_err *err);
    mha_status (*apply)(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                        mha_err *err);
};

void mha_strings_init(mha_strings *s, size_t ceiling)
{
    *s = (mha_strings){0};
    mha_buf_init(&s->bytes, ceiling);
}

void mha_strings_release(mha_strings *s)
{
    mha_buf_release(&s->bytes);
    mha_free(s->ends);
    *s = (mha_strings){0};
}

mha_status mha_strings_add(mha_strings *s, const char *bytes, size_t n, mha_err *err)
{
    return mha_buf_add(&s->bytes, bytes, n, err);
}

mha_status mha_strings_end(mha_strings *s, mha_err *err)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 64;
        void *ends = s->ends;
        MHA_TRY(mha_grow(&ends, s->n, capacity, sizeof *s->ends, err));
        s->ends = ends;
        s->capacity = capacity;
    }
    s->ends[s->n++] = s->bytes.size;
    return MHA_OK;
}

/* The i-th string, borrowed; never NULL. */
static const char *string_at(const mha_strings *s, size_t i, size_t *n)
{
    size_t start = i > 0 ? s->ends[i - 1] : 0;
    *n = s->ends[i] - start;
    return s->bytes.data ? s->bytes.data + start : "";
}

/* --- WordPiece ------------------------------------------------------------------------------- */

static mha_status parse_affix(mha_decoder *d, mha_arena *arena, const json_t *o, const char *where,
                              const char *key, mha_err *err)
{
    const char *s;
    char *copy;
    MHA_TRY(mha_field_string(&s, &d->affix_n, o, where, key, true, err));
    MHA_TRY(mha_arena_strndup(&copy, arena, s, d->affix_n, err));
    d->affix = copy;
    return MHA_OK;
}

static mha_status parse_wordpiece(mha_decoder *d, mha_arena *arena, const json_t *o,
                                  const char *where, mha_err *err)
{
    MHA_TRY(mha_field_bool(&d->cleanup, o, where, "cleanup", true, err));
    return parse_affix(d, arena, o, where, "prefix", err);
}

/* Replaces every `from` in s[0..*n) by `to`, which is not longer, from left to right. */
static void replace_all(char *s, size_t *n, const char *from, const char *to)
{
    size_t from_n = strlen(from), to_n = strlen(to), kept = 0;
    for (size_t i = 0; i < *n;) {
        if (*n - i >= from_n && memcmp(s + i, from, from_n) == 0) {
            memcpy(s + kept, to, to_n);
            kept += to_n;
            i += from_n;
        } else {
            s[kept++] = s[i++];
        }
    }
    *n = kept;
}

/* In this order; each rule sees what the one before it left. */
static void clean(char *s, size_t *n)
{
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        replace_all(s, n, rules[i][0], rules[i][1]);
}

static mha_status apply_wordpiece(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                                  mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n, start = out->bytes.size;
        const char *s = string_at(in, i, &n);
        bool inside = i > 0 && n >= d->affix_n && memcmp(s, d->affix, d->affix_n) == 0;
        if (i > 0 && !inside)
            MHA_TRY(mha_strings_add(out, " ", 1, err));
        size_t skipped = inside ? d->affix_n : 0;
        MHA_TRY(mha_strings_add(out, s + skipped, n - skipped, err));
        if (d->cleanup && out->bytes.size > start) {
            size_t length = out->bytes.size - start;
            clean(out->bytes.data + start, &length);
            out->bytes.size = start + length;
        }
        MHA_TRY(mha_strings_end(out, err));
    }
    return MHA_OK;
}

/* --- ByteLevel ------------------------------------------------------------------------------- */

/* Bytes of s[0..n) that are the start of a well-formed character but not the whole of it; at least
 * 1. They become one replacement character together. */
static size_t broken_length(const char *s, size_t n)
{
    char padded[4] = {0};
    size_t len = 1, most = n < 3 ? n : 3;
    for (size_t k = 1; k <= most; k++) {
        /* A prefix is well-formed when some continuation makes it a character. */
        bool completes = false;
        for (unsigned tail = 0x80; tail <= 0xbf && !completes; tail++) {
            uint32_t c;
            memcpy(padded, s, k);
            memset(padded + k, (int)tail, sizeof padded - k);
            size_t whole = mha_utf8_decode(padded, sizeof padded, &c);
            completes = whole > k;
        }
        if (!completes)
            break;
        len = k;
    }
    return len;
}

static mha_status add_lossy(mha_strings *out, const char *s, size_t n, mha_err *err)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_utf8_decode(s + i, n - i, &c);
        if (len > 0) {
            MHA_TRY(mha_strings_add(out, s + i, len, err));
        } else {
            MHA_TRY(mha_strings_add(out, "\xef\xbf\xbd", 3, err));
            len = broken_length(s + i, n - i);
        }
        i += len;
    }
    return MHA_OK;
}

static mha_status join_bytes(const mha_strings *in, mha_buf *bytes, mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n, start = bytes->size;
        const char *s = string_at(in, i, &n);
        /* A mapped piece is never longer than the piece; outside of the alphabet it stays. */
        MHA_TRY(mha_buf_add(bytes, s, n, err));
        if (n == 0)
            continue;
        size_t mapped = mha_bytes_of_piece(s, n, bytes->data + start, n);
        if (mapped == (size_t)-1)
            memcpy(bytes->data + start, s, n);
        else
            bytes->size = start + mapped;
    }
    return MHA_OK;
}

static mha_status apply_byte_level(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                                   mha_err *err)
{
    (void)d;
    mha_buf bytes;
    mha_buf_init(&bytes, in->bytes.ceiling);
    mha_status status = join_bytes(in, &bytes, err);
    if (status == MHA_OK)
        status = add_lossy(out, bytes.data, bytes.size, err);
    mha_buf_release(&bytes);
    return status == MHA_OK ? mha_strings_end(out, err) : status;
}

/* --- BPEDecoder, Fuse ------------------------------------------------------------------------ */

static mha_status parse_bpe(mha_decoder *d, mha_arena *arena, const json_t *o, const char *where,
                            mha_err *err)
{
    return parse_affix(d, arena, o, where, "suffix", err);
}

static mha_status apply_bpe(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                            mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n;
        const char *s = string_at(in, i, &n);
        for (size_t k = 0; k < n;) {
            bool suffix =
                d->affix_n > 0 && n - k >= d->affix_n && memcmp(s + k, d->affix, d->affix_n) == 0;
            if (suffix && i + 1 < in->n)
                MHA_TRY(mha_strings_add(out, " ", 1, err));
            else if (!suffix)
                MHA_TRY(mha_strings_add(out, s + k, 1, err));
            k += suffix ? d->affix_n : 1;
        }
        MHA_TRY(mha_strings_end(out, err));
    }
    return MHA_OK;
}

static mha_status apply_fuse(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                             mha_err *err)
{
    (void)d;
    MHA_TRY(mha_strings_add(out, in->bytes.data, in->bytes.size, err));
    return mha_strings_end(out, err);
}

/* --- Metaspace ------------------------------------------------------------------------------- */

static mha_status parse_metaspace(mha_decoder *d, mha_arena *arena, const json_t *o,
                                  const char *where, mha_err *err)
{
    bool add = true;
    size_t n;
    MHA_TRY(mha_field_bool(&add, o, where, "add_prefix_space", false, err));
    const char *scheme = add ? "always" : "never";
    MHA_TRY(mha_field_string(&scheme, &n, o, where, "prepend_scheme", false, err));
    d->keep_first = strcmp(scheme, "never") == 0;
    MHA_TRY(parse_affix(d, arena, o, where, "replacement", err));
    if (d->affix_n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.replacement is empty", where);
    return MHA_OK;
}

static mha_status apply_metaspace(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                                  mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n;
        const char *s = string_at(in, i, &n);
        for (size_t k = 0; k < n;) {
            bool mark = n - k >= d->affix_n && memcmp(s + k, d->affix, d->affix_n) == 0;
            if (mark && (i > 0 || d->keep_first))
                MHA_TRY(mha_strings_add(out, " ", 1, err));
            else if (!mark)
                MHA_TRY(mha_strings_add(out, s + k, 1, err));
            k += mark ? d->affix_n : 1;
        }
        MHA_TRY(mha_strings_end(out, err));
    }
    return MHA_OK;
}

/* --- ByteFallback ---------------------------------------------------------------------------- */

/* Bytes that make no text become one replacement character each. */
static mha_status add_bytes(mha_strings *out, const mha_buf *bytes, mha_err *err)
{
    bool valid = mha_utf8_valid(bytes->data ? bytes->data : "", bytes->size);
    if (bytes->size == 0)
        return MHA_OK;
    if (valid) {
        MHA_TRY(mha_strings_add(out, bytes->data, bytes->size, err));
        return mha_strings_end(out, err);
    }
    for (size_t i = 0; i < bytes->size; i++) {
        MHA_TRY(mha_strings_add(out, "\xef\xbf\xbd", 3, err));
        MHA_TRY(mha_strings_end(out, err));
    }
    return MHA_OK;
}

static mha_status collect_bytes(const mha_strings *in, mha_strings *out, mha_buf *bytes,
                                mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n;
        const char *s = string_at(in, i, &n);
        int byte = mha_byte_of_piece(s, n);
        if (byte >= 0) {
            char c = (char)byte;
            MHA_TRY(mha_buf_add(bytes, &c, 1, err));
            continue;
        }
        MHA_TRY(add_bytes(out, bytes, err));
        mha_buf_clear(bytes);
        MHA_TRY(mha_strings_add(out, s, n, err));
        MHA_TRY(mha_strings_end(out, err));
    }
    return add_bytes(out, bytes, err);
}

static mha_status apply_byte_fallback(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                                      mha_err *err)
{
    mha_buf bytes;
    (void)d;
    mha_buf_init(&bytes, in->bytes.ceiling);
    mha_status status = collect_bytes(in, out, &bytes, err);
    mha_buf_release(&bytes);
    return status;
}

/* --- Replace, Strip -------------------------------------------------------------------------- */

static mha_status parse_replace(mha_decoder *d, mha_arena *arena, const json_t *o,
                                const char *where, mha_err *err)
{
    const json_t *literal = json_object_get(json_object_get(o, "pattern"), "String");
    MHA_TRY(parse_affix(d, arena, o, where, "content", err));
    if (json_is_string(literal)) {
        char *copy;
        d->pattern_n = json_string_length(literal);
        MHA_TRY(mha_arena_strndup(&copy, arena, json_string_value(literal), d->pattern_n, err));
        d->pattern = copy;
    }
    return mha_component_pattern(&d->regex, o, where, err);
}

static mha_status replace_in(const mha_decoder *d, mha_regex_scratch *regex, mha_cuts *cuts,
                             const char *s, size_t n, mha_strings *out, mha_err *err)
{
    if (n == 0)
        return MHA_OK;
    MHA_TRY(mha_regex_cut(d->regex, regex, s, n, cuts, err));
    for (size_t i = 0; i < cuts->n; i++) {
        mha_cut cut = cuts->v[i];
        if (cut.match)
            MHA_TRY(mha_strings_add(out, d->affix, d->affix_n, err));
        else
            MHA_TRY(mha_strings_add(out, s + cut.start, cut.end - cut.start, err));
    }
    return MHA_OK;
}

static mha_status apply_replace(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                                mha_err *err)
{
    mha_regex_scratch regex;
    mha_cuts cuts = {0};
    mha_status status = MHA_OK;
    mha_regex_scratch_init(&regex, in->bytes.size);
    for (size_t i = 0; status == MHA_OK && i < in->n; i++) {
        size_t n;
        const char *s = string_at(in, i, &n);
        status = replace_in(d, &regex, &cuts, s, n, out, err);
        if (status == MHA_OK)
            status = mha_strings_end(out, err);
    }
    mha_cuts_release(&cuts);
    mha_regex_scratch_release(&regex);
    return status;
}

static mha_status parse_strip(mha_decoder *d, mha_arena *arena, const json_t *o, const char *where,
                              mha_err *err)
{
    MHA_TRY(mha_field_int(&d->start, o, where, "start", true, err));
    MHA_TRY(mha_field_int(&d->stop, o, where, "stop", true, err));
    MHA_TRY(parse_affix(d, arena, o, where, "content", err));
    if (mha_utf8_count(d->affix, d->affix_n) != 1)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.content: expected one character, found \"%s\"",
                        where, d->affix);
    return MHA_OK;
}

static mha_status apply_strip(const mha_decoder *d, const mha_strings *in, mha_strings *out,
                              mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n, m = d->affix_n;
        const char *s = string_at(in, i, &n);
        for (int64_t k = 0; k < d->start && n >= m && memcmp(s, d->affix, m) == 0; k++) {
            s += m;
            n -= m;
        }
        for (int64_t k = 0; k < d->stop && n >= m && memcmp(s + n - m, d->affix, m) == 0; k++)
            n -= m;
        MHA_TRY(mha_strings_add(out, s, n, err));
        MHA_TRY(mha_strings_end(out, err));
    }
    return MHA_OK;
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct mha_decoder_kind kinds[] = {
    {"WordPiece", parse_wordpiece, apply_wordpiece},
    {"ByteLevel", NULL, apply_byte_level},
    {"BPEDecoder", parse_bpe, apply_bpe},
    {"Metaspace", parse_metaspace, apply_metaspace},
    {"ByteFallback", NULL, apply_byte_fallback},
    {"Replace", parse_replace, apply_replace},
    {"Strip", parse_strip, apply_strip},
    {"Fuse", NULL, apply_fuse},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

typedef struct parsing {
    mha_decoders *out;
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
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d decoders", where, MHA_COMPONENTS_MAX);
    mha_decoder *d = &p->out->v[p->out->n++];
    d->kind = &kinds[kind];
    return kinds[kind].parse ? kinds[kind].parse(d, p->arena, o, where, err) : MHA_OK;
}

mha_status mha_decoders_parse(mha_decoders *out, mha_arena *arena, const json_t *json, mha_err *err)
{
    void *v;
    parsing p = {out, arena};
    *out = (mha_decoders){0};
    MHA_TRY(mha_alloc(&v, MHA_COMPONENTS_MAX, sizeof *out->v, err));
    out->v = v;
    return mha_component_each(json, "decoder", "decoders", parse_one, &p, err);
}

const char *mha_decoders_space_mark(const mha_decoders *d, size_t *n)
{
    for (size_t i = 0; i < d->n; i++) {
        const mha_decoder *v = &d->v[i];
        bool to_space = v->affix_n == 1 && v->affix[0] == ' ' && v->pattern_n > 0;
        bool replaces = v->kind->apply == apply_replace && to_space;
        if (!replaces && v->kind->apply != apply_metaspace)
            continue;
        *n = replaces ? v->pattern_n : v->affix_n;
        return replaces ? v->pattern : v->affix;
    }
    return NULL;
}

bool mha_decoders_have_bytes(const mha_decoders *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].kind->apply == apply_byte_fallback)
            return true;
    }
    return false;
}

void mha_decoders_release(mha_decoders *d)
{
    for (size_t i = 0; i < d->n; i++)
        mha_regex_free(d->v[i].regex);
    mha_free(d->v);
    *d = (mha_decoders){0};
}

static mha_status join_with_spaces(const mha_strings *in, mha_strings *out, mha_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t n;
        const char *s = string_at(in, i, &n);
        if (i > 0)
            MHA_TRY(mha_strings_add(out, " ", 1, err));
        MHA_TRY(mha_strings_add(out, s, n, err));
    }
    return mha_strings_end(out, err);
}

mha_status mha_decoders_apply(const mha_decoders *d, mha_strings *pieces, mha_err *err)
{
    mha_status status = MHA_OK;
    size_t stages = d->n > 0 ? d->n : 1;
    for (size_t i = 0; status == MHA_OK && i < stages; i++) {
        mha_strings out;
        mha_strings_init(&out, pieces->bytes.ceiling);
        status = d->n > 0 ? d->v[i].kind->apply(&d->v[i], pieces, &out, err)
                          : join_with_spaces(pieces, &out, err);
        mha_strings_release(pieces);
        *pieces = out;
    }
    return status;
}
