/* outdir.h: a directory of files that appears whole or not at all: filled under a temporary name
 * beside its own and renamed by commit. */
#ifndef MHA_BASE_OUTDIR_H
#define MHA_BASE_OUTDIR_H

#include "base/outfile.h"

typedef struct mha_outdir {
    char *path, *temporary;
    bool force;
    size_t place; /* in the table that a Ctrl-C handler reads */
} mha_outdir;

/* MHA_ERR_IO when `path` exists, unless it is an empty directory or `force` is set and it is a
 * directory that holds `marker`: a directory of something else is never replaced. */
mha_status mha_outdir_open(mha_outdir *d, const char *path, const char *marker, bool force,
                           mha_err *err);
/* Opens a file of the directory, NAME or SUBDIRECTORY/NAME; the caller commits or aborts it. */
mha_status mha_outdir_file(mha_outdir *d, mha_outfile *f, const char *name, mha_err *err);
/* The directory's own name in place of the temporary one at the beginning of a message. */
void mha_outdir_rename_error(const mha_outdir *d, mha_err *err);
/* Renames. The handle is closed in any case, and what could not be renamed is removed. */
mha_status mha_outdir_commit(mha_outdir *d, mha_err *err);
/* Removes what was written. Safe on a zeroed, committed or aborted handle. */
void mha_outdir_abort(mha_outdir *d);
/* Removes the temporary directories of all open handles: async-signal-safe. Behind
 * mha_outfile_abort_all, which removes the files that are being written. */
void mha_outdir_abort_all(void);

#endif
