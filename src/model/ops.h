/* ops.h: the ops of block programs as the description language knows them: one table of ops and
 * their arguments, against which the parser checks names and from which the binder fills steps. */
#ifndef MHA_MODEL_OPS_H
#define MHA_MODEL_OPS_H

#include "model/expr.h"
#include "model/program.h"
#include <stdbool.h>
#include <stddef.h>

/* A step while its arguments are collected. What is not part of mha_step itself is turned into the
 * step's fields when all of them are known. */
typedef struct mha_draft {
    mha_step step;
    bool causal, edges;
    uint32_t block; /* tokens of a block: the mask goes by blocks */
    int qk_norm;    /* mha_norm_kind of q_norm, k_norm and relative_norm */
    float qk_eps;
    mha_value theta, scaling;
    const float *frequencies; /* as the file has them, instead of theta and scaling */
    uint32_t frequency_count;
    const float *divisors, *long_divisors; /* of rotary frequencies, as GGUF files have them */
    uint32_t divisor_count, long_divisor_count, bucket_count, bias_count, sink_count; /* lengths */
    uint32_t scale_count, pair_count;
    uint32_t positions, original; /* the longest text, now and before rotary scaling */
    float alibi;
    mha_merge merge;
    uint32_t a_count, a_q_count, a_k_count, out_bias_count; /* lengths */
} mha_draft;

/* What the value of an argument is, and where the binder puts it. */
typedef enum mha_arg_kind {
    MHA_ARG_LINEAR, /* linear or matrix slot; mha_weight at `at`, float * bias at `second` */
    MHA_ARG_MATRIX, /* matrix slot; mha_weight at `at` */
    MHA_ARG_NORM,   /* norm slot; mha_norm_args at `at`: w, b, n */
    MHA_ARG_FLOATS, /* vector or table slot; float * at `at`, uint32_t length at `second` */
    MHA_ARG_COUNT,  /* expression; uint32_t at `at` */
    MHA_ARG_REAL,   /* expression; float at `at` */
    MHA_ARG_FLAG,   /* no value, or an expression; bool at `at` */
    MHA_ARG_WORD,   /* one of `words`, or an expression that gives one; int at `at` */
    MHA_ARG_VALUE   /* expression of any kind; mha_value at `at` */
} mha_arg_kind;

/* Lists of words end with a NULL name. Several words may mean the same. */
typedef struct mha_op_word {
    const char *name;
    int value;
} mha_op_word;

typedef struct mha_op_arg {
    const char *name; /* NULL ends the list */
    mha_arg_kind kind;
    bool required;
    size_t at, second; /* offsets in mha_draft */
    const mha_op_word *words;
} mha_op_arg;

typedef struct mha_op_def {
    const char *name;
    mha_op op;
    bool has_dst, has_src;
    size_t word_at;           /* offset of the int that `words` sets */
    const mha_op_word *words; /* the word behind the op or its source; NULL: none */
    const mha_op_arg *args;
} mha_op_def;

enum { MHA_OP_ARGS_MAX = 64 };

/* NULL when there is no such op. */
const mha_op_def *mha_op_find(const char *name);
const mha_op_arg *mha_op_arg_find(const mha_op_def *op, const char *name);
/* -1 when the word is not in the list. */
int mha_op_word_value(const mha_op_word *words, const char *name);
const char *mha_op_word_name(const mha_op_word *words, int value);
/* "X", "B", "C", "E". */
const char *mha_register_name(mha_register r);

#endif
