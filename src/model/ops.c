/* ops.c: the table of ops. A new argument of an op is one line here and one field of its step. */
#include "model/ops.h"
#include <string.h>

#define AT(field)   offsetof(mha_draft, field)
#define STEP(field) offsetof(mha_draft, step.field)
#define END_ARGS                                                                                   \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define END_WORDS                                                                                  \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

/* exact gelu is "gelu"; all the tanh forms are one function (their constants agree to float32) */
static const mha_op_word acts[] = {
    {"gelu", MHA_ACT_GELU},
    {"gelu_new", MHA_ACT_GELU_TANH},
    {"gelu_pytorch_tanh", MHA_ACT_GELU_TANH},
    {"gelu_fast", MHA_ACT_GELU_TANH},
    {"gelu_python_tanh", MHA_ACT_GELU_TANH},
    {"gelu_python", MHA_ACT_GELU},
    {"quick_gelu", MHA_ACT_QUICK_GELU},
    {"silu", MHA_ACT_SILU},
    {"swish", MHA_ACT_SILU},
    {"relu", MHA_ACT_RELU},
    {"tanh", MHA_ACT_TANH},
    {"elu", MHA_ACT_ELU},
    END_WORDS,
};
static const mha_op_word embeds[] = {
    {"token", MHA_EMBED_TOKEN},
    {"position", MHA_EMBED_POSITION},
    {"type", MHA_EMBED_TYPE},
    {"row", MHA_EMBED_ROW},
    END_WORDS,
};
static const mha_op_word pools[] = {
    {"first", MHA_POOL_FIRST},
    {"last", MHA_POOL_LAST},
    {"mean", MHA_POOL_MEAN},
    {"token", MHA_POOL_TOKEN},
    END_WORDS,
};
static const mha_op_word norms[] = {{"layer", MHA_NORM_LAYER}, {"rms", MHA_NORM_RMS}, END_WORDS};
static const mha_op_word keys[] = {{"self", MHA_KEYS_SELF}, {"memory", MHA_KEYS_MEMORY}, END_WORDS};
static const mha_op_word globals[] = {{"none", MHA_GLOBALS_NONE},
                                      {"first", MHA_GLOBALS_FIRST},
                                      {"question", MHA_GLOBALS_QUESTION},
                                      END_WORDS};
static const mha_op_word scores[] = {
    {"dot", MHA_SCORE_DOT}, {"additive", MHA_SCORE_ADDITIVE}, END_WORDS};
static const mha_op_word merges[] = {{"project", MHA_MERGE_PROJECT},
                                     {"concat", MHA_MERGE_CONCAT},
                                     {"mean", MHA_MERGE_MEAN},
                                     END_WORDS};
static const mha_op_word ropes[] = {
    {"none", MHA_ROPE_NONE}, {"half", MHA_ROPE_HALF}, {"pair", MHA_ROPE_PAIR}, END_WORDS};

static const mha_op_arg embed_args[] = {
    {"table", MHA_ARG_MATRIX, true, STEP(embed.table), 0, NULL},
    {"offset", MHA_ARG_COUNT, false, STEP(embed.offset), 0, NULL},
    {"scale", MHA_ARG_REAL, false, STEP(embed.scale), 0, NULL},
    {"dropout", MHA_ARG_REAL, false, STEP(embed.dropout), 0, NULL},
    {"mask", MHA_ARG_COUNT, false, STEP(embed.mask), 0, NULL},
    {"separator", MHA_ARG_COUNT, false, STEP(embed.separator), 0, NULL},
    END_ARGS,
};
static const mha_op_arg nodes_args[] = {
    {"width", MHA_ARG_COUNT, true, STEP(embed.width), 0, NULL},
    END_ARGS,
};
static const mha_op_arg patches_args[] = {
    {"w", MHA_ARG_LINEAR, true, STEP(conv.w), STEP(conv.b), NULL},
    {"channels", MHA_ARG_COUNT, true, STEP(conv.channels), 0, NULL},
    {"height", MHA_ARG_COUNT, true, STEP(conv.height), 0, NULL},
    {"width", MHA_ARG_COUNT, true, STEP(conv.width), 0, NULL},
    {"size", MHA_ARG_COUNT, true, STEP(conv.size), 0, NULL},
    {"skip", MHA_ARG_COUNT, false, STEP(conv.skip), 0, NULL},
    END_ARGS,
};
static const mha_op_arg frames_args[] = {
    {"w", MHA_ARG_LINEAR, true, STEP(conv.w), STEP(conv.b), NULL},
    {"channels", MHA_ARG_COUNT, true, STEP(conv.channels), 0, NULL},
    {"length", MHA_ARG_COUNT, true, STEP(conv.width), 0, NULL},
    {"size", MHA_ARG_COUNT, true, STEP(conv.size), 0, NULL},
    {"stride", MHA_ARG_COUNT, true, STEP(conv.stride), 0, NULL},
    {"pad", MHA_ARG_COUNT, true, STEP(conv.pad), 0, NULL},
    END_ARGS,
};
static const mha_op_arg conv_args[] = {
    {"w", MHA_ARG_LINEAR, true, STEP(conv.w), STEP(conv.b), NULL},
    {"size", MHA_ARG_COUNT, true, STEP(conv.size), 0, NULL},
    {"stride", MHA_ARG_COUNT, true, STEP(conv.stride), 0, NULL},
    {"pad", MHA_ARG_COUNT, true, STEP(conv.pad), 0, NULL},
    END_ARGS,
};
static const mha_op_arg linear_args[] = {
    {"w", MHA_ARG_LINEAR, true, STEP(linear.w), STEP(linear.b), NULL},
    END_ARGS,
};
static const mha_op_arg norm_args[] = {
    {"w", MHA_ARG_NORM, true, STEP(norm), 0, NULL},
    {"eps", MHA_ARG_REAL, true, STEP(norm.eps), 0, NULL},
    END_ARGS,
};
static const mha_op_arg attn_args[] = {
    {"q", MHA_ARG_LINEAR, true, STEP(attn.q), STEP(attn.qb), NULL},
    {"k", MHA_ARG_LINEAR, true, STEP(attn.k), STEP(attn.kb), NULL},
    {"v", MHA_ARG_LINEAR, true, STEP(attn.v), STEP(attn.vb), NULL},
    {"o", MHA_ARG_LINEAR, false, STEP(attn.o), STEP(attn.ob), NULL},
    {"output_gate", MHA_ARG_LINEAR, false, STEP(attn.output_gate), STEP(attn.output_gate_b), NULL},
    {"pair", MHA_ARG_FLOATS, false, STEP(attn.pair), AT(pair_count), NULL},
    {"heads", MHA_ARG_COUNT, true, STEP(attn.heads), 0, NULL},
    {"kv", MHA_ARG_COUNT, false, STEP(attn.kv_heads), 0, NULL},
    {"width", MHA_ARG_COUNT, true, STEP(attn.width), 0, NULL},
    {"scale", MHA_ARG_REAL, false, STEP(attn.scale), 0, NULL},
    {"keys", MHA_ARG_WORD, false, STEP(attn.keys), 0, keys},
    {"causal", MHA_ARG_FLAG, false, AT(causal), 0, NULL},
    {"window", MHA_ARG_COUNT, false, STEP(attn.window), 0, NULL},
    {"q_global", MHA_ARG_LINEAR, false, STEP(attn.q_global), STEP(attn.qb_global), NULL},
    {"k_global", MHA_ARG_LINEAR, false, STEP(attn.k_global), STEP(attn.kb_global), NULL},
    {"v_global", MHA_ARG_LINEAR, false, STEP(attn.v_global), STEP(attn.vb_global), NULL},
    {"globals", MHA_ARG_WORD, false, STEP(attn.globals), 0, globals},
    {"separator", MHA_ARG_COUNT, false, STEP(attn.separator), 0, NULL},
    {"block", MHA_ARG_COUNT, false, AT(block), 0, NULL},
    {"repeat", MHA_ARG_COUNT, false, STEP(attn.repeat), 0, NULL},
    {"q_norm", MHA_ARG_NORM, false, STEP(attn.q_norm), 0, NULL},
    {"k_norm", MHA_ARG_NORM, false, STEP(attn.k_norm), 0, NULL},
    {"norm", MHA_ARG_WORD, false, AT(qk_norm), 0, norms},
    {"eps", MHA_ARG_REAL, false, AT(qk_eps), 0, NULL},
    {"rope", MHA_ARG_WORD, false, STEP(attn.rope), 0, ropes},
    {"rope_width", MHA_ARG_COUNT, false, STEP(attn.rope_width), 0, NULL},
    {"theta", MHA_ARG_VALUE, false, AT(theta), 0, NULL},
    {"scaling", MHA_ARG_VALUE, false, AT(scaling), 0, NULL},
    {"frequencies", MHA_ARG_FLOATS, false, AT(frequencies), AT(frequency_count), NULL},
    {"divisors", MHA_ARG_FLOATS, false, AT(divisors), AT(divisor_count), NULL},
    {"long_divisors", MHA_ARG_FLOATS, false, AT(long_divisors), AT(long_divisor_count), NULL},
    {"positions", MHA_ARG_COUNT, false, AT(positions), 0, NULL},
    {"original", MHA_ARG_COUNT, false, AT(original), 0, NULL},
    {"softcap", MHA_ARG_REAL, false, STEP(attn.softcap), 0, NULL},
    {"buckets", MHA_ARG_FLOATS, false, STEP(attn.bias_table), AT(bucket_count), NULL},
    {"distance", MHA_ARG_COUNT, false, STEP(attn.bias_max_distance), 0, NULL},
    {"bidirectional", MHA_ARG_FLAG, false, STEP(attn.bias_bidirectional), 0, NULL},
    {"alibi", MHA_ARG_REAL, false, AT(alibi), 0, NULL},
    {"alibi_bf16", MHA_ARG_FLAG, false, STEP(attn.bias_bf16), 0, NULL},
    {"relative", MHA_ARG_MATRIX, false, STEP(attn.rel), 0, NULL},
    {"relative_norm", MHA_ARG_NORM, false, STEP(attn.rel_norm), 0, NULL},
    {"relative_k", MHA_ARG_LINEAR, false, STEP(attn.rel_k), STEP(attn.rel_kb), NULL},
    {"relative_q", MHA_ARG_LINEAR, false, STEP(attn.rel_q), STEP(attn.rel_qb), NULL},
    {"log_buckets", MHA_ARG_COUNT, false, STEP(attn.rel_buckets), 0, NULL},
    {"log_distance", MHA_ARG_COUNT, false, STEP(attn.rel_distance), 0, NULL},
    {"sinks", MHA_ARG_FLOATS, false, STEP(attn.sinks), AT(sink_count), NULL},
    {"score", MHA_ARG_WORD, false, STEP(attn.score), 0, scores},
    {"a", MHA_ARG_FLOATS, false, STEP(attn.a), AT(a_count), NULL},
    {"a_q", MHA_ARG_FLOATS, false, STEP(attn.a_q), AT(a_q_count), NULL},
    {"a_k", MHA_ARG_FLOATS, false, STEP(attn.a_k), AT(a_k_count), NULL},
    {"slope", MHA_ARG_REAL, false, STEP(attn.slope), 0, NULL},
    {"edges", MHA_ARG_FLAG, false, AT(edges), 0, NULL},
    {"self_loops", MHA_ARG_FLAG, false, STEP(attn.self_loops), 0, NULL},
    {"merge", MHA_ARG_WORD, false, AT(merge), 0, merges},
    {"bias", MHA_ARG_FLOATS, false, STEP(attn.ob), AT(out_bias_count), NULL},
    END_ARGS,
};
static const mha_op_arg mlp_args[] = {
    {"up", MHA_ARG_LINEAR, true, STEP(mlp.up), STEP(mlp.up_b), NULL},
    {"gate", MHA_ARG_LINEAR, false, STEP(mlp.gate), STEP(mlp.gate_b), NULL},
    {"down", MHA_ARG_LINEAR, true, STEP(mlp.down), STEP(mlp.down_b), NULL},
    {"act", MHA_ARG_WORD, true, STEP(mlp.act), 0, acts},
    END_ARGS,
};
static const mha_op_arg act_args[] = {
    {"f", MHA_ARG_WORD, true, STEP(act), 0, acts},
    END_ARGS,
};
static const mha_op_arg scale_args[] = {
    {"by", MHA_ARG_REAL, false, STEP(scale.by), 0, NULL},
    {"w", MHA_ARG_FLOATS, false, STEP(scale.w), AT(scale_count), NULL},
    END_ARGS,
};
static const mha_op_arg pool_args[] = {
    {"id", MHA_ARG_COUNT, false, STEP(pool.id), 0, NULL},
    {"skip", MHA_ARG_COUNT, false, STEP(pool.skip), 0, NULL},
    END_ARGS,
};
static const mha_op_arg no_args[] = {END_ARGS};
static const mha_op_arg logits_args[] = {
    {"w", MHA_ARG_LINEAR, false, STEP(logits.w), STEP(logits.b), NULL},
    {"b", MHA_ARG_FLOATS, false, STEP(logits.b), AT(bias_count), NULL},
    {"softcap", MHA_ARG_REAL, false, STEP(logits.softcap), 0, NULL},
    {"separator", MHA_ARG_COUNT, false, STEP(logits.separator), 0, NULL},
    END_ARGS,
};

static const mha_op_def ops[] = {
    {"embed", MHA_OP_EMBED, true, false, STEP(embed.kind), embeds, embed_args},
    {"nodes", MHA_OP_EMBED, true, false, 0, NULL, nodes_args},
    {"patches", MHA_OP_CONV, true, false, 0, NULL, patches_args},
    {"frames", MHA_OP_CONV, true, false, 0, NULL, frames_args},
    {"conv", MHA_OP_CONV, true, true, 0, NULL, conv_args},
    {"linear", MHA_OP_LINEAR, true, true, 0, NULL, linear_args},
    {"norm", MHA_OP_NORM, true, true, 0, NULL, norm_args},
    {"rms", MHA_OP_NORM, true, true, 0, NULL, norm_args},
    {"attn", MHA_OP_ATTN, true, true, 0, NULL, attn_args},
    {"mlp", MHA_OP_MLP, true, true, 0, NULL, mlp_args},
    {"act", MHA_OP_ACT, true, true, 0, NULL, act_args},
    {"scale", MHA_OP_SCALE, true, true, 0, NULL, scale_args},
    {"add", MHA_OP_ADD, true, true, 0, NULL, no_args},
    {"pool", MHA_OP_POOL, true, true, STEP(pool.kind), pools, pool_args},
    {"logits", MHA_OP_LOGITS, false, true, 0, NULL, logits_args},
};

const mha_op_def *mha_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

const mha_op_arg *mha_op_arg_find(const mha_op_def *op, const char *name)
{
    for (const mha_op_arg *a = op->args; a->name != NULL; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

int mha_op_word_value(const mha_op_word *words, const char *name)
{
    for (; words->name != NULL; words++)
        if (strcmp(words->name, name) == 0)
            return words->value;
    return -1;
}

const char *mha_op_word_name(const mha_op_word *words, int value)
{
    for (; words->name != NULL; words++)
        if (words->value == value)
            return words->name;
    return "?";
}

const char *mha_register_name(mha_register r)
{
    static const char *const names[MHA_REGISTER_COUNT] = {"X", "B", "C", "E"};
    return names[r];
}
