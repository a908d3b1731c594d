/* A simulation keeps what runtime.h promises, on a host and on none, whatever
 * the seed and the clock. */
#include "gate.h"
#include "lockstep/simulation.h"
#include "runtime_promises.h"
#include "test.h"

struct promise {
    void (*fn)(ls_runtime *runtime);
    ls_runtime *runtime;
};

static void on_the_runtime(void *arg)
{
    const struct promise *const promise = arg;
    promise->fn(promise->runtime);
}

static void start_there(void *arg)
{
    struct promise *const promise = arg;
    ls_thread *thread;
    assert_ok(ls_thread_spawn(promise->runtime, &thread, "starter",
                              on_the_runtime, promise));
    join(&thread);
}

/* offset, drift: of the host's clock; both 0: as it is. */
static void keep_on_host(void (*fn)(ls_runtime *runtime), uint64_t seed,
                         int64_t offset_ns, double drift)
{
    const struct ls_simulation_options options = {.seed = seed};
    ls_simulation *simulation;
    assert_ok(ls_simulation_create(&simulation, &options));
    ls_host *host;
    assert_ok(ls_host_create(&host, simulation, "host"));
    ls_host_skew(host, offset_ns, drift);
    struct promise promise = {fn, ls_host_runtime(host)};
    assert_ok(ls_simulation_run(simulation, start_there, &promise));
    ls_simulation_destroy(&simulation);
}

static void keep(void (*fn)(ls_runtime *runtime))
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct ls_simulation_options options = {.seed = seed};
        ls_simulation *simulation;
        assert_ok(ls_simulation_create(&simulation, &options));
        struct promise promise = {fn, ls_simulation_runtime(simulation)};
        assert_ok(ls_simulation_run(simulation, start_there, &promise));
        ls_simulation_destroy(&simulation);
    }
    keep_on_host(fn, 1, 0, 0.0);
    keep_on_host(fn, 2, 5 * LS_NS_PER_S, 0.1);
    keep_on_host(fn, 3, -5 * LS_NS_PER_S, -0.1);
}

#define IN_SIMULATION(name)                                                    \
    TEST(name##_in_a_simulation)                                               \
    {                                                                          \
        keep(name);                                                            \
    }
RUNTIME_PROMISES(IN_SIMULATION)
#undef IN_SIMULATION
