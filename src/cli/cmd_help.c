/* cmd_help.c: the help command, and the layout of all help texts. The texts themselves are in
 * options.c, main.c and topics.c. */
#include "base/fail.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/nearest.h"

#include <string.h>

#define LINE_WIDTH  80
#define HELP_COLUMN 26

void mha_help_wrap(FILE *out, const char *text, size_t indent, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > indent && column + 1 + word > LINE_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, word, out);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

size_t mha_help_option_name(char *out, size_t size, const mha_option *o)
{
    int n = snprintf(out, size, "%s%s%s", o->name, o->argument ? " " : "",
                     o->argument ? o->argument : "");
    return n > 0 ? (size_t)n : 0;
}

static void option_print(FILE *out, const mha_option *o)
{
    char name[64], text[256];
    size_t n = mha_help_option_name(name, sizeof name, o);
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->fallback ? " (" : "",
             o->fallback ? o->fallback : "", o->fallback ? ")" : "");
    fprintf(out, "  %s", name);
    if (n + 4 > HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", (int)(HELP_COLUMN - n - 2), "");
    mha_help_wrap(out, text, HELP_COLUMN, HELP_COLUMN);
}

void mha_help_command(FILE *out, const mha_command *command)
{
    fprintf(out, "usage: mha-inspect %s %s\n\n", command->name, command->usage);
    mha_help_wrap(out, command->help, 0, 0);
    for (mha_option_group g = 0; g < MHA_GROUP_COUNT; g++) {
        bool titled = false;
        for (size_t i = 0; i < MHA_OPT_COUNT; i++) {
            const mha_option *o = &mha_options[i];
            if (o->group != g || !(o->commands & 1u << command->id))
                continue;
            if (!titled)
                fprintf(out, "\n%s\n", mha_option_group_title(g));
            titled = true;
            option_print(out, o);
        }
    }
    fprintf(out, "\nExample\n  %s\n", command->example);
}

void mha_help_overview(FILE *out)
{
    fputs("usage: mha-inspect COMMAND MODEL [inputs] [options]\n\n", out);
    fputs("Shows what the attention heads of a saved Transformer do.\n", out);
    mha_help_wrap(out, mha_help_model, 0, 0);
    fputs("\nCommands\n", out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++)
        fprintf(out, "  %-13s%s\n", mha_commands[i].name, mha_commands[i].summary);
    fputs("\nTopics\n", out);
    for (size_t i = 0; i < mha_topic_count; i++)
        fprintf(out, "  %-13s%s\n", mha_topics[i].name, mha_topics[i].summary);
    fputs("\n'mha-inspect help COMMAND' lists the command's options and gives an example.\n", out);
}

static mha_status topic_print(const char *name, mha_err *err)
{
    mha_nearest nearest = {.word = name};
    for (size_t i = 0; i < mha_topic_count; i++) {
        if (strcmp(mha_topics[i].name, name) == 0) {
            fputs(mha_topics[i].text, stdout);
            return MHA_OK;
        }
        mha_nearest_try(&nearest, mha_topics[i].name);
    }
    for (size_t i = 0; i < MHA_CMD_COUNT; i++)
        mha_nearest_try(&nearest, mha_commands[i].name);
    return mha_fail(err, MHA_ERR_ARG, "no help on '%s'; the nearest is '%s'", name, nearest.best);
}

mha_status mha_cmd_help(mha_cli *cli, mha_err *err)
{
    const char *name = cli->args.operand;
    if (!name) {
        mha_help_overview(stdout);
        return MHA_OK;
    }
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        if (strcmp(mha_commands[i].name, name) == 0) {
            mha_help_command(stdout, &mha_commands[i]);
            return MHA_OK;
        }
    }
    if (strcmp(name, "man") == 0)
        mha_manual_print(stdout);
    else if (strcmp(name, "completion") == 0)
        mha_completion_print(stdout);
    else
        return topic_print(name, err);
    return MHA_OK;
}
