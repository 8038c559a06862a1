/* partial.c: see partial.h. The file: a line "mha-inspect partial 1 KEY", then for each vector its
 * number, its length and its values (64 bits each, this machine's order), then the SHA-256 of all
 * of that. It is written whole and renamed, so that what is there is always complete. */
#include "analysis/partial.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "base/outfile.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAGIC        "mha-inspect partial 1 "
#define HEAD         (sizeof MAGIC - 1 + 64 + 1)
#define HASH         64
#define CEILING      ((size_t)1 << 30)
#define SAVE_SECONDS 20.0

typedef struct entry {
    uint64_t tag;
    size_t n;
    double *x;
} entry;

struct mha_partial {
    char *path; /* NULL: nothing is kept */
    char key[65];
    entry *entries;
    size_t count, capacity;
    double saved; /* seconds of the monotonic clock */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- vectors ---------------------------------------------------------------------------------
 */

static entry *find(const mha_partial *p, uint64_t tag)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->entries[i].tag == tag)
            return &p->entries[i];
    return NULL;
}

static mha_status keep(mha_partial *p, uint64_t tag, const double *x, size_t n, mha_err *err)
{
    entry *e = find(p, tag);
    if (e == NULL && p->count == p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 64;
        MHA_TRY(mha_grow((void **)&p->entries, p->capacity, capacity, sizeof *p->entries, err));
        p->capacity = capacity;
    }
    void *copy;
    MHA_TRY(mha_alloc_raw(&copy, n, sizeof *x, err));
    if (n > 0)
        memcpy(copy, x, n * sizeof *x);
    if (e == NULL)
        e = &p->entries[p->count++];
    mha_free(e->x);
    *e = (entry){tag, n, copy};
    return MHA_OK;
}

bool mha_partial_get(const mha_partial *p, uint64_t tag, double *x, size_t n)
{
    const entry *e = find(p, tag);
    if (e == NULL || e->n != n)
        return false;
    if (n > 0)
        memcpy(x, e->x, n * sizeof *x);
    return true;
}

/* ---- the file --------------------------------------------------------------------------------
 */

static mha_status put(mha_outfile *f, mha_sha256 *h, const void *bytes, size_t n, mha_err *err)
{
    mha_sha256_add(h, bytes, n);
    return mha_outfile_write(f, bytes, n, err);
}

static mha_status write_all(const mha_partial *p, mha_outfile *f, mha_err *err)
{
    mha_sha256 h;
    char hex[65];
    mha_sha256_init(&h);
    MHA_TRY(put(f, &h, MAGIC, sizeof MAGIC - 1, err));
    MHA_TRY(put(f, &h, p->key, 64, err));
    MHA_TRY(put(f, &h, "\n", 1, err));
    for (size_t i = 0; i < p->count; i++) {
        const entry *e = &p->entries[i];
        uint64_t head[2] = {e->tag, e->n};
        MHA_TRY(put(f, &h, head, sizeof head, err));
        MHA_TRY(put(f, &h, e->x, e->n * sizeof *e->x, err));
    }
    mha_sha256_hex(&h, hex);
    return mha_outfile_write(f, hex, HASH, err);
}

static mha_status save(mha_partial *p, mha_err *err)
{
    mha_outfile f;
    MHA_TRY(mha_outfile_open(&f, p->path, true, err));
    mha_status st = write_all(p, &f, err);
    if (st != MHA_OK) {
        mha_outfile_abort(&f);
        return st;
    }
    p->saved = now();
    return mha_outfile_commit(&f, err);
}

static mha_status broken(const mha_partial *p, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "%s is no whole partial result", p->path);
}

static mha_status parse(mha_partial *p, const char *data, size_t size, mha_err *err)
{
    mha_sha256 h;
    char hex[65];
    if (size < HEAD + HASH || memcmp(data, MAGIC, sizeof MAGIC - 1) != 0)
        return broken(p, err);
    size_t end = size - HASH, at = HEAD;
    mha_sha256_init(&h);
    mha_sha256_add(&h, data, end);
    mha_sha256_hex(&h, hex);
    if (memcmp(hex, data + end, HASH) != 0)
        return broken(p, err);
    if (memcmp(data + sizeof MAGIC - 1, p->key, 64) != 0)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s belongs to another run: other model, documents or options", p->path);
    while (at < end) {
        uint64_t head[2];
        if (end - at < sizeof head)
            return broken(p, err);
        memcpy(head, data + at, sizeof head);
        at += sizeof head;
        if (head[1] > (end - at) / sizeof(double))
            return broken(p, err);
        void *x;
        size_t bytes = (size_t)head[1] * sizeof(double);
        MHA_TRY(mha_alloc_raw(&x, (size_t)head[1], sizeof(double), err));
        if (bytes > 0)
            memcpy(x, data + at, bytes); /* the file's vectors lie at any byte */
        mha_status st = keep(p, head[0], x, (size_t)head[1], err);
        mha_free(x);
        MHA_TRY(st);
        at += bytes;
    }
    return MHA_OK;
}

static mha_status take_over(mha_partial *p, mha_err *err)
{
    char *data;
    size_t size;
    if (access(p->path, F_OK) != 0)
        return MHA_OK;
    MHA_TRY(mha_file_read(&data, &size, p->path, CEILING, err));
    mha_status st = parse(p, data, size, err);
    mha_free(data);
    return st;
}

/* ---- from open to end ------------------------------------------------------------------------
 */

mha_status mha_partial_open(mha_partial **out, const char *path, const char key[65], bool resume,
                            mha_err *err)
{
    mha_partial *p;
    MHA_TRY(mha_alloc((void **)out, 1, sizeof **out, err));
    p = *out;
    memcpy(p->key, key, sizeof p->key);
    p->saved = now();
    mha_status st = path != NULL ? mha_strdup(&p->path, path, err) : MHA_OK;
    if (st == MHA_OK && path != NULL && resume)
        st = take_over(p, err);
    if (st != MHA_OK) {
        mha_partial_free(p);
        *out = NULL;
    }
    return st;
}

void mha_partial_free(mha_partial *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->count; i++)
        mha_free(p->entries[i].x);
    mha_free(p->entries);
    mha_free(p->path);
    mha_free(p);
}

mha_status mha_partial_put(mha_partial *p, uint64_t tag, const double *x, size_t n, mha_err *err)
{
    if (p->path == NULL)
        return MHA_OK;
    MHA_TRY(keep(p, tag, x, n, err));
    return now() - p->saved < SAVE_SECONDS ? MHA_OK : save(p, err);
}

mha_status mha_partial_end(mha_partial *p, mha_status status, mha_err *err)
{
    if (p->path == NULL || p->count == 0)
        return status;
    if (status == MHA_OK) {
        save(p, NULL);
        return MHA_OK;
    }
    if (status != MHA_ERR_CANCELLED)
        return status;
    mha_status st = save(p, err);
    return st == MHA_OK ? status : st;
}

/* ---- keys ------------------------------------------------------------------------------------
 */

static void add_array(mha_sha256 *h, const void *x, size_t n, size_t size)
{
    uint64_t count = x != NULL ? n : 0;
    mha_sha256_add(h, &count, sizeof count);
    if (count > 0)
        mha_sha256_add(h, x, n * size);
}

void mha_key_documents(mha_sha256 *h, const mha_document *docs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const mha_document *d = &docs[i];
        add_array(h, d->ids, d->n, sizeof *d->ids);
        add_array(h, d->types, d->n, sizeof *d->types);
        add_array(h, d->target_ids, d->target_n, sizeof *d->target_ids);
        add_array(h, d->predict, d->predict_n, sizeof *d->predict);
    }
}
