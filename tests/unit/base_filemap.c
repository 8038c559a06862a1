/* base_filemap: mapped files, those that are cut while mapped, and whole small files. */
#include "support/test.h"

#include "base/filemap.h"
#include "base/mem.h"
#include "support/tempdir.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 5

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A file of PAGES pages, each filled with its number plus one. */
static const char *pages_make(void **state, const char *name)
{
    const char *path = tempdir_path(state, name);
    size_t page = page_bytes();
    void *p = NULL;
    assert_int_equal(mha_alloc(&p, PAGES, page, NULL), MHA_OK);
    for (size_t i = 0; i < PAGES; i++)
        memset((char *)p + i * page, (int)i + 1, page);
    file_write(path, p, PAGES * page);
    mha_free(p);
    return path;
}

static void test_opens_and_closes(void **state)
{
    const char *path = pages_make(state, "pages");
    mha_filemap f;
    assert_int_equal(mha_filemap_open(&f, path, NULL), MHA_OK);
    assert_int_equal(f.size, PAGES * page_bytes());
    assert_int_equal(f.data[0], 1);
    assert_int_equal(f.data[f.size - 1], PAGES);
    assert_string_equal(f.path, path);
    assert_int_equal(mha_filemap_check(&f, NULL), MHA_OK);
    mha_filemap_close(&f);
    assert_null(f.data);
    mha_filemap_close(&f);
}

static void test_empty_file(void **state)
{
    const char *path = tempdir_path(state, "empty");
    mha_filemap f;
    file_write(path, "", 0);
    assert_int_equal(mha_filemap_open(&f, path, NULL), MHA_OK);
    assert_null(f.data);
    assert_int_equal(f.size, 0);
    assert_int_equal(mha_filemap_check(&f, NULL), MHA_OK);
    mha_filemap_close(&f);
}

static void test_refuses_what_is_no_file(void **state)
{
    mha_filemap f;
    mha_err err = {0};
    assert_int_equal(mha_filemap_open(&f, tempdir_path(state, "absent"), &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "absent: No such file or directory"));
    assert_null(f.data);
    assert_int_equal(mha_filemap_open(&f, *state, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "Is a directory"));
    /* A pipe that nobody writes to must not be waited for. */
    const char *pipe_path = tempdir_path(state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(mha_filemap_open(&f, pipe_path, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
}

static void test_cut_file_is_an_error_and_no_crash(void **state)
{
    const char *path = pages_make(state, "cut");
    size_t page = page_bytes();
    mha_filemap cut, whole;
    mha_err err = {0};
    mha_filemap_guard();
    mha_filemap_guard();
    assert_int_equal(mha_filemap_open(&cut, path, NULL), MHA_OK);
    assert_int_equal(mha_filemap_open(&whole, pages_make(state, "whole"), NULL), MHA_OK);
    assert_int_equal(truncate(path, (off_t)(2 * page)), 0);
    const volatile unsigned char *data = cut.data;
    assert_int_equal(data[2 * page - 1], 2);
    assert_int_equal(data[2 * page], 0);
    assert_int_equal(data[cut.size - 1], 0);
    assert_int_equal(mha_filemap_check(&cut, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "cut: cut while it was read"));
    assert_int_equal(whole.data[whole.size - 1], PAGES);
    assert_int_equal(mha_filemap_check(&whole, NULL), MHA_OK);
    mha_filemap_close(&cut);
    mha_filemap_close(&whole);
}

static void test_cut_within_a_page_is_seen(void **state)
{
    const char *path = pages_make(state, "short");
    mha_filemap f;
    assert_int_equal(mha_filemap_open(&f, path, NULL), MHA_OK);
    assert_int_equal(truncate(path, (off_t)f.size - 1), 0);
    assert_int_equal(mha_filemap_check(&f, NULL), MHA_ERR_IO);
    mha_filemap_close(&f);
}

/* Faults that are not ours keep their former meaning: here, the end of the process. */
static void test_other_faults_still_kill(void **state)
{
    const char *path = pages_make(state, "foreign");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        mha_filemap_guard();
        int fd = open(path, O_RDWR);
        const volatile char *p = mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, 0);
        if (ftruncate(fd, 0) != 0)
            _exit(1);
        _exit(p[0] == 0 ? 2 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void test_more_files_than_the_table_holds(void **state)
{
    enum { FILES = 1100 };
    static mha_filemap files[FILES];
    const char *path = pages_make(state, "many");
    size_t opened = 0;
    while (opened < FILES && mha_filemap_open(&files[opened], path, NULL) == MHA_OK)
        opened++;
    /* The system may allow fewer open files; those that did open are all whole. */
    assert_true(opened > 100);
    for (size_t i = 0; i < opened; i++) {
        assert_int_equal(files[i].data[files[i].size - 1], PAGES);
        mha_filemap_close(&files[i]);
    }
    assert_int_equal(mha_filemap_open(&files[0], path, NULL), MHA_OK);
    mha_filemap_close(&files[0]);
}

static void test_reads_small_files(void **state)
{
    const char *path = tempdir_path(state, "small");
    char *text = NULL;
    size_t size = 0;
    mha_err err = {0};
    file_write(path, "ab\0c", 4);
    assert_int_equal(mha_file_read(&text, &size, path, 4, NULL), MHA_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(text, "ab\0c", 5);
    mha_free(text);
    assert_int_equal(mha_file_read(&text, &size, path, 3, &err), MHA_ERR_LIMIT);
    assert_non_null(strstr(err.message, "small: larger than 3 bytes"));
    assert_null(text);
    file_write(path, "", 0);
    assert_int_equal(mha_file_read(&text, NULL, path, 0, NULL), MHA_OK);
    assert_string_equal(text, "");
    mha_free(text);
    assert_int_equal(mha_file_read(&text, &size, *state, 10, &err), MHA_ERR_IO);
    assert_non_null(strstr(err.message, "Is a directory"));
    assert_int_equal(mha_file_read(&text, &size, "/dev/zero", 100000, &err), MHA_ERR_LIMIT);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while this process has no guard of its own yet. */
        WITH_DIRECTORY(test_other_faults_still_kill),
        WITH_DIRECTORY(test_opens_and_closes),
        WITH_DIRECTORY(test_empty_file),
        WITH_DIRECTORY(test_refuses_what_is_no_file),
        WITH_DIRECTORY(test_cut_file_is_an_error_and_no_crash),
        WITH_DIRECTORY(test_cut_within_a_page_is_seen),
        WITH_DIRECTORY(test_more_files_than_the_table_holds),
        WITH_DIRECTORY(test_reads_small_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
