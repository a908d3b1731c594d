/* One mutex guards all that the notes write; one condition wakes the thread of
 * supervise(), which alone decides. It calls the launcher without the mutex:
 * stopping a node may wait for that node's last report. */
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#include "judge.h"
#include "signal_name.h"

#define LINES_KEPT   20
#define OTHERS_SHOWN 8

/* How long a failure that another would explain waits for that other. */
#define SETTLE_MS 200
/* From the word to the kill, and from the kill to giving up. */
#define GRACE_MS  1000
#define KILLED_MS 2000
/* The first node that is done is followed by all within this. */
#define STRAGGLE_MS 10000

struct watched {
    struct judge_end end;
    bool launched, gone;
    long pid;
    char endpoint[LS_ENDPOINT_MAX + 1]; /* "" until it listens */
    char text[LS_ERROR_TEXT_MAX];       /* why it failed */
    char *lines[LINES_KEPT];            /* own; the last ones, a ring */
    size_t n_lines;                     /* ever */
};

struct supervisor {
    const struct plan *plan; /* borrow */
    render *render;          /* borrow; under mutex */
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond cond;
    struct watched *nodes; /* own; n */
    size_t n;
    size_t n_launched, n_gone;
    unsigned order; /* of the last end */
    bool any_done;  /* a node reported success */
    bool any_failed;
    int interrupted; /* by this signal */
};

enum outcome { GOING, REACHED, ALL_DONE, FAILED, INTERRUPTED, TIME_UP };

int supervisor_create(supervisor **out, const struct plan *plan, render *to)
{
    supervisor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "watching the nodes");
    made->plan = plan;
    made->render = to;
    made->runtime = ls_runtime_threads();
    made->n = plan->n_nodes;
    made->nodes = calloc(made->n, sizeof *made->nodes);
    int status = made->nodes != NULL
                     ? ls_mutex_init(&made->mutex, made->runtime)
                     : ls_error(LS_ENOMEM, "watching the nodes");
    if (status == LS_OK) {
        status = ls_cond_init(&made->cond, made->runtime);
        if (status != LS_OK)
            ls_mutex_fini(&made->mutex);
    }
    if (status != LS_OK) {
        free(made->nodes);
        free(made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void supervisor_destroy(supervisor **sup)
{
    if (sup == NULL || *sup == NULL)
        return;
    for (size_t i = 0; i < (*sup)->n; i++) {
        for (size_t k = 0; k < LINES_KEPT; k++)
            free((*sup)->nodes[i].lines[k]);
    }
    free((*sup)->nodes);
    ls_cond_fini(&(*sup)->cond);
    ls_mutex_fini(&(*sup)->mutex);
    free(*sup);
    *sup = NULL;
}

/* Notes ------------------------------------------------------------------ */

static void note_over(supervisor *sup, struct watched *node)
{
    if (node->end.over)
        return;
    node->end.over = true;
    node->end.order = ++sup->order;
}

static void put_report(void *self, const struct report *report)
{
    supervisor *sup = self;
    size_t index;
    if (plan_find(sup->plan, (uint32_t)report->node, &index) != LS_OK)
        return;
    struct watched *node = &sup->nodes[index];
    ls_mutex_lock(&sup->mutex);
    if (report->kind == REPORT_BOUND)
        memcpy(node->endpoint, report->endpoint, sizeof node->endpoint);
    if (report->kind == REPORT_DONE || report->kind == REPORT_FAILED) {
        node->end.reported = true;
        node->end.status = (int)report->status;
        memcpy(node->text, report->text, sizeof node->text);
    }
    if (report->kind == REPORT_DONE)
        sup->any_done = true;
    if (report->kind == REPORT_FAILED) {
        note_over(sup, node);
        sup->any_failed = true;
    }
    render_report(sup->render, index, report);
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
    ls_mutex_lock(&sup->mutex);
    char **place = &node->lines[node->n_lines % LINES_KEPT];
    if (copy != NULL) {
        free(*place);
        *place = copy;
        node->n_lines++;
    }
    /* After a failure the others' complaints only bury it. */
    if (!sup->any_failed)
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
    if (!node->gone) {
        node->gone = true;
        sup->n_gone++;
    }
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

static size_t first_cause(const supervisor *sup, enum judge_rank *rank)
{
    struct judge_end ends[PLAN_NODES_MAX];
    for (size_t i = 0; i < sup->n; i++)
        ends[i] = sup->nodes[i].end;
    return judge_first(ends, sup->n, rank);
}

static enum outcome look(const supervisor *sup, bool for_endpoint)
{
    enum judge_rank rank;
    if (sup->interrupted != 0)
        return INTERRUPTED;
    (void)first_cause(sup, &rank);
    if (rank != JUDGE_NOTHING)
        return FAILED;
    if (sup->n_gone == sup->n)
        return ALL_DONE;
    if (for_endpoint && sup->nodes[sup->plan->first].endpoint[0] != '\0')
        return REACHED;
    return GOING;
}

static enum outcome await(supervisor *sup, bool for_endpoint, int64_t deadline)
{
    enum outcome outcome = look(sup, for_endpoint);
    int64_t last = LS_FOREVER;
    while (outcome == GOING) {
        if (sup->any_done && last == LS_FOREVER)
            last = ls_deadline(sup->runtime, STRAGGLE_MS);
        const int status = ls_cond_wait(&sup->cond, &sup->mutex,
                                        last < deadline ? last : deadline);
        outcome = look(sup, for_endpoint);
        if (outcome == GOING && status != LS_OK)
            return TIME_UP;
    }
    return outcome;
}

/* Give a better explanation the time to arrive. */
static void settle(supervisor *sup)
{
    const int64_t deadline = ls_deadline(sup->runtime, SETTLE_MS);
    enum judge_rank rank;
    for (;;) {
        const size_t first = first_cause(sup, &rank);
        /* A cause that reported is known in full; one that went without a
         * word, or has more lines to come, is when it is gone. */
        if (rank == JUDGE_CAUSE && sup->nodes[first].gone)
            return;
        if (sup->n_gone == sup->n_launched ||
            ls_cond_wait(&sup->cond, &sup->mutex, deadline) != LS_OK)
            return;
    }
}

/* Starting and stopping; without the mutex ------------------------------- */

static void start_one(supervisor *sup, const struct launcher *launcher,
                      size_t index)
{
    struct watched *node = &sup->nodes[index];
    struct plan_endpoints endpoints;
    const bool first = index == sup->plan->first;
    int status = plan_endpoints_here(
        sup->plan, index, first ? NULL : sup->nodes[sup->plan->first].endpoint,
        launcher->dir, &endpoints);
    ls_mutex_lock(&sup->mutex);
    node->launched = true;
    sup->n_launched++;
    ls_mutex_unlock(&sup->mutex);
    if (status == LS_OK)
        status = launcher->start(launcher->self, index, &endpoints);
    if (status != LS_OK) {
        ls_mutex_lock(&sup->mutex);
        node->end.reported = true;
        node->end.status = status;
        (void)snprintf(node->text, sizeof node->text, "%s", ls_error_text());
        ls_mutex_unlock(&sup->mutex);
        supervisor_note_end(sup, index, 1, 0);
        return;
    }
    ls_mutex_lock(&sup->mutex);
    render_launched(sup->render, index, node->pid);
    ls_mutex_unlock(&sup->mutex);
}

static void tell_all(supervisor *sup, const struct launcher *launcher,
                     bool hard)
{
    for (size_t i = 0; i < sup->n; i++) {
        struct watched *node = &sup->nodes[i];
        ls_mutex_lock(&sup->mutex);
        const bool there = node->launched && !node->gone;
        if (there && !node->end.over)
            node->end.told = true;
        ls_mutex_unlock(&sup->mutex);
        if (there)
            launcher->stop(launcher->self, i, hard);
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

/* What to say ------------------------------------------------------------ */

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

static void describe(const supervisor *sup, size_t index, char *text,
                     size_t size)
{
    const struct watched *node = &sup->nodes[index];
    char who[96];
    (void)print_who(sup, index, who, sizeof who);
    if (node->end.status != LS_OK)
        (void)snprintf(text, size, "%s failed: %s", who, reason(sup, index));
    else if (node->end.signal != 0)
        (void)snprintf(text, size, "%s was killed by signal %d (%s)", who,
                       node->end.signal, signal_name(node->end.signal));
    else
        (void)snprintf(text, size, "%s ended with exit code %d%s", who,
                       node->end.exit_code,
                       node->end.reported ? "" : " and without a word");
}

/* When nobody says that it is his fault, what all say is the evidence. */
static void show_others(supervisor *sup, size_t first)
{
    char text[LS_ERROR_TEXT_MAX + 128];
    size_t shown = 0;
    for (size_t i = 0; i < sup->n && shown < OTHERS_SHOWN; i++) {
        if (i == first || judge_rank(&sup->nodes[i].end) != JUDGE_FOLLOWER)
            continue;
        const int n = print_who(sup, i, text, sizeof text);
        (void)snprintf(text + n, sizeof text - (size_t)n, ": %s",
                       reason(sup, i));
        render_remark(sup->render, text);
        shown++;
    }
}

static int show_node(supervisor *sup, size_t index)
{
    const struct watched *node = &sup->nodes[index];
    char text[LS_ERROR_TEXT_MAX + 128];
    const char *lines[LINES_KEPT];
    const size_t n =
        node->n_lines < LINES_KEPT ? node->n_lines : (size_t)LINES_KEPT;
    for (size_t i = 0; i < n; i++)
        lines[i] = node->lines[(node->n_lines - n + i) % LINES_KEPT];
    describe(sup, index, text, sizeof text);
    const int exit_code = judge_exit_code(&node->end);
    render_failed(sup->render,
                  &(struct render_failure){.index = index,
                                           .status = node->end.status,
                                           .signal = node->end.signal,
                                           .exit_code = exit_code,
                                           .text = text,
                                           .lines = lines,
                                           .n_lines = n});
    return exit_code;
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

static int show_late(supervisor *sup, double timeout_s, bool run_time_is_up)
{
    char text[160];
    if (run_time_is_up) {
        (void)snprintf(text, sizeof text,
                       "the run was not done after %g s (--timeout)",
                       timeout_s);
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
    return show_run(sup, LS_ETIMEDOUT, ls_status_exit_code(LS_ETIMEDOUT), text);
}

/* Say how it came out, with the mutex held; returns the exit code. */
static int show(supervisor *sup, enum outcome outcome, double timeout_s,
                int64_t deadline)
{
    char text[64];
    enum judge_rank rank;
    size_t first;
    int exit_code;
    switch (outcome) {
    case FAILED:
        settle(sup);
        sup->any_failed = true;
        first = first_cause(sup, &rank);
        exit_code = show_node(sup, first);
        if (rank == JUDGE_FOLLOWER)
            show_others(sup, first);
        return exit_code;
    case INTERRUPTED:
        sup->any_failed = true;
        (void)snprintf(text, sizeof text, "interrupted by %s",
                       signal_name(sup->interrupted));
        return show_run(sup, LS_ECANCELED, 128 + sup->interrupted, text);
    case TIME_UP:
        sup->any_failed = true;
        return show_late(sup, timeout_s, ls_now(sup->runtime) >= deadline);
    case GOING:
    case REACHED:
    case ALL_DONE:
        break;
    }
    return 0;
}

static enum outcome start_all(supervisor *sup, const struct launcher *launcher,
                              int64_t deadline)
{
    start_one(sup, launcher, sup->plan->first);
    ls_mutex_lock(&sup->mutex);
    enum outcome outcome = await(sup, true, deadline);
    ls_mutex_unlock(&sup->mutex);
    if (outcome != REACHED)
        return outcome;
    for (size_t i = 0; i < sup->n; i++) {
        if (i != sup->plan->first)
            start_one(sup, launcher, i);
    }
    return GOING;
}

int supervise(supervisor *sup, const struct launcher *launcher,
              double timeout_s, bool *left)
{
    const int64_t deadline =
        timeout_s > 0.0
            ? ls_now(sup->runtime) + (int64_t)(timeout_s * (double)LS_NS_PER_S)
            : LS_FOREVER;
    enum outcome outcome = start_all(sup, launcher, deadline);
    ls_mutex_lock(&sup->mutex);
    if (outcome == GOING)
        outcome = await(sup, false, deadline);
    const int exit_code = show(sup, outcome, timeout_s, deadline);
    ls_mutex_unlock(&sup->mutex);

    *left = false;
    if (outcome != ALL_DONE) {
        tell_all(sup, launcher, false);
        if (!all_gone_within(sup, GRACE_MS)) {
            tell_all(sup, launcher, true);
            *left = !all_gone_within(sup, KILLED_MS);
        }
    }
    ls_mutex_lock(&sup->mutex);
    render_end(sup->render);
    ls_mutex_unlock(&sup->mutex);
    return exit_code;
}
