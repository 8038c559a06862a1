/* naive_deberta.c: DeBERTa's relative positions (which row of their table a pair of tokens has, and
 * the keys and queries that are made of it), and the convolution beside its first layer. */
#include "io/json.h"
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

static bool lists(const naive *n, const char *kind)
{
    const json_t *kinds = mha_json_at(n->file->config, "pos_att_type");
    for (size_t i = 0; i < json_array_size(kinds); i++)
        if (strcmp(json_string_value(json_array_get(kinds, i)), kind) == 0)
            return true;
    return false;
}

/* Query minus key: single steps up to half of the buckets, then equal steps of the logarithm. The
 * logarithm is taken in single precision, as the model was trained with. */
static long bucket(long away, long buckets, long farthest)
{
    long half = buckets / 2, far = away < 0 ? -away : away;
    if (buckets <= 0 || far <= half)
        return away;
    float whole = logf((float)((double)(farthest - 1) / (double)half));
    long step = (long)ceilf(logf((float)far / (float)half) / whole * (float)(half - 1));
    return away < 0 ? -(half + step) : half + step;
}

/* x·Wᵀ + b of the layer's projection of that name. */
static double *rows_as(pass *p, const double *table, size_t rows, size_t D, bool shared,
                       const char *own, const char *other)
{
    return linear(p, table, rows, D, D, "encoder.layer.%u.attention.self.%s", p->layer,
                  shared ? other : own);
}

void naive_relative(pass *p, attend_options *o, size_t T, size_t D, double eps)
{
    const naive *n = p->n;
    bool c2p = lists(n, "c2p"), p2c = lists(n, "p2c");
    /* the reference takes this root in single precision */
    o->scale = 1 / (double)sqrtf((float)(o->width * (1U + c2p + p2c)));
    if (config_number(n, "relative_attention", 0) == 0)
        return;
    long farthest = (long)config_number(n, "max_relative_positions", -1);
    long buckets = (long)config_number(n, "position_buckets", -1);
    if (farthest < 1)
        farthest = (long)config_number(n, "max_position_embeddings", 0);
    long span = buckets > 0 ? buckets : farthest;
    size_t rows = 2 * (size_t)span;
    const double *table = pass_tensor(p, true, "encoder.rel_embeddings.weight");
    if (strcmp(config_text(n, "norm_rel_ebd", "none"), "layer_norm") == 0)
        table = layer_norm(p, table, rows, D, pass_tensor(p, true, "encoder.LayerNorm.weight"),
                           pass_tensor(p, true, "encoder.LayerNorm.bias"), eps);
    bool shared = config_number(n, "share_att_key", 0) != 0;
    if (c2p)
        o->rel_k = rows_as(p, table, rows, D, shared, "pos_key_proj", "key_proj");
    if (p2c)
        o->rel_q = rows_as(p, table, rows, D, shared, "pos_query_proj", "query_proj");
    double *row = pass_memory(p, T * T);
    for (size_t i = 0; i < T; i++)
        for (size_t j = 0; j < T; j++) {
            long at = bucket((long)i - (long)j, buckets, farthest) + span;
            row[i * T + j] = (double)(at < 0 ? 0 : at >= 2 * span ? 2 * span - 1 : at);
        }
    o->rel_row = row;
}

double *naive_convolved(pass *p, const double *x, double *y, size_t T, size_t D, double eps)
{
    size_t size = (size_t)config_number(p->n, "conv_kernel_size", 0);
    if (size == 0)
        return y;
    const double *w = pass_tensor(p, true, "encoder.conv.conv.weight");
    const double *b = pass_tensor(p, true, "encoder.conv.conv.bias");
    double *sum = pass_memory(p, T * D);
    for (size_t t = 0; t < T; t++)
        for (size_t o = 0; o < D; o++) {
            sum[t * D + o] = b[o];
            for (size_t c = 0; c < D; c++)
                for (size_t s = 0; s < size; s++)
                    if (t + s >= size / 2 && t + s - size / 2 < T)
                        sum[t * D + o] += w[(o * D + c) * size + s] * x[(t + s - size / 2) * D + c];
        }
    activate(config_text(p->n, "conv_act", "tanh"), sum, T * D);
    add(sum, y, T * D);
    return layer_norm(p, sum, T, D, pass_tensor(p, true, "encoder.conv.LayerNorm.weight"),
                      pass_tensor(p, true, "encoder.conv.LayerNorm.bias"), eps);
}
