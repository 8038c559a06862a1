/* save_config.c: the config of a model without some of its heads: what this library reads
 * (bind_heads.c), what Transformers reads, and which of its versions that is. */
#include "base/fail.h"
#include "model/binder.h"
#include "model/save.h"
#include <stdio.h>
#include <string.h>

/* ---- who opens it -----------------------------------------------------------------------------
 */

/* Heads that the weights lose: masked ones stay in them. */
static uint32_t sliced(const mha_save *s, size_t attn)
{
    return s->p->mode == MHA_PRUNE_SLICE ? mha_save_removed(s, attn) : 0;
}

/* Heads and key/value heads that every attention step has afterwards; false when they differ. */
static bool counts_after(const mha_save *s, uint32_t *heads, uint32_t *kv_heads)
{
    const mha_model_info *info = &s->m->info;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        uint32_t left = step->heads - sliced(s, a);
        uint32_t kv = step->heads > 0 ? left / (step->heads / step->kv_heads) : 0;
        if (a > 0 && (left != *heads || kv != *kv_heads))
            return false;
        *heads = left;
        *kv_heads = kv;
    }
    return true;
}

static bool has_position_bias(const struct mha_model *m)
{
    for (size_t a = 0; a < m->info.attn_count; a++)
        if (mha_model_attention(m, a)->bias != MHA_BIAS_NONE)
            return true;
    return false;
}

/* Lists of rotary factors, whose length Transformers checks against hidden_size over heads. */
static bool has_rotary_lists(const struct mha_model *m)
{
    for (size_t a = 0; a < m->info.attn_count; a++)
        if (mha_model_attention(m, a)->rope_long != NULL)
            return true;
    return false;
}

/* Equal counts and a width that the config gives: then the counts are just other ones. */
static bool is_plain(const mha_save *s)
{
    const mha_head_keys *keys = &s->m->head_keys;
    uint32_t heads = 0, kv_heads = 0;
    return keys->heads != NULL && keys->kv_heads != NULL && keys->width != NULL &&
           !has_position_bias(s->m) && !has_rotary_lists(s->m) &&
           counts_after(s, &heads, &kv_heads) && heads > 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* A tensor that only GGUF files have: this library reads it in any file, Transformers does not. */
static bool has_foreign_tensor(const struct mha_model *m)
{
    for (size_t i = 0; m->checkpoint->gguf != NULL && i < m->part_count; i++)
        if (ends_with(m->part[i].name, m->part[i].tensor->name))
            return true;
    return false;
}

static bool some_step_is_empty(const mha_save *s)
{
    for (size_t a = 0; a < s->m->info.attn_count; a++)
        if (s->m->info.attn[a].heads == sliced(s, a))
            return true;
    return false;
}

/* Masks of a model whose weights have all heads that it ever had: everybody's own format. */
static bool only_masks(const mha_save *s)
{
    if (s->p->mode != MHA_PRUNE_MASK)
        return false;
    for (size_t a = 0; a < s->m->info.attn_count; a++)
        if (s->m->info.attn[a].heads < s->m->info.attn[a].original_heads)
            return false;
    return true;
}

/* Rotary settings that Transformers 4 does not find: it would take its defaults, without a word. */
static bool has_new_rope(const struct mha_model *m)
{
    const json_t *config = m->checkpoint->config;
    return m->checkpoint->gguf == NULL &&
           json_is_object(json_object_get(config, "rope_parameters")) &&
           json_object_get(config, "rope_theta") == NULL;
}

static void find_opens(mha_save *s)
{
    uint32_t heads = 0, kv_heads = 0;
    mha_pruned *out = s->out;
    out->opens = 0;
    out->why = NULL;
    if (has_foreign_tensor(s->m)) {
        out->why = "the rotary scaling of the GGUF file is a tensor, and in no config";
        return;
    }
    if (only_masks(s) || is_plain(s)) {
        out->opens = MHA_OPENS_TRANSFORMERS_4 | MHA_OPENS_TRANSFORMERS_5;
        return;
    }
    out->why = some_step_is_empty(s)                 ? "a layer has no head left"
               : !counts_after(s, &heads, &kv_heads) ? "the layers have different numbers of heads"
               : has_rotary_lists(s->m)
                   ? "it checks the lists of rotary factors by the number of heads"
               : has_position_bias(s->m) ? "the position bias is that of all heads"
                                         : "the config of this family has no width of a head";
    if (s->m->head_keys.pruned != NULL && !some_step_is_empty(s)) {
        out->opens = MHA_OPENS_TRANSFORMERS_4;
        out->why = "lists of removed heads are not read there";
    }
}

void mha_save_opens(mha_save *s)
{
    find_opens(s);
    if ((s->out->opens & MHA_OPENS_TRANSFORMERS_4) == 0 || !has_new_rope(s->m))
        return;
    s->out->opens &= ~(unsigned)MHA_OPENS_TRANSFORMERS_4;
    s->out->why = "its rotary settings are in the form of Transformers 5";
}

/* ---- the config -------------------------------------------------------------------------------
 */

/* Numbers of the heads of a step: those that stay, or those that are gone from all that there ever
 * were. */
static json_t *list_heads(const mha_save *s, size_t attn, bool kept)
{
    const mha_attn_info *step = &s->m->info.attn[attn];
    json_t *list = json_array();
    uint32_t i = 0;
    for (uint32_t h = 0; list != NULL && h < step->original_heads; h++) {
        while (i < step->heads && step->head_ids[i] < h)
            i++;
        bool stays = i < step->heads && step->head_ids[i] == h && !mha_save_removes(s, attn, i);
        if (stays == kept && json_array_append_new(list, json_integer(h)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static bool is_whole(const mha_save *s, size_t attn)
{
    const mha_attn_info *step = &s->m->info.attn[attn];
    return step->heads == step->original_heads && mha_save_removed(s, attn) == 0;
}

/* {"enc.self.3": [0, 2], …}, or {"3": [1], …} of removed heads. */
static json_t *list_steps(const mha_save *s, bool kept)
{
    json_t *steps = json_object();
    for (size_t a = 0; a < s->m->info.attn_count; a++) {
        const mha_attn_info *step = &s->m->info.attn[a];
        char name[48];
        if (is_whole(s, a))
            continue;
        if (kept)
            snprintf(name, sizeof name, "%s.%s.%u", mha_stack_name(step->stack),
                     mha_kind_name(step->kind), step->layer);
        else
            snprintf(name, sizeof name, "%u", step->layer);
        if (json_object_set_new(steps, name, list_heads(s, a, kept)) != 0) {
            json_decref(steps);
            return NULL;
        }
    }
    return steps;
}

/* The value of a key in the config of the whole model; borrowed, NULL: none. */
static json_t *value_before(const mha_save *s, json_t *config, const char *key)
{
    json_t *pruning = json_object_get(s->m->checkpoint->config, MHA_PRUNING_KEY);
    json_t *before = json_object_get(json_object_get(pruning, "original"), key);
    return before != NULL ? before : json_object_get(config, key);
}

/* Moves a key's value to `original` and gives it another one. */
static int set_count(const mha_save *s, json_t *config, json_t *original, const char *key,
                     uint32_t value)
{
    json_t *before = value_before(s, config, key);
    int failed =
        json_object_set_new(original, key, before != NULL ? json_incref(before) : json_null());
    return failed | json_object_set_new(config, key, json_integer(value));
}

/* Puts back what an earlier pruning set. */
static int restore_counts(const mha_save *s, json_t *config)
{
    json_t *pruning = json_object_get(s->m->checkpoint->config, MHA_PRUNING_KEY);
    json_t *original = json_object_get(pruning, "original"), *value;
    const char *key;
    int failed = 0;
    json_object_foreach(original, key, value)
    {
        if (json_is_null(value))
            json_object_del(config, key);
        else
            failed |= json_object_set(config, key, value);
    }
    return failed;
}

static int set_pruning(const mha_save *s, json_t *config)
{
    const mha_head_keys *keys = &s->m->head_keys;
    json_t *pruning = json_object(), *original = json_object();
    uint32_t heads = 0, kv_heads = 0;
    int failed = pruning == NULL || original == NULL;
    failed |= restore_counts(s, config);
    failed |= json_object_set_new(pruning, "kept_heads", list_steps(s, true));
    if (is_plain(s)) {
        counts_after(s, &heads, &kv_heads);
        uint32_t width = s->m->info.attn[0].width;
        failed |= set_count(s, config, original, keys->heads, heads);
        if (strcmp(keys->kv_heads, keys->heads) != 0)
            failed |= set_count(s, config, original, keys->kv_heads, kv_heads);
        failed |= set_count(s, config, original, keys->width, width);
        failed |= json_object_set(pruning, "original", original);
    }
    json_decref(original);
    if (keys->pruned != NULL)
        failed |= json_object_set_new(config, keys->pruned, list_steps(s, false));
    return failed | json_object_set_new(config, MHA_PRUNING_KEY, pruning);
}

/* The type of most of the weights, as Transformers calls it. */
static int set_dtype(const mha_save *s, json_t *config)
{
    static const struct {
        mha_dtype type;
        const char *name;
    } names[] = {{MHA_F32, "float32"}, {MHA_F16, "float16"}, {MHA_BF16, "bfloat16"}};
    uint64_t bytes[MHA_DTYPE_COUNT] = {0};
    const char *name = names[0].name;
    uint64_t most = 0;
    for (size_t i = 0; i < s->tensors; i++)
        bytes[s->tensor[i].as.type] += s->tensor[i].as.bytes;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes[names[i].type] > most) {
            most = bytes[names[i].type];
            name = names[i].name;
        }
    return json_object_set_new(config, "torch_dtype", json_string(name));
}

mha_status mha_save_config(mha_save *s, mha_err *err)
{
    bool gguf = s->m->checkpoint->gguf != NULL;
    json_t *config = json_deep_copy(gguf ? s->m->hugging_face : s->m->checkpoint->config);
    int failed = config == NULL || (gguf && set_dtype(s, config) != 0);
    if (!failed && s->p->mode == MHA_PRUNE_SLICE)
        failed = set_pruning(s, config);
    mha_status status = failed ? mha_fail(err, MHA_ERR_NOMEM, "out of memory")
                               : mha_save_json(s, "config.json", config, err);
    json_decref(config);
    return status;
}
