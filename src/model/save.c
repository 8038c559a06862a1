/* save.c: writes a bound model without some of its heads, and opens what it has written before
 * anybody else can: the result is the model that was meant, or it does not appear. */
#include "model/save.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

static void count_heads(mha_save *s)
{
    s->out->removed = s->out->left = 0;
    for (size_t a = 0; a < s->m->info.attn_count; a++) {
        uint32_t removed = mha_save_removed(s, a);
        s->out->removed += removed;
        s->out->left += s->m->info.attn[a].heads - removed;
    }
}

/* Whether an attention step of the result has just the heads that should be left. */
static bool same_heads(const mha_save *s, size_t attn, const mha_attn_info *result)
{
    const mha_attn_info *before = &s->m->info.attn[attn];
    uint32_t n = 0;
    for (uint32_t h = 0; h < before->heads; h++) {
        if (s->p->mode == MHA_PRUNE_SLICE && mha_save_removes(s, attn, h))
            continue;
        if (n == result->heads || result->head_ids[n++] != before->head_ids[h])
            return false;
    }
    return n == result->heads && result->stack == before->stack && result->kind == before->kind &&
           result->layer == before->layer && result->original_heads == before->original_heads;
}

static mha_status compare(const mha_save *s, const mha_model *result, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(result);
    bool same = info->attn_count == s->m->info.attn_count && info->head == s->m->info.head;
    for (size_t a = 0; same && a < info->attn_count; a++)
        same = same_heads(s, a, &info->attn[a]);
    if (!same)
        return mha_fail(err, MHA_ERR_INTERNAL,
                        "%s: the written model is not the one that was meant", s->m->info.path);
    const char *what = mha_save_differs(s->m, result);
    if (what != NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: a Hugging Face config of family %s cannot hold its %s; prune the "
                        "checkpoint that the file was made from",
                        s->m->info.path, s->m->info.family, what);
    s->out->parameters = info->parameters;
    return MHA_OK;
}

static mha_status verify(mha_save *s, mha_err *err)
{
    mha_model *result;
    mha_err why = {0};
    mha_status status = mha_model_open(&result, s->directory.temporary, &s->m->options, &why);
    if (status != MHA_OK)
        return mha_fail(err, status, "%s: what was written cannot be read: %s", s->m->info.path,
                        why.message);
    status = compare(s, result, err);
    mha_model_close(result);
    return status;
}

static mha_status write_all(mha_save *s, mha_err *err)
{
    MHA_TRY(mha_save_plan(s, err));
    count_heads(s);
    mha_save_opens(s);
    MHA_TRY(mha_save_config(s, err));
    MHA_TRY(mha_save_files(s, err));
    MHA_TRY(mha_save_weights(s, err));
    MHA_TRY(mha_checkpoint_check(s->m->checkpoint, err));
    return verify(s, err);
}

mha_status mha_model_save(const struct mha_model *m, const char *path, const mha_prune *p,
                          const mha_widen *widen, mha_pruned *out, mha_progress progress,
                          void *progress_context, mha_err *err)
{
    mha_save s = {.m = m,
                  .p = p,
                  .widen = widen,
                  .out = out,
                  .progress = progress,
                  .progress_context = progress_context};
    *out = (mha_pruned){0};
    for (size_t a = 0; a < m->info.attn_count; a++)
        s.stride = m->info.attn[a].heads > s.stride ? m->info.attn[a].heads : s.stride;
    MHA_TRY(mha_prune_check(m, p, err));
    MHA_TRY(mha_outdir_open(&s.directory, path, "config.json", p->force, err));
    mha_status status = write_all(&s, err);
    mha_arena_release(&s.memory);
    if (status == MHA_OK)
        return mha_outdir_commit(&s.directory, err);
    mha_outdir_rename_error(&s.directory, err);
    mha_outdir_abort(&s.directory);
    return status;
}
