/* npz_write.c: the writer of NumPy files and of the zip archives around them (PKWARE APPNOTE 6.3).
 * An entry's size is known from its shape before its first byte, its checksum only behind the last:
 * a file gets it put into the local header afterwards, a stream in a data descriptor. */
#include "io/npz_write.h"

#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define NPY_MAGIC     "\x93NUMPY\x01"
#define NPY_FRAME     10 /* magic, version, header length */
#define NPY_ALIGNMENT 64
#define HEADER_MAX    4096
#define NAME_MAX_ZIP  65000

#define NEEDS_ZIP64     UINT32_MAX /* this value, and all above it, go into a zip64 record */
#define VERSION_PLAIN   20
#define VERSION_ZIP64   45
#define MADE_BY_UNIX    (3 << 8 | VERSION_ZIP64)
#define FLAG_DESCRIPTOR 0x0008
#define FLAG_UTF8       0x0800
#define DATE_1980       0x0021 /* the first day that a zip archive can name */
#define ZIP64_EXTRA     1
#define CRC_PLACE       14 /* of the checksum in a local header */
#define FILE_MODE       ((uint64_t)0100644 << 16)

struct mha_npz_written {
    char *name; /* with ".npy" */
    uint64_t begin, size;
    uint32_t crc;
};

/* ------------------------------------------------------------------------------------- NPY */

static const char *descr_of(mha_dtype type)
{
    static const char *const names[MHA_DTYPE_COUNT] = {
        [MHA_F16] = "<f2", [MHA_F32] = "<f4", [MHA_F64] = "<f8", [MHA_I8] = "|i1",
        [MHA_I16] = "<i2", [MHA_I32] = "<i4", [MHA_I64] = "<i8", [MHA_U8] = "|u1",
        [MHA_U16] = "<u2", [MHA_U32] = "<u4", [MHA_U64] = "<u8", [MHA_BOOL] = "|b1"};
    return names[type];
}

mha_status mha_npy_header(mha_buf *out, mha_dtype type, const uint64_t *shape, uint32_t rank,
                          mha_err *err)
{
    const char *descr = descr_of(type);
    if (!descr)
        return mha_fail(err, MHA_ERR_ARG, "NumPy has no elements of type %s",
                        mha_dtype_get(type)->name);
    char text[HEADER_MAX];
    int n =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%llu", i > 0 ? ", " : "",
                      (unsigned long long)shape[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, rank == 1 ? ",), }" : "), }");
    size_t whole = NPY_FRAME + (size_t)n + 1;
    size_t spaces = (NPY_ALIGNMENT - whole % NPY_ALIGNMENT) % NPY_ALIGNMENT;
    size_t length = (size_t)n + spaces + 1;
    const unsigned char frame[3] = {0, (unsigned char)length, (unsigned char)(length >> 8)};
    MHA_TRY(mha_buf_adds(out, NPY_MAGIC, err));
    MHA_TRY(mha_buf_add(out, frame, sizeof frame, err));
    return mha_buf_addf(out, err, "%s%*s\n", text, (int)spaces, "");
}

/* ------------------------------------------------------------------------------------- zip */

/* A record of little-endian fields, put together before it is written. */
typedef struct record {
    unsigned char bytes[160];
    size_t n;
} record;

static void field(record *r, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        r->bytes[r->n++] = (unsigned char)(value >> (8 * i));
}

static uint64_t capped(uint64_t value)
{
    return value < NEEDS_ZIP64 ? value : NEEDS_ZIP64;
}

static mha_status emit(mha_npz_writer *w, const void *bytes, size_t n, mha_err *err)
{
    MHA_TRY(mha_outfile_write(w->file, bytes, n, err));
    w->at += n;
    return MHA_OK;
}

static uint64_t entry_flags(const mha_npz_writer *w, const struct mha_npz_written *e)
{
    uint64_t flags = w->streamed ? FLAG_DESCRIPTOR : 0;
    for (const char *p = e->name; *p; p++) {
        if ((unsigned char)*p >= 0x80)
            return flags | FLAG_UTF8;
    }
    return flags;
}

static mha_status write_local(mha_npz_writer *w, const struct mha_npz_written *e, mha_err *err)
{
    record r = {0};
    bool large = e->size >= NEEDS_ZIP64;
    size_t name = strlen(e->name);
    field(&r, 0x04034b50, 4);
    field(&r, large ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    field(&r, entry_flags(w, e), 2);
    field(&r, 0, 2); /* stored */
    field(&r, 0, 2); /* midnight */
    field(&r, DATE_1980, 2);
    field(&r, 0, 4); /* the checksum: see close_entry */
    field(&r, capped(e->size), 4);
    field(&r, capped(e->size), 4);
    field(&r, name, 2);
    field(&r, large ? 20 : 0, 2);
    MHA_TRY(emit(w, r.bytes, r.n, err));
    MHA_TRY(emit(w, e->name, name, err));
    r.n = 0;
    if (large) {
        field(&r, ZIP64_EXTRA, 2);
        field(&r, 16, 2);
        field(&r, e->size, 8);
        field(&r, e->size, 8);
    }
    return emit(w, r.bytes, r.n, err);
}

static mha_status patch_checksum(mha_npz_writer *w, const struct mha_npz_written *e, mha_err *err)
{
    record r = {0};
    field(&r, e->crc, 4);
    FILE *f = w->file->stream;
    if (fseeko(f, (off_t)(e->begin + CRC_PLACE), SEEK_SET) != 0 ||
        fwrite(r.bytes, 1, r.n, f) != r.n || fseeko(f, (off_t)w->at, SEEK_SET) != 0)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", w->file->path, strerror(errno));
    return MHA_OK;
}

/* What has to follow the last byte of the last entry. */
static mha_status close_entry(mha_npz_writer *w, mha_err *err)
{
    if (w->count == 0)
        return MHA_OK;
    const struct mha_npz_written *e = &w->entries[w->count - 1];
    if (w->left > 0)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s lacks %llu bytes", w->file->path, e->name,
                        (unsigned long long)w->left);
    if (!w->streamed)
        return patch_checksum(w, e, err);
    record r = {0};
    unsigned width = e->size >= NEEDS_ZIP64 ? 8 : 4;
    field(&r, 0x08074b50, 4);
    field(&r, e->crc, 4);
    field(&r, e->size, width);
    field(&r, e->size, width);
    return emit(w, r.bytes, r.n, err);
}

static mha_status write_directory_entry(mha_npz_writer *w, const struct mha_npz_written *e,
                                        mha_err *err)
{
    record r = {0}, extra = {0};
    size_t name = strlen(e->name);
    if (e->size >= NEEDS_ZIP64) {
        field(&extra, e->size, 8);
        field(&extra, e->size, 8);
    }
    if (e->begin >= NEEDS_ZIP64)
        field(&extra, e->begin, 8);
    field(&r, 0x02014b50, 4);
    field(&r, MADE_BY_UNIX, 2);
    field(&r, extra.n ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    field(&r, entry_flags(w, e), 2);
    field(&r, 0, 2); /* stored */
    field(&r, 0, 2);
    field(&r, DATE_1980, 2);
    field(&r, e->crc, 4);
    field(&r, capped(e->size), 4);
    field(&r, capped(e->size), 4);
    field(&r, name, 2);
    field(&r, extra.n ? extra.n + 4 : 0, 2);
    field(&r, 0, 2 + 2 + 2); /* comment, disk, text or binary */
    field(&r, FILE_MODE, 4);
    field(&r, capped(e->begin), 4);
    MHA_TRY(emit(w, r.bytes, r.n, err));
    MHA_TRY(emit(w, e->name, name, err));
    if (extra.n == 0)
        return MHA_OK;
    r.n = 0;
    field(&r, ZIP64_EXTRA, 2);
    field(&r, extra.n, 2);
    MHA_TRY(emit(w, r.bytes, r.n, err));
    return emit(w, extra.bytes, extra.n, err);
}

static mha_status write_end(mha_npz_writer *w, uint64_t directory, mha_err *err)
{
    record r = {0};
    uint64_t bytes = w->at - directory, end64 = w->at;
    if (w->count >= UINT16_MAX || bytes >= NEEDS_ZIP64 || directory >= NEEDS_ZIP64) {
        field(&r, 0x06064b50, 4);
        field(&r, 44, 8); /* bytes of this record behind this field */
        field(&r, MADE_BY_UNIX, 2);
        field(&r, VERSION_ZIP64, 2);
        field(&r, 0, 4 + 4); /* disks */
        field(&r, w->count, 8);
        field(&r, w->count, 8);
        field(&r, bytes, 8);
        field(&r, directory, 8);
        field(&r, 0x07064b50, 4); /* the locator of this record */
        field(&r, 0, 4);
        field(&r, end64, 8);
        field(&r, 1, 4);
    }
    uint64_t count = w->count < UINT16_MAX ? w->count : UINT16_MAX;
    field(&r, 0x06054b50, 4);
    field(&r, 0, 2 + 2); /* disks */
    field(&r, count, 2);
    field(&r, count, 2);
    field(&r, capped(bytes), 4);
    field(&r, capped(directory), 4);
    field(&r, 0, 2); /* comment */
    return emit(w, r.bytes, r.n, err);
}

/* ----------------------------------------------------------------------------------- writer */

void mha_npz_writer_init(mha_npz_writer *w, mha_outfile *file)
{
    /* Standard output may be a pipe, or a file to which everything is appended. */
    *w = (mha_npz_writer){.file = file, .streamed = file->stream == stdout};
}

void mha_npz_writer_release(mha_npz_writer *w)
{
    mha_free(w->entries);
    mha_arena_release(&w->names);
    *w = (mha_npz_writer){0};
}

static mha_status add_entry(mha_npz_writer *w, const char *name, uint64_t size, mha_err *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_ZIP)
        return mha_fail(err, MHA_ERR_ARG, "%s: an array name of %zu bytes (1 to %d)", w->file->path,
                        n, NAME_MAX_ZIP);
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 16;
        MHA_TRY(mha_grow((void **)&w->entries, w->capacity, capacity, sizeof *w->entries, err));
        w->capacity = capacity;
    }
    struct mha_npz_written e = {.begin = w->at, .size = size, .crc = (uint32_t)crc32_z(0, NULL, 0)};
    void *copy = NULL;
    MHA_TRY(mha_arena_alloc(&copy, &w->names, n + sizeof ".npy", 1, err));
    e.name = copy;
    memcpy(e.name, name, n);
    memcpy(e.name + n, ".npy", sizeof ".npy");
    w->entries[w->count++] = e;
    w->left = size;
    return MHA_OK;
}

mha_status mha_npz_writer_begin(mha_npz_writer *w, const char *name, mha_dtype type,
                                const uint64_t *shape, uint32_t rank, mha_err *err)
{
    uint64_t count = 0, bytes = 0;
    if (rank > MHA_TENSOR_RANK_MAX || !mha_shape_count(shape, rank, &count) ||
        !mha_dtype_size(type, count, &bytes) || bytes > INT64_MAX - HEADER_MAX)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s: the size of the shape overflows",
                        w->file->path, name);
    mha_buf header;
    mha_buf_init(&header, HEADER_MAX);
    mha_status status = close_entry(w, err);
    if (status == MHA_OK)
        status = mha_npy_header(&header, type, shape, rank, err);
    if (status == MHA_OK)
        status = add_entry(w, name, header.size + bytes, err);
    if (status == MHA_OK)
        status = write_local(w, &w->entries[w->count - 1], err);
    if (status == MHA_OK)
        status = mha_npz_writer_add(w, header.data, header.size, err);
    mha_buf_release(&header);
    return status;
}

mha_status mha_npz_writer_add(mha_npz_writer *w, const void *bytes, size_t n, mha_err *err)
{
    if (n > w->left)
        return mha_fail(err, MHA_ERR_ARG, "%s: %zu bytes for an array that lacks %llu",
                        w->file->path, n, (unsigned long long)w->left);
    if (n == 0)
        return MHA_OK;
    struct mha_npz_written *e = &w->entries[w->count - 1];
    e->crc = (uint32_t)crc32_z(e->crc, bytes, n);
    w->left -= n;
    return emit(w, bytes, n, err);
}

mha_status mha_npz_writer_finish(mha_npz_writer *w, mha_err *err)
{
    MHA_TRY(close_entry(w, err));
    uint64_t directory = w->at;
    for (size_t i = 0; i < w->count; i++)
        MHA_TRY(write_directory_entry(w, &w->entries[i], err));
    return write_end(w, directory, err);
}
