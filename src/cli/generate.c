/* generate.c: writes on: greedy, by beam search, or drawn with a seed. One document after the
 * other, each with its own stream of random numbers, so that a document's text does not depend on
 * the others. */
#include "cli/answers.h"

#include "base/fail.h"
#include "base/mem.h"
#include "mha/analysis.h"

#include <string.h>

enum { DOCUMENT, IDS, TEXT, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"ids", "", "the new tokens", MHA_COLUMN_INTS},
    {"text", "", "what they spell, without special tokens", MHA_COLUMN_TEXT},
};

/* New tokens where neither the user nor the checkpoint says how many. */
#define LENGTH_DEFAULT 200

typedef struct generator {
    mha_cli *cli;
    uint64_t length; /* new tokens at most */
    uint64_t beams;
    bool sample;
    mha_sampling sampling;
    mha_generation rules;
    int32_t *new_ids; /* [length] */
    int32_t *prompt;  /* [1 + rules.prompt.count] */
    int64_t *ids;     /* the same, for the table */
    size_t n;
    double done, total; /* tokens, for the bar */
} generator;

static mha_status generator_open(generator *g, mha_cli *cli, mha_err *err)
{
    const mha_args *args = &cli->args;
    uint64_t top = 0;
    g->sample = mha_args_has(args, MHA_OPT_SAMPLE);
    MHA_TRY(mha_args_uint(args, MHA_OPT_BEAM, 1, 1024, &g->beams, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_TEMPERATURE, 1e-3, 1e3, &g->sampling.temperature, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_TOP, 1, INT32_MAX, &top, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_SEED, 0, UINT64_MAX, &g->sampling.seed, err));
    g->sampling.top_k = top;
    if (!g->sample && (mha_args_has(args, MHA_OPT_TEMPERATURE) || top))
        return mha_fail(err, MHA_ERR_ARG,
                        "--temperature and --top change what --generate draws: they need --sample");
    if (g->sample && g->beams > 1)
        return mha_fail(err, MHA_ERR_ARG,
                        "--beam looks for the likeliest text, --sample draws one");
    MHA_TRY(mha_model_generation(cli->model, &g->rules, err));
    if (g->rules.ends.count == 0 && cli->tokenizer)
        MHA_TRY(
            mha_generation_end(&g->rules, mha_tokenizer_role(cli->tokenizer, MHA_TOKEN_EOS), err));
    if (g->rules.ignored[0])
        mha_note(cli, "the checkpoint's settings for writing are followed without %s",
                 g->rules.ignored);
    g->length = g->rules.length > 0 ? g->rules.length : LENGTH_DEFAULT;
    MHA_TRY(mha_args_uint(args, MHA_OPT_GENERATE, 1, 1u << 24, &g->length, err));
    g->total = (double)g->length * (double)cli->inputs.count;
    MHA_TRY(mha_alloc((void **)&g->prompt, g->rules.prompt.count + 1, sizeof *g->prompt, err));
    MHA_TRY(mha_alloc((void **)&g->new_ids, g->length, sizeof *g->new_ids, err));
    return mha_alloc((void **)&g->ids, g->length, sizeof *g->ids, err);
}

static void generator_release(generator *g)
{
    mha_generation_release(&g->rules);
    mha_free(g->new_ids);
    mha_free(g->prompt);
    mha_free(g->ids);
}

/* How many new tokens the position table leaves room for. */
static size_t length_allowed(const generator *g, size_t fed)
{
    size_t positions = g->cli->info->max_positions;
    size_t length = g->length;
    if (positions && positions - fed < length)
        length = positions - fed;
    if (length < g->length && mha_args_has(&g->cli->args, MHA_OPT_GENERATE))
        mha_note(g->cli, "--generate stops after %zu tokens, at the end of the position table",
                 length);
    return length;
}

static int step(void *context, double done, double total)
{
    generator *g = context;
    (void)total;
    return mha_progress_step(&g->cli->bar, g->done + done, g->total);
}

/* Without a target of its own a document starts from the decoder's start token and the ids that the
 * checkpoint puts behind it. */
static void prompt_complete(generator *g, mha_document *d, bool target_given)
{
    const mha_ids *more = &g->rules.prompt;
    if (target_given || !more->count || d->target_n != 1)
        return;
    g->prompt[0] = d->target_ids[0];
    memcpy(g->prompt + 1, more->id, more->count * sizeof *more->id);
    d->target_ids = g->prompt;
    d->target_n = more->count + 1;
}

static mha_status document_write(generator *g, size_t i, mha_err *err)
{
    int32_t start;
    mha_document d = mha_inputs_complete(g->cli, i, &start);
    prompt_complete(g, &d, g->cli->inputs.documents[i].target_n > 0);
    size_t fed = d.target_n ? d.target_n : d.n;
    mha_writing how = {.rules = &g->rules,
                       .length = length_allowed(g, fed),
                       .beams = g->beams,
                       .progress = step,
                       .progress_context = g};
    mha_status status = MHA_OK;
    g->sampling.stream = g->cli->inputs.items[i].index;
    if (g->sample)
        status = mha_sampler_new(&how.sampler, g->cli->info->vocab, &g->sampling, err);
    if (status == MHA_OK)
        status = mha_write(g->cli->engine, g->cli->model, &d, &how, g->new_ids, &g->n, NULL, err);
    mha_sampler_free(how.sampler);
    for (size_t k = 0; status == MHA_OK && k < g->n; k++)
        g->ids[k] = g->new_ids[k];
    g->done += (double)g->length;
    return status;
}

static mha_status text_set(const generator *g, mha_table *t, mha_err *err)
{
    char *text = NULL;
    if (!g->cli->tokenizer)
        return MHA_OK;
    mha_status status = mha_tokenizer_decode(g->cli->tokenizer, g->new_ids, g->n, &text, err);
    if (status == MHA_OK)
        status = mha_table_set_text(t, TEXT, text, err);
    mha_free(text);
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
    MHA_TRY(mha_meta_int(m, "beam", (int64_t)g->beams, err));
    if (!g->sample)
        return MHA_OK;
    MHA_TRY(mha_meta_real(m, "temperature", g->sampling.temperature, err));
    if (g->sampling.top_k)
        MHA_TRY(mha_meta_int(m, "top", (int64_t)g->sampling.top_k, err));
    return mha_meta_int(m, "seed", (int64_t)g->sampling.seed, err);
}

mha_status mha_answer_generate(mha_table **t, mha_cli *cli, mha_err *err)
{
    generator g = {.cli = cli, .beams = 1, .sampling = {.temperature = 1}};
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
    generator_release(&g);
    return status;
}

/* ---- documents that go on ---------------------------------------------------------------------
 */

static mha_status array_extend(void *array, size_t old, size_t count, size_t size, mha_err *err)
{
    void **p = array;
    return *p || old == 0 ? mha_grow(p, old, count, size, err) : MHA_OK;
}

/* New tokens stand in no text, and each is a word of its own. */
static mha_status tokens_add(mha_tokens *t, const int32_t *ids, size_t n, mha_err *err)
{
    size_t old = t->n, all = old + n;
    MHA_TRY(array_extend(&t->id, old, all, sizeof *t->id, err));
    MHA_TRY(array_extend(&t->start, old, all, sizeof *t->start, err));
    MHA_TRY(array_extend(&t->end, old, all, sizeof *t->end, err));
    MHA_TRY(array_extend(&t->word, old, all, sizeof *t->word, err));
    MHA_TRY(array_extend(&t->special, old, all, sizeof *t->special, err));
    MHA_TRY(array_extend(&t->type, old, all, sizeof *t->type, err));
    int32_t word = -1;
    for (size_t i = 0; t->word && i < old; i++)
        word = t->word[i] > word ? t->word[i] : word;
    for (size_t i = 0; i < n; i++) {
        t->id[old + i] = ids[i];
        if (t->word)
            t->word[old + i] = word + 1 + (int32_t)i;
    }
    t->n = t->capacity = all;
    return MHA_OK;
}

/* A decoder with memory writes behind its target, which starts as generation does. */
static mha_status document_extend(generator *g, size_t i, mha_err *err)
{
    mha_input *in = &g->cli->inputs.items[i];
    bool target = g->cli->info->head == MHA_HEAD_TARGET;
    int32_t start;
    mha_document d = mha_inputs_complete(g->cli, i, &start);
    prompt_complete(g, &d, g->cli->inputs.documents[i].target_n > 0);
    if (target && !in->has_target)
        MHA_TRY(tokens_add(&in->target, d.target_ids, d.target_n, err));
    in->has_target = target;
    MHA_TRY(document_write(g, i, err));
    MHA_TRY(tokens_add(target ? &in->target : &in->source, g->new_ids, g->n, err));
    g->cli->inputs.documents[i] = mha_input_document(in);
    g->cli->inputs.documents[i].generated = g->n;
    g->cli->inputs.tokens += g->n;
    return MHA_OK;
}

mha_status mha_inputs_write_on(mha_cli *cli, mha_err *err)
{
    generator g = {.cli = cli, .beams = 1, .sampling = {.temperature = 1}};
    if (!mha_args_has(&cli->args, MHA_OPT_GENERATE)) {
        if (mha_args_has(&cli->args, MHA_OPT_SAMPLE) ||
            mha_args_has(&cli->args, MHA_OPT_TEMPERATURE))
            return mha_fail(err, MHA_ERR_ARG, "--sample and --temperature need --generate N");
        return MHA_OK;
    }
    if (cli->info->head != MHA_HEAD_NEXT && cli->info->head != MHA_HEAD_TARGET)
        return mha_cannot(cli, err, "the model does not generate: its read-out is %s",
                          cli->info->head_name);
    mha_status status = generator_open(&g, cli, err);
    mha_progress_start(&cli->bar, "generate");
    for (size_t i = 0; i < cli->inputs.count && status == MHA_OK; i++)
        status = document_extend(&g, i, err);
    cli->inputs.targets = cli->info->head == MHA_HEAD_TARGET;
    mha_progress_end(&cli->bar);
    generator_release(&g);
    return status;
}
