/* attention.c: see attention.h. */
#include "support/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t widths[] = {2, 2, 2, 2, 2, 2, 2, 2};

void fake_model(mha_model *m, mha_attn_info *steps, size_t count)
{
    memset(m, 0, sizeof *m);
    m->info.path = "fake";
    m->info.attn = steps;
    m->info.attn_count = count;
    m->info.width = 2;
    for (size_t s = 0; s < MHA_STACK_COUNT; s++)
        m->info.stream[s] = widths;
    for (size_t a = 0; a < count; a++) {
        steps[a].out = 2;
        if (steps[a].head_ids == NULL)
            steps[a].head_ids = numbers;
        if (steps[a].kv_heads == 0)
            steps[a].kv_heads = steps[a].heads;
        if (steps[a].width == 0)
            steps[a].width = 1;
        if (m->info.layers[steps[a].stack] <= steps[a].layer)
            m->info.layers[steps[a].stack] = steps[a].layer + 1;
    }
}

static double value_at(const double *p, const uint8_t *visible, size_t n, long j)
{
    if (j < 0 || (size_t)j >= n || (visible != NULL && !visible[j]))
        return (double)NAN;
    return p[j];
}

mha_row_stats define_stats(const double *p, const uint8_t *visible, size_t n, long i,
                           const uint8_t *special)
{
    double mass = 0;
    mha_row_stats s = {0};
    for (size_t j = 0; j < n; j++)
        mass += visible == NULL || visible[j] ? p[j] : 0;
    s.special = special != NULL ? 0 : (double)NAN;
    for (size_t j = 0; j < n; j++) {
        if (visible != NULL && !visible[j])
            continue;
        s.visible++;
        s.entropy -= p[j] > 0 ? p[j] / mass * log(p[j] / mass) : 0;
        s.max_weight = fmax(s.max_weight, p[j]);
        s.distance += p[j] * fabs((double)((long)j - i));
        s.offset += p[j] * (double)((long)j - i);
        if (special != NULL && special[j])
            s.special += p[j];
    }
    if (i < 0)
        s.distance = s.offset = (double)NAN;
    s.self = i < 0 ? (double)NAN : value_at(p, visible, n, i);
    s.prev = i < 0 ? (double)NAN : value_at(p, visible, n, i - 1);
    s.next = i < 0 ? (double)NAN : value_at(p, visible, n, i + 1);
    s.first = i < 0 ? (double)NAN : value_at(p, visible, n, 0);
    return s;
}

static mha_block block_of(mha_site site, const mha_attn_info *step, uint32_t head, size_t document,
                          size_t rows, size_t cols)
{
    return (mha_block){.site = site,
                       .stack = step->stack,
                       .kind = step->kind,
                       .layer = step->layer,
                       .head = head,
                       .document = document,
                       .cols = cols,
                       .total_rows = rows,
                       .stride = cols};
}

int feed_rows(const mha_probe *probe, mha_site site, const mha_attn_info *step, uint32_t head,
              size_t document, const float *x, size_t rows, size_t cols, size_t height)
{
    mha_block b = block_of(site, step, head, document, rows, cols);
    int stop = 0;
    for (; b.first < rows && stop == 0; b.first += height) {
        b.rows = rows - b.first < height ? rows - b.first : height;
        b.data = x + b.first * cols;
        stop = probe->deliver(probe->context, &b, 0);
    }
    return stop;
}

static int feed_stats(const mha_probe *probe, const mha_attn_info *step, uint32_t head,
                      size_t document, const float *p, size_t T, size_t S, const uint8_t *special,
                      size_t height)
{
    mha_row_stats *stats = malloc(T * sizeof *stats);
    double *row = malloc(S * sizeof *row);
    uint8_t *visible = malloc(S);
    for (size_t i = 0; i < T; i++) {
        for (size_t j = 0; j < S; j++) {
            row[j] = (double)p[i * S + j];
            visible[j] = !step->causal || j <= i;
        }
        stats[i] = define_stats(row, visible, S, step->kind == MHA_SELF ? (long)i : -1, special);
    }
    mha_block b = block_of(MHA_SITE_STATS, step, head, document, T, 0);
    int stop = 0;
    for (; b.first < T && stop == 0; b.first += height) {
        b.rows = T - b.first < height ? T - b.first : height;
        b.stats = stats + b.first;
        stop = probe->deliver(probe->context, &b, 0);
    }
    free(stats);
    free(row);
    free(visible);
    return stop;
}

int feed_pattern(const mha_probe *probe, const mha_attn_info *step, uint32_t head, size_t document,
                 const float *p, size_t T, size_t S, const uint8_t *special, size_t height)
{
    if (probe->sites & (1u << MHA_SITE_STATS))
        return feed_stats(probe, step, head, document, p, T, S, special, height);
    return feed_rows(probe, MHA_SITE_PATTERN, step, head, document, p, T, S, height);
}
