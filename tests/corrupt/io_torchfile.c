/* io_torchfile: broken and evil files of torch.save, each with the answer of the reader. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/torchfile.h"
#include "support/bytes.h"
#include "support/corruption.h"

#include <string.h>
#include <zlib.h>

#define FILE_NAME "pytorch_model.bin"

/* The older form: it needs no archive around it. */
#define MARK                 "x80028a0a6cfc9c46f9206aa850192e "
#define VERSION              "x80024de9032e "
#define MACHINE              "x80027d8c0d t|little_endian| x88732e "
#define START                MARK VERSION MACHINE
#define GLOBAL(module, name) "t|c" module "| x0a t|" name "| x0a "
#define STORAGE(type, key, elements)                                                               \
    "x28 x8c07 t|storage| " GLOBAL("torch", type) "x8c01 t|" key "| x8c03 t|cpu| " elements        \
                                                  " x7451 "
/* {'a': _rebuild_tensor_v2(storage, offset, shape, strides, False, {})} */
#define TENSOR(storage, offset, shape, strides)                                                    \
    GLOBAL("torch._utils", "_rebuild_tensor_v2")                                                   \
    "x28 " storage offset " " shape " " strides " x897d7452 "
#define OBJECT(value)     "x80027d8c01 t|a| " value "x732e "
#define KEYS              "x80025d8c01 t|0| x612e "
#define FLOATS            STORAGE("FloatStorage", "0", "x4b02")
#define GOOD              TENSOR(FLOATS, "x4b00", "x4b0285", "x4b0185")
#define FILE_OF(value)    START OBJECT(value) KEYS "q2 f1 f2"
#define RUN(module, name) FILE_OF(GLOBAL(module, name) "x8c02 t|ls| x8552 ")

static const corruption rows[] = {
    {"a good file", FILE_OF(GOOD), MHA_OK, ""},
    /* the frame */
    {"empty file", "", MHA_ERR_FORMAT, "pickle: needs 1 bytes, 0 left"},
    {"text", "t|hello|", MHA_ERR_FORMAT, "not a pickle of protocol 2"},
    {"protocol 1", "x8001", MHA_ERR_UNSUPPORTED, "protocol 1, not 2 to 5"},
    {"protocol 6", "x8006", MHA_ERR_UNSUPPORTED, "protocol 6, not 2 to 5"},
    {"some other pickle", "x80024b012e", MHA_ERR_UNSUPPORTED, "not one that torch.save wrote"},
    {"another version", MARK "x80024b012e", MHA_ERR_UNSUPPORTED, "not one that torch.save"},
    {"a big-endian machine", MARK VERSION "x80027d8c0d t|little_endian| x89732e",
     MHA_ERR_UNSUPPORTED, "little-endian"},
    {"no object", START, MHA_ERR_FORMAT, "pickle: needs 1 bytes, 0 left"},
    {"no keys", START OBJECT(GOOD), MHA_ERR_FORMAT, "pickle: needs 1 bytes, 0 left"},
    {"keys are a number", START OBJECT(GOOD) "x80024b012e", MHA_ERR_FORMAT, "list of its storages"},
    {"a key that nobody has", START OBJECT(GOOD) "x80025d8c01 t|1| x612e q2 z8", MHA_ERR_FORMAT,
     "storage 0 belongs to no tensor"},
    {"storages missing", START OBJECT(GOOD) KEYS, MHA_ERR_FORMAT, "elements of a storage"},
    {"storage cut short", START OBJECT(GOOD) KEYS "q2 f1", MHA_ERR_FORMAT, "needs 8 bytes, 4 left"},
    {"storage of 2^62 elements", START OBJECT(GOOD) KEYS "q4611686018427387904", MHA_ERR_FORMAT,
     "its size overflows"},
    {"storage longer than named", START OBJECT(GOOD) KEYS "q3 z12", MHA_ERR_FORMAT,
     "\"0\" has 12 bytes where 2 elements of F32 are named"},
    {"a tar file", "w65,257 t|ustar| z10", MHA_ERR_UNSUPPORTED, "a tar file"},
    {"a broken archive", "t|PK| x0304 z30", MHA_ERR_FORMAT, "not a zip archive"},

    /* the machine */
    {"the stack is empty", START "x80022e", MHA_ERR_FORMAT, "the stack is empty"},
    {"a tuple of too few", START "x80024b01862e", MHA_ERR_FORMAT, "the stack is empty"},
    {"popping below a mark", START "x80024b0128302e", MHA_ERR_FORMAT, "the stack is empty"},
    {"no mark", START "x8002742e", MHA_ERR_FORMAT, "no mark is left"},
    {"an empty place of the memo", START "x800268052e", MHA_ERR_FORMAT, "memo that is empty"},
    {"a far place of the memo", START "x80024b01 x72ffffffff", MHA_ERR_FORMAT, "no pickle needs"},
    {"items for a number", START "x80024b014b0261", MHA_ERR_FORMAT, "takes none"},
    {"a value without its key", START "x80027d284b0175", MHA_ERR_FORMAT, "takes none"},
    {"arguments that are a list", START "x8002 " GLOBAL("x", "y") "x5d52", MHA_ERR_FORMAT,
     "arguments that are no tuple"},
    {"text of 4 GB", START "x800258ffffffff", MHA_ERR_FORMAT, "needs 4294967295 bytes, 0 left"},
    {"a name without its end", START "x8002 t|cos|", MHA_ERR_FORMAT, "not a line of text"},
    {"a name that is a number", START "x80024b014b0193", MHA_ERR_FORMAT, "a name that is not text"},
    {"the opcode of instances", START "x800269", MHA_ERR_UNSUPPORTED, "opcode 0x69"},
    {"the opcode of instances, older", START "x800228 t|ios| x0a t|system| x0a",
     MHA_ERR_UNSUPPORTED, "opcode 0x69"},
    {"an opcode that is none", START "x8002ff", MHA_ERR_UNSUPPORTED, "opcode 0xff"},

    /* what would be run elsewhere */
    {"os.system", RUN("os", "system"), MHA_ERR_UNSUPPORTED, "names os.system"},
    {"posix.system", RUN("posix", "system"), MHA_ERR_UNSUPPORTED, "names posix.system"},
    {"eval", RUN("builtins", "eval"), MHA_ERR_UNSUPPORTED, "names builtins.eval"},
    {"eval of Python 2", RUN("__builtin__", "eval"), MHA_ERR_UNSUPPORTED, "names __builtin__.eval"},
    {"subprocess", RUN("subprocess", "Popen"), MHA_ERR_UNSUPPORTED, "names subprocess.Popen"},
    {"a part of a module", RUN("importlib.util", "find"), MHA_ERR_UNSUPPORTED, "names importlib"},
    {"by the stack", START "x80028c02 t|os| x8c06 t|system| x93", MHA_ERR_UNSUPPORTED,
     "names os.system"},
    {"by way of another module", START "x80048c05 t|torch| x8c09 t|os.system| x93",
     MHA_ERR_UNSUPPORTED, "names torch.os.system"},
    {"a new object", FILE_OF(GLOBAL("subprocess", "Popen") "x8c02 t|ls| x85817d62 "),
     MHA_ERR_UNSUPPORTED, "names subprocess.Popen"},
    {"getattr, beside a good tensor",
     START "x80027d288c01 t|a| " GOOD "x8c01 t|b| " GLOBAL("builtins", "getattr") "x752e " KEYS
                                                                                  "q2 f1 f2",
     MHA_ERR_UNSUPPORTED, "names builtins.getattr"},
    {"types and unknown things, beside a good tensor",
     START "x80027d288c01 t|a| " GOOD "x8c01 t|b| " GLOBAL("builtins", "list") "x8c01 t|c| " GLOBAL(
         "argparse", "Namespace") "x29817d62 x752e " KEYS "q2 f1 f2",
     MHA_OK, ""},
    {"bytes and sets of later protocols, beside a good tensor",
     START "x80057d288c01 t|a| " GOOD "x8c01 t|b| x96 q2 t|xy| x8c01 t|c| x8e q1 t|x| "
           "x8c01 t|d| x284b014b0291 x752e " KEYS "q2 f1 f2",
     MHA_OK, ""},
    {"an array of 2^63 bytes", START "x800596 q9223372036854775808", MHA_ERR_FORMAT,
     "needs 9223372036854775808 bytes, 0 left"},
    {"a name of 300 bytes", START "x8002 t|c| w97,300 x0a t|f| x0a", MHA_ERR_FORMAT,
     "longer than 255 bytes"},

    /* tensors */
    {"no dictionary", START "x80024b012e " KEYS, MHA_ERR_FORMAT, "belongs to no tensor"},
    {"nothing in it", START "x80027d2e x80025d2e", MHA_ERR_UNSUPPORTED, "no dictionary of tensors"},
    {"a list", START "x80025d2e x80025d2e", MHA_ERR_UNSUPPORTED, "no dictionary of tensors"},
    {"a name of no bytes", START "x80027d8c00 " GOOD "x732e " KEYS "q2 z8", MHA_ERR_FORMAT,
     "name is not text of 1 to"},
    {"a name that is a number", START "x80027d4b01 " GOOD "x732e " KEYS "q2 z8", MHA_ERR_FORMAT,
     "name is not text of 1 to"},
    {"another way to make it",
     FILE_OF(GLOBAL("torch._utils", "_rebuild_sparse_tensor") "x4b0185 x52 "), MHA_ERR_FORMAT,
     "belongs to no tensor"},
    {"sparse",
     START OBJECT(GLOBAL("torch._utils", "_rebuild_sparse_tensor") "x4b0185 x52 ") "x80025d2e",
     MHA_ERR_UNSUPPORTED, "\"a\" is made by torch._utils._rebuild_sparse_tensor"},
    {"three arguments",
     START OBJECT(GLOBAL("torch._utils", "_rebuild_tensor_v2") "x4b014b024b0387 x52 ") "x80025d2e",
     MHA_ERR_FORMAT, "not made of storage, offset, shape"},
    {"a storage that is a number",
     START OBJECT(TENSOR("x4b00 ", "x4b00", "x4b0285", "x4b0185")) "x80025d2e", MHA_ERR_FORMAT,
     "a storage is not described"},
    {"complex numbers",
     START OBJECT(TENSOR(STORAGE("ComplexFloatStorage", "0", "x4b02"), "x4b00", "x4b0285",
                         "x4b0185")) KEYS "q2 z16",
     MHA_ERR_UNSUPPORTED, "of type torch.ComplexFloatStorage"},
    {"elements below 0",
     START OBJECT(TENSOR(STORAGE("FloatStorage", "0", "x4affffffff"), "x4b00", "x4b0285",
                         "x4b0185")) KEYS "q2 z8",
     MHA_ERR_FORMAT, "a storage is not described"},
    {"a view of a storage",
     START OBJECT(
         TENSOR("x28 x8c07 t|storage| " GLOBAL(
                    "torch", "FloatStorage") "x8c01 t|0| "
                                             "x8c03 t|cpu| x4b02 x8c01 t|v| x4b014b0187 x7451 ",
                "x4b00", "x4b0185", "x4b0185")) KEYS "q2 f1 f2",
     MHA_ERR_UNSUPPORTED, "storage \"0\" is named by a view of it"},
    {"a view of none",
     START OBJECT(TENSOR(
         "x28 x8c07 t|storage| " GLOBAL("torch", "FloatStorage") "x8c01 t|0| "
                                                                 "x8c03 t|cpu| x4b02 x4e x7451 ",
         "x4b01", "x4b0185", "x4b0185")) KEYS "q2 f1 f2",
     MHA_OK, ""},
    {"a key of 256 bytes",
     START OBJECT(
         TENSOR("x28 x8c07 t|storage| " GLOBAL(
                    "torch", "FloatStorage") "x5800010000 w48,256 x8c03 t|cpu| x4b02 x7451 ",
                "x4b00", "x4b0185", "x4b0185")) "x80025d2e",
     MHA_ERR_FORMAT, "a storage is not described"},
    {"a name that is not UTF-8", START "x80027d8c02c328 " GOOD "x732e " KEYS "q2 z8",
     MHA_ERR_FORMAT, "name is not text of 1 to"},
    {"a name of 4097 bytes", START "x80027d5801100000 w97,4097 " GOOD "x732e " KEYS "q2 z8",
     MHA_ERR_FORMAT, "name is not text of 1 to"},
    {"a storage that is not there", START OBJECT(GOOD) "x80025d2e", MHA_ERR_FORMAT,
     "storage \"0\" is missing"},
    {"nine dimensions",
     FILE_OF(TENSOR(FLOATS, "x4b00", "x28 x4b014b014b014b014b014b014b014b014b01 x74", "x29")),
     MHA_ERR_LIMIT, "9 dimensions, at most 8"},
    {"strides of another rank", FILE_OF(TENSOR(FLOATS, "x4b00", "x4b0285", "x29")), MHA_ERR_FORMAT,
     "its strides is no tuple of 1"},
    {"a stride below 0", FILE_OF(TENSOR(FLOATS, "x4b00", "x4b0285", "x4affffffff85")),
     MHA_ERR_FORMAT, "its strides has something else"},
    {"a dimension below 0", FILE_OF(TENSOR(FLOATS, "x4b00", "x4affffffff85", "x4b0185")),
     MHA_ERR_FORMAT, "its shape has something else"},
    {"an offset below 0", FILE_OF(TENSOR(FLOATS, "x4affffffff", "x4b0285", "x4b0185")),
     MHA_ERR_FORMAT, "not made of storage, offset"},
    {"past the end", FILE_OF(TENSOR(FLOATS, "x4b01", "x4b0285", "x4b0185")), MHA_ERR_FORMAT,
     "\"a\" reaches beyond the 2 elements"},
    {"past the end by strides", FILE_OF(TENSOR(FLOATS, "x4b00", "x4b0285", "x4b0285")),
     MHA_ERR_FORMAT, "\"a\" reaches beyond the 2 elements"},
    {"a stride of 2^62", FILE_OF(TENSOR(FLOATS, "x4b00", "x4b0385", "x8a080000000000000040 x85")),
     MHA_ERR_FORMAT, "\"a\" reaches beyond"},
    {"a shape that overflows",
     FILE_OF(TENSOR(FLOATS, "x4b00", "x8a080000000000000040 x4b0486", "x4b004b0086")),
     MHA_ERR_FORMAT, "the size of the shape overflows"},
    {"a million of one element", FILE_OF(TENSOR(FLOATS, "x4b00", "x4a40420f0085", "x4b0085")),
     MHA_ERR_UNSUPPORTED, "repeats elements"},
    {"the same name twice",
     START "x80027d288c01 t|a| " GOOD "x8c01 t|a| " GOOD "x752e " KEYS "q2 f1 f2", MHA_OK,
     ""}, /* refused where names are put together */
};

static mha_status read_file(const unsigned char *data, size_t n, mha_err *err)
{
    mha_tensor_list list = {0};
    mha_status status = mha_torchfile_parse(&list, data, n, FILE_NAME, 0, 1000, err);
    mha_tensor_list_release(&list);
    return status;
}

static void test_table(void **state)
{
    (void)state;
    corruption_run(rows, sizeof rows / sizeof *rows, read_file, FILE_NAME);
}

static void test_sweep(void **state)
{
    (void)state;
    corruption_sweep(FILE_OF(GOOD), read_file);
}

/* ---- the zip form -----------------------------------------------------------------------------
 */

typedef struct broken_archive {
    const char *name;
    const char *entries[6]; /* name and recipe, in turn */
    const char *packed;     /* the entry that claims to be compressed */
    mha_status status;
    const char *says;
} broken_archive;

#define PICKLE OBJECT(GOOD)
#define FLOAT2 "f1 f2"

static const broken_archive archives[] = {
    {"good", {"m/data.pkl", PICKLE, "m/data/0", FLOAT2}, NULL, MHA_OK, ""},
    {"another root, in order",
     {"a-b/data.pkl", PICKLE, "a-b/byteorder", "t|little|", "a-b/data/0", FLOAT2},
     NULL,
     MHA_OK,
     ""},
    {"no pickle", {"m/data/0", FLOAT2}, NULL, MHA_ERR_FORMAT, "without NAME/data.pkl"},
    {"a pickle deeper down",
     {"m/x/data.pkl", PICKLE, "m/x/data/0", FLOAT2},
     NULL,
     MHA_ERR_FORMAT,
     "without NAME/data.pkl"},
    {"a pickle of no bytes",
     {"m/data.pkl", "", "m/data/0", FLOAT2},
     NULL,
     MHA_ERR_FORMAT,
     "pickle: needs 1 bytes"},
    {"a program",
     {"m/data.pkl", PICKLE, "m/constants.pkl", "x29", "m/data/0", FLOAT2},
     NULL,
     MHA_ERR_UNSUPPORTED,
     "TorchScript"},
    {"big-endian",
     {"m/data.pkl", PICKLE, "m/byteorder", "t|big|", "m/data/0", FLOAT2},
     NULL,
     MHA_ERR_UNSUPPORTED,
     "not little-endian"},
    {"a packed pickle",
     {"m/data.pkl", PICKLE, "m/data/0", FLOAT2},
     "m/data.pkl",
     MHA_ERR_UNSUPPORTED,
     "\"m/data.pkl\" is compressed"},
    {"a packed storage",
     {"m/data.pkl", PICKLE, "m/data/0", FLOAT2},
     "m/data/0",
     MHA_ERR_UNSUPPORTED,
     "storage \"0\" is compressed"},
    {"storage missing",
     {"m/data.pkl", PICKLE, "m/data/1", FLOAT2},
     NULL,
     MHA_ERR_FORMAT,
     "storage \"0\" is missing"},
    {"storage under another root",
     {"m/data.pkl", PICKLE, "n/data/0", FLOAT2},
     NULL,
     MHA_ERR_FORMAT,
     "storage \"0\" is missing"},
    {"storage too short",
     {"m/data.pkl", PICKLE, "m/data/0", "f1"},
     NULL,
     MHA_ERR_FORMAT,
     "has 4 bytes where 2 elements of F32"},
    {"storage too long",
     {"m/data.pkl", PICKLE, "m/data/0", "f1 f2 x00"},
     NULL,
     MHA_ERR_FORMAT,
     "has 9 bytes where 2 elements of F32"},
    {"two of one name",
     {"m/data.pkl", PICKLE, "m/data/0", FLOAT2, "m/data/0", "f3 f4"},
     NULL,
     MHA_ERR_FORMAT,
     "\"m/data/0\" is there twice"},
    {"os.system",
     {"m/data.pkl", OBJECT(GLOBAL("os", "system") "x8c02 t|ls| x8552 "), "m/data/0", FLOAT2},
     NULL,
     MHA_ERR_UNSUPPORTED,
     "names os.system"},
};

static void le(mha_buf *b, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        assert_int_equal(mha_buf_add(b, (const char *)&byte, 1, NULL), MHA_OK);
    }
}

/* What the local header and the directory have in common, up to the names' lengths. */
static void entry_fields(mha_buf *b, const broken_archive *z, const char *name,
                         const unsigned char *data, size_t n)
{
    le(b, 20, 2);
    le(b, 0, 2);
    le(b, z->packed && strcmp(z->packed, name) == 0 ? 8 : 0, 2);
    le(b, 0, 4);
    le(b, crc32_z(0, data, n), 4);
    le(b, n, 4);
    le(b, n, 4);
    le(b, strlen(name), 2);
    le(b, 0, 2);
}

static void archive_build(mha_buf *b, const broken_archive *z)
{
    mha_buf directory;
    size_t count = 0;
    mha_buf_init(&directory, 1 << 20);
    for (; count < 3 && z->entries[2 * count]; count++) {
        size_t n = 0, begin = b->size;
        const char *name = z->entries[2 * count];
        unsigned char *data = bytes_make(z->entries[2 * count + 1], &n);
        le(b, 0x04034b50, 4);
        entry_fields(b, z, name, data, n);
        assert_int_equal(mha_buf_add(b, name, strlen(name), NULL), MHA_OK);
        assert_int_equal(mha_buf_add(b, (const char *)data, n, NULL), MHA_OK);
        le(&directory, 0x02014b50, 4);
        le(&directory, 20, 2);
        entry_fields(&directory, z, name, data, n);
        le(&directory, 0, 8);
        le(&directory, 0, 2);
        le(&directory, begin, 4);
        assert_int_equal(mha_buf_add(&directory, name, strlen(name), NULL), MHA_OK);
        mha_free(data);
    }
    size_t begin = b->size;
    assert_int_equal(mha_buf_add(b, directory.data, directory.size, NULL), MHA_OK);
    le(b, 0x06054b50, 4);
    le(b, 0, 4);
    le(b, count, 2);
    le(b, count, 2);
    le(b, directory.size, 4);
    le(b, begin, 4);
    le(b, 0, 2);
    mha_buf_release(&directory);
}

static void test_archives(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        const broken_archive *z = &archives[i];
        mha_buf b;
        mha_err err = {0};
        mha_buf_init(&b, 1 << 20);
        archive_build(&b, z);
        mha_status status = read_file((const unsigned char *)b.data, b.size, &err);
        if (status != z->status || (status != MHA_OK && !strstr(err.message, z->says)))
            fail_msg("%s: expected %s \"%s\", got %s: %s", z->name, mha_status_name(z->status),
                     z->says, mha_status_name(status), err.message);
        mha_buf_release(&b);
    }
}

/* ---- files that ask for much more than they are -----------------------------------------------
 */

static void add_recipe(mha_buf *b, const char *recipe)
{
    size_t n = 0;
    unsigned char *data = bytes_make(recipe, &n);
    assert_int_equal(mha_buf_add(b, (const char *)data, n, NULL), MHA_OK);
    mha_free(data);
}

/* `begin`, then `again` so many times, then `end`. */
static mha_status read_repeated(const char *begin, const char *again, size_t times, const char *end,
                                mha_err *err)
{
    mha_buf b;
    mha_buf_init(&b, (size_t)64 << 20);
    add_recipe(&b, begin);
    size_t n = 0;
    unsigned char *piece = bytes_make(again, &n);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(mha_buf_add(&b, (const char *)piece, n, NULL), MHA_OK);
    mha_free(piece);
    add_recipe(&b, end);
    mha_tensor_list list = {0};
    mha_status status = mha_torchfile_parse(&list, (const unsigned char *)b.data, b.size, FILE_NAME,
                                            0, 1000000, err);
    mha_tensor_list_release(&list);
    mha_buf_release(&b);
    return status;
}

#define NUMBERS "w136,800000 "

/* The memo makes a long text or a large dictionary cost two bytes. Were each of these followed
 * where it is named, the rows would take minutes or all memory. */
static void test_amplified(void **state)
{
    (void)state;
    mha_err err = {0};
    /* One name of a million bytes, joined to itself again and again. */
    assert_int_equal(read_repeated(START "x80025840420f00 w97,1000000 x7100", "x6800680093", 200000,
                                   "x2e", &err),
                     MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "a name that is not text"));
    /* "state_dict" 500,000 times: a dictionary of 400,000 numbers (NEWTRUE, twice a pair). */
    assert_int_equal(read_repeated(START "x80027d28 x8c0a t|state_dict| x7100 x7d7101 x28 " NUMBERS
                                         "x75",
                                   "x68006801", 500000, "x752e x80025d2e", &err),
                     MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "holds no dictionary of tensors"));
    /* One tensor 100,000 times under one name of 4,000 bytes. */
    assert_int_equal(read_repeated(START "x80027d28 x58a00f0000 w97,4000 x7100 " GOOD "x7101",
                                   "x68006801", 100000, "x752e " KEYS "q2 f1 f2", &err),
                     MHA_ERR_LIMIT);
    assert_non_null(strstr(err.message, "names of tensors take more bytes than the file"));
    /* Tuples of tuples of tuples: 2^100000 leaves, which nobody visits. */
    assert_int_equal(
        read_repeated(START "x8002297100", "x6800680086 x7100", 100000, "x2e x80025d2e", &err),
        MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "holds no dictionary of tensors"));
    assert_int_equal(read_repeated(START "x8002", "x29", 1000001, "x2e", &err), MHA_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 1000000 values"));
}

/* A dictionary and a wrapper that hold themselves. */
static void test_cycles(void **state)
{
    (void)state;
    mha_err err = {0};
    assert_int_equal(read_repeated(START "x80027d7100 x8c0a t|state_dict| x6800 x73", "", 0,
                                   "x2e x80025d2e", &err),
                     MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "holds no dictionary of tensors"));
    assert_int_equal(read_repeated(START "x80025d7100 x6800 x61", "", 0, "x2e x80025d2e", &err),
                     MHA_ERR_UNSUPPORTED);
}

/* The state of a random generator beside the weights does not hide them. */
static void test_wrapper(void **state)
{
    (void)state;
    size_t n = 0;
    mha_err err = {0};
    mha_tensor_list list = {0};
    unsigned char *data =
        bytes_make(START "x80027d28 x8c03 t|rng| " GOOD "x8c05 t|model| x7d x8c01 t|w| " GOOD
                         "x73 x752e " KEYS "q2 f1 f2",
                   &n);
    assert_int_equal(mha_torchfile_parse(&list, data, n, FILE_NAME, 0, 10, &err), MHA_OK);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].name, "w");
    mha_tensor_list_release(&list);
    mha_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_archives), cmocka_unit_test(test_amplified),
        cmocka_unit_test(test_cycles),   cmocka_unit_test(test_wrapper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
