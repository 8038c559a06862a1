/* netmap.c: heads of a graph model as pictures of the graph. Layers whose chosen heads are equally
 * many stand below each other, others one after the other. */
#include "cli/netmap.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/labels.h"
#include "cli/select.h"

#include <inttypes.h>
#include <stdio.h>

#define TITLE_BYTES 24
#define COLUMNS_MAX 4

typedef struct netmap {
    mha_cli *cli;
    const mha_output *out;
    mha_chart_options chart;
    mha_selection selection;
    mha_trace *trace;
    uint32_t *ends;        /* [2·edges] sources, then targets */
    const float **weights; /* [count] of each chosen head */
    char (*text)[TITLE_BYTES];
    const char **titles; /* [count] */
    size_t count, rows, cols, edges;
} netmap;

static mha_status options_check(const mha_cli *cli, mha_err *err)
{
    static const mha_option_id others[] = {MHA_OPT_ROWS, MHA_OPT_COLS, MHA_OPT_EXACT, MHA_OPT_WORDS,
                                           MHA_OPT_SPECIAL};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (mha_args_has(&cli->args, others[i]))
            return mha_fail(err, MHA_ERR_ARG,
                            "%s: a graph is drawn as a graph, without rows, "
                            "columns and words",
                            mha_options[others[i]].name);
    return MHA_OK;
}

/* The edges are those of the first chosen step; they are the same in all layers of a model. */
static mha_status edges_make(netmap *n, mha_err *err)
{
    const mha_graph *g = n->cli->inputs.documents[0].graph;
    const mha_model_info *info = n->cli->info;
    bool loops = info->attn[0].self_loops;
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].self_loops != loops && mha_selection_heads(&n->selection, a))
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "layers with loops of their own and layers without: draw them apart");
    n->edges = mha_graph_edges(g, loops, NULL, NULL);
    MHA_TRY(mha_alloc((void **)&n->ends, 2 * n->edges, sizeof *n->ends, err));
    mha_graph_edges(g, loops, n->ends, n->ends + n->edges);
    return MHA_OK;
}

/* The weights and the name of each chosen head, in order. */
static mha_status heads_list(netmap *n, mha_err *err)
{
    const mha_model_info *info = n->cli->info;
    size_t count = n->selection.count, at = 0;
    MHA_TRY(mha_alloc((void **)&n->weights, count + COLUMNS_MAX, sizeof *n->weights, err));
    MHA_TRY(mha_alloc((void **)&n->titles, count + COLUMNS_MAX, sizeof *n->titles, err));
    MHA_TRY(mha_alloc((void **)&n->text, count, sizeof *n->text, err));
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        char name[40];
        size_t slot = 0;
        if (!mha_selection_heads(&n->selection, a))
            continue;
        snprintf(name, sizeof name, "%s.%s.%" PRIu32 ".pattern", mha_stack_name(step->stack),
                 mha_kind_name(step->kind), step->layer);
        const mha_trace_array *array = mha_trace_find(n->trace, 0, name);
        for (uint32_t h = 0; h < step->heads; h++) {
            if (!mha_selection_has(&n->selection, a, h))
                continue;
            n->weights[at] = (const float *)array->data + slot++ * n->edges;
            snprintf(n->text[at], TITLE_BYTES, "%" PRIu32 ".%" PRIu16, step->layer,
                     step->head_ids[h]);
            n->titles[at] = n->text[at];
            at++;
        }
    }
    n->count = at;
    return MHA_OK;
}

static void places_choose(netmap *n)
{
    const mha_model_info *info = n->cli->info;
    size_t each = 0, layers = 0;
    bool same = true;
    for (size_t a = 0; a < info->attn_count; a++) {
        size_t heads = mha_selection_heads(&n->selection, a);
        if (!heads)
            continue;
        same = same && (layers == 0 || heads == each);
        each = heads;
        layers++;
    }
    n->cols = n->count < COLUMNS_MAX ? n->count : COLUMNS_MAX;
    if (same && layers > 1)
        n->cols = each;
    n->rows = (n->count + n->cols - 1) / n->cols;
}

static mha_status draw(netmap *n, mha_err *err)
{
    const mha_graph *g = n->cli->inputs.documents[0].graph;
    char about[160], heads[48];
    MHA_TRY(heads_list(n, err));
    places_choose(n);
    if (n->count == 1)
        snprintf(heads, sizeof heads, "head %s", n->titles[0]);
    else
        snprintf(heads, sizeof heads, "%zu heads", n->count);
    snprintf(about, sizeof about, "%.40s, %s, %" PRIu32 " nodes and %zu edges.",
             n->cli->info->family, heads, g->nodes, n->edges);
    n->chart.about = about;
    n->cli->writing = true;
    mha_network figure = {.nodes = g->nodes,
                          .edges = n->edges,
                          .source = n->ends,
                          .target = n->ends + n->edges,
                          .weights = n->weights,
                          .rows = n->rows,
                          .cols = n->cols,
                          .titles = n->count > 1 ? n->titles : NULL,
                          .bare = mha_args_choice(&n->cli->args, MHA_OPT_LABELS) == MHA_LABEL_NONE};
    return mha_chart_network(&figure, &n->chart, n->out->path, err);
}

static mha_status trace_run(netmap *n, mha_err *err)
{
    mha_cli *cli = n->cli;
    mha_trace_options options = {.sites = 1u << MHA_SITE_PATTERN,
                                 .choice = mha_selection_choice(&n->selection)};
    MHA_TRY(mha_args_bytes(&cli->args, MHA_OPT_MEMORY, &options.limit, err));
    MHA_TRY(mha_trace_new(&n->trace, cli->model, cli->inputs.documents, 1, &options, err));
    const mha_probe *probes[] = {mha_trace_probe(n->trace)};
    if (mha_args_has(&cli->args, MHA_OPT_DRY_RUN))
        return mha_print_plan(cli, probes, 1, 0, err);
    mha_note_fed(cli);
    MHA_TRY(mha_run_documents(cli, cli->inputs.documents, 1, probes, 1, err));
    return draw(n, err);
}

mha_status mha_netmap_run(mha_cli *cli, const mha_output *out, const mha_chart_options *chart,
                          mha_err *err)
{
    netmap n = {.cli = cli, .out = out, .chart = *chart};
    MHA_TRY(options_check(cli, err));
    mha_status status = mha_selection_make(&n.selection, cli, err);
    if (status == MHA_OK)
        status = edges_make(&n, err);
    if (status == MHA_OK)
        status = trace_run(&n, err);
    mha_trace_free(n.trace);
    mha_free(n.ends);
    mha_free(n.weights);
    mha_free(n.titles);
    mha_free(n.text);
    mha_selection_release(&n.selection);
    return status;
}
