/* Lives of simulated nodes: begun, killed, and begun again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"

#include "simulated_run.h"

/* Whoever fails begins again after this. */
#define AGAIN_NS (200 * LS_NS_PER_MS)

/* FNV-1a, and never 0. */
static uint64_t hash_of(const unsigned char *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash | 1;
}

static void note_weights(simulated *all, const char *path)
{
    void *data;
    size_t size;
    if (ls_file_read(path, SIZE_MAX, &data, &size) != LS_OK)
        return;
    all->weights = hash_of(data, size);
    free(data);
}

static void note_iteration(simulated *all, int64_t iteration)
{
    ls_mutex_lock(&all->mutex);
    if (iteration > all->iteration) {
        all->iteration = iteration;
        all->iterated_at = ls_simulation_now(all->simulation);
    }
    ls_mutex_unlock(&all->mutex);
}

static void put_report(void *self, const struct report *report)
{
    struct life *life = self;
    if (life->killed)
        return;
    note_iteration(life->all, report->iteration);
    if (report->kind == REPORT_BOUND)
        memcpy(life->bound, report->endpoint, sizeof life->bound);
    if (report->kind == REPORT_DONE || report->kind == REPORT_FAILED)
        life->all->refused += (uint64_t)report->refused;
    if (report->kind == REPORT_DONE && report->weights[0] != '\0')
        note_weights(life->all, report->weights);
    if (life->all->watcher == NULL)
        return;
    const struct report_sink sink = supervisor_sink(life->all->watcher);
    sink.put(sink.self, report);
}

/* What it writes is on its host's disk, in one folder for all of its lives. */
static int make_folder(const simulated *all, struct life *life)
{
    if (all->disks == NULL)
        return LS_OK;
    life->plan.folder = life->plan.out;
    life->plan.folder_found = false;
    life->plan.service.data_at = life->plan.service.policy_at = "";
    return ls_folder_make(life->plan.out);
}

/* A life on a host that is there; it becomes the current one of its node. */
static int make_life(simulated *all, struct life **out, size_t index,
                     ls_host *host, const struct launch *launch)
{
    struct life *life = calloc(1, sizeof *life);
    if (life == NULL)
        return ls_error(LS_ENOMEM, "a simulated node");
    life->all = all;
    life->index = index;
    life->host = host;
    life->endpoints = *launch->endpoints;
    life->generation = launch->generation;
    life->plan = *all->options.plan;
    if (all->watcher == NULL && simulated_is_checked(all->options.plan))
        life->plan.seed = all->options.seed;
    struct node_watch watch = {NULL, NULL};
    int status = make_folder(all, life);
    if (status == LS_OK && all->checks != NULL)
        status = checks_begin(all->checks, &life->check, index, host);
    if (life->check != NULL) {
        watch = checks_watch(life->check);
        if (all->skews[index].offset_ns < 0) /* set back in an earlier life */
            checks_clock_set(life->check, all->skews[index].offset_ns);
    }
    if (status == LS_OK)
        status = node_run_create(
            &life->run,
            &(struct node_run_options){.plan = &life->plan,
                                       .index = index,
                                       .plugin = all->options.plugin,
                                       .endpoints = launch->endpoints,
                                       .generation = launch->generation,
                                       .gone = launch->gone,
                                       .n_gone = launch->n_gone,
                                       .sink = {put_report, life},
                                       .runtime = ls_host_runtime(host),
                                       .watch = watch});
    if (status != LS_OK) {
        free(life);
        return status;
    }
    ls_mutex_lock(&all->seen);
    life->previous = all->lives;
    all->lives = life;
    all->current[index] = life;
    ls_mutex_unlock(&all->seen);
    *out = life;
    return LS_OK;
}

static void note_gone(const struct life *life, int status)
{
    simulated *all = life->all;
    if (all->watcher != NULL)
        supervisor_note_end(all->watcher, life->index,
                            life->killed ? 0 : ls_status_exit_code(status),
                            life->killed ? SIGKILL : 0);
    ls_mutex_lock(&all->mutex);
    all->n_running--;
    if (status == LS_OK && !life->killed && all->n_done++ == 0) {
        all->done_at = ls_simulation_now(all->simulation);
        if (all->checks != NULL)
            checks_done(all->checks);
    }
    ls_cond_broadcast(&all->ended);
    ls_mutex_unlock(&all->mutex);
}

/* Who fails alone begins again, as something outside of it would have it. */
static bool goes_on(const struct life *life, int status)
{
    const simulated *all = life->all;
    return status != LS_OK && !life->killed && !all->closing &&
           all->watcher == NULL && simulated_is_checked(all->options.plan);
}

static void run_lives(void *arg)
{
    struct life *life = arg;
    simulated *all = life->all;
    const size_t index = life->index;
    ls_runtime *runtime = ls_host_runtime(life->host);
    int status = node_run_go(life->run);
    while (goes_on(life, status)) {
        ls_simulation_note(all->simulation, "its run failed: %s",
                           ls_error_text());
        checks_ended(life->check);
        all->failed++;
        ls_rest_until(runtime, ls_now(runtime) + AGAIN_NS);
        if (!goes_on(life, status))
            break;
        struct life *next = life;
        status =
            make_life(all, &next, index, life->host,
                      &(struct launch){.endpoints = &life->endpoints,
                                       .generation = life->generation + 1});
        if (status != LS_OK)
            break;
        life = next;
        status = node_run_go(life->run);
    }
    if (life->check != NULL)
        checks_ended(life->check);
    note_gone(life, status);
}

static int make_host(simulated *all, size_t index, ls_host **out)
{
    char name[24];
    (void)snprintf(name, sizeof name, "node %u",
                   (unsigned)all->options.plan->nodes[index].id);
    const uint32_t n = all->options.plan->sim.hosts;
    int status = ls_host_create(out, all->simulation, name);
    if (status == LS_OK && n != 0)
        ls_host_set_machine(*out, (uint32_t)index % n);
    if (status == LS_OK)
        status = ls_network_join(all->network, *out);
    if (status == LS_OK && all->disks != NULL)
        status = ls_disk_join(all->disks[index], *out);
    if (status != LS_OK)
        return status;
    ls_host_skew(*out, all->skews[index].offset_ns, all->skews[index].drift);
    return LS_OK;
}

/* A life is made on its host, since it looks at the files there. */
struct birth {
    simulated *all;
    struct life *life;
    size_t index;
    ls_host *host;
    const struct launch *launch;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static void be_born(void *arg)
{
    struct birth *birth = arg;
    birth->status = make_life(birth->all, &birth->life, birth->index,
                              birth->host, birth->launch);
    if (birth->status != LS_OK)
        (void)snprintf(birth->text, sizeof birth->text, "%s", ls_error_text());
}

static int bear(struct birth *birth)
{
    ls_thread *thread;
    int status = ls_thread_spawn(ls_host_runtime(birth->host), &thread,
                                 "begins", be_born, birth);
    if (status == LS_OK)
        status = ls_thread_join(&thread, LS_FOREVER);
    if (status == LS_OK && birth->status != LS_OK)
        status = ls_error(birth->status, "%s", birth->text);
    return status;
}

int simulated_begin(simulated *all, size_t index, const struct launch *launch)
{
    ls_host *host;
    int status = make_host(all, index, &host);
    if (status != LS_OK)
        return status;
    struct birth birth = {
        .all = all, .index = index, .host = host, .launch = launch};
    status = bear(&birth);
    if (status != LS_OK)
        return status;
    struct life *life = birth.life;
    all->n_running++;
    status = ls_thread_spawn(ls_host_runtime(host), &life->thread, "node",
                             run_lives, life);
    if (status != LS_OK)
        all->n_running--;
    return status;
}

static void reap(void *arg)
{
    struct life *life = arg;
    node_run_cancel(life->run, LS_ECANCELED, "it was killed");
}

/* Its threads are left to end; that they do is not seen by anyone. */
void simulated_kill(simulated *all, size_t index)
{
    struct life *life = all->current[index];
    if (life == NULL || life->killed)
        return;
    life->killed = true;
    if (life->check != NULL)
        checks_killed(life->check);
    ls_network_kill(all->network, life->host);
    ls_host_resume(life->host);
    if (ls_thread_spawn(ls_simulation_runtime(all->simulation), &life->reaper,
                        "reaper", reap, life) != LS_OK)
        ls_simulation_violation(all->simulation, "kill: %s", ls_error_text());
}
