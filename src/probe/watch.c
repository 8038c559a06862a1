/* watch.c: asking probes what they want and handing blocks to them. */
#include "probe/watch.h"
#include "base/fail.h"

static const char *const site_names[MHA_SITE_ALL_COUNT] = {
    [MHA_SITE_STATS] = "stats",
    [MHA_SITE_PATTERN] = "pattern",
    [MHA_SITE_SCORES] = "scores",
    [MHA_SITE_Q] = "q",
    [MHA_SITE_K] = "k",
    [MHA_SITE_V] = "v",
    [MHA_SITE_Q_GLOBAL] = "q_global",
    [MHA_SITE_K_GLOBAL] = "k_global",
    [MHA_SITE_V_GLOBAL] = "v_global",
    [MHA_SITE_Z] = "z",
    [MHA_SITE_HEAD_OUT] = "head_out",
    [MHA_SITE_ATTN_OUT] = "attn_out",
    [MHA_SITE_EMBED] = "embed",
    [MHA_SITE_RESID] = "resid",
    [MHA_SITE_HIDDEN] = "hidden",
    [MHA_SITE_LOGITS] = "logits",
    [MHA_SITE_D_PATTERN] = "d_pattern",
    [MHA_SITE_D_SCORES] = "d_scores",
    [MHA_SITE_D_Q] = "d_q",
    [MHA_SITE_D_K] = "d_k",
    [MHA_SITE_D_V] = "d_v",
    [MHA_SITE_D_Z] = "d_z",
    [MHA_SITE_D_ATTN_OUT] = "d_attn_out",
    [MHA_SITE_D_EMBED] = "d_embed",
    [MHA_SITE_D_RESID] = "d_resid",
    [MHA_SITE_D_HIDDEN] = "d_hidden",
};

const char *mha_site_name(mha_site site)
{
    return site_names[site];
}

static bool probe_wants(const mha_probe *p, mha_site site, mha_stack_id stack, mha_kind kind,
                        uint32_t layer, uint32_t head)
{
    if (!(p->sites & mha_site_bit(site)))
        return false;
    return p->wants == NULL || p->wants(p->context, site, stack, kind, layer, head);
}

bool mha_watch_wants(const mha_watch *w, mha_site site, mha_stack_id stack, mha_kind kind,
                     uint32_t layer, uint32_t head)
{
    for (size_t i = 0; i < w->count; i++)
        if (probe_wants(w->probes[i], site, stack, kind, layer, head))
            return true;
    return false;
}

uint32_t mha_watch_sites(const mha_watch *w, mha_stack_id stack, mha_kind kind, uint32_t layer)
{
    uint32_t bits = 0;
    for (mha_site site = 0; site < MHA_SITE_ALL_COUNT; site++)
        if (mha_watch_wants(w, site, stack, kind, layer, MHA_ANY_HEAD))
            bits |= mha_site_bit(site);
    return bits;
}

mha_status mha_watch_deliver(const mha_watch *w, const mha_block *block, size_t worker,
                             mha_err *err)
{
    for (size_t i = 0; i < w->count; i++) {
        const mha_probe *p = w->probes[i];
        if (!probe_wants(p, block->site, block->stack, block->kind, block->layer, block->head))
            continue;
        if (p->deliver(p->context, block, worker) != 0)
            return mha_fail(err, MHA_ERR_CANCELLED, "stopped by a probe");
    }
    return MHA_OK;
}
