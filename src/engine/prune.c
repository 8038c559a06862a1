/* prune.c: writes smaller models; brings the decoders of block types to where weights are written.
 */
#include "mha/prune.h"
#include "base/fail.h"
#include "kernel/kernel.h"
#include "model/save.h"

mha_status mha_prune_write(const mha_model *model, const char *path, const mha_prune *p,
                           mha_pruned *out, mha_progress progress, void *progress_context,
                           mha_err *err)
{
    const mha_kernels *kernels;
    MHA_TRY(mha_kernels_get(&kernels, NULL, err));
    return mha_model_save(model, path, p, kernels->widen, out, progress, progress_context, err);
}
