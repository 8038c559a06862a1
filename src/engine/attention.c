/* attention.c: scores → softcap → bias → mask → softmax with its statistics → weighted values, for
 * blocks of 64 query rows of one head at a time. No T×S array exists: scratch is 64·S a thread. */
#include "engine/attention.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/turn.h"
#include "kernel/gemm.h"
#include "probe/row.h"
#include <math.h>
#include <string.h>

/* ---- masks and position biases --------------------------------------------------------------- */

void mha_mask_span(const mha_attn_args *a, size_t i, size_t keys, size_t *lo, size_t *hi)
{
    size_t w = a->window, half = w / 2;
    *lo = 0;
    *hi = keys;
    if (a->mask == MHA_MASK_CAUSAL || a->mask == MHA_MASK_CAUSAL_WINDOW)
        *hi = i + 1 < keys ? i + 1 : keys;
    if (a->mask == MHA_MASK_CAUSAL_WINDOW && i + 1 > w)
        *lo = i + 1 - w;
    if (a->mask == MHA_MASK_WINDOW) {
        *lo = i > half ? i - half : 0;
        *hi = i + half + 1 < keys ? i + half + 1 : keys;
    }
}

uint32_t mha_bias_bucket(int64_t r, uint32_t buckets, uint32_t max_distance, bool bidirectional)
{
    uint32_t base = 0, n = buckets;
    if (bidirectional) {
        n /= 2;
        base = r > 0 ? n : 0;
        r = r < 0 ? -r : r;
    } else
        r = r < 0 ? -r : 0;
    uint32_t exact = n / 2;
    if (r < (int64_t)exact)
        return base + (uint32_t)r;
    float scaled = logf((float)r / (float)exact) /
                   (float)log((double)max_distance / (double)exact) * (float)(n - exact);
    uint32_t bucket = exact + (uint32_t)scaled;
    return base + (bucket < n ? bucket : n - 1);
}

static void fill_alibi(const mha_attn_args *a, float slope, size_t S, float *bias)
{
    for (size_t j = 0; j < S; j++) {
        float x =
            a->bias_bf16 ? mha_bf16_round(slope * mha_bf16_round((float)j)) : slope * (float)j;
        bias[j] = a->bias_factor * x;
    }
}

const float *mha_bias_row(const mha_attn_args *a, const float *bias, size_t following)
{
    return a->bias == MHA_BIAS_ALIBI ? bias : bias + following;
}

void mha_bias_fill(const mha_attn_args *a, uint32_t h, size_t T, size_t S, float *bias)
{
    if (a->bias == MHA_BIAS_ALIBI) {
        fill_alibi(a, a->bias_table[h], S, bias);
        return;
    }
    for (size_t x = 0; x < T + S - 1; x++) {
        int64_t d = (int64_t)x - (int64_t)(T - 1);
        uint32_t b =
            mha_bias_bucket(d, a->bias_buckets, a->bias_max_distance, a->bias_bidirectional);
        bias[x] = a->bias_table[(size_t)b * a->heads + h];
    }
}

/* ---- one block of rows ------------------------------------------------------------------------
 */

typedef struct block {
    const mha_attention *t;
    uint32_t head;
    size_t doc, first, rows; /* query rows [first, first + rows) of document doc */
    size_t key_doc;          /* whose keys it reads: its own, or the memory that it shares */
    size_t keys, past;       /* S of the document; query row r sits at position past + r */
    size_t lo, hi;           /* keys that any row of the block sees */
    float *s;                /* [rows, width]: scores, then e, then p when a probe wants it */
    size_t s_first, width;   /* s holds keys s_first … s_first + width − 1 */
    float *q;                /* [rows, K], stride H·K; becomes z */
    const float *bias;       /* slice table of mha_bias_fill or NULL */
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
                     .first = b->first,
                     .rows = b->rows,
                     .cols = cols,
                     .total_rows = t->queries->offset[b->doc + 1] - t->queries->offset[b->doc],
                     .data = data,
                     .stride = stride,
                     .stats = b->stats};
    return mha_watch_deliver(t->f->watch, &out, worker, err);
}

/* scores[rows, lo…hi) = scale·q·kᵀ, then softcap and position bias. */
static void block_scores(block *b)
{
    const mha_attn_args *a = b->t->a;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t g = (size_t)b->head * a->kv_heads / a->heads;
    const float *k = b->t->k + (b->t->keys->offset[b->key_doc] + b->lo) * GK + g * K;
    float *s = b->s + (b->lo - b->s_first);
    size_t n = b->hi - b->lo;
    mha_gemm(false, true, b->rows, n, K, a->scale, b->q, HK, k, GK, 0, s, b->width);
    const mha_kernels *kn = b->t->f->k;
    for (size_t r = 0; r < b->rows; r++) {
        if (a->softcap != 0)
            kn->softcap(s + r * b->width, n, a->softcap);
        if (b->bias != NULL) {
            size_t T = b->t->queries->offset[b->doc + 1] - b->t->queries->offset[b->doc];
            kn->add(s + r * b->width, mha_bias_row(a, b->bias, T - 1 - (b->first + r)) + b->lo, n);
        }
    }
}

/* Everything outside the visible span gets `value`: −∞ for scores, 0 for weights. */
static void fill_masked(const block *b, size_t r, size_t lo, size_t hi, float value)
{
    float *row = b->s + r * b->width;
    for (size_t j = 0; j < lo - b->s_first; j++)
        row[j] = value;
    for (size_t j = hi - b->s_first; j < b->width; j++)
        row[j] = value;
}

static void row_span(const block *b, size_t r, size_t *lo, size_t *hi)
{
    mha_mask_span(b->t->a, b->past + b->first + r, b->keys, lo, hi);
}

/* s becomes e = exp(s − max) in the visible span and 0 elsewhere; 1/Σ goes to inverse[]. */
static mha_status block_softmax(block *b, mha_err *err)
{
    const mha_forward *f = b->t->f;
    bool self = b->t->kind == MHA_SELF;
    const size_t *so = b->t->keys->special_offset;
    for (size_t r = 0; r < b->rows; r++) {
        size_t lo, hi;
        row_span(b, r, &lo, &hi);
        mha_row row = {.s = b->s + r * b->width + (lo - b->s_first),
                       .n = hi - lo,
                       .first = lo,
                       .keys = b->keys,
                       .query = self ? b->past + b->first + r : MHA_NO_DIAGONAL,
                       .sink = b->t->a->sinks != NULL ? b->t->a->sinks + b->head : NULL};
        if (so != NULL) {
            row.special = b->t->keys->special + so[b->key_doc];
            row.special_count = so[b->key_doc + 1] - so[b->key_doc];
            row.has_special = true;
        }
        b->inverse[r] = mha_row_weigh(f->k, &row, b->stats != NULL ? &b->stats[r] : NULL);
        if (!isfinite(b->inverse[r])) {
            char place[64];
            mha_forward_place(f, place, sizeof place);
            return mha_fail(err, MHA_ERR_NUMERIC,
                            "%s, scores of head %u: NaN or infinity in row %zu of document %zu",
                            place, b->head, b->first + r, f->first_document + b->doc);
        }
        if (b->t->lse != NULL)
            b->t->lse[b->head * b->t->queries->total + b->t->queries->offset[b->doc] + b->first +
                      r] = row.max - logf(b->inverse[r]);
        fill_masked(b, r, lo, hi, 0);
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

/* z = (e·V)/Σ, written where q was, then gated. `weighed`: s already holds p. */
static void block_values(block *b, bool weighed)
{
    const mha_attn_args *a = b->t->a;
    const mha_forward *f = b->t->f;
    size_t K = a->width, HK = (size_t)a->heads * K, GK = (size_t)a->kv_heads * K;
    size_t g = (size_t)b->head * a->kv_heads / a->heads;
    const float *v = b->t->v + (b->t->keys->offset[b->key_doc] + b->lo) * GK + g * K;
    mha_gemm(false, false, b->rows, K, b->hi - b->lo, 1, b->s + (b->lo - b->s_first), b->width, v,
             GK, 0, b->q, HK);
    for (size_t r = 0; !weighed && r < b->rows; r++)
        f->k->scale(b->q + r * HK, K, b->inverse[r]);
    if (b->t->z != NULL)
        for (size_t r = 0; r < b->rows; r++)
            memcpy(b->t->z + (b->q - b->t->q) + r * HK, b->q + r * HK, K * sizeof(float));
    block_gate(b);
}

static mha_status block_run(block *b, mha_turn *turn, size_t ticket, size_t worker, mha_err *err)
{
    const mha_attention *t = b->t;
    bool scores = wants(t, MHA_SITE_SCORES, b->head), pattern = wants(t, MHA_SITE_PATTERN, b->head);
    size_t HK = (size_t)t->a->heads * t->a->width, lo, hi;
    row_span(b, 0, &b->lo, &hi);
    row_span(b, b->rows - 1, &lo, &b->hi);
    bool whole = scores || pattern; /* probes get full rows */
    b->s_first = whole ? 0 : b->lo;
    b->width = whole ? b->keys : b->hi - b->lo;
    if (!wants(t, MHA_SITE_STATS, b->head))
        b->stats = NULL;
    block_scores(b);
    if (scores) {
        for (size_t r = 0; r < b->rows; r++) {
            row_span(b, r, &lo, &hi);
            fill_masked(b, r, lo, hi, -INFINITY);
        }
        mha_turn_wait(turn, ticket);
        MHA_TRY(deliver(b, MHA_SITE_SCORES, b->s, b->keys, b->width, worker, err));
    }
    MHA_TRY(block_softmax(b, err));
    if (pattern)
        for (size_t r = 0; r < b->rows; r++)
            t->f->k->scale(b->s + r * b->width, b->width, b->inverse[r]);
    if (t->depth != MHA_DEPTH_SCORES)
        block_values(b, pattern);
    if (turn == NULL)
        return MHA_OK;
    mha_turn_wait(turn, ticket);
    if (b->stats != NULL)
        MHA_TRY(deliver(b, MHA_SITE_STATS, NULL, 0, 0, worker, err));
    if (pattern)
        MHA_TRY(deliver(b, MHA_SITE_PATTERN, b->s, b->keys, b->width, worker, err));
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
} attention_job;

/* Cross-attention of a document that branched off inside the decoder reads its parent's memory. */
static size_t key_document(const mha_attention *t, size_t d)
{
    return t->kind == MHA_CROSS && t->f->memory_of != NULL ? t->f->memory_of[d] : d;
}

static mha_status run_work(const attention_job *j, uint32_t head, const mha_work *w, size_t ticket,
                           size_t worker, mha_err *err)
{
    const mha_attention *t = j->t;
    const size_t *qo = t->queries->offset, *ko = t->keys->offset;
    size_t d = w->document, first = w->first;
    size_t HK = (size_t)t->a->heads * t->a->width;
    float *bias = j->bias != NULL ? j->bias + worker * j->bias_size : NULL;
    for (size_t i = 0; i < w->blocks; i++) {
        size_t T = qo[d + 1] - qo[d], rows = T - first, kd = key_document(t, d);
        block b = {.t = t,
                   .head = head,
                   .doc = d,
                   .first = first,
                   .rows = rows < MHA_BLOCK_ROWS ? rows : MHA_BLOCK_ROWS,
                   .key_doc = kd,
                   .keys = ko[kd + 1] - ko[kd],
                   .past = t->kind == MHA_SELF ? t->queries->past : 0,
                   .s = j->scores + worker * j->score_size,
                   .q = t->q + (qo[d] + first) * HK + (size_t)head * t->a->width,
                   .bias = bias,
                   .stats = j->stats != NULL ? j->stats + worker * MHA_BLOCK_ROWS : NULL};
        if (bias != NULL) {
            bias_key *key = &j->filled[worker];
            if (key->head != head || key->rows != b.past + T || key->keys != b.keys)
                mha_bias_fill(t->a, head, b.past + T, b.keys, bias);
            *key = (bias_key){head, b.past + T, b.keys};
        }
        MHA_TRY(block_run(&b, j->turn != NULL ? &j->turn[head] : NULL, ticket, worker, err));
        first += b.rows;
        if (first == T) {
            first = 0;
            d++;
        }
    }
    return MHA_OK;
}

static mha_status task(void *context, size_t index, size_t worker, mha_err *err)
{
    const attention_job *j = context;
    size_t count = j->t->f->work_count;
    uint32_t head = (uint32_t)(index / count);
    mha_status st = run_work(j, head, &j->t->f->work[index % count], index % count, worker, err);
    if (j->turn != NULL) /* also after an error: others wait for it */
        mha_turn_done(&j->turn[head], index % count);
    return st;
}

/* Rows of the longest document. */
static size_t longest(const mha_rows *rows)
{
    size_t most = 0;
    for (size_t d = 0; d < rows->docs; d++)
        if (rows->offset[d + 1] - rows->offset[d] > most)
            most = rows->offset[d + 1] - rows->offset[d];
    return most;
}

/* Scores, and weighted values where they are wanted, as block_run multiplies them. */
static double count_multiply_adds(const mha_attention *t)
{
    double pairs = 0;
    for (size_t d = 0; d < t->queries->docs; d++) {
        size_t T = t->queries->offset[d + 1] - t->queries->offset[d], kd = key_document(t, d);
        size_t S = t->keys->offset[kd + 1] - t->keys->offset[kd], lo, hi, ignored;
        size_t past = t->kind == MHA_SELF ? t->queries->past : 0;
        for (size_t first = 0; first < T; first += MHA_BLOCK_ROWS) {
            size_t rows = T - first < MHA_BLOCK_ROWS ? T - first : MHA_BLOCK_ROWS;
            mha_mask_span(t->a, past + first, S, &lo, &ignored);
            mha_mask_span(t->a, past + first + rows - 1, S, &ignored, &hi);
            pairs += (double)rows * (double)(hi - lo);
        }
    }
    return pairs * t->a->heads * t->a->width * (t->depth == MHA_DEPTH_SCORES ? 1 : 2);
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
    size_t S = longest(t->keys), T = longest(t->queries) + t->queries->past;
    e->multiply_adds += count_multiply_adds(t);
    attention_job j = {.t = t, .score_size = MHA_BLOCK_ROWS * S, .bias_size = T + S};
    void *p;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_SCORES, threads * j.score_size, sizeof(float), &p, err));
    j.scores = p;
    if (t->a->bias != MHA_BIAS_NONE) {
        MHA_TRY(
            mha_scratch_get(e, MHA_SCRATCH_BIAS, threads * j.bias_size, sizeof(float), &p, err));
        j.bias = p;
    }
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
