/* importance_l0.c: gates learned with frozen weights (Voita et al. 2019, methods D3). Minimises
 *
 *     mean_d E_g L_d(g) + λ Σ_u P(g_u ≠ 0)
 *
 * over ln α of each unit's hard-concrete gate by Adam; the score is P(g_u ≠ 0) at the end. Every
 * document of a step draws its own gates, and its gate gradients are exact (D1 at those gates).
 *
 * The price λ of an open unit is half of what a unit is worth on average: what the loss rises by
 * when all are closed, divided by their number. It needs no tuning by model or loss.
 *
 * Learned scores are not means over documents, so their intervals come from learning again on
 * halves: the documents are split in two at random, twice; the two scores of a split differ with
 * twice the variance of one half, and the whole has half of that. */
#include "analysis/concrete.h"
#include "analysis/importance.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#define STEPS  120
#define BATCH  8
#define RATE   0.1
#define START  2.0 /* ln α: nearly open, as the model was trained */
#define SPLITS 2
#define FITS   (1 + 2 * SPLITS)

double mha_l0_passes(size_t documents)
{
    size_t whole = documents < BATCH ? documents : BATCH, half = documents / 2;
    half = half < BATCH ? half : BATCH;
    size_t fits = documents >= 4 ? 2 * SPLITS : 0;
    return 3.0 * STEPS * (double)(whole + fits * half) / (double)documents + 2;
}

typedef struct l0 {
    mha_importance_job *j;
    double price;
    double *log_alpha, *slope, *gradient, *first,
        *second;            /* [units]; the last two Adam's moments */
    double *concrete;       /* [BATCH, units] ∂g/∂ln α */
    double *gates_gradient; /* [BATCH, A, H] */
    float *gates;           /* [BATCH, A, H] */
    mha_document *docs;     /* [BATCH] */
    double *scores;         /* [FITS, units] */
    size_t *order;          /* [documents] */
    size_t fits;
} l0;

/* ---- one fit ---------------------------------------------------------------------------------
 */

/* Gates of one document of the batch. */
static void draw_gates(l0 *l, size_t slot, size_t document, mha_rng *rng)
{
    const mha_units *u = &l->j->m->units;
    float *gates = l->gates + slot * u->gates;
    memcpy(gates, l->j->base, u->gates * sizeof *gates);
    for (size_t i = 0; i < u->count; i++) {
        mha_concrete c = mha_concrete_draw(l->log_alpha[i], mha_rng_uniform(rng));
        mha_units_set(u, i, gates, (float)c.gate);
        l->concrete[slot * u->count + i] = c.slope;
    }
    l->docs[slot] = l->j->docs[document];
    l->docs[slot].gates = gates;
}

/* l->gradient = ∂(mean loss + λ Σ P)/∂ln α over the batch. */
static mha_status batch_gradient(l0 *l, size_t n, mha_err *err)
{
    const mha_units *u = &l->j->m->units;
    mha_gradient out = {.gates = l->gates_gradient};
    MHA_TRY(mha_engine_gradient(l->j->e, l->docs, n, &out, mha_share_step, &l->j->share, err));
    for (size_t i = 0; i < u->count; i++) {
        mha_concrete_open(l->log_alpha[i], &l->gradient[i]);
        l->gradient[i] *= l->price;
    }
    for (size_t b = 0; b < n; b++) {
        mha_units_sum(u, l->gates_gradient + b * u->gates, l->slope);
        for (size_t i = 0; i < u->count; i++)
            l->gradient[i] += l->slope[i] * l->concrete[b * u->count + i] / (double)n;
    }
    return MHA_OK;
}

/* Adam (Kingma and Ba 2015) with its usual constants; the rate falls to 0 over the second half. */
static void adam(l0 *l, size_t step)
{
    double t = (double)step + 1, left = 2 * (1 - (double)step / STEPS);
    double rate = RATE * (left < 1 ? left : 1);
    for (size_t i = 0; i < l->j->m->units.count; i++) {
        double g = l->gradient[i];
        l->first[i] = 0.9 * l->first[i] + 0.1 * g;
        l->second[i] = 0.999 * l->second[i] + 0.001 * g * g;
        double m = l->first[i] / (1 - pow(0.9, t)), v = l->second[i] / (1 - pow(0.999, t));
        l->log_alpha[i] -= rate * m / (sqrt(v) + 1e-8);
    }
}

/* Learns on documents order[0 … n); scores [units]. */
static mha_status fit(l0 *l, const size_t *order, size_t n, double *scores, mha_err *err)
{
    size_t U = l->j->m->units.count, batch = n < BATCH ? n : BATCH, at = 0;
    mha_rng rng;
    mha_rng_seed(&rng, l->j->m->options.seed, MHA_STREAM_GATES + l->fits);
    memset(l->first, 0, U * sizeof *l->first);
    memset(l->second, 0, U * sizeof *l->second);
    for (size_t i = 0; i < U; i++)
        l->log_alpha[i] = START;
    for (size_t step = 0; step < STEPS; step++) {
        for (size_t b = 0; b < batch; b++, at = (at + 1) % n)
            draw_gates(l, b, order[at], &rng);
        mha_share_next(&l->j->share, 1.0 / STEPS / FITS);
        MHA_TRY(batch_gradient(l, batch, err));
        adam(l, step);
    }
    for (size_t i = 0; i < U; i++)
        scores[i] = mha_concrete_open(l->log_alpha[i], NULL);
    l->fits++;
    return MHA_OK;
}

/* ---- intervals -------------------------------------------------------------------------------
 */

static mha_status fit_halves(l0 *l, mha_err *err)
{
    size_t D = l->j->m->documents, U = l->j->m->units.count;
    for (size_t s = 0; s < SPLITS; s++) {
        mha_rng rng;
        mha_rng_seed(&rng, l->j->m->options.seed, MHA_STREAM_GATES + FITS + s);
        mha_shuffle(l->order, D, &rng);
        double *scores = l->scores + (1 + 2 * s) * U;
        MHA_TRY(fit(l, l->order, D / 2, scores, err));
        MHA_TRY(fit(l, l->order + D / 2, D - D / 2, scores + U, err));
    }
    return MHA_OK;
}

/* variance of the whole = mean over splits of (a − b)²/4; Student's t with one degree a split. */
static void score_intervals(const l0 *l)
{
    mha_importance *m = l->j->m;
    size_t U = m->units.count;
    double t = gsl_cdf_tdist_Pinv((1 + m->options.confidence) / 2, SPLITS);
    for (size_t u = 0; u < U; u++) {
        double variance = 0;
        for (size_t s = 0; s < SPLITS; s++) {
            double d = l->scores[(1 + 2 * s) * U + u] - l->scores[(2 + 2 * s) * U + u];
            variance += d * d / 4 / SPLITS;
        }
        m->rows[u].lo = fmax(0, m->rows[u].score - t * sqrt(variance));
        m->rows[u].hi = fmin(1, m->rows[u].score + t * sqrt(variance));
    }
}

/* The smallest and largest rank of all fits, and how well halves agree. */
static mha_status rank_intervals(const l0 *l, mha_err *err)
{
    mha_importance *m = l->j->m;
    size_t U = m->units.count, *rank;
    double sum = 0;
    MHA_TRY(mha_alloc((void **)&rank, U, sizeof *rank, err));
    mha_status st = MHA_OK;
    for (size_t f = 0; f < FITS && st == MHA_OK; f++) {
        st = mha_ranks(l->scores + f * U, U, rank, err);
        for (size_t u = 0; u < U && st == MHA_OK; u++) {
            double r = (double)rank[u];
            m->rows[u].rank_lo = f == 0 ? r : fmin(m->rows[u].rank_lo, r);
            m->rows[u].rank_hi = f == 0 ? r : fmax(m->rows[u].rank_hi, r);
        }
    }
    for (size_t s = 0; s < SPLITS && st == MHA_OK; s++) {
        double r;
        st = mha_spearman(l->scores + (1 + 2 * s) * U, l->scores + (2 + 2 * s) * U, U, &r, err);
        sum += r / SPLITS;
    }
    m->summary.reliability = mha_spearman_brown(sum);
    mha_free(rank);
    return st;
}

/* ---- all of it -------------------------------------------------------------------------------
 */

static mha_status make(l0 *l, mha_err *err)
{
    const mha_units *u = &l->j->m->units;
    double **const vectors[] = {&l->log_alpha, &l->slope, &l->gradient, &l->first, &l->second};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        MHA_TRY(mha_alloc((void **)vectors[i], u->count, sizeof(double), err));
    MHA_TRY(mha_alloc((void **)&l->concrete, u->count, BATCH * sizeof *l->concrete, err));
    MHA_TRY(mha_alloc((void **)&l->gates_gradient, u->gates, BATCH * sizeof(double), err));
    MHA_TRY(mha_alloc((void **)&l->gates, u->gates, BATCH * sizeof *l->gates, err));
    MHA_TRY(mha_alloc((void **)&l->docs, BATCH, sizeof *l->docs, err));
    MHA_TRY(mha_alloc((void **)&l->scores, u->count, FITS * sizeof *l->scores, err));
    MHA_TRY(mha_alloc((void **)&l->order, l->j->m->documents, sizeof *l->order, err));
    for (size_t d = 0; d < l->j->m->documents; d++)
        l->order[d] = d;
    return MHA_OK;
}

static void release(l0 *l)
{
    mha_free(l->log_alpha);
    mha_free(l->slope);
    mha_free(l->gradient);
    mha_free(l->first);
    mha_free(l->second);
    mha_free(l->concrete);
    mha_free(l->gates_gradient);
    mha_free(l->gates);
    mha_free(l->docs);
    mha_free(l->scores);
    mha_free(l->order);
}

/* λ, from the losses of the whole and of the empty model. */
static mha_status price(l0 *l, mha_err *err)
{
    mha_importance *m = l->j->m;
    size_t D = m->documents;
    mha_variant *list = NULL;
    double *loss = NULL;
    float *closed = l->gates;
    memcpy(closed, l->j->base, m->units.gates * sizeof *closed);
    for (size_t i = 0; i < m->units.count; i++)
        mha_units_set(&m->units, i, closed, 0);
    mha_status st = mha_alloc((void **)&list, D, 2 * sizeof *list, err);
    if (st == MHA_OK)
        st = mha_alloc((void **)&loss, D, 2 * sizeof *loss, err);
    for (size_t d = 0; d < D && st == MHA_OK; d++) {
        list[d] = (mha_variant){d, l->j->base};
        list[D + d] = (mha_variant){d, closed};
    }
    l->j->share.part = 0;
    if (st == MHA_OK)
        st = mha_variants_loss(l->j->e, l->j->docs, list, 2 * D, loss, NULL, &l->j->share, err);
    if (st == MHA_OK) {
        m->summary.loss = mha_tree_sum(loss, D) / (double)D;
        double rise = mha_tree_sum(loss + D, D) / (double)D - m->summary.loss;
        l->price = fmax(rise, 0) / 2 / (double)m->units.count;
    }
    mha_free(list);
    mha_free(loss);
    return st;
}

mha_status mha_importance_l0(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    l0 l = {.j = j};
    mha_status st = make(&l, err);
    if (st == MHA_OK)
        st = price(&l, err);
    if (st == MHA_OK)
        st = fit(&l, l.order, m->documents, l.scores, err);
    for (size_t u = 0; u < m->units.count && st == MHA_OK; u++)
        m->rows[u].score = l.scores[u];
    if (st == MHA_OK && m->documents >= 4 && m->options.resamples > 0) {
        st = fit_halves(&l, err);
        if (st == MHA_OK) {
            score_intervals(&l);
            st = rank_intervals(&l, err);
        }
    }
    release(&l);
    return st;
}
