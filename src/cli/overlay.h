/* overlay.h: attention drawn over the picture that a model reads. */
#ifndef MHA_CLI_OVERLAY_H
#define MHA_CLI_OVERLAY_H

#include "cli/figure.h"

/* Whether `heatmap` draws over the picture: there is one, and nothing asks for the plain map. */
bool mha_overlay_wanted(const mha_cli *cli);
/* Every chosen head's attention from the class token, or from the mean of the rows of --rows. */
mha_status mha_overlay_draw(mha_cli *cli, const mha_output *out, mha_chart_options *chart,
                            mha_err *err);

#endif
