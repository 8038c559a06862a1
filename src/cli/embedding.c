/* embedding.c: one vector a document: the model's own embedding, or from a model without a head the
 * rows of its last hidden states, pooled as the checkpoint says. */
#include "cli/answers.h"

#include "base/fail.h"
#include "base/mem.h"

#include <math.h>

enum { DOCUMENT, DIMENSION, VALUE, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"dimension", "", "from 0", MHA_COLUMN_INT},
    {"value", "", "of the embedding", MHA_COLUMN_REAL},
};

#define TEXT_DIMENSIONS 10 /* shown as text unless --top says otherwise */

typedef struct embedding {
    mha_cli *cli;
    mha_sentence sentence;
    size_t width;    /* D */
    double *vectors; /* [B, D] */
} embedding;

static int pool_deliver(void *context, const mha_block *b, size_t worker)
{
    embedding *e = context;
    double *v = e->vectors + b->document * e->width;
    (void)worker;
    for (size_t r = 0; r < b->rows; r++) {
        const float *x = b->data + r * b->stride;
        bool first = b->first + r == 0, last = b->first + r + 1 == b->total_rows;
        for (size_t i = 0; i < e->width; i++) {
            switch (e->sentence.pooling) {
            case MHA_SENTENCE_MEAN:
                v[i] += (double)x[i] / (double)b->total_rows;
                break;
            case MHA_SENTENCE_FIRST:
                v[i] = first ? (double)x[i] : v[i];
                break;
            case MHA_SENTENCE_LAST:
                v[i] = last ? (double)x[i] : v[i];
                break;
            case MHA_SENTENCE_MAX:
                v[i] = first || (double)x[i] > v[i] ? (double)x[i] : v[i];
                break;
            }
        }
    }
    return 0;
}

/* v / ‖v‖ */
static void normalise(double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    for (size_t i = 0; sum > 0 && i < n; i++)
        v[i] /= sqrt(sum);
}

static mha_status embedding_run(embedding *e, mha_err *err)
{
    mha_cli *cli = e->cli;
    size_t total;
    if (mha_mul_overflows(cli->inputs.count, e->width, &total))
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    MHA_TRY(mha_alloc((void **)&e->vectors, total, sizeof *e->vectors, err));
    bool own = cli->info->head == MHA_HEAD_EMBEDDING;
    mha_site site = own ? MHA_SITE_LOGITS : MHA_SITE_HIDDEN;
    mha_probe probe = {.sites = 1u << site, .deliver = pool_deliver, .context = e};
    const mha_probe *probes[] = {&probe};
    MHA_TRY(mha_run_documents(cli, cli->inputs.documents, cli->inputs.count, probes, 1, err));
    for (size_t d = 0; e->sentence.normalise && d < cli->inputs.count; d++)
        normalise(e->vectors + d * e->width, e->width);
    return MHA_OK;
}

static mha_status table_write(const embedding *e, const mha_output *out, mha_err *err)
{
    uint64_t top = out->format == MHA_FORMAT_TEXT ? TEXT_DIMENSIONS : e->width;
    MHA_TRY(mha_args_uint(&e->cli->args, MHA_OPT_TOP, 1, INT32_MAX, &top, err));
    mha_table *t;
    MHA_TRY(mha_table_new(&t, "run", columns, COLUMNS, err));
    mha_status status = mha_result_describe(t, e->cli, err);
    for (size_t d = 0; d < e->cli->inputs.count; d++) {
        for (size_t i = 0; i < e->width && i < top && status == MHA_OK; i++) {
            status = mha_table_add_row(t, err);
            if (status != MHA_OK)
                break;
            mha_table_set_int(t, DOCUMENT, (int64_t)e->cli->inputs.items[d].index);
            mha_table_set_int(t, DIMENSION, (int64_t)i);
            mha_table_set_real(t, VALUE, e->vectors[d * e->width + i]);
        }
    }
    if (status == MHA_OK)
        status = mha_output_table(e->cli, out, t, NULL, err);
    mha_table_free(t);
    return status;
}

/* `embedding`: [D] of one document, [B, D] of several. */
static mha_status arrays_write(const embedding *e, const mha_output *out, mha_err *err)
{
    size_t documents = e->cli->inputs.count;
    size_t shape[2] = {documents, e->width};
    bool several = documents > 1;
    mha_arrays *a;
    e->cli->writing = true;
    MHA_TRY(mha_arrays_open(&a, out->path, out->format, out->force, err));
    mha_status status = mha_arrays_declare(a, "embedding", MHA_ARRAY_F32,
                                           several ? shape : shape + 1, several ? 2 : 1, err);
    for (size_t i = 0; i < documents * e->width && status == MHA_OK; i++) {
        float x = (float)e->vectors[i];
        status = mha_arrays_write(a, &x, 1, err);
    }
    if (status == MHA_OK)
        return mha_arrays_commit(a, err);
    mha_arrays_abort(a);
    return status;
}

mha_status mha_answer_embedding(mha_cli *cli, const mha_output *out, mha_err *err)
{
    bool own = cli->info->head == MHA_HEAD_EMBEDDING;
    embedding e = {.cli = cli, .width = own ? cli->info->classes : cli->info->width};
    mha_status status = own ? MHA_OK : mha_model_sentence(cli->model, &e.sentence, err);
    if (status == MHA_OK)
        status = embedding_run(&e, err);
    if (status == MHA_OK)
        status = MHA_FORMATS_ARRAY & MHA_FORMAT_BIT(out->format) ? arrays_write(&e, out, err)
                                                                 : table_write(&e, out, err);
    mha_free(e.vectors);
    return status;
}
