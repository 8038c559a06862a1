/* tokenizer_json.c: tokenizer.json, format 1.0. Its `truncation` and `padding` are left alone: they
 * say how somebody once called the tokenizer, not what it is. */
#include "text/tokenizer_private.h"

#include "base/fail.h"
#include "io/json.h"
#include "text/field.h"

#include <stdio.h>
#include <string.h>

static mha_status read_vocab(mha_tokenizer *t, const json_t *model, mha_err *err)
{
    json_t *vocab, *id;
    const char *piece;
    MHA_TRY(mha_field_get(&vocab, model, "model", "vocab", JSON_OBJECT, true, err));
    json_object_foreach(vocab, piece, id)
    {
        if (!json_is_integer(id))
            return mha_fail(err, MHA_ERR_FORMAT, "model.vocab: the id of \"%.40s\" is no integer",
                            piece);
        mha_status status =
            mha_vocab_add(&t->vocab, &t->arena, piece, strlen(piece), json_integer_value(id), err);
        if (status != MHA_OK)
            return mha_fail_prefix(err, status, "model.vocab");
    }
    if (t->vocab.count == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "model.vocab is empty");
    return MHA_OK;
}

/* --- WordPiece ------------------------------------------------------------------------------- */

static mha_status read_wordpiece(mha_tokenizer *t, const json_t *model, mha_err *err)
{
    const char *unknown, *prefix;
    size_t unknown_n, prefix_n;
    int64_t max_chars = 0;
    MHA_TRY(read_vocab(t, model, err));
    MHA_TRY(mha_field_string(&unknown, &unknown_n, model, "model", "unk_token", true, err));
    MHA_TRY(mha_field_string(&prefix, &prefix_n, model, "model", "continuing_subword_prefix", true,
                             err));
    MHA_TRY(mha_field_int(&max_chars, model, "model", "max_input_chars_per_word", true, err));
    return mha_tokenizer_set_wordpiece(t, unknown, unknown_n, prefix, prefix_n, max_chars, err);
}

/* --- BPE ------------------------------------------------------------------------------------- */

static bool read_merge(mha_bpe_merge *out, const json_t *v)
{
    if (json_is_string(v))
        return mha_bpe_merge_split(out, json_string_value(v), json_string_length(v));
    const json_t *left = json_array_get(v, 0), *right = json_array_get(v, 1);
    if (json_array_size(v) != 2 || !json_is_string(left) || !json_is_string(right))
        return false;
    *out = (mha_bpe_merge){json_string_value(left), json_string_value(right),
                           json_string_length(left), json_string_length(right)};
    return true;
}

/* The list may start like a merges.txt, with its line of version. */
static bool is_version(const json_t *v)
{
    return json_is_string(v) && strncmp(json_string_value(v), "#version", 8) == 0;
}

static mha_status read_merges(mha_bpe_merge **out, size_t *count, const json_t *model, mha_err *err)
{
    json_t *list, *v;
    void *p;
    size_t i;
    MHA_TRY(mha_field_get(&list, model, "model", "merges", JSON_ARRAY, true, err));
    MHA_TRY(mha_alloc(&p, json_array_size(list), sizeof **out, err));
    *out = p;
    *count = 0;
    json_array_foreach(list, i, v)
    {
        if (is_version(v))
            continue;
        if (!read_merge(&(*out)[*count], v))
            return mha_fail(err, MHA_ERR_FORMAT, "model.merges[%zu]: expected two pieces", i);
        ++*count;
    }
    return MHA_OK;
}

static mha_status read_bpe_options(mha_bpe_options *o, const json_t *model, mha_err *err)
{
    *o = (mha_bpe_options){.prefix = "", .suffix = ""};
    MHA_TRY(mha_field_string(&o->unknown, &o->unknown_n, model, "model", "unk_token", false, err));
    MHA_TRY(mha_field_string(&o->prefix, &o->prefix_n, model, "model", "continuing_subword_prefix",
                             false, err));
    MHA_TRY(mha_field_string(&o->suffix, &o->suffix_n, model, "model", "end_of_word_suffix", false,
                             err));
    MHA_TRY(mha_field_bool(&o->fuse_unknown, model, "model", "fuse_unk", false, err));
    MHA_TRY(mha_field_bool(&o->ignore_merges, model, "model", "ignore_merges", false, err));
    MHA_TRY(mha_field_bool(&o->byte_fallback, model, "model", "byte_fallback", false, err));
    if (o->byte_fallback && (o->prefix_n > 0 || o->suffix_n > 0))
        return mha_fail(
            err, MHA_ERR_UNSUPPORTED,
            "model: \"byte_fallback\" together with a prefix or suffix of pieces is not "
            "supported");
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "model: \"dropout\", which makes ids random, is not supported");
    return MHA_OK;
}

static mha_status read_bpe(mha_tokenizer *t, const json_t *model, mha_err *err)
{
    mha_bpe_options options;
    mha_bpe_merge *merges = NULL;
    MHA_TRY(read_vocab(t, model, err));
    MHA_TRY(read_bpe_options(&options, model, err));
    mha_status status = read_merges(&merges, &options.merge_count, model, err);
    options.merges = merges;
    if (status == MHA_OK) {
        status = mha_tokenizer_set_bpe(t, &options, err);
        if (status != MHA_OK)
            mha_fail_prefix(err, status, "model");
    }
    mha_free(merges);
    return status;
}

/* --- Unigram --------------------------------------------------------------------------------- */

/* One [piece, score] of the list, whose place is its id. */
static mha_status read_scored(mha_tokenizer *t, mha_scored_piece *out, const json_t *v, size_t i,
                              mha_err *err)
{
    const json_t *piece = json_array_get(v, 0), *score = json_array_get(v, 1);
    if (json_array_size(v) != 2 || !json_is_string(piece) || !json_is_number(score))
        return mha_fail(err, MHA_ERR_FORMAT, "model.vocab[%zu]: expected a piece and its score", i);
    mha_status status = mha_vocab_add(&t->vocab, &t->arena, json_string_value(piece),
                                      json_string_length(piece), (int64_t)i, err);
    if (status != MHA_OK)
        return mha_fail_prefix(err, status, "model.vocab");
    const mha_vocab_piece *stored = mha_vocab_piece_get(&t->vocab, (int64_t)i);
    *out = (mha_scored_piece){stored->s, stored->n, json_number_value(score), MHA_PIECE_NORMAL,
                              (int32_t)i};
    return MHA_OK;
}

/* A piece that is listed again later is left with the later place alone. */
static size_t keep_last(const mha_vocab *vocab, mha_scored_piece *pieces, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (mha_vocab_id(vocab, pieces[i].s, pieces[i].n) == pieces[i].id)
            pieces[kept++] = pieces[i];
    }
    return kept;
}

static mha_status read_unigram_pieces(mha_tokenizer *t, mha_scored_piece *pieces,
                                      const json_t *list, const json_t *model, mha_err *err)
{
    json_t *v;
    size_t i, count = json_array_size(list);
    int64_t unknown = -1;
    /* A run of unknown characters can be a piece whose score is too small. */
    mha_scored_options o = {.pieces = pieces, .runs = &t->vocab};
    json_array_foreach(list, i, v)
    {
        MHA_TRY(read_scored(t, &pieces[i], v, i, err));
    }
    MHA_TRY(mha_field_int(&unknown, model, "model", "unk_id", false, err));
    MHA_TRY(mha_field_bool(&o.byte_fallback, model, "model", "byte_fallback", false, err));
    if (unknown < -1 || (unknown >= 0 && (uint64_t)unknown >= count))
        return mha_fail(err, MHA_ERR_FORMAT, "model.unk_id is %lld, the vocabulary has %zu pieces",
                        (long long)unknown, count);
    o.n = keep_last(&t->vocab, pieces, count);
    o.unknown = (int32_t)unknown;
    return mha_tokenizer_set_scored(t, MHA_SCORED_UNIGRAM, &o, err);
}

static mha_status read_unigram(mha_tokenizer *t, const json_t *model, mha_err *err)
{
    json_t *list;
    void *p;
    MHA_TRY(mha_field_get(&list, model, "model", "vocab", JSON_ARRAY, true, err));
    if (json_array_size(list) == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "model.vocab is empty");
    MHA_TRY(mha_alloc(&p, json_array_size(list), sizeof(mha_scored_piece), err));
    mha_status status = read_unigram_pieces(t, p, list, model, err);
    mha_free(p);
    return status;
}

/* --- WordLevel ------------------------------------------------------------------------------- */

static mha_status read_wordlevel(mha_tokenizer *t, const json_t *model, mha_err *err)
{
    const char *unknown;
    size_t n;
    MHA_TRY(read_vocab(t, model, err));
    MHA_TRY(mha_field_string(&unknown, &n, model, "model", "unk_token", true, err));
    return mha_tokenizer_set_wordlevel(t, unknown, n, err);
}

/* --- the model ------------------------------------------------------------------------------- */

/* Old files have no "type": it shows in the fields. */
static const char *infer_type(const json_t *model)
{
    if (json_object_get(model, "merges"))
        return "BPE";
    if (json_is_array(json_object_get(model, "vocab")))
        return "Unigram";
    return json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static mha_status read_model(mha_tokenizer *t, const json_t *root, mha_err *err)
{
    static const struct {
        const char *type;
        mha_status (*read)(mha_tokenizer *t, const json_t *model, mha_err *err);
    } kinds[] = {{"WordPiece", read_wordpiece},
                 {"BPE", read_bpe},
                 {"Unigram", read_unigram},
                 {"WordLevel", read_wordlevel}};
    json_t *model;
    size_t n;
    MHA_TRY(mha_field_get(&model, root, "tokenizer", "model", JSON_OBJECT, true, err));
    const char *type = infer_type(model);
    MHA_TRY(mha_field_string(&type, &n, model, "model", "type", false, err));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].read(t, model, err);
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "model: \"%s\" is not supported", type);
}

/* --- added tokens ---------------------------------------------------------------------------- */

static mha_status read_added_token(mha_tokenizer *t, const json_t *o, const char *where,
                                   mha_err *err)
{
    mha_added_token token = {0};
    int64_t id = 0;
    MHA_TRY(mha_field_expect(o, where, JSON_OBJECT, err));
    MHA_TRY(mha_field_int(&id, o, where, "id", true, err));
    MHA_TRY(mha_field_string(&token.content, &token.n, o, where, "content", true, err));
    MHA_TRY(mha_field_bool(&token.single_word, o, where, "single_word", true, err));
    MHA_TRY(mha_field_bool(&token.lstrip, o, where, "lstrip", true, err));
    MHA_TRY(mha_field_bool(&token.rstrip, o, where, "rstrip", true, err));
    MHA_TRY(mha_field_bool(&token.normalized, o, where, "normalized", true, err));
    MHA_TRY(mha_field_bool(&token.special, o, where, "special", true, err));
    if (id < 0 || id > INT32_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s.id: %lld is out of range", where, (long long)id);
    token.id = (int32_t)id;
    mha_status status = mha_added_add(&t->added, &t->arena, &t->vocab, token, err);
    return status == MHA_OK ? status : mha_fail_prefix(err, status, where);
}

static mha_status read_added(mha_tokenizer *t, const json_t *root, mha_err *err)
{
    json_t *list;
    MHA_TRY(mha_field_get(&list, root, "tokenizer", "added_tokens", JSON_ARRAY, false, err));
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        char where[64];
        snprintf(where, sizeof where, "added_tokens[%zu]", i);
        MHA_TRY(read_added_token(t, json_array_get(list, i), where, err));
    }
    return MHA_OK;
}

static mha_status read_all(mha_tokenizer *t, const json_t *root, mha_err *err)
{
    const char *version = "1.0";
    size_t n;
    MHA_TRY(mha_field_expect(root, "tokenizer", JSON_OBJECT, err));
    MHA_TRY(mha_field_string(&version, &n, root, "tokenizer", "version", false, err));
    if (strcmp(version, "1.0") != 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "version \"%s\" is not supported", version);
    MHA_TRY(mha_tokenizer_set_splitting(t, root, err));
    MHA_TRY(read_model(t, root, err));
    MHA_TRY(read_added(t, root, err));
    return mha_tokenizer_finish(t, root, err);
}

mha_status mha_tokenizer_from_json(mha_tokenizer **out, const json_t *root, const char *file,
                                   mha_err *err)
{
    mha_tokenizer *t;
    *out = NULL;
    MHA_TRY(mha_tokenizer_new(&t, err));
    mha_status status = read_all(t, root, err);
    if (status != MHA_OK) {
        mha_tokenizer_free(t);
        return mha_tokenizer_name_file(err, status, file);
    }
    mha_tokenizer_guess_roles(t);
    *out = t;
    return MHA_OK;
}

mha_status mha_tokenizer_parse(mha_tokenizer **out, const char *json, size_t n, const char *file,
                               mha_err *err)
{
    json_t *root;
    *out = NULL;
    MHA_TRY(mha_json_parse(&root, json, n, file, err));
    mha_status status = mha_tokenizer_from_json(out, root, file, err);
    json_decref(root);
    return status;
}
