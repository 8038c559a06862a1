/* safetensors.c: the strict reader of safetensors. Every refusal names the file and the tensor.
 * It may not copy or convert tensor data. */
#include "io/safetensors.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "io/cursor.h"
#include "io/json.h"

#include <string.h>

/* Object, two arrays with up to MHA_TENSOR_RANK_MAX + 2 numbers, and the values between commas. */
#define VALUES_PER_TENSOR (3 * MHA_JSON_CONTAINER + MHA_TENSOR_RANK_MAX + 8)
#define VALUES_EXTRA      ((uint64_t)1 << 20) /* for __metadata__ */
#define HEADER_DEPTH      16                  /* the schema itself needs three levels */

typedef struct reader {
    const char *file;
    const unsigned char *data; /* the data section */
    uint64_t data_size;
    uint32_t file_index;
} reader;

/* Types of the format that are known but not readable here. */
static const char *const unsupported[] = {"F8_E5M2",     "F8_E4M3",     "F8_E8M0",
                                          "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4",
                                          "F6_E2M3",     "F6_E3M2",     "C64"};

/* The plain element types that the format spells as dtype.h does. */
static bool find_type(const char *name, mha_dtype *out)
{
    for (int t = 0; t < MHA_DTYPE_COUNT; t++) {
        const mha_dtype_info *info = mha_dtype_get((mha_dtype)t);
        if (info->block == 1 && strcmp(info->name, name) == 0) {
            *out = (mha_dtype)t;
            return true;
        }
    }
    return false;
}

static mha_status read_type(const reader *r, mha_tensor *t, const json_t *value, mha_err *err)
{
    const char *name = json_string_value(value);
    if (!name)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": dtype is not a string", r->file,
                        t->name);
    if (find_type(name, &t->type))
        return MHA_OK;
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        if (strcmp(unsupported[i], name) == 0)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: tensor \"%s\": elements of type %s are not supported", r->file,
                            t->name, name);
    }
    return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": unknown dtype \"%s\"", r->file,
                    t->name, name);
}

static mha_status read_shape(const reader *r, mha_tensor *t, const json_t *value, mha_err *err)
{
    if (!json_is_array(value))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": shape is not an array", r->file,
                        t->name);
    size_t rank = json_array_size(value);
    if (rank > MHA_TENSOR_RANK_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: tensor \"%s\": %zu dimensions, at most %d",
                        r->file, t->name, rank, MHA_TENSOR_RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: tensor \"%s\": dimension %zu is not a whole number from 0 up",
                            r->file, t->name, i);
        t->shape[i] = (uint64_t)json_integer_value(dim);
    }
    t->rank = (uint32_t)rank;
    uint64_t count = 0;
    if (!mha_shape_count(t->shape, t->rank, &count) || !mha_dtype_size(t->type, count, &t->bytes))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": the size of the shape overflows",
                        r->file, t->name);
    return MHA_OK;
}

static mha_status read_offsets(const reader *r, mha_tensor *t, const json_t *value, mha_err *err)
{
    const json_t *first = json_array_get(value, 0), *last = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last) ||
        json_integer_value(first) < 0 || json_integer_value(last) < 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": data_offsets are not two whole numbers from 0 up",
                        r->file, t->name);
    uint64_t begin = (uint64_t)json_integer_value(first);
    uint64_t end = (uint64_t)json_integer_value(last);
    if (end < begin)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": data_offsets end at %llu before they begin at %llu",
                        r->file, t->name, (unsigned long long)end, (unsigned long long)begin);
    if (end > r->data_size)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": data_offsets end at %llu, the data at %llu: the file "
                        "is cut short",
                        r->file, t->name, (unsigned long long)end,
                        (unsigned long long)r->data_size);
    if (end - begin != t->bytes)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": shape and dtype need %llu bytes, data_offsets give "
                        "%llu",
                        r->file, t->name, (unsigned long long)t->bytes,
                        (unsigned long long)(end - begin));
    t->data = r->data + begin;
    return MHA_OK;
}

static mha_status read_tensor(const reader *r, mha_tensor *t, const json_t *value, mha_err *err)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    if (!json_is_object(value))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": its entry is not an object",
                        r->file, t->name);
    for (size_t i = 0; i < 3; i++) {
        if (!json_object_get(value, keys[i]))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": %s is missing", r->file,
                            t->name, keys[i]);
    }
    if (json_object_size(value) != 3)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": keys beside dtype, shape and data_offsets", r->file,
                        t->name);
    MHA_TRY(read_type(r, t, json_object_get(value, "dtype"), err));
    MHA_TRY(read_shape(r, t, json_object_get(value, "shape"), err));
    MHA_TRY(read_offsets(r, t, json_object_get(value, "data_offsets"), err));
    t->file = r->file_index;
    return MHA_OK;
}

static mha_status check_metadata(const reader *r, json_t *metadata, mha_err *err)
{
    if (!json_is_object(metadata))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: __metadata__ is not an object", r->file);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: __metadata__: \"%s\" is not a string",
                            r->file, key);
    }
    return MHA_OK;
}

static int by_place(const void *a, const void *b)
{
    const mha_tensor *x = *(const mha_tensor *const *)a, *y = *(const mha_tensor *const *)b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty tensors first */
}

/* The tensors, sorted by place, must follow each other from the data's first byte to its last. */
static mha_status check_cover(const reader *r, const mha_tensor *tensors, size_t n, mha_err *err)
{
    const mha_tensor **sorted = NULL;
    MHA_TRY(mha_alloc((void **)&sorted, n, sizeof *sorted, err));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &tensors[i];
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, by_place);
    uint64_t end = 0;
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < n; i++) {
        uint64_t begin = (uint64_t)(sorted[i]->data - r->data);
        if (begin != end)
            status =
                mha_fail(err, MHA_ERR_FORMAT,
                         "%s: tensor \"%s\" begins at byte %llu of the data, %s byte %llu", r->file,
                         sorted[i]->name, (unsigned long long)begin,
                         begin > end ? "a gap after" : "an overlap up to", (unsigned long long)end);
        end = begin + sorted[i]->bytes;
    }
    if (status == MHA_OK && end != r->data_size)
        status = mha_fail(err, MHA_ERR_FORMAT,
                          "%s: the last tensor ends at byte %llu of the data, the file at %llu: "
                          "trailing bytes",
                          r->file, (unsigned long long)end, (unsigned long long)r->data_size);
    mha_free(sorted);
    return status;
}

static mha_status read_entries(const reader *r, mha_tensor_list *list, json_t *root, mha_err *err)
{
    mha_tensor *first = list->items + list->count;
    size_t n = 0;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "__metadata__") == 0) {
            MHA_TRY(check_metadata(r, value, err));
            continue;
        }
        size_t length = strlen(key);
        if (length == 0 || length > MHA_TENSOR_NAME_MAX)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: a tensor name of %zu bytes (1 to %d)",
                            r->file, length, MHA_TENSOR_NAME_MAX);
        mha_tensor *t = &first[n++];
        char *copy = NULL;
        *t = (mha_tensor){0};
        MHA_TRY(mha_arena_strdup(&copy, &list->names, key, err));
        t->name = copy;
        MHA_TRY(read_tensor(r, t, value, err));
    }
    MHA_TRY(check_cover(r, first, n, err));
    list->count += n;
    return MHA_OK;
}

/* Checks the header's frame and parses its JSON; r->data and data_size are set. */
static mha_status read_header(reader *r, json_t **root, const unsigned char *data, size_t size,
                              uint64_t max_header, uint64_t max_tensors, mha_err *err)
{
    mha_cursor c = {.data = data, .size = size, .file = r->file};
    uint64_t n = 0;
    const unsigned char *text = NULL;
    MHA_TRY(mha_cursor_u64(&c, &n, "header length", err));
    if (n > max_header)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: header of %llu bytes, at most %llu", r->file,
                        (unsigned long long)n, (unsigned long long)max_header);
    MHA_TRY(mha_cursor_bytes(&c, &text, n, "header", err));
    if (n == 0 || text[0] != '{')
        return mha_fail(err, MHA_ERR_FORMAT, "%s: the header does not begin with '{'", r->file);
    if (!mha_utf8_valid((const char *)text, (size_t)n))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: the header is not valid UTF-8", r->file);
    r->data = data + c.at;
    r->data_size = mha_cursor_left(&c);
    return mha_json_parse_bounded(root, (const char *)text, (size_t)n, r->file, HEADER_DEPTH,
                                  VALUES_EXTRA + max_tensors * VALUES_PER_TENSOR, err);
}

mha_status mha_safetensors_parse(mha_tensor_list *list, const unsigned char *data, size_t size,
                                 const char *file, uint32_t file_index, uint64_t max_header,
                                 uint64_t max_tensors, mha_err *err)
{
    reader r = {.file = file, .file_index = file_index};
    json_t *root = NULL;
    MHA_TRY(read_header(&r, &root, data, size, max_header, max_tensors, err));
    mha_status status = MHA_OK;
    size_t n = json_object_size(root);
    if (n > max_tensors + 1)
        status = mha_fail(err, MHA_ERR_LIMIT, "%s: %zu tensors, at most %llu", file, n,
                          (unsigned long long)max_tensors);
    if (status == MHA_OK)
        status = mha_tensor_list_reserve(list, n, err);
    if (status == MHA_OK)
        status = read_entries(&r, list, root, err);
    json_decref(root);
    return status;
}
