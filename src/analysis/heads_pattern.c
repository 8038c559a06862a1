/* heads_pattern.c: descriptors from the pattern itself, for rows that the softmax pass does not
 * see: without special keys, or merged to words. By definition and in double; slower, and only used
 * when asked for. */
#include "analysis/heads.h"
#include "probe/row.h"
#include <math.h>

#define UNDEFINED ((double)NAN)

typedef struct destination {
    mha_heads *h;
    mha_head_sums *sums;
} destination;

static int row_done(void *context, const mha_block *block, const mha_reader_row *row)
{
    const destination *to = context;
    const mha_merge_row *merged = row->merged;
    (void)block;
    to->h->skipped[row->number] += merged->skipped;
    if (merged->pieces == 0)
        return 0;
    mha_row_stats st;
    mha_row_define(merged->p, merged->seen, row->cells,
                   row->step->kind == MHA_SELF ? row->row : SIZE_MAX, &st);
    st.special = row->flags ? merged->special : UNDEFINED;
    st.sink = merged->left_out;
    mha_head_sums_add(to->sums, &st, row->row, row->step->causal, row->step->sink);
    return 0;
}

int mha_heads_add_pattern(mha_heads *h, const mha_block *block, mha_head_sums *sums)
{
    destination to = {h, sums};
    return mha_reader_add(&h->reader, block, row_done, &to);
}
