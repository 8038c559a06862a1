/* npy.h: NumPy arrays, alone (.npy, format versions 1 to 3) or several in a zip archive (.npz).
 *
 * NPY: "\x93NUMPY" | major | minor | header length (u16 in version 1, else u32) | a Python dict
 * literal with 'descr', 'fortran_order' and 'shape', padded with spaces and ended by a newline |
 * the elements. Read are little- and big-endian floats of 2, 4 and 8 bytes, integers of 1 to 8 and
 * bool; pickled objects and records are refused. */
#ifndef MHA_IO_NPY_H
#define MHA_IO_NPY_H

#include "io/tensor.h"

/* An array as it is stored; `data` is borrowed. The functions below give it in C order. */
typedef struct mha_npy {
    mha_dtype type; /* F16 F32 F64, I8 … I64, U8 … U64, BOOL */
    bool swapped;   /* big-endian */
    bool fortran;   /* first axis fastest */
    uint32_t rank;
    uint64_t shape[MHA_TENSOR_RANK_MAX];
    uint64_t count; /* elements */
    const unsigned char *data;
} mha_npy;

/* data[0..size) must be one whole .npy file and outlive *out. */
mha_status mha_npy_parse(mha_npy *out, const unsigned char *data, size_t size, const char *file,
                         mha_err *err);

bool mha_npy_is_float(const mha_npy *a);
/* All elements in C order into out[count]. The float forms take any type; the integer form refuses
 * floats, and unsigned values beyond int64 (MHA_ERR_FORMAT, naming `file`). */
void mha_npy_f32(float *out, const mha_npy *a);
void mha_npy_f64(double *out, const mha_npy *a);
mha_status mha_npy_i64(int64_t *out, const mha_npy *a, const char *file, mha_err *err);

/* --- archives ------------------------------------------------------------------------------ */

typedef struct mha_npz mha_npz;

/* data[0..size) must outlive *out. max_bytes bounds what deflated arrays may unpack to together;
 * 0: 16 GiB. */
mha_status mha_npz_parse(mha_npz **out, const unsigned char *data, size_t size, const char *file,
                         uint64_t max_bytes, mha_err *err);
mha_status mha_npz_open(mha_npz **out, const char *path, uint64_t max_bytes, mha_err *err);
void mha_npz_close(mha_npz *z);
size_t mha_npz_count(const mha_npz *z);
/* Without ".npy". */
const char *mha_npz_name(const mha_npz *z, size_t i);
/* false when there is no such array. */
bool mha_npz_find(const mha_npz *z, const char *name, size_t *i);
/* Checks the array's checksum and header; *out is borrowed until mha_npz_close. */
mha_status mha_npz_get(mha_npz *z, size_t i, mha_npy *out, mha_err *err);

#endif
