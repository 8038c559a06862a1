/* checkpoint_gguf.c: GGUF files as checkpoints: the files of a split model put together, and the
 * metadata as a flat config object. It may not interpret keys of an architecture. */
#include "base/buf.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "io/checkpoint_private.h"
#include "io/json.h"

#include <stdio.h>
#include <string.h>

#define PATH_CEILING ((size_t)1 << 16)
#define SPLIT_DIGITS 5
#define SPLIT_TAIL   (sizeof "-00001-of-00002.gguf" - 1)

/* Longer arrays are vocabularies, for the tokenizer, and no configuration. */
#define CONFIG_ARRAY_MAX 4096

#define ARCHITECTURE_MAX 64
#define CONFIG_KEY_MAX   1024

/* ------------------------------------------------------------------------- split models */

static bool five_digits(const char *s, unsigned *out)
{
    unsigned value = 0;
    for (int i = 0; i < SPLIT_DIGITS; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        value = value * 10 + (unsigned)(s[i] - '0');
    }
    *out = value;
    return true;
}

/* Recognises NAME-00001-of-00002.gguf; *stem is the length of NAME. */
static bool split_name(const char *path, size_t *stem, unsigned *number, unsigned *count)
{
    size_t n = strlen(path);
    if (n <= SPLIT_TAIL)
        return false;
    const char *tail = path + n - SPLIT_TAIL;
    *stem = n - SPLIT_TAIL;
    return tail[0] == '-' && five_digits(tail + 1, number) && strncmp(tail + 6, "-of-", 4) == 0 &&
           five_digits(tail + 10, count);
}

static mha_status map_split(mha_checkpoint *c, size_t stem, unsigned count, mha_err *err)
{
    char **paths = NULL;
    MHA_TRY(mha_alloc((void **)&paths, count, sizeof *paths, err));
    mha_status status = MHA_OK;
    for (unsigned i = 0; i < count && status == MHA_OK; i++) {
        mha_buf b;
        mha_buf_init(&b, PATH_CEILING);
        status = mha_buf_addf(&b, err, "%.*s-%05u-of-%05u.gguf", (int)stem, c->path, i + 1, count);
        if (status == MHA_OK)
            status = mha_strdup(&paths[i], b.data, err);
        mha_buf_release(&b);
    }
    if (status == MHA_OK)
        status = mha_checkpoint_map(c, (const char *const *)paths, count, err);
    for (unsigned i = 0; i < count; i++)
        mha_free(paths[i]);
    mha_free(paths);
    return status;
}

/* The split.* keys of file `i` must agree with its place among `count` files. */
static mha_status check_split(const mha_gguf *g, const char *path, size_t i, size_t count,
                              mha_err *err)
{
    bool has_number = false, has_count = false;
    int64_t number = 0, found = 0;
    MHA_TRY(mha_gguf_get_int(g, "split.no", &has_number, &number, err));
    MHA_TRY(mha_gguf_get_int(g, "split.count", &has_count, &found, err));
    if (count == 1) {
        if (has_count && found > 1)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: one of %lld files of a split model; they must be named "
                            "NAME-00001-of-%05lld.gguf",
                            path, (long long)found, (long long)found);
        return MHA_OK;
    }
    if (!has_number || !has_count || number != (int64_t)i || found != (int64_t)count)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: split.no and split.count say %lld of %lld, the name %zu of %zu", path,
                        (long long)number + 1, (long long)found, i + 1, count);
    return MHA_OK;
}

static mha_status map_files(mha_checkpoint *c, mha_err *err)
{
    size_t stem = 0;
    unsigned number = 0, count = 0;
    if (!split_name(c->path, &stem, &number, &count) || count < 2)
        return mha_checkpoint_map(c, (const char *const *)&c->path, 1, err);
    if (number != 1)
        return mha_fail(err, MHA_ERR_ARG, "%s: give the first file, %.*s-00001-of-%05u.gguf",
                        c->path, (int)stem, c->path, count);
    return map_split(c, stem, count, err);
}

static mha_status read_files(mha_checkpoint *c, mha_tensor_list *list, uint64_t max_tensors,
                             mha_err *err)
{
    for (size_t i = 0; i < c->file_count; i++) {
        const mha_filemap *f = &c->files[i];
        mha_gguf *g = NULL;
        MHA_TRY(mha_gguf_parse(&g, list, f->data, f->size, f->path, (uint32_t)i,
                               max_tensors - list->count, err));
        mha_status status = check_split(g, f->path, i, c->file_count, err);
        if (i == 0)
            c->gguf = g; /* its metadata holds for all files */
        else
            mha_gguf_free(g);
        MHA_TRY(status);
    }
    bool found = false;
    int64_t total = 0;
    MHA_TRY(mha_gguf_get_int(c->gguf, "split.tensors.count", &found, &total, err));
    if (found && c->file_count > 1 && total != (int64_t)list->count)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: split.tensors.count is %lld, the files hold %zu",
                        c->path, (long long)total, list->count);
    return MHA_OK;
}

/* -------------------------------------------------------------------------------- config */

/* NULL when the value cannot be JSON text or memory is out. */
static json_t *scalar_json(mha_gguf_kind kind, const unsigned char *value)
{
    int64_t i = 0;
    double r = 0;
    if (kind == MHA_GGUF_BOOL)
        return json_boolean(value[0] != 0);
    if (kind != MHA_GGUF_F32 && kind != MHA_GGUF_F64 && mha_gguf_scalar_int(kind, value, &i))
        return json_integer(i);
    mha_gguf_scalar_real(kind, value, &r);
    return mha_json_real_new(r);
}

static json_t *array_json(const mha_gguf_entry *e)
{
    json_t *array = json_array();
    size_t size = mha_gguf_kind_size(e->element);
    for (uint64_t i = 0; array && i < e->count; i++) {
        if (json_array_append_new(array, scalar_json(e->element, e->value + i * size)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static bool belongs_to_config(const mha_gguf_entry *e)
{
    return e->kind != MHA_GGUF_ARRAY ||
           (e->element != MHA_GGUF_STRING && e->count <= CONFIG_ARRAY_MAX);
}

static mha_status add_entry(mha_checkpoint *c, const char *prefix, const mha_gguf_entry *e,
                            mha_err *err)
{
    size_t cut = strlen(prefix), n = e->key.n;
    const char *name = e->key.s;
    if (n > cut && memcmp(name, prefix, cut) == 0) {
        name += cut;
        n -= cut;
    }
    char key[CONFIG_KEY_MAX];
    if (n >= sizeof key)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: a metadata key of %zu bytes, at most %d", c->path,
                        n, CONFIG_KEY_MAX - 1);
    memcpy(key, name, n);
    key[n] = '\0';
    if (json_object_get(c->config, key))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: metadata has both \"%s\" and \"%s%s\"", c->path,
                        key, prefix, key);
    json_t *value = NULL;
    if (e->kind == MHA_GGUF_STRING) {
        if (!mha_utf8_valid((const char *)e->value, (size_t)e->count))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: %s is not valid UTF-8", c->path, key);
        value = json_stringn((const char *)e->value, (size_t)e->count);
    } else {
        value = e->kind == MHA_GGUF_ARRAY ? array_json(e) : scalar_json(e->kind, e->value);
    }
    if (json_object_set_new(c->config, key, value) != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", c->path);
    return MHA_OK;
}

static mha_status build_config(mha_checkpoint *c, mha_err *err)
{
    bool found = false;
    mha_gguf_string architecture = {0};
    MHA_TRY(mha_gguf_get_string(c->gguf, "general.architecture", &found, &architecture, err));
    if (!found)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: general.architecture is missing", c->path);
    if (architecture.n == 0 || architecture.n > ARCHITECTURE_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: general.architecture of %zu bytes (1 to %d)",
                        c->path, architecture.n, ARCHITECTURE_MAX);
    char prefix[ARCHITECTURE_MAX + 2];
    snprintf(prefix, sizeof prefix, "%.*s.", (int)architecture.n, architecture.s);
    c->config = json_object();
    if (!c->config)
        return mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", c->path);
    for (size_t i = 0; i < mha_gguf_entry_count(c->gguf); i++) {
        const mha_gguf_entry *e = mha_gguf_entry_at(c->gguf, i);
        if (belongs_to_config(e))
            MHA_TRY(add_entry(c, prefix, e, err));
    }
    return MHA_OK;
}

mha_status mha_checkpoint_read_gguf(mha_checkpoint *c, mha_tensor_list *list, uint64_t max_tensors,
                                    mha_err *err)
{
    c->format = "GGUF";
    MHA_TRY(map_files(c, err));
    MHA_TRY(read_files(c, list, max_tensors, err));
    return build_config(c, err);
}
