/* arena.c: the arena of mem.h, a chain of blocks that are only freed together. It may not move what
 * it handed out. */
#include "base/fail.h"
#include "base/mem.h"

#include <string.h>

#define ARENA_ALIGNMENT 16
#define ARENA_BLOCK     ((size_t)32 << 10)

struct mha_arena_block {
    struct mha_arena_block *next;
    size_t capacity;
    _Alignas(ARENA_ALIGNMENT) unsigned char data[];
};

static mha_status block_new(struct mha_arena_block **out, size_t capacity, mha_err *err)
{
    void *p = NULL;
    size_t bytes;
    if (mha_add_overflows(capacity, sizeof(struct mha_arena_block), &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu bytes wanted", capacity);
    MHA_TRY(mha_alloc(&p, bytes, 1, err));
    *out = p;
    (*out)->capacity = capacity;
    return MHA_OK;
}

mha_status mha_arena_alloc(void **out, mha_arena *a, size_t count, size_t size, mha_err *err)
{
    size_t bytes, rounded;
    struct mha_arena_block *block = NULL;
    *out = NULL;
    if (count == 0 || size == 0)
        return MHA_OK;
    if (mha_mul_overflows(count, size, &bytes) ||
        mha_add_overflows(bytes, ARENA_ALIGNMENT - 1, &rounded))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu x %zu bytes wanted", count, size);
    rounded &= ~(size_t)(ARENA_ALIGNMENT - 1);

    if (a->head && rounded <= a->head->capacity - a->used) {
        *out = a->head->data + a->used;
        a->used += rounded;
        return MHA_OK;
    }
    bool large = rounded > ARENA_BLOCK / 4;
    MHA_TRY(block_new(&block, large ? rounded : ARENA_BLOCK, err));
    *out = block->data;
    if (large && a->head) {
        /* A block of its own goes behind the head, whose free end stays in use. */
        block->next = a->head->next;
        a->head->next = block;
        return MHA_OK;
    }
    block->next = a->head;
    a->head = block;
    a->used = rounded;
    return MHA_OK;
}

mha_status mha_arena_strndup(char **out, mha_arena *a, const char *s, size_t n, mha_err *err)
{
    void *copy = NULL;
    size_t bytes;
    *out = NULL;
    if (mha_add_overflows(n, 1, &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu bytes wanted", n);
    MHA_TRY(mha_arena_alloc(&copy, a, bytes, 1, err));
    if (n > 0)
        memcpy(copy, s, n);
    *out = copy; /* the arena's memory is zeroed, so the NUL is there */
    return MHA_OK;
}

mha_status mha_arena_strdup(char **out, mha_arena *a, const char *s, mha_err *err)
{
    return mha_arena_strndup(out, a, s, strlen(s), err);
}

void mha_arena_release(mha_arena *a)
{
    struct mha_arena_block *block = a->head;
    while (block) {
        struct mha_arena_block *next = block->next;
        mha_free(block);
        block = next;
    }
    *a = (mha_arena){0};
}
