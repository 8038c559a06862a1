/* heat.c: maps that are pooled while their rows arrive. It may not keep a row: memory is that of
 * the tiles, however long the text is. */
#include "render/heat.h"

#include "base/fail.h"
#include "base/mem.h"

#include <assert.h>
#include <math.h>

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static mha_status heat_make(mha_heat **out, size_t rows, size_t cols, size_t tile,
                            mha_pooling pooling, mha_err *err)
{
    void *p = NULL, *sums = NULL, *seen = NULL;
    size_t count;
    mha_heat shape = {.rows = rows, .cols = cols, .tile = tile, .pooling = pooling};
    shape.tile_rows = divide_up(rows, tile);
    shape.tile_cols = divide_up(cols, tile);
    if (mha_mul_overflows(shape.tile_rows, shape.tile_cols, &count))
        return mha_fail(err, MHA_ERR_NOMEM, "a map of %zu x %zu tiles", shape.tile_rows,
                        shape.tile_cols);
    MHA_TRY(mha_alloc(&p, 1, sizeof shape, err));
    mha_status status = mha_alloc(&sums, count, sizeof *shape.sums, err);
    if (status == MHA_OK)
        status = mha_alloc(&seen, count, sizeof *shape.seen, err);
    if (status != MHA_OK) {
        mha_free(sums);
        mha_free(p);
        return status;
    }
    shape.sums = sums;
    shape.seen = seen;
    *out = p;
    **out = shape;
    return MHA_OK;
}

mha_status mha_heat_new(mha_heat **out, size_t rows, size_t cols, size_t limit, mha_pooling pooling,
                        mha_err *err)
{
    size_t longest = rows > cols ? rows : cols;
    if (rows == 0 || cols == 0 || limit == 0)
        return mha_fail(err, MHA_ERR_ARG, "a map of %zu x %zu cells in %zu tiles", rows, cols,
                        limit);
    return heat_make(out, rows, cols, divide_up(longest, limit), pooling, err);
}

void mha_heat_free(mha_heat *h)
{
    if (!h)
        return;
    mha_free(h->sums);
    mha_free(h->seen);
    mha_free(h);
}

static void tile_add(mha_heat *h, size_t i, double value, size_t seen)
{
    if (h->pooling == MHA_POOL_MEAN)
        h->sums[i] += value;
    else if (h->seen[i] == 0 || value > h->sums[i])
        h->sums[i] = value;
    h->seen[i] += seen;
}

void mha_heat_add(mha_heat *h, size_t row, size_t first_col, const float *weights, size_t n)
{
    assert(row < h->rows && first_col <= h->cols && n <= h->cols - first_col);
    size_t base = row / h->tile * h->tile_cols;
    size_t col = first_col / h->tile, inside = first_col % h->tile;
    for (size_t k = 0; k < n; k++) {
        /* A weight that is no number is as if it had not arrived. */
        if (isfinite(weights[k]))
            tile_add(h, base + col, (double)weights[k], 1);
        if (++inside == h->tile) {
            inside = 0;
            col++;
        }
    }
}

size_t mha_heat_rows(const mha_heat *h)
{
    return h->rows;
}

size_t mha_heat_cols(const mha_heat *h)
{
    return h->cols;
}

size_t mha_heat_tile(const mha_heat *h)
{
    return h->tile;
}

double mha_heat_get(const mha_heat *h, size_t tile_row, size_t tile_col)
{
    assert(tile_row < h->tile_rows && tile_col < h->tile_cols);
    size_t i = tile_row * h->tile_cols + tile_col;
    if (h->seen[i] == 0)
        return (double)NAN;
    return h->pooling == MHA_POOL_MEAN ? h->sums[i] / (double)h->seen[i] : h->sums[i];
}

mha_status mha_heat_coarsen(mha_heat **out, const mha_heat *h, size_t factor, mha_err *err)
{
    MHA_TRY(heat_make(out, h->rows, h->cols, h->tile * factor, h->pooling, err));
    for (size_t r = 0; r < h->tile_rows; r++) {
        for (size_t c = 0; c < h->tile_cols; c++) {
            size_t from = r * h->tile_cols + c;
            if (h->seen[from] > 0)
                tile_add(*out, r / factor * (*out)->tile_cols + c / factor, h->sums[from],
                         h->seen[from]);
        }
    }
    return MHA_OK;
}
