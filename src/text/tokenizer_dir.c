/* tokenizer_dir.c: the tokenizer of a model directory. tokenizer.json says everything itself; other
 * files are completed by what the class of tokenizer named in tokenizer_config.json does around
 * them, written as parts of a tokenizer.json. */
#include "text/dir_private.h"

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

mha_status mha_dir_file(char out[PATH_MAX], const char *directory, const char *name, mha_err *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", directory, name);
    if (n < 0 || n >= PATH_MAX)
        return mha_fail(err, MHA_ERR_IO, "%.200s…: the path is too long", directory);
    return MHA_OK;
}

bool mha_dir_has(const char *directory, const char *name)
{
    char path[PATH_MAX];
    return mha_dir_file(path, directory, name, NULL) == MHA_OK && access(path, F_OK) == 0;
}

static mha_status open_optional(json_t **out, const char *directory, const char *name, mha_err *err)
{
    char path[PATH_MAX];
    *out = NULL;
    if (!mha_dir_has(directory, name))
        return MHA_OK;
    MHA_TRY(mha_dir_file(path, directory, name, err));
    return mha_json_open(out, path, err);
}

/* --- roles and special tokens ---------------------------------------------------------------- */

const mha_dir_role mha_dir_roles[] = {
    {"bos_token", MHA_TOKEN_BOS}, {"eos_token", MHA_TOKEN_EOS}, {"mask_token", MHA_TOKEN_MASK},
    {"pad_token", MHA_TOKEN_PAD}, {"unk_token", MHA_TOKEN_UNK}, {"cls_token", MHA_TOKEN_CLS},
    {"sep_token", MHA_TOKEN_SEP}, {NULL, MHA_TOKEN_BOS},
};

/* A token is written as a string or as an object with "content". */
static const char *token_content(const json_t *v)
{
    return json_is_object(v) ? json_string_value(json_object_get(v, "content"))
                             : json_string_value(v);
}

const char *mha_dir_token(const mha_model_dir *d, const char *key)
{
    const char *s = token_content(json_object_get(d->config, key));
    return s ? s : token_content(json_object_get(d->specials, key));
}

void mha_dir_set_roles(mha_tokenizer *t, const mha_model_dir *d)
{
    for (size_t i = 0; mha_dir_roles[i].key; i++) {
        const char *s = mha_dir_token(d, mha_dir_roles[i].key);
        int32_t id = s ? mha_tokenizer_id(t, s) : -1;
        if (id >= 0)
            t->roles[mha_dir_roles[i].role] = id;
    }
    mha_tokenizer_guess_roles(t);
}

/* Adds a special token of the class if the vocabulary has it. */
mha_status mha_dir_add_special(mha_tokenizer *t, const char *content, bool lstrip, mha_err *err)
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

mha_status mha_dir_add_listed(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    json_t *list;
    MHA_TRY(mha_field_get(&list, d->config, "tokenizer_config.json", "added_tokens_decoder",
                          JSON_OBJECT, false, err));
    MHA_TRY(add_all(t, list, read_decoder_entry, err));
    return add_all(t, d->added, read_added_entry, err);
}

/* --- files of lines -------------------------------------------------------------------------- */

bool mha_dir_next_line(const char *s, size_t n, size_t *at, const char **line, size_t *line_n)
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

mha_status mha_dir_read_lines(char **text, size_t *n, const char *directory, const char *name,
                              mha_err *err)
{
    char path[PATH_MAX];
    MHA_TRY(mha_dir_file(path, directory, name, err));
    MHA_TRY(mha_file_read(text, n, path, MHA_DIR_FILE_MAX, err));
    if (mha_utf8_valid(*text, *n))
        return MHA_OK;
    mha_free(*text);
    *text = NULL;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: not UTF-8", path);
}

/* --- classes ---------------------------------------------------------------------------------- */

void mha_dir_class(char out[64], const mha_model_dir *d)
{
    const char *s = json_string_value(json_object_get(d->config, "tokenizer_class"));
    snprintf(out, 64, "%s", s ? s : "");
    size_t n = strlen(out);
    if (n > 4 && strcmp(out + n - 4, "Fast") == 0)
        out[n - 4] = '\0';
}

mha_status mha_dir_refuse_class(const mha_model_dir *d, const char *class, const char *file,
                                mha_err *err)
{
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s/%s: the tokenizer class \"%s\" is not supported",
                    d->path, file, class);
}

mha_status mha_dir_set_processor(json_t *description, const mha_tokenizer *t, const char *type,
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

/* --- the directory --------------------------------------------------------------------------- */

static mha_status read_kind(mha_tokenizer **out, const mha_model_dir *d,
                            mha_status (*read)(mha_tokenizer *t, const mha_model_dir *d,
                                               mha_err *err),
                            mha_err *err)
{
    mha_tokenizer *t;
    MHA_TRY(mha_tokenizer_new(&t, err));
    mha_status status = read(t, d, err);
    if (status != MHA_OK) {
        mha_tokenizer_free(t);
        return mha_tokenizer_name_file(err, status, d->path);
    }
    *out = t;
    return MHA_OK;
}

static mha_status open_tokenizer_json(mha_tokenizer **out, const char *directory, mha_err *err)
{
    char path[PATH_MAX];
    json_t *root;
    MHA_TRY(mha_dir_file(path, directory, "tokenizer.json", err));
    MHA_TRY(mha_json_open(&root, path, err));
    mha_status status = mha_tokenizer_from_json(out, root, path, err);
    json_decref(root);
    return status;
}

static mha_status open_spm(mha_tokenizer **out, const mha_model_dir *d, const char *file,
                           mha_err *err)
{
    mha_tokenizer *t;
    MHA_TRY(mha_tokenizer_new(&t, err));
    mha_status status = mha_dir_read_spm(t, d, file, err);
    if (status != MHA_OK) {
        mha_tokenizer_free(t);
        return mha_tokenizer_name_file(err, status, d->path);
    }
    *out = t;
    return MHA_OK;
}

static mha_status open_any(mha_tokenizer **out, const mha_model_dir *d, mha_err *err)
{
    static const char *const models[] = {"spiece.model", "tokenizer.model",
                                         "sentencepiece.bpe.model", "spm.model"};
    char class[64];
    mha_dir_class(class, d);
    if (mha_dir_has(d->path, "tokenizer.json"))
        return open_tokenizer_json(out, d->path, err);
    if (mha_dir_has(d->path, "vocab.txt"))
        return read_kind(out, d, mha_dir_read_vocab_txt, err);
    if (mha_dir_has(d->path, "vocab.json") && mha_dir_has(d->path, "source.spm"))
        return read_kind(out, d, mha_dir_read_marian, err);
    if (mha_dir_has(d->path, "vocab.json") && mha_dir_has(d->path, "merges.txt"))
        return read_kind(out, d, mha_dir_read_vocab_json, err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (mha_dir_has(d->path, models[i]))
            return open_spm(out, d, models[i], err);
    }
    if (strcmp(class, "ByT5Tokenizer") == 0)
        return read_kind(out, d, mha_dir_read_byt5, err);
    return MHA_OK;
}

mha_status mha_tokenizer_open_directory(mha_tokenizer **out, const char *path, mha_err *err)
{
    mha_model_dir d = {.path = path};
    *out = NULL;
    mha_status status = open_optional(&d.config, path, "tokenizer_config.json", err);
    if (status == MHA_OK)
        status = open_optional(&d.specials, path, "special_tokens_map.json", err);
    if (status == MHA_OK)
        status = open_optional(&d.added, path, "added_tokens.json", err);
    if (status == MHA_OK)
        status = open_optional(&d.model, path, "config.json", err);
    if (status == MHA_OK)
        status = open_any(out, &d, err);
    if (*out)
        mha_dir_set_roles(*out, &d);
    json_decref(d.config);
    json_decref(d.specials);
    json_decref(d.added);
    json_decref(d.model);
    return status;
}
