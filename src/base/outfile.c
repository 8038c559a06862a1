/* outfile.c: outputs that appear whole or not at all. It keeps a process-wide table of temporary
 * names, because a Ctrl-C handler has no other way to find them; the names are copied into the
 * table, so that the handler never follows a pointer that another thread frees. */
#include "base/outfile.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_OPEN   32
#define NAME_TRIES 16

enum { PLACE_FREE, PLACE_TAKEN, PLACE_NAMED };

static struct {
    atomic_int state;
    char name[PATH_MAX];
} temporaries[MAX_OPEN];

static mha_status temporary_register(const char *name, mha_err *err)
{
    size_t n = strlen(name) + 1;
    if (n > PATH_MAX)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", name, strerror(ENAMETOOLONG));
    for (size_t i = 0; i < MAX_OPEN; i++) {
        int expected = PLACE_FREE;
        if (!atomic_compare_exchange_strong(&temporaries[i].state, &expected, PLACE_TAKEN))
            continue;
        memcpy(temporaries[i].name, name, n);
        atomic_store(&temporaries[i].state, PLACE_NAMED);
        return MHA_OK;
    }
    return mha_fail(err, MHA_ERR_LIMIT, "%s: more than %d output files at once", name, MAX_OPEN);
}

static void temporary_forget(const char *name)
{
    for (size_t i = 0; i < MAX_OPEN; i++)
        if (atomic_load(&temporaries[i].state) == PLACE_NAMED &&
            strcmp(temporaries[i].name, name) == 0)
            atomic_store(&temporaries[i].state, PLACE_FREE);
}

void mha_outfile_abort_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++)
        if (atomic_load(&temporaries[i].state) == PLACE_NAMED)
            unlink(temporaries[i].name);
}

/* Frees what the handle holds and zeroes it; the stream is closed already. */
static void handle_reset(mha_outfile *f)
{
    if (f->temporary)
        temporary_forget(f->temporary);
    mha_free(f->temporary);
    mha_free(f->path);
    *f = (mha_outfile){0};
}

void mha_temporary_name(char *out, size_t size, const char *path)
{
    uint64_t x;
    if (getentropy(&x, sizeof x) != 0) {
        struct timespec now = {0};
        clock_gettime(CLOCK_REALTIME, &now);
        x = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16;
    }
    snprintf(out, size, "%s.%016" PRIx64 ".tmp", path, x);
}

/* Creates PATH.NUMBER.tmp. Plain open and not mkstemp: the file gets the permissions that the
 * user's umask gives to any other file. */
static mha_status temporary_create(mha_outfile *f, mha_err *err)
{
    size_t n = strlen(f->path) + MHA_TEMPORARY_SUFFIX;
    void *name = NULL;
    int fd = -1, reason = 0;
    MHA_TRY(mha_alloc(&name, n, 1, err));
    f->temporary = name;
    for (int i = 0; i < NAME_TRIES && fd < 0; i++) {
        mha_temporary_name(f->temporary, n, f->path);
        /* Known before it exists, so that no signal in between leaves it behind. */
        MHA_TRY(temporary_register(f->temporary, err));
        fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        reason = errno;
        if (fd < 0)
            temporary_forget(f->temporary);
        if (fd < 0 && reason != EEXIST)
            break;
    }
    if (fd < 0)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", f->path, strerror(reason));
    f->stream = fdopen(fd, "wb");
    if (f->stream)
        return MHA_OK;
    reason = errno;
    close(fd);
    unlink(f->temporary);
    return mha_fail(err, MHA_ERR_IO, "%s: %s", f->path, strerror(reason));
}

/* Devices and pipes cannot be replaced by a rename, and must not be: they are written to. */
static mha_status device_open(mha_outfile *f, mha_err *err)
{
    f->stream = fopen(f->path, "wbe");
    if (!f->stream)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", f->path, strerror(errno));
    return MHA_OK;
}

/* A symbolic link stays: the file behind it is replaced. */
static mha_status path_resolve(mha_outfile *f, mha_err *err)
{
    char *resolved = realpath(f->path, NULL);
    if (!resolved)
        return MHA_OK;
    char *copy = NULL;
    mha_status status = mha_strdup(&copy, resolved, err);
    free(resolved);
    if (status != MHA_OK)
        return status;
    mha_free(f->path);
    f->path = copy;
    return MHA_OK;
}

static mha_status target_open(mha_outfile *f, mha_err *err)
{
    struct stat info;
    if (f->path[0] == '\0')
        return mha_fail(err, MHA_ERR_IO, "an empty file name");
    if (stat(f->path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return mha_fail(err, MHA_ERR_IO, "%s: %s", f->path, strerror(EISDIR));
        if (!S_ISREG(info.st_mode))
            return device_open(f, err);
        if (!f->force)
            return mha_fail(err, MHA_ERR_IO, "%s exists; --force overwrites", f->path);
        MHA_TRY(path_resolve(f, err));
    }
    return temporary_create(f, err);
}

mha_status mha_outfile_open(mha_outfile *f, const char *path, bool force, mha_err *err)
{
    *f = (mha_outfile){.force = force};
    bool standard = strcmp(path, "-") == 0;
    mha_status status = mha_strdup(&f->path, standard ? "standard output" : path, err);
    if (status == MHA_OK && standard)
        f->stream = stdout;
    else if (status == MHA_OK)
        status = target_open(f, err);
    if (status != MHA_OK)
        handle_reset(f);
    return status;
}

mha_status mha_outfile_write(mha_outfile *f, const void *bytes, size_t n, mha_err *err)
{
    if (n > 0 && fwrite(bytes, 1, n, f->stream) != n)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", f->path, strerror(errno));
    return MHA_OK;
}

/* Without force a link instead of a rename: it fails when a file of that name has come up since
 * the handle was opened. Where the file system has no links, the rename has to do. */
static int temporary_publish(const mha_outfile *f)
{
    if (!f->force) {
        if (link(f->temporary, f->path) == 0) {
            unlink(f->temporary);
            return 0;
        }
        if (errno == EEXIST)
            return errno;
    }
    return rename(f->temporary, f->path) == 0 ? 0 : errno;
}

mha_status mha_outfile_commit(mha_outfile *f, mha_err *err)
{
    mha_status status = MHA_OK;
    errno = 0;
    bool broken = fflush(f->stream) != 0 || ferror(f->stream);
    int reason = errno;
    if (f->stream != stdout && fclose(f->stream) != 0 && !broken) {
        broken = true;
        reason = errno;
    }
    f->stream = NULL;
    if (!broken && f->temporary) {
        reason = temporary_publish(f);
        broken = reason != 0;
    }
    if (broken) {
        status = reason == EEXIST
                     ? mha_fail(err, MHA_ERR_IO, "%s exists; --force overwrites", f->path)
                     : mha_fail(err, MHA_ERR_IO, "%s: %s", f->path,
                                reason != 0 ? strerror(reason) : "an earlier write failed");
        if (f->temporary)
            unlink(f->temporary);
    }
    handle_reset(f);
    return status;
}

void mha_outfile_abort(mha_outfile *f)
{
    if (f->stream && f->stream != stdout)
        fclose(f->stream);
    if (f->temporary)
        unlink(f->temporary);
    handle_reset(f);
}

mha_status mha_dir_make(const char *path, mha_err *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return MHA_OK;
    int reason = errno;
    if (reason == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_IO, "%s: %s", path, strerror(reason));
}
