/* template.c: post-processors read into two lists of items, for one segment and for two. It may not
 * look at the text other than to trim offsets. */
#include "text/template.h"

#include "base/fail.h"
#include "text/component.h"
#include "text/field.h"
#include "text/unicode.h"

#include <stdio.h>
#include <string.h>

void mha_segment_release(mha_segment *s)
{
    mha_free(s->v);
    *s = (mha_segment){0};
}

mha_status mha_segment_add(mha_segment *s, mha_segment_token token, mha_err *err)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 64;
        void *v = s->v;
        MHA_TRY(mha_grow(&v, s->n, capacity, sizeof *s->v, err));
        s->v = v;
        s->capacity = capacity;
    }
    s->v[s->n++] = token;
    return MHA_OK;
}

/* --- parsing --------------------------------------------------------------------------------- */

typedef struct parsing {
    mha_template *out;
    mha_arena *arena;
    size_t vocab;
} parsing;

static mha_status add_item(mha_template_list *list, mha_template_item item, const char *where,
                           mha_err *err)
{
    if (list->n == MHA_TEMPLATE_ITEMS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d items", where,
                        MHA_TEMPLATE_ITEMS_MAX);
    list->v[list->n++] = item;
    return MHA_OK;
}

static mha_status check_id(const parsing *p, int64_t id, const char *where, mha_err *err)
{
    if (id >= 0 && (uint64_t)id < p->vocab)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: the id %lld is outside of the vocabulary of %zu",
                    where, (long long)id, p->vocab);
}

static mha_status parse_ids(parsing *p, mha_template_item *item, const json_t *list,
                            const char *where, mha_err *err)
{
    void *copy;
    size_t n = json_array_size(list);
    MHA_TRY(mha_arena_alloc(&copy, p->arena, n, sizeof(int32_t), err));
    int32_t *ids = copy;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        MHA_TRY(mha_field_expect(v, where, JSON_INTEGER, err));
        MHA_TRY(check_id(p, json_integer_value(v), where, err));
        ids[i] = (int32_t)json_integer_value(v);
    }
    item->ids = ids;
    item->n = n;
    return MHA_OK;
}

static mha_status parse_special(parsing *p, mha_template_item *item, const json_t *o,
                                const json_t *tokens, const char *where, mha_err *err)
{
    const char *id;
    size_t n;
    json_t *token, *ids;
    char inner[160];
    MHA_TRY(mha_field_string(&id, &n, o, where, "id", true, err));
    token = json_object_get(tokens, id);
    if (!json_is_object(token))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: \"%s\" is not among special_tokens", where, id);
    snprintf(inner, sizeof inner, "post_processor.special_tokens.%.60s", id);
    MHA_TRY(mha_field_get(&ids, token, inner, "ids", JSON_ARRAY, true, err));
    item->segment = -1;
    return parse_ids(p, item, ids, inner, err);
}

static mha_status parse_sequence(mha_template_item *item, const json_t *o, int segments,
                                 const char *where, mha_err *err)
{
    const char *id;
    size_t n;
    MHA_TRY(mha_field_string(&id, &n, o, where, "id", true, err));
    item->segment = strcmp(id, "A") == 0 ? 0 : 1;
    if (item->segment == 1 && (strcmp(id, "B") != 0 || segments < 2))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: there is no sequence \"%s\" here", where, id);
    return MHA_OK;
}

static mha_status parse_item(parsing *p, mha_template_list *list, const json_t *json, int segments,
                             const json_t *tokens, const char *where, mha_err *err)
{
    mha_template_item item = {0};
    int64_t type = 0;
    MHA_TRY(mha_field_expect(json, where, JSON_OBJECT, err));
    const json_t *special = json_object_get(json, "SpecialToken");
    const json_t *sequence = json_object_get(json, "Sequence");
    const json_t *o = special ? special : sequence;
    if (!o)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: neither SpecialToken nor Sequence", where);
    MHA_TRY(mha_field_expect(o, where, JSON_OBJECT, err));
    if (special)
        MHA_TRY(parse_special(p, &item, o, tokens, where, err));
    else
        MHA_TRY(parse_sequence(&item, o, segments, where, err));
    MHA_TRY(mha_field_int(&type, o, where, "type_id", true, err));
    if (type < 0 || type > UINT8_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.type_id: %lld is not in 0–255", where,
                        (long long)type);
    item.type = (uint8_t)type;
    return add_item(list, item, where, err);
}

static mha_status parse_list(parsing *p, mha_template_list *list, const json_t *o,
                             const char *where, const char *key, int segments, mha_err *err)
{
    json_t *items, *tokens;
    MHA_TRY(mha_field_get(&items, o, where, key, JSON_ARRAY, true, err));
    MHA_TRY(mha_field_get(&tokens, o, where, "special_tokens", JSON_OBJECT, true, err));
    list->n = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        char inner[160];
        snprintf(inner, sizeof inner, "%s.%s[%zu]", where, key, i);
        MHA_TRY(parse_item(p, list, json_array_get(items, i), segments, tokens, inner, err));
    }
    return MHA_OK;
}

static mha_status parse_template(parsing *p, const json_t *o, const char *where, mha_err *err)
{
    MHA_TRY(parse_list(p, &p->out->single, o, where, "single", 1, err));
    return parse_list(p, &p->out->pair, o, where, "pair", 2, err);
}

/* A field like "sep": ["[SEP]", 102]. */
static mha_status parse_token(parsing *p, mha_template_item *item, const json_t *o,
                              const char *where, const char *key, mha_err *err)
{
    json_t *pair;
    char inner[160];
    snprintf(inner, sizeof inner, "%s.%s", where, key);
    MHA_TRY(mha_field_get(&pair, o, where, key, JSON_ARRAY, true, err));
    if (json_array_size(pair) != 2)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: expected a token and its id", inner);
    void *copy;
    const json_t *id = json_array_get(pair, 1);
    MHA_TRY(mha_field_expect(id, inner, JSON_INTEGER, err));
    MHA_TRY(check_id(p, json_integer_value(id), inner, err));
    MHA_TRY(mha_arena_alloc(&copy, p->arena, 1, sizeof(int32_t), err));
    *(int32_t *)copy = (int32_t)json_integer_value(id);
    *item = (mha_template_item){.segment = -1, .ids = copy, .n = 1};
    return MHA_OK;
}

/* CLS A SEP, and for pairs CLS A SEP B SEP; `doubled`: CLS A SEP SEP B SEP, all of type 0. */
static mha_status parse_classic(parsing *p, const json_t *o, const char *where, bool doubled,
                                mha_err *err)
{
    mha_template_item cls, sep, last;
    MHA_TRY(parse_token(p, &cls, o, where, "cls", err));
    MHA_TRY(parse_token(p, &sep, o, where, "sep", err));
    last = sep;
    last.type = !doubled;
    mha_template_item a = {.segment = 0}, b = {.segment = 1, .type = !doubled};
    p->out->single = (mha_template_list){.v = {cls, a, sep}, .n = 3};
    if (doubled)
        p->out->pair = (mha_template_list){.v = {cls, a, sep, sep, b, last}, .n = 6};
    else
        p->out->pair = (mha_template_list){.v = {cls, a, sep, b, last}, .n = 5};
    return MHA_OK;
}

static mha_status parse_bert(parsing *p, const json_t *o, const char *where, mha_err *err)
{
    return parse_classic(p, o, where, false, err);
}

static mha_status parse_trim(parsing *p, const json_t *o, const char *where, mha_err *err)
{
    bool trim = true, prefixed = true;
    MHA_TRY(mha_field_bool(&trim, o, where, "trim_offsets", true, err));
    MHA_TRY(mha_field_bool(&prefixed, o, where, "add_prefix_space", true, err));
    if (!trim)
        return MHA_OK;
    if (p->out->trims == MHA_TEMPLATE_ITEMS_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d items", where,
                        MHA_TEMPLATE_ITEMS_MAX);
    p->out->trim_prefixed[p->out->trims++] = prefixed;
    return MHA_OK;
}

static mha_status parse_roberta(parsing *p, const json_t *o, const char *where, mha_err *err)
{
    MHA_TRY(parse_trim(p, o, where, err));
    return parse_classic(p, o, where, true, err);
}

static const struct processor_kind {
    const char *name;
    mha_status (*parse)(parsing *p, const json_t *o, const char *where, mha_err *err);
    bool adds; /* special tokens: there can be one such */
} kinds[] = {
    {"TemplateProcessing", parse_template, true},
    {"BertProcessing", parse_bert, true},
    {"RobertaProcessing", parse_roberta, true},
    {"ByteLevel", parse_trim, false},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static mha_status parse_one(void *context, const json_t *o, const char *where, mha_err *err)
{
    parsing *p = context;
    const char *names[KIND_COUNT];
    size_t kind;
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i] = kinds[i].name;
    MHA_TRY(mha_field_kind(&kind, o, where, names, KIND_COUNT, err));
    if (kinds[kind].adds && p->out->parsed)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: a second %s", where,
                        "post-processor that adds special tokens");
    p->out->parsed = p->out->parsed || kinds[kind].adds;
    return kinds[kind].parse(p, o, where, err);
}

mha_status mha_template_parse(mha_template *out, mha_arena *arena, const json_t *json, size_t vocab,
                              mha_err *err)
{
    parsing p = {out, arena, vocab};
    *out = (mha_template){0};
    out->single = (mha_template_list){.v = {{.segment = 0}}, .n = 1};
    out->pair = (mha_template_list){.v = {{.segment = 0}, {.segment = 1, .type = 1}}, .n = 2};
    return mha_component_each(json, "post_processor", "processors", parse_one, &p, err);
}

/* --- trimming -------------------------------------------------------------------------------- */

/* White space, or the byte alphabet's sign for a space. */
static bool is_blank(uint32_t c)
{
    return c == 0x120 || mha_char_is_space(c);
}

static size_t blanks_at_start(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        uint32_t c;
        i += mha_char_next(s + i, &c);
        if (!is_blank(c))
            break;
    }
    return count;
}

static size_t blanks_at_end(const char *s, size_t n)
{
    size_t count = 0;
    for (; n > 0; count++) {
        uint32_t c;
        n = mha_char_floor(s, n - 1);
        mha_char_next(s + n, &c);
        if (!is_blank(c))
            break;
    }
    return count;
}

static void trim_once(bool prefixed, mha_segment_token *token, bool first, const char *text,
                      size_t text_n, const char *original)
{
    size_t leading = blanks_at_start(text, text_n), trailing = blanks_at_end(text, text_n);
    /* A single space at the start of the text may be one that the pre-tokenizer put there, which
     * the range does not contain. */
    if ((first || token->start == 0) && prefixed && leading == 1)
        leading = 0;
    for (; leading > 0 && token->start < token->end; leading--) {
        uint32_t c;
        token->start += (uint32_t)mha_char_next(original + token->start, &c);
    }
    for (; trailing > 0 && token->end > token->start; trailing--)
        token->end = (uint32_t)mha_char_floor(original, token->end - 1);
}

void mha_template_trim(const mha_template *t, mha_segment_token *token, bool first,
                       const char *text, size_t text_n, const char *original)
{
    for (size_t i = 0; i < t->trims; i++)
        trim_once(t->trim_prefixed[i], token, first, text, text_n, original);
}

/* --- applying -------------------------------------------------------------------------------- */

void mha_tokens_release(mha_tokens *t)
{
    mha_free(t->id);
    mha_free(t->start);
    mha_free(t->end);
    mha_free(t->word);
    mha_free(t->special);
    mha_free(t->type);
    *t = (mha_tokens){0};
}

static mha_status tokens_reserve(mha_tokens *t, size_t n, mha_err *err)
{
    if (n <= t->capacity)
        return MHA_OK;
    mha_tokens_release(t);
    struct {
        void *p;
        size_t size;
    } arrays[] = {{NULL, sizeof *t->id},   {NULL, sizeof *t->start},   {NULL, sizeof *t->end},
                  {NULL, sizeof *t->word}, {NULL, sizeof *t->special}, {NULL, sizeof *t->type}};
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < 6; i++)
        status = mha_alloc_raw(&arrays[i].p, n, arrays[i].size, err);
    t->id = arrays[0].p;
    t->start = arrays[1].p;
    t->end = arrays[2].p;
    t->word = arrays[3].p;
    t->special = arrays[4].p;
    t->type = arrays[5].p;
    if (status != MHA_OK)
        mha_tokens_release(t);
    else
        t->capacity = n;
    return status;
}

static void put(mha_tokens *out, mha_segment_token token, uint8_t type)
{
    out->id[out->n] = token.id;
    out->start[out->n] = token.start;
    out->end[out->n] = token.end;
    out->word[out->n] = token.word;
    out->special[out->n] = token.special;
    out->type[out->n++] = type;
}

mha_status mha_template_apply(const mha_template *t, const mha_segment *text,
                              const mha_segment *pair, bool with_special, mha_tokens *out,
                              mha_err *err)
{
    const mha_template_list *list = pair ? &t->pair : &t->single;
    const mha_segment *segments[2] = {text, pair};
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += list->v[i].segment < 0 ? list->v[i].n : segments[list->v[i].segment]->n;
    MHA_TRY(tokens_reserve(out, n, err));
    out->n = out->pair_first = out->pair_n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const mha_template_item *item = &list->v[i];
        if (item->segment == 1) {
            out->pair_first = out->n;
            out->pair_n = pair->n;
        }
        for (size_t k = 0; item->segment >= 0 && k < segments[item->segment]->n; k++)
            put(out, segments[item->segment]->v[k], item->type);
        for (size_t k = 0; item->segment < 0 && with_special && k < item->n; k++)
            put(out, (mha_segment_token){.id = item->ids[k], .word = -1, .special = true},
                item->type);
    }
    return MHA_OK;
}
