/* safetensors_fuzz: the safetensors reader on any bytes. Every byte of every tensor is read. */
#include "io/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_tensor_list list = {0};
    mha_err err = {0};
    unsigned sum = 0;
    size_t total = 0;
    if (mha_safetensors_parse(&list, data, size, "fuzz", 0, 1 << 20, 1000, &err) == MHA_OK) {
        for (size_t i = 0; i < list.count; i++) {
            for (uint64_t b = 0; b < list.items[i].bytes; b++)
                sum += list.items[i].data[b];
            total += list.items[i].bytes;
        }
        /* Together they cover the file behind the header, each byte once. */
        if (total > size || sum > 255 * total)
            abort();
    }
    mha_tensor_list_release(&list);
    return 0;
}
