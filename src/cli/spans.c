/* spans.c: answers of a question answering model: stretches of the second text of a pair, or of the
 * whole text where there is no pair. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/answers.h"
#include "mha/analysis.h"

#include <string.h>

#define TOP_DEFAULT 5
#define LONGEST     15 /* tokens, as the usual reference has it */

enum { DOCUMENT, RANK, FIRST, LAST, START, END, TEXT, PROB, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"rank", "", "1 is the likeliest", MHA_COLUMN_INT},
    {"first", "", "position of the answer's first token", MHA_COLUMN_INT},
    {"last", "", "position of its last token", MHA_COLUMN_INT},
    {"start", "", "where it begins, in bytes of the text that answers", MHA_COLUMN_INT},
    {"end", "", "where it ends", MHA_COLUMN_INT},
    {"text", "", "its tokens as text", MHA_COLUMN_TEXT},
    {"prob", "", "of its first token times that of its last", MHA_COLUMN_REAL},
};

typedef struct spans {
    float **logits; /* [documents] of [n, 2] */
} spans;

static int deliver(void *context, const mha_block *b, size_t worker)
{
    spans *s = context;
    (void)worker;
    for (size_t r = 0; r < b->rows; r++)
        memcpy(s->logits[b->document] + 2 * (b->first + r), b->data + r * b->stride,
               2 * sizeof(float));
    return 0;
}

/* Ids tell nothing of texts: behind the first run of those that are not special stands the text
 * that answers; that run itself where nothing follows. */
static void allowed_of_ids(uint8_t *allowed, const mha_input *in)
{
    const uint8_t *special = in->source.special;
    size_t n = in->source.n, from = 0;
    for (size_t i = 0; i < n; i++)
        allowed[i] = !in->has_special || !special[i];
    while (from < n && !allowed[from])
        from++;
    while (from < n && allowed[from])
        from++;
    bool more = false;
    for (size_t i = from; i < n; i++)
        more = more || allowed[i];
    if (more)
        memset(allowed, 0, from);
}

/* The tokens of the pair, or of the text where there is no pair: whatever special tokens stand in
 * them, as users may have written them. */
static void allowed_find(uint8_t *allowed, const mha_input *in)
{
    const mha_tokens *t = &in->source;
    if (!in->from_text) {
        allowed_of_ids(allowed, in);
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        allowed[i] =
            in->has_pair ? i >= t->pair_first && i - t->pair_first < t->pair_n : t->word[i] >= 0;
}

static mha_status row_add(mha_table *t, const mha_cli *cli, size_t document, size_t rank,
                          const mha_answer_span *s, mha_err *err)
{
    const mha_input *in = &cli->inputs.items[document];
    MHA_TRY(mha_table_add_row(t, err));
    mha_table_set_int(t, DOCUMENT, (int64_t)in->index);
    mha_table_set_int(t, RANK, (int64_t)rank);
    mha_table_set_int(t, FIRST, (int64_t)s->first);
    mha_table_set_int(t, LAST, (int64_t)s->last);
    mha_table_set_real(t, PROB, s->prob);
    if (in->from_text) {
        mha_table_set_int(t, START, in->source.start[s->first]);
        mha_table_set_int(t, END, in->source.end[s->last]);
    }
    if (!cli->tokenizer)
        return MHA_OK;
    char *text = NULL;
    MHA_TRY(mha_tokenizer_decode(cli->tokenizer, in->source.id + s->first, s->last - s->first + 1,
                                 &text, err));
    mha_status status = mha_table_set_text(t, TEXT, text + strspn(text, " "), err);
    mha_free(text);
    return status;
}

static mha_status rows_add(mha_table *t, const mha_cli *cli, const spans *s, size_t top,
                           mha_err *err)
{
    mha_answer_span *best = NULL;
    uint8_t *allowed = NULL;
    mha_status status = mha_alloc((void **)&best, top, sizeof *best, err);
    for (size_t d = 0; d < cli->inputs.count && status == MHA_OK; d++) {
        const mha_input *in = &cli->inputs.items[d];
        status = mha_alloc((void **)&allowed, in->source.n, 1, err);
        if (status != MHA_OK)
            break;
        allowed_find(allowed, in);
        size_t n = mha_answer_spans(s->logits[d], in->source.n, allowed, LONGEST, top, best);
        for (size_t i = 0; i < n && status == MHA_OK; i++)
            status = row_add(t, cli, d, i + 1, &best[i], err);
        mha_free(allowed);
    }
    mha_free(best);
    return status;
}

static mha_status answer(mha_table *t, mha_cli *cli, spans *s, size_t top, mha_err *err)
{
    const mha_inputs *in = &cli->inputs;
    const mha_probe probe = {.sites = 1u << MHA_SITE_LOGITS, .deliver = deliver, .context = s};
    const mha_probe *probes[] = {&probe};
    for (size_t d = 0; d < in->count; d++)
        MHA_TRY(mha_alloc((void **)&s->logits[d], in->items[d].source.n, 2 * sizeof(float), err));
    MHA_TRY(mha_run_documents(cli, in->documents, in->count, probes, 1, err));
    return rows_add(t, cli, s, top, err);
}

mha_status mha_answer_span_of(mha_table **t, mha_cli *cli, mha_err *err)
{
    uint64_t top = TOP_DEFAULT;
    spans s = {0};
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_TOP, 1, 1000, &top, err));
    MHA_TRY(mha_table_new(t, "run", columns, COLUMNS, err));
    MHA_TRY(mha_result_describe(*t, cli, err));
    MHA_TRY(mha_alloc((void **)&s.logits, cli->inputs.count, sizeof *s.logits, err));
    mha_status status = answer(*t, cli, &s, top, err);
    for (size_t d = 0; d < cli->inputs.count; d++)
        mha_free(s.logits[d]);
    mha_free(s.logits);
    return status;
}
