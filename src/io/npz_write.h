/* npz_write.h: NumPy files written in pieces: no array has to be in memory whole.
 *
 * An archive holds its arrays stored (not compressed), with zip64 records where sizes or places
 * need them, and no time: the same arrays give the same bytes. */
#ifndef MHA_IO_NPZ_WRITE_H
#define MHA_IO_NPZ_WRITE_H

#include "base/buf.h"
#include "base/outfile.h"
#include "io/tensor.h"

/* Appends the bytes of an .npy file up to its first element: format version 1, C order, elements at
 * a multiple of 64. `type` is a plain element type other than BF16 (MHA_ERR_ARG). */
mha_status mha_npy_header(mha_buf *out, mha_dtype type, const uint64_t *shape, uint32_t rank,
                          mha_err *err);

/* Fields are the writer's own. */
typedef struct mha_npz_writer {
    mha_outfile *file;
    bool streamed; /* cannot go back to an entry's header */
    uint64_t at;   /* bytes written */
    struct mha_npz_written *entries;
    size_t count, capacity;
    uint64_t left; /* bytes that the last entry still needs */
    mha_arena names;
} mha_npz_writer;

/* Writes to `file`, which is open and empty, and committed or aborted by the caller. */
void mha_npz_writer_init(mha_npz_writer *w, mha_outfile *file);
/* Begins the next array, `name` without ".npy". MHA_ERR_ARG: the one before is not complete. */
mha_status mha_npz_writer_begin(mha_npz_writer *w, const char *name, mha_dtype type,
                                const uint64_t *shape, uint32_t rank, mha_err *err);
/* The next n bytes of the array's elements. MHA_ERR_ARG: more than it has. */
mha_status mha_npz_writer_add(mha_npz_writer *w, const void *bytes, size_t n, mha_err *err);
/* Writes the directory. MHA_ERR_ARG: the last array is not complete. */
mha_status mha_npz_writer_finish(mha_npz_writer *w, mha_err *err);
void mha_npz_writer_release(mha_npz_writer *w);

#endif
