/* model.c: the scratch that models share. It may not know any kind of model. */
#include "text/model.h"

#include "base/fail.h"

void mha_model_scratch_release(mha_model_scratch *x)
{
    mha_free(x->tokens);
    mha_free(x->memory);
    *x = (mha_model_scratch){0};
}

mha_status mha_model_scratch_add(mha_model_scratch *x, int32_t id, size_t start, size_t end,
                                 mha_err *err)
{
    if (x->n == x->capacity) {
        size_t capacity = x->capacity ? x->capacity * 2 : 32;
        void *tokens = x->tokens;
        MHA_TRY(mha_grow(&tokens, x->n, capacity, sizeof *x->tokens, err));
        x->tokens = tokens;
        x->capacity = capacity;
    }
    x->tokens[x->n++] = (mha_token){id, (uint32_t)start, (uint32_t)end};
    return MHA_OK;
}

mha_status mha_model_scratch_memory(void **out, mha_model_scratch *x, size_t count, size_t size,
                                    mha_err *err)
{
    size_t bytes;
    if (mha_mul_overflows(count, size, &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: %zu x %zu bytes wanted", count, size);
    if (bytes > x->memory_size) {
        mha_free(x->memory);
        x->memory_size = 0;
        MHA_TRY(mha_alloc_raw(&x->memory, bytes, 1, err));
        x->memory_size = bytes;
    }
    *out = x->memory;
    return MHA_OK;
}

void mha_model_release(mha_model *m)
{
    if (m->kind)
        m->kind->free(m->state);
    *m = (mha_model){0};
}
