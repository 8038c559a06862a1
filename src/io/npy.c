/* npy.c: the header of .npy files and the conversion of their elements. The header is a Python dict
 * literal: a small parser reads the three keys and refuses everything else; nothing is evaluated.
 */
#include "io/npy.h"

#include "base/fail.h"
#include "io/cursor.h"

#include <ctype.h>
#include <string.h>

#define HEADER_MAX ((uint32_t)1 << 20)
#define DESCR_MAX  32

/* ---------------------------------------------------------------------------------- header */

typedef struct literal {
    const char *p, *end, *file;
    bool has_descr, has_order, has_shape;
} literal;

static mha_status header_fails(const literal *l, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "%s: NPY header: %s", l->file, what);
}

static void skip_spaces(literal *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r'))
        l->p++;
}

static bool take(literal *l, char c)
{
    skip_spaces(l);
    if (l->p == l->end || *l->p != c)
        return false;
    l->p++;
    return true;
}

static bool take_word(literal *l, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(l);
    if ((size_t)(l->end - l->p) < n || memcmp(l->p, word, n) != 0)
        return false;
    l->p += n;
    return true;
}

/* A quoted string without escapes, into out[cap]. */
static bool take_string(literal *l, char *out, size_t cap)
{
    skip_spaces(l);
    if (l->p == l->end || (*l->p != '\'' && *l->p != '"'))
        return false;
    char quote = *l->p++;
    size_t n = 0;
    while (l->p < l->end && *l->p != quote && *l->p != '\\' && n + 1 < cap)
        out[n++] = *l->p++;
    out[n] = '\0';
    return take(l, quote);
}

static bool take_number(literal *l, uint64_t *out)
{
    skip_spaces(l);
    uint64_t value = 0;
    const char *start = l->p;
    for (; l->p < l->end && isdigit((unsigned char)*l->p); l->p++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*l->p - '0'), &value))
            return false;
    }
    bool any = l->p > start;
    if (any && l->p < l->end && *l->p == 'L') /* written by Python 2 */
        l->p++;
    *out = value;
    return any;
}

static mha_status read_descr(literal *l, mha_npy *a, mha_err *err)
{
    static const struct {
        char name[3];
        mha_dtype type;
    } types[] = {{"f2", MHA_F16}, {"f4", MHA_F32}, {"f8", MHA_F64}, {"i1", MHA_I8},
                 {"i2", MHA_I16}, {"i4", MHA_I32}, {"i8", MHA_I64}, {"u1", MHA_U8},
                 {"u2", MHA_U16}, {"u4", MHA_U32}, {"u8", MHA_U64}, {"b1", MHA_BOOL}};
    char descr[DESCR_MAX];
    skip_spaces(l);
    if (l->p < l->end && *l->p == '[')
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: an array of records", l->file);
    if (!take_string(l, descr, sizeof descr))
        return header_fails(l, "'descr' is not a short string", err);
    if (descr[0] && strchr("<>|=", descr[0])) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            if (strcmp(descr + 1, types[i].name) != 0)
                continue;
            a->type = types[i].type;
            a->swapped = descr[0] == '>' && mha_dtype_get(a->type)->bytes > 1;
            if (descr[0] == '|' && mha_dtype_get(a->type)->bytes > 1)
                return header_fails(l, "'descr' has no byte order", err);
            return MHA_OK;
        }
    }
    if (strchr(descr, 'O'))
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: an array of pickled Python objects",
                        l->file);
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: elements of type '%s' are not supported",
                    l->file, descr);
}

static mha_status read_shape(literal *l, mha_npy *a, mha_err *err)
{
    if (!take(l, '('))
        return header_fails(l, "'shape' is not a tuple", err);
    while (!take(l, ')')) {
        if (a->rank == MHA_TENSOR_RANK_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d dimensions", l->file,
                            MHA_TENSOR_RANK_MAX);
        if (!take_number(l, &a->shape[a->rank]))
            return header_fails(l, "a dimension is not a whole number below 2^64", err);
        a->rank++;
        bool comma = take(l, ',');
        skip_spaces(l);
        bool closed = l->p < l->end && *l->p == ')';
        if (!comma && (!closed || a->rank == 1))
            return header_fails(l, "'shape' is not a tuple", err);
    }
    return MHA_OK;
}

static mha_status read_key(literal *l, mha_npy *a, mha_err *err)
{
    char key[DESCR_MAX];
    bool *seen = NULL;
    if (!take_string(l, key, sizeof key) || !take(l, ':'))
        return header_fails(l, "expected a key and a colon", err);
    if (strcmp(key, "descr") == 0)
        seen = &l->has_descr;
    else if (strcmp(key, "fortran_order") == 0)
        seen = &l->has_order;
    else if (strcmp(key, "shape") == 0)
        seen = &l->has_shape;
    if (!seen || *seen)
        return header_fails(l, seen ? "a key is there twice" : "an unknown key", err);
    *seen = true;
    if (seen == &l->has_descr)
        return read_descr(l, a, err);
    if (seen == &l->has_shape)
        return read_shape(l, a, err);
    a->fortran = take_word(l, "True");
    if (!a->fortran && !take_word(l, "False"))
        return header_fails(l, "'fortran_order' is neither True nor False", err);
    return MHA_OK;
}

static mha_status read_literal(literal *l, mha_npy *a, mha_err *err)
{
    if (!take(l, '{'))
        return header_fails(l, "not a dict", err);
    while (!take(l, '}')) {
        MHA_TRY(read_key(l, a, err));
        bool comma = take(l, ',');
        skip_spaces(l);
        if (!comma && (l->p == l->end || *l->p != '}'))
            return header_fails(l, "expected a comma or the end of the dict", err);
    }
    skip_spaces(l);
    if (l->p != l->end)
        return header_fails(l, "something stands behind the dict", err);
    if (!l->has_descr || !l->has_order || !l->has_shape)
        return header_fails(l, "'descr', 'fortran_order' or 'shape' is missing", err);
    return MHA_OK;
}

mha_status mha_npy_parse(mha_npy *out, const unsigned char *data, size_t size, const char *file,
                         mha_err *err)
{
    mha_cursor c = {.data = data, .size = size, .file = file};
    const unsigned char *magic = NULL, *text = NULL;
    uint8_t major = 0, minor = 0;
    uint16_t short_length = 0;
    uint32_t length = 0;
    mha_npy a = {0};
    MHA_TRY(mha_cursor_bytes(&c, &magic, 6, "magic", err));
    if (memcmp(magic, "\x93NUMPY", 6) != 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not an NPY file", file);
    MHA_TRY(mha_cursor_u8(&c, &major, "version", err));
    MHA_TRY(mha_cursor_u8(&c, &minor, "version", err));
    if (major < 1 || major > 3 || minor != 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: NPY version %u.%u", file, major, minor);
    if (major == 1)
        MHA_TRY(mha_cursor_u16(&c, &short_length, "header length", err));
    else
        MHA_TRY(mha_cursor_u32(&c, &length, "header length", err));
    length += short_length;
    if (length > HEADER_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: NPY header of %u bytes, at most %u", file, length,
                        HEADER_MAX);
    MHA_TRY(mha_cursor_bytes(&c, &text, length, "NPY header", err));
    literal l = {.p = (const char *)text, .end = (const char *)text + length, .file = file};
    MHA_TRY(read_literal(&l, &a, err));
    uint64_t bytes = 0;
    if (!mha_shape_count(a.shape, a.rank, &a.count) || !mha_dtype_size(a.type, a.count, &bytes) ||
        bytes > INT64_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: the size of the shape overflows", file);
    MHA_TRY(mha_cursor_bytes(&c, &a.data, bytes, "elements", err));
    if (mha_cursor_left(&c) > 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %zu bytes behind the elements", file,
                        mha_cursor_left(&c));
    *out = a;
    return MHA_OK;
}

/* -------------------------------------------------------------------------------- elements */

bool mha_npy_is_float(const mha_npy *a)
{
    return a->type < MHA_DTYPE_FLOAT_COUNT;
}

static uint64_t load_bits(const unsigned char *p, size_t n, bool swapped)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= (uint64_t)p[swapped ? n - 1 - i : i] << (8 * i);
    return bits;
}

/* IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction; exact in a double. */
static double half_value(uint64_t bits)
{
    uint64_t exponent = bits >> 10 & 31, fraction = bits & 1023, wide;
    double value;
    if (exponent == 0) { /* zero and subnormals: fraction · 2^-24 */
        value = (double)fraction * 0x1p-24;
    } else {
        wide = (exponent == 31 ? 2047 : exponent - 15 + 1023) << 52 | fraction << 42;
        memcpy(&value, &wide, sizeof value);
    }
    return bits >> 15 ? -value : value;
}

static double element_real(mha_dtype type, uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    float f;
    double d;
    switch (type) {
    case MHA_F16:
        return half_value(bits);
    case MHA_F32:
        memcpy(&f, &narrow, sizeof f);
        return (double)f;
    case MHA_F64:
        memcpy(&d, &bits, sizeof d);
        return d;
    case MHA_U64:
        return (double)bits;
    case MHA_I8:
        return (int8_t)bits;
    case MHA_I16:
        return (int16_t)bits;
    case MHA_I32:
        return (int32_t)bits;
    case MHA_BOOL:
        return bits != 0;
    default: /* I64 and the small unsigned types */
        return (double)(int64_t)bits;
    }
}

static int64_t element_int(mha_dtype type, uint64_t bits)
{
    switch (type) {
    case MHA_I8:
        return (int8_t)bits;
    case MHA_I16:
        return (int16_t)bits;
    case MHA_I32:
        return (int32_t)bits;
    case MHA_BOOL:
        return bits != 0;
    default:
        return (int64_t)bits;
    }
}

/* Walks the elements in C order: step gives the place of the next one in the file. */
typedef struct walk {
    const mha_npy *a;
    uint64_t index[MHA_TENSOR_RANK_MAX];
    uint64_t stride[MHA_TENSOR_RANK_MAX]; /* in elements */
    uint64_t at;
    size_t bytes;
} walk;

static void walk_init(walk *w, const mha_npy *a)
{
    *w = (walk){.a = a, .bytes = mha_dtype_get(a->type)->bytes};
    uint64_t stride = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t axis = a->fortran ? i : a->rank - 1 - i;
        w->stride[axis] = stride;
        stride *= a->shape[axis];
    }
}

static uint64_t walk_next(walk *w)
{
    const mha_npy *a = w->a;
    uint64_t bits = load_bits(a->data + w->at * w->bytes, w->bytes, a->swapped);
    for (uint32_t axis = a->rank; axis-- > 0;) {
        w->at += w->stride[axis];
        if (++w->index[axis] < a->shape[axis])
            break;
        w->at -= w->stride[axis] * a->shape[axis];
        w->index[axis] = 0;
    }
    return bits;
}

/* The file's bytes are the result's bytes. */
static bool is_plain(const mha_npy *a, mha_dtype type)
{
    return a->type == type && !a->swapped && (!a->fortran || a->rank < 2) && a->count > 0;
}

void mha_npy_f32(float *out, const mha_npy *a)
{
    walk w;
    if (is_plain(a, MHA_F32)) {
        memcpy(out, a->data, (size_t)a->count * sizeof *out);
        return;
    }
    walk_init(&w, a);
    for (uint64_t i = 0; i < a->count; i++)
        out[i] = (float)element_real(a->type, walk_next(&w));
}

void mha_npy_f64(double *out, const mha_npy *a)
{
    walk w;
    walk_init(&w, a);
    for (uint64_t i = 0; i < a->count; i++)
        out[i] = element_real(a->type, walk_next(&w));
}

mha_status mha_npy_i64(int64_t *out, const mha_npy *a, const char *file, mha_err *err)
{
    walk w;
    if (mha_npy_is_float(a))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: expected integers, found %s", file,
                        mha_dtype_get(a->type)->name);
    walk_init(&w, a);
    for (uint64_t i = 0; i < a->count; i++) {
        out[i] = element_int(a->type, walk_next(&w));
        if (a->type == MHA_U64 && out[i] < 0)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: element %llu is beyond int64", file,
                            (unsigned long long)i);
    }
    return MHA_OK;
}
