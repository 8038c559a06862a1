/* families.h: the family descriptions of this directory's family/ that the build embeds, in the
 * order of their names. The array ends with an entry whose name is NULL. */
#ifndef MHA_MODEL_FAMILIES_H
#define MHA_MODEL_FAMILIES_H

#include "base/embedded.h"

extern const struct mha_embedded mha_families[];
extern const size_t mha_family_count;

#endif
