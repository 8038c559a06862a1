/* curve.c: pruning curves against an independent forward pass, and interrupted runs: what is
 * continued must give the same bits as what never stopped. */
#include "support/fixture.h"
#include "support/naive.h"
#include "support/tempdir.h"
#include "support/test.h"

#include "mha/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DOCS = 70, LENGTH = 9, MOST = 64 };

typedef struct bench {
    mha_model *model;
    mha_engine *engine;
    naive *reference;
    const mha_model_info *info;
    size_t H;
    int32_t ids[DOCS][LENGTH];
    mha_document given[DOCS];
    mha_losses *ranking, *evaluation; /* the first half, the second */
    const mha_document *docs;         /* of evaluation */
    size_t count;
} bench;

static void check(mha_status st, const mha_err *err)
{
    if (st != MHA_OK)
        fail_msg("%s", err->message);
}

static void bench_open(bench *b, size_t ranking)
{
    char path[1024];
    mha_err err = {0};
    memset(b, 0, sizeof *b);
    fixture_path(path, sizeof path, "gpt2-lm", NULL);
    check(mha_model_open(&b->model, path, NULL, &err), &err);
    check(mha_engine_new(&b->engine, b->model, NULL, &err), &err);
    b->reference = naive_open(path);
    b->info = mha_model_info_get(b->model);
    b->H = mha_engine_gate_heads(b->engine);
    for (size_t d = 0; d < DOCS; d++) {
        for (size_t i = 0; i < LENGTH; i++)
            b->ids[d][i] = (int32_t)((d * 31 + i * i * 7 + 3) % b->info->vocab);
        b->given[d] = (mha_document){.ids = b->ids[d], .n = 3 + d % (LENGTH - 2)};
    }
    check(mha_losses_new(&b->ranking, b->model, b->given, NULL, ranking, NULL, &err), &err);
    check(mha_losses_new(&b->evaluation, b->model, b->given + ranking, NULL, DOCS - ranking, NULL,
                         &err),
          &err);
    b->docs = mha_losses_documents(b->evaluation, &b->count);
}

static void bench_close(bench *b)
{
    mha_losses_free(b->ranking);
    mha_losses_free(b->evaluation);
    naive_close(b->reference);
    mha_engine_free(b->engine);
    mha_model_close(b->model);
}

/* Mean loss with the first n units of an order gone; n < 0: the last −n. */
static double naive_mean(bench *b, const mha_unit_place *order, size_t units, int n)
{
    double gates[MOST], sum = 0;
    for (size_t i = 0; i < MOST; i++)
        gates[i] = 1;
    size_t from = n < 0 ? units - (size_t)-n : 0, until = n < 0 ? units : (size_t)n;
    for (size_t i = from; i < until; i++)
        for (uint32_t h = 0; h < order[i].count; h++)
            gates[order[i].step * b->H + order[i].first + h] = 0;
    for (size_t d = 0; d < b->count; d++)
        sum += naive_loss(b->reference, &b->docs[d], gates, NULL);
    return sum / (double)b->count;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-4 * (1 + fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* The summary by its definition, from the points. */
static void check_summary(const mha_curve_point *p, size_t n, const mha_curve_summary *s)
{
    double area = 0, keeps = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            area += (p[i].fraction - p[i - 1].fraction) * (p[i].metric + p[i - 1].metric) / 2;
        if (p[i].metric >= 0.99 * p[0].metric)
            keeps = p[i].fraction;
    }
    near(s->area, area / p[0].metric);
    assert_true(s->keeps == keeps);
    assert_true(s->area_lo <= s->area && s->area <= s->area_hi);
    assert_true(s->keeps_lo <= s->keeps && s->keeps <= s->keeps_hi);
}

static void test_kept(void **state)
{
    bench b;
    mha_curve *c;
    mha_importance *m;
    mha_err err = {0};
    size_t n, units;
    bench_open(&b, 20);
    mha_curve_options o = {
        .ranking = {.method = MHA_ABLATE_ZERO}, .steps = 5, .orders = 4, .resamples = 200};
    check(mha_curve_run(&c, b.engine, b.model, b.ranking, b.evaluation, &o, NULL, NULL, &err),
          &err);
    const mha_curve_point *p = mha_curve_points(c, &n);
    const mha_unit_place *order = mha_curve_order(c, &units);
    assert_int_equal(n, 6);
    assert_int_equal(units, 12);
    /* the order is that of importance on the ranking documents */
    check(mha_importance_run(&m, b.engine, b.model, b.ranking, &o.ranking, NULL, NULL, &err), &err);
    const mha_importance_row *rows = mha_importance_rows(m, &units);
    for (size_t u = 0; u < units; u++)
        assert_memory_equal(&order[units - rows[u].rank], &rows[u].place, sizeof *order);
    const size_t removed[6] = {0, 2, 5, 7, 10, 12};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(p[i].removed, removed[i]);
        near(p[i].fraction, (double)removed[i] / 12);
        near(p[i].loss, naive_mean(&b, order, units, (int)removed[i]));
        near(p[i].loss_reverse, naive_mean(&b, order, units, -(int)removed[i]));
        assert_true(p[i].loss_random.lo <= p[i].loss_random.mean &&
                    p[i].loss_random.mean <= p[i].loss_random.hi);
    }
    assert_true(p[0].loss_random.lo == p[0].loss && p[5].loss_reverse == p[5].loss);
    check_summary(p, n, mha_curve_summary_get(c));
    mha_importance_free(m);
    mha_curve_free(c);
    bench_close(&b);
}

/* Every step of greedy elimination takes the best of all when all are candidates. */
static void test_greedy(void **state)
{
    bench b;
    mha_curve *c;
    mha_err err = {0};
    size_t units;
    bench_open(&b, 60);
    mha_curve_options o = {.mode = MHA_CURVE_GREEDY,
                           .ranking = {.unit = MHA_UNIT_LAYER},
                           .candidates = 12,
                           .steps = 3};
    /* rank on the evaluation documents, so that one reference serves both */
    check(mha_curve_run(&c, b.engine, b.model, b.evaluation, b.evaluation, &o, NULL, NULL, &err),
          &err);
    const mha_unit_place *order = mha_curve_order(c, &units);
    assert_int_equal(units, 3);
    mha_unit_place tried[3];
    for (size_t gone = 0; gone < 2; gone++) {
        memcpy(tried, order, sizeof tried);
        double best = naive_mean(&b, tried, units, (int)gone + 1);
        for (size_t i = gone + 1; i < units; i++) {
            tried[gone] = order[i];
            assert_true(naive_mean(&b, tried, units, (int)gone + 1) >= best - 1e-5);
        }
    }
    mha_curve_free(c);
    bench_close(&b);
}

/* ---- interruption ---- */

static int stop_after(void *context, double done, double total)
{
    int *left = context;
    assert_true(done >= 0 && done <= total * (1 + 1e-9));
    return --*left <= 0;
}

static void same_points(const mha_curve *a, const mha_curve *b)
{
    size_t n, m;
    const mha_curve_point *x = mha_curve_points(a, &n), *y = mha_curve_points(b, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_true(x[i].loss == y[i].loss && x[i].metric == y[i].metric);
        assert_true(x[i].loss_random.lo == y[i].loss_random.lo);
        assert_true(x[i].loss_reverse == y[i].loss_reverse);
    }
}

static void test_curves_resume(void **state)
{
    for (mha_curve_mode mode = MHA_CURVE_KEPT; mode <= MHA_CURVE_GREEDY; mode++) {
        bench b;
        mha_curve *whole, *parts = NULL;
        mha_err err = {0};
        size_t cancelled = 0;
        bench_open(&b, 20);
        mha_curve_options o = {.mode = mode, .steps = 4, .orders = 150, .candidates = 2};
        check(
            mha_curve_run(&whole, b.engine, b.model, b.ranking, b.evaluation, &o, NULL, NULL, &err),
            &err);
        const char *path = tempdir_path(state, "c.partial");
        o.partial = path;
        o.resume = true;
        for (int calls = 2; parts == NULL; calls += 2) {
            int left = calls;
            mha_status st = mha_curve_run(&parts, b.engine, b.model, b.ranking, b.evaluation, &o,
                                          stop_after, &left, &err);
            assert_true(st == MHA_OK || st == MHA_ERR_CANCELLED);
            cancelled += st == MHA_ERR_CANCELLED;
        }
        assert_true(cancelled > 2);
        same_points(whole, parts);
        mha_curve_free(whole);
        mha_curve_free(parts);
        unlink(path);
        bench_close(&b);
    }
}

static void test_importance_resumes(void **state)
{
    bench b;
    mha_importance *whole, *parts = NULL;
    mha_err err = {0};
    size_t n;
    bench_open(&b, DOCS - 1); /* two windows */
    mha_importance_options o = {.method = MHA_ABLATE_ZERO, .resamples = 100};
    check(mha_importance_run(&whole, b.engine, b.model, b.ranking, &o, NULL, NULL, &err), &err);
    o.partial = tempdir_path(state, "i.partial");
    o.resume = true;
    int left = 1, cancelled = 0;
    for (int calls = 1; parts == NULL; calls++) {
        left = calls;
        mha_status st =
            mha_importance_run(&parts, b.engine, b.model, b.ranking, &o, stop_after, &left, &err);
        assert_true(st == MHA_OK || st == MHA_ERR_CANCELLED);
        cancelled += st == MHA_ERR_CANCELLED;
    }
    assert_true(cancelled > 2);
    const mha_importance_row *x = mha_importance_rows(whole, &n),
                             *y = mha_importance_rows(parts, &n);
    for (size_t u = 0; u < n; u++)
        assert_true(x[u].score == y[u].score && x[u].lo == y[u].lo && x[u].rank == y[u].rank);
    assert_int_equal(mha_importance_summary_get(whole)->multiply_adds,
                     mha_importance_summary_get(parts)->multiply_adds);
    mha_importance_free(parts);

    /* the file of this run is not that of another, and a broken one is no file at all */
    char broken[64];
    o.method = MHA_ALL_BUT_ONE;
    assert_int_equal(mha_importance_run(&parts, b.engine, b.model, b.ranking, &o, NULL, NULL, &err),
                     MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "belongs to another run"));
    memset(broken, 'x', sizeof broken);
    file_write(o.partial, broken, sizeof broken);
    assert_int_equal(mha_importance_run(&parts, b.engine, b.model, b.ranking, &o, NULL, NULL, &err),
                     MHA_ERR_FORMAT);
    mha_importance_free(whole);
    bench_close(&b);
}

static void test_refusals(void **state)
{
    bench b;
    mha_curve *c;
    double scores[MOST];
    bench_open(&b, 20);
    for (size_t i = 0; i < MOST; i++)
        scores[i] = (double)NAN;
    mha_curve_options o = {.scores = scores};
    assert_int_equal(mha_curve_run(&c, b.engine, b.model, NULL, b.evaluation, &o, NULL, NULL, NULL),
                     MHA_ERR_ARG);
    o = (mha_curve_options){.confidence = 2};
    assert_int_equal(
        mha_curve_run(&c, b.engine, b.model, b.ranking, b.evaluation, &o, NULL, NULL, NULL),
        MHA_ERR_ARG);
    o = (mha_curve_options){0};
    assert_int_equal(mha_curve_run(&c, b.engine, b.model, NULL, b.evaluation, &o, NULL, NULL, NULL),
                     MHA_ERR_ARG);
    assert_null(c);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test_setup_teardown(test_curves_resume, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_importance_resumes, tempdir_setup, tempdir_teardown),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
