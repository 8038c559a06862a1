/* units.c: see units.h. Nothing here knows what is measured. */
#include "analysis/units.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

/* ---- units -----------------------------------------------------------------------------------
 */

static uint32_t unit_width(mha_unit kind, const mha_attn_info *step)
{
    return kind == MHA_UNIT_HEAD    ? 1
           : kind == MHA_UNIT_LAYER ? step->heads
                                    : step->heads / step->kv_heads;
}

static bool chosen(const mha_units *u, const mha_choice *choice, size_t step, uint32_t first,
                   uint32_t count)
{
    if (choice == NULL || choice->heads == NULL)
        return true;
    for (uint32_t h = first; h < first + count; h++)
        if (choice->heads[step * u->stride + h])
            return true;
    return false;
}

mha_status mha_units_init(mha_units *u, const mha_model *model, mha_unit kind,
                          const mha_choice *choice, mha_err *err)
{
    size_t heads = 0;
    *u = (mha_units){.info = mha_model_info_get(model), .kind = kind};
    for (size_t a = 0; a < u->info->attn_count; a++) {
        heads += u->info->attn[a].heads;
        u->stride = u->info->attn[a].heads > u->stride ? u->info->attn[a].heads : u->stride;
    }
    u->gates = u->info->attn_count * u->stride;
    MHA_TRY(mha_alloc((void **)&u->item, heads, sizeof *u->item, err));
    for (uint32_t a = 0; a < u->info->attn_count; a++) {
        const mha_attn_info *step = &u->info->attn[a];
        uint32_t width = step->heads > 0 ? unit_width(kind, step) : 1;
        for (uint32_t h = 0; h < step->heads; h += width) {
            if (!chosen(u, choice, a, h, width))
                continue;
            uint32_t number = kind == MHA_UNIT_HEAD ? step->head_ids[h] : h / width;
            u->item[u->count++] = (mha_unit_place){a, h, width, number};
        }
    }
    u->all_heads = kind == MHA_UNIT_HEAD && u->count == heads;
    if (u->count == 0)
        return mha_fail(err, MHA_ERR_ARG, "no head is chosen");
    return MHA_OK;
}

void mha_units_release(mha_units *u)
{
    mha_free(u->item);
    *u = (mha_units){0};
}

void mha_units_set(const mha_units *u, size_t unit, float *gates, float value)
{
    const mha_unit_place *p = &u->item[unit];
    for (uint32_t h = p->first; h < p->first + p->count; h++)
        gates[p->step * u->stride + h] = value;
}

void mha_units_set_all(const mha_units *u, float *gates, float value)
{
    for (size_t i = 0; i < u->gates; i++)
        gates[i] = value;
}

void mha_units_sum(const mha_units *u, const double *x, double *out)
{
    for (size_t i = 0; i < u->count; i++) {
        const mha_unit_place *p = &u->item[i];
        out[i] = 0;
        for (uint32_t h = p->first; h < p->first + p->count; h++)
            out[i] += x[p->step * u->stride + h];
    }
}

/* ---- progress --------------------------------------------------------------------------------
 */

int mha_share_step(void *share, double done, double total)
{
    const mha_share *s = share;
    if (s->progress == NULL)
        return 0;
    double part = total > 0 ? s->part * (done < total ? done / total : 1) : 0;
    return s->progress(s->context, s->before + part, s->total);
}

void mha_share_next(mha_share *s, double part)
{
    s->before += s->part;
    s->part = part;
}
