/* model: checkpoints that are whole as files and wrong as models. Each row changes one thing of a
 * small model and says what opening it must answer. */
#include "support/test.h"

#include "support/modeldir.h"
#include "support/tempdir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------------- config.json */

static const struct config_case {
    const char *model, *key, *value; /* value NULL: without the key */
    mha_status status;
    const char *says;
} config_cases[] = {
    /* which model it is */
    {"bert-mlm", "model_type", "\"mamba\"", MHA_ERR_UNSUPPORTED, "\"mamba\" is not supported"},
    {"bert-mlm", "model_type", "\"mamba\"", MHA_ERR_UNSUPPORTED, "known: albert, bart, bert"},
    {"bert-mlm", "model_type", NULL, MHA_ERR_FORMAT, "no model_type"},
    {"bert-mlm", "model_type", "7", MHA_ERR_FORMAT, "no model_type"},
    {"bert-mlm", "model_type", "\"gpt2\"", MHA_ERR_FORMAT, "transformer.wte.weight"},
    /* sizes that are missing, of another kind, absurd, or not those of the tensors */
    {"bert-mlm", "hidden_size", NULL, MHA_ERR_FORMAT, "the key hidden_size is missing"},
    {"bert-mlm", "hidden_size", "null", MHA_ERR_FORMAT, "the key hidden_size is missing"},
    {"bert-mlm", "hidden_size", "\"21\"", MHA_ERR_FORMAT, "a string where a number is needed"},
    {"bert-mlm", "hidden_size", "[21]", MHA_ERR_FORMAT, "a list or object where a number"},
    {"bert-mlm", "hidden_size", "24", MHA_ERR_FORMAT, "expected [V=61, D=24], found [61, 21]"},
    {"bert-mlm", "hidden_size", "-21", MHA_ERR_FORMAT, "hidden_size = -21"},
    {"bert-mlm", "hidden_size", "0", MHA_ERR_FORMAT, "dim 1 of tok, D, is 0"},
    {"bert-mlm", "hidden_size", "20.5", MHA_ERR_UNSUPPORTED, "D % H == 0 (hidden_size = 20.5"},
    {"bert-mlm", "hidden_size", "3e300", MHA_ERR_FORMAT, "not a whole number"},
    {"bert-mlm", "vocab_size", "62", MHA_ERR_FORMAT, "word_embeddings.weight: expected [V=62"},
    {"bert-mlm", "vocab_size", "9007199254740993", MHA_ERR_FORMAT, "not a whole number"},
    {"bert-mlm", "intermediate_size", "32", MHA_ERR_FORMAT, "[F=32, D=21], found [31, 21]"},
    {"bert-mlm", "num_hidden_layers", "0", MHA_ERR_FORMAT, "a model without layers"},
    {"bert-mlm", "num_hidden_layers", "3", MHA_ERR_FORMAT,
     "bert.encoder.layer.2.attention.self.query.weight [H*K=21, D=21] is missing"},
    {"bert-mlm", "num_hidden_layers", "1", MHA_ERR_UNSUPPORTED,
     "tensor bert.encoder.layer.1.attention.output.LayerNorm.bias (and 15 more) has no place"},
    {"bert-mlm", "num_hidden_layers", "100000", MHA_ERR_LIMIT, "at most 16384"},
    {"bert-mlm", "num_hidden_layers", "2147483647", MHA_ERR_LIMIT, "at most"},
    {"bert-mlm", "num_attention_heads", "4", MHA_ERR_UNSUPPORTED,
     "(hidden_size = 21, num_attention_heads = 4)"},
    {"bert-mlm", "num_attention_heads", "0", MHA_ERR_UNSUPPORTED, "num_attention_heads = 0"},
    {"bert-mlm", "max_position_embeddings", "38", MHA_ERR_FORMAT, "[P=38, D=21]"},
    {"bert-mlm", "type_vocab_size", "1", MHA_ERR_FORMAT, "[Y=1, D=21], found [2, 21]"},
    {"bert-mlm", "hidden_act", "\"gleu\"", MHA_ERR_UNSUPPORTED, "(hidden_act = gleu); known: gelu"},
    {"bert-mlm", "hidden_act", "3", MHA_ERR_UNSUPPORTED, "not a string"},
    {"bert-mlm", "layer_norm_eps", "-1e-12", MHA_ERR_FORMAT, "negative"},
    {"bert-mlm", "layer_norm_eps", "1e300", MHA_ERR_FORMAT, "layer_norm_eps = 1e+300"},
    {"bert-mlm", "layer_norm_eps", "\"small\"", MHA_ERR_FORMAT, "a string where a number"},
    /* keys that change the mathematics and are not read */
    {"bert-mlm", "position_embedding_type", "\"relative_key\"", MHA_ERR_UNSUPPORTED,
     "position_embedding_type = \"relative_key\" changes the model"},
    {"bert-mlm", "position_embedding_type", "\"absolute\"", MHA_OK, NULL},
    {"bert-mlm", "is_decoder", "true", MHA_ERR_UNSUPPORTED, "is_decoder = true"},
    {"bert-mlm", "add_cross_attention", "true", MHA_ERR_UNSUPPORTED, "add_cross_attention"},
    {"bert-mlm", "quantization_config", "{\"bits\": 4}", MHA_ERR_UNSUPPORTED,
     "quantization_config = {\"bits\":4}"},
    {"bert-mlm", "quantization_config", "null", MHA_OK, NULL},
    /* pruned models */
    {"bert-mlm", "pruned_heads", "null", MHA_OK, NULL},
    {"bert-mlm", "pruned_heads", "[1]", MHA_ERR_FORMAT, "pruned_heads is not an object"},
    {"bert-mlm", "pruned_heads", "{\"1\": [0]}", MHA_ERR_FORMAT,
     "encoder.layer.1.attention.self.query.weight: expected [H*K=14, D=21], found [21, 21]"},
    {"bert-mlm", "pruned_heads", "{\"7\": [0]}", MHA_ERR_FORMAT, "no attention \"7\""},
    {"bert-mlm", "pruned_heads", "{\"1\": [9]}", MHA_ERR_FORMAT,
     "heads of enc.self.1: number 0 is no head of 3"},
    {"bert-mlm", "pruned_heads", "{\"1\": 0}", MHA_ERR_FORMAT, "enc.self.1: not a list"},
    {"llama-gqa", "pruned_heads", "{\"1\": [0]}", MHA_ERR_UNSUPPORTED, "pruned_heads"},
    {"bert-mlm", "mha_pruning", "3", MHA_ERR_FORMAT, "needs an object kept_heads"},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {}}", MHA_OK, NULL},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {\"enc.self.0\": [0, 1, 2]}}", MHA_OK, NULL},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {}, \"original\": 3}", MHA_ERR_FORMAT,
     "needs an object"},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {\"enc.self.1\": [0, 0]}}", MHA_ERR_FORMAT,
     "number 1 is a second time the same head"},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {\"enc.self.1\": [-1]}}", MHA_ERR_FORMAT,
     "number 0 is no head of 3"},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {\"dec.cross.1\": [0]}}", MHA_ERR_FORMAT,
     "no attention \"dec.cross.1\""},
    {"bert-mlm", "mha_pruning", "{\"kept_heads\": {\"enc.self.1\": []}}", MHA_ERR_FORMAT,
     "expected [H*K=0, D=21], found [21, 21]"},
    {"bert-mlm", "mha_pruning",
     "{\"kept_heads\": {}, \"original\": {\"num_attention_heads\": \"many\"}}", MHA_ERR_FORMAT,
     "many"},
    {"llama-gqa", "mha_pruning", "{\"kept_heads\": {\"dec.self.0\": [0, 3, 4, 5]}}", MHA_ERR_FORMAT,
     "a part of the heads that share keys and values"},
    {"llama-gqa", "mha_pruning",
     "{\"kept_heads\": {\"dec.self.0\": [0]}, \"original\": {\"num_key_value_heads\": 0}}",
     MHA_ERR_UNSUPPORTED, "H % G"},
    {"bert-mlm", "embedding_size", "128", MHA_ERR_UNSUPPORTED, "embedding_size = 128"},
    {"bert-mlm", "rope_parameters", "{\"rope_type\": \"linear\", \"factor\": 2}",
     MHA_ERR_UNSUPPORTED, "rope_parameters"},
    {"deberta-mlm", "conv_kernel_size", "3", MHA_ERR_FORMAT,
     "encoder.conv.conv.weight [D=21, D=21, filter=3] is missing"},
    {"deberta-conv", "conv_kernel_size", "5", MHA_ERR_FORMAT, "expected [D=14, D=14, filter=5]"},
    {"deberta-conv", "conv_kernel_size", "0", MHA_ERR_UNSUPPORTED, "has no place"},
    {"deberta-conv", "conv_groups", "2", MHA_ERR_UNSUPPORTED, "conv_groups = 2"},
    {"deberta-conv", "conv_act", "\"gleu\"", MHA_ERR_UNSUPPORTED, "conv_act = gleu"},
    {"bert-mlm", "conv_kernel_size", "3", MHA_ERR_UNSUPPORTED, "conv_kernel_size = 3 changes"},
    {"deberta-mlm", "conv_kernel_size", "0", MHA_OK, NULL},
    {"deberta-mlm", "pos_att_type", "\"P2C | c2p\"", MHA_OK, NULL},
    {"deberta-mlm", "pos_att_type", "[\"c2p\", \"p2p\"]", MHA_ERR_UNSUPPORTED, "p2p"},
    {"deberta-mlm", "pos_att_type", "null", MHA_ERR_UNSUPPORTED, "pos_att_type = null"},
    {"deberta-mlm", "position_buckets", "7", MHA_ERR_FORMAT,
     "encoder.rel_embeddings.weight: expected [2*span=14, D=21], found [12, 21]"},
    {"deberta-mlm", "position_buckets", "-1", MHA_ERR_FORMAT, "[2*span=58, D=21]"},
    {"deberta-mlm", "position_buckets", "2.25", MHA_ERR_FORMAT, "not a whole number"},
    {"deberta-mlm", "max_relative_positions", "4", MHA_ERR_FORMAT,
     "6 buckets a side up to distance 4"},
    {"deberta-mlm", "max_relative_positions", "1e300", MHA_ERR_FORMAT, "not a whole number"},
    {"deberta-mlm", "share_att_key", "false", MHA_ERR_FORMAT,
     "attention.self.pos_key_proj.weight [H*K=21, D=21] is missing"},
    {"deberta-class", "share_att_key", "true", MHA_ERR_UNSUPPORTED, "share_att_key = 1"},
    {"deberta-mlm", "relative_attention", "false", MHA_ERR_UNSUPPORTED,
     "encoder.rel_embeddings.weight has no place"},
    {"deberta-mlm", "position_biased_input", "true", MHA_ERR_FORMAT,
     "position_embeddings.weight [P=29, E=21] is missing"},
    {"deberta-mlm", "norm_rel_ebd", "\"none\"", MHA_ERR_UNSUPPORTED, "encoder.LayerNorm"},
    {"deberta-mlm", "attention_head_size", "5", MHA_ERR_UNSUPPORTED, "attention_head_size = 5"},
    {"deberta-class", "pooler_hidden_act", "\"gleu\"", MHA_ERR_UNSUPPORTED, "gleu"},
    {"deberta-class", "pooler_hidden_size", "20", MHA_ERR_UNSUPPORTED, "pooler_hidden_size = 20"},
    {"gpt2-lm", "alibi", "true", MHA_ERR_UNSUPPORTED, "alibi"},
    {"gpt2-lm", "attn_logit_softcapping", "50.0", MHA_ERR_UNSUPPORTED, "attn_logit_softcapping"},
    {"llama-gqa", "sliding_window", "16", MHA_ERR_UNSUPPORTED, "sliding_window = 16"},
    {"llama-gqa", "layer_types", "[\"full_attention\", \"full_attention\"]", MHA_OK, NULL},
    {"llama-gqa", "layer_types", "[\"full_attention\", \"linear_attention\"]", MHA_ERR_UNSUPPORTED,
     "layer_types"},
    {"llama-gqa", "partial_rotary_factor", "0.5", MHA_ERR_UNSUPPORTED, "partial_rotary_factor"},
    {"llama-gqa", "query_pre_attn_scalar", "256", MHA_ERR_UNSUPPORTED, "query_pre_attn_scalar"},
    {"llama-gqa", "final_logit_softcapping", "30", MHA_ERR_UNSUPPORTED, "final_logit_softcapping"},
    {"llama-gqa", "num_local_experts", "8", MHA_ERR_UNSUPPORTED, "num_local_experts"},
    {"llama-gqa", "attention_multiplier", "0.5", MHA_ERR_UNSUPPORTED, "attention_multiplier"},
    {"gemma3", "use_bidirectional_attention", "true", MHA_ERR_UNSUPPORTED, "bidirectional"},
    {"distilbert-mlm", "sinusoidal_pos_embds", "true", MHA_OK, NULL},
    {"bert-mlm", "model_type", "\"gpt_oss\"", MHA_ERR_UNSUPPORTED, "\"gpt_oss\" is not supported"},
    {"qwen2", "layer_types", "[\"full_attention\", \"linear_attention\"]", MHA_ERR_UNSUPPORTED,
     "linear_attention"},
    {"gemma2", "layer_types", "[\"sliding_attention\", \"mamba\", \"full_attention\"]",
     MHA_ERR_UNSUPPORTED, "mamba"},
    {"smollm3", "layer_types", "[\"chunked_attention\", \"full_attention\", \"full_attention\"]",
     MHA_ERR_UNSUPPORTED, "chunked_attention"},
    {"gpt-neo", "attention_layers", "[\"global\", \"strided\", \"local\"]", MHA_ERR_UNSUPPORTED,
     "strided"},
    {"gpt-neo-old", "attention_types", "[[[\"global\", \"strided\"], 1]]", MHA_ERR_UNSUPPORTED,
     "attention_types = "},
    {"falcon", "num_ln_in_parallel_attn", "2", MHA_ERR_UNSUPPORTED, "num_ln_in_parallel_attn = 2"},
    {"falcon-groups", "parallel_attn", "false", MHA_ERR_UNSUPPORTED, "parallel_attn = 0"},
    {"falcon-groups", "num_kv_heads", "3", MHA_ERR_UNSUPPORTED, "H % G == 0"},
    {"llama-gqa", "is_causal", "false", MHA_ERR_UNSUPPORTED, "is_causal = false"},
    {"llama-gqa", "is_causal", "true", MHA_OK, NULL},
    {"bert-mlm", "is_causal", "false", MHA_OK, NULL},
    {"llama-gqa", "no_rope_layers", "[1, 0]", MHA_ERR_UNSUPPORTED, "no_rope_layers = [1,0]"},
    {"gptj", "scale_attn_weights", "false", MHA_ERR_UNSUPPORTED, "scale_attn_weights = false"},
    {"opt", "layer_norm_elementwise_affine", "false", MHA_ERR_UNSUPPORTED, "elementwise_affine"},
    {"phi", "qk_layernorm", "true", MHA_ERR_FORMAT, "q_layernorm.weight [K=10] is missing"},
    {"bigcode", "add_cross_attention", "true", MHA_ERR_UNSUPPORTED, "add_cross_attention"},
    /* a key that is null may mean another model than one that is absent */
    {"gemma2", "attn_logit_softcapping", "null", MHA_OK, NULL},
    {"gemma2", "attn_logit_softcapping", NULL, MHA_OK, NULL},
    {"smollm3", "num_key_value_heads", "null", MHA_ERR_FORMAT, "k_proj.weight: expected [G*K=30"},
    {"smollm3", "num_key_value_heads", NULL, MHA_ERR_UNSUPPORTED, "H % G == 0"},
    /* heads and rotary positions */
    {"gptj", "rotary_dim", "7", MHA_ERR_FORMAT, "7 dims of a head of 10 cannot turn"},
    {"neox", "rope_parameters", "{\"rope_theta\": 300, \"partial_rotary_factor\": 1.5}",
     MHA_ERR_FORMAT, "18 dims of a head of 12 cannot turn"},
    {"phi3-long", "rope_parameters",
     "{\"rope_type\": \"longrope\", \"rope_theta\": 300, \"partial_rotary_factor\": 0.8, "
     "\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1, 1]}",
     MHA_ERR_FORMAT, "long_factor is not a list of 4 numbers"},
    {"llama-gqa", "num_key_value_heads", "4", MHA_ERR_UNSUPPORTED,
     "H % G == 0 (num_attention_heads = 6, num_key_value_heads = 4)"},
    {"llama-gqa", "num_key_value_heads", "0", MHA_ERR_UNSUPPORTED, "num_key_value_heads = 0"},
    {"llama-gqa", "num_key_value_heads", "3", MHA_ERR_FORMAT, "k_proj.weight: expected [G*K=30"},
    {"llama-gqa", "num_key_value_heads", NULL, MHA_ERR_FORMAT, "k_proj.weight: expected [G*K=60"},
    {"llama-gqa", "head_dim", "null", MHA_ERR_FORMAT, "expected [H*K=24, D=24], found [60, 24]"},
    {"llama-gqa", "head_dim", "1e9", MHA_ERR_FORMAT, "not a whole number"},
    {"llama-gqa", "rope_parameters", "{\"rope_theta\": 1000, \"rope_type\": \"dynamic\"}",
     MHA_ERR_UNSUPPORTED, "\"dynamic\" is not supported"},
    {"llama-gqa", "rope_parameters", "{\"rope_theta\": 0.5}", MHA_ERR_FORMAT, "theta = 0.5"},
    {"llama-gqa", "rope_parameters", "{\"rope_theta\": \"x\"}", MHA_ERR_FORMAT, "theta=NUMBER"},
    {"llama-gqa", "rope_parameters", "3", MHA_ERR_FORMAT, "scaling is not an object"},
    {"llama-gqa", "rope_parameters", "{\"full_attention\": {\"rope_type\": \"linear\"}}",
     MHA_ERR_UNSUPPORTED, "rope_parameters.full_attention"},
    {"llama-gqa", "attention_bias", "true", MHA_ERR_FORMAT, "q_proj.bias [H*K=60] is missing"},
    {"llama-gqa", "mlp_bias", "true", MHA_ERR_FORMAT, "gate_proj.bias [F=37] is missing"},
    {"mistral", "sliding_window", "-1", MHA_ERR_FORMAT, "sliding_window = -1"},
    {"mistral", "sliding_window", "null", MHA_OK, NULL},
    {"gemma3", "layer_types", "[\"sliding_attention\"]", MHA_ERR_FORMAT, "index 1 in a list of 1"},
    {"gemma3", "query_pre_attn_scalar", "0", MHA_ERR_FORMAT, "inf"},
    /* tied and untied read-outs */
    {"llama-rope3", "tie_word_embeddings", "false", MHA_ERR_FORMAT, "lm_head.weight"},
    {"llama-rope3", "tie_word_embeddings", NULL, MHA_OK, NULL},
    {"gpt2-lm", "tie_word_embeddings", "false", MHA_ERR_FORMAT, "lm_head.weight"},
    {"bloom", "tie_word_embeddings", "false", MHA_ERR_FORMAT, "lm_head.weight"},
    {"bloom", "architectures", "[\"BloomModel\"]", MHA_OK, NULL},
    {"gptj", "architectures", "[\"GPTJModel\"]", MHA_ERR_UNSUPPORTED,
     "tensor lm_head.bias (and 1 more) has no place in family gptj, read as GPTJModel"},
    {"opt-post", "architectures", "[\"OPTModel\"]", MHA_OK, NULL},
    {"llama-rope3", "architectures", "[\"LlamaModel\"]", MHA_OK, NULL},
    {"llama-gqa", "architectures", "[\"LlamaModel\"]", MHA_ERR_UNSUPPORTED,
     "tensor lm_head.weight has no place in family llama, read as LlamaModel"},
    /* positions and relative positions */
    {"roberta-mlm", "pad_token_id", "40", MHA_ERR_FORMAT, "offset 41 in a table of 29 rows"},
    {"t5", "relative_attention_num_buckets", "9", MHA_ERR_FORMAT, "[buckets=9, H=4]"},
    {"t5", "relative_attention_max_distance", "2", MHA_ERR_FORMAT, "no table of buckets"},
    {"t5", "relative_attention_max_distance", "4294967296", MHA_ERR_FORMAT, "not a whole number"},
    {"t5", "feed_forward_proj", "\"gated-gelu\"", MHA_ERR_FORMAT, "wi_0.weight"},
    {"t5-gated", "feed_forward_proj", "\"relu\"", MHA_ERR_UNSUPPORTED, "wi_0.weight"},
    {"t5", "d_kv", "7", MHA_ERR_FORMAT, "[H*K=28, D=21], found [24, 21]"},
    /* heads of other kinds */
    {"bert-class", "architectures", "[\"BertForMultipleChoice\"]", MHA_ERR_UNSUPPORTED,
     "tensor classifier.bias (and 1 more) has no place in family bert, read as BertForMulti"},
    {"bert-class", "id2label", "{\"0\": \"a\"}", MHA_ERR_FORMAT, "[C=1, D=21], found [3, 21]"},
    {"bert-class", "id2label", "[1, 2, 3]", MHA_OK, NULL},
    {"bert-class", "architectures", "3", MHA_ERR_UNSUPPORTED, "classifier.bias"},
    {"bert-base", "architectures", "[\"BertForSequenceClassification\"]", MHA_ERR_FORMAT,
     "classifier.weight"},
};

static void check(const char *what, mha_status status, const mha_err *err, mha_status expected,
                  const char *says)
{
    if (status != expected || (says != NULL && strstr(err->message, says) == NULL))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", what, mha_status_name(status), err->message,
                 mha_status_name(expected), says == NULL ? "" : says);
    if (strchr(err->message, '\n') != NULL)
        fail_msg("%s: more than one line", what);
}

static void test_config(void **state)
{
    for (size_t i = 0; i < sizeof config_cases / sizeof *config_cases; i++) {
        const struct config_case *c = &config_cases[i];
        modeldir d;
        mha_model *m = NULL;
        mha_err err = {0};
        char what[200];
        modeldir_load(&d, c->model);
        modeldir_set(&d, c->key, c->value);
        mha_status status = modeldir_open(&d, state, &m, NULL, &err);
        snprintf(what, sizeof what, "%s, %s = %.80s", c->model, c->key, c->value);
        check(what, status, &err, c->status, c->says);
        assert_true((m != NULL) == (status == MHA_OK));
        mha_model_close(m);
        modeldir_release(&d);
    }
}

/* ------------------------------------------------------------------------------- tensors */

enum { RENAME, ADD, SHAPE, DTYPE, VALUE };

static const struct tensor_case {
    const char *model;
    int what;
    const char *tensor, *value;
    mha_status status;
    const char *says;
} tensor_cases[] = {
    {"bert-mlm", ADD, "bert.encoder.layer.0.adapter.weight", NULL, MHA_ERR_UNSUPPORTED,
     "tensor bert.encoder.layer.0.adapter.weight has no place in family bert"},
    {"bert-mlm", ADD, "bert.embeddings.position_ids", NULL, MHA_OK, NULL},
    {"bert-mlm", ADD, "cls.seq_relationship.weight", NULL, MHA_OK, NULL},
    {"bert-mlm", ADD, "embeddings.word_embeddings.weight", NULL, MHA_ERR_UNSUPPORTED,
     "tensor embeddings.word_embeddings.weight has no place"},
    {"bert-mlm", RENAME, "cls.predictions.bias", "cls.predictions.decoder.bias", MHA_OK, NULL},
    {"bert-mlm", RENAME, "cls.predictions.bias", "cls.predictions.biases", MHA_ERR_FORMAT,
     "cls.predictions.bias [V=61] is missing"},
    {"bert-mlm", RENAME, "bert.encoder.layer.1.output.LayerNorm.weight",
     "bert.encoder.layer.1.output.LayerNorm.gamma", MHA_OK, NULL},
    {"bert-mlm", RENAME, "bert.encoder.layer.1.output.dense.bias", "x", MHA_ERR_FORMAT,
     "bert.encoder.layer.1.output.dense.bias [D=21] is missing"},
    {"bert-mlm", SHAPE, "bert.encoder.layer.1.intermediate.dense.weight", "[21, 31]",
     MHA_ERR_FORMAT, "expected [F=31, D=21], found [21, 31] (stored transposed?)"},
    {"bert-mlm", SHAPE, "bert.encoder.layer.0.output.dense.bias", "[1, 21]", MHA_ERR_FORMAT,
     "expected [D=21], found [1, 21]"},
    {"bert-mlm", SHAPE, "bert.embeddings.LayerNorm.weight", "[1, 1, 1, 21, 1, 1, 1, 1]",
     MHA_ERR_FORMAT, "found [1, 1, 1, 21, 1, 1, 1, 1]"},
    {"bert-mlm", DTYPE, "bert.embeddings.word_embeddings.weight", "\"I32\"", MHA_ERR_UNSUPPORTED,
     "word_embeddings.weight is I32 where weights are expected"},
    {"bert-mlm", DTYPE, "bert.embeddings.LayerNorm.weight", "\"U32\"", MHA_ERR_UNSUPPORTED,
     "LayerNorm.weight is U32; expected F32"},
    {"bert-mlm", VALUE, "bert.encoder.layer.1.output.LayerNorm.bias", "nan", MHA_ERR_NUMERIC,
     "bert.encoder.layer.1.output.LayerNorm.bias: element 2 is NaN"},
    {"bert-mlm", VALUE, "bert.encoder.layer.0.attention.self.key.bias", "inf", MHA_ERR_NUMERIC,
     "key.bias: element 2 is infinite"},
    {"gpt2-lm", VALUE, "transformer.h.1.attn.c_attn.bias", "inf", MHA_ERR_NUMERIC, "c_attn.bias"},
    {"gpt2-lm", ADD, "transformer.h.2.attn.masked_bias", NULL, MHA_OK, NULL},
    {"gpt2-lm", SHAPE, "transformer.h.0.attn.c_attn.weight", "[60, 20]", MHA_ERR_FORMAT,
     "expected [D=20, 3*H*K=60], found [60, 20]"},
    /* a layer must be whole */
    {"llama-gqa", RENAME, "model.layers.1.self_attn.o_proj.weight", "model.layers.2.x.weight",
     MHA_ERR_FORMAT, "model.layers.1.self_attn.o_proj.weight [D=24, H*K=60] is missing"},
    /* copies must be copies */
    {"bert-tf", VALUE, "cls.predictions.decoder.bias", "1", MHA_ERR_FORMAT,
     "cls.predictions.bias and cls.predictions.decoder.bias should be copies"},
    {"t5", ADD, "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", NULL,
     MHA_OK, NULL},
    {"t5", ADD, "encoder.embed_tokens.weight", NULL, MHA_ERR_FORMAT, "should be copies"},
};

static void change(modeldir *d, const struct tensor_case *c)
{
    size_t n = 0;
    float value = 0;
    switch (c->what) {
    case RENAME:
        modeldir_rename(d, c->tensor, c->value);
        break;
    case ADD:
        modeldir_add(d, c->tensor);
        break;
    case VALUE:
        value = strcmp(c->value, "nan") == 0 ? NAN : strcmp(c->value, "inf") == 0 ? INFINITY : 1;
        memcpy(modeldir_bytes(d, c->tensor, &n) + 2 * sizeof value, &value, sizeof value);
        break;
    default:
        modeldir_describe(d, c->tensor, c->what == SHAPE ? "shape" : "dtype", c->value);
    }
}

static void test_tensors(void **state)
{
    for (size_t i = 0; i < sizeof tensor_cases / sizeof *tensor_cases; i++) {
        const struct tensor_case *c = &tensor_cases[i];
        modeldir d;
        mha_model *m = NULL;
        mha_err err = {0};
        modeldir_load(&d, c->model);
        change(&d, c);
        mha_status status = modeldir_open(&d, state, &m, NULL, &err);
        check(c->tensor, status, &err, c->status, c->says);
        mha_model_close(m);
        modeldir_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_config, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_tensors, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
