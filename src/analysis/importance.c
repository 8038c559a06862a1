/* importance.c: the frame of every method: units, intervals, ranks, and what the caller asks for
 * afterwards. Methods are in importance_*.c.
 *
 * A score is the mean over documents of each document's own value. Intervals resample documents,
 * never tokens (methods D11). */
#include "analysis/importance.h"
#include "analysis/partial.h"
#include "analysis/statistics.h"
#include "base/fail.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

#define DEFAULT_CONFIDENCE 0.95
#define SPLITS             50

static const char *const names[MHA_METHOD_COUNT] = {
    [MHA_GRADIENT] = "gradient",
    [MHA_FISHER] = "fisher",
    [MHA_ABLATE_ZERO] = "ablate-zero",
    [MHA_ABLATE_MEAN] = "ablate-mean",
    [MHA_ABLATE_RESAMPLE] = "ablate-resample",
    [MHA_ALL_BUT_ONE] = "all-but-one",
    [MHA_SHAPLEY] = "shapley",
    [MHA_L0] = "l0",
    [MHA_DLA] = "dla",
};

const char *mha_importance_name(mha_importance_method method)
{
    return names[method];
}

static mha_status (*const methods[MHA_METHOD_COUNT])(mha_importance_job *j, mha_err *err) = {
    [MHA_GRADIENT] = mha_importance_gradient,      [MHA_FISHER] = mha_importance_gradient,
    [MHA_ABLATE_ZERO] = mha_importance_ablate,     [MHA_ABLATE_MEAN] = mha_importance_ablate,
    [MHA_ABLATE_RESAMPLE] = mha_importance_ablate, [MHA_ALL_BUT_ONE] = mha_importance_all_but_one,
    [MHA_SHAPLEY] = mha_importance_shapley,        [MHA_DLA] = mha_importance_gradient,
};

/* ---- from samples to rows --------------------------------------------------------------------
 */

/* Mean over samples of column c of x [samples, units], through the fixed tree. */
static double column_mean(const mha_importance *m, const double *x, size_t c, double *column)
{
    for (size_t s = 0; s < m->samples; s++)
        column[s] = x[s * m->units.count + c];
    return mha_tree_sum(column, m->samples) / (double)m->samples;
}

static mha_status means(mha_importance *m, mha_err *err)
{
    double *column;
    MHA_TRY(mha_alloc((void **)&column, m->samples, sizeof *column, err));
    for (size_t u = 0; u < m->units.count; u++) {
        m->rows[u].score = column_mean(m, m->score, u, column);
        m->rows[u].rise = column_mean(m, m->rise, u, column);
    }
    mha_free(column);
    return MHA_OK;
}

static void get_sample(const void *context, size_t sample, double *sum, double *count)
{
    const mha_importance *m = context;
    memcpy(sum, m->score + sample * m->units.count, m->units.count * sizeof *sum);
    for (size_t u = 0; u < m->units.count; u++)
        count[u] = 1;
}

static mha_status intervals(mha_importance *m, mha_err *err)
{
    size_t U = m->units.count;
    double *x;
    mha_ratios ratios = {.documents = m->samples, .columns = U, .get = get_sample, .context = m};
    MHA_TRY(mha_alloc((void **)&x, U, 5 * sizeof *x, err));
    mha_intervals out = {x, x + U, x + 2 * U, x + 3 * U};
    double *value = x + 4 * U;
    for (size_t u = 0; u < U; u++)
        value[u] = m->rows[u].score;
    mha_status st = mha_bootstrap_ranks(&ratios, value, m->options.resamples, m->options.confidence,
                                        m->options.seed, &out, err);
    for (size_t u = 0; u < U && st == MHA_OK; u++) {
        m->rows[u].lo = out.lo[u];
        m->rows[u].hi = out.hi[u];
        m->rows[u].rank_lo = out.rank_lo[u];
        m->rows[u].rank_hi = out.rank_hi[u];
    }
    mha_free(x);
    return st;
}

/* score_layer and rank, from the scores. */
static mha_status places(mha_importance *m, mha_err *err)
{
    size_t U = m->units.count;
    double *score;
    size_t *rank = NULL;
    MHA_TRY(mha_alloc((void **)&score, U, sizeof *score, err));
    mha_status st = mha_alloc((void **)&rank, U, sizeof *rank, err);
    for (size_t u = 0; u < U; u++)
        score[u] = m->rows[u].score;
    if (st == MHA_OK)
        st = mha_ranks(score, U, rank, err);
    for (size_t first = 0, n; first < U && st == MHA_OK; first += n) {
        double square = 0;
        for (n = 0; first + n < U && m->rows[first + n].place.step == m->rows[first].place.step;
             n++)
            square += score[first + n] * score[first + n];
        for (size_t u = first; u < first + n; u++) {
            m->rows[u].score_layer = square > 0 ? score[u] / sqrt(square) : (double)NAN;
            m->rows[u].rank = rank[u];
        }
    }
    mha_free(score);
    mha_free(rank);
    return st;
}

mha_status mha_importance_conclude(mha_importance *m, mha_err *err)
{
    MHA_TRY(means(m, err));
    MHA_TRY(intervals(m, err));
    MHA_TRY(mha_split_half(m->score, m->samples, m->units.count, SPLITS, m->options.seed,
                           &m->summary.reliability, err));
    return places(m, err);
}

/* ---- before the run --------------------------------------------------------------------------
 */

static mha_status check(const mha_importance *m, mha_err *err)
{
    const mha_importance_options *o = &m->options;
    if ((unsigned)o->method >= MHA_METHOD_COUNT)
        return mha_fail(err, MHA_ERR_ARG, "unknown method of importance");
    if (!(o->confidence > 0 && o->confidence < 1))
        return mha_fail(err, MHA_ERR_ARG, "confidence %g is not between 0 and 1", o->confidence);
    if (m->documents == 0)
        return mha_fail(err, MHA_ERR_ARG, "no document has anything to predict");
    return MHA_OK;
}

static mha_status prepare(mha_importance_job *j, const mha_losses *losses, mha_err *err)
{
    mha_importance *m = j->m;
    MHA_TRY(check(m, err));
    MHA_TRY(mha_units_init(&m->units, j->model, m->options.unit, &m->options.choice, err));
    MHA_TRY(mha_alloc((void **)&j->index, m->documents, sizeof *j->index, err));
    for (size_t d = 0; d < m->documents; d++)
        j->index[d] = mha_losses_index(losses, d);
    MHA_TRY(mha_alloc((void **)&j->base, m->units.gates, sizeof *j->base, err));
    if (m->options.gates != NULL)
        memcpy(j->base, m->options.gates, m->units.gates * sizeof *j->base);
    else
        mha_units_set_all(&m->units, j->base, 1);
    MHA_TRY(mha_alloc((void **)&m->rows, m->units.count, sizeof *m->rows, err));
    for (size_t u = 0; u < m->units.count; u++) {
        m->rows[u] = (mha_importance_row){.place = m->units.item[u],
                                          .rise = (double)NAN,
                                          .lo = (double)NAN,
                                          .hi = (double)NAN,
                                          .rank_lo = (double)NAN,
                                          .rank_hi = (double)NAN};
    }
    return MHA_OK;
}

/* ---- windows ---------------------------------------------------------------------------------
 */

/* What a window leaves: score, rise, loss, empty, the work of sweeps, and the completeness. */
static size_t window_size(const mha_importance *m, size_t documents, size_t samples)
{
    return 2 * samples * m->units.count + 2 * documents + 3;
}

/* Copies between the job's arrays and one vector. */
static void window_copy(mha_importance_job *j, double *x, bool out)
{
    mha_importance *m = j->m;
    bool own = m->samples != m->documents; /* then there is one window */
    size_t U = m->units.count, samples = own ? m->samples : j->count;
    size_t at = own ? 0 : j->first * U;
    struct part {
        double *x;
        size_t n;
    } parts[] = {{m->score + at, samples * U},
                 {m->rise + at, samples * U},
                 {j->loss + j->first, j->count},
                 {j->empty + j->first, j->count}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(out ? x : parts[i].x, out ? parts[i].x : x, parts[i].n * sizeof *x);
        x += parts[i].n;
    }
    if (out) {
        x[0] = (double)(m->summary.multiply_adds - j->work[0]);
        x[1] = (double)(m->summary.naive_multiply_adds - j->work[1]);
        x[2] = m->summary.completeness; /* the worst so far */
    } else {
        m->summary.multiply_adds += (uint64_t)x[0];
        m->summary.naive_multiply_adds += (uint64_t)x[1];
        m->summary.completeness = fmax(m->summary.completeness, x[2]);
    }
}

static mha_status run_window(mha_importance_job *j, mha_partial *partial, mha_err *err)
{
    mha_importance *m = j->m;
    size_t samples = m->samples != m->documents ? m->samples : j->count;
    size_t n = window_size(m, j->count, samples);
    double *x;
    MHA_TRY(mha_alloc((void **)&x, n, sizeof *x, err));
    mha_status st = MHA_OK;
    if (mha_partial_get(partial, j->first, x, n)) {
        window_copy(j, x, false);
    } else {
        j->work[0] = m->summary.multiply_adds;
        j->work[1] = m->summary.naive_multiply_adds;
        st = methods[m->options.method](j, err);
        if (st == MHA_OK) {
            window_copy(j, x, true);
            st = mha_partial_put(partial, j->first, x, n, err);
        }
    }
    mha_free(x);
    return st;
}

static mha_status run_windows(mha_importance_job *j, mha_partial *partial, mha_err *err)
{
    size_t D = j->m->documents;
    for (j->first = 0; j->first < D; j->first += j->count) {
        j->count = D - j->first < MHA_WINDOW ? D - j->first : MHA_WINDOW;
        mha_share_next(&j->share, (double)j->count / (double)D);
        MHA_TRY(run_window(j, partial, err));
    }
    return MHA_OK;
}

/* ---- the whole run ---------------------------------------------------------------------------
 */

/* Everything that the numbers depend on. */
static void key_make(const mha_importance_job *j, char key[65])
{
    const mha_importance *m = j->m;
    const mha_importance_options *o = &m->options;
    uint64_t numbers[] = {
        o->method, o->unit,     mha_ablation_draws(o), mha_shapley_pairs(o, m->documents),
        o->seed,   m->documents};
    mha_sha256 h;
    mha_sha256_init(&h);
    mha_sha256_add(&h, "importance", sizeof "importance");
    mha_sha256_add(&h, m->units.info->fingerprint, sizeof m->units.info->fingerprint);
    mha_sha256_add(&h, mha_engine_isa(j->e), strlen(mha_engine_isa(j->e)) + 1);
    mha_sha256_add(&h, numbers, sizeof numbers);
    mha_sha256_add(&h, j->base, m->units.gates * sizeof *j->base);
    for (size_t u = 0; u < m->units.count; u++) {
        uint32_t place[] = {m->units.item[u].step, m->units.item[u].first};
        mha_sha256_add(&h, place, sizeof place);
    }
    mha_sha256_add(&h, j->index, m->documents * sizeof *j->index);
    mha_key_documents(&h, j->docs, m->documents);
    mha_key_documents(&h, o->reference, o->reference_count);
    mha_sha256_hex(&h, key);
}

static mha_status samples_make(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    size_t cells;
    /* One document has no interval over documents: its pairs of orders are the samples. */
    if (m->options.method == MHA_SHAPLEY && m->documents == 1)
        m->samples = mha_shapley_pairs(&m->options, 1);
    if (mha_mul_overflows(m->samples, m->units.count, &cells))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for %zu documents", m->samples);
    MHA_TRY(mha_alloc((void **)&m->score, cells, sizeof *m->score, err));
    MHA_TRY(mha_alloc((void **)&m->rise, cells, sizeof *m->rise, err));
    MHA_TRY(mha_alloc((void **)&j->loss, m->documents, sizeof *j->loss, err));
    return mha_alloc((void **)&j->empty, m->documents, sizeof *j->empty, err);
}

/* One pass over the reference, which is little beside one for every other head. */
static mha_status mean_make(mha_importance_job *j, mha_err *err)
{
    const mha_importance_options *o = &j->m->options;
    mha_share share = j->share;
    share.part = 0; /* nothing on the bar, but it can be cancelled */
    if (o->reference != NULL)
        return mha_filling_mean(&j->mean, j, o->reference, o->reference_count, &share, err);
    return mha_filling_mean(&j->mean, j, j->docs, j->m->documents, &share, err);
}

static void summarise(mha_importance_job *j)
{
    mha_importance *m = j->m;
    double sum = 0, mean = 1 / (double)m->documents;
    m->summary.loss = mha_tree_sum(j->loss, m->documents) * mean;
    if (m->options.method != MHA_SHAPLEY)
        return;
    double span = mha_tree_sum(j->empty, m->documents) * mean - m->summary.loss;
    for (size_t i = 0; i < m->samples * m->units.count; i++)
        sum += m->score[i] / (double)m->samples;
    m->summary.efficiency = fabs(sum - span) / fmax(fabs(span), 1e-12);
}

static mha_status measure(mha_importance_job *j, mha_err *err)
{
    mha_importance *m = j->m;
    mha_partial *partial;
    char key[65];
    MHA_TRY(samples_make(j, err));
    key_make(j, key);
    MHA_TRY(mha_partial_open(&partial, m->options.partial, key, m->options.resume, err));
    mha_status st = m->options.method == MHA_ABLATE_MEAN ? mean_make(j, err) : MHA_OK;
    j->share.part = 0;
    if (st == MHA_OK)
        st = run_windows(j, partial, err);
    st = mha_partial_end(partial, st, err);
    mha_partial_free(partial);
    MHA_TRY(st);
    summarise(j);
    return mha_importance_conclude(m, err);
}

static mha_status run(mha_importance_job *j, const mha_losses *losses, mha_err *err)
{
    MHA_TRY(prepare(j, losses, err));
    if (j->m->options.method != MHA_L0)
        return measure(j, err);
    MHA_TRY(mha_importance_l0(j, err));
    return places(j->m, err);
}

mha_status mha_importance_run(mha_importance **out, mha_engine *e, const mha_model *model,
                              const mha_losses *losses, const mha_importance_options *options,
                              mha_progress progress, void *progress_context, mha_err *err)
{
    mha_importance *m;
    *out = NULL;
    MHA_TRY(mha_alloc((void **)&m, 1, sizeof *m, err));
    mha_importance_job j = {
        .m = m, .e = e, .model = model, .share = {progress, progress_context, 0, 1, 1}};
    if (options != NULL)
        m->options = *options;
    if (m->options.confidence == 0)
        m->options.confidence = DEFAULT_CONFIDENCE;
    j.docs = mha_losses_documents(losses, &m->documents);
    m->samples = m->documents;
    m->summary = (mha_importance_summary){.documents = m->documents,
                                          .reliability = (double)NAN,
                                          .efficiency = (double)NAN,
                                          .completeness = (double)NAN};
    mha_status st = run(&j, losses, err);
    mha_free(j.base);
    mha_free(j.loss);
    mha_free(j.empty);
    mha_filling_release(&j.mean);
    mha_free(j.index);
    if (st != MHA_OK) {
        mha_importance_free(m);
        return st;
    }
    *out = m;
    return MHA_OK;
}

/* A gradient costs about two passes beside the one that it goes back over, the direct pass a part
 * of one; the sweep over single heads a little more than half a pass for each. */
void mha_importance_free(mha_importance *m)
{
    if (m == NULL)
        return;
    mha_units_release(&m->units);
    mha_free(m->rows);
    mha_free(m->score);
    mha_free(m->rise);
    mha_free(m);
}

/* ---- results ---------------------------------------------------------------------------------
 */

const mha_importance_row *mha_importance_rows(const mha_importance *m, size_t *count)
{
    *count = m->units.count;
    return m->rows;
}

const mha_importance_summary *mha_importance_summary_get(const mha_importance *m)
{
    return &m->summary;
}

bool mha_importance_document(const mha_importance *m, size_t document, size_t row, double *score,
                             double *rise)
{
    if (m->score == NULL || m->samples != m->documents || document >= m->documents ||
        row >= m->units.count)
        return false;
    *score = m->score[document * m->units.count + row];
    *rise = m->rise[document * m->units.count + row];
    return true;
}

mha_status mha_importance_agreement(const mha_importance *a, const mha_importance *b,
                                    double *spearman, double *kendall, mha_err *err)
{
    size_t n = a->units.count;
    double *x;
    if (n != b->units.count || memcmp(a->units.item, b->units.item, n * sizeof *a->units.item) != 0)
        return mha_fail(err, MHA_ERR_ARG, "the two rankings are not of the same heads");
    MHA_TRY(mha_alloc((void **)&x, n, 2 * sizeof *x, err));
    for (size_t i = 0; i < n; i++) {
        x[i] = a->rows[i].score;
        x[n + i] = b->rows[i].score;
    }
    *kendall = mha_kendall(x, x + n, n);
    mha_status st = mha_spearman(x, x + n, n, spearman, err);
    mha_free(x);
    return st;
}
