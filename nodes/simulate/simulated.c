#include "simulated.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulated_run.h"

/* After the last fault: to find out who is there, and to get through. */
#define SETTLE_NS (60 * LS_NS_PER_S)
/* After the first member that is done. */
#define STRAGGLE_NS (15 * LS_NS_PER_S)
/* From the word to the end. */
#define END_NS (120 * LS_NS_PER_S)
/* Of more, so many heartbeats in a row are lost that nodes may be held for
 * lost. */
#define LOSS_BORNE 0.1
/* Messages that nodes in step may have to wait for, one after the other,
 * between two iterations: data-parallel learners exchange hundreds of
 * gradients. */
#define IN_A_ROW 1000
/* So that faults have numbers of their own. */
#define FAULTS_STREAM 0x6661756c7473

/* Under a supervisor ----------------------------------------------------- */

static int start(void *self, size_t index, const struct launch *launch)
{
    return simulated_begin(self, index, launch);
}

static void stop(void *self, size_t index, bool hard)
{
    simulated *all = self;
    if (all->current[index] == NULL)
        return;
    if (hard)
        simulated_kill(all, index);
    else
        node_run_cancel(all->current[index]->run, LS_ECANCELED,
                        "told to stop, since the run ends");
}

static void where(void *self, size_t index, char *text, size_t size)
{
    simulated *all = self;
    node_run_where(all->current[index]->run, text, size);
}

static void supervise_all(void *arg)
{
    simulated *all = arg;
    bool left;
    const struct launcher launcher = {
        .start = start, .stop = stop, .where = where, .self = all};
    all->exit_code = supervise(all->watcher, &launcher, all->timeout_s, &left);
    all->closing = true;
}

/* Alone ------------------------------------------------------------------ */

/* Each node has a port of its own, the same in every life, and three to attach
 * to, so that one may be dead. */
static void place(const struct plan *plan, size_t index,
                  struct plan_endpoints *out)
{
    const size_t n = plan->n_nodes;
    const size_t wanted[] = {plan->first, (index + 1) % n, (index + 2) % n};
    const bool star = plan->world.topology == LS_TOPOLOGY_STAR;
    const int port = plan->world.first_port;
    *out = (struct plan_endpoints){.n_attach = 0};
    (void)snprintf(out->bind, sizeof out->bind, "tcp://127.0.0.1:%d",
                   port + (int)index);
    for (size_t i = 0; i < (star ? 1 : 3); i++) {
        if (wanted[i] != index && !(star && index == plan->first))
            (void)snprintf(out->attach[out->n_attach++], LS_ENDPOINT_MAX + 1,
                           "tcp://127.0.0.1:%d", port + (int)wanted[i]);
    }
}

static void start_all(simulated *all)
{
    const struct plan *plan = all->options.plan;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        struct plan_endpoints endpoints;
        place(plan, i, &endpoints);
        if (simulated_begin(all, i,
                            &(struct launch){.endpoints = &endpoints}) != LS_OK)
            ls_simulation_violation(all->simulation, "start: %s",
                                    ls_error_text());
    }
}

bool simulated_is_checked(const struct plan *plan)
{
    return plan_is_of_members(plan) || plan_is_service(plan);
}

static int64_t settle_ns(const struct plan *plan)
{
    const int ms = plan->world.start_timeout_ms +
                   (plan_is_of_members(plan) ? plan->barrier.timeout_ms
                                             : plan->world.step_timeout_ms);
    return SETTLE_NS + ms * LS_NS_PER_MS;
}

/* In step, who has lost a node that is done by now waits for it until its
 * patience is at an end (elastic_run.c). */
static int64_t straggle_ns(const struct plan *plan)
{
    const int ms = plan->world.silence_ms + plan->world.start_timeout_ms +
                   PLAN_BACKOFF_MAX_MS;
    return simulated_is_checked(plan) || !plan_can_lose_nodes(plan)
               ? STRAGGLE_NS
               : STRAGGLE_NS + ms * LS_NS_PER_MS;
}

/* Whether what faults did lasts, so that some may never get through. */
static bool are_lasting(const simulated *all)
{
    for (size_t i = 0; i < all->n_faults; i++) {
        if (all->faults[i].kind != FAULT_SHAPE &&
            !faults_is_undone(all->faults, all->n_faults, i))
            return true;
    }
    return false;
}

/* Whether messages mostly come, and soon, when there are no faults; strangers
 * may be there for longer. */
static bool is_calm(const simulated *all)
{
    const struct ls_network_path *path = &all->options.faults->path;
    const int64_t heartbeat =
        all->options.plan->world.heartbeat_ms * LS_NS_PER_MS;
    bool calm = path->loss <= LOSS_BORNE && path->bytes_per_s == 0 &&
                path->delay_ns + path->jitter_ns < heartbeat / 2;
    for (size_t i = 0; i < all->n_faults; i++)
        calm = calm && all->faults[i].kind != FAULT_SHAPE &&
               all->faults[i].kind != FAULT_STRANGER;
    return calm;
}

/* Whether a step of a job takes less than its limit, as far as the network
 * goes. */
static bool is_quick(const simulated *all)
{
    const struct ls_network_path *path = &all->options.faults->path;
    return (path->delay_ns + path->jitter_ns) * IN_A_ROW <
           all->options.plan->world.step_timeout_ms * LS_NS_PER_MS;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When those that run should have ended. A job may take as long as it learns;
 * so it is only to go on. */
static int64_t due_at(const simulated *all, int64_t quiet_at)
{
    const struct plan *plan = all->options.plan;
    const int64_t from = simulated_is_checked(plan)
                             ? quiet_at
                             : later(all->iterated_at, quiet_at);
    const int64_t due = from + settle_ns(plan);
    const int64_t straggle = later(all->done_at, quiet_at) + straggle_ns(plan);
    return all->n_done > 0 && straggle < due ? straggle : due;
}

/* Wait for all to end; true when they did. */
static bool await_all(simulated *all, int64_t quiet_at)
{
    ls_mutex_lock(&all->mutex);
    bool due = false;
    while (all->n_running > 0 && !due) {
        const int64_t at = due_at(all, quiet_at);
        due = ls_cond_wait(&all->ended, &all->mutex, at) != LS_OK &&
              due_at(all, quiet_at) <= at; /* an iteration changes it */
    }
    const bool ended = all->n_running == 0;
    ls_mutex_unlock(&all->mutex);
    return ended;
}

static void end_all(simulated *all)
{
    for (size_t i = 0; i < all->options.plan->n_nodes; i++) {
        if (all->current[i] != NULL)
            node_run_cancel(all->current[i]->run, LS_ECANCELED,
                            "the others are done");
    }
}

/* Of a job in lock step, whose nodes end with the first that fails: they do
 * end, and if nothing was done to any of them but what a network that is not
 * slow does to messages, all end well. */
static void judge_in_step(const simulated *all, bool ended)
{
    const size_t n = all->options.plan->n_nodes;
    if (!ended)
        ls_simulation_violation(all->simulation,
                                "bound: %zu nodes have not ended, and the last "
                                "fault was long ago",
                                all->n_running);
    else if (all->n_faults == 0 && all->n_done < n && is_calm(all) &&
             is_quick(all))
        ls_simulation_violation(all->simulation,
                                "done: %zu of %zu nodes ended well, and "
                                "nothing was done to the others",
                                all->n_done, n);
}

static void drive(void *arg)
{
    simulated *all = arg;
    const struct plan *plan = all->options.plan;
    start_all(all);
    int status = ls_thread_join(&all->injector, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
    const int64_t quiet_at = checks_all_move_at(all->checks);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (all->current[i] != NULL)
            ls_host_resume(all->current[i]->host);
    }
    if (!are_lasting(all) && is_calm(all))
        checks_quiet(all->checks);
    const bool ended = await_all(all, quiet_at);
    all->closing = true;
    if (all->n_done == 0 && !are_lasting(all) && simulated_is_checked(plan))
        ls_simulation_violation(all->simulation,
                                "bound: nobody got through within %lld s after "
                                "the last fault",
                                (long long)(settle_ns(plan) / LS_NS_PER_S));
    if (!simulated_is_checked(plan))
        judge_in_step(all, ended);
    if (!ended && all->n_done > 0)
        checks_straggled(all->checks);
    if (!ended)
        end_all(all);
}

/* Both ------------------------------------------------------------------- */

static void join_all(simulated *all)
{
    for (struct life *life = all->lives; life != NULL; life = life->previous) {
        int status = ls_thread_join(&life->reaper, LS_FOREVER);
        assert(status == LS_OK);
        status = ls_thread_join(&life->thread, LS_FOREVER);
        assert(status == LS_OK);
        (void)status;
    }
}

static void run_all(void *arg)
{
    simulated *all = arg;
    ls_runtime *runtime = ls_simulation_runtime(all->simulation);
    if (ls_thread_spawn(runtime, &all->injector, "faults", simulated_inject,
                        all) != LS_OK) {
        ls_simulation_violation(all->simulation, "%s", ls_error_text());
        return;
    }
    if (all->watcher != NULL)
        supervise_all(all);
    else
        drive(all);
    const int status = ls_thread_join(&all->injector, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
    join_all(all);
    simulated_strangers_end(all);
    for (struct life *life = all->lives; life != NULL; life = life->previous) {
        node_run *run = life->run;
        ls_mutex_lock(&all->seen);
        life->run = NULL;
        ls_mutex_unlock(&all->seen);
        node_run_destroy(&run);
    }
}

void simulated_where(simulated *all, char *text, size_t size)
{
    const ls_host *host = ls_simulation_running(all->simulation);
    text[0] = '\0';
    ls_mutex_lock(&all->seen);
    struct life *life = all->lives;
    while (life != NULL && life->host != host)
        life = life->previous;
    if (host != NULL && life != NULL && life->run != NULL) {
        char where[512];
        const struct plan_node *node = &all->options.plan->nodes[life->index];
        node_run_where(life->run, where, sizeof where);
        (void)snprintf(text, size, "node %u (%s) is %s", (unsigned)node->id,
                       plan_role_names[node->role], where);
    }
    ls_mutex_unlock(&all->seen);
}

/* A violation does not end the run, and what comes after would push out what
 * led to it. */
static void keep_story(void *self, ls_simulation *simulation)
{
    simulated *all = self;
    if (all->story != NULL || !ls_simulation_is_violated(simulation))
        return;
    FILE *out = open_memstream(&all->story, &all->story_size);
    if (out == NULL)
        return;
    ls_simulation_print(simulation, out);
    (void)fclose(out);
}

int simulated_supervise(simulated *all, supervisor *watcher, double timeout_s,
                        int *exit_code)
{
    all->watcher = watcher;
    all->timeout_s = timeout_s;
    const int status = ls_simulation_run(all->simulation, run_all, all);
    if (status == LS_OK)
        *exit_code = all->exit_code;
    return status;
}

static void judge_all(void *arg)
{
    const simulated *all = arg;
    checks_finish(all->checks);
}

/* A machine for each node; one disk for all of them when they share files. */
static int make_disks(simulated *all)
{
    const struct plan *plan = all->options.plan;
    const bool shared =
        plan_is_service(plan) && plan->service.store == PLAN_STORE_FILES;
    int status = LS_OK;
    all->disks = calloc(plan->n_nodes, sizeof *all->disks);
    if (all->disks == NULL)
        return ls_error(LS_ENOMEM, "the disks of simulated nodes");
    for (size_t i = 0; i < plan->n_nodes && status == LS_OK; i++) {
        if (shared && i > 0)
            all->disks[i] = all->disks[0];
        else
            status = ls_disk_create(&all->disks[i], all->simulation, NULL);
    }
    return status;
}

static void destroy_disks(simulated *all)
{
    const size_t n = all->disks == NULL ? 0 : all->options.plan->n_nodes;
    for (size_t i = n; i > 0; i--) {
        if (i == 1 || all->disks[i - 1] != all->disks[0])
            ls_disk_destroy(&all->disks[i - 1]);
    }
    free(all->disks);
}

int simulated_check(simulated *all)
{
    int status = checks_create(&all->checks, all->simulation, all->network,
                               all->options.plan);
    if (status == LS_OK && !plan_is_of_members(all->options.plan))
        status = make_disks(all);
    if (status != LS_OK)
        return status;
    status = ls_simulation_run(all->simulation, run_all, all);
    /* Once more, so that what is found now counts as well. */
    return status == LS_OK ? ls_simulation_run(all->simulation, judge_all, all)
                           : status;
}

/* Life of it all --------------------------------------------------------- */

static int draw(const struct simulated_options *options, struct skew *skews,
                struct fault **out, size_t *n)
{
    struct ls_rng chance;
    ls_rng_seed(&chance, options->seed, FAULTS_STREAM);
    for (size_t i = 0; i < options->plan->n_nodes; i++) {
        struct skew skew;
        faults_draw_skew(options->faults, &chance, &skew.offset_ns,
                         &skew.drift);
        if (skews != NULL)
            skews[i] = skew;
    }
    return faults_draw(options->faults, options->plan, &chance, out, n);
}

int simulated_faults(const struct simulated_options *options,
                     struct fault **out, size_t *n)
{
    return draw(options, NULL, out, n);
}

/* Of a job that learns it is not known; 0: as long as any simulation. */
static int64_t limit_ns(const struct plan *plan, int64_t quiet_at)
{
    return simulated_is_checked(plan)
               ? quiet_at + settle_ns(plan) + straggle_ns(plan) + END_NS
               : 0;
}

static int init(simulated *all)
{
    const struct simulated_options *options = &all->options;
    const size_t n = options->plan->n_nodes;
    all->current = calloc(n, sizeof(struct life *));
    all->skews = calloc(n, sizeof *all->skews);
    if (all->current == NULL || all->skews == NULL)
        return ls_error(LS_ENOMEM, "the simulated nodes");
    int status = draw(options, all->skews, &all->faults, &all->n_faults);
    if (status != LS_OK)
        return status;
    const int64_t quiet_at =
        all->n_faults > 0 ? all->faults[all->n_faults - 1].at : 0;
    status = ls_simulation_create(
        &all->simulation, &(struct ls_simulation_options){
                              .seed = options->seed,
                              .limit_ns = limit_ns(options->plan, quiet_at),
                              .log = options->log});
    if (status == LS_OK)
        status = ls_simulation_watch(all->simulation, keep_story, all);
    if (status == LS_OK)
        status = ls_network_create(&all->network, all->simulation,
                                   &options->faults->path);
    if (status == LS_OK)
        status =
            ls_mutex_init(&all->mutex, ls_simulation_runtime(all->simulation));
    if (status == LS_OK)
        status =
            ls_cond_init(&all->ended, ls_simulation_runtime(all->simulation));
    return status;
}

int simulated_create(simulated **out, const struct simulated_options *options)
{
    simulated *all = calloc(1, sizeof *all);
    if (all == NULL)
        return ls_error(LS_ENOMEM, "the simulated nodes");
    all->options = *options;
    int status = ls_mutex_init(&all->seen, ls_runtime_threads());
    if (status != LS_OK) {
        free(all);
        return status;
    }
    status = init(all);
    if (status != LS_OK) {
        simulated_destroy(&all);
        return status;
    }
    *out = all;
    return LS_OK;
}

void simulated_destroy(simulated **self)
{
    if (self == NULL || *self == NULL)
        return;
    simulated *all = *self;
    for (struct life *life = all->lives; life != NULL;) {
        struct life *previous = life->previous;
        free(life);
        life = previous;
    }
    ls_cond_fini(&all->ended);
    ls_mutex_fini(&all->mutex);
    ls_mutex_fini(&all->seen);
    checks_destroy(&all->checks);
    ls_network_destroy(&all->network);
    destroy_disks(all);
    ls_simulation_destroy(&all->simulation);
    free(all->story);
    free(all->faults);
    free(all->skews);
    free(all->current);
    free(all);
    *self = NULL;
}

ls_runtime *simulated_runtime(simulated *all)
{
    return ls_simulation_runtime(all->simulation);
}

/* Of a job in lock step. One that goes on without a node, or with another life
 * of it, may have lost some and end well all the same. */
static bool has_lost_nobody(const simulated *all)
{
    const struct plan *plan = all->options.plan;
    bool well = !simulated_is_checked(plan) && all->n_done == plan->n_nodes;
    for (size_t i = 0; i < plan->n_nodes; i++)
        well = well && plan->nodes[i].on_loss == PLAN_FAIL;
    for (const struct life *life = all->lives; life != NULL;
         life = life->previous)
        well = well && !life->killed && life->generation == 0;
    return well;
}

void simulated_figures(const simulated *all, struct simulated_figures *out)
{
    *out = (struct simulated_figures){.virtual_ns =
                                          ls_simulation_now(all->simulation)};
    if (all->checks != NULL)
        out->checks = checks_figures(all->checks);
    ls_network_stats(all->network, &out->network);
    out->acts = all->acts;
    out->refused = all->refused;
    out->failed = all->failed;
    if (all->checks != NULL && has_lost_nobody(all))
        out->weights = all->weights;
    for (size_t i = 0; i < FAULT_N_KINDS; i++)
        out->injected[i] = all->injected[i];
}

void simulated_print(const simulated *all, FILE *out)
{
    if (all->story != NULL)
        (void)fputs(all->story, out);
    else
        ls_simulation_print(all->simulation, out);
}
