/* prune_search.c: which heads go under a budget (methods D5, after Kwon et al. 2022).
 *
 *   cost of a head            2·n·D·K (queries, output) + 2·pairs·K (scores, weighted values)
 *   of a key/value head       2·m·D·K
 *   rise of the loss          ½ Σ_b (Σ_{h in P} ∂L_b/∂g_h)² / B for the removed set P
 *
 * where n tokens ask, m answer and `pairs` of them see each other. The first choice is the diagonal
 * of that form; the exchange within a step looks at the whole of it. */
#include "base/fail.h"
#include "base/mem.h"
#include "mha/prune.h"
#include <math.h>
#include <string.h>

static size_t stride_of(const mha_model_info *info)
{
    size_t most = 0;
    for (size_t a = 0; a < info->attn_count; a++)
        most = info->attn[a].heads > most ? info->attn[a].heads : most;
    return most;
}

static void mark(bool *remove, size_t stride, const mha_unit_place *p, bool value)
{
    memset(remove + p->step * stride + p->first, value, p->count);
}

/* ---- cost ------------------------------------------------------------------------------------ */

typedef struct cost {
    double head, group; /* of one query head; of one key/value head */
} cost;

static cost cost_of(const mha_model_info *info, const mha_attn_info *a, double tokens,
                    double target_tokens)
{
    bool both = info->layers[MHA_ENC] > 0 && info->layers[MHA_DEC] > 0;
    double n = both && a->stack == MHA_DEC ? target_tokens : tokens;
    double m = a->kind == MHA_CROSS ? tokens : n, pairs = n * m, D = info->width, K = a->width;
    if (a->causal)
        pairs = n * (n + 1) / 2;
    if (a->window > 0 && a->window < m)
        pairs = fmin(pairs, n * a->window);
    return (cost){2 * n * D * K + 2 * pairs * K, 2 * m * D * K};
}

double mha_prune_cost(const mha_model *model, const bool *remove, double tokens,
                      double target_tokens)
{
    const mha_model_info *info = mha_model_info_get(model);
    size_t stride = stride_of(info);
    double sum = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        cost c = cost_of(info, step, tokens, target_tokens);
        uint32_t group = step->heads > 0 ? step->heads / step->kv_heads : 1;
        for (uint32_t first = 0; first < step->heads; first += group) {
            uint32_t left = 0;
            for (uint32_t h = first; h < first + group; h++)
                left += remove == NULL || !remove[a * stride + h];
            sum += left * c.head + (left > 0 ? c.group : 0);
        }
    }
    return sum;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* The unit that is not done, with the smallest or the largest key; SIZE_MAX: none is left. */
static size_t find_extreme(const double *key, const bool *done, size_t count, bool largest)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (!done[i] && (best == SIZE_MAX || (largest ? key[i] > key[best] : key[i] < key[best])))
            best = i;
    return best;
}

mha_status mha_prune_least(bool *remove, const mha_model *model, const mha_prune_search *s,
                           size_t n, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(model);
    size_t stride = stride_of(info);
    bool *done;
    MHA_TRY(mha_alloc((void **)&done, s->count, sizeof *done, err));
    memset(remove, 0, info->attn_count * stride * sizeof *remove);
    for (; n > 0; n--) {
        size_t least = find_extreme(s->score, done, s->count, false);
        if (least == SIZE_MAX)
            break;
        done[least] = true;
        mark(remove, stride, &s->units[least], true);
    }
    mha_free(done);
    return MHA_OK;
}

/* Score for each multiply-add that the unit takes while everything else is there. */
static void worth(const mha_prune_search *s, const mha_model_info *info, double *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const mha_attn_info *a = &info->attn[s->units[i].step];
        cost c = cost_of(info, a, s->tokens, s->target_tokens);
        uint32_t group = a->heads / a->kv_heads;
        out[i] = s->score[i] / (s->units[i].count * (c.head + c.group / group));
    }
}

/* From nothing kept upwards: each unit in the order of its worth, where it still fits. */
static mha_status fill_budget(bool *remove, const mha_model *model, const mha_prune_search *s,
                              double limit, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(model);
    size_t stride = stride_of(info);
    double *key;
    bool *done;
    for (size_t i = 0; i < s->count; i++)
        mark(remove, stride, &s->units[i], true);
    if (mha_prune_cost(model, remove, s->tokens, s->target_tokens) > limit)
        return mha_fail(err, MHA_ERR_ARG, "the heads that have to stay take more than the budget");
    MHA_TRY(mha_alloc((void **)&key, s->count, sizeof *key, err));
    mha_status status = mha_alloc((void **)&done, s->count, sizeof *done, err);
    if (status == MHA_OK)
        worth(s, info, key);
    for (size_t n = 0; n < s->count && status == MHA_OK; n++) {
        size_t best = find_extreme(key, done, s->count, true);
        done[best] = true;
        mark(remove, stride, &s->units[best], false);
        if (mha_prune_cost(model, remove, s->tokens, s->target_tokens) > limit)
            mark(remove, stride, &s->units[best], true);
    }
    mha_free(done);
    mha_free(key);
    return status;
}

/* ---- exchanging ------------------------------------------------------------------------------ */

/* Σ_b (sum_b − g_b,u)² */
static double norm_without(const mha_prune_search *s, const double *sum, size_t unit)
{
    double norm = 0;
    for (size_t b = 0; b < s->documents; b++) {
        double x = sum[b] - s->gradient[b * s->count + unit];
        norm += x * x;
    }
    return norm;
}

static void add_unit(const mha_prune_search *s, double *sum, size_t unit, double sign)
{
    for (size_t b = 0; b < s->documents; b++)
        sum[b] += sign * s->gradient[b * s->count + unit];
}

/* Each unit of the step that was kept joins the removed ones once, and whichever of them is best
 * kept instead stays. The number that goes, and so the cost, is as before. */
static void exchange_step(const mha_prune_search *s, uint32_t step, bool *gone, double *sum)
{
    size_t removed = 0;
    memset(sum, 0, s->documents * sizeof *sum);
    for (size_t i = 0; i < s->count; i++)
        if (s->units[i].step == step && gone[i]) {
            add_unit(s, sum, i, 1);
            removed++;
        }
    for (size_t i = 0; i < s->count && removed > 0; i++) {
        if (s->units[i].step != step || gone[i])
            continue;
        gone[i] = true;
        add_unit(s, sum, i, 1);
        size_t best = i;
        double least = norm_without(s, sum, i);
        for (size_t k = 0; k < s->count; k++) {
            if (s->units[k].step != step || !gone[k] || k == i)
                continue;
            double norm = norm_without(s, sum, k);
            if (norm < least) {
                least = norm;
                best = k;
            }
        }
        gone[best] = false;
        add_unit(s, sum, best, -1);
    }
}

static mha_status exchange(bool *remove, const mha_model_info *info, const mha_prune_search *s,
                           mha_err *err)
{
    size_t stride = stride_of(info);
    double *sum;
    bool *gone;
    MHA_TRY(mha_alloc((void **)&sum, s->documents, sizeof *sum, err));
    mha_status status = mha_alloc((void **)&gone, s->count, sizeof *gone, err);
    for (size_t i = 0; i < s->count && status == MHA_OK; i++)
        gone[i] = remove[s->units[i].step * stride + s->units[i].first];
    for (uint32_t a = 0; a < info->attn_count && status == MHA_OK; a++)
        exchange_step(s, a, gone, sum);
    for (size_t i = 0; i < s->count && status == MHA_OK; i++)
        mark(remove, stride, &s->units[i], gone[i]);
    mha_free(gone);
    mha_free(sum);
    return status;
}

mha_status mha_prune_fit(bool *remove, const mha_model *model, const mha_prune_search *s,
                         double budget, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(model);
    if (!(budget >= 0 && budget <= 1))
        return mha_fail(err, MHA_ERR_ARG, "a budget of %g is not between 0 and 1", budget);
    double all = mha_prune_cost(model, NULL, s->tokens, s->target_tokens);
    memset(remove, 0, info->attn_count * stride_of(info) * sizeof *remove);
    /* a hair more: fractions that come out even must not fail by rounding */
    MHA_TRY(fill_budget(remove, model, s, all * budget * (1 + 1e-9), err));
    return s->gradient != NULL ? exchange(remove, info, s, err) : MHA_OK;
}
