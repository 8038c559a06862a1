/* dir_bpe.c: vocab.json with merges.txt, byte-level BPE: the classes of tokenizer differ in how
 * they split words and in their special tokens. */
#include "text/describe.h"
#include "text/dir_private.h"

#include "base/fail.h"
#include "io/json.h"
#include "text/field.h"

#include <limits.h>
#include <string.h>

mha_status mha_dir_read_vocabulary(mha_tokenizer *t, const char *directory, mha_err *err)
{
    char path[PATH_MAX];
    json_t *root, *id;
    const char *piece;
    MHA_TRY(mha_dir_file(path, directory, "vocab.json", err));
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
    while (mha_dir_next_line(list->text, n, &at, &line, &line_n)) {
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
typedef enum bpe_style {
    STYLE_UNKNOWN,
    STYLE_GPT2,
    STYLE_ROBERTA,
    STYLE_QWEN2,
    STYLE_CLIP
} bpe_style;

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
        {"CLIPTokenizer", STYLE_CLIP},
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

#define CLIP_WORDS                                                                                 \
    "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|"            \
    "[^\\s\\p{L}\\p{N}]+"

/* CLIP: small letters, single spaces; what stands between words is dropped. */
static json_t *describe_clip(void)
{
    return json_pack("{s:{s:s, s:[{s:s}, {s:s, s:{s:s}, s:s}, {s:s}]}, "
                     "s:{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, {s:s, s:b}]}, s:{s:s}}",
                     "normalizer", "type", "Sequence", "normalizers", "type", "NFC", "type",
                     "Replace", "pattern", "Regex", "\\s+", "content", " ", "type", "Lowercase",
                     "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split",
                     "pattern", "Regex", CLIP_WORDS, "behavior", "Removed", "invert", 1, "type",
                     "ByteLevel", "add_prefix_space", 0, "decoder", "type", "ByteLevel");
}

static json_t *describe_bpe(bpe_style style, bool add_prefix_space)
{
    if (style == STYLE_CLIP)
        return describe_clip();
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
static mha_status set_bos(json_t *description, const mha_tokenizer *t, const mha_model_dir *d,
                          mha_err *err)
{
    const char *bos = mha_dir_or(mha_dir_token(d, "bos_token"), "<|endoftext|>");
    int32_t id = mha_tokenizer_id(t, bos);
    if (id < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/vocab.json: there is no \"%s\" to put first",
                        d->path, bos);
    mha_frame f = {.first = {id}, .first_n = 1, .pair = MHA_PAIR_REPEAT, .second_type = true};
    return mha_describe_frame(description, &f, err);
}

#define CLIP_START "<|startoftext|>"
#define CLIP_END   "<|endoftext|>"

static mha_status set_clip_frame(json_t *description, const mha_tokenizer *t, mha_err *err)
{
    mha_frame f = {.first = {mha_tokenizer_id(t, CLIP_START)},
                   .last = {mha_tokenizer_id(t, CLIP_END)},
                   .first_n = 1,
                   .last_n = 1,
                   .pair = MHA_PAIR_DOUBLED};
    if (f.first[0] < 0 || f.last[0] < 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "vocab.json: " CLIP_START " and " CLIP_END " must be there");
    return mha_describe_frame(description, &f, err);
}

static mha_status add_class_tokens(mha_tokenizer *t, const mha_model_dir *d, bpe_style style,
                                   mha_err *err)
{
    static const char *const roberta[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (size_t i = 0; style == STYLE_ROBERTA && i < 4; i++)
        MHA_TRY(mha_dir_add_special(t, roberta[i], false, err));
    if (style == STYLE_ROBERTA)
        MHA_TRY(mha_dir_add_special(t, "<mask>", true, err));
    else if (style == STYLE_CLIP)
        MHA_TRY(mha_dir_add_special(t, CLIP_START, false, err));
    if (style != STYLE_ROBERTA)
        MHA_TRY(mha_dir_add_special(t, "<|endoftext|>", false, err));
    for (size_t i = 0; mha_dir_roles[i].key; i++) {
        const char *s = mha_dir_token(d, mha_dir_roles[i].key);
        if (s)
            MHA_TRY(mha_dir_add_special(
                t, s, style == STYLE_ROBERTA && mha_dir_roles[i].role == MHA_TOKEN_MASK, err));
    }
    return MHA_OK;
}

static mha_status build_bpe(mha_tokenizer *t, const mha_model_dir *d, bpe_style style,
                            const merge_list *merges, json_t *description, bool add_prefix_space,
                            mha_err *err)
{
    bool add_bos = false;
    mha_bpe_options options = {
        .merges = merges->v, .merge_count = merges->n, .prefix = "", .suffix = ""};
    if (style == STYLE_CLIP) {
        options.unknown = CLIP_END;
        options.unknown_n = strlen(CLIP_END);
        options.suffix = "</w>";
        options.suffix_n = 4;
    }
    MHA_TRY(
        mha_field_bool(&add_bos, d->config, "tokenizer_config.json", "add_bos_token", false, err));
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_bpe(t, &options, err));
    MHA_TRY(mha_dir_add_listed(t, d, err));
    MHA_TRY(add_class_tokens(t, d, style, err));
    if (style == STYLE_ROBERTA)
        MHA_TRY(mha_dir_set_processor(
            description, t, "RobertaProcessing", mha_dir_or(mha_dir_token(d, "cls_token"), "<s>"),
            mha_dir_or(mha_dir_token(d, "sep_token"), "</s>"), add_prefix_space, err));
    else if (style == STYLE_CLIP)
        MHA_TRY(set_clip_frame(description, t, err));
    else if (add_bos)
        MHA_TRY(set_bos(description, t, d, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_described_bpe(mha_tokenizer *t, const mha_model_dir *d, bpe_style style,
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

mha_status mha_dir_read_vocab_json(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    char class[64];
    merge_list merges = {0};
    size_t n;
    mha_dir_class(class, d);
    MHA_TRY(mha_dir_read_vocabulary(t, d->path, err));
    bpe_style style = style_of(t, class);
    if (style == STYLE_UNKNOWN)
        return mha_dir_refuse_class(d, class, "vocab.json", err);
    MHA_TRY(mha_dir_read_lines(&merges.text, &n, d->path, "merges.txt", err));
    mha_status status = parse_merges(&merges, n, err);
    if (status == MHA_OK)
        status = read_described_bpe(t, d, style, &merges, err);
    mha_free(merges.v);
    mha_free(merges.text);
    return status;
}
