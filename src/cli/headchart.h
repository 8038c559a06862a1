/* headchart.h: one column of a table of heads as a picture. */
#ifndef MHA_CLI_HEADCHART_H
#define MHA_CLI_HEADCHART_H

#include "cli/figure.h"

typedef struct mha_headchart {
    mha_cli *cli;
    const mha_table *table; /* rows are heads, groups of heads, or layers */
    const char *column;
    const char *lo, *hi;     /* columns with the ends of its intervals; NULL: none */
    bool diverging;          /* 0 is the middle */
    const char *name, *unit; /* of the values; NULL: the column's */
} mha_headchart;

/* A map of layers and heads, or bars of the rows in their order. */
mha_status mha_headchart_draw(const mha_headchart *c, bool map, const char *path,
                              const mha_chart_options *chart, mha_err *err);
/* The map of all rows above, bars of the first `top` rows below. */
mha_status mha_headchart_draw_both(const mha_headchart *c, size_t top, const char *path,
                                   const mha_chart_options *chart, mha_err *err);

#endif
