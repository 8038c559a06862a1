/* config_fuzz: any bytes as config.json of a small checkpoint: opening it succeeds or says why. */
#include "io/json.h"
#include "tiny_checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* tensors of the other model are left over: that is no reason to stop early */
    const mha_model_options options = {.allow_unused = true};
    json_t *config = NULL;
    if (mha_json_parse(&config, (const char *)data, size, "config.json", NULL) != MHA_OK)
        return 0;
    if (json_is_object(config))
        tiny_bind(config, &options);
    else
        json_decref(config);
    return 0;
}
