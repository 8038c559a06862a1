/* session.c: opens what a command works with: model, tokenizer, documents, engine; runs it behind
 * the progress bar. The order is fixed, so that errors come in the same order everywhere. */
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/nearest.h"
#include "cli/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A cautious guess of what one thread does, for the estimate of --dry-run only. */
#define MULTIPLY_ADDS_PER_SECOND 1.5e10

static const char *const limit_names[] = {"tensors", "header", "file"};
#define LIMIT_COUNT (sizeof limit_names / sizeof *limit_names)

#define FAMILY_MAX (1 << 20) /* bytes; the longest of ours has 8,000 */

static mha_status limit_split(const char *given, size_t *name_n, uint64_t *value, mha_err *err)
{
    const char *equals = strchr(given, '='), *end;
    if (!equals || !mha_parse_uint(equals + 1, value, &end) || *end || !*value)
        return mha_fail(err, MHA_ERR_ARG, "--limit: '%s' is not NAME=V with a whole number", given);
    *name_n = (size_t)(equals - given);
    return MHA_OK;
}

static mha_status limits_check(const mha_cli *cli, mha_err *err)
{
    for (size_t i = 0; i < cli->args.count; i++) {
        const mha_given *g = &cli->args.given[i];
        size_t n;
        uint64_t value;
        if (g->id != MHA_OPT_LIMIT)
            continue;
        MHA_TRY(limit_split(g->value, &n, &value, err));
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), g->value);
        mha_nearest nearest = {.word = name};
        for (size_t k = 0; k < LIMIT_COUNT; k++)
            mha_nearest_try(&nearest, limit_names[k]);
        if (nearest.distance)
            return mha_fail(err, MHA_ERR_ARG, "--limit: no limit '%s'; the nearest is '%s'", name,
                            nearest.best);
    }
    return MHA_OK;
}

mha_status mha_limit_get(const mha_cli *cli, const char *name, uint64_t *out, mha_err *err)
{
    MHA_TRY(limits_check(cli, err));
    for (size_t i = 0; i < cli->args.count; i++) {
        const mha_given *g = &cli->args.given[i];
        size_t n;
        uint64_t value;
        if (g->id != MHA_OPT_LIMIT)
            continue;
        MHA_TRY(limit_split(g->value, &n, &value, err));
        if (strlen(name) == n && strncmp(name, g->value, n) == 0)
            *out = value;
    }
    return MHA_OK;
}

/* *out = the text of --family's file, NULL without one. */
static mha_status family_read(char **out, const mha_cli *cli, mha_err *err)
{
    const char *path = mha_args_get(&cli->args, MHA_OPT_FAMILY);
    mha_filemap file;
    *out = NULL;
    if (!path)
        return MHA_OK;
    MHA_TRY(mha_filemap_open(&file, path, err));
    mha_status status = MHA_OK;
    if (file.size == 0 || file.size > FAMILY_MAX)
        status = mha_fail(err, MHA_ERR_FORMAT, "%s: %zu bytes; a family's description has 1 to %d",
                          path, file.size, FAMILY_MAX);
    else if (memchr(file.data, 0, file.size))
        status = mha_fail(err, MHA_ERR_FORMAT, "%s: not text: it holds a NUL", path);
    if (status == MHA_OK)
        status = mha_strndup(out, (const char *)file.data, file.size, err);
    if (status == MHA_OK)
        status = mha_filemap_check(&file, err);
    mha_filemap_close(&file);
    return status;
}

static mha_status model_open(mha_cli *cli, mha_model_options *options, mha_err *err)
{
    char *family = NULL;
    mha_status status = family_read(&family, cli, err);
    options->family = family;
    options->family_name = mha_args_get(&cli->args, MHA_OPT_FAMILY);
    if (status == MHA_OK)
        status = mha_model_open(&cli->model, cli->model_path, options, err);
    mha_free(family);
    return status;
}

mha_status mha_open_model(mha_cli *cli, mha_err *err)
{
    mha_model_options options = {0};
    MHA_TRY(mha_limit_get(cli, "tensors", &options.max_tensors, err));
    MHA_TRY(mha_limit_get(cli, "header", &options.max_header, err));
    MHA_TRY(mha_sample_resolve(&cli->model_path, cli->args.operand, err));
    MHA_TRY(model_open(cli, &options, err));
    cli->info = mha_model_info_get(cli->model);
    /* Without a tokenizer that is understood the model still runs on ids. */
    mha_err unsupported;
    mha_status status = mha_tokenizer_open(&cli->tokenizer, cli->model_path, &unsupported);
    if (status == MHA_ERR_UNSUPPORTED)
        return MHA_OK;
    return status == MHA_OK ? MHA_OK : mha_fail(err, status, "%s", unsupported.message);
}

mha_status mha_need_tokenizer(mha_cli *cli, mha_err *err)
{
    if (cli->tokenizer) {
        const char *note = cli->noted ? NULL : mha_tokenizer_note(cli->tokenizer);
        cli->noted = true;
        if (note)
            mha_note(cli, "%s", note);
        return MHA_OK;
    }
    /* Opened again for its message, which names the kind. */
    MHA_TRY(mha_tokenizer_open(&cli->tokenizer, cli->model_path, err));
    if (cli->tokenizer)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s has no tokenizer; feed it with --ids",
                    cli->args.operand);
}

mha_status mha_open_engine(mha_cli *cli, mha_err *err)
{
    mha_engine_options options = {.isa = mha_args_get(&cli->args, MHA_OPT_ISA)};
    uint64_t threads = 0;
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_THREADS, 1, 1024, &threads, err));
    MHA_TRY(mha_args_bytes(&cli->args, MHA_OPT_MEMORY, &options.memory, err));
    options.threads = threads;
    return mha_engine_new(&cli->engine, cli->model, &options, err);
}

mha_status mha_open_inputs(mha_cli *cli, mha_err *err)
{
    if (mha_args_has(&cli->args, MHA_OPT_MAPS))
        return mha_dumped_open(cli, err);
    MHA_TRY(mha_open_model(cli, err));
    MHA_TRY(mha_open_engine(cli, err));
    return mha_inputs_load(cli, err);
}

void mha_note_fed(const mha_cli *cli)
{
    const mha_inputs *in = &cli->inputs;
    char line[512];
    size_t used = 0;
    if (cli->maps || in->given != 1 || (!cli->verbose && !isatty(STDERR_FILENO)))
        return;
    const mha_document *d = &in->documents[0];
    if (d->graph) {
        mha_note(cli, "fed a graph of %zu nodes and %zu edges", d->n, d->graph->edges);
        return;
    }
    if (d->features) {
        const mha_signal_info *s = &cli->info->signal;
        mha_note(cli, "fed %" PRIu32 " × %" PRIu32 " × %" PRIu32 " numbers as %" PRIu32 " rows",
                 s->channels, s->height, s->width, s->rows);
        return;
    }
    for (size_t i = 0; i < d->n && used < sizeof line; i++) {
        const char *piece = cli->tokenizer ? mha_tokenizer_piece(cli->tokenizer, d->ids[i]) : NULL;
        int n = piece ? snprintf(line + used, sizeof line - used, " %s", piece)
                      : snprintf(line + used, sizeof line - used, " %" PRId32, d->ids[i]);
        if (n < 0 || used + (size_t)n >= sizeof line - sizeof " …") {
            memcpy(line + used, " …", sizeof " …");
            break;
        }
        used += (size_t)n;
    }
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?'; /* a vocabulary must not reach the terminal's control codes */
    mha_note(cli, "fed %zu tokens:%s", d->n, line);
}

static mha_status note_plan(const mha_cli *cli, const mha_document *docs, size_t count,
                            const mha_probe *const *probes, size_t probe_count, mha_err *err)
{
    mha_plan_info plan;
    MHA_TRY(mha_engine_plan(cli->engine, docs, count, probes, probe_count, &plan, err));
    mha_note(cli, "%zu documents, %.3e multiply-adds, %.1f MiB beside the weights, %zu threads, %s",
             count, (double)plan.multiply_adds, (double)plan.bytes / (1 << 20),
             mha_engine_threads(cli->engine), mha_engine_isa(cli->engine));
    return MHA_OK;
}

mha_status mha_run_documents(mha_cli *cli, const mha_document *docs, size_t count,
                             const mha_probe *const *probes, size_t probe_count, mha_err *err)
{
    if (cli->maps)
        return mha_maps_run(cli->maps, probes, probe_count, err);
    if (cli->verbose)
        MHA_TRY(note_plan(cli, docs, count, probes, probe_count, err));
    mha_progress_start(&cli->bar, cli->args.command->name);
    mha_status status = mha_engine_run(cli->engine, docs, count, probes, probe_count,
                                       mha_progress_step, &cli->bar, err);
    mha_progress_end(&cli->bar);
    return status;
}

static void bytes_print(const char *name, uint64_t bytes)
{
    printf("%-16s%" PRIu64 " bytes (%.1f MiB)\n", name, bytes, (double)bytes / (1 << 20));
}

mha_status mha_print_plan(mha_cli *cli, const mha_probe *const *probes, size_t probe_count,
                          uint64_t extra, mha_err *err)
{
    const mha_inputs *in = &cli->inputs;
    mha_plan_info plan;
    if (cli->maps) {
        mha_dumped_print(cli);
        return MHA_OK;
    }
    MHA_TRY(
        mha_engine_plan(cli->engine, in->documents, in->count, probes, probe_count, &plan, err));
    printf("%-16s%zu\n", "documents", in->count);
    printf("%-16s%zu\n", "tokens", in->tokens);
    printf("%-16s%zu\n", "batches", plan.batches);
    for (int i = 0; i < MHA_STACK_COUNT; i++)
        if (cli->info->layers[i])
            printf("%-16s%" PRIu32 " of %" PRIu32 " %s\n", i ? "" : "layers", plan.layers[i],
                   cli->info->layers[i], mha_stack_name((mha_stack_id)i));
    printf("%-16s%.3e\n", "multiply-adds", (double)plan.multiply_adds);
    bytes_print("weights", cli->info->file_bytes);
    bytes_print("memory", plan.bytes + extra);
    size_t threads = mha_engine_threads(cli->engine);
    char time[32];
    mha_duration_print(time, sizeof time,
                       (double)plan.multiply_adds / MULTIPLY_ADDS_PER_SECOND / (double)threads);
    printf("%-16s%s (%zu threads at %.1e multiply-adds a second)\n", "time, roughly", time, threads,
           MULTIPLY_ADDS_PER_SECOND);
    return MHA_OK;
}

void mha_cli_release(mha_cli *cli)
{
    mha_inputs_release(&cli->inputs);
    mha_engine_free(cli->engine);
    mha_tokenizer_free(cli->tokenizer);
    if (cli->maps)
        mha_maps_close(cli->maps);
    else
        mha_model_close(cli->model);
    mha_free(cli->model_path);
    mha_args_release(&cli->args);
    *cli = (mha_cli){0};
}
