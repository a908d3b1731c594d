/* Which thread of a simulation runs next. */
#include "runtime_sim.h"

#include <assert.h>

/* A switch to another thread takes so long. */
enum { SWITCH_NS = 200, SWITCH_NS_MORE = 1801 };

void ls_sim_append(struct sim_list *list, struct sim_thread *thread)
{
    assert(thread->list == NULL);
    thread->list = list;
    thread->next = NULL;
    thread->previous = list->last;
    if (list->last != NULL)
        list->last->next = thread;
    else
        list->first = thread;
    list->last = thread;
    list->n++;
}

static void remove_thread(struct sim_thread *thread)
{
    struct sim_list *const list = thread->list;
    if (list == NULL)
        return;
    if (thread->previous != NULL)
        thread->previous->next = thread->next;
    else
        list->first = thread->next;
    if (thread->next != NULL)
        thread->next->previous = thread->previous;
    else
        list->last = thread->previous;
    list->n--;
    thread->list = NULL;
}

/* ls_sim_spawn() has made the room. */
static void make_ready(struct sim_thread *thread)
{
    ls_simulation *const simulation = thread->host->simulation;
    if (thread->host->paused) {
        ls_sim_append(&thread->host->held, thread);
        return;
    }
    assert(simulation->n_ready < simulation->ready_capacity);
    simulation->ready[simulation->n_ready++] = thread;
}

void ls_sim_wake(struct sim_thread *thread)
{
    remove_thread(thread);
    ls_sim_timer_stop(thread->host->simulation, &thread->timer);
    thread->wait = SIM_RUNS;
    make_ready(thread);
}

void ls_sim_wake_one(ls_simulation *simulation, struct sim_list *list)
{
    if (list->n == 0)
        return;
    struct sim_thread *thread = list->first;
    if (list->n > 1)
        for (uint32_t i = sim_draw(&simulation->schedule, (uint32_t)list->n);
             i > 0; i--)
            thread = thread->next;
    ls_sim_wake(thread);
}

void ls_sim_wake_all(struct sim_list *list)
{
    while (list->first != NULL)
        ls_sim_wake(list->first);
}

/* From a thread to the scheduler; returns when the thread has its turn. */
static void leave(ls_simulation *simulation)
{
    struct sim_thread *const thread = simulation->current;
    ls_fiber *const running = ls_fiber_running;
    fiber_switch(&thread->fiber->self, &simulation->scheduler);
    ls_fiber_running = running;
}

/* From the scheduler to a thread; returns when it waits or has ended. */
static void enter(ls_simulation *simulation, struct sim_thread *thread)
{
    struct thread_state *const state = ls_thread_state_now;
    ls_fiber *const running = ls_fiber_running;
    ls_thread_state_now = &thread->state;
    ls_fiber_running = NULL;
    simulation->current = thread;
    atomic_store_explicit(&simulation->running_on, thread->host,
                          memory_order_release);
    fiber_switch(&simulation->scheduler, &thread->fiber->self);
    simulation->current = NULL;
    atomic_store_explicit(&simulation->running_on, NULL, memory_order_release);
    ls_fiber_running = running;
    ls_thread_state_now = state;
}

bool ls_sim_wait(ls_host *clock, struct sim_list *list, enum sim_wait why,
                 const void *what, int64_t deadline)
{
    ls_simulation *const simulation = clock->simulation;
    struct sim_thread *const thread = simulation->current;
    if (deadline <= ls_sim_clock(clock)) {
        ls_sim_may_switch(simulation);
        return false;
    }
    if (thread == NULL)
        ls_sim_cannot_wait(simulation, "wait");
    thread->wait = why;
    thread->wait_for = what;
    thread->timed_out = false;
    thread->clock = clock;
    thread->deadline = deadline;
    if (list != NULL)
        ls_sim_append(list, thread);
    if (deadline != LS_FOREVER)
        ls_sim_timer_start(simulation, &thread->timer,
                           ls_sim_true_time(clock, deadline));
    leave(simulation);
    return !thread->timed_out;
}

void ls_sim_switch(ls_simulation *simulation)
{
    make_ready(simulation->current);
    leave(simulation);
}

void ls_sim_may_switch(ls_simulation *simulation)
{
    if (simulation->current == NULL)
        return;
    if (--simulation->until_switch > 0 &&
        simulation->now < simulation->interrupt_at)
        return;
    ls_sim_switch(simulation);
}

/* The next one, drawn from the seed. */
static struct sim_thread *take_ready(ls_simulation *simulation)
{
    size_t at = 0;
    if (simulation->n_ready > 1)
        at = sim_draw(&simulation->schedule, (uint32_t)simulation->n_ready);
    struct sim_thread *const thread = simulation->ready[at];
    simulation->ready[at] = simulation->ready[--simulation->n_ready];
    return thread;
}

static void run_one(ls_simulation *simulation)
{
    struct sim_thread *const thread = take_ready(simulation);
    simulation->now +=
        SWITCH_NS + (int64_t)sim_draw(&simulation->schedule, SWITCH_NS_MORE);
    simulation->until_switch =
        1 + sim_draw(&simulation->schedule, 2 * simulation->spread);
    enter(simulation, thread);
    if (thread->fiber->done)
        ls_fiber_destroy(&thread->fiber);
}

/* Nothing can run before something happens. */
static int jump(ls_simulation *simulation)
{
    ls_sim_check(simulation);
    if (simulation->n_ready > 0)
        return LS_OK;
    if (simulation->n_timers == 0)
        return ls_sim_stuck(simulation, LS_ESTATE, "nothing can run any more");
    const int64_t next = simulation->heap[1]->at;
    if (next > simulation->limit_ns)
        return ls_sim_stuck(simulation, LS_ETIMEDOUT, "virtual time is up");
    if (next > simulation->now)
        simulation->now = next;
    return LS_OK;
}

int ls_sim_schedule(ls_simulation *simulation)
{
    int status = LS_OK;
    while (simulation->n_alive > 0 && status == LS_OK) {
        if (simulation->now > simulation->limit_ns)
            return ls_sim_stuck(simulation, LS_ETIMEDOUT, "virtual time is up");
        ls_sim_timers_fire(simulation);
        if (simulation->n_ready > 0)
            run_one(simulation);
        else
            status = jump(simulation);
    }
    return status;
}
