/* loss.c: what each document is to predict, as terms that the engine measures. Nothing runs here.
 *
 * Tokens to mask are drawn by a generator that depends on the seed and on the document's index in
 * the whole corpus, so that shards, orders and company of the documents change nothing. */
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include "mha/analysis.h"
#include "mha/input.h"
#include <math.h>
#include <string.h>

#define DEFAULT_MASK_RATE 0.15

struct mha_losses {
    mha_loss_options options;
    const mha_model_info *info;
    mha_document *docs; /* [count] */
    size_t *index;      /* [count] */
    size_t count, skipped, terms;
    mha_arena memory; /* terms and masked ids */
};

const char *mha_loss_name(mha_loss_kind kind)
{
    static const char *const names[MHA_LOSS_COUNT] = {"auto",   "next",  "masked",
                                                      "target", "class", "logit-diff"};
    return names[kind];
}

/* ---- one document ----------------------------------------------------------------------------
 */

/* Room for at most n terms; they are added one by one. */
static mha_status terms_make(mha_losses *l, mha_prediction **out, size_t n, mha_err *err)
{
    return mha_arena_alloc((void **)out, &l->memory, n, sizeof **out, err);
}

static mha_status next_terms(mha_losses *l, mha_document *d, mha_err *err)
{
    mha_prediction *p;
    if (d->n < 2)
        return MHA_OK;
    MHA_TRY(terms_make(l, &p, d->n - 1, err));
    for (size_t i = 0; i + 1 < d->n; i++)
        p[i] = (mha_prediction){(uint32_t)i, d->ids[i + 1], -1};
    d->predict = p;
    d->predict_n = d->n - 1;
    return MHA_OK;
}

static mha_status target_terms(mha_losses *l, mha_document *d, int32_t end, mha_err *err)
{
    mha_prediction *p;
    if (d->target_n == 0)
        return MHA_OK;
    MHA_TRY(terms_make(l, &p, d->target_n, err));
    size_t n = d->target_n - 1;
    for (size_t i = 0; i < n; i++)
        p[i] = (mha_prediction){(uint32_t)i, d->target_ids[i + 1], -1};
    if (end >= 0)
        p[n] = (mha_prediction){(uint32_t)n, end, -1};
    d->predict = p;
    d->predict_n = n + (end >= 0);
    return MHA_OK;
}

/* The masks that stand in the document already, with the tokens behind them. */
static mha_status given_masks(mha_losses *l, mha_document *d, const mha_truth *truth, size_t masks,
                              mha_err *err)
{
    mha_prediction *p;
    if (truth->unmasked_n != d->n)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "document %zu: its target has %zu tokens and its text with the masks %zu",
                        truth->index, truth->unmasked_n, d->n);
    MHA_TRY(terms_make(l, &p, masks, err));
    for (size_t i = 0; i < d->n; i++)
        if (d->ids[i] == l->options.mask_id)
            p[d->predict_n++] = (mha_prediction){(uint32_t)i, truth->unmasked[i], -1};
    d->predict = p;
    return MHA_OK;
}

static mha_status drawn_masks(mha_losses *l, mha_document *d, size_t index, mha_err *err)
{
    mha_prediction *p;
    size_t *place, n = 0;
    int32_t *ids;
    mha_rng rng;
    MHA_TRY(mha_arena_alloc((void **)&place, &l->memory, d->n, sizeof *place, err));
    for (size_t i = 0; i < d->n; i++)
        if ((d->special == NULL || !d->special[i]) && d->ids[i] != l->options.mask_id)
            place[n++] = i;
    if (n == 0)
        return MHA_OK;
    size_t k = (size_t)floor(l->options.mask_rate * (double)n + 0.5);
    k = k < 1 ? 1 : k > n ? n : k;
    MHA_TRY(terms_make(l, &p, k, err));
    MHA_TRY(mha_arena_alloc((void **)&ids, &l->memory, d->n, sizeof *ids, err));
    memcpy(ids, d->ids, d->n * sizeof *ids);
    mha_rng_seed(&rng, l->options.seed, index);
    for (size_t i = 0; i < k; i++) { /* the first k places of a shuffle */
        size_t j = i + mha_rng_below(&rng, n - i), at = place[j];
        place[j] = place[i];
        ids[at] = l->options.mask_id;
    }
    for (size_t i = 0; i < d->n; i++)
        if (ids[i] != d->ids[i])
            p[d->predict_n++] = (mha_prediction){(uint32_t)i, d->ids[i], -1};
    d->ids = ids;
    d->predict = p;
    return MHA_OK;
}

static mha_status masked_terms(mha_losses *l, mha_document *d, const mha_truth *truth, mha_err *err)
{
    size_t masks = 0;
    for (size_t i = 0; i < d->n; i++)
        masks += d->ids[i] == l->options.mask_id;
    if (truth->unmasked != NULL && masks > 0)
        return given_masks(l, d, truth, masks, err);
    return drawn_masks(l, d, truth->index, err);
}

/* Every node whose class is known. */
static mha_status node_terms(mha_losses *l, mha_document *d, size_t index, mha_err *err)
{
    const mha_graph *g = d->graph;
    mha_prediction *p;
    if (g == NULL || g->y == NULL)
        return MHA_OK;
    MHA_TRY(terms_make(l, &p, g->nodes, err));
    for (uint32_t i = 0; i < g->nodes; i++) {
        if (g->y[i] >= 0 && (uint32_t)g->y[i] >= l->info->classes)
            return mha_fail(err, MHA_ERR_LIMIT,
                            "document %zu: class %d of node %u is outside the %u of the model",
                            index, g->y[i], i, l->info->classes);
        if (g->y[i] >= 0)
            p[d->predict_n++] = (mha_prediction){i, g->y[i], -1};
    }
    d->predict = p;
    return MHA_OK;
}

static mha_status class_terms(mha_losses *l, mha_document *d, const mha_truth *truth, mha_err *err)
{
    mha_prediction *p;
    if (l->info->head == MHA_HEAD_TOKEN)
        return node_terms(l, d, truth->index, err);
    if (truth->label < 0)
        return MHA_OK;
    if ((uint32_t)truth->label >= l->info->classes)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "document %zu: label %d is outside the %u classes of the model",
                        truth->index, truth->label, l->info->classes);
    MHA_TRY(terms_make(l, &p, 1, err));
    p[0] = (mha_prediction){0, truth->label, -1};
    d->predict = p;
    d->predict_n = 1;
    return MHA_OK;
}

/* The row that a difference of logits is read off, or SIZE_MAX. */
static size_t difference_row(const mha_losses *l, const mha_document *d)
{
    switch (l->info->head) {
    case MHA_HEAD_CLASS:
        return 0;
    case MHA_HEAD_TARGET:
        return d->target_n > 0 ? d->target_n - 1 : SIZE_MAX;
    case MHA_HEAD_MASKED:
        for (size_t i = d->n; i-- > 0;)
            if (d->ids[i] == l->options.mask_id)
                return i;
        return SIZE_MAX;
    default:
        return d->n - 1;
    }
}

static mha_status difference_terms(mha_losses *l, mha_document *d, mha_err *err)
{
    mha_prediction *p;
    size_t row = difference_row(l, d);
    if (row == SIZE_MAX)
        return MHA_OK;
    MHA_TRY(terms_make(l, &p, 1, err));
    p[0] = (mha_prediction){(uint32_t)row, l->options.better, l->options.worse};
    d->predict = p;
    d->predict_n = 1;
    return MHA_OK;
}

static mha_status terms_of(mha_losses *l, mha_document *d, const mha_truth *truth, mha_err *err)
{
    d->predict = NULL;
    d->predict_n = 0;
    switch (l->options.kind) {
    case MHA_LOSS_NEXT:
        return next_terms(l, d, err);
    case MHA_LOSS_MASKED:
        return masked_terms(l, d, truth, err);
    case MHA_LOSS_TARGET:
        return target_terms(l, d, truth->end, err);
    case MHA_LOSS_CLASS:
        return class_terms(l, d, truth, err);
    default:
        return difference_terms(l, d, err);
    }
}

/* ---- all documents ---------------------------------------------------------------------------
 */

static mha_status check_difference(const mha_losses *l, mha_err *err)
{
    int32_t better = l->options.better, worse = l->options.worse;
    uint32_t n = l->info->classes > 0 ? l->info->classes : l->info->vocab;
    if (better < 0 || worse < 0 || (uint32_t)better >= n || (uint32_t)worse >= n)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "logit difference: %d or %d is outside the %u of the model", better, worse,
                        n);
    if (better == worse)
        return mha_fail(err, MHA_ERR_ARG, "logit difference: both are %d", better);
    return MHA_OK;
}

/* Settles the kind of the loss and checks that the model has it. */
static mha_status kind_choose(mha_losses *l, mha_err *err)
{
    static const mha_loss_kind own[MHA_HEAD_SPAN + 1] = {[MHA_HEAD_NEXT] = MHA_LOSS_NEXT,
                                                         [MHA_HEAD_MASKED] = MHA_LOSS_MASKED,
                                                         [MHA_HEAD_CLASS] = MHA_LOSS_CLASS,
                                                         [MHA_HEAD_TARGET] = MHA_LOSS_TARGET,
                                                         [MHA_HEAD_TOKEN] = MHA_LOSS_CLASS};
    mha_loss_options *o = &l->options;
    if (l->info->head == MHA_HEAD_NONE || l->info->head == MHA_HEAD_EMBEDDING)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "the model has no read-out, so there is no loss to measure");
    if (own[l->info->head] == MHA_LOSS_AUTO)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "the model's read-out (%s) has no loss",
                        l->info->head_name);
    if (o->kind == MHA_LOSS_AUTO)
        o->kind = own[l->info->head];
    if (o->kind == MHA_LOSS_LOGIT_DIFF)
        return check_difference(l, err);
    if (o->kind != own[l->info->head])
        return mha_fail(err, MHA_ERR_ARG, "the loss '%s' is not that of this model's %s (%s)",
                        mha_loss_name(o->kind), l->info->head_name,
                        mha_loss_name(own[l->info->head]));
    if (o->kind == MHA_LOSS_CLASS && l->info->classes < 2)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "the model has one output: a regression has no class loss");
    if (o->kind == MHA_LOSS_MASKED && o->mask_id < 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "no mask token is known: the model has no tokenizer that names it");
    if (o->kind == MHA_LOSS_MASKED && (uint32_t)o->mask_id >= l->info->vocab)
        return mha_fail(err, MHA_ERR_LIMIT, "the mask token %d is outside the vocabulary of %u",
                        o->mask_id, l->info->vocab);
    return MHA_OK;
}

static mha_status fill(mha_losses *l, const mha_document *docs, const mha_truth *truths,
                       size_t count, mha_err *err)
{
    if (l->options.mask_rate == 0)
        l->options.mask_rate = DEFAULT_MASK_RATE;
    if (!(l->options.mask_rate > 0 && l->options.mask_rate <= 1))
        return mha_fail(err, MHA_ERR_ARG, "mask rate %g is not between 0 and 1",
                        l->options.mask_rate);
    MHA_TRY(kind_choose(l, err));
    MHA_TRY(mha_alloc((void **)&l->docs, count, sizeof *l->docs, err));
    MHA_TRY(mha_alloc((void **)&l->index, count, sizeof *l->index, err));
    for (size_t i = 0; i < count; i++) {
        mha_truth truth = {.index = i, .label = -1, .end = -1};
        mha_document d = docs[i];
        if (truths != NULL)
            truth = truths[i];
        MHA_TRY(terms_of(l, &d, &truth, err));
        if (d.predict_n == 0) {
            l->skipped++;
            continue;
        }
        l->index[l->count] = truth.index;
        l->docs[l->count++] = d;
        l->terms += d.predict_n;
    }
    return MHA_OK;
}

mha_status mha_losses_new(mha_losses **out, const mha_model *model, const mha_document *docs,
                          const mha_truth *truths, size_t count, const mha_loss_options *options,
                          mha_err *err)
{
    mha_losses *l;
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&l, 1, sizeof *l, err));
    l->options = options != NULL ? *options : (mha_loss_options){.mask_id = -1};
    l->info = mha_model_info_get(model);
    mha_status st = fill(l, docs, truths, count, err);
    if (st != MHA_OK) {
        mha_losses_free(l);
        return st;
    }
    *out = l;
    return MHA_OK;
}

void mha_losses_free(mha_losses *l)
{
    if (l == NULL)
        return;
    mha_arena_release(&l->memory);
    mha_free(l->docs);
    mha_free(l->index);
    mha_free(l);
}

mha_loss_kind mha_losses_kind(const mha_losses *l)
{
    return l->options.kind;
}

const mha_document *mha_losses_documents(const mha_losses *l, size_t *count)
{
    *count = l->count;
    return l->docs;
}

size_t mha_losses_index(const mha_losses *l, size_t i)
{
    return l->index[i];
}

size_t mha_losses_skipped(const mha_losses *l)
{
    return l->skipped;
}

size_t mha_losses_terms(const mha_losses *l)
{
    return l->terms;
}
