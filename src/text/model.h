/* model.h: what turns one word into pieces of the vocabulary. A kind of model is a table of
 * functions; its state is built once and never changes. */
#ifndef MHA_TEXT_MODEL_H
#define MHA_TEXT_MODEL_H

#include "base/mem.h"
#include "mha/err.h"
#include "text/vocab.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_token {
    int32_t id;
    uint32_t start, end; /* bytes of the word */
} mha_token;

/* The tokens of one word, and memory that a model may use as it likes. One for each thread. */
typedef struct mha_model_scratch {
    mha_token *tokens;
    size_t n, capacity;
    void *memory;
    size_t memory_size;
} mha_model_scratch;

void mha_model_scratch_release(mha_model_scratch *x);
mha_status mha_model_scratch_add(mha_model_scratch *x, int32_t id, size_t start, size_t end,
                                 mha_err *err);
/* Uninitialised memory of at least `count`·`size` bytes, good until the next call. */
mha_status mha_model_scratch_memory(void **out, mha_model_scratch *x, size_t count, size_t size,
                                    mha_err *err);

struct mha_model_kind {
    const char *name; /* for people: "WordPiece" */
    /* Appends the tokens of word[0..n), valid UTF-8 and not empty. */
    mha_status (*tokenize)(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err);
    void (*free)(void *state);
};

typedef struct mha_model {
    const struct mha_model_kind *kind;
    void *state;
} mha_model;

void mha_model_release(mha_model *m);

/* Greedy longest match from the left. The vocabulary is only read while the model is made. */
typedef struct mha_wordpiece_options {
    int32_t unknown;    /* id for words that cannot be matched whole */
    const char *prefix; /* of pieces that do not start a word */
    size_t prefix_n;
    int64_t max_chars; /* longer words are unknown */
} mha_wordpiece_options;

mha_status mha_wordpiece_new(mha_model *out, const mha_vocab *vocab,
                             const mha_wordpiece_options *options, mha_err *err);

/* Byte-pair merges. The vocabulary must outlive the model. */
typedef struct mha_bpe_merge {
    const char *left, *right;
    size_t left_n, right_n;
} mha_bpe_merge;

typedef struct mha_bpe_options {
    const mha_bpe_merge *merges; /* the first ones are made first */
    size_t merge_count;
    const char *unknown; /* piece for characters that are not in the vocabulary, or NULL: those
                            are dropped */
    size_t unknown_n;
    const char *prefix; /* of pieces that do not start a word; "" for none */
    size_t prefix_n;
    const char *suffix; /* of pieces that end a word; "" for none */
    size_t suffix_n;
    bool fuse_unknown;
    bool byte_fallback; /* characters that are not in the vocabulary become pieces like "<0xE2>"; no
                           prefix, no suffix */
    bool ignore_merges; /* a word that is a piece as a whole is not taken apart */
    bool bytes; /* words are given as bytes, the vocabulary is in the byte alphabet. No unknown
                   piece, no prefix, no suffix. */
} mha_bpe_options;

/* "left right": false unless there is exactly one space. Borrows from s. */
bool mha_bpe_merge_split(mha_bpe_merge *out, const char *s, size_t n);
/* How many of the 256 bytes are pieces in the byte alphabet. A vocabulary of bytes has nearly all:
 * those that are in no UTF-8 text and some rare control characters are often left out. */
size_t mha_bpe_known_bytes(const mha_vocab *vocab);
#define MHA_BPE_BYTES_ENOUGH ((size_t)200)
mha_status mha_bpe_new(mha_model *out, const mha_vocab *vocab, mha_arena *arena,
                       const mha_bpe_options *options, mha_err *err);

/* A piece of a SentencePiece model, or of a model that scores whole pieces like one. */
typedef enum mha_piece_type {
    MHA_PIECE_NORMAL = 1,
    MHA_PIECE_UNKNOWN,
    MHA_PIECE_CONTROL, /* never in text */
    MHA_PIECE_USER,    /* always one piece where the text has it */
    MHA_PIECE_UNUSED,  /* never in text */
    MHA_PIECE_BYTE
} mha_piece_type;

typedef struct mha_scored_piece {
    const char *s;
    size_t n;
    double score;
    mha_piece_type type;
    int32_t id;
} mha_scored_piece;

typedef struct mha_scored_options {
    const mha_scored_piece *pieces; /* [n]; their bytes must outlive the model */
    size_t n;
    int32_t unknown; /* id; -1: an unknown character is an error */
    bool byte_fallback;
    const mha_vocab *runs; /* NULL, or where a run of unknown characters is looked up as a whole
                              before it is unknown; must outlive the model */
} mha_scored_options;

/* The segmentation with the largest sum of scores. `sentencepiece`: sums are rounded and pieces
 * chosen as that library does it, else as Hugging Face's does, which knows no types. */
mha_status mha_unigram_new(mha_model *out, const mha_scored_options *options, bool sentencepiece,
                           mha_err *err);
/* SentencePiece's BPE: neighbours are joined where that makes a piece, the largest score first. */
mha_status mha_scored_bpe_new(mha_model *out, const mha_scored_options *options, mha_err *err);

/* Words are pieces, or unknown. The vocabulary must outlive the model; `unknown` is an id, -1: an
 * unknown word is an error. */
mha_status mha_wordlevel_new(mha_model *out, const mha_vocab *vocab, int32_t unknown, mha_err *err);

#endif
