/* One mutex guards all that the notes write; one condition wakes the thread of
 * supervise(), which alone decides. It calls the launcher without the mutex:
 * stopping a node may wait for that node's last report. */
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/file.h"
#include "lockstep/log.h"

#include "run_file.h"
#include "signal_name.h"
#include "supervise_parts.h"
#include "work_service.h"

/* How long a failure that another would explain waits for that other. */
#define SETTLE_MS 200
/* From the word to the kill, and from the kill to giving up. A node that is a
 * process and hangs says where, and goes, before the first is over. */
#define GRACE_MS  2000
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
        for (size_t k = 0; k < SUPERVISE_LINES_KEPT; k++)
            free((*sup)->nodes[i].lines[k]);
    }
    free((*sup)->nodes);
    free((*sup)->told);
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
        node->stuck = true;
        supervise_show_stuck(sup, index, report->text);
        ls_mutex_unlock(&sup->mutex);
        return;
    }
    if (report->kind == REPORT_BOUND) {
        memcpy(node->endpoint, report->endpoint, sizeof node->endpoint);
        node->listens = true;
        sup->moved = true;
        /* It may say so before supervise_start() has gone on. */
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
        sup->any_failed = sup->any_failed || supervise_counts(sup, index);
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
    ls_mutex_lock(&sup->mutex);
    char **place = &node->lines[node->n_lines % SUPERVISE_LINES_KEPT];
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
    memset(ends, 0, sup->n * sizeof *ends);
    for (size_t i = 0; i < sup->n; i++) {
        if (supervise_counts(sup, i))
            ends[i] = sup->nodes[i].end;
    }
    return judge_first(ends, sup->n, rank);
}

static enum outcome look(supervisor *sup, bool for_endpoint)
{
    enum judge_rank rank;
    supervise_apply(sup);
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

/* Do what is due, for which the mutex is let go; false: nothing was. */
static bool act(supervisor *sup)
{
    if (sup->moved && sup->launcher->outside_reaches) {
        tell_where(sup);
        return true;
    }
    const size_t due = supervise_next_due(sup);
    const size_t useless = supervise_next_useless(sup);
    if (due == sup->n && useless == sup->n)
        return false;
    if (useless < sup->n)
        sup->nodes[useless].end.told = true;
    ls_mutex_unlock(&sup->mutex);
    if (useless < sup->n)
        sup->launcher->stop(sup->launcher->self, useless, false);
    else
        supervise_start(sup, due);
    ls_mutex_lock(&sup->mutex);
    return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum outcome await(supervisor *sup, bool for_endpoint, int64_t deadline)
{
    enum outcome outcome = look(sup, for_endpoint);
    int64_t last = LS_FOREVER;
    while (outcome == GOING) {
        if (sup->any_done && last == LS_FOREVER)
            last = ls_deadline(sup->runtime, SUPERVISE_STRAGGLE_MS);
        const int64_t end = earlier(last, earlier(deadline, sup->stop_at));
        int status = LS_OK;
        if (!act(sup))
            status = ls_cond_wait(&sup->cond, &sup->mutex,
                                  earlier(end, supervise_due_at(sup)));
        outcome = look(sup, for_endpoint);
        if (outcome == GOING && status != LS_OK && ls_now(sup->runtime) >= end)
            return end == last && supervise_leave_behind(sup) ? LEFT_BEHIND
                                                              : TIME_UP;
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

static void show_stuck(supervisor *sup, size_t index)
{
    char where[LS_ERROR_TEXT_MAX];
    const struct launcher *launcher = sup->launcher;
    if (launcher->where != NULL)
        launcher->where(launcher->self, index, where, sizeof where);
    supervise_show_stuck(sup, index, launcher->where != NULL ? where : NULL);
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
            show_stuck(sup, i);
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
        exit_code = supervise_show_node(sup, first);
        if (rank == JUDGE_FOLLOWER)
            supervise_show_others(sup, first);
        return exit_code;
    case INTERRUPTED:
        sup->any_failed = true;
        if (sup->interrupted == SIGPIPE)
            (void)snprintf(text, sizeof text,
                           "the run ends, since nobody reads its output");
        else
            (void)snprintf(text, sizeof text, "interrupted by %s",
                           signal_name(sup->interrupted));
        return supervise_show_run(sup, LS_ECANCELED, 128 + sup->interrupted,
                                  text);
    case TIME_UP:
        sup->any_failed = true;
        return supervise_show_late(sup, timeout_s, deadline);
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
    supervise_start(sup, sup->plan->first);
    ls_mutex_lock(&sup->mutex);
    enum outcome outcome = await(sup, true, deadline);
    ls_mutex_unlock(&sup->mutex);
    if (outcome != REACHED)
        return outcome;
    for (size_t i = 0; i < sup->n; i++) {
        if (i != sup->plan->first)
            supervise_start(sup, i);
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
    note_stop(sup, sup->plan->first);
    enum outcome outcome = start_all(sup, deadline);
    ls_mutex_lock(&sup->mutex);
    if (outcome == GOING)
        outcome = await(sup, false, deadline);
    int exit_code = show(sup, outcome, timeout_s, deadline);
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
    exit_code = render_end(sup->render, exit_code);
    ls_mutex_unlock(&sup->mutex);
    return exit_code;
}
