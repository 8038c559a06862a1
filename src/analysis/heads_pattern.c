/* heads_pattern.c: descriptors from the pattern itself, for rows that the softmax pass does not
 * see: without special keys, or merged to words. By definition and in double; slower, and only used
 * when asked for. */
#include "analysis/heads.h"
#include <math.h>
#include <string.h>

#define UNDEFINED ((double)NAN)

static double weight_at(const double *p, const uint8_t *seen, size_t n, size_t j)
{
    return j < n && seen[j] ? p[j] : UNDEFINED;
}

/* H = −Σ (p/s) ln(p/s) = ln s − (Σ p ln p)/s with s = Σ p; 0·ln 0 = 0. */
void mha_row_define(const double *p, const uint8_t *seen, size_t n, size_t i, mha_row_stats *st)
{
    double s = 0, plogp = 0, most = 0, distance = 0, offset = 0;
    memset(st, 0, sizeof *st);
    for (size_t j = 0; j < n; j++) {
        if (!seen[j])
            continue;
        st->visible++;
        s += p[j];
        if (p[j] > 0)
            plogp += p[j] * log(p[j]);
        most = p[j] > most ? p[j] : most;
        double d = (double)j - (double)i;
        distance += p[j] * fabs(d);
        offset += p[j] * d;
    }
    double h = s > 0 ? log(s) - plogp / s : UNDEFINED;
    bool defined = st->visible > 0, self = i != SIZE_MAX && defined;
    st->entropy = h < 0 ? 0 : h;
    st->max_weight = defined ? most : UNDEFINED;
    st->distance = self ? distance : UNDEFINED;
    st->offset = self ? offset : UNDEFINED;
    st->self = self ? weight_at(p, seen, n, i) : UNDEFINED;
    st->prev = self && i > 0 ? weight_at(p, seen, n, i - 1) : UNDEFINED;
    st->next = self ? weight_at(p, seen, n, i + 1) : UNDEFINED;
    st->first = self ? weight_at(p, seen, n, 0) : UNDEFINED;
    st->special = UNDEFINED;
}

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
