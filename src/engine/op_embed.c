/* op_embed.c: EMBED: rows of a table by token id, position or token type, or the features of a
 * graph's nodes. The first embed of a stack writes the register, later ones add to it. */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/backward.h"
#include "engine/matmul.h"
#include "engine/weights.h"
#include "mha/input.h"
#include <string.h>

/* Of one document: what its rows are multiplied by, and where its question ends. */
typedef struct document_part {
    float factor;
    size_t question;
} document_part;

typedef struct embed_job {
    const mha_forward *f;
    const mha_embed_args *a;
    float *dst, *row; /* row: [threads, D] scratch when adding */
    const document_part *parts;
    bool add;
} embed_job;

/* Table row for row t of document d. */
static size_t table_row(const mha_forward *f, const mha_embed_args *a, const document_part *part,
                        size_t d, size_t t)
{
    const mha_document *doc = &f->docs[d];
    bool target = f->at == 1;
    switch (a->kind) {
    case MHA_EMBED_TOKEN:
        return (size_t)(target ? doc->target_ids : doc->ids)[t];
    case MHA_EMBED_POSITION:
        return f->side[f->at].past + t + a->offset;
    case MHA_EMBED_NODE: /* not from a table */
        break;
    case MHA_EMBED_TYPE:
        return target ? 0 : doc->types != NULL ? doc->types[t] : t >= part->question;
    case MHA_EMBED_ROW:
        return t - a->offset;
    }
    return 0;
}

/* Rows that a table of rows has nothing for. */
static bool has_none(const mha_embed_args *a, size_t t)
{
    return a->kind == MHA_EMBED_ROW && (t < a->offset || t - a->offset >= a->table.out);
}

static const int32_t *document_ids(const mha_forward *f, size_t d)
{
    return f->at == 1 ? f->docs[d].target_ids : f->docs[d].ids;
}

static bool is_dropped(const mha_forward *f, const mha_embed_args *a, size_t d, size_t t)
{
    return a->dropout != 0 && (uint32_t)document_ids(f, d)[t] == a->mask;
}

static document_part part_of(const mha_forward *f, const mha_embed_args *a, size_t d)
{
    const mha_rows *side = &f->side[f->at];
    size_t n = side->offset[d + 1] - side->offset[d], dropped = 0;
    document_part part = {a->scale, SIZE_MAX};
    if (a->separator != UINT32_MAX)
        part.question = mha_question_rows(&f->docs[d], a->separator);
    for (size_t t = 0; a->dropout != 0 && t < n; t++)
        dropped += is_dropped(f, a, d, t);
    if (a->dropout != 0 && dropped != n)
        part.factor = a->scale * (1 - a->dropout) / (1 - (float)dropped / (float)n);
    return part;
}

static mha_status embed_rows(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)err;
    const embed_job *j = context;
    const mha_rows *side = &j->f->side[j->f->at];
    const mha_kernels *k = j->f->k;
    size_t D = j->a->table.in, first = task * MHA_BLOCK_ROWS, end = first + MHA_BLOCK_ROWS;
    size_t d = mha_rows_document(side, j->f->doc_count, first);
    for (size_t r = first; r < end && r < side->total; r++) {
        while (r >= side->offset[d + 1])
            d++;
        if (has_none(j->a, r - side->offset[d]))
            continue;
        float *y = j->dst + r * D, *x = j->add ? j->row + worker * D : y;
        mha_weight_row(k, &j->a->table, table_row(j->f, j->a, &j->parts[d], d, r - side->offset[d]),
                       x);
        if (is_dropped(j->f, j->a, d, r - side->offset[d]))
            memset(x, 0, D * sizeof *x);
        else if (j->parts[d].factor != 1)
            k->scale(x, D, j->parts[d].factor);
        if (j->add)
            k->add(y, x, D);
    }
    return MHA_OK;
}

static mha_status embed_nodes(mha_forward *f, const mha_step *s, mha_err *err)
{
    const mha_rows *side = &f->side[f->at];
    size_t D = s->embed.width;
    float *dst;
    MHA_TRY(mha_register_make(f, s->dst, side->total, D, &dst, err));
    for (size_t d = 0; d < f->doc_count; d++)
        memcpy(dst + side->offset[d] * D, f->docs[d].graph->x,
               (side->offset[d + 1] - side->offset[d]) * D * sizeof *dst);
    if (s->embed.scale != 1)
        f->k->scale(dst, side->total * D, s->embed.scale);
    return MHA_OK;
}

mha_status mha_op_embed(mha_forward *f, const mha_step *s, mha_err *err)
{
    size_t rows = f->side[f->at].total, D = s->embed.width;
    if (s->embed.kind == MHA_EMBED_NODE)
        return embed_nodes(f, s, err);
    embed_job j = {.f = f, .a = &s->embed, .add = f->reg_rows[s->dst] != 0, .dst = f->reg[s->dst]};
    if (!j.add)
        MHA_TRY(mha_register_make(f, s->dst, rows, D, &j.dst, err));
    else if (f->reg_width[s->dst] != D)
        return mha_fail(err, MHA_ERR_INTERNAL, "embed: tables of different widths");
    void *row;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_OUT, mha_pool_threads(f->e->pool) * D, sizeof(float),
                            &row, err));
    j.row = row;
    document_part *parts;
    MHA_TRY(mha_alloc((void **)&parts, f->doc_count, sizeof *parts, err));
    for (size_t d = 0; d < f->doc_count; d++)
        parts[d] = part_of(f, &s->embed, d);
    j.parts = parts;
    mha_status st =
        mha_pool_run(f->e->pool, (rows + MHA_BLOCK_ROWS - 1) / MHA_BLOCK_ROWS, embed_rows, &j, err);
    mha_free(parts);
    return st;
}

/* The rows that were looked up get their gradients; nothing lies below an embedding. */
mha_status mha_op_embed_back(mha_backward *b, const mha_saved *s, mha_err *err)
{
    (void)err;
    const mha_forward *f = b->f;
    const mha_embed_args *a = &s->step->embed;
    const mha_rows *side = &f->side[f->at];
    size_t D = a->table.in;
    if (mha_weights_row(b->weights, &a->table, 0) == NULL)
        return MHA_OK;
    for (size_t d = 0; d < f->doc_count; d++) {
        document_part part = part_of(f, a, d);
        for (size_t r = side->offset[d]; r < side->offset[d + 1]; r++) {
            size_t t = r - side->offset[d];
            if (!has_none(a, t) && !is_dropped(f, a, d, t))
                f->k->axpy(mha_weights_row(b->weights, &a->table, table_row(f, a, &part, d, t)),
                           part.factor, b->d[s->step->dst] + r * D, D);
        }
    }
    return MHA_OK;
}
