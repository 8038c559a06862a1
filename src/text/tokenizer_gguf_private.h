/* tokenizer_gguf_private.h: what the two files that read tokenizers from GGUF metadata share. */
#ifndef MHA_TEXT_TOKENIZER_GGUF_PRIVATE_H
#define MHA_TEXT_TOKENIZER_GGUF_PRIVATE_H

#include "io/gguf.h"
#include "text/describe.h"

#define MHA_GGUF_KEY(name) "tokenizer.ggml." name

/* The list of pieces; the strings are the file's. */
typedef struct mha_gguf_pieces {
    mha_gguf_string *pieces; /* [n] */
    int64_t *types;          /* [n], mha_piece_type */
    size_t n;
} mha_gguf_pieces;

/* *out stays as it is when the key is absent. */
mha_status mha_gguf_get_flag(const mha_gguf *g, const char *key, bool *out, mha_err *err);
mha_status mha_gguf_read_roles(mha_tokenizer *t, const mha_gguf *g, mha_err *err);
/* Control pieces, and with `user` the user's own, are found in the text as they are. A piece that
 * is listed twice counts where it is last. */
mha_status mha_gguf_add_added(mha_tokenizer *t, const mha_gguf_pieces *list, bool user,
                              int32_t lstrip_id, mha_err *err);
/* `bos`, `eos`: what the kind puts around a text unless the file says otherwise; `around`: CLS and
 * SEP. */
mha_status mha_gguf_read_frame(mha_frame *f, const mha_tokenizer *t, const mha_gguf *g, bool bos,
                               bool eos, bool around, mha_err *err);

/* The kinds "llama", SentencePiece BPE, and "t5", Unigram. */
mha_status mha_gguf_read_llama(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                               mha_err *err);
mha_status mha_gguf_read_t5(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                            mha_err *err);

#endif
