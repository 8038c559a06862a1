/* netmap.h: pictures of a graph with the weights that heads give its edges. */
#ifndef MHA_CLI_NETMAP_H
#define MHA_CLI_NETMAP_H

#include "cli/output.h"
#include "mha/chart.h"

/* What `heatmap` does when its one document is a graph; inputs and model are open. */
mha_status mha_netmap_run(mha_cli *cli, const mha_output *out, const mha_chart_options *chart,
                          mha_err *err);

#endif
