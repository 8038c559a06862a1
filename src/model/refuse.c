/* refuse.c: the table of config keys that change the mathematics, with the values that do not.
 * A family that reads a key takes the responsibility for it; a family that does not is refused
 * when the key says something. Keys of training, dropout, generation and caching are harmless and
 * are not here. */
#include "model/refuse.h"
#include "base/fail.h"
#include <math.h>
#include <string.h>

/* Absent, null, "" and empty lists are always neutral, false and 0 but for the keys of
 * false_says_something; beside them one number or one string (for a list: all its elements). */
static const struct unread {
    const char *key;
    double number;
    const char *string;
} table[] = {
    /* storage */
    {"quantization_config", 0, NULL},
    {"compression_config", 0, NULL},
    {"pruned_heads", 0, NULL},
    /* shape of the network */
    {"is_decoder", 0, NULL},
    {"add_cross_attention", 0, NULL},
    {"embedding_size", 0, NULL},
    {"word_embed_proj_dim", 0, NULL},
    {"num_hidden_groups", 1, NULL},
    {"inner_group_num", 1, NULL},
    {"conv_kernel_size", 0, NULL},
    {"num_experts", 1, NULL},
    {"num_local_experts", 1, NULL},
    {"n_routed_experts", 0, NULL},
    {"num_kv_shared_layers", 0, NULL},
    {"attention_bias", 0, NULL},
    {"mlp_bias", 0, NULL},
    {"use_bias", 1, NULL},
    {"qkv_bias", 1, NULL},
    {"enable_bias", 1, NULL},
    /* order of the block and its norms */
    {"parallel_attn", 0, NULL},
    {"use_parallel_residual", 0, NULL},
    {"new_decoder_architecture", 0, NULL},
    {"apply_residual_connection_post_layernorm", 0, NULL},
    {"do_layer_norm_before", 1, NULL},
    {"emb_layer_norm_before", 0, NULL},
    {"normalize_before", 0, NULL},
    {"pre_norm", 0, NULL},
    {"layer_norm_elementwise_affine", 1, NULL},
    {"_remove_final_layer_norm", 0, NULL},
    {"qk_layernorm", 0, NULL},
    {"use_qk_norm", 0, NULL},
    /* positions */
    {"position_embedding_type", 0, "absolute"},
    {"sinusoidal_pos_embds", 0, NULL},
    {"relative_attention", 0, NULL},
    {"position_biased_input", 1, NULL},
    {"alibi", 0, NULL},
    {"rope_scaling", 0, NULL},
    {"rope_parameters", 0, NULL},
    {"rope_parameters.full_attention", 0, NULL},
    {"rope_parameters.sliding_attention", 0, NULL},
    {"partial_rotary_factor", 1, NULL},
    {"rotary_pct", 1, NULL},
    {"rotary_dim", 0, NULL},
    {"no_rope_layers", 1, NULL},
    {"rope_interleaved", 0, NULL},
    {"rope_local_base_freq", 0, NULL},
    {"token_dropout", 0, NULL},
    /* which keys a query sees */
    {"layer_types", 0, "full_attention"},
    {"attention_type", 0, "original_full"},
    {"attention_types", 0, NULL},
    {"attention_layers", 0, NULL},
    {"attention_window", 0, NULL},
    {"attention_chunk_size", 0, NULL},
    {"sliding_window", 0, NULL},
    {"use_sliding_window", 0, NULL},
    {"sliding_window_pattern", 0, NULL},
    {"use_bidirectional_attention", 0, NULL},
    {"is_causal", 1, NULL},
    {"multi_query", 0, NULL},
    /* factors and caps */
    {"scale_embedding", 0, NULL},
    {"rescale_embeddings", 0, NULL},
    {"scale_attn_weights", 1, NULL},
    {"scale_attn_by_inverse_layer_idx", 0, NULL},
    {"query_pre_attn_scalar", 0, NULL},
    {"attention_multiplier", 1, NULL},
    {"embedding_multiplier", 1, NULL},
    {"residual_multiplier", 1, NULL},
    {"logits_scaling", 1, NULL},
    {"logit_scale", 1, NULL},
    {"attn_logit_softcapping", 0, NULL},
    {"final_logit_softcapping", 0, NULL},
    {"clip_qkv", 0, NULL},
};

/* What models do unless the key is false. Keys of biases are not among them: a bias that is there
 * or missing shows in the tensors. */
static const char *const false_says_something[] = {
    "do_layer_norm_before",  "layer_norm_elementwise_affine",
    "position_biased_input", "no_rope_layers",
    "scale_attn_weights",    "is_causal",
};

static bool says_false(const char *key)
{
    for (size_t i = 0; i < sizeof false_says_something / sizeof *false_says_something; i++)
        if (strcmp(false_says_something[i], key) == 0)
            return true;
    return false;
}

/* The same for GGUF metadata, with the architecture's prefix cut off. */
static const struct unread gguf_table[] = {
    {"expert_count", 1, NULL},
    {"use_parallel_residual", 0, NULL},
    {"attention.sliding_window", 0, NULL},
    {"attention.scale", 1, NULL},
    {"attention.max_alibi_bias", 0, NULL},
    {"attention.clamp_kqv", 0, NULL},
    {"attention.key_length_mla", 0, NULL},
    {"attention.relative_buckets_count", 0, NULL},
    {"attn_logit_softcapping", 0, NULL},
    {"final_logit_softcapping", 0, NULL},
    {"logit_scale", 1, NULL},
    {"embedding_scale", 1, NULL},
    {"residual_scale", 1, NULL},
    {"rope.scaling.type", 0, "none"},
    {"rope.scaling.factor", 1, NULL},
    {"rope.scale_linear", 1, NULL},
    {"rope.dimension_sections", 0, NULL},
    {"rope.freq_base", 0, NULL},
    {"rope.freq_base_swa", 0, NULL},
};

static bool key_matches(const char *read, const char *key)
{
    size_t n = strlen(read);
    if (n >= 2 && strcmp(read + n - 2, ".*") == 0)
        return strncmp(read, key, n - 1) == 0;
    return strcmp(read, key) == 0;
}

static bool is_read(const mha_binder *b, const char *key)
{
    for (size_t i = 0; i < b->spec->pruned.count; i++)
        if (strcmp(b->spec->pruned.word[i], key) == 0)
            return true;
    for (size_t i = 0; i < b->spec->var_count; i++) {
        const mha_spec_words *keys = b->gguf ? &b->spec->vars[i].gguf : &b->spec->vars[i].keys;
        for (size_t k = 0; k < keys->count; k++)
            if (key_matches(keys->word[k], key))
                return true;
    }
    return false;
}

static bool is_neutral(const json_t *j, const struct unread *u)
{
    mha_value v = mha_value_of_json(j);
    if (!mha_value_truth(&v) && !(v.kind == MHA_VALUE_NUMBER && says_false(u->key)))
        return true;
    if (v.kind == MHA_VALUE_NUMBER)
        return v.number == u->number;
    if (v.kind == MHA_VALUE_STRING)
        return u->string != NULL && strcmp(v.string, u->string) == 0;
    if (!json_is_array(j))
        return false;
    for (size_t i = 0; i < json_array_size(j); i++)
        if (!is_neutral(json_array_get(j, i), u))
            return false;
    return true;
}

/* Rotary settings of a model without rotary positions are only refused when they scale. */
static bool is_default_rope(const json_t *j)
{
    const char *const keys[] = {"rope_type", "type"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *type = json_object_get(j, keys[i]);
        if (json_is_string(type))
            return strcmp(json_string_value(type), "default") == 0;
    }
    return json_is_object(j) && json_object_get(j, "factor") == NULL;
}

mha_status mha_refuse_unread(const mha_binder *b)
{
    const struct unread *u = b->gguf ? gguf_table : table;
    size_t n = b->gguf ? sizeof gguf_table / sizeof *u : sizeof table / sizeof *u;
    for (; n > 0; n--, u++) {
        const json_t *j = mha_binder_config(b, u->key);
        if (j == NULL || is_neutral(j, u) || is_read(b, u->key))
            continue;
        if (strncmp(u->key, "rope_", 5) == 0 && is_default_rope(j))
            continue;
        if (strcmp(u->key, "is_causal") == 0 && b->spec->stacks[0].id == MHA_ENC)
            continue; /* encoders are not */
        char value[128] = {0};
        size_t size = json_dumpb(j, value, sizeof value - 1, JSON_ENCODE_ANY | JSON_COMPACT);
        value[size < sizeof value ? size : sizeof value - 1] = '\0';
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: %s = %.100s changes the model and is not supported for family %s",
                        b->config_file, u->key, value, b->spec->name);
    }
    return MHA_OK;
}
