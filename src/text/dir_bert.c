/* dir_bert.c: vocab.txt, the vocabulary of BERT: one piece a line, and around it what the class of
 * tokenizer does. */
#include "text/dir_private.h"

#include "base/fail.h"
#include "text/field.h"

#include <string.h>

mha_status mha_dir_read_pieces(mha_tokenizer *t, const char *directory, mha_err *err)
{
    char *text;
    const char *line;
    size_t n, line_n, at = 0;
    int64_t id = 0;
    MHA_TRY(mha_dir_read_lines(&text, &n, directory, "vocab.txt", err));
    mha_status status = MHA_OK;
    while (status == MHA_OK && mha_dir_next_line(text, n, &at, &line, &line_n))
        status = mha_vocab_add(&t->vocab, &t->arena, line, line_n, id++, err);
    mha_free(text);
    return status;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static mha_status describe_bert(json_t **out, const mha_model_dir *d, mha_err *err)
{
    static const char where[] = "tokenizer_config.json";
    bool lower = true, cjk = true;
    MHA_TRY(mha_field_bool(&lower, d->config, where, "do_lower_case", false, err));
    bool accents = lower;
    MHA_TRY(mha_field_bool(&cjk, d->config, where, "tokenize_chinese_chars", false, err));
    MHA_TRY(mha_field_bool(&accents, d->config, where, "strip_accents", false, err));
    *out =
        json_pack("{s:{s:s, s:b, s:b, s:b, s:b}, s:{s:s}, s:{s:s, s:s, s:b}}", "normalizer", "type",
                  "BertNormalizer", "clean_text", 1, "handle_chinese_chars", cjk, "strip_accents",
                  accents, "lowercase", lower, "pre_tokenizer", "type", "BertPreTokenizer",
                  "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1);
    return *out ? MHA_OK : mha_fail(err, MHA_ERR_NOMEM, "out of memory");
}

static mha_status build_bert(mha_tokenizer *t, const mha_model_dir *d, json_t *description,
                             mha_err *err)
{
    const char *unk = mha_dir_or(mha_dir_token(d, "unk_token"), "[UNK]");
    const char *cls = mha_dir_or(mha_dir_token(d, "cls_token"), "[CLS]");
    const char *sep = mha_dir_or(mha_dir_token(d, "sep_token"), "[SEP]");
    const char *names[] = {mha_dir_or(mha_dir_token(d, "pad_token"), "[PAD]"), unk, cls, sep,
                           mha_dir_or(mha_dir_token(d, "mask_token"), "[MASK]")};
    for (size_t i = 1; i < 4; i++) {
        if (mha_vocab_id(&t->vocab, names[i], strlen(names[i])) < 0)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s/vocab.txt: there is no \"%s\"; only BERT's kind of vocab.txt is "
                            "supported",
                            d->path, names[i]);
    }
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_wordpiece(t, unk, strlen(unk), "##", 2, 100, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        MHA_TRY(mha_dir_add_special(t, names[i], false, err));
    MHA_TRY(mha_dir_add_listed(t, d, err));
    MHA_TRY(mha_dir_set_processor(description, t, "BertProcessing", cls, sep, false, err));
    return mha_tokenizer_finish(t, description, err);
}

mha_status mha_dir_read_vocab_txt(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    static const char *const classes[] = {"",
                                          "BertTokenizer",
                                          "DistilBertTokenizer",
                                          "ElectraTokenizer",
                                          "MobileBertTokenizer",
                                          "LayoutLMTokenizer"};
    char class[64];
    json_t *description;
    mha_dir_class(class, d);
    const char *type = json_string_value(json_object_get(d->model, "model_type"));
    if (strcmp(class, "EsmTokenizer") == 0 || (*class == '\0' && type && strcmp(type, "esm") == 0))
        return mha_dir_read_esm(t, d, err);
    if (!is_one_of(class, classes, sizeof classes / sizeof *classes))
        return mha_dir_refuse_class(d, class, "vocab.txt", err);
    MHA_TRY(mha_dir_read_pieces(t, d->path, err));
    MHA_TRY(describe_bert(&description, d, err));
    mha_status status = build_bert(t, d, description, err);
    json_decref(description);
    return status;
}
