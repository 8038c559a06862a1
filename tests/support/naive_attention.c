/* naive_attention.c: attention with gates, one element at a time. */
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

/* How far j may lie from i. */
static bool visible(const pass *p, const attend_options *o, size_t i, size_t j)
{
    size_t window = o->window > 0 ? o->window : p->n->window;
    if (o->kind == MHA_CROSS)
        return true;
    if (o->causal)
        return j <= i && (window == 0 || j + window > i);
    return window == 0 || (j > i ? j - i : i - j) <= window / 2;
}

/* One head's relative terms of query i and key j. */
static double relative(const attend_options *o, const double *q, const double *k, size_t h,
                       size_t i, size_t j, size_t S)
{
    size_t K = o->width, H = o->heads;
    if (o->rel_row == NULL)
        return 0;
    size_t row = (size_t)o->rel_row[i * S + j];
    double sum = 0;
    for (size_t d = 0; d < K; d++) {
        if (o->rel_k != NULL)
            sum += q[(i * H + h) * K + d] * o->rel_k[(row * H + h) * K + d];
        if (o->rel_q != NULL)
            sum += o->rel_q[(row * H + h) * K + d] * k[(j * H + h) * K + d];
    }
    return sum;
}

static void score_rows(pass *p, const attend_options *o, const double *q, const double *k, size_t T,
                       size_t S, double *s)
{
    size_t K = o->width, group = o->heads / o->kv_heads;
    for (size_t h = 0; h < o->heads; h++)
        for (size_t i = 0; i < T; i++)
            for (size_t j = 0; j < S; j++) {
                double *to = &s[(h * T + i) * S + j], sum = 0;
                for (size_t d = 0; d < K; d++)
                    sum += q[(i * o->heads + h) * K + d] * k[(j * o->kv_heads + h / group) * K + d];
                *to = (sum + relative(o, q, k, h, i, j, S)) * o->scale;
                if (p->n->attn_softcap > 0)
                    *to = p->n->attn_softcap * tanh(*to / p->n->attn_softcap);
                if (o->bias != NULL)
                    *to += o->bias[(h * T + i) * S + j];
                if (p->n->alibi != NULL)
                    *to += p->n->alibi[h] * ((double)j - (double)i);
                if (!visible(p, o, i, j))
                    *to = -HUGE_VAL;
            }
    pass_nudge(p, MHA_SITE_SCORES, o->kind, s, S, T * S);
}

static void softmax_rows(const pass *p, size_t heads, size_t T, size_t S, double *s)
{
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < T; i++) {
            double *row = s + (h * T + i) * S, most = -HUGE_VAL, sum = 0;
            for (size_t j = 0; j < S; j++)
                most = fmax(most, row[j]);
            for (size_t j = 0; j < S; j++)
                sum += row[j] = exp(row[j] - most);
            if (p->n->sinks != NULL)
                sum += exp(p->n->sinks[h] - most);
            for (size_t j = 0; j < S; j++)
                row[j] /= sum;
        }
}

/* z ← gate·z + (1 − gate)·fill */
static void gate(const pass *p, const attend_options *o, double *z, size_t T)
{
    size_t a = p->out->attn_count, K = o->width;
    const mha_fill *fill = p->doc->fill;
    for (size_t i = 0; i < T; i++)
        for (size_t h = 0; h < o->heads; h++)
            for (size_t d = 0; d < K; d++) {
                double g = p->gates[a * o->heads + h], *to = &z[(i * o->heads + h) * K + d];
                const float *f = fill != NULL ? fill->z[a] : NULL;
                size_t row = fill != NULL && fill->rows == 1 ? 0 : i;
                double other = f != NULL ? (double)f[(row * o->heads + h) * K + d] : 0;
                *to = g * *to + (1 - g) * other;
            }
}

/* In a frozen pass z is what it was, but for the heads that are silent. */
static void freeze(pass *p, const attend_options *o, double *z, size_t T)
{
    const naive_frozen *f = p->n->frozen;
    size_t K = o->width, HK = o->heads * K;
    pass_freeze(p, NAIVE_HEAD, z, T * HK);
    if (f == NULL || !f->again || !(f->silent & NAIVE_HEAD))
        return;
    for (size_t i = 0; i < T; i++)
        for (size_t h = 0; h < o->heads; h++)
            if (f->attn == SIZE_MAX || (f->attn == p->out->attn_count && f->head == h))
                memset(z + i * HK + h * K, 0, K * sizeof *z);
}

double *attend(pass *p, const attend_options *o, double *q, double *k, double *v, size_t T,
               size_t S)
{
    size_t K = o->width, group = o->heads / o->kv_heads, HK = o->heads * K, GK = o->kv_heads * K;
    double *s = pass_memory(p, o->heads * T * S), *z = pass_memory(p, T * HK);
    pass_nudge(p, MHA_SITE_Q, o->kind, q, HK, K);
    pass_nudge(p, MHA_SITE_K, o->kind, k, GK, K);
    pass_nudge(p, MHA_SITE_V, o->kind, v, GK, K);
    score_rows(p, o, q, k, T, S, s);
    softmax_rows(p, o->heads, T, S, s);
    pass_nudge(p, MHA_SITE_PATTERN, o->kind, s, S, T * S);
    for (size_t h = 0; h < o->heads; h++)
        for (size_t i = 0; i < T; i++)
            for (size_t d = 0; d < K; d++)
                for (size_t j = 0; j < S; j++)
                    z[i * HK + h * K + d] += s[(h * T + i) * S + j] * v[j * GK + h / group * K + d];
    for (size_t i = 0; o->open != NULL && i < T * HK; i++)
        z[i] *= o->open[i];
    if (p->gates != NULL)
        gate(p, o, z, T);
    freeze(p, o, z, T);
    pass_nudge(p, MHA_SITE_Z, o->kind, z, HK, K);
    assert_in_range(p->out->attn_count, 0, NAIVE_ATTN_MAX - 1);
    p->out->attn[p->out->attn_count++] = (naive_attention){o->heads, T, S, s};
    return z;
}
