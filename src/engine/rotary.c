/* rotary.c: tables of cosines and sines, kept in the engine and shared by layers with the same
 * frequencies. Angles are float32 products, as in the reference implementation. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/engine.h"
#include <math.h>
#include <string.h>

static bool same(const mha_rotary *r, const mha_attn_args *a)
{
    size_t half = a->rope_width / 2;
    return r->half == half && r->mscale == a->rope_mscale &&
           (r->freq == a->rope_freq || memcmp(r->freq, a->rope_freq, half * sizeof(float)) == 0);
}

static mha_status fill(mha_rotary *r, size_t positions, mha_err *err)
{
    void *cs, *sn;
    MHA_TRY(mha_alloc_raw(&cs, positions * r->half, sizeof(float), err));
    mha_status st = mha_alloc_raw(&sn, positions * r->half, sizeof(float), err);
    if (st != MHA_OK) {
        mha_free(cs);
        return st;
    }
    mha_free(r->cos);
    mha_free(r->sin);
    r->cos = cs;
    r->sin = sn;
    for (size_t p = 0; p < positions; p++)
        for (size_t i = 0; i < r->half; i++) {
            float angle = (float)p * r->freq[i];
            r->cos[p * r->half + i] = (float)cos((double)angle) * r->mscale;
            r->sin[p * r->half + i] = (float)sin((double)angle) * r->mscale;
        }
    r->positions = positions;
    return MHA_OK;
}

mha_status mha_rotary_get(mha_engine *e, const mha_attn_args *a, size_t positions,
                          const mha_rotary **out, mha_err *err)
{
    mha_rotary *r = NULL;
    for (size_t i = 0; i < e->rotary_count && r == NULL; i++)
        if (same(&e->rotary[i], a))
            r = &e->rotary[i];
    if (r == NULL) { /* a new kind; when all places are taken the last is given up */
        if (e->rotary_count < MHA_ROTARY_KINDS)
            e->rotary_count++;
        r = &e->rotary[e->rotary_count - 1];
        r->freq = a->rope_freq;
        r->half = a->rope_width / 2;
        r->mscale = a->rope_mscale;
        r->positions = 0;
    }
    if (r->positions < positions) {
        /* room for a generation to go on without a new table at every step */
        size_t room = positions < 64 ? 64 : positions;
        MHA_TRY(fill(r, room > r->positions * 2 ? room : r->positions * 2, err));
    }
    *out = r;
    return MHA_OK;
}
