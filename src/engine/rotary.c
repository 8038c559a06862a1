/* rotary.c: tables of cosines and sines, kept in the engine and shared by layers with the same
 * frequencies. Angles are float32 products, as in the reference implementation. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/engine.h"
#include <math.h>
#include <string.h>

static bool same(const mha_rotary *r, const mha_attn_args *a, const float *freq)
{
    size_t half = a->rope_width / 2;
    return r->half == half && r->mscale == a->rope_mscale &&
           (r->freq == freq || memcmp(r->freq, freq, half * sizeof(float)) == 0);
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

/* The tables of one set of frequencies for positions 0 … positions − 1. */
static mha_status get(mha_engine *e, const mha_attn_args *a, const float *freq, size_t positions,
                      const mha_rotary **out, mha_err *err)
{
    mha_rotary *r = NULL;
    for (size_t i = 0; i < e->rotary_count && r == NULL; i++)
        if (same(&e->rotary[i], a, freq))
            r = &e->rotary[i];
    if (r == NULL) { /* a new kind; when all places are taken they are given up in turn */
        r = &e->rotary[e->rotary_next];
        e->rotary_next = (e->rotary_next + 1) % MHA_ROTARY_KINDS;
        if (e->rotary_count < MHA_ROTARY_KINDS)
            e->rotary_count++;
        r->freq = freq;
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

static bool is_long(const mha_attn_args *a, size_t length)
{
    return a->rope_long != NULL && length > a->rope_long_from;
}

mha_status mha_rotary_get(mha_engine *e, const mha_attn_args *a, const mha_rows *rows,
                          mha_rotary_pair *out, mha_err *err)
{
    size_t usual = 0, longer = 0;
    *out = (mha_rotary_pair){.a = a};
    for (size_t d = 0; d < rows->docs && a->rope != MHA_ROPE_NONE; d++) {
        size_t length = rows->past + rows->offset[d + 1] - rows->offset[d];
        size_t *most = is_long(a, length) ? &longer : &usual;
        *most = length > *most ? length : *most;
    }
    if (usual > 0)
        MHA_TRY(get(e, a, a->rope_freq, usual, &out->usual, err));
    return longer > 0 ? get(e, a, a->rope_long, longer, &out->longer, err) : MHA_OK;
}

const mha_rotary *mha_rotary_of(const mha_rotary_pair *pair, size_t length)
{
    return is_long(pair->a, length) ? pair->longer : pair->usual;
}
