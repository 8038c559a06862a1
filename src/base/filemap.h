/* filemap.h: read-only files, mapped when they can be.
 *
 * A file that is cut while it is mapped would kill the process with SIGBUS. The guard turns that
 * into zero pages and a mark on the mapping; whoever reads large parts of a mapping asks
 * mha_filemap_check afterwards, so a cut file is an error and never silent zeros. */
#ifndef MHA_BASE_FILEMAP_H
#define MHA_BASE_FILEMAP_H

#include "mha/err.h"
#include <stddef.h>

typedef struct mha_filemap {
    const unsigned char *data; /* NULL when size is 0 */
    size_t size;
    char *path; /* owned copy, for messages */
} mha_filemap;

/* Opens a regular file. MHA_ERR_IO names the path and the system's reason. */
mha_status mha_filemap_open(mha_filemap *f, const char *path, mha_err *err);
void mha_filemap_close(mha_filemap *f);
/* MHA_ERR_IO when a page of the mapping was gone when it was read. */
mha_status mha_filemap_check(const mha_filemap *f, mha_err *err);
/* Installs the SIGBUS handler of this process. Faults outside mappings go to the former handler.
 * Called once by programs, never by the library itself. */
void mha_filemap_guard(void);

/* Whole small file into owned memory with a NUL behind it; MHA_ERR_LIMIT over `ceiling` bytes. */
mha_status mha_file_read(char **out, size_t *size, const char *path, size_t ceiling, mha_err *err);

#endif
