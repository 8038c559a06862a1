/* sample.h: where the bundled models are. */
#ifndef MHA_CLI_SAMPLE_H
#define MHA_CLI_SAMPLE_H

#include "mha/err.h"

/* *out = the path that MODEL means, owned (mha_free): "sample:NAME" is looked up in $MHA_SAMPLES,
 * beside the program (a build tree or a moved installation), and where it was to be installed;
 * anything else is copied. MHA_ERR_IO names the samples that exist. */
mha_status mha_sample_resolve(char **out, const char *model, mha_err *err);

#endif
