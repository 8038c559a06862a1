/* heads.c: descriptors of every head, summed while rows pass by.
 *
 * Over a corpus each column is a ratio of sums, Σ rows over all documents / number of rows
 * (methods, rule 6: micro). Sums are kept apart for each document: they are what intervals
 * resample, and what goes through one fixed tree, so that no division of the work shows in the
 * result. */
#include "analysis/heads.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include <assert.h>
#include <math.h>
#include <string.h>

#define UNDEFINED          ((double)NAN)
#define DEFAULT_CONFIDENCE 0.95

const mha_column *mha_heads_columns(void)
{
    static const mha_column columns[MHA_HEADS_COLUMNS] = {
        [MHA_HEADS_ROWS] = {"rows", "rows", "Query rows that were counted.", MHA_COLUMN_INT},
        [MHA_HEADS_ENTROPY] = {"entropy", "nats", "Mean entropy of a row's weights over its keys.",
                               MHA_COLUMN_REAL},
        [MHA_HEADS_ENTROPY_NORM] =
            {"entropy_norm", "",
             "Mean of a row's entropy over the logarithm of its visible keys, in rows with two or "
             "more.",
             MHA_COLUMN_REAL},
        [MHA_HEADS_EFFECTIVE_KEYS] = {"effective_keys", "keys",
                                      "Mean of the exponential of a row's entropy.",
                                      MHA_COLUMN_REAL},
        [MHA_HEADS_MAX_WEIGHT] = {"max_weight", "", "Mean of a row's largest weight.",
                                  MHA_COLUMN_REAL},
        [MHA_HEADS_DISTANCE] = {"distance", "tokens", "Mean distance between query and key.",
                                MHA_COLUMN_REAL},
        [MHA_HEADS_OFFSET] = {"offset", "tokens",
                              "Mean of the key's position less the query's: negative looks back.",
                              MHA_COLUMN_REAL},
        [MHA_HEADS_SELF_MASS] = {"self_mass", "", "Mean weight on the query's own position.",
                                 MHA_COLUMN_REAL},
        [MHA_HEADS_PREV_MASS] = {"prev_mass", "", "Mean weight on the position before.",
                                 MHA_COLUMN_REAL},
        [MHA_HEADS_NEXT_MASS] = {"next_mass", "", "Mean weight on the position after.",
                                 MHA_COLUMN_REAL},
        [MHA_HEADS_FIRST_MASS] = {"first_mass", "", "Mean weight of later rows on position 0.",
                                  MHA_COLUMN_REAL},
        [MHA_HEADS_SPECIAL_MASS] = {"special_mass", "", "Mean weight on special tokens.",
                                    MHA_COLUMN_REAL},
        [MHA_HEADS_SINK_MASS] = {"sink_mass", "", "Mean weight on the learned sink.",
                                 MHA_COLUMN_REAL},
    };
    return columns;
}

/* ---- rows into sums --------------------------------------------------------------------------
 */

static void add(mha_head_sums *s, mha_heads_column c, double x)
{
    if (isnan(x))
        return;
    s->sum[c] += x;
    s->rows[c]++;
}

void mha_head_sums_add(mha_head_sums *s, const mha_row_stats *st, size_t i, bool causal, bool sink)
{
    if (st->visible == 0)
        return;
    s->rows[MHA_HEADS_ROWS]++;
    add(s, MHA_HEADS_ENTROPY, st->entropy);
    if (st->visible >= 2)
        add(s, MHA_HEADS_ENTROPY_NORM, st->entropy / log((double)st->visible));
    add(s, MHA_HEADS_EFFECTIVE_KEYS, exp(st->entropy));
    add(s, MHA_HEADS_MAX_WEIGHT, st->max_weight);
    add(s, MHA_HEADS_DISTANCE, st->distance);
    add(s, MHA_HEADS_OFFSET, st->offset);
    add(s, MHA_HEADS_SELF_MASS, st->self);
    add(s, MHA_HEADS_PREV_MASS, st->prev);
    if (!causal)
        add(s, MHA_HEADS_NEXT_MASS, st->next);
    if (i > 0)
        add(s, MHA_HEADS_FIRST_MASS, st->first);
    add(s, MHA_HEADS_SPECIAL_MASS, st->special);
    if (sink)
        add(s, MHA_HEADS_SINK_MASS, st->sink);
}

/* ---- the probe -------------------------------------------------------------------------------
 */

static bool wants(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head)
{
    const mha_heads *h = context;
    (void)site;
    return mha_chosen_has(&h->chosen, stack, kind, layer, head);
}

static int deliver(void *context, const mha_block *block, size_t worker)
{
    mha_heads *h = context;
    (void)worker;
    assert(h->part_count > 0 && block->document < h->parts[h->part_count - 1].count);
    size_t a = mha_chosen_step(&h->chosen, block->stack, block->kind, block->layer);
    const mha_attn_info *step = &h->info->attn[a];
    size_t number = mha_chosen_number(&h->chosen, a, block->head);
    mha_heads_part *part = &h->parts[h->part_count - 1];
    mha_head_sums *sums = &part->sums[block->document * h->chosen.heads + number];
    if (block->site == MHA_SITE_PATTERN)
        return mha_heads_add_pattern(h, block, sums);
    for (size_t r = 0; r < block->rows; r++)
        mha_head_sums_add(sums, &block->stats[r], block->first + r, step->causal, step->sink);
    return 0;
}

/* ---- before a run ----------------------------------------------------------------------------
 */

static mha_status fill(mha_heads *h, mha_err *err)
{
    MHA_TRY(mha_chosen_init(&h->chosen, h->info, &h->options.choice, err));
    MHA_TRY(mha_alloc((void **)&h->rows, h->chosen.heads, sizeof *h->rows, err));
    return mha_alloc((void **)&h->skipped, h->chosen.heads, sizeof *h->skipped, err);
}

mha_status mha_heads_new(mha_heads **out, const mha_model *model, const mha_heads_options *options,
                         mha_err *err)
{
    mha_heads *h;
    *out = NULL;
    if (options != NULL && !(options->confidence >= 0 && options->confidence < 1))
        return mha_fail(err, MHA_ERR_ARG, "confidence %g is not between 0 and 1",
                        options->confidence);
    MHA_TRY(mha_alloc((void **)&h, 1, sizeof *h, err));
    h->info = mha_model_info_get(model);
    if (options != NULL)
        h->options = *options;
    if (h->options.confidence == 0)
        h->options.confidence = DEFAULT_CONFIDENCE;
    h->probe = (mha_probe){
        .sites = 1u << MHA_SITE_STATS, .wants = wants, .deliver = deliver, .context = h};
    mha_status st = fill(h, err);
    if (st != MHA_OK) {
        mha_heads_free(h);
        return st;
    }
    *out = h;
    return MHA_OK;
}

void mha_heads_free(mha_heads *h)
{
    if (h == NULL)
        return;
    mha_reader_release(&h->reader);
    for (size_t p = 0; p < h->part_count; p++)
        mha_free(h->parts[p].sums);
    mha_free(h->parts);
    mha_free(h->rows);
    mha_free(h->skipped);
    mha_chosen_release(&h->chosen);
    mha_free(h);
}

static mha_status add_part(mha_heads *h, size_t count, size_t first, mha_err *err)
{
    mha_heads_part part = {.first = first, .count = count};
    size_t all;
    if (h->part_count == h->part_capacity) {
        size_t more = h->part_capacity > 0 ? 2 * h->part_capacity : 8;
        MHA_TRY(mha_grow((void **)&h->parts, h->part_capacity, more, sizeof *h->parts, err));
        h->part_capacity = more;
    }
    if (mha_mul_overflows(count, h->chosen.heads, &all))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for the sums of %zu documents", count);
    MHA_TRY(mha_alloc((void **)&part.sums, all, sizeof *part.sums, err));
    h->parts[h->part_count++] = part;
    return MHA_OK;
}

mha_status mha_heads_begin(mha_heads *h, const mha_document *docs, const mha_words *words,
                           size_t count, size_t first, mha_err *err)
{
    bool pattern = words != NULL || h->options.special == MHA_SPECIAL_RENORM;
    if (h->part_count > 0) {
        const mha_heads_part *last = &h->parts[h->part_count - 1];
        if (first < last->first + last->count)
            return mha_fail(err, MHA_ERR_ARG, "document %zu was begun before", first);
        if (pattern != h->from_pattern)
            return mha_fail(err, MHA_ERR_ARG, "some documents have words and others do not");
    }
    h->from_pattern = pattern;
    h->probe.sites = 1u << (pattern ? MHA_SITE_PATTERN : MHA_SITE_STATS);
    if (h->options.special != MHA_SPECIAL_KEEP)
        MHA_TRY(mha_chosen_check_special(&h->chosen, docs, count, err));
    if (pattern) {
        mha_special special =
            h->options.special == MHA_SPECIAL_RENORM ? MHA_SPECIAL_RENORM : MHA_SPECIAL_KEEP;
        mha_reader_release(&h->reader);
        MHA_TRY(mha_reader_init(&h->reader, &h->chosen, docs, count, special, words, err));
    }
    return add_part(h, count, first, err);
}

const mha_probe *mha_heads_probe(const mha_heads *h)
{
    return &h->probe;
}

/* ---- results ---------------------------------------------------------------------------------
 */

size_t mha_heads_count(const mha_heads *h)
{
    return h->chosen.heads;
}

uint64_t mha_heads_skipped(const mha_heads *h)
{
    uint64_t rows = 0;
    for (size_t k = 0; k < h->chosen.heads; k++)
        rows += h->skipped[k];
    return rows;
}

/* Names the rows; their values stay undefined. */
static void name_rows(const mha_heads *h, mha_head_row *rows)
{
    for (size_t a = 0; a < h->info->attn_count; a++) {
        const mha_attn_info *step = &h->info->attn[a];
        for (uint32_t head = 0; head < step->heads; head++) {
            uint32_t slot = h->chosen.slot[a * h->chosen.stride + head];
            if (slot == MHA_NOT_CHOSEN)
                continue;
            mha_head_row *row = &rows[h->chosen.first[a] + slot];
            row->stack = step->stack;
            row->kind = step->kind;
            row->layer = step->layer;
            row->head = step->head_ids[head];
            for (int c = 0; c < MHA_HEADS_COLUMNS; c++)
                row->values[c] = row->lo[c] = row->hi[c] = UNDEFINED;
        }
    }
}

static double ratio(double sum, double rows)
{
    return rows > 0 ? sum / rows : UNDEFINED;
}

static const mha_head_sums *sums_of(const mha_heads *h, size_t document)
{
    for (size_t p = 0; p < h->part_count; p++)
        if (document >= h->parts[p].first && document - h->parts[p].first < h->parts[p].count)
            return h->parts[p].sums + (document - h->parts[p].first) * h->chosen.heads;
    return NULL;
}

bool mha_heads_document(const mha_heads *h, size_t document, mha_head_row *rows)
{
    const mha_head_sums *sums = sums_of(h, document);
    if (sums == NULL)
        return false;
    name_rows(h, rows);
    for (size_t k = 0; k < h->chosen.heads; k++) {
        rows[k].values[MHA_HEADS_ROWS] = sums[k].rows[MHA_HEADS_ROWS];
        for (int c = MHA_HEADS_ROWS + 1; c < MHA_HEADS_COLUMNS; c++)
            rows[k].values[c] = ratio(sums[k].sum[c], sums[k].rows[c]);
    }
    return true;
}

/* Where documents that were run lie, for the bootstrap and the tree. */
typedef struct run_documents {
    const mha_head_sums **sums; /* [count] rows of all heads */
    size_t *index;              /* [count] in the whole corpus */
    size_t count, heads;
} run_documents;

static mha_status list_documents(const mha_heads *h, run_documents *l, mha_err *err)
{
    size_t total = 0;
    for (size_t p = 0; p < h->part_count; p++)
        total += h->parts[p].count;
    l->heads = h->chosen.heads;
    MHA_TRY(mha_alloc((void **)&l->sums, total, sizeof *l->sums, err));
    MHA_TRY(mha_alloc((void **)&l->index, total, sizeof *l->index, err));
    for (size_t p = 0; p < h->part_count; p++)
        for (size_t d = 0; d < h->parts[p].count; d++) {
            l->sums[l->count] = h->parts[p].sums + d * l->heads;
            l->index[l->count++] = h->parts[p].first + d;
        }
    return MHA_OK;
}

/* Columns of the bootstrap: all but rows, of each head. */
#define MEANS (MHA_HEADS_COLUMNS - 1)

static void get_document(const void *context, size_t document, double *sum, double *count)
{
    const run_documents *l = context;
    for (size_t k = 0; k < l->heads; k++)
        for (size_t c = 0; c < MEANS; c++) {
            sum[k * MEANS + c] = l->sums[document][k].sum[c + 1];
            count[k * MEANS + c] = l->sums[document][k].rows[c + 1];
        }
}

/* values [heads, MEANS]. x [MHA_HEADS_COLUMNS, length]: scratch as long as the corpus, zero where
 * nothing was run. */
static void take_means(const run_documents *l, mha_head_row *rows, double *x, size_t length,
                       double *values)
{
    for (size_t k = 0; k < l->heads; k++) {
        double count[MHA_HEADS_COLUMNS] = {0}; /* whole numbers: any order */
        for (size_t d = 0; d < l->count; d++)
            for (size_t c = 0; c < MHA_HEADS_COLUMNS; c++) {
                x[c * length + l->index[d]] = l->sums[d][k].sum[c];
                count[c] += l->sums[d][k].rows[c];
            }
        rows[k].values[MHA_HEADS_ROWS] = count[MHA_HEADS_ROWS];
        for (size_t c = MHA_HEADS_ROWS + 1; c < MHA_HEADS_COLUMNS; c++) {
            rows[k].values[c] = ratio(mha_tree_sum(x + c * length, length), count[c]);
            values[k * MEANS + c - 1] = rows[k].values[c];
        }
    }
}

typedef struct result_scratch {
    run_documents list;
    double *x, *values, *lo, *hi;
} result_scratch;

static mha_status make_result(mha_heads *h, result_scratch *s, mha_err *err)
{
    MHA_TRY(list_documents(h, &s->list, err));
    size_t length = s->list.count > 0 ? s->list.index[s->list.count - 1] + 1 : 0;
    size_t means = h->chosen.heads * MEANS;
    MHA_TRY(mha_alloc((void **)&s->x, length, MHA_HEADS_COLUMNS * sizeof *s->x, err));
    MHA_TRY(mha_alloc((void **)&s->values, means, sizeof *s->values, err));
    MHA_TRY(mha_alloc((void **)&s->lo, means, sizeof *s->lo, err));
    MHA_TRY(mha_alloc((void **)&s->hi, means, sizeof *s->hi, err));
    name_rows(h, h->rows);
    take_means(&s->list, h->rows, s->x, length, s->values);
    mha_ratios ratios = {s->list.count, means, get_document, &s->list};
    MHA_TRY(mha_bootstrap(&ratios, s->values, h->options.resamples, h->options.confidence,
                          h->options.seed, s->lo, s->hi, err));
    for (size_t k = 0; k < h->chosen.heads; k++) {
        memcpy(h->rows[k].lo + 1, s->lo + k * MEANS, MEANS * sizeof *s->lo);
        memcpy(h->rows[k].hi + 1, s->hi + k * MEANS, MEANS * sizeof *s->hi);
    }
    return MHA_OK;
}

mha_status mha_heads_result(mha_heads *h, const mha_head_row **rows, size_t *count, mha_err *err)
{
    result_scratch s = {0};
    mha_status st = make_result(h, &s, err);
    mha_free(s.list.sums);
    mha_free(s.list.index);
    mha_free(s.x);
    mha_free(s.values);
    mha_free(s.lo);
    mha_free(s.hi);
    *rows = h->rows;
    *count = h->chosen.heads;
    return st;
}
