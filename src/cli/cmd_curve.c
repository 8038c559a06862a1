/* cmd_curve.c: the pruning experiment, as a table or as a figure. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/figure.h"
#include "cli/headlist.h"
#include "cli/output.h"
#include "cli/scoring.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct curving {
    mha_cli *cli;
    mha_scoring scoring;
    mha_inputs eval;
    mha_measured measured; /* of eval */
    double *scores;        /* [A, H] of --scores */
    char *partial, *ranking_partial;
    mha_curve_options options;
    mha_curve *curve;
    mha_table *table;
} curving;

/* ---- options ---------------------------------------------------------------------------------
 */

static mha_status method_choose(curving *v, mha_err *err)
{
    const mha_args *args = &v->cli->args;
    const char *method = mha_args_get(args, MHA_OPT_METHOD);
    mha_importance_method methods[MHA_METHOD_COUNT];
    size_t count;
    bool rescore = mha_args_has(args, MHA_OPT_RESCORE);
    bool scores = mha_args_has(args, MHA_OPT_SCORES);
    if (scores && (method || rescore))
        return mha_fail(err, MHA_ERR_ARG, "--scores is the ranking: no --method and no --rescore");
    if (mha_args_has(args, MHA_OPT_BY) && !scores)
        return mha_fail(err, MHA_ERR_ARG, "--by goes with --scores");
    if (method && strcmp(method, "greedy") == 0) {
        if (rescore)
            return mha_fail(err, MHA_ERR_ARG, "greedy ranks again at every step anyway");
        v->options.mode = MHA_CURVE_GREEDY;
        return MHA_OK;
    }
    MHA_TRY(mha_methods_parse(methods, &count, args, err));
    if (count > 1)
        return mha_fail(err, MHA_ERR_ARG, "--method: a curve follows one method");
    v->options.mode = rescore ? MHA_CURVE_RESCORED : MHA_CURVE_KEPT;
    v->options.ranking.method = methods[0];
    return MHA_OK;
}

static mha_status options_read(curving *v, const mha_output *out, mha_err *err)
{
    const mha_args *args = &v->cli->args;
    mha_curve_options *o = &v->options;
    mha_importance_method method = o->ranking.method;
    uint64_t steps = 10, orders = 20;
    o->ranking = v->scoring.options;
    o->ranking.method = method;
    o->resamples = o->ranking.resamples;
    o->confidence = o->ranking.confidence;
    o->seed = o->ranking.seed;
    MHA_TRY(mha_args_uint(args, MHA_OPT_STEPS, 1, 100000, &steps, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_ORDERS, 0, 100000, &orders, err));
    o->steps = steps;
    o->orders = orders;
    MHA_TRY(mha_partial_path(&v->partial, v->cli, out->path, "curve", err));
    MHA_TRY(mha_partial_path(&v->ranking_partial, v->cli, out->path, "ranking", err));
    o->partial = v->partial;
    o->ranking.partial = v->ranking_partial;
    o->resume = o->ranking.resume = mha_args_has(args, MHA_OPT_RESUME);
    return MHA_OK;
}

/* Documents that measure: those of --eval, or the ones that rank. */
static mha_status eval_open(curving *v, mha_err *err)
{
    const char *path = mha_args_get(&v->cli->args, MHA_OPT_EVAL);
    if (!path) {
        if (!v->scores)
            mha_note(v->cli, "no --eval: the documents that rank the heads measure them too, which "
                             "flatters the ranking");
        return MHA_OK;
    }
    for (size_t i = 0; !v->scores && i < v->cli->args.count; i++)
        if (v->cli->args.given[i].id == MHA_OPT_FILE &&
            strcmp(v->cli->args.given[i].value, path) == 0)
            mha_note(v->cli, "--eval names the file that ranks the heads, which flatters the "
                             "ranking");
    v->eval.truths = true;
    MHA_TRY(mha_inputs_load_file(&v->eval, v->cli, path, err));
    return mha_measured_make(&v->measured, &v->scoring, &v->eval, err);
}

static mha_status open_all(curving *v, const mha_output *out, mha_err *err)
{
    const char *scores = mha_args_get(&v->cli->args, MHA_OPT_SCORES);
    MHA_TRY(mha_scoring_open(&v->scoring, v->cli, err));
    if (scores) {
        size_t stride = v->scoring.selection.stride;
        MHA_TRY(mha_alloc((void **)&v->scores, v->cli->info->attn_count * stride, sizeof *v->scores,
                          err));
        MHA_TRY(mha_headlist_scores(v->scores, v->cli, scores, stride, err));
        v->options.scores = v->scores;
    }
    MHA_TRY(eval_open(v, err));
    return options_read(v, out, err);
}

static mha_status measure(curving *v, mha_err *err)
{
    mha_cli *cli = v->cli;
    const mha_losses *input = v->scoring.input.losses;
    mha_progress_start(&cli->bar, "curve");
    mha_status status = mha_curve_run(&v->curve, cli->engine, cli->model, v->scores ? NULL : input,
                                      v->measured.losses ? v->measured.losses : input, &v->options,
                                      mha_progress_step, &cli->bar, err);
    mha_progress_end(&cli->bar);
    mha_partial_judge(cli, status, v->partial, err);
    mha_partial_judge(cli, status, v->ranking_partial, err);
    return status;
}

/* ---- the table -------------------------------------------------------------------------------
 */

static const mha_column columns[] = {
    {"removed", "", "heads (groups, layers) that are gone", MHA_COLUMN_INT},
    {"fraction", "", "of those that could go", MHA_COLUMN_REAL},
    {"loss", "nats", "mean loss, the least important removed first", MHA_COLUMN_REAL},
    {"metric", "", "share of predictions that are the likeliest", MHA_COLUMN_REAL},
    {"loss_random_lo", "nats", "2.5 % of random orders", MHA_COLUMN_REAL},
    {"loss_random_mean", "nats", "mean of random orders", MHA_COLUMN_REAL},
    {"loss_random_hi", "nats", "97.5 % of random orders", MHA_COLUMN_REAL},
    {"loss_reverse", "nats", "removed in the opposite order", MHA_COLUMN_REAL},
    {"metric_random_lo", "", "2.5 % of random orders", MHA_COLUMN_REAL},
    {"metric_random_mean", "", "mean of random orders", MHA_COLUMN_REAL},
    {"metric_random_hi", "", "97.5 % of random orders", MHA_COLUMN_REAL},
    {"metric_reverse", "", "removed in the opposite order", MHA_COLUMN_REAL},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static mha_status rows_fill(curving *v, mha_err *err)
{
    size_t n;
    const mha_curve_point *points = mha_curve_points(v->curve, &n);
    for (size_t i = 0; i < n; i++) {
        const mha_curve_point *p = &points[i];
        const double values[] = {p->fraction,
                                 p->loss,
                                 p->metric,
                                 p->loss_random.lo,
                                 p->loss_random.mean,
                                 p->loss_random.hi,
                                 p->loss_reverse,
                                 p->metric_random.lo,
                                 p->metric_random.mean,
                                 p->metric_random.hi,
                                 p->metric_reverse};
        MHA_TRY(mha_table_add_row(v->table, err));
        mha_table_set_int(v->table, 0, (int64_t)p->removed);
        for (size_t c = 1; c < COLUMNS; c++)
            mha_table_set_real(v->table, c, values[c - 1]);
    }
    return MHA_OK;
}

static mha_status summary_describe(curving *v, mha_err *err)
{
    const mha_curve_summary *s = mha_curve_summary_get(v->curve);
    const struct {
        const char *name;
        double value;
    } entries[] = {{"area", s->area},
                   {"area_lo", s->area_lo},
                   {"area_hi", s->area_hi},
                   {"area_random", s->area_random},
                   {"area_reverse", s->area_reverse},
                   {"keeps_99", s->keeps},
                   {"keeps_99_lo", s->keeps_lo},
                   {"keeps_99_hi", s->keeps_hi},
                   {"split_half", s->reliability}};
    mha_meta *m;
    MHA_TRY(mha_table_section(&m, v->table, "summary", err));
    MHA_TRY(mha_meta_int(m, "documents", (int64_t)s->documents, err));
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        MHA_TRY(mha_meta_real(m, entries[i].name, entries[i].value, err));
    return MHA_OK;
}

static void summary_note(const curving *v)
{
    const mha_curve_summary *s = mha_curve_summary_get(v->curve);
    char random[40] = "";
    if (!isnan(s->area_random))
        snprintf(random, sizeof random, "random orders %.3f, ", s->area_random);
    if (!isnan(s->area))
        mha_note(v->cli,
                 "area under metric/metric of the whole model: %.3f (%sopposite order %.3f); 99 %% "
                 "of it is kept up to fraction %.2f",
                 s->area, random, s->area_reverse, s->keeps);
}

/* "dec.self.4.7" for each unit, in the order in which they went. */
static mha_status order_describe(curving *v, mha_err *err)
{
    size_t n;
    const mha_unit_place *order = mha_curve_order(v->curve, &n);
    mha_meta *m, *list;
    MHA_TRY(mha_table_section(&m, v->table, "order", err));
    MHA_TRY(mha_meta_list(&list, m, "removed", err));
    for (size_t i = 0; i < n; i++) {
        const mha_attn_info *step = &v->cli->info->attn[order[i].step];
        char name[64];
        int used = snprintf(name, sizeof name, "%s.%s.%u", mha_stack_name(step->stack),
                            mha_kind_name(step->kind), step->layer);
        if (v->options.ranking.unit != MHA_UNIT_LAYER)
            snprintf(name + used, sizeof name - (size_t)used, ".%u", order[i].number);
        MHA_TRY(mha_meta_text(list, NULL, name, err));
    }
    return MHA_OK;
}

static mha_status settings_describe(curving *v, mha_err *err)
{
    static const char *const modes[] = {"kept", "rescored", "greedy"};
    const mha_args *args = &v->cli->args;
    const char *by = mha_args_get(args, MHA_OPT_BY);
    mha_meta *m;
    MHA_TRY(mha_table_section(&m, v->table, "settings", err));
    if (v->scores)
        MHA_TRY(mha_meta_text(m, "ranked_by", by ? by : "score", err));
    else if (v->options.mode != MHA_CURVE_GREEDY)
        MHA_TRY(mha_meta_text(m, "method", mha_importance_name(v->options.ranking.method), err));
    MHA_TRY(mha_meta_text(m, "ranking", modes[v->options.mode], err));
    MHA_TRY(mha_meta_int(m, "steps", (int64_t)v->options.steps, err));
    MHA_TRY(mha_meta_int(m, "orders", (int64_t)v->options.orders, err));
    MHA_TRY(mha_meta_bool(m, "own_evaluation", v->measured.losses != NULL, err));
    return mha_scoring_describe(&v->scoring, m, err);
}

static mha_status result_write(curving *v, const mha_output *out, mha_err *err)
{
    mha_column own[COLUMNS];
    memcpy(own, columns, sizeof own);
    if (mha_losses_kind(v->scoring.input.losses) == MHA_LOSS_LOGIT_DIFF)
        for (size_t c = 0; c < COLUMNS; c++)
            own[c].unit = *own[c].unit ? "logits" : "";
    MHA_TRY(mha_table_new(&v->table, "curve", own, COLUMNS, err));
    MHA_TRY(mha_result_describe(v->table, v->cli, err));
    MHA_TRY(settings_describe(v, err));
    MHA_TRY(summary_describe(v, err));
    MHA_TRY(order_describe(v, err));
    MHA_TRY(rows_fill(v, err));
    return mha_output_table(v->cli, out, v->table, "loss", err);
}

/* ---- the figure ------------------------------------------------------------------------------
 */

enum { RANKED, RANDOM, REVERSE, LINES };

typedef struct curvechart {
    double *fraction;
    double *loss[LINES], *metric[LINES], *loss_band[2], *metric_band[2];
} curvechart;

static mha_status points_spread(curvechart *c, mha_arena *arena, const mha_curve_point *points,
                                size_t n, mha_err *err)
{
    double **const all[] = {&c->fraction,        &c->loss[RANKED],   &c->loss[RANDOM],
                            &c->loss[REVERSE],   &c->metric[RANKED], &c->metric[RANDOM],
                            &c->metric[REVERSE], &c->loss_band[0],   &c->loss_band[1],
                            &c->metric_band[0],  &c->metric_band[1]};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        MHA_TRY(mha_arena_alloc((void **)all[k], arena, n, sizeof(double), err));
    for (size_t i = 0; i < n; i++) {
        const mha_curve_point *p = &points[i];
        const double values[] = {p->fraction,         p->loss,
                                 p->loss_random.mean, p->loss_reverse,
                                 p->metric,           p->metric_random.mean,
                                 p->metric_reverse,   p->loss_random.lo,
                                 p->loss_random.hi,   p->metric_random.lo,
                                 p->metric_random.hi};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            (*all[k])[i] = values[k];
    }
    return MHA_OK;
}

static mha_status figure_draw(curving *v, const mha_output *out, const mha_chart_options *chart,
                              mha_arena *arena, mha_err *err)
{
    static const char *const units[] = {"heads removed, fraction", "groups removed, fraction",
                                        "layers removed, fraction"};
    static const char *const names[] = {"least important first", "random orders",
                                        "most important first"};
    const mha_curve_summary *s = mha_curve_summary_get(v->curve);
    curvechart c;
    size_t n;
    char note[256] = "";
    const mha_curve_point *points = mha_curve_points(v->curve, &n);
    MHA_TRY(points_spread(&c, arena, points, n, err));
    const mha_line loss[] = {{.y = c.loss[RANKED]},
                             {c.loss[RANDOM], c.loss_band[0], c.loss_band[1]},
                             {.y = c.loss[REVERSE]}};
    const mha_line metric[] = {{.y = c.metric[RANKED]},
                               {c.metric[RANDOM], c.metric_band[0], c.metric_band[1]},
                               {.y = c.metric[REVERSE]}};
    bool logits = mha_losses_kind(v->scoring.input.losses) == MHA_LOSS_LOGIT_DIFF;
    const mha_line_panel panels[] = {{"loss", logits ? "logits" : "nats", loss},
                                     {"accuracy", NULL, metric}};
    int used = 0;
    if (v->options.orders > 0)
        used = snprintf(note, sizeof note, "Band: 95 %% of %zu random orders. ", v->options.orders);
    bool keeps = s->keeps > 0;
    if (keeps)
        snprintf(note + used, sizeof note - (size_t)used,
                 "Upright line: 99 %% of the accuracy is kept up to here (%.2f).", s->keeps);
    const mha_lines figure = {.x = c.fraction,
                              .count = n,
                              .x_name = units[v->options.ranking.unit],
                              .names = names,
                              .lines = LINES,
                              .panels = panels,
                              .panel_count = 2,
                              .mark = keeps ? s->keeps : (double)NAN,
                              .note = *note ? note : NULL};
    return mha_chart_lines(&figure, chart, out->path, err);
}

static mha_status result_save(curving *v, const mha_output *out, const mha_chart_options *chart,
                              mha_err *err)
{
    summary_note(v);
    if (mha_output_is_figure(out)) {
        mha_arena arena = {0};
        v->cli->writing = true;
        mha_status status = figure_draw(v, out, chart, &arena, err);
        mha_arena_release(&arena);
        MHA_TRY(status);
    } else
        MHA_TRY(result_write(v, out, err));
    if (v->partial) { /* the result is safe */
        unlink(v->partial);
        unlink(v->ranking_partial);
    }
    return MHA_OK;
}

/* ---- the command -----------------------------------------------------------------------------
 */

static mha_status run(curving *v, const mha_output *out, const mha_chart_options *chart,
                      mha_err *err)
{
    const mha_probe logits = {.sites = 1u << MHA_SITE_LOGITS};
    const mha_probe *probes[] = {&logits};
    MHA_TRY(open_all(v, out, err));
    if (mha_args_has(&v->cli->args, MHA_OPT_DRY_RUN)) {
        MHA_TRY(mha_print_plan(v->cli, probes, 1, 0, err));
        printf("%-16s%zu passes over the evaluation documents\n", "curve",
               2 + (v->options.steps - 1) * (2 + v->options.orders));
        return MHA_OK;
    }
    MHA_TRY(measure(v, err));
    return result_save(v, out, chart, err);
}

mha_status mha_cmd_curve(mha_cli *cli, mha_err *err)
{
    curving v = {.cli = cli};
    mha_output out;
    mha_chart_options chart = {0};
    MHA_TRY(
        mha_output_choose(&out, cli, MHA_FORMATS_TABLE | MHA_FORMATS_FIGURE, MHA_FORMAT_TEXT, err));
    if (mha_output_is_figure(&out))
        MHA_TRY(mha_figure_options(&chart, cli, &out, err));
    MHA_TRY(method_choose(&v, err));
    mha_status status = run(&v, &out, &chart, err);
    mha_table_free(v.table);
    mha_curve_free(v.curve);
    mha_measured_release(&v.measured);
    mha_scoring_release(&v.scoring);
    mha_inputs_release(&v.eval);
    mha_free(v.scores);
    mha_free(v.partial);
    mha_free(v.ranking_partial);
    return status;
}
