/* tensor.h: a stored tensor as a view into a mapped file, and a growing list of them.
 * The readers of single formats fill the list; checkpoint.h puts the files together. */
#ifndef MHA_IO_TENSOR_H
#define MHA_IO_TENSOR_H

#include "base/dtype.h"
#include "base/mem.h"

#define MHA_TENSOR_RANK_MAX 8
#define MHA_TENSOR_NAME_MAX 4096

/* Shape in row-major order, slowest axis first (GGUF's axis order is turned round on reading). */
typedef struct mha_tensor {
    const char *name;
    mha_dtype type;
    uint32_t rank;
    uint64_t shape[MHA_TENSOR_RANK_MAX];
    const unsigned char *data; /* may be unaligned: element loads by memcpy unless checked */
    uint64_t bytes;
    uint32_t file; /* index into mha_checkpoint.files */
} mha_tensor;

/* Zero-initialise. `names` owns the name strings. */
typedef struct mha_tensor_list {
    mha_tensor *items;
    size_t count, capacity;
    mha_arena names;
} mha_tensor_list;

/* Room for `more` further tensors, zeroed; the count stays. */
mha_status mha_tensor_list_reserve(mha_tensor_list *l, size_t more, mha_err *err);
void mha_tensor_list_release(mha_tensor_list *l);

/* Elements of the shape; false when the product overflows. A scalar (rank 0) has one. */
bool mha_shape_count(const uint64_t *shape, uint32_t rank, uint64_t *count);

#endif
