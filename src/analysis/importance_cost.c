/* importance_cost.c: what a method will take, told before it runs: memory and passes over the
 * documents. Nothing runs here. */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"

#define FULL_BATCH 1024 /* documents of several tokens that surely fill a batch */

/* Units that the staircase of the engine takes: all heads, each for itself, from open gates. */
static mha_status sweeps(bool *out, const mha_model *model, const mha_importance_options *options,
                         mha_err *err)
{
    mha_units units;
    MHA_TRY(mha_units_init(&units, model, options->unit, &options->choice, err));
    *out = units.all_heads && options->gates == NULL;
    mha_units_release(&units);
    return MHA_OK;
}

/* Variants of the documents fill the engine's batches: so does each document many times. */
static mha_status variants_bytes(uint64_t *out, mha_engine *e, const mha_document *docs,
                                 size_t count, mha_err *err)
{
    const mha_probe logits = {.sites = 1u << MHA_SITE_LOGITS};
    const mha_probe *probes[] = {&logits};
    mha_document *many;
    mha_plan_info plan;
    size_t n = count < FULL_BATCH ? FULL_BATCH : count;
    MHA_TRY(mha_alloc((void **)&many, n, sizeof *many, err));
    for (size_t i = 0; i < n; i++)
        many[i] = docs[i % count];
    mha_status st = mha_engine_plan(e, many, n, probes, 1, &plan, err);
    mha_free(many);
    *out = plan.bytes;
    return st;
}

mha_status mha_importance_bytes(uint64_t *out, mha_engine *e, const mha_model *model,
                                const mha_losses *losses, const mha_importance_options *options,
                                mha_err *err)
{
    size_t count;
    bool sweep;
    const mha_document *docs = mha_losses_documents(losses, &count);
    *out = 0;
    if (count == 0)
        return MHA_OK;
    MHA_TRY(sweeps(&sweep, model, options, err));
    switch (options->method) {
    case MHA_ABLATE_ZERO:
    case MHA_ABLATE_MEAN:
    case MHA_ABLATE_RESAMPLE:
        return sweep ? mha_engine_ablate_bytes(e, docs, count, out, err)
                     : variants_bytes(out, e, docs, count, err);
    case MHA_ALL_BUT_ONE:
    case MHA_SHAPLEY:
        return variants_bytes(out, e, docs, count, err);
    default:
        return mha_engine_gradient_bytes(e, docs, count, options->method == MHA_DLA, out, err);
    }
}

double mha_importance_passes(const mha_model *model, const mha_losses *losses,
                             const mha_importance_options *options)
{
    mha_units units;
    size_t documents;
    mha_losses_documents(losses, &documents);
    if (documents == 0 ||
        mha_units_init(&units, model, options->unit, &options->choice, NULL) != MHA_OK)
        return 0;
    double n = (double)units.count, steps = (double)units.info->attn_count;
    bool sweep = units.all_heads && options->gates == NULL;
    mha_units_release(&units);
    switch (options->method) {
    case MHA_ABLATE_ZERO:
    case MHA_ABLATE_MEAN:
    case MHA_ABLATE_RESAMPLE:
        return (double)mha_ablation_draws(options) * (1 + (sweep ? 0.55 : 1) * n);
    case MHA_ALL_BUT_ONE:
        return 1 + steps + n;
    case MHA_SHAPLEY:
        return 2 + 2 * (double)mha_shapley_pairs(options, documents) * n;
    case MHA_L0:
        return mha_l0_passes(documents);
    case MHA_DLA:
        return 1.5;
    default:
        return 3;
    }
}
