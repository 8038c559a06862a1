/* model_floats: computed tables of positions against their formula. */
#include "support/test.h"

#include "model/floats.h"

#include <math.h>

/* Row p, column j of an interleaved table would be sin or cos of p / 10000^(2·(j/2)/n); the sines
 * of the even columns come first here, then the cosines of the odd ones. */
static void check_table(uint32_t rows, uint32_t n)
{
    mha_arena arena = {0};
    const float *t;
    mha_err err = {0};
    assert_int_equal(mha_floats_sinusoid(&t, &arena, rows, n, &err), MHA_OK);
    for (uint32_t p = 0; p < rows; p++)
        for (uint32_t j = 0; j < n; j++) {
            double angle = p / pow(10000, 2.0 * (j / 2) / n);
            uint32_t column = j % 2 == 0 ? j / 2 : (n + 1) / 2 + j / 2;
            double want = j % 2 == 0 ? sin(angle) : cos(angle);
            assert_float_equal((double)t[p * n + column], want, 1e-6);
        }
    mha_arena_release(&arena);
}

static void test_sinusoid(void **state)
{
    check_table(1, 2);
    check_table(40, 20);
    check_table(9, 7); /* one more sine than cosines */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sinusoid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
