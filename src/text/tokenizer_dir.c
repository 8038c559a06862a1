/* tokenizer_dir.c: the tokenizer of a model directory. tokenizer.json says everything itself;
 * vocab.txt, and vocab.json with merges.txt, are completed by what the class of tokenizer named in
 * tokenizer_config.json does around them, written as parts of a tokenizer.json. */
#include "text/tokenizer_private.h"

#include "base/fail.h"
#include "base/filemap.h"
#include "base/utf8.h"
#include "io/json.h"
#include "text/field.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_FILE_MAX ((size_t)256 << 20)

typedef struct model_dir {
    const char *path;
    json_t *config;   /* tokenizer_config.json; NULL when there is none */
    json_t *specials; /* special_tokens_map.json, likewise */
    json_t *added;    /* added_tokens.json, likewise */
} model_dir;

static mha_status file_path(char out[PATH_MAX], const char *directory, const char *name,
                            mha_err *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", directory, name);
    if (n < 0 || n >= PATH_MAX)
        return mha_fail(err, MHA_ERR_IO, "%.200s…: the path is too long", directory);
    return MHA_OK;
}

static bool exists(const char *directory, const char *name)
{
    char path[PATH_MAX];
    return file_path(path, directory, name, NULL) == MHA_OK && access(path, F_OK) == 0;
}

static mha_status open_optional(json_t **out, const char *directory, const char *name, mha_err *err)
{
    char path[PATH_MAX];
    *out = NULL;
    if (!exists(directory, name))
        return MHA_OK;
    MHA_TRY(file_path(path, directory, name, err));
    return mha_json_open(out, path, err);
}

/* --- roles and special tokens ---------------------------------------------------------------- */

static const struct role_key {
    const char *key;
    mha_token_role role;
} role_keys[] = {
    {"bos_token", MHA_TOKEN_BOS}, {"eos_token", MHA_TOKEN_EOS}, {"mask_token", MHA_TOKEN_MASK},
    {"pad_token", MHA_TOKEN_PAD}, {"unk_token", MHA_TOKEN_UNK}, {"cls_token", MHA_TOKEN_CLS},
    {"sep_token", MHA_TOKEN_SEP},
};

/* A token is written as a string or as an object with "content". */
static const char *token_content(const json_t *v)
{
    return json_is_object(v) ? json_string_value(json_object_get(v, "content"))
                             : json_string_value(v);
}

static const char *named_token(const model_dir *d, const char *key)
{
    const char *s = token_content(json_object_get(d->config, key));
    return s ? s : token_content(json_object_get(d->specials, key));
}

static void set_roles(mha_tokenizer *t, const model_dir *d)
{
    for (size_t i = 0; i < sizeof role_keys / sizeof *role_keys; i++) {
        const char *s = named_token(d, role_keys[i].key);
        int32_t id = s ? mha_tokenizer_id(t, s) : -1;
        if (id >= 0)
            t->roles[role_keys[i].role] = id;
    }
    mha_tokenizer_guess_roles(t);
}

/* Adds a special token of the class if the vocabulary has it. */
static mha_status add_special(mha_tokenizer *t, const char *content, bool lstrip, mha_err *err)
{
    int32_t id = mha_vocab_id(&t->vocab, content, strlen(content));
    if (id < 0 || mha_added_find(&t->added, content, strlen(content)))
        return MHA_OK;
    mha_added_token token = {
        .id = id, .content = content, .n = strlen(content), .lstrip = lstrip, .special = true};
    return mha_added_add(&t->added, &t->arena, &t->vocab, token, err);
}

static int compare_ids(const void *a, const void *b)
{
    const mha_added_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static mha_status read_decoder_entry(mha_added_token *out, const char *key, const json_t *o,
                                     mha_err *err)
{
    static const char where[] = "tokenizer_config.json: added_tokens_decoder";
    char *end;
    *out = (mha_added_token){.normalized = true};
    MHA_TRY(mha_field_expect(o, where, JSON_OBJECT, err));
    MHA_TRY(mha_field_string(&out->content, &out->n, o, where, "content", true, err));
    MHA_TRY(mha_field_bool(&out->single_word, o, where, "single_word", false, err));
    MHA_TRY(mha_field_bool(&out->lstrip, o, where, "lstrip", false, err));
    MHA_TRY(mha_field_bool(&out->rstrip, o, where, "rstrip", false, err));
    MHA_TRY(mha_field_bool(&out->normalized, o, where, "normalized", false, err));
    MHA_TRY(mha_field_bool(&out->special, o, where, "special", false, err));
    long id = strtol(key, &end, 10);
    if (*key == '\0' || *end != '\0' || id < 0 || id > INT32_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: \"%s\" is no id", where, key);
    out->id = (int32_t)id;
    return MHA_OK;
}

static mha_status read_added_entry(mha_added_token *out, const char *key, const json_t *id,
                                   mha_err *err)
{
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "added_tokens.json: \"%s\" has no id", key);
    *out = (mha_added_token){.id = (int32_t)json_integer_value(id),
                             .content = key,
                             .n = strlen(key),
                             .normalized = true};
    return MHA_OK;
}

/* Adds the tokens of one object, in the order of their ids as they were given out. */
static mha_status add_all(mha_tokenizer *t, const json_t *object,
                          mha_status (*read)(mha_added_token *out, const char *key,
                                             const json_t *value, mha_err *err),
                          mha_err *err)
{
    void *p, *next = json_object_iter((json_t *)(uintptr_t)object);
    size_t n = 0, count = json_object_size(object);
    MHA_TRY(mha_alloc(&p, count, sizeof(mha_added_token), err));
    mha_added_token *tokens = p;
    mha_status status = MHA_OK;
    for (; status == MHA_OK && n < count; n++) {
        status = read(&tokens[n], json_object_iter_key(next), json_object_iter_value(next), err);
        next = json_object_iter_next((json_t *)(uintptr_t)object, next);
    }
    if (status == MHA_OK && count > 0)
        qsort(tokens, count, sizeof *tokens, compare_ids);
    for (size_t i = 0; status == MHA_OK && i < count; i++) {
        if (!mha_added_find(&t->added, tokens[i].content, tokens[i].n))
            status = mha_added_add(&t->added, &t->arena, &t->vocab, tokens[i], err);
    }
    mha_free(tokens);
    return status;
}

static mha_status add_listed(mha_tokenizer *t, const model_dir *d, mha_err *err)
{
    json_t *list;
    MHA_TRY(mha_field_get(&list, d->config, "tokenizer_config.json", "added_tokens_decoder",
                          JSON_OBJECT, false, err));
    MHA_TRY(add_all(t, list, read_decoder_entry, err));
    return add_all(t, d->added, read_added_entry, err);
}

/* --- files of lines -------------------------------------------------------------------------- */

/* The next line of s[*at..n) without its end; false behind the last one. */
static bool next_line(const char *s, size_t n, size_t *at, const char **line, size_t *line_n)
{
    if (*at >= n)
        return false;
    const char *newline = memchr(s + *at, '\n', n - *at);
    size_t end = newline ? (size_t)(newline - s) : n;
    *line = s + *at;
    *line_n = end - *at;
    *at = end + 1;
    if (*line_n > 0 && (*line)[*line_n - 1] == '\r')
        --*line_n;
    return true;
}

static mha_status read_lines(char **text, size_t *n, const char *directory, const char *name,
                             mha_err *err)
{
    char path[PATH_MAX];
    MHA_TRY(file_path(path, directory, name, err));
    MHA_TRY(mha_file_read(text, n, path, LINES_FILE_MAX, err));
    if (mha_utf8_valid(*text, *n))
        return MHA_OK;
    mha_free(*text);
    *text = NULL;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: not UTF-8", path);
}

/* --- vocab.txt ------------------------------------------------------------------------------- */

static mha_status read_vocab_txt(mha_tokenizer *t, const char *directory, mha_err *err)
{
    char *text;
    const char *line;
    size_t n, line_n, at = 0;
    int64_t id = 0;
    MHA_TRY(read_lines(&text, &n, directory, "vocab.txt", err));
    mha_status status = MHA_OK;
    while (status == MHA_OK && next_line(text, n, &at, &line, &line_n))
        status = mha_vocab_add(&t->vocab, &t->arena, line, line_n, id++, err);
    mha_free(text);
    return status;
}

/* The class named in tokenizer_config.json, "Fast" cut off, copied to `out`; "" when there is none.
 */
static void class_name(char out[64], const model_dir *d)
{
    const char *s = json_string_value(json_object_get(d->config, "tokenizer_class"));
    snprintf(out, 64, "%s", s ? s : "");
    size_t n = strlen(out);
    if (n > 4 && strcmp(out + n - 4, "Fast") == 0)
        out[n - 4] = '\0';
}

static mha_status unsupported_class(const model_dir *d, const char *class, const char *file,
                                    mha_err *err)
{
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s/%s: the tokenizer class \"%s\" is not supported",
                    d->path, file, class);
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static const char *or_default(const char *s, const char *other)
{
    return s ? s : other;
}

/* "BertProcessing" or "RobertaProcessing" around two pieces. Takes part in a description. */
static mha_status set_processor(json_t *description, const mha_tokenizer *t, const char *type,
                                const char *cls, const char *sep, bool add_prefix_space,
                                mha_err *err)
{
    json_t *o = json_pack("{s:s, s:[s,i], s:[s,i], s:b, s:b}", "type", type, "cls", cls,
                          (int)mha_vocab_id(&t->vocab, cls, strlen(cls)), "sep", sep,
                          (int)mha_vocab_id(&t->vocab, sep, strlen(sep)), "trim_offsets", 1,
                          "add_prefix_space", add_prefix_space);
    if (!o || json_object_set_new(description, "post_processor", o) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    return MHA_OK;
}

static mha_status describe_bert(json_t **out, const model_dir *d, mha_err *err)
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

static mha_status build_bert(mha_tokenizer *t, const model_dir *d, json_t *description,
                             mha_err *err)
{
    const char *unk = or_default(named_token(d, "unk_token"), "[UNK]");
    const char *cls = or_default(named_token(d, "cls_token"), "[CLS]");
    const char *sep = or_default(named_token(d, "sep_token"), "[SEP]");
    const char *names[] = {or_default(named_token(d, "pad_token"), "[PAD]"), unk, cls, sep,
                           or_default(named_token(d, "mask_token"), "[MASK]")};
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
        MHA_TRY(add_special(t, names[i], false, err));
    MHA_TRY(add_listed(t, d, err));
    MHA_TRY(set_processor(description, t, "BertProcessing", cls, sep, false, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_bert(mha_tokenizer *t, const model_dir *d, mha_err *err)
{
    static const char *const classes[] = {"",
                                          "BertTokenizer",
                                          "DistilBertTokenizer",
                                          "ElectraTokenizer",
                                          "MobileBertTokenizer",
                                          "LayoutLMTokenizer"};
    char class[64];
    json_t *description;
    class_name(class, d);
    if (!is_one_of(class, classes, sizeof classes / sizeof *classes))
        return unsupported_class(d, class, "vocab.txt", err);
    MHA_TRY(read_vocab_txt(t, d->path, err));
    MHA_TRY(describe_bert(&description, d, err));
    mha_status status = build_bert(t, d, description, err);
    json_decref(description);
    return status;
}

/* --- vocab.json and merges.txt --------------------------------------------------------------- */

static mha_status read_vocab_json(mha_tokenizer *t, const char *directory, mha_err *err)
{
    char path[PATH_MAX];
    json_t *root, *id;
    const char *piece;
    MHA_TRY(file_path(path, directory, "vocab.json", err));
    MHA_TRY(mha_json_open(&root, path, err));
    mha_status status = mha_field_expect(root, path, JSON_OBJECT, err);
    if (status == MHA_OK) {
        json_object_foreach(root, piece, id)
        {
            if (!json_is_integer(id))
                status = mha_fail(err, MHA_ERR_FORMAT, "%s: the id of \"%.40s\" is no integer",
                                  path, piece);
            else
                status = mha_vocab_add(&t->vocab, &t->arena, piece, strlen(piece),
                                       json_integer_value(id), err);
            if (status != MHA_OK)
                break;
        }
    }
    json_decref(root);
    return status;
}

typedef struct merge_list {
    char *text; /* of the file; the merges point into it */
    mha_bpe_merge *v;
    size_t n;
} merge_list;

static mha_status parse_merges(merge_list *list, size_t n, mha_err *err)
{
    const char *line;
    size_t line_n, at = 0, number = 0, lines = 1;
    void *p;
    for (size_t i = 0; i < n; i++)
        lines += list->text[i] == '\n';
    MHA_TRY(mha_alloc(&p, lines, sizeof *list->v, err));
    list->v = p;
    while (next_line(list->text, n, &at, &line, &line_n)) {
        number++;
        if (line_n == 0 || (line_n >= 8 && memcmp(line, "#version", 8) == 0))
            continue;
        if (!mha_bpe_merge_split(&list->v[list->n], line, line_n))
            return mha_fail(err, MHA_ERR_FORMAT, "merges.txt: line %zu: expected two pieces",
                            number);
        list->n++;
    }
    return MHA_OK;
}

/* What a class of tokenizer does around byte-level BPE. */
typedef enum bpe_style { STYLE_UNKNOWN, STYLE_GPT2, STYLE_ROBERTA, STYLE_QWEN2 } bpe_style;

static bpe_style style_of(const mha_tokenizer *t, const char *class)
{
    static const struct {
        const char *class;
        bpe_style style;
    } styles[] = {
        {"GPT2Tokenizer", STYLE_GPT2},    {"RobertaTokenizer", STYLE_ROBERTA},
        {"BartTokenizer", STYLE_ROBERTA}, {"LongformerTokenizer", STYLE_ROBERTA},
        {"LEDTokenizer", STYLE_ROBERTA},  {"MvpTokenizer", STYLE_ROBERTA},
        {"CodeGenTokenizer", STYLE_GPT2}, {"Qwen2Tokenizer", STYLE_QWEN2},
    };
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        if (strcmp(styles[i].class, class) == 0)
            return styles[i].style;
    }
    if (*class != '\0')
        return STYLE_UNKNOWN;
    bool roberta =
        mha_vocab_id(&t->vocab, "<s>", 3) >= 0 && mha_vocab_id(&t->vocab, "</s>", 4) >= 0;
    return roberta ? STYLE_ROBERTA : STYLE_GPT2;
}

#define QWEN2_WORDS                                                                                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"                           \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static json_t *describe_bpe(bpe_style style, bool add_prefix_space)
{
    if (style == STYLE_QWEN2)
        return json_pack("{s:{s:s}, s:{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, {s:s, s:b, s:b}]}, "
                         "s:{s:s}}",
                         "normalizer", "type", "NFC", "pre_tokenizer", "type", "Sequence",
                         "pretokenizers", "type", "Split", "pattern", "Regex", QWEN2_WORDS,
                         "behavior", "Isolated", "invert", 0, "type", "ByteLevel",
                         "add_prefix_space", add_prefix_space, "use_regex", 0, "decoder", "type",
                         "ByteLevel");
    return json_pack("{s:{s:s, s:b}, s:{s:s}}", "pre_tokenizer", "type", "ByteLevel",
                     "add_prefix_space", add_prefix_space, "decoder", "type", "ByteLevel");
}

/* OPT: the bos token goes before the text. */
static mha_status set_bos(json_t *description, const mha_tokenizer *t, const model_dir *d,
                          mha_err *err)
{
    const char *bos = or_default(named_token(d, "bos_token"), "<|endoftext|>");
    int32_t id = mha_tokenizer_id(t, bos);
    if (id < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/vocab.json: there is no \"%s\" to put first",
                        d->path, bos);
    json_t *o =
        json_pack("{s:s, s:[{s:{s:s,s:i}}, {s:{s:s,s:i}}],"
                  " s:[{s:{s:s,s:i}}, {s:{s:s,s:i}}, {s:{s:s,s:i}}, {s:{s:s,s:i}}], s:{s:{s:[i]}}}",
                  "type", "TemplateProcessing", "single", "SpecialToken", "id", bos, "type_id", 0,
                  "Sequence", "id", "A", "type_id", 0, "pair", "SpecialToken", "id", bos, "type_id",
                  0, "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id", bos, "type_id", 1,
                  "Sequence", "id", "B", "type_id", 1, "special_tokens", bos, "ids", (int)id);
    if (!o || json_object_set_new(description, "post_processor", o) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    return MHA_OK;
}

static mha_status add_class_tokens(mha_tokenizer *t, const model_dir *d, bpe_style style,
                                   mha_err *err)
{
    static const char *const roberta[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (size_t i = 0; style == STYLE_ROBERTA && i < 4; i++)
        MHA_TRY(add_special(t, roberta[i], false, err));
    if (style == STYLE_ROBERTA)
        MHA_TRY(add_special(t, "<mask>", true, err));
    else
        MHA_TRY(add_special(t, "<|endoftext|>", false, err));
    for (size_t i = 0; i < sizeof role_keys / sizeof *role_keys; i++) {
        const char *s = named_token(d, role_keys[i].key);
        if (s)
            MHA_TRY(add_special(t, s, style == STYLE_ROBERTA && role_keys[i].role == MHA_TOKEN_MASK,
                                err));
    }
    return MHA_OK;
}

static mha_status build_bpe(mha_tokenizer *t, const model_dir *d, bpe_style style,
                            const merge_list *merges, json_t *description, bool add_prefix_space,
                            mha_err *err)
{
    bool add_bos = false;
    mha_bpe_options options = {
        .merges = merges->v, .merge_count = merges->n, .prefix = "", .suffix = ""};
    MHA_TRY(
        mha_field_bool(&add_bos, d->config, "tokenizer_config.json", "add_bos_token", false, err));
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_bpe(t, &options, err));
    MHA_TRY(add_listed(t, d, err));
    MHA_TRY(add_class_tokens(t, d, style, err));
    if (style == STYLE_ROBERTA)
        MHA_TRY(set_processor(
            description, t, "RobertaProcessing", or_default(named_token(d, "cls_token"), "<s>"),
            or_default(named_token(d, "sep_token"), "</s>"), add_prefix_space, err));
    else if (add_bos)
        MHA_TRY(set_bos(description, t, d, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_described_bpe(mha_tokenizer *t, const model_dir *d, bpe_style style,
                                     const merge_list *merges, mha_err *err)
{
    bool prefix = false;
    MHA_TRY(mha_field_bool(&prefix, d->config, "tokenizer_config.json", "add_prefix_space", false,
                           err));
    json_t *description = describe_bpe(style, prefix);
    if (!description)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    mha_status status = build_bpe(t, d, style, merges, description, prefix, err);
    json_decref(description);
    return status;
}

static mha_status read_bpe(mha_tokenizer *t, const model_dir *d, mha_err *err)
{
    char class[64];
    merge_list merges = {0};
    size_t n;
    class_name(class, d);
    MHA_TRY(read_vocab_json(t, d->path, err));
    bpe_style style = style_of(t, class);
    if (style == STYLE_UNKNOWN)
        return unsupported_class(d, class, "vocab.json", err);
    MHA_TRY(read_lines(&merges.text, &n, d->path, "merges.txt", err));
    mha_status status = parse_merges(&merges, n, err);
    if (status == MHA_OK)
        status = read_described_bpe(t, d, style, &merges, err);
    mha_free(merges.v);
    mha_free(merges.text);
    return status;
}

/* --- the directory --------------------------------------------------------------------------- */

static mha_status read_kind(mha_tokenizer **out, const model_dir *d,
                            mha_status (*read)(mha_tokenizer *t, const model_dir *d, mha_err *err),
                            mha_err *err)
{
    mha_tokenizer *t;
    MHA_TRY(mha_tokenizer_new(&t, err));
    mha_status status = read(t, d, err);
    if (status != MHA_OK) {
        mha_tokenizer_free(t);
        return status;
    }
    *out = t;
    return MHA_OK;
}

static mha_status open_tokenizer_json(mha_tokenizer **out, const char *directory, mha_err *err)
{
    char path[PATH_MAX];
    json_t *root;
    MHA_TRY(file_path(path, directory, "tokenizer.json", err));
    MHA_TRY(mha_json_open(&root, path, err));
    mha_status status = mha_tokenizer_from_json(out, root, err);
    json_decref(root);
    return status == MHA_OK ? status : mha_fail_prefix(err, status, path);
}

static mha_status open_any(mha_tokenizer **out, const model_dir *d, mha_err *err)
{
    static const char *const others[] = {"tokenizer.model", "spiece.model", "spm.model",
                                         "sentencepiece.bpe.model", "source.spm"};
    if (exists(d->path, "tokenizer.json"))
        return open_tokenizer_json(out, d->path, err);
    if (exists(d->path, "vocab.txt"))
        return read_kind(out, d, read_bert, err);
    if (exists(d->path, "vocab.json") && exists(d->path, "merges.txt"))
        return read_kind(out, d, read_bpe, err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (exists(d->path, others[i]))
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s/%s: SentencePiece models are not supported", d->path, others[i]);
    }
    return MHA_OK;
}

mha_status mha_tokenizer_open_directory(mha_tokenizer **out, const char *path, mha_err *err)
{
    model_dir d = {.path = path};
    *out = NULL;
    mha_status status = open_optional(&d.config, path, "tokenizer_config.json", err);
    if (status == MHA_OK)
        status = open_optional(&d.specials, path, "special_tokens_map.json", err);
    if (status == MHA_OK)
        status = open_optional(&d.added, path, "added_tokens.json", err);
    if (status == MHA_OK)
        status = open_any(out, &d, err);
    if (*out)
        set_roles(*out, &d);
    json_decref(d.config);
    json_decref(d.specials);
    json_decref(d.added);
    return status;
}
