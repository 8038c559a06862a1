/* npy_fuzz: the NumPy reader on any bytes, and every element in every form. */
#include "base/mem.h"
#include "io/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_npy a;
    void *out = NULL;
    if (mha_npy_parse(&a, data, size, "fuzz", NULL) != MHA_OK)
        return 0;
    if (a.count > size || mha_alloc(&out, (size_t)a.count, 8, NULL) != MHA_OK)
        abort();
    mha_npy_f32(out, &a);
    mha_npy_f64(out, &a);
    if (mha_npy_i64(out, &a, "fuzz", NULL) == MHA_OK && mha_npy_is_float(&a))
        abort();
    mha_free(out);
    return 0;
}
