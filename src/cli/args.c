/* args.c: reads a command line by the option table. It knows no option by name and does nothing
 * but check and store; what an option means is its command's business. */
#include "cli/args.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/nearest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mha_option *option_find(const char *name, size_t n)
{
    for (size_t i = 0; i < MHA_OPT_COUNT; i++)
        if (strncmp(mha_options[i].name, name, n) == 0 && mha_options[i].name[n] == '\0')
            return &mha_options[i];
    return NULL;
}

static mha_status option_unknown(const mha_command *command, const char *name, size_t n,
                                 mha_err *err)
{
    char word[64];
    n = n < sizeof word ? n : sizeof word - 1;
    memcpy(word, name, n);
    word[n] = '\0';
    mha_nearest nearest = {.word = word};
    for (size_t i = 0; i < MHA_OPT_COUNT; i++)
        if (mha_options[i].commands & 1u << command->id)
            mha_nearest_try(&nearest, mha_options[i].name);
    return mha_fail(err, MHA_ERR_ARG, "unknown option '%s'; the nearest of '%s' is '%s'", word,
                    command->name, nearest.best);
}

static mha_status option_misplaced(const mha_command *command, const mha_option *o, mha_err *err)
{
    char owners[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < MHA_CMD_COUNT; i++) {
        const char *name = mha_commands[i].name;
        if (!(o->commands & 1u << i) || used + strlen(name) + 3 > sizeof owners)
            continue;
        memcpy(owners + used, used ? ", " : "", used ? 3 : 1);
        used += used ? 2 : 0;
        memcpy(owners + used, name, strlen(name) + 1);
        used += strlen(name);
    }
    return mha_fail(err, MHA_ERR_ARG, "'%s' does not take '%s', which belongs to %s", command->name,
                    o->name, owners);
}

/* The position of a word in "a|b|c", or -1. */
static int choice_find(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int at = 0;
    for (const char *c = choices; *c; at++) {
        size_t length = strcspn(c, "|");
        if (length == n && memcmp(c, word, n) == 0)
            return at;
        c += length + (c[length] == '|');
    }
    return -1;
}

/* Whether a value is of the form that its name in the table stands for. Ranges are checked where
 * the value is used. */
static bool value_fits(const mha_option *o, const char *value)
{
    const char *end = value;
    uint64_t number;
    if (strcmp(o->argument, "N") == 0 || strcmp(o->argument, "K") == 0)
        return mha_parse_uint(value, &number, &end) && *end == '\0';
    if (strcmp(o->argument, "X") == 0 || strcmp(o->argument, "P") == 0 ||
        strcmp(o->argument, "MM") == 0 || strcmp(o->argument, "PT") == 0) {
        char *stop;
        return isfinite(strtod(value, &stop)) && stop != value && *stop == '\0';
    }
    return true;
}

static mha_status args_add(mha_args *args, const mha_option *o, const char *value, mha_err *err)
{
    if (value && strchr(o->argument, '|') && choice_find(o->argument, value) < 0)
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' is not one of %s", o->name, value, o->argument);
    if (value && !value_fits(o, value))
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' is not a number", o->name, value);
    args->given[args->count++] = (mha_given){o->id, value};
    return MHA_OK;
}

/* One option at argv[*i]; *i moves on to the last word that it used. */
static mha_status option_parse(mha_args *args, int argc, char **argv, int *i, mha_err *err)
{
    const char *word = argv[*i];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const mha_option *o = option_find(word, n);
    if (!o)
        return option_unknown(args->command, word, n, err);
    if (!(o->commands & 1u << args->command->id))
        return option_misplaced(args->command, o, err);
    if (!o->argument) {
        if (equals)
            return mha_fail(err, MHA_ERR_ARG, "%s takes no value", o->name);
        return args_add(args, o, NULL, err);
    }
    if (equals)
        return args_add(args, o, equals + 1, err);
    if (*i + 1 >= argc)
        return mha_fail(err, MHA_ERR_ARG, "%s needs a value: %s", o->name, o->argument);
    return args_add(args, o, argv[++*i], err);
}

mha_status mha_args_parse(mha_args *args, const mha_command *command, int argc, char **argv,
                          mha_err *err)
{
    *args = (mha_args){.command = command};
    MHA_TRY(mha_alloc((void **)&args->given, (size_t)argc, sizeof *args->given, err));
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            MHA_TRY(option_parse(args, argc, argv, &i, err));
        } else if (args->operand) {
            return mha_fail(err, MHA_ERR_ARG, "unexpected argument '%s' after '%s'", argv[i],
                            args->operand);
        } else {
            args->operand = argv[i];
        }
    }
    return MHA_OK;
}

void mha_args_release(mha_args *args)
{
    mha_free(args->given);
    *args = (mha_args){0};
}

static const mha_given *given_last(const mha_args *args, mha_option_id id)
{
    for (size_t i = args->count; i-- > 0;)
        if (args->given[i].id == id)
            return &args->given[i];
    return NULL;
}

bool mha_args_has(const mha_args *args, mha_option_id id)
{
    return given_last(args, id) != NULL;
}

const char *mha_args_get(const mha_args *args, mha_option_id id)
{
    const mha_given *g = given_last(args, id);
    return g ? g->value : NULL;
}

int mha_args_choice(const mha_args *args, mha_option_id id)
{
    const char *value = mha_args_get(args, id);
    return value ? choice_find(mha_options[id].argument, value) : -1;
}

bool mha_parse_uint(const char *s, uint64_t *out, const char **end)
{
    uint64_t value = 0;
    const char *c = s;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return false;
    *out = value;
    *end = c;
    return c != s;
}

mha_status mha_args_uint(const mha_args *args, mha_option_id id, uint64_t low, uint64_t high,
                         uint64_t *out, mha_err *err)
{
    const char *value = mha_args_get(args, id), *end;
    uint64_t number;
    if (!value)
        return MHA_OK;
    if (!mha_parse_uint(value, &number, &end) || *end || number < low || number > high)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64,
                        mha_options[id].name, value, low, high);
    *out = number;
    return MHA_OK;
}

mha_status mha_args_real(const mha_args *args, mha_option_id id, double low, double high,
                         double *out, mha_err *err)
{
    const char *value = mha_args_get(args, id);
    if (!value)
        return MHA_OK;
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !isfinite(number) || number < low || number > high)
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' is not a number from %g to %g",
                        mha_options[id].name, value, low, high);
    *out = number;
    return MHA_OK;
}

mha_status mha_args_bytes(const mha_args *args, mha_option_id id, uint64_t *out, mha_err *err)
{
    static const char units[] = "KMGT";
    const char *value = mha_args_get(args, id), *end;
    uint64_t number;
    if (!value)
        return MHA_OK;
    bool good = mha_parse_uint(value, &number, &end) && number > 0;
    if (good && *end) {
        const char *unit = strchr(units, *end);
        good = unit && end[1] == '\0';
        for (const char *u = units; good && u <= unit; u++)
            good = !__builtin_mul_overflow(number, 1024u, &number);
    }
    if (!good)
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' is not a number of bytes such as 500M or 2G",
                        mha_options[id].name, value);
    *out = number;
    return MHA_OK;
}

mha_status mha_args_range(const mha_args *args, mha_option_id id, size_t *first, size_t *last,
                          mha_err *err)
{
    const char *value = mha_args_get(args, id), *end;
    uint64_t a, b;
    if (!value)
        return MHA_OK;
    bool good = mha_parse_uint(value, &a, &end);
    b = a;
    if (good && *end == '-')
        good = mha_parse_uint(end + 1, &b, &end);
    if (!good || *end || a > b)
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' is not a range such as 10-20",
                        mha_options[id].name, value);
    *first = a;
    *last = b;
    return MHA_OK;
}
