/* args.h: a parsed command line, and its typed values. All errors are MHA_ERR_ARG. */
#ifndef MHA_CLI_ARGS_H
#define MHA_CLI_ARGS_H

#include "cli/options.h"

typedef struct mha_given {
    mha_option_id id;
    const char *value; /* borrowed from argv, NULL for a switch */
} mha_given;

typedef struct mha_args {
    const mha_command *command;
    const char *operand; /* MODEL, or the topic of help; NULL when there is none */
    mha_given *given;    /* [count] in the order of the command line */
    size_t count;
} mha_args;

/* argv[0] is the command's name. Release in any case. */
mha_status mha_args_parse(mha_args *args, const mha_command *command, int argc, char **argv,
                          mha_err *err);
void mha_args_release(mha_args *args);

bool mha_args_has(const mha_args *args, mha_option_id id);
/* The last value given, or NULL. */
const char *mha_args_get(const mha_args *args, mha_option_id id);
/* The position of the value among the words of "a|b|c", or -1 when the option is absent. */
int mha_args_choice(const mha_args *args, mha_option_id id);

/* *out = the value, or is left as it is when the option is absent. */
mha_status mha_args_uint(const mha_args *args, mha_option_id id, uint64_t low, uint64_t high,
                         uint64_t *out, mha_err *err);
mha_status mha_args_real(const mha_args *args, mha_option_id id, double low, double high,
                         double *out, mha_err *err);
/* Bytes with an optional K, M, G or T (powers of 1024). */
mha_status mha_args_bytes(const mha_args *args, mha_option_id id, uint64_t *out, mha_err *err);
/* "A-B" with A <= B, or "A" alone. */
mha_status mha_args_range(const mha_args *args, mha_option_id id, size_t *first, size_t *last,
                          mha_err *err);

/* Digits only, no sign, no space; false when it is not a number or does not fit. *end is the first
 * byte behind the digits. */
bool mha_parse_uint(const char *s, uint64_t *out, const char **end);

#endif
