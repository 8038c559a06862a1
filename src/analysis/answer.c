/* answer.c: the model's own answers: the most probable tokens or classes of rows of logits, and
 * draws from them. Softmax is in double over the whole row: p_i = exp(s_i − max s) / Σ exp(s − max
 * s).
 */
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include "mha/analysis.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the largest of a row ---------------------------------------------------------------------
 */

/* Larger logits come first, equal ones by smaller id; prob holds the logit here. */
static bool comes_first(const mha_answer *a, const mha_answer *b)
{
    return a->prob > b->prob || (a->prob == b->prob && a->id < b->id);
}

static int compare(const void *a, const void *b)
{
    return comes_first(a, b) ? -1 : comes_first(b, a) ? 1 : 0;
}

/* heap [n] has the answer that comes last at its root. */
static void sift_down(mha_answer *heap, size_t n, size_t i)
{
    for (;;) {
        size_t last = i, left = 2 * i + 1, right = left + 1;
        if (left < n && comes_first(&heap[last], &heap[left]))
            last = left;
        if (right < n && comes_first(&heap[last], &heap[right]))
            last = right;
        if (last == i)
            return;
        mha_answer t = heap[i];
        heap[i] = heap[last];
        heap[last] = t;
        i = last;
    }
}

static double row_max(const float *s, size_t n)
{
    double m = (double)s[0];
    for (size_t i = 1; i < n; i++)
        m = (double)s[i] > m ? (double)s[i] : m;
    return m;
}

size_t mha_answer_top(const float *logits, size_t n, size_t k, mha_answer *out)
{
    if (k > n)
        k = n;
    if (k == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        mha_answer a = {.id = (int32_t)i, .prob = (double)logits[i]};
        if (i < k)
            out[i] = a;
        if (i + 1 == k)
            for (size_t j = k / 2; j-- > 0;)
                sift_down(out, k, j);
        if (i >= k && comes_first(&a, &out[0])) {
            out[0] = a;
            sift_down(out, k, 0);
        }
    }
    qsort(out, k, sizeof *out, compare);
    double m = row_max(logits, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - m);
    for (size_t i = 0; i < k; i++) {
        out[i].rank = (uint32_t)(i + 1);
        out[i].prob = exp(out[i].prob - m) / sum;
    }
    return k;
}

void mha_answer_mean(const float *x, size_t rows, size_t width, float *out)
{
    for (size_t c = 0; c < width; c++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += (double)x[r * width + c];
        out[c] = (float)(sum / (double)rows);
    }
}

/* ---- answers of documents ---------------------------------------------------------------------
 */

struct mha_answers {
    mha_probe probe;
    const mha_document *docs;
    mha_answer *answers; /* [rows, k] */
    size_t *start;       /* [docs + 1] first row of each document */
    size_t count, k;     /* documents; answers a row */
};

/* Positions of a document that are answered: calls may be made to count or to fill. */
static size_t positions(const mha_model_info *info, const mha_document *doc, int32_t mask_id,
                        size_t *out)
{
    size_t n = 0;
    switch (info->head) {
    case MHA_HEAD_NEXT:
    case MHA_HEAD_TARGET: {
        size_t rows = info->head == MHA_HEAD_TARGET ? doc->target_n : doc->n;
        if (rows > 0 && out != NULL)
            out[0] = rows - 1;
        return rows > 0;
    }
    case MHA_HEAD_MASKED:
        for (size_t t = 0; t < doc->n; t++) {
            if (mask_id >= 0 && doc->ids[t] != mask_id)
                continue;
            if (out != NULL)
                out[n] = t;
            n++;
        }
        return n;
    case MHA_HEAD_CLASS:
        if (out != NULL)
            out[0] = 0;
        return 1;
    case MHA_HEAD_TOKEN:
        for (size_t t = 0; out != NULL && t < doc->n; t++)
            out[t] = t;
        return doc->n;
    case MHA_HEAD_SPAN:
    case MHA_HEAD_EMBEDDING:
    case MHA_HEAD_NONE:
        break;
    }
    return 0;
}

static int deliver(void *context, const mha_block *block, size_t worker)
{
    mha_answers *a = context;
    (void)worker;
    assert(block->document < a->count && block->cols >= a->k);
    for (size_t r = a->start[block->document]; r < a->start[block->document + 1]; r++) {
        mha_answer *row = a->answers + r * a->k;
        size_t position = row->position;
        if (position < block->first || position - block->first >= block->rows)
            continue;
        mha_answer_top(block->data + (position - block->first) * block->stride, block->cols, a->k,
                       row);
        if (block->cols == 1) /* one class alone: how likely its yes is */
            row->prob =
                1 / (1 + exp(-(double)block->data[(position - block->first) * block->stride]));
        for (size_t i = 0; i < a->k; i++) {
            row[i].document = block->document;
            row[i].position = position;
        }
    }
    return 0;
}

static mha_status list_rows(mha_answers *a, const mha_model_info *info, int32_t mask_id,
                            mha_err *err)
{
    size_t all, *at;
    MHA_TRY(mha_alloc((void **)&a->start, a->count + 1, sizeof *a->start, err));
    for (size_t d = 0; d < a->count; d++)
        a->start[d + 1] = a->start[d] + positions(info, &a->docs[d], mask_id, NULL);
    size_t rows = a->start[a->count];
    if (mha_mul_overflows(rows, a->k, &all))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for %zu answers of %zu rows", a->k, rows);
    MHA_TRY(mha_alloc((void **)&a->answers, all, sizeof *a->answers, err));
    MHA_TRY(mha_alloc((void **)&at, rows, sizeof *at, err));
    for (size_t d = 0; d < a->count; d++)
        positions(info, &a->docs[d], mask_id, at + a->start[d]);
    for (size_t r = 0; a->k > 0 && r < rows; r++)
        a->answers[r * a->k].position = at[r];
    mha_free(at);
    return MHA_OK;
}

mha_status mha_answers_new(mha_answers **out, const mha_model *model, const mha_document *docs,
                           size_t count, int32_t mask_id, size_t k, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(model);
    size_t width = info->classes > 0 ? info->classes : info->vocab;
    mha_answers *a;
    *out = NULL;
    if (info->head == MHA_HEAD_NONE || info->head == MHA_HEAD_EMBEDDING)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the model has no head: it gives no answer",
                        info->path);
    if (info->head == MHA_HEAD_SPAN)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: the model marks a span of the text and ranks no answers", info->path);
    MHA_TRY(mha_alloc((void **)&a, 1, sizeof *a, err));
    a->docs = docs;
    a->count = count;
    a->k = k < width ? k : width;
    a->probe = (mha_probe){.sites = 1u << MHA_SITE_LOGITS, .deliver = deliver, .context = a};
    mha_status st = list_rows(a, info, mask_id, err);
    if (st != MHA_OK) {
        mha_answers_free(a);
        return st;
    }
    *out = a;
    return MHA_OK;
}

void mha_answers_free(mha_answers *a)
{
    if (a == NULL)
        return;
    mha_free(a->answers);
    mha_free(a->start);
    mha_free(a);
}

const mha_probe *mha_answers_probe(const mha_answers *a)
{
    return &a->probe;
}

const mha_answer *mha_answers_get(const mha_answers *a, size_t *count)
{
    *count = a->start[a->count] * a->k;
    return a->answers;
}

/* ---- stretches --------------------------------------------------------------------------------
 */

/* log Σ exp of column `which` over token 0 and the tokens that are allowed. */
static double log_sum(const float *logits, size_t n, const uint8_t *allowed, int which)
{
    double most = (double)logits[which], sum = 0;
    for (size_t i = 1; i < n; i++)
        if (allowed[i])
            most = fmax(most, (double)logits[2 * i + (size_t)which]);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || allowed[i])
            sum += exp((double)logits[2 * i + (size_t)which] - most);
    return most + log(sum);
}

/* Puts the span where it belongs among the `count` best so far; later ones stand behind equals. */
static size_t insert_span(mha_answer_span *best, size_t count, size_t k, mha_answer_span span)
{
    size_t at = count;
    while (at > 0 && best[at - 1].prob < span.prob)
        at--;
    if (at == k)
        return count;
    count += count < k;
    memmove(best + at + 1, best + at, (count - 1 - at) * sizeof *best);
    best[at] = span;
    return count;
}

size_t mha_answer_spans(const float *logits, size_t n, const uint8_t *allowed, size_t longest,
                        size_t k, mha_answer_span *out)
{
    size_t count = 0;
    if (n == 0 || k == 0)
        return 0;
    double starts = log_sum(logits, n, allowed, 0), ends = log_sum(logits, n, allowed, 1);
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; allowed[i] && j < n && j - i < longest && allowed[j]; j++) {
            double log_prob = (double)logits[2 * i] - starts + (double)logits[2 * j + 1] - ends;
            count = insert_span(out, count, k, (mha_answer_span){i, j, exp(log_prob)});
        }
    return count;
}

/* ---- sampling ---------------------------------------------------------------------------------
 */

struct mha_sampler {
    mha_sampling how;
    mha_rng rng;
    size_t vocab;
    mha_answer *order; /* [vocab] candidates; in order of probability where that matters */
    double *weight;    /* [vocab] exp((s − max s)/temperature) of each candidate */
};

mha_status mha_sampler_new(mha_sampler **out, size_t vocab, const mha_sampling *how, mha_err *err)
{
    mha_sampler *s;
    *out = NULL;
    if (!(how->temperature > 0) || !isfinite(how->temperature))
        return mha_fail(err, MHA_ERR_ARG, "temperature %g is not above 0", how->temperature);
    if (!(how->top_p >= 0 && how->top_p <= 1))
        return mha_fail(err, MHA_ERR_ARG, "probability %g is not between 0 and 1", how->top_p);
    if (vocab == 0)
        return mha_fail(err, MHA_ERR_ARG, "an empty vocabulary");
    MHA_TRY(mha_alloc((void **)&s, 1, sizeof *s, err));
    s->how = *how;
    s->vocab = vocab;
    mha_rng_seed(&s->rng, how->seed, how->stream);
    mha_status st = mha_alloc((void **)&s->order, vocab, sizeof *s->order, err);
    if (st == MHA_OK)
        st = mha_alloc((void **)&s->weight, vocab, sizeof *s->weight, err);
    if (st != MHA_OK) {
        mha_sampler_free(s);
        return st;
    }
    for (size_t i = 0; i < vocab; i++)
        s->order[i].id = (int32_t)i;
    *out = s;
    return MHA_OK;
}

void mha_sampler_free(mha_sampler *s)
{
    if (s == NULL)
        return;
    mha_free(s->order);
    mha_free(s->weight);
    mha_free(s);
}

/* The smallest number of leading candidates with at least top_p of all their weight. */
static size_t nucleus(const mha_sampler *s, size_t n)
{
    double all = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        all += s->weight[i];
    for (size_t i = 0; i < n; i++) {
        sum += s->weight[i];
        if (sum >= s->how.top_p * all)
            return i + 1;
    }
    return n;
}

int32_t mha_sampler_next(mha_sampler *s, const float *logits)
{
    bool ranked = s->how.top_k > 0 || (s->how.top_p > 0 && s->how.top_p < 1);
    size_t n = s->vocab;
    if (ranked)
        n = mha_answer_top(logits, n, s->how.top_k > 0 ? s->how.top_k : n, s->order);
    double m = row_max(logits, s->vocab), sum = 0;
    for (size_t i = 0; i < n; i++)
        s->weight[i] = exp(((double)logits[s->order[i].id] - m) / s->how.temperature);
    if (s->how.top_p > 0 && s->how.top_p < 1)
        n = nucleus(s, n);
    for (size_t i = 0; i < n; i++)
        sum += s->weight[i];
    double u = mha_rng_uniform(&s->rng) * sum;
    size_t last = 0; /* rounding may leave u behind the last candidate that can be drawn */
    for (size_t i = 0; i < n; i++) {
        if (s->weight[i] > 0)
            last = i;
        u -= s->weight[i];
        if (u < 0)
            break;
    }
    return s->order[last].id;
}
