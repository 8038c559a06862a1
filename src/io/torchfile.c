/* torchfile.c: from the tree of a pickle to tensors. What is not a tensor is passed over, what
 * looks like one and is not understood is refused with its name. */
#include "io/torchfile.h"

#include "base/fail.h"
#include "io/pickle.h"
#include "io/zip.h"

#include <stdio.h>
#include <string.h>

#define WRAPPERS_MAX 8   /* calls around the one that makes a tensor */
#define KEY_MAX      255 /* bytes in the key of a storage, of which there are digits */

typedef mha_pickle_value value;

/* The bytes of one storage, which several tensors may share. */
typedef struct storage {
    const unsigned char *data;
    uint64_t bytes;
} storage;

typedef struct reader {
    const char *file;
    uint32_t file_index;
    mha_tensor_list *list;
    mha_pickle pickle;
    mha_zip zip;        /* of the zip form */
    const char *root;   /* with its slash; of the zip form */
    storage *storages;  /* of the older form */
    mha_pickle keys;    /* theirs */
    mha_map storage_of; /* key → index in storages */
    /* Bytes: gathered so far, in the names so far, of the file. Pickles can name one thing any
     * number of times, so that neither may exceed the file. */
    uint64_t copied, named, size;
} reader;

/* ---- types ------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    mha_dtype type;
} types[] = {{"torch.FloatStorage", MHA_F32},     {"torch.HalfStorage", MHA_F16},
             {"torch.BFloat16Storage", MHA_BF16}, {"torch.DoubleStorage", MHA_F64},
             {"torch.LongStorage", MHA_I64},      {"torch.IntStorage", MHA_I32},
             {"torch.ShortStorage", MHA_I16},     {"torch.CharStorage", MHA_I8},
             {"torch.ByteStorage", MHA_U8},       {"torch.BoolStorage", MHA_BOOL}};

/* A storage by its persistent id: ('storage', type, key, place, elements), in the older form also
 * (key, offset, elements) of a view, or None. */
typedef struct storage_id {
    mha_dtype type;
    const char *key;
    uint64_t elements;
} storage_id;

static mha_status id_read(const reader *r, const value *v, storage_id *out, mha_err *err)
{
    const value *id = v->kind == MHA_PICKLE_PERSISTENT ? v->items[0] : NULL;
    if (id == NULL || id->kind != MHA_PICKLE_TUPLE || id->count < 5 ||
        id->items[1]->kind != MHA_PICKLE_GLOBAL || !mha_pickle_is_name(id->items[2]) ||
        id->items[2]->length > KEY_MAX || id->items[4]->kind != MHA_PICKLE_INT ||
        id->items[4]->integer < 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: a storage is not described as ('storage', type, key, place, elements)",
                        r->file);
    out->key = id->items[2]->text;
    out->elements = (uint64_t)id->items[4]->integer;
    if (id->count > 5 && id->items[5]->kind != MHA_PICKLE_NONE)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: storage \"%.100s\" is named by a view of it, as PyTorch did before "
                        "0.4; save it again",
                        r->file, out->key);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, id->items[1]->text) == 0) {
            out->type = types[i].type;
            return MHA_OK;
        }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: storage \"%.100s\" of type %.100s", r->file,
                    out->key, id->items[1]->text);
}

/* ---- storages ---------------------------------------------------------------------------------
 */

/* Looks the storage up, and checks that it has as many bytes as its elements need. */
static mha_status storage_find(const reader *r, const storage_id *id, storage *out, mha_err *err)
{
    uint64_t at = 0, need = 0;
    if (r->root != NULL) {
        char name[512];
        int n = snprintf(name, sizeof name, "%sdata/%s", r->root, id->key);
        if (n < 0 || (size_t)n >= sizeof name ||
            !mha_map_get(&r->zip.by_name, name, (size_t)n, &at))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: storage \"%.100s\" is missing", r->file,
                            id->key);
        const mha_zip_entry *e = &r->zip.entries[at];
        if (e->deflated)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: storage \"%.100s\" is compressed, which torch.save never does",
                            r->file, id->key);
        *out = (storage){e->data, e->size};
    } else {
        if (!mha_map_get(&r->storage_of, id->key, strlen(id->key), &at))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: storage \"%.100s\" is missing", r->file,
                            id->key);
        *out = r->storages[at];
    }
    if (!mha_dtype_size(id->type, id->elements, &need) || need != out->bytes)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: storage \"%.100s\" has %llu bytes where %llu elements of %s are named",
                        r->file, id->key, (unsigned long long)out->bytes,
                        (unsigned long long)id->elements, mha_dtype_get(id->type)->name);
    return MHA_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

/* The call that makes a tensor, inside of what wraps it; NULL: no tensor. */
static const value *tensor_call(const value *v, const value **args)
{
    for (int i = 0; i < WRAPPERS_MAX && v->kind == MHA_PICKLE_CALL; i++) {
        *args = v->args;
        if (mha_pickle_is_call(v, "torch._utils._rebuild_parameter", 1) ||
            mha_pickle_is_call(v, "torch._utils._rebuild_parameter_with_state", 1)) {
            v = v->args->items[0];
        } else if (mha_pickle_is_call(v, "torch._tensor._rebuild_from_type_v2", 3) &&
                   v->args->items[2]->kind == MHA_PICKLE_TUPLE) {
            *args = v->args->items[2];
            return v->args->items[0];
        } else
            return v->callee;
    }
    return NULL;
}

static bool makes_tensor(const value *callee)
{
    return callee != NULL && callee->kind == MHA_PICKLE_GLOBAL &&
           strncmp(callee->text, "torch._utils._rebuild_", 22) == 0;
}

static mha_status numbers_read(const reader *r, const mha_tensor *t, const value *v, uint64_t *out,
                               const char *what, mha_err *err)
{
    if (v->kind != MHA_PICKLE_TUPLE || v->count != t->rank)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": its %s is no tuple of %u numbers",
                        r->file, t->name, what, t->rank);
    for (size_t i = 0; i < v->count; i++) {
        if (v->items[i]->kind != MHA_PICKLE_INT || v->items[i]->integer < 0)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: tensor \"%s\": its %s has something else than numbers from 0 up",
                            r->file, t->name, what);
        out[i] = (uint64_t)v->items[i]->integer;
    }
    return MHA_OK;
}

/* Whether the elements lie one behind the other; *last = the farthest one's place, from the first.
 * false in *fits: the places overflow. */
static bool is_dense(const mha_tensor *t, const uint64_t *stride, uint64_t *last, bool *fits)
{
    uint64_t expected = 1;
    bool dense = true;
    *last = 0;
    *fits = true;
    for (uint32_t i = t->rank; i-- > 0;) {
        uint64_t step = 0;
        if (t->shape[i] > 1) {
            dense = dense && stride[i] == expected;
            *fits = *fits && !__builtin_mul_overflow(t->shape[i] - 1, stride[i], &step) &&
                    !__builtin_add_overflow(*last, step, last);
        }
        expected *= t->shape[i]; /* checked by the shape's count */
    }
    return dense;
}

/* Row-major copy of a view. */
static mha_status gather(reader *r, mha_tensor *t, const uint64_t *stride, uint64_t count,
                         mha_err *err)
{
    size_t size = mha_dtype_get(t->type)->bytes;
    uint64_t at[MHA_TENSOR_RANK_MAX] = {0}, place = 0;
    unsigned char *copy = NULL;
    /* Views could share one storage any number of times. */
    r->copied += t->bytes;
    if (r->copied > r->size)
        return mha_fail(
            err, MHA_ERR_LIMIT,
            "%s: tensor \"%s\": tensors that are no plain rows take more bytes than the "
            "file has",
            r->file, t->name);
    MHA_TRY(mha_arena_alloc((void **)&copy, &r->list->names, (size_t)count, size, err));
    for (uint64_t i = 0; i < count; i++) {
        memcpy(copy + i * size, t->data + place * size, size);
        for (uint32_t d = t->rank; d-- > 0;) {
            place += stride[d];
            if (++at[d] < t->shape[d])
                break;
            place -= stride[d] * t->shape[d];
            at[d] = 0;
        }
    }
    t->data = copy;
    return MHA_OK;
}

static mha_status place_elements(reader *r, mha_tensor *t, const storage_id *id, uint64_t offset,
                                 const uint64_t *stride, mha_err *err)
{
    storage s = {0};
    uint64_t count = 0, last = 0, end = 0;
    bool fits = true;
    if (!mha_shape_count(t->shape, t->rank, &count) || !mha_dtype_size(t->type, count, &t->bytes))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\": the size of the shape overflows",
                        r->file, t->name);
    MHA_TRY(storage_find(r, id, &s, err));
    bool dense = is_dense(t, stride, &last, &fits);
    if (count == 0) {
        t->data = s.data;
        return MHA_OK;
    }
    if (!fits || __builtin_add_overflow(offset, last, &end) || end >= id->elements)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\" reaches beyond the %llu elements of its storage",
                        r->file, t->name, (unsigned long long)id->elements);
    t->data = s.data + offset * mha_dtype_get(t->type)->bytes;
    /* Strides of 0 could make any number of elements of one. */
    if (!dense && count > id->elements)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor \"%s\" repeats elements of its storage", r->file, t->name);
    return dense ? MHA_OK : gather(r, t, stride, count, err);
}

static mha_status tensor_read(reader *r, mha_tensor *t, const value *callee, const value *args,
                              mha_err *err)
{
    storage_id id;
    uint64_t stride[MHA_TENSOR_RANK_MAX] = {0};
    bool known = strcmp(callee->text, "torch._utils._rebuild_tensor_v2") == 0 ||
                 strcmp(callee->text, "torch._utils._rebuild_tensor") == 0;
    if (!known)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: tensor \"%s\" is made by %.100s", r->file,
                        t->name, callee->text);
    if (args->count < 4 || args->items[1]->kind != MHA_PICKLE_INT || args->items[1]->integer < 0 ||
        args->items[2]->kind != MHA_PICKLE_TUPLE)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: tensor \"%s\": not made of storage, offset, shape and strides",
                        r->file, t->name);
    if (args->items[2]->count > MHA_TENSOR_RANK_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: tensor \"%s\": %zu dimensions, at most %d",
                        r->file, t->name, args->items[2]->count, MHA_TENSOR_RANK_MAX);
    t->rank = (uint32_t)args->items[2]->count;
    t->file = r->file_index;
    MHA_TRY(id_read(r, args->items[0], &id, err));
    t->type = id.type;
    MHA_TRY(numbers_read(r, t, args->items[2], t->shape, "shape", err));
    MHA_TRY(numbers_read(r, t, args->items[3], stride, "strides", err));
    return place_elements(r, t, &id, (uint64_t)args->items[1]->integer, stride, err);
}

/* ---- the dictionary that holds them -----------------------------------------------------------
 */

static bool is_dict(const value *v)
{
    return v->kind == MHA_PICKLE_DICT || mha_pickle_is_call(v, "collections.OrderedDict", 0) ||
           mha_pickle_is_call(v, "collections.defaultdict", 0);
}

static bool has_tensors(const value *dict)
{
    const value *args;
    for (size_t i = 0; i + 1 < dict->count; i += 2)
        if (makes_tensor(tensor_call(dict->items[i + 1], &args)))
            return true;
    return false;
}

/* The value of a key, the last one as in Python; NULL: it is not there. */
static const value *dict_find(const value *dict, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = dict->count / 2; i-- > 0;) {
        const value *k = dict->items[2 * i];
        if (k->kind == MHA_PICKLE_TEXT && k->length == n && memcmp(k->text, key, n) == 0)
            return dict->items[2 * i + 1];
    }
    return NULL;
}

/* A wrapper may hold tensors of its own, the state of a random generator: it is asked for what it
 * wraps first. */
static const value *find_weights(const value *root)
{
    static const char *const keys[] = {"state_dict", "model", "model_state_dict", "module", "net",
                                       "params",     "ema"};
    if (!is_dict(root))
        return NULL;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const value *inner = dict_find(root, keys[k]);
        if (inner != NULL && is_dict(inner) && has_tensors(inner))
            return inner;
    }
    return has_tensors(root) ? root : NULL;
}

static mha_status name_read(reader *r, mha_tensor *t, const value *key, mha_err *err)
{
    char *copy = NULL;
    if (!mha_pickle_is_name(key) || key->length == 0 || key->length > MHA_TENSOR_NAME_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: a tensor whose name is not text of 1 to %d bytes",
                        r->file, MHA_TENSOR_NAME_MAX);
    r->named += key->length;
    if (r->named > r->size)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "%s: the names of tensors take more bytes than the file"
                        " has",
                        r->file);
    MHA_TRY(mha_arena_strdup(&copy, &r->list->names, key->text, err));
    t->name = copy;
    return MHA_OK;
}

static mha_status weights_read(reader *r, uint64_t max_tensors, mha_err *err)
{
    const value *dict = find_weights(r->pickle.root);
    if (dict == NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: holds no dictionary of tensors; save model.state_dict()", r->file);
    if (dict->count / 2 > max_tensors)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: %zu tensors, at most %llu", r->file,
                        dict->count / 2, (unsigned long long)max_tensors);
    MHA_TRY(mha_tensor_list_reserve(r->list, dict->count / 2, err));
    mha_tensor *first = r->list->items + r->list->count;
    size_t n = 0;
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        const value *args = NULL;
        const value *callee = tensor_call(dict->items[i + 1], &args);
        if (!makes_tensor(callee))
            continue;
        mha_tensor *t = &first[n++];
        *t = (mha_tensor){0};
        MHA_TRY(name_read(r, t, dict->items[i], err));
        MHA_TRY(tensor_read(r, t, callee, args, err));
    }
    r->list->count += n;
    return MHA_OK;
}

/* ---- the zip form -----------------------------------------------------------------------------
 */

static const mha_zip_entry *find_suffix(const mha_zip *z, const char *suffix)
{
    size_t n = strlen(suffix);
    for (size_t i = 0; i < z->count; i++) {
        size_t k = strlen(z->entries[i].name);
        if (k > n && strcmp(z->entries[i].name + k - n, suffix) == 0 &&
            memchr(z->entries[i].name, '/', k) == z->entries[i].name + k - n)
            return &z->entries[i];
    }
    return NULL;
}

static mha_status order_check(const reader *r, mha_err *err)
{
    const mha_zip_entry *order = find_suffix(&r->zip, "/byteorder");
    if (order != NULL &&
        (order->deflated || order->size != 6 || memcmp(order->data, "little", 6) != 0))
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: its numbers are not little-endian", r->file);
    return MHA_OK;
}

static mha_status read_zip(reader *r, const unsigned char *data, size_t size, mha_err *err)
{
    const unsigned char *bytes = NULL;
    void *owned = NULL; /* of packed entries, which are refused */
    char *root = NULL;
    MHA_TRY(mha_zip_open(&r->zip, data, size, r->file, err));
    const mha_zip_entry *pickle = find_suffix(&r->zip, "/data.pkl");
    if (pickle == NULL)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: a zip archive without NAME/data.pkl", r->file);
    if (find_suffix(&r->zip, "/constants.pkl") != NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: a TorchScript archive, which is a program; save model.state_dict()",
                        r->file);
    if (pickle->deflated)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: \"%.100s\" is compressed, which torch.save never does", r->file,
                        pickle->name);
    MHA_TRY(order_check(r, err));
    MHA_TRY(mha_arena_strndup(&root, &r->zip.names, pickle->name,
                              strlen(pickle->name) - strlen("data.pkl"), err));
    r->root = root;
    MHA_TRY(mha_zip_read(pickle, &bytes, &owned, UINT64_MAX, r->file, err));
    mha_cursor c = {.data = bytes, .size = (size_t)pickle->size, .file = r->file};
    return mha_pickle_read(&r->pickle, &c, err);
}

/* ---- the older form ---------------------------------------------------------------------------
 */

/* What stands before the object: a number that marks the form, its version, and the machine. */
static mha_status read_preamble(const reader *r, mha_cursor *c, mha_err *err)
{
    static const unsigned char mark[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                         0x20, 0x6a, 0xa8, 0x50, 0x19};
    bool fits = true;
    for (int i = 0; i < 3 && fits; i++) {
        mha_pickle p;
        mha_status status = mha_pickle_read(&p, c, err);
        const value *v = p.root;
        if (status == MHA_OK && i == 0)
            fits = v->kind == MHA_PICKLE_BYTES && v->length == sizeof mark &&
                   memcmp(v->text, mark, sizeof mark) == 0;
        if (status == MHA_OK && i == 1)
            fits = v->kind == MHA_PICKLE_INT && v->integer == 1001;
        for (size_t k = 0; status == MHA_OK && i == 2 && k + 1 < v->count; k += 2)
            if (mha_pickle_is_name(v->items[k]) && strcmp(v->items[k]->text, "little_endian") == 0)
                fits = v->items[k + 1]->integer == 1;
        mha_pickle_release(&p);
        MHA_TRY(status);
    }
    if (!fits)
        return mha_fail(
            err, MHA_ERR_UNSUPPORTED,
            "%s: a pickle, but not one that torch.save wrote on a little-endian machine", r->file);
    return MHA_OK;
}

/* The type of every storage that the object names, by key. */
static mha_status types_collect(const reader *r, mha_map *type_of, mha_err *err)
{
    for (size_t i = 0; i < r->pickle.persistent_count; i++) {
        storage_id id;
        MHA_TRY(id_read(r, r->pickle.persistent[i], &id, err));
        MHA_TRY(mha_map_set(type_of, id.key, strlen(id.key), id.type, NULL, err));
    }
    return MHA_OK;
}

static mha_status storage_read(reader *r, mha_cursor *c, const mha_map *type_of, size_t i,
                               mha_err *err)
{
    const value *key = r->keys.root->items[i];
    uint64_t type = 0, elements = 0;
    storage *s = &r->storages[i];
    if (!mha_pickle_is_name(key) || !mha_map_get(type_of, key->text, key->length, &type))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: storage %zu belongs to no tensor", r->file, i);
    MHA_TRY(mha_cursor_u64(c, &elements, "elements of a storage", err));
    if (!mha_dtype_size((mha_dtype)type, elements, &s->bytes))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: storage \"%.100s\": its size overflows", r->file,
                        key->text);
    MHA_TRY(mha_cursor_bytes(c, &s->data, s->bytes, "storage", err));
    return mha_map_set(&r->storage_of, key->text, key->length, i, NULL, err);
}

/* The storages follow in the order of the list of their keys: a count of elements, then those. */
static mha_status read_storages(reader *r, mha_cursor *c, mha_err *err)
{
    mha_map type_of;
    mha_map_init(&type_of);
    size_t count = r->keys.root->count;
    mha_status status = types_collect(r, &type_of, err);
    if (status == MHA_OK)
        status = mha_alloc((void **)&r->storages, count, sizeof *r->storages, err);
    for (size_t i = 0; status == MHA_OK && i < count; i++)
        status = storage_read(r, c, &type_of, i, err);
    mha_map_release(&type_of);
    return status;
}

static mha_status read_stream(reader *r, const unsigned char *data, size_t size, mha_err *err)
{
    mha_cursor c = {.data = data, .size = size, .file = r->file};
    MHA_TRY(read_preamble(r, &c, err));
    MHA_TRY(mha_pickle_read(&r->pickle, &c, err));
    MHA_TRY(mha_pickle_read(&r->keys, &c, err));
    if (r->keys.root->kind != MHA_PICKLE_LIST)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: the list of its storages is missing", r->file);
    return read_storages(r, &c, err);
}

/* ---- either -----------------------------------------------------------------------------------
 */

static mha_status read_any(reader *r, const unsigned char *data, size_t size, mha_err *err)
{
    if (size >= 4 && memcmp(data, "PK\3\4", 4) == 0)
        return read_zip(r, data, size, err);
    if (size >= 262 && memcmp(data + 257, "ustar", 5) == 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: a tar file, the oldest form of torch.save; save it again", r->file);
    return read_stream(r, data, size, err);
}

mha_status mha_torchfile_parse(mha_tensor_list *list, const unsigned char *data, size_t size,
                               const char *file, uint32_t file_index, uint64_t max_tensors,
                               mha_err *err)
{
    reader r = {.file = file, .file_index = file_index, .list = list, .size = size};
    mha_map_init(&r.storage_of);
    mha_status status = read_any(&r, data, size, err);
    if (status == MHA_OK)
        status = weights_read(&r, max_tensors, err);
    mha_pickle_release(&r.pickle);
    mha_pickle_release(&r.keys);
    mha_map_release(&r.storage_of);
    mha_free(r.storages);
    mha_zip_release(&r.zip);
    return status;
}
