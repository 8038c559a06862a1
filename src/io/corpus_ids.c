/* corpus_ids.c: documents of token ids from JSON and NumPy files. Padding that an attention mask
 * marks is dropped here, on whichever side it stands: nothing behind this file knows of padding. */
#include "base/fail.h"
#include "io/corpus.h"
#include "io/json.h"
#include "io/npy.h"

#include <string.h>

mha_status mha_corpus_add_ids(mha_corpus *c, const int64_t *ids, const int64_t *mask, size_t n,
                              const char *file, mha_err *err)
{
    int64_t *kept = NULL;
    size_t count = 0;
    MHA_TRY(mha_arena_alloc((void **)&kept, &c->arena, n > 0 ? n : 1, sizeof *kept, err));
    for (size_t i = 0; i < n; i++) {
        if (mask && mask[i] != 0 && mask[i] != 1)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: attention_mask: document %zu, position %zu: %lld is neither 0 nor "
                            "1",
                            file, c->count, i, (long long)mask[i]);
        if (!mask || mask[i] == 1)
            kept[count++] = ids[i];
    }
    mha_corpus_document d = {.ids = kept, .ids_n = count, .line = c->count};
    return mha_corpus_add(c, &d, err);
}

/* ------------------------------------------------------------------------------------ JSON */

/* *out = the integers of a list, in the arena. */
static mha_status json_ints(mha_corpus *c, int64_t **out, const json_t *list, const char *what,
                            const char *file, mha_err *err)
{
    size_t n = json_array_size(list);
    MHA_TRY(mha_arena_alloc((void **)out, &c->arena, n > 0 ? n : 1, sizeof **out, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) && !json_is_boolean(value))
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: %s: document %zu, position %zu is not an integer", file, what,
                            c->count, i);
        (*out)[i] = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    }
    return MHA_OK;
}

static mha_status json_row(mha_corpus *c, const json_t *ids, const json_t *mask, const char *file,
                           mha_err *err)
{
    int64_t *values = NULL, *kept = NULL;
    if (!json_is_array(ids) || (mask && !json_is_array(mask)))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: document %zu is not a list of integers", file,
                        c->count);
    if (mask && json_array_size(mask) != json_array_size(ids))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: document %zu: %zu ids, attention_mask of %zu",
                        file, c->count, json_array_size(ids), json_array_size(mask));
    MHA_TRY(json_ints(c, &values, ids, "ids", file, err));
    if (mask)
        MHA_TRY(json_ints(c, &kept, mask, "attention_mask", file, err));
    return mha_corpus_add_ids(c, values, kept, json_array_size(ids), file, err);
}

static mha_status json_rows(mha_corpus *c, const json_t *ids, const json_t *mask, const char *file,
                            mha_err *err)
{
    if (!json_is_array(json_array_get(ids, 0)))
        return json_row(c, ids, mask, file, err);
    if (mask && json_array_size(mask) != json_array_size(ids))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %zu documents, attention_mask of %zu", file,
                        json_array_size(ids), json_array_size(mask));
    for (size_t i = 0; i < json_array_size(ids); i++)
        MHA_TRY(
            json_row(c, json_array_get(ids, i), mask ? json_array_get(mask, i) : NULL, file, err));
    return MHA_OK;
}

mha_status mha_corpus_read_ids_json(mha_corpus *c, const char *text, size_t n, const char *file,
                                    mha_err *err)
{
    json_t *root = NULL;
    MHA_TRY(mha_json_parse(&root, text, n, file, err));
    const json_t *ids = json_is_object(root) ? mha_json_at(root, "ids") : root;
    const json_t *mask = json_is_object(root) ? mha_json_at(root, "attention_mask") : NULL;
    mha_status status;
    if (!json_is_array(ids))
        status = mha_fail(err, MHA_ERR_FORMAT, "%s: \"ids\" is missing or not a list", file);
    else
        status = json_rows(c, ids, mask, file, err);
    json_decref(root);
    return status;
}

/* ----------------------------------------------------------------------------------- NumPy */

static mha_status numpy_ints(int64_t **out, const mha_npy *a, const char *file, mha_err *err)
{
    MHA_TRY(mha_alloc_raw((void **)out, (size_t)a->count, sizeof **out, err));
    mha_status status = mha_npy_i64(*out, a, file, err);
    if (status != MHA_OK) {
        mha_free(*out);
        *out = NULL;
    }
    return status;
}

static mha_status numpy_rows(mha_corpus *c, const mha_npy *a, const int64_t *ids,
                             const int64_t *mask, const char *file, mha_err *err)
{
    size_t rows = a->rank == 2 ? (size_t)a->shape[0] : 1;
    size_t n = (size_t)a->shape[a->rank - 1];
    if (a->rank == 1 && n == 0)
        return mha_corpus_add_ids(c, NULL, NULL, 0, file, err);
    if (rows > 0 && n == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %zu documents of 0 ids", file, rows);
    for (size_t i = 0; i < rows; i++)
        MHA_TRY(mha_corpus_add_ids(c, ids + i * n, mask ? mask + i * n : NULL, n, file, err));
    return MHA_OK;
}

static mha_status read_arrays(mha_corpus *c, const mha_npy *a, const mha_npy *mask,
                              const char *file, mha_err *err)
{
    int64_t *values = NULL, *kept = NULL;
    if (a->rank != 1 && a->rank != 2)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: ids of %u dimensions; expected [T] or [B,T]",
                        file, a->rank);
    if (mask &&
        (mask->rank != a->rank || memcmp(mask->shape, a->shape, a->rank * sizeof a->shape[0]) != 0))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: attention_mask has another shape than ids", file);
    mha_status status = numpy_ints(&values, a, file, err);
    if (status == MHA_OK && mask)
        status = numpy_ints(&kept, mask, file, err);
    if (status == MHA_OK)
        status = numpy_rows(c, a, values, kept, file, err);
    mha_free(kept);
    mha_free(values);
    return status;
}

static mha_status read_archive(mha_corpus *c, mha_npz *z, const char *file, mha_err *err)
{
    mha_npy ids, mask;
    size_t at = 0, mask_at = 0;
    bool masked = mha_npz_find(z, "attention_mask", &mask_at);
    if (!mha_npz_find(z, "ids", &at)) {
        if (mha_npz_count(z) != (masked ? 2U : 1U))
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: no array \"ids\" among %zu (attention_mask beside it is honoured)",
                            file, mha_npz_count(z));
        at = masked ? 1 - mask_at : 0;
    }
    MHA_TRY(mha_npz_get(z, at, &ids, err));
    if (masked)
        MHA_TRY(mha_npz_get(z, mask_at, &mask, err));
    return read_arrays(c, &ids, masked ? &mask : NULL, file, err);
}

static mha_status read_numpy(mha_corpus *c, bool archive, const unsigned char *data, size_t n,
                             const char *file, uint64_t max_bytes, mha_err *err)
{
    mha_npy a;
    mha_npz *z = NULL;
    if (!archive) {
        MHA_TRY(mha_npy_parse(&a, data, n, file, err));
        return read_arrays(c, &a, NULL, file, err);
    }
    MHA_TRY(mha_npz_parse(&z, data, n, file, max_bytes, err));
    mha_status status = read_archive(c, z, file, err);
    mha_npz_close(z);
    return status;
}

mha_status mha_corpus_parse_numpy(mha_corpus **out, bool archive, const unsigned char *data,
                                  size_t n, const char *file, uint64_t max_bytes, mha_err *err)
{
    mha_corpus *c = NULL;
    MHA_TRY(mha_alloc((void **)&c, 1, sizeof *c, err));
    mha_status status = read_numpy(c, archive, data, n, file, max_bytes, err);
    if (status != MHA_OK) {
        mha_corpus_close(c);
        return status;
    }
    *out = c;
    return MHA_OK;
}
