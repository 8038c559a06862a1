/* torchfile_fuzz: the reader of torch.save's files on any bytes. Every byte of every tensor is
 * read.
 */
#include "io/torchfile.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_tensor_list list = {0};
    mha_err err = {0};
    unsigned sum = 0;
    if (mha_torchfile_parse(&list, data, size, "fuzz", 0, 1000, &err) == MHA_OK)
        for (size_t i = 0; i < list.count; i++)
            for (uint64_t b = 0; b < list.items[i].bytes; b++)
                sum += list.items[i].data[b];
    mha_tensor_list_release(&list);
    return sum == 1 ? -1 : 0; /* the sum must not be optimised away */
}
