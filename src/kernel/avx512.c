/* avx512.c: the kernels on 512-bit vectors. Compiled with -mavx512f and its companions, so nothing
 * here may run before mha_cpu_get said that the processor has them: only the table is visible
 * outside. */
#include "kernel/vec_avx512.h"

#define MHA_VEC_TABLE mha_kernels_avx512
#define MHA_VEC_ISA   "avx512"
#include "kernel/vec_table.h"
