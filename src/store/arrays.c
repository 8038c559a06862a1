/* arrays.c: named arrays into NPZ, NPY or safetensors, whichever was asked for. It keeps the list
 * of what was declared and what is still missing; how the bytes lie in a file is io's business. */
#include "mha/table.h"

#include "base/fail.h"
#include "base/map.h"
#include "base/outfile.h"
#include "io/npz_write.h"
#include "io/safetensors_write.h"

#include <assert.h>
#include <string.h>

#define NPY_HEADER_MAX ((size_t)64 << 10)

struct mha_arrays {
    mha_format format;
    mha_outfile file;
    char *path;           /* for messages */
    mha_tensor_list list; /* what was declared */
    mha_map names;        /* of the list's tensors */
    mha_npz_writer npz;   /* used for NPZ only */
    bool started;         /* nothing can be declared any more */
    size_t current;       /* array that is being written */
    uint64_t left;        /* bytes that it still needs */
};

static const mha_dtype stored_types[] = {
    [MHA_ARRAY_F32] = MHA_F32, [MHA_ARRAY_I64] = MHA_I64, [MHA_ARRAY_F64] = MHA_F64};

static void arrays_free(mha_arrays *a)
{
    mha_outfile_abort(&a->file);
    mha_npz_writer_release(&a->npz);
    mha_map_release(&a->names);
    mha_tensor_list_release(&a->list);
    mha_free(a->path);
    mha_free(a);
}

static mha_status format_check(mha_format *format, const char *path, mha_err *err)
{
    if (*format == MHA_FORMAT_AUTO)
        *format = mha_format_of_path(path);
    if (*format == MHA_FORMAT_AUTO)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s: the suffix names no format: expected .npz, .npy or .safetensors",
                        path);
    if (*format != MHA_FORMAT_NPZ && *format != MHA_FORMAT_NPY && *format != MHA_FORMAT_SAFETENSORS)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s: arrays are written as npz, npy or safetensors, not as %s", path,
                        mha_format_name(*format));
    return MHA_OK;
}

mha_status mha_arrays_open(mha_arrays **out, const char *path, mha_format format, bool force,
                           mha_err *err)
{
    void *p = NULL;
    MHA_TRY(format_check(&format, path, err));
    MHA_TRY(mha_alloc(&p, 1, sizeof **out, err));
    mha_arrays *a = p;
    a->format = format;
    mha_map_init(&a->names);
    mha_status status = mha_strdup(&a->path, path, err);
    if (status == MHA_OK)
        status = mha_outfile_open(&a->file, path, force, err);
    if (status != MHA_OK) {
        arrays_free(a);
        return status;
    }
    if (format == MHA_FORMAT_NPZ)
        mha_npz_writer_init(&a->npz, &a->file);
    *out = a;
    return MHA_OK;
}

void mha_arrays_abort(mha_arrays *a)
{
    if (a)
        arrays_free(a);
}

mha_status mha_arrays_declare(mha_arrays *a, const char *name, mha_array_type type,
                              const size_t *shape, size_t dims, mha_err *err)
{
    uint64_t elements;
    char *copy = NULL;
    assert(dims <= MHA_TENSOR_RANK_MAX && !a->started);
    if (a->format == MHA_FORMAT_NPY && a->list.count == 1)
        return mha_fail(err, MHA_ERR_ARG, "%s: npy holds one array, and there are more: %s and %s",
                        a->path, a->list.items[0].name, name);
    if (mha_map_get(&a->names, name, strlen(name), NULL))
        return mha_fail(err, MHA_ERR_ARG, "%s: %s comes twice", a->path, name);
    MHA_TRY(mha_tensor_list_reserve(&a->list, 1, err));
    mha_tensor *t = &a->list.items[a->list.count];
    *t = (mha_tensor){.type = stored_types[type], .rank = (uint32_t)dims};
    for (size_t i = 0; i < dims; i++)
        t->shape[i] = shape[i];
    if (!mha_shape_count(t->shape, t->rank, &elements) ||
        !mha_dtype_size(t->type, elements, &t->bytes))
        return mha_fail(err, MHA_ERR_LIMIT, "%s: %s is too large", a->path, name);
    MHA_TRY(mha_arena_strdup(&copy, &a->list.names, name, err));
    t->name = copy;
    MHA_TRY(mha_map_set(&a->names, copy, strlen(copy), a->list.count, NULL, err));
    a->list.count++;
    return MHA_OK;
}

static mha_status array_begin(mha_arrays *a, mha_err *err)
{
    const mha_tensor *t = &a->list.items[a->current];
    mha_buf header;
    a->left = t->bytes;
    if (a->format == MHA_FORMAT_NPZ)
        return mha_npz_writer_begin(&a->npz, t->name, t->type, t->shape, t->rank, err);
    if (a->format != MHA_FORMAT_NPY)
        return MHA_OK;
    mha_buf_init(&header, NPY_HEADER_MAX);
    mha_status status = mha_npy_header(&header, t->type, t->shape, t->rank, err);
    if (status == MHA_OK)
        status = mha_outfile_write(&a->file, header.data, header.size, err);
    mha_buf_release(&header);
    return status;
}

/* Goes on to the array that has the next element; past the last one when there is none. */
static mha_status advance(mha_arrays *a, mha_err *err)
{
    if (!a->started) {
        a->started = true;
        if (a->format == MHA_FORMAT_SAFETENSORS)
            MHA_TRY(
                mha_safetensors_write_header(&a->file, a->list.items, a->list.count, NULL, err));
        if (a->list.count > 0)
            MHA_TRY(array_begin(a, err));
    }
    while (a->current < a->list.count && a->left == 0)
        if (++a->current < a->list.count)
            MHA_TRY(array_begin(a, err));
    return MHA_OK;
}

mha_status mha_arrays_write(mha_arrays *a, const void *elements, size_t n, mha_err *err)
{
    if (n == 0)
        return MHA_OK;
    MHA_TRY(advance(a, err));
    assert(a->current < a->list.count);
    const mha_tensor *t = &a->list.items[a->current];
    size_t size = mha_dtype_get(t->type)->bytes;
    assert(n <= a->left / size);
    a->left -= (uint64_t)n * size;
    return a->format == MHA_FORMAT_NPZ ? mha_npz_writer_add(&a->npz, elements, n * size, err)
                                       : mha_outfile_write(&a->file, elements, n * size, err);
}

static mha_status arrays_finish(mha_arrays *a, mha_err *err)
{
    MHA_TRY(advance(a, err));
    if (a->current < a->list.count)
        return mha_fail(err, MHA_ERR_ARG, "%s: %s lacks %llu bytes", a->path,
                        a->list.items[a->current].name, (unsigned long long)a->left);
    if (a->format == MHA_FORMAT_NPY && a->list.count == 0)
        return mha_fail(err, MHA_ERR_ARG, "%s: npy holds one array, and there is none", a->path);
    if (a->format == MHA_FORMAT_NPZ)
        MHA_TRY(mha_npz_writer_finish(&a->npz, err));
    return mha_outfile_commit(&a->file, err);
}

mha_status mha_arrays_commit(mha_arrays *a, mha_err *err)
{
    mha_status status = arrays_finish(a, err);
    arrays_free(a);
    return status;
}
