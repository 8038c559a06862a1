/* pretokenizer_private.h: what the two files of pre-tokenizers share. */
#ifndef MHA_TEXT_PRETOKENIZER_PRIVATE_H
#define MHA_TEXT_PRETOKENIZER_PRIVATE_H

#include "text/pretokenizer.h"

struct mha_pretokenizer_kind {
    const char *name;
    mha_status (*parse)(mha_pretokenizer *p, const json_t *o, const char *where, mha_err *err);
    mha_status (*apply)(const mha_pretokenizer *p, mha_split *split, mha_err *err);
};

/* Cuts one piece, s[0..n), into work->cuts. */
typedef mha_status (*mha_cutter)(const mha_pretokenizer *p, mha_split *work, const char *s,
                                 size_t n, mha_err *err);
/* Cuts all pieces of text. */
mha_status mha_pieces_cut(const mha_pretokenizer *p, mha_split *work, mha_cutter cut,
                          mha_cut_behaviour behaviour, mha_err *err);

mha_status mha_metaspace_parse(mha_pretokenizer *p, const json_t *o, const char *where,
                               mha_err *err);
mha_status mha_metaspace_apply(const mha_pretokenizer *p, mha_split *work, mha_err *err);

#endif
