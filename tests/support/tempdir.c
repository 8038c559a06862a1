/* tempdir.c: temporary directories and small files for tests. */
#include "support/tempdir.h"

#include "support/test.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tempdir_setup(void **state)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/mha-test.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(path))
        return -1;
    *state = strdup(path);
    return *state ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

int tempdir_teardown(void **state)
{
    int result = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

const char *tempdir_path(void **state, const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    assert_true((size_t)snprintf(path, PATH_MAX, "%s/%s", (const char *)*state, name) < PATH_MAX);
    return path;
}

void file_write(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(n > 0 ? fwrite(bytes, 1, n, f) : 0, n);
    assert_int_equal(fclose(f), 0);
}

const char *file_text(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

size_t directory_count(const char *path)
{
    size_t count = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(d);
    return count;
}
