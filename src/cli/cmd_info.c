/* cmd_info.c: what a model is, from its headers alone. */
#include "base/fail.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "cli/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STACK, KIND, LAYER, HEADS, KV_HEADS, WIDTH, CAUSAL, WINDOW, SINK, STEP_COLUMNS };
static const mha_column step_columns[STEP_COLUMNS] = {
    {"stack", "", "enc, dec or graph", MHA_COLUMN_TEXT},
    {"kind", "", "self or cross", MHA_COLUMN_TEXT},
    {"layer", "", "from 0", MHA_COLUMN_INT},
    {"heads", "", "query heads", MHA_COLUMN_INT},
    {"kv_heads", "", "key/value heads", MHA_COLUMN_INT},
    {"width", "", "width of a head", MHA_COLUMN_INT},
    {"causal", "", "1: a query sees no later key", MHA_COLUMN_INT},
    {"window", "tokens", "keys that a query sees; undefined: all", MHA_COLUMN_INT},
    {"sink", "", "1: rows sum to 1 minus a learned sink", MHA_COLUMN_INT},
};

enum { PROPERTY, VALUE, PROPERTY_COLUMNS };
static const mha_column property_columns[PROPERTY_COLUMNS] = {
    {"property", "", "what is told", MHA_COLUMN_TEXT},
    {"value", "", "its value", MHA_COLUMN_TEXT},
};

enum { NAME, DTYPE, SHAPE, BYTES, USED, TENSOR_COLUMNS };
static const mha_column tensor_columns[TENSOR_COLUMNS] = {
    {"name", "", "as in the file", MHA_COLUMN_TEXT},
    {"dtype", "", "stored type", MHA_COLUMN_TEXT},
    {"shape", "", "dimensions, slowest first", MHA_COLUMN_INTS},
    {"bytes", "bytes", "size in the file", MHA_COLUMN_INT},
    {"used", "", "0: the model's mathematics does not need it", MHA_COLUMN_INT},
};

/* A head count over all attention steps: "12", or "4 to 16" where layers differ. */
static void range_print(char *out, size_t size, const mha_model_info *info,
                        uint32_t (*get)(const mha_attn_info *))
{
    uint32_t low = UINT32_MAX, high = 0;
    for (size_t i = 0; i < info->attn_count; i++) {
        uint32_t x = get(&info->attn[i]);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    if (low == high)
        snprintf(out, size, "%" PRIu32, low);
    else
        snprintf(out, size, "%" PRIu32 " to %" PRIu32, low, high);
}

static uint32_t get_heads(const mha_attn_info *a)
{
    return a->heads;
}
static uint32_t get_kv_heads(const mha_attn_info *a)
{
    return a->kv_heads;
}
static uint32_t get_width(const mha_attn_info *a)
{
    return a->width;
}

static mha_status property_add(mha_table *t, mha_err *err, const char *name, const char *format,
                               ...) __attribute__((format(printf, 4, 5)));
static mha_status property_add(mha_table *t, mha_err *err, const char *name, const char *format,
                               ...)
{
    char value[MHA_ERR_MESSAGE + 32];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    MHA_TRY(mha_table_add_row(t, err));
    MHA_TRY(mha_table_set_text(t, PROPERTY, name, err));
    return mha_table_set_text(t, VALUE, value, err);
}

static mha_status property_range(mha_table *t, const mha_model_info *info, const char *name,
                                 uint32_t (*get)(const mha_attn_info *), mha_err *err)
{
    char text[64];
    range_print(text, sizeof text, info, get);
    return property_add(t, err, name, "%s", text);
}

/* The kind, or why there is none. */
static mha_status tokenizer_describe(const mha_cli *cli, char *out, size_t size, mha_err *err)
{
    mha_tokenizer *again = NULL;
    mha_err why;
    if (cli->tokenizer) {
        snprintf(out, size, "%s, %zu pieces", mha_tokenizer_kind(cli->tokenizer),
                 mha_tokenizer_vocab(cli->tokenizer));
        return MHA_OK;
    }
    mha_status status = mha_tokenizer_open(&again, cli->model_path, &why);
    mha_tokenizer_free(again);
    if (status == MHA_ERR_UNSUPPORTED)
        snprintf(out, size, "not supported: %s", why.message);
    else if (status == MHA_OK)
        snprintf(out, size, "none");
    else
        return mha_fail(err, status, "%s", why.message);
    return MHA_OK;
}

static mha_status properties_fill(mha_table *t, const mha_cli *cli, mha_err *err)
{
    const mha_model_info *info = cli->info;
    char tokenizer[MHA_ERR_MESSAGE + 32];
    MHA_TRY(tokenizer_describe(cli, tokenizer, sizeof tokenizer, err));
    MHA_TRY(property_add(t, err, "family", "%s", info->family));
    MHA_TRY(property_add(t, err, "format", "%s", info->format));
    MHA_TRY(property_add(t, err, "dtype", "%s", info->dtype));
    MHA_TRY(property_add(t, err, "read-out", "%s", info->head_name));
    static const char *const layers[MHA_STACK_COUNT] = {"encoder layers", "decoder layers",
                                                        "graph layers"};
    for (int i = 0; i < MHA_STACK_COUNT; i++)
        if (info->layers[i])
            MHA_TRY(property_add(t, err, layers[i], "%" PRIu32, info->layers[i]));
    MHA_TRY(property_range(t, info, "heads", get_heads, err));
    MHA_TRY(property_range(t, info, "key/value heads", get_kv_heads, err));
    MHA_TRY(property_range(t, info, "head width", get_width, err));
    MHA_TRY(property_add(t, err, "width", "%" PRIu32, info->width));
    MHA_TRY(property_add(t, err, "mlp width", "%" PRIu32, info->mlp_width));
    if (info->features)
        MHA_TRY(property_add(t, err, "node features", "%" PRIu32, info->features));
    else
        MHA_TRY(property_add(t, err, "vocabulary", "%" PRIu32, info->vocab));
    if (info->max_positions)
        MHA_TRY(property_add(t, err, "positions", "%" PRIu32, info->max_positions));
    else if (info->trained_positions)
        MHA_TRY(property_add(t, err, "positions", "no limit, trained on %" PRIu32,
                             info->trained_positions));
    for (uint32_t i = 0; i < info->classes; i++)
        MHA_TRY(property_add(t, err, i ? "" : "classes", "%" PRIu32 " %s", i,
                             info->labels ? info->labels[i] : ""));
    MHA_TRY(property_add(t, err, "parameters", "%" PRIu64, info->parameters));
    MHA_TRY(property_add(t, err, "file bytes", "%" PRIu64, info->file_bytes));
    if (info->kv_cache_bytes)
        MHA_TRY(property_add(t, err, "cache bytes a token", "%" PRIu64, info->kv_cache_bytes));
    MHA_TRY(property_add(t, err, "tokenizer", "%s", tokenizer));
    return property_add(t, err, "fingerprint", "%s", info->fingerprint);
}

/* Hashes of the whole files: as properties, and in the model section. */
static mha_status hashes_add(mha_table *t, bool properties, const mha_cli *cli, mha_err *err)
{
    mha_meta *m, *files;
    MHA_TRY(mha_table_section(&m, t, "model", err));
    MHA_TRY(mha_meta_object(&files, m, "sha256", err));
    for (size_t i = 0; i < mha_model_file_count(cli->model); i++) {
        char hex[65];
        const char *path = mha_model_file_name(cli->model, i), *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        MHA_TRY(mha_model_file_hash(cli->model, i, hex, err));
        MHA_TRY(mha_meta_text(files, name, hex, err));
        if (properties)
            MHA_TRY(property_add(t, err, name, "sha256 %s", hex));
    }
    return MHA_OK;
}

static mha_status steps_fill(mha_table *t, const mha_model_info *info, mha_err *err)
{
    for (size_t i = 0; i < info->attn_count; i++) {
        const mha_attn_info *a = &info->attn[i];
        MHA_TRY(mha_table_add_row(t, err));
        MHA_TRY(mha_table_set_text(t, STACK, mha_stack_name(a->stack), err));
        MHA_TRY(mha_table_set_text(t, KIND, mha_kind_name(a->kind), err));
        mha_table_set_int(t, LAYER, a->layer);
        mha_table_set_int(t, HEADS, a->heads);
        mha_table_set_int(t, KV_HEADS, a->kv_heads);
        mha_table_set_int(t, WIDTH, a->width);
        mha_table_set_int(t, CAUSAL, a->causal);
        if (a->window)
            mha_table_set_int(t, WINDOW, a->window);
        mha_table_set_int(t, SINK, a->sink);
    }
    return MHA_OK;
}

static mha_status tensors_fill(mha_table *t, const mha_model *model, mha_err *err)
{
    for (size_t i = 0; i < mha_model_tensor_count(model); i++) {
        mha_tensor_info info = mha_model_tensor(model, i);
        int64_t shape[8] = {0};
        for (uint32_t d = 0; d < info.rank && d < 8; d++)
            shape[d] = (int64_t)info.shape[d];
        MHA_TRY(mha_table_add_row(t, err));
        MHA_TRY(mha_table_set_text(t, NAME, info.name, err));
        MHA_TRY(mha_table_set_text(t, DTYPE, info.dtype, err));
        MHA_TRY(mha_table_set_ints(t, SHAPE, shape, info.rank, err));
        mha_table_set_int(t, BYTES, (int64_t)info.bytes);
        mha_table_set_int(t, USED, info.used);
    }
    return MHA_OK;
}

/* What the model section of a result holds only here. */
static mha_status model_describe(mha_table *t, const mha_cli *cli, mha_err *err)
{
    const mha_model_info *info = cli->info;
    char tokenizer[MHA_ERR_MESSAGE + 32];
    mha_meta *m;
    MHA_TRY(tokenizer_describe(cli, tokenizer, sizeof tokenizer, err));
    MHA_TRY(mha_table_section(&m, t, "model", err));
    MHA_TRY(mha_meta_text(m, "format", info->format, err));
    MHA_TRY(mha_meta_text(m, "read_out", info->head_name, err));
    MHA_TRY(mha_meta_int(m, "width", info->width, err));
    MHA_TRY(mha_meta_int(m, "mlp_width", info->mlp_width, err));
    MHA_TRY(mha_meta_int(m, "vocab", info->vocab, err));
    if (info->features)
        MHA_TRY(mha_meta_int(m, "features", info->features, err));
    MHA_TRY(mha_meta_int(m, "max_positions", info->max_positions, err));
    MHA_TRY(mha_meta_int(m, "trained_positions", info->trained_positions, err));
    MHA_TRY(mha_meta_int(m, "classes", info->classes, err));
    MHA_TRY(mha_meta_int(m, "parameters", (int64_t)info->parameters, err));
    MHA_TRY(mha_meta_int(m, "file_bytes", (int64_t)info->file_bytes, err));
    MHA_TRY(mha_meta_int(m, "kv_cache_bytes", (int64_t)info->kv_cache_bytes, err));
    return mha_meta_text(m, "tokenizer", tokenizer, err);
}

static mha_status program_write(mha_cli *cli, const mha_output *out, mha_err *err)
{
    mha_outfile f;
    const char *program = mha_model_program(cli->model);
    cli->writing = true;
    MHA_TRY(mha_outfile_open(&f, out->path, out->force, err));
    mha_status status = mha_outfile_write(&f, program, strlen(program), err);
    if (status == MHA_OK)
        return mha_outfile_commit(&f, err);
    mha_outfile_abort(&f);
    return status;
}

static mha_status table_make(mha_table **t, const mha_cli *cli, const mha_output *out, mha_err *err)
{
    bool hash = mha_args_has(&cli->args, MHA_OPT_HASH);
    bool tensors = mha_args_has(&cli->args, MHA_OPT_TENSORS);
    bool text = out->format == MHA_FORMAT_TEXT;
    if (tensors)
        MHA_TRY(mha_table_new(t, "info", tensor_columns, TENSOR_COLUMNS, err));
    else if (text)
        MHA_TRY(mha_table_new(t, "info", property_columns, PROPERTY_COLUMNS, err));
    else
        MHA_TRY(mha_table_new(t, "info", step_columns, STEP_COLUMNS, err));
    MHA_TRY(mha_result_describe(*t, cli, err));
    MHA_TRY(model_describe(*t, cli, err));
    if (tensors)
        MHA_TRY(tensors_fill(*t, cli->model, err));
    else if (text)
        MHA_TRY(properties_fill(*t, cli, err));
    else
        MHA_TRY(steps_fill(*t, cli->info, err));
    return hash ? hashes_add(*t, text && !tensors, cli, err) : MHA_OK;
}

mha_status mha_cmd_info(mha_cli *cli, mha_err *err)
{
    bool program = mha_args_has(&cli->args, MHA_OPT_PROGRAM);
    mha_output out;
    if (program && mha_args_has(&cli->args, MHA_OPT_TENSORS))
        return mha_fail(err, MHA_ERR_ARG, "--program and --tensors exclude each other");
    MHA_TRY(mha_output_choose(&out, cli,
                              program ? MHA_FORMAT_BIT(MHA_FORMAT_TEXT) : MHA_FORMATS_TABLE,
                              MHA_FORMAT_TEXT, err));
    MHA_TRY(mha_open_model(cli, err));
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN)) {
        puts("info reads the headers of the files and runs nothing");
        return MHA_OK;
    }
    if (program)
        return program_write(cli, &out, err);
    mha_table *t = NULL;
    mha_status status = table_make(&t, cli, &out, err);
    if (status == MHA_OK)
        status = mha_output_table(cli, &out, t, NULL, err);
    mha_table_free(t);
    return status;
}
