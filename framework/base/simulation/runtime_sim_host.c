/* Hosts. Their clocks are computed in integers, so that they show the same on
 * every machine. */
#include "runtime_sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* 2000-01-01, at the beginning of every simulation. */
#define EPOCH_NS (INT64_C(946684800) * LS_NS_PER_S)

#define PPB INT64_C(1000000000)

/* What drift adds in `ns`; without overflow, and growing with it. */
static int64_t drifted(const ls_host *host, int64_t ns)
{
    return ns / PPB * host->drift_ppb + ns % PPB * host->drift_ppb / PPB;
}

static int64_t skewed_clock(const ls_host *host, int64_t true_ns)
{
    return true_ns + drifted(host, true_ns) + host->offset_ns;
}

int64_t ls_sim_clock(const ls_host *host)
{
    const int64_t now = host->simulation->now;
    if (!host->skewed)
        return now;
    const int64_t shown = skewed_clock(host, now);
    return shown > host->floor_ns ? shown : host->floor_ns;
}

int64_t ls_sim_wall_clock(const ls_host *host)
{
    return EPOCH_NS + skewed_clock(host, host->simulation->now);
}

int64_t ls_sim_true_time(const ls_host *host, int64_t deadline)
{
    if (!host->skewed)
        return deadline;
    if (ls_sim_clock(host) >= deadline)
        return host->simulation->now;
    /* Each round leaves at most a tenth of the error. */
    const int64_t wanted = deadline - host->offset_ns;
    int64_t at = wanted;
    for (int i = 0; i < 20; i++)
        at = wanted - drifted(host, at);
    while (skewed_clock(host, at) < deadline)
        at++;
    while (skewed_clock(host, at - 1) >= deadline)
        at--;
    return at;
}

int ls_host_create(ls_host **out, ls_simulation *simulation, const char *name)
{
    *out = NULL;
    ls_host *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for host '%s'", name);
    made->runtime.ops = &ls_sim_ops;
    made->simulation = simulation;
    memcpy(made->name, name, strnlen(name, SIM_HOST_BYTES - 1));
    made->next = simulation->hosts;
    simulation->hosts = made;
    *out = made;
    return LS_OK;
}

ls_runtime *ls_host_runtime(ls_host *host)
{
    return &host->runtime;
}

ls_host *ls_host_of(ls_runtime *runtime)
{
    const ls_simulation *const simulation = ls_simulation_of(runtime);
    if (simulation == NULL || runtime == &simulation->outside.runtime)
        return NULL;
    return sim_host(runtime);
}

ls_host *ls_simulation_running(const ls_simulation *simulation)
{
    ls_host *const host = atomic_load(&simulation->running_on);
    return host != &simulation->outside ? host : NULL;
}

void ls_host_set_machine(ls_host *host, uint32_t machine)
{
    host->machine = machine;
}

const char *ls_host_name(const ls_host *host)
{
    return host->name;
}

/* Those of its threads that could run can no longer. */
static void hold_ready(ls_host *host)
{
    ls_simulation *const simulation = host->simulation;
    size_t left = 0;
    for (size_t i = 0; i < simulation->n_ready; i++) {
        struct sim_thread *const thread = simulation->ready[i];
        if (thread->host == host)
            ls_sim_append(&host->held, thread);
        else
            simulation->ready[left++] = thread;
    }
    simulation->n_ready = left;
}

void ls_host_pause(ls_host *host)
{
    ls_simulation *const simulation = host->simulation;
    if (host->paused || host->dead)
        return;
    ls_simulation_note(simulation, "pauses %s", host->name);
    host->paused = true;
    hold_ready(host);
    if (simulation->current != NULL && simulation->current->host == host)
        ls_sim_switch(simulation);
}

void ls_host_resume(ls_host *host)
{
    if (!host->paused)
        return;
    ls_simulation_note(host->simulation, "resumes %s", host->name);
    host->paused = false;
    ls_sim_wake_all(&host->held);
}

bool ls_host_is_paused(const ls_host *host)
{
    return host->paused;
}

/* Deadlines on a clock that was changed come at another true time. */
static void restart_timers(ls_host *clock)
{
    ls_simulation *const simulation = clock->simulation;
    for (struct sim_thread *thread = simulation->oldest; thread != NULL;
         thread = thread->younger) {
        if (thread->timer.place == 0 || thread->clock != clock)
            continue;
        ls_sim_timer_stop(simulation, &thread->timer);
        ls_sim_timer_start(simulation, &thread->timer,
                           ls_sim_true_time(clock, thread->deadline));
    }
}

void ls_host_skew(ls_host *host, int64_t offset_ns, double drift)
{
    assert(drift >= -0.1 && drift <= 0.1);
    const int64_t shown = ls_sim_clock(host);
    host->skewed = true;
    host->floor_ns = shown;
    host->offset_ns = offset_ns;
    host->drift_ppb = (int64_t)(drift * (double)PPB);
    ls_simulation_note(host->simulation, "skews %s by %lld ns and %lld ppb",
                       host->name, (long long)offset_ns,
                       (long long)host->drift_ppb);
    restart_timers(host);
}

void ls_host_kill(ls_host *host)
{
    if (host->dead)
        return;
    ls_simulation_note(host->simulation, "kills %s", host->name);
    host->dead = true;
    ls_host_resume(host);
}

bool ls_host_is_dead(const ls_host *host)
{
    return host->dead;
}
