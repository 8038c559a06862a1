/* save.h: writing a bound model without some of its heads: what each written tensor consists of,
 * the config that goes with it, the files beside it. Private to the save*.c files, and to whoever
 * brings the decoding of block types along.
 *
 * A written tensor is a matrix of stored rows. From a Hugging Face checkpoint it is a stored tensor
 * with rows and columns cut out; from a GGUF file its rows are gathered from where that format has
 * them (mha_part). */
#ifndef MHA_MODEL_SAVE_H
#define MHA_MODEL_SAVE_H

#include "base/outdir.h"
#include "io/json.h"
#include "mha/prune.h"
#include "model/program.h"

/* dst[0..n) = the floats of n stored elements, a whole number of blocks. */
typedef void (*mha_widen)(float *dst, const void *src, size_t n);

/* One tensor of the result. */
typedef struct mha_saved_tensor {
    mha_tensor as;          /* name, type, shape and bytes as written; data is not used */
    const mha_tensor *from; /* copied from there, cut; NULL: gathered from the parts */
    const mha_part **part;  /* [parts] that it holds */
    size_t parts;
    uint32_t file; /* which of the written files */
    /* Of the matrix before cutting, as stored in a Hugging Face checkpoint: axis 0 and 1. A vector
     * is one column. NULL: all are kept, none are zero. */
    uint64_t count[2];
    bool *keep[2], *zero[2];
    const double *add; /* [count[0]] added to a vector, which is then float32; or NULL */
} mha_saved_tensor;

typedef struct mha_save {
    const struct mha_model *m;
    const mha_prune *p;
    size_t stride;          /* row length of p->remove */
    const mha_widen *widen; /* [MHA_DTYPE_FLOAT_COUNT] */
    mha_arena memory;
    mha_outdir directory;
    const char **file; /* [files] names of the weight files */
    size_t files;
    mha_saved_tensor *tensor; /* [tensors] */
    size_t tensors;
    mha_pruned *out;
    mha_progress progress;
    void *progress_context;
    double done, total; /* bytes */
} mha_save;

static inline bool mha_save_removes(const mha_save *s, size_t attn, uint32_t head)
{
    return s->p->remove[attn * s->stride + head];
}
/* Removed heads of one attention step. */
uint32_t mha_save_removed(const mha_save *s, size_t attn);

/* The attention step at a position of info.attn. */
const mha_attn_args *mha_model_attention(const struct mha_model *m, size_t attn);

/* save_plan.c: fills tensor and file. */
mha_status mha_save_plan(mha_save *s, mha_err *err);
/* save_write.c: the weight files. */
mha_status mha_save_weights(mha_save *s, mha_err *err);
/* save_config.c: out->opens and out->why, then config.json. */
void mha_save_opens(mha_save *s);
mha_status mha_save_config(mha_save *s, mha_err *err);
/* save_files.c: the tokenizer and other small files. */
mha_status mha_save_files(mha_save *s, mha_err *err);
/* save_compare.c: what the programs of two models differ in, but for their heads and weights; NULL:
 * in nothing. */
const char *mha_save_differs(const struct mha_model *a, const struct mha_model *b);
/* A whole file of the directory from its text, or from a JSON value. */
mha_status mha_save_text(mha_save *s, const char *name, const void *text, size_t n, mha_err *err);
mha_status mha_save_json(mha_save *s, const char *name, const json_t *value, mha_err *err);

/* Writes the model; mha_prune_write with the decoders of block types. */
mha_status mha_model_save(const struct mha_model *m, const char *path, const mha_prune *p,
                          const mha_widen *widen, mha_pruned *out, mha_progress progress,
                          void *progress_context, mha_err *err);

#endif
