/* cmd_tokens.c: the tokens that every other command feeds, one a row. */
#include "base/fail.h"
#include "cli/output.h"

#include <stdio.h>

enum { DOCUMENT, ID, PIECE, START, END, WORD, SPECIAL, STACK, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"id", "", "what is fed", MHA_COLUMN_INT},
    {"piece", "", "as the vocabulary spells it", MHA_COLUMN_TEXT},
    {"start", "bytes", "first byte in its segment of the text", MHA_COLUMN_INT},
    {"end", "bytes", "behind its last byte", MHA_COLUMN_INT},
    {"word", "", "word of its segment, from 0", MHA_COLUMN_INT},
    {"special", "", "1: a special token", MHA_COLUMN_INT},
    {"stack", "", "which stack of layers reads it", MHA_COLUMN_TEXT},
};

static mha_status tokens_add(mha_table *t, const mha_cli *cli, const mha_input *in, bool target,
                             mha_err *err)
{
    const mha_tokens *k = target ? &in->target : &in->source;
    bool text = target ? in->target_text : in->from_text;
    for (size_t i = 0; i < k->n; i++) {
        MHA_TRY(mha_table_add_row(t, err));
        mha_table_set_int(t, DOCUMENT, (int64_t)in->index);
        mha_table_set_int(t, ID, k->id[i]);
        if (cli->tokenizer && (target || !in->features))
            MHA_TRY(
                mha_table_set_text(t, PIECE, mha_tokenizer_piece(cli->tokenizer, k->id[i]), err));
        if (text) {
            mha_table_set_int(t, START, k->start[i]);
            mha_table_set_int(t, END, k->end[i]);
        }
        if (text && k->word[i] >= 0)
            mha_table_set_int(t, WORD, k->word[i]);
        if (in->has_special)
            mha_table_set_int(t, SPECIAL, k->special[i]);
        if (mha_table_columns(t) > STACK)
            MHA_TRY(mha_table_set_text(t, STACK, mha_stack_name(target ? MHA_DEC : MHA_ENC), err));
    }
    return MHA_OK;
}

static mha_status tokens_fill(mha_table *t, const mha_cli *cli, mha_err *err)
{
    MHA_TRY(mha_result_describe(t, cli, err));
    for (size_t i = 0; i < cli->inputs.count; i++) {
        const mha_input *in = &cli->inputs.items[i];
        MHA_TRY(tokens_add(t, cli, in, false, err));
        if (in->has_target)
            MHA_TRY(tokens_add(t, cli, in, true, err));
    }
    return MHA_OK;
}

mha_status mha_cmd_tokens(mha_cli *cli, mha_err *err)
{
    mha_output out;
    MHA_TRY(mha_output_choose(&out, cli, MHA_FORMATS_TABLE, MHA_FORMAT_TEXT, err));
    MHA_TRY(mha_open_inputs(cli, err));
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN)) {
        puts("tokens reads the input and runs nothing");
        return MHA_OK;
    }
    bool stacks = cli->info->layers[MHA_ENC] && cli->info->layers[MHA_DEC];
    mha_table *t = NULL;
    MHA_TRY(mha_table_new(&t, "tokens", columns, stacks ? COLUMNS : STACK, err));
    mha_status status = tokens_fill(t, cli, err);
    if (status == MHA_OK)
        status = mha_output_table(cli, &out, t, NULL, err);
    mha_table_free(t);
    return status;
}
