/* scores.c: a ranking from a saved table, matched to the heads of a model. The table is somebody's
 * file: nothing in it is taken on trust. */
#include "base/fail.h"
#include "mha/analysis.h"
#include <math.h>
#include <string.h>

typedef struct reading {
    const mha_model_info *info;
    const mha_table *table;
    size_t stride;
    size_t stack, kind, layer, head, group, score; /* columns */
} reading;

static mha_status columns_find(reading *r, const char *column, mha_err *err)
{
    r->stack = mha_table_find(r->table, "stack");
    r->kind = mha_table_find(r->table, "kind");
    r->layer = mha_table_find(r->table, "layer");
    r->head = mha_table_find(r->table, "head");
    r->group = mha_table_find(r->table, "group");
    r->score = mha_table_find(r->table, column);
    if (r->stack == MHA_NO_COLUMN || r->kind == MHA_NO_COLUMN || r->layer == MHA_NO_COLUMN)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "not a table of heads: no columns stack, kind and layer");
    if (r->score == MHA_NO_COLUMN)
        return mha_fail(err, MHA_ERR_FORMAT, "the table has no column '%s'", column);
    return MHA_OK;
}

static mha_status model_check(const reading *r, mha_err *err)
{
    const mha_meta *model = mha_table_get_section(r->table, "model");
    const char *fingerprint;
    if (model == NULL || !mha_meta_get_text(model, "fingerprint", &fingerprint) ||
        strcmp(fingerprint, r->info->fingerprint) == 0)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_ARG,
                    "the ranking is of another model (fingerprint %.12s…, not %.12s…)", fingerprint,
                    r->info->fingerprint);
}

/* The attention step of a row, or attn_count. */
static size_t step_find(const reading *r, const char *stack, const char *kind, int64_t layer)
{
    size_t a = 0;
    while (a < r->info->attn_count && (strcmp(stack, mha_stack_name(r->info->attn[a].stack)) != 0 ||
                                       strcmp(kind, mha_kind_name(r->info->attn[a].kind)) != 0 ||
                                       layer != (int64_t)r->info->attn[a].layer))
        a++;
    return a;
}

/* Whether head h of the step is one that the row is about. */
static bool is_meant(const reading *r, const mha_attn_info *step, uint32_t h, int64_t number)
{
    if (r->head != MHA_NO_COLUMN)
        return step->head_ids[h] == number;
    if (r->group != MHA_NO_COLUMN)
        return h / (step->heads / step->kv_heads) == number;
    return true;
}

static mha_status row_read(const reading *r, size_t row, double *out, mha_err *err)
{
    size_t column = r->head != MHA_NO_COLUMN ? r->head : r->group;
    int64_t layer = -1, number = 0;
    bool any = false, twice = false;
    const char *stack = mha_table_get_text(r->table, row, r->stack);
    const char *kind = mha_table_get_text(r->table, row, r->kind);
    if (stack == NULL || kind == NULL || !mha_table_get_int(r->table, row, r->layer, &layer) ||
        (column != MHA_NO_COLUMN && !mha_table_get_int(r->table, row, column, &number)))
        return mha_fail(err, MHA_ERR_FORMAT, "row %zu names no head", row + 1);
    size_t a = step_find(r, stack, kind, layer);
    const mha_attn_info *step = &r->info->attn[a];
    for (uint32_t h = 0; a < r->info->attn_count && h < step->heads; h++) {
        if (!is_meant(r, step, h, number))
            continue;
        double *score = &out[a * r->stride + h];
        twice = twice || !isnan(*score);
        any = true;
        *score = mha_table_get_real(r->table, row, r->score);
    }
    if (!any)
        return mha_fail(err, MHA_ERR_FORMAT, "row %zu: the model has no %s %lld in %s.%s.%lld",
                        row + 1, r->head != MHA_NO_COLUMN ? "head" : "group", (long long)number,
                        stack, kind, (long long)layer);
    if (twice)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "row %zu: its head stood in the table already (a table of one method is "
                        "needed)",
                        row + 1);
    return MHA_OK;
}

mha_status mha_scores_read(double *out, const mha_model *model, const mha_table *table,
                           const char *column, mha_err *err)
{
    reading r = {.info = mha_model_info_get(model), .table = table};
    for (size_t a = 0; a < r.info->attn_count; a++)
        r.stride = r.info->attn[a].heads > r.stride ? r.info->attn[a].heads : r.stride;
    MHA_TRY(columns_find(&r, column, err));
    MHA_TRY(model_check(&r, err));
    for (size_t i = 0; i < r.info->attn_count * r.stride; i++)
        out[i] = (double)NAN;
    for (size_t row = 0; row < mha_table_rows(table); row++)
        MHA_TRY(row_read(&r, row, out, err));
    return MHA_OK;
}
