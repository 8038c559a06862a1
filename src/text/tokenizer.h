/* tokenizer.h: text to token ids, exactly as the checkpoint's own tokenizer does it.
 *
 * Pipeline of a "fast" tokenizer: split on added tokens, normalise, split on normalised added
 * tokens, pre-tokenise, model (WordPiece or byte-level BPE), post-process (special tokens). Every
 * token keeps its byte range of the original text, through all normalisation. */
#ifndef MHA_TEXT_TOKENIZER_H
#define MHA_TEXT_TOKENIZER_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mha_gguf;
typedef struct mha_tokenizer mha_tokenizer;

/* Parallel arrays of length n. start/end are bytes of the text (of the pair for the second
 * segment); special tokens that the template adds have start = end = 0. `word` counts
 * pre-tokenised words from 0 in each segment, -1 for special tokens. */
typedef struct mha_tokens {
    int32_t *id;
    uint32_t *start, *end;
    int32_t *word;
    uint8_t *special; /* added by the template, or an added token marked special */
    uint8_t *type;    /* token type id of the template (BERT's second segment: 1) */
    size_t n, capacity;
} mha_tokens;

void mha_tokens_release(mha_tokens *t);

/* Looks in a model directory for tokenizer.json, then vocab.txt, then vocab.json + merges.txt (with
 * tokenizer_config.json beside them). *out = NULL with MHA_OK when the directory has no tokenizer;
 * MHA_ERR_UNSUPPORTED, naming the kind, for a kind that is not implemented. */
mha_status mha_tokenizer_open(mha_tokenizer **out, const char *directory, mha_err *err);
/* From GGUF metadata: tokenizer.ggml.* of kind gpt2 (with its pre name) or bert. *out = NULL when
 * the file has none. */
mha_status mha_tokenizer_open_gguf(mha_tokenizer **out, const struct mha_gguf *g, mha_err *err);
void mha_tokenizer_free(mha_tokenizer *t);

/* *out is overwritten (its memory reused; zero-initialise it before the first call). text must be
 * valid UTF-8 or is refused with the byte position. pair may be NULL. with_special = false leaves
 * out what the template adds. Safe to call from several threads on one tokenizer. */
mha_status mha_tokenizer_encode(const mha_tokenizer *t, const char *text, size_t n,
                                const char *pair, size_t pair_n, bool with_special, mha_tokens *out,
                                mha_err *err);

size_t mha_tokenizer_vocab(const mha_tokenizer *t);     /* largest id + 1 */
const char *mha_tokenizer_kind(const mha_tokenizer *t); /* "WordPiece", "byte-level BPE", … */
/* The piece as stored ("##ing", "Ġthe"), borrowed; NULL when the id is not in the vocabulary. */
const char *mha_tokenizer_piece(const mha_tokenizer *t, int32_t id);
/* The raw bytes that the piece stands for, for labels and decoding: byte-level pieces mapped back
 * to bytes (may be a part of a character), WordPiece without "##". Returns the length; at most cap
 * bytes are written. *continues tells whether the piece joins its left neighbour without a space.
 */
size_t mha_tokenizer_bytes(const mha_tokenizer *t, int32_t id, char *out, size_t cap,
                           bool *continues);
bool mha_tokenizer_is_special(const mha_tokenizer *t, int32_t id);
int32_t mha_tokenizer_id(const mha_tokenizer *t, const char *piece); /* -1 when absent */

/* Ids by role, -1 when the tokenizer has none. */
typedef enum mha_token_role {
    MHA_TOKEN_BOS,
    MHA_TOKEN_EOS,
    MHA_TOKEN_MASK,
    MHA_TOKEN_PAD,
    MHA_TOKEN_UNK,
    MHA_TOKEN_CLS,
    MHA_TOKEN_SEP
} mha_token_role;
int32_t mha_tokenizer_role(const mha_tokenizer *t, mha_token_role role);

/* Text of ids as the tokenizer's decoder gives it, special tokens skipped: *out owned (mha_free).
 */
mha_status mha_tokenizer_decode(const mha_tokenizer *t, const int32_t *ids, size_t n, char **out,
                                mha_err *err);

#endif
