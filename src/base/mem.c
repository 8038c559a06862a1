/* mem.c: the only calls of the system's allocator. Everything is aligned to 64 bytes, a cache line
 * and the widest vector, and every product of sizes is checked. It may not abort: memory that is
 * out is an error like any other. */
#include "base/mem.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

mha_status mha_alloc_raw(void **out, size_t count, size_t size, mha_err *err)
{
    size_t bytes;
    *out = NULL;
    if (count == 0 || size == 0)
        return MHA_OK;
    if (mha_mul_overflows(count, size, &bytes) || bytes > PTRDIFF_MAX)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu x %zu bytes wanted", count, size);
    if (posix_memalign(out, ALIGNMENT, bytes) != 0) {
        *out = NULL;
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu bytes wanted", bytes);
    }
    return MHA_OK;
}

mha_status mha_alloc(void **out, size_t count, size_t size, mha_err *err)
{
    MHA_TRY(mha_alloc_raw(out, count, size, err));
    if (*out)
        memset(*out, 0, count * size);
    return MHA_OK;
}

/* realloc keeps only malloc's own alignment, so growing is always a new block and a copy. */
mha_status mha_grow(void **p, size_t old_count, size_t new_count, size_t size, mha_err *err)
{
    void *grown;
    size_t kept = old_count < new_count ? old_count : new_count;
    MHA_TRY(mha_alloc_raw(&grown, new_count, size, err));
    if (*p && grown)
        memcpy(grown, *p, kept * size);
    if (grown && new_count > kept)
        memset((char *)grown + kept * size, 0, (new_count - kept) * size);
    free(*p);
    *p = grown;
    return MHA_OK;
}

void mha_free(void *p)
{
    free(p);
}

mha_status mha_strndup(char **out, const char *s, size_t n, mha_err *err)
{
    void *copy = NULL;
    size_t bytes;
    *out = NULL;
    if (mha_add_overflows(n, 1, &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu bytes wanted", n);
    MHA_TRY(mha_alloc_raw(&copy, bytes, 1, err));
    if (n > 0)
        memcpy(copy, s, n);
    *out = copy;
    (*out)[n] = '\0';
    return MHA_OK;
}

mha_status mha_strdup(char **out, const char *s, mha_err *err)
{
    return mha_strndup(out, s, strlen(s), err);
}
