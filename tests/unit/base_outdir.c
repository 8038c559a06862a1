/* base_outdir: directories appear whole or not at all, and no other directory is ever replaced. */
#include "support/test.h"

#include "base/outdir.h"
#include "support/tempdir.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(mha_outdir *d, const char *name, const char *text)
{
    mha_outfile f;
    assert_int_equal(mha_outdir_file(d, &f, name, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, text, strlen(text), NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
}

static void make(const char *path, const char *text, bool force)
{
    mha_outdir d;
    assert_int_equal(mha_outdir_open(&d, path, "config.json", force, NULL), MHA_OK);
    put(&d, "config.json", text);
    put(&d, "sub/config.json", "{}");
    assert_int_equal(mha_outdir_commit(&d, NULL), MHA_OK);
    mha_outdir_abort(&d);
}

static void test_appears_at_commit(void **state)
{
    const char *path = tempdir_path(state, "model");
    mha_outdir d;
    assert_int_equal(mha_outdir_open(&d, path, "config.json", false, NULL), MHA_OK);
    put(&d, "config.json", "one");
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mha_outdir_commit(&d, NULL), MHA_OK);
    assert_string_equal(file_text(tempdir_path(state, "model/config.json")), "one");
    assert_int_equal(directory_count(*state), 1);
}

static void test_abort_leaves_nothing(void **state)
{
    mha_outdir d = {0};
    mha_outfile f;
    mha_outdir_abort(&d);
    assert_int_equal(mha_outdir_open(&d, tempdir_path(state, "model"), "x", false, NULL), MHA_OK);
    put(&d, "a", "1");
    put(&d, "sub/b", "2");
    assert_int_equal(mha_outdir_file(&d, &f, "half", NULL), MHA_OK);
    mha_outfile_abort(&f);
    mha_outdir_abort(&d);
    mha_outdir_abort(&d);
    assert_int_equal(directory_count(*state), 0);
}

static void test_only_its_own_kind_is_replaced(void **state)
{
    const char *path = tempdir_path(state, "model");
    mha_outdir d;
    mha_err err = {0};
    make(path, "old", false);
    assert_int_equal(mha_outdir_open(&d, path, "config.json", false, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "model exists; --force overwrites"));
    make(path, "new", true);
    assert_string_equal(file_text(tempdir_path(state, "model/config.json")), "new");
    assert_int_equal(directory_count(*state), 1);
    assert_int_equal(unlink(tempdir_path(state, "model/config.json")), 0);
    assert_int_equal(mha_outdir_open(&d, path, "config.json", true, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "holds no config.json"));
    file_write(tempdir_path(state, "file"), "x", 1);
    path = tempdir_path(state, "file");
    assert_int_equal(mha_outdir_open(&d, path, "config.json", true, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "no directory"));
}

static void test_an_empty_directory_is_filled(void **state)
{
    const char *path = tempdir_path(state, "model");
    assert_int_equal(mkdir(path, 0777), 0);
    char with_slash[4096];
    snprintf(with_slash, sizeof with_slash, "%s/", path);
    make(with_slash, "one", false);
    assert_string_equal(file_text(tempdir_path(state, "model/config.json")), "one");
    assert_int_equal(directory_count(*state), 1);
}

static void test_a_directory_that_came_up_meanwhile_stays(void **state)
{
    const char *path = tempdir_path(state, "model");
    mha_outdir d;
    assert_int_equal(mha_outdir_open(&d, path, "config.json", false, NULL), MHA_OK);
    put(&d, "config.json", "ours");
    make(path, "theirs", false);
    assert_int_equal(mha_outdir_commit(&d, NULL), MHA_ERR_IO);
    assert_string_equal(file_text(tempdir_path(state, "model/config.json")), "theirs");
    assert_int_equal(directory_count(*state), 1);
}

static void test_a_missing_parent_is_an_error(void **state)
{
    mha_outdir d;
    mha_err err = {0};
    assert_int_equal(mha_outdir_open(&d, tempdir_path(state, "no/model"), "x", false, &err),
                     MHA_ERR_IO);
    assert_non_null(strstr(err.message, "No such file or directory"));
    assert_int_equal(mha_outdir_open(&d, tempdir_path(state, "model"), "x", false, NULL), MHA_OK);
    mha_outdir_abort(&d);
}

/* What a Ctrl-C handler does, in a child so that its table does not outlive the test. */
static void test_abort_all(void **state)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mha_outdir d;
        mha_outfile f;
        mha_outdir_open(&d, tempdir_path(state, "model"), "x", false, NULL);
        put(&d, "a", "1");
        put(&d, "sub/b", "2");
        mha_outdir_file(&d, &f, "half", NULL);
        mha_outfile_abort_all();
        mha_outdir_abort_all();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(directory_count(*state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_appears_at_commit, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_abort_leaves_nothing, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_only_its_own_kind_is_replaced, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_an_empty_directory_is_filled, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_that_came_up_meanwhile_stays,
                                        tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_a_missing_parent_is_an_error, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_abort_all, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
