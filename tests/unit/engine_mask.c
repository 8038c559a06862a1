/* engine_mask.c: spans of keys against a plain question for every pair of query and key, over all
 * kinds of mask and lengths around their bounds; blocks of rows, layouts, and the statistics of
 * rows whose keys lie in several runs against sums over all keys. */
#include "engine/mask.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

enum { KEYS = 40, ROOM = 64 };

static bool is_global(const mha_sight *s, size_t i)
{
    for (size_t k = 0; k < s->globals; k++)
        if (s->global[k] == i)
            return true;
    return false;
}

/* How often query i sees key j, by the definition of each mask. */
static uint32_t times_seen(const mha_sight *s, size_t i, size_t j)
{
    size_t w = s->a->window, away = i > j ? i - j : j - i;
    switch (s->a->mask) {
    case MHA_MASK_FULL:
        return 1;
    case MHA_MASK_CAUSAL:
        return j <= i;
    case MHA_MASK_CAUSAL_WINDOW:
        return j <= i && away < w;
    case MHA_MASK_WINDOW:
        return away <= w / 2 || is_global(s, i) || is_global(s, j);
    case MHA_MASK_BLOCKS:
        break;
    case MHA_MASK_EDGES: /* has no spans: graphs have a core of their own */
        fail();
    }
    size_t q = i / w, k = j / w, last = (s->keys - 1) / w;
    if (s->keys <= (5 + 2 * s->a->repeat) * w || q == 0 || q == last)
        return 1;
    if (k == 0)
        return 1 + s->a->repeat;
    return k == last || (k + 1 >= q && k <= q + 1);
}

static uint32_t times_in(const mha_span *spans, size_t n, size_t j)
{
    for (size_t k = 0; k < n; k++)
        if (j >= spans[k].lo && j < spans[k].hi)
            return spans[k].times;
    return 0;
}

static void check_order(const mha_span *spans, size_t n, size_t most)
{
    assert_in_range(n, 1, most);
    for (size_t k = 0; k < n; k++) {
        assert_true(spans[k].lo < spans[k].hi);
        assert_true(k == 0 || spans[k - 1].hi <= spans[k].lo);
    }
}

/* Rows one by one, then the blocks that they may share. */
static void check_sight(const mha_sight *s)
{
    mha_span spans[ROOM];
    size_t most = mha_sight_most(s);
    assert_in_range(most, 1, ROOM);
    for (size_t i = 0; i < s->keys; i++) {
        size_t n = mha_sight_spans(s, i, i, spans);
        check_order(spans, n, most);
        for (size_t j = 0; j < s->keys; j++)
            assert_int_equal(times_in(spans, n, j), times_seen(s, i, j));
    }
    for (size_t first = 0, rows; first < s->keys; first += rows) {
        rows = mha_sight_rows(s, first, s->keys - first < 7 ? s->keys - first : 7);
        assert_in_range(rows, 1, 7);
        size_t n = mha_sight_spans(s, first, first + rows - 1, spans);
        check_order(spans, n, most);
        for (size_t j = 0; j < s->keys; j++) {
            uint32_t times = 0;
            for (size_t i = first; i < first + rows; i++)
                times = times_seen(s, i, j) > times ? times_seen(s, i, j) : times;
            assert_int_equal(times_in(spans, n, j) > 0, times > 0);
            assert_true(times == 0 || times_in(spans, n, j) == times);
        }
    }
}

static void spans_of_all_masks(void **state)
{
    static const uint32_t windows[] = {1, 2, 3, 4, 5, 8};
    static const uint32_t global[] = {0, 3, 4, 5, 17, 30};
    static const mha_mask masks[] = {MHA_MASK_FULL, MHA_MASK_CAUSAL, MHA_MASK_CAUSAL_WINDOW,
                                     MHA_MASK_WINDOW, MHA_MASK_BLOCKS};
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
            for (uint32_t repeat = 0; repeat < 3; repeat++)
                for (size_t keys = 1; keys <= KEYS; keys++) {
                    mha_mask mask = masks[m];
                    mha_attn_args a = {.mask = mask, .window = windows[w], .repeat = repeat};
                    mha_sight s = {.a = &a, .keys = keys};
                    check_sight(&s);
                    while (mask == MHA_MASK_WINDOW && s.globals < 6 && global[s.globals] < keys)
                        s.globals++;
                    s.global = global;
                    check_sight(&s);
                }
}

/* Work follows the spans: twice the keys of a window cost twice as much, not four times. */
static void extent_is_linear(void **state)
{
    mha_span room[ROOM];
    static const uint32_t global[] = {0};
    mha_attn_args window = {.mask = MHA_MASK_WINDOW, .window = 32};
    mha_attn_args blocks = {.mask = MHA_MASK_BLOCKS, .window = 16, .repeat = 3};
    mha_sight s = {.a = &window, .global = global, .globals = 1};
    for (int kind = 0; kind < 2; kind++) {
        s.keys = 4096;
        mha_extent one = mha_sight_extent(&s, 0, s.keys, 64, room);
        s.keys = 8192;
        mha_extent two = mha_sight_extent(&s, 0, s.keys, 64, room);
        assert_true(two.pairs < 2.01 * one.pairs && two.pairs > 1.9 * one.pairs);
        assert_true(two.floats <= 2 * one.floats);
        s = (mha_sight){.a = &blocks};
    }
}

/* ---- rows -------------------------------------------------------------------------------------
 */

static double near(double x)
{
    return 1e-5 * (1 + fabs(x));
}

/* A row of a window with global tokens, or of blocks: the runs against sums over all keys. */
static void check_row(const mha_sight *s, size_t i, const mha_kernels *k)
{
    unsigned char room[ROOM * (2 * sizeof(mha_span) + sizeof(mha_run))]
        __attribute__((aligned(16)));
    float score[KEYS];
    double weight[KEYS], sum = 0, entropy = 0, distance = 0, offset = 0, most = 0;
    static const uint32_t special[] = {0, 2, 9, 39};
    mha_layout l = {.sight = *s};
    mha_row_stats st;
    mha_layout_init(&l, room, mha_sight_most(s));
    mha_layout_block(&l, i, 1, true);
    assert_int_equal(l.width, s->keys);
    for (size_t j = 0; j < s->keys; j++) {
        uint32_t times = times_seen(s, i, j);
        score[j] = (float)sin((double)(7 * i + 3 * j)) + (times > 1 ? logf((float)times) : 0);
        weight[j] = times > 0 ? exp((double)score[j]) : 0;
        sum += weight[j];
    }
    for (size_t j = 0; j < s->keys; j++) {
        double p = weight[j] /= sum;
        entropy -= p > 0 ? p * log(p) : 0;
        offset += p * ((double)j - (double)i);
        distance += p * fabs((double)j - (double)i);
        most = fmax(most, p);
    }
    mha_layout_row(&l, i, score);
    mha_row row = {.runs = l.runs,
                   .run_count = l.run_count,
                   .query = i,
                   .special = special,
                   .special_count = 4,
                   .has_special = true};
    float inverse = mha_row_weigh(k, &row, &st);
    mha_layout_fill(&l, score, 0);
    for (size_t j = 0; j < s->keys; j++)
        assert_true(fabs((double)(score[j] * inverse) - weight[j]) < 1e-6);
    double masses = weight[0] + weight[2] + weight[9] + weight[39];
    assert_true(fabs(st.entropy - entropy) < near(entropy));
    assert_true(fabs(st.distance - distance) < near(distance));
    assert_true(fabs(st.offset - offset) < near(offset));
    assert_true(fabs(st.max_weight - most) < near(most));
    assert_true(fabs(st.special - masses) < near(masses));
    assert_true(fabs(st.self - weight[i]) < near(weight[i]));
    if (times_seen(s, i, 0) > 0)
        assert_true(fabs(st.first - weight[0]) < near(weight[0]));
    else
        assert_true(isnan(st.first));
}

static void statistics_of_runs(void **state)
{
    static const uint32_t global[] = {1, 20, 21, 33};
    mha_attn_args window = {.mask = MHA_MASK_WINDOW, .window = 6};
    mha_attn_args blocks = {.mask = MHA_MASK_BLOCKS, .window = 3, .repeat = 2};
    const mha_kernels *k[4];
    size_t tables = mha_kernels_list(k, 4);
    for (size_t t = 0; t < tables && t < 4; t++)
        for (size_t i = 0; i < KEYS; i++) {
            mha_sight s = {.a = &window, .keys = KEYS, .global = global, .globals = 4};
            check_row(&s, i, k[t]);
            s = (mha_sight){.a = &blocks, .keys = KEYS};
            check_row(&s, i, k[t]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_of_all_masks),
        cmocka_unit_test(extent_is_linear),
        cmocka_unit_test(statistics_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
