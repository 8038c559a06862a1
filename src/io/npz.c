/* npz.c: arrays in zip archives. Names are keys ("a//b" is one) and never paths. */
#include "base/fail.h"
#include "base/filemap.h"
#include "io/npy.h"
#include "io/zip.h"

#include <stdio.h>
#include <string.h>

#define UNPACKED_DEFAULT ((uint64_t)16 << 30)
#define SUFFIX           ".npy"
#define SUFFIX_BYTES     (sizeof SUFFIX - 1)

typedef struct array {
    char *name; /* without suffix */
    mha_npy npy;
    bool ready;
    void *unpacked; /* NULL when the entry is stored */
} array;

struct mha_npz {
    mha_filemap map; /* of mha_npz_open */
    char *file;
    mha_zip zip;
    array *arrays; /* [zip.count] */
    mha_arena names;
    uint64_t room; /* bytes that may still be unpacked */
};

static mha_status read_names(mha_npz *z, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&z->arrays, z->zip.count, sizeof *z->arrays, err));
    for (size_t i = 0; i < z->zip.count; i++) {
        const char *name = z->zip.entries[i].name;
        size_t n = strlen(name);
        if (n < SUFFIX_BYTES || strcmp(name + n - SUFFIX_BYTES, SUFFIX) != 0)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\" is not an array (.npy)", z->file,
                            name);
        MHA_TRY(mha_arena_strndup(&z->arrays[i].name, &z->names, name, n - SUFFIX_BYTES, err));
    }
    return MHA_OK;
}

static mha_status parse(mha_npz *z, const unsigned char *data, size_t size, const char *file,
                        mha_err *err)
{
    MHA_TRY(mha_strdup(&z->file, file, err));
    MHA_TRY(mha_zip_open(&z->zip, data, size, z->file, err));
    return read_names(z, err);
}

mha_status mha_npz_parse(mha_npz **out, const unsigned char *data, size_t size, const char *file,
                         uint64_t max_bytes, mha_err *err)
{
    mha_npz *z = NULL;
    MHA_TRY(mha_alloc((void **)&z, 1, sizeof *z, err));
    z->room = max_bytes ? max_bytes : UNPACKED_DEFAULT;
    mha_status status = parse(z, data, size, file, err);
    if (status != MHA_OK) {
        mha_npz_close(z);
        return status;
    }
    *out = z;
    return MHA_OK;
}

mha_status mha_npz_open(mha_npz **out, const char *path, uint64_t max_bytes, mha_err *err)
{
    mha_filemap map;
    MHA_TRY(mha_filemap_open(&map, path, err));
    mha_status status = mha_npz_parse(out, map.data, map.size, path, max_bytes, err);
    if (status != MHA_OK)
        mha_filemap_close(&map);
    else
        (*out)->map = map;
    return status;
}

void mha_npz_close(mha_npz *z)
{
    if (!z)
        return;
    for (size_t i = 0; z->arrays && i < z->zip.count; i++)
        mha_free(z->arrays[i].unpacked);
    mha_free(z->arrays);
    mha_arena_release(&z->names);
    mha_zip_release(&z->zip);
    mha_filemap_close(&z->map);
    mha_free(z->file);
    mha_free(z);
}

size_t mha_npz_count(const mha_npz *z)
{
    return z->zip.count;
}

const char *mha_npz_name(const mha_npz *z, size_t i)
{
    return z->arrays[i].name;
}

bool mha_npz_find(const mha_npz *z, const char *name, size_t *i)
{
    for (size_t k = 0; k < z->zip.count; k++) {
        if (strcmp(z->arrays[k].name, name) == 0) {
            *i = k;
            return true;
        }
    }
    return false;
}

static mha_status read_array(mha_npz *z, size_t i, mha_err *err)
{
    array *a = &z->arrays[i];
    const mha_zip_entry *e = &z->zip.entries[i];
    const unsigned char *bytes = NULL;
    MHA_TRY(
        mha_zip_read(e, &bytes, &a->unpacked, e->deflated ? z->room : UINT64_MAX, z->file, err));
    char where[512];
    snprintf(where, sizeof where, "%s: %s", z->file, e->name);
    mha_status status = mha_npy_parse(&a->npy, bytes, (size_t)e->size, where, err);
    if (status == MHA_OK)
        status = mha_filemap_check(&z->map, err);
    if (status != MHA_OK) {
        mha_free(a->unpacked);
        a->unpacked = NULL;
        return status;
    }
    z->room -= e->deflated ? e->size : 0;
    a->ready = true;
    return MHA_OK;
}

mha_status mha_npz_get(mha_npz *z, size_t i, mha_npy *out, mha_err *err)
{
    if (!z->arrays[i].ready)
        MHA_TRY(read_array(z, i, err));
    *out = z->arrays[i].npy;
    return MHA_OK;
}
