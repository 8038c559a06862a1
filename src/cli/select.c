/* select.c: parses selections against the attention steps that the model has. It knows names and
 * numbers only; nothing runs here. */
#include "cli/select.h"

#include "base/fail.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

typedef mha_number_span span;
typedef mha_head_item item;

/* "7", "3-5" or "*" */
static bool span_parse(span *out, const char *s, size_t n)
{
    if (n == 1 && *s == '*') {
        *out = (span){0, UINT64_MAX};
        return true;
    }
    const char *end;
    if (!mha_parse_uint(s, &out->first, &end))
        return false;
    out->last = out->first;
    if (*end == '-' && !mha_parse_uint(end + 1, &out->last, &end))
        return false;
    return end == s + n && out->first <= out->last;
}

static bool span_has(span s, uint64_t x)
{
    return x >= s.first && x <= s.last;
}

bool mha_head_item_parse(item *out, const char *s, size_t n)
{
    const char *part[4];
    size_t length[4], parts = 0;
    for (size_t at = 0; at <= n && parts < 4; parts++) {
        const char *dot = memchr(s + at, '.', n - at);
        part[parts] = s + at;
        length[parts] = dot ? (size_t)(dot - part[parts]) : n - at;
        at = dot ? (size_t)(dot - s) + 1 : n + 1;
    }
    if (parts != 2 && parts != 4)
        return false;
    *out = (item){-1, -1, {0, 0}, {0, 0}};
    if (parts == 4) {
        for (int i = 0; i < MHA_STACK_COUNT; i++)
            if (strncmp(mha_stack_name((mha_stack_id)i), part[0], length[0]) == 0 &&
                strlen(mha_stack_name((mha_stack_id)i)) == length[0])
                out->stack = i;
        for (int i = 0; i < MHA_KIND_COUNT; i++)
            if (strncmp(mha_kind_name((mha_kind)i), part[1], length[1]) == 0 &&
                strlen(mha_kind_name((mha_kind)i)) == length[1])
                out->kind = i;
        if (out->stack < 0 || out->kind < 0)
            return false;
    }
    return span_parse(&out->layer, part[parts - 2], length[parts - 2]) &&
           span_parse(&out->head, part[parts - 1], length[parts - 1]) &&
           part[parts - 1] + length[parts - 1] == s + n;
}

static bool layer_item_parse(item *out, const char *s, size_t n)
{
    *out = (item){-1, -1, {0, 0}, {0, UINT64_MAX}};
    return span_parse(&out->layer, s, n);
}

size_t mha_attn_find(const mha_model_info *info, mha_stack_id stack, mha_kind kind, uint32_t layer)
{
    for (size_t i = 0; i < info->attn_count; i++)
        if (info->attn[i].stack == stack && info->attn[i].kind == kind &&
            info->attn[i].layer == layer)
            return i;
    return SIZE_MAX;
}

bool mha_head_item_has_step(const item *it, const mha_attn_info *step)
{
    return (it->stack < 0 || (int)step->stack == it->stack) &&
           (it->kind < 0 || (int)step->kind == it->kind) && span_has(it->layer, step->layer);
}

bool mha_head_item_ends(const item *it, const mha_model_info *info)
{
    bool layer = it->layer.last == UINT64_MAX, head = it->head.last == UINT64_MAX;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        if (!mha_head_item_has_step(it, step))
            continue;
        layer = layer || step->layer >= it->layer.last;
        head = head || step->original_heads > it->head.last;
    }
    return layer && head;
}

/* Marks what the item allows in marks [A, H]; false when that is nothing. */
static bool item_mark(const item *it, const mha_selection *s, bool *marks)
{
    bool any = false;
    for (size_t a = 0; a < s->info->attn_count; a++) {
        const mha_attn_info *step = &s->info->attn[a];
        if (!mha_head_item_has_step(it, step))
            continue;
        any = any || (!step->heads && it->head.last == UINT64_MAX); /* "all", of none */
        for (uint32_t h = 0; h < step->heads; h++)
            if (span_has(it->head, step->head_ids[h]))
                any = marks[a * s->stride + h] = true;
    }
    return any;
}

/* Keeps of the selection what the list allows. */
static mha_status list_apply(mha_selection *s, const mha_option *o, const char *list,
                             bool (*parse)(item *, const char *, size_t), mha_err *err)
{
    bool *marks;
    size_t total = s->info->attn_count * s->stride;
    MHA_TRY(mha_alloc((void **)&marks, total, sizeof *marks, err));
    mha_status status = MHA_OK;
    const char *at = list;
    while (status == MHA_OK) {
        size_t n = strcspn(at, ",");
        item it;
        if (!parse(&it, at, n))
            status = mha_fail(err, MHA_ERR_ARG, "%s: '%.*s' is not %s", o->name, (int)n, at,
                              o->id == MHA_OPT_HEADS ? "LAYER.HEAD or STACK.KIND.LAYER.HEAD"
                                                     : "a layer or a range of layers such as 3-5");
        else if (!mha_head_item_ends(&it, s->info) || !item_mark(&it, s, marks))
            status = mha_fail(err, MHA_ERR_ARG, "%s: the model has no %s %.*s", o->name,
                              o->id == MHA_OPT_HEADS ? "head" : "layer", (int)n, at);
        if (!at[n])
            break;
        at += n + 1;
    }
    for (size_t i = 0; status == MHA_OK && i < total; i++)
        s->heads[i] = s->heads[i] && marks[i];
    mha_free(marks);
    return status;
}

/* Whether --stack, --kind and --layers allow the step. --heads names heads, so that no step without
 * any is meant. */
static bool empty_step_allowed(const mha_args *args, const mha_attn_info *step)
{
    int stack = mha_args_choice(args, MHA_OPT_STACK), kind = mha_args_choice(args, MHA_OPT_KIND);
    const char *at = mha_args_get(args, MHA_OPT_LAYERS);
    if (mha_args_has(args, MHA_OPT_HEADS) || (stack >= 0 && (int)step->stack != stack) ||
        (kind >= 0 && (int)step->kind != kind))
        return false;
    for (item it; at; at = at[strcspn(at, ",")] ? at + strcspn(at, ",") + 1 : NULL)
        if (layer_item_parse(&it, at, strcspn(at, ",")) && span_has(it.layer, step->layer))
            return true;
    return !mha_args_has(args, MHA_OPT_LAYERS);
}

/* Everything that --stack, --kind and the documents allow. */
static mha_status selection_start(mha_selection *s, const mha_cli *cli, mha_err *err)
{
    const mha_args *args = &cli->args;
    int stack = mha_args_choice(args, MHA_OPT_STACK), kind = mha_args_choice(args, MHA_OPT_KIND);
    bool reads_encoder = s->info->layers[MHA_ENC] && s->info->layers[MHA_DEC];
    bool encoder_only = reads_encoder && cli->inputs.count > 0 && !cli->inputs.targets;
    if (encoder_only && (stack == MHA_DEC || kind == MHA_CROSS))
        return mha_fail(err, MHA_ERR_ARG, "the decoder has nothing to read without a --target");
    if (encoder_only && stack < 0)
        mha_note(cli, "no --target: only the encoder's heads");
    for (size_t a = 0; a < s->info->attn_count; a++) {
        const mha_attn_info *step = &s->info->attn[a];
        bool allowed = (stack < 0 || (int)step->stack == stack) &&
                       (kind < 0 || (int)step->kind == kind) &&
                       !(encoder_only && step->stack == MHA_DEC);
        for (uint32_t h = 0; h < step->heads; h++)
            s->heads[a * s->stride + h] = allowed;
    }
    return MHA_OK;
}

static mha_status nothing_chosen(const mha_selection *s, mha_cli *cli, mha_err *err)
{
    for (size_t a = 0; a < s->info->attn_count; a++)
        if (s->info->attn[a].heads)
            return mha_fail(err, MHA_ERR_ARG, "the selection leaves no head");
    return mha_cannot(cli, err, "nothing to measure: the model has no attention head left");
}

static mha_status selection_apply(mha_selection *s, const mha_args *args, mha_err *err)
{
    const char *layers = mha_args_get(args, MHA_OPT_LAYERS);
    const char *heads = mha_args_get(args, MHA_OPT_HEADS);
    if (layers)
        MHA_TRY(list_apply(s, &mha_options[MHA_OPT_LAYERS], layers, layer_item_parse, err));
    if (heads)
        MHA_TRY(list_apply(s, &mha_options[MHA_OPT_HEADS], heads, mha_head_item_parse, err));
    for (size_t a = 0; a < s->info->attn_count; a++) {
        const mha_attn_info *step = &s->info->attn[a];
        size_t chosen = mha_selection_heads(s, a);
        s->count += chosen;
        /* the sites of a layer are there without heads, too */
        bool layer = chosen || (!step->heads && empty_step_allowed(args, step));
        if (layer && step->layer < s->info->layers[step->stack])
            s->layers[step->stack][step->layer] = true;
    }
    return MHA_OK;
}

mha_status mha_selection_make_layers(mha_selection *s, mha_cli *cli, mha_err *err)
{
    const mha_model_info *info = cli->info;
    *s = (mha_selection){.info = info};
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].heads > s->stride)
            s->stride = info->attn[a].heads;
    size_t total;
    if (mha_mul_overflows(info->attn_count, s->stride, &total))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    MHA_TRY(mha_alloc((void **)&s->heads, total, sizeof *s->heads, err));
    for (int i = 0; i < MHA_STACK_COUNT; i++)
        MHA_TRY(mha_alloc((void **)&s->layers[i], info->layers[i], sizeof **s->layers, err));
    MHA_TRY(selection_start(s, cli, err));
    return selection_apply(s, &cli->args, err);
}

mha_status mha_selection_make(mha_selection *s, mha_cli *cli, mha_err *err)
{
    MHA_TRY(mha_selection_make_layers(s, cli, err));
    return s->count ? MHA_OK : nothing_chosen(s, cli, err);
}

void mha_selection_release(mha_selection *s)
{
    mha_free(s->heads);
    for (int i = 0; i < MHA_STACK_COUNT; i++)
        mha_free(s->layers[i]);
    *s = (mha_selection){0};
}

mha_choice mha_selection_choice(const mha_selection *s)
{
    mha_choice choice = {.heads = s->heads};
    for (int i = 0; i < MHA_STACK_COUNT; i++)
        choice.layers[i] = s->layers[i];
    return choice;
}

bool mha_selection_has(const mha_selection *s, size_t step, uint32_t head)
{
    if (step >= s->info->attn_count)
        return false;
    if (head == UINT32_MAX)
        return mha_selection_heads(s, step) > 0;
    return head < s->info->attn[step].heads && s->heads[step * s->stride + head];
}

size_t mha_selection_heads(const mha_selection *s, size_t step)
{
    size_t count = 0;
    for (uint32_t h = 0; h < s->info->attn[step].heads; h++)
        count += s->heads[step * s->stride + h];
    return count;
}
