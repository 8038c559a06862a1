/* engine_relative: which row of the table of relative positions a distance has, against the
 * distances where the reference implementation changes buckets; and what a step says that it needs.
 */
#include "engine/relative.h"
#include "model/program.h"
#include "support/test.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static mha_attn_args table(uint32_t span, uint32_t buckets, uint32_t distance)
{
    mha_attn_args a = {.heads = 2, .kv_heads = 2, .width = 5};
    a.rel.out = 2 * span;
    a.rel_buckets = buckets;
    a.rel_distance = distance;
    return a;
}

static void row_is(const mha_attn_args *a, int64_t d, int64_t row)
{
    if (mha_relative_row(a, d) != row)
        fail_msg("distance %lld: row %u, expected %lld", (long long)d, mha_relative_row(a, d),
                 (long long)row);
}

/* 256 buckets up to distance 512, as all published models have them. */
static void test_usual_buckets(void **state)
{
    static const int starts[] = {
        129, 130, 131, 133, 134, 136, 137, 139, 140, 142, 143, 145, 146, 148, 150, 151,
        153, 155, 156, 158, 160, 161, 163, 165, 167, 169, 170, 172, 174, 176, 178, 180,
        182, 184, 186, 188, 190, 192, 194, 196, 198, 201, 203, 205, 207, 210, 212, 214,
        216, 219, 221, 224, 226, 229, 231, 234, 236, 239, 241, 244, 247, 249, 252, 255,
        258, 260, 263, 266, 269, 272, 275, 278, 281, 284, 287, 290, 294, 297, 300, 303,
        307, 310, 313, 317, 320, 324, 327, 331, 335, 338, 342, 346, 349, 353, 357, 361,
        365, 369, 373, 377, 381, 385, 390, 394, 398, 403, 407, 411, 416, 420, 425, 430,
        434, 439, 444, 449, 454, 459, 464, 469, 474, 479, 484, 490, 495, 500, 506};
    mha_attn_args a = table(256, 256, 512);
    int bucket = 0;
    for (int d = 0; d < 512; d++) {
        size_t next = (size_t)bucket - 128;
        if (d <= 128)
            bucket = d;
        else if (next < LENGTH(starts) && d == starts[next])
            bucket++;
        row_is(&a, d, 256 + bucket);
        row_is(&a, -d, 256 - bucket);
    }
    assert_int_equal(bucket, 255);
    row_is(&a, 512, 511);
    row_is(&a, -512, 0); /* the table has one row more below */
    row_is(&a, 1000000, 511);
    row_is(&a, -1000000, 0);
}

/* An odd number of buckets: the last row below is reached far behind the nominal distance. */
static void test_odd_buckets(void **state)
{
    static const struct {
        int from, bucket;
    } steps[] = {{0, 0}, {1, 1},  {2, 2},  {3, 3},  {4, 4},
                 {5, 5}, {10, 6}, {22, 7}, {50, 8}, {113, 9}};
    mha_attn_args a = table(9, 9, 50);
    for (size_t i = 0; i < LENGTH(steps); i++) {
        int to = i + 1 < LENGTH(steps) ? steps[i + 1].from : 300;
        for (int d = steps[i].from; d < to; d++) {
            row_is(&a, d, steps[i].bucket < 8 ? 9 + steps[i].bucket : 17);
            row_is(&a, -d, 9 - steps[i].bucket);
        }
    }
}

static void test_single_distances(void **state)
{
    mha_attn_args a = table(3, 0, 3);
    for (int d = -9; d < 10; d++)
        row_is(&a, d, d < -3 ? 0 : d > 2 ? 5 : d + 3);
}

/* No tile needs more rows than are announced, wherever it lies. */
static void test_rows_of_tiles(void **state)
{
    static const uint32_t spans[][3] = {{256, 256, 512}, {9, 9, 50},    {4, 4, 100000},
                                        {2, 2, 40},      {300, 0, 300}, {1, 0, 1}};
    static const size_t lengths[][2] = {{1, 1}, {1, 700}, {700, 1}, {65, 64}, {700, 700}};
    for (size_t i = 0; i < LENGTH(spans); i++)
        for (size_t k = 0; k < LENGTH(lengths); k++) {
            mha_attn_args a = table(spans[i][0], spans[i][1], spans[i][2]);
            int64_t T = (int64_t)lengths[k][0], S = (int64_t)lengths[k][1];
            mha_relative_size size = mha_relative_measure(&a, lengths[k][0], lengths[k][1]);
            assert_int_equal(size.first, mha_relative_row(&a, 1 - S));
            assert_int_equal(size.first + size.rows - 1, mha_relative_row(&a, T - 1));
            size_t most = 0;
            for (int64_t d = 1 - S; d < T; d++) {
                int64_t end = d + 126 < T - 1 ? d + 126 : T - 1;
                size_t n = mha_relative_row(&a, end) - mha_relative_row(&a, d) + 1;
                most = n > most ? n : most;
            }
            assert_in_range(most, 1, size.most);
            assert_in_range(size.most, 1, size.rows);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_buckets),
        cmocka_unit_test(test_odd_buckets),
        cmocka_unit_test(test_single_distances),
        cmocka_unit_test(test_rows_of_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
