#include "checks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "checks_kind.h"

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

bool checks_is_of_job(const checks *self, uint32_t id)
{
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        if (self->plan->nodes[i].id == id)
            return true;
    }
    return false;
}

void *checks_allocate(const checks *self, size_t bytes)
{
    void *made = calloc(1, bytes);
    if (made == NULL)
        ls_simulation_violation(self->simulation, "checks: no memory");
    return made;
}

static void look(void *state, ls_simulation *simulation)
{
    checks *self = state;
    struct ls_network_stats stats;
    const uint64_t n = self->plan->n_nodes;
    self->kind->look(self);
    ls_network_stats(self->network, &stats);
    if (stats.waiting > UNDER_WAY_MAX * n * n)
        ls_simulation_violation(simulation,
                                "queues: %" PRIu64
                                " messages are under way between %" PRIu64
                                " nodes",
                                stats.waiting, n);
}

int checks_create(checks **out, ls_simulation *simulation,
                  const ls_network *network, const struct plan *plan)
{
    checks *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    made->simulation = simulation;
    made->network = network;
    made->plan = plan;
    made->kind = plan_is_service(plan) ? &checks_services : &checks_members;
    int status = made->kind->create(made);
    if (status == LS_OK)
        status = ls_simulation_watch(simulation, look, made);
    if (status != LS_OK) {
        checks_destroy(&made);
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
        (*self)->kind->forget(life);
        free(life);
        life = previous;
    }
    (*self)->kind->destroy(*self);
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
    const int status = self->kind->begin(life);
    if (status != LS_OK) {
        free(life);
        return status;
    }
    life->previous = self->lives;
    self->lives = life;
    *out = life;
    return LS_OK;
}

struct node_watch checks_watch(const struct check_life *life)
{
    return life->watch;
}

void checks_killed(struct check_life *life)
{
    life->dead = true;
    life->died_at = checks_now(life->all);
}

void checks_paused(struct check_life *life)
{
    life->paused_at = checks_now(life->all);
}

void checks_resumed(struct check_life *life)
{
    life->resumed_at = checks_now(life->all);
}

void checks_clock_set(struct check_life *life, int64_t by_ns)
{
    const int64_t now = checks_now(life->all);
    if (life->stands_until < now)
        life->stands_until = now;
    life->stands_until -= by_ns;
}

int64_t checks_moves_since(const struct check_life *life)
{
    return life->resumed_at > life->stands_until ? life->resumed_at
                                                 : life->stands_until;
}

int64_t checks_all_move_at(const checks *self)
{
    int64_t at = checks_now(self);
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous)
        if (!life->dead && !life->over && checks_moves_since(life) > at)
            at = checks_moves_since(life);
    return at;
}

void checks_ended(struct check_life *life)
{
    life->over = true;
    life->over_at = checks_now(life->all);
}

void checks_quiet(checks *self)
{
    self->quiet_at = checks_now(self);
}

void checks_done(checks *self)
{
    self->done_at = checks_now(self);
}

void checks_straggled(checks *self)
{
    if (self->kind->straggled != NULL)
        self->kind->straggled(self);
}

void checks_finish(checks *self)
{
    struct ls_network_stats stats;
    self->kind->finish(self);
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
