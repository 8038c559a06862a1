/* tokenizer_gguf.c: the tokenizer in the metadata of a GGUF file. All pieces are in one list, with
 * a type each; how text is split is only named, so the names are looked up in a table. The parts
 * are described as in a tokenizer.json and read by the same code. */
#include "text/tokenizer_gguf_private.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/pre_names.h"

#include <stdio.h>
#include <string.h>

/* U+2581, which marks the start of a word in the pieces of the kind "bert". */
#define WORD_MARK   "\xe2\x96\x81"
#define WORD_MARK_N 3

static void pieces_release(mha_gguf_pieces *p)
{
    mha_free(p->pieces);
    mha_free(p->types);
}

/* All strings of an array; *count is 0 when the key is absent and not required. */
static mha_status read_strings(const mha_gguf *g, const char *key, bool required,
                               mha_gguf_string **out, size_t *count, mha_err *err)
{
    bool found;
    void *p;
    mha_gguf_kind kind;
    *count = 0;
    MHA_TRY(mha_gguf_get_array(g, key, &found, &kind, count, err));
    if (!found && required)
        return mha_fail(err, MHA_ERR_FORMAT, "there is no %s", key);
    MHA_TRY(mha_alloc(&p, *count, sizeof **out, err));
    *out = p;
    return found ? mha_gguf_array_strings(g, key, *out, *count, err) : MHA_OK;
}

static mha_status read_types(const mha_gguf *g, mha_gguf_pieces *list, mha_err *err)
{
    bool found;
    void *p;
    mha_gguf_kind kind;
    size_t count = 0;
    MHA_TRY(mha_gguf_get_array(g, MHA_GGUF_KEY("token_type"), &found, &kind, &count, err));
    MHA_TRY(mha_alloc(&p, list->n, sizeof *list->types, err));
    list->types = p;
    if (found)
        return mha_gguf_array_ints(g, MHA_GGUF_KEY("token_type"), list->types, list->n, err);
    for (size_t i = 0; i < list->n; i++)
        list->types[i] = MHA_PIECE_NORMAL;
    return MHA_OK;
}

static mha_status read_pieces(const mha_gguf *g, mha_gguf_pieces *list, mha_err *err)
{
    MHA_TRY(read_strings(g, MHA_GGUF_KEY("tokens"), true, &list->pieces, &list->n, err));
    if (list->n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, MHA_GGUF_KEY("tokens") " is empty");
    for (size_t i = 0; i < list->n; i++) {
        if (!mha_utf8_valid(list->pieces[i].s, list->pieces[i].n))
            return mha_fail(err, MHA_ERR_FORMAT, MHA_GGUF_KEY("tokens") ": piece %zu is not UTF-8",
                            i);
    }
    return read_types(g, list, err);
}

/* Control pieces and the user's own are found in the text as they are. A piece that is listed twice
 * counts where it is last. */
mha_status mha_gguf_add_added(mha_tokenizer *t, const mha_gguf_pieces *list, bool user,
                              int32_t lstrip_id, mha_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const mha_gguf_string *s = &list->pieces[i];
        bool control = list->types[i] == MHA_PIECE_CONTROL;
        if ((!control && (!user || list->types[i] != MHA_PIECE_USER)) || s->n == 0 ||
            mha_vocab_id(&t->vocab, s->s, s->n) != (int32_t)i)
            continue;
        mha_added_token token = {.id = (int32_t)i,
                                 .content = s->s,
                                 .n = s->n,
                                 .lstrip = (int32_t)i == lstrip_id,
                                 .special = control};
        MHA_TRY(mha_added_add(&t->added, &t->arena, &t->vocab, token, err));
    }
    return MHA_OK;
}

/* --- special tokens -------------------------------------------------------------------------- */

mha_status mha_gguf_read_roles(mha_tokenizer *t, const mha_gguf *g, mha_err *err)
{
    static const struct {
        const char *key;
        mha_token_role role;
    } keys[] = {
        {MHA_GGUF_KEY("bos_token_id"), MHA_TOKEN_BOS},
        {MHA_GGUF_KEY("eos_token_id"), MHA_TOKEN_EOS},
        {MHA_GGUF_KEY("mask_token_id"), MHA_TOKEN_MASK},
        {MHA_GGUF_KEY("padding_token_id"), MHA_TOKEN_PAD},
        {MHA_GGUF_KEY("unknown_token_id"), MHA_TOKEN_UNK},
        {MHA_GGUF_KEY("cls_token_id"), MHA_TOKEN_CLS},
        {MHA_GGUF_KEY("seperator_token_id"), MHA_TOKEN_SEP},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool found;
        int64_t id = 0;
        MHA_TRY(mha_gguf_get_int(g, keys[i].key, &found, &id, err));
        if (found && !mha_vocab_piece_get(&t->vocab, id))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: the id %lld is outside of the vocabulary",
                            keys[i].key, (long long)id);
        if (found)
            t->roles[keys[i].role] = (int32_t)id;
    }
    return MHA_OK;
}

mha_status mha_gguf_get_flag(const mha_gguf *g, const char *key, bool *out, mha_err *err)
{
    bool found, value = false;
    MHA_TRY(mha_gguf_get_bool(g, key, &found, &value, err));
    if (found)
        *out = value;
    return MHA_OK;
}

mha_status mha_gguf_read_frame(mha_frame *f, const mha_tokenizer *t, const mha_gguf *g, bool bos,
                               bool eos, bool around, mha_err *err)
{
    bool sep = around;
    bos = bos || around;
    *f = (mha_frame){.second_type = true};
    MHA_TRY(mha_gguf_get_flag(g, MHA_GGUF_KEY("add_bos_token"), &bos, err));
    MHA_TRY(mha_gguf_get_flag(g, MHA_GGUF_KEY("add_eos_token"), &eos, err));
    MHA_TRY(mha_gguf_get_flag(g, MHA_GGUF_KEY("add_sep_token"), &sep, err));
    int32_t cls_id = t->roles[MHA_TOKEN_CLS], bos_id = t->roles[MHA_TOKEN_BOS];
    int32_t sep_id = t->roles[MHA_TOKEN_SEP], eos_id = t->roles[MHA_TOKEN_EOS];
    f->first[0] = sep && cls_id >= 0 ? cls_id : bos_id;
    f->last[0] = sep && sep_id >= 0 ? sep_id : eos_id;
    f->first_n = bos;
    f->last_n = sep || eos;
    if ((bos && f->first[0] < 0) || (f->last_n && f->last[0] < 0))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "a special token goes around the text, but its id is not given");
    return MHA_OK;
}

/* --- the kind "gpt2" ------------------------------------------------------------------------- */

static mha_status set_note(mha_tokenizer *t, const char *pre, mha_err *err)
{
    char note[256];
    char *copy;
    if (pre)
        snprintf(note, sizeof note,
                 "the pre-tokenizer \"%.60s\" is not known, GPT-2's is used: token ids may differ",
                 pre);
    else
        snprintf(note, sizeof note,
                 "the file does not name its pre-tokenizer, GPT-2's is used: token ids may differ");
    MHA_TRY(mha_arena_strdup(&copy, &t->arena, note, err));
    t->note = copy;
    return MHA_OK;
}

static mha_status find_pre(const mha_pre_kind **out, mha_tokenizer *t, const mha_gguf *g,
                           mha_err *err)
{
    bool found;
    mha_gguf_string s;
    char name[64];
    MHA_TRY(mha_gguf_get_string(g, MHA_GGUF_KEY("pre"), &found, &s, err));
    if (!found) {
        *out = mha_pre_kind_find("gpt-2");
        return set_note(t, NULL, err);
    }
    snprintf(name, sizeof name, "%.*s", (int)(s.n < 60 ? s.n : 60), s.s);
    *out = mha_pre_kind_find(name);
    if (*out)
        return MHA_OK;
    *out = mha_pre_kind_find("gpt-2");
    return set_note(t, name, err);
}

static mha_status read_merges(const mha_gguf *g, mha_bpe_merge **out, size_t *count, mha_err *err)
{
    mha_gguf_string *strings = NULL;
    void *p;
    mha_status status = read_strings(g, MHA_GGUF_KEY("merges"), true, &strings, count, err);
    if (status == MHA_OK)
        status = mha_alloc(&p, *count, sizeof **out, err);
    if (status == MHA_OK)
        *out = p;
    for (size_t i = 0; status == MHA_OK && i < *count; i++) {
        if (!mha_bpe_merge_split(&(*out)[i], strings[i].s, strings[i].n))
            status = mha_fail(err, MHA_ERR_FORMAT,
                              MHA_GGUF_KEY("merges") "[%zu]: expected two pieces", i);
    }
    mha_free(strings);
    return status;
}

/* What export.c needs to write the tokenizer as a tokenizer.json. */
static mha_status keep_description(mha_tokenizer *t, const json_t *description,
                                   const mha_pre_kind *pre, mha_err *err)
{
    char *copy, *text;
    MHA_TRY(mha_tokenizer_dump(description, 0, &text, err));
    mha_status status = mha_arena_strdup(&copy, &t->arena, text, err);
    mha_free(text);
    MHA_TRY(status);
    t->description = copy;
    t->ignore_merges = pre->ignore_merges;
    return MHA_OK;
}

static mha_status build_gpt2(mha_tokenizer *t, const mha_gguf *g, const mha_gguf_pieces *list,
                             const mha_pre_kind *pre, json_t *description, mha_err *err)
{
    mha_bpe_options options = {.prefix = "", .suffix = "", .ignore_merges = pre->ignore_merges};
    mha_bpe_merge *merges = NULL;
    mha_frame f;
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    mha_status status = read_merges(g, &merges, &options.merge_count, err);
    options.merges = merges;
    if (status == MHA_OK)
        status = mha_tokenizer_set_bpe(t, &options, err);
    mha_free(merges);
    MHA_TRY(status);
    MHA_TRY(mha_gguf_read_roles(t, g, err));
    MHA_TRY(
        mha_gguf_add_added(t, list, true, pre->mask_lstrip ? t->roles[MHA_TOKEN_MASK] : -1, err));
    MHA_TRY(mha_gguf_read_frame(&f, t, g, pre->add_bos, false, pre->around, err));
    if (pre->doubled) {
        f.pair = MHA_PAIR_DOUBLED;
        f.second_type = false;
    }
    MHA_TRY(mha_describe_frame(description, &f, err));
    MHA_TRY(keep_description(t, description, pre, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_gpt2(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                            mha_err *err)
{
    const mha_pre_kind *pre;
    json_t *description;
    for (size_t i = 0; i < list->n; i++)
        MHA_TRY(mha_vocab_add(&t->vocab, &t->arena, list->pieces[i].s, list->pieces[i].n,
                              (int64_t)i, err));
    MHA_TRY(find_pre(&pre, t, g, err));
    MHA_TRY(mha_pre_kind_describe(&description, pre, err));
    mha_status status = build_gpt2(t, g, list, pre, description, err);
    json_decref(description);
    return status;
}

/* --- the kind "bert" ------------------------------------------------------------------------- */

/* Back from "▁word" and "piece" to "word" and "##piece". Pieces in brackets, and control pieces,
 * are as they were. */
static mha_status add_bert_piece(mha_tokenizer *t, const mha_gguf_string *s, int64_t type,
                                 int64_t id, mha_err *err)
{
    const char *piece = s->s;
    size_t n = s->n;
    bool start = n >= WORD_MARK_N && memcmp(piece, WORD_MARK, WORD_MARK_N) == 0;
    bool brackets = n >= 2 && piece[0] == '[' && piece[n - 1] == ']';
    if (start && type != MHA_PIECE_CONTROL)
        return mha_vocab_add(&t->vocab, &t->arena, piece + WORD_MARK_N, n - WORD_MARK_N, id, err);
    if (brackets || type == MHA_PIECE_CONTROL)
        return mha_vocab_add(&t->vocab, &t->arena, piece, n, id, err);
    char *joined;
    void *p;
    MHA_TRY(mha_arena_alloc(&p, &t->arena, n + 2, 1, err));
    joined = p;
    memcpy(joined, "##", 2);
    memcpy(joined + 2, piece, n);
    return mha_vocab_add(&t->vocab, &t->arena, joined, n + 2, id, err);
}

/* The file does not say whether the model knows upper case: its pieces do. */
static bool has_upper_case(const mha_gguf_pieces *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const mha_gguf_string *s = &list->pieces[i];
        bool brackets = s->n >= 2 && s->s[s->n - 1] == ']';
        for (size_t k = 0; k < s->n && list->types[i] == MHA_PIECE_NORMAL && !brackets; k++) {
            if (s->s[k] >= 'A' && s->s[k] <= 'Z')
                return true;
        }
    }
    return false;
}

static mha_status build_bert(mha_tokenizer *t, const mha_gguf *g, const mha_gguf_pieces *list,
                             json_t *description, mha_err *err)
{
    mha_frame f;
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_gguf_read_roles(t, g, err));
    const mha_vocab_piece *unknown = mha_vocab_piece_get(&t->vocab, t->roles[MHA_TOKEN_UNK]);
    if (!unknown)
        return mha_fail(err, MHA_ERR_FORMAT, "there is no " MHA_GGUF_KEY("unknown_token_id"));
    MHA_TRY(mha_tokenizer_set_wordpiece(t, unknown->s, unknown->n, "##", 2, 100, err));
    MHA_TRY(mha_gguf_add_added(t, list, true, -1, err));
    MHA_TRY(mha_gguf_read_frame(&f, t, g, false, false, true, err));
    MHA_TRY(mha_describe_frame(description, &f, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_bert(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                            mha_err *err)
{
    int lower = !has_upper_case(list);
    for (size_t i = 0; i < list->n; i++)
        MHA_TRY(add_bert_piece(t, &list->pieces[i], list->types[i], (int64_t)i, err));
    json_t *description =
        json_pack("{s:{s:s, s:b, s:b, s:b, s:b}, s:{s:s}, s:{s:s, s:s, s:b}}", "normalizer", "type",
                  "BertNormalizer", "clean_text", 1, "handle_chinese_chars", 1, "strip_accents",
                  lower, "lowercase", lower, "pre_tokenizer", "type", "BertPreTokenizer", "decoder",
                  "type", "WordPiece", "prefix", "##", "cleanup", 1);
    if (!description)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    mha_status status = build_bert(t, g, list, description, err);
    json_decref(description);
    return status;
}

/* --- the file -------------------------------------------------------------------------------- */

static const struct gguf_kind {
    const char *name;
    mha_status (*read)(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list, mha_err *err);
} kinds[] = {{"gpt2", read_gpt2},
             {"bert", read_bert},
             {"llama", mha_gguf_read_llama},
             {"t5", mha_gguf_read_t5}};

static mha_status read_kind(mha_tokenizer *t, const struct gguf_kind *kind, const mha_gguf *g,
                            mha_err *err)
{
    mha_gguf_pieces list = {0};
    mha_status status = read_pieces(g, &list, err);
    if (status == MHA_OK)
        status = kind->read(t, g, &list, err);
    pieces_release(&list);
    if (status == MHA_OK)
        mha_tokenizer_guess_roles(t);
    return status;
}

mha_status mha_tokenizer_open_gguf(mha_tokenizer **out, const mha_gguf *g, mha_err *err)
{
    bool found;
    mha_gguf_string s;
    const char *file = mha_gguf_file(g);
    *out = NULL;
    MHA_TRY(mha_gguf_get_string(g, "tokenizer.huggingface.json", &found, &s, err));
    if (found)
        return mha_tokenizer_name_file(
            err, mha_tokenizer_parse(out, s.s, s.n, "tokenizer.huggingface.json", err), file);
    MHA_TRY(mha_gguf_get_string(g, MHA_GGUF_KEY("model"), &found, &s, err));
    if (!found)
        return MHA_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) != s.n || memcmp(kinds[i].name, s.s, s.n) != 0)
            continue;
        mha_tokenizer *t;
        MHA_TRY(mha_tokenizer_new(&t, err));
        mha_status status = read_kind(t, &kinds[i], g, err);
        if (status == MHA_OK)
            *out = t;
        else
            mha_tokenizer_free(t);
        return mha_tokenizer_name_file(err, status, file);
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED,
                    "%s: " MHA_GGUF_KEY("model") ": the tokenizer kind \"%.*s\" is not supported",
                    file, (int)(s.n < 40 ? s.n : 40), s.s);
}
