/* cmd_importance.c: importance of every head, as a table or as a chart. */
#include "base/fail.h"
#include "cli/importancetable.h"

#include <stdio.h>
#include <unistd.h>

static mha_status views_check(const mha_importancetable *t, const mha_output *out, mha_err *err)
{
    const mha_args *args = &t->cli->args;
    if (mha_args_has(args, MHA_OPT_BY_LAYER) && mha_args_has(args, MHA_OPT_PER_DOCUMENT))
        return mha_fail(err, MHA_ERR_ARG, "--by-layer and --per-document exclude each other");
    if (!mha_output_is_figure(out))
        return MHA_OK;
    if (t->count > 1)
        return mha_fail(err, MHA_ERR_ARG, "a chart shows one method; choose it with --method");
    if (mha_args_has(args, MHA_OPT_BY_LAYER) || mha_args_has(args, MHA_OPT_PER_DOCUMENT))
        return mha_fail(err, MHA_ERR_ARG,
                        "a chart shows heads; --by-layer and --per-document are for tables");
    return MHA_OK;
}

static mha_status measure(mha_importancetable *t, const mha_output *out, mha_err *err)
{
    mha_cli *cli = t->cli;
    for (size_t i = 0; i < t->count; i++) {
        mha_importance_options options = t->scoring.options;
        options.method = t->methods[i];
        MHA_TRY(mha_partial_path(&t->partials[i], cli, out->path,
                                 mha_importance_name(t->methods[i]), err));
        options.partial = t->partials[i];
        options.resume = mha_args_has(&cli->args, MHA_OPT_RESUME);
        mha_progress_start(&cli->bar, mha_importance_name(t->methods[i]));
        mha_status status =
            mha_importance_run(&t->results[i], cli->engine, cli->model, t->scoring.input.losses,
                               &options, mha_progress_step, &cli->bar, err);
        mha_progress_end(&cli->bar);
        mha_partial_judge(cli, status, t->partials[i], err);
        MHA_TRY(status);
    }
    return MHA_OK;
}

/* A plan of one pass over the documents; of each method how many such passes there will be, and the
 * memory that it takes itself. */
static mha_status plan_print(const mha_importancetable *t, mha_err *err)
{
    const mha_probe logits = {.sites = 1u << MHA_SITE_LOGITS};
    const mha_probe *probes[] = {&logits};
    MHA_TRY(mha_print_plan(t->cli, probes, 1, 0, err));
    for (size_t i = 0; i < t->count; i++) {
        mha_importance_options options = t->scoring.options;
        options.method = t->methods[i];
        const mha_losses *losses = t->scoring.input.losses;
        uint64_t bytes;
        MHA_TRY(mha_importance_bytes(&bytes, t->cli->engine, t->cli->model, losses, &options, err));
        printf("%-16s%.0f times that, roughly, in %.1f MiB\n", mha_importance_name(t->methods[i]),
               mha_importance_passes(t->cli->model, losses, &options), (double)bytes / (1 << 20));
    }
    return MHA_OK;
}

static mha_status result_write(mha_importancetable *t, const mha_output *out,
                               const mha_chart_options *chart, mha_err *err)
{
    MHA_TRY(mha_importancetable_fill(t, err));
    if (mha_output_is_figure(out))
        return mha_importancetable_draw(t, out, chart, err);
    MHA_TRY(mha_importancetable_arrange(t, err));
    return mha_output_table(t->cli, out, t->table, t->column, err);
}

static mha_status run(mha_importancetable *t, const mha_output *out, const mha_chart_options *chart,
                      mha_err *err)
{
    MHA_TRY(mha_scoring_open(&t->scoring, t->cli, err));
    if (mha_args_has(&t->cli->args, MHA_OPT_DRY_RUN))
        return plan_print(t, err);
    mha_note_fed(t->cli);
    MHA_TRY(measure(t, out, err));
    MHA_TRY(result_write(t, out, chart, err));
    for (size_t i = 0; i < t->count; i++)
        if (t->partials[i])
            unlink(t->partials[i]); /* the result is safe */
    return MHA_OK;
}

mha_status mha_cmd_importance(mha_cli *cli, mha_err *err)
{
    mha_importancetable t = {.cli = cli};
    mha_output out;
    mha_chart_options chart = {0};
    MHA_TRY(
        mha_output_choose(&out, cli, MHA_FORMATS_TABLE | MHA_FORMATS_FIGURE, MHA_FORMAT_TEXT, err));
    if (mha_output_is_figure(&out))
        MHA_TRY(mha_figure_options(&chart, cli, &out, err));
    MHA_TRY(mha_methods_parse(t.methods, &t.count, &cli->args, err));
    MHA_TRY(mha_importancetable_sorting(&t, err));
    MHA_TRY(views_check(&t, &out, err));
    mha_status status = run(&t, &out, &chart, err);
    mha_importancetable_release(&t);
    return status;
}
