/* save_plan.c: which tensors are written, what they consist of, and which of their rows and columns
 * go with the heads. */
#include "base/fail.h"
#include "model/save.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t mha_save_removed(const mha_save *s, size_t attn)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < s->m->info.attn[attn].heads; h++)
        n += mha_save_removes(s, attn, h);
    return n;
}

/* ---- parts by the tensor that they go to ------------------------------------------------------
 */

static int by_tensor(const void *a, const void *b)
{
    const mha_part *x = *(const mha_part *const *)a, *y = *(const mha_part *const *)b;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const mha_part *const *)a)->name, (*(const mha_part *const *)b)->name);
}

static mha_status sort_parts(mha_save *s, const mha_part ***parts,
                             int (*order)(const void *, const void *), mha_err *err)
{
    size_t n = s->m->part_count;
    MHA_TRY(mha_arena_alloc((void **)parts, &s->memory, n, sizeof **parts, err));
    for (size_t i = 0; i < n; i++)
        (*parts)[i] = &s->m->part[i];
    if (n > 0)
        qsort(*parts, n, sizeof **parts, order);
    return MHA_OK;
}

/* ---- cutting ----------------------------------------------------------------------------------
 */

static mha_status make_marks(mha_save *s, bool **marks, uint64_t n, bool value, mha_err *err)
{
    if (*marks != NULL)
        return MHA_OK;
    MHA_TRY(mha_arena_alloc((void **)marks, &s->memory, n, sizeof **marks, err));
    memset(*marks, value, n);
    return MHA_OK;
}

/* Rows `first` … `first + n − 1` of the part go. */
static mha_status cut_rows(mha_save *s, mha_saved_tensor *t, const mha_part *part, uint32_t first,
                           uint32_t n, mha_err *err)
{
    int axis = part->there.in_out ? 1 : 0;
    MHA_TRY(make_marks(s, &t->keep[axis], t->count[axis], true, err));
    for (uint32_t r = first; r < first + n; r++) {
        uint64_t row = part->there.at + (uint64_t)(r / part->there.group) * part->there.step;
        t->keep[axis][row + r % part->there.group] = false;
    }
    return MHA_OK;
}

/* Columns `first` … go, or become 0. */
static mha_status cut_columns(mha_save *s, mha_saved_tensor *t, const mha_part *part,
                              uint32_t first, uint32_t n, mha_err *err)
{
    int axis = part->there.in_out ? 0 : 1;
    bool mask = s->p->mode == MHA_PRUNE_MASK;
    bool **marks = mask ? &t->zero[axis] : &t->keep[axis];
    MHA_TRY(make_marks(s, marks, t->count[axis], !mask, err));
    memset(*marks + first, mask, n);
    return MHA_OK;
}

/* What the removed heads write on average: out[d] = Σ_h Σ_k mean[h·K + k]·W_O[d, h·K + k]. */
static mha_status fold_means(mha_save *s, mha_saved_tensor *t, const mha_part *part, mha_err *err)
{
    const mha_attn_args *a = mha_model_attention(s->m, part->attn);
    const mha_weight *w = &a->o;
    const float *mean = s->p->mean[part->attn];
    const mha_dtype_info *type = mha_dtype_get(w->type);
    double *sum;
    float *row;
    uint64_t outer = w->in_out ? w->in : w->out, inner = w->in_out ? w->out : w->in;
    MHA_TRY(mha_arena_alloc((void **)&sum, &s->memory, w->out, sizeof *sum, err));
    MHA_TRY(mha_arena_alloc((void **)&row, &s->memory, inner, sizeof *row, err));
    for (uint64_t i = 0; i < outer; i++) { /* W_O is one whole tensor: its rows lie in order */
        s->widen[w->type](row, w->data + i * (w->stride / type->block) * type->bytes, inner);
        for (uint64_t k = 0; k < inner; k++) {
            uint64_t d = w->in_out ? k : i, z = w->in_out ? i : k;
            if (mha_save_removes(s, part->attn, (uint32_t)(z / a->width)))
                sum[d] += (double)mean[z] * (double)row[k];
        }
    }
    t->add = sum;
    return MHA_OK;
}

static mha_status cut_part(mha_save *s, mha_saved_tensor *t, const mha_part *part, mha_err *err)
{
    if (part->role == MHA_PART_PLAIN || mha_save_removed(s, part->attn) == 0)
        return MHA_OK;
    const mha_attn_info *a = &s->m->info.attn[part->attn];
    bool slice = s->p->mode == MHA_PRUNE_SLICE;
    uint32_t group = a->heads / a->kv_heads;
    if (part->role == MHA_PART_OUTPUT_BIAS)
        return s->p->mean != NULL ? fold_means(s, t, part, err) : MHA_OK;
    for (uint32_t h = 0; h < a->heads; h++) {
        if (!mha_save_removes(s, part->attn, h))
            continue;
        if (part->role == MHA_PART_OUTPUT)
            MHA_TRY(cut_columns(s, t, part, h * a->width, a->width, err));
        else if (slice && part->role == MHA_PART_QUERY)
            MHA_TRY(cut_rows(s, t, part, h * (part->out / a->heads), part->out / a->heads, err));
        else if (slice && h % group == 0) /* its whole group goes */
            MHA_TRY(cut_rows(s, t, part, h / group * a->width, a->width, err));
    }
    return MHA_OK;
}

static uint64_t count_kept(const mha_saved_tensor *t, int axis)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < t->count[axis]; i++)
        n += t->keep[axis] == NULL || t->keep[axis][i];
    return n;
}

/* The written shape and size, when it is known what is cut. */
static mha_status size_tensor(mha_saved_tensor *t, mha_err *err)
{
    uint64_t n = 0;
    if (t->keep[0] != NULL)
        t->as.shape[0] = count_kept(t, 0);
    if (t->keep[1] != NULL)
        t->as.shape[1] = count_kept(t, 1);
    if (t->add != NULL)
        t->as.type = MHA_F32;
    if (!mha_shape_count(t->as.shape, t->as.rank, &n) ||
        !mha_dtype_size(t->as.type, n, &t->as.bytes))
        return mha_fail(err, MHA_ERR_LIMIT, "tensor %s: its size overflows", t->as.name);
    return MHA_OK;
}

static mha_status cut_tensor(mha_save *s, mha_saved_tensor *t, mha_err *err)
{
    for (size_t i = 0; i < t->parts; i++)
        MHA_TRY(cut_part(s, t, t->part[i], err));
    return size_tensor(t, err);
}

/* ---- from a Hugging Face checkpoint -----------------------------------------------------------
 */

static mha_status plan_copies(mha_save *s, mha_err *err)
{
    const mha_checkpoint *c = s->m->checkpoint;
    const mha_part **parts;
    size_t at = 0, count = s->m->part_count;
    MHA_TRY(sort_parts(s, &parts, by_tensor, err));
    MHA_TRY(
        mha_arena_alloc((void **)&s->tensor, &s->memory, c->tensor_count, sizeof *s->tensor, err));
    for (size_t i = 0; i < c->tensor_count; i++) {
        mha_saved_tensor *t = &s->tensor[s->tensors++];
        const mha_tensor *from = &c->tensors[i];
        *t = (mha_saved_tensor){.as = *from, .from = from, .file = from->file, .count = {1, 1}};
        if (from->rank > 0)
            t->count[0] = from->shape[0];
        for (uint32_t d = 1; d < from->rank; d++)
            t->count[1] *= from->shape[d];
        while (at < count && parts[at]->tensor < from)
            at++;
        for (t->part = parts + at; at < count && parts[at]->tensor == from; at++)
            t->parts++;
        MHA_TRY(cut_tensor(s, t, err));
    }
    return MHA_OK;
}

/* ---- from a GGUF file -------------------------------------------------------------------------
 */

/* Blocks, and gains that are stored otherwise here and there, become float32. */
static mha_dtype gathered_type(const mha_part *const *part, size_t parts)
{
    mha_dtype type = part[0]->tensor->type;
    for (size_t i = 0; i < parts; i++)
        if (part[i]->tensor->type != type || part[i]->added != 0)
            type = MHA_F32;
    return mha_dtype_get(type)->block > 1 ? MHA_F32 : type;
}

static mha_status gather_tensor(mha_save *s, mha_saved_tensor *t, mha_err *err)
{
    const mha_part *first = t->part[0];
    uint32_t in = first->in > 0 ? first->in : 1;
    for (size_t i = 1; i < t->parts; i++)
        if (t->part[i]->in != first->in || t->part[i]->there.of != first->there.of ||
            t->part[i]->there.in_out != first->there.in_out)
            return mha_fail(err, MHA_ERR_INTERNAL, "tensor %s has parts of different shapes",
                            first->name);
    t->as.name = first->name;
    t->as.type = gathered_type(t->part, t->parts);
    t->as.rank = first->in > 0 ? 2 : 1;
    t->count[0] = first->there.in_out ? in : first->there.of;
    t->count[1] = first->there.in_out ? first->there.of : in;
    t->as.shape[0] = t->count[0];
    t->as.shape[1] = t->count[1];
    return cut_tensor(s, t, err);
}

static mha_status plan_gathered(mha_save *s, mha_err *err)
{
    const mha_part **parts;
    size_t count = s->m->part_count;
    MHA_TRY(sort_parts(s, &parts, by_name, err));
    MHA_TRY(mha_arena_alloc((void **)&s->tensor, &s->memory, count, sizeof *s->tensor, err));
    for (size_t at = 0; at < count;) {
        mha_saved_tensor *t = &s->tensor[s->tensors++];
        for (t->part = parts + at; at < count && strcmp(parts[at]->name, t->part[0]->name) == 0;
             at++)
            t->parts++;
        MHA_TRY(gather_tensor(s, t, err));
    }
    return MHA_OK;
}

/* ---- files ------------------------------------------------------------------------------------
 */

/* The largest elements first, so that all of them are aligned; then by name. */
static int by_place(const void *a, const void *b)
{
    const mha_saved_tensor *x = a, *y = b;
    int size_x = mha_dtype_get(x->as.type)->bytes, size_y = mha_dtype_get(y->as.type)->bytes;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return size_x != size_y ? size_y - size_x : strcmp(x->as.name, y->as.name);
}

/* Files keep their names where they are safetensors; what is read from other formats gets those
 * that Transformers looks for. */
static mha_status name_files(mha_save *s, mha_err *err)
{
    const mha_checkpoint *c = s->m->checkpoint;
    bool keeps = strcmp(c->format, "safetensors") == 0;
    s->files = c->gguf != NULL ? 1 : c->file_count;
    MHA_TRY(mha_arena_alloc((void **)&s->file, &s->memory, s->files, sizeof *s->file, err));
    for (size_t i = 0; i < s->files; i++) {
        char name[64] = "model.safetensors";
        char *copy = NULL;
        if (s->files > 1)
            snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, s->files);
        MHA_TRY(mha_arena_strdup(&copy, &s->memory, name, err));
        s->file[i] = keeps ? mha_model_file_name(s->m, i) : copy;
    }
    return MHA_OK;
}

mha_status mha_save_plan(mha_save *s, mha_err *err)
{
    MHA_TRY(name_files(s, err));
    MHA_TRY(s->m->checkpoint->gguf != NULL ? plan_gathered(s, err) : plan_copies(s, err));
    qsort(s->tensor, s->tensors, sizeof *s->tensor, by_place);
    for (size_t i = 0; i < s->tensors; i++)
        s->total += (double)s->tensor[i].as.bytes;
    return MHA_OK;
}
