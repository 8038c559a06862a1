/* mha/attribute.h: what attention says about single tokens of a document.
 *
 * An attribution is made for a model and one document, gives a probe to a run of that document, and
 * is asked for its result afterwards. */
#ifndef MHA_ATTRIBUTE_H
#define MHA_ATTRIBUTE_H

#include "mha/probe.h"
#include "mha/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- contacts of residues ------------------------------------------------------------------- */

/* Which residues of a protein touch, by the checkpoint's contact head (Rao et al. 2021): a logistic
 * regression on the maps of all heads, each made symmetric and with its average product taken off.
 * Only one [R, R] sum is kept, whatever the number of heads. */
typedef struct mha_contacts mha_contacts;

/* The residues are all tokens of the document but the first and the last, which stand for its start
 * and end; model and document must outlive it. MHA_ERR_UNSUPPORTED: the checkpoint has no contact
 * head; MHA_ERR_ARG: the document has no residues, or its first or last token is known not to be
 * special. */
mha_status mha_contacts_new(mha_contacts **out, const mha_model *model, const mha_document *doc,
                            mha_err *err);
void mha_contacts_free(mha_contacts *c);
const mha_probe *mha_contacts_probe(const mha_contacts *c); /* borrowed; for a single run */
size_t mha_contacts_residues(const mha_contacts *c);        /* R = tokens − 2 */
/* After the run: [R, R] probabilities, symmetric; borrowed. Does not depend on threads. */
const float *mha_contacts_map(mha_contacts *c);
/* Bytes that such an object keeps for a document of n tokens. */
uint64_t mha_contacts_bytes(const mha_model *model, size_t n);

#ifdef __cplusplus
}
#endif
#endif
