/* naive.h: an independent forward pass in double precision: plain loops over tensors that are
 * looked up by their names in the file, and config keys read where they are needed. It shares
 * nothing with the model binding and the engine, so that both can be tested against it. BERT,
 * RoBERTa, DistilBERT, DeBERTa, GPT-2, Llama, Mistral, Qwen2, Qwen3, Gemma 3, T5; safetensors only.
 */
#ifndef MHA_TEST_NAIVE_H
#define MHA_TEST_NAIVE_H

#include "io/checkpoint.h"
#include "mha/run.h"

#define NAIVE_ATTN_MAX 12

typedef struct naive_tensor {
    const char *name;
    size_t count;
    double *value;
} naive_tensor;

/* What a pass writes into the residual stream, kept by one pass and given back by the next, so that
 * the second is linear: branches are constants, norms keep their scale. In it parts can be silent,
 * and what the logits then lack is what the part wrote. */
typedef enum naive_part {
    NAIVE_SCALE = 1, /* of every row of every norm */
    NAIVE_EMBED = 2,
    NAIVE_MLP = 4,
    NAIVE_HEAD = 8
} naive_part;

typedef struct naive_frozen {
    bool again;        /* the values are given back */
    unsigned silent;   /* bit set of parts that are 0 */
    size_t attn, head; /* HEAD: which one; attn SIZE_MAX: all */
    double *value;
    size_t count, capacity, at;
} naive_frozen;

typedef struct naive {
    mha_checkpoint *file;
    naive_tensor *tensor; /* every float tensor of the file; tests may change the values */
    size_t tensor_count;
    /* what no model here has, for tests that add it: */
    double attn_softcap, logit_softcap; /* 0: none */
    const double *alibi, *sinks;        /* [H] slopes of score += slope·(j − i), extra logits */
    /* BERT: */
    bool value_gate;    /* z is multiplied by the sigmoid of its own row's values */
    const double *pair; /* [H, pair_width] weights of the document's numbers about pairs */
    size_t pair_width;
    bool rope_pair; /* pairs (x[2i], x[2i+1]) */
    size_t window;  /* |i − j| <= window/2, or i − window < j where causal */
    bool mean_pool;
    bool parallel;        /* GPT-2: attention and MLP both read the block's input */
    naive_frozen *frozen; /* NULL: nothing is kept */
    bool head_norms;      /* GPT-2: ln_2 also norms q and k, all heads together */
} naive;

/* Adds `by` to one element of a site on the way: gradients of sites by central differences. Per
 * layer: head 0, row and col of [T, D]; per head as in the arrays of the site. */
typedef struct naive_nudge {
    mha_site site;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer;
    size_t head, row, col;
    double by;
} naive_nudge;

typedef struct naive_attention {
    size_t heads, rows, keys;
    double *pattern; /* [H, T, S] */
} naive_attention;

typedef struct naive_result {
    double loss; /* mean over the document's terms */
    size_t hits;
    double *logits;   /* [rows, classes], NULL without a head */
    double *uncapped; /* the same before the softcap */
    size_t rows, classes;
    double *hidden; /* [T, D] after the last stack's final norm */
    size_t hidden_count;
    size_t attn_count;
    naive_attention attn[NAIVE_ATTN_MAX];
    void **memory; /* everything above */
    size_t memory_count;
} naive_result;

/* Fails the test when it cannot. */
naive *naive_open(const char *path);
void naive_close(naive *n);
/* NULL when the file has no such tensor. */
naive_tensor *naive_tensor_find(naive *n, const char *name);

/* gates [A, H] or NULL: all 1 (the document's own float gates are not looked at). nudge may be
 * NULL. */
void naive_run(naive *n, const mha_document *doc, const double *gates, const naive_nudge *nudge,
               naive_result *out);
void naive_result_release(naive_result *r);
/* Only the loss. */
double naive_loss(naive *n, const mha_document *doc, const double *gates, const naive_nudge *nudge);

#endif
