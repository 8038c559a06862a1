/* mask.c: the spans of every kind of mask, and the layout of a block's scores. */
#include "engine/mask.h"
#include <string.h>

/* ---- spans ------------------------------------------------------------------------------------
 */

size_t mha_sight_most(const mha_sight *s)
{
    return s->a->mask == MHA_MASK_BLOCKS ? 3 : 1 + s->globals;
}

/* Index of the first global token at or behind position i. */
static size_t global_from(const mha_sight *s, size_t i)
{
    size_t lo = 0, hi = s->globals;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->global[mid] < i)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool mha_sight_is_global(const mha_sight *s, size_t i)
{
    size_t k = global_from(s, i);
    return k < s->globals && s->global[k] == i;
}

/* Short documents see everything: their blocks would cover most of it anyway. */
static bool has_blocks(const mha_sight *s)
{
    const mha_attn_args *a = s->a;
    return a->mask == MHA_MASK_BLOCKS && s->keys > (5 + 2 * (uint64_t)a->repeat) * a->window;
}

size_t mha_sight_rows(const mha_sight *s, size_t i, size_t rows)
{
    if (has_blocks(s)) {
        size_t left = s->a->window - i % s->a->window;
        return left < rows ? left : rows;
    }
    size_t k = global_from(s, i), n = 0;
    if (k == s->globals)
        return rows;
    while (n < rows && k + n < s->globals && s->global[k + n] == i + n)
        n++;
    if (n > 0)
        return n;
    return s->global[k] - i < rows ? s->global[k] - i : rows;
}

/* Appends a span that does not begin before the last one; what touches grows together. */
static size_t push(mha_span *out, size_t n, size_t lo, size_t hi, uint32_t times)
{
    if (n > 0 && lo <= out[n - 1].hi && times == out[n - 1].times) {
        out[n - 1].hi = hi > out[n - 1].hi ? hi : out[n - 1].hi;
        return n;
    }
    out[n] = (mha_span){lo, hi, times, 0};
    return n + 1;
}

/* The block of the query, its neighbours, the first block (listed 1 + repeat times) and the last
 * one. The first and the last block see everything. */
static size_t block_spans(const mha_sight *s, size_t i, mha_span *out)
{
    size_t w = s->a->window, b = i / w, last = (s->keys - 1) / w, n;
    if (b == 0 || b == last)
        return push(out, 0, 0, s->keys, 1);
    n = push(out, 0, 0, w, 1 + s->a->repeat);
    n = push(out, n, b > 1 ? (b - 1) * w : w, b + 1 < last ? (b + 2) * w : s->keys, 1);
    return push(out, n, last * w, s->keys, 1);
}

static size_t window_spans(const mha_sight *s, size_t lo, size_t hi, mha_span *out)
{
    size_t n = 0, k = 0;
    for (; k < s->globals && s->global[k] < lo; k++)
        n = push(out, n, s->global[k], s->global[k] + 1, 1);
    n = push(out, n, lo, hi, 1);
    for (; k < s->globals; k++)
        n = push(out, n, s->global[k], s->global[k] + 1, 1);
    return n;
}

size_t mha_sight_spans(const mha_sight *s, size_t first, size_t last, mha_span *out)
{
    size_t w = s->a->window, half = w / 2, lo = 0, hi = s->keys;
    switch (s->a->mask) {
    case MHA_MASK_BLOCKS:
        return has_blocks(s) ? block_spans(s, first, out) : push(out, 0, lo, hi, 1);
    case MHA_MASK_CAUSAL_WINDOW:
        lo = first + 1 > w ? first + 1 - w : 0;
        hi = last + 1 < s->keys ? last + 1 : s->keys;
        break;
    case MHA_MASK_CAUSAL:
        hi = last + 1 < s->keys ? last + 1 : s->keys;
        break;
    case MHA_MASK_WINDOW:
        if (mha_sight_is_global(s, first))
            break;
        lo = first > half ? first - half : 0;
        hi = last + half + 1 < s->keys ? last + half + 1 : s->keys;
        return window_spans(s, lo, hi, out);
    case MHA_MASK_FULL:
    case MHA_MASK_EDGES: /* has a core of its own */
        break;
    }
    return push(out, 0, lo, hi, 1);
}

mha_extent mha_sight_extent(const mha_sight *s, size_t past, size_t T, size_t block, mha_span *room)
{
    mha_extent e = {0, 0};
    for (size_t first = 0, rows; first < T; first += rows) {
        size_t left = block - first % block, width = 0;
        rows = mha_sight_rows(s, past + first, left < T - first ? left : T - first);
        size_t n = mha_sight_spans(s, past + first, past + first + rows - 1, room);
        for (size_t k = 0; k < n; k++)
            width += room[k].hi - room[k].lo;
        e.pairs += (double)rows * (double)width;
        e.floats = rows * width > e.floats ? rows * width : e.floats;
    }
    return e;
}

/* ---- layout -----------------------------------------------------------------------------------
 */

size_t mha_layout_bytes(size_t most)
{
    return most * (2 * sizeof(mha_span) + sizeof(mha_run));
}

void mha_layout_init(mha_layout *l, void *room, size_t most)
{
    l->spans = room;
    l->row_spans = l->spans + most;
    l->runs = (mha_run *)(l->row_spans + most);
}

void mha_layout_block(mha_layout *l, size_t first, size_t rows, bool whole)
{
    l->width = 0;
    l->count = mha_sight_spans(&l->sight, first, first + rows - 1, l->spans);
    for (size_t k = 0; k < l->count; k++) {
        mha_span *span = &l->spans[k];
        span->at = whole ? span->lo : l->width;
        l->width += span->hi - span->lo;
    }
    if (whole)
        l->width = l->sight.keys;
}

void mha_layout_row(mha_layout *l, size_t i, float *s)
{
    const mha_span *in = l->spans;
    l->run_count = mha_sight_spans(&l->sight, i, i, l->row_spans);
    for (size_t k = 0; k < l->run_count; k++) {
        const mha_span *span = &l->row_spans[k];
        while (in->hi <= span->lo)
            in++;
        l->runs[k] = (mha_run){s + in->at + (span->lo - in->lo), span->hi - span->lo, span->lo};
    }
}

void mha_layout_fill(const mha_layout *l, float *s, float value)
{
    float *end = s + l->width;
    for (size_t k = 0; k < l->run_count; k++) {
        while (s < l->runs[k].s)
            *s++ = value;
        s = l->runs[k].s + l->runs[k].n;
    }
    while (s < end)
        *s++ = value;
}
