/* barrier_play.h - virtual worlds of barriers, played from many seeds. */
#ifndef BARRIER_PLAY_H
#define BARRIER_PLAY_H

#include "barrier_world.h"
#include "base/seeds.h"

static inline void destroy_world(struct world *world)
{
    for (size_t i = 0; i < world->n_heap; i++)
        free(world->heap[i].bytes);
    for (size_t i = 0; i < world->plan.n; i++)
        ls_epoch_destroy(&world->lives[i].machine);
    free(world->heap);
    free(world->records);
}

static inline void schedule_faults(struct world *world)
{
    const struct plan *plan = &world->plan;
    const int64_t span = plan->late + (int64_t)plan->waits * plan->think / 2;
    for (unsigned i = 0; i < plan->crashes; i++)
        soon(world, CRASH, (size_t)ls_rng_below(&world->rng, plan->n), span);
    for (unsigned i = 0; i < plan->aborts; i++)
        soon(world, ABORT, (size_t)ls_rng_below(&world->rng, plan->n), span);
    if (plan->false_lost) {
        const size_t about = (size_t)ls_rng_below(&world->rng, plan->n);
        const int64_t from = up_to(world, span);
        for (size_t i = 0; i < plan->n; i++) {
            if (i == about || chance(world, 0.5))
                continue;
            push(world, (struct happening){
                            .at = from + up_to(world, 10 * WORLD_MS),
                            .action = LOST,
                            .node = i,
                            .peer = about,
                            .incarnation = world->lives[about].incarnation});
        }
    }
}

static inline void create_world(struct world *world, const struct plan *plan,
                                uint64_t seed)
{
    static const uint32_t strange[] = {4294967295u, 7, 1000000, 4294967294u};
    *world = (struct world){.plan = *plan};
    ls_rng_seed(&world->rng, seed, 0);
    world->records = calloc(WORLD_EPOCHS_MAX, sizeof *world->records);
    assert_non_null(world->records);
    for (size_t i = 0; i < plan->n; i++) {
        world->lives[i].id = i < 4 ? strange[i] : (uint32_t)(i * 100 + 1);
        world->lives[i].incarnation = 1 + ls_rng_below(&world->rng, 900);
        if (plan->hosts > 0)
            world->lives[i].host = 1 + ls_rng_below(&world->rng, plan->hosts);
        soon(world, ENTER, i, plan->late);
    }
    schedule_faults(world);
}

static inline bool all_done(const struct world *world)
{
    for (size_t i = 0; i < world->plan.n; i++) {
        if (!world->lives[i].done)
            return false;
    }
    return true;
}

/* Run one seed; returns the virtual time that it took. */
static inline int64_t play(struct world *world, const struct plan *plan,
                           uint64_t seed)
{
    create_world(world, plan, seed);
    while (world->n_heap > 0 && !all_done(world) &&
           world->violation[0] == '\0') {
        const struct happening what = pop(world);
        world->now = what.at;
        if (world->now > plan->give_up_at) {
            violate(world, "no end", 0, 0);
            free(what.bytes);
            break;
        }
        act(world, &what);
        free(what.bytes);
    }
    if (world->n_heap == 0 && !all_done(world))
        violate(world, "all wait for ever", 0, 0);
    const bool accurate = !plan->false_lost && plan->deadline == 0 &&
                          plan->aborts == 0 && !plan->restart;
    if (accurate)
        check_uniform(world);
    destroy_world(world);
    return world->now;
}

static inline void play_all(struct plan plan, uint64_t n_seeds)
{
    static struct world world;
    const struct seeds seeds = seeds_of(n_seeds);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        plan.n =
            plan.fanout > 0 || plan.hosts > 0 ? 5 + seed % 5 : 2 + seed % 8;
        play(&world, &plan, seed);
        if (world.violation[0] != '\0')
            fail_msg("seed %llu, %zu nodes: %s", (unsigned long long)seed,
                     plan.n, world.violation);
    }
}

/* What most tests begin with. */
static const struct plan rough = {
    .waits = 6,
    .loss = 0.2,
    .twice = 0.2,
    .delay = 5 * WORLD_MS,
    .think = 20 * WORLD_MS,
    .late = 30 * WORLD_MS,
    .give_up_at = 300 * LS_NS_PER_S,
};

#endif
