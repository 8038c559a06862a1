/* turn.c: a counter that tasks wait on. */
#include "base/turn.h"

void mha_turn_init(mha_turn *t)
{
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->moved, NULL);
    t->next = 0;
}

void mha_turn_release(mha_turn *t)
{
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->lock);
}

void mha_turn_wait(mha_turn *t, size_t ticket)
{
    pthread_mutex_lock(&t->lock);
    while (t->next != ticket)
        pthread_cond_wait(&t->moved, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void mha_turn_done(mha_turn *t, size_t ticket)
{
    pthread_mutex_lock(&t->lock);
    while (t->next != ticket)
        pthread_cond_wait(&t->moved, &t->lock);
    t->next++;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
}
