/* main.c: the table of commands, and the frame around each: parse, run, report, release. What a
 * command does is in its own file. */
#include "base/fail.h"
#include "base/filemap.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "cli/help.h"
#include "cli/nearest.h"
#include "mha/mha.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const mha_command mha_commands[MHA_CMD_COUNT] = {
    {MHA_CMD_INFO, "info", mha_cmd_info, "what a model is: family, shapes, parameters, tokenizer",
     "MODEL [options]",
     "Opens a model without running it and says what it is. --program prints the block program "
     "that will run, --tensors lists the tensors of the files.",
     "mha-inspect info sample:shakespeare --program"},
    {MHA_CMD_TOKENS, "tokens", mha_cmd_tokens, "the tokens that are really fed",
     "MODEL INPUT [options]",
     "Shows the tokens of the input exactly as every other command feeds them: id, piece, bytes "
     "of the text, word, special or not.",
     "mha-inspect tokens sample:shakespeare --text \"To be, or not to be\""},
    {MHA_CMD_RUN, "run", mha_cmd_run, "the model's own answer: next tokens, classes, masks",
     "MODEL INPUT [options]",
     "Runs the model and shows what it answers: the likeliest next tokens, the tokens at the "
     "masks, the scores of the classes, or for a model without a head the embedding of the text. "
     "--generate writes on.",
     "mha-inspect run sample:shakespeare --text \"ROMEO:\" --generate 40"},
    {MHA_CMD_MAPS, "maps", mha_cmd_maps, "attention maps and other arrays as files",
     "MODEL INPUT -o FILE [options]",
     "Writes arrays of any site of the forward pass to NPZ, NPY or safetensors, named "
     "STACK.KIND.LAYER.SITE. Several documents go to a directory, 0000.npz and so on.",
     "mha-inspect maps sample:shakespeare --text \"To be, or not to be\" --sites pattern,z "
     "-o maps.npz"},
    {MHA_CMD_HEADS, "heads", mha_cmd_heads, "what every head does, in numbers",
     "MODEL INPUT [options]",
     "One row of descriptors for each attention head: entropy, distance, mass on the first, own, "
     "previous and special tokens. On a corpus with bootstrap intervals over its documents. "
     "An -o with the suffix of a picture draws a chart of the --sort column.",
     "mha-inspect heads sample:shakespeare --text \"To be, or not to be\" --sort prev_mass"},
    {MHA_CMD_HEATMAP, "heatmap", mha_cmd_heatmap, "pictures of attention maps",
     "MODEL INPUT -o FILE [options]",
     "Draws one head, chosen heads, a layer, or the whole grid of layers and heads as PNG, PDF "
     "or SVG. Long texts are pooled to tiles, which the figure says. With --image the attention of "
     "the class token, or of the patches of --rows, is laid over the picture; --cols or --exact "
     "give the plain map.",
     "mha-inspect heatmap sample:shakespeare --text \"To be, or not to be\" --heads 0.1 "
     "-o head.png"},
    {MHA_CMD_IMPORTANCE, "importance", mha_cmd_importance, "which heads matter, and how surely",
     "MODEL INPUT [options]",
     "Scores every head by what the model's loss would lose without it, with bootstrap intervals "
     "over the documents and the split-half reliability of the ranking. Several methods at once "
     "are compared. An -o with the suffix of a picture draws the grid of layers and heads above "
     "the sorted scores with their intervals.",
     "mha-inspect importance sample:shakespeare --text \"To be, or not to be\" --method "
     "ablate-zero"},
    {MHA_CMD_CURVE, "curve", mha_cmd_curve, "the pruning experiment: loss against heads removed",
     "MODEL INPUT [options]",
     "Ranks the heads on the input, removes them step by step, the least important first, and "
     "measures loss and metric on --eval documents, beside random orders and the opposite order. "
     "--rescore ranks again at every step; --method greedy tries the removals. Ctrl-C keeps what "
     "is there in a .partial file beside the output, and --resume goes on from it.",
     "mha-inspect curve sample:shakespeare --text \"To be, or not to be\" --steps 4"},
    {MHA_CMD_PRUNE, "prune", mha_cmd_prune, "a smaller model, written to a directory",
     "MODEL -o DIRECTORY --heads LIST|--keep LIST|--fraction X|--budget X [options]",
     "Writes the model without some of its heads, in Hugging Face layout, and says which versions "
     "of Transformers will open it; mha-inspect always does. Heads keep their numbers. Where "
     "heads share keys and values, slices take whole groups and masks single heads.",
     "mha-inspect prune sample:shakespeare --heads 0.1 -o smaller"},
    {MHA_CMD_ATTRIBUTE, "attribute", mha_cmd_attribute, "token attribution: contacts of residues",
     "MODEL INPUT --method contacts [options]",
     "What attention says about single tokens. contacts: which residues of a protein touch, by the "
     "checkpoint's own contact head, a logistic regression on the maps of all heads without start "
     "and end token, made symmetric and with the average product taken off. Arrays (npz, npy, "
     "safetensors) and pictures hold the whole map, tables its pairs.",
     "mha-inspect attribute --help"},
    {MHA_CMD_HELP, "help", mha_cmd_help, "help on a command or topic", "[COMMAND|TOPIC]",
     "Without an argument lists the commands. Topics: inputs, selection, arrays, formats, exit, "
     "environment. 'help man' and 'help completion' print the manual page and the completion "
     "for bash.",
     "mha-inspect help arrays"},
};

void mha_note(const mha_cli *cli, const char *format, ...)
{
    if (cli->quiet)
        return;
    va_list args;
    va_start(args, format);
    fputs("mha-inspect: note: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

mha_status mha_cannot(mha_cli *cli, mha_err *err, const char *format, ...)
{
    char message[MHA_ERR_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cli->exit_code = MHA_EXIT_FAILED;
    return mha_fail(err, MHA_ERR_ARG, "%s", message);
}

/* Standard output has no commit: what was lost in its buffer shows here. */
static mha_status output_finish(mha_cli *cli, mha_err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return MHA_OK;
    cli->writing = true;
    return mha_fail(err, MHA_ERR_IO, "standard output: %s", strerror(errno));
}

static mha_status command_run(mha_cli *cli, mha_err *err)
{
    const mha_args *args = &cli->args;
    const mha_command *command = args->command;
    if (mha_args_has(args, MHA_OPT_HELP)) {
        mha_help_command(stdout, command);
        return MHA_OK;
    }
    if (mha_args_has(args, MHA_OPT_VERSION)) {
        printf("mha-inspect %s\n", MHA_VERSION);
        return MHA_OK;
    }
    if (!args->operand && command->id != MHA_CMD_HELP)
        return mha_fail(err, MHA_ERR_ARG, "%s needs a MODEL; see 'mha-inspect help %s'",
                        command->name, command->name);
    if (command->id != MHA_CMD_HELP)
        MHA_TRY(mha_operand_check(args, err));
    cli->quiet = mha_args_has(args, MHA_OPT_QUIET);
    cli->verbose = mha_args_has(args, MHA_OPT_VERBOSE);
    int mode = mha_args_choice(args, MHA_OPT_PROGRESS);
    cli->bar.mode = cli->quiet   ? MHA_PROGRESS_NEVER
                    : mode == -1 ? MHA_PROGRESS_AUTO
                                 : (mha_progress_mode)mode;
    return command->run(cli, err);
}

static int report(const mha_cli *cli, mha_status status, const mha_err *err)
{
    if (status == MHA_OK)
        return MHA_EXIT_DONE;
    if (status == MHA_ERR_CANCELLED)
        fputs("mha-inspect: interrupted\n", stderr);
    else
        fprintf(stderr, "mha-inspect: %s\n", err->message);
    return cli->exit_code ? cli->exit_code : mha_exit_code(status, cli->writing);
}

static mha_status command_find(const mha_command **out, const char *name, mha_err *err)
{
    mha_nearest nearest = {.word = name};
    if (*name == '-') {
        mha_nearest_try(&nearest, "--help");
        mha_nearest_try(&nearest, "--version");
        return mha_fail(err, MHA_ERR_ARG,
                        "unknown option '%s'; the nearest is '%s'; others stand behind a command",
                        name, nearest.best);
    }
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        if (strcmp(mha_commands[i].name, name) == 0) {
            *out = &mha_commands[i];
            return MHA_OK;
        }
        mha_nearest_try(&nearest, mha_commands[i].name);
    }
    return mha_fail(err, MHA_ERR_ARG,
                    "unknown command '%s'; the nearest is '%s'; 'mha-inspect help' lists all", name,
                    nearest.best);
}

/* The command of argv[1]; what help, --help and --version mean without one. */
static mha_status command_choose(const mha_command **out, int argc, char **argv, mha_err *err)
{
    if (argc < 2)
        return mha_fail(err, MHA_ERR_ARG, "no command; 'mha-inspect help' lists them");
    bool alone = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
                 strcmp(argv[1], "--version") == 0;
    if (!alone)
        return command_find(out, argv[1], err);
    *out = &mha_commands[MHA_CMD_HELP];
    return MHA_OK;
}

int main(int argc, char **argv)
{
    /* Only the character set: numbers are read and written in one way everywhere. */
    setlocale(LC_CTYPE, "");
    mha_signals_install();
    mha_filemap_guard();

    mha_cli cli = {0};
    mha_err err = {0};
    const mha_command *command = NULL;
    mha_status status = command_choose(&command, argc, argv, &err);
    if (status == MHA_OK) {
        int skip = strcmp(argv[1], "--version") == 0 ? 0 : 1;
        status = mha_args_parse(&cli.args, command, argc - skip, argv + skip, &err);
    }
    if (status == MHA_OK)
        status = command_run(&cli, &err);
    if (status == MHA_OK)
        status = output_finish(&cli, &err);
    int code = report(&cli, status, &err);
    mha_cli_release(&cli);
    return code;
}
