/* mha/maps.h: attention maps that another program dumped, in the place of a model's own run.
 *
 * A file of maps stands for one document on one model of which nothing but the maps is known. Its
 * rows go to the same probes that an engine feeds, so whatever reads patterns or their statistics
 * works on it unchanged. */
#ifndef MHA_MAPS_H
#define MHA_MAPS_H

#include "mha/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mha_maps mha_maps;

/* Reads an .npz of arrays STACK.KIND.LAYER.pattern [H, T, S], with STACK.KIND.LAYER.heads [H], ids
 * and target_ids where it has them, or an .npz or .npy of one array [L, H, T, S]: of a decoder's
 * own tokens when no query sees a later key, else of an encoder's. Self-attention is taken as
 * causal when no head of its layer has any weight on a later key. A narrower mask cannot be told
 * from weights that are 0, so every other key counts as visible. Without ids a token's id is its
 * position. max_bytes bounds what packed arrays may unpack to; 0: 16 GiB.
 * MHA_ERR_FORMAT: an array of a wrong name or shape; a weight that is NaN, infinite or negative,
 * or a row whose sum is more than 0.01 from 1, named with array, head and row. */
mha_status mha_maps_open(mha_maps **out, const char *path, uint64_t max_bytes, mha_err *err);
void mha_maps_close(mha_maps *m);

/* What probes and analyses are made for: its mha_model_info names stacks, layers and heads. It has
 * no weights and cannot be run. Borrowed. */
mha_model *mha_maps_model(mha_maps *m);
const mha_document *mha_maps_document(const mha_maps *m); /* borrowed */
double mha_maps_row_sum_error(const mha_maps *m);         /* largest |Σ p − 1| of any row */

/* Whether some key that counts as visible has weight 0 in every head of a layer: a narrower mask
 * would do that, and entropy_norm, prev_mass, next_mass and first_mass then count too many keys. */
bool mha_maps_unseen(const mha_maps *m);

/* Feeds all probes, as mha_engine_run does with the one document. MHA_ERR_ARG: a probe wants a site
 * other than STATS and PATTERN; MHA_ERR_CANCELLED. */
mha_status mha_maps_run(const mha_maps *m, const mha_probe *const *probes, size_t probe_count,
                        mha_err *err);

#ifdef __cplusplus
}
#endif
#endif
