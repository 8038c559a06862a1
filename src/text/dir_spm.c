/* dir_spm.c: SentencePiece model files. The file has the pieces and how text is split; the class of
 * the tokenizer says which ids the pieces have, which special tokens there are, and what goes
 * around a text. */
#include "text/dir_private.h"

#include "base/fail.h"
#include "base/filemap.h"
#include "text/describe.h"
#include "text/field.h"

#include <stdio.h>
#include <string.h>

#define CONFIG "tokenizer_config.json"

/* Which ids the pieces have. */
typedef enum id_rule {
    IDS_PLAIN,    /* their places */
    IDS_FAIRSEQ,  /* <s> <pad> </s> <unk>, then the pieces from place 3 on; <mask> last */
    IDS_CAMEMBERT /* five special ones, then the pieces from place 1 on; <mask> last */
} id_rule;

typedef enum frame_rule {
    AROUND_CLS,          /* [CLS] A [SEP] B [SEP] */
    AROUND_DOUBLED,      /* <s> A </s> </s> B </s> */
    AROUND_EOS,          /* A </s> B </s> */
    AROUND_BOS,          /* <s> A <s> B, if not said otherwise; also </s>, if said so */
    AROUND_EOS_LANGUAGE, /* A B </s> language */
    AROUND_LANGUAGE_EOS  /* language A B </s> */
} frame_rule;

#define SPECIALS_MAX 6

typedef struct spm_class {
    const char *name, *model_type, *file; /* of tokenizer_config.json, config.json, directory */
    id_rule ids;
    frame_rule frame;
    mha_space_prefix prefix;
    const char *specials[SPECIALS_MAX]; /* first BOS or CLS, EOS or SEP; then others */
    bool mask_lstrip;                   /* the mask token swallows the space before it */
    const char *languages;              /* codes behind the pieces, each of five letters */
    bool cleans;                        /* quotes, case and accents are changed first (ALBERT) */
    int64_t extra;                      /* <extra_id_0> and so on, from the end backwards */
} spm_class;

#define LANGUAGES                                                                                  \
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT "   \
    "lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN "
#define LANGUAGES_50                                                                               \
    LANGUAGES "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN "     \
              "pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES "     \
              "sl_SI "
#define CODE_N 5

#define FAIRSEQ_SPECIALS                                                                           \
    {                                                                                              \
        "<s>", "</s>", "<unk>", "<pad>", "<mask>"                                                  \
    }

/* A directory that names neither a class nor a type of model is taken by the name of its file, for
 * the first class that has it. */
static const spm_class classes[] = {
    {.name = "LlamaTokenizer",
     .model_type = " llama mistral mixtral ",
     .file = "tokenizer.model",
     .frame = AROUND_BOS,
     .prefix = MHA_SPACE_FIRST,
     .specials = {"<s>", "</s>", "<unk>"}},
    {.name = "GemmaTokenizer",
     .model_type = " gemma gemma2 gemma3 gemma3_text ",
     .file = "tokenizer.model",
     .frame = AROUND_BOS,
     .prefix = MHA_SPACE_FIRST,
     .specials = {"<bos>", "<eos>", "<unk>", "<pad>", "<mask>"}},
    {.name = "T5Tokenizer",
     .model_type = " t5 mt5 umt5 ",
     .file = "spiece.model",
     .frame = AROUND_EOS,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = {"<pad>", "</s>", "<unk>"},
     .extra = 100},
    {.name = "AlbertTokenizer",
     .model_type = " albert ",
     .file = "spiece.model",
     .frame = AROUND_CLS,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = {"[CLS]", "[SEP]", "<unk>", "<pad>", "[MASK]"},
     .mask_lstrip = true,
     .cleans = true},
    {.name = "BigBirdTokenizer",
     .model_type = " big_bird ",
     .file = "spiece.model",
     .frame = AROUND_CLS,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = {"[CLS]", "[SEP]", "<unk>", "<pad>", "[MASK]"},
     .mask_lstrip = true},
    {.name = "DebertaV2Tokenizer",
     .model_type = " deberta-v2 ",
     .file = "spm.model",
     .frame = AROUND_CLS,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"}},
    {.name = "XLMRobertaTokenizer",
     .model_type = " xlm-roberta xlm-roberta-xl xmod ",
     .file = "sentencepiece.bpe.model",
     .ids = IDS_FAIRSEQ,
     .frame = AROUND_DOUBLED,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = FAIRSEQ_SPECIALS,
     .mask_lstrip = true},
    {.name = "CamembertTokenizer",
     .model_type = " camembert ",
     .file = "sentencepiece.bpe.model",
     .ids = IDS_CAMEMBERT,
     .frame = AROUND_DOUBLED,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = FAIRSEQ_SPECIALS,
     .mask_lstrip = true},
    {.name = "MBartTokenizer",
     .model_type = " mbart ",
     .file = "sentencepiece.bpe.model",
     .ids = IDS_FAIRSEQ,
     .frame = AROUND_EOS_LANGUAGE,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = FAIRSEQ_SPECIALS,
     .mask_lstrip = true,
     .languages = LANGUAGES},
    {.name = "MBart50Tokenizer",
     .model_type = " ",
     .file = "sentencepiece.bpe.model",
     .ids = IDS_FAIRSEQ,
     .frame = AROUND_LANGUAGE_EOS,
     .prefix = MHA_SPACE_ALWAYS,
     .specials = FAIRSEQ_SPECIALS,
     .mask_lstrip = true,
     .languages = LANGUAGES_50},
};
#define CLASS_COUNT (sizeof classes / sizeof *classes)

static const spm_class *class_by_name(const char *name)
{
    if (strcmp(name, "MT5Tokenizer") == 0)
        name = "T5Tokenizer";
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        if (strcmp(classes[i].name, name) == 0)
            return &classes[i];
    }
    return NULL;
}

static const spm_class *class_by_model(const mha_model_dir *d)
{
    char padded[80];
    const char *type = json_string_value(json_object_get(d->model, "model_type"));
    int n = snprintf(padded, sizeof padded, " %s ", type ? type : "?");
    for (size_t i = 0; i < CLASS_COUNT && n < (int)sizeof padded; i++) {
        if (strstr(classes[i].model_type, padded))
            return &classes[i];
    }
    return NULL;
}

static const spm_class *class_by_file(const char *file)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        if (strcmp(classes[i].file, file) == 0)
            return &classes[i];
    }
    return NULL;
}

/* --- pieces ---------------------------------------------------------------------------------- */

static mha_status add_piece(mha_tokenizer *t, const char *s, size_t n, mha_err *err)
{
    size_t count = t->vocab.count;
    MHA_TRY(mha_vocab_add(&t->vocab, &t->arena, s, n, (int64_t)t->vocab.n, err));
    if (t->vocab.count == count)
        return mha_fail(err, MHA_ERR_FORMAT, "the piece \"%.*s\" is there twice",
                        (int)(n < 40 ? n : 40), s);
    return MHA_OK;
}

static mha_status add_names(mha_tokenizer *t, const char *const *names, size_t n, mha_err *err)
{
    for (size_t i = 0; i < n; i++)
        MHA_TRY(add_piece(t, names[i], strlen(names[i]), err));
    return MHA_OK;
}

/* Adds the pieces from a place on, and tells each its id. */
static mha_status add_pieces(mha_tokenizer *t, mha_spm *m, size_t first, mha_err *err)
{
    for (size_t i = first; i < m->n; i++) {
        mha_scored_piece *p = &m->pieces[i];
        p->id = (int32_t)t->vocab.n;
        MHA_TRY(add_piece(t, p->s, p->n, err));
        p->s = t->vocab.pieces[p->id].s;
    }
    return MHA_OK;
}

static mha_status add_languages(mha_tokenizer *t, const spm_class *c, mha_err *err)
{
    for (const char *s = c->languages; s && *s; s += CODE_N + 1)
        MHA_TRY(add_piece(t, s, CODE_N, err));
    return MHA_OK;
}

/* The first pieces of the file give way to the class's own: their ids are those of the same names,
 * or of the unknown. */
static mha_status add_renumbered(mha_tokenizer *t, mha_spm *m, const spm_class *c, mha_err *err)
{
    static const char *const fairseq[] = {"<s>", "<pad>", "</s>", "<unk>"};
    static const char *const camembert[] = {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>",
                                            "<unk>NOTUSED"};
    size_t dropped = c->ids == IDS_FAIRSEQ ? 3 : 1;
    if (m->n < dropped || (size_t)m->unknown >= dropped)
        return mha_fail(err, MHA_ERR_FORMAT, "the unknown piece is not among the first %zu",
                        dropped);
    if (c->ids == IDS_FAIRSEQ)
        MHA_TRY(add_names(t, fairseq, 4, err));
    else
        MHA_TRY(add_names(t, camembert, 5, err));
    int32_t unknown = mha_vocab_id(&t->vocab, "<unk>", 5);
    for (size_t i = 0; i < dropped; i++) {
        mha_scored_piece *p = &m->pieces[i];
        int32_t id = mha_vocab_id(&t->vocab, p->s, p->n);
        p->id = id >= 0 ? id : unknown;
        p->s = t->vocab.pieces[p->id].s;
        p->n = t->vocab.pieces[p->id].n;
    }
    m->pieces[m->unknown].id = unknown;
    MHA_TRY(add_pieces(t, m, dropped, err));
    MHA_TRY(add_languages(t, c, err));
    return add_piece(t, "<mask>", 6, err);
}

/* ALBERT takes a comma off the number before it; that is imitated by scores which make such pieces
 * the last choice. */
static void lower_number_commas(mha_spm *m)
{
    for (size_t i = 0; i < m->n; i++) {
        mha_scored_piece *p = &m->pieces[i];
        if (p->n >= 2 && p->s[p->n - 1] == ',' && p->s[p->n - 2] >= '0' && p->s[p->n - 2] <= '9')
            p->score -= 100;
    }
}

/* --- special tokens -------------------------------------------------------------------------- */

static mha_status add_special(mha_tokenizer *t, const char *content, bool lstrip, bool append,
                              mha_err *err)
{
    if (!append || mha_tokenizer_id(t, content) >= 0)
        return mha_dir_add_special(t, content, lstrip, err);
    size_t next = t->vocab.n;
    if (t->added.largest >= 0 && (size_t)t->added.largest >= next)
        next = (size_t)t->added.largest + 1;
    mha_added_token token = {.id = (int32_t)next,
                             .content = content,
                             .n = strlen(content),
                             .lstrip = lstrip,
                             .special = true};
    return mha_added_add(&t->added, &t->arena, &t->vocab, token, err);
}

/* Sentinels stand behind the pieces, the first one last. */
static mha_status add_extra(mha_tokenizer *t, const mha_model_dir *d, const spm_class *c,
                            mha_err *err)
{
    int64_t count = c->extra;
    if (count == 0)
        return MHA_OK;
    MHA_TRY(mha_field_int(&count, d->config, CONFIG, "extra_ids", false, err));
    if (count < 0 || count > 10000)
        return mha_fail(err, MHA_ERR_FORMAT, CONFIG ": extra_ids is %lld", (long long)count);
    for (int64_t i = count; i-- > 0;) {
        char name[32];
        snprintf(name, sizeof name, "<extra_id_%lld>", (long long)i);
        MHA_TRY(add_special(t, name, false, true, err));
    }
    return MHA_OK;
}

/* Control pieces of the file never come out of text by themselves: they stand for themselves. */
static mha_status add_control(mha_tokenizer *t, const mha_spm *m, mha_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        const mha_scored_piece *p = &m->pieces[i];
        if (p->type == MHA_PIECE_CONTROL)
            MHA_TRY(mha_dir_add_special(t, p->s, false, err));
    }
    return MHA_OK;
}

static mha_status add_tokens(mha_tokenizer *t, const mha_model_dir *d, const spm_class *c,
                             const mha_spm *m, mha_err *err)
{
    MHA_TRY(mha_dir_add_listed(t, d, err));
    for (size_t i = 0; i < SPECIALS_MAX && c->specials[i]; i++) {
        bool mask = strstr(c->specials[i], "mask") || strstr(c->specials[i], "MASK");
        MHA_TRY(add_special(t, c->specials[i], mask && c->mask_lstrip, mask, err));
    }
    for (const char *s = c->languages; s && *s; s += CODE_N + 1) {
        char code[CODE_N + 1];
        snprintf(code, sizeof code, "%.*s", CODE_N, s);
        MHA_TRY(mha_dir_add_special(t, code, false, err));
    }
    MHA_TRY(add_extra(t, d, c, err));
    return add_control(t, m, err);
}

/* --- what goes around a text ------------------------------------------------------------------ */

static mha_status find_special(const mha_tokenizer *t, const char *name, int32_t *out, mha_err *err)
{
    *out = mha_tokenizer_id(t, name);
    return *out >= 0 ? MHA_OK
                     : mha_fail(err, MHA_ERR_FORMAT,
                                "there is no piece \"%s\" to put around a text", name);
}

static mha_status frame_bos(mha_frame *f, const mha_tokenizer *t, const mha_model_dir *d,
                            const spm_class *c, mha_err *err)
{
    bool bos = true, eos = false;
    MHA_TRY(mha_field_bool(&bos, d->config, CONFIG, "add_bos_token", false, err));
    MHA_TRY(mha_field_bool(&eos, d->config, CONFIG, "add_eos_token", false, err));
    *f = (mha_frame){.first_n = bos, .last_n = eos, .pair = MHA_PAIR_REPEAT, .second_type = true};
    const char *first = mha_dir_or(mha_dir_token(d, "bos_token"), c->specials[0]);
    const char *last = mha_dir_or(mha_dir_token(d, "eos_token"), c->specials[1]);
    if (bos)
        MHA_TRY(find_special(t, first, &f->first[0], err));
    return eos ? find_special(t, last, &f->last[0], err) : MHA_OK;
}

static mha_status frame_language(mha_frame *f, const mha_tokenizer *t, const mha_model_dir *d,
                                 bool before, mha_err *err)
{
    const char *code = "en_XX";
    size_t n;
    MHA_TRY(mha_field_string(&code, &n, d->config, CONFIG, "src_lang", false, err));
    *f = (mha_frame){.first_n = before, .last_n = before ? 1 : 2, .pair = MHA_PAIR_JOINED};
    MHA_TRY(find_special(t, "</s>", &f->last[0], err));
    return find_special(t, code, before ? &f->first[0] : &f->last[1], err);
}

static mha_status read_frame(mha_frame *f, const mha_tokenizer *t, const mha_model_dir *d,
                             const spm_class *c, mha_err *err)
{
    switch (c->frame) {
    case AROUND_BOS:
        return frame_bos(f, t, d, c, err);
    case AROUND_EOS_LANGUAGE:
    case AROUND_LANGUAGE_EOS:
        return frame_language(f, t, d, c->frame == AROUND_LANGUAGE_EOS, err);
    case AROUND_EOS:
        *f = (mha_frame){.last_n = 1};
        return find_special(t, c->specials[1], &f->last[0], err);
    case AROUND_CLS:
    case AROUND_DOUBLED:
        *f = (mha_frame){.first_n = 1, .last_n = 1};
        f->pair = c->frame == AROUND_DOUBLED ? MHA_PAIR_DOUBLED : MHA_PAIR_SHARED;
        f->second_type = c->frame == AROUND_CLS;
        MHA_TRY(find_special(t, c->specials[0], &f->first[0], err));
        return find_special(t, c->specials[1], &f->last[0], err);
    }
    return MHA_OK;
}

/* --- the file -------------------------------------------------------------------------------- */

/* What ALBERT does to a text before SentencePiece sees it. */
static mha_status describe_cleaning(json_t *description, const mha_model_dir *d, mha_err *err)
{
    bool lower = true, accents = false;
    MHA_TRY(mha_field_bool(&lower, d->config, CONFIG, "do_lower_case", false, err));
    MHA_TRY(mha_field_bool(&accents, d->config, CONFIG, "keep_accents", false, err));
    json_t *steps = json_pack("[{s:s, s:{s:s}, s:s}, {s:s, s:{s:s}, s:s}]", "type", "Replace",
                              "pattern", "String", "``", "content", "\"", "type", "Replace",
                              "pattern", "String", "''", "content", "\"");
    int failed = 0;
    if (!accents)
        failed |= json_array_append_new(steps, json_pack("{s:s}", "type", "NFKD")) |
                  json_array_append_new(steps, json_pack("{s:s}", "type", "StripAccents"));
    if (lower)
        failed |= json_array_append_new(steps, json_pack("{s:s}", "type", "Lowercase"));
    json_t *all = json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
    if (!all || failed || json_object_set_new(description, "normalizer", all) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    return MHA_OK;
}

/* DeBERTa's two settings, of which only one can be honoured. */
static mha_status describe_case(json_t *description, const mha_model_dir *d, mha_err *err)
{
    bool lower = false, punct = false;
    MHA_TRY(mha_field_bool(&lower, d->config, CONFIG, "do_lower_case", false, err));
    MHA_TRY(mha_field_bool(&punct, d->config, CONFIG, "split_by_punct", false, err));
    if (punct)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, CONFIG ": split_by_punct is not supported");
    if (lower && json_object_set_new(description, "normalizer",
                                     json_pack("{s:s}", "type", "Lowercase")) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    return MHA_OK;
}

/* "legacy" says whether the text behind a special token gets a space, too. */
static mha_status read_prefix(mha_space_prefix *out, const mha_model_dir *d, const spm_class *c,
                              mha_err *err)
{
    bool legacy = c->prefix == MHA_SPACE_ALWAYS, add = true;
    if (c->frame == AROUND_BOS)
        MHA_TRY(mha_field_bool(&legacy, d->config, CONFIG, "legacy", false, err));
    MHA_TRY(mha_field_bool(&add, d->config, CONFIG, "add_prefix_space", false, err));
    *out = !add ? MHA_SPACE_NEVER : legacy ? MHA_SPACE_ALWAYS : MHA_SPACE_FIRST;
    return MHA_OK;
}

static mha_status build(mha_tokenizer *t, const mha_model_dir *d, const spm_class *c, mha_spm *m,
                        json_t *description, mha_err *err)
{
    mha_space_prefix prefix;
    mha_frame f;
    if (c->cleans) {
        MHA_TRY(describe_cleaning(description, d, err));
        lower_number_commas(m);
    } else if (c->frame == AROUND_CLS) {
        MHA_TRY(describe_case(description, d, err));
    }
    MHA_TRY(c->ids == IDS_PLAIN ? add_pieces(t, m, 0, err) : add_renumbered(t, m, c, err));
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(read_prefix(&prefix, d, c, err));
    MHA_TRY(mha_tokenizer_set_sentencepiece(t, m, prefix, false, err));
    MHA_TRY(add_tokens(t, d, c, m, err));
    MHA_TRY(read_frame(&f, t, d, c, err));
    MHA_TRY(mha_describe_frame(description, &f, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_data(mha_tokenizer *t, const mha_model_dir *d, const spm_class *c,
                            const char *data, size_t size, const char *path, mha_err *err)
{
    mha_spm m;
    json_t *description = NULL;
    MHA_TRY(mha_spm_read(&m, (const unsigned char *)data, size, path, err));
    mha_status status = mha_describe_sentencepiece(&description, m.dummy_prefix, err);
    if (status == MHA_OK)
        status = build(t, d, c, &m, description, err);
    json_decref(description);
    mha_spm_release(&m);
    return mha_tokenizer_name_file(err, status, path);
}

static mha_status find_class(const spm_class **out, const mha_model_dir *d, const char *file,
                             mha_err *err)
{
    char name[64];
    mha_dir_class(name, d);
    *out = class_by_name(name);
    if (!*out && *name == '\0')
        *out = class_by_model(d);
    if (!*out && *name == '\0')
        *out = class_by_file(file);
    return *out ? MHA_OK : mha_dir_refuse_class(d, name, file, err);
}

mha_status mha_dir_read_spm(mha_tokenizer *t, const mha_model_dir *d, const char *file,
                            mha_err *err)
{
    const spm_class *c;
    char path[PATH_MAX];
    char *data;
    size_t size;
    MHA_TRY(find_class(&c, d, file, err));
    MHA_TRY(mha_dir_file(path, d->path, file, err));
    MHA_TRY(mha_file_read(&data, &size, path, MHA_DIR_FILE_MAX, err));
    mha_status status = read_data(t, d, c, data, size, path, err);
    mha_free(data);
    return status;
}
