/* chosen.h: a caller's choice of heads and layers, resolved against a model: which attention step a
 * block belongs to, and the number of its head among the chosen ones. */
#ifndef MHA_PROBE_CHOSEN_H
#define MHA_PROBE_CHOSEN_H

#include "mha/trace.h"

#define MHA_NOT_CHOSEN UINT32_MAX

typedef struct mha_chosen {
    const mha_model_info *info;
    mha_choice choice; /* layers only; heads are in slot */
    size_t stride;     /* H: the largest number of heads of any step */
    uint32_t *slot;    /* [A, H] number among the chosen heads of the step, or MHA_NOT_CHOSEN */
    uint32_t *count;   /* [A] chosen heads of the step */
    uint32_t *first;   /* [A] chosen heads of all earlier steps */
    size_t heads;      /* chosen heads of all steps */
} mha_chosen;

mha_status mha_chosen_init(mha_chosen *c, const mha_model_info *info, const mha_choice *choice,
                           mha_err *err);
void mha_chosen_release(mha_chosen *c);

/* The position in info->attn. The model has such a step: blocks come from its own run. */
size_t mha_chosen_step(const mha_chosen *c, mha_stack_id stack, mha_kind kind, uint32_t layer);
/* Whether the head is chosen; head UINT32_MAX: any of that layer's. For mha_probe.wants. */
bool mha_chosen_has(const mha_chosen *c, mha_stack_id stack, mha_kind kind, uint32_t layer,
                    uint32_t head);
/* The head's number among all chosen heads: [0, heads). */
size_t mha_chosen_number(const mha_chosen *c, size_t step, uint32_t head);
bool mha_chosen_has_layer(const mha_chosen *c, mha_stack_id stack, uint32_t layer);
bool mha_chosen_has_stack(const mha_chosen *c, mha_stack_id stack);

/* Which of a document's two texts a stack reads: false the source, true the target. */
bool mha_stack_reads_target(const mha_model_info *info, mha_stack_id stack);
/* Query rows (T) and keys (S) of an attention step on a document. */
size_t mha_step_queries(const mha_model_info *info, const mha_attn_info *step,
                        const mha_document *doc);
size_t mha_step_keys(const mha_model_info *info, const mha_attn_info *step,
                     const mha_document *doc);
/* Special flags of the keys [S], or NULL. */
const uint8_t *mha_step_special(const mha_model_info *info, const mha_attn_info *step,
                                const mha_document *doc);
/* MHA_ERR_ARG when special tokens among any chosen head's keys are not known. */
mha_status mha_chosen_check_special(const mha_chosen *c, const mha_document *docs, size_t count,
                                    mha_err *err);
/* Keys [*lo, *hi) that the mask lets query i see. */
void mha_step_span(const mha_attn_info *step, size_t i, size_t keys, size_t *lo, size_t *hi);

#endif
