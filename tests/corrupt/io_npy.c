/* io_npy: broken NumPy files and archives, each with the answer of the reader. */
#include "support/test.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/mem.h"
#include "io/npy.h"
#include "support/bytes.h"
#include "support/corruption.h"

#include <string.h>
#include <zlib.h>

#define FILE_NAME "a.npz"
#define V1        "x934e554d50590100 "
#define TEXT(s)   V1 "n~" s "~ "
#define HEADER(descr, order, shape)                                                                \
    TEXT("{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }")
#define GOOD HEADER("'<f4'", "False", "(2,)") "f1 f2"

static const corruption rows[] = {
    /* the frame */
    {"empty file", "", MHA_ERR_FORMAT, "magic: needs 6 bytes, 0 left"},
    {"another file", "t|NUMPY!| z100", MHA_ERR_FORMAT, "not an NPY file"},
    {"version cut", "x934e554d5059", MHA_ERR_FORMAT, "version: needs 1 bytes"},
    {"version 0", "x934e554d50590000 h0", MHA_ERR_UNSUPPORTED, "NPY version 0.0"},
    {"version 4", "x934e554d50590400 i0", MHA_ERR_UNSUPPORTED, "NPY version 4.0"},
    {"version 1.1", "x934e554d50590101 h0", MHA_ERR_UNSUPPORTED, "NPY version 1.1"},
    {"header length cut", "x934e554d50590100 b1", MHA_ERR_FORMAT, "header length: needs 2 bytes"},
    {"header past the end", V1 "h100 z99", MHA_ERR_FORMAT, "NPY header: needs 100 bytes, 99"},
    {"header of 4 GiB", "x934e554d50590200 i-1", MHA_ERR_LIMIT, "NPY header of 4294967295"},

    /* the literal */
    {"header of no bytes", TEXT(""), MHA_ERR_FORMAT, "not a dict"},
    {"header of zeros", V1 "h8 z8", MHA_ERR_FORMAT, "not a dict"},
    {"an expression", TEXT("__import__('os').system('true')"), MHA_ERR_FORMAT, "not a dict"},
    {"an expression as a value", HEADER("'<f4'", "print(1)", "(2,)") "z8", MHA_ERR_FORMAT,
     "neither True nor False"},
    {"dict that does not end", TEXT("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)") "z8",
     MHA_ERR_FORMAT, "expected a comma or the end"},
    {"string that does not end", TEXT("{'descr': '<f4"), MHA_ERR_FORMAT, "not a short string"},
    {"escape in a string", TEXT("{'descr': '\\x3cf4'}"), MHA_ERR_FORMAT, "not a short string"},
    {"string of 40 letters", TEXT("{'descr': '<f44444444444444444444444444444444444444'}"),
     MHA_ERR_FORMAT, "not a short string"},
    {"no colon", TEXT("{'descr' '<f4'}"), MHA_ERR_FORMAT, "a key and a colon"},
    {"key without quotes", TEXT("{descr: '<f4'}"), MHA_ERR_FORMAT, "a key and a colon"},
    {"an unknown key", TEXT("{'descr': '<f4', 'mode': 1}"), MHA_ERR_FORMAT, "an unknown key"},
    {"a key twice", TEXT("{'descr': '<f4', 'descr': '<f4'}"), MHA_ERR_FORMAT, "there twice"},
    {"shape missing", TEXT("{'descr': '<f4', 'fortran_order': False}"), MHA_ERR_FORMAT, "missing"},
    {"order missing", TEXT("{'descr': '<f4', 'shape': (2,)}") "z8", MHA_ERR_FORMAT, "missing"},
    {"descr missing", TEXT("{'fortran_order': False, 'shape': (2,)}") "z8", MHA_ERR_FORMAT,
     "missing"},
    {"text behind the dict", TEXT("{'descr': '<f4', 'fortran_order': False, 'shape': ()} 1") "z4",
     MHA_ERR_FORMAT, "behind the dict"},
    {"order is a number", HEADER("'<f4'", "0", "(2,)") "z8", MHA_ERR_FORMAT,
     "neither True nor False"},

    /* the type */
    {"pickled objects", HEADER("'|O'", "False", "(1,)") "x80024e2e", MHA_ERR_UNSUPPORTED,
     "pickled Python objects"},
    {"records", HEADER("[('a', '<f4')]", "False", "(1,)") "z4", MHA_ERR_UNSUPPORTED, "records"},
    {"text", HEADER("'<U4'", "False", "(1,)") "z16", MHA_ERR_UNSUPPORTED, "'<U4'"},
    {"complex numbers", HEADER("'<c8'", "False", "(1,)") "z8", MHA_ERR_UNSUPPORTED, "'<c8'"},
    {"raw bytes", HEADER("'|V2'", "False", "(1,)") "z2", MHA_ERR_UNSUPPORTED, "'|V2'"},
    {"long double", HEADER("'<f16'", "False", "(1,)") "z16", MHA_ERR_UNSUPPORTED, "'<f16'"},
    {"no byte order", HEADER("'|f4'", "False", "(1,)") "z4", MHA_ERR_FORMAT, "no byte order"},
    {"empty type", HEADER("''", "False", "(1,)") "z4", MHA_ERR_UNSUPPORTED, "''"},
    {"type without order", HEADER("'f4'", "False", "(1,)") "z4", MHA_ERR_UNSUPPORTED, "'f4'"},
    {"type is a number", HEADER("4", "False", "(1,)") "z4", MHA_ERR_FORMAT, "not a short string"},

    /* the shape */
    {"shape is a number", HEADER("'<f4'", "False", "2") "z8", MHA_ERR_FORMAT, "not a tuple"},
    {"shape is a list", HEADER("'<f4'", "False", "[2]") "z8", MHA_ERR_FORMAT, "not a tuple"},
    {"shape is a number in brackets", HEADER("'<f4'", "False", "(2)") "z8", MHA_ERR_FORMAT,
     "not a tuple"},
    {"shape that does not end", TEXT("{'shape': (2,"), MHA_ERR_FORMAT, "not a whole number"},
    {"negative dimension", HEADER("'<f4'", "False", "(-2,)") "z8", MHA_ERR_FORMAT,
     "not a whole number"},
    {"real dimension", HEADER("'<f4'", "False", "(2.0,)") "z8", MHA_ERR_FORMAT, "not a tuple"},
    {"dimension of 2^64", HEADER("'<f4'", "False", "(18446744073709551616,)") "z8", MHA_ERR_FORMAT,
     "below 2^64"},
    {"nine dimensions", HEADER("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)") "z4", MHA_ERR_LIMIT,
     "more than 8 dimensions"},
    {"product overflows", HEADER("'<f4'", "False", "(4294967296, 4294967296)"), MHA_ERR_FORMAT,
     "overflows"},
    {"bytes overflow", HEADER("'<f8'", "False", "(2305843009213693953,)") "z8", MHA_ERR_FORMAT,
     "overflows"},
    {"elements cut", HEADER("'<f4'", "False", "(2,)") "z7", MHA_ERR_FORMAT,
     "elements: needs 8 bytes, 7 left"},
    {"bytes behind the elements", GOOD "z1", MHA_ERR_FORMAT, "1 bytes behind"},

    /* odd but legal */
    {"good", GOOD, MHA_OK, ""},
    {"scalar", HEADER("'<f4'", "False", "()") "z4", MHA_OK, ""},
    {"empty", HEADER("'<f4'", "True", "(0, 3)"), MHA_OK, ""},
    {"double quotes, other order",
     TEXT("{\"shape\":(1,2),\"descr\":\"<f4\",\"fortran_order\":True}") "z8", MHA_OK, ""},
};

static mha_status read_npy(const unsigned char *data, size_t n, mha_err *err)
{
    mha_npy a;
    double values[64];
    MHA_TRY(mha_npy_parse(&a, data, n, FILE_NAME, err));
    if (a.count <= 64)
        mha_npy_f64(values, &a);
    return MHA_OK;
}

static void test_table(void **state)
{
    corruption_run(rows, sizeof rows / sizeof *rows, read_npy, FILE_NAME);
}

static void test_sweep(void **state)
{
    corruption_sweep(GOOD, read_npy);
    corruption_sweep(HEADER("'>i8'", "True", "(2, 2)") "z32", read_npy);
}

/* ---------------------------------------------------------------------------------- archives */

/* An archive of one array, right where a field is 0 and wrong by the field's value otherwise. */
typedef struct broken_zip {
    const char *name;
    mha_status status;
    const char *says;
    const char *entry; /* "a.npy" when NULL */
    const char *local; /* the name in the local header: that of the directory when NULL */
    const char *array; /* recipe; GOOD when NULL */
    const char *before, *after;
    bool deflate, twice, no_local, no_end, zip64_lost;
    unsigned flags, method, local_method, crc, packed, size, begin, disk, count, directory,
        directory_bytes, extra;
} broken_zip;

static const broken_zip zips[] = {
    {"good", MHA_OK, "", .deflate = false},
    {"good and deflated", MHA_OK, "", .deflate = true},
    {"bytes behind the archive", MHA_ERR_FORMAT, "not a zip archive", .after = "z1"},
    {"bytes before the archive", MHA_ERR_FORMAT, "broken zip archive", .before = "z8"},
    {"end record missing", MHA_ERR_FORMAT, "not a zip archive", .no_end = true},
    {"second disk", MHA_ERR_FORMAT, "several disks", .disk = 1},
    {"more entries than the directory holds", MHA_ERR_FORMAT, "more entries than", .count = 1},
    {"directory behind its end record", MHA_ERR_FORMAT, "before its end record",
     .directory = 100000},
    {"directory one byte off", MHA_ERR_FORMAT, "broken zip archive", .directory = 1,
     .directory_bytes = -1},
    {"directory too long", MHA_ERR_FORMAT, "before its end record", .directory_bytes = 1},
    {"directory too short", MHA_ERR_FORMAT, "broken zip archive", .directory_bytes = -1},
    {"zip64 promised and missing", MHA_ERR_FORMAT, "zip64 locator is missing", .zip64_lost = true},
    {"encrypted", MHA_ERR_UNSUPPORTED, "\"a.npy\" is encrypted", .flags = 1},
    {"method 12", MHA_ERR_UNSUPPORTED, "compression method 12", .method = 12},
    {"other method in the local header", MHA_ERR_FORMAT, "local header says something else",
     .local_method = 8},
    {"other name in the local header", MHA_ERR_FORMAT, "local header says something else",
     .local = "b.npy"},
    {"no local header", MHA_ERR_FORMAT, "no local header at byte 0", .no_local = true},
    {"local header past the end", MHA_ERR_FORMAT, "past the end", .begin = 100000},
    {"checksum", MHA_ERR_FORMAT, "checksum", .crc = 1},
    {"checksum of deflated bytes", MHA_ERR_FORMAT, "checksum", .crc = 1, .deflate = true},
    {"stored size past the end", MHA_ERR_FORMAT, "a.npy: needs", .packed = 1000, .size = 1000},
    {"stored sizes differ", MHA_ERR_FORMAT, "stored", .size = 1},
    {"deflated to more than it claims", MHA_ERR_FORMAT, "does not unpack", .deflate = true,
     .size = -1},
    {"deflated to less than it claims", MHA_ERR_FORMAT, "does not unpack", .deflate = true,
     .size = 1},
    {"a claim of 2 GB", MHA_ERR_FORMAT, "cannot unpack to", .deflate = true, .size = 2000000000},
    {"a claim over the limit", MHA_ERR_LIMIT, "at most 1000", .deflate = true, .size = 1000},
    {"deflated bytes cut", MHA_ERR_FORMAT, "does not unpack", .deflate = true, .packed = -2},
    {"extra field past its end", MHA_ERR_FORMAT, "extra field passes its end", .extra = 5000},
    {"the same name twice", MHA_ERR_FORMAT, "\"a.npy\" is there twice", .twice = true},
    {"directory inside the entry", MHA_ERR_FORMAT, "overlaps the directory", .packed = 10,
     .size = 10},
    {"entry that is no array", MHA_ERR_FORMAT, "\"a.txt\" is not an array", .entry = "a.txt"},
    {"entry without a name", MHA_ERR_FORMAT, "name is not valid text", .entry = ""},
    {"name that is not UTF-8", MHA_ERR_FORMAT, "name is not valid text", .entry = "\xff.npy"},
    {"name that looks like a path", MHA_OK, "", .entry = "../../etc/passwd.npy"},
    {"broken array inside", MHA_ERR_FORMAT, "a.npz: a.npy: not an NPY file", .array = "t|PNG| z20"},
    {"pickle inside", MHA_ERR_UNSUPPORTED, "a.npz: a.npy: an array of pickled",
     .array = HEADER("'|O'", "False", "(1,)") "x80024e2e"},
};

static void add(mha_buf *b, const void *p, size_t n)
{
    assert_int_equal(mha_buf_add(b, p, n, NULL), MHA_OK);
}

static void le(mha_buf *b, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add(b, &(const unsigned char){(unsigned char)(value >> (8 * i))}, 1);
}

static void add_recipe(mha_buf *b, const char *recipe)
{
    size_t n = 0;
    unsigned char *data = bytes_make(recipe, &n);
    add(b, data, n);
    mha_free(data);
}

static size_t deflate_raw(const unsigned char *data, size_t n, unsigned char *out, size_t cap)
{
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)data;
    s.avail_in = (uInt)n;
    s.next_out = out;
    s.avail_out = (uInt)cap;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    deflateEnd(&s);
    return s.total_out;
}

/* What the local header and the directory share: method, time, checksum, sizes. */
static void shared_fields(mha_buf *b, const broken_zip *z, unsigned method, uint32_t crc,
                          size_t packed, size_t size)
{
    le(b, z->flags, 2);
    le(b, method, 2);
    le(b, 0, 4);
    le(b, crc + z->crc, 4);
    le(b, packed + z->packed, 4);
    le(b, size + z->size, 4);
}

static void directory_entry(mha_buf *b, const broken_zip *z, const char *name, uint64_t begin,
                            uint32_t crc, size_t packed, size_t size)
{
    le(b, 0x02014b50, 4);
    le(b, 20 << 16, 4);
    shared_fields(b, z, z->method ? z->method : z->deflate ? 8 : 0, crc, packed, size);
    le(b, strlen(name), 2);
    le(b, z->extra ? 4 : 0, 2);
    le(b, 0, 2 + 2 + 2);
    le(b, 0, 4);
    le(b, begin + z->begin, 4);
    add(b, name, strlen(name));
    if (z->extra)
        le(b, (uint64_t)z->extra << 16 | 1, 4);
}

static void build(mha_buf *b, const broken_zip *z)
{
    unsigned char packed[4096];
    size_t size = 0;
    unsigned char *array = bytes_make(z->array ? z->array : GOOD, &size);
    uint32_t crc = (uint32_t)crc32_z(0, array, size);
    const char *name = z->entry ? z->entry : "a.npy", *local = z->local ? z->local : name;
    size_t n = z->deflate ? deflate_raw(array, size, packed, sizeof packed) : size;
    if (!z->deflate)
        memcpy(packed, array, size);
    mha_free(array);
    add_recipe(b, z->before ? z->before : "");
    le(b, z->no_local ? 0 : 0x04034b50, 4);
    le(b, 20, 2);
    shared_fields(b, z, z->local_method ? z->local_method : z->deflate ? 8 : 0, crc, n, size);
    le(b, strlen(local), 2);
    le(b, 0, 2);
    add(b, local, strlen(local));
    add(b, packed, n);
    size_t directory = b->size - (z->before ? 8 : 0);
    directory_entry(b, z, name, 0, crc, n, size);
    if (z->twice)
        directory_entry(b, z, name, 0, crc, n, size);
    size_t bytes = b->size - directory - (z->before ? 8 : 0);
    if (z->no_end)
        return;
    le(b, 0x06054b50, 4);
    le(b, z->disk, 2);
    le(b, z->disk, 2);
    unsigned count = 1 + z->count + z->twice;
    le(b, z->zip64_lost ? UINT16_MAX : count, 2);
    le(b, z->zip64_lost ? UINT16_MAX : count, 2);
    le(b, bytes + z->directory_bytes, 4);
    le(b, directory + z->directory, 4);
    le(b, 0, 2);
    add_recipe(b, z->after ? z->after : "");
}

static mha_status read_npz(const unsigned char *data, size_t n, mha_err *err)
{
    mha_npz *z = NULL;
    mha_npy a;
    MHA_TRY(mha_npz_parse(&z, data, n, FILE_NAME, 1000, err));
    mha_status status = MHA_OK;
    for (size_t i = 0; i < mha_npz_count(z) && status == MHA_OK; i++)
        status = mha_npz_get(z, i, &a, err);
    mha_npz_close(z);
    return status;
}

static void test_archives(void **state)
{
    for (size_t i = 0; i < sizeof zips / sizeof *zips; i++) {
        mha_buf b;
        mha_err err = {0};
        mha_buf_init(&b, 1 << 20);
        build(&b, &zips[i]);
        mha_status status = read_npz((const unsigned char *)b.data, b.size, &err);
        mha_buf_release(&b);
        if (status != zips[i].status || !strstr(err.message, zips[i].says))
            fail_msg("%s: expected %s \"%s\", got %s: %s", zips[i].name,
                     mha_status_name(zips[i].status), zips[i].says, mha_status_name(status),
                     err.message);
    }
}

/* The second entry's local header lies in the bytes of the first: a zip bomb's trick. */
static void test_overlapping_entries(void **state)
{
    size_t n = 0;
    mha_err err = {0};
    unsigned char *data =
        bytes_make("i0x04034b50 h20 h0 h0 i0 i0 i35 i35 h5 h0 t|a.npy| "
                   "i0x04034b50 h20 h0 h0 i0 i0 i0 i0 h5 h0 t|b.npy| "
                   "i0x02014b50 h0 h20 h0 h0 i0 i0 i35 i35 h5 h0 h0 h0 h0 i0 i0 t|a.npy| "
                   "i0x02014b50 h0 h20 h0 h0 i0 i0 i0 i0 h5 h0 h0 h0 h0 i0 i35 t|b.npy| "
                   "i0x06054b50 h0 h0 h2 h2 i102 i70 h0",
                   &n);
    assert_int_equal(read_npz(data, n, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "entry \"b.npy\" overlaps another one"));
    mha_free(data);
}

static void test_archive_sweep(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        mha_buf b;
        mha_buf_init(&b, 1 << 20);
        build(&b, &zips[i]);
        for (size_t cut = 0; cut < b.size; cut++)
            assert_int_not_equal(read_npz((const unsigned char *)b.data, cut, NULL), MHA_OK);
        for (size_t at = 0; at < b.size; at++) {
            char kept = b.data[at];
            for (int value = 0; value < 256; value += 51) {
                b.data[at] = (char)value;
                read_npz((const unsigned char *)b.data, b.size, NULL);
            }
            b.data[at] = kept;
        }
        mha_buf_release(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),         cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_archives),      cmocka_unit_test(test_overlapping_entries),
        cmocka_unit_test(test_archive_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
