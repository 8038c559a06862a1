/* attention.c: scores → relative terms → softcap → biases → mask → softmax with its statistics →
 * weighted values, for blocks of up to 64 query rows of one head at a time. No T×S array exists:
 * scratch is 64·S a thread, less where the mask hides most of S. */
#include "engine/attention.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/turn.h"
#include "engine/pair.h"
#include "engine/relative.h"
#include "kernel/gemm.h"
#include "probe/row.h"
#include <math.h>
#include <string.h>

/* ---- one block of rows ------------------------------------------------------------------------
 */

typedef struct block {
    const mha_attention *t;
    mha_layout *l; /* spans of keys that any row of the block sees, and where s holds them */
    uint32_t head;
    size_t doc, first, rows; /* query rows [first, first + rows) of document doc */
    size_t key_doc;          /* whose keys it reads: its own, or the memory that it shares */
    size_t past;             /* query row r sits at position past + r */
    float *s;                /* [rows, l->width]: scores, then e, then p when a probe wants it */
    float *q;                /* [rows, K], stride H·K; becomes z */
    const float *k, *v;      /* the document's first key of this head, stride G·K */
    const float *bias;       /* slice table of mha_bias_fill or NULL */
    const mha_relative *rel; /* its a is NULL without relative terms */
    mha_row_stats *stats;    /* [rows] or NULL */
    float inverse[MHA_BLOCK_ROWS];
} block;

static bool wants(const mha_attention *t, mha_site site, uint32_t head)
{
    return (t->sites & mha_site_bit(site)) &&
           mha_watch_wants(t->f->watch, site, t->stack, t->kind, t->layer, head);
}

static mha_status deliver(const block *b, mha_site site, const float *data, size_t cols,
                          size_t stride, size_t worker, mha_err *err)
{
    const mha_attention *t = b->t;
    mha_block out = {.site = site,
                     .stack = t->stack,
                     .kind = t->kind,
                     .layer = t->layer,
                     .head = b->head,
                     .document = t->f->first_document + b->doc,
                     .first = t->queries->past + b->first,
                     .rows = b->rows,
                     .cols = cols,
                     .total_rows = t->queries->past + t->queries->offset[b->doc + 1] -
                                   t->queries->offset[b->doc],
                     .data = data,
                     .stride = stride,
                     .stats = b->stats};
    return mha_watch_deliver(t->f->watch, &out, worker, err);
}

/* Score rows of one span: scale·q·kᵀ with relative terms, then softcap, position bias and
 * multiplicity. */
static void span_scores(block *b, const mha_span *span, size_t worker)
{
    const mha_attn_args *a = b->t->a;
    const mha_kernels *kn = b->t->f->k;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t n = span->hi - span->lo, width = b->l->width;
    size_t T = b->t->queries->offset[b->doc + 1] - b->t->queries->offset[b->doc];
    float *s = b->s + span->at;
    mha_gemm(false, true, b->rows, n, K, a->scale, b->q, HK, b->k + span->lo * GK, GK, 0, s, width);
    if (b->rel->a != NULL) {
        mha_relative_block x = {b->head, b->past + b->first,   b->rows, span->lo, n,
                                b->q,    b->k + span->lo * GK, s,       width};
        mha_relative_add(b->rel, &x, worker);
    }
    for (size_t r = 0; r < b->rows; r++, s += width) {
        if (a->softcap != 0)
            kn->softcap(s, n, a->softcap);
        if (b->bias != NULL)
            kn->add(s, mha_bias_row(a, b->bias, T - 1 - (b->first + r)) + span->lo, n);
        if (a->pair != NULL)
            mha_pair_add(kn, a, b->head,
                         mha_pair_of(b->t->f, b->doc, b->first + r, T) + span->lo * a->pair_width,
                         n, s);
        for (size_t j = 0; span->times > 1 && j < n; j++)
            s[j] += logf((float)span->times);
    }
}

static float *find_row(block *b, size_t r)
{
    float *s = b->s + r * b->l->width;
    mha_layout_row(b->l, b->past + b->first + r, s);
    return s;
}

static mha_status bad_scores(const block *b, size_t r, mha_err *err)
{
    char place[64];
    mha_forward_place(b->t->f, place, sizeof place);
    return mha_fail(err, MHA_ERR_NUMERIC,
                    "%s, scores of head %u: NaN or infinity in row %zu of document %zu", place,
                    b->head, b->first + r, b->t->f->first_document + b->doc);
}

/* s becomes e = exp(s − max) where the row sees and 0 elsewhere; 1/Σ goes to inverse[]. */
static mha_status block_softmax(block *b, mha_err *err)
{
    const mha_attention *t = b->t;
    const size_t *so = b->stats != NULL ? t->keys->special_offset : NULL;
    for (size_t r = 0; r < b->rows; r++) {
        float *s = find_row(b, r);
        mha_row row = {.runs = b->l->runs,
                       .run_count = b->l->run_count,
                       .query = t->kind == MHA_SELF ? b->past + b->first + r : MHA_NO_DIAGONAL,
                       .sink = t->a->sinks != NULL ? t->a->sinks + b->head : NULL};
        if (so != NULL) {
            row.special = t->keys->special + so[b->key_doc];
            row.special_count = so[b->key_doc + 1] - so[b->key_doc];
            row.has_special = true;
        }
        b->inverse[r] = mha_row_weigh(t->f->k, &row, b->stats != NULL ? &b->stats[r] : NULL);
        if (!isfinite(b->inverse[r]))
            return bad_scores(b, r, err);
        if (t->lse != NULL)
            t->lse[b->head * t->queries->total + t->queries->offset[b->doc] + b->first + r] =
                row.max - logf(b->inverse[r]);
        mha_layout_fill(b->l, s, 0);
    }
    return MHA_OK;
}

/* z ← gate·z + (1 − gate)·fill */
static void block_gate(block *b)
{
    const mha_forward *f = b->t->f;
    const mha_document *doc = &f->docs[b->doc];
    size_t K = b->t->a->width, HK = (size_t)b->t->a->heads * K;
    if (doc->gates == NULL)
        return;
    float gate = doc->gates[f->attn * f->gate_stride + b->head];
    if (gate == 1)
        return;
    const float *fill = doc->fill != NULL ? doc->fill->z[f->attn] : NULL;
    for (size_t r = 0; r < b->rows; r++) {
        f->k->scale(b->q + r * HK, K, gate);
        if (fill == NULL)
            continue;
        size_t row = doc->fill->rows == 1 ? 0 : b->past + b->first + r;
        f->k->axpy(b->q + r * HK, 1 - gate, fill + row * HK + (size_t)b->head * K, K);
    }
}

/* z as it stands, into what is kept for the reverse pass (NULL: nothing is). */
static void keep_rows(const block *b, float *kept)
{
    size_t K = b->t->a->width, HK = (size_t)b->t->a->heads * K;
    for (size_t r = 0; kept != NULL && r < b->rows; r++)
        memcpy(kept + (b->q - b->t->q) + r * HK, b->q + r * HK, K * sizeof(float));
}

/* z = (e·V)/Σ, written where q was, then gated. `weighed`: s already holds p. */
static void block_values(block *b, bool weighed)
{
    const mha_attn_args *a = b->t->a;
    const mha_forward *f = b->t->f;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    for (size_t k = 0; k < b->l->count; k++) {
        const mha_span *span = &b->l->spans[k];
        mha_gemm(false, false, b->rows, K, span->hi - span->lo, 1, b->s + span->at, b->l->width,
                 b->v + span->lo * GK, GK, k > 0, b->q, HK);
    }
    for (size_t r = 0; !weighed && r < b->rows; r++)
        f->k->scale(b->q + r * HK, K, b->inverse[r]);
    keep_rows(b, b->t->opened);
    for (size_t r = 0; b->t->open != NULL && r < b->rows; r++)
        f->k->mul(b->q + r * HK, b->t->open + (b->q - b->t->q) + r * HK, K);
    keep_rows(b, b->t->z);
    block_gate(b);
}

static mha_status block_run(block *b, mha_turn *turn, size_t ticket, size_t worker, mha_err *err)
{
    const mha_attention *t = b->t;
    bool scores = wants(t, MHA_SITE_SCORES, b->head), pattern = wants(t, MHA_SITE_PATTERN, b->head);
    size_t HK = (size_t)t->a->heads * t->a->width, S = b->l->sight.keys;
    mha_layout_block(b->l, b->past + b->first, b->rows, scores || pattern);
    if (!wants(t, MHA_SITE_STATS, b->head))
        b->stats = NULL;
    for (size_t k = 0; k < b->l->count; k++)
        span_scores(b, &b->l->spans[k], worker);
    if (scores) {
        for (size_t r = 0; r < b->rows; r++)
            mha_layout_fill(b->l, find_row(b, r), -INFINITY);
        mha_turn_wait(turn, ticket);
        MHA_TRY(deliver(b, MHA_SITE_SCORES, b->s, S, S, worker, err));
    }
    MHA_TRY(block_softmax(b, err));
    if (pattern)
        for (size_t r = 0; r < b->rows; r++)
            t->f->k->scale(b->s + r * S, S, b->inverse[r]);
    if (t->depth != MHA_DEPTH_SCORES)
        block_values(b, pattern);
    if (turn == NULL)
        return MHA_OK;
    mha_turn_wait(turn, ticket);
    if (b->stats != NULL)
        MHA_TRY(deliver(b, MHA_SITE_STATS, NULL, 0, 0, worker, err));
    if (pattern)
        MHA_TRY(deliver(b, MHA_SITE_PATTERN, b->s, S, S, worker, err));
    if (wants(t, MHA_SITE_Z, b->head))
        MHA_TRY(deliver(b, MHA_SITE_Z, b->q, t->a->width, HK, worker, err));
    return MHA_OK;
}

/* ---- tasks: heads × pieces of work ------------------------------------------------------------
 */

typedef struct bias_key {
    uint32_t head;
    size_t rows, keys; /* 0 rows: nothing yet */
} bias_key;

typedef struct attention_job {
    mha_attention *t;
    float *scores, *bias; /* [threads] slices of score_size and bias_size floats */
    size_t score_size, bias_size;
    mha_row_stats *stats; /* [threads][MHA_BLOCK_ROWS] or NULL */
    mha_turn *turn;       /* [H]: blocks of one head are delivered in order; NULL: none wanted */
    bias_key *filled;     /* [threads] what each worker's bias slice holds */
    mha_relative rel;
    unsigned char *spans; /* [threads] lists of spans */
    size_t span_count;
} attention_job;

/* Cross-attention of a document that branched off inside the decoder reads its parent's memory. */
static size_t key_document(const mha_attention *t, size_t d)
{
    return t->kind == MHA_CROSS && t->f->memory_of != NULL ? t->f->memory_of[d] : d;
}

static mha_sight sight_of(const mha_attention *t, size_t d)
{
    size_t kd = key_document(t, d);
    mha_sight s = {.a = t->a, .keys = t->keys->offset[kd + 1] - t->keys->offset[kd]};
    if (t->k_global != NULL) {
        s.global = t->f->globals[d].at;
        s.globals = t->f->globals[d].count;
    }
    return s;
}

static size_t past_of(const mha_attention *t)
{
    return t->kind == MHA_SELF ? t->queries->past : 0;
}

/* The bias table of this head and these lengths, unless the worker has just that one. */
static const float *find_bias(const attention_job *j, uint32_t head, size_t rows, size_t keys,
                              size_t worker)
{
    if (j->bias == NULL)
        return NULL;
    float *bias = j->bias + worker * j->bias_size;
    bias_key *key = &j->filled[worker];
    if (key->head != head || key->rows != rows || key->keys != keys)
        mha_bias_fill(j->t->a, head, rows, keys, bias);
    *key = (bias_key){head, rows, keys};
    return bias;
}

/* Up to MHA_BLOCK_ROWS rows of one document: one block, or several where the mask changes. */
static mha_status run_rows(const attention_job *j, uint32_t head, size_t d, size_t first,
                           size_t rows, size_t ticket, size_t worker, mha_err *err)
{
    const mha_attention *t = j->t;
    const size_t *qo = t->queries->offset;
    size_t K = t->a->width, HK = (size_t)t->a->heads * K, GK = (size_t)t->a->kv_heads * K;
    size_t kd = key_document(t, d), past = past_of(t), end = first + rows;
    size_t key = t->keys->offset[kd] * GK + (size_t)head * t->a->kv_heads / t->a->heads * K;
    mha_layout l = {.sight = sight_of(t, d)};
    mha_layout_init(&l, j->spans + worker * mha_layout_bytes(j->span_count), j->span_count);
    const float *bias = find_bias(j, head, past + qo[d + 1] - qo[d], l.sight.keys, worker);
    for (; first < end; first += rows) {
        rows = mha_sight_rows(&l.sight, past + first, end - first);
        bool global = mha_sight_is_global(&l.sight, past + first);
        const float *k = global ? t->k_global : t->k, *v = global ? t->v_global : t->v;
        block b = {.t = t,
                   .l = &l,
                   .head = head,
                   .doc = d,
                   .first = first,
                   .rows = rows,
                   .key_doc = kd,
                   .past = past,
                   .s = j->scores + worker * j->score_size,
                   .q = t->q + (qo[d] + first) * HK + (size_t)head * K,
                   .k = k + key,
                   .v = v != NULL ? v + key : NULL,
                   .bias = bias,
                   .rel = &j->rel,
                   .stats = j->stats != NULL ? j->stats + worker * MHA_BLOCK_ROWS : NULL};
        MHA_TRY(block_run(&b, j->turn != NULL ? &j->turn[head] : NULL, ticket, worker, err));
    }
    return MHA_OK;
}

static mha_status run_work(const attention_job *j, uint32_t head, const mha_work *w, size_t ticket,
                           size_t worker, mha_err *err)
{
    size_t d = w->document, first = w->first;
    for (size_t i = 0; i < w->blocks; i++) {
        size_t T = j->t->queries->offset[d + 1] - j->t->queries->offset[d];
        size_t rows = T - first < MHA_BLOCK_ROWS ? T - first : MHA_BLOCK_ROWS;
        MHA_TRY(run_rows(j, head, d, first, rows, ticket, worker, err));
        first += rows;
        if (first == T) {
            first = 0;
            d++;
        }
    }
    return MHA_OK;
}

/* Neighbours in time are pieces of work of different heads: of one head, the second would wait at
 * its first block until the first has delivered its last. */
static mha_status task(void *context, size_t index, size_t worker, mha_err *err)
{
    const attention_job *j = context;
    uint32_t head = (uint32_t)(index % j->t->a->heads);
    size_t at = index / j->t->a->heads;
    mha_status st = run_work(j, head, &j->t->f->work[at], at, worker, err);
    if (j->turn != NULL) /* also after an error: others wait for it */
        mha_turn_done(&j->turn[head], at);
    return st;
}

/* Lists of spans for every worker; then the size of the largest block of scores, and the
 * multiply-adds of scores and (where they are wanted) of weighted values, as block_run does them.
 */
static mha_status measure(attention_job *j, mha_err *err)
{
    const mha_attention *t = j->t;
    mha_engine *e = t->f->e;
    bool whole = t->sites & (mha_site_bit(MHA_SITE_SCORES) | mha_site_bit(MHA_SITE_PATTERN));
    double pairs = 0;
    void *p;
    for (size_t d = 0; d < t->queries->docs; d++) {
        mha_sight sight = sight_of(t, d);
        size_t most = mha_sight_most(&sight);
        j->span_count = most > j->span_count ? most : j->span_count;
    }
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_SPANS, mha_pool_threads(e->pool),
                            mha_layout_bytes(j->span_count), &p, err));
    j->spans = p;
    for (size_t d = 0; d < t->queries->docs; d++) {
        mha_sight sight = sight_of(t, d);
        size_t T = t->queries->offset[d + 1] - t->queries->offset[d];
        mha_extent x = mha_sight_extent(&sight, past_of(t), T, MHA_BLOCK_ROWS, p);
        size_t all = (T < MHA_BLOCK_ROWS ? T : MHA_BLOCK_ROWS) * sight.keys;
        size_t floats = whole ? all : x.floats;
        j->score_size = floats > j->score_size ? floats : j->score_size;
        pairs += x.pairs;
        if (t->a->rel.data != NULL)
            e->multiply_adds += mha_relative_cost(t->a, T, sight.keys);
    }
    e->multiply_adds += pairs * t->a->heads * t->a->pair_width;
    e->multiply_adds += pairs * t->a->heads * t->a->width * (t->depth == MHA_DEPTH_SCORES ? 1 : 2);
    return MHA_OK;
}

/* Runs the tasks; with turns only when something is delivered. */
static mha_status run_ordered(attention_job *j, mha_err *err)
{
    const uint32_t delivered = mha_site_bit(MHA_SITE_STATS) | mha_site_bit(MHA_SITE_SCORES) |
                               mha_site_bit(MHA_SITE_PATTERN) | mha_site_bit(MHA_SITE_Z);
    const mha_forward *f = j->t->f;
    uint32_t heads = j->t->a->heads;
    size_t tasks = f->work_count * heads;
    if (!(j->t->sites & delivered))
        return mha_pool_run(f->e->pool, tasks, task, j, err);
    void *p;
    MHA_TRY(mha_alloc(&p, heads, sizeof(mha_turn), err));
    j->turn = p;
    for (uint32_t h = 0; h < heads; h++)
        mha_turn_init(&j->turn[h]);
    mha_status st = mha_pool_run(f->e->pool, tasks, task, j, err);
    for (uint32_t h = 0; h < heads; h++)
        mha_turn_release(&j->turn[h]);
    mha_free(j->turn);
    return st;
}

mha_status mha_attention_run(mha_attention *t, mha_err *err)
{
    mha_engine *e = t->f->e;
    size_t threads = mha_pool_threads(e->pool);
    size_t S = mha_rows_longest(t->keys), T = mha_rows_longest(t->queries) + t->queries->past;
    attention_job j = {.t = t, .bias_size = T + S};
    void *p;
    MHA_TRY(measure(&j, err));
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_SCORES, threads * j.score_size, sizeof(float), &p, err));
    j.scores = p;
    if (t->a->bias != MHA_BIAS_NONE) {
        MHA_TRY(
            mha_scratch_get(e, MHA_SCRATCH_BIAS, threads * j.bias_size, sizeof(float), &p, err));
        j.bias = p;
    }
    MHA_TRY(mha_relative_make(&j.rel, t->f, t->a, T, S, err));
    if (t->sites & mha_site_bit(MHA_SITE_STATS)) {
        MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_STATS, threads * MHA_BLOCK_ROWS,
                                sizeof(mha_row_stats), &p, err));
        j.stats = p;
    }
    MHA_TRY(mha_alloc(&p, threads, sizeof(bias_key), err));
    j.filled = p;
    mha_status st = run_ordered(&j, err);
    mha_free(j.filled);
    return st;
}
