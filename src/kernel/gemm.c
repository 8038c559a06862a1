/* gemm.c: the one place that calls BLAS. Any CBLAS will do; those whose thread count can be set
 * are told to use one thread. */
#include "kernel/gemm.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>

/* Weak, so that the library links against BLAS implementations that lack them. */
extern void openblas_set_num_threads(int count) __attribute__((weak));
extern void bli_thread_set_num_threads(long count) __attribute__((weak));

void mha_gemm_init(void)
{
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(1);
    if (bli_thread_set_num_threads != NULL)
        bli_thread_set_num_threads(1);
}

void mha_gemm(bool a_transposed, bool b_transposed, size_t m, size_t n, size_t k, float alpha,
              const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
              size_t ldc)
{
    /* CBLAS counts in int. Tiles are far below that; a larger product is a mistake in the caller.
     */
    assert(m <= INT_MAX && n <= INT_MAX && k <= INT_MAX);
    assert(lda <= INT_MAX && ldb <= INT_MAX && ldc <= INT_MAX);
    if (m == 0 || n == 0)
        return;
    cblas_sgemm(CblasRowMajor, a_transposed ? CblasTrans : CblasNoTrans,
                b_transposed ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a,
                (int)lda, b, (int)ldb, beta, c, (int)ldc);
}
