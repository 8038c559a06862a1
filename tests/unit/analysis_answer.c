/* analysis_answer: ranked answers with their probabilities, which rows are answered, and draws. */
#include "support/attention.h"
#include "support/test.h"

#include "base/rng.h"
#include "mha/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_top_by_hand(void **state)
{
    /* ln 1, ln 4, ln 2, ln 1, ln 4: of 12 */
    const float s[5] = {0, 1.3862944f, 0.6931472f, 0, 1.3862944f};
    mha_answer out[9];
    assert_int_equal(mha_answer_top(s, 5, 3, out), 3);
    const int32_t ids[] = {1, 4, 2, 0, 3};
    const double probs[] = {4 / 12.0, 4 / 12.0, 2 / 12.0, 1 / 12.0, 1 / 12.0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(out[i].id, ids[i]);
        assert_int_equal(out[i].rank, i + 1);
        assert_true(fabs(out[i].prob - probs[i]) <= 1e-7);
    }
    assert_int_equal(mha_answer_top(s, 5, 9, out), 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(out[i].id, ids[i]);
    assert_int_equal(mha_answer_top(s, 5, 0, out), 0);
}

static void test_top_is_stable(void **state)
{
    const float large[3] = {3000, 2999, -3000};
    mha_answer out[3];
    assert_int_equal(mha_answer_top(large, 3, 3, out), 3);
    assert_true(fabs(out[0].prob - 1 / (1 + exp(-1))) <= 1e-12);
    assert_true(out[2].prob == 0);
}

typedef struct ranked {
    float s;
    int32_t id;
} ranked;

static int descending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->s != y->s ? (x->s < y->s) - (x->s > y->s) : (x->id > y->id) - (x->id < y->id);
}

static void test_top_against_sorting(void **state)
{
    enum { N = 997 };
    static float s[N];
    static ranked sorted[N];
    static mha_answer out[N];
    mha_rng r;
    mha_rng_seed(&r, 1, 0);
    for (int i = 0; i < N; i++) { /* with many ties */
        s[i] = (float)mha_rng_below(&r, 60);
        sorted[i] = (ranked){s[i], i};
    }
    qsort(sorted, N, sizeof *sorted, descending);
    for (size_t k = 1; k <= N; k += 83) {
        assert_int_equal(mha_answer_top(s, N, k, out), k);
        for (size_t i = 0; i < k; i++)
            assert_int_equal(out[i].id, sorted[i].id);
    }
}

static void test_mean(void **state)
{
    const float x[6] = {1, 2, 3, 5, 8, 10};
    float out[2];
    mha_answer_mean(x, 3, 2, out);
    assert_true(fabs((double)out[0] - 4) <= 1e-6);
    assert_true(fabs((double)out[1] - 17 / 3.0) <= 1e-6);
}

static mha_answers *answers(mha_model *m, const mha_document *docs, size_t count, size_t k)
{
    mha_answers *a;
    mha_err err = {0};
    assert_int_equal(mha_answers_new(&a, m, docs, count, 9, k, &err), MHA_OK);
    return a;
}

/* Row r of the logits is largest at r, then at 0. */
static const float logits[12] = {3, 1, 0, 2, 3, 0, 2, 1, 3, 2.5f, 1, 0};

static void test_which_rows_are_answered(void **state)
{
    mha_attn_info step = {.stack = MHA_DEC, .heads = 1};
    mha_model m;
    fake_model(&m, &step, 1);
    m.info.vocab = 3;
    const int32_t ids[] = {9, 1, 9, 2};
    mha_document docs[2] = {{.ids = ids, .n = 4}, {.ids = ids + 1, .n = 1}};
    size_t count;
    for (size_t height = 1; height <= 4; height++) {
        m.info.head = MHA_HEAD_NEXT;
        mha_answers *a = answers(&m, docs, 2, 2);
        feed_rows(mha_answers_probe(a), MHA_SITE_LOGITS, &step, 0, 0, logits, 4, 3, height);
        feed_rows(mha_answers_probe(a), MHA_SITE_LOGITS, &step, 0, 1, logits + 3, 1, 3, height);
        const mha_answer *got = mha_answers_get(a, &count);
        assert_int_equal(count, 4);
        assert_int_equal(got[0].position, 3);
        assert_int_equal(got[0].id, 0);
        assert_int_equal(got[1].id, 1);
        assert_int_equal(got[2].document, 1);
        assert_int_equal(got[2].position, 0);
        assert_int_equal(got[2].id, 1);
        mha_answers_free(a);

        m.info.head = MHA_HEAD_MASKED; /* the second document has no mask */
        a = answers(&m, docs, 2, 1);
        feed_rows(mha_answers_probe(a), MHA_SITE_LOGITS, &step, 0, 0, logits, 4, 3, height);
        feed_rows(mha_answers_probe(a), MHA_SITE_LOGITS, &step, 0, 1, logits + 3, 1, 3, height);
        got = mha_answers_get(a, &count);
        assert_int_equal(count, 2);
        assert_int_equal(got[0].position, 0);
        assert_int_equal(got[0].id, 0);
        assert_int_equal(got[1].position, 2);
        assert_int_equal(got[1].id, 2);
        mha_answers_free(a);
    }
}

static void test_classes(void **state)
{
    mha_attn_info step = {.stack = MHA_ENC, .heads = 1};
    mha_model m;
    mha_err err = {0};
    fake_model(&m, &step, 1);
    m.info.head = MHA_HEAD_CLASS;
    m.info.classes = 2;
    mha_document doc = {.n = 5};
    mha_answers *a = answers(&m, &doc, 1, 10);
    const float s[2] = {0, 1.0986123f}; /* ln 3 */
    size_t count;
    feed_rows(mha_answers_probe(a), MHA_SITE_LOGITS, &step, 0, 0, s, 1, 2, 1);
    const mha_answer *got = mha_answers_get(a, &count);
    assert_int_equal(count, 2);
    assert_int_equal(got[0].id, 1);
    assert_true(fabs(got[0].prob - 0.75) <= 1e-7);
    assert_int_equal(got[1].rank, 2);
    mha_answers_free(a);

    m.info.head = MHA_HEAD_NONE;
    assert_int_equal(mha_answers_new(&a, &m, &doc, 1, -1, 1, &err), MHA_ERR_UNSUPPORTED);
    assert_null(a);
}

enum { DRAWS = 40000 };

/* Draws from {ln 1, ln 2, ln 3, ln 4} and counts. */
static void draw(mha_sampling how, size_t hits[4])
{
    const float s[4] = {0, 0.6931472f, 1.0986123f, 1.3862944f};
    mha_sampler *sampler;
    assert_int_equal(mha_sampler_new(&sampler, 4, &how, NULL), MHA_OK);
    for (int i = 0; i < 4; i++)
        hits[i] = 0;
    for (int i = 0; i < DRAWS; i++)
        hits[mha_sampler_next(sampler, s)]++;
    mha_sampler_free(sampler);
}

/* Within five standard errors of the probabilities w/Σw. */
static void check_draws(mha_sampling how, const double w[4])
{
    size_t hits[4];
    double all = w[0] + w[1] + w[2] + w[3];
    draw(how, hits);
    for (int i = 0; i < 4; i++) {
        double p = w[i] / all;
        assert_true(fabs((double)hits[i] / DRAWS - p) <= 5 * sqrt(p * (1 - p) / DRAWS));
    }
}

static void test_draws_follow_probabilities(void **state)
{
    check_draws((mha_sampling){.temperature = 1, .seed = 1}, (double[]){1, 2, 3, 4});
    check_draws((mha_sampling){.temperature = .5, .seed = 2}, (double[]){1, 4, 9, 16});
    check_draws((mha_sampling){.temperature = 1, .top_k = 2, .seed = 3}, (double[]){0, 0, 3, 4});
    /* .4 is not enough for .5, .4 + .3 is. */
    check_draws((mha_sampling){.temperature = 1, .top_p = .5, .seed = 4}, (double[]){0, 0, 3, 4});
    check_draws((mha_sampling){.temperature = 1, .top_p = .75, .seed = 5}, (double[]){0, 2, 3, 4});
    check_draws((mha_sampling){.temperature = 1, .top_p = .1, .seed = 6}, (double[]){0, 0, 0, 4});
    check_draws((mha_sampling){.temperature = 1, .top_p = 1, .seed = 7}, (double[]){1, 2, 3, 4});
    /* Of the three that are left, 7/9 of the weight take two. */
    check_draws((mha_sampling){.temperature = 1, .top_k = 3, .top_p = .77, .seed = 8},
                (double[]){0, 0, 3, 4});
}

static void test_draws_are_seeded(void **state)
{
    size_t a[4], b[4], c[4];
    draw((mha_sampling){.temperature = 1, .seed = 1, .stream = 3}, a);
    draw((mha_sampling){.temperature = 1, .seed = 1, .stream = 3}, b);
    draw((mha_sampling){.temperature = 1, .seed = 1, .stream = 4}, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
}

static void test_bad_sampling(void **state)
{
    const mha_sampling bad[] = {{.temperature = 0},
                                {.temperature = -1},
                                {.temperature = (double)NAN},
                                {.temperature = (double)INFINITY},
                                {.temperature = 1, .top_p = -.1},
                                {.temperature = 1, .top_p = 1.1},
                                {.temperature = 1, .top_p = (double)NAN}};
    mha_sampler *s;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(mha_sampler_new(&s, 4, &bad[i], NULL), MHA_ERR_ARG);
        assert_null(s);
    }
}

/* Every stretch, by its definition. */
static double span_prob(const float *readout, size_t n, const uint8_t *allowed, size_t i, size_t j)
{
    double starts = 0, ends = 0;
    for (size_t t = 0; t < n; t++)
        if (t == 0 || allowed[t]) {
            starts += exp((double)readout[2 * t]);
            ends += exp((double)readout[2 * t + 1]);
        }
    return exp((double)readout[2 * i]) / starts * exp((double)readout[2 * j + 1]) / ends;
}

static void test_spans(void **state)
{
    (void)state;
    enum { N = 9, K = 12, LONGEST = 3 };
    const uint8_t allowed[N] = {1, 0, 1, 1, 1, 0, 1, 1, 1};
    float readout[2 * N];
    mha_rng rng;
    mha_answer_span best[K];
    mha_rng_seed(&rng, 5, 0);
    for (size_t i = 0; i < 2 * N; i++)
        readout[i] = (float)(4 * mha_rng_uniform(&rng) - 2);
    size_t count = mha_answer_spans(readout, N, allowed, LONGEST, K, best);
    assert_int_equal(count, K); /* two runs of three: 6 stretches each */
    bool seen[N][N] = {{false}};
    for (size_t k = 0; k < count; k++) {
        size_t i = best[k].first, j = best[k].last;
        assert_true(i <= j && j - i < LONGEST && i > 0 && !seen[i][j]);
        for (size_t t = i; t <= j; t++)
            assert_true(allowed[t]);
        seen[i][j] = true;
        assert_true(k == 0 || best[k].prob <= best[k - 1].prob);
        assert_true(fabs(best[k].prob - span_prob(readout, N, allowed, i, j)) < 1e-12);
    }
    mha_answer_span three[3];
    assert_int_equal(mha_answer_spans(readout, N, allowed, LONGEST, 3, three), 3);
    assert_memory_equal(three, best, sizeof three);
    assert_int_equal(mha_answer_spans(readout, N, allowed, 1, K, best), 6);
    assert_int_equal(mha_answer_spans(readout, 1, allowed, LONGEST, K, best), 0);
    memset(readout, 0, sizeof readout); /* ties by place */
    mha_answer_spans(readout, N, allowed, LONGEST, 2, best);
    assert_true(best[0].first == 2 && best[0].last == 2 && best[1].first == 2 && best[1].last == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_by_hand),
        cmocka_unit_test(test_top_is_stable),
        cmocka_unit_test(test_top_against_sorting),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_which_rows_are_answered),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_draws_follow_probabilities),
        cmocka_unit_test(test_draws_are_seeded),
        cmocka_unit_test(test_bad_sampling),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
