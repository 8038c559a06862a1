/* mha/trace.h: keeping what a run computes, as named arrays.
 *
 * A trace is a probe that writes the wanted sites, layers and heads of some documents into arrays
 * whose names and shapes are those of the files that `maps` writes. Attention patterns can be seen
 * through a view: special tokens taken out, pieces merged to words.
 * The view is applied row by row while the run goes on: no T×S map is ever held that was not asked
 * for. */
#ifndef MHA_TRACE_H
#define MHA_TRACE_H

#include "mha/probe.h"
#include "mha/run.h"
#include "mha/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which heads and layers are meant. H is the largest number of heads of any attention step, as for
 * mha_document.gates. Zero-initialised: all. */
typedef struct mha_choice {
    const bool *heads; /* [A, H] by attention step (order of mha_model_info.attn) and index on
                          axis H; NULL: all */
    const bool *layers[MHA_STACK_COUNT]; /* [L] for the sites that no head has; NULL: all. A stack's
                                            embed and hidden go with any chosen layer */
} mha_choice;

/* What happens to the weights on special tokens (as keys). */
typedef enum mha_special {
    MHA_SPECIAL_KEEP = 0, /* weights as they are */
    MHA_SPECIAL_MASS,     /* their mass is apart from the others' (see where it is used) */
    MHA_SPECIAL_RENORM    /* taken out, and rows divided by what is left */
} mha_special;

/* Which word each token of a document belongs to. Consecutive equal numbers form one word; −1, a
 * token of no word, stands alone. NULL: every token stands alone. */
typedef struct mha_words {
    const int32_t *source; /* [n] */
    const int32_t *target; /* [target_n] */
} mha_words;

/* Cells of a merged axis: cell[t] is the cell of token t. Returns the number of cells. `words` may
 * be NULL: n cells. */
size_t mha_words_cells(const int32_t *words, size_t n, uint32_t *cell);

/* How patterns are looked at, in this order:
 * special: MASS sets the weights on special tokens to 0, RENORM also divides each row by what is
 * left (a row with less than 1e-6 left becomes 0); both need mha_document.special.
 * words: weights are summed over the key pieces and averaged over the query pieces of a word.
 * Cutting and pooling are for figures, row by row (mha_map_rows below, mha_heat in chart.h). */
typedef struct mha_view {
    mha_special special;
    const mha_words *words; /* [count] by document, NULL: tokens */
} mha_view;

typedef struct mha_trace_options {
    uint32_t sites; /* bit set: 1u << MHA_SITE_PATTERN | …; all but _STATS and _ATTN_OUT */
    mha_choice choice;
    mha_view view;  /* of MHA_SITE_PATTERN */
    uint64_t limit; /* bytes that the arrays may take, 0: no limit */
} mha_trace_options;

/* One array in C order. */
typedef struct mha_trace_array {
    char name[40];       /* "enc.self.0.pattern", "dec.3.resid", "enc.hidden", "logits", "ids" */
    mha_array_type type; /* F32, or I64 for ids, target_ids and heads */
    size_t dims, shape[3];
    const void *data;
} mha_trace_array;

typedef struct mha_trace mha_trace;

/* The arrays are made here, so that memory is known before the run; their values come with the run
 * of the same docs. The model, docs and everything that options point to must outlive the trace.
 * An encoder–decoder's document without a target has no decoder arrays.
 * MHA_ERR_NOMEM: over the limit; MHA_ERR_UNSUPPORTED: logits of a model without a head;
 * MHA_ERR_ARG: no site, or special tokens that are not known. */
mha_status mha_trace_new(mha_trace **out, const mha_model *model, const mha_document *docs,
                         size_t count, const mha_trace_options *options, mha_err *err);
void mha_trace_free(mha_trace *t);
const mha_probe *mha_trace_probe(const mha_trace *t); /* borrowed */

/* Arrays of one document: ids and target_ids, then stack by stack embed, the layers, hidden, then
 * logits. Per-head sites come with "STACK.KIND.LAYER.heads": the original numbers on axis H; keys
 * and values keep all their heads. Borrowed. */
size_t mha_trace_count(const mha_trace *t, size_t document);
const mha_trace_array *mha_trace_get(const mha_trace *t, size_t document, size_t i);
const mha_trace_array *mha_trace_find(const mha_trace *t, size_t document, const char *name);

/* --- rows of maps, without arrays ------------------------------------------------------------ */

/* A run of cells of one row of a map that the mask shows: cells [first, first + n) of row `row`. A
 * row may come in several runs, or in none; cells that never come are masked or left out. */
typedef struct mha_map_row {
    size_t document;
    mha_stack_id stack;
    mha_kind kind;
    uint32_t layer, head; /* index on axis H */
    size_t row, first, n;
    const float *weights; /* [n], borrowed for the call */
} mha_map_row;
/* Called under the same rules as mha_probe.deliver; non-zero ends the run. */
typedef int (*mha_map_sink)(void *context, const mha_map_row *row);

/* A probe that hands the rows of the chosen heads on as they come, through a view. choice and view
 * may be NULL. Errors as of mha_trace_new. */
typedef struct mha_map_rows mha_map_rows;
mha_status mha_map_rows_new(mha_map_rows **out, const mha_model *model, const mha_document *docs,
                            size_t count, const mha_choice *choice, const mha_view *view,
                            mha_map_sink sink, void *context, mha_err *err);
void mha_map_rows_free(mha_map_rows *m);
const mha_probe *mha_map_rows_probe(const mha_map_rows *m);

#ifdef __cplusplus
}
#endif
#endif
