/* batch.c: a batch of packed documents: row offsets, attention work and special-token positions. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "engine/global.h"
#include <string.h>

/* Attention tasks of about this many query rows: many short documents or a few blocks of a long
 * one. */
#define WORK_ROWS 128

static const uint8_t *special_flags(const mha_document *d, size_t side)
{
    return side == 1 ? d->target_special : d->special;
}

/* Left out for the whole side when any document has no flags. */
static mha_status make_special(mha_forward *f, size_t at, mha_err *err)
{
    mha_rows *side = &f->side[at];
    for (size_t d = 0; d < f->doc_count; d++)
        if (special_flags(&f->docs[d], at) == NULL)
            return MHA_OK;
    void *p;
    MHA_TRY(mha_alloc(&p, side->total, sizeof(uint32_t), err));
    side->special = p;
    MHA_TRY(mha_alloc(&p, f->doc_count + 1, sizeof(size_t), err));
    side->special_offset = p;
    size_t n = 0;
    for (size_t d = 0; d < f->doc_count; d++) {
        const uint8_t *flags = special_flags(&f->docs[d], at);
        for (size_t t = 0; t < side->offset[d + 1] - side->offset[d]; t++)
            if (flags[t])
                side->special[n++] = (uint32_t)t;
        side->special_offset[d + 1] = n;
    }
    return MHA_OK;
}

mha_status mha_batch_init(mha_forward *f, mha_err *err)
{
    for (size_t at = 0; at < f->m->stack_count; at++) {
        mha_rows *side = &f->side[at];
        void *p;
        MHA_TRY(mha_alloc(&p, f->doc_count + 1, sizeof(size_t), err));
        side->offset = p;
        for (size_t d = 0; d < f->doc_count; d++)
            side->offset[d + 1] = side->offset[d] + mha_side_tokens(f->m, &f->docs[d], at);
        side->docs = f->doc_count;
        side->total = side->offset[f->doc_count];
        MHA_TRY(make_special(f, at, err));
    }
    return mha_globals_init(f, err);
}

void mha_batch_release(mha_forward *f)
{
    for (size_t at = 0; at < 2; at++) {
        mha_free(f->side[at].offset);
        mha_free(f->side[at].special);
        mha_free(f->side[at].special_offset);
    }
    mha_globals_release(f);
    mha_free(f->work);
}

mha_status mha_batch_work(mha_forward *f, mha_err *err)
{
    const mha_rows *side = &f->side[f->at];
    size_t blocks = 0, n = 0, rows = 0;
    for (size_t d = 0; d < f->doc_count; d++)
        blocks += (side->offset[d + 1] - side->offset[d] + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS;
    void *p;
    mha_free(f->work);
    f->work = NULL;
    MHA_TRY(mha_alloc(&p, blocks, sizeof(mha_work), err));
    f->work = p;
    for (size_t d = 0; d < f->doc_count; d++) {
        size_t T = side->offset[d + 1] - side->offset[d];
        for (size_t r = 0; r < T; r += MHA_BLOCK_ROWS) {
            if (n == 0 || rows >= WORK_ROWS) {
                f->work[n++] = (mha_work){d, r, 0};
                rows = 0;
            }
            f->work[n - 1].blocks++;
            rows += T - r < MHA_BLOCK_ROWS ? T - r : MHA_BLOCK_ROWS;
        }
    }
    f->work_count = n;
    f->work_at = f->at;
    return MHA_OK;
}
