/* The threads of a simulation: fibers. */
#include "runtime_sim.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void ls_sim_cannot_wait(const ls_simulation *simulation,
                                  const char *what)
{
    (void)fprintf(stderr,
                  "simulation: at %lld ns, somebody outside of all its threads "
                  "would have to %s; only what ls_simulation_run() was given, "
                  "and threads that were spawned there, can\n",
                  (long long)simulation->now, what);
    abort();
}

static void thread_main(struct fiber_point *point)
{
    ls_fiber *const fiber = fiber_begun(point);
    struct sim_thread *const thread = fiber->arg;
    ls_simulation *const simulation = thread->host->simulation;
    thread->fn(thread->arg);
    ls_simulation_note(simulation, "ends");
    simulation->n_alive--;
    fiber->done = true;
    ls_sim_wake_all(&thread->joiners);
    fiber_leave(&fiber->self, &simulation->scheduler);
}

/* Room for all threads among those that can run. */
static int reserve_ready(ls_simulation *simulation)
{
    if (simulation->n_threads < simulation->ready_capacity)
        return LS_OK;
    const size_t capacity =
        simulation->ready_capacity == 0 ? 32 : 2 * simulation->ready_capacity;
    struct sim_thread **const ready =
        realloc(simulation->ready, capacity * sizeof(struct sim_thread *));
    if (ready == NULL)
        return LS_ENOMEM;
    simulation->ready = ready;
    simulation->ready_capacity = capacity;
    return LS_OK;
}

static void add_thread(ls_simulation *simulation, struct sim_thread *thread)
{
    thread->older = simulation->youngest;
    if (simulation->youngest != NULL)
        simulation->youngest->younger = thread;
    else
        simulation->oldest = thread;
    simulation->youngest = thread;
    simulation->n_threads++;
    simulation->n_alive++;
}

int ls_sim_spawn(ls_runtime *runtime, ls_thread **out, const char *name,
                 void (*fn)(void *arg), void *arg)
{
    ls_host *const host = sim_host(runtime);
    ls_simulation *const simulation = host->simulation;
    struct sim_thread *thread = NULL;
    if (reserve_ready(simulation) == LS_OK &&
        ls_sim_timers_reserve(simulation, simulation->n_threads + 1 +
                                              simulation->n_calls) == LS_OK)
        thread = calloc(1, sizeof *thread);
    if (thread == NULL ||
        ls_fiber_create_main(&thread->fiber, simulation->stacks, thread_main,
                             thread) < 0) {
        free(thread);
        return ls_error(LS_ENOMEM, "no memory for thread '%s'", name);
    }
    thread->base.runtime = runtime;
    thread->host = host;
    thread->fn = fn;
    thread->arg = arg;
    thread->state.runtime = runtime;
    thread->state.node = -1;
    thread->timer.thread = thread;
    memcpy(thread->name, name, strnlen(name, SIM_NAME_BYTES - 1));
    thread->state.name = thread->name;
    add_thread(simulation, thread);
    *out = &thread->base;
    ls_simulation_note(simulation, "spawns %s/%s", host->name, thread->name);
    ls_sim_wake(thread);
    ls_sim_may_switch(simulation);
    return LS_OK;
}

void ls_sim_thread_free(ls_simulation *simulation, struct sim_thread *thread)
{
    ls_fiber_destroy(&thread->fiber);
    if (thread->older != NULL)
        thread->older->younger = thread->younger;
    else
        simulation->oldest = thread->younger;
    if (thread->younger != NULL)
        thread->younger->older = thread->older;
    else
        simulation->youngest = thread->older;
    simulation->n_threads--;
    free(thread);
}

int ls_sim_join(ls_thread *base, int64_t deadline)
{
    struct sim_thread *const thread = (struct sim_thread *)(void *)base;
    ls_simulation *const simulation = thread->host->simulation;
    if (thread->fiber != NULL && !ls_sim_wait(thread->host, &thread->joiners,
                                              SIM_WAITS_END, thread, deadline))
        return ls_error(LS_ETIMEDOUT, "thread '%s' still runs", thread->name);
    ls_sim_thread_free(simulation, thread);
    return LS_OK;
}

bool ls_sim_is_current(const ls_thread *base)
{
    const struct sim_thread *const thread =
        (const struct sim_thread *)(const void *)base;
    return thread->host->simulation->current == thread;
}
