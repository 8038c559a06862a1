/* generate.c: writes on: greedy, or drawn with a seed. One document after the other, each with its
 * own stream of random numbers, so that a document's text does not depend on the others. */
#include "cli/answers.h"

#include "base/fail.h"
#include "base/mem.h"
#include "mha/analysis.h"

enum { DOCUMENT, IDS, TEXT, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"ids", "", "the new tokens", MHA_COLUMN_INTS},
    {"text", "", "what they spell, without special tokens", MHA_COLUMN_TEXT},
};

typedef struct generator {
    mha_cli *cli;
    uint64_t length; /* new tokens at most */
    bool sample;
    mha_sampling sampling;
    int32_t end;  /* ends a text; −1: nothing does */
    int64_t *ids; /* [length] */
    size_t n;
    double done, total; /* tokens, for the bar */
} generator;

static mha_status generator_open(generator *g, mha_cli *cli, mha_err *err)
{
    const mha_args *args = &cli->args;
    uint64_t top = 0;
    *g = (generator){.cli = cli, .sampling = {.temperature = 1}, .end = cli->info->eos};
    g->sample = mha_args_has(args, MHA_OPT_SAMPLE);
    MHA_TRY(mha_args_uint(args, MHA_OPT_GENERATE, 1, 1u << 24, &g->length, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_TEMPERATURE, 1e-3, 1e3, &g->sampling.temperature, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_TOP, 1, INT32_MAX, &top, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_SEED, 0, UINT64_MAX, &g->sampling.seed, err));
    g->sampling.top_k = top;
    if (!g->sample && (mha_args_has(args, MHA_OPT_TEMPERATURE) || top))
        return mha_fail(err, MHA_ERR_ARG,
                        "--temperature and --top change what --generate draws: they need --sample");
    if (g->end < 0 && cli->tokenizer)
        g->end = mha_tokenizer_role(cli->tokenizer, MHA_TOKEN_EOS);
    g->total = (double)g->length * (double)cli->inputs.count;
    return mha_alloc((void **)&g->ids, g->length, sizeof *g->ids, err);
}

static int32_t greedy(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

/* sampler: NULL is greedy. */
static mha_status tokens_write(generator *g, mha_decoder *decoder, mha_sampler *sampler,
                               size_t length, mha_err *err)
{
    for (g->n = 0; g->n < length;) {
        const float *logits = mha_decoder_logits(decoder);
        int32_t id =
            sampler ? mha_sampler_next(sampler, logits) : greedy(logits, g->cli->info->vocab);
        g->ids[g->n++] = id;
        if (mha_progress_step(&g->cli->bar, g->done + (double)g->n, g->total) != 0)
            return mha_fail(err, MHA_ERR_CANCELLED, "interrupted");
        if (id == g->end)
            break;
        if (g->n < length)
            MHA_TRY(mha_decoder_step(decoder, id, err));
    }
    return MHA_OK;
}

/* How many new tokens the position table leaves room for. */
static size_t length_allowed(const generator *g, size_t fed)
{
    size_t positions = g->cli->info->max_positions;
    size_t length = g->length;
    if (positions && positions - fed < length)
        length = positions - fed;
    if (length < g->length)
        mha_note(g->cli, "--generate stops after %zu tokens, at the end of the position table",
                 length);
    return length;
}

static mha_status document_write(generator *g, size_t i, mha_err *err)
{
    int32_t start;
    mha_document d = mha_inputs_complete(g->cli, i, &start);
    size_t fed = d.target_n ? d.target_n : d.n;
    size_t length = length_allowed(g, fed);
    mha_sampler *sampler = NULL;
    mha_decoder *decoder = NULL;
    mha_status status = MHA_OK;
    g->sampling.stream = g->cli->inputs.items[i].index;
    if (g->sample)
        status = mha_sampler_new(&sampler, g->cli->info->vocab, &g->sampling, err);
    if (status == MHA_OK)
        status = mha_decoder_new(&decoder, g->cli->engine, &d, fed + length, err);
    if (status == MHA_OK)
        status = tokens_write(g, decoder, sampler, length, err);
    mha_decoder_free(decoder);
    mha_sampler_free(sampler);
    g->done += (double)g->length;
    return status;
}

static mha_status text_set(const generator *g, mha_table *t, mha_err *err)
{
    int32_t *ids;
    char *text = NULL;
    if (!g->cli->tokenizer)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&ids, g->n, sizeof *ids, err));
    for (size_t k = 0; k < g->n; k++)
        ids[k] = (int32_t)g->ids[k];
    mha_status status = mha_tokenizer_decode(g->cli->tokenizer, ids, g->n, &text, err);
    if (status == MHA_OK)
        status = mha_table_set_text(t, TEXT, text, err);
    mha_free(text);
    mha_free(ids);
    return status;
}

static mha_status row_add(const generator *g, mha_table *t, size_t i, mha_err *err)
{
    MHA_TRY(mha_table_add_row(t, err));
    mha_table_set_int(t, DOCUMENT, (int64_t)g->cli->inputs.items[i].index);
    MHA_TRY(mha_table_set_ints(t, IDS, g->ids, g->n, err));
    return text_set(g, t, err);
}

static mha_status describe(const generator *g, mha_table *t, mha_err *err)
{
    mha_meta *m;
    MHA_TRY(mha_result_describe(t, g->cli, err));
    MHA_TRY(mha_table_section(&m, t, "settings", err));
    MHA_TRY(mha_meta_int(m, "generate", (int64_t)g->length, err));
    MHA_TRY(mha_meta_bool(m, "sample", g->sample, err));
    if (!g->sample)
        return MHA_OK;
    MHA_TRY(mha_meta_real(m, "temperature", g->sampling.temperature, err));
    if (g->sampling.top_k)
        MHA_TRY(mha_meta_int(m, "top", (int64_t)g->sampling.top_k, err));
    return mha_meta_int(m, "seed", (int64_t)g->sampling.seed, err);
}

mha_status mha_answer_generate(mha_table **t, mha_cli *cli, mha_err *err)
{
    generator g;
    mha_status status = generator_open(&g, cli, err);
    if (status == MHA_OK)
        status = mha_table_new(t, "run", columns, COLUMNS, err);
    if (status == MHA_OK)
        status = describe(&g, *t, err);
    mha_progress_start(&cli->bar, "generate");
    for (size_t i = 0; i < cli->inputs.count && status == MHA_OK; i++) {
        status = document_write(&g, i, err);
        if (status == MHA_OK)
            status = row_add(&g, *t, i, err);
    }
    mha_progress_end(&cli->bar);
    mha_free(g.ids);
    return status;
}
