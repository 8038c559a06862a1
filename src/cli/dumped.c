/* dumped.c: --maps, a file of maps in the place of a model and its input. The model it makes has no
 * weights and no engine: what runs documents asks for cli->maps first. */
#include "base/fail.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* Options that say what a model is fed, or how it runs. */
static mha_status options_check(const mha_cli *cli, mha_err *err)
{
    for (size_t i = 0; i < cli->args.count; i++) {
        const mha_option *o = &mha_options[cli->args.given[i].id];
        if ((o->group == MHA_GROUP_INPUT && o->id != MHA_OPT_MAPS) || o->id == MHA_OPT_FAMILY ||
            o->id == MHA_OPT_MEMORY)
            return mha_fail(err, MHA_ERR_ARG, "%s is for a model, and --maps stands for one",
                            o->name);
    }
    return MHA_OK;
}

mha_status mha_operand_check(const mha_args *args, mha_err *err)
{
    bool dash = args->operand && strcmp(args->operand, "-") == 0;
    if (mha_args_has(args, MHA_OPT_MAPS) == dash)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_ARG,
                    dash ? "MODEL '-' needs --maps F.npz"
                         : "--maps stands for MODEL: write it '-'");
}

mha_status mha_dumped_open(mha_cli *cli, mha_err *err)
{
    uint64_t max_bytes = 0;
    MHA_TRY(options_check(cli, err));
    MHA_TRY(mha_limit_get(cli, "file", &max_bytes, err));
    MHA_TRY(mha_maps_open(&cli->maps, mha_args_get(&cli->args, MHA_OPT_MAPS), max_bytes, err));
    cli->model = mha_maps_model(cli->maps);
    cli->info = mha_model_info_get(cli->model);
    if (cli->args.command->id == MHA_CMD_HEADS && mha_maps_unseen(cli->maps))
        mha_note(cli, "some weights are 0 in every head of a layer; their keys count as visible in "
                      "entropy_norm and in the masses on single keys");
    return mha_inputs_take(&cli->inputs, mha_maps_document(cli->maps), err);
}

void mha_dumped_print(const mha_cli *cli)
{
    printf("%-16s%zu\n", "documents", cli->inputs.count);
    printf("%-16s%zu\n", "tokens", cli->inputs.tokens);
    printf("%-16snothing: the maps are there\n", "to compute");
}
