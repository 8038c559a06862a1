/* outfile.h: files that appear whole or not at all: written under a temporary name in the same
 * directory and renamed by commit. "-" is standard output (no renaming there). */
#ifndef MHA_BASE_OUTFILE_H
#define MHA_BASE_OUTFILE_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct mha_outfile {
    FILE *stream; /* write here; errors are sticky and reported by commit */
    char *path, *temporary;
    bool force;
} mha_outfile;

/* MHA_ERR_IO when the file exists and `force` is false ("FILE exists; --force overwrites"). */
mha_status mha_outfile_open(mha_outfile *f, const char *path, bool force, mha_err *err);
mha_status mha_outfile_write(mha_outfile *f, const void *bytes, size_t n, mha_err *err);
/* Flushes, checks every earlier write, renames. The handle is closed in any case. */
mha_status mha_outfile_commit(mha_outfile *f, mha_err *err);
/* Drops what was written. Safe on a zeroed, committed or aborted handle. */
void mha_outfile_abort(mha_outfile *f);
/* Removes the temporary files of all open handles: async-signal-safe, for Ctrl-C handlers. */
void mha_outfile_abort_all(void);

/* Creates a directory (parents must exist; an existing directory is fine). */
mha_status mha_dir_make(const char *path, mha_err *err);

#endif
