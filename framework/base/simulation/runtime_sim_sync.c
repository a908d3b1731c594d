/* Locks and conditions. Design notes:
 *
 * - A lock that is let go wakes one of those that wait for it, but does not
 *   become its: others may take it first, as on threads.
 * - A signal wakes any of those that wait, drawn from the seed. POSIX promises
 *   no order, so code that needs one is wrong, and shows it here. */
#include "runtime_sim.h"

#include <assert.h>
#include <string.h>

struct sim_mutex {
    struct sim_thread *owner; /* borrow; NULL: free */
    struct sim_list waiting;
};

struct sim_cond {
    struct sim_list waiting;
};

_Static_assert(sizeof(struct sim_mutex) <= sizeof(((ls_mutex *)NULL)->os),
               "a sim_mutex fits into an ls_mutex");
_Static_assert(sizeof(struct sim_cond) <= sizeof(((ls_cond *)NULL)->os),
               "a sim_cond fits into an ls_cond");

/* Who holds what is locked outside of all threads. */
static struct sim_thread nobody = {.name = "outside"};

static struct sim_mutex *mutex_of(ls_mutex *mutex)
{
    return (struct sim_mutex *)(void *)mutex->os.bytes;
}

static struct sim_cond *cond_of(ls_cond *cond)
{
    return (struct sim_cond *)(void *)cond->os.bytes;
}

static ls_simulation *simulation_of(ls_runtime *runtime)
{
    return sim_host(runtime)->simulation;
}

static struct sim_thread *caller_in(const ls_simulation *simulation)
{
    return simulation->current != NULL ? simulation->current : &nobody;
}

int ls_sim_mutex_init(ls_mutex *mutex)
{
    memset(&mutex->os, 0, sizeof mutex->os);
    return LS_OK;
}

void ls_sim_mutex_fini(ls_mutex *mutex)
{
    assert(mutex_of(mutex)->owner == NULL ||
           simulation_of(mutex->runtime)->failed);
    (void)mutex;
}

/* Without a switch before. */
static void lock(ls_mutex *mutex)
{
    struct sim_mutex *const self = mutex_of(mutex);
    ls_host *const host = sim_host(mutex->runtime);
    while (self->owner != NULL) {
        if (host->simulation->current == NULL)
            ls_sim_cannot_wait(host->simulation, "wait for a lock");
        (void)ls_sim_wait(host, &self->waiting, SIM_WAITS_MUTEX, mutex,
                          LS_FOREVER);
    }
    self->owner = caller_in(host->simulation);
}

static void unlock(ls_mutex *mutex)
{
    struct sim_mutex *const self = mutex_of(mutex);
    ls_simulation *const simulation = simulation_of(mutex->runtime);
    assert(self->owner == caller_in(simulation));
    self->owner = NULL;
    ls_sim_wake_one(simulation, &self->waiting);
}

void ls_sim_mutex_lock(ls_mutex *mutex)
{
    ls_sim_may_switch(simulation_of(mutex->runtime));
    lock(mutex);
}

void ls_sim_mutex_unlock(ls_mutex *mutex)
{
    /* Once it is free, another thread may end the lock's life. */
    ls_simulation *const simulation = simulation_of(mutex->runtime);
    unlock(mutex);
    ls_sim_may_switch(simulation);
}

const struct sim_thread *ls_sim_mutex_owner(const ls_mutex *mutex)
{
    return ((const struct sim_mutex *)(const void *)mutex->os.bytes)->owner;
}

int ls_sim_cond_init(ls_cond *cond)
{
    memset(&cond->os, 0, sizeof cond->os);
    return LS_OK;
}

void ls_sim_cond_fini(ls_cond *cond)
{
    assert(cond_of(cond)->waiting.n == 0 ||
           simulation_of(cond->runtime)->failed);
    (void)cond;
}

void ls_sim_cond_signal(ls_cond *cond)
{
    ls_simulation *const simulation = simulation_of(cond->runtime);
    ls_sim_wake_one(simulation, &cond_of(cond)->waiting);
    ls_sim_may_switch(simulation);
}

void ls_sim_cond_broadcast(ls_cond *cond)
{
    ls_simulation *const simulation = simulation_of(cond->runtime);
    ls_sim_wake_all(&cond_of(cond)->waiting);
    ls_sim_may_switch(simulation);
}

int ls_sim_cond_wait(ls_cond *cond, ls_mutex *mutex, int64_t deadline)
{
    if (deadline == LS_NOW)
        return LS_ETIMEDOUT;
    unlock(mutex);
    const bool woken =
        ls_sim_wait(sim_host(cond->runtime), &cond_of(cond)->waiting,
                    SIM_WAITS_COND, cond, deadline);
    lock(mutex);
    return woken ? LS_OK : LS_ETIMEDOUT;
}
