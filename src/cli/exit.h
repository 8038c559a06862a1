/* exit.h: the exit codes of mha-inspect. Scripts depend on them. */
#ifndef MHA_CLI_EXIT_H
#define MHA_CLI_EXIT_H

#include "mha/err.h"
#include <stdbool.h>

enum {
    MHA_EXIT_DONE = 0,
    MHA_EXIT_FAILED = 1,   /* could not do it: output, memory, nothing to measure */
    MHA_EXIT_USAGE = 2,    /* the command line makes no sense */
    MHA_EXIT_INPUT = 3,    /* bad or unsupported model or input */
    MHA_EXIT_SIGNAL = 130, /* interrupted */
};

/* `writing`: the call that failed was writing results, so a failure of the system is an output
 * failure and not a missing input. */
int mha_exit_code(mha_status status, bool writing);

#endif
