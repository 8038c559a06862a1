/* safetensors_write.c: declares tensors at the head of a safetensors file. The layout is described
 * in safetensors.h. It may not look at the tensors' bytes. */
#include "io/safetensors_write.h"

#include "base/buf.h"
#include "base/fail.h"
#include "io/safetensors.h"

#include <jansson.h>

#define ALIGNMENT 8

/* The entry of one tensor whose bytes are [begin, end); NULL when memory is out. */
static json_t *entry_json(const mha_tensor *t, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    json_t *entry = json_object();
    json_t *offsets = json_array();
    json_array_append_new(offsets, json_integer((json_int_t)begin));
    json_array_append_new(offsets, json_integer((json_int_t)end));
    bool bad = json_array_size(shape) != t->rank || json_array_size(offsets) != 2;
    bad |= json_object_set_new(entry, "dtype", json_string(mha_dtype_get(t->type)->name)) != 0;
    bad |= json_object_set_new(entry, "shape", shape) != 0;
    bad |= json_object_set_new(entry, "data_offsets", offsets) != 0;
    if (!bad)
        return entry;
    json_decref(entry);
    return NULL;
}

static mha_status add_tensor(json_t *root, const mha_tensor *t, uint64_t *at, mha_err *err)
{
    uint64_t count = 0, bytes = 0, end = 0;
    if (mha_dtype_get(t->type)->block != 1)
        return mha_fail(err, MHA_ERR_ARG, "tensor %s: safetensors has no type %s", t->name,
                        mha_dtype_get(t->type)->name);
    if (!mha_shape_count(t->shape, t->rank, &count) || !mha_dtype_size(t->type, count, &bytes) ||
        __builtin_add_overflow(*at, bytes, &end) || end > INT64_MAX)
        return mha_fail(err, MHA_ERR_ARG, "tensor %s: the size of the shape overflows", t->name);
    if (json_object_get(root, t->name))
        return mha_fail(err, MHA_ERR_ARG, "tensor %s: declared twice", t->name);
    if (json_object_set_new(root, t->name, entry_json(t, *at, end)) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "tensor %s: out of memory, or no UTF-8", t->name);
    *at = end;
    return MHA_OK;
}

static int add_text(const char *text, size_t n, void *buf)
{
    return mha_buf_add(buf, text, n, NULL) == MHA_OK ? 0 : -1;
}

static mha_status write_text(mha_outfile *f, const json_t *root, mha_err *err)
{
    static const char spaces[ALIGNMENT] = "        ";
    mha_buf text;
    mha_buf_init(&text, MHA_SAFETENSORS_HEADER_MAX);
    if (json_dump_callback(root, add_text, &text, JSON_COMPACT) != 0) {
        mha_buf_release(&text);
        return mha_fail(err, MHA_ERR_LIMIT, "%s: the header is too large", f->path);
    }
    size_t pad = (ALIGNMENT - text.size % ALIGNMENT) % ALIGNMENT;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((text.size + pad) >> (8 * i));
    mha_status status = mha_outfile_write(f, length, sizeof length, err);
    if (status == MHA_OK)
        status = mha_outfile_write(f, text.data, text.size, err);
    if (status == MHA_OK)
        status = mha_outfile_write(f, spaces, pad, err);
    mha_buf_release(&text);
    return status;
}

mha_status mha_safetensors_write_header(mha_outfile *f, const mha_tensor *tensors, size_t n,
                                        const char *format, mha_err *err)
{
    json_t *root = json_object();
    uint64_t at = 0;
    mha_status status = root ? MHA_OK : mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", f->path);
    if (status == MHA_OK && format &&
        json_object_set_new(root, "__metadata__", json_pack("{s:s}", "format", format)) != 0)
        status = mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", f->path);
    for (size_t i = 0; i < n && status == MHA_OK; i++)
        status = add_tensor(root, &tensors[i], &at, err);
    if (status == MHA_OK)
        status = write_text(f, root, err);
    json_decref(root);
    return status;
}
