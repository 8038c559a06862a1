/* figure.h: the options that all figures share. */
#ifndef MHA_CLI_FIGURE_H
#define MHA_CLI_FIGURE_H

#include "cli/output.h"
#include "mha/chart.h"

/* Reads and checks them, before anything runs. Strings are borrowed from the command line. */
mha_status mha_figure_options(mha_chart_options *o, const mha_cli *cli, const mha_output *out,
                              mha_err *err);

#endif
