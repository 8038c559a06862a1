/* maps.h: what a file of dumped maps holds, for the one who replays it. */
#ifndef MHA_MODEL_MAPS_H
#define MHA_MODEL_MAPS_H

#include "base/mem.h"
#include "mha/maps.h"
#include "model/program.h"

/* The maps of one attention step, beside its entry in mha_model_info.attn. */
typedef struct mha_map_step {
    mha_attn_info attn;
    float *weights;         /* [H, T, S] owned */
    uint64_t queries, keys; /* T, S */
    char name[40];          /* of the array, for messages */
} mha_map_step;

struct mha_maps {
    mha_model model; /* info only */
    mha_arena memory;
    mha_map_step *steps; /* [info.attn_count] in running order */
    mha_document document;
    double row_sum_error;
    bool unseen; /* a visible key that no head of its layer has weight on */
};

/* The maps of a file's bytes; `path` tells a single array (.npy) from an archive, and names it in
 * messages. What is returned keeps nothing of them. */
mha_status mha_maps_parse(mha_maps **out, const unsigned char *data, size_t size, const char *path,
                          uint64_t max_bytes, mha_err *err);

#endif
