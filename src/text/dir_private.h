/* dir_private.h: what the readers of the several kinds of tokenizer files in a model directory
 * share. */
#ifndef MHA_TEXT_DIR_PRIVATE_H
#define MHA_TEXT_DIR_PRIVATE_H

#include "text/tokenizer_private.h"

#include "io/json.h"
#include <limits.h>

/* Bytes of a file at most. */
#define MHA_DIR_FILE_MAX ((size_t)256 << 20)

typedef struct mha_model_dir {
    const char *path;
    json_t *config;   /* tokenizer_config.json; NULL when there is none */
    json_t *specials; /* special_tokens_map.json, likewise */
    json_t *added;    /* added_tokens.json, likewise */
    json_t *model;    /* config.json, likewise */
} mha_model_dir;

/* The keys under which tokenizer_config.json names tokens by role; a NULL key ends the list. */
typedef struct mha_dir_role {
    const char *key;
    mha_token_role role;
} mha_dir_role;
extern const mha_dir_role mha_dir_roles[];

mha_status mha_dir_file(char out[PATH_MAX], const char *directory, const char *name, mha_err *err);
bool mha_dir_has(const char *directory, const char *name);

/* The content of the token named under a key of the configuration, NULL when there is none. */
const char *mha_dir_token(const mha_model_dir *d, const char *key);
/* `s`, or `other` when it is NULL. */
static inline const char *mha_dir_or(const char *s, const char *other)
{
    return s ? s : other;
}

/* Adds a special token if the vocabulary has it and it is not added yet. */
mha_status mha_dir_add_special(mha_tokenizer *t, const char *content, bool lstrip, mha_err *err);
/* Adds the tokens that the configuration lists with their ids. */
mha_status mha_dir_add_listed(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);

/* Sets the ids by role, as the configuration names them or by common names. */
void mha_dir_set_roles(mha_tokenizer *t, const mha_model_dir *d);

/* The class named in tokenizer_config.json without "Fast"; "" when there is none. */
void mha_dir_class(char out[64], const mha_model_dir *d);
mha_status mha_dir_refuse_class(const mha_model_dir *d, const char *class, const char *file,
                                mha_err *err);
/* Sets the post-processor of a description: "BertProcessing" or "RobertaProcessing". */
mha_status mha_dir_set_processor(json_t *description, const mha_tokenizer *t, const char *type,
                                 const char *cls, const char *sep, bool add_prefix_space,
                                 mha_err *err);

/* A file of lines, checked to be UTF-8; *text is owned. */
mha_status mha_dir_read_lines(char **text, size_t *n, const char *directory, const char *name,
                              mha_err *err);
/* The next line of s[*at..n) without its end; false behind the last one. */
bool mha_dir_next_line(const char *s, size_t n, size_t *at, const char **line, size_t *line_n);

/* The pieces of vocab.txt, one a line, and of vocab.json with their ids. */
mha_status mha_dir_read_pieces(mha_tokenizer *t, const char *directory, mha_err *err);
mha_status mha_dir_read_vocabulary(mha_tokenizer *t, const char *directory, mha_err *err);

/* The kinds: each fills a new tokenizer. */
mha_status mha_dir_read_vocab_txt(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);
mha_status mha_dir_read_vocab_json(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);
mha_status mha_dir_read_esm(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);
mha_status mha_dir_read_byt5(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);
mha_status mha_dir_read_marian(mha_tokenizer *t, const mha_model_dir *d, mha_err *err);
/* `file` is the name of the SentencePiece model in the directory. */
mha_status mha_dir_read_spm(mha_tokenizer *t, const mha_model_dir *d, const char *file,
                            mha_err *err);

#endif
