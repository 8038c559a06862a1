/* answers.c: ranked answers: next tokens, masks and classes. What is likely the library says; here
 * it becomes rows. */
#include "cli/answers.h"

#include "base/fail.h"
#include "base/mem.h"
#include "mha/analysis.h"

#define TOP_DEFAULT 10

/* NAME is the piece of a token or the label of a class; what follows is of the token that the class
 * is for. */
enum { DOCUMENT, POSITION, RANK, ID, NAME, PROB, COLUMNS };
enum { OF_PIECE = COLUMNS, OF_WORD, OF_START, OF_END, CLASS_COLUMNS };
static const mha_column token_columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"position", "", "of the row of logits, from 0", MHA_COLUMN_INT},
    {"rank", "", "1 is the likeliest", MHA_COLUMN_INT},
    {"id", "", "of the token", MHA_COLUMN_INT},
    {"piece", "", "as the vocabulary spells it", MHA_COLUMN_TEXT},
    {"prob", "", "softmax over the vocabulary", MHA_COLUMN_REAL},
};
static const mha_column class_columns[CLASS_COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"position", "", "of the token, from 0; undefined for an answer on the whole document",
     MHA_COLUMN_INT},
    {"rank", "", "1 is the likeliest", MHA_COLUMN_INT},
    {"id", "", "of the class", MHA_COLUMN_INT},
    {"label", "", "of the class", MHA_COLUMN_TEXT},
    {"prob", "", "softmax over the classes", MHA_COLUMN_REAL},
    {"piece", "", "the token, as the vocabulary spells it", MHA_COLUMN_TEXT},
    {"word", "", "of its text, from 0", MHA_COLUMN_INT},
    {"start", "bytes", "first byte in its text", MHA_COLUMN_INT},
    {"end", "bytes", "behind its last byte", MHA_COLUMN_INT},
};

static mha_status top_get(const mha_cli *cli, size_t most, size_t *top, mha_err *err)
{
    uint64_t k = TOP_DEFAULT;
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_TOP, 1, INT32_MAX, &k, err));
    *top = k < most ? k : most;
    return MHA_OK;
}

static mha_status row_add(mha_table *t, const mha_cli *cli, const mha_answer *a, const char *name,
                          mha_err *err)
{
    MHA_TRY(mha_table_add_row(t, err));
    mha_table_set_int(t, DOCUMENT, (int64_t)cli->inputs.items[a->document].index);
    if (cli->info->head != MHA_HEAD_CLASS)
        mha_table_set_int(t, POSITION, (int64_t)a->position);
    mha_table_set_int(t, RANK, a->rank);
    mha_table_set_int(t, ID, a->id);
    mha_table_set_real(t, PROB, a->prob);
    return name ? mha_table_set_text(t, NAME, name, err) : MHA_OK;
}

static mha_status token_row(mha_table *t, const mha_cli *cli, const mha_answer *a, mha_err *err)
{
    return row_add(t, cli, a, cli->tokenizer ? mha_tokenizer_piece(cli->tokenizer, a->id) : NULL,
                   err);
}

/* A class of a document, of a node, or of a token. Nobody asks for those of the tokens that a
 * template adds. */
static mha_status class_row(mha_table *t, const mha_cli *cli, const mha_answer *a, mha_err *err)
{
    const mha_input *in = &cli->inputs.items[a->document];
    const mha_tokens *k = &in->source;
    bool of_token = mha_table_columns(t) == CLASS_COLUMNS;
    if (of_token && mha_token_added(k, a->position))
        return MHA_OK;
    MHA_TRY(row_add(t, cli, a, cli->info->labels ? cli->info->labels[a->id] : NULL, err));
    if (of_token && cli->tokenizer)
        MHA_TRY(mha_table_set_text(t, OF_PIECE,
                                   mha_tokenizer_piece(cli->tokenizer, k->id[a->position]), err));
    if (of_token && in->from_text) {
        mha_table_set_int(t, OF_WORD, k->word[a->position]);
        mha_table_set_int(t, OF_START, k->start[a->position]);
        mha_table_set_int(t, OF_END, k->end[a->position]);
    }
    return MHA_OK;
}

/* The read-out of a whole prompt is not needed for its last row, so a decoder gives it. */
static mha_status next_rows(mha_table *t, mha_cli *cli, size_t document, mha_answer *answers,
                            size_t top, mha_err *err)
{
    int32_t start;
    mha_document d = mha_inputs_complete(cli, document, &start);
    size_t fed = d.target_n ? d.target_n : d.n;
    mha_decoder *decoder;
    MHA_TRY(mha_decoder_new(&decoder, cli->engine, &d, fed, err));
    size_t n = mha_answer_top(mha_decoder_logits(decoder), cli->info->vocab, top, answers);
    mha_decoder_free(decoder);
    for (size_t i = 0; i < n; i++) {
        answers[i].document = document;
        answers[i].position = fed - 1;
        MHA_TRY(token_row(t, cli, &answers[i], err));
    }
    return MHA_OK;
}

mha_status mha_answer_next(mha_table **t, mha_cli *cli, mha_err *err)
{
    size_t top, count = cli->inputs.count;
    mha_answer *answers;
    MHA_TRY(top_get(cli, cli->info->vocab, &top, err));
    MHA_TRY(mha_table_new(t, "run", token_columns, COLUMNS, err));
    MHA_TRY(mha_result_describe(*t, cli, err));
    MHA_TRY(mha_alloc((void **)&answers, top, sizeof *answers, err));
    mha_status status = MHA_OK;
    mha_progress_start(&cli->bar, "run");
    for (size_t i = 0; i < count && status == MHA_OK; i++) {
        status = next_rows(*t, cli, i, answers, top, err);
        if (status == MHA_OK && mha_progress_step(&cli->bar, (double)i + 1, (double)count) != 0)
            status = mha_fail(err, MHA_ERR_CANCELLED, "interrupted");
    }
    mha_progress_end(&cli->bar);
    mha_free(answers);
    return status;
}

typedef mha_status row_maker(mha_table *t, const mha_cli *cli, const mha_answer *a, mha_err *err);

/* One pass over all documents; the read-out of each position that is asked about. */
static mha_status pass_rows(mha_table *t, mha_cli *cli, int32_t mask, size_t top, row_maker *make,
                            mha_err *err)
{
    const mha_inputs *in = &cli->inputs;
    mha_answers *answers;
    MHA_TRY(mha_answers_new(&answers, cli->model, in->documents, in->count, mask, top, err));
    const mha_probe *probes[] = {mha_answers_probe(answers)};
    mha_status status = mha_run_documents(cli, in->documents, in->count, probes, 1, err);
    size_t count = 0;
    const mha_answer *rows = status == MHA_OK ? mha_answers_get(answers, &count) : NULL;
    for (size_t i = 0; i < count && status == MHA_OK; i++)
        status = make(t, cli, &rows[i], err);
    mha_answers_free(answers);
    return status;
}

static bool any_mask(const mha_inputs *in, int32_t mask)
{
    for (size_t d = 0; d < in->count; d++)
        for (size_t i = 0; i < in->documents[d].n; i++)
            if (in->documents[d].ids[i] == mask)
                return true;
    return false;
}

mha_status mha_answer_masked(mha_table **t, mha_cli *cli, mha_err *err)
{
    size_t top;
    /* −1, every position, where no tokenizer says which token is the mask. */
    int32_t mask = cli->tokenizer ? mha_tokenizer_role(cli->tokenizer, MHA_TOKEN_MASK) : -1;
    if (mask >= 0 && !any_mask(&cli->inputs, mask))
        return mha_cannot(cli, err, "no mask token %s in the input: nothing to fill",
                          mha_tokenizer_piece(cli->tokenizer, mask));
    MHA_TRY(top_get(cli, cli->info->vocab, &top, err));
    MHA_TRY(mha_table_new(t, "run", token_columns, COLUMNS, err));
    MHA_TRY(mha_result_describe(*t, cli, err));
    return pass_rows(*t, cli, mask, top, token_row, err);
}

mha_status mha_answer_class(mha_table **t, mha_cli *cli, mha_err *err)
{
    size_t top;
    MHA_TRY(top_get(cli, cli->info->classes, &top, err));
    bool of_tokens = cli->info->head == MHA_HEAD_TOKEN && !cli->info->features;
    MHA_TRY(mha_table_new(t, "run", class_columns, of_tokens ? CLASS_COLUMNS : COLUMNS, err));
    MHA_TRY(mha_result_describe(*t, cli, err));
    return pass_rows(*t, cli, -1, top, class_row, err);
}
