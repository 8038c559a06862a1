/* checks.c: a short run that shows that the engine's numbers hang together on this model: rows sum
 * to 1, the mask hides what it should, and the heads' outputs add up to the attention's output. */
#include "base/fail.h"
#include "base/mem.h"
#include "mha/analysis.h"
#include "mha/input.h"
#include "model/program.h"
#include "probe/chosen.h"
#include <math.h>

#define CHECK_TOKENS 32

typedef struct checker {
    const mha_model *model;
    mha_chosen chosen; /* all heads */
    mha_document doc;
    mha_graph graph; /* its beginning, with edges of our own */
    uint32_t *ends;  /* [2·E] sources and targets of that */
    size_t rows;     /* of the longest text */
    double *sum;     /* [heads, rows] Σ p */
    double *sink;    /* [heads, rows] what Σ p is short of 1 */
    double *hidden;  /* [heads] largest mass on hidden keys */
    float *out;      /* [H, rows, D] outputs of the heads of the step that runs */
    mha_checks *result;
} checker;

/* Weights of edges: no other keys exist that a mask could hide. */
static void check_edges(const checker *c, const mha_block *b, size_t number)
{
    for (size_t e = 0; e < b->cols; e++)
        c->sum[number * c->rows + b->target[e]] += (double)b->data[e];
}

static void check_pattern(const checker *c, const mha_block *b, const mha_attn_info *step,
                          size_t number)
{
    for (size_t r = 0; r < b->rows; r++) {
        const float *p = b->data + r * b->stride;
        double sum = 0, hidden = 0;
        size_t lo, hi;
        mha_step_span(step, b->first + r, b->cols, &lo, &hi);
        for (size_t j = 0; j < b->cols; j++) {
            sum += (double)p[j];
            if (j < lo || j >= hi)
                hidden += (double)p[j];
        }
        c->sum[number * c->rows + b->first + r] = sum;
        c->hidden[number] = fmax(c->hidden[number], hidden);
    }
}

/* b_O of the step, or NULL. */
static const float *output_bias(const mha_model *m, const mha_attn_info *step)
{
    mha_keys keys = step->kind == MHA_CROSS ? MHA_KEYS_MEMORY : MHA_KEYS_SELF;
    for (size_t s = 0; s < m->stack_count; s++) {
        if (m->stack[s].id != step->stack)
            continue;
        const mha_steps *block = &m->stack[s].block[step->layer];
        for (size_t i = 0; i < block->count; i++)
            if (block->step[i].op == MHA_OP_ATTN && block->step[i].attn.keys == keys)
                return block->step[i].attn.ob;
    }
    return NULL;
}

/* All heads of the step are in c->out: their sum against what the step gave. */
static void check_output(const checker *c, const mha_block *b, const mha_attn_info *step)
{
    const float *bias = output_bias(c->model, step);
    double error = 0, largest = 1;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t d = 0; d < b->cols; d++) {
            double sum = bias != NULL ? (double)bias[d] : 0;
            for (size_t h = 0; h < step->heads; h++)
                sum += (double)c->out[(h * c->rows + b->first + r) * b->cols + d];
            double output = (double)b->data[r * b->stride + d];
            error = fmax(error, fabs(sum - output));
            largest = fmax(largest, fabs(output));
        }
    c->result->head_sum_error = fmax(c->result->head_sum_error, error / largest);
}

static int deliver(void *context, const mha_block *b, size_t worker)
{
    checker *c = context;
    (void)worker;
    size_t a = mha_chosen_step(&c->chosen, b->stack, b->kind, b->layer);
    const mha_attn_info *step = &c->chosen.info->attn[a];
    /* an attention step whose heads are all pruned has an output, but no head 0 */
    size_t number = b->site == MHA_SITE_ATTN_OUT ? 0 : mha_chosen_number(&c->chosen, a, b->head);
    switch (b->site) {
    case MHA_SITE_STATS:
        for (size_t r = 0; r < b->rows; r++)
            c->sink[number * c->rows + b->first + r] =
                b->stats[r].visible > 0 ? b->stats[r].sink : 1;
        return 0;
    case MHA_SITE_PATTERN:
        if (step->edges)
            check_edges(c, b, number);
        else
            check_pattern(c, b, step, number);
        return 0;
    case MHA_SITE_HEAD_OUT:
        for (size_t r = 0; r < b->rows; r++)
            for (size_t d = 0; d < b->cols; d++)
                c->out[(b->head * c->rows + b->first + r) * b->cols + d] =
                    b->data[r * b->stride + d];
        return 0;
    default:
        check_output(c, b, step);
        return 0;
    }
}

static mha_status make(checker *c, mha_err *err)
{
    const mha_model_info *info = c->chosen.info;
    size_t rows = c->chosen.heads * c->rows, widest = 1;
    for (size_t a = 0; a < info->attn_count; a++)
        widest = info->attn[a].out > widest ? info->attn[a].out : widest;
    MHA_TRY(mha_alloc((void **)&c->sum, rows, sizeof *c->sum, err));
    MHA_TRY(mha_alloc((void **)&c->sink, rows, sizeof *c->sink, err));
    MHA_TRY(mha_alloc((void **)&c->hidden, c->chosen.heads, sizeof *c->hidden, err));
    return mha_alloc((void **)&c->out, c->chosen.stride * c->rows, widest * sizeof *c->out, err);
}

static void finish(const checker *c)
{
    const mha_model_info *info = c->chosen.info;
    for (size_t a = 0; a < info->attn_count; a++) {
        size_t T = mha_step_queries(info, &info->attn[a], &c->doc);
        for (uint32_t h = 0; h < info->attn[a].heads; h++) {
            size_t number = mha_chosen_number(&c->chosen, a, h);
            c->result->masked_mass = fmax(c->result->masked_mass, c->hidden[number]);
            for (size_t t = 0; t < T; t++) {
                size_t at = number * c->rows + t;
                double error = fabs(c->sum[at] + c->sink[at] - 1);
                c->result->row_sum_error = fmax(c->result->row_sum_error, error);
            }
        }
    }
}

static mha_status run(checker *c, mha_engine *e, mha_err *err)
{
    const mha_choice all = {0};
    mha_probe probe = {.sites = 1u << MHA_SITE_STATS | 1u << MHA_SITE_PATTERN |
                                1u << MHA_SITE_HEAD_OUT | 1u << MHA_SITE_ATTN_OUT,
                       .deliver = deliver,
                       .context = c};
    const mha_probe *probes[] = {&probe};
    MHA_TRY(mha_chosen_init(&c->chosen, mha_model_info_get(c->model), &all, err));
    MHA_TRY(make(c, err));
    MHA_TRY(mha_engine_run(e, &c->doc, 1, probes, 1, NULL, NULL, err));
    finish(c);
    return MHA_OK;
}

/* The graph of the first n nodes, with the edges between them. */
static mha_status cut_graph(checker *c, const mha_graph *g, size_t n, mha_err *err)
{
    size_t edges = 0;
    for (size_t e = 0; e < g->edges; e++)
        edges += g->source[e] < n && g->target[e] < n;
    MHA_TRY(mha_alloc((void **)&c->ends, 2 * edges, sizeof *c->ends, err));
    c->graph = *g;
    c->graph.nodes = (uint32_t)n;
    c->graph.source = c->ends;
    c->graph.target = c->ends + edges;
    c->graph.edges = 0;
    for (size_t e = 0; e < g->edges; e++)
        if (g->source[e] < n && g->target[e] < n) {
            c->ends[c->graph.edges] = g->source[e];
            c->ends[edges + c->graph.edges++] = g->target[e];
        }
    c->doc.graph = &c->graph;
    return MHA_OK;
}

mha_status mha_checks_run(mha_checks *out, mha_engine *e, const mha_model *model,
                          const mha_document *doc, size_t max_tokens, mha_err *err)
{
    size_t most = max_tokens > 0 ? max_tokens : CHECK_TOKENS;
    checker c = {.model = model, .doc = *doc, .result = out};
    *out = (mha_checks){0};
    c.doc.n = doc->n < most ? doc->n : most;
    c.doc.target_n = doc->target_n < most ? doc->target_n : most;
    c.rows = c.doc.n > c.doc.target_n ? c.doc.n : c.doc.target_n;
    out->tokens = c.doc.n + c.doc.target_n;
    mha_status st = MHA_OK;
    if (doc->graph != NULL)
        st = cut_graph(&c, doc->graph, c.doc.n, err);
    if (st == MHA_OK)
        st = run(&c, e, err);
    mha_free(c.ends);
    mha_free(c.sum);
    mha_free(c.sink);
    mha_free(c.hidden);
    mha_free(c.out);
    mha_chosen_release(&c.chosen);
    return st;
}
