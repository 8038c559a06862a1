/* arrays.c: files of named arrays. The formats are io's; here they are one sequence of declarations
 * and elements. It may not hold elements back: what is written goes to the file at once. */
#include "mha/table.h"

#include "base/fail.h"
#include "base/map.h"
#include "io/npz_write.h"
#include "io/safetensors_write.h"

#include <string.h>

#define NPY_HEADER_MAX 4096

struct mha_arrays {
    mha_outfile file;
    mha_format format;
    mha_tensor *items; /* [count], as declared */
    size_t count, capacity;
    mha_map names;
    mha_arena arena;
    bool started;  /* nothing more can be declared */
    size_t begun;  /* arrays whose elements have begun */
    uint64_t left; /* elements that the last of them lacks */
    mha_npz_writer npz;
};

static mha_dtype stored_type(mha_array_type type)
{
    static const mha_dtype types[] = {
        [MHA_ARRAY_F32] = MHA_F32, [MHA_ARRAY_I64] = MHA_I64, [MHA_ARRAY_F64] = MHA_F64};
    return types[type];
}

static void arrays_free(mha_arrays *a)
{
    mha_npz_writer_release(&a->npz);
    mha_map_release(&a->names);
    mha_arena_release(&a->arena);
    mha_free(a->items);
    mha_free(a);
}

mha_status mha_arrays_open(mha_arrays **out, const char *path, mha_format format, bool force,
                           mha_err *err)
{
    mha_arrays *a = NULL;
    if (format == MHA_FORMAT_AUTO)
        format = strcmp(path, "-") == 0 ? MHA_FORMAT_NPZ : mha_format_of_path(path);
    if (format != MHA_FORMAT_NPZ && format != MHA_FORMAT_NPY && format != MHA_FORMAT_SAFETENSORS)
        return mha_fail(err, MHA_ERR_ARG, "%s: arrays go to npz, npy or safetensors, not %s", path,
                        mha_format_name(format));
    MHA_TRY(mha_alloc((void **)&a, 1, sizeof *a, err));
    a->format = format;
    mha_map_init(&a->names);
    mha_status status = mha_outfile_open(&a->file, path, force, err);
    if (status != MHA_OK) {
        arrays_free(a);
        return status;
    }
    mha_npz_writer_init(&a->npz, &a->file);
    *out = a;
    return MHA_OK;
}

mha_status mha_arrays_declare(mha_arrays *a, const char *name, mha_array_type type,
                              const size_t *shape, size_t dims, mha_err *err)
{
    bool replaced = false;
    char *copy = NULL;
    if (a->started)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s is declared after the first element",
                        a->file.path, name);
    if (a->format == MHA_FORMAT_NPY && a->count == 1)
        return mha_fail(err, MHA_ERR_ARG, "%s: .npy takes one array only; %s is the second",
                        a->file.path, name);
    if (dims > MHA_TENSOR_RANK_MAX)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s of %zu dimensions, at most %d",
                        a->file.path, name, dims, MHA_TENSOR_RANK_MAX);
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? 2 * a->capacity : 16;
        MHA_TRY(mha_grow((void **)&a->items, a->capacity, capacity, sizeof *a->items, err));
        a->capacity = capacity;
    }
    MHA_TRY(mha_arena_strdup(&copy, &a->arena, name, err));
    MHA_TRY(mha_map_set(&a->names, copy, strlen(copy), a->count, &replaced, err));
    if (replaced)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s is declared twice", a->file.path, name);
    mha_tensor t = {.name = copy, .type = stored_type(type), .rank = (uint32_t)dims};
    for (size_t i = 0; i < dims; i++)
        t.shape[i] = shape[i];
    uint64_t elements = 0;
    if (!mha_shape_count(t.shape, t.rank, &elements) || !mha_dtype_size(t.type, elements, &t.bytes))
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s: the size of the shape overflows",
                        a->file.path, name);
    a->items[a->count++] = t;
    return MHA_OK;
}

static mha_status write_npy_header(mha_arrays *a, mha_err *err)
{
    if (a->count != 1)
        return mha_fail(err, MHA_ERR_ARG, "%s: .npy needs an array", a->file.path);
    mha_buf header;
    mha_buf_init(&header, NPY_HEADER_MAX);
    const mha_tensor *t = &a->items[0];
    mha_status status = mha_npy_header(&header, t->type, t->shape, t->rank, err);
    if (status == MHA_OK)
        status = mha_outfile_write(&a->file, header.data, header.size, err);
    mha_buf_release(&header);
    return status;
}

static mha_status start(mha_arrays *a, mha_err *err)
{
    if (a->started)
        return MHA_OK;
    a->started = true;
    if (a->format == MHA_FORMAT_NPY)
        return write_npy_header(a, err);
    if (a->format == MHA_FORMAT_SAFETENSORS)
        return mha_safetensors_write_header(&a->file, a->items, a->count, NULL, err);
    return MHA_OK;
}

/* Goes on to the next array that takes elements. */
static mha_status advance(mha_arrays *a, mha_err *err)
{
    MHA_TRY(start(a, err));
    while (a->left == 0 && a->begun < a->count) {
        const mha_tensor *t = &a->items[a->begun++];
        mha_shape_count(t->shape, t->rank, &a->left);
        if (a->format == MHA_FORMAT_NPZ)
            MHA_TRY(mha_npz_writer_begin(&a->npz, t->name, t->type, t->shape, t->rank, err));
    }
    return MHA_OK;
}

mha_status mha_arrays_write(mha_arrays *a, const void *elements, size_t n, mha_err *err)
{
    if (n == 0)
        return MHA_OK;
    MHA_TRY(advance(a, err));
    if (n > a->left)
        return mha_fail(err, MHA_ERR_ARG, "%s: %zu elements for an array that lacks %llu",
                        a->file.path, n, (unsigned long long)a->left);
    a->left -= n;
    size_t bytes = n * mha_dtype_get(a->items[a->begun - 1].type)->bytes;
    if (a->format == MHA_FORMAT_NPZ)
        return mha_npz_writer_add(&a->npz, elements, bytes, err);
    return mha_outfile_write(&a->file, elements, bytes, err);
}

static mha_status finish(mha_arrays *a, mha_err *err)
{
    MHA_TRY(advance(a, err));
    if (a->left > 0)
        return mha_fail(err, MHA_ERR_ARG, "%s: array %s lacks %llu elements", a->file.path,
                        a->items[a->begun - 1].name, (unsigned long long)a->left);
    return a->format == MHA_FORMAT_NPZ ? mha_npz_writer_finish(&a->npz, err) : MHA_OK;
}

mha_status mha_arrays_commit(mha_arrays *a, mha_err *err)
{
    mha_status status = finish(a, err);
    if (status == MHA_OK)
        status = mha_outfile_commit(&a->file, err);
    else
        mha_outfile_abort(&a->file);
    arrays_free(a);
    return status;
}

void mha_arrays_abort(mha_arrays *a)
{
    if (!a)
        return;
    mha_outfile_abort(&a->file);
    arrays_free(a);
}
