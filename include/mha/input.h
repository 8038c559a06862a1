/* mha/input.h: from text and files to what is fed.
 *
 * A tokenizer belongs to a model and gives exactly the ids of the checkpoint's own tokenizer, with
 * the bytes of the text that every token stands for. A corpus is a file of documents; it knows
 * nothing of tokens. A graph is fed as it is. None of them prints, and all refuse broken files with
 * the place of the fault. */
#ifndef MHA_INPUT_H
#define MHA_INPUT_H

#include "mha/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- tokenizer ------------------------------------------------------------------------------- */

typedef struct mha_tokenizer mha_tokenizer;

/* Parallel arrays of length n. start/end are bytes of the text (of the pair for the second
 * segment); special tokens that the template adds have start = end = 0. `word` counts
 * pre-tokenised words from 0 in each segment, an added token in the text being one of them; -1 for
 * tokens that the template adds. Tokens that are parts of one character all have its whole range.
 */
typedef struct mha_tokens {
    int32_t *id;
    uint32_t *start, *end;
    int32_t *word;
    uint8_t *special; /* added by the template, or a special token that stands in the text; words
                         that the model does not know are not special */
    uint8_t *type;    /* token type id of the template (BERT's second segment: 1) */
    size_t n, capacity;
    size_t pair_first, pair_n; /* the tokens of the pair's own text, in one stretch */
} mha_tokens;

void mha_tokens_release(mha_tokens *t);

/* The tokenizer of a model. In a directory tokenizer.json, then vocab.txt, then vocab.json with
 * source.spm or merges.txt, then a SentencePiece model (with tokenizer_config.json beside them); of
 * a .gguf file its metadata. *out = NULL
 * with MHA_OK when the model has no tokenizer; MHA_ERR_UNSUPPORTED, naming the kind, for a kind
 * that is not implemented. */
mha_status mha_tokenizer_open(mha_tokenizer **out, const char *path, mha_err *err);
void mha_tokenizer_free(mha_tokenizer *t);

/* *out is overwritten (its memory reused; zero-initialise it before the first call). text must be
 * valid UTF-8 or is refused (MHA_ERR_FORMAT) with the byte position. pair may be NULL. with_special
 * = false leaves out what the template adds. MHA_ERR_LIMIT when the tokenizer's regular expressions
 * take too long on this text or its normalizer makes too much of it. Safe to call from several
 * threads on one tokenizer. */
mha_status mha_tokenizer_encode(const mha_tokenizer *t, const char *text, size_t n,
                                const char *pair, size_t pair_n, bool with_special, mha_tokens *out,
                                mha_err *err);

/* The tokenizer for what a decoder reads and writes: the same one, but for models of translation
 * that split each language in its own way. Ids mean the same in both. Borrowed. */
const mha_tokenizer *mha_tokenizer_target(const mha_tokenizer *t);

size_t mha_tokenizer_vocab(const mha_tokenizer *t);     /* largest id + 1 */
const char *mha_tokenizer_kind(const mha_tokenizer *t); /* "WordPiece", "byte-level BPE", … */
/* A sentence that users should see: why the ids may differ from those of the model's own tokenizer.
 * NULL when there is no such reason. */
const char *mha_tokenizer_note(const mha_tokenizer *t);
/* *out (owned: mha_free of base) = the tokenizer of the GGUF file `path`, which t was opened from,
 * as the text of a tokenizer.json; NULL with MHA_OK for other files and for kinds that are not
 * byte-level BPE. */
mha_status mha_tokenizer_export(char **out, const mha_tokenizer *t, const char *path, mha_err *err);
/* The piece as stored ("##ing", "Ġthe"), borrowed; NULL when the id is not in the vocabulary. */
const char *mha_tokenizer_piece(const mha_tokenizer *t, int32_t id);
/* The raw bytes that the piece stands for, for labels: byte-level pieces mapped back to bytes (a
 * leading space included; may be a part of a character), WordPiece without "##". Returns the
 * length, 0 for an id without a piece; at most cap bytes are written. *continues (may be NULL)
 * tells whether the bytes follow those of their left neighbour directly; otherwise a space goes
 * between. */
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

/* Text of ids as the tokenizer's decoder gives it, special tokens and ids without a piece skipped:
 * *out owned (mha_free). */
mha_status mha_tokenizer_decode(const mha_tokenizer *t, const int32_t *ids, size_t n, char **out,
                                mha_err *err);

/* --- corpora -----------------------------------------------------------------------------------
 */

/* A word of a .conllu sentence: [start, end) are bytes of the text. Words that one surface form
 * stands for ("don't": do, n't) share its bytes. */
typedef struct mha_corpus_word {
    uint32_t start, end;
    int32_t head;       /* index of the word it depends on; -1: the root, or not annotated */
    const char *deprel; /* "nsubj", …; "_" when not annotated */
} mha_corpus_word;

/* One document of a file. Strings are UTF-8, borrowed from the corpus and end with a NUL; NULL when
 * the file has no such field, or leaves it empty (but text is there, perhaps with 0 bytes, in all
 * files of text). */
typedef struct mha_corpus_document {
    const char *text, *pair, *target, *label;
    size_t text_n, pair_n, target_n, label_n; /* bytes */
    const int64_t *ids;                       /* [ids_n] from files of ids: fed as they are */
    size_t ids_n;
    const mha_corpus_word *words; /* [words_n] of a .conllu sentence, else NULL */
    size_t words_n;
    size_t line; /* where it starts, from 1; for files of ids the number of the document from 0 */
} mha_corpus_document;

typedef struct mha_corpus mha_corpus;

/* Reads a file by its suffix. Documents: .txt (one a line), .tsv (with a header line) and .jsonl
 * (fields text, pair, target, label), .conllu (the sentences' text), .fasta (the sequences).
 * max_bytes: MHA_ERR_LIMIT for a larger file; 0: a default. MHA_ERR_IO, _FORMAT or _UNSUPPORTED
 * (an unknown suffix, named) otherwise. */
mha_status mha_corpus_open(mha_corpus **out, const char *path, uint64_t max_bytes, mha_err *err);
/* Reads token ids: .npy or .npz of integers [T] or [B,T] (arrays `ids`, or the only one, and
 * `attention_mask`), or .json: a list of ids, a list of such lists, or an object with `ids` and
 * `attention_mask`. Positions that the mask leaves out are dropped. */
mha_status mha_corpus_open_ids(mha_corpus **out, const char *path, uint64_t max_bytes,
                               mha_err *err);
void mha_corpus_close(mha_corpus *c);
size_t mha_corpus_count(const mha_corpus *c);
mha_corpus_document mha_corpus_get(const mha_corpus *c, size_t i);
/* Empty lines of .txt, .tsv and .jsonl: they are no documents. */
size_t mha_corpus_empty_lines(const mha_corpus *c);

/* --- graphs ------------------------------------------------------------------------------------
 */

/* A directed graph whose nodes have features. */
typedef struct mha_graph {
    uint32_t nodes, features;        /* N >= 1, F >= 1 */
    size_t edges;                    /* E */
    const uint32_t *source, *target; /* [E] < nodes; edges may be there twice, and be loops */
    const float *x;                  /* [N, F] */
    const int32_t *y;                /* [N] the class of each node, −1: unknown; NULL: of none */
} mha_graph;

/* Reads a JSON file: `num_nodes`; `edge_index`, a list of sources and a list of targets; the
 * features as `x`, a list of numbers for each node, or as `num_features` and `x_sparse_rows`, for
 * each node the list of those features that are 1, others being 0; and perhaps `y`, an integer or
 * null for each node. Other keys are not looked at. max_bytes: MHA_ERR_LIMIT for a larger file; 0:
 * a default. MHA_ERR_IO, _FORMAT or _LIMIT. */
mha_status mha_graph_open(mha_graph **out, const char *path, uint64_t max_bytes, mha_err *err);
void mha_graph_close(mha_graph *g);

/* The edges that attention goes over, in the order of `edge_index` arrays: those of the graph; with
 * self_loops those that are no loops, and then a loop for each node. Returns how many there are;
 * source and target [that many] may be NULL. */
size_t mha_graph_edges(const mha_graph *g, bool self_loops, uint32_t *source, uint32_t *target);

/* --- pictures and other features -------------------------------------------------------------- */

typedef struct mha_picture {
    uint32_t width, height;
    unsigned char *rgb; /* [height, width, 3] owned */
} mha_picture;

/* Reads a PNG or JPEG file. max_pixels: MHA_ERR_LIMIT for more; 0: a default. MHA_ERR_IO, _FORMAT
 * for a broken or cut file, _UNSUPPORTED for other kinds. Release *out when it succeeded. */
mha_status mha_picture_open(mha_picture *out, const char *path, uint64_t max_pixels, mha_err *err);
void mha_picture_release(mha_picture *p);

/* The picture as the model wants it, by the checkpoint's preprocessor_config.json: resized,
 * cropped, rescaled, normalised. features [channels, height, width] of the model's signal, owned
 * (mha_features_free). seen: what is left of the picture, height × width pixels, owned; may be
 * NULL. MHA_ERR_UNSUPPORTED names a setting that is not implemented. */
mha_status mha_picture_features(float **features, mha_picture *seen, const mha_picture *picture,
                                const mha_model *m, mha_err *err);
/* Features of a .npy file, of exactly the shape that the model reads (an axis of 1 in front may be
 * there); NaN and infinities are MHA_ERR_NUMERIC. */
mha_status mha_features_open(float **features, const char *path, const mha_model *m, mha_err *err);
void mha_features_free(float *features);

#ifdef __cplusplus
}
#endif
#endif
