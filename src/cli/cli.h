/* cli.h: what every command works with: its arguments, what it opened, how it talks.
 *
 * Results go to standard output or to -o; notes, progress and the one line of an error go to
 * standard error. Everything that a command opens hangs on mha_cli and is released by main, so
 * commands may return early. */
#ifndef MHA_CLI_CLI_H
#define MHA_CLI_CLI_H

#include "cli/args.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "mha/maps.h"
#include "mha/model.h"
#include "mha/run.h"

struct mha_cli {
    mha_args args;
    bool quiet, verbose;
    bool noted;    /* what the tokenizer wants known was said */
    bool writing;  /* results are being written: failures are output failures */
    int exit_code; /* overrides the exit code of the status when not 0 */
    char *model_path;
    mha_maps *maps;   /* of --maps; NULL: a model runs */
    mha_model *model; /* owned, but by maps where there are some */
    const mha_model_info *info;
    mha_tokenizer *tokenizer; /* NULL when the model has none, or it is not supported */
    mha_inputs inputs;
    mha_engine *engine;
    mha_progress_bar bar;
};

mha_status mha_cmd_info(mha_cli *cli, mha_err *err);
mha_status mha_cmd_tokens(mha_cli *cli, mha_err *err);
mha_status mha_cmd_run(mha_cli *cli, mha_err *err);
mha_status mha_cmd_maps(mha_cli *cli, mha_err *err);
mha_status mha_cmd_heads(mha_cli *cli, mha_err *err);
mha_status mha_cmd_heatmap(mha_cli *cli, mha_err *err);
mha_status mha_cmd_curve(mha_cli *cli, mha_err *err);
mha_status mha_cmd_importance(mha_cli *cli, mha_err *err);
mha_status mha_cmd_prune(mha_cli *cli, mha_err *err);
mha_status mha_cmd_attribute(mha_cli *cli, mha_err *err);
mha_status mha_cmd_help(mha_cli *cli, mha_err *err);

/* A line on standard error, "mha-inspect: note: …", unless -q. */
void mha_note(const mha_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Names the tokens of a single document, with -v or on a terminal: what was really fed. */
void mha_note_fed(const mha_cli *cli);
/* Something could not be done although command line and input are good: exit code 1. */
mha_status mha_cannot(mha_cli *cli, mha_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- what commands open (session.c) ----------------------------------------------------------- */

/* *out = the value of --limit NAME=V, or is left as it is. Wrong names are errors. */
mha_status mha_limit_get(const mha_cli *cli, const char *name, uint64_t *out, mha_err *err);
/* MODEL and its tokenizer, if it has one. A kind of tokenizer that is not supported is an error
 * only when text has to be read: then mha_need_tokenizer says so. */
mha_status mha_open_model(mha_cli *cli, mha_err *err);
mha_status mha_need_tokenizer(mha_cli *cli, mha_err *err);
/* The model, then the documents of the command line, checked against it. */
mha_status mha_open_inputs(mha_cli *cli, mha_err *err);
mha_status mha_open_engine(mha_cli *cli, mha_err *err);
/* MODEL is written - with --maps, and only then (dumped.c). */
mha_status mha_operand_check(const mha_args *args, mha_err *err);
/* Takes the file of --maps for model and input; and what --dry-run says of it. */
mha_status mha_dumped_open(mha_cli *cli, mha_err *err);
void mha_dumped_print(const mha_cli *cli);
/* Runs all probes over documents, behind the progress bar. */
mha_status mha_run_documents(mha_cli *cli, const mha_document *docs, size_t count,
                             const mha_probe *const *probes, size_t probe_count, mha_err *err);
/* Prints the plan of that run for --dry-run. extra: bytes that the command holds beside it. */
mha_status mha_print_plan(mha_cli *cli, const mha_probe *const *probes, size_t probe_count,
                          uint64_t extra, mha_err *err);
void mha_cli_release(mha_cli *cli);

#endif
