/* avx2.c: the kernels on 256-bit vectors. Compiled with -mavx2 -mfma -mf16c, so nothing here may
 * run before mha_cpu_get said that the processor has them: only the table is visible outside. */
#include "kernel/vec_avx2.h"

#define MHA_VEC_TABLE mha_kernels_avx2
#define MHA_VEC_ISA   "avx2"
#include "kernel/vec_table.h"
