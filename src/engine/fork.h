/* fork.h: leave-one-out of every head with the work below the head shared (methods H8).
 *
 * Right after an attention step each base document branches into H more documents, whose branch
 * output lacks one head: x − z_h·W_O (or holds its fill instead). From there on they run beside the
 * base like any other packed document. Nothing below the head is computed twice. */
#ifndef MHA_ENGINE_FORK_H
#define MHA_ENGINE_FORK_H

#include "engine/engine.h"

typedef struct mha_fork {
    mha_document *docs; /* [capacity] the batch's documents, bases first */
    size_t bases, capacity;
    size_t *first_of;  /* [attn_count] first document that branched off at that step */
    size_t *memory_of; /* [capacity] */
} mha_fork;

/* Branches the batch after an attention step: dst holds W_O·z + b_O, z the heads' outputs. */
mha_status mha_fork_heads(mha_forward *f, const mha_attn_args *a, const float *z, mha_register dst,
                          mha_err *err);
/* Readies the second stack for the documents that branched off in the first, and makes room in the
 * registers for all that will branch off in this one. */
mha_status mha_fork_stack(mha_forward *f, mha_err *err);

#endif
