/* pair.h: scores that documents themselves bring along: C numbers about every pair of tokens, of
 * which each head makes one by a weight vector of its own. */
#ifndef MHA_ENGINE_PAIR_H
#define MHA_ENGINE_PAIR_H

#include "engine/engine.h"

/* The numbers about token i of a document of n tokens and each of its tokens: [n, C]. */
const float *mha_pair_of(const mha_forward *f, size_t document, size_t i, size_t n);
/* s_j += Σ_c w_hc·z_jc over n keys. */
void mha_pair_add(const mha_kernels *k, const mha_attn_args *a, uint32_t head, const float *z,
                  size_t n, float *s);
/* dw_hc += Σ_j ds_j·z_jc */
void mha_pair_back(const mha_attn_args *a, const float *z, size_t n, const float *ds, double *dw);

#endif
