/* write.h: what greedy writing and beam search share. */
#ifndef MHA_ANALYSIS_WRITE_H
#define MHA_ANALYSIS_WRITE_H

#include "mha/analysis.h"

bool mha_generation_ends(const mha_generation *rules, int32_t id);

/* Writes the best text of beam search behind the `prompt` ids in seen [prompt + how->length]; `d`
 * has been fed the prompt. */
mha_status mha_beam_search(mha_decoder *d, const mha_writing *how, size_t vocab, int32_t *seen,
                           size_t prompt, size_t *n, double *score, mha_err *err);

#endif
