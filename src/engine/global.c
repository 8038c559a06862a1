/* global.c: see global.h. Queries are projected for global tokens alone, keys and values for all.
 */
#include "engine/global.h"
#include "base/fail.h"
#include "base/mem.h"
#include "engine/matmul.h"
#include "engine/tape.h"
#include "engine/weights.h"
#include <string.h>

/* ---- which tokens -----------------------------------------------------------------------------
 */

/* The number of tokens where it is not there. */
static size_t first_token(const mha_document *doc, uint32_t id)
{
    size_t t = 0;
    while (t < doc->n && (uint32_t)doc->ids[t] != id)
        t++;
    return t;
}

size_t mha_question_rows(const mha_document *doc, uint32_t separator)
{
    size_t t = first_token(doc, separator);
    return t < doc->n ? t + 1 : 1;
}

/* How many leading tokens are global where the document does not say. */
static size_t global_prefix(const mha_attn_args *a, const mha_document *doc)
{
    switch (a->globals) {
    case MHA_GLOBALS_FIRST:
        return 1;
    case MHA_GLOBALS_QUESTION:
        return first_token(doc, a->separator);
    case MHA_GLOBALS_NONE:
        break;
    }
    return 0;
}

mha_status mha_globals_check(const struct mha_model *m, const mha_document *doc, mha_err *err)
{
    if (m->global == NULL && doc->global != NULL)
        return mha_fail(err, MHA_ERR_ARG, "the model has no global attention (--global)");
    if (m->global == NULL || doc->global != NULL || m->global->globals != MHA_GLOBALS_QUESTION ||
        global_prefix(m->global, doc) < doc->n)
        return MHA_OK;
    return mha_fail(
        err, MHA_ERR_LIMIT,
        "the text has no separator (token %u), so that nothing tells where the question "
        "ends, whose tokens are global (--global)",
        m->global->separator);
}

size_t mha_globals_list(const mha_attn_args *a, const mha_document *doc, uint32_t *out)
{
    size_t prefix = doc->global == NULL ? global_prefix(a, doc) : 0, n = 0;
    for (size_t t = 0; t < doc->n; t++)
        if (doc->global != NULL ? doc->global[t] != 0 : t < prefix)
            out[n++] = (uint32_t)t;
    return n;
}

mha_status mha_globals_init(mha_forward *f, mha_err *err)
{
    const mha_attn_args *a = f->m->global;
    size_t n = 0;
    if (a == NULL)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&f->globals, f->doc_count, sizeof *f->globals, err));
    MHA_TRY(mha_alloc((void **)&f->global_positions, f->side[0].total, sizeof(uint32_t), err));
    for (size_t d = 0; d < f->doc_count; d++) {
        uint32_t *at = f->global_positions + n;
        f->globals[d] = (mha_global_tokens){at, mha_globals_list(a, &f->docs[d], at)};
        n += f->globals[d].count;
    }
    return MHA_OK;
}

void mha_globals_release(mha_forward *f)
{
    mha_free(f->globals);
    mha_free(f->global_positions);
}

static size_t count_globals(const mha_forward *f)
{
    size_t n = 0;
    for (size_t d = 0; d < f->doc_count; d++)
        n += f->globals[d].count;
    return n;
}

/* ---- rows of global tokens --------------------------------------------------------------------
 */

/* few [globals, width]: copies of their rows of x [N, width]. */
static void gather(const mha_forward *f, const float *x, size_t width, float *few)
{
    for (size_t d = 0; d < f->doc_count; d++)
        for (size_t i = 0; i < f->globals[d].count; i++, few += width)
            memcpy(few, x + (f->side[0].offset[d] + f->globals[d].at[i]) * width,
                   width * sizeof *few);
}

static mha_status gather_scratch(const mha_forward *f, const float *x, size_t width, float **few,
                                 mha_err *err)
{
    void *p;
    MHA_TRY(mha_scratch_get(f->e, MHA_SCRATCH_GATHER, count_globals(f) * width, sizeof(float), &p,
                            err));
    *few = p;
    gather(f, x, width, *few);
    return MHA_OK;
}

/* Their rows of x become keep·x + few; few NULL: 0. */
static void scatter(const mha_forward *f, const float *few, size_t width, bool keep, float *x)
{
    for (size_t d = 0; d < f->doc_count; d++)
        for (size_t i = 0; i < f->globals[d].count; i++) {
            float *row = x + (f->side[0].offset[d] + f->globals[d].at[i]) * width;
            if (!keep)
                memset(row, 0, width * sizeof *row);
            if (few != NULL)
                f->k->add(row, few, width);
            few += few != NULL ? width : 0;
        }
}

/* ---- forward ----------------------------------------------------------------------------------
 */

static mha_status project(mha_attention *t, mha_scratch which, const float *x, size_t ldx,
                          size_t rows, const mha_weight *w, const float *bias, float **out,
                          mha_err *err)
{
    mha_epilogue ep = {.bias = bias, .act = MHA_ACT_NONE};
    void *p;
    MHA_TRY(mha_scratch_get(t->f->e, which, rows * w->out, sizeof(float), &p, err));
    *out = p;
    return mha_matmul(t->f->e, *out, w->out, x, ldx, rows, w, &ep, err);
}

static mha_status deliver(const mha_attention *t, mha_site site, const float *x, mha_err *err)
{
    return mha_forward_deliver(t->f, t->f->watch, site, t->kind, t->layer, x, t->keys, t->a->heads,
                               t->a->width, err);
}

/* Queries of all tokens where a probe asks for them, else of global tokens only. */
static mha_status project_queries(mha_attention *t, const float *src, size_t ldx, mha_err *err)
{
    mha_forward *f = t->f;
    const mha_attn_args *a = t->a;
    size_t N = t->queries->total, HK = (size_t)a->heads * a->width;
    bool all = t->sites & mha_site_bit(MHA_SITE_Q_GLOBAL);
    float *q, *few = NULL;
    if (!all)
        MHA_TRY(gather_scratch(f, src, ldx, &few, err));
    MHA_TRY(project(t, MHA_SCRATCH_Q_GLOBAL, all ? src : few, ldx, all ? N : count_globals(f),
                    &a->q_global, a->qb_global, &q, err));
    if (all) {
        MHA_TRY(deliver(t, MHA_SITE_Q_GLOBAL, q, err));
        MHA_TRY(gather_scratch(f, q, HK, &q, err));
    }
    scatter(f, q, HK, false, t->q);
    return MHA_OK;
}

mha_status mha_globals_project(mha_attention *t, const float *src, size_t ldx, mha_err *err)
{
    mha_forward *f = t->f;
    const mha_attn_args *a = t->a;
    size_t N = t->keys->total;
    float *k, *v = NULL;
    if (a->q_global.data == NULL || (count_globals(f) == 0 && !(t->sites & MHA_GLOBAL_SITES)))
        return MHA_OK;
    MHA_TRY(project(t, MHA_SCRATCH_K_GLOBAL, src, ldx, N, &a->k_global, a->kb_global, &k, err));
    if (t->depth != MHA_DEPTH_SCORES || t->sites & mha_site_bit(MHA_SITE_V_GLOBAL))
        MHA_TRY(project(t, MHA_SCRATCH_V_GLOBAL, src, ldx, N, &a->v_global, a->vb_global, &v, err));
    MHA_TRY(deliver(t, MHA_SITE_K_GLOBAL, k, err));
    MHA_TRY(deliver(t, MHA_SITE_V_GLOBAL, v, err));
    t->k_global = k;
    t->v_global = v;
    MHA_TRY(project_queries(t, src, ldx, err));
    if (f->tape == NULL)
        return MHA_OK;
    MHA_TRY(mha_tape_keep(f->tape, k, N * a->k_global.out, &f->saved->k_global, err));
    return mha_tape_keep(f->tape, v, N * a->v_global.out, &f->saved->v_global, err);
}

/* ---- backward ---------------------------------------------------------------------------------
 */

mha_status mha_globals_back_begin(mha_attention_back *t, mha_err *err)
{
    size_t n = t->keys->total * t->a->heads * t->a->width;
    void *p;
    if (t->saved->k_global == NULL)
        return MHA_OK;
    MHA_TRY(mha_scratch_get(t->f->e, MHA_SCRATCH_DK_GLOBAL, n, sizeof(float), &p, err));
    t->dk_global = memset(p, 0, n * sizeof(float));
    MHA_TRY(mha_scratch_get(t->f->e, MHA_SCRATCH_DV_GLOBAL, n, sizeof(float), &p, err));
    t->dv_global = memset(p, 0, n * sizeof(float));
    return MHA_OK;
}

mha_status mha_globals_back_split(const mha_attention_back *t, float *dq, float **dq_global,
                                  mha_err *err)
{
    const mha_forward *f = t->f;
    size_t HK = (size_t)t->a->heads * t->a->width;
    void *p;
    *dq_global = NULL;
    if (t->saved->k_global == NULL)
        return MHA_OK;
    MHA_TRY(
        mha_scratch_get(f->e, MHA_SCRATCH_Q_GLOBAL, count_globals(f) * HK, sizeof(float), &p, err));
    *dq_global = p;
    gather(f, dq, HK, *dq_global);
    scatter(f, NULL, HK, false, dq);
    return MHA_OK;
}

mha_status mha_globals_back_project(const mha_attention_back *t, const float *dq_global,
                                    const float *x, float *dx, mha_err *err)
{
    const mha_attn_args *a = t->a;
    mha_engine *e = t->f->e;
    size_t N = t->keys->total, D = a->k_global.in, HK = a->k_global.out, n;
    float *few;
    if (t->saved->k_global == NULL)
        return MHA_OK;
    n = count_globals(t->f);
    if (t->weights != NULL) {
        MHA_TRY(gather_scratch(t->f, x, D, &few, err));
        MHA_TRY(mha_weights_linear(t->weights, &a->q_global, a->qb_global, dq_global, HK, few, D, n,
                                   err));
        MHA_TRY(mha_weights_linear(t->weights, &a->k_global, a->kb_global, t->dk_global, HK, x, D,
                                   N, err));
        MHA_TRY(mha_weights_linear(t->weights, &a->v_global, a->vb_global, t->dv_global, HK, x, D,
                                   N, err));
    }
    MHA_TRY(mha_matmul_back(e, dx, D, t->dk_global, HK, N, &a->k_global, 1, err));
    MHA_TRY(mha_matmul_back(e, dx, D, t->dv_global, HK, N, &a->v_global, 1, err));
    void *p;
    MHA_TRY(mha_scratch_get(e, MHA_SCRATCH_GATHER, n * D, sizeof(float), &p, err));
    few = p;
    MHA_TRY(mha_matmul_back(e, few, D, dq_global, HK, n, &a->q_global, 0, err));
    scatter(t->f, few, D, true, dx);
    return MHA_OK;
}
