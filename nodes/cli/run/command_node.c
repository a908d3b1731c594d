/* `lockstep node`. */
#ifdef __linux__
#define _GNU_SOURCE /* prctl */
#endif
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "lockstep/log.h"
#include "lockstep/runtime.h"
#include "lockstep/signal.h"

#include "command.h"
#include "command_begin.h"
#include "lease_asker.h"
#include "lease_trust.h"
#include "node_run.h"
#include "node_security.h"
#include "outlet.h"
#include "rank.h"
#include "render.h"
#include "signal_name.h"
#include "socket_folder.h"
#include "watchdog.h"
#include "work_service.h"

/* A node that was told to end has so long, whatever its plugin does: for its
 * iteration to end, and what it has learned to be written. It is less than
 * `run` gives it, to which it then says where it hangs. */
#define STOP_MS 5000
/* And so long to leave its world, once its work is over. */
#define LEAVE_MS 10000

/* The last two are for a node that runs alone: what comes from the terminal
 * goes to `run` as well, which then tells its nodes in its own order. */
static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
#define N_ENDS (sizeof ends / sizeof ends[0])

/* A node that this program runs, and who is told of it. */
struct hosted {
    struct setup setup;
    size_t index;
    uint32_t id;              /* that it brings, or was given */
    struct identity identity; /* own; of one that was given it */
    struct lease_answer lease;
    struct socket_folder sockets; /* own; of a launch on this host */
    struct run_folder folder; /* own; of one that keeps what is learned, or that
                               * `run` has started */
    render *shown;            /* own; of a node that runs alone */
    report_pipe *pipe;        /* own; of one that `run` has started */
    struct report_sink told;  /* either of them */
    watchdog *dog;            /* own */
    ls_security *security;    /* own */
    ls_mutex looking;         /* the run is looked at, and ends, under it */
    node_run *run;            /* own */
    atomic_int signal;        /* that asked it to end; 0: none */
};

static void on_signal(void *self, int signal)
{
    struct hosted *hosted = self;
    char text[64];
    atomic_store(&hosted->signal, signal);
    (void)snprintf(text, sizeof text, "told to end by %s", signal_name(signal));
    watchdog_set(hosted->dog, STOP_MS, 128 + signal, "when told to");
    node_run_cancel(hosted->run, LS_ECANCELED, text);
}

/* The node is ended, since it does not end by itself. */
static void say_stuck(void *self, const char *why)
{
    struct hosted *hosted = self;
    struct report report = report_of(hosted->id, REPORT_STUCK);
    const struct plan_node *node = &hosted->setup.plan.nodes[hosted->index];
    ls_mutex_lock(&hosted->looking);
    if (hosted->run != NULL)
        node_run_where(hosted->run, report.text, sizeof report.text);
    else
        (void)snprintf(report.text, sizeof report.text, "freeing what it had");
    if (hosted->pipe != NULL)
        hosted->told.put(hosted->told.self, &report);
    else
        (void)fprintf(
            stderr, "lockstep: node %u (%s) did not end %s: it is %s\n",
            (unsigned)node->id, plan_role_names[node->role], why, report.text);
    if (hosted->run != NULL)
        node_run_dump(hosted->run, "it did not end");
    ls_mutex_unlock(&hosted->looking);
}

static void on_ask(void *self, int signal)
{
    struct hosted *hosted = self;
    ls_mutex_lock(&hosted->looking);
    if (hosted->run != NULL && signal == SIGUSR2)
        node_run_save(hosted->run);
    else if (hosted->run != NULL)
        node_run_dump(hosted->run, signal_name(signal));
    ls_mutex_unlock(&hosted->looking);
}

/* Reports of a node that runs alone come from its own thread only. */
static void show_report(void *self, const struct report *report)
{
    struct hosted *hosted = self;
    render_report(hosted->shown, hosted->index, report);
    if (!render_is_unread(hosted->shown) || atomic_load(&hosted->signal) != 0)
        return;
    atomic_store(&hosted->signal, SIGPIPE);
    node_run_cancel(hosted->run, LS_ECANCELED,
                    "the node ends, since nobody reads its output");
}

/* What is bounded from some time on. `run` sees to the time of the job itself.
 */
static void put_report(void *self, const struct report *report)
{
    struct hosted *hosted = self;
    const struct plan *plan = &hosted->setup.plan;
    const int late = ls_status_exit_code(LS_ETIMEDOUT);
    hosted->told.put(hosted->told.self, report);
    if (report->kind == REPORT_STARTED && hosted->pipe == NULL &&
        plan->stop_minutes > 0.0)
        watchdog_set(hosted->dog, plan_stop_ms(plan), late,
                     "in time (stop.minutes)");
    if (report->kind == REPORT_DONE || report->kind == REPORT_FAILED)
        watchdog_set(hosted->dog, LEAVE_MS,
                     report->status == LS_OK
                         ? late
                         : ls_status_exit_code((int)report->status),
                     "though its work was over");
}

/* When `run` dies, so do its nodes. */
static int follow_parent(long parent)
{
    if (parent == 0)
        return LS_OK;
    for (size_t i = 1; i < N_ENDS; i++)
        (void)signal(ends[i], SIG_IGN);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if ((long)getppid() != parent)
        return ls_error(LS_ECANCELED,
                        "the run that started this node, pid "
                        "%ld, is gone",
                        parent);
    return LS_OK;
}

static int copy_attach(const struct plan *plan, const struct options *options,
                       struct plan_endpoints *out)
{
    int status = LS_OK;
    for (size_t i = 0; i < options->n_attach && status == LS_OK; i++)
        status = plan_copy_address(plan, options->attach[i],
                                   out->attach[out->n_attach++]);
    return status;
}

/* Nodes that a launcher has numbered, and of which nobody says where they are,
 * are all on this host, and meet in a folder. */
static int meet(struct hosted *hosted, const struct rank *rank,
                const struct options *options)
{
    struct plan *plan = &hosted->setup.plan;
    if (rank->apart || options->bind != NULL || options->advertise != NULL ||
        options->n_attach > 0 || plan->world.transport != PLAN_TCP)
        return LS_OK;
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].host[0] != '\0' || plan->nodes[i].bind[0] != '\0' ||
            plan->nodes[i].advertise[0] != '\0' || plan->nodes[i].n_attach > 0)
            return LS_OK;
    const int status =
        socket_folder_share(&hosted->sockets, plan_place(plan), plan->job);
    if (status != LS_OK)
        return status;
    plan->world.transport = PLAN_IPC;
    plan->world.dir = hosted->sockets.path;
    return LS_OK;
}

/* What the command line says goes before what the file says. */
static int find_endpoints(const struct hosted *hosted,
                          const struct options *options,
                          struct plan_endpoints *out)
{
    const struct plan *plan = &hosted->setup.plan;
    const int status = plan_endpoints_alone(plan, hosted->index, out);
    if (status != LS_OK)
        return status;
    const char *fault = NULL, *faulty = NULL;
    if (options->bind != NULL) {
        faulty = options->bind;
        fault = plan_endpoint_fault(options->bind, true);
        (void)snprintf(out->bind, sizeof out->bind, "%s", options->bind);
        out->advertise[0] = '\0'; /* of the other place */
    }
    if (fault == NULL && options->advertise != NULL) {
        faulty = options->advertise;
        fault = plan_endpoint_fault(options->advertise, false);
        (void)snprintf(out->advertise, sizeof out->advertise, "%s",
                       options->advertise);
    }
    if (options->n_attach > 0)
        out->n_attach = 0;
    else if (out->n_attach == 0 && hosted->lease.attach[0] != '\0')
        memcpy(out->attach[out->n_attach++], hosted->lease.attach,
               sizeof hosted->lease.attach);
    for (size_t i = 0; i < options->n_attach && fault == NULL; i++) {
        if (i == PLAN_ATTACH_MAX)
            return ls_error(LS_EINVAL, "--attach: at most %d of them",
                            PLAN_ATTACH_MAX);
        faulty = options->attach[i];
        fault = plan_address_fault(faulty);
    }
    if (fault != NULL)
        return ls_error(LS_EINVAL, "%s: %s", faulty, fault);
    return copy_attach(plan, options, out);
}

/* The first node may be the one that is attached to; the others must know
 * someone. */
static int check_endpoints(const struct hosted *hosted,
                           const struct plan_endpoints *endpoints,
                           const struct options *options)
{
    const struct plan *plan = &hosted->setup.plan;
    if (endpoints->n_attach > 0 || hosted->index == plan->first ||
        options->bind != NULL)
        return LS_OK;
    const unsigned first = (unsigned)plan->nodes[plan->first].id;
    return ls_error(LS_ECONFIG,
                    "%s: node %u does not know where to find the others: give "
                    "the %s, node %u, a host or a bind with one port, or "
                    "say --attach ENDPOINT",
                    plan->path, (unsigned)plan->nodes[hosted->index].id,
                    plan_role_names[plan->nodes[plan->first].role], first);
}

/* Before all that can fail: `run` is to be told of that. */
static int open_pipe(struct hosted *hosted, const struct options *options)
{
    if (options->report_fd < 0)
        return LS_OK;
    const int status = report_pipe_create(&hosted->pipe, options->report_fd);
    if (status == LS_OK)
        hosted->told = report_pipe_sink(hosted->pipe);
    return status;
}

/* It fails before it runs; ls_error_text() says why, and so does its stderr. */
static void report_early(const struct hosted *hosted,
                         const struct options *options, int status)
{
    struct report report = report_of(options->id, REPORT_FAILED);
    if (hosted->pipe == NULL)
        return;
    report.status = status;
    (void)snprintf(report.text, sizeof report.text, "%s", ls_error_text());
    hosted->told.put(hosted->told.self, &report);
}

static int make_sink(struct hosted *hosted, const struct options *options)
{
    if (hosted->pipe != NULL)
        return LS_OK;
    hosted->told = (struct report_sink){show_report, hosted};
    return render_create(&hosted->shown, &hosted->setup.plan, options->json,
                         hosted->index, NULL);
}

/* "3,7", as `run` writes it. */
static int read_gone(const struct plan *plan, const char *text, uint32_t *ids,
                     size_t *n)
{
    *n = 0;
    while (text != NULL && *text != '\0') {
        size_t index;
        char *end;
        const unsigned long id = strtoul(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || id > UINT32_MAX ||
            *n == plan->n_nodes)
            return ls_error(LS_EINVAL, "--gone: expected ids, as in 3,7");
        const int status = plan_find(plan, (uint32_t)id, &index);
        if (status != LS_OK)
            return ls_error_at(status, "--gone");
        ids[(*n)++] = (uint32_t)id;
        text = *end == ',' ? end + 1 : end;
    }
    return LS_OK;
}

/* Of a node that runs alone: nobody else says why nothing happens. */
static void say_waiting(void *self, const char *missing)
{
    const struct hosted *hosted = self;
    const struct plan_node *node = &hosted->setup.plan.nodes[hosted->index];
    (void)fprintf(stderr, "lockstep: node %u (%s) waits for %s\n",
                  (unsigned)node->id, plan_role_names[node->role], missing);
}

static void say_asking(void *self, const char *missing)
{
    const struct options *options = self;
    (void)fprintf(stderr, "lockstep: a %s without an id waits for %s\n",
                  options->role, missing);
}

static int create_run(struct hosted *hosted, const struct options *options,
                      const struct plan_endpoints *endpoints)
{
    uint32_t gone[PLAN_NODES_MAX];
    size_t n_gone;
    const int status =
        read_gone(&hosted->setup.plan, options->gone, gone, &n_gone);
    if (status != LS_OK)
        return status;
    node_run *run = NULL;
    const int created = node_run_create(
        &run, &(struct node_run_options){
                  .plan = &hosted->setup.plan,
                  .index = hosted->index,
                  .plugin = hosted->setup.plugin,
                  .endpoints = endpoints,
                  .sink = {put_report, hosted},
                  .security = hosted->security,
                  .waiting = options->parent == 0 ? say_waiting : NULL,
                  .waiting_self = hosted,
                  .gives_ids = options->parent == 0,
                  .generation = options->life,
                  .gone = gone,
                  .n_gone = n_gone,
              });
    ls_mutex_lock(&hosted->looking);
    hosted->run = run;
    ls_mutex_unlock(&hosted->looking);
    return created;
}

/* Of a node that was given its id, with its own key, and those of the others.
 */
static int open_leased(struct hosted *hosted)
{
    const struct plan *plan = &hosted->setup.plan;
    const char *leases = hosted->lease.leases;
    const int status = node_security_open_leased(
        &hosted->security, plan, hosted->id, hosted->identity.path);
    return status == LS_OK
               ? lease_trust_read(
                     &(struct lease_trust){.plan = plan,
                                           .security = hosted->security,
                                           .id = hosted->id},
                     leases, strlen(leases))
               : status;
}

static int open_security(struct hosted *hosted, const struct run_secret *secret)
{
    const struct plan *plan = &hosted->setup.plan;
    return hosted->identity.path[0] != '\0' && plan_has_keys(plan)
               ? open_leased(hosted)
               : node_security_open(&hosted->security, plan, hosted->id,
                                    secret);
}

/* The role in the plan's words. */
static int find_role(const char *text, enum plan_role *out)
{
    if (plan_role_named(text, out))
        return LS_OK;
    const char *nearest = ls_nearest(text, plan_role_names, PLAN_N_ROLES);
    return ls_error(
        LS_EINVAL, "--role %s: %s%s%s", text,
        nearest != NULL ? "did you mean \"" : "there is no such role",
        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static int ask_for_id(struct hosted *hosted, const struct options *options,
                      const struct run_secret *secret)
{
    const struct plan *plan = &hosted->setup.plan;
    enum plan_role role = PLAN_COLLECTOR;
    int status = find_role(options->role, &role);
    if (status == LS_OK)
        status = identity_open(&hosted->identity, options->identity, plan->job);
    if (status == LS_OK)
        status = lease_ask(&hosted->lease, &(struct lease_asking){
                                               .plan = plan,
                                               .role = role,
                                               .identity = &hosted->identity,
                                               .secret = secret,
                                               .bind = options->bind,
                                               .advertise = options->advertise,
                                               .waiting = say_asking,
                                               .waiting_self = (void *)options,
                                           });
    hosted->id = hosted->lease.id;
    return status;
}

static int read_rank(struct hosted *hosted, const struct options *options)
{
    struct rank rank;
    const struct plan *plan = &hosted->setup.plan;
    const int status = rank_read(&rank, plan);
    if (status != LS_OK)
        return status == LS_ENOENT ? ls_error(LS_EINVAL, "%s", ls_error_text())
                                   : status;
    hosted->id = plan->nodes[rank.index].id;
    ls_log_info("%s makes this node %u", rank.from, (unsigned)hosted->id);
    return meet(hosted, &rank, options);
}

/* Who it is, and how it proves that. */
static int identify(struct hosted *hosted, const struct options *options)
{
    struct run_secret secret;
    int status = run_secret_read(&secret, options->secret_fd);
    if (status != LS_OK)
        return status;
    hosted->id = options->id;
    if (!options->has_id && options->role == NULL)
        status = read_rank(hosted, options);
    else if (!options->has_id)
        status = ask_for_id(hosted, options, &secret);
    if (status == LS_OK)
        status = plan_find(&hosted->setup.plan, hosted->id, &hosted->index);
    if (status == LS_OK)
        status = open_security(hosted, &secret);
    run_secret_wipe(&secret);
    return status;
}

/* The coordinator, else the learner, owns the run; others find what it has
 * begun. */
static int find_folder(struct hosted *hosted, const struct options *options)
{
    struct plan *plan = &hosted->setup.plan;
    const bool keeps = hosted->index == plan->first;
    if (plan_is_of_members(plan)) { /* it may well have none */
        if (options->run != NULL &&
            command_join(&hosted->folder, plan, options->run, false) != LS_OK)
            ls_log_info("what it does is not kept: %s", ls_error_text());
        return LS_OK;
    }
    if (options->run != NULL)
        return command_join(&hosted->folder, plan, options->run, keeps);
    return keeps ? command_begin(&hosted->folder, plan, options->fresh, false,
                                 NULL)
                 : LS_OK;
}

static int prepare(struct hosted *hosted, const struct options *options)
{
    struct plan_endpoints endpoints;
    int status = identify(hosted, options);
    if (status == LS_OK)
        status = find_endpoints(hosted, options, &endpoints);
    if (status == LS_OK)
        status = check_endpoints(hosted, &endpoints, options);
    if (status == LS_OK)
        status = find_folder(hosted, options);
    if (status == LS_OK)
        status = make_sink(hosted, options);
    if (status == LS_OK && hosted->shown != NULL)
        command_show_run(hosted->shown, &hosted->folder, &hosted->setup.plan);
    if (status == LS_OK)
        status = create_run(hosted, options, &endpoints);
    return status;
}

/* Run it; what has to be said of its end is said by `run`, if there is one.
 * *done: its work was done. */
static int go(struct hosted *hosted, const struct options *options, bool *done)
{
    const size_t n_ends = options->parent != 0 ? 1 : N_ENDS;
    ls_signals *signals = NULL;
    int status = watchdog_create(&hosted->dog, say_stuck, hosted);
    if (status == LS_OK)
        status = ls_signal_watch(&signals, ends, n_ends, on_signal, hosted);
    if (status != LS_OK) {
        report_early(hosted, options, status);
        return command_failed(status);
    }
    status = node_run_go(hosted->run);
    ls_signal_unwatch(&signals);
    int exit_code = ls_status_exit_code(status);
    const int signal = atomic_load(&hosted->signal);
    if (status == LS_ECANCELED && signal != 0)
        exit_code = 128 + signal;
    if (options->stop_is_done && exit_code == 128 + SIGTERM)
        exit_code = 0;
    *done = status == LS_OK;
    if (hosted->shown != NULL && status != LS_OK)
        render_failed(hosted->shown,
                      &(struct render_failure){.index = hosted->index,
                                               .status = status,
                                               .exit_code = exit_code,
                                               .text = ls_error_text()});
    if (hosted->shown != NULL)
        exit_code = render_end(hosted->shown, exit_code);
    return exit_code;
}

/* What is left of it may hang as well. */
static void end_run(struct hosted *hosted)
{
    ls_mutex_lock(&hosted->looking);
    node_run *run = hosted->run;
    hosted->run = NULL;
    ls_mutex_unlock(&hosted->looking);
    node_run_destroy(&run);
}

/* Of a run that nobody else watches over. */
static void leave_folder(struct hosted *hosted, const struct options *options,
                         bool done)
{
    const struct plan *plan = &hosted->setup.plan;
    const bool owns = hosted->folder.name[0] != '\0' && options->run == NULL;
    if (owns && done && plan_is_service(plan) &&
        service_node_end(plan) != LS_OK)
        ls_log_warn("something stays: %s", ls_error_text());
    run_folder_end(&hosted->folder, owns && done);
}

static void hosted_fini(struct hosted *hosted)
{
    ls_security_destroy(&hosted->security);
    ls_record_clear(&lease_answer_record, &hosted->lease);
    identity_close(&hosted->identity);
    watchdog_destroy(&hosted->dog);
    render_destroy(&hosted->shown);
    report_pipe_destroy(&hosted->pipe);
    socket_folder_leave(&hosted->sockets);
    setup_fini(&hosted->setup);
    ls_mutex_fini(&hosted->looking);
}

int command_node(const struct options *options)
{
    struct hosted hosted = {.folder = {.name = ""}};
    int status = follow_parent(options->parent);
    if (status == LS_OK)
        status = ls_mutex_init(&hosted.looking, ls_runtime_threads());
    if (status == LS_OK)
        status = open_pipe(&hosted, options);
    /* Before there are other threads, which the signal would kill through. */
    ls_signals *asks = NULL;
    if (status == LS_OK)
        status = ls_signal_watch_each(&asks, (const int[]){SIGUSR1, SIGUSR2}, 2,
                                      on_ask, &hosted);
    if (status == LS_OK && options->parent == 0)
        status = outlet_open(); /* `run` reads what its nodes write */
    if (status != LS_OK)
        return command_failed(status);
    status = command_setup(&hosted.setup, options);
    if (status != LS_OK) {
        report_early(&hosted, options, status);
        outlet_close();
        ls_signal_unwatch(&asks);
        report_pipe_destroy(&hosted.pipe);
        ls_mutex_fini(&hosted.looking);
        return ls_status_exit_code(status);
    }
    if (options->parent != 0)
        plan_set_run(&hosted.setup.plan, options->parent);
    else
        command_warn(&hosted.setup.plan);
    status = prepare(&hosted, options);
    if (status != LS_OK)
        report_early(&hosted, options, status);
    bool done = false;
    const int exit_code =
        status == LS_OK ? go(&hosted, options, &done) : command_failed(status);
    end_run(&hosted);
    leave_folder(&hosted, options, done && exit_code == 0);
    ls_signal_unwatch(&asks);
    outlet_close(); /* its watchdog bounds how long a reader is waited for */
    hosted_fini(&hosted);
    return exit_code;
}
