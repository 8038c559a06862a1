/* lock.h: one thread at a time. For short sections only; what must also come in order has turn.h.
 */
#ifndef MHA_BASE_LOCK_H
#define MHA_BASE_LOCK_H

#include <pthread.h>

typedef struct mha_lock {
    pthread_mutex_t mutex;
} mha_lock;

static inline void mha_lock_init(mha_lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

static inline void mha_lock_release(mha_lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static inline void mha_lock_take(mha_lock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void mha_lock_give(mha_lock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

#endif
