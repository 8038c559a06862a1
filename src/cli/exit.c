/* exit.c: which exit code a status of the library becomes. One table, nothing else. */
#include "cli/exit.h"

int mha_exit_code(mha_status status, bool writing)
{
    switch (status) {
    case MHA_OK:
        return MHA_EXIT_DONE;
    case MHA_ERR_ARG:
        return MHA_EXIT_USAGE;
    case MHA_ERR_IO:
        return writing ? MHA_EXIT_FAILED : MHA_EXIT_INPUT;
    case MHA_ERR_FORMAT:
    case MHA_ERR_UNSUPPORTED:
    case MHA_ERR_LIMIT:
    case MHA_ERR_NUMERIC:
        return MHA_EXIT_INPUT;
    case MHA_ERR_CANCELLED:
        return MHA_EXIT_SIGNAL;
    case MHA_ERR_NOMEM:
    case MHA_ERR_INTERNAL:
        return MHA_EXIT_FAILED;
    }
    return MHA_EXIT_FAILED;
}
