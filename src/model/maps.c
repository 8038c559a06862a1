/* maps.c: reads maps that another program dumped and checks every row; see mha/maps.h. Sends
 * nothing to probes (probe/replay.c does) and repairs nothing: what is not attention is refused. */
#include "model/maps.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/sha256.h"
#include "io/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM_TOLERANCE 0.01 /* of weights that passed through 16 bits */
#define LAYER_MAX     9999
#define HEADS_MAX     UINT16_MAX
#define SIDE_MAX      INT32_MAX
#define PATTERN       ".pattern"

typedef struct reader {
    mha_maps *maps;
    mha_npz *file; /* NULL: a single array */
    const char *path;
    size_t count; /* steps so far */
} reader;

/* ---- names -----------------------------------------------------------------------------------
 */

static bool ends_in_pattern(const char *name)
{
    size_t n = strlen(name), suffix = strlen(PATTERN);
    return n > suffix && strcmp(name + n - suffix, PATTERN) == 0;
}

/* STACK.KIND.LAYER.pattern, as this program would write it. */
static bool name_parse(const char *name, mha_attn_info *step)
{
    for (int s = 0; s < MHA_GRAPH; s++) {
        for (int k = 0; k < MHA_KIND_COUNT; k++) {
            char own[40];
            int n = snprintf(own, sizeof own, "%s.%s.", mha_stack_name((mha_stack_id)s),
                             mha_kind_name((mha_kind)k));
            if (strncmp(name, own, (size_t)n) != 0 || (s == MHA_ENC && k == MHA_CROSS))
                continue;
            unsigned long layer = strtoul(name + n, NULL, 10);
            if (layer > LAYER_MAX)
                return false;
            snprintf(own + n, sizeof own - (size_t)n, "%lu" PATTERN, layer);
            step->stack = (mha_stack_id)s;
            step->kind = (mha_kind)k;
            step->layer = (uint32_t)layer;
            return strcmp(own, name) == 0;
        }
    }
    return false;
}

/* ---- rows ------------------------------------------------------------------------------------
 */

static mha_status row_check(const reader *r, const mha_map_step *s, size_t head, size_t row,
                            mha_err *err)
{
    const float *p = s->weights + (head * s->queries + row) * s->keys;
    double sum = 0;
    for (size_t j = 0; j < s->keys; j++) {
        if (!isfinite(p[j]) || p[j] < 0)
            return mha_fail(err, MHA_ERR_FORMAT,
                            "%s: %s: head %zu, row %zu, key %zu: %g is not an attention weight",
                            r->path, s->name, head, row, j, (double)p[j]);
        sum += (double)p[j];
    }
    double error = fabs(sum - 1);
    if (!(error <= SUM_TOLERANCE))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: head %zu, row %zu sums to %g, not to 1",
                        r->path, s->name, head, row, sum);
    if (error > r->maps->row_sum_error)
        r->maps->row_sum_error = error;
    return MHA_OK;
}

static bool is_causal(const mha_map_step *s)
{
    if (s->attn.kind != MHA_SELF)
        return false;
    for (size_t h = 0; h < s->attn.heads; h++)
        for (size_t i = 0; i < s->queries; i++) {
            const float *p = s->weights + (h * s->queries + i) * s->keys;
            for (size_t j = i + 1; j < s->keys; j++)
                if (p[j] > 0)
                    return false;
        }
    return true;
}

/* Whether no head has weight on a key that some row sees. */
static bool has_unseen(const mha_map_step *s)
{
    for (size_t i = 0; i < s->queries; i++)
        for (size_t j = 0; j < (s->attn.causal ? i + 1 : s->keys); j++) {
            size_t h = 0;
            while (h < s->attn.heads && !(s->weights[(h * s->queries + i) * s->keys + j] > 0))
                h++;
            if (h == s->attn.heads)
                return true;
        }
    return false;
}

static mha_status weights_check(const reader *r, mha_map_step *s, mha_err *err)
{
    for (size_t h = 0; h < s->attn.heads; h++)
        for (size_t i = 0; i < s->queries; i++)
            MHA_TRY(row_check(r, s, h, i, err));
    s->attn.causal = is_causal(s);
    r->maps->unseen = r->maps->unseen || has_unseen(s);
    return MHA_OK;
}

/* ---- arrays ----------------------------------------------------------------------------------
 */

/* shape: [H, T, S] of the array `a` that s->name names. */
static mha_status shape_take(const reader *r, mha_map_step *s, const mha_npy *a,
                             const uint64_t *shape, mha_err *err)
{
    if (!mha_npy_is_float(a))
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s holds no floats", r->path, s->name);
    if (!shape[0] || !shape[1] || !shape[2] || shape[0] > HEADS_MAX || shape[1] > SIDE_MAX ||
        shape[2] > SIDE_MAX)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: %s: %" PRIu64 " heads of %" PRIu64 " × %" PRIu64
                        " weights; expected 1 to %d heads of at least one row and key",
                        r->path, s->name, shape[0], shape[1], shape[2], HEADS_MAX);
    if (s->attn.kind == MHA_SELF && shape[1] != shape[2])
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: %s: %" PRIu64 " queries and %" PRIu64
                        " keys; a text that reads itself has as many of both",
                        r->path, s->name, shape[1], shape[2]);
    s->attn.heads = s->attn.kv_heads = s->attn.original_heads = (uint32_t)shape[0];
    s->queries = shape[1];
    s->keys = shape[2];
    return MHA_OK;
}

/* Integers of the file, [*n]; *out stays NULL without such an array. */
static mha_status integers_read(const reader *r, const char *name, int64_t **out, size_t *n,
                                mha_err *err)
{
    size_t i;
    mha_npy a;
    if (!r->file || !mha_npz_find(r->file, name, &i))
        return MHA_OK;
    MHA_TRY(mha_npz_get(r->file, i, &a, err));
    if (a.rank != 1)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s has %" PRIu32 " axes, not 1", r->path, name,
                        a.rank);
    MHA_TRY(mha_arena_alloc((void **)out, &r->maps->memory, (size_t)a.count, sizeof **out, err));
    *n = (size_t)a.count;
    char where[512];
    snprintf(where, sizeof where, "%s: %s", r->path, name);
    return mha_npy_i64(*out, &a, where, err);
}

/* Original numbers on axis H: the file's, else 0 … H−1. */
static mha_status head_ids_read(const reader *r, mha_map_step *s, mha_err *err)
{
    char name[48];
    int64_t *given = NULL;
    uint16_t *ids;
    size_t n = 0;
    snprintf(name, sizeof name, "%.*sheads", (int)(strlen(s->name) - strlen("pattern")), s->name);
    if (ends_in_pattern(s->name))
        MHA_TRY(integers_read(r, name, &given, &n, err));
    if (given && n != s->attn.heads)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: %zu numbers for %" PRIu32 " heads", r->path,
                        name, n, s->attn.heads);
    MHA_TRY(mha_arena_alloc((void **)&ids, &r->maps->memory, s->attn.heads, sizeof *ids, err));
    for (size_t h = 0; h < s->attn.heads; h++) {
        int64_t id = given ? given[h] : (int64_t)h;
        if (id < 0 || id >= HEADS_MAX || (h > 0 && id <= ids[h - 1]))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: head number %" PRId64 " out of order",
                            r->path, name, id);
        ids[h] = (uint16_t)id;
    }
    s->attn.original_heads = ids[s->attn.heads - 1] + 1u;
    s->attn.head_ids = ids;
    return MHA_OK;
}

static mha_status steps_alloc(reader *r, size_t count, mha_err *err)
{
    return mha_arena_alloc((void **)&r->maps->steps, &r->maps->memory, count,
                           sizeof *r->maps->steps, err);
}

static mha_status named_read(reader *r, size_t i, mha_err *err)
{
    const char *name = mha_npz_name(r->file, i);
    mha_map_step *s = &r->maps->steps[r->count];
    mha_npy a;
    if (!name_parse(name, &s->attn))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: array '%.80s' is none of enc.self.LAYER.pattern, "
                        "dec.self.LAYER.pattern and dec.cross.LAYER.pattern",
                        r->path, name);
    snprintf(s->name, sizeof s->name, "%s", name);
    MHA_TRY(mha_npz_get(r->file, i, &a, err));
    if (a.rank != 3)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s has %" PRIu32 " axes, not [H, T, S]", r->path,
                        name, a.rank);
    MHA_TRY(shape_take(r, s, &a, a.shape, err));
    MHA_TRY(mha_alloc((void **)&s->weights, (size_t)a.count, sizeof *s->weights, err));
    r->count++; /* from here on released with the others */
    mha_npy_f32(s->weights, &a);
    MHA_TRY(weights_check(r, s, err));
    return head_ids_read(r, s, err);
}

/* a: [L, H, T, S] */
static mha_status layers_read(reader *r, const mha_npy *a, mha_err *err)
{
    bool causal = true;
    if (a->rank != 4 || a->shape[0] == 0 || a->shape[0] > LAYER_MAX)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: a single array of %" PRIu32 " axes; expected [L, H, T, S] with 1 to "
                        "%d layers",
                        r->path, a->rank, LAYER_MAX);
    size_t layers = (size_t)a->shape[0];
    mha_map_step one = {.name = "its array"};
    MHA_TRY(shape_take(r, &one, a, a->shape + 1, err));
    float *all;
    size_t n = (size_t)(a->count / layers);
    MHA_TRY(steps_alloc(r, layers, err));
    MHA_TRY(mha_alloc((void **)&all, (size_t)a->count, sizeof *all, err));
    mha_npy_f32(all, a);
    mha_status status = MHA_OK;
    for (size_t l = 0; l < layers && status == MHA_OK; l++) {
        mha_map_step *s = &r->maps->steps[l];
        *s = one;
        s->attn.layer = (uint32_t)l;
        snprintf(s->name, sizeof s->name, "layer %zu", l);
        status = mha_alloc((void **)&s->weights, n, sizeof *s->weights, err);
        if (status != MHA_OK)
            break;
        r->count++;
        memcpy(s->weights, all + l * n, n * sizeof *all);
        status = weights_check(r, s, err);
        if (status == MHA_OK)
            status = head_ids_read(r, s, err);
        causal = causal && s->attn.causal;
    }
    mha_free(all);
    for (size_t l = 0; l < r->count; l++)
        r->maps->steps[l].attn.stack = causal ? MHA_DEC : MHA_ENC;
    return status;
}

static mha_status archive_read(reader *r, mha_err *err)
{
    size_t named = 0, four = 0, last = 0;
    mha_npy a;
    for (size_t i = 0; i < mha_npz_count(r->file); i++)
        named += ends_in_pattern(mha_npz_name(r->file, i));
    if (named) {
        MHA_TRY(steps_alloc(r, named, err));
        for (size_t i = 0; i < mha_npz_count(r->file); i++)
            if (ends_in_pattern(mha_npz_name(r->file, i)))
                MHA_TRY(named_read(r, i, err));
        return MHA_OK;
    }
    for (size_t i = 0; i < mha_npz_count(r->file); i++) {
        MHA_TRY(mha_npz_get(r->file, i, &a, err));
        if (a.rank == 4) {
            four++;
            last = i;
        }
    }
    if (four != 1)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: no maps in it: expected arrays STACK.KIND.LAYER.pattern, or one "
                        "array [L, H, T, S]",
                        r->path);
    MHA_TRY(mha_npz_get(r->file, last, &a, err));
    return layers_read(r, &a, err);
}

/* ---- the document and the model that the maps stand for --------------------------------------
 */

static int step_compare(const void *a, const void *b)
{
    const mha_attn_info *x = &((const mha_map_step *)a)->attn,
                        *y = &((const mha_map_step *)b)->attn;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

static mha_status ids_read(const reader *r, const char *name, size_t n, const int32_t **out,
                           mha_err *err)
{
    int64_t *given = NULL;
    int32_t *ids;
    size_t count = 0;
    MHA_TRY(integers_read(r, name, &given, &count, err));
    if (given && count != n)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: %zu ids for maps of %zu tokens", r->path,
                        name, count, n);
    MHA_TRY(mha_arena_alloc((void **)&ids, &r->maps->memory, n, sizeof *ids, err));
    for (size_t i = 0; i < n; i++) {
        int64_t id = given ? given[i] : (int64_t)i;
        if (id < 0 || id > INT32_MAX)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: %s: %" PRId64 " is not a token id", r->path,
                            name, id);
        ids[i] = (int32_t)id;
    }
    *out = ids;
    return MHA_OK;
}

/* One side of a step must be as long as the same text everywhere else. */
static mha_status side_take(const reader *r, const mha_map_step *s, size_t *side, uint64_t found,
                            mha_err *err)
{
    if (*side && *side != found)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: %s: %" PRIu64 " tokens where other maps of the same text have %zu",
                        r->path, s->name, found, *side);
    *side = (size_t)found;
    return MHA_OK;
}

static mha_status document_make(reader *r, mha_err *err)
{
    mha_maps *m = r->maps;
    mha_document *d = &m->document;
    bool two = m->model.info.layers[MHA_ENC] && m->model.info.layers[MHA_DEC];
    for (size_t a = 0; a < r->count; a++) {
        const mha_map_step *s = &m->steps[a];
        bool target = two && s->attn.stack == MHA_DEC;
        MHA_TRY(side_take(r, s, target ? &d->target_n : &d->n, s->queries, err));
        bool target_keys = target && s->attn.kind == MHA_SELF;
        MHA_TRY(side_take(r, s, target_keys ? &d->target_n : &d->n, s->keys, err));
    }
    MHA_TRY(ids_read(r, "ids", d->n, &d->ids, err));
    return two ? ids_read(r, "target_ids", d->target_n, &d->target_ids, err) : MHA_OK;
}

static mha_status info_make(reader *r, mha_err *err)
{
    mha_maps *m = r->maps;
    mha_model_info *info = &m->model.info;
    mha_attn_info *attn;
    char *path;
    qsort(m->steps, r->count, sizeof *m->steps, step_compare);
    MHA_TRY(mha_arena_strdup(&path, &m->memory, r->path, err));
    MHA_TRY(mha_arena_alloc((void **)&attn, &m->memory, r->count, sizeof *attn, err));
    info->path = path;
    info->family = "maps";
    info->format = r->file ? "npz" : "npy";
    info->dtype = "F32";
    info->head_name = "none";
    info->decoder_start = info->eos = info->pad = -1;
    info->attn = attn;
    info->attn_count = r->count;
    for (size_t a = 0; a < r->count; a++) {
        attn[a] = m->steps[a].attn;
        uint32_t *layers = &info->layers[attn[a].stack];
        *layers = attn[a].layer >= *layers ? attn[a].layer + 1 : *layers;
        /* Who reads an encoder has one, even when its own maps were not dumped. */
        if (attn[a].kind == MHA_CROSS && !info->layers[MHA_ENC])
            info->layers[MHA_ENC] = 1;
    }
    return document_make(r, err);
}

static mha_status bytes_read(reader *r, const unsigned char *data, size_t size, uint64_t max_bytes,
                             mha_err *err)
{
    mha_sha256 hash;
    mha_npy a;
    size_t n = strlen(r->path);
    mha_sha256_init(&hash);
    mha_sha256_add(&hash, data, size);
    mha_sha256_hex(&hash, r->maps->model.info.fingerprint);
    r->maps->model.info.file_bytes = size;
    if (n >= 4 && strcmp(r->path + n - 4, ".npy") == 0) {
        MHA_TRY(mha_npy_parse(&a, data, size, r->path, err));
        MHA_TRY(layers_read(r, &a, err));
    } else {
        MHA_TRY(mha_npz_parse(&r->file, data, size, r->path, max_bytes, err));
        MHA_TRY(archive_read(r, err));
    }
    return info_make(r, err);
}

mha_status mha_maps_parse(mha_maps **out, const unsigned char *data, size_t size, const char *path,
                          uint64_t max_bytes, mha_err *err)
{
    reader r = {.path = path};
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&r.maps, 1, sizeof *r.maps, err));
    mha_status status = bytes_read(&r, data, size, max_bytes, err);
    mha_npz_close(r.file);
    if (status == MHA_OK) {
        *out = r.maps;
        return MHA_OK;
    }
    r.maps->model.info.attn_count = r.count;
    mha_maps_close(r.maps);
    return status;
}

mha_status mha_maps_open(mha_maps **out, const char *path, uint64_t max_bytes, mha_err *err)
{
    mha_filemap map;
    *out = NULL;
    MHA_TRY(mha_filemap_open(&map, path, err));
    mha_status status = mha_maps_parse(out, map.data, map.size, path, max_bytes, err);
    if (status == MHA_OK)
        status = mha_filemap_check(&map, err);
    mha_filemap_close(&map);
    if (status == MHA_OK)
        return MHA_OK;
    mha_maps_close(*out);
    *out = NULL;
    return status;
}

void mha_maps_close(mha_maps *m)
{
    if (!m)
        return;
    for (size_t a = 0; a < m->model.info.attn_count; a++)
        mha_free(m->steps[a].weights);
    mha_arena_release(&m->memory);
    mha_free(m);
}

mha_model *mha_maps_model(mha_maps *m)
{
    return &m->model;
}

const mha_document *mha_maps_document(const mha_maps *m)
{
    return &m->document;
}

double mha_maps_row_sum_error(const mha_maps *m)
{
    return m->row_sum_error;
}

bool mha_maps_unseen(const mha_maps *m)
{
    return m->unseen;
}
