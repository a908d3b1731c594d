/* runtime_sim.h - the inside of a simulation: what its files share.
 *
 * Nothing here may depend on addresses, on real time, or on anything else that
 * differs between two runs of one seed. Lists keep the order of events, and
 * every choice is drawn from a stream of the seed. */
#ifndef RUNTIME_SIM_H
#define RUNTIME_SIM_H

#include <stdatomic.h>

#include "fiber_inline.h"
#include "lockstep/simulation.h"
#include "memory_ops.h"
#include "runtime_ops.h"
#include "thread_state.h"

enum {
    SIM_NAME_BYTES = 16, /* with its NUL, as in runtime.h */
    SIM_HOST_BYTES = 48,
    SIM_LINE_BYTES = 240, /* of the log, NUL included */
};

struct sim_thread;

/* Threads in the order in which they came. */
struct sim_list {
    struct sim_thread *first, *last; /* borrow; by `next` */
    size_t n;
};

struct sim_timer {
    int64_t at; /* true time */
    uint64_t sequence;
    size_t place;              /* in the heap, from 1; 0: not in it */
    struct sim_thread *thread; /* whose deadline it is; NULL: it is a call */
    void (*fn)(void *arg);
    void *arg;
    struct sim_timer *next; /* among spare calls */
};

enum sim_wait {
    SIM_RUNS,
    SIM_WAITS_MUTEX,
    SIM_WAITS_COND,
    SIM_WAITS_END, /* of a thread */
    SIM_WAITS_WORDS,
    SIM_WAITS_BELL,
    SIM_RESTS,
};

struct sim_thread {
    ls_thread base;
    ls_host *host;   /* borrow */
    ls_fiber *fiber; /* own; NULL: it has ended */
    void (*fn)(void *arg);
    void *arg;
    struct thread_state state;
    enum sim_wait wait;
    const void *wait_for; /* borrow: the mutex, or the thread */
    bool timed_out;
    struct sim_list *list; /* borrow: where it is */
    struct sim_thread *next, *previous;
    struct sim_timer timer;
    ls_host *clock;   /* borrow: which one the deadline is on */
    int64_t deadline; /* on it */
    struct sim_list joiners;
    struct sim_thread *younger, *older; /* all threads */
    char name[SIM_NAME_BYTES];
};

struct ls_host {
    struct ls_runtime runtime;
    ls_simulation *simulation; /* borrow */
    ls_host *next;
    uint32_t machine; /* those of one share memory */
    bool paused, dead;
    struct sim_list held; /* could run, were the host not paused */
    bool skewed;
    int64_t offset_ns;
    int64_t drift_ppb;
    int64_t floor_ns; /* the monotonic clock is never below */
    char name[SIM_HOST_BYTES];
};

struct sim_watch {
    void (*check)(void *self, ls_simulation *simulation);
    void *self;
};

struct ls_simulation {
    ls_host outside; /* the runtime without a host */
    ls_host *hosts;  /* own */
    int64_t now;
    int64_t limit_ns;
    int64_t interrupt_at; /* a thread that sees this time lets others run */

    struct ls_rng schedule, entropy, faults;
    uint32_t spread;       /* a thread is interrupted each so many calls */
    uint32_t until_switch; /* calls that are left */

    ls_fiber_pool *stacks; /* own */
    struct fiber_point scheduler;
    struct sim_thread *current;    /* borrow; NULL: the scheduler runs */
    _Atomic(ls_host *) running_on; /* of it; for those who look from outside */
    struct sim_thread *oldest, *youngest; /* own */
    size_t n_threads, n_alive;
    struct sim_thread **ready; /* own; in no order that matters */
    size_t n_ready, ready_capacity;
    bool running, failed;

    struct sim_timer **heap; /* own; from 1 */
    size_t n_timers, n_calls, heap_capacity;
    struct sim_timer *spare; /* own: calls that were made, for others to come */
    uint64_t n_timed;        /* gives the sequence */

    ls_memory *memories; /* borrow: mapped now */
    uint64_t n_memories;
    struct sim_offer *offers;   /* borrow: of those who made them */
    struct sim_waiter *waiters; /* borrow: on the stacks of those who wait */

    struct sim_watch *watches; /* own */
    size_t n_watches;

    FILE *log; /* borrow */
    uint64_t hash;
    char (*lines)[SIM_LINE_BYTES]; /* own; a ring */
    size_t keep;
    uint64_t n_lines;
    bool violated;
    char violation[LS_ERROR_TEXT_MAX];
};

/* runtime_sim.c */
extern const struct ls_runtime_ops ls_sim_ops;

/* runtime_sim_memory.c */
extern const struct ls_memory_ops ls_memory_sim;

static inline ls_host *sim_host(ls_runtime *runtime)
{
    return (ls_host *)(void *)runtime;
}

/* Even in [0, bound). The bias is below bound / 2^32. */
static inline uint32_t sim_draw(struct ls_rng *rng, uint32_t bound)
{
    return (uint32_t)(((ls_rng_next(rng) >> 32) * bound) >> 32);
}

/* runtime_sim_schedule.c: who runs next. */
void ls_sim_append(struct sim_list *list, struct sim_thread *thread);
/* It can run from now on. */
void ls_sim_wake(struct sim_thread *thread);
/* Wake one of those that wait, drawn from the seed; or all of them. */
void ls_sim_wake_one(ls_simulation *simulation, struct sim_list *list);
void ls_sim_wake_all(struct sim_list *list);
/* The current thread waits in a list (NULL: in none) until it is woken, or the
 * deadline on the host's clock has passed: then false. what: for people. */
bool ls_sim_wait(ls_host *clock, struct sim_list *list, enum sim_wait why,
                 const void *what, int64_t deadline);
/* Let others run, if it is time for it. Does nothing in the scheduler. */
void ls_sim_may_switch(ls_simulation *simulation);
/* Let others run. */
void ls_sim_switch(ls_simulation *simulation);
int ls_sim_schedule(ls_simulation *simulation);

/* runtime_sim_thread.c */
int ls_sim_spawn(ls_runtime *runtime, ls_thread **out, const char *name,
                 void (*fn)(void *arg), void *arg);
int ls_sim_join(ls_thread *thread, int64_t deadline);
bool ls_sim_is_current(const ls_thread *thread);
void ls_sim_thread_free(ls_simulation *simulation, struct sim_thread *thread);
/* Stops the program: somebody outside of all threads would have to wait. */
_Noreturn void ls_sim_cannot_wait(const ls_simulation *simulation,
                                  const char *what);

/* runtime_sim_sync.c */
int ls_sim_mutex_init(ls_mutex *mutex);
void ls_sim_mutex_fini(ls_mutex *mutex);
void ls_sim_mutex_lock(ls_mutex *mutex);
void ls_sim_mutex_unlock(ls_mutex *mutex);
int ls_sim_cond_init(ls_cond *cond);
void ls_sim_cond_fini(ls_cond *cond);
void ls_sim_cond_signal(ls_cond *cond);
void ls_sim_cond_broadcast(ls_cond *cond);
int ls_sim_cond_wait(ls_cond *cond, ls_mutex *mutex, int64_t deadline);
/* NULL: nobody. */
const struct sim_thread *ls_sim_mutex_owner(const ls_mutex *mutex);

/* runtime_sim_timer.c: what happens at a time. */
/* So that no later timer needs memory. */
int ls_sim_timers_reserve(ls_simulation *simulation, size_t n);
void ls_sim_timer_start(ls_simulation *simulation, struct sim_timer *timer,
                        int64_t at);
void ls_sim_timer_stop(ls_simulation *simulation, struct sim_timer *timer);
/* Does what is due. */
void ls_sim_timers_fire(ls_simulation *simulation);

/* runtime_sim_host.c: hosts and their clocks. */
int64_t ls_sim_clock(const ls_host *host);
int64_t ls_sim_wall_clock(const ls_host *host);
/* The first true time at which the host's clock has come to `deadline`. */
int64_t ls_sim_true_time(const ls_host *host, int64_t deadline);

/* runtime_sim_log.c */
void ls_sim_check(ls_simulation *simulation);
/* The error of a run that cannot go on, with who waits for what. */
int ls_sim_stuck(ls_simulation *simulation, int status, const char *why);

#endif
