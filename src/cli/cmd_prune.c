/* cmd_prune.c: writes a smaller model: which heads go, by name, by a ranking or under a budget, and
 * a summary of what came of it. */
#include "base/fail.h"
#include "base/mem.h"
#include "cli/headlist.h"
#include "cli/output.h"
#include "cli/scoring.h"
#include "mha/prune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct pruning {
    mha_cli *cli;
    const char *path;
    mha_option_id how; /* HEADS, KEEP, FRACTION or BUDGET */
    bool measures;     /* a budget without a ranking: gradients on the input */
    mha_unit unit;
    mha_scoring scoring;
    mha_selection selection; /* candidates of FRACTION and BUDGET */
    size_t stride;
    bool *remove; /* [A, H] */
    mha_head_means *means;
    mha_prune request;
    mha_prune_search search;
    mha_unit_place *units;
    double *score, *gradient;
} pruning;

/* ---- what is asked for ------------------------------------------------------------------------
 */

static mha_status how_choose(pruning *p, mha_err *err)
{
    static const mha_option_id ways[] = {MHA_OPT_HEADS, MHA_OPT_KEEP, MHA_OPT_FRACTION,
                                         MHA_OPT_BUDGET};
    const mha_args *args = &p->cli->args;
    size_t given = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (mha_args_has(args, ways[i])) {
            p->how = ways[i];
            given++;
        }
    if (given != 1)
        return mha_fail(err, MHA_ERR_ARG,
                        "prune needs one of --heads, --keep, --fraction and --budget");
    if (p->how == MHA_OPT_FRACTION && !mha_args_has(args, MHA_OPT_SCORES))
        return mha_fail(err, MHA_ERR_ARG, "--fraction needs --scores, a table of importance");
    if (mha_args_has(args, MHA_OPT_SCORES) && p->how != MHA_OPT_FRACTION &&
        p->how != MHA_OPT_BUDGET)
        return mha_fail(err, MHA_ERR_ARG, "--scores goes with --fraction or --budget");
    p->measures = p->how == MHA_OPT_BUDGET && !mha_args_has(args, MHA_OPT_SCORES);
    int unit = mha_args_choice(args, MHA_OPT_UNIT);
    p->unit = unit < 0 ? MHA_UNIT_HEAD : (mha_unit)unit;
    p->request.mode = mha_args_choice(args, MHA_OPT_MODE) == 1 ? MHA_PRUNE_MASK : MHA_PRUNE_SLICE;
    p->request.force = mha_args_has(args, MHA_OPT_FORCE);
    p->path = mha_args_get(args, MHA_OPT_OUTPUT);
    if (!p->path || !*p->path || strcmp(p->path, "-") == 0)
        return mha_fail(err, MHA_ERR_ARG, "prune needs -o DIRECTORY");
    return mha_output_parent(p->cli, p->path, err);
}

static bool has_input(const mha_args *args)
{
    static const mha_option_id inputs[] = {MHA_OPT_TEXT, MHA_OPT_FILE, MHA_OPT_IDS,
                                           MHA_OPT_IDS_FILE};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (mha_args_has(args, inputs[i]))
            return true;
    return false;
}

static mha_status open_all(pruning *p, mha_err *err)
{
    mha_cli *cli = p->cli;
    bool folds = mha_args_has(&cli->args, MHA_OPT_FOLD_MEAN);
    if (p->measures)
        return mha_scoring_open(&p->scoring, cli, err);
    MHA_TRY(mha_open_model(cli, err));
    if (folds)
        MHA_TRY(mha_open_engine(cli, err));
    if (folds && !mha_args_has(&cli->args, MHA_OPT_REFERENCE))
        MHA_TRY(mha_inputs_load(cli, err));
    else if (has_input(&cli->args))
        return mha_fail(err, MHA_ERR_ARG, "documents are read for --fold-mean or --budget only");
    return MHA_OK;
}

/* ---- by name ----------------------------------------------------------------------------------
 */

static mha_status choose_named(pruning *p, mha_err *err)
{
    const mha_model_info *info = p->cli->info;
    size_t gone;
    MHA_TRY(mha_headlist_mark(p->remove, &gone, p->cli, p->how, p->stride, err));
    for (size_t a = 0; p->how == MHA_OPT_KEEP && a < info->attn_count; a++)
        for (uint32_t h = 0; h < info->attn[a].heads; h++)
            p->remove[a * p->stride + h] = !p->remove[a * p->stride + h];
    for (size_t i = 0; i < info->attn_count * p->stride; i++)
        if (p->remove[i])
            return MHA_OK;
    return mha_cannot(p->cli, err,
                      gone ? "the heads are all gone already" : "no head is left to go");
}

/* ---- by worth ---------------------------------------------------------------------------------
 */

/* Slices take the heads of a key/value head together. */
static mha_status unit_check(const pruning *p, mha_err *err)
{
    const mha_model_info *info = p->cli->info;
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].heads > info->attn[a].kv_heads && p->unit == MHA_UNIT_HEAD &&
            p->request.mode == MHA_PRUNE_SLICE)
            return mha_fail(err, MHA_ERR_ARG,
                            "%" PRIu32 " heads share each key/value head and leave the weights "
                            "together: --unit kv-group, or --mode mask for single heads",
                            info->attn[a].heads / info->attn[a].kv_heads);
    return MHA_OK;
}

static mha_status units_make(pruning *p, mha_err *err)
{
    const mha_model_info *info = p->cli->info;
    size_t most = info->attn_count * p->stride;
    MHA_TRY(mha_alloc((void **)&p->units, most, sizeof *p->units, err));
    MHA_TRY(mha_alloc((void **)&p->score, most, sizeof *p->score, err));
    for (uint32_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        uint32_t width = p->unit == MHA_UNIT_HEAD || step->heads == 0 ? 1
                         : p->unit == MHA_UNIT_LAYER                  ? step->heads
                                                     : step->heads / step->kv_heads;
        for (uint32_t h = 0; h < step->heads; h += width)
            if (mha_selection_has(&p->selection, a, h))
                p->units[p->search.count++] = (mha_unit_place){a, h, width, h / width};
    }
    p->search.units = p->units;
    p->search.score = p->score;
    return MHA_OK;
}

/* A unit is worth what its heads are together. */
static mha_status read_scores(pruning *p, mha_err *err)
{
    const char *path = mha_args_get(&p->cli->args, MHA_OPT_SCORES);
    double *scores;
    MHA_TRY(mha_alloc((void **)&scores, p->cli->info->attn_count * p->stride, sizeof *scores, err));
    mha_status status = mha_headlist_scores(scores, p->cli, path, p->stride, err);
    for (size_t i = 0; i < p->search.count && status == MHA_OK; i++) {
        const mha_unit_place *u = &p->units[i];
        const mha_attn_info *step = &p->cli->info->attn[u->step];
        for (uint32_t h = u->first; h < u->first + u->count; h++)
            p->score[i] += scores[u->step * p->stride + h];
        if (isnan(p->score[i]))
            status = mha_fail(err, MHA_ERR_FORMAT, "%s: has no score for %s.%s.%" PRIu32 ".%u",
                              path, mha_stack_name(step->stack), mha_kind_name(step->kind),
                              step->layer, step->head_ids[u->first]);
    }
    mha_free(scores);
    return status;
}

/* Fisher information and gradients of the units on the input. */
static mha_status measure(pruning *p, mha_err *err)
{
    mha_cli *cli = p->cli;
    mha_importance *m = NULL;
    mha_importance_options options = p->scoring.options;
    options.method = MHA_FISHER;
    options.unit = p->unit;
    options.resamples = 0;
    mha_progress_start(&cli->bar, "gradients");
    mha_status status = mha_importance_run(&m, cli->engine, cli->model, p->scoring.input.losses,
                                           &options, mha_progress_step, &cli->bar, err);
    mha_progress_end(&cli->bar);
    MHA_TRY(status);
    size_t count;
    const mha_importance_row *rows = mha_importance_rows(m, &count);
    p->search.documents = mha_importance_summary_get(m)->documents;
    p->search.count = count;
    status =
        mha_alloc((void **)&p->gradient, p->search.documents * count, sizeof *p->gradient, err);
    for (size_t i = 0; i < count && status == MHA_OK; i++) {
        p->units[i] = rows[i].place;
        p->score[i] = rows[i].score;
        for (size_t d = 0; d < p->search.documents; d++) {
            double score, rise = 0;
            mha_importance_document(m, d, i, &score, &rise);
            p->gradient[d * count + i] = -rise;
        }
    }
    p->search.gradient = p->gradient;
    mha_importance_free(m);
    return status;
}

static void count_tokens(pruning *p)
{
    const mha_inputs *in = &p->cli->inputs;
    p->search.tokens = p->search.target_tokens = 128;
    for (size_t i = 0; i < in->count; i++) {
        p->search.tokens = i ? p->search.tokens : 0;
        p->search.target_tokens = i ? p->search.target_tokens : 0;
        p->search.tokens += (double)in->documents[i].n / (double)in->count;
        p->search.target_tokens += (double)in->documents[i].target_n / (double)in->count;
    }
}

static mha_status choose_fraction(pruning *p, mha_err *err)
{
    double fraction = 0;
    MHA_TRY(mha_args_real(&p->cli->args, MHA_OPT_FRACTION, 0, 1, &fraction, err));
    size_t n = (size_t)llround(fraction * (double)p->search.count);
    if (n == 0)
        return mha_fail(err, MHA_ERR_ARG,
                        "--fraction: %g of %zu is less than one; the least that takes one is %.4g",
                        fraction, p->search.count, 1 / (double)p->search.count);
    return mha_prune_least(p->remove, p->cli->model, &p->search, n, err);
}

static mha_status choose_budget(pruning *p, mha_err *err)
{
    double budget = 1;
    MHA_TRY(mha_args_real(&p->cli->args, MHA_OPT_BUDGET, 0, 1, &budget, err));
    count_tokens(p);
    MHA_TRY(mha_prune_fit(p->remove, p->cli->model, &p->search, budget, err));
    double all = mha_prune_cost(p->cli->model, NULL, p->search.tokens, p->search.target_tokens);
    double left =
        mha_prune_cost(p->cli->model, p->remove, p->search.tokens, p->search.target_tokens);
    mha_note(p->cli, "%.1f %% of the attention's multiply-adds stay, for documents of %.0f tokens",
             100 * left / all, p->search.tokens);
    for (size_t i = 0; i < p->cli->info->attn_count * p->stride; i++)
        if (p->remove[i])
            return MHA_OK;
    return mha_cannot(p->cli, err, "--budget: all heads fit into %g of what they take", budget);
}

static mha_status choose_worth(pruning *p, mha_err *err)
{
    MHA_TRY(unit_check(p, err));
    MHA_TRY(mha_selection_make(&p->selection, p->cli, err));
    MHA_TRY(units_make(p, err));
    MHA_TRY(p->measures ? measure(p, err) : read_scores(p, err));
    return p->how == MHA_OPT_FRACTION ? choose_fraction(p, err) : choose_budget(p, err);
}

/* ---- doing it ---------------------------------------------------------------------------------
 */

static mha_status fold_means(pruning *p, mha_err *err)
{
    mha_cli *cli = p->cli;
    const char *reference = mha_args_get(&cli->args, MHA_OPT_REFERENCE);
    mha_inputs own = {0}, *in = reference ? &own : &cli->inputs;
    mha_status status = MHA_OK;
    if (reference)
        status = mha_inputs_load_file(&own, cli, reference, err);
    if (status == MHA_OK) {
        mha_progress_start(&cli->bar, "means");
        status = mha_head_means_new(&p->means, cli->engine, cli->model, in->documents, in->count,
                                    mha_progress_step, &cli->bar, err);
        mha_progress_end(&cli->bar);
    }
    if (status == MHA_OK)
        p->request.mean = mha_head_means_get(p->means);
    mha_inputs_release(&own);
    return status;
}

/* One line an attention step: what goes and what is left. */
static void steps_print(const pruning *p, const char *verb)
{
    const mha_model_info *info = p->cli->info;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        uint32_t n = 0;
        for (uint32_t h = 0; h < step->heads; h++) {
            if (!p->remove[a * p->stride + h])
                continue;
            if (n++ == 0)
                printf("%s.%s.%" PRIu32 "%*s%s", mha_stack_name(step->stack),
                       mha_kind_name(step->kind), step->layer, step->layer < 10 ? 4 : 3, "", verb);
            printf(" %u", step->head_ids[h]);
        }
        if (n > 0)
            printf(" (%" PRIu32 " of %" PRIu32 " left)\n", step->heads - n, step->original_heads);
    }
}

static void opens_print(const mha_pruned *out)
{
    bool four = out->opens & MHA_OPENS_TRANSFORMERS_4, five = out->opens & MHA_OPENS_TRANSFORMERS_5;
    printf("%-14smha-inspect%s\n", "opens in",
           four && five ? ", Transformers 4 and 5"
           : four       ? ", Transformers 4"
           : five       ? ", Transformers 5"
                        : "");
    if (out->why)
        printf("%-14sTransformers%s: %s\n", "not in", four ? " 5" : five ? " 4" : "", out->why);
}

static mha_status write_model(pruning *p, mha_err *err)
{
    mha_cli *cli = p->cli;
    mha_pruned out;
    char *tokenizer = NULL;
    if (cli->tokenizer)
        MHA_TRY(mha_tokenizer_export(&tokenizer, cli->tokenizer, cli->model_path, err));
    p->request.tokenizer = tokenizer;
    mha_progress_start(&cli->bar, "writing");
    cli->writing = true;
    mha_status status =
        mha_prune_write(cli->model, p->path, &p->request, &out, mha_progress_step, &cli->bar, err);
    mha_progress_end(&cli->bar);
    mha_free(tokenizer);
    MHA_TRY(status);
    steps_print(p, p->request.mode == MHA_PRUNE_MASK ? "masked" : "removed");
    printf("%-14s%zu of %zu\n", "heads", out.left, out.left + out.removed);
    printf("%-14s%" PRIu64 " of %" PRIu64 " (%.1f %%)\n", "parameters", out.parameters,
           cli->info->parameters, 100 * (double)out.parameters / (double)cli->info->parameters);
    printf("%-14s%" PRIu64 " bytes\n", "weights", out.bytes);
    opens_print(&out);
    return MHA_OK;
}

static mha_status run(pruning *p, mha_err *err)
{
    const mha_model_info *info;
    MHA_TRY(open_all(p, err));
    info = p->cli->info;
    for (size_t a = 0; a < info->attn_count; a++)
        p->stride = info->attn[a].heads > p->stride ? info->attn[a].heads : p->stride;
    MHA_TRY(mha_alloc((void **)&p->remove, info->attn_count * p->stride, sizeof *p->remove, err));
    p->request.remove = p->remove;
    bool named = p->how == MHA_OPT_HEADS || p->how == MHA_OPT_KEEP;
    MHA_TRY(named ? choose_named(p, err) : choose_worth(p, err));
    MHA_TRY(mha_prune_check(p->cli->model, &p->request, err));
    if (mha_args_has(&p->cli->args, MHA_OPT_DRY_RUN)) {
        steps_print(p, "would lose");
        return MHA_OK;
    }
    if (mha_args_has(&p->cli->args, MHA_OPT_FOLD_MEAN))
        MHA_TRY(fold_means(p, err));
    return write_model(p, err);
}

mha_status mha_cmd_prune(mha_cli *cli, mha_err *err)
{
    pruning p = {.cli = cli};
    MHA_TRY(how_choose(&p, err));
    mha_status status = run(&p, err);
    if (p.measures)
        mha_scoring_release(&p.scoring);
    mha_selection_release(&p.selection);
    mha_head_means_free(p.means);
    mha_free(p.remove);
    mha_free(p.units);
    mha_free(p.score);
    mha_free(p.gradient);
    return status;
}
