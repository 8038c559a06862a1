/* mem.h: the only allocator of the library. All size arithmetic is checked here. */
#ifndef MHA_BASE_MEM_H
#define MHA_BASE_MEM_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* true when a*b (a+b) does not fit in size_t; otherwise *out holds the result. */
static inline bool mha_mul_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}
static inline bool mha_add_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

/* *out = count·size zeroed bytes aligned to 64 (NULL when count or size is 0).
 * T *p; MHA_TRY(mha_alloc((void **)&p, n, sizeof *p, err)); MHA_ERR_NOMEM on failure. */
mha_status mha_alloc(void **out, size_t count, size_t size, mha_err *err);

/* The same without zeroing, for large numeric scratch that is written before it is read. */
mha_status mha_alloc_raw(void **out, size_t count, size_t size, mha_err *err);

/* Grows *p from old_count to new_count elements, keeping the old ones and zeroing the new. */
mha_status mha_grow(void **p, size_t old_count, size_t new_count, size_t size, mha_err *err);

/* Frees what mha_alloc, mha_alloc_raw, mha_grow or mha_strdup gave. NULL is fine. */
void mha_free(void *p);

/* *out = a copy of the string, owned by the caller. */
mha_status mha_strdup(char **out, const char *s, mha_err *err);
mha_status mha_strndup(char **out, const char *s, size_t n, mha_err *err);

/* An arena: many small things that live and die together (names, parsed descriptions).
 * Zero-initialise, allocate, release once. Memory is zeroed and aligned to 16. */
typedef struct mha_arena {
    struct mha_arena_block *head;
    size_t used;
} mha_arena;

mha_status mha_arena_alloc(void **out, mha_arena *a, size_t count, size_t size, mha_err *err);
mha_status mha_arena_strdup(char **out, mha_arena *a, const char *s, mha_err *err);
mha_status mha_arena_strndup(char **out, mha_arena *a, const char *s, size_t n, mha_err *err);
void mha_arena_release(mha_arena *a);

#endif
