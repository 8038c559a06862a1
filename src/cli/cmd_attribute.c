/* cmd_attribute.c: what attention says about single tokens. Documents run one at a time, and one
 * map is in memory at once. */
#include "base/fail.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "cli/figure.h"
#include "cli/labels.h"
#include "mha/attribute.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define METHOD "contacts"

enum { DOCUMENT, I, J, PIECE_I, PIECE_J, CONTACT, COLUMNS };
static const mha_column columns[COLUMNS] = {
    {"document", "", "from 0", MHA_COLUMN_INT},
    {"i", "", "residue, from 0: without the start token", MHA_COLUMN_INT},
    {"j", "", "a later residue", MHA_COLUMN_INT},
    {"piece_i", "", "residue i as the vocabulary spells it", MHA_COLUMN_TEXT},
    {"piece_j", "", "residue j as the vocabulary spells it", MHA_COLUMN_TEXT},
    {"contact", "", "probability that the two touch", MHA_COLUMN_REAL},
};

typedef struct attribution {
    mha_cli *cli;
    mha_output out;
    mha_chart_options chart;
    mha_table *table;
    uint64_t top; /* pairs of a document that a table keeps */
} attribution;

static mha_status method_check(const mha_args *args, mha_err *err)
{
    const char *method = mha_args_get(args, MHA_OPT_METHOD);
    if (!method)
        return mha_fail(err, MHA_ERR_ARG, "attribute needs --method " METHOD);
    if (strcmp(method, METHOD) != 0)
        return mha_fail(err, MHA_ERR_ARG, "--method: no method '%s'; there is " METHOD, method);
    return MHA_OK;
}

/* --- arrays -------------------------------------------------------------------------------- */

/* The file of a document: PATH, or DIR/0000.npz by its absolute index. *out is owned. */
static mha_status file_name(char **out, const attribution *t, size_t document, mha_err *err)
{
    const mha_input *in = &t->cli->inputs.items[document];
    if (!t->out.directory)
        return mha_strdup(out, t->out.path, err);
    size_t n = strlen(t->out.path), size = n + 64;
    MHA_TRY(mha_alloc((void **)out, size, 1, err));
    snprintf(*out, size, "%s%s%04zu.%s", t->out.path, t->out.path[n - 1] == '/' ? "" : "/",
             in->index, mha_format_name(t->out.format));
    return MHA_OK;
}

static mha_status arrays_fill(mha_arrays *a, const float *map, size_t n, const mha_document *doc,
                              bool one, mha_err *err)
{
    const size_t shape[] = {n, n};
    MHA_TRY(mha_arrays_declare(a, METHOD, MHA_ARRAY_F32, shape, 2, err));
    if (!one)
        MHA_TRY(mha_arrays_declare(a, "ids", MHA_ARRAY_I64, &doc->n, 1, err));
    MHA_TRY(mha_arrays_write(a, map, n * n, err));
    for (size_t i = 0; !one && i < doc->n; i++) {
        int64_t id = doc->ids[i];
        MHA_TRY(mha_arrays_write(a, &id, 1, err));
    }
    return MHA_OK;
}

static mha_status arrays_write(const attribution *t, size_t document, const float *map, size_t n,
                               mha_err *err)
{
    char *path;
    mha_arrays *a;
    const mha_document *doc = &t->cli->inputs.documents[document];
    MHA_TRY(file_name(&path, t, document, err));
    mha_status status = mha_arrays_open(&a, path, t->out.format, t->out.force, err);
    mha_free(path);
    if (status != MHA_OK)
        return status;
    status = arrays_fill(a, map, n, doc, t->out.format == MHA_FORMAT_NPY, err);
    if (status == MHA_OK)
        return mha_arrays_commit(a, err);
    mha_arrays_abort(a);
    return status;
}

/* Whether a file stands where one is to be written. */
static mha_status targets_check(const attribution *t, mha_err *err)
{
    for (size_t i = 0; t->out.directory && !t->out.force && i < t->cli->inputs.count; i++) {
        char *path;
        struct stat st;
        MHA_TRY(file_name(&path, t, i, err));
        bool exists = stat(path, &st) == 0;
        mha_status status =
            exists ? mha_cannot(t->cli, err, "%s exists; --force overwrites", path) : MHA_OK;
        mha_free(path);
        MHA_TRY(status);
    }
    return MHA_OK;
}

/* --- table --------------------------------------------------------------------------------- */

typedef struct pair {
    uint32_t i, j;
    float contact;
} pair;

/* The likeliest first, then in reading order. */
static int pair_order(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->contact != y->contact)
        return x->contact > y->contact ? -1 : 1;
    if (x->i != y->i)
        return x->i < y->i ? -1 : 1;
    return x->j < y->j ? -1 : x->j > y->j;
}

static mha_status pair_add(const attribution *t, size_t document, const pair *p, mha_err *err)
{
    const mha_input *in = &t->cli->inputs.items[document];
    const mha_tokenizer *tokenizer = t->cli->tokenizer;
    MHA_TRY(mha_table_add_row(t->table, err));
    mha_table_set_int(t->table, DOCUMENT, (int64_t)in->index);
    mha_table_set_int(t->table, I, p->i);
    mha_table_set_int(t->table, J, p->j);
    mha_table_set_real(t->table, CONTACT, (double)p->contact);
    if (!tokenizer)
        return MHA_OK;
    const char *piece_i = mha_tokenizer_piece(tokenizer, in->source.id[p->i + 1]);
    const char *piece_j = mha_tokenizer_piece(tokenizer, in->source.id[p->j + 1]);
    MHA_TRY(mha_table_set_text(t->table, PIECE_I, piece_i, err));
    return mha_table_set_text(t->table, PIECE_J, piece_j, err);
}

static mha_status rows_add(const attribution *t, size_t document, const float *map, size_t n,
                           mha_err *err)
{
    pair *pairs;
    size_t count = 0, all;
    if (mha_mul_overflows(n, n - 1, &all))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for the pairs of %zu residues", n);
    MHA_TRY(mha_alloc((void **)&pairs, all / 2, sizeof *pairs, err));
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            pairs[count++] = (pair){(uint32_t)i, (uint32_t)j, map[i * n + j]};
    if (mha_args_has(&t->cli->args, MHA_OPT_TOP) && count > 0)
        qsort(pairs, count, sizeof *pairs, pair_order);
    mha_status status = MHA_OK;
    for (size_t k = 0; k < count && k < t->top && status == MHA_OK; k++)
        status = pair_add(t, document, &pairs[k], err);
    mha_free(pairs);
    return status;
}

static mha_status table_make(attribution *t, mha_err *err)
{
    mha_meta *settings;
    MHA_TRY(mha_table_new(&t->table, "attribute", columns, COLUMNS, err));
    MHA_TRY(mha_result_describe(t->table, t->cli, err));
    MHA_TRY(mha_table_section(&settings, t->table, "settings", err));
    return mha_meta_text(settings, "method", METHOD, err);
}

/* --- figure -------------------------------------------------------------------------------- */

static mha_status heat_make(mha_heat **out, const attribution *t, const float *map, size_t n,
                            mha_err *err)
{
    bool exact = mha_args_has(&t->cli->args, MHA_OPT_EXACT);
    MHA_TRY(mha_heat_new(out, n, n, exact ? SIZE_MAX : MHA_HEAT_LIMIT, MHA_POOL_MAX, err));
    for (size_t i = 0; i < n; i++)
        mha_heat_add(*out, i, 0, map + i * n, n);
    return MHA_OK;
}

static mha_status heat_draw(attribution *t, const mha_heat *heat, size_t n, mha_err *err)
{
    mha_cli *cli = t->cli;
    const mha_tokens *tokens = &cli->inputs.items[0].source;
    int choice = mha_args_choice(&cli->args, MHA_OPT_LABELS);
    mha_label_mode mode = choice < 0 ? MHA_LABEL_TOKENS : (mha_label_mode)choice;
    mha_labels labels = {0};
    uint32_t *cell;
    char about[160];
    if (mha_args_has(&cli->args, MHA_OPT_EXACT))
        return mha_chart_exact(heat, &t->chart, t->out.path, err);
    MHA_TRY(mha_alloc((void **)&cell, tokens->n, sizeof *cell, err));
    for (size_t i = 0; i < tokens->n; i++)
        cell[i] = (uint32_t)i;
    mha_cells cells = {tokens, cell, 1, n};
    mha_status status = mha_labels_make(&labels, cli->tokenizer, &cells, mode, err);
    mha_axis axis = {"residue", labels.items, labels.count, 0, mode == MHA_LABEL_NONE};
    mha_heatmap figure = {
        .map = heat, .rows = axis, .cols = axis, .value_name = "contact probability"};
    snprintf(about, sizeof about, "%s, contacts of %zu residues by the checkpoint's contact head.",
             cli->info->family, n);
    t->chart.about = about;
    if (status == MHA_OK)
        status = mha_chart_heatmap(&figure, &t->chart, t->out.path, err);
    mha_labels_release(&labels);
    mha_free(cell);
    return status;
}

static mha_status figure_write(attribution *t, const float *map, size_t n, mha_err *err)
{
    mha_heat *heat;
    MHA_TRY(heat_make(&heat, t, map, n, err));
    mha_status status = heat_draw(t, heat, n, err);
    mha_heat_free(heat);
    return status;
}

/* --- the run ------------------------------------------------------------------------------- */

static mha_status document_write(attribution *t, size_t document, const float *map, size_t n,
                                 mha_err *err)
{
    if (t->table)
        return rows_add(t, document, map, n, err);
    t->cli->writing = true;
    MHA_TRY(mha_output_is_figure(&t->out) ? figure_write(t, map, n, err)
                                          : arrays_write(t, document, map, n, err));
    t->cli->writing = false;
    return MHA_OK;
}

static mha_status memory_check(const attribution *t, uint64_t bytes, mha_err *err)
{
    uint64_t limit = 0;
    MHA_TRY(mha_args_bytes(&t->cli->args, MHA_OPT_MEMORY, &limit, err));
    if (limit && bytes > limit)
        return mha_fail(err, MHA_ERR_NOMEM,
                        "the contact map takes %" PRIu64 " bytes, the limit is %" PRIu64, bytes,
                        limit);
    return MHA_OK;
}

static mha_status document_run(attribution *t, size_t document, mha_err *err)
{
    mha_cli *cli = t->cli;
    const mha_document *doc = &cli->inputs.documents[document];
    uint64_t bytes = mha_contacts_bytes(cli->model, doc->n);
    mha_contacts *c;
    MHA_TRY(memory_check(t, bytes, err));
    MHA_TRY(mha_contacts_new(&c, cli->model, doc, err));
    const mha_probe *probes[] = {mha_contacts_probe(c)};
    bool dry = mha_args_has(&cli->args, MHA_OPT_DRY_RUN);
    mha_status status = dry ? mha_print_plan(cli, probes, 1, bytes, err)
                            : mha_run_documents(cli, doc, 1, probes, 1, err);
    if (status == MHA_OK && !dry)
        status = document_write(t, document, mha_contacts_map(c), mha_contacts_residues(c), err);
    mha_contacts_free(c);
    return status;
}

/* The longest document: what decides the memory. */
static size_t longest(const mha_inputs *in)
{
    size_t at = 0;
    for (size_t i = 1; i < in->count; i++)
        at = in->documents[i].n > in->documents[at].n ? i : at;
    return at;
}

static mha_status run(attribution *t, mha_err *err)
{
    mha_cli *cli = t->cli;
    bool figure = mha_output_is_figure(&t->out);
    bool table = MHA_FORMATS_TABLE & MHA_FORMAT_BIT(t->out.format);
    MHA_TRY(mha_open_inputs(cli, err));
    if (figure && cli->inputs.given != 1)
        return mha_fail(err, MHA_ERR_ARG,
                        "a picture shows one document and these are %zu; --max-docs 1 takes the "
                        "first",
                        cli->inputs.given);
    if (!figure && !table && cli->inputs.given > 1 && !t->out.directory)
        return mha_fail(err, MHA_ERR_ARG, "%zu documents need a directory: -o DIR/",
                        cli->inputs.given);
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN))
        return document_run(t, longest(&cli->inputs), err);
    MHA_TRY(targets_check(t, err));
    if (table)
        MHA_TRY(table_make(t, err));
    if (t->out.directory) {
        cli->writing = true;
        MHA_TRY(mha_dir_make(t->out.path, err));
        cli->writing = false;
    }
    mha_note_fed(cli);
    for (size_t i = 0; i < cli->inputs.count; i++)
        MHA_TRY(document_run(t, i, err));
    return table ? mha_output_table(cli, &t->out, t->table, NULL, err) : MHA_OK;
}

mha_status mha_cmd_attribute(mha_cli *cli, mha_err *err)
{
    attribution t = {.cli = cli, .top = UINT64_MAX};
    bool exact = mha_args_has(&cli->args, MHA_OPT_EXACT);
    MHA_TRY(method_check(&cli->args, err));
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_TOP, 1, UINT64_MAX, &t.top, err));
    /* Pairs for a reader of standard output; a file's suffix says what it is to be. */
    bool standard = !mha_args_has(&cli->args, MHA_OPT_OUTPUT);
    unsigned allowed = exact ? MHA_FORMAT_BIT(MHA_FORMAT_PNG)
                             : MHA_FORMATS_TABLE | MHA_FORMATS_ARRAY | MHA_FORMATS_FIGURE;
    MHA_TRY(mha_output_choose(&t.out, cli, allowed,
                              standard && !exact ? MHA_FORMAT_TEXT : MHA_FORMAT_AUTO, err));
    if (t.out.directory && !(MHA_FORMATS_ARRAY & MHA_FORMAT_BIT(t.out.format)))
        return mha_fail(err, MHA_ERR_ARG, "a directory takes arrays; name a file with -o");
    if (mha_output_is_figure(&t.out))
        MHA_TRY(mha_figure_options(&t.chart, cli, &t.out, err));
    mha_status status = run(&t, err);
    mha_table_free(t.table);
    return status;
}
