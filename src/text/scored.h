/* scored.h: what the two kinds of models over scored pieces share: which pieces text can become,
 * and what unknown characters become. */
#ifndef MHA_TEXT_SCORED_H
#define MHA_TEXT_SCORED_H

#include "text/model.h"

/* Output ids for what is no piece. */
typedef struct mha_scored_unknown {
    int32_t id;            /* -1: there is none */
    const mha_vocab *runs; /* NULL, or where runs are looked up first */
    bool byte_fallback;    /* all bytes have pieces, and the model wants them */
    int32_t bytes[256];
} mha_scored_unknown;

void mha_scored_unknown_init(mha_scored_unknown *u, const mha_scored_options *options);
/* Appends the tokens of a run of unknown characters, word[start..end). */
mha_status mha_scored_unknown_add(const mha_scored_unknown *u, mha_model_scratch *x,
                                  const char *word, size_t start, size_t end, mha_err *err);

#endif
