/* assemble.c: putting a tokenizer together from a vocabulary and JSON descriptions of its other
 * parts. Every kind of file ends up here: what is not a tokenizer.json is described as one. It may
 * not read files. */
#include "text/tokenizer_private.h"

#include "base/fail.h"

#include <string.h>

mha_status mha_tokenizer_new(mha_tokenizer **out, mha_err *err)
{
    void *p;
    *out = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof **out, err));
    mha_tokenizer *t = p;
    mha_vocab_init(&t->vocab);
    mha_added_init(&t->added);
    for (size_t i = 0; i < MHA_TOKEN_ROLES; i++)
        t->roles[i] = -1;
    *out = t;
    return MHA_OK;
}

void mha_tokenizer_free(mha_tokenizer *t)
{
    if (!t)
        return;
    mha_tokenizer_free(t->target);
    mha_model_release(&t->model);
    mha_decoders_release(&t->decoders);
    mha_pretokenizers_release(&t->pretokenizers);
    mha_normalizers_release(&t->normalizers);
    mha_added_release(&t->added);
    mha_vocab_release(&t->vocab);
    mha_free(t->added_by_id);
    mha_arena_release(&t->arena);
    mha_free(t);
}

mha_status mha_tokenizer_set_splitting(mha_tokenizer *t, const json_t *description, mha_err *err)
{
    MHA_TRY(mha_normalizers_parse(&t->normalizers, &t->arena,
                                  json_object_get(description, "normalizer"), err));
    return mha_pretokenizers_parse(&t->pretokenizers, json_object_get(description, "pre_tokenizer"),
                                   err);
}

mha_status mha_tokenizer_set_wordpiece(mha_tokenizer *t, const char *unknown, size_t unknown_n,
                                       const char *prefix, size_t prefix_n, int64_t max_chars,
                                       mha_err *err)
{
    char *copy;
    mha_wordpiece_options options = {
        .unknown = mha_vocab_id(&t->vocab, unknown, unknown_n),
        .prefix = prefix,
        .prefix_n = prefix_n,
        .max_chars = max_chars,
    };
    if (options.unknown < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "unk_token \"%s\" is not in the vocabulary", unknown);
    MHA_TRY(mha_arena_strndup(&copy, &t->arena, prefix, prefix_n, err));
    t->continuing_prefix = copy;
    t->roles[MHA_TOKEN_UNK] = options.unknown;
    return mha_wordpiece_new(&t->model, &t->vocab, &options, err);
}

mha_status mha_tokenizer_set_bpe(mha_tokenizer *t, mha_bpe_options *options, mha_err *err)
{
    size_t known = mha_bpe_known_bytes(&t->vocab);
    bool plain = options->prefix_n == 0 && options->suffix_n == 0;
    /* Where every byte is a piece, none is unknown. */
    plain = plain && (!options->unknown || known == 256);
    options->bytes = plain && mha_pretokenizers_keep_bytes(&t->pretokenizers);
    t->byte_alphabet = known >= MHA_BPE_BYTES_ENOUGH;
    if (options->suffix_n > 0) {
        char *suffix;
        MHA_TRY(mha_arena_strndup(&suffix, &t->arena, options->suffix, options->suffix_n, err));
        t->word_suffix = suffix;
    }
    if (options->unknown)
        t->roles[MHA_TOKEN_UNK] = mha_vocab_id(&t->vocab, options->unknown, options->unknown_n);
    return mha_bpe_new(&t->model, &t->vocab, &t->arena, options, err);
}

mha_status mha_tokenizer_set_wordlevel(mha_tokenizer *t, const char *unknown, size_t unknown_n,
                                       mha_err *err)
{
    int32_t id = mha_vocab_id(&t->vocab, unknown, unknown_n);
    t->roles[MHA_TOKEN_UNK] = id;
    return mha_wordlevel_new(&t->model, &t->vocab, id, err);
}

mha_status mha_tokenizer_set_scored(mha_tokenizer *t, mha_scored_kind kind,
                                    const mha_scored_options *options, mha_err *err)
{
    t->roles[MHA_TOKEN_UNK] = options->unknown;
    if (kind == MHA_SCORED_BPE)
        return mha_scored_bpe_new(&t->model, options, err);
    return mha_unigram_new(&t->model, options, kind == MHA_SCORED_SENTENCEPIECE, err);
}

static mha_status index_added(mha_tokenizer *t, mha_err *err)
{
    void *p;
    size_t largest = (size_t)t->added.largest + 1;
    t->vocab_size = largest > t->vocab.n ? largest : t->vocab.n;
    MHA_TRY(mha_alloc(&p, t->vocab_size, sizeof *t->added_by_id, err));
    t->added_by_id = p;
    for (size_t i = 0; i < t->added.n; i++)
        t->added_by_id[t->added.v[i].id] = &t->added.v[i];
    return MHA_OK;
}

mha_status mha_tokenizer_finish(mha_tokenizer *t, const json_t *description, mha_err *err)
{
    MHA_TRY(mha_added_finish(&t->added, &t->arena, &t->normalizers, err));
    MHA_TRY(index_added(t, err));
    MHA_TRY(mha_template_parse(&t->template, &t->arena,
                               json_object_get(description, "post_processor"), t->vocab_size, err));
    MHA_TRY(
        mha_decoders_parse(&t->decoders, &t->arena, json_object_get(description, "decoder"), err));
    t->byte_pieces = mha_decoders_have_bytes(&t->decoders);
    t->space_mark = mha_decoders_space_mark(&t->decoders, &t->space_mark_n);
    return MHA_OK;
}

mha_status mha_tokenizer_name_file(mha_err *err, mha_status status, const char *file)
{
    if (status == MHA_OK || !err || strncmp(err->message, file, strlen(file)) == 0)
        return status;
    return mha_fail_prefix(err, status, file);
}

void mha_tokenizer_guess_roles(mha_tokenizer *t)
{
    static const struct {
        mha_token_role role;
        const char *piece;
    } common[] = {
        {MHA_TOKEN_CLS, "[CLS]"},         {MHA_TOKEN_SEP, "[SEP]"},
        {MHA_TOKEN_MASK, "[MASK]"},       {MHA_TOKEN_MASK, "<mask>"},
        {MHA_TOKEN_PAD, "[PAD]"},         {MHA_TOKEN_PAD, "<pad>"},
        {MHA_TOKEN_UNK, "[UNK]"},         {MHA_TOKEN_UNK, "<unk>"},
        {MHA_TOKEN_CLS, "<cls>"},         {MHA_TOKEN_BOS, "<s>"},
        {MHA_TOKEN_BOS, "<bos>"},         {MHA_TOKEN_BOS, "<|begin_of_text|>"},
        {MHA_TOKEN_BOS, "<|endoftext|>"}, {MHA_TOKEN_EOS, "</s>"},
        {MHA_TOKEN_EOS, "<eos>"},         {MHA_TOKEN_EOS, "<|end_of_text|>"},
        {MHA_TOKEN_EOS, "<|endoftext|>"},
    };
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        const mha_added_token *added =
            mha_added_find(&t->added, common[i].piece, strlen(common[i].piece));
        if (added && t->roles[common[i].role] < 0)
            t->roles[common[i].role] = added->id;
    }
}
