/* bind_shape.c: the shapes that slots declare: their dims, what these are as a matrix or vector,
 * and whether a tensor has exactly them. It reads no data. */
#include "base/fail.h"
#include "model/binder.h"
#include <stdio.h>
#include <string.h>

enum { SHAPE_TEXT = 160 };

/* "[2·D=48, V]" style is not needed: a plain number shows only once. */
void mha_bind_shape_text(char *out, size_t size, const mha_expr *const *dims,
                         const uint64_t *values, size_t rank)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < rank && used < size; i++) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)values[i]);
        bool plain = strcmp(mha_expr_text(dims[i]), number) == 0;
        int n = snprintf(out + used, size - used, "%s%.40s%s%s", i == 0 ? "[" : ", ",
                         mha_expr_text(dims[i]), plain ? "" : "=", plain ? "" : number);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size)
        memcpy(out + used, "]", 2);
}

static void found_text(char *out, size_t size, const mha_tensor *t)
{
    size_t used = 0;
    int n = snprintf(out, size, "[");
    for (size_t i = 0; n > 0; i++) {
        used += (size_t)n;
        if (i == t->rank || used >= size)
            break;
        n = snprintf(out + used, size - used, "%s%llu", i == 0 ? "" : ", ",
                     (unsigned long long)t->shape[i]);
    }
    if (used + 1 < size)
        memcpy(out + used, "]", 2);
}

mha_status mha_bind_shape_match(const mha_binder *b, const mha_tensor *t,
                                const mha_expr *const *dims, const uint64_t *values, size_t rank)
{
    bool same = t->rank == rank;
    for (size_t i = 0; same && i < rank; i++)
        same = t->shape[i] == values[i];
    if (same)
        return MHA_OK;
    char expected[SHAPE_TEXT], found[SHAPE_TEXT];
    mha_bind_shape_text(expected, sizeof expected, dims, values, rank);
    found_text(found, sizeof found, t);
    bool turned = rank == 2 && t->rank == 2 && t->shape[0] == values[1] && t->shape[1] == values[0];
    return mha_fail(b->err, MHA_ERR_FORMAT, "%s: tensor %s: expected %s, found %s%s",
                    b->checkpoint->path, t->name, expected, found,
                    turned ? " (stored transposed?)" : "");
}

/* The tensor against the declared dims, with all the rows that it has. */
mha_status mha_bind_shape_check(const mha_binder *b, const mha_spec_slot *slot,
                                const mha_bound *bound, const mha_tensor *t, const mha_place *r,
                                bool in_out)
{
    const mha_expr *dims[MHA_SLOT_DIMS_MAX];
    uint64_t values[MHA_SLOT_DIMS_MAX];
    memcpy(dims, slot->shape, sizeof dims);
    memcpy(values, bound->dims, sizeof values);
    dims[bound->rows_at] = slot->from != NULL ? slot->from : slot->shape[bound->rows_at];
    values[bound->rows_at] = slot->from != NULL ? r->of : bound->dims[bound->rows_at];
    if (slot->columns != NULL) {
        dims[1] = slot->columns;
        values[1] = bound->columns;
    }
    if (in_out) {
        const mha_expr *out = dims[0];
        uint64_t rows_out = values[0];
        dims[0] = dims[1], dims[1] = out;
        values[0] = values[1], values[1] = rows_out;
    }
    return mha_bind_shape_match(b, t, dims, values, slot->dims);
}

static mha_status eval_columns(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound)
{
    if (slot->columns != NULL)
        MHA_TRY(mha_binder_count(b, slot->columns, slot->line, "columns", &bound->columns));
    if (slot->column != NULL)
        MHA_TRY(mha_binder_count(b, slot->column, slot->line, "column", &bound->column));
    if ((slot->columns == NULL) != (slot->column == NULL) ||
        (slot->columns != NULL &&
         (slot->dims != 2 || (uint64_t)bound->column + bound->shape[1] > bound->columns)))
        return mha_fail(b->err, MHA_ERR_FORMAT,
                        "%s:%zu: %s: %u columns from %u on do not lie in %u", b->spec->file,
                        slot->line, slot->name, bound->shape[1], bound->column, bound->columns);
    return MHA_OK;
}

/* The declared dims, and what they are as a matrix or vector. */
mha_status mha_bind_shape_eval(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound)
{
    bool flat = slot->kind == MHA_SLOT_NORM || slot->kind == MHA_SLOT_VECTOR;
    uint64_t size[2] = {1, 1};
    for (size_t i = 0; i < slot->dims; i++) {
        uint32_t n;
        MHA_TRY(mha_binder_count(b, slot->shape[i], slot->line, "a dim", &n));
        if (n == 0 && !(b->narrow.active && b->narrow.heads == 0))
            return mha_fail(b->err, MHA_ERR_FORMAT, "%s: dim %zu of %s, %s, is 0", b->config_file,
                            i, slot->name, mha_expr_text(slot->shape[i]));
        bound->dims[i] = n;
    }
    bool row = !flat && slot->dims == 1;
    size_t least = flat || row ? 1 : 2;
    while (bound->rows_at + least < slot->dims && bound->dims[bound->rows_at] == 1)
        bound->rows_at++;
    for (size_t i = bound->rows_at; i < slot->dims; i++) {
        uint64_t *n = &size[!flat && i > bound->rows_at];
        *n *= bound->dims[i];
        if (*n > INT32_MAX)
            return mha_fail(b->err, MHA_ERR_LIMIT, "%s: %s has too many elements", b->config_file,
                            slot->name);
    }
    bound->rank = flat ? 1 : 2;
    bound->shape[0] = row ? 1 : (uint32_t)size[0];
    bound->shape[1] = flat ? 0 : row ? (uint32_t)size[0] : (uint32_t)size[1];
    return eval_columns(b, slot, bound);
}
