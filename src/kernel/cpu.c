/* cpu.c: which instruction sets may be used here.
 *
 * Two questions: does the processor have the instructions (cpuid), and does the operating system
 * save the wide registers at a task switch (xgetbv)? A kernel booted without AVX state, or a
 * virtual machine, may say yes to the first and no to the second. */
#include "kernel/tables.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* Bits of XCR0: SSE and AVX state; for AVX-512 also mask registers and both parts of zmm state. */
enum { XCR0_AVX = 0x06, XCR0_AVX512 = 0xe6 };

static uint32_t xcr0_get(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

mha_cpu mha_cpu_get(void)
{
    mha_cpu cpu = {0};
    uint32_t a, b, c, d, leaf7;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C))
        return cpu;
    if (!__get_cpuid_count(7, 0, &a, &leaf7, &c, &d))
        return cpu;
    const uint32_t state = xcr0_get();
    cpu.avx2 = has(leaf7, bit_AVX2) && has(state, XCR0_AVX);
    cpu.avx512 = cpu.avx2 && has(leaf7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL) &&
                 has(state, XCR0_AVX512);
    return cpu;
}

#else

mha_cpu mha_cpu_get(void)
{
    return (mha_cpu){0};
}

#endif
