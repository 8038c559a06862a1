/* terms.h: the usual losses of a document: what each kind of head is asked to predict. */
#ifndef MHA_TEST_TERMS_H
#define MHA_TEST_TERMS_H

#include "mha/run.h"

#define TERMS_MAX 160

typedef struct terms {
    mha_prediction term[TERMS_MAX];
    size_t count;
} terms;

/* Next token: rows 0 … T−2; target: the target's tokens and an end token; masked: every third row;
 * class: one label. With `difference` each term is a logit difference instead. No terms for a
 * single token or a model without a head. */
terms terms_of(const mha_model *m, const mha_document *doc, bool difference);

#endif
