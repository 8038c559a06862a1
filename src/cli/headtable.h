/* headtable.h: the table of `heads`: its columns, views and charts. */
#ifndef MHA_CLI_HEADTABLE_H
#define MHA_CLI_HEADTABLE_H

#include "cli/figure.h"
#include "cli/select.h"
#include "mha/analysis.h"

typedef struct mha_headtable {
    mha_cli *cli;
    mha_selection selection;
    mha_words *words;
    mha_heads *heads;
    bool intervals;
    const char *column; /* that sorts, is drawn as bars and charted */
    bool sorted, ascending;
    mha_table *table;
} mha_headtable;

/* Reads --sort; a wrong column is known before anything runs. */
mha_status mha_headtable_sorting(mha_headtable *h, mha_err *err);
/* Makes h->table of what h->heads measured: by head, document or layer, with its sections. */
mha_status mha_headtable_fill(mha_headtable *h, mha_err *err);
/* --sort and --top */
mha_status mha_headtable_arrange(mha_headtable *h, mha_err *err);
/* Draws h->column: a map of layers and heads, or bars of the first rows with --top. */
mha_status mha_headtable_draw(mha_headtable *h, const mha_output *out,
                              const mha_chart_options *chart, mha_err *err);
void mha_headtable_release(mha_headtable *h);

#endif
