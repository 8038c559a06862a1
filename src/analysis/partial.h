/* partial.h: what a long computation has so far, in a file beside its output, so that it can be
 * interrupted and continued. Vectors of doubles under numbers that the computation chooses, bit for
 * bit: a continued run gives the same bytes as one that was never interrupted. */
#ifndef MHA_ANALYSIS_PARTIAL_H
#define MHA_ANALYSIS_PARTIAL_H

#include "base/sha256.h"
#include "mha/analysis.h"

typedef struct mha_partial mha_partial;

/* path NULL: nothing is kept and nothing found. `key` stands for everything that the results depend
 * on. With `resume` the file's vectors are taken over, if it is there: MHA_ERR_FORMAT when it is
 * broken, MHA_ERR_ARG when its key is another. */
mha_status mha_partial_open(mha_partial **out, const char *path, const char key[65], bool resume,
                            mha_err *err);
/* Frees it; the file stays. */
void mha_partial_free(mha_partial *p);
/* false when there is no such vector of that length. */
bool mha_partial_get(const mha_partial *p, uint64_t tag, double *x, size_t n);
/* A vector of that number is replaced. Writes the file when the last time was a while ago. */
mha_status mha_partial_put(mha_partial *p, uint64_t tag, const double *x, size_t n, mha_err *err);
/* For the end of a run, done or cancelled: writes the file. Other errors leave it as it is. Returns
 * `status`, or the error of writing what was cancelled: finished results need no file. */
mha_status mha_partial_end(mha_partial *p, mha_status status, mha_err *err);

/* Adds to a key what documents are fed and predict. */
void mha_key_documents(mha_sha256 *h, const mha_document *docs, size_t count);

#endif
