/* prune_mean.c: what the heads write on average, for folding it into a bias. */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"
#include "mha/prune.h"

struct mha_head_means {
    mha_filling filling;
};

mha_status mha_head_means_new(mha_head_means **out, mha_engine *e, const mha_model *model,
                              const mha_document *docs, size_t count, mha_progress progress,
                              void *progress_context, mha_err *err)
{
    struct mha_importance of = {.units = {.info = mha_model_info_get(model)}};
    mha_importance_job job = {.m = &of, .e = e, .model = model};
    mha_share share = {.progress = progress, .context = progress_context, .part = 1, .total = 1};
    mha_head_means *m;
    MHA_TRY(mha_alloc((void **)&m, 1, sizeof *m, err));
    mha_status status = mha_filling_mean(&m->filling, &job, docs, count, &share, err);
    if (status != MHA_OK) {
        mha_head_means_free(m);
        return status;
    }
    *out = m;
    return MHA_OK;
}

void mha_head_means_free(mha_head_means *m)
{
    if (m == NULL)
        return;
    mha_filling_release(&m->filling);
    mha_free(m);
}

const float *const *mha_head_means_get(const mha_head_means *m)
{
    return m->filling.fill.z;
}
