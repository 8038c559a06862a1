/* zip.c: the reader of zip archives. Sizes and places in an archive are claims of the file: each is
 * checked against what is there before memory is asked for. It may not touch the file system. */
#include "io/zip.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "io/cursor.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define END_SIGNATURE       0x06054b50U
#define END64_SIGNATURE     0x06064b50U
#define LOCATOR_SIGNATURE   0x07064b50U
#define DIRECTORY_SIGNATURE 0x02014b50U
#define LOCAL_SIGNATURE     0x04034b50U

#define END_BYTES       22
#define LOCATOR_BYTES   20
#define COMMENT_MAX     65535
#define DIRECTORY_BYTES 46 /* the fewest of one entry */
#define LOCAL_BYTES     30
#define ZIP64_EXTRA     1
#define FLAG_ENCRYPTED  0x0001
#define METHOD_STORED   0
#define METHOD_DEFLATED 8
#define ENTRIES_MAX     1000000

/* Deflate cannot make more than this of one byte (a run of 258 for two bits, and some slack for
 * very short streams), so a larger claim is a lie. */
#define DEFLATE_RATIO_MAX 1032
#define DEFLATE_SLACK     1024

typedef struct archive {
    mha_cursor c;
    uint64_t count, directory, directory_bytes;
} archive;

static mha_status broken(const archive *a, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "%s: broken zip archive: %s", a->c.file, what);
}

static mha_status u16(archive *a, uint64_t *out, const char *what, mha_err *err)
{
    uint16_t value = 0;
    MHA_TRY(mha_cursor_u16(&a->c, &value, what, err));
    *out = value;
    return MHA_OK;
}

static mha_status u32(archive *a, uint64_t *out, const char *what, mha_err *err)
{
    uint32_t value = 0;
    MHA_TRY(mha_cursor_u32(&a->c, &value, what, err));
    *out = value;
    return MHA_OK;
}

static mha_status skip(archive *a, uint64_t n, const char *what, mha_err *err)
{
    const unsigned char *skipped = NULL;
    return mha_cursor_bytes(&a->c, &skipped, n, what, err);
}

/* ----------------------------------------------------------------------- end of the archive */

/* The last place where an end record fits whose comment reaches the file's last byte. */
static bool find_end(const archive *a, size_t *at)
{
    size_t size = a->c.size;
    for (size_t comment = 0; comment <= COMMENT_MAX && comment + END_BYTES <= size; comment++) {
        const unsigned char *p = a->c.data + size - END_BYTES - comment;
        if (memcmp(p, "PK\5\6", 4) == 0 && (size_t)(p[20] | p[21] << 8) == comment) {
            *at = size - END_BYTES - comment;
            return true;
        }
    }
    return false;
}

/* The zip64 record, which holds what does not fit into the plain one standing at `end`. */
static mha_status read_end64(archive *a, size_t end, mha_err *err)
{
    uint64_t signature = 0, at = 0, entries = 0, ignored = 0;
    if (end < LOCATOR_BYTES)
        return broken(a, "no place for the zip64 locator", err);
    MHA_TRY(mha_cursor_seek(&a->c, end - LOCATOR_BYTES, "zip64 locator", err));
    MHA_TRY(u32(a, &signature, "zip64 locator", err));
    if (signature != LOCATOR_SIGNATURE)
        return broken(a, "the zip64 locator is missing", err);
    MHA_TRY(u32(a, &ignored, "disk", err));
    MHA_TRY(mha_cursor_u64(&a->c, &at, "zip64 end record", err));
    MHA_TRY(mha_cursor_seek(&a->c, at, "zip64 end record", err));
    MHA_TRY(u32(a, &signature, "zip64 end record", err));
    if (signature != END64_SIGNATURE)
        return broken(a, "the zip64 end record is missing", err);
    MHA_TRY(skip(a, 8 + 2 + 2 + 4 + 4, "zip64 end record", err));
    MHA_TRY(mha_cursor_u64(&a->c, &entries, "entries", err));
    MHA_TRY(mha_cursor_u64(&a->c, &a->count, "entries", err));
    MHA_TRY(mha_cursor_u64(&a->c, &a->directory_bytes, "directory size", err));
    MHA_TRY(mha_cursor_u64(&a->c, &a->directory, "directory offset", err));
    return entries == a->count ? MHA_OK : broken(a, "several disks", err);
}

static mha_status read_end(archive *a, mha_err *err)
{
    size_t at = 0;
    uint64_t disk = 0, directory_disk = 0, here = 0;
    if (!find_end(a, &at))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not a zip archive, or cut short", a->c.file);
    MHA_TRY(mha_cursor_seek(&a->c, at + 4, "end record", err));
    MHA_TRY(u16(a, &disk, "disk", err));
    MHA_TRY(u16(a, &directory_disk, "disk", err));
    MHA_TRY(u16(a, &here, "entries", err));
    MHA_TRY(u16(a, &a->count, "entries", err));
    MHA_TRY(u32(a, &a->directory_bytes, "directory size", err));
    MHA_TRY(u32(a, &a->directory, "directory offset", err));
    if (a->count == UINT16_MAX || a->directory == UINT32_MAX || a->directory_bytes == UINT32_MAX)
        MHA_TRY(read_end64(a, at, err));
    else if (disk != 0 || directory_disk != 0 || here != a->count)
        return broken(a, "several disks", err);
    if (a->directory > at || a->directory_bytes > at - a->directory)
        return broken(a, "the directory does not lie before its end record", err);
    if (a->count > a->directory_bytes / DIRECTORY_BYTES)
        return broken(a, "more entries than the directory can hold", err);
    if (a->count > ENTRIES_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: %llu entries, at most %d", a->c.file,
                        (unsigned long long)a->count, ENTRIES_MAX);
    return MHA_OK;
}

/* ------------------------------------------------------------------------------- directory */

/* Sizes and places that did not fit stand in an extra field, in this order. */
static mha_status read_extra(archive *a, mha_zip_entry *e, uint64_t n, mha_err *err)
{
    uint64_t *const fields[] = {&e->size, &e->packed, &e->begin};
    uint64_t end = a->c.at + n;
    while (a->c.at + 4 <= end) {
        uint64_t id = 0, bytes = 0;
        MHA_TRY(u16(a, &id, "extra field", err));
        MHA_TRY(u16(a, &bytes, "extra field", err));
        if (bytes > end - a->c.at)
            return broken(a, "an extra field passes its end", err);
        uint64_t next = a->c.at + bytes;
        for (size_t i = 0; id == ZIP64_EXTRA && i < 3; i++) {
            if (*fields[i] == UINT32_MAX && a->c.at + 8 <= next)
                MHA_TRY(mha_cursor_u64(&a->c, fields[i], "extra field", err));
        }
        MHA_TRY(mha_cursor_seek(&a->c, next, "extra field", err));
    }
    return mha_cursor_seek(&a->c, end, "extra field", err);
}

static mha_status read_name(archive *a, mha_zip *z, mha_zip_entry *e, uint64_t n, mha_err *err)
{
    const unsigned char *bytes = NULL;
    char *copy = NULL;
    bool replaced = false;
    MHA_TRY(mha_cursor_bytes(&a->c, &bytes, n, "entry name", err));
    if (n == 0 || memchr(bytes, 0, (size_t)n) || !mha_utf8_valid((const char *)bytes, (size_t)n))
        return broken(a, "an entry's name is not valid text", err);
    MHA_TRY(mha_arena_strndup(&copy, &z->names, (const char *)bytes, (size_t)n, err));
    e->name = copy;
    MHA_TRY(mha_map_set(&z->by_name, copy, (size_t)n, z->count, &replaced, err));
    if (replaced)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\" is there twice", a->c.file, copy);
    return MHA_OK;
}

static mha_status read_entry(archive *a, mha_zip *z, mha_zip_entry *e, mha_err *err)
{
    uint64_t signature = 0, flags = 0, method = 0, crc = 0, name = 0, extra = 0, comment = 0;
    MHA_TRY(u32(a, &signature, "directory entry", err));
    if (signature != DIRECTORY_SIGNATURE)
        return broken(a, "a directory entry is missing", err);
    MHA_TRY(skip(a, 4, "version", err));
    MHA_TRY(u16(a, &flags, "flags", err));
    MHA_TRY(u16(a, &method, "method", err));
    MHA_TRY(skip(a, 4, "time", err));
    MHA_TRY(u32(a, &crc, "checksum", err));
    MHA_TRY(u32(a, &e->packed, "packed size", err));
    MHA_TRY(u32(a, &e->size, "size", err));
    MHA_TRY(u16(a, &name, "name length", err));
    MHA_TRY(u16(a, &extra, "extra length", err));
    MHA_TRY(u16(a, &comment, "comment length", err));
    MHA_TRY(skip(a, 8, "attributes", err));
    MHA_TRY(u32(a, &e->begin, "local header offset", err));
    MHA_TRY(read_name(a, z, e, name, err));
    MHA_TRY(read_extra(a, e, extra, err));
    MHA_TRY(skip(a, comment, "comment", err));
    e->crc = (uint32_t)crc;
    e->deflated = method == METHOD_DEFLATED;
    if (flags & FLAG_ENCRYPTED)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: entry \"%s\" is encrypted", a->c.file,
                        e->name);
    if (method != METHOD_STORED && method != METHOD_DEFLATED)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: entry \"%s\": compression method %u",
                        a->c.file, e->name, (unsigned)method);
    return MHA_OK;
}

/* The local header tells where the data begin; what it repeats must agree. */
static mha_status read_local(archive *a, mha_zip_entry *e, mha_err *err)
{
    uint64_t signature = 0, method = 0, name = 0, extra = 0;
    const unsigned char *bytes = NULL;
    MHA_TRY(mha_cursor_seek(&a->c, e->begin, "local header", err));
    MHA_TRY(u32(a, &signature, "local header", err));
    if (signature != LOCAL_SIGNATURE)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\": no local header at byte %llu",
                        a->c.file, e->name, (unsigned long long)e->begin);
    MHA_TRY(skip(a, 4, "version", err));
    MHA_TRY(u16(a, &method, "method", err));
    MHA_TRY(skip(a, 16, "sizes", err));
    MHA_TRY(u16(a, &name, "name length", err));
    MHA_TRY(u16(a, &extra, "extra length", err));
    MHA_TRY(mha_cursor_bytes(&a->c, &bytes, name, "entry name", err));
    MHA_TRY(skip(a, extra, "extra field", err));
    if (name != strlen(e->name) || memcmp(bytes, e->name, (size_t)name) != 0 ||
        method != (e->deflated ? METHOD_DEFLATED : METHOD_STORED))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: entry \"%s\": the local header says something else than the directory",
                        a->c.file, e->name);
    MHA_TRY(mha_cursor_bytes(&a->c, &e->data, e->packed, e->name, err));
    if (!e->deflated && e->packed != e->size)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\": stored %llu bytes as %llu",
                        a->c.file, e->name, (unsigned long long)e->size,
                        (unsigned long long)e->packed);
    if (e->deflated && e->size / DEFLATE_RATIO_MAX > e->packed + DEFLATE_SLACK)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\": %llu bytes cannot unpack to %llu",
                        a->c.file, e->name, (unsigned long long)e->packed,
                        (unsigned long long)e->size);
    return MHA_OK;
}

static int by_begin(const void *x, const void *y)
{
    uint64_t a = (*(const mha_zip_entry *const *)x)->begin;
    uint64_t b = (*(const mha_zip_entry *const *)y)->begin;
    return (a > b) - (a < b);
}

/* Overlapping entries make an archive far larger than its file (the better zip bomb). */
static mha_status check_overlaps(const archive *a, const mha_zip *z, mha_err *err)
{
    const mha_zip_entry **sorted = NULL;
    MHA_TRY(mha_alloc((void **)&sorted, z->count, sizeof *sorted, err));
    for (size_t i = 0; i < z->count; i++)
        sorted[i] = &z->entries[i];
    if (z->count > 0)
        qsort(sorted, z->count, sizeof *sorted, by_begin);
    mha_status status = MHA_OK;
    uint64_t end = 0;
    for (size_t i = 0; i < z->count && status == MHA_OK; i++) {
        if (sorted[i]->begin < end)
            status = mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\" overlaps another one",
                              a->c.file, sorted[i]->name);
        end = (uint64_t)(sorted[i]->data - a->c.data) + sorted[i]->packed;
    }
    if (status == MHA_OK && end > a->directory)
        status = broken(a, "an entry overlaps the directory", err);
    mha_free(sorted);
    return status;
}

static mha_status read_directory(archive *a, mha_zip *z, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&z->entries, (size_t)a->count, sizeof *z->entries, err));
    MHA_TRY(mha_cursor_seek(&a->c, a->directory, "directory", err));
    for (; z->count < a->count; z->count++)
        MHA_TRY(read_entry(a, z, &z->entries[z->count], err));
    if (a->c.at != a->directory + a->directory_bytes)
        return broken(a, "the directory's size is wrong", err);
    for (size_t i = 0; i < z->count; i++)
        MHA_TRY(read_local(a, &z->entries[i], err));
    return check_overlaps(a, z, err);
}

mha_status mha_zip_open(mha_zip *out, const unsigned char *data, size_t size, const char *file,
                        mha_err *err)
{
    archive a = {.c = {.data = data, .size = size, .file = file}};
    mha_zip z = {0};
    mha_map_init(&z.by_name);
    mha_status status = read_end(&a, err);
    if (status == MHA_OK)
        status = read_directory(&a, &z, err);
    if (status != MHA_OK) {
        mha_zip_release(&z);
        return status;
    }
    *out = z;
    return MHA_OK;
}

void mha_zip_release(mha_zip *z)
{
    mha_map_release(&z->by_name);
    mha_arena_release(&z->names);
    mha_free(z->entries);
    *z = (mha_zip){0};
}

/* -------------------------------------------------------------------------------- contents */

static uInt next_piece(uint64_t left)
{
    return left < (1U << 30) ? (uInt)left : 1U << 30;
}

/* true when the packed bytes unpack to exactly out[0..size) and end there. */
static bool inflate_all(const mha_zip_entry *e, unsigned char *out)
{
    z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return false;
    uint64_t in_left = e->packed, out_left = e->size;
    unsigned char nothing;
    s.next_in = (z_const Bytef *)(uintptr_t)e->data;
    s.next_out = out ? out : &nothing;
    int code = Z_OK;
    while (code == Z_OK) {
        uInt in = next_piece(in_left), room = next_piece(out_left);
        s.avail_in = in;
        s.avail_out = room;
        code = inflate(&s, Z_NO_FLUSH);
        in_left -= in - s.avail_in;
        out_left -= room - s.avail_out;
        if (code == Z_OK && s.avail_in == in && s.avail_out == room)
            code = Z_BUF_ERROR;
    }
    inflateEnd(&s);
    return code == Z_STREAM_END && in_left == 0 && out_left == 0;
}

mha_status mha_zip_read(const mha_zip_entry *e, const unsigned char **bytes, void **owned,
                        uint64_t max_size, const char *file, mha_err *err)
{
    *owned = NULL;
    if (e->size > max_size)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: entry \"%s\" of %llu bytes, at most %llu", file,
                        e->name, (unsigned long long)e->size, (unsigned long long)max_size);
    const unsigned char *p = e->data;
    if (e->deflated) {
        MHA_TRY(mha_alloc_raw(owned, (size_t)e->size, 1, err));
        if (!inflate_all(e, *owned)) {
            mha_free(*owned);
            *owned = NULL;
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: entry \"%s\" does not unpack to the %llu bytes it claims", file,
                            e->name, (unsigned long long)e->size);
        }
        p = *owned;
    }
    uint32_t crc = (uint32_t)crc32_z(0, p, (size_t)e->size);
    if (crc != e->crc) {
        mha_free(*owned);
        *owned = NULL;
        return mha_fail(err, MHA_ERR_FORMAT, "%s: entry \"%s\": checksum %08x, expected %08x", file,
                        e->name, crc, e->crc);
    }
    *bytes = p;
    return MHA_OK;
}
