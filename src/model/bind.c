/* bind.c: a description and a checkpoint become a program: config, stacks, read-out, and the
 * public facts about the model. */
#include "base/fail.h"
#include "model/binder.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 16384, TEXT_CEILING = 64 << 20, LABELS_MAX = 1 << 20 };

/* ------------------------------------------------------------------------- stacks */

/* Layers whose lines are equal are shown once, with {l} in their names. */
static mha_status describe_run(mha_binder *b, const mha_buf *lines, uint32_t first, uint32_t end)
{
    if (first == end)
        return MHA_OK;
    if (end - first == 1)
        MHA_TRY(mha_buf_addf(&b->text, b->err, "  block, l = %u\n", first));
    else
        MHA_TRY(mha_buf_addf(&b->text, b->err, "  block ×%u, l = %u…%u\n", end - first, first,
                             end - 1));
    return mha_buf_add(&b->text, lines->data, lines->size, b->err);
}

static bool same_text(const mha_buf *a, const mha_buf *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* All layers: each is bound with its own text in b->text, which is swapped aside meanwhile. */
static mha_status bind_blocks(mha_binder *b, const mha_spec_stack *spec, int scope, mha_stack *out)
{
    mha_buf whole = b->text, lines;
    mha_buf_init(&lines, TEXT_CEILING);
    mha_buf_init(&b->text, TEXT_CEILING);
    uint32_t first = 0;
    mha_status status = MHA_OK;
    for (uint32_t l = 0; l < out->layers && status == MHA_OK; l++) {
        b->layer = (int)l;
        b->width[MHA_B] = b->width[MHA_C] = 0;
        mha_buf_clear(&b->text);
        MHA_TRY_GOTO(status, mha_bind_slots(b, scope), end);
        MHA_TRY_GOTO(status, mha_bind_steps(b, &spec->block, spec->id, &out->block[l]), end);
        out->stream[l + 1] = b->width[MHA_X];
        if (l > 0 && same_text(&lines, &b->text))
            continue;
        mha_buf now = b->text;
        b->text = whole;
        status = describe_run(b, &lines, first, l);
        whole = b->text;
        b->text = lines;
        lines = now;
        first = l;
    }
end:
    mha_buf_release(&b->text);
    b->text = whole;
    if (status == MHA_OK)
        status = describe_run(b, &lines, first, out->layers);
    mha_buf_release(&lines);
    b->layer = -1;
    return status;
}

static mha_status bind_stack(mha_binder *b, size_t index)
{
    struct mha_model *m = b->model;
    const mha_spec_stack *spec = &b->spec->stacks[index];
    mha_stack *out = &m->stack[m->stack_count];
    MHA_TRY(mha_binder_count(b, spec->layers, spec->line, "layers", &out->layers));
    if (out->layers == 0)
        return MHA_OK; /* a checkpoint of the other half only */
    if (out->layers > LAYERS_MAX)
        return mha_fail(b->err, MHA_ERR_LIMIT, "%s: %s = %u layers, at most %d", b->config_file,
                        mha_expr_text(spec->layers), out->layers, LAYERS_MAX);
    m->stack_count++;
    out->id = spec->id;
    MHA_TRY(
        mha_arena_alloc((void **)&out->block, b->memory, out->layers, sizeof *out->block, b->err));
    MHA_TRY(mha_arena_alloc((void **)&out->stream, b->memory, (size_t)out->layers + 2,
                            sizeof *out->stream, b->err));
    b->width[MHA_E] = b->width[MHA_X]; /* what the stack before left is the memory */
    b->width[MHA_X] = b->width[MHA_B] = b->width[MHA_C] = 0;
    MHA_TRY(mha_bind_slots(b, (int)index));
    MHA_TRY(mha_buf_addf(&b->text, b->err, "stack %s, %u layers\n  prologue\n",
                         mha_stack_name(out->id), out->layers));
    MHA_TRY(mha_bind_steps(b, &spec->prologue, spec->id, &out->prologue));
    if (b->width[MHA_X] == 0)
        return mha_fail(b->err, MHA_ERR_FORMAT, "%s:%zu: the prologue does not write X",
                        b->spec->file, spec->line);
    if ((out->id == MHA_GRAPH) != (m->features > 0) || (m->features > 0 && m->vocab > 0))
        return mha_fail(b->err, MHA_ERR_FORMAT,
                        "%s:%zu: a graph stack begins with nodes, and only it does", b->spec->file,
                        spec->line);
    out->stream[0] = b->width[MHA_X];
    MHA_TRY(bind_blocks(b, spec, (int)index, out));
    if (spec->epilogue.count > 0)
        MHA_TRY(mha_buf_adds(&b->text, "  epilogue\n", b->err));
    MHA_TRY(mha_bind_steps(b, &spec->epilogue, spec->id, &out->epilogue));
    out->stream[out->layers + 1] = b->width[MHA_X];
    m->info.layers[out->id] = out->layers;
    m->info.stream[out->id] = out->stream;
    return MHA_OK;
}

/* --------------------------------------------------------------------------- head */

/* id2label as [classes], NULL when it does not name each class. */
static mha_status read_labels(mha_binder *b)
{
    struct mha_model *m = b->model;
    const json_t *map = b->gguf ? NULL : json_object_get(b->checkpoint->config, "id2label");
    if (!json_is_object(map) || json_object_size(map) != m->info.classes ||
        m->info.classes > LABELS_MAX)
        return MHA_OK;
    const char **labels;
    MHA_TRY(mha_arena_alloc((void **)&labels, b->memory, m->info.classes, sizeof *labels, b->err));
    for (uint32_t i = 0; i < m->info.classes; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        labels[i] = json_string_value(json_object_get(map, key));
        if (labels[i] == NULL)
            return MHA_OK;
    }
    m->info.labels = labels;
    return MHA_OK;
}

static mha_status bind_head(mha_binder *b)
{
    static const char *const names[] = {
        "none",           "language model",   "masked language model", "sequence classifier",
        "language model", "token classifier", "answer span",           "embedding"};
    struct mha_model *m = b->model;
    m->info.head_name = names[MHA_HEAD_NONE];
    for (size_t i = 0; i < b->spec->head_count; i++) {
        const mha_spec_head *head = &b->spec->heads[i];
        bool wanted;
        MHA_TRY(mha_binder_truth(b, head->when, head->line, true, &wanted));
        if (!wanted)
            continue;
        m->info.head = head->kind;
        b->width[MHA_B] = b->width[MHA_C] = 0;
        MHA_TRY(mha_bind_slots(b, MHA_SCOPE_HEADS + (int)i));
        MHA_TRY(mha_buf_addf(&b->text, b->err, "head, %s\n", names[head->kind]));
        MHA_TRY(mha_bind_steps(b, &head->steps, MHA_DEC, &m->head));
        const mha_step *last = m->head.count > 0 ? &m->head.step[m->head.count - 1] : NULL;
        if (last == NULL || last->op != MHA_OP_LOGITS)
            return mha_fail(b->err, MHA_ERR_FORMAT, "%s:%zu: a head ends with logits",
                            b->spec->file, head->line);
        m->info.head_name = names[head->kind];
        if (head->kind == MHA_HEAD_TOKEN && m->features > 0)
            m->info.head_name = "node classifier";
        if (head->kind != MHA_HEAD_CLASS && head->kind != MHA_HEAD_TOKEN &&
            head->kind != MHA_HEAD_SPAN && head->kind != MHA_HEAD_EMBEDDING)
            return MHA_OK;
        m->info.classes = last->logits.w.out;
        if (head->kind == MHA_HEAD_EMBEDDING)
            return MHA_OK;
        if (head->kind != MHA_HEAD_SPAN)
            return read_labels(b);
        if (m->info.classes != 2)
            return mha_fail(b->err, MHA_ERR_UNSUPPORTED,
                            "%s: an answer has a start and an end, not %u parts", b->config_file,
                            m->info.classes);
        return MHA_OK;
    }
    return MHA_OK;
}

/* The regression from maps to contacts, where the checkpoint has it: it reads one map of every
 * head that the encoder has, or had before any were pruned. */
static mha_status bind_contacts(mha_binder *b)
{
    const mha_spec_contacts *c = &b->spec->contacts;
    struct mha_model *m = b->model;
    uint64_t heads = 0;
    uint32_t end;
    if (c->line == 0 || b->bound[c->table].w == NULL || b->bound[c->bias].w == NULL)
        return MHA_OK;
    for (size_t a = 0; a < b->attn_count; a++)
        heads += b->attn[a].original_heads;
    const mha_bound *table = &b->bound[c->table];
    if (table->dims[0] != 1 || table->dims[1] != heads || b->bound[c->bias].dims[0] != 1)
        return mha_fail(b->err, MHA_ERR_FORMAT,
                        "%s:%zu: contacts of %" PRIu64 " heads need a table [1, %" PRIu64
                        "] and a bias [1]",
                        b->spec->file, c->line, heads, heads);
    MHA_TRY(mha_binder_count(b, c->end, c->line, "contacts", &end));
    m->contacts = (mha_contact_head){
        .weights = table->w, .count = heads, .bias = b->bound[c->bias].w[0], .end = (int32_t)end};
    return MHA_OK;
}

/* --------------------------------------------------------------------------- facts */

/* A token id from the config: a number, or the first of a list; −1 when there is none. */
static int32_t config_id(const mha_binder *b, const char *key, const char *gguf_key)
{
    const json_t *j = mha_binder_config(b, b->gguf ? gguf_key : key);
    if (json_is_array(j))
        j = json_array_get(j, 0);
    json_int_t v = json_is_integer(j) ? json_integer_value(j) : -1;
    return v >= 0 && v <= INT32_MAX ? (int32_t)v : -1;
}

static uint32_t config_length(const mha_binder *b)
{
    static const char *const keys[] = {"max_position_embeddings", "n_positions", "n_ctx"};
    for (size_t i = 0; i < 3; i++) {
        const json_t *j = mha_binder_config(b, b->gguf ? "context_length" : keys[i]);
        json_int_t v = json_is_integer(j) ? json_integer_value(j) : 0;
        if (v > 0 && v <= INT32_MAX)
            return (uint32_t)v;
    }
    return 0;
}

static void count_tensors(const mha_binder *b)
{
    mha_model_info *info = &b->model->info;
    const mha_checkpoint *c = b->checkpoint;
    uint64_t bytes[MHA_DTYPE_COUNT] = {0};
    mha_dtype most = MHA_F32;
    for (size_t i = 0; i < c->tensor_count; i++) {
        const mha_tensor *t = &c->tensors[i];
        if (b->model->tensor_use[i] != MHA_TENSOR_USED)
            continue;
        uint64_t n = 1;
        for (uint32_t k = 0; k < t->rank; k++)
            n *= t->shape[k]; /* the reader checked that it does not overflow */
        info->parameters += n;
        bytes[t->type] += t->bytes;
        if (bytes[t->type] > bytes[most])
            most = t->type;
    }
    info->dtype = mha_dtype_get(most)->name;
    for (size_t i = 0; i < c->file_count; i++)
        info->file_bytes += c->files[i].size;
}

/* Attention steps, with original head numbers for those that have all their heads. */
static mha_status fill_attention(mha_binder *b)
{
    mha_model_info *info = &b->model->info;
    mha_attn_info *attn;
    uint16_t *ids;
    uint32_t most = 0;
    for (size_t i = 0; i < b->attn_count; i++)
        most = b->attn[i].heads > most ? b->attn[i].heads : most;
    MHA_TRY(mha_arena_alloc((void **)&attn, b->memory, b->attn_count, sizeof *attn, b->err));
    MHA_TRY(mha_arena_alloc((void **)&ids, b->memory, (size_t)most + 1, sizeof *ids, b->err));
    for (uint32_t h = 0; h < most; h++)
        ids[h] = (uint16_t)h;
    for (size_t i = 0; i < b->attn_count; i++) {
        attn[i] = b->attn[i];
        if (attn[i].head_ids == NULL)
            attn[i].head_ids = ids;
        if (attn[i].stack == MHA_DEC && attn[i].kind == MHA_SELF)
            info->kv_cache_bytes += 2 * sizeof(float) * (uint64_t)attn[i].kv_heads * attn[i].width;
    }
    info->attn = attn;
    info->attn_count = b->attn_count;
    return MHA_OK;
}

/* Where the first step that knows global tokens lies. */
static void find_global(struct mha_model *m)
{
    for (size_t at = 0; at < m->stack_count; at++)
        for (uint32_t l = 0; l < m->stack[at].layers; l++)
            for (size_t i = 0; i < m->stack[at].block[l].count && m->global == NULL; i++) {
                const mha_step *s = &m->stack[at].block[l].step[i];
                if (s->op == MHA_OP_ATTN && s->attn.q_global.data != NULL)
                    m->global = &s->attn;
            }
}

static mha_status fill_info(mha_binder *b)
{
    struct mha_model *m = b->model;
    mha_model_info *info = &m->info;
    char *family;
    MHA_TRY(mha_arena_strdup(&family, b->memory, b->spec->name, b->err));
    info->family = family;
    info->path = b->checkpoint->path;
    info->format = b->checkpoint->format;
    info->width = m->stack[m->stack_count - 1].stream[1];
    info->features = m->features;
    info->vocab = m->vocab;
    info->max_positions = m->max_positions;
    info->trained_positions = config_length(b);
    info->decoder_start = config_id(b, "decoder_start_token_id", "decoder_start_token_id");
    info->eos = config_id(b, "eos_token_id", "tokenizer.ggml.eos_token_id");
    info->pad = config_id(b, "pad_token_id", "tokenizer.ggml.padding_token_id");
    count_tensors(b);
    find_global(m);
    MHA_TRY(fill_attention(b));
    return mha_checkpoint_fingerprint(b->checkpoint, info->fingerprint, b->err);
}

/* ---------------------------------------------------------------------------- bind */

static mha_status begin(mha_binder *b, mha_err *err)
{
    const mha_spec *s = b->spec;
    size_t tensors = b->checkpoint->tensor_count;
    MHA_TRY(mha_arena_alloc((void **)&b->values, b->memory, s->var_count, sizeof *b->values, err));
    MHA_TRY(mha_arena_alloc((void **)&b->value_key, b->memory, s->var_count, sizeof *b->value_key,
                            err));
    MHA_TRY(mha_arena_alloc((void **)&b->bound, b->memory, s->slot_count, sizeof *b->bound, err));
    MHA_TRY(mha_arena_alloc((void **)&b->model->tensor_use, b->memory, tensors, 1, err));
    b->objects = json_array();
    if (b->objects == NULL)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    const json_t *list = b->gguf ? NULL : json_object_get(b->checkpoint->config, "architectures");
    const char *arch = json_string_value(json_array_get(list, 0));
    b->arch = arch != NULL ? arch : "";
    return mha_bind_wrapper(b);
}

static mha_status bind_all(mha_binder *b, const mha_model_options *options)
{
    MHA_TRY(mha_bind_pruning(b));
    MHA_TRY(mha_bind_config(b));
    MHA_TRY(mha_buf_addf(&b->text, b->err, "family %s\n", b->spec->name));
    MHA_TRY(mha_bind_slots(b, MHA_SCOPE_SHARED));
    for (size_t i = 0; i < b->spec->stack_count; i++)
        MHA_TRY(bind_stack(b, i));
    if (b->model->stack_count == 0)
        return mha_fail(b->err, MHA_ERR_FORMAT, "%s: a model without layers", b->config_file);
    MHA_TRY(bind_head(b));
    MHA_TRY(bind_contacts(b));
    MHA_TRY(mha_bind_pruning_check(b));
    MHA_TRY(mha_bind_leftovers(b, options->allow_unused));
    MHA_TRY(mha_bind_head_keys(b));
    MHA_TRY(mha_bind_export(b));
    MHA_TRY(fill_info(b));
    MHA_TRY(mha_strdup(&b->model->description, b->text.data, b->err));
    return mha_checkpoint_check(b->checkpoint, b->err);
}

mha_status mha_bind(struct mha_model *m, const mha_spec *spec, const mha_model_options *options,
                    mha_err *err)
{
    mha_err local = {.status = MHA_OK};
    mha_binder b = {
        .model = m,
        .spec = spec,
        .checkpoint = m->checkpoint,
        .memory = &m->memory,
        .gguf = m->checkpoint->gguf != NULL,
        .layer = -1,
        .err = err != NULL ? err : &local,
    };
    mha_buf file;
    mha_buf_init(&file, 1 << 16);
    mha_buf_init(&b.text, TEXT_CEILING);
    mha_status status =
        mha_buf_addf(&file, b.err, "%s%s", m->checkpoint->path, b.gguf ? "" : "/config.json");
    if (status == MHA_OK) {
        b.config_file = file.data;
        status = begin(&b, b.err);
    }
    if (status == MHA_OK)
        status = bind_all(&b, options);
    json_decref(b.objects);
    mha_free(b.attn);
    mha_buf_release(&b.text);
    mha_buf_release(&file);
    return status;
}
