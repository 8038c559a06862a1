/* reader.h: the rows of a run's patterns as cells: special keys out, pieces merged to words. Serves
 * all who read patterns row by row; knows nothing of what they make of them. */
#ifndef MHA_PROBE_READER_H
#define MHA_PROBE_READER_H

#include "probe/chosen.h"
#include "probe/merge.h"

typedef struct mha_reader_text {
    mha_cells source, target;
} mha_reader_text;

typedef struct mha_reader {
    const mha_chosen *chosen;
    const mha_document *docs;
    size_t count;
    mha_special special;
    mha_reader_text *texts; /* [count] */
    mha_merge_row *rows;    /* [chosen->heads]: a word may go on in the next block */
    double *p;              /* [chosen->heads, largest number of keys] what rows point into */
    uint8_t *seen;          /* the same */
} mha_reader;

/* One row of cells that is complete. */
typedef struct mha_reader_row {
    const mha_attn_info *step;
    size_t number;     /* of the head among the chosen ones */
    size_t row, cells; /* of the query; of the keys */
    bool flags;        /* whether special keys are known */
    const mha_merge_row *merged;
} mha_reader_row;

/* What chosen, docs and words point to must outlive the reader; words [count] or NULL. Release in
 * any case. MHA_ERR_ARG: special tokens are not known, but special is not KEEP. */
mha_status mha_reader_init(mha_reader *r, const mha_chosen *chosen, const mha_document *docs,
                           size_t count, mha_special special, const mha_words *words, mha_err *err);
void mha_reader_release(mha_reader *r);

const mha_cells *mha_reader_queries(const mha_reader *r, const mha_attn_info *step,
                                    size_t document);
const mha_cells *mha_reader_keys(const mha_reader *r, const mha_attn_info *step, size_t document);

/* Adds a block of MHA_SITE_PATTERN of a chosen head; calls back for every row that is complete.
 * Stops at a non-zero return and passes it on. */
int mha_reader_add(mha_reader *r, const mha_block *block,
                   int (*done)(void *context, const mha_block *block, const mha_reader_row *row),
                   void *context);

#endif
