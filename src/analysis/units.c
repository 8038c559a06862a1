/* units.c: see units.h. Nothing here knows what is measured. */
#include "analysis/units.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

/* Variants handed to the engine at once: bounds the list of documents, not the work. */
#define PIECE 1024

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

/* ---- variants --------------------------------------------------------------------------------
 */

mha_status mha_variants_loss(mha_engine *e, const mha_document *docs, const mha_variant *variants,
                             size_t count, double *loss, size_t *hits, mha_share *share,
                             mha_err *err)
{
    mha_document *piece;
    size_t most = count < PIECE ? count : PIECE;
    mha_share inner = *share;
    mha_status st = MHA_OK;
    MHA_TRY(mha_alloc((void **)&piece, most, sizeof *piece, err));
    for (size_t first = 0, n; first < count && st == MHA_OK; first += n) {
        n = count - first < PIECE ? count - first : PIECE;
        for (size_t i = 0; i < n; i++) {
            piece[i] = docs[variants[first + i].document];
            piece[i].gates = variants[first + i].gates;
        }
        inner.before = share->before + share->part * (double)first / (double)count;
        inner.part = share->part * (double)n / (double)count;
        st = mha_engine_loss(e, piece, n, loss + first, hits != NULL ? hits + first : NULL,
                             mha_share_step, &inner, err);
    }
    mha_free(piece);
    return st;
}
