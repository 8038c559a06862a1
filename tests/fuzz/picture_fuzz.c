/* picture_fuzz: the PNG and JPEG readers on any bytes; what they read is resized both ways. */
#include "io/picture.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_picture p, small;
    if (mha_picture_parse(&p, data, size, "fuzz", 1 << 16, NULL) != MHA_OK)
        return 0;
    if (p.width == 0 || p.height == 0 || p.rgb == NULL)
        abort();
    for (int how = MHA_RESAMPLE_NEAREST; how <= MHA_RESAMPLE_BICUBIC; how++) {
        if (mha_picture_resize(&small, &p, 9, 31, (mha_resample)how, NULL) != MHA_OK)
            abort();
        mha_picture_release(&small);
    }
    mha_picture_release(&p);
    return 0;
}
