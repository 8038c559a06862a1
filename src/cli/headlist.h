/* headlist.h: lists of heads that are to be changed, not just looked at: each item means one
 * attention step or is refused, and heads that are gone already are told of. */
#ifndef MHA_CLI_HEADLIST_H
#define MHA_CLI_HEADLIST_H

#include "cli/select.h"

/* Marks in marks [A, H] (rows as in the selection) what the list of option `id` names, under
 * --stack and --kind. MHA_ERR_ARG: an item that names no head that the model ever had, or heads of
 * several stacks or kinds. Original numbers that are not there any more are noted and counted in
 * *gone. */
mha_status mha_headlist_mark(bool *marks, size_t *gone, const mha_cli *cli, mha_option_id id,
                             size_t stride, mha_err *err);

/* scores [A, H] from the `score` column of a table of importance, or that of --by, higher is more
 * important (ranks are negated); NaN where it has no row. MHA_ERR_FORMAT: no such table, one of
 * another model, or several rows a head. */
mha_status mha_headlist_scores(double *scores, const mha_cli *cli, const char *path, size_t stride,
                               mha_err *err);

#endif
