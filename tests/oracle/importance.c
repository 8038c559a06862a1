/* importance.c: importance of real families against losses of an independent forward pass in double
 * precision, one full pass for every removal; and what must not change anything: order, company,
 * threads. */
#include "support/fixture.h"
#include "support/naive.h"
#include "support/test.h"

#include "mha/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char models[][16] = {"gpt2-lm", "llama-gqa", "bert-mlm", "bert-class", "t5"};

enum { DOCS = 2, MOST = 256 };

typedef struct bench {
    mha_model *model;
    mha_engine *engine;
    naive *reference;
    const mha_model_info *info;
    size_t A, H;
    fixture f[DOCS];
    mha_document given[DOCS];
    mha_truth truths[DOCS];
    mha_losses *losses;
    const mha_document *docs;
    size_t count;
} bench;

static void check(mha_status st, const mha_err *err)
{
    if (st != MHA_OK)
        fail_msg("%s", err->message);
}

static void bench_open(bench *b, const char *name, size_t threads)
{
    char path[1024];
    mha_err err = {0};
    mha_engine_options o = {.threads = threads};
    memset(b, 0, sizeof *b);
    fixture_path(path, sizeof path, name, NULL);
    check(mha_model_open(&b->model, path, NULL, &err), &err);
    check(mha_engine_new(&b->engine, b->model, &o, &err), &err);
    b->reference = naive_open(path);
    b->info = mha_model_info_get(b->model);
    b->A = b->info->attn_count;
    b->H = mha_engine_gate_heads(b->engine);
    assert_true(b->A * b->H <= MOST);
    for (int i = 0; i < DOCS; i++) {
        assert_true(fixture_open(&b->f[i], name, i));
        b->given[i] = b->f[i].doc;
        b->truths[i] = (mha_truth){.index = (size_t)i, .label = i, .end = 1};
    }
    mha_loss_options lo = {.mask_id = 4, .seed = 1};
    check(mha_losses_new(&b->losses, b->model, b->given, b->truths, DOCS, &lo, &err), &err);
    b->docs = mha_losses_documents(b->losses, &b->count);
    assert_int_equal(b->count, DOCS);
}

static void bench_close(bench *b)
{
    mha_losses_free(b->losses);
    for (int i = 0; i < DOCS; i++)
        fixture_close(&b->f[i]);
    naive_close(b->reference);
    mha_engine_free(b->engine);
    mha_model_close(b->model);
}

static mha_importance *run(bench *b, mha_importance_options o)
{
    mha_importance *m;
    mha_err err = {0};
    check(mha_importance_run(&m, b->engine, b->model, b->losses, &o, NULL, NULL, &err), &err);
    return m;
}

/* Loss with the gates of a unit's heads at `value`, all others at `others`. */
static double naive_with(bench *b, size_t d, const mha_unit_place *p, double value, double others)
{
    double gates[MOST];
    for (size_t i = 0; i < b->A * b->H; i++)
        gates[i] = i / b->H == p->step || others == 1 ? others : 1;
    for (uint32_t h = p->first; h < p->first + p->count; h++)
        gates[p->step * b->H + h] = value;
    return naive_loss(b->reference, &b->docs[d], gates, NULL);
}

static void near(double a, double b, double scale)
{
    if (!(fabs(a - b) <= 2e-4 * (1 + fabs(scale))))
        fail_msg("%.9g is not %.9g", a, b);
}

static void test_ablate_zero(void **state)
{
    for (mha_unit unit = MHA_UNIT_HEAD; unit <= MHA_UNIT_LAYER; unit++) {
        bench b;
        size_t n;
        bench_open(&b, *state, 2);
        mha_importance *m =
            run(&b, (mha_importance_options){.method = MHA_ABLATE_ZERO, .unit = unit});
        const mha_importance_row *rows = mha_importance_rows(m, &n);
        for (size_t u = 0; u < n; u++) {
            double mean = 0;
            for (size_t d = 0; d < DOCS; d++) {
                double score, rise, base = naive_loss(b.reference, &b.docs[d], NULL, NULL);
                double want = naive_with(&b, d, &rows[u].place, 0, 1) - base;
                assert_true(mha_importance_document(m, d, u, &score, &rise));
                near(score, want, base);
                assert_true(rise == score);
                mean += score / DOCS;
            }
            near(rows[u].score, mean, 0);
        }
        mha_importance_free(m);
        bench_close(&b);
    }
}

static void test_gradient(void **state)
{
    bench b;
    size_t n;
    const double e = 1e-4;
    bench_open(&b, *state, 2);
    mha_importance *m =
        run(&b, (mha_importance_options){.method = MHA_GRADIENT, .unit = MHA_UNIT_KV_GROUP});
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    for (size_t u = 0; u < n; u++)
        for (size_t d = 0; d < DOCS; d++) {
            double score, rise;
            double up = naive_with(&b, d, &rows[u].place, 1 + e, 1);
            double slope = (up - naive_with(&b, d, &rows[u].place, 1 - e, 1)) / (2 * e);
            assert_true(mha_importance_document(m, d, u, &score, &rise));
            near(rise, -slope, slope);
            near(score, fabs(slope), slope);
        }
    mha_importance_free(m);
    bench_close(&b);
}

static void test_all_but_one(void **state)
{
    bench b;
    size_t n;
    bench_open(&b, *state, 2);
    mha_importance *m = run(&b, (mha_importance_options){.method = MHA_ALL_BUT_ONE});
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    for (size_t u = 0; u < n; u += 2)
        for (size_t d = 0; d < DOCS; d++) {
            double score, rise, none = naive_with(&b, d, &rows[u].place, 0, 0);
            assert_true(mha_importance_document(m, d, u, &score, &rise));
            near(score, none - naive_with(&b, d, &rows[u].place, 1, 0), none);
        }
    mha_importance_free(m);
    bench_close(&b);
}

/* Two units: one pair of orders is all orders there are. */
static void test_shapley(void **state)
{
    bench b;
    bool heads[MOST] = {false};
    size_t n;
    bench_open(&b, *state, 2);
    heads[1] = heads[(b.A - 1) * b.H] = true;
    mha_importance_options o = {.method = MHA_SHAPLEY, .choice = {.heads = heads}, .draws = 1};
    mha_importance *m = run(&b, o);
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    assert_int_equal(n, 2);
    for (size_t d = 0; d < DOCS; d++) {
        double gates[MOST], score, rise;
        for (size_t i = 0; i < MOST; i++)
            gates[i] = 1;
        double both = naive_loss(b.reference, &b.docs[d], gates, NULL);
        gates[1] = 0;
        double second = naive_loss(b.reference, &b.docs[d], gates, NULL);
        gates[(b.A - 1) * b.H] = 0;
        double none = naive_loss(b.reference, &b.docs[d], gates, NULL);
        gates[1] = 1;
        double first = naive_loss(b.reference, &b.docs[d], gates, NULL);
        assert_true(mha_importance_document(m, d, 0, &score, &rise));
        near(score, ((second - both) + (none - first)) / 2, both);
        assert_true(mha_importance_document(m, d, 1, &score, &rise));
        near(score, ((first - both) + (none - second)) / 2, both);
    }
    assert_true(mha_importance_summary_get(m)->efficiency < 1e-6);
    assert_true(rows[0].rank + rows[1].rank == 3);
    mha_importance_free(m);
    bench_close(&b);
}

/* Replacing a head by its own mean changes less than nothing for a constant head: check the mean
 * itself instead, by a document that is its own reference and a pass with that mean as the fill. */
typedef struct means {
    double sum[MOST][64];
    size_t rows[MOST], H;
    const mha_model_info *info;
} means;

static int add_rows(void *context, const mha_block *b, size_t worker)
{
    means *s = context;
    size_t a = 0;
    while (s->info->attn[a].stack != b->stack || s->info->attn[a].kind != b->kind ||
           s->info->attn[a].layer != b->layer)
        a++;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t k = 0; k < b->cols; k++)
            s->sum[a * s->H + b->head][k] += (double)b->data[r * b->stride + k];
    s->rows[a * s->H + b->head] += b->rows;
    return 0;
}

static void test_ablate_mean(void **state)
{
    static means s;
    bench b;
    size_t n;
    mha_err err = {0};
    bench_open(&b, *state, 1);
    memset(&s, 0, sizeof s);
    s.info = b.info;
    s.H = b.H;
    mha_probe probe = {.sites = 1u << MHA_SITE_Z, .deliver = add_rows, .context = &s};
    const mha_probe *probes[] = {&probe};
    check(mha_engine_run(b.engine, b.docs, DOCS, probes, 1, NULL, NULL, &err), &err);
    mha_importance *m = run(&b, (mha_importance_options){.method = MHA_ABLATE_MEAN});
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    for (size_t u = 0; u < n; u += 3) {
        const mha_attn_info *step = &b.info->attn[rows[u].place.step];
        float z[1024] = {0}, gates[MOST];
        const float *fills[MOST] = {NULL};
        size_t at = rows[u].place.step * b.H + rows[u].place.first;
        for (size_t k = 0; k < step->width; k++)
            z[rows[u].place.first * step->width + k] = (float)(s.sum[at][k] / (double)s.rows[at]);
        fills[rows[u].place.step] = z;
        mha_fill fill = {fills, 1};
        for (size_t i = 0; i < MOST; i++)
            gates[i] = i != at;
        for (size_t d = 0; d < DOCS; d++) {
            mha_document doc = b.docs[d];
            double base, without, score, rise;
            check(mha_engine_loss(b.engine, &doc, 1, &base, NULL, NULL, NULL, &err), &err);
            doc.gates = gates;
            doc.fill = &fill;
            check(mha_engine_loss(b.engine, &doc, 1, &without, NULL, NULL, NULL, &err), &err);
            assert_true(mha_importance_document(m, d, u, &score, &rise));
            near(score, without - base, base);
        }
    }
    mha_importance_free(m);
    bench_close(&b);
}

/* With one other document as the reference every draw is that document. */
static void test_ablate_resample(void **state)
{
    bench b;
    size_t n;
    bench_open(&b, *state, 2);
    mha_importance_options o = {.method = MHA_ABLATE_RESAMPLE, .draws = 3};
    mha_importance *own = run(&b, o);
    mha_importance_rows(own, &n);
    for (size_t d = 0; d < DOCS; d++) {
        o.reference = &b.docs[1 - d];
        o.reference_count = 1;
        mha_importance *m = run(&b, o);
        for (size_t u = 0; u < n; u++) {
            double x, y, rise;
            assert_true(mha_importance_document(m, d, u, &x, &rise));
            assert_true(mha_importance_document(own, d, u, &y, &rise));
            near(x, y, y);
        }
        /* a document that is its own replacement is not changed */
        o.reference = &b.docs[d];
        mha_importance *same = run(&b, o);
        for (size_t u = 0; u < n; u++) {
            double x, rise;
            assert_true(mha_importance_document(same, d, u, &x, &rise));
            near(x, 0, 0);
        }
        mha_importance_free(same);
        mha_importance_free(m);
    }
    mha_importance_free(own);
    bench_close(&b);
}

/* A transform of the masked language model and the pooler hide the stream from the logits. */
static bool is_indirect(const bench *b)
{
    return b->info->attn[b->A - 1].stack == MHA_ENC;
}

/* What the units wrote, with its sign: what lowers the loss is important. What each head writes is
 * tested in direct.c. */
static void test_dla(void **state)
{
    bench b;
    size_t n;
    mha_err err = {0};
    mha_importance_options o = {.method = MHA_DLA, .unit = MHA_UNIT_KV_GROUP};
    bench_open(&b, *state, 2);
    if (is_indirect(&b)) {
        mha_importance *none;
        assert_int_equal(
            mha_importance_run(&none, b.engine, b.model, b.losses, &o, NULL, NULL, &err),
            MHA_ERR_UNSUPPORTED);
        bench_close(&b);
        return;
    }
    double heads[DOCS][MOST];
    mha_direct direct[DOCS];
    for (size_t d = 0; d < DOCS; d++) {
        mha_gradient out = {.gates = heads[d], .direct = &direct[d]};
        check(mha_engine_gradient(b.engine, &b.docs[d], 1, &out, NULL, NULL, &err), &err);
    }
    mha_importance *m = run(&b, o);
    const mha_importance_row *rows = mha_importance_rows(m, &n);
    for (size_t u = 0; u < n; u++) {
        const mha_unit_place *p = &rows[u].place;
        double mean = 0;
        for (size_t d = 0; d < DOCS; d++) {
            double score, rise, wrote = 0;
            for (uint32_t h = p->first; h < p->first + p->count; h++)
                wrote += heads[d][p->step * b.H + h];
            assert_true(mha_importance_document(m, d, u, &score, &rise));
            near(score, -wrote, 1);
            near(rise, -wrote, 1);
            mean -= wrote / DOCS;
        }
        near(rows[u].score, mean, 1);
    }
    double completeness = mha_importance_summary_get(m)->completeness;
    assert_true(completeness >= 0 && completeness <= 1e-5);
    mha_importance_free(m);
    bench_close(&b);
}

/* The bits do not depend on threads, whatever the method. */
static void test_threads(void **state)
{
    for (mha_importance_method method = MHA_GRADIENT; method < MHA_METHOD_COUNT; method++) {
        bench one, three;
        size_t n;
        bench_open(&one, *state, 1);
        bench_open(&three, *state, 3);
        if (method == MHA_DLA && is_indirect(&one)) {
            bench_close(&one);
            bench_close(&three);
            continue;
        }
        mha_importance_options o = {.method = method, .resamples = 100, .draws = 2, .seed = 5};
        mha_importance *a = run(&one, o), *b = run(&three, o);
        const mha_importance_row *x = mha_importance_rows(a, &n), *y = mha_importance_rows(b, &n);
        for (size_t u = 0; u < n; u++) {
            assert_true(x[u].score == y[u].score);
            assert_true(x[u].lo == y[u].lo || isnan(x[u].lo));
            assert_int_equal(x[u].rank, y[u].rank);
        }
        mha_importance_free(a);
        mha_importance_free(b);
        bench_close(&one);
        bench_close(&three);
    }
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void **state);
    } checks[] = {{"ablate-zero", test_ablate_zero},
                  {"gradient", test_gradient},
                  {"all-but-one", test_all_but_one},
                  {"shapley", test_shapley},
                  {"ablate-mean", test_ablate_mean},
                  {"ablate-resample", test_ablate_resample},
                  {"dla", test_dla},
                  {"threads", test_threads}};
    enum { CHECKS = sizeof checks / sizeof *checks, MODELS = sizeof models / sizeof *models };
    struct CMUnitTest tests[CHECKS * MODELS];
    char names[CHECKS * MODELS][64];
    for (size_t i = 0; i < CHECKS * MODELS; i++) {
        snprintf(names[i], sizeof names[i], "%s of %s", checks[i / MODELS].name,
                 models[i % MODELS]);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = checks[i / MODELS].run,
                                       .initial_state = models[i % MODELS]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
