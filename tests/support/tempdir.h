/* tempdir.h: a fresh directory for tests that need files. */
#ifndef MHA_TESTS_SUPPORT_TEMPDIR_H
#define MHA_TESTS_SUPPORT_TEMPDIR_H

#include <stddef.h>

/* cmocka set-up and tear-down: *state is the path of an empty directory, removed with all in it. */
int tempdir_setup(void **state);
int tempdir_teardown(void **state);

/* DIRECTORY/NAME in one of a few static buffers, good for the next few calls. */
const char *tempdir_path(void **state, const char *name);

/* Writes, reads back and counts, failing the test on any error. */
void file_write(const char *path, const void *bytes, size_t n);
/* The whole file with a NUL behind it, in a static buffer of 64 KiB. */
const char *file_text(const char *path);
size_t directory_count(const char *path);

#endif
