/* A simulation keeps what runtime.h promises, on a host and on none, whatever
 * the seed and the clock. */
#include "runtime_promises.h"
#include "simulated.h"
#include "test.h"

/* offset, drift: of the host's clock; both 0: as it is. */
static void keep_on_host(void (*fn)(ls_runtime *runtime), uint64_t seed,
                         int64_t offset_ns, double drift)
{
    ls_simulation *simulation = simulate(seed);
    ls_host *host = new_host(simulation, "host");
    ls_host_skew(host, offset_ns, drift);
    struct promise promise = {fn, ls_host_runtime(host)};
    run(simulation, start_on_runtime, &promise);
    ls_simulation_destroy(&simulation);
}

static void keep(void (*fn)(ls_runtime *runtime))
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        ls_simulation *simulation = simulate(seed);
        struct promise promise = {fn, ls_simulation_runtime(simulation)};
        run(simulation, start_on_runtime, &promise);
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
