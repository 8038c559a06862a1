/* importancetable.c: rows of `importance`. The numbers are the library's; this file decides their
 * order and what is said about them. */
#include "cli/importancetable.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/headchart.h"
#include "cli/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHECKED_TOKENS 16
#define RELIABLE       0.9
#define BARS           20 /* of a chart, unless --top */

/* ---- columns ---------------------------------------------------------------------------------
 */

enum {
    DOCUMENT,
    STACK,
    KIND,
    LAYER,
    HEAD,
    METHOD,
    SCORE,
    SIGNED,
    SCORE_LAYER,
    LO,
    HI,
    RANK,
    RANK_LO,
    RANK_HI,
    COLUMNS
};

static const mha_column columns[COLUMNS] = {
    [DOCUMENT] = {"document", "", "from 0", MHA_COLUMN_INT},
    [STACK] = {"stack", "", "enc, dec or graph", MHA_COLUMN_TEXT},
    [KIND] = {"kind", "", "self or cross", MHA_COLUMN_TEXT},
    [LAYER] = {"layer", "", "from 0", MHA_COLUMN_INT},
    [HEAD] = {"head", "", "original number, from 0", MHA_COLUMN_INT},
    [METHOD] = {"method", "", "how the score was measured", MHA_COLUMN_TEXT},
    [SCORE] = {"score", "", "importance: higher is more important", MHA_COLUMN_REAL},
    [SIGNED] = {"signed", "", "estimated rise of the loss without the head", MHA_COLUMN_REAL},
    [SCORE_LAYER] = {"score_layer", "", "score over the l2 norm of its layer's scores",
                     MHA_COLUMN_REAL},
    [LO] = {"lo", "", "lower end of the score's interval over documents", MHA_COLUMN_REAL},
    [HI] = {"hi", "", "upper end of the score's interval over documents", MHA_COLUMN_REAL},
    [RANK] = {"rank", "", "1 is the most important", MHA_COLUMN_INT},
    [RANK_LO] = {"rank_lo", "", "lower end of the rank's interval", MHA_COLUMN_INT},
    [RANK_HI] = {"rank_hi", "", "upper end of the rank's interval", MHA_COLUMN_INT},
};

typedef struct layout {
    mha_column columns[COLUMNS];
    size_t at[COLUMNS]; /* MHA_NO_COLUMN: not in this table */
    size_t count;
} layout;

static bool has_column(const mha_importancetable *t, int c)
{
    const mha_args *args = &t->cli->args;
    bool documents = mha_args_has(args, MHA_OPT_PER_DOCUMENT);
    bool layers = mha_args_has(args, MHA_OPT_BY_LAYER);
    switch (c) {
    case DOCUMENT:
        return documents;
    case HEAD:
        return !layers && t->scoring.options.unit != MHA_UNIT_LAYER;
    case METHOD:
        return t->count > 1;
    default:
        return c <= SIGNED || (!documents && !layers);
    }
}

/* Whether scores are rises of the loss themselves. */
static bool scores_are_losses(const mha_importancetable *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->methods[i] != MHA_DLA &&
            (t->methods[i] < MHA_ABLATE_ZERO || t->methods[i] > MHA_SHAPLEY))
            return false;
    return true;
}

static void layout_make(layout *l, const mha_importancetable *t)
{
    bool logits = mha_losses_kind(t->scoring.input.losses) == MHA_LOSS_LOGIT_DIFF;
    *l = (layout){0};
    for (int c = 0; c < COLUMNS; c++) {
        l->at[c] = MHA_NO_COLUMN;
        if (!has_column(t, c))
            continue;
        l->at[c] = l->count;
        l->columns[l->count] = columns[c];
        if (c == HEAD && t->scoring.options.unit == MHA_UNIT_KV_GROUP)
            l->columns[l->count] =
                (mha_column){"group", "", "heads of one key/value head, from 0", MHA_COLUMN_INT};
        if (c == SIGNED || ((c == SCORE || c == LO || c == HI) && scores_are_losses(t)))
            l->columns[l->count].unit = logits ? "logits" : "nats";
        l->count++;
    }
}

mha_status mha_importancetable_sorting(mha_importancetable *t, mha_err *err)
{
    const char *name = mha_args_get(&t->cli->args, MHA_OPT_SORT);
    t->column = columns[SCORE].name;
    t->sorted = name != NULL;
    if (!name)
        return MHA_OK;
    t->ascending = *name == '-';
    mha_nearest nearest = {.word = name + t->ascending};
    for (int c = SCORE; c < COLUMNS; c++)
        mha_nearest_try(&nearest, columns[c].name);
    if (nearest.distance)
        return mha_fail(err, MHA_ERR_ARG, "--sort: no column '%s'; the nearest is '%s'",
                        nearest.word, nearest.best);
    t->column = nearest.best;
    return MHA_OK;
}

/* ---- rows ------------------------------------------------------------------------------------
 */

static void set_real(const mha_importancetable *t, const layout *l, int c, double value)
{
    if (l->at[c] != MHA_NO_COLUMN)
        mha_table_set_real(t->table, l->at[c], value);
}

static void set_int(const mha_importancetable *t, const layout *l, int c, double value)
{
    if (l->at[c] != MHA_NO_COLUMN && isfinite(value))
        mha_table_set_int(t->table, l->at[c], llround(value));
}

/* The cells that say which unit and method a new row is about. */
static mha_status row_start(const mha_importancetable *t, const layout *l, size_t result,
                            const mha_importance_row *r, mha_err *err)
{
    const mha_attn_info *step = &t->cli->info->attn[r->place.step];
    MHA_TRY(mha_table_add_row(t->table, err));
    MHA_TRY(mha_table_set_text(t->table, l->at[STACK], mha_stack_name(step->stack), err));
    MHA_TRY(mha_table_set_text(t->table, l->at[KIND], mha_kind_name(step->kind), err));
    set_int(t, l, LAYER, step->layer);
    set_int(t, l, HEAD, r->place.number);
    if (l->at[METHOD] == MHA_NO_COLUMN)
        return MHA_OK;
    return mha_table_set_text(t->table, l->at[METHOD], mha_importance_name(t->methods[result]),
                              err);
}

static mha_status unit_row(const mha_importancetable *t, const layout *l, size_t result,
                           const mha_importance_row *r, mha_err *err)
{
    MHA_TRY(row_start(t, l, result, r, err));
    set_real(t, l, SCORE, r->score);
    set_real(t, l, SIGNED, r->rise);
    set_real(t, l, SCORE_LAYER, r->score_layer);
    set_real(t, l, LO, r->lo);
    set_real(t, l, HI, r->hi);
    set_int(t, l, RANK, (double)r->rank);
    set_int(t, l, RANK_LO, r->rank_lo);
    set_int(t, l, RANK_HI, r->rank_hi);
    return MHA_OK;
}

static mha_status unit_rows(const mha_importancetable *t, const layout *l, size_t result,
                            mha_err *err)
{
    size_t n;
    const mha_importance_row *rows = mha_importance_rows(t->results[result], &n);
    for (size_t i = 0; i < n; i++)
        MHA_TRY(unit_row(t, l, result, &rows[i], err));
    return MHA_OK;
}

/* Means of the units of each attention step. */
static mha_status layer_rows(const mha_importancetable *t, const layout *l, size_t result,
                             mha_err *err)
{
    size_t count;
    const mha_importance_row *rows = mha_importance_rows(t->results[result], &count);
    for (size_t first = 0, n; first < count; first += n) {
        double score = 0, rise = 0;
        for (n = 0; first + n < count && rows[first + n].place.step == rows[first].place.step;
             n++) {
            score += rows[first + n].score;
            rise += rows[first + n].rise;
        }
        MHA_TRY(row_start(t, l, result, &rows[first], err));
        set_real(t, l, SCORE, score / (double)n);
        set_real(t, l, SIGNED, rise / (double)n);
    }
    return MHA_OK;
}

static mha_status document_rows(const mha_importancetable *t, const layout *l, size_t result,
                                mha_err *err)
{
    size_t count, documents;
    const mha_importance_row *rows = mha_importance_rows(t->results[result], &count);
    mha_losses_documents(t->scoring.input.losses, &documents);
    for (size_t d = 0; d < documents; d++)
        for (size_t i = 0; i < count; i++) {
            double score, rise;
            if (!mha_importance_document(t->results[result], d, i, &score, &rise))
                return mha_fail(err, MHA_ERR_ARG,
                                "--per-document: '%s' learns from all documents together",
                                mha_importance_name(t->methods[result]));
            MHA_TRY(row_start(t, l, result, &rows[i], err));
            set_int(t, l, DOCUMENT, (double)mha_losses_index(t->scoring.input.losses, d));
            set_real(t, l, SCORE, score);
            set_real(t, l, SIGNED, rise);
        }
    return MHA_OK;
}

/* ---- sections --------------------------------------------------------------------------------
 */

static mha_status settings_describe(mha_importancetable *t, mha_err *err)
{
    mha_meta *m, *list;
    MHA_TRY(mha_table_section(&m, t->table, "settings", err));
    if (t->count == 1) {
        MHA_TRY(mha_meta_text(m, "method", mha_importance_name(t->methods[0]), err));
    } else {
        MHA_TRY(mha_meta_list(&list, m, "methods", err));
        for (size_t i = 0; i < t->count; i++)
            MHA_TRY(mha_meta_text(list, NULL, mha_importance_name(t->methods[i]), err));
    }
    return mha_scoring_describe(&t->scoring, m, err);
}

static mha_status real_if_defined(mha_meta *m, const char *name, double x, mha_err *err)
{
    return isnan(x) ? MHA_OK : mha_meta_real(m, name, x, err);
}

static mha_status summary_describe(const mha_importancetable *t, mha_meta *m, size_t result,
                                   mha_err *err)
{
    const mha_importance_summary *s = mha_importance_summary_get(t->results[result]);
    MHA_TRY(mha_meta_real(m, "split_half", s->reliability, err));
    MHA_TRY(real_if_defined(m, "efficiency_error", s->efficiency, err));
    MHA_TRY(real_if_defined(m, "completeness_error", s->completeness, err));
    if (s->multiply_adds) {
        MHA_TRY(mha_meta_int(m, "multiply_adds", (int64_t)s->multiply_adds, err));
        MHA_TRY(mha_meta_int(m, "naive_multiply_adds", (int64_t)s->naive_multiply_adds, err));
    }
    return MHA_OK;
}

static mha_status checks_describe(mha_importancetable *t, mha_err *err)
{
    const mha_losses *losses = t->scoring.input.losses;
    mha_checks checks;
    mha_meta *m, *one = NULL;
    size_t n;
    const mha_document *docs = mha_losses_documents(losses, &n);
    MHA_TRY(mha_checks_run(&checks, t->cli->engine, t->cli->model, docs, CHECKED_TOKENS, err));
    MHA_TRY(mha_table_section(&m, t->table, "checks", err));
    MHA_TRY(mha_meta_int(m, "tokens", (int64_t)checks.tokens, err));
    MHA_TRY(mha_meta_real(m, "row_sum_error", checks.row_sum_error, err));
    MHA_TRY(mha_meta_real(m, "masked_mass", checks.masked_mass, err));
    MHA_TRY(mha_meta_real(m, "head_sum_error", checks.head_sum_error, err));
    MHA_TRY(mha_meta_int(m, "measured_documents", (int64_t)n, err));
    MHA_TRY(mha_meta_int(m, "unmeasured_documents", (int64_t)mha_losses_skipped(losses), err));
    MHA_TRY(mha_meta_int(m, "predictions", (int64_t)mha_losses_terms(losses), err));
    MHA_TRY(mha_meta_real(m, "loss", mha_importance_summary_get(t->results[0])->loss, err));
    for (size_t i = 0; i < t->count; i++) {
        if (t->count > 1)
            MHA_TRY(mha_meta_object(&one, m, mha_importance_name(t->methods[i]), err));
        MHA_TRY(summary_describe(t, one ? one : m, i, err));
    }
    return MHA_OK;
}

/* "agreement": each pair of methods once. */
static mha_status agreement_describe(mha_importancetable *t, mha_err *err)
{
    mha_meta *section, *pairs, *pair;
    if (t->count < 2)
        return MHA_OK;
    MHA_TRY(mha_table_section(&section, t->table, "agreement", err));
    MHA_TRY(mha_meta_list(&pairs, section, "pairs", err));
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = i + 1; k < t->count; k++) {
            const char *a = mha_importance_name(t->methods[i]);
            const char *b = mha_importance_name(t->methods[k]);
            double spearman, kendall;
            MHA_TRY(
                mha_importance_agreement(t->results[i], t->results[k], &spearman, &kendall, err));
            MHA_TRY(mha_meta_object(&pair, pairs, NULL, err));
            MHA_TRY(mha_meta_text(pair, "a", a, err));
            MHA_TRY(mha_meta_text(pair, "b", b, err));
            MHA_TRY(mha_meta_real(pair, "spearman", spearman, err));
            MHA_TRY(mha_meta_real(pair, "kendall", kendall, err));
            mha_note(t->cli, "%s and %s: Spearman %.2f, Kendall %.2f", a, b, spearman, kendall);
        }
    return MHA_OK;
}

static void note_reliability(const mha_importancetable *t)
{
    for (size_t i = 0; i < t->count; i++) {
        double r = mha_importance_summary_get(t->results[i])->reliability;
        if (r < RELIABLE) /* not when it is NaN */
            mha_note(t->cli,
                     "%s: split-half rank correlation %.2f, below %.1f: with other documents the "
                     "ranking would be another; give more",
                     mha_importance_name(t->methods[i]), r, RELIABLE);
    }
}

/* How well direct attribution adds up, and which heads it says nothing about. */
static void note_directness(const mha_importancetable *t)
{
    for (size_t i = 0; i < t->count; i++) {
        size_t count, none = 0;
        const mha_importance_row *rows = mha_importance_rows(t->results[i], &count);
        if (t->methods[i] != MHA_DLA)
            continue;
        for (size_t u = 0; u < count; u++)
            none += rows[u].score == 0;
        mha_note(t->cli, "dla: all parts of the model sum to its logits within %.1e",
                 mha_importance_summary_get(t->results[i])->completeness);
        if (none > 0)
            mha_note(t->cli,
                     "dla: %zu of %zu write nothing to the logits directly: their score is 0", none,
                     count);
    }
}

/* ---- the table -------------------------------------------------------------------------------
 */

mha_status mha_importancetable_fill(mha_importancetable *t, mha_err *err)
{
    const mha_args *args = &t->cli->args;
    layout l;
    layout_make(&l, t);
    MHA_TRY(mha_table_new(&t->table, "importance", l.columns, l.count, err));
    MHA_TRY(mha_result_describe(t->table, t->cli, err));
    MHA_TRY(settings_describe(t, err));
    MHA_TRY(checks_describe(t, err));
    MHA_TRY(agreement_describe(t, err));
    note_reliability(t);
    note_directness(t);
    for (size_t i = 0; i < t->count; i++)
        MHA_TRY(mha_args_has(args, MHA_OPT_PER_DOCUMENT) ? document_rows(t, &l, i, err)
                : mha_args_has(args, MHA_OPT_BY_LAYER)   ? layer_rows(t, &l, i, err)
                                                         : unit_rows(t, &l, i, err));
    return MHA_OK;
}

mha_status mha_importancetable_arrange(mha_importancetable *t, mha_err *err)
{
    uint64_t top = SIZE_MAX;
    size_t column = mha_table_find(t->table, t->column);
    MHA_TRY(mha_args_uint(&t->cli->args, MHA_OPT_TOP, 1, SIZE_MAX, &top, err));
    if (column == MHA_NO_COLUMN)
        return mha_fail(err, MHA_ERR_ARG, "--sort: this table has no column '%s'", t->column);
    if (t->sorted)
        MHA_TRY(mha_table_sort(t->table, column, !t->ascending, err));
    if (top < mha_table_rows(t->table))
        mha_table_cut(t->table, top);
    return MHA_OK;
}

mha_status mha_importancetable_draw(mha_importancetable *t, const mha_output *out,
                                    const mha_chart_options *chart, mha_err *err)
{
    bool score = strcmp(t->column, columns[SCORE].name) == 0;
    char name[64];
    uint64_t top = BARS;
    mha_headchart c = {.cli = t->cli,
                       .table = t->table,
                       .column = t->column,
                       .lo = score ? columns[LO].name : NULL,
                       .hi = score ? columns[HI].name : NULL};
    snprintf(name, sizeof name, "importance, %s", mha_importance_name(t->methods[0]));
    c.name = score ? name : NULL;
    MHA_TRY(mha_args_uint(&t->cli->args, MHA_OPT_TOP, 1, SIZE_MAX, &top, err));
    MHA_TRY(mha_table_sort(t->table, mha_table_find(t->table, t->column), !t->ascending, err));
    if (t->scoring.options.unit == MHA_UNIT_LAYER)
        return mha_headchart_draw(&c, false, out->path, chart, err);
    return mha_headchart_draw_both(&c, top, out->path, chart, err);
}

void mha_importancetable_release(mha_importancetable *t)
{
    mha_table_free(t->table);
    for (size_t i = 0; i < t->count; i++)
        mha_importance_free(t->results[i]);
    for (size_t i = 0; i < t->count; i++)
        mha_free(t->partials[i]);
    mha_scoring_release(&t->scoring);
}
