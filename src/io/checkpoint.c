/* checkpoint.c: opens a saved model: finds its files, maps them, collects tensors and config.
 * Which tensors a model needs and what the config means is not known here. It may not copy or
 * convert tensor data. */
#include "io/checkpoint.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/sha256.h"
#include "io/checkpoint_private.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/torchfile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_CEILING ((size_t)1 << 16)
#define SHARDS_MAX   10000

/* ------------------------------------------------------------------------------- helpers */

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static mha_status path_join(char **out, const char *directory, const char *name, mha_err *err)
{
    mha_buf b;
    mha_buf_init(&b, PATH_CEILING);
    const char *slash = ends_with(directory, "/") ? "" : "/";
    mha_status status = mha_buf_addf(&b, err, "%s%s%s", directory, slash, name);
    if (status == MHA_OK)
        status = mha_strdup(out, b.data, err);
    mha_buf_release(&b);
    return status;
}

static bool has_file(const char *directory, const char *name)
{
    char *path = NULL;
    struct stat st;
    bool there = path_join(&path, directory, name, NULL) == MHA_OK && stat(path, &st) == 0;
    mha_free(path);
    return there;
}

mha_status mha_checkpoint_map(mha_checkpoint *c, const char *const *paths, size_t count,
                              mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&c->files, count, sizeof *c->files, err));
    for (; c->file_count < count; c->file_count++)
        MHA_TRY(mha_filemap_open(&c->files[c->file_count], paths[c->file_count], err));
    return MHA_OK;
}

/* ------------------------------------------------------------------ safetensors, PyTorch */

/* Where weights are looked for in a directory, in this order. */
typedef struct layout {
    const char *format, *file, *index; /* index: of shards; NULL: never sharded */
} layout;

static const layout layouts[] = {
    {"safetensors", "model.safetensors", "model.safetensors.index.json"},
    {"PyTorch", "pytorch_model.bin", "pytorch_model.bin.index.json"},
    {"PyTorch", "model.pt", NULL},
};

/* The shards that an index names, each once. */
typedef struct shards {
    json_t *index; /* model.safetensors.index.json and the like */
    char **paths;
    size_t count;
    mha_map by_file; /* shard file name → position in paths */
} shards;

static void shards_release(shards *s)
{
    for (size_t i = 0; i < s->count; i++)
        mha_free(s->paths[i]);
    mha_free(s->paths);
    mha_map_release(&s->by_file);
    json_decref(s->index);
}

/* A shard's name is a plain file name: nothing that could lead out of the directory. */
static bool is_plain_name(const json_t *value)
{
    const char *s = json_string_value(value);
    return s && *s && strlen(s) == json_string_length(value) && !strpbrk(s, "/\\") &&
           strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

static mha_status shard_add(shards *s, const char *directory, const char *index_path,
                            const char *tensor, const json_t *file, mha_err *err)
{
    if (!is_plain_name(file))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: weight_map: \"%s\" is not mapped to a plain file name", index_path,
                        tensor);
    const char *name = json_string_value(file);
    uint64_t place = 0;
    if (!mha_map_get(&s->by_file, name, strlen(name), &place)) {
        if (s->count == SHARDS_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d shards", index_path, SHARDS_MAX);
        place = s->count;
        MHA_TRY(mha_grow((void **)&s->paths, s->count, s->count + 1, sizeof *s->paths, err));
        MHA_TRY(path_join(&s->paths[s->count], directory, name, err));
        s->count++;
        MHA_TRY(mha_map_set(&s->by_file, name, strlen(name), place, NULL, err));
    }
    return MHA_OK;
}

static mha_status shards_read(shards *s, const char *directory, const char *index_path,
                              mha_err *err)
{
    MHA_TRY(mha_json_open(&s->index, index_path, err));
    json_t *weight_map = json_object_get(s->index, "weight_map");
    if (!json_is_object(weight_map) || json_object_size(weight_map) == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: weight_map is missing, empty or not an object",
                        index_path);
    const char *tensor;
    json_t *file;
    json_object_foreach(weight_map, tensor, file)
    {
        MHA_TRY(shard_add(s, directory, index_path, tensor, file, err));
    }
    return MHA_OK;
}

/* Every tensor of the index must be in the shard that the index names. Tensors that the index does
 * not name stay in the list: whoever binds the model refuses or ignores them by name. */
static mha_status shards_check(const shards *s, const mha_tensor_list *list, const char *index_path,
                               mha_err *err)
{
    mha_map places;
    mha_map_init(&places);
    mha_status status = mha_map_reserve(&places, list->count, err);
    for (size_t i = 0; i < list->count && status == MHA_OK; i++) {
        const mha_tensor *t = &list->items[i];
        status = mha_map_set(&places, t->name, strlen(t->name), t->file, NULL, err);
    }
    const char *tensor;
    json_t *file;
    json_object_foreach(json_object_get(s->index, "weight_map"), tensor, file)
    {
        uint64_t expected = 0, found = 0;
        if (status != MHA_OK)
            break;
        mha_map_get(&s->by_file, json_string_value(file), json_string_length(file), &expected);
        if (!mha_map_get(&places, tensor, strlen(tensor), &found) || found != expected)
            status = mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\" is not in %s", index_path,
                              tensor, json_string_value(file));
    }
    mha_map_release(&places);
    return status;
}

static mha_status parse_files(mha_checkpoint *c, mha_tensor_list *list,
                              const mha_checkpoint_limits *limits, mha_err *err)
{
    for (size_t i = 0; i < c->file_count; i++) {
        const mha_filemap *f = &c->files[i];
        uint64_t most = limits->max_tensors - list->count;
        if (strcmp(c->format, layouts[0].format) == 0)
            MHA_TRY(mha_safetensors_parse(list, f->data, f->size, f->path, (uint32_t)i,
                                          limits->max_header, most, err));
        else
            MHA_TRY(mha_torchfile_parse(list, f->data, f->size, f->path, (uint32_t)i, most, err));
    }
    return MHA_OK;
}

static mha_status read_sharded(mha_checkpoint *c, mha_tensor_list *list, const char *index_path,
                               const mha_checkpoint_limits *limits, mha_err *err)
{
    shards s = {0};
    mha_map_init(&s.by_file);
    mha_status status = shards_read(&s, c->path, index_path, err);
    if (status == MHA_OK)
        status = mha_checkpoint_map(c, (const char *const *)s.paths, s.count, err);
    if (status == MHA_OK)
        status = parse_files(c, list, limits, err);
    if (status == MHA_OK)
        status = shards_check(&s, list, index_path, err);
    shards_release(&s);
    return status;
}

/* What to say of a directory in which there are no weights. */
static mha_status explain_absence(const char *directory, mha_err *err)
{
    static const char *const adapters[] = {"adapter_model.safetensors", "adapter_model.bin"};
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++)
        if (has_file(directory, adapters[i]))
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "%s: holds only an adapter (%s); merge it into its base model and save "
                            "that",
                            directory, adapters[i]);
    return mha_fail(
        err, MHA_ERR_FORMAT,
        "%s: neither model.safetensors nor pytorch_model.bin is there, nor the index of their "
        "shards",
        directory);
}

static mha_status read_config(mha_checkpoint *c, mha_err *err)
{
    char *path = NULL;
    if (!has_file(c->path, "config.json"))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: config.json is missing", c->path);
    MHA_TRY(path_join(&path, c->path, "config.json", err));
    mha_status status = mha_json_open(&c->config, path, err);
    if (status == MHA_OK && !json_is_object(c->config))
        status = mha_fail(err, MHA_ERR_FORMAT, "%s: the top level is not an object", path);
    mha_free(path);
    return status;
}

/* NULL: there is none. *sharded: its index is there, and not the file. */
static const layout *find_layout(const char *directory, bool *sharded)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const layout *l = &layouts[i];
        bool single = has_file(directory, l->file);
        *sharded = !single && l->index && has_file(directory, l->index);
        if (single || *sharded)
            return l;
    }
    return NULL;
}

static mha_status read_directory(mha_checkpoint *c, mha_tensor_list *list,
                                 const mha_checkpoint_limits *limits, mha_err *err)
{
    bool sharded = false;
    const layout *l = find_layout(c->path, &sharded);
    if (!l)
        return explain_absence(c->path, err);
    c->format = l->format;
    MHA_TRY(read_config(c, err));
    char *path = NULL;
    MHA_TRY(path_join(&path, c->path, sharded ? l->index : l->file, err));
    mha_status status;
    if (sharded) {
        status = read_sharded(c, list, path, limits, err);
    } else {
        status = mha_checkpoint_map(c, (const char *const *)&path, 1, err);
        if (status == MHA_OK)
            status = parse_files(c, list, limits, err);
    }
    mha_free(path);
    return status;
}

/* -------------------------------------------------------------------------------- common */

/* Wrappers of the training program put these before every name; several may nest. */
static const char *strip_wrappers(const char *name)
{
    static const char *const wrappers[] = {"module.", "_orig_mod."};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(wrappers[i]);
        if (strncmp(name, wrappers[i], n) == 0 && name[n] != '\0')
            return strip_wrappers(name + n);
    }
    return name;
}

static mha_status index_names(mha_checkpoint *c, mha_err *err)
{
    MHA_TRY(mha_map_reserve(&c->by_name, c->tensor_count, err));
    for (size_t i = 0; i < c->tensor_count; i++) {
        mha_tensor *t = &c->tensors[i];
        bool replaced = false;
        t->name = strip_wrappers(t->name);
        MHA_TRY(mha_map_set(&c->by_name, t->name, strlen(t->name), i, &replaced, err));
        if (replaced)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: tensor \"%s\" is there twice (again in %s)",
                            c->path, t->name, c->files[t->file].path);
    }
    return MHA_OK;
}

static mha_status read_any(mha_checkpoint *c, mha_tensor_list *list,
                           const mha_checkpoint_limits *limits, mha_err *err)
{
    if (is_directory(c->path))
        return read_directory(c, list, limits, err);
    if (ends_with(c->path, ".gguf"))
        return mha_checkpoint_read_gguf(c, list, limits->max_tensors, err);
    struct stat st;
    if (stat(c->path, &st) != 0)
        return mha_fail(err, MHA_ERR_IO, "%s: no such model directory or file", c->path);
    if (ends_with(c->path, ".safetensors") || ends_with(c->path, ".bin") ||
        ends_with(c->path, ".pt") || ends_with(c->path, ".pth"))
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: give the directory that holds it and its config.json", c->path);
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: neither a model directory nor a .gguf file",
                    c->path);
}

mha_status mha_checkpoint_open(mha_checkpoint **out, const char *path,
                               const mha_checkpoint_limits *limits, mha_err *err)
{
    static const mha_checkpoint_limits defaults = {.max_tensors = MHA_SAFETENSORS_TENSORS_MAX,
                                                   .max_header = MHA_SAFETENSORS_HEADER_MAX};
    mha_checkpoint *c = NULL;
    mha_tensor_list list = {0};
    MHA_TRY(mha_alloc((void **)&c, 1, sizeof *c, err));
    mha_map_init(&c->by_name);
    mha_status status = mha_strdup(&c->path, path, err);
    if (status == MHA_OK)
        status = read_any(c, &list, limits ? limits : &defaults, err);
    c->tensors = list.items;
    c->tensor_count = list.count;
    c->names = list.names;
    if (status == MHA_OK)
        status = index_names(c, err);
    /* A file that shrank meanwhile has given zeros instead of its header. */
    if (status == MHA_OK)
        status = mha_checkpoint_check(c, err);
    if (status != MHA_OK) {
        mha_checkpoint_close(c);
        return status;
    }
    *out = c;
    return MHA_OK;
}

void mha_checkpoint_close(mha_checkpoint *c)
{
    if (!c)
        return;
    mha_gguf_free(c->gguf);
    json_decref(c->config);
    mha_map_release(&c->by_name);
    mha_arena_release(&c->names);
    mha_free(c->tensors);
    for (size_t i = 0; i < c->file_count; i++)
        mha_filemap_close(&c->files[i]);
    mha_free(c->files);
    mha_free(c->path);
    mha_free(c);
}

const mha_tensor *mha_checkpoint_find(const mha_checkpoint *c, const char *name)
{
    uint64_t i = 0;
    return mha_map_get(&c->by_name, name, strlen(name), &i) ? &c->tensors[i] : NULL;
}

mha_status mha_checkpoint_check(const mha_checkpoint *c, mha_err *err)
{
    for (size_t i = 0; i < c->file_count; i++)
        MHA_TRY(mha_filemap_check(&c->files[i], err));
    return MHA_OK;
}

/* --------------------------------------------------------------------------- fingerprint */

static int hash_json(const char *text, size_t n, void *data)
{
    mha_sha256_add(data, text, n);
    return 0;
}

static void hash_u64(mha_sha256 *h, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    mha_sha256_add(h, bytes, sizeof bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const mha_tensor *const *)a)->name, (*(const mha_tensor *const *)b)->name);
}

mha_status mha_checkpoint_fingerprint(const mha_checkpoint *c, char hex[65], mha_err *err)
{
    const mha_tensor **sorted = NULL;
    MHA_TRY(mha_alloc((void **)&sorted, c->tensor_count, sizeof *sorted, err));
    for (size_t i = 0; i < c->tensor_count; i++)
        sorted[i] = &c->tensors[i];
    if (c->tensor_count > 0)
        qsort(sorted, c->tensor_count, sizeof *sorted, by_name);
    mha_sha256 h;
    mha_sha256_init(&h);
    /* Sorted and compact: spaces and the order of keys do not make another model. */
    int failed = json_dump_callback(c->config, hash_json, &h, JSON_COMPACT | JSON_SORT_KEYS);
    for (size_t i = 0; i < c->tensor_count; i++) {
        const mha_tensor *t = sorted[i];
        const char *type = mha_dtype_get(t->type)->name;
        mha_sha256_add(&h, t->name, strlen(t->name) + 1);
        mha_sha256_add(&h, type, strlen(type) + 1);
        hash_u64(&h, t->rank);
        for (uint32_t d = 0; d < t->rank; d++)
            hash_u64(&h, t->shape[d]);
        hash_u64(&h, t->bytes);
    }
    mha_free(sorted);
    if (failed)
        return mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", c->path);
    mha_sha256_hex(&h, hex);
    return MHA_OK;
}

mha_status mha_checkpoint_hash_file(const mha_checkpoint *c, size_t file, char hex[65],
                                    mha_err *err)
{
    if (file >= c->file_count)
        return mha_fail(err, MHA_ERR_ARG, "%s: has no file %zu", c->path, file);
    mha_sha256 h;
    mha_sha256_init(&h);
    mha_sha256_add(&h, c->files[file].data, c->files[file].size);
    MHA_TRY(mha_filemap_check(&c->files[file], err));
    mha_sha256_hex(&h, hex);
    return MHA_OK;
}
