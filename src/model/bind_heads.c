/* bind_heads.c: models from whose weights heads were pruned. The config says which heads each
 * attention step still has; while the slots and arguments of that step are evaluated, the names
 * that give its head counts mean what is left, so that a family description says nothing about
 * pruning. May not look at tensors.
 *
 *   "mha_pruning": {
 *     "kept_heads": {"enc.self.3": [0, 2], …}   original numbers; steps that are not here are whole
 *     "original":   {"num_attention_heads": 4}  config values of the whole model that are others
 *   }                                           now
 *
 * or, where the family has a key of Transformers 4 for it, {"3": [1, 3]}: the removed heads. */
#include "base/fail.h"
#include "model/binder.h"
#include <stdio.h>
#include <string.h>

enum { STEP_NAME = 48 };

mha_status mha_bind_pruning(mha_binder *b)
{
    if (b->gguf)
        return MHA_OK;
    const json_t *own = json_object_get(b->checkpoint->config, MHA_PRUNING_KEY);
    if (own != NULL) {
        b->kept = json_object_get(own, "kept_heads");
        b->original = json_object_get(own, "original");
        if (!json_is_object(b->kept) || (b->original != NULL && !json_is_object(b->original)))
            return mha_fail(b->err, MHA_ERR_FORMAT,
                            "%s: " MHA_PRUNING_KEY " needs an object kept_heads", b->config_file);
        return MHA_OK;
    }
    if (b->spec->pruned.count == 0)
        return MHA_OK;
    const char *key = b->spec->pruned.word[0];
    const json_t *removed = json_object_get(b->checkpoint->config, key);
    if (removed == NULL || json_is_null(removed) || json_object_size(removed) == 0)
        return json_is_object(removed) || removed == NULL || json_is_null(removed)
                   ? MHA_OK
                   : mha_fail(b->err, MHA_ERR_FORMAT, "%s: %s is not an object", b->config_file,
                              key);
    if (b->spec->stack_count != 1)
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED, "%s: %s does not say which stack it means",
                        b->config_file, key);
    b->removed = removed;
    return MHA_OK;
}

/* The entry of one attention step; NULL when it has all its heads. */
static const json_t *find_list(const mha_binder *b, mha_stack_id stack, mha_kind kind, int layer)
{
    char name[STEP_NAME];
    if (b->removed != NULL) {
        snprintf(name, sizeof name, "%d", layer);
        return kind == MHA_SELF ? json_object_get(b->removed, name) : NULL;
    }
    snprintf(name, sizeof name, "%s.%s.%d", mha_stack_name(stack), mha_kind_name(kind), layer);
    return json_object_get(b->kept, name);
}

static mha_status bad_list(const mha_binder *b, mha_stack_id stack, mha_kind kind, const char *why)
{
    return mha_fail(b->err, MHA_ERR_FORMAT, "%s: %s: heads of %s.%s.%d: %s", b->config_file,
                    b->removed != NULL ? b->spec->pruned.word[0] : MHA_PRUNING_KEY,
                    mha_stack_name(stack), mha_kind_name(kind), b->layer, why);
}

/* Marks the heads that the list names. */
static mha_status mark_heads(const mha_binder *b, const json_t *list, mha_stack_id stack,
                             mha_kind kind, bool *mark, uint32_t heads)
{
    if (!json_is_array(list))
        return bad_list(b, stack, kind, "not a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *number = json_array_get(list, i);
        json_int_t h = json_is_integer(number) ? json_integer_value(number) : -1;
        char why[80];
        if (h < 0 || h >= heads || mark[h]) {
            snprintf(why, sizeof why, "number %zu is %s head of %u", i,
                     h >= 0 && h < heads ? "a second time the same" : "no", heads);
            return bad_list(b, stack, kind, why);
        }
        mark[h] = true;
    }
    return MHA_OK;
}

/* Fills ids with the heads that are left, and counts them and their key/value heads. */
static mha_status read_list(mha_binder *b, const json_t *list, mha_stack_id stack, mha_kind kind,
                            uint32_t heads, uint32_t kv_heads, mha_narrow *n)
{
    bool *mark;
    uint16_t *ids;
    MHA_TRY(mha_arena_alloc((void **)&mark, b->memory, heads, sizeof *mark, b->err));
    MHA_TRY(mha_arena_alloc((void **)&ids, b->memory, (size_t)heads + 1, sizeof *ids, b->err));
    MHA_TRY(mark_heads(b, list, stack, kind, mark, heads));
    bool left = b->removed == NULL; /* what a mark means */
    uint32_t group = heads / kv_heads, in_group = 0;
    for (uint32_t h = 0; h < heads; h++) {
        in_group = h % group == 0 ? 0 : in_group;
        if (mark[h] == left) {
            ids[n->heads++] = (uint16_t)h;
            in_group++;
        }
        if (h % group + 1 < group)
            continue;
        if (in_group != 0 && in_group != group)
            return bad_list(b, stack, kind, "a part of the heads that share keys and values");
        n->kv_heads += in_group != 0;
    }
    n->ids = ids;
    return MHA_OK;
}

static const mha_spec_arg *find_arg(const mha_spec_step *s, const char *name)
{
    for (size_t i = 0; i < s->args; i++)
        if (strcmp(s->arg[i].def->name, name) == 0)
            return &s->arg[i];
    return NULL;
}

/* The name that an argument consists of, or NULL. */
static const char *plain_name(const mha_binder *b, const mha_spec_arg *arg)
{
    const char *text = arg == NULL || arg->expr == NULL ? NULL : mha_expr_text(arg->expr);
    for (size_t i = 0; text != NULL && i < b->spec->var_count; i++)
        if (strcmp(b->spec->vars[i].name, text) == 0)
            return b->spec->vars[i].per_layer ? NULL : b->spec->vars[i].name;
    return NULL;
}

static mha_kind step_kind(const mha_spec_step *s)
{
    const mha_spec_arg *keys = find_arg(s, "keys");
    return keys != NULL && keys->word != NULL && strcmp(keys->word, "memory") == 0 ? MHA_CROSS
                                                                                   : MHA_SELF;
}

static mha_status fill_narrow(mha_binder *b, const mha_spec_step *s, mha_stack_id stack)
{
    mha_narrow *n = &b->narrow;
    const mha_spec_arg *heads = find_arg(s, "heads"), *kv = find_arg(s, "kv");
    mha_kind kind = step_kind(s);
    const json_t *list = find_list(b, stack, kind, b->layer);
    uint32_t kv_heads;
    *n = (mha_narrow){.step = s, .layer = b->layer};
    if (list == NULL)
        return MHA_OK;
    MHA_TRY(mha_binder_count(b, heads->expr, s->line, "heads", &n->all_heads));
    kv_heads = n->all_heads;
    if (kv != NULL)
        MHA_TRY(mha_binder_count(b, kv->expr, s->line, "kv", &kv_heads));
    if (kv_heads == 0 || n->all_heads % kv_heads != 0 || n->all_heads > UINT16_MAX)
        return MHA_OK; /* refused where the step itself is bound */
    n->heads_name = plain_name(b, heads);
    n->kv_name = plain_name(b, kv);
    if (n->heads_name == NULL || (kv != NULL && n->kv_name == NULL))
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: models of family %s cannot be pruned: %s:%zu computes head counts",
                        b->config_file, b->spec->name, b->spec->file, s->line);
    return read_list(b, list, stack, kind, n->all_heads, kv_heads, n);
}

mha_status mha_bind_narrow(mha_binder *b, const mha_spec_step *s, mha_stack_id stack)
{
    b->narrow.active = false;
    if (s == NULL || (b->kept == NULL && b->removed == NULL) || b->layer < 0)
        return MHA_OK;
    if (b->narrow.step != s || b->narrow.layer != b->layer)
        MHA_TRY(fill_narrow(b, s, stack));
    b->narrow.active = b->narrow.ids != NULL;
    return MHA_OK;
}

const mha_spec_step *mha_bind_owner(const mha_binder *b, size_t slot)
{
    int scope = b->spec->slots[slot].scope;
    if (scope < 0 || scope >= MHA_SCOPE_HEADS || !b->spec->slots[slot].per_layer)
        return NULL;
    const mha_spec_steps *block = &b->spec->stacks[scope].block;
    for (size_t i = 0; i < block->count; i++) {
        const mha_spec_step *s = &block->step[i];
        for (size_t k = 0; s->op->op == MHA_OP_ATTN && k < s->args; k++)
            if (s->arg[k].def->kind <= MHA_ARG_FLOATS && s->arg[k].slot == slot &&
                mha_part_role_of(s->arg[k].def->name) != MHA_PART_PLAIN)
                return s;
    }
    return NULL;
}

static bool has_step(const mha_binder *b, const char *name)
{
    for (size_t i = 0; i < b->attn_count; i++) {
        const mha_attn_info *a = &b->attn[i];
        char own[STEP_NAME];
        if (b->removed != NULL)
            snprintf(own, sizeof own, "%u", a->layer);
        else
            snprintf(own, sizeof own, "%s.%s.%u", mha_stack_name(a->stack), mha_kind_name(a->kind),
                     a->layer);
        if (strcmp(own, name) == 0)
            return true;
    }
    return false;
}

mha_status mha_bind_pruning_check(const mha_binder *b)
{
    const json_t *lists = b->removed != NULL ? b->removed : b->kept;
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)lists, name, list)
    {
        if (!has_step(b, name))
            return mha_fail(b->err, MHA_ERR_FORMAT, "%s: %s: the model has no attention \"%.40s\"",
                            b->config_file,
                            b->removed != NULL ? b->spec->pruned.word[0] : MHA_PRUNING_KEY, name);
    }
    return MHA_OK;
}

/* -------------------------------------------------------------------------- head keys */

/* The key that a Hugging Face config gives the value by. */
static const char *config_key(const mha_binder *b, const char *name)
{
    for (size_t i = 0; name != NULL && i < b->spec->var_count; i++) {
        const mha_spec_var *v = &b->spec->vars[i];
        if (strcmp(v->name, name) == 0 && v->keys.count > 0)
            return !b->gguf && b->value_key[i] != NULL ? b->value_key[i] : v->keys.word[0];
    }
    return NULL;
}

static const char *agree(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0 ? a : NULL;
}

mha_status mha_bind_head_keys(mha_binder *b)
{
    mha_head_keys keys = {NULL, NULL, NULL, NULL};
    size_t seen = 0;
    for (size_t i = 0; i < b->spec->stack_count; i++)
        for (size_t k = 0; k < b->spec->stacks[i].block.count; k++) {
            const mha_spec_step *s = &b->spec->stacks[i].block.step[k];
            if (s->op->op != MHA_OP_ATTN)
                continue;
            const char *heads = config_key(b, plain_name(b, find_arg(s, "heads")));
            const mha_spec_arg *kv = find_arg(s, "kv");
            const char *kv_heads = kv != NULL ? config_key(b, plain_name(b, kv)) : heads;
            const char *width = config_key(b, plain_name(b, find_arg(s, "width")));
            bool first = seen++ == 0;
            keys.heads = first ? heads : agree(keys.heads, heads);
            keys.kv_heads = first ? kv_heads : agree(keys.kv_heads, kv_heads);
            keys.width = first ? width : agree(keys.width, width);
        }
    if (b->spec->pruned.count > 0 && b->spec->stack_count == 1)
        keys.pruned = b->spec->pruned.word[0];
    const char **of[] = {&keys.heads, &keys.kv_heads, &keys.width, &keys.pruned};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *copy = NULL;
        if (*of[i] != NULL)
            MHA_TRY(mha_arena_strdup(&copy, b->memory, *of[i], b->err));
        *of[i] = copy;
    }
    b->model->head_keys = keys;
    return MHA_OK;
}
