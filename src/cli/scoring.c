/* scoring.c: reads the options of a loss and of importance, and opens what they need. What is
 * measured is the library's business. */
#include "cli/scoring.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/nearest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---------------------------------------------------------------------------------
 */

static mha_status method_parse(mha_importance_method *out, const char *name, size_t n,
                               const mha_args *args, mha_err *err)
{
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), name);
    mha_nearest nearest = {.word = word};
    for (int m = 0; m < MHA_METHOD_COUNT; m++) {
        if (strcmp(word, mha_importance_name((mha_importance_method)m)) == 0) {
            *out = (mha_importance_method)m;
            return MHA_OK;
        }
        mha_nearest_try(&nearest, mha_importance_name((mha_importance_method)m));
    }
    if (strcmp(args->command->name, "curve") == 0)
        mha_nearest_try(&nearest, "greedy");
    return mha_fail(err, MHA_ERR_ARG, "--method: no method '%s'; the nearest is '%s'", word,
                    nearest.best);
}

mha_status mha_methods_parse(mha_importance_method *out, size_t *count, const mha_args *args,
                             mha_err *err)
{
    const char *at = mha_args_get(args, MHA_OPT_METHOD);
    *count = 0;
    for (at = at ? at : "gradient";; at++) {
        size_t n = strcspn(at, ",");
        mha_importance_method m = MHA_GRADIENT;
        MHA_TRY(method_parse(&m, at, n, args, err));
        for (size_t i = 0; i < *count; i++)
            if (out[i] == m)
                return mha_fail(err, MHA_ERR_ARG, "--method: '%s' stands twice",
                                mha_importance_name(m));
        out[(*count)++] = m;
        at += n;
        if (!*at)
            return MHA_OK;
    }
}

/* A class or token of --logit-diff: the number as it is, a label, or text that is one token. */
static mha_status logit_parse(int32_t *out, mha_cli *cli, const char *word, mha_err *err)
{
    const char *end;
    uint64_t number;
    if (mha_parse_uint(word, &number, &end) && !*end && number <= INT32_MAX) {
        *out = (int32_t)number;
        return MHA_OK;
    }
    if (cli->info->head == MHA_HEAD_CLASS) {
        for (uint32_t i = 0; cli->info->labels && i < cli->info->classes; i++)
            if (strcmp(cli->info->labels[i], word) == 0) {
                *out = (int32_t)i;
                return MHA_OK;
            }
        return mha_fail(err, MHA_ERR_ARG, "--logit-diff: the model has no class '%s'", word);
    }
    MHA_TRY(mha_need_tokenizer(cli, err));
    *out = mha_tokenizer_id(cli->tokenizer, word);
    if (*out >= 0)
        return MHA_OK;
    mha_tokens tokens = {0};
    mha_status status =
        mha_tokenizer_encode(cli->tokenizer, word, strlen(word), NULL, 0, false, &tokens, err);
    if (status == MHA_OK && tokens.n != 1)
        status =
            mha_fail(err, MHA_ERR_ARG, "--logit-diff: '%s' is %zu tokens, not one", word, tokens.n);
    if (status == MHA_OK)
        *out = tokens.id[0];
    mha_tokens_release(&tokens);
    return status;
}

static mha_status logit_diff_parse(mha_loss_options *o, mha_cli *cli, mha_err *err)
{
    const char *value = mha_args_get(&cli->args, MHA_OPT_LOGIT_DIFF);
    const char *comma = value ? strrchr(value, ',') : NULL;
    char *better = NULL;
    if (o->kind != MHA_LOSS_AUTO && o->kind != MHA_LOSS_LOGIT_DIFF && value)
        return mha_fail(err, MHA_ERR_ARG, "--logit-diff is a loss of its own, not '%s'",
                        mha_loss_name(o->kind));
    if (!value && o->kind == MHA_LOSS_LOGIT_DIFF)
        return mha_fail(err, MHA_ERR_ARG, "--loss logit-diff needs --logit-diff A,B");
    if (!value)
        return MHA_OK;
    if (!comma || comma == value || !comma[1])
        return mha_fail(err, MHA_ERR_ARG, "--logit-diff: '%s' is not A,B", value);
    o->kind = MHA_LOSS_LOGIT_DIFF;
    MHA_TRY(mha_strndup(&better, value, (size_t)(comma - value), err));
    mha_status status = logit_parse(&o->better, cli, better, err);
    mha_free(better);
    return status == MHA_OK ? logit_parse(&o->worse, cli, comma + 1, err) : status;
}

static mha_status loss_options(mha_loss_options *o, mha_cli *cli, mha_err *err)
{
    int kind = mha_args_choice(&cli->args, MHA_OPT_LOSS);
    *o = (mha_loss_options){.kind = kind < 0 ? MHA_LOSS_AUTO : (mha_loss_kind)kind, .mask_id = -1};
    MHA_TRY(mha_args_real(&cli->args, MHA_OPT_MASK_RATE, 1e-6, 1, &o->mask_rate, err));
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_SEED, 0, UINT64_MAX, &o->seed, err));
    if (cli->tokenizer)
        o->mask_id = mha_tokenizer_role(cli->tokenizer, MHA_TOKEN_MASK);
    return logit_diff_parse(o, cli, err);
}

static mha_status importance_options(mha_scoring *s, mha_err *err)
{
    const mha_args *args = &s->cli->args;
    mha_importance_options *o = &s->options;
    const char *reference = mha_args_get(args, MHA_OPT_REFERENCE);
    int unit = mha_args_choice(args, MHA_OPT_UNIT);
    uint64_t resamples = 2000, draws = 0;
    *o = (mha_importance_options){.confidence = 0.95,
                                  .unit = unit < 0 ? MHA_UNIT_HEAD : (mha_unit)unit};
    MHA_TRY(mha_args_uint(args, MHA_OPT_BOOTSTRAP, 0, 1u << 20, &resamples, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_CI, 0.01, 0.9999, &o->confidence, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_SEED, 0, UINT64_MAX, &o->seed, err));
    MHA_TRY(mha_args_uint(args, MHA_OPT_DRAWS, 1, 10000, &draws, err));
    o->resamples = resamples;
    o->draws = draws;
    if (reference)
        MHA_TRY(mha_inputs_load_file(&s->reference, s->cli, reference, err));
    o->reference = reference ? s->reference.documents : NULL;
    o->reference_count = s->reference.count;
    return MHA_OK;
}

void mha_partial_judge(mha_cli *cli, mha_status status, const char *path, const mha_err *err)
{
    if (status == MHA_ERR_IO && path && strncmp(err->message, path, strlen(path)) == 0)
        cli->writing = true;
}

mha_status mha_partial_path(char **out, const mha_cli *cli, const char *output, const char *name,
                            mha_err *err)
{
    *out = NULL;
    if (strcmp(output, "-") == 0 && mha_args_has(&cli->args, MHA_OPT_RESUME))
        return mha_fail(err, MHA_ERR_ARG, "--resume needs -o PATH, where the partial file stands");
    if (strcmp(output, "-") == 0)
        return MHA_OK;
    size_t n = strlen(output) + strlen(name) + sizeof "..partial";
    MHA_TRY(mha_alloc((void **)out, n, 1, err));
    snprintf(*out, n, "%s.%s.partial", output, name);
    if (!mha_args_has(&cli->args, MHA_OPT_RESUME) && access(*out, F_OK) == 0)
        mha_note(cli, "%s is there from an interrupted run; --resume would go on from it", *out);
    return MHA_OK;
}

/* ---- documents -------------------------------------------------------------------------------
 */

static int32_t end_token(const mha_cli *cli)
{
    if (cli->info->eos >= 0 || !cli->tokenizer)
        return cli->info->eos;
    return mha_tokenizer_role(cli->tokenizer, MHA_TOKEN_EOS);
}

mha_status mha_measured_make(mha_measured *out, const mha_scoring *s, const mha_inputs *in,
                             mha_err *err)
{
    *out = (mha_measured){0};
    MHA_TRY(mha_alloc((void **)&out->truths, in->count, sizeof *out->truths, err));
    for (size_t i = 0; i < in->count; i++) {
        const mha_input *item = &in->items[i];
        out->truths[i] = (mha_truth){.index = item->index,
                                     .label = item->label,
                                     .end = item->target_text ? end_token(s->cli) : -1,
                                     .unmasked = item->unmasked.n ? item->unmasked.id : NULL,
                                     .unmasked_n = item->unmasked.n};
    }
    MHA_TRY(mha_losses_new(&out->losses, s->cli->model, in->documents, out->truths, in->count,
                           &s->loss, err));
    size_t count, skipped = mha_losses_skipped(out->losses);
    mha_losses_documents(out->losses, &count);
    const char *what = mha_loss_name(mha_losses_kind(out->losses));
    if (!count)
        return mha_cannot(s->cli, err,
                          "nothing to measure: no document has anything to predict "
                          "for the loss '%s'",
                          what);
    if (skipped)
        mha_note(s->cli, "skipped %zu documents with nothing to predict for the loss '%s'", skipped,
                 what);
    return MHA_OK;
}

void mha_measured_release(mha_measured *m)
{
    mha_losses_free(m->losses);
    mha_free(m->truths);
    *m = (mha_measured){0};
}

mha_status mha_scoring_open(mha_scoring *s, mha_cli *cli, mha_err *err)
{
    *s = (mha_scoring){.cli = cli};
    MHA_TRY(mha_open_model(cli, err));
    if (cli->info->head == MHA_HEAD_NONE || cli->info->head == MHA_HEAD_EMBEDDING)
        return mha_cannot(cli, err, "%s has no read-out, so there is no loss to measure",
                          cli->args.operand);
    MHA_TRY(mha_open_engine(cli, err));
    cli->inputs.truths = true;
    MHA_TRY(mha_inputs_load(cli, err));
    MHA_TRY(loss_options(&s->loss, cli, err));
    MHA_TRY(mha_measured_make(&s->input, s, &cli->inputs, err));
    MHA_TRY(mha_selection_make(&s->selection, cli, err));
    MHA_TRY(importance_options(s, err));
    s->options.choice = mha_selection_choice(&s->selection);
    return MHA_OK;
}

void mha_scoring_release(mha_scoring *s)
{
    mha_measured_release(&s->input);
    mha_selection_release(&s->selection);
    mha_inputs_release(&s->reference);
}

mha_status mha_scoring_describe(const mha_scoring *s, mha_meta *settings, mha_err *err)
{
    static const char *const units[] = {"head", "kv-group", "layer"};
    mha_loss_kind kind = mha_losses_kind(s->input.losses);
    MHA_TRY(mha_meta_text(settings, "loss", mha_loss_name(kind), err));
    if (kind == MHA_LOSS_MASKED)
        MHA_TRY(mha_meta_real(settings, "mask_rate",
                              s->loss.mask_rate > 0 ? s->loss.mask_rate : 0.15, err));
    if (kind == MHA_LOSS_LOGIT_DIFF) {
        MHA_TRY(mha_meta_int(settings, "better", s->loss.better, err));
        MHA_TRY(mha_meta_int(settings, "worse", s->loss.worse, err));
    }
    MHA_TRY(mha_meta_text(settings, "unit", units[s->options.unit], err));
    if (s->options.draws)
        MHA_TRY(mha_meta_int(settings, "draws", (int64_t)s->options.draws, err));
    if (s->options.reference)
        MHA_TRY(mha_meta_int(settings, "reference_documents", (int64_t)s->options.reference_count,
                             err));
    MHA_TRY(mha_meta_int(settings, "bootstrap", (int64_t)s->options.resamples, err));
    MHA_TRY(mha_meta_real(settings, "ci", s->options.confidence, err));
    return mha_meta_int(settings, "seed", (int64_t)s->options.seed, err);
}
