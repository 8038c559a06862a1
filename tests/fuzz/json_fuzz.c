/* json_fuzz: the JSON reader on any bytes. What it accepts, jansson must be able to write. */
#include "io/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    mha_err err = {0};
    if (mha_json_parse(&root, (const char *)data, size, "fuzz", &err) != MHA_OK)
        return 0;
    char *text = json_dumps(root, JSON_COMPACT);
    if (!text)
        abort();
    free(text);
    json_decref(root);
    return 0;
}
