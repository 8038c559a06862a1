/* save_write.c: the weight files: tensors row by row, without the rows and columns that go, and the
 * index of several files. */
#include "base/fail.h"
#include "base/mem.h"
#include "io/safetensors_write.h"
#include "model/save.h"
#include <stdio.h>
#include <string.h>

/* Where the stored rows of a tensor come from before they are cut: an array that holds the whole
 * matrix, or parts from which each row is fetched. */
typedef struct source {
    const mha_save *s;
    const mha_saved_tensor *t;
    size_t size;                /* bytes of an element */
    const unsigned char *whole; /* [count[0], count[1]], or NULL */
    float *wide;                /* room for a row that is widened */
} source;

/* ---- rows of a GGUF file ----------------------------------------------------------------------
 */

/* The part that holds stored row `row` of the result, and the row's number in it. */
static const mha_part *find_row(const mha_saved_tensor *t, uint64_t row, uint32_t *r)
{
    for (size_t i = 0; i < t->parts; i++) {
        const mha_place *p = &t->part[i]->there;
        if (row < p->at)
            continue;
        uint64_t block = (row - p->at) / p->step, in_block = (row - p->at) % p->step;
        if (in_block >= p->group || block * p->group + in_block >= t->part[i]->out)
            continue;
        *r = (uint32_t)(block * p->group + in_block);
        return t->part[i];
    }
    return NULL;
}

/* The row that stands for row r where rotary pairs lie beside each other: in each head row
 * a·R/2 + b is row 2b + a. */
static uint32_t unpair(const mha_save *s, const mha_part *part, uint32_t r)
{
    const mha_attn_info *a = &s->m->info.attn[part->attn];
    uint32_t head = r / a->width * a->width, k = r % a->width, half = part->paired / 2;
    return k < part->paired ? head + k % half * 2 + k / half : r;
}

/* A row as stored, or widened. Borrowed until the next one. */
static mha_status fetch_row(const source *src, uint64_t row, const unsigned char **out,
                            mha_err *err)
{
    const mha_saved_tensor *t = src->t;
    uint32_t r = 0;
    const mha_part *part = find_row(t, row, &r);
    if (part == NULL)
        return mha_fail(err, MHA_ERR_INTERNAL, "tensor %s: nothing belongs into row %llu",
                        t->as.name, (unsigned long long)row);
    if (part->paired > 0)
        r = unpair(src->s, part, r);
    const mha_dtype_info *type = mha_dtype_get(part->tensor->type);
    uint64_t at =
        part->here.at + (uint64_t)(r / part->here.group) * part->here.step + r % part->here.group;
    uint64_t n = part->in > 0 ? part->in : 1;
    const unsigned char *stored = part->tensor->data + at * n / type->block * type->bytes;
    *out = stored;
    if (t->as.type == part->tensor->type && part->added == 0)
        return MHA_OK;
    src->s->widen[part->tensor->type](src->wide, stored, n);
    for (uint64_t i = 0; part->added != 0 && i < n; i++)
        src->wide[i] += part->added;
    *out = (const unsigned char *)src->wide;
    return MHA_OK;
}

/* The whole of a tensor that is stored the other way round in a Hugging Face checkpoint. */
static mha_status gather_turned(const source *src, unsigned char **out, mha_err *err)
{
    const mha_saved_tensor *t = src->t;
    uint64_t rows = t->count[1], cols = t->count[0];
    size_t bytes;
    if (mha_mul_overflows(rows, cols, &bytes))
        return mha_fail(err, MHA_ERR_NOMEM, "tensor %s: out of memory", t->as.name);
    MHA_TRY(mha_alloc((void **)out, bytes, src->size, err));
    for (uint64_t r = 0; r < rows; r++) {
        const unsigned char *row;
        MHA_TRY(fetch_row(src, r, &row, err));
        for (uint64_t c = 0; c < cols; c++)
            memcpy(*out + (c * rows + r) * src->size, row + c * src->size, src->size);
    }
    return MHA_OK;
}

/* ---- one tensor -------------------------------------------------------------------------------
 */

static mha_status write_row(mha_save *s, mha_outfile *f, const source *src,
                            const unsigned char *row, bool zero, unsigned char *room, mha_err *err)
{
    const mha_saved_tensor *t = src->t;
    size_t n = 0;
    if (t->keep[1] == NULL && t->zero[1] == NULL && !zero) {
        n = t->count[1] * src->size;
        s->done += (double)n;
        return mha_outfile_write(f, row, n, err);
    }
    for (uint64_t c = 0; c < t->count[1]; c++) {
        if (t->keep[1] != NULL && !t->keep[1][c])
            continue;
        if (zero || (t->zero[1] != NULL && t->zero[1][c]))
            memset(room + n, 0, src->size);
        else
            memcpy(room + n, row + c * src->size, src->size);
        n += src->size;
    }
    s->done += (double)n;
    return mha_outfile_write(f, room, n, err);
}

static mha_status tell(mha_save *s, mha_err *err)
{
    if (s->progress != NULL && s->progress(s->progress_context, s->done, s->total) != 0)
        return mha_fail(err, MHA_ERR_CANCELLED, "cancelled");
    return MHA_OK;
}

static mha_status write_rows(mha_save *s, mha_outfile *f, source *src, unsigned char *room,
                             mha_err *err)
{
    const mha_saved_tensor *t = src->t;
    for (uint64_t r = 0; r < t->count[0]; r++) {
        const unsigned char *row = NULL;
        if (t->keep[0] != NULL && !t->keep[0][r])
            continue;
        if (src->whole != NULL)
            row = src->whole + r * t->count[1] * src->size;
        else if (t->count[1] > 0)
            MHA_TRY(fetch_row(src, r, &row, err));
        MHA_TRY(write_row(s, f, src, row, t->zero[0] != NULL && t->zero[0][r], room, err));
        if (r % 256 == 0)
            MHA_TRY(tell(s, err));
    }
    return MHA_OK;
}

/* A bias with the mean outputs of removed heads in it. */
static mha_status write_sum(mha_save *s, mha_outfile *f, const mha_saved_tensor *t, mha_err *err)
{
    const mha_tensor *from = t->part[0]->tensor;
    size_t bytes = mha_dtype_get(from->type)->bytes;
    for (uint64_t d = 0; d < t->count[0]; d++) {
        float value;
        s->widen[from->type](&value, from->data + d * bytes, 1);
        value = (float)((double)value + t->add[d]);
        MHA_TRY(mha_outfile_write(f, &value, sizeof value, err));
    }
    s->done += (double)t->as.bytes;
    return MHA_OK;
}

static mha_status write_tensor(mha_save *s, mha_outfile *f, const mha_saved_tensor *t, mha_err *err)
{
    source src = {.s = s, .t = t, .size = mha_dtype_get(t->as.type)->bytes};
    unsigned char *turned = NULL, *room = NULL;
    MHA_TRY(tell(s, err));
    if (t->add != NULL)
        return write_sum(s, f, t, err);
    mha_status status = mha_alloc((void **)&room, t->count[1], src.size, err);
    uint64_t widest = t->count[0] > t->count[1] ? t->count[0] : t->count[1];
    if (status == MHA_OK && t->from != NULL)
        src.whole = t->from->data;
    else if (status == MHA_OK)
        status = mha_alloc((void **)&src.wide, widest, sizeof *src.wide, err);
    if (status == MHA_OK && t->from == NULL && t->part[0]->there.in_out) {
        status = gather_turned(&src, &turned, err);
        src.whole = turned;
    }
    if (status == MHA_OK)
        status = write_rows(s, f, &src, room, err);
    mha_free(turned);
    mha_free(src.wide);
    mha_free(room);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------
 */

static mha_status write_file(mha_save *s, const mha_saved_tensor *t, size_t n, const char *name,
                             mha_err *err)
{
    mha_tensor *header;
    mha_outfile f = {0};
    MHA_TRY(mha_alloc((void **)&header, n, sizeof *header, err));
    for (size_t i = 0; i < n; i++)
        header[i] = t[i].as;
    mha_status status = mha_outdir_file(&s->directory, &f, name, err);
    if (status == MHA_OK)
        status = mha_safetensors_write_header(&f, header, n, "pt", err);
    for (size_t i = 0; i < n && status == MHA_OK; i++)
        status = write_tensor(s, &f, &t[i], err);
    mha_free(header);
    if (status == MHA_OK)
        return mha_outfile_commit(&f, err);
    mha_outfile_abort(&f);
    return status;
}

static mha_status write_index(mha_save *s, mha_err *err)
{
    json_t *map = json_object(), *index = NULL;
    int failed = map == NULL;
    for (size_t i = 0; i < s->tensors && !failed; i++)
        failed =
            json_object_set_new(map, s->tensor[i].as.name, json_string(s->file[s->tensor[i].file]));
    if (!failed)
        index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)s->out->bytes,
                          "weight_map", map);
    mha_status status = index != NULL ? mha_save_json(s, "model.safetensors.index.json", index, err)
                                      : mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    json_decref(index);
    json_decref(map);
    return status;
}

mha_status mha_save_weights(mha_save *s, mha_err *err)
{
    s->out->bytes = 0;
    for (size_t i = 0; i < s->tensors; i++)
        s->out->bytes += s->tensor[i].as.bytes;
    for (size_t i = 0, n = 0; i < s->tensors; i += n, n = 0) {
        while (i + n < s->tensors && s->tensor[i + n].file == s->tensor[i].file)
            n++;
        MHA_TRY(write_file(s, &s->tensor[i], n, s->file[s->tensor[i].file], err));
    }
    return strcmp(s->file[0], "model.safetensors") != 0 ? write_index(s, err) : MHA_OK;
}
