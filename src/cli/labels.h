/* labels.h: what stands at the axes of a map. */
#ifndef MHA_CLI_LABELS_H
#define MHA_CLI_LABELS_H

#include "base/mem.h"
#include "mha/chart.h"
#include "mha/input.h"

typedef enum mha_label_mode {
    MHA_LABEL_TOKENS = 0,
    MHA_LABEL_WORDS,
    MHA_LABEL_NONE
} mha_label_mode;

typedef struct mha_labels {
    mha_label *items; /* [count] */
    size_t count;
    mha_arena text;
} mha_labels;

/* The cells of one axis that a figure shows. */
typedef struct mha_cells {
    const mha_tokens *tokens;
    const uint32_t *cell; /* [tokens->n], never falling */
    size_t first, last;   /* cells shown */
} mha_cells;

/* Labels of the cells, the first at 0. Tokens that hold parts of one character share a label; WORDS
 * lets the tokens of one word share it too. Without a tokenizer a label is the id. Release in any
 * case. */
mha_status mha_labels_make(mha_labels *l, const mha_tokenizer *tokenizer, const mha_cells *cells,
                           mha_label_mode mode, mha_err *err);
void mha_labels_release(mha_labels *l);

#endif
