/* output.c: chooses where results go and writes tables there; what a result says about the model
 * and the input it came from. */
#include "cli/output.h"

#include "base/fail.h"
#include "base/mem.h"
#include "mha/mha.h"

#include <errno.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* "json csv text" of a set of formats. */
static void formats_list(char *out, size_t size, unsigned allowed)
{
    size_t used = 0;
    *out = '\0';
    for (int f = 1; f < MHA_FORMAT_COUNT; f++) {
        const char *name = mha_format_name((mha_format)f);
        size_t n = strlen(name);
        if (!(allowed & MHA_FORMAT_BIT(f)) || used + n + 2 > size)
            continue;
        if (used)
            out[used++] = ' ';
        memcpy(out + used, name, n + 1);
        used += n;
    }
}

static mha_status format_choose(mha_output *out, const mha_cli *cli, unsigned allowed,
                                mha_format fallback, mha_err *err)
{
    const char *command = cli->args.command->name;
    const char *name = mha_args_get(&cli->args, MHA_OPT_FORMAT);
    char list[64];
    formats_list(list, sizeof list, allowed);
    if (name) {
        out->format = mha_format_named(name);
        if (out->format == MHA_FORMAT_AUTO || !(allowed & MHA_FORMAT_BIT(out->format)))
            return mha_fail(err, MHA_ERR_ARG, "--format: '%s' is not one that '%s' writes: %s",
                            name, command, list);
        return MHA_OK;
    }
    bool standard = strcmp(out->path, "-") == 0;
    out->format = standard ? fallback : mha_format_of_path(out->path);
    if (out->format == MHA_FORMAT_AUTO)
        return mha_fail(err, MHA_ERR_ARG, "%s: no format in the name; --format takes %s", out->path,
                        list);
    if (!(allowed & MHA_FORMAT_BIT(out->format)))
        return mha_fail(err, MHA_ERR_ARG, "%s: '%s' does not write %s; it writes %s", out->path,
                        command, mha_format_name(out->format), list);
    return MHA_OK;
}

mha_status mha_output_parent(mha_cli *cli, const char *path, mha_err *err)
{
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    char *parent = NULL;
    MHA_TRY(mha_strndup(&parent, n ? path : ".", n ? n : 1, err));
    bool there = stat(parent, &st) == 0;
    int reason = there ? ENOTDIR : errno;
    there = there && S_ISDIR(st.st_mode);
    mha_free(parent);
    return there ? MHA_OK : mha_cannot(cli, err, "%s: %s", path, strerror(reason));
}

/* Options of figures beside a table would do nothing. */
static mha_status figure_options_check(const mha_cli *cli, const mha_output *out, mha_err *err)
{
    for (size_t i = 0; !mha_output_is_figure(out) && i < cli->args.count; i++) {
        const mha_option *o = &mha_options[cli->args.given[i].id];
        if (o->group == MHA_GROUP_FIGURE)
            return mha_fail(err, MHA_ERR_ARG, "%s is for figures: -o FILE.png, .pdf or .svg",
                            o->name);
    }
    return MHA_OK;
}

mha_status mha_output_choose(mha_output *out, mha_cli *cli, unsigned allowed, mha_format fallback,
                             mha_err *err)
{
    const char *path = mha_args_get(&cli->args, MHA_OPT_OUTPUT);
    *out =
        (mha_output){.path = path ? path : "-", .force = mha_args_has(&cli->args, MHA_OPT_FORCE)};
    if (!path && fallback == MHA_FORMAT_AUTO && !mha_args_has(&cli->args, MHA_OPT_FORMAT))
        return mha_fail(err, MHA_ERR_ARG, "%s needs -o PATH", cli->args.command->name);
    if (path && !*path)
        return mha_fail(err, MHA_ERR_ARG, "-o: an empty name");
    struct stat st;
    bool standard = strcmp(out->path, "-") == 0;
    bool exists = !standard && stat(out->path, &st) == 0;
    out->directory = (exists && S_ISDIR(st.st_mode)) || out->path[strlen(out->path) - 1] == '/';
    if (out->directory)
        fallback = fallback == MHA_FORMAT_AUTO ? MHA_FORMAT_NPZ : fallback;
    mha_output probe = *out;
    if (out->directory)
        probe.path = "-"; /* a directory has no suffix */
    MHA_TRY(format_choose(&probe, cli, allowed, fallback, err));
    out->format = probe.format;
    MHA_TRY(figure_options_check(cli, out, err));
    if (!standard)
        MHA_TRY(mha_output_parent(cli, out->path, err));
    if (exists && S_ISREG(st.st_mode) && !out->force)
        return mha_cannot(cli, err, "%s exists; --force overwrites", out->path);
    if (standard && !(MHA_FORMATS_TABLE & MHA_FORMAT_BIT(out->format)) && isatty(STDOUT_FILENO))
        return mha_fail(err, MHA_ERR_ARG, "standard output is a terminal: name a file with -o");
    return MHA_OK;
}

bool mha_output_is_figure(const mha_output *out)
{
    return MHA_FORMATS_FIGURE & MHA_FORMAT_BIT(out->format);
}

mha_status mha_output_table(mha_cli *cli, const mha_output *out, const mha_table *t,
                            const char *bar, mha_err *err)
{
    mha_text_style style = {.bar = bar};
    if (strcmp(out->path, "-") == 0 && isatty(STDOUT_FILENO)) {
        struct winsize size = {0};
        const char *no_color = getenv("NO_COLOR");
        style.terminal = true;
        style.color = !(no_color && *no_color);
        style.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
            style.width = size.ws_col;
    }
    cli->writing = true;
    MHA_TRY(mha_table_write(t, out->path, out->format, out->force, &style, err));
    cli->writing = false;
    return MHA_OK;
}

static mha_status describe_model(mha_table *t, const mha_model_info *info, mha_err *err)
{
    mha_meta *m;
    uint32_t heads = 0, kv_heads = 0;
    for (size_t i = 0; i < info->attn_count; i++) {
        heads = info->attn[i].heads > heads ? info->attn[i].heads : heads;
        kv_heads = info->attn[i].kv_heads > kv_heads ? info->attn[i].kv_heads : kv_heads;
    }
    MHA_TRY(mha_table_section(&m, t, "model", err));
    MHA_TRY(mha_meta_text(m, "family", info->family, err));
    MHA_TRY(mha_meta_int(
        m, "layers", info->layers[MHA_ENC] + info->layers[MHA_DEC] + info->layers[MHA_GRAPH], err));
    if (info->layers[MHA_ENC] && info->layers[MHA_DEC]) {
        MHA_TRY(mha_meta_int(m, "encoder_layers", info->layers[MHA_ENC], err));
        MHA_TRY(mha_meta_int(m, "decoder_layers", info->layers[MHA_DEC], err));
    }
    MHA_TRY(mha_meta_int(m, "heads", heads, err));
    MHA_TRY(mha_meta_int(m, "kv_heads", kv_heads, err));
    MHA_TRY(mha_meta_text(m, "dtype", info->dtype, err));
    return mha_meta_text(m, "fingerprint", info->fingerprint, err);
}

static mha_status describe_ids(mha_meta *m, const char *name, const int32_t *ids, size_t n,
                               mha_err *err)
{
    mha_meta *list;
    MHA_TRY(mha_meta_list(&list, m, name, err));
    for (size_t i = 0; i < n; i++)
        MHA_TRY(mha_meta_int(list, NULL, ids[i], err));
    return MHA_OK;
}

static mha_status describe_input(mha_table *t, const mha_inputs *in, mha_err *err)
{
    mha_meta *m;
    MHA_TRY(mha_table_section(&m, t, "input", err));
    MHA_TRY(mha_meta_int(m, "documents", (int64_t)in->count, err));
    MHA_TRY(mha_meta_int(m, "tokens", (int64_t)in->tokens, err));
    MHA_TRY(mha_meta_int(m, "skipped", (int64_t)in->skipped, err));
    MHA_TRY(mha_meta_int(m, "truncated", (int64_t)in->truncated, err));
    if (in->count != 1)
        return MHA_OK;
    /* The one document as it was fed, so that the result can be checked without the text. */
    const mha_document *d = &in->documents[0];
    if (d->graph)
        return mha_meta_int(m, "edges", (int64_t)d->graph->edges, err);
    MHA_TRY(describe_ids(m, "ids", d->ids, d->n, err));
    return d->target_n ? describe_ids(m, "target_ids", d->target_ids, d->target_n, err) : MHA_OK;
}

mha_status mha_result_describe(mha_table *t, const mha_cli *cli, mha_err *err)
{
    static const mha_option_id settings[] = {MHA_OPT_LAYERS, MHA_OPT_HEADS, MHA_OPT_STACK,
                                             MHA_OPT_KIND,   MHA_OPT_WORDS, MHA_OPT_NO_SPECIAL};
    mha_meta *m;
    MHA_TRY(mha_table_section(&m, t, "tool", err));
    MHA_TRY(mha_meta_text(m, "name", "mha-inspect", err));
    MHA_TRY(mha_meta_text(m, "version", MHA_VERSION, err));
    MHA_TRY(describe_model(t, cli->info, err));
    if (cli->args.command->id != MHA_CMD_INFO)
        MHA_TRY(describe_input(t, &cli->inputs, err));
    MHA_TRY(mha_table_section(&m, t, "settings", err));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (!mha_args_has(&cli->args, settings[i]))
            continue;
        const char *value = mha_args_get(&cli->args, settings[i]);
        const char *name = mha_options[settings[i]].name + 2;
        MHA_TRY(value ? mha_meta_text(m, name, value, err) : mha_meta_bool(m, name, true, err));
    }
    return MHA_OK;
}
