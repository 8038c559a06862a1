/* model.c: the public face of a model: choosing the family, opening, closing, asking. */
#include "mha/model.h"
#include "base/fail.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "model/binder.h"
#include "model/families.h"
#include "model/spec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mha_stack_name(mha_stack_id stack)
{
    static const char *const names[MHA_STACK_COUNT] = {"enc", "dec", "graph"};
    return names[stack];
}

const char *mha_kind_name(mha_kind kind)
{
    return kind == MHA_SELF ? "self" : "cross";
}

static bool has_word(const mha_spec_words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->word[i], word) == 0)
            return true;
    return false;
}

static mha_status parse_family(mha_spec **out, size_t i, mha_err *err)
{
    char file[64];
    snprintf(file, sizeof file, "%.48s.family", mha_families[i].name);
    return mha_spec_parse(out, mha_families[i].text, mha_families[i].size, file, err);
}

static void list_add(char *list, size_t size, const char *word)
{
    size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n == 0 ? "" : ", ", word);
}

/* The embedded description whose types (or GGUF architectures) hold `type`. */
static mha_status choose_family(mha_spec **out, const mha_checkpoint *c, const char *type,
                                mha_err *err)
{
    char known[440] = "";
    for (size_t i = 0; i < mha_family_count; i++) {
        mha_spec *s = NULL;
        MHA_TRY(parse_family(&s, i, err));
        const mha_spec_words *words = c->gguf != NULL ? &s->gguf : &s->types;
        if (has_word(words, type)) {
            *out = s;
            return MHA_OK;
        }
        for (size_t k = 0; k < words->count; k++)
            list_add(known, sizeof known, words->word[k]);
        mha_spec_free(s);
    }
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: %s \"%.60s\" is not supported; known: %s",
                    c->path, c->gguf != NULL ? "general.architecture" : "model_type", type, known);
}

static mha_status find_family(mha_spec **out, const mha_checkpoint *c,
                              const mha_model_options *options, mha_err *err)
{
    if (options->family != NULL)
        return mha_spec_parse(out, options->family, strlen(options->family),
                              options->family_name != NULL ? options->family_name : "family", err);
    const char *key = c->gguf != NULL ? "general.architecture" : "model_type";
    const char *type = json_string_value(json_object_get(c->config, key));
    if (type == NULL)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "%s: the config has no %s, so the kind of model is unknown", c->path, key);
    return choose_family(out, c, type, err);
}

/* Tensors in the order of their names, for listings. */
static int by_name(const void *a, const void *b)
{
    const mha_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static mha_status sort_tensors(struct mha_model *m, mha_err *err)
{
    size_t n = m->checkpoint->tensor_count;
    MHA_TRY(mha_arena_alloc((void **)&m->sorted, &m->memory, n, sizeof *m->sorted, err));
    for (size_t i = 0; i < n; i++)
        m->sorted[i] = &m->checkpoint->tensors[i];
    if (n > 0)
        qsort(m->sorted, n, sizeof *m->sorted, by_name);
    return MHA_OK;
}

/* Keeps the options, for opening the model again in another form. */
static mha_status keep_options(struct mha_model *m, const mha_model_options *options, mha_err *err)
{
    char *copy;
    m->options = *options;
    if (options->family != NULL) {
        MHA_TRY(mha_arena_strdup(&copy, &m->memory, options->family, err));
        m->options.family = copy;
    }
    if (options->family_name != NULL) {
        MHA_TRY(mha_arena_strdup(&copy, &m->memory, options->family_name, err));
        m->options.family_name = copy;
    }
    return MHA_OK;
}

mha_status mha_model_bind(struct mha_model *m, const mha_model_options *options, mha_err *err)
{
    mha_spec *spec = NULL;
    MHA_TRY(keep_options(m, options, err));
    MHA_TRY(find_family(&spec, m->checkpoint, options, err));
    mha_status status = mha_bind(m, spec, options, err);
    mha_spec_free(spec);
    return status == MHA_OK ? sort_tensors(m, err) : status;
}

mha_status mha_model_open(mha_model **out, const char *path, const mha_model_options *options,
                          mha_err *err)
{
    static const mha_model_options defaults = {0};
    if (options == NULL)
        options = &defaults;
    mha_checkpoint_limits limits = {
        .max_tensors =
            options->max_tensors != 0 ? options->max_tensors : MHA_SAFETENSORS_TENSORS_MAX,
        .max_header = options->max_header != 0 ? options->max_header : MHA_SAFETENSORS_HEADER_MAX,
    };
    struct mha_model *m = NULL;
    MHA_TRY(mha_alloc((void **)&m, 1, sizeof *m, err));
    mha_status status = mha_checkpoint_open(&m->checkpoint, path, &limits, err);
    if (status == MHA_OK)
        status = mha_model_bind(m, options, err);
    if (status != MHA_OK) {
        mha_model_close(m);
        return status;
    }
    *out = m;
    return MHA_OK;
}

void mha_model_close(mha_model *m)
{
    if (m == NULL)
        return;
    mha_free(m->description);
    mha_free(m->part);
    mha_free(m->vectors);
    json_decref(m->hugging_face);
    mha_arena_release(&m->memory);
    mha_checkpoint_close(m->checkpoint);
    mha_free(m);
}

const mha_model_info *mha_model_info_get(const mha_model *m)
{
    return &m->info;
}

const char *mha_model_program(const mha_model *m)
{
    return m->description;
}

const mha_contact_head *mha_model_contacts(const mha_model *m)
{
    return m->contacts.weights != NULL ? &m->contacts : NULL;
}

size_t mha_model_tensor_count(const mha_model *m)
{
    return m->checkpoint->tensor_count;
}

mha_tensor_info mha_model_tensor(const mha_model *m, size_t i)
{
    const mha_tensor *t = m->sorted[i];
    mha_tensor_info info = {
        .name = t->name,
        .dtype = mha_dtype_get(t->type)->name,
        .rank = t->rank,
        .bytes = t->bytes,
        .used = m->tensor_use[t - m->checkpoint->tensors] == MHA_TENSOR_USED,
    };
    memcpy(info.shape, t->shape, t->rank * sizeof *t->shape);
    return info;
}

size_t mha_model_file_count(const mha_model *m)
{
    return m->checkpoint->file_count;
}

const char *mha_model_file_name(const mha_model *m, size_t i)
{
    const char *path = m->checkpoint->files[i].path, *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

mha_status mha_model_file_hash(const mha_model *m, size_t i, char hex[65], mha_err *err)
{
    if (i >= m->checkpoint->file_count)
        return mha_fail(err, MHA_ERR_ARG, "file %zu of %zu", i, m->checkpoint->file_count);
    return mha_checkpoint_hash_file(m->checkpoint, i, hex, err);
}
