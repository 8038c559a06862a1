/* base_outfile: outputs are whole or absent, and nothing is overwritten without being asked to. */
#include "support/test.h"

#include "base/outfile.h"
#include "support/tempdir.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_appears_at_commit(void **state)
{
    const char *path = tempdir_path(state, "out.csv");
    mha_outfile f;
    assert_int_equal(mha_outfile_open(&f, path, false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, "abc", 3, NULL), MHA_OK);
    assert_true(fprintf(f.stream, "%d\n", 5) > 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(directory_count(*state), 1);
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
    assert_string_equal(file_text(path), "abc5\n");
    assert_int_equal(directory_count(*state), 1);
    assert_null(f.stream);
    mha_outfile_abort(&f);
    assert_string_equal(file_text(path), "abc5\n");
}

static void test_abort_leaves_nothing(void **state)
{
    mha_outfile f = {0};
    mha_outfile_abort(&f);
    assert_int_equal(mha_outfile_open(&f, tempdir_path(state, "out"), false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, "abc", 3, NULL), MHA_OK);
    mha_outfile_abort(&f);
    mha_outfile_abort(&f);
    assert_int_equal(directory_count(*state), 0);
}

static void test_existing_files_need_force(void **state)
{
    const char *path = tempdir_path(state, "out");
    mha_outfile f;
    mha_err err = {0};
    file_write(path, "old", 3);
    assert_int_equal(mha_outfile_open(&f, path, false, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "out exists; --force overwrites"));
    assert_null(f.path);
    assert_int_equal(mha_outfile_open(&f, path, true, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, "new", 3, NULL), MHA_OK);
    assert_string_equal(file_text(path), "old");
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
    assert_string_equal(file_text(path), "new");
    assert_int_equal(directory_count(*state), 1);
}

static void test_a_file_that_came_up_meanwhile_stays(void **state)
{
    const char *path = tempdir_path(state, "out");
    mha_outfile f;
    mha_err err = {0};
    assert_int_equal(mha_outfile_open(&f, path, false, NULL), MHA_OK);
    file_write(path, "other", 5);
    assert_int_equal(mha_outfile_commit(&f, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "exists"));
    assert_string_equal(file_text(path), "other");
    assert_int_equal(directory_count(*state), 1);
}

static void test_permissions_follow_the_umask(void **state)
{
    const char *path = tempdir_path(state, "out");
    struct stat info;
    mha_outfile f;
    mode_t old = umask(027);
    assert_int_equal(mha_outfile_open(&f, path, false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
    umask(old);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void test_links_are_followed(void **state)
{
    const char *target = tempdir_path(state, "target"), *path = tempdir_path(state, "link");
    struct stat info;
    mha_outfile f;
    file_write(target, "old", 3);
    assert_int_equal(symlink("target", path), 0);
    assert_int_equal(mha_outfile_open(&f, path, true, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, "new", 3, NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_string_equal(file_text(target), "new");
}

static void test_devices_are_written_and_not_replaced(void **state)
{
    struct stat info;
    mha_outfile f;
    mha_err err = {0};
    char block[100000] = {0};
    assert_int_equal(mha_outfile_open(&f, "/dev/null", false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, block, sizeof block, NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&f, NULL), MHA_OK);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    /* A full disk is reported by the write or by the commit, whichever meets it. */
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(mha_outfile_open(&f, "/dev/full", false, NULL), MHA_OK);
    (void)mha_outfile_write(&f, block, sizeof block, NULL);
    assert_int_equal(mha_outfile_commit(&f, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "/dev/full: "));
    assert_int_equal(mha_outfile_open(&f, "/dev/full", false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_write(&f, "x", 1, NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&f, &err), MHA_ERR_IO);
    assert_string_equal(err.message, "/dev/full: No space left on device");
}

static void test_impossible_places(void **state)
{
    mha_outfile f;
    mha_err err = {0};
    assert_int_equal(mha_outfile_open(&f, tempdir_path(state, "no/out"), true, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "no/out: No such file or directory"));
    assert_int_equal(mha_outfile_open(&f, *state, true, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "Is a directory"));
    assert_int_equal(mha_outfile_open(&f, "", true, &err), MHA_ERR_IO);
}

static void test_standard_output(void **state)
{
    const char *path = tempdir_path(state, "stdout");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mha_outfile f;
        if (!freopen(path, "w", stdout) || mha_outfile_open(&f, "-", false, NULL) != MHA_OK ||
            mha_outfile_write(&f, "abc", 3, NULL) != MHA_OK ||
            mha_outfile_commit(&f, NULL) != MHA_OK)
            _exit(1);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(file_text(path), "abc");
}

static void test_abort_all_removes_what_is_open(void **state)
{
    enum { FILES = 40 };
    static mha_outfile files[FILES];
    size_t opened = 0;
    mha_err err = {0};
    for (; opened < FILES; opened++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", opened);
        if (mha_outfile_open(&files[opened], tempdir_path(state, name), false, &err) != MHA_OK)
            break;
    }
    assert_int_equal(opened, 32);
    assert_int_equal(err.status, MHA_ERR_LIMIT);
    assert_int_equal(directory_count(*state), 32);
    mha_outfile_abort_all();
    assert_int_equal(directory_count(*state), 0);
    for (size_t i = 0; i < opened; i++)
        mha_outfile_abort(&files[i]);
    assert_int_equal(mha_outfile_open(&files[0], tempdir_path(state, "g"), false, NULL), MHA_OK);
    assert_int_equal(mha_outfile_commit(&files[0], NULL), MHA_OK);
    mha_outfile_abort_all();
    assert_int_equal(directory_count(*state), 1);
}

static void test_directories(void **state)
{
    const char *path = tempdir_path(state, "dir");
    mha_err err = {0};
    assert_int_equal(mha_dir_make(path, NULL), MHA_OK);
    assert_int_equal(mha_dir_make(path, NULL), MHA_OK);
    file_write(tempdir_path(state, "file"), "", 0);
    assert_int_equal(mha_dir_make(tempdir_path(state, "file"), &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "File exists"));
    assert_int_equal(mha_dir_make(tempdir_path(state, "a/b"), &err), MHA_ERR_IO);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_appears_at_commit),
        WITH_DIRECTORY(test_abort_leaves_nothing),
        WITH_DIRECTORY(test_existing_files_need_force),
        WITH_DIRECTORY(test_a_file_that_came_up_meanwhile_stays),
        WITH_DIRECTORY(test_permissions_follow_the_umask),
        WITH_DIRECTORY(test_links_are_followed),
        WITH_DIRECTORY(test_devices_are_written_and_not_replaced),
        WITH_DIRECTORY(test_impossible_places),
        WITH_DIRECTORY(test_standard_output),
        WITH_DIRECTORY(test_abort_all_removes_what_is_open),
        WITH_DIRECTORY(test_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
