/* gguf.c: the strict reader of GGUF headers. Every length is checked against what is left of the
 * file before it is used; every refusal names the file and the key or tensor. It may not copy or
 * decode tensor data. The layout is described in gguf.h. */
#include "io/gguf.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "io/cursor.h"
#include "io/gguf_private.h"

#include <string.h>

#define KEY_MAX           65535
#define TENSOR_NAME_MAX   63
#define TENSOR_DIMS_MAX   4
#define ALIGNMENT_DEFAULT 32

/* The fewest bytes that one metadata pair and one tensor info take in the file. */
#define PAIR_BYTES_MIN 14
#define INFO_BYTES_MIN 33

typedef struct reader {
    mha_cursor c;
    mha_gguf *g;
    mha_tensor_list *list;
    uint32_t file_index;
    uint64_t tensor_count, alignment;
    mha_map names;
} reader;

/* Tensor types by their number in the file; those without `known` are refused by name. */
typedef struct type_info {
    const char *name;
    bool known;
    mha_dtype type;
} type_info;

static const type_info types[] = {
    [0] = {"F32", true, MHA_F32},
    [1] = {"F16", true, MHA_F16},
    [2] = {"Q4_0", true, MHA_Q4_0},
    [3] = {"Q4_1", true, MHA_Q4_1},
    [4] = {"Q4_2", false, 0},
    [5] = {"Q4_3", false, 0},
    [6] = {"Q5_0", true, MHA_Q5_0},
    [7] = {"Q5_1", true, MHA_Q5_1},
    [8] = {"Q8_0", true, MHA_Q8_0},
    [9] = {"Q8_1", false, 0},
    [10] = {"Q2_K", true, MHA_Q2_K},
    [11] = {"Q3_K", true, MHA_Q3_K},
    [12] = {"Q4_K", true, MHA_Q4_K},
    [13] = {"Q5_K", true, MHA_Q5_K},
    [14] = {"Q6_K", true, MHA_Q6_K},
    [15] = {"Q8_K", false, 0},
    [16] = {"IQ2_XXS", false, 0},
    [17] = {"IQ2_XS", false, 0},
    [18] = {"IQ3_XXS", false, 0},
    [19] = {"IQ1_S", false, 0},
    [20] = {"IQ4_NL", true, MHA_IQ4_NL},
    [21] = {"IQ3_S", false, 0},
    [22] = {"IQ2_S", false, 0},
    [23] = {"IQ4_XS", false, 0},
    [24] = {"I8", true, MHA_I8},
    [25] = {"I16", true, MHA_I16},
    [26] = {"I32", true, MHA_I32},
    [27] = {"I64", true, MHA_I64},
    [28] = {"F64", true, MHA_F64},
    [29] = {"IQ1_M", false, 0},
    [30] = {"BF16", true, MHA_BF16},
    [34] = {"TQ1_0", false, 0},
    [35] = {"TQ2_0", false, 0},
    [39] = {"MXFP4", false, 0},
    [40] = {"NVFP4", false, 0},
    [41] = {"Q1_0", false, 0},
};

/* ------------------------------------------------------------------------------ metadata */

static mha_status read_string(reader *r, mha_gguf_string *out, const char *what, mha_err *err)
{
    uint64_t n = 0;
    const unsigned char *bytes = NULL;
    MHA_TRY(mha_cursor_u64(&r->c, &n, what, err));
    MHA_TRY(mha_cursor_bytes(&r->c, &bytes, n, what, err));
    *out = (mha_gguf_string){.s = (const char *)bytes, .n = (size_t)n};
    return MHA_OK;
}

/* Keys and names: not empty, not long, valid UTF-8 without NUL. */
static mha_status read_name(reader *r, mha_gguf_string *out, size_t max, const char *what,
                            mha_err *err)
{
    size_t at = r->c.at;
    MHA_TRY(read_string(r, out, what, err));
    if (out->n == 0 || out->n > max)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: %s of %zu bytes (1 to %zu)",
                        r->c.file, at, what, out->n, max);
    if (!mha_utf8_valid(out->s, out->n) || memchr(out->s, 0, out->n))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: at byte %zu: %s is not valid UTF-8 text",
                        r->c.file, at, what);
    return MHA_OK;
}

static mha_status read_kind(reader *r, mha_gguf_kind *out, const char *key, mha_err *err)
{
    uint32_t kind = 0;
    MHA_TRY(mha_cursor_u32(&r->c, &kind, key, err));
    if (kind > MHA_GGUF_F64)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: unknown value type %u", r->c.file, key, kind);
    *out = (mha_gguf_kind)kind;
    return MHA_OK;
}

static mha_status check_bools(const reader *r, const mha_gguf_entry *e, uint64_t n, const char *key,
                              mha_err *err)
{
    for (uint64_t i = 0; i < n; i++) {
        if (e->value[i] > 1)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: a bool of value %u", r->c.file, key,
                            e->value[i]);
    }
    return MHA_OK;
}

static mha_status read_array(reader *r, mha_gguf_entry *e, const char *key, mha_err *err)
{
    MHA_TRY(read_kind(r, &e->element, key, err));
    MHA_TRY(mha_cursor_u64(&r->c, &e->count, key, err));
    if (e->element == MHA_GGUF_ARRAY)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: an array of arrays", r->c.file, key);
    size_t size = mha_gguf_kind_size(e->element);
    size_t least = size ? size : sizeof(uint64_t);
    if (e->count > mha_cursor_left(&r->c) / least)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: an array of %llu elements, %zu bytes left",
                        r->c.file, key, (unsigned long long)e->count, mha_cursor_left(&r->c));
    if (size > 0) {
        MHA_TRY(mha_cursor_bytes(&r->c, &e->value, e->count * size, key, err));
        return e->element == MHA_GGUF_BOOL ? check_bools(r, e, e->count, key, err) : MHA_OK;
    }
    MHA_TRY(mha_cursor_bytes(&r->c, &e->value, 0, key, err));
    for (uint64_t i = 0; i < e->count; i++) {
        mha_gguf_string skipped;
        MHA_TRY(read_string(r, &skipped, key, err));
    }
    return MHA_OK;
}

static mha_status read_value(reader *r, mha_gguf_entry *e, const char *key, mha_err *err)
{
    if (e->kind == MHA_GGUF_ARRAY)
        return read_array(r, e, key, err);
    if (e->kind == MHA_GGUF_STRING) {
        mha_gguf_string s;
        MHA_TRY(read_string(r, &s, key, err));
        e->value = (const unsigned char *)s.s;
        e->count = s.n;
        return MHA_OK;
    }
    e->count = 1;
    MHA_TRY(mha_cursor_bytes(&r->c, &e->value, mha_gguf_kind_size(e->kind), key, err));
    return e->kind == MHA_GGUF_BOOL ? check_bools(r, e, 1, key, err) : MHA_OK;
}

/* A NUL-terminated copy for messages, cut when it is long. */
static void print_name(char *out, size_t cap, mha_gguf_string s)
{
    size_t n = s.n < cap - 1 ? s.n : cap - 1;
    memcpy(out, s.s, n);
    out[n] = '\0';
}

static mha_status read_pair(reader *r, mha_gguf_entry *e, mha_err *err)
{
    char key[128];
    bool replaced = false;
    MHA_TRY(read_name(r, &e->key, KEY_MAX, "metadata key", err));
    print_name(key, sizeof key, e->key);
    MHA_TRY(read_kind(r, &e->kind, key, err));
    MHA_TRY(read_value(r, e, key, err));
    e->bytes = (size_t)(r->c.data + r->c.at - e->value);
    MHA_TRY(mha_map_set(&r->g->by_key, e->key.s, e->key.n, r->g->entry_count, &replaced, err));
    if (replaced)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: metadata key \"%s\" is there twice", r->c.file,
                        key);
    return MHA_OK;
}

static mha_status read_metadata(reader *r, uint64_t n, mha_err *err)
{
    if (n > mha_cursor_left(&r->c) / PAIR_BYTES_MIN)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %llu metadata pairs do not fit into the file",
                        r->c.file, (unsigned long long)n);
    MHA_TRY(mha_alloc((void **)&r->g->entries, (size_t)n, sizeof *r->g->entries, err));
    MHA_TRY(mha_map_reserve(&r->g->by_key, (size_t)n, err));
    for (; r->g->entry_count < n; r->g->entry_count++)
        MHA_TRY(read_pair(r, &r->g->entries[r->g->entry_count], err));
    return MHA_OK;
}

/* ------------------------------------------------------------------- keys with a meaning */

static mha_status read_alignment(reader *r, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(r->g, "general.alignment");
    int64_t value = ALIGNMENT_DEFAULT;
    if (e && e->kind != MHA_GGUF_U32)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: general.alignment: expected u32, found %s",
                        r->c.file, mha_gguf_kind_name(e->kind));
    if (e)
        mha_gguf_scalar_int(e->kind, e->value, &value);
    if (value < 8 || (value & (value - 1)) != 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: general.alignment: %lld is not a power of two from 8 up", r->c.file,
                        (long long)value);
    r->alignment = (uint64_t)value;
    return MHA_OK;
}

/* An array that must have the given element kind and, unless count is UINT64_MAX, length. */
static mha_status check_array(const reader *r, const char *key, mha_gguf_kind kind,
                              mha_gguf_kind other, uint64_t count, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(r->g, key);
    if (!e)
        return MHA_OK;
    if (e->kind != MHA_GGUF_ARRAY)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: expected an array of %s, found %s", r->c.file,
                        key, mha_gguf_kind_name(kind), mha_gguf_kind_name(e->kind));
    if (e->element != kind && e->element != other)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: expected an array of %s, found one of %s",
                        r->c.file, key, mha_gguf_kind_name(kind), mha_gguf_kind_name(e->element));
    if (count != UINT64_MAX && e->count != count)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s has %llu elements, tokenizer.ggml.tokens %llu",
                        r->c.file, key, (unsigned long long)e->count, (unsigned long long)count);
    return MHA_OK;
}

static mha_status check_tokenizer(const reader *r, mha_err *err)
{
    MHA_TRY(
        check_array(r, "tokenizer.ggml.tokens", MHA_GGUF_STRING, MHA_GGUF_STRING, UINT64_MAX, err));
    MHA_TRY(
        check_array(r, "tokenizer.ggml.merges", MHA_GGUF_STRING, MHA_GGUF_STRING, UINT64_MAX, err));
    const mha_gguf_entry *tokens = mha_gguf_find(r->g, "tokenizer.ggml.tokens");
    uint64_t count = tokens ? tokens->count : 0;
    MHA_TRY(check_array(r, "tokenizer.ggml.scores", MHA_GGUF_F32, MHA_GGUF_F32, count, err));
    return check_array(r, "tokenizer.ggml.token_type", MHA_GGUF_I32, MHA_GGUF_U32, count, err);
}

/* ------------------------------------------------------------------------------- tensors */

static mha_status read_type(reader *r, mha_tensor *t, mha_err *err)
{
    uint32_t id = 0;
    MHA_TRY(mha_cursor_u32(&r->c, &id, t->name, err));
    if (id >= sizeof types / sizeof *types || !types[id].name)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: tensor \"%s\": unknown type %u", r->c.file,
                        t->name, id);
    if (!types[id].known)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor \"%s\": elements of type %s are not supported", r->c.file,
                        t->name, types[id].name);
    t->type = types[id].type;
    return MHA_OK;
}

/* Row-major shape: the file's first axis is the fastest one. */
static mha_status read_dims(reader *r, mha_tensor *t, mha_err *err)
{
    MHA_TRY(mha_cursor_u32(&r->c, &t->rank, t->name, err));
    if (t->rank == 0 || t->rank > TENSOR_DIMS_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": %u dimensions (1 to %d)",
                        r->c.file, t->name, t->rank, TENSOR_DIMS_MAX);
    for (uint32_t i = t->rank; i-- > 0;)
        MHA_TRY(mha_cursor_u64(&r->c, &t->shape[i], t->name, err));
    return MHA_OK;
}

static mha_status check_size(const reader *r, mha_tensor *t, mha_err *err)
{
    uint64_t row = t->shape[t->rank - 1], count = 0, block = mha_dtype_get(t->type)->block;
    if (row % block != 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": rows of %llu elements are not whole %s blocks of %llu",
                        r->c.file, t->name, (unsigned long long)row, mha_dtype_get(t->type)->name,
                        (unsigned long long)block);
    if (!mha_shape_count(t->shape, t->rank, &count) || count > INT64_MAX ||
        !mha_dtype_size(t->type, count, &t->bytes) || t->bytes > INT64_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": the size of the shape overflows",
                        r->c.file, t->name);
    return MHA_OK;
}

/* *offset is where this tensor must begin, and becomes where the next one must. */
static mha_status read_info(reader *r, mha_tensor *t, uint64_t *offset, mha_err *err)
{
    mha_gguf_string name;
    char *copy = NULL;
    uint64_t at = 0;
    bool replaced = false;
    *t = (mha_tensor){.file = r->file_index};
    MHA_TRY(read_name(r, &name, TENSOR_NAME_MAX, "tensor name", err));
    MHA_TRY(mha_arena_strndup(&copy, &r->list->names, name.s, name.n, err));
    t->name = copy;
    MHA_TRY(mha_map_set(&r->names, name.s, name.n, 0, &replaced, err));
    if (replaced)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\" is there twice", r->c.file,
                        t->name);
    MHA_TRY(read_dims(r, t, err));
    MHA_TRY(read_type(r, t, err));
    MHA_TRY(check_size(r, t, err));
    MHA_TRY(mha_cursor_u64(&r->c, &at, t->name, err));
    if (at != *offset)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\" begins at byte %llu of the data, expected %llu",
                        r->c.file, t->name, (unsigned long long)at, (unsigned long long)*offset);
    if (at > r->c.size || t->bytes > r->c.size - at)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\" of %llu bytes at byte %llu of the data: the file is cut "
                        "short",
                        r->c.file, t->name, (unsigned long long)t->bytes, (unsigned long long)at);
    *offset = (at + t->bytes + r->alignment - 1) & ~(r->alignment - 1);
    return MHA_OK;
}

/* Sets the data pointers once the place of the data section is known. */
static mha_status place_tensors(reader *r, mha_tensor *first, size_t n, mha_err *err)
{
    uint64_t start = (r->c.at + r->alignment - 1) & ~(r->alignment - 1);
    uint64_t end = n == 0 ? r->c.at : start, offset = start;
    for (size_t i = 0; i < n; i++) {
        mha_tensor *t = &first[i];
        if (offset > r->c.size || t->bytes > r->c.size - offset)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: tensor \"%s\" needs %llu bytes at byte %llu: the file is cut "
                            "short",
                            r->c.file, t->name, (unsigned long long)t->bytes,
                            (unsigned long long)offset);
        t->data = r->c.data + offset;
        end = offset + t->bytes;
        offset = (end + r->alignment - 1) & ~(r->alignment - 1);
    }
    if (r->c.size > ((end + r->alignment - 1) & ~(r->alignment - 1)))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: the last tensor ends at byte %llu, the file at "
                        "%zu: trailing bytes",
                        r->c.file, (unsigned long long)end, r->c.size);
    return MHA_OK;
}

static mha_status read_tensors(reader *r, mha_err *err)
{
    size_t n = (size_t)r->tensor_count;
    MHA_TRY(mha_tensor_list_reserve(r->list, n, err));
    MHA_TRY(mha_map_reserve(&r->names, n, err));
    mha_tensor *first = r->list->items + r->list->count;
    uint64_t offset = 0;
    for (size_t i = 0; i < n; i++)
        MHA_TRY(read_info(r, &first[i], &offset, err));
    MHA_TRY(place_tensors(r, first, n, err));
    r->list->count += n;
    return MHA_OK;
}

/* -------------------------------------------------------------------------------- header */

static mha_status read_version(reader *r, mha_err *err)
{
    const unsigned char *magic = NULL;
    uint32_t version = 0;
    MHA_TRY(mha_cursor_bytes(&r->c, &magic, 4, "magic", err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: not a GGUF file: it begins with %02x %02x %02x "
                        "%02x",
                        r->c.file, magic[0], magic[1], magic[2], magic[3]);
    MHA_TRY(mha_cursor_u32(&r->c, &version, "version", err));
    if (version != 0 && (version & 0xffff) == 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: a big-endian GGUF file", r->c.file);
    if (version != 2 && version != 3)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: GGUF version %u; 2 and 3 are supported",
                        r->c.file, version);
    return MHA_OK;
}

static mha_status read_file(reader *r, uint64_t max_tensors, mha_err *err)
{
    uint64_t pairs = 0;
    MHA_TRY(mha_strdup(&r->g->file, r->c.file, err));
    MHA_TRY(read_version(r, err));
    MHA_TRY(mha_cursor_u64(&r->c, &r->tensor_count, "tensor count", err));
    MHA_TRY(mha_cursor_u64(&r->c, &pairs, "metadata count", err));
    if (r->tensor_count > max_tensors)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: %llu tensors, at most %llu", r->c.file,
                        (unsigned long long)r->tensor_count, (unsigned long long)max_tensors);
    if (r->tensor_count > mha_cursor_left(&r->c) / INFO_BYTES_MIN)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %llu tensors do not fit into the file", r->c.file,
                        (unsigned long long)r->tensor_count);
    MHA_TRY(read_metadata(r, pairs, err));
    MHA_TRY(read_alignment(r, err));
    MHA_TRY(check_tokenizer(r, err));
    return read_tensors(r, err);
}

mha_status mha_gguf_parse(mha_gguf **out, mha_tensor_list *list, const unsigned char *data,
                          size_t size, const char *file, uint32_t file_index, uint64_t max_tensors,
                          mha_err *err)
{
    reader r = {
        .c = {.data = data, .size = size, .file = file}, .list = list, .file_index = file_index};
    MHA_TRY(mha_alloc((void **)&r.g, 1, sizeof *r.g, err));
    mha_map_init(&r.g->by_key);
    mha_map_init(&r.names);
    mha_status status = read_file(&r, max_tensors, err);
    mha_map_release(&r.names);
    if (status != MHA_OK) {
        mha_gguf_free(r.g);
        return status;
    }
    *out = r.g;
    return MHA_OK;
}

void mha_gguf_free(mha_gguf *g)
{
    if (!g)
        return;
    mha_map_release(&g->by_key);
    mha_free(g->entries);
    mha_free(g->file);
    mha_free(g);
}
