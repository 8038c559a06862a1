/* cuts.h: a text cut into stretches that match a pattern and stretches that do not. */
#ifndef MHA_TEXT_CUTS_H
#define MHA_TEXT_CUTS_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_cut {
    uint32_t start, end; /* equal for an empty match */
    bool match;
} mha_cut;

/* Contiguous and in order: together they are the whole text. */
typedef struct mha_cuts {
    mha_cut *v;
    size_t n, capacity;
} mha_cuts;

void mha_cuts_release(mha_cuts *c);
mha_status mha_cuts_add(mha_cuts *c, size_t start, size_t end, bool match, mha_err *err);

/* What becomes of the matches when a text is split at them. */
typedef enum mha_cut_behaviour {
    MHA_CUT_REMOVED,
    MHA_CUT_ISOLATED,
    MHA_CUT_MERGED_WITH_PREVIOUS,
    MHA_CUT_MERGED_WITH_NEXT,
    MHA_CUT_CONTIGUOUS
} mha_cut_behaviour;

/* Joins or drops neighbours; what remains are the pieces. Pieces may be empty. */
void mha_cuts_fold(mha_cuts *c, mha_cut_behaviour behaviour);

#endif
