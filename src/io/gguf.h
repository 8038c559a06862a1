/* gguf.h: GGUF v2 and v3 headers: metadata and tensor infos.
 *
 * Layout: "GGUF" | u32 version | u64 n_tensors | u64 n_kv | kv pairs | tensor infos | padding to
 * general.alignment | data. Strings are u64 length + bytes. Strings and arrays are borrowed from
 * the mapped file. */
#ifndef MHA_IO_GGUF_H
#define MHA_IO_GGUF_H

#include "io/tensor.h"
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

/* Reads the header of data[0..size), which must outlive *out, and appends the tensors to `list`,
 * `data` pointers into the given memory. `file` is used in messages. Refused are, naming the key or
 * the tensor: duplicates, nested arrays, sizes that overflow or pass the end, tensors that do not
 * follow each other, trailing bytes, and element types that dtype.h does not have. */
mha_status mha_gguf_parse(mha_gguf **out, mha_tensor_list *list, const unsigned char *data,
                          size_t size, const char *file, uint32_t file_index, uint64_t max_tensors,
                          mha_err *err);
void mha_gguf_free(mha_gguf *g);

/* All metadata in the order of the file. For scalars `value` is the element, for strings the bytes
 * (count is their number), for arrays the first element (count elements of kind `element`). */
typedef struct mha_gguf_entry {
    mha_gguf_string key;
    mha_gguf_kind kind, element;
    uint64_t count;
    const unsigned char *value;
    size_t bytes; /* from value to the end of the entry */
} mha_gguf_entry;

/* The name given to mha_gguf_parse, for messages. */
const char *mha_gguf_file(const mha_gguf *g);
size_t mha_gguf_entry_count(const mha_gguf *g);
const mha_gguf_entry *mha_gguf_entry_at(const mha_gguf *g, size_t i);
/* NULL when absent. */
const mha_gguf_entry *mha_gguf_find(const mha_gguf *g, const char *key);
/* One scalar in the file's byte order: true and *out when `kind` is a number (bool: 0 or 1). A
 * 64-bit unsigned value beyond int64 is false for the integer form. */
bool mha_gguf_scalar_int(mha_gguf_kind kind, const unsigned char *value, int64_t *out);
bool mha_gguf_scalar_real(mha_gguf_kind kind, const unsigned char *value, double *out);
/* Bytes of one scalar; 0 for strings and arrays. */
size_t mha_gguf_kind_size(mha_gguf_kind kind);
const char *mha_gguf_kind_name(mha_gguf_kind kind);

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
/* Arrays. A `count` other than the array's own is MHA_ERR_FORMAT: the caller has asked for the
 * count or knows what the model needs. *count elements of `kind`; element access below. */
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
