/* select.h: which heads --layers, --heads, --stack and --kind choose. */
#ifndef MHA_CLI_SELECT_H
#define MHA_CLI_SELECT_H

#include "cli/cli.h"
#include "mha/trace.h"

typedef struct mha_selection {
    const mha_model_info *info;
    size_t stride;                 /* H: the largest number of heads of any attention step */
    bool *heads;                   /* [A, H] by attention step and index on axis H */
    size_t count;                  /* chosen heads */
    bool *layers[MHA_STACK_COUNT]; /* [L] layers for the sites that no head has */
} mha_selection;

/* The model and the documents must be open: where a document has no target, the decoder of an
 * encoder–decoder has nothing to read and its heads are not chosen, which is said. MHA_ERR_ARG
 * names the item that chooses nothing. Release in any case. */
mha_status mha_selection_make(mha_selection *s, mha_cli *cli, mha_err *err);
/* The same for sites that no head has: no head need be left. */
mha_status mha_selection_make_layers(mha_selection *s, mha_cli *cli, mha_err *err);
void mha_selection_release(mha_selection *s);

/* One item of a list of heads. */
typedef struct mha_number_span {
    uint64_t first, last;
} mha_number_span;
typedef struct mha_head_item {
    int stack, kind; /* -1: any */
    mha_number_span layer, head;
} mha_head_item;
/* LAYER.HEAD or STACK.KIND.LAYER.HEAD, n bytes; false when it is neither. */
bool mha_head_item_parse(mha_head_item *out, const char *s, size_t n);
/* Whether it can mean heads of the step. */
bool mha_head_item_has_step(const mha_head_item *it, const mha_attn_info *step);
/* Whether both its ranges end at a layer and a head that some step it can mean has, or had before
 * pruning: 0.0-9 is a mistake where heads end at 3. */
bool mha_head_item_ends(const mha_head_item *it, const mha_model_info *info);

/* The position in info->attn, or SIZE_MAX. */
size_t mha_attn_find(const mha_model_info *info, mha_stack_id stack, mha_kind kind, uint32_t layer);
/* As traces and analyses take it; borrows from the selection. */
mha_choice mha_selection_choice(const mha_selection *s);
/* Whether the head is chosen; head UINT32_MAX: whether any of the step is. */
bool mha_selection_has(const mha_selection *s, size_t step, uint32_t head);
/* How many heads of the step are chosen. */
size_t mha_selection_heads(const mha_selection *s, size_t step);

#endif
