/* describe.c: JSON for what the several kinds of files say in their own ways. It may not read files
 * nor know classes of tokenizers. */
#include "text/describe.h"

#include "base/fail.h"

/* Appends an item of a template: {"Sequence": …} or {"SpecialToken": …}. */
static int append(json_t *list, const char *kind, const char *id, int type)
{
    return json_array_append_new(list,
                                 json_pack("{s:{s:s, s:i}}", kind, "id", id, "type_id", type));
}

static int append_first(json_t *list, const mha_frame *f, int type)
{
    return f->first_n > 0 ? append(list, "SpecialToken", "first", type) : 0;
}

static int append_last(json_t *list, const mha_frame *f, int type)
{
    return f->last_n > 0 ? append(list, "SpecialToken", "last", type) : 0;
}

static int append_pair(json_t *list, const mha_frame *f)
{
    int second = f->second_type;
    int failed = append_first(list, f, 0) | append(list, "Sequence", "A", 0);
    if (f->pair != MHA_PAIR_JOINED)
        failed |= append_last(list, f, 0);
    if (f->pair == MHA_PAIR_DOUBLED)
        failed |= append_last(list, f, 0);
    if (f->pair == MHA_PAIR_REPEAT || (f->pair == MHA_PAIR_SHARED && f->last_n == 0))
        failed |= append_first(list, f, second);
    return failed | append(list, "Sequence", "B", second) | append_last(list, f, second);
}

static json_t *ids(const int32_t *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(list, json_integer(v[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o}", "ids", list);
}

mha_status mha_describe_frame(json_t *description, const mha_frame *f, mha_err *err)
{
    if (f->first_n == 0 && f->last_n == 0)
        return MHA_OK;
    json_t *single = json_array(), *pair = json_array();
    int failed = append_first(single, f, 0) | append(single, "Sequence", "A", 0) |
                 append_last(single, f, 0) | append_pair(pair, f);
    json_t *processor = json_pack("{s:s, s:o, s:o, s:{s:o, s:o}}", "type", "TemplateProcessing",
                                  "single", single, "pair", pair, "special_tokens", "first",
                                  ids(f->first, f->first_n), "last", ids(f->last, f->last_n));
    if (!processor || failed || json_object_set_new(description, "post_processor", processor) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    return MHA_OK;
}

/* --- SentencePiece --------------------------------------------------------------------------- */

#define MARK "\xe2\x96\x81"

static json_t *replace_marks(void)
{
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", MARK, "content",
                     " ");
}

mha_status mha_describe_sentencepiece(json_t **out, bool dummy_prefix, mha_err *err)
{
    json_t *steps =
        json_pack("[o, {s:s}, {s:s}]", replace_marks(), "type", "ByteFallback", "type", "Fuse");
    int failed = 0;
    if (dummy_prefix)
        failed = json_array_append_new(steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip",
                                                        "content", " ", "start", 1, "stop", 0));
    *out = json_pack("{s:{s:s, s:o}}", "decoder", "type", "Sequence", "decoders", steps);
    if (*out && !failed)
        return MHA_OK;
    json_decref(*out);
    *out = NULL;
    return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
}

static mha_status add_rules(mha_tokenizer *t, const mha_spm *m, mha_space_prefix prefix,
                            mha_trie_key *keys, mha_err *err)
{
    mha_sentencepiece_rules rules = {
        .charsmap = m->charsmap,
        .charsmap_n = m->charsmap_n,
        .remove_extra_spaces = m->remove_extra_spaces,
        .prefix = m->dummy_prefix ? prefix : MHA_SPACE_NEVER,
        .kept = keys,
    };
    for (size_t i = 0; i < m->n; i++) {
        if (m->pieces[i].type == MHA_PIECE_USER)
            keys[rules.kept_n++] = (mha_trie_key){m->pieces[i].s, m->pieces[i].n, 0};
    }
    return mha_normalizers_add_sentencepiece(&t->normalizers, &rules, err);
}

mha_status mha_tokenizer_set_sentencepiece(mha_tokenizer *t, const mha_spm *m,
                                           mha_space_prefix prefix, bool find_runs, mha_err *err)
{
    void *keys;
    mha_scored_options options = {.pieces = m->pieces,
                                  .n = m->n,
                                  .unknown = m->pieces[m->unknown].id,
                                  .byte_fallback = m->byte_fallback,
                                  .runs = find_runs ? &t->vocab : NULL};
    MHA_TRY(mha_alloc(&keys, m->n, sizeof(mha_trie_key), err));
    mha_status status = add_rules(t, m, prefix, keys, err);
    mha_free(keys);
    MHA_TRY(status);
    return mha_tokenizer_set_scored(t, m->bpe ? MHA_SCORED_BPE : MHA_SCORED_SENTENCEPIECE, &options,
                                    err);
}
