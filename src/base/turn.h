/* turn.h: keeps deliveries of parallel tasks in order: ticket t waits until tickets 0 … t − 1 are
 * done. Tasks must be started in ticket order (as mha_pool_run does), or they may wait for ever. */
#ifndef MHA_BASE_TURN_H
#define MHA_BASE_TURN_H

#include <pthread.h>
#include <stddef.h>

typedef struct mha_turn {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t next;
} mha_turn;

void mha_turn_init(mha_turn *t);
void mha_turn_release(mha_turn *t);
void mha_turn_wait(mha_turn *t, size_t ticket);
/* Waits for the ticket's turn when it has not come yet, then passes it on. Exactly once a ticket.
 */
void mha_turn_done(mha_turn *t, size_t ticket);

#endif
