/* relative.c: the relative terms of the scores and their gradients.
 *
 *   s_ij += scale·(q_i·rk_δ + rq_δ·k_j),  δ = row of i − j
 *   rk = r·W_rkᵀ + b_rk,  rq = r·W_rqᵀ + b_rq,  r = the table's rows, normed where the step says so
 *
 * A tile of 64 queries and 64 keys has 127 distances, and fewer rows where several distances share
 * one: C = q·rkᵀ and P = k·rqᵀ over those rows only, of which s_ij takes C[i, δ] + P[j, δ].
 * Backwards dC and dP collect dS by row. The sums of one head over documents run in one fixed
 * order. */
#include "engine/relative.h"
#include "base/fail.h"
#include "engine/matmul.h"
#include "engine/weights.h"
#include "kernel/gemm.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Distances of a tile, but for one. */
enum { TILE_SPAN = 2 * MHA_BLOCK_ROWS - 2 };

/* ---- rows of distances ------------------------------------------------------------------------
 */

/* With buckets on each side half of them are single distances; distance x beyond has bucket
 * mid + ⌈ln(x/mid)/ln((distance − 1)/mid)·(mid − 1)⌉. In float32 like the reference's. */
static int64_t bucket_of(const mha_attn_args *a, int64_t d)
{
    int64_t mid = a->rel_buckets / 2, far = d < 0 ? -d : d;
    if (a->rel_buckets == 0 || far <= mid)
        return d;
    float all = logf((float)((double)(a->rel_distance - 1) / (double)mid));
    float part = logf((float)far / (float)mid) / all * (float)(mid - 1);
    int64_t bucket = (int64_t)ceilf(part) + mid;
    return d < 0 ? -bucket : bucket;
}

uint32_t mha_relative_row(const mha_attn_args *a, int64_t d)
{
    int64_t span = a->rel.out / 2, row = bucket_of(a, d) + span;
    return (uint32_t)(row < 0 ? 0 : row < 2 * span ? row : 2 * span - 1);
}

/* Rows change fastest at distance 0 and hardly ever beyond this one. */
static int64_t farthest(const mha_attn_args *a)
{
    int64_t span = a->rel.out / 2;
    return a->rel_buckets == 0 || a->rel_distance < span ? span : a->rel_distance;
}

mha_relative_size mha_relative_measure(const mha_attn_args *a, size_t T, size_t S)
{
    mha_relative_size size = {.first = mha_relative_row(a, 1 - (int64_t)S)};
    int64_t far = farthest(a), lo = 1 - (int64_t)S, hi = (int64_t)T - 1;
    size.rows = mha_relative_row(a, hi) - size.first + 1;
    lo = lo < -far - TILE_SPAN ? -far - TILE_SPAN : lo;
    hi = hi > far ? far : hi;
    for (int64_t d = lo; d <= hi; d++) {
        size_t n = mha_relative_row(a, d + TILE_SPAN) - mha_relative_row(a, d) + 1;
        size.most = n > size.most ? n : size.most;
    }
    size.most = size.most > size.rows ? size.rows : size.most;
    size.tile = MHA_BLOCK_ROWS * (2 * size.most + a->width);
    return size;
}

/* By diagonals of tiles, all taken as whole ones. */
double mha_relative_cost(const mha_attn_args *a, size_t T, size_t S)
{
    size_t rows = T < MHA_BLOCK_ROWS ? T : MHA_BLOCK_ROWS;
    size_t keys = S < MHA_BLOCK_ROWS ? S : MHA_BLOCK_ROWS;
    int64_t down = (int64_t)(T / rows), across = (int64_t)(S / keys);
    double cost = 0, each = 0;
    each += a->rel_k.data != NULL ? (double)rows : 0;
    each += a->rel_q.data != NULL ? (double)keys : 0;
    for (int64_t diagonal = 1 - across; diagonal < down; diagonal++) {
        int64_t begin = diagonal > 0 ? diagonal : 0;
        int64_t end = diagonal + across < down ? diagonal + across : down;
        int64_t d = diagonal * MHA_BLOCK_ROWS;
        uint32_t lo = mha_relative_row(a, d - (int64_t)keys + 1);
        uint32_t hi = mha_relative_row(a, d + (int64_t)rows - 1);
        cost += (double)(end - begin) * (double)(hi - lo + 1) * each;
    }
    return cost * a->width * a->heads;
}

/* ---- what a step needs ------------------------------------------------------------------------
 */

static void find_rows(mha_relative *r, size_t T, size_t S)
{
    const mha_attn_args *a = r->a;
    r->zero = S - 1;
    for (size_t x = 0; x + 1 < T + S; x++)
        r->row[x] = mha_relative_row(a, (int64_t)x - (int64_t)r->zero) - (uint32_t)r->first;
}

/* The table's rows as floats, and normed. */
static void fill_table(const mha_relative *r, float *to, bool normed)
{
    const mha_norm_args *norm = &r->a->rel_norm;
    const mha_kernels *kn = r->f->k;
    size_t D = r->a->rel.in;
    for (size_t x = 0; x < r->rows; x++, to += D) {
        mha_weight_row(kn, &r->a->rel, r->first + x, to);
        if (!normed || norm->n == 0)
            continue;
        if (norm->kind == MHA_NORM_LAYER)
            kn->layer_norm(to, to, norm->w, norm->b, D, norm->eps);
        else
            kn->rms_norm(to, to, norm->w, D, norm->eps);
    }
}

static mha_status project(const mha_relative *r, float *to, const mha_weight *w, const float *b,
                          mha_err *err)
{
    mha_epilogue ep = {.bias = b, .act = MHA_ACT_NONE};
    return mha_matmul(r->f->e, to, w->out, r->table, w->in, r->rows, w, &ep, err);
}

mha_status mha_relative_make(mha_relative *r, mha_forward *f, const mha_attn_args *a, size_t T,
                             size_t S, mha_err *err)
{
    *r = (mha_relative){.f = f};
    if (a->rel.data == NULL)
        return MHA_OK;
    mha_engine *e = f->e;
    mha_relative_size size = mha_relative_measure(a, T, S);
    size_t threads = mha_pool_threads(e->pool), n = size.rows * a->heads * a->width;
    void *row, *table, *both, *tiles;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_REL_ROWS, T + S, sizeof(uint32_t), &row, err));
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_REL_TABLE, size.rows * a->rel.in, sizeof(float), &table,
                            err));
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_REL_KEYS, 2 * n, sizeof(float), &both, err));
    MHA_TRY(
        mha_scratch_get(e, MHA_SCRATCH_REL_TILES, threads * size.tile, sizeof(float), &tiles, err));
    r->a = a;
    r->row = row;
    r->first = size.first;
    r->rows = size.rows;
    r->most = size.most;
    r->table = table;
    r->tiles = tiles;
    r->k = a->rel_k.data != NULL ? both : NULL;
    r->q = a->rel_q.data != NULL ? (float *)both + n : NULL;
    find_rows(r, T, S);
    fill_table(r, table, true);
    if (r->k != NULL)
        MHA_TRY(project(r, r->k, &a->rel_k, a->rel_kb, err));
    return r->q != NULL ? project(r, r->q, &a->rel_q, a->rel_qb, err) : MHA_OK;
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* Keys at … at + keys − 1 of a block. */
typedef struct tile {
    size_t at, keys;
    const uint32_t *row; /* of the distance between the block's first query and the first key */
    size_t first, rows;  /* of the table */
    float *c, *p;        /* [block rows, rows] and [keys, rows] */
} tile;

static float *memory_of(const mha_relative *r, size_t worker)
{
    return r->tiles + worker * MHA_BLOCK_ROWS * (2 * r->most + r->a->width);
}

static tile tile_of(const mha_relative *r, const mha_relative_block *b, size_t at, size_t worker)
{
    size_t left = b->keys - at;
    tile t = {.at = at, .keys = left < MHA_BLOCK_ROWS ? left : MHA_BLOCK_ROWS};
    t.row = r->row + r->zero + b->query - (b->key + at);
    t.first = *(t.row - (t.keys - 1));
    t.rows = t.row[b->rows - 1] - t.first + 1;
    assert(t.rows <= r->most);
    t.c = memory_of(r, worker);
    t.p = t.c + MHA_BLOCK_ROWS * r->most;
    return t;
}

/* Where the tile's rows of this head begin among projected ones. */
static size_t place(const mha_relative *r, const mha_relative_block *b, const tile *t)
{
    return (t->first * r->a->heads + b->head) * r->a->width;
}

void mha_relative_add(const mha_relative *r, const mha_relative_block *b, size_t worker)
{
    const mha_attn_args *a = r->a;
    size_t K = a->width, HK = (size_t)a->heads * K;
    for (size_t at = 0; at < b->keys; at += MHA_BLOCK_ROWS) {
        tile t = tile_of(r, b, at, worker);
        size_t m = t.rows, from = place(r, b, &t);
        if (r->k != NULL)
            mha_gemm(false, true, b->rows, m, K, a->scale, b->q, HK, r->k + from, HK, 0, t.c, m);
        if (r->q != NULL)
            mha_gemm(false, true, t.keys, m, K, a->scale, b->k + at * HK, HK, r->q + from, HK, 0,
                     t.p, m);
        for (size_t i = 0; i < b->rows; i++) {
            float *s = b->s + i * b->stride + at;
            const uint32_t *row = t.row + i;
            const float *c = t.c + i * m;
            for (size_t j = 0; r->k != NULL && j < t.keys; j++)
                s[j] += c[*(row - j) - t.first];
            for (size_t j = 0; r->q != NULL && j < t.keys; j++)
                s[j] += t.p[j * m + *(row - j) - t.first];
        }
    }
}

/* dC and dP of one tile from dS. */
static void collect(const mha_relative *r, const mha_relative_block *b, const tile *t)
{
    size_t m = t->rows;
    memset(t->c, 0, b->rows * m * sizeof *t->c);
    memset(t->p, 0, t->keys * m * sizeof *t->p);
    for (size_t i = 0; i < b->rows; i++) {
        const float *ds = b->s + i * b->stride + t->at;
        const uint32_t *row = t->row + i;
        float *c = t->c + i * m;
        for (size_t j = 0; r->k != NULL && j < t->keys; j++)
            c[*(row - j) - t->first] += ds[j];
        for (size_t j = 0; r->q != NULL && j < t->keys; j++)
            t->p[j * m + *(row - j) - t->first] += ds[j];
    }
}

float *mha_relative_queries(const mha_relative *r, size_t rows, size_t worker)
{
    size_t K = r->a->width;
    float *dq = memory_of(r, worker) + MHA_BLOCK_ROWS * 2 * r->most;
    memset(dq, 0, rows * K * sizeof *dq);
    return dq;
}

void mha_relative_back(const mha_relative *r, const mha_relative_block *b, float *dk, float *dq,
                       size_t worker)
{
    const mha_attn_args *a = r->a;
    size_t K = a->width, HK = (size_t)a->heads * K;
    for (size_t at = 0; at < b->keys; at += MHA_BLOCK_ROWS) {
        tile t = tile_of(r, b, at, worker);
        size_t m = t.rows, from = place(r, b, &t);
        const float *k = b->k + at * HK;
        collect(r, b, &t);
        if (r->k != NULL)
            mha_gemm(false, false, b->rows, K, m, a->scale, t.c, m, r->k + from, HK, 1, dq, K);
        if (r->q != NULL)
            mha_gemm(false, false, t.keys, K, m, a->scale, t.p, m, r->q + from, HK, 1, dk + at * HK,
                     HK);
        if (r->dk != NULL)
            mha_gemm(true, false, m, K, b->rows, a->scale, t.c, m, b->q, HK, 1, r->dk + from, HK);
        if (r->dq != NULL)
            mha_gemm(true, false, m, K, t.keys, a->scale, t.p, m, k, HK, 1, r->dq + from, HK);
    }
}

/* ---- gradients of weights ---------------------------------------------------------------------
 */

static bool is_wanted(const mha_weights *w, const mha_weight *m, const float *b)
{
    return mha_weights_row(w, m, 0) != NULL || mha_weights_wants(w, b);
}

mha_status mha_relative_back_begin(mha_relative *r, const mha_weights *weights, mha_err *err)
{
    const mha_attn_args *a = r->a;
    if (a == NULL || weights == NULL)
        return MHA_OK;
    bool shared = mha_weights_row(weights, &a->rel, 0) != NULL ||
                  mha_weights_wants(weights, a->rel_norm.w) ||
                  mha_weights_wants(weights, a->rel_norm.b);
    bool k = r->k != NULL && (shared || is_wanted(weights, &a->rel_k, a->rel_kb));
    bool q = r->q != NULL && (shared || is_wanted(weights, &a->rel_q, a->rel_qb));
    size_t n = r->rows * a->heads * a->width;
    void *p;
    if (!k && !q)
        return MHA_OK;
    MHA_TRY(mha_scratch_get(r->f->e, MHA_SCRATCH_DREL_KEYS, 2 * n, sizeof(float), &p, err));
    memset(p, 0, 2 * n * sizeof(float));
    r->dk = k ? p : NULL;
    r->dq = q ? (float *)p + n : NULL;
    return MHA_OK;
}

/* d [rows, D] of the normed rows becomes that of the table's, which is added there. */
static mha_status table_back(const mha_relative *r, const mha_weights *weights, float *d,
                             float *raw, mha_err *err)
{
    const mha_attn_args *a = r->a;
    const mha_norm_args *norm = &a->rel_norm;
    size_t D = a->rel.in;
    if (norm->n != 0) {
        fill_table(r, raw, false);
        MHA_TRY(mha_weights_norm(weights, norm, d, raw, r->rows, err));
    }
    for (size_t x = 0; x < r->rows; x++) {
        float *to = mha_weights_row(weights, &a->rel, r->first + x);
        if (to == NULL)
            continue;
        if (norm->n != 0)
            r->f->k->norm_back(d + x * D, d + x * D, raw + x * D, norm->w, D, norm->eps,
                               norm->kind == MHA_NORM_LAYER);
        r->f->k->add(to, d + x * D, D);
    }
    return MHA_OK;
}

mha_status mha_relative_back_end(const mha_relative *r, const mha_weights *weights, mha_err *err)
{
    const mha_attn_args *a = r->a;
    mha_engine *e = r->f->e;
    if (r->dk == NULL && r->dq == NULL)
        return MHA_OK;
    size_t D = a->rel.in, HK = (size_t)a->heads * a->width, n = r->rows * D;
    void *p;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_DREL_TABLE, 2 * n, sizeof(float), &p, err));
    float *d = p;
    if (r->dk != NULL) {
        MHA_TRY(mha_weights_linear(weights, &a->rel_k, a->rel_kb, r->dk, HK, r->table, D, r->rows,
                                   err));
        MHA_TRY(mha_matmul_back(e, d, D, r->dk, HK, r->rows, &a->rel_k, 0, err));
    }
    if (r->dq != NULL) {
        MHA_TRY(mha_weights_linear(weights, &a->rel_q, a->rel_qb, r->dq, HK, r->table, D, r->rows,
                                   err));
        MHA_TRY(
            mha_matmul_back(e, d, D, r->dq, HK, r->rows, &a->rel_q, r->dk != NULL ? 1 : 0, err));
    }
    return table_back(r, weights, d, d + n, err);
}
