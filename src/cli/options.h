/* options.h: the one table of commands and options. Parser, help, manual page and completion all
 * read it, so they cannot disagree. */
#ifndef MHA_CLI_OPTIONS_H
#define MHA_CLI_OPTIONS_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mha_command_id {
    MHA_CMD_INFO = 0,
    MHA_CMD_TOKENS,
    MHA_CMD_RUN,
    MHA_CMD_MAPS,
    MHA_CMD_HEADS,
    MHA_CMD_HEATMAP,
    MHA_CMD_IMPORTANCE,
    MHA_CMD_CURVE,
    MHA_CMD_PRUNE,
    MHA_CMD_ATTRIBUTE,
    MHA_CMD_HELP,
    MHA_CMD_COUNT
} mha_command_id;

typedef enum mha_option_id {
    MHA_OPT_TEXT = 0,
    MHA_OPT_PAIR,
    MHA_OPT_TARGET,
    MHA_OPT_FILE,
    MHA_OPT_IDS,
    MHA_OPT_TARGET_IDS,
    MHA_OPT_IDS_FILE,
    MHA_OPT_GRAPH,
    MHA_OPT_MAPS,
    MHA_OPT_IMAGE,
    MHA_OPT_FEATURES,
    MHA_OPT_MAX_DOCS,
    MHA_OPT_MAX_TOKENS,
    MHA_OPT_NO_SPECIAL,
    MHA_OPT_GLOBAL,
    MHA_OPT_PROGRAM,
    MHA_OPT_TENSORS,
    MHA_OPT_HASH,
    MHA_OPT_GENERATE,
    MHA_OPT_BEAM,
    MHA_OPT_SAMPLE,
    MHA_OPT_TEMPERATURE,
    MHA_OPT_TOP,
    MHA_OPT_SITES,
    MHA_OPT_LAYERS,
    MHA_OPT_HEADS,
    MHA_OPT_STACK,
    MHA_OPT_KIND,
    MHA_OPT_WORDS,
    MHA_OPT_SPECIAL,
    MHA_OPT_PER_DOCUMENT,
    MHA_OPT_BY_LAYER,
    MHA_OPT_SORT,
    MHA_OPT_METHOD,
    MHA_OPT_LOSS,
    MHA_OPT_LOGIT_DIFF,
    MHA_OPT_MASK_RATE,
    MHA_OPT_UNIT,
    MHA_OPT_REFERENCE,
    MHA_OPT_DRAWS,
    MHA_OPT_BOOTSTRAP,
    MHA_OPT_CI,
    MHA_OPT_KEEP,
    MHA_OPT_FRACTION,
    MHA_OPT_BUDGET,
    MHA_OPT_SCORES,
    MHA_OPT_BY,
    MHA_OPT_EVAL,
    MHA_OPT_STEPS,
    MHA_OPT_RESCORE,
    MHA_OPT_ORDERS,
    MHA_OPT_RESUME,
    MHA_OPT_MODE,
    MHA_OPT_FOLD_MEAN,
    MHA_OPT_ROWS,
    MHA_OPT_COLS,
    MHA_OPT_LABELS,
    MHA_OPT_SCALE,
    MHA_OPT_COLORMAP,
    MHA_OPT_EXACT,
    MHA_OPT_WIDTH,
    MHA_OPT_DPI,
    MHA_OPT_FONT,
    MHA_OPT_FONT_SIZE,
    MHA_OPT_TITLE,
    MHA_OPT_CAPTION,
    MHA_OPT_DARK,
    MHA_OPT_OUTPUT,
    MHA_OPT_FORMAT,
    MHA_OPT_FORCE,
    MHA_OPT_THREADS,
    MHA_OPT_ISA,
    MHA_OPT_SEED,
    MHA_OPT_MEMORY,
    MHA_OPT_FAMILY,
    MHA_OPT_LIMIT,
    MHA_OPT_DRY_RUN,
    MHA_OPT_PROGRESS,
    MHA_OPT_QUIET,
    MHA_OPT_VERBOSE,
    MHA_OPT_VERSION,
    MHA_OPT_HELP,
    MHA_OPT_COUNT
} mha_option_id;

/* Where an option stands in the help of a command. */
typedef enum mha_option_group {
    MHA_GROUP_INPUT = 0,
    MHA_GROUP_COMMAND,
    MHA_GROUP_FIGURE,
    MHA_GROUP_OUTPUT,
    MHA_GROUP_COMMON,
    MHA_GROUP_COUNT
} mha_option_group;

typedef struct mha_option {
    mha_option_id id;
    mha_option_group group;
    uint32_t commands;    /* bit set: 1u << mha_command_id */
    const char *name;     /* "--layers" */
    const char *argument; /* "LIST"; "a|b|c" takes only these words; NULL: a switch */
    const char *fallback; /* the default as the help shows it, or NULL */
    const char *help;     /* one line */
} mha_option;

extern const mha_option mha_options[MHA_OPT_COUNT]; /* in the order of mha_option_id */
const char *mha_option_group_title(mha_option_group group);

typedef struct mha_cli mha_cli;

typedef struct mha_command {
    mha_command_id id;
    const char *name;
    mha_status (*run)(mha_cli *cli, mha_err *err);
    const char *summary; /* one line */
    const char *usage;   /* what follows the name */
    const char *help;    /* a paragraph */
    const char *example; /* a command line that works where the samples are installed */
} mha_command;

extern const mha_command mha_commands[MHA_CMD_COUNT]; /* in the order of mha_command_id */

#endif
