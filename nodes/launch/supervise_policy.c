/* What becomes of a run when one of its nodes fails: see restart.h. */
#include <stdio.h>
#include <string.h>

#include "supervise_parts.h"

/* More than a node is ever started again in one life of a run. */
#define LIFE_RESTARTS 4096u

bool supervise_counts(const supervisor *sup, size_t index)
{
    return sup->nodes[index].final ||
           sup->plan->nodes[index].on_loss == PLAN_FAIL;
}

/* It has failed, and nothing was made of that yet. */
static bool awaits_verdict(const supervisor *sup, size_t index)
{
    const struct watched *node = &sup->nodes[index];
    return node->gone && !node->let_go && !supervise_counts(sup, index) &&
           judge_rank(&node->end) != JUDGE_NOTHING;
}

static void say(supervisor *sup, size_t index, int wait_ms, const char *what)
{
    char text[LS_ERROR_TEXT_MAX + 256];
    supervise_describe(sup, index, text, sizeof text);
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
    char what[96];
    int wait_ms = 0;
    /* Another program has taken its port meanwhile, which is not its failure.
     */
    if (node->keeps_address && node->end.status == LS_EADDRINUSE) {
        schedule(sup, index, 0, "it is started again at another address");
        return;
    }
    switch (restart_decide(&node->restarts, &sup->plan->nodes[index],
                           ls_now(sup->runtime), &wait_ms)) {
    case RESTART_AGAIN:
        (void)snprintf(what, sizeof what, "restart %u of %u in %d ms",
                       node->restarts.n, sup->plan->nodes[index].max_restarts,
                       wait_ms);
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
        break;
    }
}

/* The others are done, so nobody is there to come back to. What the run was
 * for is with the first node, unless it was done itself: as a coordinator is,
 * before it tells its members that they are. */
static void conclude(supervisor *sup, size_t index)
{
    const struct judge_end *end = &sup->nodes[index].end;
    const bool done =
        plan_is_service(sup->plan) || (end->reported && end->status == LS_OK);
    if (index == sup->plan->first && !done)
        sup->nodes[index].final = true;
    else
        let_go(sup, index, "the run is ending without it");
}

void supervise_apply(supervisor *sup)
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

size_t supervise_next_due(const supervisor *sup)
{
    const int64_t now = ls_now(sup->runtime);
    size_t i = 0;
    while (i < sup->n && due_at(sup, i) > now)
        i++;
    return i;
}

int64_t supervise_due_at(const supervisor *sup)
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
    const struct judge_end *first = &sup->nodes[sup->plan->first].end;
    return node->restarts.n > 0 || (plan_is_service(sup->plan) &&
                                    first->reported && first->status == LS_OK);
}

size_t supervise_next_useless(const supervisor *sup)
{
    for (size_t i = 0; i < sup->n && sup->any_done; i++) {
        const struct watched *node = &sup->nodes[i];
        if (node->launched && !node->gone && !node->working &&
            !node->end.told && comes_too_late(sup, node))
            return i;
    }
    return sup->n;
}

bool supervise_leave_behind(supervisor *sup)
{
    char text[160];
    for (size_t i = 0; i < sup->n; i++)
        if (!sup->nodes[i].gone &&
            (i == sup->plan->first || supervise_counts(sup, i)))
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
                       SUPERVISE_STRAGGLE_MS / 1000);
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

void supervise_start(supervisor *sup, size_t index)
{
    struct watched *node = &sup->nodes[index];
    struct plan_endpoints endpoints;
    uint32_t gone[PLAN_NODES_MAX];
    ls_mutex_lock(&sup->mutex);
    const struct launch what = {.endpoints = &endpoints,
                                .generation = sup->plan->lives * LIFE_RESTARTS +
                                              node->restarts.n,
                                .gone = gone,
                                .n_gone = list_gone(sup, gone)};
    int status = find_endpoints(sup, index, &endpoints);
    node->restart_at = 0;
    node->end = (struct judge_end){.over = false};
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
