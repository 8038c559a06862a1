/* tokenizer.h: what the tokenizer gives the rest of the library beyond mha/input.h. */
#ifndef MHA_TEXT_TOKENIZER_H
#define MHA_TEXT_TOKENIZER_H

#include "mha/input.h"

struct mha_gguf;

/* The directory form of mha_tokenizer_open. */
mha_status mha_tokenizer_open_directory(mha_tokenizer **out, const char *path, mha_err *err);
/* From GGUF metadata: tokenizer.huggingface.json when there is one, else tokenizer.ggml.* of kind
 * gpt2 (with its pre name) or bert. *out = NULL when the file has none. */
mha_status mha_tokenizer_open_gguf(mha_tokenizer **out, const struct mha_gguf *g, mha_err *err);

/* From the bytes of a tokenizer.json; `file` is its name in messages. */
mha_status mha_tokenizer_parse(mha_tokenizer **out, const char *json, size_t n, const char *file,
                               mha_err *err);

#endif
