/* simulated.h - what the tests of simulations share. */
#ifndef SIMULATED_H
#define SIMULATED_H

#include <stdio.h>
#include <stdlib.h>

#include "gate.h"
#include "lockstep/simulation.h"

static inline ls_simulation *simulate(uint64_t seed)
{
    const struct ls_simulation_options options = {.seed = seed};
    ls_simulation *simulation;
    assert_int_equal(ls_simulation_create(&simulation, &options), LS_OK);
    return simulation;
}

static inline ls_host *new_host(ls_simulation *simulation, const char *name)
{
    ls_host *host;
    assert_int_equal(ls_host_create(&host, simulation, name), LS_OK);
    return host;
}

static inline void run(ls_simulation *simulation, void (*fn)(void *arg),
                       void *arg)
{
    assert_int_equal(ls_simulation_run(simulation, fn, arg), LS_OK);
}

/* What is to be done on a thread of that runtime: for run(start_on_runtime). */
struct promise {
    void (*fn)(ls_runtime *runtime);
    ls_runtime *runtime;
};

static inline void on_the_runtime(void *arg)
{
    const struct promise *const promise = arg;
    promise->fn(promise->runtime);
}

static inline void start_on_runtime(void *arg)
{
    struct promise *const promise = arg;
    ls_thread *thread;
    assert_ok(ls_thread_spawn(promise->runtime, &thread, "starter",
                              on_the_runtime, promise));
    join(&thread);
}

/* The lines that it has kept. */
static inline void read_lines(const ls_simulation *simulation, char *out,
                              size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ls_simulation_print(simulation, file);
    rewind(file);
    const size_t n = fread(out, 1, size - 1, file);
    out[n] = '\0';
    fclose(file);
}

#endif
