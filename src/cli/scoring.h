/* scoring.h: what commands that measure a loss share: its options, what the documents are to
 * predict, which heads are meant. */
#ifndef MHA_CLI_SCORING_H
#define MHA_CLI_SCORING_H

#include "cli/select.h"
#include "mha/analysis.h"

/* Documents and what they are to predict. */
typedef struct mha_measured {
    mha_truth *truths;
    mha_losses *losses;
} mha_measured;

typedef struct mha_scoring {
    mha_cli *cli;
    mha_loss_options loss;
    mha_measured input; /* of cli->inputs */
    mha_selection selection;
    mha_inputs reference;           /* --reference */
    mha_importance_options options; /* all but the method */
} mha_scoring;

mha_status mha_methods_parse(mha_importance_method *out, size_t *count, const mha_args *args,
                             mha_err *err);

/* A run that failed because its partial file could not be written failed at its output: exit code
 * 1. path: that file's; NULL: there is none. */
void mha_partial_judge(mha_cli *cli, mha_status status, const char *path, const mha_err *err);
/* "OUTPUT.NAME.partial" for a result that goes to a file, else NULL; owned (mha_free). Says so when
 * such a file is there and nobody asked to resume. */
mha_status mha_partial_path(char **out, const mha_cli *cli, const char *output, const char *name,
                            mha_err *err);

/* Opens model, engine, inputs and losses, and reads the options of both. A model without a read-out
 * and documents with nothing to predict are failures (exit 1). Release in any case. */
mha_status mha_scoring_open(mha_scoring *s, mha_cli *cli, mha_err *err);
void mha_scoring_release(mha_scoring *s);
/* The same loss on other documents, which must outlive it. */
mha_status mha_measured_make(mha_measured *out, const mha_scoring *s, const mha_inputs *in,
                             mha_err *err);
void mha_measured_release(mha_measured *m);
/* "loss", "seed" and so on into a result's settings. */
mha_status mha_scoring_describe(const mha_scoring *s, mha_meta *settings, mha_err *err);

#endif
