/* tokenizer_private.h: the inside of mha_tokenizer, shared by tokenizer.c and the readers of the
 * several kinds of files. */
#ifndef MHA_TEXT_TOKENIZER_PRIVATE_H
#define MHA_TEXT_TOKENIZER_PRIVATE_H

#include "base/mem.h"
#include "text/added.h"
#include "text/decode.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/template.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

#define MHA_TOKEN_ROLES (MHA_TOKEN_SEP + 1)

struct mha_tokenizer {
    mha_arena arena; /* owns every string below */
    mha_vocab vocab; /* of the model */
    mha_added added;
    const mha_added_token **added_by_id; /* [vocab_size] */
    size_t vocab_size;                   /* the largest id of both, + 1 */
    mha_normalizers normalizers;
    mha_pretokenizers pretokenizers;
    mha_model model;
    mha_template template;
    mha_decoders decoders;
    const char *continuing_prefix; /* "##": of pieces inside of a word; NULL when there is none */
    const char *word_suffix;       /* "</w>": of pieces that end a word; NULL when there is none */
    bool byte_alphabet;            /* pieces are in the byte alphabet */
    bool byte_pieces;              /* pieces like "<0xE2>" stand for bytes */
    const char *space_mark; /* what stands for a space in pieces, "▁"; NULL when nothing does */
    size_t space_mark_n;
    int32_t roles[MHA_TOKEN_ROLES];
    const char *note;
    /* For export.c, of byte-level BPE in GGUF files: the parts around the model, as JSON; else
     * NULL. */
    const char *description;
    bool ignore_merges;
    struct mha_tokenizer *target; /* for the text of a decoder, when that one has its own */
};

/* A description is an object with the members "normalizer", "pre_tokenizer", "post_processor" and
 * "decoder" of a tokenizer.json, each of which may be missing. */

/* A tokenizer without anything, to be filled and finished, or freed. */
mha_status mha_tokenizer_new(mha_tokenizer **out, mha_err *err);
/* Reads normalizer and pre-tokenizer: before the model, which asks them for bytes. */
mha_status mha_tokenizer_set_splitting(mha_tokenizer *t, const json_t *description, mha_err *err);
/* Makes the model from t->vocab, whose pieces must all be there. */
mha_status mha_tokenizer_set_wordpiece(mha_tokenizer *t, const char *unknown, size_t unknown_n,
                                       const char *prefix, size_t prefix_n, int64_t max_chars,
                                       mha_err *err);
mha_status mha_tokenizer_set_bpe(mha_tokenizer *t, mha_bpe_options *options, mha_err *err);
mha_status mha_tokenizer_set_wordlevel(mha_tokenizer *t, const char *unknown, size_t unknown_n,
                                       mha_err *err);
/* Makes Unigram or, with `bpe`, SentencePiece BPE. */
typedef enum mha_scored_kind {
    MHA_SCORED_UNIGRAM,       /* as Hugging Face's library has it */
    MHA_SCORED_SENTENCEPIECE, /* Unigram as SentencePiece has it */
    MHA_SCORED_BPE
} mha_scored_kind;
mha_status mha_tokenizer_set_scored(mha_tokenizer *t, mha_scored_kind kind,
                                    const mha_scored_options *options, mha_err *err);
/* After the model and all added tokens: the rest, and the tables that need everything. */
mha_status mha_tokenizer_finish(mha_tokenizer *t, const json_t *description, mha_err *err);

/* Sets roles by the names that are common for them, where they are still unknown. */
void mha_tokenizer_guess_roles(mha_tokenizer *t);

/* A whole tokenizer.json; `file` is its name in messages. */
mha_status mha_tokenizer_from_json(mha_tokenizer **out, const json_t *root, const char *file,
                                   mha_err *err);
/* *out (mha_free) = the value as text. */
mha_status mha_tokenizer_dump(const json_t *value, size_t flags, char **out, mha_err *err);
/* Puts the name before a message of the layers below that does not start with it. Returns `status`.
 */
mha_status mha_tokenizer_name_file(mha_err *err, mha_status status, const char *file);

#endif
