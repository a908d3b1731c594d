/* What is said of a node that failed. */
#include <stdio.h>
#include <string.h>

#include "signal_name.h"
#include "supervise_parts.h"

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

void supervise_describe(const supervisor *sup, size_t index, char *text,
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
void supervise_show_others(supervisor *sup, size_t first)
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

int supervise_show_node(supervisor *sup, size_t index)
{
    const struct watched *node = &sup->nodes[index];
    char text[LS_ERROR_TEXT_MAX + 128];
    const char *lines[SUPERVISE_LINES_KEPT];
    const size_t n = node->n_lines < SUPERVISE_LINES_KEPT
                         ? node->n_lines
                         : (size_t)SUPERVISE_LINES_KEPT;
    for (size_t i = 0; i < n; i++)
        lines[i] = node->lines[(node->n_lines - n + i) % SUPERVISE_LINES_KEPT];
    supervise_describe(sup, index, text, sizeof text);
    const unsigned restarts = node->restarts.n;
    const size_t used = strlen(text);
    if (restarts > 0)
        (void)snprintf(text + used, sizeof text - used, ", after %u restart%s",
                       restarts, restarts == 1 ? "" : "s");
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

void supervise_show_stuck(supervisor *sup, size_t index, const char *where)
{
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

int supervise_show_run(supervisor *sup, int status, int exit_code,
                       const char *text)
{
    render_failed(sup->render, &(struct render_failure){.index = sup->n,
                                                        .status = status,
                                                        .exit_code = exit_code,
                                                        .text = text});
    return exit_code;
}

int supervise_show_late(supervisor *sup, double timeout_s, int64_t deadline)
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
                       SUPERVISE_STRAGGLE_MS / 1000);
    }
    return supervise_show_run(sup, LS_ETIMEDOUT,
                              ls_status_exit_code(LS_ETIMEDOUT), text);
}
