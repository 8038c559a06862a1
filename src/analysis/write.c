/* write.c: writes on after a prompt, one token at a time: the likeliest, or drawn. The rules of the
 * checkpoint change the logits first. Beam search is in beam.c. */
#include "analysis/write.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

/* ---- rules ------------------------------------------------------------------------------------
 */

static void forbid(float *logits, size_t vocab, const mha_ids *list)
{
    for (size_t i = 0; i < list->count; i++)
        if ((size_t)list->id[i] < vocab)
            logits[list->id[i]] = -INFINITY;
}

static void force(float *logits, size_t vocab, int32_t id)
{
    for (size_t v = 0; v < vocab; v++)
        logits[v] = -INFINITY;
    logits[id] = 0;
}

/* Each id once, however often it stands there: from the logits to what they become. */
static void penalise(const mha_generation *rules, const float *logits, float *out,
                     const int32_t *ids, size_t n)
{
    float penalty = (float)rules->repeat_penalty;
    for (size_t i = 0; i < n; i++) {
        float s = logits[ids[i]];
        out[ids[i]] = s < 0 ? s * penalty : s / penalty;
    }
}

/* Ids that would make the last `no_repeat` ones a run that stands there already. */
static void forbid_repeats(const mha_generation *rules, float *logits, const int32_t *ids, size_t n)
{
    size_t run = rules->no_repeat;
    for (size_t i = 0; i + run <= n; i++)
        if (memcmp(ids + i, ids + n - (run - 1), (run - 1) * sizeof *ids) == 0)
            logits[ids[i + run - 1]] = -INFINITY;
}

void mha_generation_apply(const mha_generation *rules, const float *logits, size_t vocab,
                          const int32_t *ids, size_t n, size_t prompt, size_t limit, float *out)
{
    size_t fresh = n - prompt, begin = prompt == 1 && rules->first >= 0 ? 1 : 0;
    memcpy(out, logits, vocab * sizeof *out);
    if (rules->repeat_penalty != 1)
        penalise(rules, logits, out, ids, n);
    if (rules->no_repeat > 0)
        forbid_repeats(rules, out, ids, n);
    if (n < rules->min_length || fresh < rules->min_new)
        forbid(out, vocab, &rules->ends);
    if (rules->first >= 0 && n == 1)
        force(out, vocab, rules->first);
    if (rules->last >= 0 && fresh + 1 == limit)
        force(out, vocab, rules->last);
    forbid(out, vocab, &rules->never);
    if (fresh == begin)
        forbid(out, vocab, &rules->never_first);
}

bool mha_generation_ends(const mha_generation *rules, int32_t id)
{
    for (size_t i = 0; i < rules->ends.count; i++)
        if (rules->ends.id[i] == id)
            return true;
    return false;
}

/* ---- one token at a time ----------------------------------------------------------------------
 */

static int32_t likeliest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

/* seen [prompt + length]: the prompt, then what is written; logits [vocab]. */
static mha_status write_tokens(mha_decoder *d, const mha_writing *how, size_t vocab, int32_t *seen,
                               size_t prompt, float *logits, size_t *n, mha_err *err)
{
    for (*n = 0; *n < how->length;) {
        mha_generation_apply(how->rules, mha_decoder_logits(d), vocab, seen, prompt + *n, prompt,
                             how->length, logits);
        int32_t id = how->sampler != NULL ? mha_sampler_next(how->sampler, logits)
                                          : likeliest(logits, vocab);
        seen[prompt + (*n)++] = id;
        if (how->progress != NULL &&
            how->progress(how->progress_context, (double)*n, (double)how->length) != 0)
            return mha_fail(err, MHA_ERR_CANCELLED, "interrupted");
        if (mha_generation_ends(how->rules, id))
            break;
        if (*n < how->length)
            MHA_TRY(mha_decoder_step(d, id, err));
    }
    return MHA_OK;
}

mha_status mha_write(mha_engine *e, const mha_model *model, const mha_document *prompt,
                     const mha_writing *how, int32_t *ids, size_t *n, double *score, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(model);
    bool target = info->layers[MHA_ENC] > 0;
    size_t fed = target ? prompt->target_n : prompt->n;
    const int32_t *before = target ? prompt->target_ids : prompt->ids;
    mha_decoder *d = NULL;
    int32_t *seen = NULL;
    float *logits = NULL;
    double own = 0;
    *n = 0;
    if (score != NULL)
        *score = 0;
    if (how->length == 0)
        return MHA_OK;
    mha_status st = mha_decoder_new(&d, e, prompt, fed + how->length, err);
    if (st == MHA_OK)
        st = mha_alloc((void **)&seen, fed + how->length, sizeof *seen, err);
    if (st == MHA_OK)
        st = mha_alloc((void **)&logits, info->vocab, sizeof *logits, err);
    if (st == MHA_OK) {
        memcpy(seen, before, fed * sizeof *seen);
        st = how->beams > 1
                 ? mha_beam_search(d, how, info->vocab, seen, fed, n, score ? score : &own, err)
                 : write_tokens(d, how, info->vocab, seen, fed, logits, n, err);
    }
    if (st == MHA_OK)
        memcpy(ids, seen + fed, *n * sizeof *ids);
    mha_free(logits);
    mha_free(seen);
    mha_decoder_free(d);
    return st;
}
