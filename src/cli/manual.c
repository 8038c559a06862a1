/* manual.c: the option table as a manual page and as a completion for bash. Both are committed as
 * files for packagers; a test compares them with what this prints. */
#include "cli/help.h"

#include <string.h>

/* Text for man(7): backslashes, hyphens that are to be copied, and dots that start a line. */
static void roff_print(FILE *out, const char *text)
{
    bool line_start = true;
    for (const char *c = text; *c; c++) {
        if (line_start && (*c == '.' || *c == '\''))
            fputs("\\&", out);
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-')
            fputs("\\-", out);
        else
            fputc(*c, out);
        line_start = *c == '\n';
    }
}

static void roff_option(FILE *out, const mha_option *o)
{
    fputs(".TP\n\\fB", out);
    roff_print(out, o->name);
    fputs("\\fR", out);
    if (o->argument) {
        fputs(" \\fI", out);
        roff_print(out, o->argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    roff_print(out, o->help);
    if (o->fallback) {
        fputs(" (default: ", out);
        roff_print(out, o->fallback);
        fputc(')', out);
    }
    fputs(".\n", out);
    fputs("Commands:", out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++)
        if (o->commands & 1u << i)
            fprintf(out, " %s", mha_commands[i].name);
    fputs(".\n", out);
}

void mha_manual_print(FILE *out)
{
    fputs(".TH MHA\\-INSPECT 1\n"
          ".SH NAME\n"
          "mha\\-inspect \\- shows what the attention heads of a saved Transformer do\n"
          ".SH SYNOPSIS\n"
          ".B mha\\-inspect\n"
          ".I COMMAND MODEL\n"
          "[inputs] [options]\n"
          ".SH DESCRIPTION\n",
          out);
    roff_print(out, mha_help_model);
    fputs("\n.SH COMMANDS\n", out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        const mha_command *c = &mha_commands[i];
        fprintf(out, ".TP\n\\fB%s\\fR %s\n", c->name, c->usage);
        roff_print(out, c->help);
        fputc('\n', out);
    }
    for (mha_option_group g = 0; g < MHA_GROUP_COUNT; g++) {
        const char *title = mha_option_group_title(g);
        fprintf(out, ".SH %s\n", title);
        for (size_t i = 0; i < MHA_OPT_COUNT; i++)
            if (mha_options[i].group == g)
                roff_option(out, &mha_options[i]);
    }
    for (size_t i = 0; i < mha_topic_count; i++) {
        fputs(".SH ", out);
        roff_print(out, mha_topics[i].summary);
        fputs("\n.nf\n", out);
        roff_print(out, mha_topics[i].text);
        fputs(".fi\n", out);
    }
    fputs(".SH EXAMPLES\n.nf\n", out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        roff_print(out, mha_commands[i].example);
        fputc('\n', out);
    }
    fputs(".fi\n", out);
}

static void words_print(FILE *out, const char *choices)
{
    for (const char *c = choices; *c; c++)
        fputc(*c == '|' ? ' ' : *c, out);
}

static bool option_is_path(const mha_option *o)
{
    return o->argument && (strcmp(o->argument, "F") == 0 || strcmp(o->argument, "PATH") == 0) &&
           o->id != MHA_OPT_FORMAT;
}

static void completion_values(FILE *out)
{
    fputs("    case $before in\n", out);
    for (size_t i = 0; i < MHA_OPT_COUNT; i++) {
        const mha_option *o = &mha_options[i];
        if (option_is_path(o)) {
            fprintf(out, "    %s) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", o->name);
        } else if (o->argument && strchr(o->argument, '|')) {
            fprintf(out, "    %s) COMPREPLY=($(compgen -W \"", o->name);
            words_print(out, o->argument);
            fputs("\" -- \"$word\")); return ;;\n", out);
        } else if (o->argument) {
            fprintf(out, "    %s) return ;;\n", o->name);
        }
    }
    fputs("    esac\n", out);
}

void mha_completion_print(FILE *out)
{
    fputs("# Completion of mha-inspect for bash.\n"
          "_mha_inspect()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++)
        fprintf(out, "%s%s", i ? " " : "", mha_commands[i].name);
    fputs("\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n",
          out);
    completion_values(out);
    fputs("    case ${COMP_WORDS[1]} in\n", out);
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        fprintf(out, "    %s) options=\"", mha_commands[i].name);
        bool first = true;
        for (size_t k = 0; k < MHA_OPT_COUNT; k++) {
            if (!(mha_options[k].commands & 1u << i))
                continue;
            fprintf(out, "%s%s", first ? "" : " ", mha_options[k].name);
            first = false;
        }
        fputs("\" ;;\n", out);
    }
    fputs("    *) return ;;\n"
          "    esac\n"
          "    case $word in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
          "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -o filenames -F _mha_inspect mha-inspect\n",
          out);
}
