/* bind_tensor.c: finds the tensors of slots by name, checks their shapes exactly, and makes views
 * of matrices and floats of vectors. Every tensor of the file is accounted for here. */
#include "base/fail.h"
#include "model/binder.h"
#include "model/floats.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 512, SHAPE_TEXT = 160, SINUSOID_MAX = 1 << 26 };

/* ------------------------------------------------------------------------- names */

/* What wrappers of training frameworks put in front of every name. */
static const char *const wrappers[] = {"module.", "_orig_mod."};

mha_status mha_bind_wrapper(mha_binder *b)
{
    const mha_checkpoint *c = b->checkpoint;
    char wrapper[64] = "";
    size_t n = 0;
    for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers;) {
        size_t add = strlen(wrappers[w]), i = 0;
        while (i < c->tensor_count && strncmp(c->tensors[i].name + n, wrappers[w], add) == 0)
            i++;
        if (i < c->tensor_count || c->tensor_count == 0 || n + add >= sizeof wrapper) {
            w++;
            continue;
        }
        memcpy(wrapper + n, wrappers[w], add + 1);
        n += add;
        w = 0; /* they may be nested in any order */
    }
    char *copy;
    MHA_TRY(mha_arena_strdup(&copy, b->memory, wrapper, b->err));
    b->wrapper = copy;
    return MHA_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* wrapper + prefix + name, then the same with each alias that fits. */
static const mha_tensor *find_with_prefix(const mha_binder *b, const char *prefix, const char *name)
{
    char full[NAME_MAX_BYTES];
    int n = snprintf(full, sizeof full, "%s%s%s", b->wrapper, prefix, name);
    if (n < 0 || (size_t)n >= sizeof full)
        return NULL;
    const mha_tensor *t = mha_checkpoint_find(b->checkpoint, full);
    const mha_spec_words *aliases = &b->spec->aliases;
    for (size_t i = 0; t == NULL && i + 1 < aliases->count; i += 2) {
        const char *suffix = aliases->word[i], *old = aliases->word[i + 1];
        size_t stem = (size_t)n - strlen(suffix);
        if (!ends_with(full, suffix) || stem + strlen(old) >= sizeof full)
            continue;
        char renamed[NAME_MAX_BYTES];
        memcpy(renamed, full, stem);
        memcpy(renamed + stem, old, strlen(old) + 1);
        t = mha_checkpoint_find(b->checkpoint, renamed);
    }
    return t;
}

const mha_tensor *mha_binder_find(const mha_binder *b, const char *name)
{
    const mha_tensor *t = NULL;
    for (size_t i = 0; t == NULL && i < b->spec->prefixes.count && !b->gguf; i++)
        t = find_with_prefix(b, b->spec->prefixes.word[i], name);
    return t != NULL ? t : find_with_prefix(b, "", name);
}

static unsigned char *use_of(const mha_binder *b, const mha_tensor *t)
{
    return &b->model->tensor_use[t - b->checkpoint->tensors];
}

mha_status mha_bind_name(mha_binder *b, const mha_spec_slot *slot, char *out, size_t size,
                         const char *pattern, const char *end)
{
    mha_scope scope = mha_binder_scope(b);
    size_t used = 0;
    while (used < size) {
        const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
        int n;
        if (close == NULL) {
            n = snprintf(out + used, size - used, "%s%s", pattern, end);
            if (n >= 0 && (size_t)n < size - used)
                return MHA_OK;
            break;
        }
        char name[64];
        mha_value v;
        snprintf(name, sizeof name, "%.*s", (int)(close - open - 1), open + 1);
        MHA_TRY(scope.name(scope.context, name, &v, b->err));
        if (v.kind != MHA_VALUE_NUMBER || v.number < 0 || v.number > INT32_MAX ||
            v.number != (double)(int32_t)v.number)
            return mha_fail(b->err, MHA_ERR_FORMAT, "%s:%zu: {%s} is not a whole number",
                            b->spec->file, slot->line, name);
        n = snprintf(out + used, size - used, "%.*s%d", (int)(open - pattern), pattern,
                     (int)v.number);
        used += n > 0 ? (size_t)n : size;
        pattern = close + 1;
    }
    return mha_fail(b->err, MHA_ERR_LIMIT, "%s:%zu: the tensor name is too long", b->spec->file,
                    slot->line);
}

static bool same_tensor(const mha_tensor *a, const mha_tensor *b)
{
    return a->type == b->type && a->bytes == b->bytes && a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0 &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

/* Further names of a tensor that was found are second copies, and must be equal to the first. */
static mha_status check_copy(const mha_binder *b, const mha_tensor *first, const mha_tensor *copy)
{
    if (!same_tensor(first, copy))
        return mha_fail(b->err, MHA_ERR_FORMAT,
                        "%s: tensors %s and %s should be copies of each other, but differ",
                        b->checkpoint->path, first->name, copy->name);
    if (*use_of(b, copy) == MHA_TENSOR_UNUSED)
        *use_of(b, copy) = MHA_TENSOR_IGNORED;
    return MHA_OK;
}

/* The tensor of a slot: NULL when none of its names is there. *pattern: the name that was. */
static mha_status find_slot(mha_binder *b, const mha_spec_slot *slot, const char *end,
                            const mha_tensor **out, const char **pattern)
{
    const mha_spec_words *names = b->gguf ? &slot->gguf : &slot->names;
    *out = NULL;
    for (size_t i = 0; i < names->count; i++) {
        char name[NAME_MAX_BYTES];
        MHA_TRY(mha_bind_name(b, slot, name, sizeof name, names->word[i], end));
        const mha_tensor *t = mha_binder_find(b, name);
        if (t == NULL || t == *out)
            continue;
        if (*out != NULL) {
            MHA_TRY(check_copy(b, *out, t));
            continue;
        }
        *out = t;
        *pattern = names->word[i];
        if (*use_of(b, t) == MHA_TENSOR_UNUSED)
            *use_of(b, t) = MHA_TENSOR_IGNORED; /* until a step uses it */
    }
    return MHA_OK;
}

/* ------------------------------------------------------------------------- slots */

mha_status mha_bind_place(mha_binder *b, const mha_spec_slot *slot, uint32_t out, mha_place *r)
{
    *r = (mha_place){out, 0, out, out, false};
    const struct {
        const mha_expr *expr;
        uint32_t *to;
        const char *name;
    } parts[] = {{slot->from, &r->of, "from"},
                 {slot->at, &r->at, "at"},
                 {slot->group, &r->group, "group"},
                 {slot->step, &r->step, "step"}};
    for (size_t i = 0; i < 4; i++)
        if (parts[i].expr != NULL)
            MHA_TRY(mha_binder_count(b, parts[i].expr, slot->line, parts[i].name, parts[i].to));
    MHA_TRY(mha_binder_truth(b, slot->in_out, slot->line, false, &r->in_out));
    if (out == 0) { /* all heads are pruned */
        r->at = 0;
        r->group = r->step = 1;
        return MHA_OK;
    }
    uint64_t last = r->group == 0 ? 0 : (out / r->group - 1) * (uint64_t)r->step + r->group;
    if (r->group == 0 || out % r->group != 0 || r->step < r->group || r->at + last > r->of)
        return mha_fail(b->err, MHA_ERR_FORMAT,
                        "%s:%zu: %s: %u rows in groups of %u every %u from row %u do not lie in %u",
                        b->spec->file, slot->line, slot->name, out, r->group, r->step, r->at,
                        r->of);
    return MHA_OK;
}

static mha_status view_matrix(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound,
                              const mha_place *r)
{
    const mha_tensor *t = bound->tensor;
    const mha_dtype_info *info = mha_dtype_get(t->type);
    uint32_t out = bound->shape[0], in = bound->shape[1];
    bool in_out = r->in_out;
    if (t->type >= MHA_DTYPE_FLOAT_COUNT)
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s where weights are expected (a float type)",
                        b->checkpoint->path, t->name, info->name);
    MHA_TRY(mha_bind_shape_check(b, slot, bound, t, r, in_out));
    if (info->block > 1 && (in_out || in % info->block != 0))
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s, whose blocks of %u do not fit %s",
                        b->checkpoint->path, t->name, info->name, info->block,
                        in_out ? "a transposed matrix" : "its rows");
    if (bound->columns != 0 && (in_out || info->block > 1))
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s: its columns cannot be cut", b->checkpoint->path,
                        t->name, info->name);
    uint32_t stored = bound->columns != 0 ? bound->columns : in;
    uint64_t row = in_out ? info->bytes : (uint64_t)(stored / info->block) * info->bytes;
    bound->weight = (mha_weight){
        .data = t->data + r->at * row + (uint64_t)bound->column * info->bytes,
        .name = t->name,
        .type = t->type,
        .out = out,
        .in = in,
        .stride = in_out ? r->of : stored,
        .group = r->group,
        .group_stride = r->step,
        .in_out = in_out,
    };
    return MHA_OK;
}

/* Notes where a vector came from. The list doubles when its length is a power of two. */
static mha_status note_vector(mha_binder *b, const float *values, const mha_tensor *t,
                              const mha_float_slice *s)
{
    struct mha_model *m = b->model;
    size_t n = m->vector_count;
    void *p = m->vectors;
    if ((n & (n - 1)) == 0) {
        MHA_TRY(mha_grow(&p, n, n == 0 ? 1 : 2 * n, sizeof *m->vectors, b->err));
        m->vectors = p;
    }
    m->vectors[m->vector_count++] = (mha_vector){values, t, s->at, s->group, s->step, s->n};
    return MHA_OK;
}

/* A tensor of the slot's rows as floats, its shape checked before: biases, norms, vectors and
 * tables (whose `inner` is the second dim). */
static mha_status read_floats(mha_binder *b, const mha_spec_slot *slot, const mha_tensor *t,
                              const mha_place *r, uint32_t out, uint32_t inner, float add,
                              const float **values)
{
    uint64_t scale = slot->kind == MHA_SLOT_TABLE ? inner : 1;
    if (out * scale > INT32_MAX)
        return mha_fail(b->err, MHA_ERR_LIMIT, "%s: tensor %s is too large for a vector",
                        b->checkpoint->path, t->name);
    mha_float_slice slice = {r->at * scale, r->group * scale, r->step * scale,
                             (uint32_t)(out * scale), add};
    MHA_TRY(mha_floats_read(values, b->memory, t, &slice, b->checkpoint->path, b->err));
    return note_vector(b, *values, t, &slice);
}

/* The tensor's name with {l} put back where the number of the layer stands. */
static void layer_name(char *out, size_t size, const mha_binder *b, const char *name,
                       const char *pattern)
{
    char begin[NAME_MAX_BYTES];
    const char *l = strstr(pattern, "{l}");
    snprintf(begin, sizeof begin, "%.*s", l == NULL ? 0 : (int)(l - pattern), pattern);
    const char *head = strstr(name, begin);
    if (l == NULL || head == NULL) {
        snprintf(out, size, "%s", name);
        return;
    }
    size_t before = (size_t)(head - name) + strlen(begin);
    size_t digits = (size_t)snprintf(NULL, 0, "%d", b->layer);
    snprintf(out, size, "%.*s{l}%s", (int)before, name, name + before + digits);
}

/* "F32 [48, 48] bert.encoder.layer.{l}.….weight + bias" */
static mha_status label_slot(mha_binder *b, mha_bound *bound, const char *pattern,
                             const mha_place *r)
{
    char name[NAME_MAX_BYTES], shape[32], fused[64] = "", text[NAME_MAX_BYTES + 128];
    layer_name(name, sizeof name, b, bound->tensor->name, pattern);
    if (bound->rank == 2)
        snprintf(shape, sizeof shape, "[%u, %u]", bound->shape[0], bound->shape[1]);
    else
        snprintf(shape, sizeof shape, "[%u]", bound->shape[0]);
    if (r->of != bound->shape[0])
        snprintf(fused, sizeof fused, " from row %u of %u", r->at, r->of);
    snprintf(text, sizeof text, "%s %s %s%s%s", mha_dtype_get(bound->tensor->type)->name, shape,
             name, fused, bound->bias != NULL ? " + bias" : "");
    char *copy;
    MHA_TRY(mha_arena_strdup(&copy, b->memory, text, b->err));
    bound->label = copy;
    return MHA_OK;
}

static mha_status missing(mha_binder *b, const mha_spec_slot *slot, const mha_bound *bound,
                          const char *end)
{
    const mha_spec_words *names = b->gguf ? &slot->gguf : &slot->names;
    if (names->count == 0)
        return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                        "%s: files of this format have no tensor for \"%s\" of family %s",
                        b->checkpoint->path, slot->name, b->spec->name);
    char name[NAME_MAX_BYTES], shape[SHAPE_TEXT];
    MHA_TRY(mha_bind_name(b, slot, name, sizeof name, names->word[0], end));
    mha_bind_shape_text(shape, sizeof shape, slot->shape, bound->dims,
                        strcmp(end, ".bias") ? slot->dims : 1);
    return mha_fail(b->err, MHA_ERR_FORMAT, "%s: tensor %s%s %s is missing", b->checkpoint->path,
                    b->gguf || b->spec->prefixes.count == 0 ? "" : b->spec->prefixes.word[0], name,
                    shape);
}

/* What the slot is tied to; NULL when it is not tied, or when that is absent too. */
static const mha_bound *tied_slot(const mha_binder *b, const mha_spec_slot *slot)
{
    size_t other;
    if (slot->tied == NULL || !mha_spec_slot_find(b->spec, slot->tied, slot->scope, &other))
        return NULL;
    return b->bound[other].tensor != NULL ? &b->bound[other] : NULL;
}

static mha_status make_sinusoid(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound)
{
    uint32_t out = bound->shape[0], in = bound->shape[1];
    const float *table;
    char label[64], *copy;
    if ((uint64_t)out * in > SINUSOID_MAX)
        return mha_fail(b->err, MHA_ERR_LIMIT, "%s: %s: a table of %u positions, %u wide",
                        b->config_file, slot->name, out, in);
    MHA_TRY(mha_floats_sinusoid(&table, b->memory, out, in, b->err));
    bound->weight = (mha_weight){.data = (const unsigned char *)table,
                                 .name = slot->name,
                                 .type = MHA_F32,
                                 .out = out,
                                 .in = in,
                                 .stride = in,
                                 .group = out,
                                 .group_stride = out};
    snprintf(label, sizeof label, "computed [%u, %u]", out, in);
    MHA_TRY(mha_arena_strdup(&copy, b->memory, label, b->err));
    bound->label = copy;
    return MHA_OK;
}

/* What happens when none of the names is there. */
static mha_status bind_absent(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound)
{
    bool tied, optional;
    const mha_bound *from = tied_slot(b, slot);
    MHA_TRY(mha_binder_truth(b, slot->tied_when, slot->line, true, &tied));
    if (tied && from != NULL) {
        if (from->shape[0] != bound->shape[0] || from->shape[1] != bound->shape[1])
            return mha_fail(b->err, MHA_ERR_FORMAT,
                            "%s:%zu: %s is tied to %s, which has another shape", b->spec->file,
                            slot->line, slot->name, slot->tied);
        *bound = *from;
        return MHA_OK;
    }
    MHA_TRY(mha_binder_truth(b, slot->sinusoid, slot->line, false, &bound->made));
    if (bound->made)
        return make_sinusoid(b, slot, bound);
    MHA_TRY(mha_binder_truth(b, slot->optional, slot->line, false, &optional));
    bool whole = slot->kind == MHA_SLOT_LINEAR || slot->kind == MHA_SLOT_NORM;
    return optional ? MHA_OK : missing(b, slot, bound, whole ? ".weight" : "");
}

static mha_status bind_bias(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound,
                            const mha_place *r)
{
    bool has_bias;
    const char *pattern;
    MHA_TRY(mha_binder_truth(b, slot->bias, slot->line, true, &has_bias));
    if (!has_bias)
        return MHA_OK;
    MHA_TRY(find_slot(b, slot, ".bias", &bound->bias, &pattern));
    if (bound->bias == NULL)
        return missing(b, slot, bound, ".bias");
    const mha_expr *dims[1] = {slot->from != NULL ? slot->from : slot->shape[bound->rows_at]};
    uint64_t values[1] = {r->of};
    MHA_TRY(mha_bind_shape_match(b, bound->bias, dims, values, 1));
    return read_floats(b, slot, bound->bias, r, bound->shape[0], 0, 0, &bound->b);
}

static mha_status bind_slot(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound)
{
    bool declared, plus_one;
    *bound = (mha_bound){.done = true};
    MHA_TRY(mha_binder_truth(b, slot->when, slot->line, true, &declared));
    if (!declared)
        return MHA_OK;
    MHA_TRY(mha_bind_shape_eval(b, slot, bound));
    bool whole = slot->kind == MHA_SLOT_LINEAR || slot->kind == MHA_SLOT_NORM;
    const char *pattern = NULL;
    mha_place r;
    MHA_TRY(mha_bind_place(b, slot, bound->shape[0], &r));
    MHA_TRY(find_slot(b, slot, whole ? ".weight" : "", &bound->tensor, &pattern));
    if (bound->tensor == NULL)
        return bind_absent(b, slot, bound);
    const mha_bound *tied = slot->kind == MHA_SLOT_MATRIX ? tied_slot(b, slot) : NULL;
    if (tied != NULL && same_tensor(tied->tensor, bound->tensor)) {
        *bound = *tied; /* old files hold the tied matrix twice: it is read once */
        return MHA_OK;
    }
    if (slot->kind == MHA_SLOT_LINEAR || slot->kind == MHA_SLOT_MATRIX) {
        MHA_TRY(view_matrix(b, slot, bound, &r));
    } else {
        MHA_TRY(mha_binder_truth(b, slot->plus_one, slot->line, false, &plus_one));
        MHA_TRY(mha_bind_shape_check(b, slot, bound, bound->tensor, &r, false));
        MHA_TRY(read_floats(b, slot, bound->tensor, &r, bound->shape[0], bound->shape[1],
                            plus_one ? 1 : 0, &bound->w));
    }
    if (whole)
        MHA_TRY(bind_bias(b, slot, bound, &r));
    MHA_TRY(mha_bind_parts(b, slot, bound, &r));
    return label_slot(b, bound, pattern, &r);
}

mha_status mha_bind_slots(mha_binder *b, int scope)
{
    for (size_t i = 0; i < b->spec->slot_count; i++) {
        const mha_spec_slot *slot = &b->spec->slots[i];
        const mha_spec_step *owner = mha_bind_owner(b, i);
        if (slot->scope != scope || slot->per_layer != (b->layer >= 0))
            continue;
        MHA_TRY(mha_bind_narrow(b, owner, owner != NULL ? b->spec->stacks[scope].id : MHA_ENC));
        MHA_TRY(bind_slot(b, slot, &b->bound[i]));
    }
    return mha_bind_narrow(b, NULL, MHA_ENC);
}

/* --------------------------------------------------------------------- leftovers */

static bool is_ignored(const mha_binder *b, const char *name)
{
    for (size_t i = 0; i < b->spec->ignored.count; i++)
        if (mha_glob(b->spec->ignored.word[i], name + strlen(b->wrapper)))
            return true;
    return false;
}

mha_status mha_bind_leftovers(mha_binder *b, bool allow_unused)
{
    const mha_checkpoint *c = b->checkpoint;
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < c->tensor_count; i++) {
        const char *name = c->tensors[i].name;
        if (b->model->tensor_use[i] != MHA_TENSOR_UNUSED || is_ignored(b, name))
            continue;
        if (count++ == 0 || strcmp(name, first) < 0)
            first = name;
    }
    if (count == 0)
        return MHA_OK;
    if (allow_unused)
        return mha_buf_addf(&b->text, b->err, "unused: %zu tensors, the first is %.200s\n", count,
                            first);
    char more[48] = "";
    if (count > 1)
        snprintf(more, sizeof more, " (and %zu more)", count - 1);
    return mha_fail(b->err, MHA_ERR_UNSUPPORTED, "%s: tensor %s%s has no place in family %s%s%.60s",
                    c->path, first, more, b->spec->name, b->arch[0] != '\0' ? ", read as " : "",
                    b->arch);
}
