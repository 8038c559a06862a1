/* replay.c: sends dumped maps to probes as an engine would: head by head, all rows of one in a
 * block. Reads no files and knows nothing of what probes make of the rows. */
#include "base/fail.h"
#include "model/maps.h"
#include "probe/chosen.h"
#include "probe/row.h"

#define KNOWN (1u << MHA_SITE_STATS | 1u << MHA_SITE_PATTERN)

typedef struct replay {
    mha_row_stats *stats; /* [T] of the head */
    double *p;            /* [S] one row */
    uint8_t *seen;        /* [S] */
} replay;

static void stats_fill(const replay *r, const mha_map_step *s, const float *weights)
{
    for (size_t i = 0; i < s->queries; i++) {
        size_t lo, hi;
        mha_step_span(&s->attn, i, s->keys, &lo, &hi);
        for (size_t j = 0; j < s->keys; j++) {
            r->p[j] = (double)weights[i * s->keys + j];
            r->seen[j] = j >= lo && j < hi;
        }
        mha_row_define(r->p, r->seen, s->keys, s->attn.kind == MHA_SELF ? i : SIZE_MAX,
                       &r->stats[i]);
    }
}

static mha_status head_send(const replay *r, const mha_map_step *s, uint32_t head,
                            const mha_probe *probe, mha_err *err)
{
    const float *weights = s->weights + head * s->queries * s->keys;
    for (mha_site site = MHA_SITE_STATS; site <= MHA_SITE_PATTERN; site++) {
        const mha_attn_info *a = &s->attn;
        bool stats = site == MHA_SITE_STATS;
        if (!(probe->sites & 1u << site) ||
            (probe->wants &&
             !probe->wants(probe->context, site, a->stack, a->kind, a->layer, head)))
            continue;
        if (stats)
            stats_fill(r, s, weights);
        mha_block block = {.site = site,
                           .stack = a->stack,
                           .kind = a->kind,
                           .layer = a->layer,
                           .head = head,
                           .rows = s->queries,
                           .cols = s->keys,
                           .total_rows = s->queries,
                           .data = stats ? NULL : weights,
                           .stride = s->keys,
                           .stats = stats ? r->stats : NULL};
        if (probe->deliver(probe->context, &block, 0) != 0)
            return mha_fail(err, MHA_ERR_CANCELLED, "cancelled");
    }
    return MHA_OK;
}

static mha_status step_send(const mha_map_step *s, const mha_probe *const *probes, size_t count,
                            mha_err *err)
{
    replay r = {0};
    mha_status status = mha_alloc((void **)&r.stats, s->queries, sizeof *r.stats, err);
    if (status == MHA_OK)
        status = mha_alloc((void **)&r.p, s->keys, sizeof *r.p, err);
    if (status == MHA_OK)
        status = mha_alloc((void **)&r.seen, s->keys, sizeof *r.seen, err);
    for (uint32_t h = 0; h < s->attn.heads; h++)
        for (size_t i = 0; i < count && status == MHA_OK; i++)
            status = head_send(&r, s, h, probes[i], err);
    mha_free(r.stats);
    mha_free(r.p);
    mha_free(r.seen);
    return status;
}

mha_status mha_maps_run(const mha_maps *m, const mha_probe *const *probes, size_t count,
                        mha_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (probes[i]->sites & ~KNOWN)
            return mha_fail(err, MHA_ERR_ARG, "dumped maps hold attention patterns only");
    for (size_t a = 0; a < m->model.info.attn_count; a++)
        MHA_TRY(step_send(&m->steps[a], probes, count, err));
    return MHA_OK;
}
