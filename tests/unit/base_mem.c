/* base_mem: alignment, zeroing and overflow checks of the allocator and the arena. */
#include "support/test.h"

#include "base/mem.h"

#include <string.h>

static bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static void test_alloc_is_aligned_and_zeroed(void **state)
{
    for (size_t n = 1; n < 5000; n = n * 3 + 1) {
        void *p = NULL;
        assert_int_equal(mha_alloc(&p, n, 3, NULL), MHA_OK);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_true(all_zero(p, n * 3));
        mha_free(p);
    }
}

static void test_alloc_of_nothing_is_null(void **state)
{
    void *p = &p;
    assert_int_equal(mha_alloc(&p, 0, 8, NULL), MHA_OK);
    assert_null(p);
    p = &p;
    assert_int_equal(mha_alloc_raw(&p, 8, 0, NULL), MHA_OK);
    assert_null(p);
    mha_free(NULL);
}

static void test_alloc_refuses_overflow_and_the_impossible(void **state)
{
    mha_err err = {0};
    void *p = &p;
    assert_int_equal(mha_alloc(&p, SIZE_MAX / 2, 3, &err), MHA_ERR_NOMEM);
    assert_null(p);
    assert_non_null(strstr(err.message, "out of memory"));
    assert_int_equal(mha_alloc_raw(&p, SIZE_MAX, 1, &err), MHA_ERR_NOMEM);
    assert_int_equal(mha_alloc_raw(&p, PTRDIFF_MAX - 64, 1, &err), MHA_ERR_NOMEM);
    assert_null(p);
}

static void test_grow_keeps_old_and_zeroes_new(void **state)
{
    void *p = NULL;
    uint32_t *v;
    assert_int_equal(mha_grow(&p, 0, 5, sizeof *v, NULL), MHA_OK);
    v = p;
    for (uint32_t i = 0; i < 5; i++)
        v[i] = i + 1;
    assert_int_equal(mha_grow(&p, 5, 1000, sizeof *v, NULL), MHA_OK);
    v = p;
    assert_int_equal((uintptr_t)p % 64, 0);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(v[i], i + 1);
    assert_true(all_zero((unsigned char *)(v + 5), 995 * sizeof *v));
    /* A failure leaves the old block. */
    assert_int_equal(mha_grow(&p, 1000, SIZE_MAX / 2, sizeof *v, NULL), MHA_ERR_NOMEM);
    assert_ptr_equal(p, v);
    assert_int_equal(v[4], 5);
    assert_int_equal(mha_grow(&p, 1000, 2, sizeof *v, NULL), MHA_OK);
    assert_int_equal(((uint32_t *)p)[1], 2);
    mha_free(p);
}

static void test_string_copies(void **state)
{
    char *s = NULL;
    assert_int_equal(mha_strdup(&s, "head", NULL), MHA_OK);
    assert_string_equal(s, "head");
    mha_free(s);
    assert_int_equal(mha_strndup(&s, "header", 4, NULL), MHA_OK);
    assert_string_equal(s, "head");
    mha_free(s);
    assert_int_equal(mha_strndup(&s, NULL, 0, NULL), MHA_OK);
    assert_string_equal(s, "");
    mha_free(s);
    assert_int_equal(mha_strndup(&s, "x", SIZE_MAX, NULL), MHA_ERR_NOMEM);
    assert_null(s);
}

static void test_overflow_helpers(void **state)
{
    size_t out = 0;
    assert_false(mha_mul_overflows(3, 4, &out));
    assert_int_equal(out, 12);
    assert_true(mha_mul_overflows(SIZE_MAX, 2, &out));
    assert_false(mha_add_overflows(SIZE_MAX - 1, 1, &out));
    assert_true(mha_add_overflows(SIZE_MAX, 1, &out));
}

static void test_arena_blocks_do_not_overlap(void **state)
{
    enum { N = 4000 };
    static unsigned char *blocks[N];
    mha_arena arena = {0};
    for (size_t i = 0; i < N; i++) {
        void *p = NULL;
        size_t n = i % 97 == 0 ? 20000 : i % 61 + 1;
        assert_int_equal(mha_arena_alloc(&p, &arena, n, 1, NULL), MHA_OK);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_true(all_zero(p, n));
        memset(p, (int)(i % 255 + 1), n);
        blocks[i] = p;
    }
    for (size_t i = 0; i < N; i++) {
        size_t n = i % 97 == 0 ? 20000 : i % 61 + 1;
        for (size_t k = 0; k < n; k++)
            assert_int_equal(blocks[i][k], i % 255 + 1);
    }
    mha_arena_release(&arena);
    assert_null(arena.head);
    mha_arena_release(&arena);
}

static void test_arena_strings_and_limits(void **state)
{
    mha_arena arena = {0};
    char *a = NULL, *b = NULL;
    void *p = &p;
    assert_int_equal(mha_arena_strdup(&a, &arena, "one", NULL), MHA_OK);
    assert_int_equal(mha_arena_strndup(&b, &arena, "twofold", 3, NULL), MHA_OK);
    assert_string_equal(a, "one");
    assert_string_equal(b, "two");
    assert_int_equal(mha_arena_alloc(&p, &arena, 0, 4, NULL), MHA_OK);
    assert_null(p);
    assert_int_equal(mha_arena_alloc(&p, &arena, SIZE_MAX / 2, 4, NULL), MHA_ERR_NOMEM);
    assert_int_equal(mha_arena_alloc(&p, &arena, SIZE_MAX - 3, 1, NULL), MHA_ERR_NOMEM);
    assert_int_equal(mha_arena_alloc(&p, &arena, SIZE_MAX - 40, 1, NULL), MHA_ERR_NOMEM);
    assert_string_equal(a, "one");
    mha_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_is_aligned_and_zeroed),
        cmocka_unit_test(test_alloc_of_nothing_is_null),
        cmocka_unit_test(test_alloc_refuses_overflow_and_the_impossible),
        cmocka_unit_test(test_grow_keeps_old_and_zeroes_new),
        cmocka_unit_test(test_string_copies),
        cmocka_unit_test(test_overflow_helpers),
        cmocka_unit_test(test_arena_blocks_do_not_overlap),
        cmocka_unit_test(test_arena_strings_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
