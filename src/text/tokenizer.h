/* tokenizer.h: what the tokenizer gives the rest of the library beyond mha/input.h. */
#ifndef MHA_TEXT_TOKENIZER_H
#define MHA_TEXT_TOKENIZER_H

#include "mha/input.h"

struct mha_gguf;

/* From GGUF metadata: tokenizer.huggingface.json when there is one, else tokenizer.ggml.* of kind
 * gpt2 (with its pre name) or bert. *out = NULL when the file has none. */
mha_status mha_tokenizer_open_gguf(mha_tokenizer **out, const struct mha_gguf *g, mha_err *err);

#endif
