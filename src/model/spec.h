/* spec.h: a family description, parsed: which checkpoints it is for, which config keys give its
 * dims, which tensors it reads, and the programs of its stacks and read-outs.
 *
 * The language, line by line (`#` starts a comment, indentation is free, `\` at the end of a line
 * continues it, EXPR as in expr.h):
 *
 *   family NAME
 *   types  TYPE…            values of config.json's model_type
 *   gguf   ARCH…            values of general.architecture
 *   prefix WORD…            tried in front of every tensor name, before the bare name
 *   alias  SUFFIX OLD       a tensor name that ends in SUFFIX may end in OLD instead
 *   ignore PATTERN…         tensors that are known and not read; * matches anything
 *   pruned KEY              config key in which Transformers 4 lists the heads that were removed
 *                           from the weights, {layer: [numbers]}, and which it reads again
 *
 *   config
 *     NAME KEY | KEY… | gguf KEY… [default EXPR]    first key that is there and not null
 *                                 [null EXPR]       when the only one that is there is null
 *     NAME = EXPR
 *     NAME[l] = EXPR        a value that may differ between layers
 *   require EXPR            refused, with the keys that EXPR reads, when it does not hold
 *
 *   tensors                 before any stack: shared by all; later: of that stack or head
 *     linear NAME [OUT, IN] STEM | … | gguf …       STEM.weight and STEM.bias
 *     norm   NAME [N] STEM …                        STEM.weight and STEM.bias, kept as floats
 *     matrix NAME [OUT, IN] TENSOR …                one tensor, kept as it is stored
 *     vector NAME [N] TENSOR …                      one tensor, kept as floats
 *     table  NAME [A, B] TENSOR …                   the same with two axes
 *   A shape has up to four dims and must be the tensor's exactly. Of a matrix's, leading ones are
 *   left out until two remain; the first is OUT then, the product of the others IN. A matrix of one
 *   dim is one row.
 *   In names {l} stands for the layer and {NAME} for a value of the config section, a whole number.
 *   Options behind the names, in any order:
 *     bias=EXPR             whether STEM.bias exists (default 1)
 *     optional[=EXPR]       may be absent
 *     when=EXPR             declared only when it holds
 *     else=NAME[,EXPR]      when absent (and EXPR holds) use that slot: tied weights
 *     plus-one[=EXPR]       the stored gain is w, the model multiplies by 1 + w
 *     in-out[=EXPR]         stored [IN, OUT]: y = x·W
 *     sinusoid[=EXPR]       when absent (and EXPR holds): sines, then cosines, of the row's number
 *     from=N                OUT rows of a stored N; with at=ROW, and for interleaved parts
 *     at= group= step=      `group` rows every `step` rows
 *     columns=N column=AT   IN columns of a stored N, from AT on
 *
 *   stack enc|dec|graph layers=EXPR
 *     prologue / block / epilogue, each a list of steps; `l` is the layer in tensors and block
 *   contacts TABLE BIAS END behind the tensors: where these two are there, a logistic regression
 * from the maps of all heads [1, L*H] to contacts of tokens that stand between a start and an end
 * token; END is the latter's id head KIND [when EXPR]   the first that holds is the read-out; KIND
 * is next, masked, class, steps                 target, token, span or embedding
 *
 *   Head counts: in the slots and arguments of an attention step of a pruned model, the names that
 *   its heads= and kv= give mean the heads that are left. So shapes are written with them ([H*K,
 * D]), and K is a value of the config section, not D/H in a step.
 *
 *   Step: DST <- OP WORD ARG=VALUE… [when EXPR]       see ops.h for the ops and their arguments
 *
 * Names that every EXPR knows: gguf (1 for GGUF files), arch (the first of `architectures`, or ''),
 * l. Functions: has('TENSOR'), rows('TENSOR'), len(LIST), min(a, b), max(a, b), floor(a),
 * among(LIST, 'WORD WORD…'): every string of the list is one of the words (null is an empty list),
 * at(X, I): element I of a list, X itself where it is none, holds(X, 'WORD'): WORD is an element of
 * the list X, or of the string X that is cut at each '|'.
 */
#ifndef MHA_MODEL_SPEC_H
#define MHA_MODEL_SPEC_H

#include "base/mem.h"
#include "mha/model.h"
#include "model/expr.h"
#include "model/program.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct mha_spec_words {
    const char **word;
    size_t count;
} mha_spec_words;

/* A value of the config section: keys, or an expression. */
typedef struct mha_spec_var {
    const char *name;
    size_t line;
    mha_spec_words keys, gguf;
    const mha_expr *value;   /* the default, or the whole definition; NULL: required */
    const mha_expr *if_null; /* NULL: as when the key is absent */
    bool computed;           /* NAME = EXPR */
    bool per_layer;          /* NAME[l] = EXPR, evaluated where it is used */
} mha_spec_var;

typedef struct mha_spec_check {
    size_t line;
    const mha_expr *expr;
} mha_spec_check;

typedef enum mha_slot_kind {
    MHA_SLOT_LINEAR,
    MHA_SLOT_NORM,
    MHA_SLOT_MATRIX,
    MHA_SLOT_VECTOR,
    MHA_SLOT_TABLE
} mha_slot_kind;

/* Where a name is known: everywhere, in a stack, or in a head. */
enum { MHA_SCOPE_SHARED = -1, MHA_SCOPE_HEADS = 2 /* head i has scope 2 + i */ };

enum { MHA_SLOT_DIMS_MAX = 4 };

/* A tensor slot. Expressions are NULL when the option is not given. */
typedef struct mha_spec_slot {
    const char *name;
    size_t line;
    int scope;
    mha_slot_kind kind;
    const mha_expr *shape[MHA_SLOT_DIMS_MAX];
    size_t dims;
    mha_spec_words names, gguf;
    bool per_layer; /* {l} or another {NAME} occurs in its names */
    const mha_expr *bias, *optional, *when, *tied_when, *sinusoid, *plus_one, *in_out;
    const mha_expr *from, *at, *group, *step, *columns, *column;
    const char *tied; /* name of the slot used instead */
} mha_spec_slot;

/* One argument of a step; which member is set depends on its kind in the op table (ops.h). */
typedef struct mha_spec_arg {
    const struct mha_op_arg *def;
    const mha_expr *expr;
    size_t slot; /* index into slots */
    const char *word;
} mha_spec_arg;

typedef struct mha_spec_step {
    size_t line;
    const struct mha_op_def *op;
    mha_register dst, src;
    const char *word; /* embed: token, position, type; pool: first, last, mean */
    mha_spec_arg *arg;
    size_t args;
    const mha_expr *when;
} mha_spec_step;

typedef struct mha_spec_steps {
    mha_spec_step *step;
    size_t count;
} mha_spec_steps;

typedef struct mha_spec_stack {
    size_t line;
    mha_stack_id id;
    const mha_expr *layers;
    mha_spec_steps prologue, block, epilogue;
} mha_spec_stack;

typedef struct mha_spec_head {
    size_t line;
    mha_head_kind kind;
    const mha_expr *when;
    mha_spec_steps steps;
} mha_spec_head;

/* A regression from attention maps to contacts. */
typedef struct mha_spec_contacts {
    size_t line;        /* 0: there is none */
    size_t table, bias; /* slots */
    const mha_expr *end;
} mha_spec_contacts;

enum { MHA_SPEC_STACKS_MAX = 2 };

typedef struct mha_spec {
    const char *file; /* for messages */
    const char *name;
    mha_spec_words types, gguf, prefixes, aliases /* pairs */, ignored, pruned /* one or none */;
    mha_spec_var *vars;
    size_t var_count;
    mha_spec_check *checks;
    size_t check_count;
    mha_spec_slot *slots;
    size_t slot_count;
    mha_spec_stack stacks[MHA_SPEC_STACKS_MAX];
    size_t stack_count;
    mha_spec_contacts contacts;
    mha_spec_head *heads;
    size_t head_count;
    mha_arena memory; /* owns all of the above */
} mha_spec;

/* Parses a description. `file` is used in messages: "FILE:LINE: …". Everything that can be known
 * without a checkpoint is checked: names, arguments, what an op needs. MHA_ERR_FORMAT. */
mha_status mha_spec_parse(mha_spec **out, const char *text, size_t size, const char *file,
                          mha_err *err);
void mha_spec_free(mha_spec *s);

/* The slot of that name that steps of `scope` see: their own first, then the shared ones. */
bool mha_spec_slot_find(const mha_spec *s, const char *name, int scope, size_t *index);

#endif
