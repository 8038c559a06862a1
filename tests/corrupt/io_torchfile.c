/* io_torchfile: broken and evil files of torch.save, each with the answer of the reader. */
#include "support/test.h"

#include "io/torchfile.h"
#include "support/corruption.h"

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

static mha_status read(const unsigned char *data, size_t n, mha_err *err)
{
    mha_tensor_list list = {0};
    mha_status status = mha_torchfile_parse(&list, data, n, FILE_NAME, 0, 1000, err);
    mha_tensor_list_release(&list);
    return status;
}

static void test_table(void **state)
{
    (void)state;
    corruption_run(rows, sizeof rows / sizeof *rows, read, FILE_NAME);
}

static void test_sweep(void **state)
{
    (void)state;
    corruption_sweep(FILE_OF(GOOD), read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
