/* pool.c: worker threads behind one mutex and two condition variables. Tasks are handed out one by
 * one in order; they are coarse (a tile, a head, a document), so the lock is never the cost. It may
 * not decide anything from the number of threads that a caller could see in its results. */
#include "base/pool.h"

#include "base/fail.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 1024

struct worker {
    struct mha_pool *pool;
    size_t index;
    pthread_t thread;
};

struct mha_pool {
    size_t threads;
    struct worker *workers; /* [threads], of which the first is the caller and has no thread */
    size_t started;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* All below is guarded by the lock. */
    bool quit;
    unsigned long round; /* counts the runs, so that a sleeping worker knows a new one */
    size_t busy;         /* workers that have not finished with this round */
    mha_task task;
    void *context;
    size_t count, next;
    mha_status status; /* of the failed task with the smallest index so far */
    size_t failed;
    mha_err error;
};

static size_t processors_allowed(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (size_t)CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (size_t)n : 1;
}

/* Takes and runs tasks until none is left or one has failed. Called with the lock held. */
static void tasks_drain(mha_pool *p, size_t worker)
{
    while (p->next < p->count && p->status == MHA_OK) {
        size_t index = p->next++;
        pthread_mutex_unlock(&p->lock);
        mha_err err = {0};
        mha_status status = p->task(p->context, index, worker, &err);
        pthread_mutex_lock(&p->lock);
        /* Handed out in order, the smallest failing index has always been started by now, so the
         * smallest of those that fail does not depend on timing. */
        if (status != MHA_OK && (p->status == MHA_OK || index < p->failed)) {
            p->status = status;
            p->failed = index;
            p->error = err;
        }
    }
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    mha_pool *p = w->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && p->round == seen)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->quit)
            break;
        seen = p->round;
        tasks_drain(p, w->index);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals that report no fault of the thread itself belong to the program's own thread. */
static void signals_block(sigset_t *old)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

static mha_status workers_start(mha_pool *p, mha_err *err)
{
    sigset_t old;
    int reason = 0;
    signals_block(&old);
    for (p->started = 1; p->started < p->threads; p->started++) {
        struct worker *w = &p->workers[p->started];
        *w = (struct worker){.pool = p, .index = p->started};
        reason = pthread_create(&w->thread, NULL, worker_main, w);
        if (reason != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (reason != 0)
        return mha_fail(err, MHA_ERR_NOMEM, "cannot start thread %zu of %zu: %s", p->started + 1,
                        p->threads, strerror(reason));
    return MHA_OK;
}

mha_status mha_pool_new(mha_pool **out, size_t threads, mha_err *err)
{
    void *memory = NULL, *workers = NULL;
    *out = NULL;
    if (threads > MAX_THREADS)
        return mha_fail(err, MHA_ERR_ARG, "%zu threads: at most %d", threads, MAX_THREADS);
    if (threads == 0)
        threads = processors_allowed();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    MHA_TRY(mha_alloc(&memory, 1, sizeof(mha_pool), err));
    mha_pool *p = memory;
    mha_status status = mha_alloc(&workers, threads, sizeof *p->workers, err);
    if (status != MHA_OK) {
        mha_free(p);
        return status;
    }
    p->threads = threads;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    status = workers_start(p, err);
    if (status != MHA_OK) {
        mha_pool_free(p);
        return status;
    }
    *out = p;
    return MHA_OK;
}

void mha_pool_free(mha_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 1; i < p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    mha_free(p->workers);
    mha_free(p);
}

size_t mha_pool_threads(const mha_pool *p)
{
    return p->threads;
}

mha_status mha_pool_run(mha_pool *p, size_t count, mha_task task, void *context, mha_err *err)
{
    if (count == 0)
        return MHA_OK;
    pthread_mutex_lock(&p->lock);
    p->task = task;
    p->context = context;
    p->count = count;
    p->next = 0;
    p->status = MHA_OK;
    if (p->threads > 1 && count > 1) {
        p->busy = p->threads - 1;
        p->round++;
        pthread_cond_broadcast(&p->work);
    }
    tasks_drain(p, 0);
    while (p->busy > 0)
        pthread_cond_wait(&p->done, &p->lock);
    mha_status status = p->status;
    if (status != MHA_OK && err)
        *err = p->error;
    pthread_mutex_unlock(&p->lock);
    return status;
}
