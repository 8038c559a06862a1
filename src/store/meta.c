/* meta.c: the ordered tree of names and values that says where a result comes from. It may not give
 * names a meaning: what stands in a section is the business of whoever fills it. */
#include "store/meta.h"

#include "store/number.h"

#include "base/fail.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

mha_status mha_meta_new(mha_meta **out, mha_arena *arena, bool list, mha_err *err)
{
    void *m = NULL;
    MHA_TRY(mha_arena_alloc(&m, arena, 1, sizeof **out, err));
    *out = m;
    **out = (mha_meta){.arena = arena, .list = list};
    return MHA_OK;
}

mha_meta_entry *mha_meta_find(const mha_meta *m, const char *name)
{
    if (!name)
        return NULL;
    for (mha_meta_entry *e = m->first; e; e = e->next)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

mha_status mha_meta_append(mha_meta_entry **out, mha_meta *m, const char *name, mha_err *err)
{
    assert(m->list == (name == NULL));
    void *p = NULL;
    char *copy = NULL;
    MHA_TRY(mha_arena_alloc(&p, m->arena, 1, sizeof **out, err));
    if (name)
        MHA_TRY(mha_text_clean(&copy, m->arena, name, err));
    *out = p;
    (*out)->name = copy;
    if (m->last)
        m->last->next = *out;
    else
        m->first = *out;
    m->last = *out;
    return MHA_OK;
}

/* The entry of that name, emptied, or a new one. */
static mha_status entry_add(mha_meta_entry **out, mha_meta *m, const char *name, mha_err *err)
{
    *out = mha_meta_find(m, name);
    if (!*out)
        return mha_meta_append(out, m, name, err);
    (*out)->type = META_NULL;
    return MHA_OK;
}

mha_status mha_meta_text(mha_meta *m, const char *name, const char *value, mha_err *err)
{
    mha_meta_entry *e = NULL;
    char *copy = NULL;
    MHA_TRY(entry_add(&e, m, name, err));
    if (!value)
        return MHA_OK;
    MHA_TRY(mha_text_clean(&copy, m->arena, value, err));
    e->as.text = copy;
    e->type = META_TEXT;
    return MHA_OK;
}

mha_status mha_meta_int(mha_meta *m, const char *name, int64_t value, mha_err *err)
{
    mha_meta_entry *e = NULL;
    MHA_TRY(entry_add(&e, m, name, err));
    e->as.integer = value;
    e->type = META_INT;
    return MHA_OK;
}

mha_status mha_meta_real(mha_meta *m, const char *name, double value, mha_err *err)
{
    mha_meta_entry *e = NULL;
    MHA_TRY(entry_add(&e, m, name, err));
    e->as.real = value;
    e->type = isfinite(value) ? META_REAL : META_NULL;
    return MHA_OK;
}

mha_status mha_meta_bool(mha_meta *m, const char *name, bool value, mha_err *err)
{
    mha_meta_entry *e = NULL;
    MHA_TRY(entry_add(&e, m, name, err));
    e->as.boolean = value;
    e->type = META_BOOL;
    return MHA_OK;
}

static mha_status node_add(mha_meta **out, mha_meta *m, const char *name, bool list, mha_err *err)
{
    mha_meta_entry *e = NULL;
    MHA_TRY(entry_add(&e, m, name, err));
    MHA_TRY(mha_meta_new(out, m->arena, list, err));
    e->as.node = *out;
    e->type = META_NODE;
    return MHA_OK;
}

mha_status mha_meta_object(mha_meta **out, mha_meta *m, const char *name, mha_err *err)
{
    return node_add(out, m, name, false, err);
}

mha_status mha_meta_list(mha_meta **out, mha_meta *m, const char *name, mha_err *err)
{
    return node_add(out, m, name, true, err);
}

bool mha_meta_get_text(const mha_meta *m, const char *name, const char **out)
{
    const mha_meta_entry *e = mha_meta_find(m, name);
    if (!e || e->type != META_TEXT)
        return false;
    *out = e->as.text;
    return true;
}

bool mha_meta_get_int(const mha_meta *m, const char *name, int64_t *out)
{
    const mha_meta_entry *e = mha_meta_find(m, name);
    if (!e || e->type != META_INT)
        return false;
    *out = e->as.integer;
    return true;
}

bool mha_meta_get_real(const mha_meta *m, const char *name, double *out)
{
    const mha_meta_entry *e = mha_meta_find(m, name);
    if (!e || (e->type != META_REAL && e->type != META_INT))
        return false;
    *out = e->type == META_INT ? (double)e->as.integer : e->as.real;
    return true;
}

bool mha_meta_get_bool(const mha_meta *m, const char *name, bool *out)
{
    const mha_meta_entry *e = mha_meta_find(m, name);
    if (!e || e->type != META_BOOL)
        return false;
    *out = e->as.boolean;
    return true;
}

const mha_meta *mha_meta_get(const mha_meta *m, const char *name)
{
    const mha_meta_entry *e = mha_meta_find(m, name);
    return e && e->type == META_NODE ? e->as.node : NULL;
}

static void entry_write(const mha_meta_entry *e, FILE *f)
{
    char number[MHA_NUMBER_SIZE];
    switch (e->type) {
    case META_NULL:
        fputs("null", f);
        break;
    case META_TEXT:
        mha_number_json_text(f, e->as.text);
        break;
    case META_INT:
        fprintf(f, "%" PRId64, e->as.integer);
        break;
    case META_REAL:
        mha_number_format(number, e->as.real, MHA_NUMBER_DIGITS);
        fputs(number, f);
        break;
    case META_BOOL:
        fputs(e->as.boolean ? "true" : "false", f);
        break;
    case META_NODE:
        mha_meta_write(e->as.node, f);
        break;
    }
}

void mha_meta_write(const mha_meta *m, FILE *f)
{
    fputc(m->list ? '[' : '{', f);
    for (const mha_meta_entry *e = m->first; e; e = e->next) {
        if (e != m->first)
            fputs(", ", f);
        if (!m->list) {
            mha_number_json_text(f, e->name);
            fputs(": ", f);
        }
        entry_write(e, f);
    }
    fputc(m->list ? ']' : '}', f);
}
