/* kernels.c: choosing a table. Tables are constants; nothing is cached, so there is no state that
 * threads could share: callers ask once and keep the pointer. */
#include "kernel/kernel.h"

#include "base/fail.h"
#include "kernel/tables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES_MAX = 4 };

size_t mha_kernels_list(const mha_kernels **out, size_t cap)
{
    const mha_kernels *found[TABLES_MAX];
    size_t count = 0;

    found[count++] = &mha_kernels_ref;
#if defined(__x86_64__)
    const mha_cpu cpu = mha_cpu_get();
    if (cpu.avx2)
        found[count++] = &mha_kernels_avx2;
    if (cpu.avx512)
        found[count++] = &mha_kernels_avx512;
#endif
    for (size_t i = 0; i < count && i < cap; i++)
        out[i] = found[i];
    return count;
}

mha_status mha_kernels_get(const mha_kernels **out, const char *isa, mha_err *err)
{
    const mha_kernels *tables[TABLES_MAX];
    const size_t count = mha_kernels_list(tables, TABLES_MAX);
    const char *origin = "";

    if (isa == NULL) {
        isa = getenv("MHA_ISA");
        origin = "MHA_ISA: ";
    }
    if (isa == NULL) {
        *out = tables[count - 1]; /* listed from the plainest to the best */
        return MHA_OK;
    }
    char names[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tables[i]->isa, isa) == 0) {
            *out = tables[i];
            return MHA_OK;
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 tables[i]->isa);
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%sinstruction set '%s' is not available here (%s)",
                    origin, isa, names);
}
