/* reader.c: see reader.h. Holds one row of cells for each head, whatever the length of the text. */
#include "probe/reader.h"
#include "base/fail.h"
#include "base/mem.h"
#include <string.h>

static mha_status read_texts(mha_reader *r, const mha_words *words, size_t *keys, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&r->texts, r->count, sizeof *r->texts, err));
    *keys = 0;
    for (size_t d = 0; d < r->count; d++) {
        mha_reader_text *t = &r->texts[d];
        const int32_t *source = words != NULL ? words[d].source : NULL;
        const int32_t *target = words != NULL ? words[d].target : NULL;
        MHA_TRY(mha_cells_init(&t->source, source, r->docs[d].n, err));
        MHA_TRY(mha_cells_init(&t->target, target, r->docs[d].target_n, err));
        *keys = t->source.count > *keys ? t->source.count : *keys;
        *keys = t->target.count > *keys ? t->target.count : *keys;
    }
    return MHA_OK;
}

static mha_status make_rows(mha_reader *r, size_t keys, mha_err *err)
{
    size_t heads = r->chosen->heads, all;
    if (mha_mul_overflows(heads, keys, &all))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for rows of %zu keys", keys);
    MHA_TRY(mha_alloc((void **)&r->rows, heads, sizeof *r->rows, err));
    MHA_TRY(mha_alloc((void **)&r->p, all, sizeof *r->p, err));
    MHA_TRY(mha_alloc((void **)&r->seen, all, sizeof *r->seen, err));
    for (size_t h = 0; h < heads; h++)
        r->rows[h] = (mha_merge_row){.p = r->p + h * keys, .seen = r->seen + h * keys};
    return MHA_OK;
}

mha_status mha_reader_init(mha_reader *r, const mha_chosen *chosen, const mha_document *docs,
                           size_t count, mha_special special, const mha_words *words, mha_err *err)
{
    *r = (mha_reader){.chosen = chosen, .docs = docs, .count = count, .special = special};
    size_t keys;
    for (size_t a = 0; a < chosen->info->attn_count; a++)
        if (chosen->count[a] > 0 && chosen->info->attn[a].edges)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "attention over a graph has weights of edges and no rows of cells");
    if (special != MHA_SPECIAL_KEEP)
        MHA_TRY(mha_chosen_check_special(chosen, docs, count, err));
    MHA_TRY(read_texts(r, words, &keys, err));
    return make_rows(r, keys, err);
}

void mha_reader_release(mha_reader *r)
{
    for (size_t d = 0; r->texts != NULL && d < r->count; d++) {
        mha_cells_release(&r->texts[d].source);
        mha_cells_release(&r->texts[d].target);
    }
    mha_free(r->texts);
    mha_free(r->rows);
    mha_free(r->p);
    mha_free(r->seen);
    memset(r, 0, sizeof *r);
}

const mha_cells *mha_reader_queries(const mha_reader *r, const mha_attn_info *step, size_t document)
{
    const mha_reader_text *t = &r->texts[document];
    return mha_stack_reads_target(r->chosen->info, step->stack) ? &t->target : &t->source;
}

const mha_cells *mha_reader_keys(const mha_reader *r, const mha_attn_info *step, size_t document)
{
    return step->kind == MHA_CROSS ? &r->texts[document].source
                                   : mha_reader_queries(r, step, document);
}

int mha_reader_add(mha_reader *r, const mha_block *block,
                   int (*done)(void *context, const mha_block *block, const mha_reader_row *row),
                   void *context)
{
    const mha_chosen *c = r->chosen;
    size_t a = mha_chosen_step(c, block->stack, block->kind, block->layer);
    const mha_attn_info *step = &c->info->attn[a];
    mha_merge m = {.queries = mha_reader_queries(r, step, block->document),
                   .keys = mha_reader_keys(r, step, block->document),
                   .special = mha_step_special(c->info, step, &r->docs[block->document]),
                   .mode = r->special};
    size_t number = mha_chosen_number(c, a, block->head);
    for (size_t b = 0; b < block->rows; b++) {
        size_t i = block->first + b, lo, hi;
        mha_step_span(step, i, m.keys->n, &lo, &hi);
        if (!mha_merge_add(&m, &r->rows[number], i, block->data + b * block->stride, lo, hi))
            continue;
        mha_reader_row row = {.step = step,
                              .number = number,
                              .row = m.queries->cell != NULL ? m.queries->cell[i] : i,
                              .cells = m.keys->count,
                              .flags = m.special != NULL,
                              .merged = &r->rows[number]};
        int stop = done(context, block, &row);
        if (stop != 0)
            return stop;
    }
    return 0;
}
