/* One mutex guards all that the notes write; one condition wakes the thread of
 * supervise(), which alone decides. It calls the launcher without the mutex:
 * stopping a node may wait for that node's last report. */
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "restart.h"
#include "root_cause.h"
#include "run_failure.h"
#include "run_file.h"
#include "signal_name.h"
#include "tracer.h"
#include "work_service.h"

#define LINES_KEPT 20
/* The first node that is done is followed by all within this. */
#define STRAGGLE_MS 10000

struct watched {
    struct node_end end;
    bool launched, gone;
    long pid;
    char endpoint[LS_ENDPOINT_MAX + 1]; /* "" until it listens */
    char text[LS_ERROR_TEXT_MAX];       /* why it failed */
    char *lines[LINES_KEPT];            /* own; the last ones, a ring */
    size_t n_lines;                     /* ever */
    struct restarts restarts;
    int64_t restart_at; /* ls_now(); 0: it is not to be started again */
    bool listens;       /* this life of it */
    bool working;       /* and is in the world */
    bool keeps_address; /* it was told to listen where its last one did */
    bool let_go;        /* the run goes on without it */
    bool stuck;         /* it does not end: */
    char at[LS_ERROR_TEXT_MAX]; /* what it is at; "": it does not say */
    bool final; /* its failure is the run's, whatever its policy */
    bool spent; /* that is so since it may have no other restart */
};

struct supervisor {
    const struct plan *plan;         /* borrow */
    render *render;                  /* borrow; under mutex */
    const struct launcher *launcher; /* borrow; in supervise() */
    node_output *output;             /* borrow; may be NULL */
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond cond;
    struct watched *nodes; /* own; n */
    size_t n;
    size_t n_launched, n_gone;
    int64_t stop_at; /* the run is over by then, at the latest: stop.minutes */
    unsigned order;  /* of the last end */
    struct run_file *told; /* own; where the nodes listen, as was told last;
                            * NULL: it was not */
    bool moved;    /* a node listens that the run's file does not tell of */
    bool any_done; /* a node reported success */
    bool any_failed;
    bool unclear; /* all that failed may have by another: who hangs is shown as
                   * the cause, and not before */
    /* the nodes are to write what they did last, or to save */
    bool dump, save;
    bool done;       /* it has come to its end */
    int interrupted; /* by this signal */
};

enum outcome {
    GOING,
    REACHED,
    ALL_DONE,
    LEFT_BEHIND, /* all are done but some that the run can do without */
    FAILED,
    INTERRUPTED,
    TIME_UP
};

/* ---- what is said of a node that failed ---- */

#define OTHERS_SHOWN 8

static int print_who(const supervisor *sup, size_t index, char *text,
                     size_t size)
{
    const struct plan_node *planned = &sup->plan->nodes[index];
    const char *role = plan_role_names[planned->role];
    const long pid = sup->nodes[index].pid;
    return pid != 0 ? snprintf(text, size, "node %u (%s, pid %ld)",
                               (unsigned)planned->id, role, pid)
                    : snprintf(text, size, "node %u (%s)",
                               (unsigned)planned->id, role);
}

/* Its reason, without the name that stands before it already. */
static const char *reason(const supervisor *sup, size_t index)
{
    char name[32];
    const char *text = sup->nodes[index].text;
    const int n = snprintf(name, sizeof name,
                           "node %u: ", (unsigned)sup->plan->nodes[index].id);
    return strncmp(text, name, (size_t)n) == 0 ? text + n : text;
}

/* What became of it: the rest of a sentence that its name begins. */
static void say_end(const supervisor *sup, size_t index, char *text,
                    size_t size)
{
    const struct watched *node = &sup->nodes[index];
    if (sup->unclear && node->stuck)
        (void)snprintf(text, size, "hangs: %s%s",
                       node->at[0] != '\0' ? "it is " : "it does not answer",
                       node->at);
    else if (node->end.status != LS_OK)
        (void)snprintf(text, size, "failed: %s", reason(sup, index));
    else if (node->end.signal != 0)
        (void)snprintf(text, size, "was killed by signal %d (%s)",
                       node->end.signal, signal_name(node->end.signal));
    else
        (void)snprintf(text, size, "ended with exit code %d%s",
                       node->end.exit_code,
                       node->end.reported ? "" : " and without a word");
}

/* What became of a node, in a sentence without its dot. */
static void describe(const supervisor *sup, size_t index, char *text,
                     size_t size)
{
    char who[96], end[LS_ERROR_TEXT_MAX + 32];
    (void)print_who(sup, index, who, sizeof who);
    say_end(sup, index, end, sizeof end);
    (void)snprintf(text, size, "%s %s", who, end);
}

/* For programs, in the folder of the run. */
static void report_failure(supervisor *sup, struct run_failure failure)
{
    failure.wall_ns = ls_wall_now(sup->runtime);
    if (run_failure_write(sup->plan, &failure) != LS_OK)
        ls_log_info("no " RUN_FAILURE_NAME " is written: %s", ls_error_text());
}

static void report_node(supervisor *sup, size_t index, const char *text)
{
    const struct watched *node = &sup->nodes[index];
    const bool hangs = sup->unclear && node->stuck;
    const bool says = !hangs && node->end.status != LS_OK;
    char end[LS_ERROR_TEXT_MAX + 32];
    say_end(sup, index, end, sizeof end);
    report_failure(sup, (struct run_failure){
                            .type = hangs  ? ls_status_name(LS_ETIMEDOUT)
                                    : says ? ls_status_name(node->end.status)
                                    : node->end.signal != 0
                                        ? signal_name(node->end.signal)
                                        : "exit",
                            .value = says ? reason(sup, index) : end,
                            .text = text,
                            .where = hangs  ? node->at
                                     : says ? reason(sup, index)
                                            : "",
                            .index = index});
}

/* When nobody says that it is his fault, what all say is the evidence. */
static void show_others(supervisor *sup, size_t first)
{
    char text[LS_ERROR_TEXT_MAX + 128];
    size_t shown = 0;
    for (size_t i = 0; i < sup->n && shown < OTHERS_SHOWN; i++) {
        if (i == first || cause_rank(&sup->nodes[i].end) != CAUSE_FOLLOWER)
            continue;
        const int n = print_who(sup, i, text, sizeof text);
        (void)snprintf(text + n, sizeof text - (size_t)n, ": %s",
                       reason(sup, i));
        render_remark(sup->render, text);
        shown++;
    }
}

/* " within 60 s": in which time a node may have its restarts. */
static void print_window(const struct plan_node *node, char *text, size_t size)
{
    if (node->restart_window_s > 0.0)
        (void)snprintf(text, size, " within %g s", node->restart_window_s);
    else
        text[0] = '\0';
}

/* What a text about a failure says of restarts, behind it. */
static void add_restarts(const supervisor *sup, size_t index, char *text,
                         size_t size)
{
    const struct plan_node *planned = &sup->plan->nodes[index];
    const unsigned restarts = sup->nodes[index].restarts.n;
    char window[48];
    size_t used = strlen(text);
    if (restarts > 0)
        (void)snprintf(text + used, size - used, ", after %u restart%s",
                       restarts, restarts == 1 ? "" : "s");
    used = strlen(text);
    print_window(planned, window, sizeof window);
    if (sup->nodes[index].spent)
        (void)snprintf(text + used, size - used,
                       "; no restart is left: at most %u%s "
                       "(nodes.max_restarts%s)",
                       planned->max_restarts, window,
                       window[0] != '\0' ? ", restart_window_s" : "");
}

/* Say that a node failed, and the run with it. */
static void show_node(supervisor *sup, size_t index, int exit_code)
{
    const struct watched *node = &sup->nodes[index];
    char text[LS_ERROR_TEXT_MAX + 128];
    const char *lines[LINES_KEPT];
    const size_t n =
        node->n_lines < LINES_KEPT ? node->n_lines : (size_t)LINES_KEPT;
    for (size_t i = 0; i < n; i++)
        lines[i] = node->lines[(node->n_lines - n + i) % LINES_KEPT];
    describe(sup, index, text, sizeof text);
    add_restarts(sup, index, text, sizeof text);
    report_node(sup, index, text);
    render_failed(sup->render,
                  &(struct render_failure){.index = index,
                                           .status = node->end.status,
                                           .signal = node->end.signal,
                                           .exit_code = exit_code,
                                           .text = text,
                                           .lines = lines,
                                           .n_lines = n});
}

/* A node does not end. where: what it is at; NULL: it does not say. */
static void note_stuck(supervisor *sup, size_t index, const char *where)
{
    struct watched *node = &sup->nodes[index];
    node->stuck = true;
    (void)snprintf(node->at, sizeof node->at, "%s", where != NULL ? where : "");
    if (sup->unclear)
        return;
    char text[LS_ERROR_TEXT_MAX + 128];
    const int n = print_who(sup, index, text, sizeof text);
    if (where != NULL)
        (void)snprintf(text + n, sizeof text - (size_t)n,
                       " did not end when told to: it is %s", where);
    else
        (void)snprintf(text + n, sizeof text - (size_t)n,
                       " did not end when told to, nor say why: it is killed");
    render_stuck(sup->render, index, text);
}

static int show_run(supervisor *sup, int status, int exit_code,
                    const char *text)
{
    render_failed(sup->render, &(struct render_failure){.index = sup->n,
                                                        .status = status,
                                                        .exit_code = exit_code,
                                                        .text = text});
    return exit_code;
}

/* deadline: that of timeout_s. */
static int show_late(supervisor *sup, double timeout_s, int64_t deadline)
{
    char text[160];
    const int64_t now = ls_now(sup->runtime);
    if (now >= deadline) {
        (void)snprintf(text, sizeof text,
                       "the run was not done after %g s (--timeout)",
                       timeout_s);
    } else if (now >= sup->stop_at) {
        (void)snprintf(text, sizeof text,
                       "the run did not end by itself after %g minutes "
                       "(stop.minutes)",
                       sup->plan->stop_minutes);
    } else {
        size_t i = 0;
        while (sup->nodes[i].gone)
            i++;
        (void)snprintf(text, sizeof text,
                       "node %u (%s) did not end within %d s of the first "
                       "that did",
                       (unsigned)sup->plan->nodes[i].id,
                       plan_role_names[sup->plan->nodes[i].role],
                       STRAGGLE_MS / 1000);
    }
    report_failure(sup,
                   (struct run_failure){.type = ls_status_name(LS_ETIMEDOUT),
                                        .value = text,
                                        .text = text,
                                        .where = "",
                                        .index = sup->n});
    return show_run(sup, LS_ETIMEDOUT, ls_status_exit_code(LS_ETIMEDOUT), text);
}

/* ---- what becomes of a run when a node fails: restart.h ---- */

/* Whether what a node failed with is the run's failure: else its policy has
 * had, or will have, its say. */
static bool counts(const supervisor *sup, size_t index)
{
    return sup->nodes[index].final ||
           sup->plan->nodes[index].on_loss == PLAN_FAIL;
}

/* It has failed, and nothing was made of that yet. */
static bool awaits_verdict(const supervisor *sup, size_t index)
{
    const struct watched *node = &sup->nodes[index];
    return node->gone && !node->let_go && !counts(sup, index) &&
           cause_rank(&node->end) != CAUSE_NOTHING;
}

static void say(supervisor *sup, size_t index, int wait_ms, const char *what)
{
    char text[LS_ERROR_TEXT_MAX + 256];
    describe(sup, index, text, sizeof text);
    const size_t n = strlen(text);
    (void)snprintf(text + n, sizeof text - n, "; %s", what);
    render_policy(
        sup->render,
        &(struct render_policy){
            .index = index,
            .restart = wait_ms >= 0 ? sup->nodes[index].restarts.n : 0,
            .wait_ms = wait_ms,
            .text = text,
        });
}

static void let_go(supervisor *sup, size_t index, const char *what)
{
    sup->nodes[index].let_go = true;
    say(sup, index, -1, what);
}

/* From here to its start it counts as one that was not started yet. */
static void schedule(supervisor *sup, size_t index, int wait_ms,
                     const char *what)
{
    struct watched *node = &sup->nodes[index];
    node->restart_at = ls_deadline(sup->runtime, wait_ms);
    node->launched = node->gone = false;
    sup->n_launched--;
    sup->n_gone--;
    say(sup, index, wait_ms, what);
}

static void call_off(supervisor *sup, size_t index)
{
    struct watched *node = &sup->nodes[index];
    node->restart_at = 0;
    node->launched = node->gone = true;
    sup->n_launched++;
    sup->n_gone++;
}

/* Whether nobody else does what the run cannot do without. */
static bool is_last_needed(const supervisor *sup, size_t index)
{
    const struct plan_node *nodes = sup->plan->nodes;
    const enum plan_role role = nodes[index].role;
    for (size_t i = 0; i < sup->n; i++) {
        if (i != index && nodes[i].role == role && !sup->nodes[i].let_go)
            return false;
    }
    return role == PLAN_COLLECTOR || role == PLAN_LEARNER;
}

static void decide(supervisor *sup, size_t index)
{
    struct watched *node = &sup->nodes[index];
    const struct plan_node *planned = &sup->plan->nodes[index];
    const int64_t now = ls_now(sup->runtime);
    char what[144], window[48];
    int wait_ms = 0;
    /* Another program has taken its port meanwhile, which is not its failure.
     */
    if (node->keeps_address && node->end.status == LS_EADDRINUSE) {
        schedule(sup, index, 0, "it is started again at another address");
        return;
    }
    switch (
        restart_decide(&node->restarts, planned, &node->end, now, &wait_ms)) {
    case RESTART_AGAIN:
        print_window(planned, window, sizeof window);
        (void)snprintf(what, sizeof what, "restart %u of %u%s in %d ms",
                       restart_spent(&node->restarts, planned, now),
                       planned->max_restarts, window, wait_ms);
        schedule(sup, index, wait_ms, what);
        break;
    case RESTART_LET_GO:
        if (is_last_needed(sup, index))
            node->final = true;
        else
            let_go(sup, index, "the run goes on without it");
        break;
    case RESTART_FAIL:
        node->final = true;
        node->spent = planned->on_loss == PLAN_RESTART &&
                      restart_spent(&node->restarts, planned, now) >=
                          planned->max_restarts;
        break;
    }
}

/* The others are done, so nobody is there to come back to. What the run was
 * for is with the first node, unless it was done itself: as a coordinator is,
 * before it tells its members that they are. */
static void conclude(supervisor *sup, size_t index)
{
    const struct node_end *end = &sup->nodes[index].end;
    const bool done =
        plan_is_service(sup->plan) || (end->reported && end->status == LS_OK);
    if (index == sup->plan->first && !done)
        sup->nodes[index].final = true;
    else
        let_go(sup, index, "the run is ending without it");
}

/* Apply the policies of those that have ended; call it after every change. */
static void apply_policies(supervisor *sup)
{
    for (size_t i = 0; i < sup->n && sup->interrupted == 0; i++) {
        if (sup->any_done && sup->nodes[i].restart_at != 0)
            call_off(sup, i);
        if (!awaits_verdict(sup, i))
            continue;
        if (sup->any_done)
            conclude(sup, i);
        else
            decide(sup, i);
    }
}

/* The first node listens before others start: they attach to it, and might
 * else take the port that it has to have again. */
static int64_t due_at(const supervisor *sup, size_t index)
{
    const int64_t at = sup->nodes[index].restart_at;
    const size_t first = sup->plan->first;
    return at != 0 && (index == first || sup->nodes[first].listens)
               ? at
               : LS_FOREVER;
}

/* A node whose time to be started again has come; n: none. */
static size_t next_due(const supervisor *sup)
{
    const int64_t now = ls_now(sup->runtime);
    size_t i = 0;
    while (i < sup->n && due_at(sup, i) > now)
        i++;
    return i;
}

/* When that will be; LS_FOREVER: never. */
static int64_t earliest_due(const supervisor *sup)
{
    int64_t at = LS_FOREVER;
    for (size_t i = 0; i < sup->n; i++)
        at = due_at(sup, i) < at ? due_at(sup, i) : at;
    return at;
}

/* Whoever comes to its world now comes to none: one that was started again, or
 * one that was slow to begin with when a short job's coordinator is done. */
static bool comes_too_late(const supervisor *sup, const struct watched *node)
{
    const struct node_end *first = &sup->nodes[sup->plan->first].end;
    return node->restarts.n > 0 || (plan_is_service(sup->plan) &&
                                    first->reported && first->status == LS_OK);
}

/* A node that is being started again while the others end; n: none. */
static size_t next_useless(const supervisor *sup)
{
    for (size_t i = 0; i < sup->n && sup->any_done; i++) {
        const struct watched *node = &sup->nodes[i];
        if (node->launched && !node->gone && !node->working &&
            !node->end.told && comes_too_late(sup, node))
            return i;
    }
    return sup->n;
}

/* The others have been done for long: go on without those that are not, if
 * what they would fail with were not the run's failure. */
static bool leave_behind(supervisor *sup)
{
    char text[160];
    for (size_t i = 0; i < sup->n; i++)
        if (!sup->nodes[i].gone && (i == sup->plan->first || counts(sup, i)))
            return false;
    for (size_t i = 0; i < sup->n; i++) {
        const struct plan_node *node = &sup->plan->nodes[i];
        if (sup->nodes[i].gone)
            continue;
        sup->nodes[i].let_go = true;
        (void)snprintf(text, sizeof text,
                       "node %u (%s) did not end within %d s of the first "
                       "that did; the run is ending without it",
                       (unsigned)node->id, plan_role_names[node->role],
                       STRAGGLE_MS / 1000);
        render_policy(
            sup->render,
            &(struct render_policy){.index = i, .wait_ms = -1, .text = text});
    }
    return true;
}

/* Starting; without the mutex ---------------------------------------------- */

/* A node that comes back listens where it did, not at the first free port of a
 * range: others look for it there, and would find somebody else. */
static void keep_address(const char *endpoint, struct plan_endpoints *endpoints)
{
    const char *port = strrchr(endpoint, ':');
    char *range = strrchr(endpoints->bind, ':');
    if (strncmp(endpoint, "tcp://", 6) != 0 || range == NULL ||
        strchr(range, '-') == NULL || strlen(port) > strlen(range))
        return;
    memcpy(range, port, strlen(port) + 1);
}

static size_t list_gone(const supervisor *sup, uint32_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < sup->n; i++) {
        if (sup->nodes[i].let_go)
            ids[n++] = sup->plan->nodes[i].id;
    }
    return n;
}

/* A mesh finds its members in any direction. */
static void attach_to_others(const supervisor *sup, size_t index,
                             struct plan_endpoints *out)
{
    for (size_t i = 0; i < sup->n && out->n_attach < PLAN_ATTACH_MAX; i++) {
        const struct watched *node = &sup->nodes[i];
        if (i != index && node->listens)
            plan_put_address(sup->plan, i, node->endpoint,
                             out->attach[out->n_attach++]);
    }
}

static int find_endpoints(supervisor *sup, size_t index,
                          struct plan_endpoints *out)
{
    const size_t first = sup->plan->first;
    struct watched *node = &sup->nodes[index];
    const int status = plan_endpoints_here(
        sup->plan, index, index == first ? NULL : sup->nodes[first].endpoint,
        sup->launcher->dir, out);
    node->keeps_address = false;
    if (status != LS_OK || node->endpoint[0] == '\0')
        return status;
    const bool mesh = sup->plan->world.topology == LS_TOPOLOGY_MESH;
    if (index == first && mesh)
        attach_to_others(sup, index, out);
    /* The hub of a star is found nowhere else. */
    const bool must_keep = index == first && !mesh;
    const bool taken = node->end.status == LS_EADDRINUSE;
    if (must_keep || !taken)
        keep_address(node->endpoint, out);
    node->keeps_address = !must_keep && !taken;
    return LS_OK;
}

static void note_failed_start(supervisor *sup, size_t index, int status)
{
    struct watched *node = &sup->nodes[index];
    ls_mutex_lock(&sup->mutex);
    node->end.reported = true;
    node->end.status = status;
    (void)snprintf(node->text, sizeof node->text, "%s", ls_error_text());
    ls_mutex_unlock(&sup->mutex);
    supervisor_note_end(sup, index, 1, 0);
}

/* Start a node; without the mutex. */
static void start_node(supervisor *sup, size_t index)
{
    struct watched *node = &sup->nodes[index];
    struct plan_endpoints endpoints;
    uint32_t gone[PLAN_NODES_MAX];
    ls_mutex_lock(&sup->mutex);
    const struct launch what = {
        .endpoints = &endpoints,
        .generation = sup->plan->lives * PLAN_LIFE_RESTARTS + node->restarts.n,
        .gone = gone,
        .n_gone = list_gone(sup, gone)};
    int status = find_endpoints(sup, index, &endpoints);
    node->restart_at = 0;
    node->end = (struct node_end){.over = false};
    node->listens = node->working = node->stuck = false;
    node->n_lines = 0;
    node->launched = true;
    sup->n_launched++;
    ls_mutex_unlock(&sup->mutex);
    if (status == LS_OK)
        status = sup->launcher->start(sup->launcher->self, index, &what);
    if (status != LS_OK) {
        note_failed_start(sup, index, status);
        return;
    }
    ls_mutex_lock(&sup->mutex);
    render_launched(sup->render, index, node->pid);
    ls_mutex_unlock(&sup->mutex);
}

/* How long a failure that another would explain waits for that other. */
#define SETTLE_MS 200
/* From the word to the kill, and from the kill to giving up. A node that is a
 * process and hangs says where, and goes, before the first is over. */
#define GRACE_MS  8000
#define KILLED_MS 2000

int supervisor_create(supervisor **out, const struct plan *plan, render *to,
                      ls_runtime *runtime)
{
    supervisor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "watching the nodes");
    made->plan = plan;
    made->render = to;
    made->runtime = runtime != NULL ? runtime : ls_runtime_threads();
    made->n = plan->n_nodes;
    made->stop_at = LS_FOREVER;
    made->nodes = calloc(made->n, sizeof *made->nodes);
    int status = made->nodes != NULL
                     ? ls_mutex_init(&made->mutex, made->runtime)
                     : ls_error(LS_ENOMEM, "watching the nodes");
    if (status == LS_OK)
        status = ls_cond_init(&made->cond, made->runtime);
    *out = made;
    if (status != LS_OK)
        supervisor_destroy(out);
    return status;
}

void supervisor_destroy(supervisor **sup)
{
    if (sup == NULL || *sup == NULL)
        return;
    for (size_t i = 0; (*sup)->nodes != NULL && i < (*sup)->n; i++) {
        for (size_t k = 0; k < LINES_KEPT; k++)
            free((*sup)->nodes[i].lines[k]);
    }
    free((*sup)->nodes);
    free((*sup)->told);
    ls_cond_fini(&(*sup)->cond);
    ls_mutex_fini(&(*sup)->mutex);
    free(*sup);
    *sup = NULL;
}

void supervisor_set_output(supervisor *sup, node_output *output)
{
    sup->output = output;
}

/* Notes ------------------------------------------------------------------ */

static void note_over(supervisor *sup, struct watched *node)
{
    if (node->end.over)
        return;
    node->end.over = true;
    node->end.order = ++sup->order;
}

/* The time of the run begins with it, and anew with each life of the first
 * node. */
static void note_stop(supervisor *sup, size_t index)
{
    if (index == sup->plan->first && sup->plan->stop_minutes > 0.0)
        sup->stop_at =
            ls_now(sup->runtime) + plan_stop_ms(sup->plan) * LS_NS_PER_MS;
}

static void put_report(void *self, const struct report *report)
{
    supervisor *sup = self;
    size_t index;
    if (plan_find(sup->plan, (uint32_t)report->node, &index) != LS_OK)
        return;
    struct watched *node = &sup->nodes[index];
    ls_mutex_lock(&sup->mutex);
    if (report->kind == REPORT_STUCK) {
        note_stuck(sup, index, report->text);
        ls_mutex_unlock(&sup->mutex);
        return;
    }
    if (report->kind == REPORT_BOUND) {
        memcpy(node->endpoint, report->endpoint, sizeof node->endpoint);
        node->listens = true;
        sup->moved = true;
        /* It may say so before start_node() has gone on. */
        render_launched(sup->render, index, node->pid);
    }
    if (report->kind == REPORT_DONE || report->kind == REPORT_FAILED) {
        node->end.reported = true;
        node->end.status = (int)report->status;
        memcpy(node->text, report->text, sizeof node->text);
    }
    if (report->kind == REPORT_STARTED) {
        node->working = true;
        restart_note_working(&node->restarts, ls_now(sup->runtime));
        note_stop(sup, index);
    }
    if (report->kind == REPORT_DONE)
        sup->any_done = true;
    if (report->kind == REPORT_FAILED) {
        note_over(sup, node);
        sup->any_failed = sup->any_failed || counts(sup, index);
    }
    render_report(sup->render, index, report);
    if (render_is_unread(sup->render) && sup->interrupted == 0)
        sup->interrupted = SIGPIPE;
    ls_cond_broadcast(&sup->cond);
    ls_mutex_unlock(&sup->mutex);
}

struct report_sink supervisor_sink(supervisor *sup)
{
    return (struct report_sink){put_report, sup};
}

void supervisor_note_line(supervisor *sup, size_t index, const char *line)
{
    struct watched *node = &sup->nodes[index];
    char *copy = strdup(line);
    node_output_line(sup->output, index, line);
    ls_mutex_lock(&sup->mutex);
    char **place = &node->lines[node->n_lines % LINES_KEPT];
    if (copy != NULL) {
        free(*place);
        *place = copy;
        node->n_lines++;
    }
    /* After a failure the others' complaints only bury it. */
    if (!sup->any_failed && node_output_shows(sup->output))
        render_line(sup->render, index, line);
    ls_mutex_unlock(&sup->mutex);
}

void supervisor_note_pid(supervisor *sup, size_t index, long pid)
{
    ls_mutex_lock(&sup->mutex);
    sup->nodes[index].pid = pid;
    ls_mutex_unlock(&sup->mutex);
}

void supervisor_note_end(supervisor *sup, size_t index, int exit_code,
                         int signal)
{
    struct watched *node = &sup->nodes[index];
    ls_mutex_lock(&sup->mutex);
    node->end.exit_code = exit_code;
    node->end.signal = signal;
    note_over(sup, node);
    node->listens = false;
    if (!node->gone) {
        node->gone = true;
        sup->n_gone++;
    }
    ls_cond_broadcast(&sup->cond);
    ls_mutex_unlock(&sup->mutex);
}

bool supervisor_is_done(const supervisor *sup)
{
    return sup->done;
}

void supervisor_ask(supervisor *sup, int signal)
{
    ls_mutex_lock(&sup->mutex);
    sup->dump = sup->dump || signal == SIGUSR1;
    sup->save = sup->save || signal == SIGUSR2;
    ls_cond_broadcast(&sup->cond);
    ls_mutex_unlock(&sup->mutex);
}

void supervisor_interrupt(supervisor *sup, int signal)
{
    ls_mutex_lock(&sup->mutex);
    if (sup->interrupted == 0)
        sup->interrupted = signal;
    ls_cond_broadcast(&sup->cond);
    ls_mutex_unlock(&sup->mutex);
}

/* Deciding; with the mutex held ------------------------------------------ */

static size_t first_cause(const supervisor *sup, enum cause_rank *rank)
{
    struct node_end ends[PLAN_NODES_MAX];
    memset(ends, 0, sup->n * sizeof *ends);
    for (size_t i = 0; i < sup->n; i++) {
        if (counts(sup, i))
            ends[i] = sup->nodes[i].end;
    }
    return root_cause(ends, sup->n, rank);
}

static enum outcome look(supervisor *sup, bool for_endpoint)
{
    enum cause_rank rank;
    apply_policies(sup);
    if (sup->interrupted != 0)
        return INTERRUPTED;
    (void)first_cause(sup, &rank);
    if (rank != CAUSE_NOTHING)
        return FAILED;
    if (sup->n_gone == sup->n)
        return ALL_DONE;
    if (for_endpoint && sup->nodes[sup->plan->first].endpoint[0] != '\0')
        return REACHED;
    return GOING;
}

/* Tell in a file where the nodes listen. A run that cannot goes on: it only is
 * not found by `lockstep call`. */
static void tell_where(supervisor *sup)
{
    if (sup->told == NULL)
        sup->told = malloc(sizeof *sup->told);
    struct run_file *file = sup->told;
    sup->moved = false;
    if (file == NULL)
        return;
    memset(file, 0, sizeof *file);
    file->pid = (int64_t)getpid();
    file->hash = sup->plan->hash;
    file->place = plan_place(sup->plan);
    for (size_t i = 0; i < sup->n; i++) {
        struct run_file_node *node = &file->nodes[file->n_nodes++];
        node->id = sup->plan->nodes[i].id;
        memcpy(node->endpoint, sup->nodes[i].endpoint, sizeof node->endpoint);
    }
    ls_mutex_unlock(&sup->mutex);
    if (run_file_write(sup->plan, file) != LS_OK)
        ls_log_info("lockstep call will not find this run: %s",
                    ls_error_text());
    ls_mutex_lock(&sup->mutex);
}

/* Only a node that listens is sure to know what is meant. For a save one asks
 * for all. */
static void ask_all(supervisor *sup)
{
    const struct launcher *launcher = sup->launcher;
    const int signal = sup->dump ? SIGUSR1 : SIGUSR2;
    *(sup->dump ? &sup->dump : &sup->save) = false;
    if (launcher->ask == NULL)
        ls_log_warn("nodes that are elsewhere do so when they get %s "
                    "themselves",
                    signal_name(signal));
    for (size_t i = 0; i < sup->n && launcher->ask != NULL; i++) {
        const bool is_meant = sup->nodes[i].listens &&
                              (signal == SIGUSR1 || i == sup->plan->first);
        ls_mutex_unlock(&sup->mutex);
        if (is_meant)
            launcher->ask(launcher->self, i, signal);
        ls_mutex_lock(&sup->mutex);
    }
}

/* Do what is due, for which the mutex is let go; false: nothing was. */
static bool act(supervisor *sup)
{
    if (sup->moved && sup->launcher->outside_reaches) {
        tell_where(sup);
        return true;
    }
    if (sup->dump || sup->save) {
        ask_all(sup);
        return true;
    }
    const size_t due = next_due(sup);
    const size_t useless = next_useless(sup);
    if (due == sup->n && useless == sup->n)
        return false;
    if (useless < sup->n)
        sup->nodes[useless].end.told = true;
    ls_mutex_unlock(&sup->mutex);
    if (useless < sup->n)
        sup->launcher->stop(sup->launcher->self, useless, false);
    else
        start_node(sup, due);
    ls_mutex_lock(&sup->mutex);
    return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whether it woke so late that it stood still, as by Ctrl-Z: all nodes of a
 * run do so with it. */
static bool stood_still(const supervisor *sup, int64_t until)
{
    return ls_now(sup->runtime) - until > LS_NS_PER_S;
}

static enum outcome await(supervisor *sup, bool for_endpoint, int64_t deadline)
{
    enum outcome outcome = look(sup, for_endpoint);
    int64_t last = LS_FOREVER;
    while (outcome == GOING) {
        if (sup->any_done && last == LS_FOREVER)
            last = ls_deadline(sup->runtime, STRAGGLE_MS);
        const int64_t end = earlier(last, earlier(deadline, sup->stop_at));
        int status = LS_OK;
        if (!act(sup))
            status = ls_cond_wait(&sup->cond, &sup->mutex,
                                  earlier(end, earliest_due(sup)));
        outcome = look(sup, for_endpoint);
        if (outcome != GOING || status == LS_OK || ls_now(sup->runtime) < end)
            continue;
        if (end == last && stood_still(sup, end))
            last = LS_FOREVER; /* it begins anew: nobody had that time */
        else
            return end == last && leave_behind(sup) ? LEFT_BEHIND : TIME_UP;
    }
    return outcome;
}

/* Give a better explanation the time to arrive. */
static void settle(supervisor *sup)
{
    const int64_t deadline = ls_deadline(sup->runtime, SETTLE_MS);
    enum cause_rank rank;
    for (;;) {
        const size_t first = first_cause(sup, &rank);
        /* A cause that reported is known in full; one that went without a
         * word, or has more lines to come, is when it is gone. */
        if (rank == CAUSE_FIRST && sup->nodes[first].gone)
            return;
        if (sup->n_gone == sup->n_launched ||
            ls_cond_wait(&sup->cond, &sup->mutex, deadline) != LS_OK)
            return;
    }
}

static void ask_stuck(supervisor *sup, size_t index)
{
    char where[LS_ERROR_TEXT_MAX];
    const struct launcher *launcher = sup->launcher;
    if (launcher->where != NULL)
        launcher->where(launcher->self, index, where, sizeof where);
    note_stuck(sup, index, launcher->where != NULL ? where : NULL);
}

/* Stopping; without the mutex --------------------------------------------- */

static void tell_all(supervisor *sup, bool hard)
{
    for (size_t i = 0; i < sup->n; i++) {
        struct watched *node = &sup->nodes[i];
        ls_mutex_lock(&sup->mutex);
        const bool there = node->launched && !node->gone;
        if (there && !node->end.over)
            node->end.told = true;
        if (there && hard && !node->stuck)
            ask_stuck(sup, i);
        ls_mutex_unlock(&sup->mutex);
        if (there)
            sup->launcher->stop(sup->launcher->self, i, hard);
    }
}

static bool all_gone_within(supervisor *sup, int wait_ms)
{
    const int64_t deadline = ls_deadline(sup->runtime, wait_ms);
    ls_mutex_lock(&sup->mutex);
    int status = LS_OK;
    while (sup->n_gone < sup->n_launched && status == LS_OK)
        status = ls_cond_wait(&sup->cond, &sup->mutex, deadline);
    const bool gone = sup->n_gone == sup->n_launched;
    ls_mutex_unlock(&sup->mutex);
    return gone;
}

/* Whom the others have lost may only be looked at. */
static void show_traced(supervisor *sup)
{
    char text[256];
    for (size_t i = 0; i < sup->n; i++) {
        const struct watched *node = &sup->nodes[i];
        const long tracer = node->launched && !node->gone && node->pid != 0
                                ? tracer_of(node->pid)
                                : 0;
        if (tracer == 0)
            continue;
        const int n = print_who(sup, i, text, sizeof text);
        (void)snprintf(text + n, sizeof text - (size_t)n,
                       " is held by a debugger, pid %ld; with --patience S "
                       "the others wait for it",
                       tracer);
        render_remark(sup->render, text);
    }
}

/* Who has not answered when told to end is what the others waited for; n: none.
 * Whoever failed by itself first has told that to all. */
static size_t find_hung(const supervisor *sup)
{
    size_t i = 0;
    while (i < sup->n && !(sup->nodes[i].stuck && !sup->nodes[i].end.reported))
        i++;
    return i;
}

static int show_failed(supervisor *sup)
{
    enum cause_rank rank;
    const size_t first = first_cause(sup, &rank);
    const size_t hung = sup->unclear ? find_hung(sup) : sup->n;
    const size_t named = hung < sup->n ? hung : first;
    /* Whatever those that waited for it say, in which order they end. */
    const int exit_code = hung < sup->n
                              ? ls_status_exit_code(LS_ETIMEDOUT)
                              : node_end_exit_code(&sup->nodes[first].end);
    show_node(sup, named, exit_code);
    if (rank == CAUSE_FOLLOWER)
        show_others(sup, named);
    return exit_code;
}

/* Say how it came out, with the mutex held; returns the exit code. */
static int show(supervisor *sup, enum outcome outcome, double timeout_s,
                int64_t deadline)
{
    char text[64];
    switch (outcome) {
    case FAILED:
        return show_failed(sup);
    case INTERRUPTED:
        sup->any_failed = true;
        if (sup->interrupted == SIGPIPE)
            (void)snprintf(text, sizeof text,
                           "the run ends, since nobody reads its output");
        else
            (void)snprintf(text, sizeof text, "interrupted by %s",
                           signal_name(sup->interrupted));
        return show_run(sup, LS_ECANCELED, 128 + sup->interrupted, text);
    case TIME_UP:
        sup->any_failed = true;
        return show_late(sup, timeout_s, deadline);
    case GOING:
    case REACHED:
    case ALL_DONE:
    case LEFT_BEHIND:
        break;
    }
    return 0;
}

static enum outcome start_all(supervisor *sup, int64_t deadline)
{
    start_node(sup, sup->plan->first);
    ls_mutex_lock(&sup->mutex);
    enum outcome outcome = await(sup, true, deadline);
    ls_mutex_unlock(&sup->mutex);
    if (outcome != REACHED)
        return outcome;
    for (size_t i = 0; i < sup->n; i++) {
        if (i != sup->plan->first)
            start_node(sup, i);
    }
    return GOING;
}

/* No life of any node follows. What a run has left that has not come to its end
 * is what it will go on with. */
static void clear_away(supervisor *sup)
{
    if (sup->done && plan_is_service(sup->plan) &&
        service_node_end(sup->plan) != LS_OK)
        ls_log_warn("something stays: %s", ls_error_text());
    if (sup->told != NULL)
        run_file_remove(sup->plan, sup->told);
}

int supervise(supervisor *sup, const struct launcher *launcher,
              double timeout_s, bool *left)
{
    const int64_t deadline =
        timeout_s > 0.0
            ? ls_now(sup->runtime) + (int64_t)(timeout_s * (double)LS_NS_PER_S)
            : LS_FOREVER;
    sup->launcher = launcher;
    run_failure_remove(sup->plan);
    note_stop(sup, sup->plan->first);
    enum outcome outcome = start_all(sup, deadline);
    ls_mutex_lock(&sup->mutex);
    if (outcome == GOING)
        outcome = await(sup, false, deadline);
    int exit_code = 0;
    if (outcome == FAILED) {
        enum cause_rank rank;
        settle(sup);
        sup->any_failed = true;
        (void)first_cause(sup, &rank);
        sup->unclear = rank == CAUSE_FOLLOWER;
        show_traced(sup);
    }
    if (!sup->unclear)
        exit_code = show(sup, outcome, timeout_s, deadline);
    sup->done = outcome == ALL_DONE || outcome == LEFT_BEHIND;
    ls_mutex_unlock(&sup->mutex);

    *left = false;
    if (outcome != ALL_DONE) {
        tell_all(sup, false);
        if (!all_gone_within(sup, GRACE_MS)) {
            tell_all(sup, true);
            *left = !all_gone_within(sup, KILLED_MS);
        }
    }
    clear_away(sup);
    ls_mutex_lock(&sup->mutex);
    if (sup->unclear)
        exit_code = show_failed(sup);
    exit_code = render_end(sup->render, exit_code);
    ls_mutex_unlock(&sup->mutex);
    return exit_code;
}
