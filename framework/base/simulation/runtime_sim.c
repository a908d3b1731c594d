/* Simulations: made, run, destroyed. Design notes:
 *
 * - A thread and the scheduler switch symmetrically, wherever the thread
 * stands: it may have resumed fibers of its own, and wait inside of one.
 * - The record of a thread (thread_state.h) and the fiber that it runs change
 *   with it; all else that it has lies on its stack.
 * - A look at the clock, a lock and a signal may switch, on average once in
 *   `spread` calls. The spread itself follows from the seed: some runs are
 *   nearly sequential, others change at every fourth call, and each finds
 *   mistakes that the others do not. */
#include "runtime_sim.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT (3600 * LS_NS_PER_S)
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
#define STACK_BYTES_DEFAULT (512u * 1024u)
#else
#define STACK_BYTES_DEFAULT (128u * 1024u)
#endif
enum { KEEP_DEFAULT = 64 };

/* A look at the clock takes so long. */
enum { LOOK_NS = 20, LOOK_NS_MORE = 41 };

/* The streams of a seed. */
enum { SCHEDULE = 1, ENTROPY, FAULTS };

static void look_at_clock(ls_simulation *simulation)
{
    simulation->now +=
        LOOK_NS + (int64_t)sim_draw(&simulation->schedule, LOOK_NS_MORE);
    ls_sim_may_switch(simulation);
}

static int64_t sim_now(ls_runtime *runtime)
{
    look_at_clock(sim_host(runtime)->simulation);
    return ls_sim_clock(sim_host(runtime));
}

/* It costs nothing and never switches: what people choose to log changes no
 * run. */
static int64_t sim_wall_now(ls_runtime *runtime)
{
    return ls_sim_wall_clock(sim_host(runtime));
}

static int64_t sim_glance(ls_runtime *runtime)
{
    return ls_sim_clock(sim_host(runtime));
}

static uint64_t sim_entropy(ls_runtime *runtime)
{
    return ls_rng_next(&sim_host(runtime)->simulation->entropy);
}

static void sim_rest_until(ls_runtime *runtime, int64_t deadline)
{
    (void)ls_sim_wait(sim_host(runtime), NULL, SIM_RESTS, NULL, deadline);
}

static int sim_core_count(ls_runtime *runtime)
{
    (void)runtime;
    return LS_CORES_MAX;
}

static double sim_cpus(ls_runtime *runtime)
{
    (void)runtime;
    return 1.0;
}

static int sim_thread_pin(ls_runtime *runtime, int core)
{
    (void)runtime;
    (void)core;
    return LS_OK;
}

const struct ls_runtime_ops ls_sim_ops = {
    .now = sim_now,
    .wall_now = sim_wall_now,
    .glance = sim_glance,
    .entropy = sim_entropy,
    .rest_until = sim_rest_until,
    .thread_spawn = ls_sim_spawn,
    .thread_join = ls_sim_join,
    .thread_is_current = ls_sim_is_current,
    .core_count = sim_core_count,
    .cpus = sim_cpus,
    .thread_pin = sim_thread_pin,
    .mutex_init = ls_sim_mutex_init,
    .mutex_fini = ls_sim_mutex_fini,
    .mutex_lock = ls_sim_mutex_lock,
    .mutex_unlock = ls_sim_mutex_unlock,
    .cond_init = ls_sim_cond_init,
    .cond_fini = ls_sim_cond_fini,
    .cond_signal = ls_sim_cond_signal,
    .cond_broadcast = ls_sim_cond_broadcast,
    .cond_wait = ls_sim_cond_wait,
    .memory = &ls_memory_sim,
};

static void seed_streams(ls_simulation *simulation, uint64_t seed)
{
    ls_rng_seed(&simulation->schedule, seed, SCHEDULE);
    ls_rng_seed(&simulation->entropy, seed, ENTROPY);
    ls_rng_seed(&simulation->faults, seed, FAULTS);
    /* 4, 16, 64 or 256 */
    simulation->spread = 4u << 2 * sim_draw(&simulation->schedule, 4);
    simulation->until_switch =
        1 + sim_draw(&simulation->schedule, 2 * simulation->spread);
}

int ls_simulation_create(ls_simulation **out,
                         const struct ls_simulation_options *options)
{
    *out = NULL;
    const struct ls_simulation_options none = {.seed = 0};
    const struct ls_simulation_options *o = options != NULL ? options : &none;
    ls_simulation *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for a simulation");
    made->outside.runtime.ops = &ls_sim_ops;
    made->outside.simulation = made;
    strcpy(made->outside.name, "-");
    made->limit_ns = o->limit_ns > 0 ? o->limit_ns : LIMIT_DEFAULT;
    made->interrupt_at = made->limit_ns;
    made->log = o->log;
    made->keep = o->keep > 0 ? o->keep : KEEP_DEFAULT;
    seed_streams(made, o->seed);

    made->lines = calloc(made->keep, sizeof *made->lines);
    const size_t stack_bytes =
        o->stack_bytes > 0 ? o->stack_bytes : STACK_BYTES_DEFAULT;
    const int status =
        made->lines == NULL
            ? ls_error(LS_ENOMEM, "no memory for the lines of a simulation")
            : ls_fiber_pool_create(&made->stacks, stack_bytes, SIZE_MAX);
    if (status < 0) {
        ls_simulation_destroy(&made);
        return status;
    }
    *out = made;
    return LS_OK;
}

static void free_calls(ls_simulation *simulation)
{
    for (size_t i = 1; i <= simulation->n_timers; i++)
        if (simulation->heap[i]->thread == NULL)
            free(simulation->heap[i]);
    while (simulation->spare != NULL) {
        struct sim_timer *const call = simulation->spare;
        simulation->spare = call->next;
        free(call);
    }
    free(simulation->heap);
}

void ls_simulation_destroy(ls_simulation **simulation)
{
    if (simulation == NULL || *simulation == NULL)
        return;
    ls_simulation *gone = *simulation;
    *simulation = NULL;
    free_calls(gone);
    while (gone->oldest != NULL)
        ls_sim_thread_free(gone, gone->oldest);
    while (gone->hosts != NULL) {
        ls_host *host = gone->hosts;
        gone->hosts = host->next;
        free(host);
    }
    ls_fiber_pool_destroy(&gone->stacks);
    free(gone->ready);
    free(gone->watches);
    free(gone->lines);
    free(gone);
}

int ls_simulation_run(ls_simulation *simulation, void (*fn)(void *arg),
                      void *arg)
{
    if (simulation->running)
        return ls_error(LS_ESTATE, "this simulation is being run");
    if (simulation->failed)
        return ls_error(LS_ESTATE, "this simulation has failed, and threads "
                                   "of it still wait; make another one");
    ls_thread *first;
    int status =
        ls_sim_spawn(&simulation->outside.runtime, &first, "main", fn, arg);
    if (status < 0)
        return status;
    simulation->running = true;
    status = ls_sim_schedule(simulation);
    ls_sim_check(simulation);
    simulation->running = false;
    simulation->failed = status < 0;
    if (status == LS_OK)
        ls_sim_thread_free(simulation, (struct sim_thread *)(void *)first);
    if (simulation->violated)
        return ls_error(LS_EINVARIANT, "%s", simulation->violation);
    return status;
}

ls_runtime *ls_simulation_runtime(ls_simulation *simulation)
{
    return &simulation->outside.runtime;
}

ls_simulation *ls_simulation_of(const ls_runtime *runtime)
{
    if (runtime == NULL || runtime->ops != &ls_sim_ops)
        return NULL;
    return ((const ls_host *)(const void *)runtime)->simulation;
}

struct ls_rng *ls_simulation_random(ls_simulation *simulation)
{
    return &simulation->faults;
}

int64_t ls_simulation_now(const ls_simulation *simulation)
{
    return simulation->now;
}
