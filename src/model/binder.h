/* binder.h: the state of turning a description and a checkpoint into a program, shared by the
 * bind_*.c files. Private to src/model. */
#ifndef MHA_MODEL_BINDER_H
#define MHA_MODEL_BINDER_H

#include "base/buf.h"
#include "io/checkpoint.h"
#include "model/expr.h"
#include "model/ops.h"
#include "model/program.h"
#include "model/rope.h"
#include "model/spec.h"

/* What became of a tensor of the checkpoint. */
enum {
    MHA_TENSOR_UNUSED = 0,
    MHA_TENSOR_IGNORED, /* on the ignore list, a second copy, or bound and in no step */
    MHA_TENSOR_USED     /* in a step */
};

/* A slot with its tensors. */
typedef struct mha_bound {
    bool done, made;                  /* made: computed, in no file */
    const mha_tensor *tensor, *bias;  /* NULL: absent */
    mha_weight weight;                /* linear, matrix */
    const float *w, *b;               /* norm, vector, table; b also of a linear */
    uint64_t dims[MHA_SLOT_DIMS_MAX]; /* as declared, evaluated */
    uint32_t shape[2];                /* [OUT, IN], or [n] */
    size_t rank;                      /* of shape */
    uint32_t columns, column;         /* stored IN, and where the slot's begin; 0, 0: all */
    size_t rows_at;                   /* which of dims is OUT */
    const char *label;                /* "F32 [48, 48] encoder.layer.{l}.….weight" */
    size_t part, bias_part;           /* 1 + position in model->part, 0: none */
} mha_bound;

#define MHA_PRUNING_KEY "mha_pruning"

/* The attention step of a pruned model that is being bound: while `active`, the names of its head
 * counts mean what is left. */
typedef struct mha_narrow {
    bool active;
    const mha_spec_step *step;
    int layer;
    const char *heads_name, *kv_name;    /* kv_name NULL: as many as heads */
    uint32_t all_heads, heads, kv_heads; /* before, and now */
    const uint16_t *ids;                 /* [heads]; NULL: the step is whole */
} mha_narrow;

enum { MHA_ROPE_CACHE = 4 };

/* Frequencies that layers share. */
typedef struct mha_rope_entry {
    mha_rope_settings settings;
    const float *freq, *freq_long; /* NULL: not filled; only one table */
    uint32_t long_from;
    float mscale;
} mha_rope_entry;

typedef struct mha_binder {
    struct mha_model *model;
    const mha_spec *spec;
    mha_checkpoint *checkpoint;
    mha_arena *memory;       /* the model's */
    const char *config_file; /* for messages */
    bool gguf;
    const char *arch; /* architectures[0] or "" */
    mha_value *values;
    const char **value_key;             /* the key that gave it, NULL: default or computed */
    size_t value_count;                 /* evaluated so far */
    json_t *objects;                    /* list that owns objects made of `key.*` */
    const char *wrapper;                /* "module." and the like in front of every tensor, or "" */
    int layer;                          /* -1: not in a layer */
    mha_bound *bound;                   /* [spec->slot_count] */
    uint32_t width[MHA_REGISTER_COUNT]; /* 0: not written yet */
    mha_rope_entry rope[MHA_ROPE_CACHE];
    size_t rope_next;
    const json_t *original, *kept, *removed; /* of a pruned model's config, or NULL */
    mha_narrow narrow;
    mha_buf text;        /* the description, so far */
    mha_attn_info *attn; /* grows with mha_spec_push-like doubling */
    size_t attn_count;
    mha_err *err;
} mha_binder;

/* The names and functions of expressions, for this binder. */
mha_scope mha_binder_scope(mha_binder *b);
/* " (num_attention_heads = 6, head_dim = default)": what the names in an expression stand for. */
void mha_binder_reasons(const mha_binder *b, const mha_expr *e, char *out, size_t size);
/* A whole number in 0 … 2^31 − 1; `what` and the line are for the message. */
mha_status mha_binder_count(mha_binder *b, const mha_expr *e, size_t line, const char *what,
                            uint32_t *out);
/* Expression errors get the description's line and the values of the names. */
mha_status mha_binder_value(mha_binder *b, const mha_expr *e, size_t line, mha_value *out);
mha_status mha_binder_number(mha_binder *b, const mha_expr *e, size_t line, double *out);
/* Absent expressions give `absent`. */
mha_status mha_binder_truth(mha_binder *b, const mha_expr *e, size_t line, bool absent, bool *out);

/* A config value by the way of this format: dotted path, or flat GGUF key. NULL: absent. */
const json_t *mha_binder_config(const mha_binder *b, const char *key);
/* Evaluates the config section and the `require` lines, and refuses keys that nobody read. */
mha_status mha_bind_config(mha_binder *b);

/* `pattern` + `end`, with the layer for {l} and the value of NAME for {NAME}. */
mha_status mha_bind_name(mha_binder *b, const mha_spec_slot *slot, char *out, size_t size,
                         const char *pattern, const char *end);
/* The tensor that this name of a description means, with prefixes and aliases. NULL: absent. */
const mha_tensor *mha_binder_find(const mha_binder *b, const char *name);
mha_status mha_bind_wrapper(mha_binder *b);
/* Where the slot's `out` rows lie in its tensor. */
mha_status mha_bind_place(mha_binder *b, const mha_spec_slot *slot, uint32_t out, mha_place *place);
/* Evaluates a slot's dims: dims, shape, rank and rows_at of *bound. */
mha_status mha_bind_shape_eval(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound);
/* MHA_ERR_FORMAT unless the tensor has the declared dims, with r->of rows; in_out: stored [IN,
 * OUT].
 */
mha_status mha_bind_shape_check(const mha_binder *b, const mha_spec_slot *slot,
                                const mha_bound *bound, const mha_tensor *t, const mha_place *r,
                                bool in_out);
/* The same against any dims. */
mha_status mha_bind_shape_match(const mha_binder *b, const mha_tensor *t,
                                const mha_expr *const *dims, const uint64_t *values, size_t rank);
/* "[2*D=48, V=61]" */
void mha_bind_shape_text(char *out, size_t size, const mha_expr *const *dims,
                         const uint64_t *values, size_t rank);
/* Binds the slots of a scope: those with {l} when a layer is set, the others when none is. */
mha_status mha_bind_slots(mha_binder *b, int scope);
/* Every tensor is used or ignored, or is refused by name (or noted, when that is allowed). */
mha_status mha_bind_leftovers(mha_binder *b, bool allow_unused);

/* Steps of one list, appended to *out, with one line of the description each. */
mha_status mha_bind_steps(mha_binder *b, const mha_spec_steps *steps, mha_stack_id stack,
                          mha_steps *out);

/* MHA_ERR_FORMAT for a step whose arguments do not fit each other. */
mha_status mha_bind_misfit(const mha_binder *b, const mha_spec_step *s, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
mha_status mha_bind_linear_check(const mha_binder *b, const mha_spec_step *s, const char *name,
                                 const mha_weight *w, uint32_t out, uint32_t in);
/* Where a step was given no matrix of that name: one that takes the mean of the in/out parts of its
 * input. An argument whose tensor is absent is an error. */
mha_status mha_bind_plain(const mha_binder *b, const mha_spec_step *s, const char *name,
                          mha_weight *w, uint32_t out, uint32_t in);
/* The same for a step that reads features. */
mha_status mha_bind_conv(mha_binder *b, const mha_spec_step *s, mha_draft *d);
/* Fills the attention step of a draft from its arguments, and the width of its register. */
mha_status mha_bind_attention(mha_binder *b, const mha_spec_step *s, mha_draft *d);

/* Reads what the config says about removed heads. */
mha_status mha_bind_pruning(mha_binder *b);
/* Every step that it names must have been bound. */
mha_status mha_bind_pruning_check(const mha_binder *b);
/* Before the slots and arguments of an attention step (NULL: of anything else) are evaluated. */
mha_status mha_bind_narrow(mha_binder *b, const mha_spec_step *s, mha_stack_id stack);
/* The attention step whose heads are rows or columns of the slot's tensors, or NULL. */
const mha_spec_step *mha_bind_owner(const mha_binder *b, size_t slot);
mha_status mha_bind_head_keys(mha_binder *b);
/* Of a GGUF file: model->hugging_face. */
mha_status mha_bind_export(mha_binder *b);

/* Notes the tensors of a slot that was just bound; what of them belongs to the heads of the
 * attention step that is being bound; and the order of rotary pairs in q and k. */
mha_status mha_bind_parts(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound,
                          const mha_place *here);
void mha_bind_part_role(mha_binder *b, const char *argument, const mha_bound *bound);
mha_part_role mha_part_role_of(const char *argument);
mha_status mha_bind_part_rope(mha_binder *b, const mha_spec_step *s, const mha_attn_args *a);

/* Fills model->info, stacks and head from the spec and the checkpoint. */
mha_status mha_bind(struct mha_model *m, const mha_spec *spec, const mha_model_options *options,
                    mha_err *err);
/* Chooses the description for m->checkpoint and binds it: all of mha_model_open but the files. */
mha_status mha_model_bind(struct mha_model *m, const mha_model_options *options, mha_err *err);

#endif
