/* turns.h - whose turn it is to read what comes: that of the bus thread, or,
 * while that rests, of a thread that waits for what the bus would tell it. */
#ifndef LOCKSTEP_BUS_TURNS_H
#define LOCKSTEP_BUS_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep/node.h"

/* Of turns.c alone. */
struct turns {
    ls_mutex lock;
    enum { TURN_OF_BUS, TURN_FREE, TURN_LENT } state; /* under lock */
    ls_cond *next;    /* the same: of who may read next; NULL: nobody waits */
    atomic_bool lent; /* the state, for who rings */
    _Atomic(const void *) borrower; /* ls_thread_here() */
};

int turns_init(struct turns *turns, ls_runtime *runtime);
void turns_fini(struct turns *turns);

/* The bus thread, or who has borrowed the turn, is about to wait, or has
 * waited: the bus thread lets go of the turn meanwhile. Returns whether to wait
 * at all; or whether the caller has the turn now: if not, it waits on. */
bool turns_rest(ls_node *node, bool begins);
/* Whether the caller has borrowed it. */
bool turns_is_borrower(const ls_node *node);

/* Borrow it before something is asked for that will be waited for at once: so
 * that no answer finds the bus thread first. Returns false: another thread
 * reads now. */
bool turns_borrow(ls_node *node);
void turns_give_back(ls_node *node);
/* Wait until is_over(), which is asked with the mutex held, and let go of that
 * meanwhile, as ls_cond_wait() does; read what comes, and do all that the bus
 * thread does. While another thread does that, wait for `cond`. Whoever changes
 * what is_over() looks at signals `cond`, then calls turns_ring().
 * Errors: LS_ETIMEDOUT, without a text. */
int turns_wait(ls_node *node, ls_cond *cond, ls_mutex *mutex,
               bool (*is_over)(void *self), void *self, int64_t deadline);
/* Have the borrower ask again. Any thread. */
void turns_ring(ls_node *node);

#endif
