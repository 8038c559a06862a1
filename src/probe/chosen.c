/* chosen.c: resolving a choice of heads, and the shapes of attention steps on documents. Reads the
 * public facts of a model only. */
#include "probe/chosen.h"
#include "base/fail.h"
#include "base/mem.h"
#include <assert.h>
#include <string.h>

mha_status mha_chosen_init(mha_chosen *c, const mha_model_info *info, const mha_choice *choice,
                           mha_err *err)
{
    memset(c, 0, sizeof *c);
    c->info = info;
    c->choice = *choice;
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].heads > c->stride)
            c->stride = info->attn[a].heads;
    size_t cells = info->attn_count * c->stride; /* fits: heads of an open model */
    mha_status st;
    MHA_TRY_GOTO(st, mha_alloc((void **)&c->slot, cells, sizeof *c->slot, err), failed);
    MHA_TRY_GOTO(st, mha_alloc((void **)&c->count, info->attn_count, sizeof *c->count, err),
                 failed);
    MHA_TRY_GOTO(st, mha_alloc((void **)&c->first, info->attn_count, sizeof *c->first, err),
                 failed);
    for (size_t a = 0; a < info->attn_count; a++) {
        c->first[a] = (uint32_t)c->heads;
        for (size_t h = 0; h < c->stride; h++) {
            size_t at = a * c->stride + h;
            bool in = h < info->attn[a].heads && (choice->heads == NULL || choice->heads[at]);
            c->slot[at] = in ? c->count[a]++ : MHA_NOT_CHOSEN;
        }
        c->heads += c->count[a];
    }
    return MHA_OK;
failed:
    mha_chosen_release(c);
    return st;
}

void mha_chosen_release(mha_chosen *c)
{
    mha_free(c->slot);
    mha_free(c->count);
    mha_free(c->first);
    memset(c, 0, sizeof *c);
}

/* SIZE_MAX: that layer has no such attention. */
static size_t find_step(const mha_chosen *c, mha_stack_id stack, mha_kind kind, uint32_t layer)
{
    const mha_attn_info *attn = c->info->attn;
    for (size_t a = 0; a < c->info->attn_count; a++)
        if (attn[a].layer == layer && attn[a].stack == stack && attn[a].kind == kind)
            return a;
    return SIZE_MAX;
}

size_t mha_chosen_step(const mha_chosen *c, mha_stack_id stack, mha_kind kind, uint32_t layer)
{
    size_t a = find_step(c, stack, kind, layer);
    assert(a != SIZE_MAX);
    return a;
}

bool mha_chosen_has(const mha_chosen *c, mha_stack_id stack, mha_kind kind, uint32_t layer,
                    uint32_t head)
{
    size_t a = find_step(c, stack, kind, layer);
    if (a == SIZE_MAX)
        return false;
    if (head == UINT32_MAX)
        return c->count[a] > 0;
    return head < c->stride && c->slot[a * c->stride + head] != MHA_NOT_CHOSEN;
}

size_t mha_chosen_number(const mha_chosen *c, size_t step, uint32_t head)
{
    uint32_t slot = c->slot[step * c->stride + head];
    assert(slot != MHA_NOT_CHOSEN);
    return c->first[step] + slot;
}

bool mha_chosen_has_layer(const mha_chosen *c, mha_stack_id stack, uint32_t layer)
{
    return c->choice.layers[stack] == NULL || c->choice.layers[stack][layer];
}

bool mha_chosen_has_stack(const mha_chosen *c, mha_stack_id stack)
{
    for (uint32_t l = 0; l < c->info->layers[stack]; l++)
        if (mha_chosen_has_layer(c, stack, l))
            return true;
    return false;
}

bool mha_stack_reads_target(const mha_model_info *info, mha_stack_id stack)
{
    return stack == MHA_DEC && info->layers[MHA_ENC] > 0;
}

size_t mha_step_queries(const mha_model_info *info, const mha_attn_info *step,
                        const mha_document *doc)
{
    return mha_stack_reads_target(info, step->stack) ? doc->target_n : doc->n;
}

static bool keys_are_target(const mha_model_info *info, const mha_attn_info *step)
{
    return step->kind == MHA_SELF && mha_stack_reads_target(info, step->stack);
}

size_t mha_step_keys(const mha_model_info *info, const mha_attn_info *step, const mha_document *doc)
{
    return keys_are_target(info, step) ? doc->target_n : doc->n;
}

const uint8_t *mha_step_special(const mha_model_info *info, const mha_attn_info *step,
                                const mha_document *doc)
{
    return keys_are_target(info, step) ? doc->target_special : doc->special;
}

mha_status mha_chosen_check_special(const mha_chosen *c, const mha_document *docs, size_t count,
                                    mha_err *err)
{
    for (size_t d = 0; d < count; d++)
        for (size_t a = 0; a < c->info->attn_count; a++) {
            const mha_attn_info *step = &c->info->attn[a];
            if (c->count[a] > 0 && mha_step_queries(c->info, step, &docs[d]) > 0 &&
                mha_step_special(c->info, step, &docs[d]) == NULL)
                return mha_fail(err, MHA_ERR_ARG,
                                "document %zu: which of its tokens are special is not known", d);
        }
    return MHA_OK;
}

void mha_step_span(const mha_attn_info *step, size_t i, size_t keys, size_t *lo, size_t *hi)
{
    bool self = step->kind == MHA_SELF;
    size_t w = self ? step->window : 0, back = step->causal ? w - 1 : w / 2;
    *lo = w > 0 && i > back ? i - back : 0;
    *hi = keys;
    if (self && step->causal && i + 1 < keys)
        *hi = i + 1;
    else if (!step->causal && w > 0 && i + back + 1 < keys)
        *hi = i + back + 1;
}
