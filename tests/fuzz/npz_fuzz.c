/* npz_fuzz: the archive reader on any bytes, and every array of the archive. */
#include "io/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_npz *z = NULL;
    mha_npy a;
    float first = 0;
    if (mha_npz_parse(&z, data, size, "fuzz", 1 << 20, NULL) != MHA_OK)
        return 0;
    for (size_t i = 0; i < mha_npz_count(z); i++) {
        size_t at = 0;
        if (!mha_npz_find(z, mha_npz_name(z, i), &at) || at != i)
            abort();
        if (mha_npz_get(z, i, &a, NULL) == MHA_OK && a.count == 1)
            mha_npy_f32(&first, &a);
    }
    mha_npz_close(z);
    return 0;
}
