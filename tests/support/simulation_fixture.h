/* simulation_fixture.h - a simulation with a network and a disk, and hosts of
 * it. */
#ifndef SIMULATION_FIXTURE_H
#define SIMULATION_FIXTURE_H

#include <stdio.h>

#include "lockstep/disk.h"
#include "lockstep/network.h"
#include "lockstep/random.h"
#include "test.h"

struct simulation {
    ls_simulation *simulation;
    ls_network *network;
    ls_disk *disk;
    uint64_t seed;
};

static inline void simulation_open(struct simulation *all, uint64_t seed,
                                   const struct ls_network_path *path)
{
    const struct ls_simulation_options options = {.seed = seed};
    all->seed = seed;
    assert_ok(ls_simulation_create(&all->simulation, &options));
    assert_ok(ls_network_create(&all->network, all->simulation, path));
    assert_ok(ls_disk_create(&all->disk, all->simulation, NULL));
}

/* Of all three. */
static inline ls_host *simulation_host(const struct simulation *all,
                                       const char *name)
{
    ls_host *host;
    assert_ok(ls_host_create(&host, all->simulation, name));
    assert_ok(ls_network_join(all->network, host));
    assert_ok(ls_disk_join(all->disk, host));
    return host;
}

static inline uint64_t simulation_below(const struct simulation *all,
                                        uint64_t n)
{
    return ls_rng_below(ls_simulation_random(all->simulation), n);
}

/* It is killed, or loses its power in the middle of what it writes. */
static inline void simulation_kill(const struct simulation *all, ls_host *host)
{
    if (simulation_below(all, 2) == 0)
        ls_network_kill(all->network, host);
    else
        ls_disk_power_cut_after(all->disk, host, simulation_below(all, 12));
}

/* With the seed, and all that happened. */
static inline void simulation_fail(const struct simulation *all,
                                   const char *format, ...) LS_PRINTF(2, 3);

static inline void simulation_fail(const struct simulation *all,
                                   const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_simulation_print(all->simulation, stderr);
    fail_msg("seed %llu: %s", (unsigned long long)all->seed, text);
}

static inline void simulation_run(const struct simulation *all,
                                  void (*body)(void *self), void *self)
{
    if (ls_simulation_run(all->simulation, body, self) != LS_OK)
        simulation_fail(all, "%s", ls_error_text());
}

static inline void simulation_close(struct simulation *all)
{
    ls_disk_destroy(&all->disk);
    ls_network_destroy(&all->network);
    ls_simulation_destroy(&all->simulation);
}

/* All of it. */
static inline void simulation_play(struct simulation *all, uint64_t seed,
                                   const struct ls_network_path *path,
                                   void (*body)(void *self), void *self)
{
    simulation_open(all, seed, path);
    simulation_run(all, body, self);
    simulation_close(all);
}

#endif
