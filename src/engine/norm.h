/* norm.h: the gradient of one normalised row, for NORM steps and for the norms of single heads. */
#ifndef MHA_ENGINE_NORM_H
#define MHA_ENGINE_NORM_H

#include "model/program.h"

/* dx = J(x)ᵀ·dy for a row of n; dx may be dy. */
void mha_norm_row_back(const mha_norm_args *a, float *dx, const float *dy, const float *x,
                       size_t n);

#endif
