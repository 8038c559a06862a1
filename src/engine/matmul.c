/* matmul.c: y = x·Wᵀ for every way in which W can be stored, or not stored at all.
 *
 * Plain aligned float matrices are used where they lie. Others are widened as a whole into scratch,
 * once a call, and then multiplied like plain ones. A few rows (generation) are multiplied by the
 * stored type directly, which reads the weights once and at their stored size. */
#include "engine/matmul.h"
#include "base/fail.h"
#include "kernel/gemm.h"
#include <string.h>

#define DIRECT_COLS 64

static const unsigned char *stored_row(const mha_weight *w, size_t r)
{
    const mha_dtype_info *t = mha_dtype_get(w->type);
    size_t row = r / w->group * w->group_stride + r % w->group;
    return w->data + row * (w->stride / t->block) * t->bytes;
}

void mha_weight_row(const mha_kernels *k, const mha_weight *w, size_t r, float *dst)
{
    k->widen[w->type](dst, stored_row(w, r), w->in);
}

/* ---- the mean of parts ------------------------------------------------------------------------
 *
 * y_o = Σ_r x[r·out + o]/n over the n = in/out parts of x; dx[r·out + o] = dy_o/n. */

typedef struct mean_job {
    const mha_kernels *k;
    float *to;
    size_t ld_to;
    const float *from;
    size_t ld_from, rows, out, parts;
    const mha_epilogue *epilogue;
    float beta;
} mean_job;

static mha_status mean_rows(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const mean_job *j = context;
    size_t end = (task + 1) * MHA_BLOCK_ROWS;
    for (size_t r = task * MHA_BLOCK_ROWS; r < j->rows && r < end; r++) {
        float *y = j->to + r * j->ld_to;
        const float *x = j->from + r * j->ld_from;
        memmove(y, x, j->out * sizeof *y);
        for (size_t p = 1; p < j->parts; p++)
            j->k->add(y, x + p * j->out, j->out);
        if (j->parts > 1)
            j->k->scale(y, j->out, 1.0f / (float)j->parts);
        if (j->epilogue != NULL && j->epilogue->bias != NULL)
            j->k->add(y, j->epilogue->bias, j->out);
    }
    return MHA_OK;
}

static mha_status mean_rows_back(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const mean_job *j = context;
    size_t end = (task + 1) * MHA_BLOCK_ROWS;
    for (size_t r = task * MHA_BLOCK_ROWS; r < j->rows && r < end; r++)
        for (size_t p = 0; p < j->parts; p++) {
            float *dx = j->to + r * j->ld_to + p * j->out;
            if (j->beta == 0) /* whatever is there, even NaN */
                memset(dx, 0, j->out * sizeof *dx);
            else
                j->k->scale(dx, j->out, j->beta);
            j->k->axpy(dx, 1.0f / (float)j->parts, j->from + r * j->ld_from, j->out);
        }
    return MHA_OK;
}

static mha_status mean_run(mha_engine *e, mean_job *j, const mha_weight *w, mha_task task,
                           mha_err *err)
{
    j->k = e->kernels;
    j->out = w->out;
    j->parts = w->in / w->out;
    return mha_pool_run(e->pool, (j->rows + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS, task, j, err);
}

/* The same as a matrix [out, in]. */
static void mean_fill(const mha_weight *w, float *dst)
{
    memset(dst, 0, (size_t)w->out * w->in * sizeof *dst);
    for (size_t i = 0; i < w->in; i++)
        dst[i % w->out * w->in + i] = 1.0f / (float)(w->in / w->out);
}

/* ---- widening a whole matrix ---------------------------------------------------------------- */

typedef struct widen_job {
    const mha_kernels *k;
    const mha_weight *w;
    float *dst;
} widen_job;

static mha_status widen_rows(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const widen_job *j = context;
    size_t rows = j->w->in_out ? j->w->in : j->w->out, end = (task + 1) * MHA_BLOCK_ROWS;
    for (size_t r = task * MHA_BLOCK_ROWS; r < rows && r < end; r++) {
        if (!j->w->in_out) {
            mha_weight_row(j->k, j->w, r, j->dst + r * j->w->in);
            continue;
        }
        /* columns are outputs: gather each group of them */
        const mha_dtype_info *t = mha_dtype_get(j->w->type);
        for (size_t c = 0; c < j->w->out; c += j->w->group) {
            size_t at = r * j->w->stride + c / j->w->group * j->w->group_stride;
            j->k->widen[j->w->type](j->dst + r * j->w->out + c, j->w->data + at * t->bytes,
                                    j->w->group);
        }
    }
    return MHA_OK;
}

mha_status mha_weight_floats(mha_engine *e, const mha_weight *w, const float **out, size_t *ld,
                             bool *b_transposed, mha_err *err)
{
    *b_transposed = !w->in_out;
    if (!w->mean && w->type == MHA_F32 && w->group == w->out &&
        (uintptr_t)w->data % sizeof(float) == 0) {
        *out = (const float *)(const void *)w->data;
        *ld = w->stride;
        return MHA_OK;
    }
    void *wide;
    MHA_TRY(
        mha_scratch_get(e, MHA_SCRATCH_WIDE, (size_t)w->out * w->in, sizeof(float), &wide, err));
    if (w->mean) {
        mean_fill(w, wide);
        *out = wide;
        *ld = w->in;
        return MHA_OK;
    }
    widen_job job = {e->kernels, w, wide};
    size_t rows = w->in_out ? w->in : w->out;
    MHA_TRY(
        mha_pool_run(e->pool, (rows + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS, widen_rows, &job, err));
    *out = wide;
    *ld = w->in_out ? w->out : w->in;
    return MHA_OK;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

typedef struct matmul_job {
    const mha_kernels *k;
    float *y;
    size_t ldy;
    const float *x;
    size_t ldx, rows;
    const mha_weight *w;
    const float *b;
    size_t ldb;
    bool b_transposed;
    const mha_epilogue *epilogue;
    size_t tile_rows, tile_cols, col_tiles;
    float beta; /* of the reverse product */
} matmul_job;

/* The bias is laid down first, and the product added to it: BLAS would write zeros there instead.
 * Returns the product's beta. */
static float start_tile(const matmul_job *j, size_t r0, size_t rows, size_t c0, size_t cols)
{
    if (j->epilogue == NULL || j->epilogue->bias == NULL)
        return 0;
    for (size_t r = r0; r < r0 + rows; r++)
        memcpy(j->y + r * j->ldy + c0, j->epilogue->bias + c0, cols * sizeof(float));
    return 1;
}

static void finish_tile(const matmul_job *j, size_t r0, size_t rows, size_t c0, size_t cols)
{
    const mha_epilogue *ep = j->epilogue;
    if (ep == NULL)
        return;
    for (size_t r = r0; r < r0 + rows; r++) {
        float *y = j->y + r * j->ldy + c0;
        if (ep->gate != NULL) {
            float *g = ep->gate + r * j->ldy + c0;
            j->k->act_mul[ep->act](g, y, cols);
        } else if (ep->act != MHA_ACT_NONE)
            j->k->act[ep->act](y, cols);
    }
}

static mha_status tile(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const matmul_job *j = context;
    size_t r0 = task / j->col_tiles * j->tile_rows, c0 = task % j->col_tiles * j->tile_cols;
    size_t rows = j->rows - r0 < j->tile_rows ? j->rows - r0 : j->tile_rows;
    size_t cols = j->w->out - c0 < j->tile_cols ? j->w->out - c0 : j->tile_cols;
    const float *b = j->b_transposed ? j->b + c0 * j->ldb : j->b + c0;
    float beta = start_tile(j, r0, rows, c0, cols);
    mha_gemm(false, j->b_transposed, rows, cols, j->w->in, 1, j->x + r0 * j->ldx, j->ldx, b, j->ldb,
             beta, j->y + r0 * j->ldy + c0, j->ldy);
    finish_tile(j, r0, rows, c0, cols);
    return MHA_OK;
}

/* Even column tiles, multiples of 16 wide: as few as leave MHA_TILES pieces of work in all. */
static size_t tile_columns(size_t row_tiles, size_t cols)
{
    size_t least = (cols + MHA_TILE_COLS - 1) / MHA_TILE_COLS;
    size_t most = (cols + MHA_TILE_COLS_MIN - 1) / MHA_TILE_COLS_MIN;
    size_t tiles = (MHA_TILES + row_tiles - 1) / row_tiles;
    tiles = tiles > most ? most : tiles;
    tiles = tiles < least ? least : tiles;
    return ((cols + tiles - 1) / tiles + 15) / 16 * 16;
}

/* Every tile packs its rows of x and its columns of W anew: of whole and half row tiles those that
 * pack less. Depends on the shape alone. Returns the number of all tiles. */
static size_t tile_count(matmul_job *j, size_t cols)
{
    size_t least = SIZE_MAX, count = 0;
    for (size_t high = MHA_TILE_ROWS; high >= MHA_TILE_ROWS / 2; high /= 2) {
        size_t row_tiles = (j->rows + high - 1) / high, wide = tile_columns(row_tiles, cols);
        size_t col_tiles = (cols + wide - 1) / wide;
        size_t packed = j->rows * col_tiles + cols * row_tiles;
        if (packed >= least)
            continue;
        least = packed;
        count = row_tiles * col_tiles;
        j->tile_rows = high;
        j->tile_cols = wide;
        j->col_tiles = col_tiles;
    }
    return count;
}

static mha_status direct(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const matmul_job *j = context;
    size_t c0 = task * DIRECT_COLS;
    size_t cols = j->w->out - c0 < DIRECT_COLS ? j->w->out - c0 : DIRECT_COLS;
    float beta = start_tile(j, 0, j->rows, c0, cols);
    for (size_t c = c0; c < c0 + cols; c++)
        for (size_t r = 0; r < j->rows; r++) {
            float *y = &j->y[r * j->ldy + c];
            float dot = j->k->dot[j->w->type](stored_row(j->w, c), j->x + r * j->ldx, j->w->in);
            *y = beta == 0 ? dot : *y + dot;
        }
    finish_tile(j, 0, j->rows, c0, cols);
    return MHA_OK;
}

mha_status mha_matmul(mha_engine *e, float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                      const mha_weight *w, const mha_epilogue *epilogue, mha_err *err)
{
    matmul_job j = {.k = e->kernels,
                    .y = y,
                    .ldy = ldy,
                    .x = x,
                    .ldx = ldx,
                    .rows = rows,
                    .w = w,
                    .epilogue = epilogue};
    if (w->mean) {
        mean_job mean = {
            .to = y, .ld_to = ldy, .from = x, .ld_from = ldx, .rows = rows, .epilogue = epilogue};
        return mean_run(e, &mean, w, mean_rows, err);
    }
    e->multiply_adds += (double)rows * w->out * w->in;
    if (rows <= MHA_DIRECT_ROWS && !w->in_out)
        return mha_pool_run(e->pool, (w->out + DIRECT_COLS - 1) / DIRECT_COLS, direct, &j, err);

    MHA_TRY(mha_weight_floats(e, w, &j.b, &j.ldb, &j.b_transposed, err));
    return mha_pool_run(e->pool, tile_count(&j, w->out), tile, &j, err);
}

/* ---- the reverse: dx = dy·W --------------------------------------------------------------------
 */

static mha_status tile_back(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)worker;
    (void)err;
    const matmul_job *j = context;
    size_t r0 = task / j->col_tiles * j->tile_rows, c0 = task % j->col_tiles * j->tile_cols;
    size_t rows = j->rows - r0 < j->tile_rows ? j->rows - r0 : j->tile_rows;
    size_t cols = j->w->in - c0 < j->tile_cols ? j->w->in - c0 : j->tile_cols;
    /* b_transposed: b is [out, in], used as it lies; otherwise [in, out] */
    const float *b = j->b_transposed ? j->b + c0 : j->b + c0 * j->ldb;
    mha_gemm(false, !j->b_transposed, rows, cols, j->w->out, 1, j->x + r0 * j->ldx, j->ldx, b,
             j->ldb, j->beta, j->y + r0 * j->ldy + c0, j->ldy);
    return MHA_OK;
}

mha_status mha_matmul_back(mha_engine *e, float *dx, size_t ldx, const float *dy, size_t ldy,
                           size_t rows, const mha_weight *w, float beta, mha_err *err)
{
    matmul_job j = {.k = e->kernels,
                    .y = dx,
                    .ldy = ldx,
                    .x = dy,
                    .ldx = ldy,
                    .rows = rows,
                    .w = w,
                    .beta = beta};
    if (w->mean) {
        mean_job mean = {
            .to = dx, .ld_to = ldx, .from = dy, .ld_from = ldy, .rows = rows, .beta = beta};
        return mean_run(e, &mean, w, mean_rows_back, err);
    }
    e->multiply_adds += (double)rows * w->out * w->in;
    MHA_TRY(mha_weight_floats(e, w, &j.b, &j.ldb, &j.b_transposed, err));
    return mha_pool_run(e->pool, tile_count(&j, w->in), tile_back, &j, err);
}
