/* output.h: where a command's results go, and in which format. */
#ifndef MHA_CLI_OUTPUT_H
#define MHA_CLI_OUTPUT_H

#include "cli/cli.h"
#include "mha/table.h"

#define MHA_FORMAT_BIT(f) (1u << (f))
#define MHA_FORMATS_TABLE                                                                          \
    (MHA_FORMAT_BIT(MHA_FORMAT_TEXT) | MHA_FORMAT_BIT(MHA_FORMAT_JSON) |                           \
     MHA_FORMAT_BIT(MHA_FORMAT_CSV))
#define MHA_FORMATS_ARRAY                                                                          \
    (MHA_FORMAT_BIT(MHA_FORMAT_NPZ) | MHA_FORMAT_BIT(MHA_FORMAT_NPY) |                             \
     MHA_FORMAT_BIT(MHA_FORMAT_SAFETENSORS))
#define MHA_FORMATS_FIGURE                                                                         \
    (MHA_FORMAT_BIT(MHA_FORMAT_PNG) | MHA_FORMAT_BIT(MHA_FORMAT_PDF) |                             \
     MHA_FORMAT_BIT(MHA_FORMAT_SVG))

typedef struct mha_output {
    const char *path; /* "-": standard output */
    mha_format format;
    bool force;
    bool directory; /* path names a directory for one file a document */
} mha_output;

/* Reads -o, --format and --force before anything runs: a wrong suffix, a file that exists or a
 * terminal that would get binary data is known at once. allowed: formats of the command; fallback:
 * the format of standard output, AUTO when -o has to be given. */
mha_status mha_output_choose(mha_output *out, mha_cli *cli, unsigned allowed, mha_format fallback,
                             mha_err *err);
/* The directory that `path` goes to must be there before anything runs, not after hours. */
mha_status mha_output_parent(mha_cli *cli, const char *path, mha_err *err);
/* Whether it is a picture. */
bool mha_output_is_figure(const mha_output *out);
/* Writes a table; bar names the column drawn as bars on a terminal, NULL: none. */
mha_status mha_output_table(mha_cli *cli, const mha_output *out, const mha_table *t,
                            const char *bar, mha_err *err);

/* The sections tool, model and input of a result, and "seed" and selection in settings when they
 * were given. */
mha_status mha_result_describe(mha_table *t, const mha_cli *cli, mha_err *err);

#endif
