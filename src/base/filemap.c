/* filemap.c: read-only files, mapped when they can be and read otherwise.
 *
 * This file and outfile.c hold the only process-wide state of the library, because the system's
 * signals are process-wide: a SIGBUS handler is given an address and nothing else, so it needs a
 * table of what is mapped where. The table has a fixed size (the handler may neither allocate nor
 * lock), is written under a mutex and read without one. A file that finds no free place in it is
 * read into memory instead. */
#include "base/filemap.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_MAPPINGS 1024

struct mapping {
    atomic_uintptr_t start; /* 0 marks a free place */
    atomic_uintptr_t end;   /* of the last page, not of the file */
    atomic_bool torn;       /* a page was gone when it was read */
    int fd;                 /* kept to ask for the size again; guarded by the mutex */
};

static struct mapping mappings[MAX_MAPPINGS];
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction former_action;
static uintptr_t page_size;

static struct mapping *mapping_find(uintptr_t address)
{
    for (size_t i = 0; i < MAX_MAPPINGS; i++) {
        struct mapping *m = &mappings[i];
        uintptr_t start = atomic_load(&m->start);
        uintptr_t end = atomic_load(&m->end);
        /* Asked twice, in case the place changed hands between the two loads. */
        if (start != 0 && address >= start && address < end && atomic_load(&m->start) == start)
            return m;
    }
    return NULL;
}

static bool mapping_add(uintptr_t start, size_t size, int fd)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    bool added = false;
    pthread_mutex_lock(&mappings_lock);
    for (size_t i = 0; i < MAX_MAPPINGS && !added; i++) {
        struct mapping *m = &mappings[i];
        if (atomic_load(&m->start) != 0)
            continue;
        m->fd = fd;
        atomic_store(&m->torn, false);
        atomic_store(&m->end, (start + size + page - 1) & ~(page - 1));
        atomic_store(&m->start, start);
        added = true;
    }
    pthread_mutex_unlock(&mappings_lock);
    return added;
}

/* Hands the fault to whoever was there before us; the default action comes from the return to the
 * faulting instruction without a handler. */
static void fault_pass_on(int signal_number, siginfo_t *info, void *context)
{
    if (former_action.sa_flags & SA_SIGINFO) {
        former_action.sa_sigaction(signal_number, info, context);
    } else if (former_action.sa_handler == SIG_DFL || former_action.sa_handler == SIG_IGN) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &standard, NULL);
    } else {
        former_action.sa_handler(signal_number);
    }
}

/* Puts zero pages from the missing one to the end of the mapping, since a cut file has none of
 * those either, and marks the mapping. Only system calls and lock-free atomics here. */
static void fault_handle(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);
    struct mapping *m = mapping_find((uintptr_t)info->si_addr);
    if (!m || mmap((void *)page, atomic_load(&m->end) - page, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fault_pass_on(signal_number, info, context);
    else
        atomic_store(&m->torn, true);
    errno = saved;
}

static void guard_install(void)
{
    struct sigaction action = {.sa_sigaction = fault_handle, .sa_flags = SA_SIGINFO};
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &former_action);
}

void mha_filemap_guard(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_install);
}

/* O_NONBLOCK: a pipe without a writer is at its end and not a wait for ever. */
static mha_status file_open(int *fd, struct stat *info, const char *path, mha_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return mha_fail(err, MHA_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(*fd, info) == 0) {
        fcntl(*fd, F_SETFL, O_RDONLY);
        return MHA_OK;
    }
    mha_status status = mha_fail(err, MHA_ERR_IO, "%s: %s", path, strerror(errno));
    close(*fd);
    return status;
}

/* Reads exactly n bytes. */
static mha_status file_fill(int fd, char *to, size_t n, const char *path, mha_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, to + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return mha_fail(err, MHA_ERR_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            return mha_fail(err, MHA_ERR_IO, "%s: cut while it was read (%zu of %zu bytes)", path,
                            done, n);
        done += (size_t)got;
    }
    return MHA_OK;
}

static mha_status filemap_fill(mha_filemap *f, int fd, size_t size, mha_err *err)
{
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) {
        if (mapping_add((uintptr_t)p, size, fd)) {
            f->data = p;
            f->size = size;
            return MHA_OK;
        }
        munmap(p, size);
    }
    void *copy = NULL;
    mha_status status = mha_alloc_raw(&copy, size, 1, err);
    if (status == MHA_OK)
        status = file_fill(fd, copy, size, f->path, err);
    if (status != MHA_OK) {
        mha_free(copy);
        return status;
    }
    close(fd);
    f->data = copy;
    f->size = size;
    return MHA_OK;
}

mha_status mha_filemap_open(mha_filemap *f, const char *path, mha_err *err)
{
    int fd;
    struct stat info;
    *f = (mha_filemap){0};
    MHA_TRY(file_open(&fd, &info, path, err));
    mha_status status = MHA_OK;
    if (!S_ISREG(info.st_mode))
        status = mha_fail(err, MHA_ERR_IO, "%s: %s", path,
                          S_ISDIR(info.st_mode) ? strerror(EISDIR) : "not a regular file");
    if (status == MHA_OK)
        status = mha_strdup(&f->path, path, err);
    if (status == MHA_OK && info.st_size > 0)
        status = filemap_fill(f, fd, (size_t)info.st_size, err);
    if (status != MHA_OK || info.st_size == 0)
        close(fd);
    if (status != MHA_OK) {
        mha_free(f->path);
        *f = (mha_filemap){0};
    }
    return status;
}

void mha_filemap_close(mha_filemap *f)
{
    if (f->data) {
        struct mapping *m = mapping_find((uintptr_t)f->data);
        if (m) {
            pthread_mutex_lock(&mappings_lock);
            munmap((void *)atomic_load(&m->start), f->size);
            close(m->fd);
            atomic_store(&m->start, 0);
            pthread_mutex_unlock(&mappings_lock);
        } else {
            mha_free((void *)(uintptr_t)f->data);
        }
    }
    mha_free(f->path);
    *f = (mha_filemap){0};
}

/* The fault alone is not enough: behind the new end of a cut file, the rest of its last page reads
 * as zeros without any fault. */
mha_status mha_filemap_check(const mha_filemap *f, mha_err *err)
{
    const struct mapping *m = f->data ? mapping_find((uintptr_t)f->data) : NULL;
    struct stat info;
    if (!m)
        return MHA_OK;
    if (atomic_load(&m->torn) || fstat(m->fd, &info) != 0 || (size_t)info.st_size < f->size)
        return mha_fail(err, MHA_ERR_IO, "%s: cut while it was read (it had %zu bytes)", f->path,
                        f->size);
    return MHA_OK;
}

static mha_status stream_read(mha_buf *text, int fd, const char *path, mha_err *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return mha_fail(err, MHA_ERR_IO, "%s: %s", path, strerror(errno));
        mha_status status = mha_buf_add(text, chunk, (size_t)got, err);
        if (status == MHA_ERR_LIMIT)
            return mha_fail(err, status, "%s: larger than %zu bytes", path, text->ceiling);
        if (status != MHA_OK || got == 0)
            return status;
    }
}

mha_status mha_file_read(char **out, size_t *size, const char *path, size_t ceiling, mha_err *err)
{
    int fd;
    struct stat info;
    mha_buf text;
    *out = NULL;
    MHA_TRY(file_open(&fd, &info, path, err));
    mha_buf_init(&text, ceiling);
    mha_status status = stream_read(&text, fd, path, err);
    close(fd);
    if (status != MHA_OK) {
        mha_buf_release(&text);
        return status;
    }
    *out = text.data;
    if (size)
        *size = text.size;
    return MHA_OK;
}
