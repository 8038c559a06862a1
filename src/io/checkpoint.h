/* checkpoint.h: a saved model as named tensors and a config, whatever the format on disk.
 *
 * safetensors or PyTorch's own files (one file, or shards behind an index) with config.json, or
 * GGUF. Tensors are views into mapped files: nothing is widened here, and copied only where
 * PyTorch's strides say that a matrix does not lie row by row. Wrapper prefixes of the
 * names ("module.", "_orig_mod.") are cut off. */
#ifndef MHA_IO_CHECKPOINT_H
#define MHA_IO_CHECKPOINT_H

#include "base/filemap.h"
#include "base/map.h"
#include "io/gguf.h"
#include "io/tensor.h"
#include <jansson.h>

typedef struct mha_checkpoint {
    char *path; /* as given: directory or file */
    mha_filemap *files;
    size_t file_count;
    mha_tensor *tensors;
    size_t tensor_count;
    mha_map by_name;
    json_t *config;     /* config.json; for GGUF an object of the metadata scalars and short numeric
                           arrays, keys with the "ARCH." prefix cut off ("attention.head_count",
                           "general.architecture" stays whole). Flat: keys contain dots. */
    mha_gguf *gguf;     /* NULL unless the file is GGUF */
    const char *format; /* "safetensors", "PyTorch", "GGUF" */
    mha_arena names;    /* owns the strings */
} mha_checkpoint;

typedef struct mha_checkpoint_limits {
    uint64_t max_tensors; /* default 1,000,000 */
    uint64_t max_header;  /* bytes of a safetensors header, default 100,000,000 */
} mha_checkpoint_limits;

/* `path` is a directory or a .gguf file. limits may be NULL. */
mha_status mha_checkpoint_open(mha_checkpoint **out, const char *path,
                               const mha_checkpoint_limits *limits, mha_err *err);
void mha_checkpoint_close(mha_checkpoint *c);
/* NULL when absent. */
const mha_tensor *mha_checkpoint_find(const mha_checkpoint *c, const char *name);
/* SHA-256 over config, tensor names, types, shapes and sizes (sorted by name): cheap. */
mha_status mha_checkpoint_fingerprint(const mha_checkpoint *c, char hex[65], mha_err *err);
/* SHA-256 of one whole file. */
mha_status mha_checkpoint_hash_file(const mha_checkpoint *c, size_t file, char hex[65],
                                    mha_err *err);
/* MHA_ERR_IO when a mapped file was cut while it was read. */
mha_status mha_checkpoint_check(const mha_checkpoint *c, mha_err *err);

#endif
