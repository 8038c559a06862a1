/* base_pool: every task once, the same results and the same error for every number of threads. */
#include "support/test.h"

#include "base/fail.h"
#include "base/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define TASKS 500

struct job {
    atomic_int ran[TASKS];
    atomic_int workers[16];
    uint64_t result[TASKS];
    size_t threads;
    size_t fail_from, fail_every; /* tasks from fail_from on fail, each fail_every-th */
    atomic_bool late;             /* the first failing task waits for this */
};

static mha_status task(void *context, size_t index, size_t worker, mha_err *err)
{
    struct job *j = context;
    uint64_t x = index + 1;
    if (worker >= j->threads || atomic_fetch_add(&j->workers[worker], 1) != 0)
        return mha_fail(err, MHA_ERR_INTERNAL, "worker %zu is used twice at once", worker);
    for (int i = 0; i < 1000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    j->result[index] = x;
    atomic_fetch_add(&j->ran[index], 1);
    atomic_fetch_sub(&j->workers[worker], 1);
    if (j->fail_every > 0 && index >= j->fail_from && (index - j->fail_from) % j->fail_every == 0)
        return mha_fail(err, MHA_ERR_NUMERIC, "task %zu", index);
    return MHA_OK;
}

static void test_every_task_runs_once(void **state)
{
    static struct job one, many;
    for (size_t threads = 1; threads <= 7; threads++) {
        mha_pool *pool = NULL;
        struct job *j = threads == 1 ? &one : &many;
        assert_int_equal(mha_pool_new(&pool, threads, NULL), MHA_OK);
        assert_int_equal(mha_pool_threads(pool), threads);
        memset(j, 0, sizeof *j);
        j->threads = threads;
        assert_int_equal(mha_pool_run(pool, TASKS, task, j, NULL), MHA_OK);
        for (size_t i = 0; i < TASKS; i++)
            assert_int_equal(atomic_load(&j->ran[i]), 1);
        assert_memory_equal(one.result, j->result, sizeof one.result);
        mha_pool_free(pool);
    }
}

static void test_the_smallest_failing_task_wins(void **state)
{
    static struct job j;
    mha_pool *pool = NULL;
    assert_int_equal(mha_pool_new(&pool, 4, NULL), MHA_OK);
    for (int round = 0; round < 200; round++) {
        mha_err err = {0};
        memset(&j, 0, sizeof j);
        j.threads = 4;
        j.fail_from = 37;
        j.fail_every = 1;
        assert_int_equal(mha_pool_run(pool, TASKS, task, &j, &err), MHA_ERR_NUMERIC);
        assert_string_equal(err.message, "task 37");
        for (size_t i = 0; i < 37; i++)
            assert_int_equal(atomic_load(&j.ran[i]), 1);
        /* At most the tasks that were under way are run after the failure. */
        for (size_t i = 37 + 4; i < TASKS; i++)
            assert_int_equal(atomic_load(&j.ran[i]), 0);
    }
    mha_pool_free(pool);
}

/* Task 0 fails only after task 1 has failed. */
static mha_status late_task(void *context, size_t index, size_t worker, mha_err *err)
{
    struct job *j = context;
    (void)worker;
    if (index == 1)
        atomic_store(&j->late, true);
    while (index == 0 && !atomic_load(&j->late))
        sched_yield();
    return mha_fail(err, MHA_ERR_NUMERIC, "task %zu", index);
}

static void test_a_late_failure_of_a_smaller_task_wins(void **state)
{
    static struct job j;
    mha_pool *pool = NULL;
    mha_err err = {0};
    assert_int_equal(mha_pool_new(&pool, 2, NULL), MHA_OK);
    assert_int_equal(mha_pool_run(pool, 2, late_task, &j, &err), MHA_ERR_NUMERIC);
    assert_string_equal(err.message, "task 0");
    mha_pool_free(pool);
}

static void test_many_short_runs(void **state)
{
    static struct job j;
    mha_pool *pool = NULL;
    assert_int_equal(mha_pool_new(&pool, 3, NULL), MHA_OK);
    j.threads = 3;
    for (int round = 0; round < 2000; round++)
        assert_int_equal(mha_pool_run(pool, (size_t)round % 4, task, &j, NULL), MHA_OK);
    assert_int_equal(atomic_load(&j.ran[0]), 1500);
    assert_int_equal(atomic_load(&j.ran[2]), 500);
    assert_int_equal(atomic_load(&j.ran[3]), 0);
    mha_pool_free(pool);
}

static void test_defaults_and_limits(void **state)
{
    mha_pool *pool = NULL;
    mha_err err = {0};
    assert_int_equal(mha_pool_new(&pool, 0, NULL), MHA_OK);
    assert_true(mha_pool_threads(pool) >= 1);
    mha_pool_free(pool);
    assert_int_equal(mha_pool_new(&pool, 100000, &err), MHA_ERR_ARG);
    assert_null(pool);
    mha_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_the_smallest_failing_task_wins),
        cmocka_unit_test(test_a_late_failure_of_a_smaller_task_wins),
        cmocka_unit_test(test_many_short_runs),
        cmocka_unit_test(test_defaults_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
