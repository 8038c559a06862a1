/* tensor.c: the growing list of tensor views. It may not look at the tensors' bytes. */
#include "io/tensor.h"

#include "base/fail.h"

mha_status mha_tensor_list_reserve(mha_tensor_list *l, size_t more, mha_err *err)
{
    size_t need = 0;
    if (mha_add_overflows(l->count, more, &need))
        return mha_fail(err, MHA_ERR_NOMEM, "%zu more tensors: too many", more);
    if (need <= l->capacity)
        return MHA_OK;
    MHA_TRY(mha_grow((void **)&l->items, l->capacity, need, sizeof *l->items, err));
    l->capacity = need;
    return MHA_OK;
}

void mha_tensor_list_release(mha_tensor_list *l)
{
    mha_free(l->items);
    mha_arena_release(&l->names);
    *l = (mha_tensor_list){0};
}

bool mha_shape_count(const uint64_t *shape, uint32_t rank, uint64_t *count)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(product, shape[i], &product))
            return false;
    }
    *count = product;
    return true;
}
