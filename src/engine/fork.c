/* fork.c: branching documents inside a forward pass, and the sweep over all heads that uses it. */
#include "engine/fork.h"
#include "base/fail.h"
#include "base/mem.h"
#include "engine/matmul.h"
#include "engine/readout.h"
#include "kernel/gemm.h"
#include <string.h>

/* Base documents of one sweep are taken together up to about this many packed rows at the end. */
#define SWEEP_ROWS 32768

/* ---- branching --------------------------------------------------------------------------------
 */

typedef struct branch_job {
    mha_forward *f;
    const mha_attn_args *a;
    const float *z, *w; /* [N, H·K]; W_O as floats */
    size_t ld;
    bool transposed;
    mha_register dst;
    size_t first; /* first new document */
    float *spare; /* [threads][T, K] fill − z */
    size_t spare_size;
} branch_job;

/* out[T, K] = fill − z of head h for the rows of base document d. */
static void difference(const branch_job *j, size_t d, size_t h, float *out)
{
    const mha_forward *f = j->f;
    const mha_rows *side = &f->side[f->at];
    size_t K = j->a->width, HK = (size_t)j->a->heads * K;
    size_t T = side->offset[d + 1] - side->offset[d];
    const mha_fill *fill = f->docs[d].fill;
    const float *instead = fill != NULL ? fill->z[f->attn] : NULL;
    for (size_t r = 0; r < T; r++) {
        float *row = out + r * K;
        memcpy(row, j->z + (side->offset[d] + r) * HK + h * K, K * sizeof *row);
        f->k->scale(row, K, -1);
        if (instead != NULL)
            f->k->add(row, instead + (fill->rows == 1 ? 0 : r) * HK + h * K, K);
    }
}

/* One new document: copies of its base's live registers, and in dst the head exchanged. */
static mha_status branch(void *context, size_t task, size_t worker, mha_err *err)
{
    (void)err;
    const branch_job *j = context;
    mha_forward *f = j->f;
    const mha_rows *side = &f->side[f->at];
    size_t H = j->a->heads, K = j->a->width, d = task / H, h = task % H, D = j->a->o.out;
    size_t T = side->offset[d + 1] - side->offset[d];
    size_t to = side->offset[j->first + task], from = side->offset[d];
    for (mha_register r = MHA_X; r <= MHA_C; r++)
        if (f->reg_rows[r] != 0) {
            size_t width = f->reg_width[r];
            memcpy(f->reg[r] + to * width, f->reg[r] + from * width, T * width * sizeof(float));
        }
    float *spare = j->spare + worker * j->spare_size;
    difference(j, d, h, spare);
    const float *w = j->transposed ? j->w + h * K : j->w + h * K * j->ld;
    mha_gemm(false, j->transposed, T, D, K, 1, spare, K, w, j->ld, 1, f->reg[j->dst] + to * D, D);
    return MHA_OK;
}

/* Adds the new documents to the batch: d-th base's head h becomes document first + d·H + h. */
static void append_documents(mha_forward *f, uint32_t heads)
{
    mha_fork *k = f->fork;
    mha_rows *side = &f->side[f->at];
    size_t first = f->doc_count;
    k->first_of[f->attn] = first;
    for (size_t d = 0; d < k->bases; d++)
        for (uint32_t h = 0; h < heads; h++) {
            size_t n = first + d * heads + h;
            k->docs[n] = k->docs[d];
            k->memory_of[n] = f->at == 0 ? n : d;
            if (f->globals != NULL)
                f->globals[n] = f->globals[d];
            side->offset[n + 1] = side->offset[n] + side->offset[d + 1] - side->offset[d];
        }
    f->doc_count = first + k->bases * heads;
    side->docs = f->doc_count;
    side->total = side->offset[f->doc_count];
}

mha_status mha_fork_heads(mha_forward *f, const mha_attn_args *a, const float *z, mha_register dst,
                          mha_err *err)
{
    mha_fork *k = f->fork;
    mha_rows *side = &f->side[f->at];
    size_t threads = mha_pool_threads(f->e->pool), longest = 0, tokens = side->offset[k->bases];
    for (size_t d = 0; d < k->bases; d++) {
        size_t T = side->offset[d + 1] - side->offset[d];
        longest = T > longest ? T : longest;
    }
    branch_job j = {.f = f,
                    .a = a,
                    .z = z,
                    .dst = dst,
                    .first = f->doc_count,
                    .spare_size = longest * a->width};
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_OUT, threads * j.spare_size, sizeof(float), &p, err));
    j.spare = p;
    MHA_TRY(mha_weight_floats(f->e, &a->o, &j.w, &j.ld, &j.transposed, err));
    append_documents(f, a->heads);
    MHA_TRY(mha_pool_run(f->e->pool, k->bases * a->heads, branch, &j, err));
    f->e->multiply_adds += (double)tokens * a->heads * a->width * a->o.out;
    for (mha_register r = MHA_X; r <= MHA_C; r++)
        if (f->reg_rows[r] != 0)
            f->reg_rows[r] = side->total;
    return mha_batch_work(f, err);
}

mha_status mha_fork_stack(mha_forward *f, mha_err *err)
{
    static const mha_scratch registers[] = {MHA_SCRATCH_X, MHA_SCRATCH_B, MHA_SCRATCH_C};
    mha_fork *k = f->fork;
    mha_rows *side = &f->side[f->at];
    size_t rows = 0;
    void *p;
    for (size_t d = 0; d < f->doc_count; d++)
        side->offset[d + 1] = side->offset[d] + mha_side_tokens(f->m, &k->docs[d], f->at);
    side->docs = f->doc_count;
    side->total = rows = side->offset[f->doc_count];
    for (size_t i = 0; i < f->m->info.attn_count; i++)
        if (f->m->info.attn[i].stack == f->m->stack[f->at].id)
            rows += side->offset[k->bases] * f->m->info.attn[i].heads;
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++)
        MHA_TRY(mha_scratch_get(f->e, registers[i], rows * f->m->width, sizeof(float), &p, err));
    return MHA_OK;
}

/* ---- the sweep --------------------------------------------------------------------------------
 */

typedef struct sweep {
    mha_engine *e;
    const mha_document *docs;
    size_t count, heads; /* all heads of the model */
    mha_ablation *out;
    mha_plan plan;
    uint64_t bytes; /* beyond the weights */
    mha_progress progress;
    void *progress_context;
    double done, total;
} sweep;

/* Losses of the batch's documents to where they belong. */
static void collect(const sweep *s, const mha_fork *k, size_t first, const double *loss,
                    const size_t *hits)
{
    const mha_model_info *info = &s->e->model->info;
    size_t H = mha_engine_gate_heads(s->e);
    for (size_t d = 0; d < k->bases; d++) {
        for (size_t a = 0; a < info->attn_count; a++)
            for (size_t h = 0; h < info->attn[a].heads; h++) {
                size_t from = k->first_of[a] + d * info->attn[a].heads + h;
                size_t to = ((first + d) * info->attn_count + a) * H + h;
                s->out->variant[to] = loss[from];
                if (s->out->hits != NULL)
                    s->out->hits[to] = hits[from];
            }
    }
}

/* Room for the documents that a group of bases becomes. */
static mha_status fork_init(mha_fork *k, const sweep *s, size_t first, size_t n, mha_err *err)
{
    void *p;
    k->bases = n;
    k->capacity = n * (1 + s->heads);
    MHA_TRY(mha_alloc(&p, k->capacity, sizeof(mha_document), err));
    k->docs = p;
    MHA_TRY(mha_alloc(&p, k->capacity, sizeof(size_t), err));
    k->memory_of = p;
    MHA_TRY(mha_alloc(&p, s->e->model->info.attn_count, sizeof(size_t), err));
    k->first_of = p;
    memcpy(k->docs, s->docs + first, n * sizeof(mha_document));
    for (size_t d = 0; d < n; d++)
        k->memory_of[d] = d;
    return MHA_OK;
}

static void fork_release(mha_fork *k)
{
    mha_free(k->docs);
    mha_free(k->memory_of);
    mha_free(k->first_of);
}

/* The batch's arrays are made for the bases; give them room for what branches off. */
static mha_status make_room(mha_forward *f, size_t capacity, mha_err *err)
{
    for (size_t at = 0; at < f->m->stack_count; at++) {
        void *p = f->side[at].offset;
        MHA_TRY(mha_grow(&p, f->doc_count + 1, capacity + 1, sizeof(size_t), err));
        f->side[at].offset = p;
    }
    if (f->globals == NULL)
        return MHA_OK;
    void *p = f->globals;
    MHA_TRY(mha_grow(&p, f->doc_count, capacity, sizeof *f->globals, err));
    f->globals = p;
    return MHA_OK;
}

static mha_status run_group(sweep *s, mha_fork *k, size_t first, double *loss, size_t *hits,
                            mha_err *err)
{
    static const mha_watch nobody;
    mha_readout r = {.loss = loss, .hits = hits};
    mha_forward f = {.e = s->e,
                     .m = s->e->model,
                     .k = s->e->kernels,
                     .watch = &nobody,
                     .plan = &s->plan,
                     .docs = k->docs,
                     .doc_count = k->bases,
                     .first_document = first,
                     .gate_stride = mha_engine_gate_heads(s->e),
                     .readout = &r,
                     .fork = k,
                     .memory_of = k->memory_of,
                     .done = s->done,
                     .total = s->total,
                     .progress = s->progress,
                     .progress_context = s->progress_context};
    mha_status st = mha_batch_init(&f, err);
    if (st == MHA_OK)
        st = make_room(&f, k->capacity, err);
    if (st == MHA_OK)
        st = mha_forward_run(&f, err);
    if (st == MHA_OK)
        collect(s, k, first, loss, hits);
    s->done = f.done;
    mha_readout_release(&r);
    mha_batch_release(&f);
    return st;
}

static size_t group_size(const sweep *s, size_t first)
{
    size_t rows = 0, n = 0;
    for (size_t d = first; d < s->count; d++) {
        size_t most = s->docs[d].n > s->docs[d].target_n ? s->docs[d].n : s->docs[d].target_n;
        rows += most * (1 + s->heads);
        if (n > 0 && rows > SWEEP_ROWS)
            break;
        n++;
    }
    return n;
}

static mha_status run_groups(sweep *s, mha_err *err)
{
    for (size_t first = 0, n; first < s->count; first += n) {
        mha_fork k = {0};
        void *loss = NULL, *hits = NULL;
        n = group_size(s, first);
        mha_status st = fork_init(&k, s, first, n, err);
        if (st == MHA_OK)
            st = mha_alloc(&loss, k.capacity, sizeof(double), err);
        if (st == MHA_OK && s->out->hits != NULL)
            st = mha_alloc(&hits, k.capacity, sizeof(size_t), err);
        if (st == MHA_OK)
            st = run_group(s, &k, first, loss, hits, err);
        mha_free(loss);
        mha_free(hits);
        fork_release(&k);
        if (st != MHA_OK)
            return st;
    }
    return MHA_OK;
}

/* Tokens·layers of the sweep: every head runs the layers above its own, and its own once more. */
static double sweep_work(const sweep *s)
{
    const struct mha_model *m = s->e->model;
    double work = 0;
    for (size_t d = 0; d < s->count; d++)
        for (size_t at = 0; at < m->stack_count; at++)
            work += (double)mha_side_tokens(m, &s->docs[d], at) * m->stack[at].layers *
                    (1 + (double)s->heads / 2);
    return work;
}

/* One plain pass: the base losses, and what a pass takes. */
static mha_status run_base(const sweep *s, mha_err *err)
{
    mha_engine *e = s->e;
    e->multiply_adds = e->readout_multiply_adds = 0;
    MHA_TRY(mha_engine_loss(e, s->docs, s->count, s->out->base, NULL, NULL, NULL, err));
    double all = e->multiply_adds, blocks = all - e->readout_multiply_adds;
    s->out->naive_multiply_adds = (uint64_t)(all * (double)s->heads);
    s->out->naive_block_multiply_adds = (uint64_t)(blocks * (double)s->heads);
    e->multiply_adds = e->readout_multiply_adds = 0;
    return MHA_OK;
}

/* The largest group with all its variants, or the plain pass before it. */
static mha_status sweep_bytes(sweep *s, mha_err *err)
{
    static const mha_watch nobody;
    mha_plan plan = s->plan;
    MHA_TRY(mha_plan_cost(&plan, s->e, &nobody, s->docs, s->count, err));
    s->bytes = plan.info.bytes;
    for (size_t first = 0, n; first < s->count; first += n) {
        n = group_size(s, first);
        MHA_TRY(mha_plan_cost(&plan, s->e, &nobody, s->docs + first, n, err));
        uint64_t bytes = plan.info.bytes * (1 + s->heads);
        s->bytes = bytes > s->bytes ? bytes : s->bytes;
    }
    return MHA_OK;
}

static mha_status sweep_make(sweep *s, mha_engine *e, const mha_document *docs, size_t count,
                             mha_err *err)
{
    const mha_model_info *info = &e->model->info;
    static const mha_watch nobody;
    *s = (sweep){.e = e, .docs = docs, .count = count};
    for (size_t a = 0; a < info->attn_count; a++)
        s->heads += info->attn[a].heads;
    MHA_TRY(mha_readout_check_all(e, docs, count, err));
    mha_plan_make(&s->plan, e->model, &nobody, true);
    s->plan.widens = true;
    MHA_TRY(sweep_bytes(s, err));
    return mha_plan_check(e, s->bytes, err);
}

mha_status mha_engine_ablate_bytes(mha_engine *e, const mha_document *docs, size_t count,
                                   uint64_t *bytes, mha_err *err)
{
    sweep s;
    MHA_TRY(sweep_make(&s, e, docs, count, err));
    *bytes = s.bytes;
    return MHA_OK;
}

mha_status mha_engine_ablate(mha_engine *e, const mha_document *docs, size_t count,
                             mha_ablation *out, mha_progress progress, void *progress_context,
                             mha_err *err)
{
    sweep s;
    MHA_TRY(sweep_make(&s, e, docs, count, err));
    s.out = out;
    s.progress = progress;
    s.progress_context = progress_context;
    s.total = sweep_work(&s);
    MHA_TRY(run_base(&s, err));
    MHA_TRY(run_groups(&s, err));
    out->multiply_adds = (uint64_t)e->multiply_adds;
    out->block_multiply_adds = (uint64_t)(e->multiply_adds - e->readout_multiply_adds);
    return mha_checkpoint_check(e->model->checkpoint, err);
}
