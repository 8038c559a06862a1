/* tables.h: what kernels.c chooses from. Private to this directory. */
#ifndef MHA_KERNEL_TABLES_H
#define MHA_KERNEL_TABLES_H

#include "kernel/kernel.h"
#include <stdbool.h>

extern const mha_kernels mha_kernels_ref;

#if defined(__x86_64__)
extern const mha_kernels mha_kernels_avx2;
extern const mha_kernels mha_kernels_avx512;
#endif

/* What the processor has and the operating system saves at a task switch. */
typedef struct mha_cpu {
    bool avx2;   /* AVX2, FMA and F16C */
    bool avx512; /* those, and AVX-512 F, BW, DQ and VL */
} mha_cpu;

mha_cpu mha_cpu_get(void);

#endif
