/* kernel_table: choosing an instruction set, and that every table is complete. */
#include "support/test.h"

#include "support/rows.h"

#include <stdlib.h>
#include <string.h>

static void test_every_listed_name_can_be_had(void **state)
{
    const mha_kernels *tables[ISA_MAX], *got;
    const size_t count = isas(tables);

    for (size_t i = 0; i < count; i++) {
        mha_err err = {0};
        got = NULL;
        assert_int_equal(mha_kernels_get(&got, tables[i]->isa, &err), MHA_OK);
        assert_ptr_equal(got, tables[i]);
    }
}

static void test_unknown_name_is_refused_with_the_known_ones(void **state)
{
    static const char *const names[] = {"", "neon9", "REF", "avx", "avx5123"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const mha_kernels *got = NULL;
        mha_err err = {0};
        assert_int_equal(mha_kernels_get(&got, names[i], &err), MHA_ERR_UNSUPPORTED);
        assert_null(got);
        assert_non_null(strstr(err.message, names[i]));
        assert_non_null(strstr(err.message, "ref"));
    }
}

static void test_environment_decides_when_nothing_is_asked(void **state)
{
    const mha_kernels *got = NULL, *tables[ISA_MAX];
    const size_t count = isas(tables);
    mha_err err = {0};

    assert_int_equal(setenv("MHA_ISA", "ref", 1), 0);
    assert_int_equal(mha_kernels_get(&got, NULL, &err), MHA_OK);
    assert_string_equal(got->isa, "ref");
    /* A name that is asked for wins over the environment. */
    assert_int_equal(mha_kernels_get(&got, tables[count - 1]->isa, &err), MHA_OK);
    assert_ptr_equal(got, tables[count - 1]);
    assert_int_equal(setenv("MHA_ISA", "sse9", 1), 0);
    assert_int_equal(mha_kernels_get(&got, NULL, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "MHA_ISA"));
    assert_non_null(strstr(err.message, "sse9"));
    assert_int_equal(unsetenv("MHA_ISA"), 0);
    assert_int_equal(mha_kernels_get(&got, NULL, &err), MHA_OK);
    assert_ptr_equal(got, tables[count - 1]);
}

static void test_tables_have_no_holes(void **state)
{
    const mha_kernels *tables[ISA_MAX];
    const size_t count = isas(tables);

    for (size_t i = 0; i < count; i++) {
        const mha_kernels *k = tables[i];
        for (size_t t = 0; t < MHA_DTYPE_FLOAT_COUNT; t++)
            assert_true(k->widen[t] != NULL && k->dot[t] != NULL);
        for (size_t a = 0; a < MHA_ACT_COUNT; a++)
            assert_true(k->act[a] != NULL && k->act_mul[a] != NULL && k->act_back[a] != NULL);
        assert_true(k->max != NULL && k->exp_sum != NULL && k->exp_stats != NULL);
        assert_true(k->scale != NULL && k->add != NULL && k->axpy != NULL);
        assert_true(k->softcap != NULL && k->layer_norm != NULL && k->rms_norm != NULL);
        assert_true(k->mul != NULL && k->softmax_back != NULL && k->norm_back != NULL);
        assert_true(k->rope_half != NULL && k->rope_pair != NULL);
    }
}

static void test_list_counts_beyond_its_capacity(void **state)
{
    const mha_kernels *one[2] = {NULL, NULL}, *all[ISA_MAX];

    assert_int_equal(mha_kernels_list(one, 1), isas(all));
    assert_ptr_equal(one[0], all[0]);
    assert_null(one[1]);
    assert_int_equal(mha_kernels_list(NULL, 0), isas(all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_listed_name_can_be_had),
        cmocka_unit_test(test_unknown_name_is_refused_with_the_known_ones),
        cmocka_unit_test(test_environment_decides_when_nothing_is_asked),
        cmocka_unit_test(test_tables_have_no_holes),
        cmocka_unit_test(test_list_counts_beyond_its_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
