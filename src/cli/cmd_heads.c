/* cmd_heads.c: descriptors of every head, as a table or as a chart of one of its columns. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/headtable.h"

#include <stdio.h>
#include <string.h>

static mha_status options_make(mha_headtable *h, mha_heads_options *o, mha_err *err)
{
    const mha_args *args = &h->cli->args;
    uint64_t resamples = 2000;
    int special = mha_args_choice(args, MHA_OPT_SPECIAL);
    *o = (mha_heads_options){.choice = mha_selection_choice(&h->selection), .confidence = 0.95};
    o->special = special < 0 ? MHA_SPECIAL_KEEP : (mha_special)special;
    MHA_TRY(mha_args_uint(args, MHA_OPT_BOOTSTRAP, 0, 1u << 20, &resamples, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_CI, 0.01, 0.9999, &o->confidence, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_SEED, 0, UINT64_MAX, &o->seed, err));
    /* Intervals are about documents: one document has none. */
    bool intervals = h->cli->inputs.count > 1 && !mha_args_has(args, MHA_OPT_PER_DOCUMENT) &&
                     !mha_args_has(args, MHA_OPT_BY_LAYER);
    o->resamples = intervals ? resamples : 0;
    h->intervals = o->resamples > 0;
    return MHA_OK;
}

static mha_status measure(mha_headtable *h, mha_err *err)
{
    mha_cli *cli = h->cli;
    const mha_inputs *in = &cli->inputs;
    mha_heads_options options;
    MHA_TRY(options_make(h, &options, err));
    if (mha_args_has(&cli->args, MHA_OPT_WORDS))
        MHA_TRY(mha_inputs_words(&h->words, cli, err));
    MHA_TRY(mha_heads_new(&h->heads, cli->model, &options, err));
    MHA_TRY(mha_heads_begin(h->heads, in->documents, h->words, in->count, 0, err));
    const mha_probe *probes[] = {mha_heads_probe(h->heads)};
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN))
        return mha_print_plan(cli, probes, 1, 0, err);
    mha_note_fed(cli);
    return mha_run_documents(cli, in->documents, in->count, probes, 1, err);
}

static mha_status result_write(mha_headtable *h, const mha_output *out,
                               const mha_chart_options *chart, mha_err *err)
{
    MHA_TRY(mha_headtable_fill(h, err));
    MHA_TRY(mha_headtable_arrange(h, err));
    if (mha_output_is_figure(out))
        return mha_headtable_draw(h, out, chart, err);
    return mha_output_table(h->cli, out, h->table, h->column, err);
}

mha_status mha_cmd_heads(mha_cli *cli, mha_err *err)
{
    mha_headtable h = {.cli = cli};
    mha_output out;
    mha_chart_options chart = {0};
    MHA_TRY(
        mha_output_choose(&out, cli, MHA_FORMATS_TABLE | MHA_FORMATS_FIGURE, MHA_FORMAT_TEXT, err));
    if (mha_output_is_figure(&out))
        MHA_TRY(mha_figure_options(&chart, cli, &out, err));
    if (mha_args_has(&cli->args, MHA_OPT_BY_LAYER) &&
        mha_args_has(&cli->args, MHA_OPT_PER_DOCUMENT))
        return mha_fail(err, MHA_ERR_ARG, "--by-layer and --per-document exclude each other");
    MHA_TRY(mha_headtable_sorting(&h, err));
    MHA_TRY(mha_open_inputs(cli, err));
    mha_status status = mha_selection_make(&h.selection, cli, err);
    if (status == MHA_OK)
        status = measure(&h, err);
    if (status == MHA_OK && !mha_args_has(&cli->args, MHA_OPT_DRY_RUN))
        status = result_write(&h, &out, &chart, err);
    mha_headtable_release(&h);
    return status;
}
