/* help.h: what the program says about itself, all of it from the option table. */
#ifndef MHA_CLI_HELP_H
#define MHA_CLI_HELP_H

#include "cli/options.h"

#include <stdio.h>

/* Prints text in lines of at most 80 columns, each but the first indented by `indent` spaces;
 * `column` is where the first line stands already. Ends with a newline. */
void mha_help_wrap(FILE *out, const char *text, size_t indent, size_t column);
/* "--layers LIST", as help and manual show it. Returns its length. */
size_t mha_help_option_name(char *out, size_t size, const mha_option *o);

extern const char mha_help_model[]; /* what MODEL is */
void mha_help_overview(FILE *out);
void mha_help_command(FILE *out, const mha_command *command);

typedef struct mha_topic {
    const char *name, *summary, *text;
} mha_topic;
extern const mha_topic mha_topics[];
extern const size_t mha_topic_count;

/* The manual page in man(7) macros, and the completion for bash. */
void mha_manual_print(FILE *out);
void mha_completion_print(FILE *out);

#endif
