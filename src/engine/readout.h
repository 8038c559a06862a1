/* readout.h: losses read off the model's own head, and where their gradients start. */
#ifndef MHA_ENGINE_READOUT_H
#define MHA_ENGINE_READOUT_H

#include "engine/backward.h"

/* What a pass with losses fills. Arrays are indexed by the document of the batch. */
typedef struct mha_readout {
    double *loss;     /* [documents] mean over the document's terms; NaN without terms */
    size_t *hits;     /* [documents] terms whose id had the largest logit; may be NULL */
    size_t *term_row; /* [terms] row of each term in the source of LOGITS */
    size_t *first;    /* [documents + 1] terms of each document */
    size_t terms;
    bool pooled;                       /* the head pools: one row a document */
    const struct mha_weights *weights; /* wants gradients of the read-out's tensors, or NULL */
    mha_direct *direct;                /* [documents] reads logits for a direct pass, or NULL */
    bool gradient;                     /* leave ∂loss/∂source of LOGITS in `source` */
    float *d_source;                   /* [rows, D] or NULL */
} mha_readout;

/* Whether every document can be run and its terms fit the model: the errors of mha_engine_loss. */
mha_status mha_readout_check_all(const mha_engine *e, const mha_document *docs, size_t count,
                                 mha_err *err);
/* Lists the terms of the batch's documents as they are now; `loss` has room for all of them. */
mha_status mha_readout_init(mha_readout *r, const mha_forward *f, mha_err *err);
void mha_readout_release(mha_readout *r);
/* No document has a term: all losses are NaN. */
mha_status mha_readout_empty(mha_readout *r, size_t docs);

/* Keeps of X only the rows that have terms, unless the head pools; what the head does not see is
 * not computed. */
mha_status mha_readout_gather(mha_forward *f, mha_err *err);
/* The reverse: gradients of the kept rows go back to their places in X. */
mha_status mha_readout_scatter(mha_backward *b, mha_err *err);

/* LOGITS with losses instead of probes. */
mha_status mha_readout_logits(mha_forward *f, const mha_step *s, mha_err *err);

#endif
