#include "checks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "checks_parts.h"

/* Messages under way on a link; far above what a cut piles up. */
#define UNDER_WAY_MAX 1000

int64_t checks_now(const checks *self)
{
    return ls_simulation_now(self->simulation);
}

uint32_t checks_id(const struct check_life *life)
{
    return life->all->plan->nodes[life->index].id;
}

static void check_bound(checks *self, const struct check_life *life)
{
    const int64_t bound =
        (int64_t)self->plan->barrier.timeout_ms * LS_NS_PER_MS +
        CHECKS_SLACK_NS;
    const int64_t from = life->entered_at > life->resumed_at ? life->entered_at
                                                             : life->resumed_at;
    if (!life->waiting || life->dead || life->over ||
        ls_host_is_paused(life->host) || checks_now(self) - from <= bound)
        return;
    ls_simulation_violation(
        self->simulation,
        "bound: node %" PRIu32 " has waited for %.3f s, and its deadline was "
        "after %.3f s",
        checks_id(life), (double)(checks_now(self) - life->entered_at) / 1e9,
        (double)self->plan->barrier.timeout_ms / 1e3);
}

static void watch(void *state, ls_simulation *simulation)
{
    checks *self = state;
    struct ls_network_stats stats;
    const uint64_t n = self->plan->n_nodes;
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous)
        check_bound(self, life);
    if (self->n_verdicts > 0)
        checks_judge(self, checks_now(self) - CHECKS_NOTICE_NS);
    ls_network_stats(self->network, &stats);
    if (stats.waiting > UNDER_WAY_MAX * n * n)
        ls_simulation_violation(simulation,
                                "queues: %" PRIu64
                                " messages are under way between %" PRIu64
                                " nodes",
                                stats.waiting, n);
}

/* Life ------------------------------------------------------------------- */

int checks_create(checks **out, ls_simulation *simulation,
                  const ls_network *network, const struct plan *plan)
{
    checks *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    made->simulation = simulation;
    made->network = network;
    made->plan = plan;
    const int status = ls_simulation_watch(simulation, watch, made);
    if (status != LS_OK) {
        free(made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void checks_destroy(checks **self)
{
    if (self == NULL || *self == NULL)
        return;
    for (struct check_life *life = (*self)->lives; life != NULL;) {
        struct check_life *previous = life->previous;
        free(life->emitted_at);
        for (struct heard *heard = life->heard; heard != NULL;) {
            struct heard *last = heard->previous;
            free(heard);
            heard = last;
        }
        for (struct ready *ready = life->ready; ready != NULL;) {
            struct ready *last = ready->previous;
            free(ready);
            ready = last;
        }
        free(life);
        life = previous;
    }
    for (struct mistake *at = (*self)->mistakes; at != NULL;) {
        struct mistake *previous = at->previous;
        free(at);
        at = previous;
    }
    checks_forget_failures(*self);
    free(*self);
    *self = NULL;
}

int checks_begin(checks *self, struct check_life **out, size_t index,
                 const ls_host *host)
{
    struct check_life *life = calloc(1, sizeof *life);
    if (life == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    life->all = self;
    life->index = index;
    life->host = host;
    life->began_at = checks_now(self);
    life->watch = (struct member_watch){.entering = checks_on_entering,
                                        .ended = checks_on_ended,
                                        .member = checks_on_member,
                                        .emitting = checks_on_emitting,
                                        .heard = checks_on_heard,
                                        .self = life};
    life->previous = self->lives;
    self->lives = life;
    *out = life;
    return LS_OK;
}

const struct member_watch *checks_watch(const struct check_life *life)
{
    return &life->watch;
}

void checks_killed(struct check_life *life)
{
    life->dead = true;
    life->died_at = checks_now(life->all);
}

void checks_resumed(struct check_life *life)
{
    life->resumed_at = checks_now(life->all);
}

void checks_ended(struct check_life *life)
{
    life->over = true;
    life->over_at = checks_now(life->all);
}

void checks_finish(checks *self)
{
    struct ls_network_stats stats;
    checks_judge(self, LS_FOREVER);
    ls_network_stats(self->network, &stats);
    if (stats.waiting > 0 || stats.connects != stats.disconnects)
        ls_simulation_violation(
            self->simulation,
            "end: %" PRIu64 " messages are under way, and %" PRIu64
            " of %" PRIu64 " connections were not closed",
            stats.waiting, stats.connects - stats.disconnects, stats.connects);
}

struct checks_figures checks_figures(const checks *self)
{
    return self->figures;
}
