/* normalizer_private.h: what the two files of normalizers share. */
#ifndef MHA_TEXT_NORMALIZER_PRIVATE_H
#define MHA_TEXT_NORMALIZER_PRIVATE_H

#include "text/normalizer.h"

struct mha_normalizer_kind {
    const char *name;
    unsigned flags; /* before parsing */
    mha_status (*parse)(mha_normalizer *n, mha_arena *arena, const json_t *o, const char *where,
                        mha_err *err); /* NULL: nothing to read */
    mha_status (*apply)(const mha_normalizer *n, mha_normalizing *work, mha_err *err);
};

/* The spare text becomes the text. */
static inline void mha_normalizing_swap(mha_normalizing *work)
{
    mha_aligned text = work->text;
    work->text = work->spare;
    work->spare = text;
    work->spare.n = 0;
}

mha_status mha_precompiled_parse(mha_normalizer *n, mha_arena *arena, const json_t *o,
                                 const char *where, mha_err *err);
mha_status mha_precompiled_apply(const mha_normalizer *n, mha_normalizing *work, mha_err *err);

#endif
