/* decoder.c: generation step by step with a key/value cache. The prompt is one forward pass that
 * fills the cache; each step is a forward pass over one row that reads it. Where rotary frequencies
 * go by the length of the text, the step that crosses the length starts again from the first token.
 */
#include "base/fail.h"
#include "base/mem.h"
#include "engine/engine.h"
#include <string.h>

struct mha_decoder {
    mha_engine *e;
    size_t capacity, past, source; /* source: tokens of the encoder's memory */
    float *logits;                 /* [V] */
    mha_kv_cache *cache;           /* [attn_count] */
    mha_document doc; /* the ids of the encoder, or of the prompt and then of one step */
    int32_t *fed;     /* [capacity] all tokens so far */
    mha_plan plan;
    const mha_watch *watch; /* who sees the attention of its rows */
    size_t document;        /* their number in the run */
};

static const mha_watch nobody;

/* Floats of a row of an attention step's cache; 0 where it has none: an encoder in front runs
 * once. */
static size_t cache_width(const mha_attn_info *a)
{
    return a->stack == MHA_ENC ? 0 : (size_t)a->kv_heads * a->width;
}

static size_t cache_rows(const mha_decoder *d, const mha_attn_info *a)
{
    return a->kind == MHA_CROSS ? d->source : d->capacity;
}

/* The pass over the prompt is the largest; the cache stands beside it. */
static mha_status check_memory(const mha_decoder *d, mha_err *err)
{
    const mha_model_info *info = &d->e->model->info;
    mha_plan plan = d->plan;
    uint64_t floats = info->vocab;
    for (size_t i = 0; i < info->attn_count; i++)
        floats +=
            2 * (uint64_t)cache_rows(d, &info->attn[i]) * (uint64_t)cache_width(&info->attn[i]);
    MHA_TRY(mha_plan_cost(&plan, d->e, d->watch, &d->doc, 1, err));
    return mha_plan_check(d->e, plan.info.bytes + floats * sizeof(float), err);
}

static mha_status make_cache(mha_decoder *d, mha_err *err)
{
    const mha_model_info *info = &d->e->model->info;
    void *p;
    MHA_TRY(mha_alloc(&p, info->attn_count, sizeof(mha_kv_cache), err));
    d->cache = p;
    MHA_TRY(mha_alloc_raw(&p, d->capacity, sizeof *d->fed, err));
    d->fed = p;
    for (size_t i = 0; i < info->attn_count; i++) {
        const mha_attn_info *a = &info->attn[i];
        size_t rows = cache_rows(d, a), row_bytes = cache_width(a) * sizeof(float);
        if (row_bytes == 0)
            continue;
        MHA_TRY(mha_alloc_raw(&p, rows, row_bytes, err));
        d->cache[i].k = p;
        MHA_TRY(mha_alloc_raw(&p, rows, row_bytes, err));
        d->cache[i].v = p;
    }
    return MHA_OK;
}

/* One pass over the rows that d->doc holds now. */
static mha_status advance(mha_decoder *d, bool first, mha_err *err)
{
    const struct mha_model *m = d->e->model;
    size_t last = m->stack_count - 1;
    mha_forward f = {.e = d->e,
                     .m = m,
                     .k = d->e->kernels,
                     .watch = d->watch,
                     .first_document = d->document,
                     .plan = &d->plan,
                     .docs = &d->doc,
                     .doc_count = 1,
                     .cache = d->cache,
                     .logits_out = d->logits,
                     .keep_memory = !first};
    MHA_TRY(mha_engine_check(d->e, &d->doc, err));
    mha_status st = mha_batch_init(&f, err);
    f.side[last].past = d->past;
    if (st == MHA_OK)
        st = mha_forward_run(&f, err);
    if (st == MHA_OK)
        d->past += f.side[last].total;
    mha_batch_release(&f);
    return st;
}

static mha_status decoder_make(mha_decoder **out, mha_engine *e, const mha_document *prompt,
                               size_t capacity, const mha_watch *watch, size_t document,
                               mha_err *err)
{
    const struct mha_model *m = e->model;
    size_t last = m->stack_count - 1;
    *out = NULL;
    if (m->info.head != MHA_HEAD_NEXT && m->info.head != MHA_HEAD_TARGET)
        return mha_fail(err, MHA_ERR_ARG, "the model does not generate: its read-out is %s",
                        m->info.head_name);
    size_t n = mha_side_tokens(m, prompt, last);
    if (n == 0)
        return mha_fail(err, MHA_ERR_ARG, "generation starts from at least one token");
    if (capacity < n)
        capacity = n;
    if (m->max_positions != 0 && capacity > m->max_positions)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "%zu tokens of prompt and answer, the model's position table ends at %u",
                        capacity, m->max_positions);
    void *p;
    MHA_TRY(mha_alloc(&p, 1, sizeof(mha_decoder), err));
    mha_decoder *d = p;
    d->e = e;
    d->capacity = capacity;
    d->watch = watch;
    d->document = document;
    d->source = mha_side_tokens(m, prompt, 0);
    d->doc = *prompt;
    const int32_t *ids = last == 1 ? prompt->target_ids : prompt->ids;
    mha_plan_make(&d->plan, m, watch, true);
    mha_status st = check_memory(d, err);
    if (st == MHA_OK)
        st = make_cache(d, err);
    if (st == MHA_OK)
        st = mha_alloc_raw(&p, m->info.vocab, sizeof(float), err);
    if (st == MHA_OK) {
        d->logits = p;
        memcpy(d->fed, ids, n * sizeof *ids);
        st = advance(d, true, err);
    }
    if (st != MHA_OK) {
        mha_decoder_free(d);
        return st;
    }
    *out = d;
    return MHA_OK;
}

mha_status mha_decoder_new(mha_decoder **out, mha_engine *e, const mha_document *prompt,
                           size_t capacity, mha_err *err)
{
    return decoder_make(out, e, prompt, capacity, &nobody, 0, err);
}

void mha_decoder_free(mha_decoder *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; d->cache != NULL && i < d->e->model->info.attn_count; i++) {
        mha_free(d->cache[i].k);
        mha_free(d->cache[i].v);
    }
    mha_free(d->cache);
    mha_free(d->fed);
    mha_free(d->logits);
    mha_free(d);
}

void mha_decoder_copy(mha_decoder *to, const mha_decoder *from)
{
    const mha_model_info *info = &from->e->model->info;
    to->past = from->past;
    memcpy(to->logits, from->logits, info->vocab * sizeof *to->logits);
    memcpy(to->fed, from->fed, from->past * sizeof *to->fed);
    for (size_t i = 0; i < info->attn_count; i++) {
        const mha_attn_info *a = &info->attn[i];
        const mha_kv_cache *source = &from->cache[i];
        mha_kv_cache *cache = &to->cache[i];
        bool cross = a->kind == MHA_CROSS;
        if (source->k == NULL || (cross && cache->filled)) /* the memory is the same */
            continue;
        size_t n = (cross ? from->source : from->past) * (size_t)a->kv_heads * a->width;
        memcpy(cache->k, source->k, n * sizeof *cache->k);
        memcpy(cache->v, source->v, n * sizeof *cache->v);
        cache->filled = source->filled;
    }
}

mha_status mha_decoder_fork(mha_decoder **out, const mha_decoder *from, mha_err *err)
{
    void *p;
    *out = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof(mha_decoder), err));
    mha_decoder *d = p;
    *d = *from;
    d->cache = NULL;
    d->fed = NULL;
    d->logits = NULL;
    mha_status st = make_cache(d, err);
    if (st == MHA_OK)
        st = mha_alloc_raw(&p, d->e->model->info.vocab, sizeof(float), err);
    if (st != MHA_OK) {
        mha_decoder_free(d);
        return st;
    }
    d->logits = p;
    mha_decoder_copy(d, from);
    *out = d;
    return MHA_OK;
}

const float *mha_decoder_logits(const mha_decoder *d)
{
    return d->logits;
}

/* Do the keys that are kept turn otherwise in a text of one more token? */
static bool keys_change(const mha_decoder *d)
{
    const struct mha_model *m = d->e->model;
    const mha_stack *stack = &m->stack[m->stack_count - 1];
    for (uint32_t l = 0; l < stack->layers; l++)
        for (size_t i = 0; i < stack->block[l].count; i++) {
            const mha_step *s = &stack->block[l].step[i];
            if (s->op == MHA_OP_ATTN && s->attn.rope_long != NULL &&
                s->attn.rope_long_from == d->past)
                return true;
        }
    return false;
}

mha_status mha_decoder_step(mha_decoder *d, int32_t id, mha_err *err)
{
    if (d->past >= d->capacity)
        return mha_fail(err, MHA_ERR_LIMIT, "the generation is full: %zu tokens", d->capacity);
    size_t end = d->past + 1;
    d->fed[d->past] = id;
    if (keys_change(d))
        d->past = 0;
    if (d->e->model->stack_count == 2) {
        d->doc.target_ids = d->fed + d->past;
        d->doc.target_n = end - d->past;
        d->doc.target_special = NULL;
    } else {
        d->doc.ids = d->fed + d->past;
        d->doc.n = end - d->past;
        d->doc.types = NULL;
        d->doc.special = NULL;
    }
    return advance(d, false, err);
}

/* ---- generation once more, watched ------------------------------------------------------------
 */

static mha_status replay_check(const mha_engine *e, const mha_document *doc, const mha_watch *watch,
                               mha_err *err)
{
    const uint32_t taken = mha_site_bit(MHA_SITE_PATTERN) | mha_site_bit(MHA_SITE_SCORES) |
                           mha_site_bit(MHA_SITE_STATS);
    for (size_t i = 0; i < watch->count; i++)
        if (watch->probes[i]->sites & ~taken)
            return mha_fail(err, MHA_ERR_ARG,
                            "of generated tokens attention alone can be watched: its pattern, its "
                            "scores and their statistics");
    if (doc->generated >= mha_side_tokens(e->model, doc, e->model->stack_count - 1))
        return mha_fail(err, MHA_ERR_ARG, "generation starts from at least one token");
    return MHA_OK;
}

mha_status mha_decoder_replay(mha_engine *e, const mha_document *doc, size_t number,
                              const mha_watch *watch, mha_err *err)
{
    bool target = e->model->stack_count == 2;
    mha_document prompt = *doc;
    mha_decoder *d;
    MHA_TRY(replay_check(e, doc, watch, err));
    prompt.generated = 0;
    *(target ? &prompt.target_n : &prompt.n) -= doc->generated;
    size_t first = target ? prompt.target_n : prompt.n, end = first + doc->generated;
    MHA_TRY(decoder_make(&d, e, &prompt, end, watch, number, err));
    mha_status st = MHA_OK;
    for (size_t i = first; i < end && st == MHA_OK; i++) {
        if (keys_change(d)) /* rows before it were seen as they are not any more */
            st = mha_fail(err, MHA_ERR_UNSUPPORTED,
                          "the text grows past %zu tokens, where its rotary frequencies change",
                          d->past);
        else
            st = mha_decoder_step(d, target ? doc->target_ids[i] : doc->ids[i], err);
    }
    mha_decoder_free(d);
    return st;
}
