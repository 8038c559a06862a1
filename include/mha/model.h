/* mha/model.h: opening a saved Transformer and asking what it is.
 *
 * A model is read-only once opened and may be used from several threads. Its weights stay in the
 * mapped files; opening reads headers, small vectors and nothing else. */
#ifndef MHA_MODEL_H
#define MHA_MODEL_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mha_model mha_model;

/* Which stack of layers: encoder-only models have only ENC, decoder-only models only DEC, models of
 * graphs only GRAPH. */
typedef enum mha_stack_id { MHA_ENC = 0, MHA_DEC, MHA_GRAPH, MHA_STACK_COUNT } mha_stack_id;
typedef enum mha_kind { MHA_SELF = 0, MHA_CROSS, MHA_KIND_COUNT } mha_kind;
const char *mha_stack_name(mha_stack_id stack); /* "enc", "dec", "graph" */
const char *mha_kind_name(mha_kind kind);       /* "self", "cross" */

/* What the model's read-out gives; NONE: hidden states only. */
typedef enum mha_head_kind {
    MHA_HEAD_NONE = 0,
    MHA_HEAD_NEXT,     /* logits of the next token at every position */
    MHA_HEAD_MASKED,   /* logits of the token at every position (masked language model) */
    MHA_HEAD_CLASS,    /* one row of class logits a document */
    MHA_HEAD_TARGET,   /* next-token logits of a decoder that reads an encoder */
    MHA_HEAD_TOKEN,    /* class logits at every position; 1 class: of a yes */
    MHA_HEAD_SPAN,     /* logits of an answer's start and end at every position */
    MHA_HEAD_EMBEDDING /* one vector a document, in the place of logits */
} mha_head_kind;

/* The heads of one attention step. */
typedef struct mha_attn_info {
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer, heads, kv_heads, width; /* H, G, K */
    bool causal;
    uint32_t window;          /* 0: none */
    uint32_t block;           /* tokens of a block where keys are seen by blocks, 0: not so */
    bool globals;             /* tokens can be global: see all and be seen by all */
    bool sink;                /* rows sum to 1 − sink mass */
    const uint16_t *head_ids; /* [heads] original numbers, never NULL */
    uint32_t original_heads;  /* before any were pruned from the weights; heads may then be 0 */
    uint32_t out;             /* width of the step's output: D, but in models of graphs */
    bool edges;               /* a node sees the sources of its edges: mha_graph_edges */
    bool self_loops;          /* with edges: and itself, by the model's own edges */
} mha_attn_info;

/* What a model reads instead of token ids: pictures, spectra. channels 0: it reads ids. */
typedef struct mha_signal_info {
    uint32_t channels, height, width; /* of a document's features [channels, height, width] */
    uint32_t rows;                    /* that they become in the first stack: the document's n */
    uint32_t
        extra; /* the first of these rows stand for no part of them: class and register tokens */
    uint32_t patch; /* side of the squares that the other rows stand for, line by line; 0: none */
} mha_signal_info;

typedef struct mha_model_info {
    const char *path, *family, *format; /* "bert", "safetensors" */
    const char *dtype;                  /* dtype of most of the weights: "F32", "Q8_0" */
    const char *head_name;              /* "masked language model", …, or "none" */
    mha_head_kind head;
    uint32_t layers[MHA_STACK_COUNT]; /* 0 for a stack that the model does not have */
    uint32_t width, mlp_width, vocab; /* D, F, V */
    uint32_t features;                /* of a node, in models of graphs; else 0 */
    /* [layers + 2] widths of the residual stream: of the first block's input, after each block, and
     * of the last hidden states. All D but in models of graphs. */
    const uint32_t *stream[MHA_STACK_COUNT];
    uint32_t max_positions;     /* 0: no table limits the length */
    uint32_t trained_positions; /* what the config says, 0 when it does not */
    uint32_t classes;           /* of a CLASS or TOKEN head, 2 of a SPAN head, else 0 */
    const char *const *labels;  /* [classes] or NULL */
    uint64_t parameters;        /* elements of all tensors that the program uses, tied once */
    uint64_t file_bytes;
    uint64_t kv_cache_bytes;   /* float32 keys and values of one token in all layers */
    char fingerprint[65];      /* SHA-256 over config, tensor names, types and shapes */
    const mha_attn_info *attn; /* [attn_count] every attention step in running order */
    size_t attn_count;
    mha_signal_info signal;
    uint32_t pair_width; /* numbers that a document gives about each pair of its tokens; 0: none */
    int32_t decoder_start; /* id that a decoder with memory starts from, −1: none */
    int32_t eos;           /* id that ends generation by the config, −1: unknown */
    int32_t pad;           /* −1: unknown */
} mha_model_info;

typedef struct mha_model_options {
    bool allow_unused;       /* tensors that nothing uses: note them instead of refusing */
    const char *family;      /* text of a family description to use instead of the built-in ones */
    const char *family_name; /* its name in messages, e.g. the path of the file it came from */
    uint64_t max_tensors;    /* 0: default */
    uint64_t max_header;     /* 0: default */
} mha_model_options;

/* Opens a directory (config.json with *.safetensors) or a .gguf file. options may be NULL.
 * MHA_ERR_IO, _FORMAT, _UNSUPPORTED or _LIMIT with the file and the tensor or key at fault. */
mha_status mha_model_open(mha_model **out, const char *path, const mha_model_options *options,
                          mha_err *err);
void mha_model_close(mha_model *m);
/* Borrowed, lives as long as the model. */
const mha_model_info *mha_model_info_get(const mha_model *m);
/* The resolved program with shapes and tensor names, one step a line. Borrowed. */
const char *mha_model_program(const mha_model *m);

/* How a checkpoint makes one vector of the last hidden states of a text. */
typedef enum mha_sentence_pooling {
    MHA_SENTENCE_MEAN = 0, /* of all tokens; also when the checkpoint says nothing */
    MHA_SENTENCE_FIRST,
    MHA_SENTENCE_LAST,
    MHA_SENTENCE_MAX, /* of each dimension over all tokens */
} mha_sentence_pooling;
typedef struct mha_sentence {
    mha_sentence_pooling pooling;
    bool normalise; /* to length 1 */
} mha_sentence;
/* Reads modules.json and the pooling module's config beside config.json, or the metadata of a GGUF
 * file. MHA_ERR_UNSUPPORTED names a module or a pooling that is not one of the above. */
mha_status mha_model_sentence(const mha_model *m, mha_sentence *out, mha_err *err);

/* How a checkpoint wants its texts written: generation_config.json, or the same keys of
 * config.json. Lists hold ids of the vocabulary only. */
typedef struct mha_ids {
    int32_t *id;
    size_t count;
} mha_ids;
typedef struct mha_generation {
    mha_ids ends;        /* ids that end a text */
    mha_ids never;       /* ids that are never written (bad words of one token, suppressed ones) */
    mha_ids never_first; /* ids that are not written as the first one */
    mha_ids prompt;      /* ids that follow the decoder's start token (Whisper's task tokens) */
    int32_t first, last; /* ids that the first and, where the length ends, the last must be; −1 */
    size_t min_length; /* no end before so many ids stand on the decoder's side, prompt included */
    size_t min_new;    /* no end before so many new ones */
    size_t length;     /* new ids at most, 0: not said */
    size_t no_repeat;  /* no run of so many ids occurs twice, 0: all may */
    double
        repeat_penalty; /* logits of ids that stand there are divided by it (multiplied below 0) */
    size_t beams;       /* beam search by default of the reference; 1: greedy */
    double length_penalty; /* beams: score = log-probability / length^penalty */
    bool stop_when_full;   /* beams: stop as soon as so many texts have ended */
    bool stop_never_early; /* beams: go on while any length could still win */
    char ignored[160];     /* keys that change the text and are not followed, "" for none */
} mha_generation;
/* MHA_ERR_FORMAT for a broken file. *out is filled anew; release it. */
mha_status mha_model_generation(const mha_model *m, mha_generation *out, mha_err *err);
void mha_generation_release(mha_generation *g);
/* One more id that ends a text; −1 is none. */
mha_status mha_generation_end(mha_generation *g, int32_t id, mha_err *err);

/* A read-out over attention maps: which tokens of a sequence touch, by logistic regression
 * (mha/attribute.h). */
typedef struct mha_contact_head {
    const float *weights; /* [count] one a self-attention head, by layer and original number */
    size_t count;
    float bias;
    int32_t end; /* the token that ends a sequence */
} mha_contact_head;
/* Borrowed; NULL when the checkpoint has none. */
const mha_contact_head *mha_model_contacts(const mha_model *m);

/* Tensors of the files in name order. */
typedef struct mha_tensor_info {
    const char *name, *dtype;
    uint32_t rank;
    uint64_t shape[8];
    uint64_t bytes;
    bool used; /* false: on the ignore list */
} mha_tensor_info;
size_t mha_model_tensor_count(const mha_model *m);
mha_tensor_info mha_model_tensor(const mha_model *m, size_t i);
/* SHA-256 of the i-th whole file; reads it all. MHA_ERR_ARG past the last. */
size_t mha_model_file_count(const mha_model *m);
const char *mha_model_file_name(const mha_model *m, size_t i);
mha_status mha_model_file_hash(const mha_model *m, size_t i, char hex[65], mha_err *err);

#ifdef __cplusplus
}
#endif
#endif
