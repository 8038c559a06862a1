/* backward.h: the forward loop reversed. The tape is the list of steps; every op's backward sits
 * beside its forward and turns the gradient of its destination into that of its source. */
#ifndef MHA_ENGINE_BACKWARD_H
#define MHA_ENGINE_BACKWARD_H

#include "engine/engine.h"

/* Gradients of the registers. A register that is not live has gradient 0 and no memory behind it.
 */
typedef struct mha_backward {
    mha_forward *f;
    float *d[MHA_REGISTER_COUNT];
    bool live[MHA_REGISTER_COUNT];
    size_t rows[MHA_REGISTER_COUNT], width[MHA_REGISTER_COUNT];
    double *gates; /* [documents of the batch, A, H] of the batch's first document on, or NULL */
    mha_direct *direct;     /* [documents of the batch]: along the residual stream only; or NULL */
    bool gathered;          /* registers have one row a term: the read-out is being reversed */
    const mha_watch *watch; /* wants gradients of sites */
    const struct mha_weights *weights; /* wants gradients of tensors, or NULL */
    bool deep;    /* something is wanted from below the lowest attention step of a stack */
    bool stopped; /* nothing is wanted from below what was reversed of this stack */
} mha_backward;

typedef mha_status (*mha_op_backward)(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_embed_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_conv_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_linear_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_norm_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_attn_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_mlp_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_act_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_scale_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_add_back(mha_backward *b, const mha_saved *s, mha_err *err);
mha_status mha_op_pool_back(mha_backward *b, const mha_saved *s, mha_err *err);

/* Memory for what an op passes on to register r [rows, width]: the register's own gradient when it
 * is not live, else scratch; mha_backward_pass adds scratch to the register and marks it live. */
mha_status mha_backward_into(mha_backward *b, mha_register r, size_t rows, size_t width,
                             float **out, mha_err *err);
void mha_backward_pass(mha_backward *b, mha_register r, const float *contribution);
/* The destination's gradient is used up (an op that overwrites its destination has been reversed).
 */
void mha_backward_used(mha_backward *b, mha_register r);

/* Reverses the records of the head and then the stacks part by part, delivering on the way the
 * gradients of the sites between them. Starts from the gradient of the source of LOGITS. */
mha_status mha_backward_run(mha_backward *b, mha_err *err);

#endif
