/* gguf_get.c: typed access to GGUF metadata. The parser has checked that every value lies inside
 * the file, so nothing here can run past it. It may not allocate. */
#include "base/fail.h"
#include "io/cursor.h"
#include "io/gguf_private.h"

#include <string.h>

size_t mha_gguf_kind_size(mha_gguf_kind kind)
{
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return sizes[kind];
}

const char *mha_gguf_kind_name(mha_gguf_kind kind)
{
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    return names[kind];
}

const char *mha_gguf_file(const mha_gguf *g)
{
    return g->file;
}

size_t mha_gguf_entry_count(const mha_gguf *g)
{
    return g->entry_count;
}

const mha_gguf_entry *mha_gguf_entry_at(const mha_gguf *g, size_t i)
{
    return &g->entries[i];
}

const mha_gguf_entry *mha_gguf_find(const mha_gguf *g, const char *key)
{
    uint64_t i = 0;
    return mha_map_get(&g->by_key, key, strlen(key), &i) ? &g->entries[i] : NULL;
}

static uint64_t load_le(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

bool mha_gguf_scalar_int(mha_gguf_kind kind, const unsigned char *value, int64_t *out)
{
    uint64_t raw = load_le(value, mha_gguf_kind_size(kind));
    switch (kind) {
    case MHA_GGUF_I8:
        *out = (int8_t)raw;
        return true;
    case MHA_GGUF_I16:
        *out = (int16_t)raw;
        return true;
    case MHA_GGUF_I32:
        *out = (int32_t)raw;
        return true;
    case MHA_GGUF_U8:
    case MHA_GGUF_U16:
    case MHA_GGUF_U32:
    case MHA_GGUF_BOOL:
    case MHA_GGUF_I64:
        *out = (int64_t)raw;
        return true;
    case MHA_GGUF_U64:
        *out = (int64_t)raw;
        return raw <= INT64_MAX;
    default:
        return false;
    }
}

bool mha_gguf_scalar_real(mha_gguf_kind kind, const unsigned char *value, double *out)
{
    if (kind == MHA_GGUF_F32) {
        uint32_t bits = (uint32_t)load_le(value, 4);
        float f = 0;
        memcpy(&f, &bits, sizeof f);
        *out = (double)f;
        return true;
    }
    if (kind == MHA_GGUF_F64) {
        uint64_t bits = load_le(value, 8);
        memcpy(out, &bits, sizeof *out);
        return true;
    }
    if (kind == MHA_GGUF_U64) {
        *out = (double)load_le(value, 8);
        return true;
    }
    int64_t i = 0;
    bool is_int = mha_gguf_scalar_int(kind, value, &i);
    *out = (double)i;
    return is_int;
}

static mha_status wrong_kind(const mha_gguf *g, const char *key, const char *expected,
                             const mha_gguf_entry *e, mha_err *err)
{
    bool array = e->kind == MHA_GGUF_ARRAY;
    return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: expected %s, found %s%s", g->file, key, expected,
                    array ? "an array of " : "", mha_gguf_kind_name(array ? e->element : e->kind));
}

static bool is_int(mha_gguf_kind kind)
{
    return kind <= MHA_GGUF_I32 || kind == MHA_GGUF_U64 || kind == MHA_GGUF_I64;
}

static bool is_real(mha_gguf_kind kind)
{
    return kind == MHA_GGUF_F32 || kind == MHA_GGUF_F64;
}

mha_status mha_gguf_get_int(const mha_gguf *g, const char *key, bool *found, int64_t *out,
                            mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    *found = e != NULL;
    if (!e)
        return MHA_OK;
    if (!is_int(e->kind))
        return wrong_kind(g, key, "an integer", e, err);
    if (!mha_gguf_scalar_int(e->kind, e->value, out))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: the value does not fit into 63 bits", g->file,
                        key);
    return MHA_OK;
}

mha_status mha_gguf_get_real(const mha_gguf *g, const char *key, bool *found, double *out,
                             mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    *found = e != NULL;
    if (!e)
        return MHA_OK;
    if (!is_real(e->kind))
        return wrong_kind(g, key, "f32 or f64", e, err);
    mha_gguf_scalar_real(e->kind, e->value, out);
    return MHA_OK;
}

mha_status mha_gguf_get_bool(const mha_gguf *g, const char *key, bool *found, bool *out,
                             mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    *found = e != NULL;
    if (!e)
        return MHA_OK;
    if (e->kind != MHA_GGUF_BOOL)
        return wrong_kind(g, key, "bool", e, err);
    *out = e->value[0] != 0;
    return MHA_OK;
}

mha_status mha_gguf_get_string(const mha_gguf *g, const char *key, bool *found,
                               mha_gguf_string *out, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    *found = e != NULL;
    if (!e)
        return MHA_OK;
    if (e->kind != MHA_GGUF_STRING)
        return wrong_kind(g, key, "string", e, err);
    *out = (mha_gguf_string){.s = (const char *)e->value, .n = (size_t)e->count};
    return MHA_OK;
}

mha_status mha_gguf_get_array(const mha_gguf *g, const char *key, bool *found, mha_gguf_kind *kind,
                              size_t *count, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    *found = e != NULL;
    if (!e)
        return MHA_OK;
    if (e->kind != MHA_GGUF_ARRAY)
        return wrong_kind(g, key, "an array", e, err);
    *kind = e->element;
    *count = (size_t)e->count;
    return MHA_OK;
}

/* The array behind a key that must be there with `count` elements. */
static mha_status find_array(const mha_gguf_entry **out, const mha_gguf *g, const char *key,
                             size_t count, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, key);
    if (!e)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s is missing", g->file, key);
    if (e->kind != MHA_GGUF_ARRAY)
        return wrong_kind(g, key, "an array", e, err);
    if (e->count != count)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: expected %zu elements, found %llu", g->file,
                        key, count, (unsigned long long)e->count);
    *out = e;
    return MHA_OK;
}

mha_status mha_gguf_array_strings(const mha_gguf *g, const char *key, mha_gguf_string *out,
                                  size_t count, mha_err *err)
{
    const mha_gguf_entry *e = NULL;
    MHA_TRY(find_array(&e, g, key, count, err));
    if (e->element != MHA_GGUF_STRING)
        return wrong_kind(g, key, "an array of strings", e, err);
    /* Bounded again: a mapped file may have changed since it was parsed. */
    mha_cursor c = {.data = e->value, .size = e->bytes, .file = g->file};
    for (size_t i = 0; i < count; i++) {
        uint64_t n = 0;
        const unsigned char *bytes = NULL;
        MHA_TRY(mha_cursor_u64(&c, &n, key, err));
        MHA_TRY(mha_cursor_bytes(&c, &bytes, n, key, err));
        out[i] = (mha_gguf_string){.s = (const char *)bytes, .n = (size_t)n};
    }
    return MHA_OK;
}

mha_status mha_gguf_array_ints(const mha_gguf *g, const char *key, int64_t *out, size_t count,
                               mha_err *err)
{
    const mha_gguf_entry *e = NULL;
    MHA_TRY(find_array(&e, g, key, count, err));
    if (!is_int(e->element) && e->element != MHA_GGUF_BOOL)
        return wrong_kind(g, key, "an array of integers", e, err);
    size_t size = mha_gguf_kind_size(e->element);
    for (size_t i = 0; i < count; i++) {
        if (!mha_gguf_scalar_int(e->element, e->value + i * size, &out[i]))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: element %zu does not fit into 63 bits",
                            g->file, key, i);
    }
    return MHA_OK;
}

mha_status mha_gguf_array_reals(const mha_gguf *g, const char *key, float *out, size_t count,
                                mha_err *err)
{
    const mha_gguf_entry *e = NULL;
    MHA_TRY(find_array(&e, g, key, count, err));
    if (!is_real(e->element))
        return wrong_kind(g, key, "an array of f32 or f64", e, err);
    size_t size = mha_gguf_kind_size(e->element);
    for (size_t i = 0; i < count; i++) {
        double value = 0;
        mha_gguf_scalar_real(e->element, e->value + i * size, &value);
        out[i] = (float)value;
    }
    return MHA_OK;
}
