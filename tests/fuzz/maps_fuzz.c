/* maps_fuzz: any bytes as maps that another program dumped, alone or in an archive: every row that
 * is taken is attention. */
#include "model/maps.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const mha_maps *m)
{
    for (size_t a = 0; a < m->model.info.attn_count; a++) {
        const mha_map_step *s = &m->steps[a];
        for (size_t row = 0; row < s->attn.heads * s->queries; row++) {
            double sum = 0;
            for (size_t j = 0; j < s->keys; j++)
                sum += (double)s->weights[row * s->keys + j];
            if (!(fabs(sum - 1) <= 0.0101))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"fuzz.npy", "fuzz.npz"};
    for (int i = 0; i < 2; i++) {
        mha_maps *m;
        if (mha_maps_parse(&m, data, size, paths[i], 1 << 20, NULL) == MHA_OK)
            check(m);
        mha_maps_close(m);
    }
    return 0;
}
