/* beam.c: beam search: the best of B texts that grow side by side. It follows the reference step by
 * step, so that it writes the same texts:
 *
 *   candidates   the K = max(2, 1 + end ids)·B continuations with the highest log-probability
 *   running      the B best candidates that do not end
 *   ended        the B best texts so far by log-probability / n^penalty, n new ids; a candidate
 * that ends gets there only from among the B best
 *
 * and stops when no running text can win any more by the reference's own guess of what it may
 * reach, when B texts have ended and the rules say that this is enough, or at the length. */
#include "analysis/write.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

typedef struct text {
    int32_t *ids;  /* [prompt + length] */
    size_t n;      /* with the prompt */
    size_t parent; /* running text of the step before */
    double score;  /* running: log-probability; ended: over n^penalty */
} text;

typedef struct candidate {
    size_t parent; /* running text */
    int32_t id;
    double score;
    bool ends;
} candidate;

typedef struct search {
    const mha_writing *how;
    size_t vocab, prompt, beams;
    text *running, *next, *ended; /* [beams] each */
    size_t running_count, ended_count;
    mha_decoder **now, **later; /* [beams] states of the running texts, and of the next ones */
    candidate *best;            /* [keep] in falling order */
    size_t keep, found;
    float *logits, *allowed; /* [vocab] */
    bool open;               /* a running text may still win */
} search;

/* ---- candidates -------------------------------------------------------------------------------
 */

static void offer(search *s, const candidate *c)
{
    if (s->found == s->keep && !(c->score > s->best[s->keep - 1].score))
        return;
    size_t at = s->found < s->keep ? s->found++ : s->keep - 1;
    for (; at > 0 && c->score > s->best[at - 1].score; at--)
        s->best[at] = s->best[at - 1];
    s->best[at] = *c;
}

/* s − log Σ e^s */
static void log_softmax(const float *logits, size_t n, float *out)
{
    float max = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        max = logits[i] > max ? logits[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)max);
    double lse = (double)max + log(sum);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)logits[i] - lse);
}

static void find_candidates(search *s)
{
    s->found = 0;
    for (size_t b = 0; b < s->running_count; b++) {
        const text *t = &s->running[b];
        bool last = t->n + 1 - s->prompt == s->how->length;
        log_softmax(mha_decoder_logits(s->now[b]), s->vocab, s->logits);
        mha_generation_apply(s->how->rules, s->logits, s->vocab, t->ids, t->n, s->prompt,
                             s->how->length, s->allowed);
        for (size_t v = 0; v < s->vocab; v++) {
            candidate c = {b, (int32_t)v, t->score + (double)s->allowed[v], last};
            if (isinf(c.score))
                continue;
            c.ends = last || mha_generation_ends(s->how->rules, c.id);
            offer(s, &c);
        }
    }
}

/* ---- texts ------------------------------------------------------------------------------------
 */

static void text_extend(text *to, const text *from, int32_t id, double score)
{
    memcpy(to->ids, from->ids, from->n * sizeof *to->ids);
    to->ids[from->n] = id;
    to->n = from->n + 1;
    to->score = score;
}

static double by_length(const search *s, double score, size_t n)
{
    return score / pow((double)(n - s->prompt), s->how->rules->length_penalty);
}

/* Ended candidates among the first `beams` take their places among the ended texts. */
static void collect_ended(search *s)
{
    if (!s->open || (s->ended_count == s->beams && s->how->rules->stop_when_full))
        return;
    for (size_t k = 0; k < s->found && k < s->beams; k++) {
        const candidate *c = &s->best[k];
        if (!c->ends)
            continue;
        const text *from = &s->running[c->parent];
        double score = by_length(s, c->score, from->n + 1);
        size_t at = s->ended_count;
        if (at == s->beams && !(score > s->ended[--at].score))
            continue;
        text place = s->ended[at];
        s->ended_count += s->ended_count < s->beams;
        for (; at > 0 && score > s->ended[at - 1].score; at--)
            s->ended[at] = s->ended[at - 1];
        s->ended[at] = place;
        text_extend(&s->ended[at], from, c->id, score);
    }
}

/* The best candidates that go on become the running texts. */
static void choose_running(search *s)
{
    size_t n = 0;
    for (size_t k = 0; k < s->found && n < s->beams; k++) {
        const candidate *c = &s->best[k];
        if (c->ends)
            continue;
        text_extend(&s->next[n], &s->running[c->parent], c->id, c->score);
        s->next[n++].parent = c->parent;
    }
    text *t = s->running;
    s->running = s->next;
    s->next = t;
    s->running_count = n;
}

/* Every running text's last id goes through the state of the text that it continues. */
static mha_status feed(search *s, mha_err *err)
{
    for (size_t b = 0; b < s->running_count; b++) {
        const text *t = &s->running[b];
        mha_decoder_copy(s->later[b], s->now[t->parent]);
        MHA_TRY(mha_decoder_step(s->later[b], t->ids[t->n - 1], err));
    }
    mha_decoder **d = s->now;
    s->now = s->later;
    s->later = d;
    return MHA_OK;
}

/* Whether the best running text could beat the worst of the ended ones. */
static bool can_win(const search *s)
{
    const mha_generation *rules = s->how->rules;
    if (s->running_count == 0)
        return false;
    if (s->ended_count < s->beams)
        return true;
    const text *best = &s->running[0];
    size_t n =
        rules->stop_never_early && rules->length_penalty > 0 ? s->prompt + s->how->length : best->n;
    return by_length(s, best->score, n) > s->ended[s->beams - 1].score;
}

static mha_status run(search *s, mha_err *err)
{
    const mha_writing *how = s->how;
    for (size_t step = 1; s->running_count > 0; step++) {
        find_candidates(s);
        collect_ended(s);
        if (how->progress != NULL &&
            how->progress(how->progress_context, (double)step, (double)how->length) != 0)
            return mha_fail(err, MHA_ERR_CANCELLED, "interrupted");
        choose_running(s);
        s->open = s->open && can_win(s);
        if (!s->open || (s->ended_count == s->beams && how->rules->stop_when_full))
            break;
        MHA_TRY(feed(s, err));
    }
    return s->ended_count > 0 ? MHA_OK
                              : mha_fail(err, MHA_ERR_NUMERIC,
                                         "beam search: the rules of the "
                                         "checkpoint leave no token");
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void search_release(search *s)
{
    text *lists[] = {s->running, s->next, s->ended};
    for (size_t l = 0; l < 3; l++) {
        for (size_t b = 0; lists[l] != NULL && b < s->beams; b++)
            mha_free(lists[l][b].ids);
        mha_free(lists[l]);
    }
    mha_decoder **decoders[] = {s->now, s->later};
    for (size_t l = 0; l < 2; l++) {
        for (size_t b = 0; decoders[l] != NULL && b < s->beams; b++)
            mha_decoder_free(decoders[l][b]);
        mha_free(decoders[l]);
    }
    mha_free(s->best);
    mha_free(s->logits);
    mha_free(s->allowed);
}

static mha_status search_init(search *s, const mha_decoder *d, const int32_t *prompt, mha_err *err)
{
    size_t ends = s->how->rules->ends.count, B = s->beams;
    text **lists[] = {&s->running, &s->next, &s->ended};
    for (size_t l = 0; l < 3; l++) {
        MHA_TRY(mha_alloc((void **)lists[l], B, sizeof(text), err));
        for (size_t b = 0; b < B; b++)
            MHA_TRY(mha_alloc((void **)&(*lists[l])[b].ids, s->prompt + s->how->length,
                              sizeof(int32_t), err));
    }
    mha_decoder ***decoders[] = {&s->now, &s->later};
    for (size_t l = 0; l < 2; l++) {
        MHA_TRY(mha_alloc((void **)decoders[l], B, sizeof(mha_decoder *), err));
        for (size_t b = 0; b < B; b++)
            MHA_TRY(mha_decoder_fork(&(*decoders[l])[b], d, err));
    }
    s->keep = (ends > 1 ? 1 + ends : 2) * B;
    MHA_TRY(mha_alloc((void **)&s->best, s->keep, sizeof *s->best, err));
    MHA_TRY(mha_alloc((void **)&s->logits, s->vocab, sizeof *s->logits, err));
    MHA_TRY(mha_alloc((void **)&s->allowed, s->vocab, sizeof *s->allowed, err));
    memcpy(s->running[0].ids, prompt, s->prompt * sizeof *prompt);
    s->running[0].n = s->prompt;
    s->running_count = 1;
    s->open = true;
    return MHA_OK;
}

mha_status mha_beam_search(mha_decoder *d, const mha_writing *how, size_t vocab, int32_t *seen,
                           size_t prompt, size_t *n, double *score, mha_err *err)
{
    search s = {.how = how, .vocab = vocab, .prompt = prompt, .beams = how->beams};
    mha_status st = search_init(&s, d, seen, err);
    if (st == MHA_OK)
        st = run(&s, err);
    if (st == MHA_OK) {
        const text *best = &s.ended[0];
        memcpy(seen, best->ids, best->n * sizeof *seen);
        *n = best->n - prompt;
        *score = best->score;
    }
    search_release(&s);
    return st;
}
