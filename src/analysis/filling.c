/* filling.c: what stands in for a head's output when it is taken out: its mean, or what another
 * document had there. Values of all heads are never kept for more than one document. */
#include "analysis/importance.h"
#include "base/fail.h"
#include "base/mem.h"
#include "probe/chosen.h"
#include <string.h>

static const mha_choice everything;

static mha_status filling_init(mha_filling *f, const mha_model_info *info, size_t rows,
                               mha_err *err)
{
    *f = (mha_filling){.info = info};
    MHA_TRY(mha_alloc((void **)&f->z, info->attn_count, sizeof *f->z, err));
    for (size_t a = 0; a < info->attn_count; a++) {
        size_t width = (size_t)info->attn[a].heads * info->attn[a].width, cells;
        if (mha_mul_overflows(rows, width, &cells))
            return mha_fail(err, MHA_ERR_NOMEM, "no memory for the outputs of %zu rows", rows);
        MHA_TRY(mha_alloc((void **)&f->z[a], cells, sizeof *f->z[a], err));
    }
    f->fill.z = (const float *const *)f->z;
    f->fill.rows = rows;
    return MHA_OK;
}

void mha_filling_release(mha_filling *f)
{
    for (size_t a = 0; f->z != NULL && a < f->info->attn_count; a++)
        mha_free(f->z[a]);
    mha_free(f->z);
    *f = (mha_filling){0};
}

/* Runs the documents under the base gates past one probe of z: a pruned head's z is 0. */
static mha_status run(const mha_importance_job *j, const mha_document *docs, size_t count,
                      int (*deliver)(void *, const mha_block *, size_t), void *context,
                      mha_share *share, mha_err *err)
{
    mha_document *copy;
    mha_probe probe = {.sites = 1u << MHA_SITE_Z, .deliver = deliver, .context = context};
    MHA_TRY(mha_alloc((void **)&copy, count, sizeof *copy, err));
    for (size_t i = 0; i < count; i++) {
        copy[i] = docs[i];
        copy[i].gates = j->base;
    }
    const mha_probe *probes[] = {&probe};
    mha_status st = mha_engine_run(j->e, copy, count, probes, 1,
                                   share != NULL ? mha_share_step : NULL, share, err);
    mha_free(copy);
    return st;
}

/* ---- means -----------------------------------------------------------------------------------
 */

typedef struct sums {
    const mha_chosen *chosen; /* finds the step of a block */
    double **z;               /* [A][H·K]; each head's part is one thread's at a time */
    size_t *rows;             /* [A] counted with head 0 */
} sums;

static int add_block(void *context, const mha_block *b, size_t worker)
{
    (void)worker;
    sums *s = context;
    size_t a = mha_chosen_step(s->chosen, b->stack, b->kind, b->layer);
    double *z = s->z[a] + b->head * b->cols;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t k = 0; k < b->cols; k++)
            z[k] += (double)b->data[r * b->stride + k];
    if (b->head == 0)
        s->rows[a] += b->rows;
    return 0;
}

static mha_status divide(mha_filling *f, const sums *s, mha_err *err)
{
    for (size_t a = 0; a < f->info->attn_count; a++) {
        const mha_attn_info *step = &f->info->attn[a];
        if (s->rows[a] == 0 && step->heads > 0)
            return mha_fail(err, MHA_ERR_ARG,
                            "the reference documents say nothing about %s.%s.%u: no targets",
                            mha_stack_name(step->stack), mha_kind_name(step->kind), step->layer);
        for (size_t k = 0; k < (size_t)step->heads * step->width; k++)
            f->z[a][k] = (float)(s->z[a][k] / (double)s->rows[a]);
    }
    return MHA_OK;
}

mha_status mha_filling_mean(mha_filling *f, const mha_importance_job *j, const mha_document *docs,
                            size_t count, mha_share *share, mha_err *err)
{
    const mha_model_info *info = j->m->units.info;
    mha_chosen chosen = {0};
    mha_arena memory = {0};
    sums s = {.chosen = &chosen};
    mha_status st = filling_init(f, info, 1, err);
    if (st == MHA_OK)
        st = mha_chosen_init(&chosen, info, &everything, err);
    if (st == MHA_OK)
        st = mha_arena_alloc((void **)&s.z, &memory, info->attn_count, sizeof *s.z, err);
    if (st == MHA_OK)
        st = mha_arena_alloc((void **)&s.rows, &memory, info->attn_count, sizeof *s.rows, err);
    for (size_t a = 0; a < info->attn_count && st == MHA_OK; a++)
        st =
            mha_arena_alloc((void **)&s.z[a], &memory,
                            (size_t)info->attn[a].heads * info->attn[a].width, sizeof(double), err);
    if (st == MHA_OK)
        st = run(j, docs, count, add_block, &s, share, err);
    if (st == MHA_OK)
        st = divide(f, &s, err);
    mha_chosen_release(&chosen);
    mha_arena_release(&memory);
    return st;
}

/* ---- another document ------------------------------------------------------------------------
 */

typedef struct taking {
    const mha_chosen *chosen;
    mha_filling *f;
} taking;

static int take_block(void *context, const mha_block *b, size_t worker)
{
    (void)worker;
    taking *t = context;
    size_t a = mha_chosen_step(t->chosen, b->stack, b->kind, b->layer);
    const mha_attn_info *step = &t->f->info->attn[a];
    size_t width = (size_t)step->heads * step->width;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t to = b->first + r; to < t->f->fill.rows; to += b->total_rows)
            memcpy(t->f->z[a] + to * width + b->head * b->cols, b->data + r * b->stride,
                   b->cols * sizeof(float));
    return 0;
}

mha_status mha_filling_take(mha_filling *f, const mha_importance_job *j, const mha_document *from,
                            const mha_document *to, mha_err *err)
{
    size_t rows = to->n > to->target_n ? to->n : to->target_n;
    mha_chosen chosen = {0};
    taking t = {.chosen = &chosen, .f = f};
    mha_status st = filling_init(f, j->m->units.info, rows, err);
    if (st == MHA_OK)
        st = mha_chosen_init(&chosen, j->m->units.info, &everything, err);
    if (st == MHA_OK)
        st = run(j, from, 1, take_block, &t, NULL, err);
    mha_chosen_release(&chosen);
    return st;
}
