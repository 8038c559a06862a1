/* map_rows.c: a probe that hands the rows of maps on, one by one, as a view shows them: for figures
 * that pool, and for whoever wants no array. */
#include "base/fail.h"
#include "base/mem.h"
#include "probe/reader.h"

struct mha_map_rows {
    mha_probe probe;
    mha_chosen chosen;
    mha_reader reader;
    mha_map_sink sink;
    void *context;
    float *weights; /* [chosen.heads, width] the row that is handed on */
    size_t width;
};

static bool wants(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head)
{
    const mha_map_rows *m = context;
    (void)site;
    return mha_chosen_has(&m->chosen, stack, kind, layer, head);
}

/* Hands on every run of cells that the mask shows. */
static int row_done(void *context, const mha_block *block, const mha_reader_row *row)
{
    const mha_map_rows *m = context;
    float *weights = m->weights + row->number * m->width;
    const uint8_t *seen = row->merged->seen;
    for (size_t c = 0; c < row->cells; c++)
        weights[c] = (float)row->merged->p[c];
    for (size_t c = 0; c < row->cells;) {
        size_t end = c;
        while (end < row->cells && seen[end] == seen[c])
            end++;
        mha_map_row out = {.document = block->document,
                           .stack = block->stack,
                           .kind = block->kind,
                           .layer = block->layer,
                           .head = block->head,
                           .row = row->row,
                           .first = c,
                           .n = end - c,
                           .weights = weights + c};
        int stop = seen[c] ? m->sink(m->context, &out) : 0;
        if (stop != 0)
            return stop;
        c = end;
    }
    return 0;
}

static int deliver(void *context, const mha_block *block, size_t worker)
{
    mha_map_rows *m = context;
    (void)worker;
    return mha_reader_add(&m->reader, block, row_done, m);
}

static mha_status fill(mha_map_rows *m, const mha_model *model, const mha_document *docs,
                       size_t count, const mha_choice *choice, const mha_view *view, mha_err *err)
{
    mha_choice all = {0};
    mha_view plain = {0};
    size_t size;
    MHA_TRY(mha_chosen_init(&m->chosen, mha_model_info_get(model), choice != NULL ? choice : &all,
                            err));
    view = view != NULL ? view : &plain;
    MHA_TRY(mha_reader_init(&m->reader, &m->chosen, docs, count, view->special, view->words, err));
    for (size_t d = 0; d < count; d++) {
        m->width = docs[d].n > m->width ? docs[d].n : m->width;
        m->width = docs[d].target_n > m->width ? docs[d].target_n : m->width;
    }
    if (mha_mul_overflows(m->chosen.heads, m->width, &size))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for rows of %zu keys", m->width);
    return mha_alloc((void **)&m->weights, size, sizeof *m->weights, err);
}

mha_status mha_map_rows_new(mha_map_rows **out, const mha_model *model, const mha_document *docs,
                            size_t count, const mha_choice *choice, const mha_view *view,
                            mha_map_sink sink, void *context, mha_err *err)
{
    mha_map_rows *m;
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&m, 1, sizeof *m, err));
    m->sink = sink;
    m->context = context;
    m->probe = (mha_probe){
        .sites = 1u << MHA_SITE_PATTERN, .wants = wants, .deliver = deliver, .context = m};
    mha_status st = fill(m, model, docs, count, choice, view, err);
    if (st != MHA_OK) {
        mha_map_rows_free(m);
        return st;
    }
    *out = m;
    return MHA_OK;
}

void mha_map_rows_free(mha_map_rows *m)
{
    if (m == NULL)
        return;
    mha_reader_release(&m->reader);
    mha_chosen_release(&m->chosen);
    mha_free(m->weights);
    mha_free(m);
}

const mha_probe *mha_map_rows_probe(const mha_map_rows *m)
{
    return &m->probe;
}
