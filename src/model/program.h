/* program.h: a bound model: block programs over registers, with their dims and weights.
 *
 * This is what a family description (model/family) and a checkpoint become together, and all that
 * the engine ever sees: no family names, no config keys. Weights are views into the mapped
 * checkpoint, widened as they are used; vectors (biases, norm gains) are small and are widened
 * here.
 *
 * Registers: X the residual stream [N, D], B and C branches, E the encoder's memory: what X is
 * after the epilogue of the stack before. Only attention with keys = MEMORY reads E. */
#ifndef MHA_MODEL_PROGRAM_H
#define MHA_MODEL_PROGRAM_H

#include "base/act.h"
#include "base/dtype.h"
#include "base/mem.h"
#include "io/checkpoint.h"
#include "mha/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Widest head that is opened. */
#define MHA_HEAD_WIDTH_MAX 1024

/* A matrix y[out] = W[out, in]·x as it is stored. With `mean` nothing is stored: y is the mean of
 * the in/out parts [out] of x, which is x itself when in == out. Logical row r is stored row
 * (r / group)·group_stride + r % group, counted from `data`; group == out when rows are contiguous
 * (fused per-head layouts have other values). A stored row has `stride` elements.
 * in_out: stored transposed, [in, out] with `stride` elements a stored row (plain types only);
 * then `data` points at the first wanted column, and group refers to columns. */
typedef struct mha_weight {
    const unsigned char *data; /* NULL: absent */
    const char *name;          /* tensor name, for messages */
    mha_dtype type;
    uint32_t out, in;
    uint64_t stride;
    uint32_t group;
    uint64_t group_stride;
    bool in_out, mean;
} mha_weight;

/* Where a vector of floats was read from: element i is element at + i/group·step + i%group of the
 * tensor, plus a constant. */
typedef struct mha_vector {
    const float *values; /* [n] as steps hold it */
    const mha_tensor *tensor;
    uint64_t at, group, step;
    uint32_t n;
} mha_vector;

typedef enum mha_register { MHA_X = 0, MHA_B, MHA_C, MHA_E, MHA_REGISTER_COUNT } mha_register;

typedef enum mha_op {
    MHA_OP_EMBED,  /* dst (+)= table rows */
    MHA_OP_CONV,   /* dst ← filters over the document's features, or over rows of src */
    MHA_OP_LINEAR, /* dst ← W·src + b */
    MHA_OP_NORM,   /* dst ← norm(src) */
    MHA_OP_ATTN,   /* dst ← W_O·attention(src) + b_O */
    MHA_OP_MLP,    /* dst ← down·act(up·src) or down·(act(gate·src) ⊙ up·src) */
    MHA_OP_ACT,    /* dst ← f(src) */
    MHA_OP_SCALE,  /* dst ← factor·src, or w ⊙ src */
    MHA_OP_ADD,    /* dst ← dst + src */
    MHA_OP_POOL,   /* dst [B, D] ← one row of src a document */
    MHA_OP_LOGITS, /* read-out ← W·src + b, in row chunks */
    MHA_OP_COUNT
} mha_op;

/* The first EMBED of a prologue sets its register, the following ones add to it. */
typedef enum mha_embed_kind {
    MHA_EMBED_TOKEN,
    MHA_EMBED_POSITION, /* row = position + offset */
    MHA_EMBED_TYPE,     /* token type ids; when not given 0, or 1 behind the first `separator` */
    MHA_EMBED_NODE,     /* the features of a graph's nodes, without a table */
    MHA_EMBED_ROW       /* row i of the table is added to row i + offset of every document */
} mha_embed_kind;

typedef struct mha_embed_args {
    mha_embed_kind kind;
    mha_weight table;       /* [rows, D] */
    uint32_t offset, width; /* D */
    float scale;
    /* TOKEN: rows of `mask` are 0, as dropout would make them, and the others are multiplied by
     * (1 − dropout)/(1 − share of `mask` in the document). dropout 0: nothing of this. */
    float dropout;
    uint32_t mask;      /* UINT32_MAX: no such token */
    uint32_t separator; /* likewise */
} mha_embed_args;

typedef enum mha_conv_kind {
    MHA_CONV_PATCHES, /* one row a patch of a picture, line by line */
    MHA_CONV_FRAMES,  /* one row a step of [channels, length] features */
    MHA_CONV_ROWS,    /* one row a step of src */
    MHA_CONV_TOKENS   /* in a block: over each document's rows of src, as many as before */
} mha_conv_kind;

/* All documents have the same numbers of rows, which follow from the model; but for TOKENS, whose
 * width, rows and skip are 0. */
typedef struct mha_conv_args {
    mha_conv_kind kind;
    mha_weight w; /* [D, channels·size·size], or [D, channels·size] */
    const float *b;
    uint32_t channels, height, width; /* of the source; without lines height is 1 */
    uint32_t size, stride, pad;       /* patches: stride = size, pad = 0 */
    uint32_t rows, skip;              /* rows of dst, the first `skip` of them 0 */
} mha_conv_args;

typedef struct mha_scale_args {
    float by;
    const float *w; /* [n] or NULL */
} mha_scale_args;

typedef struct mha_linear_args {
    mha_weight w;
    const float *b; /* [out] or NULL */
} mha_linear_args;

typedef enum mha_norm_kind { MHA_NORM_LAYER, MHA_NORM_RMS } mha_norm_kind;

typedef struct mha_norm_args {
    mha_norm_kind kind;
    const float *w, *b; /* [n] or NULL; "1 + w" gains are folded here */
    uint32_t n;
    float eps;
} mha_norm_args;

typedef enum mha_keys { MHA_KEYS_SELF, MHA_KEYS_MEMORY } mha_keys;
typedef enum mha_mask {
    MHA_MASK_FULL,
    MHA_MASK_CAUSAL,        /* j <= i */
    MHA_MASK_CAUSAL_WINDOW, /* i − window < j <= i */
    MHA_MASK_WINDOW,        /* |i − j| <= window / 2; tokens that are global see and are seen */
    MHA_MASK_EDGES,         /* a node sees the sources of the edges that end in it */
    MHA_MASK_BLOCKS         /* by blocks of `window` tokens: own, neighbours, first and last */
} mha_mask;
/* Which tokens of a document are global where it does not say. */
typedef enum mha_globals {
    MHA_GLOBALS_NONE,
    MHA_GLOBALS_FIRST,
    MHA_GLOBALS_QUESTION /* all before the first `separator` token */
} mha_globals;
typedef enum mha_score { MHA_SCORE_DOT, MHA_SCORE_ADDITIVE } mha_score;
typedef enum mha_merge { MHA_MERGE_PROJECT, MHA_MERGE_CONCAT, MHA_MERGE_MEAN } mha_merge;
typedef enum mha_rope_kind { MHA_ROPE_NONE, MHA_ROPE_HALF, MHA_ROPE_PAIR } mha_rope_kind;
typedef enum mha_bias_kind { MHA_BIAS_NONE, MHA_BIAS_BUCKETS, MHA_BIAS_ALIBI } mha_bias_kind;

/* Multi-head attention: H query heads in G groups of H/G share one key/value head each; G = H is
 * plain multi-head attention, G = 1 multi-query. Head h reads group h·G/H. Order inside:
 * project → per-head norm → rotary → (scores + relative terms)·scale → softcap → + biases → mask →
 * sink → softmax → ·V → output gate → gate → W_O, for which concatenation and mean of the heads are
 * special cases. */
typedef struct mha_attn_args {
    mha_weight q, k, v, o; /* [H·K, D] [G·K, D] [G·K, D] [D, H·K] */
    const float *qb, *kb, *vb, *ob;
    /* WINDOW: what global tokens' own rows are made with: their queries, and the keys and values
     * that those see. Absent: there are no global tokens. G = H then. */
    mha_weight q_global, k_global, v_global;
    const float *qb_global, *kb_global, *vb_global;
    mha_globals globals;
    uint32_t separator;
    /* z ← sigmoid(W_g·x + b_g)⊙z of the queries' own rows x, before the heads' gates; absent: none
     */
    mha_weight output_gate; /* [H·K, D] */
    const float *output_gate_b;
    /* Each document gives C numbers about every pair of its tokens (mha_document.pair); their
     * product with the head's row is added to the scores. */
    const float *pair; /* [H, C] or NULL */
    uint32_t pair_width;
    uint32_t heads, kv_heads, width;
    float scale;
    mha_keys keys;
    mha_mask mask;
    uint32_t window; /* what the mask makes of it */
    uint32_t repeat; /* BLOCKS: how often more the first block is listed; also sets which documents
                        are short: up to (5 + 2·repeat)·window tokens see everything */
    mha_norm_args q_norm, k_norm; /* over K, or (n > K) over all heads together; n = 0: none */
    mha_rope_kind rope;
    uint32_t rope_width;    /* leading dims of a head that rotate, <= K */
    const float *rope_freq; /* [rope_width/2] radians a position, scaling applied */
    const float *rope_long; /* the same for documents of more than rope_long_from tokens, or NULL */
    uint32_t rope_long_from;
    float rope_mscale; /* cos and sin are multiplied by this; 1 usually */
    float softcap;     /* 0: none */
    mha_bias_kind bias;
    const float *bias_table; /* buckets: [buckets, H] row-major; ALiBi: slopes [H] */
    uint32_t bias_buckets, bias_max_distance;
    bool bias_bidirectional;
    float bias_factor; /* ALiBi: key j adds factor·slope·j to the scores of every query */
    bool bias_bf16;    /* ALiBi: slope, j and slope·j are rounded to bfloat16 first */
    /* Relative terms: content against relative positions, which have a row each in a table. With δ
     * the row of i − j and r its (normed) embedding, q_i·(W_rk·r_δ) and (W_rq·r_δ)·k_j are added to
     * q_i·k_j; either projection may be absent. G = H then. */
    mha_weight rel; /* [2·span, D] rows from −span to span − 1; absent: no such terms */
    mha_norm_args rel_norm;  /* of its rows; n = 0: none */
    mha_weight rel_k, rel_q; /* [H·K, D] */
    const float *rel_kb, *rel_qb;
    uint32_t
        rel_buckets; /* 0: one row a distance; else half of them are, the others by logarithm */
    uint32_t rel_distance;    /* up to distance rel_distance − 1 */
    const float *sinks;       /* [H] extra logit of each head, or NULL */
    const uint16_t *head_ids; /* [H] original head numbers (pruned models), or NULL: 0…H−1 */
    mha_score score;
    /* ADDITIVE: a·f(q + k), or f(a_q·q + a_k·k), with f(t) = t for t > 0 and slope·t otherwise */
    const float *a, *a_q, *a_k; /* [H·K]; NULL: the other form */
    float slope;
    bool self_loops; /* EDGES: every node has one loop, whatever the graph has */
} mha_attn_args;

typedef struct mha_mlp_args {
    mha_weight up, gate, down; /* [F, D] [F, D] or absent [D, F] */
    const float *up_b, *gate_b, *down_b;
    uint32_t width; /* F */
    mha_act act;
} mha_mlp_args;

typedef enum mha_pool_kind {
    MHA_POOL_FIRST,
    MHA_POOL_LAST,
    MHA_POOL_MEAN,
    MHA_POOL_TOKEN /* the row whose number is that of the last token `id` of the document's ids */
} mha_pool_kind;

typedef struct mha_pool_args {
    mha_pool_kind kind;
    uint32_t id;
    uint32_t skip; /* rows at the front of a document that FIRST and MEAN leave out */
} mha_pool_args;

typedef struct mha_logits_args {
    mha_weight w; /* [V, D] or [classes, D]; absent: the rows are the logits */
    const float *b;
    float softcap; /* 0: none */
    /* Of the rows of a question, from the second to that of the first `separator` token, the logits
     * are lower by 1e6. UINT32_MAX: no such token */
    uint32_t separator;
} mha_logits_args;

typedef struct mha_step {
    mha_op op;
    mha_register dst, src;
    uint32_t width; /* of dst after the step */
    union {
        mha_embed_args embed;
        mha_conv_args conv;
        mha_linear_args linear;
        mha_norm_args norm;
        mha_attn_args attn;
        mha_mlp_args mlp;
        mha_act act;
        mha_scale_args scale;
        mha_pool_args pool;
        mha_logits_args logits;
    };
} mha_step;

typedef struct mha_steps {
    mha_step *step;
    size_t count;
} mha_steps;

/* One stack: prologue once, then block[l] for l = 0…layers−1, then epilogue once. A block holds at
 * most one self- and one cross-attention step. */
typedef struct mha_stack {
    mha_stack_id id;
    uint32_t layers;
    uint32_t
        *stream; /* [layers + 2] widths of X: before the blocks, after each, after the epilogue */
    mha_steps prologue, epilogue;
    mha_steps *block; /* [layers] */
} mha_stack;

/* How the rows of a slot's matrix [out, in] lie in a stored one of `of` rows: row r is stored row
 * at + r / group · step + r % group. in_out: stored [in, of], so these are columns there. */
typedef struct mha_place {
    uint32_t of, at, group, step;
    bool in_out;
} mha_place;

/* What of a tensor belongs to single heads. */
typedef enum mha_part_role {
    MHA_PART_PLAIN = 0,
    MHA_PART_QUERY,      /* out = H·K rows, K (or 1) a query head */
    MHA_PART_KEY,        /* out = G·K rows, K a key/value head */
    MHA_PART_OUTPUT,     /* in = H·K columns: W_O */
    MHA_PART_OUTPUT_BIAS /* b_O */
} mha_part_role;

/* One slot's share of a stored tensor: where it is, where a Hugging Face checkpoint has it, and
 * what of it belongs to heads. From these the weights of a smaller model are written. */
typedef struct mha_part {
    const mha_tensor *tensor;
    const char *name; /* in a Hugging Face checkpoint; NULL: there is no such tensor there */
    uint32_t out, in; /* in 0: a vector [out] */
    mha_place here, there;
    float added;     /* to what is stored here for what is there: −1 where only GGUF has 1 + w */
    uint32_t paired; /* leading rows of each head that are in pairs here (2b + a) and in
                        halves there (a·paired/2 + b); 0: none */
    mha_part_role role;
    size_t attn;    /* the attention step, by info.attn; of heads' parts only */
    uint32_t steps; /* attention steps that use it: more than one for shared weights */
} mha_part;

/* The config keys under which a Hugging Face config gives head counts and widths, where they are
 * the same for all attention steps and are not computed; NULL otherwise. */
typedef struct mha_head_keys {
    const char *heads, *kv_heads, *width;
    const char *pruned; /* lists removed heads for Transformers 4 */
} mha_head_keys;

/* The bound model. Opaque to users as mha_model. */
struct mha_model {
    mha_model_info info;        /* the public facts, filled when opened */
    mha_checkpoint *checkpoint; /* owned */
    mha_arena memory;           /* owns vectors, steps, strings */
    mha_stack stack[2];         /* in the order they run: an encoder's memory feeds a decoder */
    size_t stack_count;
    mha_steps head;              /* read-out after the last stack's epilogue; count 0: no head */
    uint32_t width;              /* the widest that any register gets */
    uint32_t features;           /* of a graph's nodes, 0: the model reads tokens */
    uint32_t vocab;              /* rows of the token table */
    uint32_t max_positions;      /* rows of the position table that can be used, 0: no limit */
    mha_contact_head contacts;   /* weights NULL: none */
    uint32_t types;              /* token type rows, 0: none */
    const mha_attn_args *global; /* the first step that knows global tokens, or NULL */
    char *description;           /* the resolved program as text, for info --program */
    const mha_tensor **sorted;   /* [checkpoint->tensor_count] by name */
    mha_vector *vectors;         /* [vector_count] all floats that were widened when opened */
    size_t vector_count;
    unsigned char *tensor_use; /* [checkpoint->tensor_count] 0 unused, 1 not in a step, 2 in one */
    mha_part *part;            /* [part_count] in no order; owned */
    size_t part_count;
    mha_head_keys head_keys;
    json_t *hugging_face;      /* of a GGUF file: the config of the same model there; owned */
    mha_model_options options; /* it was opened with; strings are copies */
};

#endif
