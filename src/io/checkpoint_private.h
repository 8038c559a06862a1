/* checkpoint_private.h: the pieces of checkpoint.c, shared by its two files only. */
#ifndef MHA_IO_CHECKPOINT_PRIVATE_H
#define MHA_IO_CHECKPOINT_PRIVATE_H

#include "io/checkpoint.h"

/* Maps `count` files in the order of paths[] into c->files. */
mha_status mha_checkpoint_map(mha_checkpoint *c, const char *const *paths, size_t count,
                              mha_err *err);

/* Fills files, gguf and config of a checkpoint whose path is a .gguf file, and the list. */
mha_status mha_checkpoint_read_gguf(mha_checkpoint *c, mha_tensor_list *list, uint64_t max_tensors,
                                    mha_err *err);

#endif
