/* cmd_run.c: the model's own answer. What kind of answer, the read-out decides. */
#include "base/fail.h"
#include "cli/answers.h"

/* The sites whose cost --dry-run tells. */
static mha_status dry_run(mha_cli *cli, mha_err *err)
{
    bool head = cli->info->head != MHA_HEAD_NONE;
    mha_probe probe = {.sites = 1u << (head ? MHA_SITE_LOGITS : MHA_SITE_HIDDEN)};
    const mha_probe *probes[] = {&probe};
    int32_t start;
    for (size_t i = 0; i < cli->inputs.count; i++)
        cli->inputs.documents[i] = mha_inputs_complete(cli, i, &start);
    return mha_print_plan(cli, probes, 1, 0, err);
}

/* An encoder–decoder writes its text unless the next tokens of a given one are asked for. */
static bool writes_text(const mha_cli *cli)
{
    if (mha_args_has(&cli->args, MHA_OPT_GENERATE))
        return true;
    for (size_t i = 0; i < cli->inputs.count; i++)
        if (cli->inputs.documents[i].target_n)
            return false;
    return cli->info->head == MHA_HEAD_TARGET &&
           (!mha_args_has(&cli->args, MHA_OPT_TOP) || mha_args_has(&cli->args, MHA_OPT_SAMPLE));
}

static mha_status table_make(mha_table **t, mha_cli *cli, mha_err *err)
{
    if (writes_text(cli))
        return mha_answer_generate(t, cli, err);
    switch (cli->info->head) {
    case MHA_HEAD_MASKED:
        return mha_answer_masked(t, cli, err);
    case MHA_HEAD_CLASS:
    case MHA_HEAD_TOKEN:
        return mha_answer_class(t, cli, err);
    case MHA_HEAD_SPAN:
        return mha_answer_span_of(t, cli, err);
    default:
        return mha_answer_next(t, cli, err);
    }
}

mha_status mha_cmd_run(mha_cli *cli, mha_err *err)
{
    const mha_args *args = &cli->args;
    mha_output out;
    MHA_TRY(
        mha_output_choose(&out, cli, MHA_FORMATS_TABLE | MHA_FORMATS_ARRAY, MHA_FORMAT_TEXT, err));
    bool generate = mha_args_has(args, MHA_OPT_GENERATE);
    MHA_TRY(mha_open_inputs(cli, err));
    if (!writes_text(cli) &&
        (mha_args_has(args, MHA_OPT_SAMPLE) || mha_args_has(args, MHA_OPT_TEMPERATURE) ||
         mha_args_has(args, MHA_OPT_BEAM)))
        return mha_fail(err, MHA_ERR_ARG, "--sample, --temperature and --beam need --generate N");
    mha_head_kind head = cli->info->head;
    if (generate && head != MHA_HEAD_NEXT && head != MHA_HEAD_TARGET)
        return mha_cannot(cli, err, "the model does not generate: its read-out is %s",
                          cli->info->head_name);
    bool arrays = MHA_FORMATS_ARRAY & MHA_FORMAT_BIT(out.format);
    bool embedding = head == MHA_HEAD_NONE || head == MHA_HEAD_EMBEDDING;
    if (arrays && !embedding)
        return mha_fail(err, MHA_ERR_ARG, "only embeddings are arrays; for logits see 'maps'");
    if (mha_args_has(args, MHA_OPT_DRY_RUN))
        return dry_run(cli, err);
    if (embedding)
        return mha_answer_embedding(cli, &out, err);
    mha_table *t = NULL;
    mha_status status = table_make(&t, cli, err);
    if (status == MHA_OK)
        status = mha_output_table(cli, &out, t, NULL, err);
    mha_table_free(t);
    return status;
}
