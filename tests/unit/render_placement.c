/* render_placement.c: where nodes of a graph lie: neighbours a step apart, nodes with the same
 * neighbours beside each other and never on one spot, the same picture each time. */
#include "render/placement.h"
#include "support/test.h"
#include <math.h>
#include <string.h>

static double distance(mha_point a, mha_point b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

static double least_distance(const mha_point *at, size_t n)
{
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            least = fmin(least, distance(at[i], at[j]));
    return least;
}

/* A path is nearly a straight line of even steps, from node 0 at the left. */
static void test_path(void **state)
{
    static const uint32_t source[] = {0, 1, 2, 3}, target[] = {1, 2, 3, 4};
    mha_point at[5];
    double height;
    mha_err err = {0};
    assert_int_equal(mha_placement_make(at, &height, 5, 4, source, target, &err), MHA_OK);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(at[i].x - 0.25 * i) < 0.02);
    assert_true(height < 0.1);
}

/* Two hubs and twelve leaves of both: the leaves are alike, and would share a few spots. */
static void test_alike(void **state)
{
    enum { LEAVES = 12 };
    uint32_t source[2 * LEAVES], target[2 * LEAVES];
    mha_point at[2 + LEAVES], again[2 + LEAVES];
    double height;
    mha_err err = {0};
    for (uint32_t i = 0; i < 2 * LEAVES; i++) {
        source[i] = i % 2;
        target[i] = 2 + i / 2;
    }
    assert_int_equal(mha_placement_make(at, &height, 2 + LEAVES, 2 * LEAVES, source, target, &err),
                     MHA_OK);
    assert_true(least_distance(at, 2 + LEAVES) > 0.1);
    assert_int_equal(
        mha_placement_make(again, &height, 2 + LEAVES, 2 * LEAVES, source, target, &err), MHA_OK);
    assert_memory_equal(at, again, sizeof at);
    for (int i = 0; i < 2 + LEAVES; i++)
        assert_true(at[i].x >= 0 && at[i].x <= 1 && at[i].y >= 0 && at[i].y <= height);
}

static void test_bounds(void **state)
{
    mha_point at;
    double height;
    mha_err err = {0};
    assert_int_equal(mha_placement_make(&at, &height, 1, 0, NULL, NULL, &err), MHA_OK);
    assert_true(at.x == 0.5 && at.y == 0 && height == 0);
    assert_int_equal(mha_placement_make(&at, &height, MHA_PLACEMENT_NODES + 1, 0, NULL, NULL, &err),
                     MHA_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
