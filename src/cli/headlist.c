/* headlist.c: see headlist.h. Knows names and numbers only. */
#include "cli/headlist.h"

#include "base/fail.h"
#include "cli/nearest.h"
#include "mha/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- lists ------------------------------------------------------------------------------------
 */

static bool step_allowed(const mha_cli *cli, const mha_head_item *it, const mha_attn_info *step)
{
    int stack = mha_args_choice(&cli->args, MHA_OPT_STACK);
    int kind = mha_args_choice(&cli->args, MHA_OPT_KIND);
    return (stack < 0 || (int)step->stack == stack) && (kind < 0 || (int)step->kind == kind) &&
           mha_head_item_has_step(it, step);
}

/* Whether the item can mean the step, and whether a number of it was ever a head there. */
static bool item_meets(const mha_cli *cli, const mha_head_item *it, const mha_attn_info *step)
{
    return step_allowed(cli, it, step) && it->head.first < step->original_heads;
}

static mha_status item_check(const mha_cli *cli, const mha_head_item *it, mha_option_id id,
                             const char *text, int n, mha_err *err)
{
    const mha_model_info *info = cli->info;
    const mha_attn_info *first = NULL;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        if (!item_meets(cli, it, step))
            continue;
        if (first != NULL && (first->stack != step->stack || first->kind != step->kind))
            return mha_fail(err, MHA_ERR_ARG,
                            "%s: '%.*s' means heads of %s.%s and of %s.%s; write it in full, "
                            "%s.%s.LAYER.HEAD, or give --stack and --kind",
                            mha_options[id].name, n, text, mha_stack_name(first->stack),
                            mha_kind_name(first->kind), mha_stack_name(step->stack),
                            mha_kind_name(step->kind), mha_stack_name(step->stack),
                            mha_kind_name(step->kind));
        first = step;
    }
    return first != NULL && mha_head_item_ends(it, info)
               ? MHA_OK
               : mha_fail(err, MHA_ERR_ARG, "%s: the model has no head %.*s", mha_options[id].name,
                          n, text);
}

static size_t item_mark(const mha_cli *cli, const mha_head_item *it, size_t stride, bool *marks)
{
    const mha_model_info *info = cli->info;
    size_t gone = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        uint32_t i = 0;
        for (uint32_t h = 0; item_meets(cli, it, step) && h < step->original_heads; h++) {
            bool there = i < step->heads && step->head_ids[i] == h;
            bool named = h >= it->head.first && h <= it->head.last;
            if (named && there)
                marks[a * stride + i] = true;
            if (named && !there && it->head.last != UINT64_MAX)
                mha_note(cli, "head %s.%s.%" PRIu32 ".%" PRIu32 " was already gone",
                         mha_stack_name(step->stack), mha_kind_name(step->kind), step->layer, h);
            gone += named && !there;
            i += there;
        }
    }
    return gone;
}

mha_status mha_headlist_mark(bool *marks, size_t *gone, const mha_cli *cli, mha_option_id id,
                             size_t stride, mha_err *err)
{
    const char *at = mha_args_get(&cli->args, id);
    *gone = 0;
    for (;; at++) {
        size_t n = strcspn(at, ",");
        mha_head_item it;
        if (!mha_head_item_parse(&it, at, n))
            return mha_fail(err, MHA_ERR_ARG,
                            "%s: '%.*s' is not LAYER.HEAD or STACK.KIND.LAYER.HEAD",
                            mha_options[id].name, (int)n, at);
        MHA_TRY(item_check(cli, &it, id, at, (int)n, err));
        *gone += item_mark(cli, &it, stride, marks);
        at += n;
        if (!*at)
            return MHA_OK;
    }
}

/* ---- scores -----------------------------------------------------------------------------------
 */

enum { STACK, KIND, LAYER, HEAD, SCORE, COLUMNS };

typedef struct ranking {
    const mha_cli *cli;
    const char *path;
    mha_table *table;
    size_t column[COLUMNS];
    uint32_t unit; /* 0: heads, 1: key/value groups, 2: all heads of a step */
    double sign;   /* of a column that is better when it is lower, -1 */
} ranking;

static mha_status column_missing(const ranking *r, const char *by, mha_err *err)
{
    mha_nearest nearest = {.word = by};
    for (size_t c = 0; c < mha_table_columns(r->table); c++)
        if (c != r->column[STACK] && c != r->column[KIND] && c != r->column[LAYER] &&
            c != r->column[HEAD])
            mha_nearest_try(&nearest, mha_table_column(r->table, c)->name);
    return mha_fail(err, MHA_ERR_ARG, "--by: %s has no column '%s'; the nearest is '%s'", r->path,
                    by, nearest.best ? nearest.best : "");
}

static mha_status columns_find(ranking *r, mha_err *err)
{
    const char *by = mha_args_get(&r->cli->args, MHA_OPT_BY);
    const char *names[COLUMNS] = {"stack", "kind", "layer", r->unit == 1 ? "group" : "head",
                                  by ? by : "score"};
    r->sign = strncmp(names[SCORE], "rank", 4) == 0 ? -1 : 1;
    for (int c = 0; c < COLUMNS; c++) {
        r->column[c] = mha_table_find(r->table, names[c]);
        if (r->column[c] == MHA_NO_COLUMN && c == SCORE && by)
            return column_missing(r, by, err);
        if (r->column[c] == MHA_NO_COLUMN && !(c == HEAD && r->unit == 2))
            return mha_fail(err, MHA_ERR_FORMAT, "%s: the table has no column '%s'", r->path,
                            names[c]);
    }
    return MHA_OK;
}

static bool is_pruned(const mha_model_info *info)
{
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].heads < info->attn[a].original_heads)
            return true;
    return false;
}

/* A table knows its model when it is JSON. The ranking of a whole model serves its pruned ones. */
static mha_status model_check(ranking *r, mha_err *err)
{
    const char *fingerprint, *unit;
    const mha_meta *model = mha_table_get_section(r->table, "model");
    const mha_meta *settings = mha_table_get_section(r->table, "settings");
    bool head = mha_table_find(r->table, "head") != MHA_NO_COLUMN;
    r->unit = mha_table_find(r->table, "group") != MHA_NO_COLUMN ? 1 : head ? 0 : 2;
    if (settings && mha_meta_get_text(settings, "unit", &unit))
        r->unit = strcmp(unit, "kv-group") == 0 ? 1 : strcmp(unit, "layer") == 0 ? 2 : 0;
    if (!model || !mha_meta_get_text(model, "fingerprint", &fingerprint)) {
        mha_note(r->cli, "%s does not say which model it ranks, as a .json table would", r->path);
        return MHA_OK;
    }
    if (strcmp(fingerprint, r->cli->info->fingerprint) == 0)
        return MHA_OK;
    if (!is_pruned(r->cli->info))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: ranks the heads of another model (fingerprint %.12s, not %.12s)",
                        r->path, fingerprint, r->cli->info->fingerprint);
    mha_note(r->cli, "%s ranks the heads of other weights, taken to be the model before pruning",
             r->path);
    return MHA_OK;
}

static size_t step_named(const ranking *r, size_t row)
{
    const mha_model_info *info = r->cli->info;
    const char *stack = mha_table_get_text(r->table, row, r->column[STACK]);
    const char *kind = mha_table_get_text(r->table, row, r->column[KIND]);
    int64_t layer;
    if (!stack || !kind || !mha_table_get_int(r->table, row, r->column[LAYER], &layer))
        return SIZE_MAX;
    for (size_t a = 0; a < info->attn_count; a++)
        if (strcmp(mha_stack_name(info->attn[a].stack), stack) == 0 &&
            strcmp(mha_kind_name(info->attn[a].kind), kind) == 0 && info->attn[a].layer == layer)
            return a;
    return SIZE_MAX;
}

/* Whether a row's number stands for the head at index h. */
static bool row_means(const ranking *r, const mha_attn_info *step, int64_t number, uint32_t h)
{
    uint32_t group = step->heads / step->kv_heads;
    return r->unit == 2 || (r->unit == 1 ? h / group == number : step->head_ids[h] == number);
}

/* The last of several rows must not win in silence: which method or document would rank? */
static mha_status head_take(const ranking *r, double *score, size_t row, mha_err *err)
{
    if (!isnan(*score))
        return mha_fail(
            err, MHA_ERR_FORMAT,
            "%s: row %zu scores a head again; a ranking has one row a head: one method, "
            "no --per-document",
            r->path, row + 1);
    *score = r->sign * mha_table_get_real(r->table, row, r->column[SCORE]);
    return MHA_OK;
}

static mha_status rows_take(const ranking *r, double *scores, size_t stride, mha_err *err)
{
    for (size_t row = 0; row < mha_table_rows(r->table); row++) {
        size_t a = step_named(r, row);
        int64_t number = -1;
        bool known = r->unit == 2 || mha_table_get_int(r->table, row, r->column[HEAD], &number);
        if (a == SIZE_MAX || !known || number >= (int64_t)r->cli->info->attn[a].original_heads)
            return mha_fail(err, MHA_ERR_FORMAT, "%s: row %zu names no head of this model", r->path,
                            row + 1);
        const mha_attn_info *step = &r->cli->info->attn[a];
        for (uint32_t h = 0; h < step->heads; h++)
            if (row_means(r, step, number, h))
                MHA_TRY(head_take(r, &scores[a * stride + h], row, err));
    }
    return MHA_OK;
}

mha_status mha_headlist_scores(double *scores, const mha_cli *cli, const char *path, size_t stride,
                               mha_err *err)
{
    ranking r = {.cli = cli, .path = path};
    for (size_t i = 0; i < cli->info->attn_count * stride; i++)
        scores[i] = (double)NAN;
    MHA_TRY(mha_table_open(&r.table, path, err));
    mha_status status = model_check(&r, err);
    if (status == MHA_OK)
        status = columns_find(&r, err);
    if (status == MHA_OK)
        status = rows_take(&r, scores, stride, err);
    mha_table_free(r.table);
    return status;
}
