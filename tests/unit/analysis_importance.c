/* analysis_importance: the arithmetic of importance by hand, without a model: gradients of examples
 * (methods D1, D5), hard-concrete gates (D3), and Shapley values and all-but-one of small games
 * (D6), for which this file stands in for the engine: losses are a function of the gates. */
#include "support/test.h"

#include "analysis/concrete.h"
#include "analysis/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR(x, y) assert_true(fabs((x) - (y)) < 6e-8)

/* ---- one attention step, or two, of made-up heads ---- */

enum { MOST = 64 };
static mha_attn_info steps[2];
static const mha_model_info info = {.attn = steps, .attn_count = 2};

static void make(mha_importance *m, mha_importance_method method, size_t per_step, size_t samples)
{
    memset(m, 0, sizeof *m);
    m->units.info = &info;
    m->units.stride = per_step;
    m->units.gates = 2 * per_step;
    m->units.count = 2 * per_step;
    m->units.item = calloc(m->units.count, sizeof *m->units.item);
    m->rows = calloc(m->units.count, sizeof *m->rows);
    for (uint32_t i = 0; i < m->units.count; i++)
        m->rows[i].place = m->units.item[i] = (mha_unit_place){
            i / (uint32_t)per_step, i % (uint32_t)per_step, 1, i % (uint32_t)per_step};
    m->options = (mha_importance_options){.method = method, .confidence = 0.95};
    m->documents = m->samples = samples;
    m->score = calloc(samples * m->units.count, sizeof(double));
    m->rise = calloc(samples * m->units.count, sizeof(double));
}

static void release(mha_importance *m)
{
    free(m->units.item);
    free(m->rows);
    free(m->score);
    free(m->rise);
}

/* ---- D1, D5 ---- */

/* Two heads in step 0, and the same in step 1 with gradients ten times as large. */
static void take(mha_importance *m, const double (*g)[2], size_t n)
{
    for (size_t s = 0; s < n; s++) {
        double gradient[4] = {g[s][0], g[s][1], 10 * g[s][0], 10 * g[s][1]};
        mha_importance_take_gradient(m, s, gradient);
    }
    assert_int_equal(mha_importance_conclude(m, NULL), MHA_OK);
}

static void test_gradient(void **state)
{
    const double g[3][2] = {{1, 2}, {-1, 1}, {0, -2}};
    mha_importance m;
    make(&m, MHA_GRADIENT, 2, 3);
    take(&m, g, 3);
    NEAR(m.rows[0].score, 0.6666667);
    NEAR(m.rows[1].score, 1.6666667);
    NEAR(m.rows[0].rise, 0);
    NEAR(m.rows[1].rise, -0.3333333);
    for (size_t u = 0; u < 4; u += 2) { /* the scale of a layer falls out */
        NEAR(m.rows[u].score_layer, 0.3713907);
        NEAR(m.rows[u + 1].score_layer, 0.9284767);
    }
    assert_int_equal(m.rows[3].rank, 1);
    assert_int_equal(m.rows[2].rank, 2);
    assert_int_equal(m.rows[1].rank, 3);
    assert_int_equal(m.rows[0].rank, 4);
    release(&m);
}

/* One batch with a summed loss would cancel signs: (0, 1) instead of (2, 5). */
static void test_batches_do_not_cancel(void **state)
{
    const double orders[3][3][2] = {
        {{1, 2}, {-1, 1}, {0, -2}}, {{0, -2}, {1, 2}, {-1, 1}}, {{-1, 1}, {0, -2}, {1, 2}}};
    for (size_t o = 0; o < 3; o++) {
        mha_importance m;
        make(&m, MHA_GRADIENT, 2, 3);
        take(&m, orders[o], 3);
        NEAR(3 * m.rows[0].score, 2);
        NEAR(3 * m.rows[1].score, 5);
        release(&m);
    }
}

static void test_fisher(void **state)
{
    const double g[3][2] = {{1, 2}, {-1, 1}, {0, -2}};
    mha_importance m;
    make(&m, MHA_FISHER, 2, 3);
    take(&m, g, 3);
    NEAR(3 * m.rows[0].score, 2);
    NEAR(3 * m.rows[1].score, 9);
    NEAR(m.rows[1].rise, -0.3333333);
    release(&m);
}

/* ---- D3 ---- */

static void test_concrete(void **state)
{
    const double x[5] = {0, -2, 2, -3, 3};
    const double open[5] = {0.6881116, 0.2299321, 0.9422042, 0.0989724, 0.9779319};
    const double gate[5] = {0.5, 0.0430435, 0.9569565, 0, 1};
    for (size_t i = 0; i < 5; i++) {
        double slope, e = 1e-5;
        NEAR(mha_concrete_open(x[i], &slope), open[i]);
        NEAR(mha_concrete_gate(x[i]), gate[i]);
        double rise = mha_concrete_open(x[i] + e, NULL) - mha_concrete_open(x[i] - e, NULL);
        assert_true(fabs(rise / (2 * e) - slope) < 1e-8);
    }
    assert_true(mha_concrete_gate(-2.3978953) < 1e-8 && mha_concrete_gate(-2.39) > 0);
    assert_true(mha_concrete_gate(2.3978953) > 1 - 1e-8 && mha_concrete_gate(2.39) < 1);
}

static void test_concrete_draws(void **state)
{
    size_t open = 0, n = 20000;
    for (size_t i = 0; i < n; i++) {
        double u = ((double)i + 0.5) / (double)n, e = 1e-6;
        mha_concrete c = mha_concrete_draw(-1, u);
        open += c.gate != 0;
        assert_true(c.gate >= 0 && c.gate <= 1);
        double rise = mha_concrete_draw(-1 + e, u).gate - mha_concrete_draw(-1 - e, u).gate;
        if (c.gate > 0.001 && c.gate < 0.999)
            assert_true(fabs(rise / (2 * e) - c.slope) < 1e-5);
    }
    assert_true(fabs((double)open / (double)n - mha_concrete_open(-1, NULL)) < 2e-4);
    assert_true(isfinite(mha_concrete_draw(5, 0).gate) && isfinite(mha_concrete_draw(5, 1).slope));
}

/* ---- D6: games instead of models ---- */

static double (*game)(const float *gates);
static size_t evaluations;

/* Takes the place of the engine's: the linker finds this one first. */
mha_status mha_variants_loss(mha_engine *e, const mha_document *docs, const mha_variant *variants,
                             size_t count, double *loss, size_t *hits, mha_share *share,
                             mha_err *err)
{
    for (size_t i = 0; i < count; i++)
        loss[i] = game(variants[i].gates);
    evaluations += count;
    return MHA_OK;
}

/* v = −loss: v(∅) = 0, v(1) = 1, v(2) = 2, v(12) = 4. */
static double two_players(const float *g)
{
    return -(g[0] != 0 ? g[1] != 0 ? 4 : 1 : g[1] != 0 ? 2 : 0);
}

static double many_players(const float *g)
{
    double loss = 8, pairs = 0;
    for (size_t i = 0; i < 48; i++) {
        loss -= g[i] != 0 ? (double)(i % 7) / 30 : 0;
        pairs += g[i] != 0 && g[(i + 1) % 48] != 0;
    }
    return loss - pairs / 60;
}

/* Only the first player's presence matters: the rest of any order is cut short after it. */
static double one_player(const float *g)
{
    return g[0] != 0 ? 1 : 3;
}

static void play(mha_importance *m, double (*rules)(const float *), size_t per_step, size_t pairs,
                 mha_status (*method)(mha_importance_job *, mha_err *))
{
    static const mha_document docs[2];
    size_t index[2] = {0, 1};
    float base[MOST];
    double loss[2], empty[2];
    make(m, MHA_SHAPLEY, per_step, 2);
    m->options.draws = pairs;
    for (size_t i = 0; i < MOST; i++)
        base[i] = 1;
    mha_importance_job j = {.m = m,
                            .docs = docs,
                            .index = index,
                            .base = base,
                            .loss = loss,
                            .empty = empty,
                            .share = {.part = 1, .total = 1},
                            .count = 2};
    game = rules;
    evaluations = 0;
    assert_int_equal(method(&j, NULL), MHA_OK);
    assert_int_equal(mha_importance_conclude(m, NULL), MHA_OK);
    if (method != mha_importance_shapley)
        return;
    /* the values of all players are what the game is worth */
    double sum = 0;
    for (size_t i = 0; i < m->units.count; i++)
        sum += m->rows[i].score;
    assert_true(fabs(sum - (empty[0] - loss[0])) < 1e-12);
}

static void test_shapley_of_two(void **state)
{
    mha_importance m;
    play(&m, two_players, 1, 1, mha_importance_shapley);
    NEAR(m.rows[0].score, 1.5);
    NEAR(m.rows[1].score, 2.5);
    NEAR(m.rows[0].rise, 1.5);
    release(&m);
}

/* A pair's bonus is its two players' by halves, so that everybody's value is known. */
static void test_shapley_of_many(void **state)
{
    mha_importance m;
    play(&m, many_players, 24, 400, mha_importance_shapley);
    for (size_t i = 0; i < 48; i++)
        assert_true(fabs(m.rows[i].score - (double)(i % 7) / 30 - 1.0 / 60) < 2e-3);
    release(&m);
}

static void test_shapley_truncates(void **state)
{
    mha_importance m;
    play(&m, one_player, 24, 50, mha_importance_shapley);
    NEAR(m.rows[0].score, 2);
    NEAR(m.rows[47].score, 0);
    assert_true(evaluations <
                200 * 47 * 2 / 3); /* of 200 orders of 48: half of each, and a round */
    release(&m);
}

static void test_all_but_one(void **state)
{
    mha_importance m;
    play(&m, many_players, 24, 0, mha_importance_all_but_one);
    /* player 3 alone in its step: its own worth; player 23's neighbour 24 is in the other step */
    NEAR(m.rows[3].score, 3.0 / 30);
    NEAR(m.rows[23].score, (double)(23 % 7) / 30 + 1.0 / 60);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),        cmocka_unit_test(test_batches_do_not_cancel),
        cmocka_unit_test(test_fisher),          cmocka_unit_test(test_concrete),
        cmocka_unit_test(test_concrete_draws),  cmocka_unit_test(test_shapley_of_two),
        cmocka_unit_test(test_shapley_of_many), cmocka_unit_test(test_shapley_truncates),
        cmocka_unit_test(test_all_but_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
