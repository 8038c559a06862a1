/* importancetable.h: the table and the chart of `importance`. */
#ifndef MHA_CLI_IMPORTANCETABLE_H
#define MHA_CLI_IMPORTANCETABLE_H

#include "cli/figure.h"
#include "cli/scoring.h"

typedef struct mha_importancetable {
    mha_cli *cli;
    mha_scoring scoring;
    mha_importance_method methods[MHA_METHOD_COUNT];
    mha_importance *results[MHA_METHOD_COUNT];
    char *partials[MHA_METHOD_COUNT]; /* files of unfinished results, NULL: none */
    size_t count;
    const char *column; /* that sorts, is drawn as bars and charted */
    bool sorted, ascending;
    mha_table *table;
} mha_importancetable;

/* Reads --sort; a wrong column is known before anything runs. */
mha_status mha_importancetable_sorting(mha_importancetable *t, mha_err *err);
/* Makes t->table of the results: by unit, document or layer, with its sections; says what a user
 * should know about them. */
mha_status mha_importancetable_fill(mha_importancetable *t, mha_err *err);
/* --sort and --top */
mha_status mha_importancetable_arrange(mha_importancetable *t, mha_err *err);
/* The grid of layers and heads above the sorted bars, of one method. */
mha_status mha_importancetable_draw(mha_importancetable *t, const mha_output *out,
                                    const mha_chart_options *chart, mha_err *err);
void mha_importancetable_release(mha_importancetable *t);

#endif
