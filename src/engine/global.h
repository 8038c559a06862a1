/* global.h: tokens with global attention: which they are, and the second projections that their
 * rows are made with. A global token sees every key and is seen by every query; what it sees it
 * sees through projections of its own, what is seen of it is the ordinary key and value. */
#ifndef MHA_ENGINE_GLOBAL_H
#define MHA_ENGINE_GLOBAL_H

#include "engine/attention.h"
#include "engine/backward.h"

/* MHA_ERR_ARG for global tokens in a model that has none; MHA_ERR_LIMIT where the question is
 * global and nothing separates it from the text. */
mha_status mha_globals_check(const struct mha_model *m, const mha_document *doc, mha_err *err);
/* Positions [n] of the document's global tokens, ascending; returns how many there are. */
size_t mha_globals_list(const mha_attn_args *a, const mha_document *doc, uint32_t *out);
/* Lists the global tokens of the batch's documents. */
mha_status mha_globals_init(mha_forward *f, mha_err *err);
void mha_globals_release(mha_forward *f);

/* Keys and values for the rows of global tokens, and their queries over those in t->q; delivers
 * Q_GLOBAL, K_GLOBAL and V_GLOBAL. Does nothing where no token is global and no probe asks. */
mha_status mha_globals_project(mha_attention *t, const float *src, size_t ldx, mha_err *err);

/* The reverse of a step that kept global keys; nothing otherwise. Room for the gradients of global
 * keys and values, zeroed. */
mha_status mha_globals_back_begin(mha_attention_back *t, mha_err *err);
/* Takes the rows of global tokens out of dq, which is 0 there then: *dq_global. */
mha_status mha_globals_back_split(const mha_attention_back *t, float *dq, float **dq_global,
                                  mha_err *err);
/* Adds to dx [N, D] what passes through the second projections; x is the step's source, for
 * gradients of weights. */
mha_status mha_globals_back_project(const mha_attention_back *t, const float *dq_global,
                                    const float *x, float *dx, mha_err *err);

#endif
