/* answers.h: what `run` answers: one way of answering a function, one row an answer. */
#ifndef MHA_CLI_ANSWERS_H
#define MHA_CLI_ANSWERS_H

#include "cli/output.h"

/* The tables are the caller's, also after an error. */
mha_status mha_answer_next(mha_table **t, mha_cli *cli, mha_err *err);
mha_status mha_answer_masked(mha_table **t, mha_cli *cli, mha_err *err);
mha_status mha_answer_class(mha_table **t, mha_cli *cli, mha_err *err);
mha_status mha_answer_span_of(mha_table **t, mha_cli *cli, mha_err *err);
/* --generate */
mha_status mha_answer_generate(mha_table **t, mha_cli *cli, mha_err *err);
/* With --generate: every document goes on with the tokens that the model writes, as --generate,
 * --sample and --temperature say; the documents tell how many those are. */
mha_status mha_inputs_write_on(mha_cli *cli, mha_err *err);
/* Models without a head: a table, or arrays for the formats of arrays. */
mha_status mha_answer_embedding(mha_cli *cli, const mha_output *out, mha_err *err);

#endif
