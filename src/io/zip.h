/* zip.h: the entries of a zip archive in memory (PKWARE APPNOTE 6.3: stored and deflated entries,
 * zip64). Names are keys and never paths. The central directory is believed only as far as the
 * local headers agree with it. */
#ifndef MHA_IO_ZIP_H
#define MHA_IO_ZIP_H

#include "base/map.h"
#include "base/mem.h"

typedef struct mha_zip_entry {
    const char *name;
    bool deflated;
    uint32_t crc;
    uint64_t packed, size; /* bytes in the archive, bytes when unpacked */
    const unsigned char *data;
    uint64_t begin; /* of the local header */
} mha_zip_entry;

typedef struct mha_zip {
    mha_zip_entry *entries;
    size_t count;
    mha_map by_name;
    mha_arena names;
} mha_zip;

/* Entries point into data, which must outlive *out. Refused: encryption, other methods, several
 * disks, two entries of one name, entries that overlap, bytes behind the archive. */
mha_status mha_zip_open(mha_zip *out, const unsigned char *data, size_t size, const char *file,
                        mha_err *err);
void mha_zip_release(mha_zip *z);

/* The entry's bytes with their checksum checked. *owned is NULL and *bytes borrowed when the entry
 * is stored; otherwise *owned == *bytes (mha_free). MHA_ERR_LIMIT over max_size bytes. */
mha_status mha_zip_read(const mha_zip_entry *e, const unsigned char **bytes, void **owned,
                        uint64_t max_size, const char *file, mha_err *err);

#endif
