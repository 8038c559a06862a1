/* pair.c: the bias of pairs of tokens. Nothing T×S is made: the document's own numbers are read row
 * by row, once a head. */
#include "engine/pair.h"

const float *mha_pair_of(const mha_forward *f, size_t document, size_t i, size_t n)
{
    return f->docs[document].pair + i * n * f->m->info.pair_width;
}

void mha_pair_add(const mha_kernels *k, const mha_attn_args *a, uint32_t head, const float *z,
                  size_t n, float *s)
{
    size_t C = a->pair_width;
    for (size_t j = 0; j < n; j++)
        s[j] += k->dot[MHA_F32](z + j * C, a->pair + head * C, C);
}

void mha_pair_back(const mha_attn_args *a, const float *z, size_t n, const float *ds, double *dw)
{
    size_t C = a->pair_width;
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < C; c++)
            dw[c] += (double)ds[j] * (double)z[j * C + c];
}
