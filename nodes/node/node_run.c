#include "node_run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/event.h"
#include "lockstep/file.h"
#include "lockstep/log.h"
#include "lockstep/trace.h"

#include "bus_sabotage.h"
#include "health.h"
#include "lease_giver.h"
#include "lease_trust.h"
#include "memory.h"
#include "node_calls.h"
#include "plan_lease.h"
#include "role_member.h"
#include "tape.h"
#include "work_in_step.h"
#include "work_service.h"

/* Where it stands, which decides what a cancel has to interrupt. */
enum phase { PHASE_IDLE, PHASE_JOINING, PHASE_RUNNING, PHASE_OVER };

struct node_run {
    const struct plan *plan; /* borrow */
    size_t index;
    struct plan_endpoints endpoints;
    struct report_sink sink;
    ls_runtime *runtime;   /* borrow */
    ls_security *security; /* borrow */
    const struct work_kind *kind;
    void *work;        /* own */
    uint32_t *members; /* own; ids of the world: n_members */
    size_t n_members;
    struct node_calls calls;
    bool gives_ids;
    void (*waiting)(void *self, const char *missing); /* borrow */
    void *waiting_self;
    struct lease_trust trust;
    lease_giver *giver;               /* own; NULL: it gives out no ids */
    ls_trace *trace;                  /* own; NULL: it has no recorder */
    atomic_uint_fast64_t incarnation; /* 0: it listens not yet */
    ls_mutex dumping;                 /* of threads */
    tape_recorder *recorder;          /* own; NULL: nothing is recorded */
    const struct ls_event_gate *gate; /* borrow: of that, or of a tape; NULL */
    health_desk *desk;                /* own; NULL: nobody can ask */

    /* What others see, held for no more than a look: of threads, also in a
     * simulation, which may hang itself. */
    ls_mutex seen;
    const char *doing;
    ls_task *stepping;  /* borrow; NULL: it is not */
    int64_t running_at; /* ls_now(); 0: its world is not whole yet */
    int64_t env_step;   /* -1: it counts none */

    /* Held while somebody is told of the node, or it goes: of threads. */
    ls_mutex asked;
    ls_node *present; /* borrow; NULL: it does not listen */

    ls_mutex mutex; /* what follows */
    enum phase phase;
    ls_node *node;
    ls_task *task;
    int canceled; /* LS_OK, or why */
    char why[LS_ERROR_TEXT_MAX];
};

static bool is_gone(const struct node_run_options *options, uint32_t id)
{
    for (size_t i = 0; i < options->n_gone; i++) {
        if (options->gone[i] == id)
            return true;
    }
    return false;
}

/* Whether it has to be there for this one to begin. In a service job that is
 * the coordinator, which takes the others as they come. */
static bool is_awaited(const node_run *run, size_t index)
{
    return !plan_is_service(run->plan) || index == run->index ||
           index == run->plan->first;
}

static int set_members(node_run *run, const struct node_run_options *options)
{
    const struct plan *plan = run->plan;
    run->members = calloc(plan->n_nodes, sizeof *run->members);
    if (run->members == NULL)
        return ls_error(LS_ENOMEM, "the members of the world");
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (!is_gone(options, plan->nodes[i].id) && is_awaited(run, i))
            run->members[run->n_members++] = plan->nodes[i].id;
    }
    return LS_OK;
}

/* What a node of this plan does. */
static const struct work_kind *work_kind_of(const struct plan *plan,
                                            size_t index)
{
    if (!plan_is_service(plan))
        return &work_in_step;
    switch (plan->nodes[index].role) {
    case PLAN_COORDINATOR:
        return &work_coordinator;
    case PLAN_LEARNER:
        return &work_learner;
    case PLAN_COLLECTOR:
    case PLAN_EVALUATOR:
    case PLAN_MEMBER:
    case PLAN_N_ROLES:
        break;
    }
    return &work_collector;
}

static void free_run(node_run *run)
{
    ls_mutex_fini(&run->mutex);
    ls_mutex_fini(&run->seen);
    ls_mutex_fini(&run->asked);
    ls_mutex_fini(&run->dumping);
    ls_trace_destroy(&run->trace);
    tape_recorder_destroy(&run->recorder);
    free(run->members);
    free(run);
}

/* In a simulation, of which there may be thousands, only for a profile. */
static int create_trace(node_run *run)
{
    const struct plan *plan = run->plan;
    const struct plan_node *node = &plan->nodes[run->index];
    if (plan->trace_records == 0 ||
        (run->runtime != ls_runtime_threads() && !plan->trace_all))
        return LS_OK;
    return ls_trace_create(&run->trace, &(struct ls_trace_options){
                                            .runtime = run->runtime,
                                            .node = node->id,
                                            .job = plan->job,
                                            .role = plan_role_names[node->role],
                                            .n_records = plan->trace_records,
                                            .all = plan->trace_all});
}

/* What its work reports, noted for those who ask. */
static void pass_on(void *self, const struct report *report)
{
    node_run *run = self;
    if (report->kind == REPORT_PROGRESS && !plan_is_of_members(run->plan)) {
        ls_mutex_lock(&run->seen);
        run->env_step = report->env_step;
        ls_mutex_unlock(&run->seen);
    }
    run->sink.put(run->sink.self, report);
}

/* For a tape: "in step collect, iteration 3". */
static void say_where(void *self, char *text, size_t size)
{
    node_run *run = self;
    uint64_t iteration = 0;
    char at[300];
    node_run_where(run, at, sizeof at);
    ls_mutex_lock(&run->seen);
    if (run->stepping != NULL)
        iteration = ls_task_iterations(run->stepping);
    ls_mutex_unlock(&run->seen);
    (void)snprintf(text, size, "%s, iteration %" PRIu64, at, iteration);
}

/* The run is recorded, in the first life of the node, or is a replay. */
static int open_tape(node_run *run, const struct node_run_options *options)
{
    const struct plan *plan = run->plan;
    const uint32_t id = plan->nodes[run->index].id;
    int status = LS_OK;
    if (plan->record != NULL && options->generation == 0) {
        status = tape_recorder_create(&run->recorder, plan->record, id);
        if (status == LS_OK)
            run->gate = tape_recorder_gate(run->recorder);
    } else if (plan->tape != NULL) {
        run->gate = tape_play(plan->tape, id, say_where, run);
    }
    return status;
}

int node_run_create(node_run **out, const struct node_run_options *options)
{
    const struct plan *plan = options->plan;
    const size_t index = options->index;
    node_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return ls_error(LS_ENOMEM, "node %u", (unsigned)plan->nodes[index].id);
    run->plan = plan;
    run->index = index;
    run->endpoints = *options->endpoints;
    run->sink = options->sink;
    run->security = options->security;
    run->gives_ids = options->gives_ids;
    run->waiting = options->waiting;
    run->waiting_self = options->waiting_self;
    run->runtime =
        options->runtime != NULL ? options->runtime : ls_runtime_threads();
    run->doing = "beginning";
    run->env_step = -1;
    int status = ls_mutex_init(&run->seen, ls_runtime_threads());
    if (status == LS_OK)
        status = ls_mutex_init(&run->asked, ls_runtime_threads());
    if (status == LS_OK)
        status = ls_mutex_init(&run->dumping, ls_runtime_threads());
    if (status == LS_OK)
        status = ls_mutex_init(&run->mutex, run->runtime);
    if (status == LS_OK)
        status = set_members(run, options);
    if (status == LS_OK)
        status = create_trace(run);
    if (status == LS_OK)
        status = open_tape(run, options);
    run->kind = work_kind_of(plan, index);
    if (status == LS_OK)
        status = run->kind->create(
            &run->work,
            &(struct work_options){.plan = plan,
                                   .index = index,
                                   .generation = options->generation,
                                   .plugin = options->plugin != NULL
                                                 ? plugin_table(options->plugin)
                                                 : NULL,
                                   .sink = {pass_on, run},
                                   .watch = options->watch});
    if (status == LS_OK)
        *out = run;
    else
        free_run(run);
    return status;
}

void node_run_destroy(node_run **run)
{
    if (run == NULL || *run == NULL)
        return;
    (*run)->kind->destroy((*run)->work);
    free_run(*run);
    *run = NULL;
}

/* stepping: NULL: none of its steps can run. */
static void set_doing(node_run *run, const char *doing, ls_task *stepping)
{
    ls_mutex_lock(&run->seen);
    run->doing = doing;
    run->stepping = stepping;
    ls_mutex_unlock(&run->seen);
}

/* How long the half that has been running longest takes by now; -1: it is not
 * known. */
static int64_t step_ns(node_run *run)
{
    struct ls_trace_record open[64];
    int64_t begin = INT64_MAX;
    if (run->trace == NULL)
        return -1;
    const size_t n = ls_trace_open(run->trace, open, 64);
    for (size_t i = 0; i < n; i++)
        if (open[i].kind <= LS_TRACE_BACKWARD && open[i].begin_ns < begin)
            begin = open[i].begin_ns;
    return begin != INT64_MAX ? ls_trace_now(run->trace) - begin : -1;
}

void node_run_where(node_run *run, char *text, size_t size)
{
    char steps[256] = "", time[32] = "";
    const int64_t ns = step_ns(run);
    if (ns >= 0)
        (void)snprintf(time, sizeof time, " for %.1f s",
                       (double)ns / (double)LS_NS_PER_S);
    ls_mutex_lock(&run->seen);
    if (run->stepping != NULL)
        (void)ls_task_steps_now(run->stepping, steps, sizeof steps);
    if (steps[0] != '\0')
        (void)snprintf(text, size, "in step %s%s", steps, time);
    else
        (void)snprintf(text, size, "%s", run->doing);
    ls_mutex_unlock(&run->seen);
}

static int write_dump(node_run *run, const char *reason, const char *path)
{
    char temporary[LS_PATH_MAX + 48];
    struct ls_trace_file file = {.names = NULL};
    struct ls_file_part part = {.data = NULL};
    void *data = NULL;
    (void)snprintf(temporary, sizeof temporary, "%s.part", path);
    int status = ls_trace_take(run->trace, atomic_load(&run->incarnation),
                               reason, &file);
    if (status == LS_OK)
        status = ls_trace_encode(&file, &data, &part.size);
    part.data = data;
    if (status == LS_OK)
        status = ls_file_replace(path, temporary, &part, 1, false);
    free(data);
    ls_trace_clear(&file);
    return status;
}

void node_run_dump(node_run *run, const char *reason)
{
    const struct plan *plan = run->plan;
    char folder[LS_PATH_MAX], path[LS_PATH_MAX + 40];
    if (run->trace == NULL || plan->folder == NULL || plan->folder_found)
        return;
    (void)snprintf(folder, sizeof folder, "%s/trace", plan->folder);
    (void)snprintf(path, sizeof path, "%s/node-%" PRIu32 ".lstrace", folder,
                   plan->nodes[run->index].id);
    ls_mutex_lock(&run->dumping);
    int status = ls_folder_make(folder);
    if (status == LS_OK)
        status = write_dump(run, reason, path);
    ls_mutex_unlock(&run->dumping);
    if (status == LS_OK)
        ls_log_info("what it did last is in %s: %s", path, reason);
    else
        ls_log_warn("what it did last is not kept: %s", ls_error_text());
}

/* A line for each pair of nodes and event; as many as fit. */
static void write_losses(ls_node *node, char *text, size_t size)
{
    struct ls_node_loss rows[16];
    const size_t all = ls_node_losses(node, rows, 16);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < all && i < 16; i++) {
        const struct ls_node_loss *row = &rows[i];
        char line[256];
        const int n =
            snprintf(line, sizeof line,
                     "%s\"%s\" from %" PRIu32 " to %" PRIu32 ": %" PRIu64 " %s",
                     i == 0 ? "" : "\n", row->event, row->sender, row->receiver,
                     row->dropped + row->missed + row->unacknowledged,
                     row->dropped != 0  ? "dropped"
                     : row->missed != 0 ? "missed"
                                        : "not acknowledged");
        if (n < 0 || used + (size_t)n >= size)
            return;
        memcpy(text + used, line, (size_t)n + 1);
        used += (size_t)n;
    }
}

/* For those who ask: of how many records, waits at barriers are told. */
#define RECENT 8192

static void note_wait(struct health *out, const struct ls_trace_record *wait,
                      int64_t begin, int64_t end)
{
    const int64_t ns = end - (wait->begin_ns > begin ? wait->begin_ns : begin);
    if (ns <= 0)
        return;
    out->waited_ns += ns;
    for (size_t i = 0; i < out->n_peers; i++)
        if (out->peers[i].id == wait->peer)
            out->peers[i].awaited_ns += ns;
}

/* How long it waited at barriers lately, and for whom. */
static void look_at_waits(node_run *run, struct health *out)
{
    struct ls_trace_record *records =
        run->trace != NULL ? calloc(RECENT, sizeof *records) : NULL;
    if (records == NULL)
        return;
    size_t n = ls_trace_recent(run->trace, records, RECENT);
    const int64_t now = ls_trace_now(run->trace);
    const int64_t begin = n > 0 ? records[n - 1].end_ns : now;
    for (size_t i = 0; i < n; i++)
        if (records[i].kind == LS_TRACE_BARRIER)
            note_wait(out, &records[i], begin, records[i].end_ns);
    const int64_t ended_ns = out->waited_ns;
    n = ls_trace_open(run->trace, records, RECENT);
    for (size_t i = 0; i < n; i++)
        if (records[i].kind == LS_TRACE_BARRIER)
            note_wait(out, &records[i], begin, now);
    out->waiting_ns = out->waited_ns - ended_ns;
    out->window_ns = now > begin ? now - begin : 0;
    free(records);
}

static void look_at_peers(ls_node *node, struct health *out)
{
    const size_t room = ls_node_members(node, NULL, 0);
    struct ls_member *members = calloc(room + 1, sizeof *members);
    out->peers = calloc(room + 1, sizeof *out->peers);
    const int64_t now = ls_now(ls_runtime_threads());
    size_t n = members != NULL && out->peers != NULL
                   ? ls_node_members(node, members, room)
                   : 0;
    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++) {
        const struct ls_member *member = &members[i];
        struct health_peer *peer = &out->peers[out->n_peers];
        if (strcmp(member->role, "client") == 0)
            continue; /* lockstep call */
        peer->id = member->id;
        peer->heard_ms = member->heard_at != 0
                             ? (now - member->heard_at) / LS_NS_PER_MS
                             : -1;
        (void)snprintf(peer->state, sizeof peer->state, "%s",
                       ls_member_state_name(member->state));
        (void)snprintf(peer->role, sizeof peer->role, "%s", member->role);
        (void)snprintf(peer->endpoint, sizeof peer->endpoint, "%s",
                       member->endpoint);
        out->n_peers++;
    }
    free(members);
}

static void look_at_node(node_run *run, struct health *out)
{
    struct ls_node_stats stats;
    ls_mutex_lock(&run->asked);
    if (run->present != NULL) {
        ls_node_stats(run->present, &stats);
        out->events = stats.emitted + stats.handled;
        out->lost = stats.lost + stats.missed + stats.unacknowledged;
        out->dropped = stats.dropped;
        out->slowest = stats.slowest;
        out->slowest_ns = stats.slowest_ns;
        write_losses(run->present, out->losses, sizeof out->losses);
        look_at_peers(run->present, out);
    }
    ls_mutex_unlock(&run->asked);
}

static void look(void *self, struct health *out)
{
    node_run *run = self;
    const struct plan *plan = run->plan;
    ls_mutex_lock(&run->mutex);
    out->state = run->phase == PHASE_RUNNING ? HEALTH_RUNNING
                 : run->phase == PHASE_OVER  ? HEALTH_ENDING
                                             : HEALTH_STARTING;
    ls_mutex_unlock(&run->mutex);
    ls_mutex_lock(&run->seen);
    if (run->stepping != NULL) {
        out->iterations = (int64_t)ls_task_iterations(run->stepping);
        (void)ls_task_steps_now(run->stepping, out->step, sizeof out->step);
    }
    out->env_step = run->env_step;
    if (run->running_at != 0)
        out->running_ns = ls_now(run->runtime) - run->running_at;
    ls_mutex_unlock(&run->seen);
    out->step_ns = step_ns(run);
    out->idle = run->kind->idle_step != NULL &&
                strcmp(out->step, run->kind->idle_step) == 0;
    node_run_where(run, out->at, sizeof out->at);
    (void)snprintf(out->role, sizeof out->role, "%s",
                   plan_role_names[plan->nodes[run->index].role]);
    if (plan->folder != NULL && !plan->folder_found)
        (void)snprintf(out->run, sizeof out->run, "%s",
                       strrchr(plan->folder, '/') + 1);
    out->incarnation = atomic_load(&run->incarnation);
    look_at_node(run, out);
    look_at_waits(run, out);
}

/* Go on to the next phase, unless it was cancelled meanwhile. */
static int enter(node_run *run, enum phase phase)
{
    int status = LS_OK;
    ls_mutex_lock(&run->mutex);
    if (run->canceled != LS_OK)
        status = ls_error(run->canceled, "%s", run->why);
    else
        run->phase = phase;
    ls_mutex_unlock(&run->mutex);
    return status;
}

static void end_work(node_run *run, int status, const char *text)
{
    if (run->kind->end != NULL)
        run->kind->end(run->work, status, text);
    else
        ls_task_cancel(run->task, status, text);
}

void node_run_cancel(node_run *run, int status, const char *text)
{
    ls_mutex_lock(&run->mutex);
    if (run->canceled == LS_OK && run->phase != PHASE_OVER) {
        run->canceled = status;
        (void)snprintf(run->why, sizeof run->why, "%s", text);
        if (run->phase == PHASE_JOINING)
            ls_node_stop(run->node, status);
        if (run->phase == PHASE_RUNNING)
            end_work(run, status, text);
    }
    ls_mutex_unlock(&run->mutex);
}

void node_run_save(node_run *run)
{
    ls_mutex_lock(&run->mutex);
    if (run->phase == PHASE_RUNNING && run->kind->save != NULL)
        run->kind->save(run->work);
    ls_mutex_unlock(&run->mutex);
}

/* Members are counted by their roles and labels, so a client has none of these.
 */
static bool suits(void *self, uint32_t id, const char *role, const char *labels)
{
    const node_run *const run = self;
    return plan_suits(run->plan, id, role, labels);
}

static int create_node(node_run *run)
{
    const struct plan *plan = run->plan;
    const struct plan_node *planned = &plan->nodes[run->index];
    const struct plan_endpoints *endpoints = &run->endpoints;
    const char *attach[PLAN_ATTACH_MAX];
    for (size_t i = 0; i < endpoints->n_attach; i++)
        attach[i] = endpoints->attach[i];

    struct ls_node_options options;
    char words[PLAN_ROLE_MAX];
    plan_node_options(plan, &options);
    /* Each has a host of its own there, unless it is said. */
    if (run->runtime != ls_runtime_threads() && plan->world.shared_mib < 0 &&
        plan->sim.hosts == 0)
        options.shared_bytes = 0;
    options.id = planned->id;
    options.role = plan_role_words(plan, run->index, words);
    options.labels = PLAN_LABEL;
    options.bind = endpoints->bind;
    options.advertise =
        endpoints->advertise[0] != '\0' ? endpoints->advertise : NULL;
    options.attach = attach;
    options.n_attach = endpoints->n_attach;
    options.topology = plan->world.topology;
    options.world_size = (uint32_t)run->n_members;
    options.members = run->members;
    options.world_max = plan_world_max(plan);
    options.security = run->security;
    options.suits = suits;
    options.suits_self = run;
    options.runtime = run->runtime;
    options.trace = run->trace;
    options.gate = run->gate;
    options.waiting = run->waiting;
    options.waiting_self = run->waiting_self;
    if (plan->barrier.blocking > 0)
        options.window_messages = MEMBER_WINDOW;
    const int status = ls_node_create(&run->node, &options);
    if (status == LS_OK && plan->barrier.bus_sabotage != 0)
        ls_bus_sabotage(run->node,
                        (enum ls_bus_sabotage)plan->barrier.bus_sabotage);
    /* What the node refuses stood in the file, or on the command line. */
    return status == LS_EINVAL ? LS_ECONFIG : status;
}

/* A client may ask, and not end the run. */
static int guard_finish(node_run *run)
{
    int status = LS_OK;
    for (size_t i = 0; i < run->plan->n_nodes && status == LS_OK; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%" PRIu32, run->plan->nodes[i].id);
        status = ls_node_allow(run->node, LS_FINISH_EVENT, id);
    }
    return status;
}

/* Whose key is whose among those that bring no id. */
static int hear_leases(node_run *run)
{
    const struct plan *plan = run->plan;
    if (!plan_has_leases(plan) || !plan_has_keys(plan) || run->security == NULL)
        return LS_OK;
    run->trust = (struct lease_trust){.plan = plan,
                                      .security = run->security,
                                      .id = plan->nodes[run->index].id};
    return lease_trust_begin(&run->trust, run->node);
}

static int give_ids(node_run *run)
{
    const struct plan *plan = run->plan;
    if (!run->gives_ids || !plan_has_leases(plan) ||
        run->index != plan_lease_giver(plan))
        return LS_OK;
    return lease_giver_open(
        &run->giver, &(struct lease_giver_options){.plan = plan,
                                                   .node = run->node,
                                                   .security = run->security});
}

/* The pipeline stands before the node listens: what its steps hear of the
 * others' first words depends on it. */
static int create_task(node_run *run)
{
    char words[PLAN_ROLE_MAX];
    const int status = ls_task_create(
        &run->task, &(struct ls_task_options){
                        .node = run->node,
                        .roles = plan_role_words(run->plan, run->index, words),
                    });
    return status == LS_OK
               ? run->kind->use(run->work, run->task, run->calls.calls)
               : status;
}

/* Others may be told of it; NULL: not any more. */
static void show(node_run *run, ls_node *node)
{
    ls_mutex_lock(&run->asked);
    run->present = node;
    ls_mutex_unlock(&run->asked);
}

static int join_world(node_run *run)
{
    int status = ls_node_open(run->node);
    if (status != LS_OK)
        return status;
    atomic_store(&run->incarnation, ls_node_incarnation(run->node));
    show(run, run->node);
    struct report report =
        report_of(run->plan->nodes[run->index].id, REPORT_BOUND);
    (void)snprintf(report.endpoint, sizeof report.endpoint, "%s",
                   ls_node_endpoint(run->node));
    run->sink.put(run->sink.self, &report);
    set_doing(run, "joining its world", NULL);
    status = give_ids(run);
    if (status == LS_OK)
        status = enter(run, PHASE_JOINING);
    if (status == LS_OK)
        status = plan_start_ended(ls_node_join(run->node));
    if (status != LS_OK)
        return status;
    report.kind = REPORT_STARTED;
    run->sink.put(run->sink.self, &report);
    return LS_OK;
}

static int live(node_run *run)
{
    int status = create_node(run);
    if (status == LS_OK)
        status = guard_finish(run);
    if (status == LS_OK)
        status = hear_leases(run);
    if (status == LS_OK)
        status =
            node_calls_open(&run->calls, run->node, plan_channel(run->plan));
    if (status == LS_OK)
        status = create_task(run);
    if (status == LS_OK)
        status = join_world(run);
    if (status == LS_OK)
        status = enter(run, PHASE_RUNNING);
    if (status == LS_OK) {
        set_doing(run, "waiting for the others", run->task);
        ls_mutex_lock(&run->seen);
        run->running_at = ls_now(run->runtime);
        ls_mutex_unlock(&run->seen);
        status = run->kind->run(run->work);
    }
    set_doing(run, "leaving its world", NULL);
    ls_mutex_lock(&run->mutex);
    run->phase = PHASE_OVER;
    if (run->canceled != LS_OK && status != LS_OK)
        status = ls_error(run->canceled, "%s", run->why);
    ls_mutex_unlock(&run->mutex);
    return status;
}

/* Of all that was refused here, what was so most often. */
static void write_refusal(ls_node *node, char *text, size_t size)
{
    struct ls_refusal rows[32];
    const struct ls_refusal *worst = NULL;
    const size_t n = ls_node_refusals(node, rows, 32);
    text[0] = '\0';
    for (size_t i = 0; i < n && i < 32; i++)
        worst = worst == NULL || rows[i].n > worst->n ? &rows[i] : worst;
    if (worst != NULL)
        (void)snprintf(text, size, "%s: %s",
                       worst->who[0] != '\0' ? worst->who : "somebody",
                       worst->why);
}

/* Counters and traffic, as they are before the node leaves. */
static struct report last_report(node_run *run, int status)
{
    struct report report =
        report_of(run->plan->nodes[run->index].id,
                  status == LS_OK ? REPORT_DONE : REPORT_FAILED);
    report.status = status;
    if (status != LS_OK)
        (void)snprintf(report.text, sizeof report.text, "%s", ls_error_text());
    run->kind->report(run->work, &report);
    report.peak_kib = memory_peak_kib();
    if (run->node == NULL)
        return report;
    struct ls_node_stats stats;
    ls_node_stats(run->node, &stats);
    report.sent = (int64_t)stats.sent;
    report.sent_bytes = (int64_t)stats.sent_bytes;
    report.lost = (int64_t)(stats.lost + stats.unacknowledged);
    report.dropped = (int64_t)stats.dropped;
    report.refused = (int64_t)stats.refused;
    report.slowest = stats.slowest;
    report.slowest_ns = stats.slowest_ns;
    write_losses(run->node, report.losses, sizeof report.losses);
    write_refusal(run->node, report.refusal, sizeof report.refusal);
    return report;
}

int node_run_go(node_run *run)
{
    const uint32_t id = run->plan->nodes[run->index].id;
    ls_log_set_node(id);
    if (run->runtime == ls_runtime_threads() &&
        health_desk_open(&run->desk, plan_place(run->plan), id, look, run) !=
            LS_OK)
        ls_log_info("lockstep health will not find this node: %s",
                    ls_error_text());
    int status = live(run);
    /* Told before the node leaves: a watcher that hears why this one failed
     * need not guess it from what the others then say. */
    const struct report report = last_report(run, status);
    run->sink.put(run->sink.self, &report);
    if (status != LS_OK && status != LS_ECANCELED)
        node_run_dump(run, report.text);
    else if (run->plan->trace_all)
        node_run_dump(run, "the run's end");
    lease_giver_close(&run->giver);
    if (run->node != NULL)
        ls_node_stop(run->node, status);
    if (run->kind->leave != NULL)
        run->kind->leave(run->work);
    ls_task_destroy(&run->task);
    node_calls_close(&run->calls);
    if (run->kind->close != NULL)
        run->kind->close(run->work);
    show(run, NULL);
    ls_node_destroy(&run->node);
    health_desk_close(&run->desk);
    if (status != LS_OK)
        status = ls_error(status, "%s", report.text);
    return status;
}
