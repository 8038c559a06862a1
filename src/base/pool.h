/* pool.h: worker threads for loops whose pieces do not depend on each other.
 * The split into tasks never depends on the number of threads, so results do not either. */
#ifndef MHA_BASE_POOL_H
#define MHA_BASE_POOL_H

#include "mha/err.h"
#include <stddef.h>

typedef struct mha_pool mha_pool;

/* One task: 0 <= task < count, 0 <= worker < mha_pool_threads. A status other than MHA_OK stops
 * further tasks from being started. */
typedef mha_status (*mha_task)(void *context, size_t task, size_t worker, mha_err *err);

/* threads = 0: one for each processor this process may use. The calling thread is worker 0. */
mha_status mha_pool_new(mha_pool **out, size_t threads, mha_err *err);
void mha_pool_free(mha_pool *p);
size_t mha_pool_threads(const mha_pool *p);
/* Runs tasks 0..count-1, handed out in order, and waits for all. The error returned is that of the
 * failed task with the smallest index, so it does not depend on timing. Not reentrant. */
mha_status mha_pool_run(mha_pool *p, size_t count, mha_task task, void *context, mha_err *err);

#endif
