/* cmd_maps.c: arrays of any site, one file a document. Documents run in groups of a bounded number
 * of tokens, so that a corpus of maps is never in memory whole. */
#include "base/fail.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "cli/answers.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/select.h"
#include "mha/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define GROUP_TOKENS 1024

typedef struct maps {
    mha_cli *cli;
    mha_output out;
    mha_selection selection;
    mha_words *words; /* [documents], NULL: not merged */
    mha_trace_options options;
} maps;

static mha_status site_find(uint32_t *sites, const char *name, size_t n, mha_err *err)
{
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), name);
    mha_nearest nearest = {.word = word};
    for (int s = MHA_SITE_STATS + 1; s < MHA_SITE_COUNT; s++) {
        const char *site = mha_site_name((mha_site)s);
        mha_nearest_try(&nearest, site);
        if (strcmp(site, word) == 0)
            *sites |= 1u << s;
    }
    if (nearest.distance)
        return mha_fail(err, MHA_ERR_ARG, "--sites: no site '%s'; the nearest is '%s'", word,
                        nearest.best);
    return MHA_OK;
}

static mha_status sites_parse(uint32_t *sites, const mha_args *args, mha_err *err)
{
    const char *list = mha_args_get(args, MHA_OPT_SITES);
    *sites = list ? 0 : 1u << MHA_SITE_PATTERN;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        MHA_TRY(site_find(sites, list, n, err));
        list += n + (list[n] == ',');
    }
    if (!*sites)
        return mha_fail(err, MHA_ERR_ARG, "--sites: an empty list");
    if (mha_args_has(args, MHA_OPT_WORDS) && *sites & 1u << MHA_SITE_SCORES)
        return mha_fail(err, MHA_ERR_ARG, "--words merges weights; scores cannot be merged");
    return MHA_OK;
}

static mha_status logits_check(mha_cli *cli, mha_err *err)
{
    bool reads_encoder = cli->info->layers[MHA_ENC] && cli->info->layers[MHA_DEC];
    if (cli->info->head == MHA_HEAD_NONE)
        return mha_cannot(cli, err, "the model has no read-out, so it has no logits");
    if (reads_encoder && !cli->inputs.targets)
        return mha_fail(err, MHA_ERR_ARG, "logits of this model need a --target");
    return MHA_OK;
}

/* Arrays that a file of one array means: what was asked for, not what comes along. */
static bool array_asked(const mha_trace_array *a)
{
    const char *dot = strrchr(a->name, '.');
    return strcmp(a->name, "ids") != 0 && strcmp(a->name, "target_ids") != 0 &&
           !(dot && (strcmp(dot, ".heads") == 0 || strcmp(dot, ".edge_index") == 0));
}

static mha_status one_array_check(const mha_trace *t, size_t document, mha_err *err)
{
    size_t asked = 0;
    for (size_t i = 0; i < mha_trace_count(t, document); i++)
        asked += array_asked(mha_trace_get(t, document, i));
    if (asked != 1)
        return mha_fail(err, MHA_ERR_ARG,
                        "npy takes one array and these are %zu: choose one with --sites and "
                        "--layers, or write npz",
                        asked);
    return MHA_OK;
}

static mha_status arrays_write(mha_arrays *a, const mha_trace *t, size_t document, bool one,
                               mha_err *err)
{
    size_t count = mha_trace_count(t, document);
    for (size_t i = 0; i < count; i++) {
        const mha_trace_array *x = mha_trace_get(t, document, i);
        if (!one || array_asked(x))
            MHA_TRY(mha_arrays_declare(a, x->name, x->type, x->shape, x->dims, err));
    }
    for (size_t i = 0; i < count; i++) {
        const mha_trace_array *x = mha_trace_get(t, document, i);
        size_t n = 1;
        for (size_t d = 0; d < x->dims; d++)
            n *= x->shape[d];
        if (!one || array_asked(x))
            MHA_TRY(mha_arrays_write(a, x->data, n, err));
    }
    return MHA_OK;
}

/* The file of a document: PATH, or DIR/0000.npz by its absolute index. *out is owned. */
static mha_status file_name(char **out, const maps *m, size_t document, mha_err *err)
{
    const mha_input *in = &m->cli->inputs.items[document];
    if (!m->out.directory)
        return mha_strdup(out, m->out.path, err);
    size_t n = strlen(m->out.path), size = n + 64;
    MHA_TRY(mha_alloc((void **)out, size, 1, err));
    snprintf(*out, size, "%s%s%04zu.%s", m->out.path, m->out.path[n - 1] == '/' ? "" : "/",
             in->index, mha_format_name(m->out.format));
    return MHA_OK;
}

static mha_status document_write(const maps *m, const mha_trace *t, size_t first, size_t document,
                                 mha_err *err)
{
    char *path;
    mha_arrays *a;
    bool one = m->out.format == MHA_FORMAT_NPY;
    MHA_TRY(file_name(&path, m, first + document, err));
    mha_status status = mha_arrays_open(&a, path, m->out.format, m->out.force, err);
    mha_free(path);
    if (status != MHA_OK)
        return status;
    status = arrays_write(a, t, document, one, err);
    if (status == MHA_OK)
        return mha_arrays_commit(a, err);
    mha_arrays_abort(a);
    return status;
}

static mha_status trace_make(mha_trace **t, const maps *m, size_t first, size_t count, mha_err *err)
{
    mha_trace_options options = m->options;
    if (m->words)
        options.view.words = m->words + first;
    return mha_trace_new(t, m->cli->model, m->cli->inputs.documents + first, count, &options, err);
}

static mha_status group_write(maps *m, size_t first, size_t count, mha_err *err)
{
    mha_cli *cli = m->cli;
    mha_trace *t;
    MHA_TRY(trace_make(&t, m, first, count, err));
    const mha_probe *probes[] = {mha_trace_probe(t)};
    mha_status status = MHA_OK;
    if (m->out.format == MHA_FORMAT_NPY)
        for (size_t i = 0; i < count && status == MHA_OK; i++)
            status = one_array_check(t, i, err);
    if (status == MHA_OK)
        status = mha_run_documents(cli, cli->inputs.documents + first, count, probes, 1, err);
    cli->writing = status == MHA_OK;
    for (size_t i = 0; i < count && status == MHA_OK; i++)
        status = document_write(m, t, first, i, err);
    if (status == MHA_OK)
        cli->writing = false;
    mha_trace_free(t);
    return status;
}

/* How many documents from `first` on run together: at least one. */
static size_t group_count(const mha_inputs *in, size_t first)
{
    size_t tokens = 0, count = 0;
    while (first + count < in->count) {
        const mha_document *d = &in->documents[first + count];
        tokens += d->n + d->target_n;
        if (count && tokens > GROUP_TOKENS)
            break;
        count++;
    }
    return count;
}

/* Bytes of the largest group's arrays, and what the engine needs beside them. */
static mha_status dry_run(maps *m, mha_err *err)
{
    const mha_inputs *in = &m->cli->inputs;
    uint64_t most = 0;
    mha_trace *t;
    for (size_t first = 0, count; first < in->count; first += count) {
        uint64_t bytes = 0;
        count = group_count(in, first);
        MHA_TRY(trace_make(&t, m, first, count, err));
        for (size_t d = 0; d < count; d++) {
            for (size_t i = 0; i < mha_trace_count(t, d); i++) {
                const mha_trace_array *x = mha_trace_get(t, d, i);
                uint64_t n = x->type == MHA_ARRAY_F32 ? sizeof(float) : sizeof(int64_t);
                for (size_t k = 0; k < x->dims; k++)
                    n *= x->shape[k];
                bytes += n;
            }
        }
        most = bytes > most ? bytes : most;
        mha_trace_free(t);
    }
    size_t count = group_count(in, 0);
    MHA_TRY(trace_make(&t, m, 0, count, err));
    const mha_probe *probes[] = {mha_trace_probe(t)};
    mha_status status = mha_print_plan(m->cli, probes, 1, most, err);
    mha_trace_free(t);
    return status;
}

/* Whether a file stands where one is to be written, before hours go into it. */
static mha_status targets_check(const maps *m, mha_err *err)
{
    for (size_t i = 0; m->out.directory && !m->out.force && i < m->cli->inputs.count; i++) {
        char *path;
        struct stat st;
        MHA_TRY(file_name(&path, m, i, err));
        bool exists = stat(path, &st) == 0;
        mha_status status =
            exists ? mha_cannot(m->cli, err, "%s exists; --force overwrites", path) : MHA_OK;
        mha_free(path);
        if (status != MHA_OK)
            return status;
    }
    return MHA_OK;
}

static mha_status options_make(maps *m, mha_err *err)
{
    mha_cli *cli = m->cli;
    mha_trace_options *o = &m->options;
    if (o->sites & 1u << MHA_SITE_LOGITS)
        MHA_TRY(logits_check(cli, err));
    if (o->sites & ((1u << MHA_SITE_EMBED) - 1)) /* the sites before it are those of heads */
        MHA_TRY(mha_selection_make(&m->selection, cli, err));
    else
        MHA_TRY(mha_selection_make_layers(&m->selection, cli, err));
    o->choice = mha_selection_choice(&m->selection);
    MHA_TRY(mha_args_bytes(&cli->args, MHA_OPT_MEMORY, &o->limit, err));
    if (mha_args_has(&cli->args, MHA_OPT_WORDS))
        MHA_TRY(mha_inputs_words(&m->words, cli, err));
    return MHA_OK;
}

static mha_status maps_write(maps *m, mha_err *err)
{
    mha_cli *cli = m->cli;
    MHA_TRY(mha_open_inputs(cli, err));
    MHA_TRY(mha_inputs_write_on(cli, err));
    if (cli->inputs.given > 1 && !m->out.directory)
        return mha_fail(err, MHA_ERR_ARG, "%zu documents need a directory: -o DIR/",
                        cli->inputs.given);
    MHA_TRY(options_make(m, err));
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN))
        return dry_run(m, err);
    MHA_TRY(targets_check(m, err));
    if (m->out.directory) {
        cli->writing = true;
        MHA_TRY(mha_dir_make(m->out.path, err));
        cli->writing = false;
    }
    mha_note_fed(cli);
    for (size_t first = 0, count; first < cli->inputs.count; first += count) {
        count = group_count(&cli->inputs, first);
        MHA_TRY(group_write(m, first, count, err));
    }
    return MHA_OK;
}

mha_status mha_cmd_maps(mha_cli *cli, mha_err *err)
{
    maps m = {.cli = cli};
    MHA_TRY(mha_output_choose(&m.out, cli, MHA_FORMATS_ARRAY, MHA_FORMAT_AUTO, err));
    MHA_TRY(sites_parse(&m.options.sites, &cli->args, err));
    mha_status status = maps_write(&m, err);
    mha_selection_release(&m.selection);
    mha_free(m.words);
    return status;
}
