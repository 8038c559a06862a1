/* gguf.h: GGUF v2 and v3 headers: metadata and tensor infos.
 *
 * Layout: "GGUF" | u32 version | u64 n_tensors | u64 n_kv | kv pairs | tensor infos | padding to
 * general.alignment | data. Strings are u64 length + bytes. Strings and arrays are borrowed from
 * the mapped file. */
#ifndef MHA_IO_GGUF_H
#define MHA_IO_GGUF_H

#include "base/dtype.h"
#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mha_gguf_kind {
    MHA_GGUF_U8 = 0,
    MHA_GGUF_I8,
    MHA_GGUF_U16,
    MHA_GGUF_I16,
    MHA_GGUF_U32,
    MHA_GGUF_I32,
    MHA_GGUF_F32,
    MHA_GGUF_BOOL,
    MHA_GGUF_STRING,
    MHA_GGUF_ARRAY,
    MHA_GGUF_U64,
    MHA_GGUF_I64,
    MHA_GGUF_F64
} mha_gguf_kind;

typedef struct mha_gguf mha_gguf;

/* A borrowed byte string, not NUL-terminated. */
typedef struct mha_gguf_string {
    const char *s;
    size_t n;
} mha_gguf_string;

/* Getters: *found = false when the key is absent. A present key of another type is
 * MHA_ERR_FORMAT, naming the key, the expected and the found type; integer getters take any
 * integer type that fits. */
mha_status mha_gguf_get_int(const mha_gguf *g, const char *key, bool *found, int64_t *out,
                            mha_err *err);
mha_status mha_gguf_get_real(const mha_gguf *g, const char *key, bool *found, double *out,
                             mha_err *err);
mha_status mha_gguf_get_bool(const mha_gguf *g, const char *key, bool *found, bool *out,
                             mha_err *err);
mha_status mha_gguf_get_string(const mha_gguf *g, const char *key, bool *found,
                               mha_gguf_string *out, mha_err *err);
/* Arrays: *count elements of `kind`; element access below. */
mha_status mha_gguf_get_array(const mha_gguf *g, const char *key, bool *found, mha_gguf_kind *kind,
                              size_t *count, mha_err *err);
/* All strings of a string array: out[count], filled by one pass. */
mha_status mha_gguf_array_strings(const mha_gguf *g, const char *key, mha_gguf_string *out,
                                  size_t count, mha_err *err);
mha_status mha_gguf_array_ints(const mha_gguf *g, const char *key, int64_t *out, size_t count,
                               mha_err *err);
mha_status mha_gguf_array_reals(const mha_gguf *g, const char *key, float *out, size_t count,
                                mha_err *err);

#endif
