/* bind_export.c: the config that a Hugging Face checkpoint of a model in a GGUF file would have:
 * the values that the file gave, under the keys that the family reads there. What cannot be said
 * there shows when the written model is opened and compared with this one (save_compare.c). */
#include "base/fail.h"
#include "model/binder.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest number that is this float32: 1e-05 and not 9.99999974737875e-06. */
static double shorten(double v)
{
    for (int digits = 1; digits < 9; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, v);
        double shorter = strtod(text, NULL);
        if ((float)shorter == (float)v)
            return shorter;
    }
    return v;
}

static json_t *number_json(double v)
{
    double whole = round(v);
    if (fabs(v - whole) <= 1e-6 * fabs(v) && fabs(whole) < 1e15)
        return json_integer((json_int_t)whole);
    return json_real(shorten(v));
}

/* Rotary scaling by the names of Transformers. */
static json_t *scaling_json(const json_t *gguf)
{
    static const char *const names[][2] = {
        {"type", "rope_type"},
        {"factor", "factor"},
        {"original_context_length", "original_max_position_embeddings"},
        {"attn_factor", "attention_factor"},
        {"yarn_beta_fast", "beta_fast"},
        {"yarn_beta_slow", "beta_slow"}};
    json_t *out = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *v = json_object_get(gguf, names[i][0]);
        json_t *copy = json_is_number(v) ? number_json(json_number_value(v)) : json_deep_copy(v);
        if (v != NULL && json_object_set_new(out, names[i][1], copy) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* Transformers' list of the kinds of layers, from the masks that they have. */
static json_t *layer_types_json(const mha_binder *b)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < b->attn_count; i++) {
        const char *kind = b->attn[i].window > 0 ? "sliding_attention" : "full_attention";
        if (json_array_append_new(list, json_string(kind)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

struct mentions {
    bool file;
};

static void note_name(void *context, const char *name)
{
    struct mentions *m = context;
    m->file = m->file || strcmp(name, "gguf") == 0;
}

static void note_call(void *context, const char *name, const char *text, size_t arguments)
{
    struct mentions *m = context;
    (void)text;
    (void)arguments;
    m->file = m->file || strcmp(name, "has") == 0 || strcmp(name, "rows") == 0;
}

/* Whether the default says what is in the file, and not what an absent key means anywhere. */
static bool tells_of_file(const mha_expr *e)
{
    struct mentions m = {false};
    if (e != NULL) {
        mha_expr_names(e, note_name, &m);
        mha_expr_calls(e, note_call, &m);
    }
    return m.file;
}

/* The key to write: one of the top level where there is a choice. */
static const char *choose_key(const mha_spec_words *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (strchr(keys->word[i], '.') == NULL)
            return keys->word[i];
    return keys->count > 0 && strchr(keys->word[0], '*') == NULL ? keys->word[0] : NULL;
}

/* object[a][b]… = value for "a.b…"; takes the value over. */
static int set_path(json_t *object, const char *path, json_t *value)
{
    const char *dot = strchr(path, '.');
    if (dot == NULL)
        return json_object_set_new(object, path, value);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    json_t *inner = json_object_get(object, name);
    if (inner == NULL) {
        inner = json_object();
        if (json_object_set_new(object, name, inner) != 0) {
            json_decref(value);
            return -1;
        }
    }
    return set_path(inner, dot + 1, value);
}

static int export_var(const mha_binder *b, json_t *config, size_t i)
{
    const mha_spec_var *v = &b->spec->vars[i];
    const mha_value *value = &b->values[i];
    const char *key = choose_key(&v->keys);
    bool given = b->value_key[i] != NULL;
    json_t *j = NULL;
    if (v->computed || v->per_layer || key == NULL || (!given && !tells_of_file(v->value)))
        return 0;
    if (strcmp(key, "layer_types") == 0 && value->kind == MHA_VALUE_JSON)
        return set_path(config, key, layer_types_json(b));
    switch (value->kind) {
    case MHA_VALUE_NULL:
        return 0;
    case MHA_VALUE_NUMBER:
        j = !given && mha_expr_is_truth(v->value) ? json_boolean(value->number != 0)
                                                  : number_json(value->number);
        break;
    case MHA_VALUE_STRING:
        j = json_string(value->string);
        break;
    case MHA_VALUE_JSON:
        j = json_is_object(value->json) ? scaling_json(value->json) : json_deep_copy(value->json);
        break;
    }
    return set_path(config, key, j);
}

static const mha_weight *token_table(const struct mha_model *m)
{
    const mha_steps *prologue = &m->stack[m->stack_count - 1].prologue;
    for (size_t i = 0; i < prologue->count; i++)
        if (prologue->step[i].op == MHA_OP_EMBED && prologue->step[i].embed.kind == MHA_EMBED_TOKEN)
            return &prologue->step[i].embed.table;
    return NULL;
}

/* Transformers has to be told: classes of models differ in what an absent key means. */
static int export_tie(const struct mha_model *m, json_t *config)
{
    const mha_weight *table = token_table(m);
    if (m->head.count == 0 || m->info.head == MHA_HEAD_CLASS || table == NULL)
        return 0;
    const mha_weight *out = &m->head.step[m->head.count - 1].logits.w;
    return json_object_set_new(config, "tie_word_embeddings",
                               json_boolean(out->data == table->data));
}

static int export_ids(const mha_binder *b, json_t *config)
{
    static const char *const keys[][2] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                          {"tokenizer.ggml.eos_token_id", "eos_token_id"},
                                          {"tokenizer.ggml.padding_token_id", "pad_token_id"},
                                          {"decoder_start_token_id", "decoder_start_token_id"}};
    int failed = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = mha_binder_config(b, keys[i][0]);
        if (json_is_integer(v))
            failed |= json_object_set_new(config, keys[i][1], json_integer(json_integer_value(v)));
    }
    return failed;
}

mha_status mha_bind_export(mha_binder *b)
{
    if (!b->gguf || b->spec->types.count == 0)
        return MHA_OK;
    json_t *config = json_object();
    int failed = config == NULL;
    failed = failed ||
             json_object_set_new(config, "model_type", json_string(b->spec->types.word[0])) != 0;
    for (size_t i = 0; i < b->spec->var_count && !failed; i++)
        failed = export_var(b, config, i);
    failed = failed || export_ids(b, config) || export_tie(b->model, config);
    b->model->hugging_face = config;
    return failed ? mha_fail(b->err, MHA_ERR_NOMEM, "out of memory") : MHA_OK;
}
