/* outdir.c: see outdir.h. Like outfile.c it keeps a process-wide table, here of the directories and
 * of the files in them, because a Ctrl-C handler may neither list a directory nor follow pointers
 * that another thread frees. */
#include "base/outdir.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_OPEN = 2, FILES_MAX = 400, NAME_SIZE = 128, NAME_TRIES = 16 };
enum { PLACE_FREE, PLACE_TAKEN, PLACE_NAMED };

static struct {
    atomic_int state;
    atomic_size_t files;
    char name[PATH_MAX];
    char file[FILES_MAX][NAME_SIZE]; /* NAME or SUBDIRECTORY/NAME */
} places[MAX_OPEN];

/* Async-signal-safe: neither allocates nor prints. */
static void remove_file(const char *directory, const char *file, bool its_directory)
{
    char path[PATH_MAX + NAME_SIZE + 1];
    size_t n = strlen(directory), m = strlen(file);
    memcpy(path, directory, n);
    path[n] = '/';
    memcpy(path + n + 1, file, m + 1);
    if (!its_directory) {
        unlink(path);
        return;
    }
    char *slash = strrchr(path + n + 1, '/');
    if (slash == NULL)
        return;
    *slash = '\0';
    rmdir(path);
}

static void remove_place(size_t i)
{
    size_t files = atomic_load(&places[i].files);
    for (size_t k = 0; k < files; k++)
        remove_file(places[i].name, places[i].file[k], false);
    for (size_t k = 0; k < files; k++)
        remove_file(places[i].name, places[i].file[k], true);
    rmdir(places[i].name);
}

void mha_outdir_abort_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++)
        if (atomic_load(&places[i].state) == PLACE_NAMED)
            remove_place(i);
}

static mha_status place_take(mha_outdir *d, mha_err *err)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        int expected = PLACE_FREE;
        if (!atomic_compare_exchange_strong(&places[i].state, &expected, PLACE_TAKEN))
            continue;
        atomic_store(&places[i].files, 0);
        d->place = i;
        return MHA_OK;
    }
    return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d output directories at once", d->path,
                    MAX_OPEN);
}

static mha_status directory_create(mha_outdir *d, mha_err *err)
{
    size_t n = strlen(d->path) + MHA_TEMPORARY_SUFFIX;
    void *name;
    if (n > PATH_MAX)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", d->path, strerror(ENAMETOOLONG));
    MHA_TRY(mha_alloc(&name, n, 1, err));
    d->temporary = name;
    for (int i = 0; i < NAME_TRIES; i++) {
        mha_temporary_name(d->temporary, n, d->path);
        /* Known before it exists, so that no signal in between leaves it behind. */
        memcpy(places[d->place].name, d->temporary, strlen(d->temporary) + 1);
        atomic_store(&places[d->place].state, PLACE_NAMED);
        if (mkdir(d->temporary, 0777) == 0)
            return MHA_OK;
        int reason = errno;
        atomic_store(&places[d->place].state, PLACE_TAKEN);
        if (reason != EEXIST)
            return mha_fail(err, MHA_ERR_IO, "%s: %s", d->path, strerror(reason));
    }
    return mha_fail(err, MHA_ERR_IO, "%s: %s", d->path, strerror(EEXIST));
}

static void handle_reset(mha_outdir *d)
{
    if (d->path != NULL)
        atomic_store(&places[d->place].state, PLACE_FREE);
    mha_free(d->temporary);
    mha_free(d->path);
    *d = (mha_outdir){0};
}

static bool has_entry(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    return (size_t)snprintf(path, sizeof path, "%s/%s", directory, name) < sizeof path &&
           stat(path, &info) == 0;
}

static bool is_empty(const char *directory)
{
    DIR *dir = opendir(directory);
    size_t entries = 0;
    while (dir != NULL && readdir(dir) != NULL)
        entries++;
    if (dir != NULL)
        closedir(dir);
    return dir != NULL && entries <= 2; /* "." and ".." */
}

static mha_status target_check(const mha_outdir *d, const char *marker, mha_err *err)
{
    struct stat info;
    if (stat(d->path, &info) != 0)
        return MHA_OK;
    if (!S_ISDIR(info.st_mode))
        return mha_fail(err, MHA_ERR_IO, "%s exists and is no directory", d->path);
    if (is_empty(d->path))
        return MHA_OK;
    if (!has_entry(d->path, marker))
        return mha_fail(err, MHA_ERR_IO,
                        "%s exists and holds no %s: such a directory is not overwritten", d->path,
                        marker);
    return d->force ? MHA_OK : mha_fail(err, MHA_ERR_IO, "%s exists; --force overwrites", d->path);
}

mha_status mha_outdir_open(mha_outdir *d, const char *path, const char *marker, bool force,
                           mha_err *err)
{
    size_t n = strlen(path);
    *d = (mha_outdir){.force = force};
    while (n > 1 && path[n - 1] == '/') /* the temporary name goes beside it, not into it */
        n--;
    char *copy;
    MHA_TRY(mha_strndup(&copy, path, n, err));
    mha_outdir made = {.path = copy, .force = force};
    mha_status status = target_check(&made, marker, err);
    if (status == MHA_OK)
        status = place_take(&made, err);
    if (status != MHA_OK) {
        mha_free(copy);
        return status;
    }
    status = directory_create(&made, err);
    if (status != MHA_OK)
        handle_reset(&made);
    else
        *d = made;
    return status;
}

/* Makes the directory of SUBDIRECTORY/NAME. */
static mha_status subdirectory_make(const char *path, mha_err *err)
{
    char *directory;
    MHA_TRY(mha_strndup(&directory, path, (size_t)(strrchr(path, '/') - path), err));
    mha_status status = mha_dir_make(directory, err);
    mha_free(directory);
    return status;
}

mha_status mha_outdir_file(mha_outdir *d, mha_outfile *f, const char *name, mha_err *err)
{
    char path[PATH_MAX];
    size_t files = atomic_load(&places[d->place].files), n = strlen(name);
    *f = (mha_outfile){0};
    if (n == 0 || n >= NAME_SIZE || files == FILES_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: %s", d->path,
                        files == FILES_MAX ? "too many files" : "too long a file name");
    if ((size_t)snprintf(path, sizeof path, "%s/%s", d->temporary, name) >= sizeof path)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", d->path, strerror(ENAMETOOLONG));
    memcpy(places[d->place].file[files], name, n + 1);
    atomic_store(&places[d->place].files, files + 1);
    if (strchr(name, '/') != NULL)
        MHA_TRY(subdirectory_make(path, err));
    return mha_outfile_open(f, path, false, err);
}

void mha_outdir_rename_error(const mha_outdir *d, mha_err *err)
{
    size_t n = strlen(d->temporary);
    char rest[MHA_ERR_MESSAGE];
    if (err == NULL || strncmp(err->message, d->temporary, n) != 0)
        return;
    memcpy(rest, err->message + n, strlen(err->message + n) + 1);
    mha_fail(err, err->status, "%s%s", d->path, rest);
}

/* Removes a directory that was replaced, with its files and those of its directories. */
static bool tree_remove(const char *path, int depth)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char inner[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            (size_t)snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= sizeof inner)
            continue;
        if (unlink(inner) != 0 && depth > 0)
            tree_remove(inner, depth - 1);
    }
    closedir(dir);
    return rmdir(path) == 0;
}

/* The old directory steps aside, so that the new one can have its name; if that fails it comes
 * back. */
static int replace(const mha_outdir *d, char *aside, size_t size)
{
    mha_temporary_name(aside, size, d->path);
    if (rename(d->path, aside) != 0)
        return errno;
    if (rename(d->temporary, d->path) == 0)
        return 0;
    int reason = errno;
    rename(aside, d->path);
    aside[0] = '\0';
    return reason;
}

mha_status mha_outdir_commit(mha_outdir *d, mha_err *err)
{
    char aside[PATH_MAX] = "";
    mha_status status = MHA_OK;
    /* a directory that is not there, or empty, is replaced by the rename itself */
    int reason = rename(d->temporary, d->path) == 0 ? 0 : errno;
    if ((reason == ENOTEMPTY || reason == EEXIST) && d->force)
        reason = replace(d, aside, sizeof aside);
    if (reason != 0) {
        status = mha_fail(err, MHA_ERR_IO, "%s: %s", d->path, strerror(reason));
        remove_place(d->place);
    } else if (aside[0] != '\0' && !tree_remove(aside, 2)) {
        status = mha_fail(err, MHA_ERR_IO, "%s: what it held before is now %s and stays there",
                          d->path, aside);
    }
    handle_reset(d);
    return status;
}

void mha_outdir_abort(mha_outdir *d)
{
    if (d->path != NULL)
        remove_place(d->place);
    handle_reset(d);
}
