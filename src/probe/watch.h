/* watch.h: the probes of one run, asked once what they want and served block by block.
 * Knows nothing of how values are computed. */
#ifndef MHA_PROBE_WATCH_H
#define MHA_PROBE_WATCH_H

#include "mha/probe.h"

#define MHA_ANY_HEAD UINT32_MAX

typedef struct mha_watch {
    const mha_probe *const *probes;
    size_t count;
} mha_watch;

static inline uint32_t mha_site_bit(mha_site site)
{
    return 1u << site;
}

/* The sites that only steps with global tokens have. */
#define MHA_GLOBAL_SITES                                                                           \
    (1u << MHA_SITE_Q_GLOBAL | 1u << MHA_SITE_K_GLOBAL | 1u << MHA_SITE_V_GLOBAL)

/* Whether any probe wants this site of that head (MHA_ANY_HEAD: of any head of the layer). */
bool mha_watch_wants(const mha_watch *w, mha_site site, mha_stack_id stack, mha_kind kind,
                     uint32_t layer, uint32_t head);
/* Bit set of all sites wanted of (stack, kind, layer). */
uint32_t mha_watch_sites(const mha_watch *w, mha_stack_id stack, mha_kind kind, uint32_t layer);
/* Hands the block to every probe that wants it. MHA_ERR_CANCELLED when one refuses. */
mha_status mha_watch_deliver(const mha_watch *w, const mha_block *block, size_t worker,
                             mha_err *err);

#endif
