/* merge.c: see merge.h. For the token rows i of a word with the cell c of keys,
 *   p'_c = (1/pieces) Σ_i s_i Σ_{j in c, j counted} p_ij,
 * where s_i = 1, or under RENORM 1 over the row's mass beside special keys. Sums are in double: a
 * row of a long text has many small weights. */
#include "probe/merge.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

size_t mha_words_cells(const int32_t *words, size_t n, uint32_t *cell)
{
    size_t cells = 0;
    for (size_t t = 0; t < n; t++) {
        bool joins = t > 0 && words != NULL && words[t] >= 0 && words[t] == words[t - 1];
        cells += !joins;
        cell[t] = (uint32_t)(cells - 1);
    }
    return cells;
}

mha_status mha_cells_init(mha_cells *c, const int32_t *words, size_t n, mha_err *err)
{
    *c = (mha_cells){.n = n, .count = n};
    if (words == NULL || n == 0)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&c->cell, n, sizeof *c->cell, err));
    c->count = mha_words_cells(words, n, c->cell);
    return MHA_OK;
}

void mha_cells_release(mha_cells *c)
{
    mha_free(c->cell);
    *c = (mha_cells){0};
}

static bool starts_cell(const mha_cells *c, size_t t)
{
    return c->cell == NULL || t == 0 || c->cell[t] != c->cell[t - 1];
}

static bool ends_cell(const mha_cells *c, size_t t)
{
    return c->cell == NULL || t + 1 == c->n || c->cell[t] != c->cell[t + 1];
}

static void row_clear(const mha_merge *m, mha_merge_row *row)
{
    memset(row->p, 0, m->keys->count * sizeof *row->p);
    if (row->seen != NULL)
        memset(row->seen, 0, m->keys->count);
    row->special = row->left_out = 0;
    row->pieces = row->skipped = 0;
}

static void row_divide(const mha_merge *m, mha_merge_row *row)
{
    double share = 1.0 / (double)row->pieces;
    for (size_t c = 0; c < m->keys->count; c++)
        row->p[c] *= share;
    row->special *= share;
    row->left_out *= share;
}

bool mha_merge_add(const mha_merge *m, mha_merge_row *row, size_t i, const float *p, size_t lo,
                   size_t hi)
{
    if (starts_cell(m->queries, i))
        row_clear(m, row);
    double sum = 0, special = 0, scale = 1;
    for (size_t j = lo; j < hi; j++)
        sum += (double)p[j];
    for (size_t j = lo; m->special != NULL && j < hi; j++)
        if (m->special[j])
            special += (double)p[j];
    bool all = m->special == NULL || m->mode == MHA_SPECIAL_KEEP;
    if (m->mode == MHA_SPECIAL_RENORM) {
        if (!(sum - special >= MHA_MERGE_LEAST)) {
            row->skipped++;
            lo = hi;
        } else
            scale = 1.0 / (sum - special);
    }
    if (lo < hi) {
        row->pieces++;
        row->special += special;
        row->left_out += 1.0 - sum;
    }
    for (size_t j = lo; j < hi; j++) {
        if (!all && m->special[j])
            continue;
        size_t c = m->keys->cell != NULL ? m->keys->cell[j] : j;
        row->p[c] += (double)p[j] * scale;
        if (row->seen != NULL)
            row->seen[c] = 1;
    }
    if (!ends_cell(m->queries, i))
        return false;
    if (row->pieces > 1)
        row_divide(m, row);
    return true;
}
