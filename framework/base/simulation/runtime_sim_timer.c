/* A binary heap of what is to happen, by time and then by order of asking. */
#include "runtime_sim.h"

#include <stdlib.h>

static bool is_before(const struct sim_timer *a, const struct sim_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void put(ls_simulation *simulation, size_t place,
                struct sim_timer *timer)
{
    simulation->heap[place] = timer;
    timer->place = place;
}

static void sift_up(ls_simulation *simulation, struct sim_timer *timer)
{
    size_t place = timer->place;
    for (; place > 1 && is_before(timer, simulation->heap[place / 2]);
         place /= 2)
        put(simulation, place, simulation->heap[place / 2]);
    put(simulation, place, timer);
}

static void sift_down(ls_simulation *simulation, struct sim_timer *timer)
{
    size_t place = timer->place;
    for (;;) {
        size_t child = 2 * place;
        if (child > simulation->n_timers)
            break;
        if (child < simulation->n_timers &&
            is_before(simulation->heap[child + 1], simulation->heap[child]))
            child++;
        if (is_before(timer, simulation->heap[child]))
            break;
        put(simulation, place, simulation->heap[child]);
        place = child;
    }
    put(simulation, place, timer);
}

static void set_interrupt(ls_simulation *simulation)
{
    simulation->interrupt_at = simulation->limit_ns;
    if (simulation->n_timers > 0 &&
        simulation->heap[1]->at < simulation->interrupt_at)
        simulation->interrupt_at = simulation->heap[1]->at;
}

int ls_sim_timers_reserve(ls_simulation *simulation, size_t n)
{
    if (n < simulation->heap_capacity)
        return LS_OK;
    size_t capacity =
        simulation->heap_capacity == 0 ? 64 : simulation->heap_capacity;
    while (capacity <= n)
        capacity *= 2;
    struct sim_timer **const heap =
        realloc(simulation->heap, capacity * sizeof(struct sim_timer *));
    if (heap == NULL)
        return LS_ENOMEM;
    simulation->heap = heap;
    simulation->heap_capacity = capacity;
    return LS_OK;
}

void ls_sim_timer_start(ls_simulation *simulation, struct sim_timer *timer,
                        int64_t at)
{
    timer->at = at;
    timer->sequence = simulation->n_timed++;
    put(simulation, ++simulation->n_timers, timer);
    sift_up(simulation, timer);
    set_interrupt(simulation);
}

void ls_sim_timer_stop(ls_simulation *simulation, struct sim_timer *timer)
{
    if (timer->place == 0)
        return;
    struct sim_timer *const last = simulation->heap[simulation->n_timers--];
    if (last != timer) {
        put(simulation, timer->place, last);
        sift_up(simulation, last);
        sift_down(simulation, last);
    }
    timer->place = 0;
    set_interrupt(simulation);
}

static void fire(ls_simulation *simulation, struct sim_timer *timer)
{
    if (timer->thread != NULL) {
        timer->thread->timed_out = true;
        ls_sim_wake(timer->thread);
        return;
    }
    ls_sim_timer_stop(simulation, timer);
    simulation->n_calls--;
    timer->next = simulation->spare;
    simulation->spare = timer;
    timer->fn(timer->arg);
}

void ls_sim_timers_fire(ls_simulation *simulation)
{
    while (simulation->n_timers > 0 &&
           simulation->heap[1]->at <= simulation->now)
        fire(simulation, simulation->heap[1]);
}

static struct sim_timer *take_call(ls_simulation *simulation)
{
    struct sim_timer *call = simulation->spare;
    if (ls_sim_timers_reserve(simulation, simulation->n_threads + 1 +
                                              simulation->n_calls) != LS_OK)
        return NULL;
    if (call == NULL)
        return calloc(1, sizeof *call);
    simulation->spare = call->next;
    return call;
}

int ls_simulation_at(ls_simulation *simulation, int64_t at,
                     void (*fn)(void *arg), void *arg)
{
    struct sim_timer *call = take_call(simulation);
    if (call == NULL)
        return ls_error(LS_ENOMEM, "no memory for a call at a virtual time");
    call->fn = fn;
    call->arg = arg;
    simulation->n_calls++;
    ls_sim_timer_start(simulation, call,
                       at > simulation->now ? at : simulation->now);
    return LS_OK;
}
