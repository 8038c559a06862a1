/* heads.h: what the two files of the heads analysis share: sums of one head on one document. */
#ifndef MHA_ANALYSIS_HEADS_H
#define MHA_ANALYSIS_HEADS_H

#include "mha/analysis.h"
#include "probe/reader.h"

/* Σ over rows and the number of rows in which each column is defined. */
typedef struct mha_head_sums {
    double sum[MHA_HEADS_COLUMNS];
    uint32_t rows[MHA_HEADS_COLUMNS];
} mha_head_sums;

/* Adds the row of query i. Columns that the row does not define are NaN in st and are left out. */
void mha_head_sums_add(mha_head_sums *s, const mha_row_stats *st, size_t i, bool causal, bool sink);

/* The documents of one mha_heads_begin. */
typedef struct mha_heads_part {
    size_t first, count; /* first: index in the whole corpus */
    mha_head_sums *sums; /* [count, heads] */
} mha_heads_part;

struct mha_heads {
    mha_probe probe;
    const mha_model_info *info;
    mha_heads_options options;
    mha_chosen chosen;
    mha_heads_part *parts;
    size_t part_count, part_capacity;
    mha_head_row *rows; /* [chosen.heads] result */
    mha_reader reader;  /* of the run that was begun last, when patterns are read */
    bool from_pattern;
    uint64_t *skipped; /* [chosen.heads] */
};

/* Adds a block of MHA_SITE_PATTERN to the sums of its head on its document. */
int mha_heads_add_pattern(mha_heads *h, const mha_block *block, mha_head_sums *sums);

#endif
