/* family_fuzz: any text as a family description, bound to a small checkpoint: it fits, or the
 * message says what does not. */
#include "io/json.h"
#include "tiny_checkpoint.h"

static const char config_text[] =
    "{\"model_type\": \"any\", \"architectures\": [\"TinyForCausalLM\"], \"hidden_size\": 4, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
    "\"intermediate_size\": 6, \"vocab_size\": 8, \"max_position_embeddings\": 8, "
    "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2, \"rope_theta\": 100}, "
    "\"layer_types\": [\"full_attention\"], \"hidden_act\": \"gelu\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *config = NULL;
    char *text = NULL;
    if (mha_strndup(&text, (const char *)data, size, NULL) != MHA_OK ||
        mha_json_parse(&config, config_text, sizeof config_text - 1, "config.json", NULL) != MHA_OK)
        abort();
    const mha_model_options options = {
        .allow_unused = true, .family = text, .family_name = "fuzz.family"};
    tiny_bind(config, &options);
    mha_free(text);
    return 0;
}
