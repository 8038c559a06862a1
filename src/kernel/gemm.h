/* gemm.h: matrix products through CBLAS, one call one thread.
 *
 * BLAS is kept single-threaded: the engine's own pool runs tiles whose shapes do not depend on the
 * number of threads, which is what makes results independent of it. */
#ifndef MHA_KERNEL_GEMM_H
#define MHA_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* Turns BLAS's own threads off, once per process. Called by whoever makes an engine. */
void mha_gemm_init(void);

/* C[m,n] ← alpha·A·B + beta·C, all row-major with row strides lda, ldb, ldc.
 * A is [m,k]; B is [k,n], or with b_transposed [n,k] (a weight as nn.Linear stores it). With
 * a_transposed A is stored [k,m]. */
void mha_gemm(bool a_transposed, bool b_transposed, size_t m, size_t n, size_t k, float alpha,
              const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
              size_t ldc);

#endif
