/* trial.h - a loss of power before each operation of what is tried. */
#ifndef STATE_TRIAL_H
#define STATE_TRIAL_H

#include "base/seeds.h"
#include "state/machine.h"

/* One thing that is done, again and again in new rooms: its power is cut before
 * the first of its operations, before the second, and so on until it gets
 * through. */
struct trial {
    void (*before)(struct room *room); /* with the power on; NULL: nothing */
    void (*during)(struct room *room);
    void (*after)(struct room *room); /* the next life judges */
    void *self;
    uint64_t cuts;
};

static inline void play(struct room *room)
{
    struct trial *trial = room->self;
    ls_host *host = room_host(room, "a");
    room->self = trial->self;
    if (trial->before != NULL)
        room_live_on(room, host, trial->before);
    ls_disk_power_cut_after(room->disk, host, trial->cuts);
    room_live_on(room, host, trial->during);
    const bool cut = ls_host_is_dead(host);
    if (!cut) {
        ls_disk_power_cut(room->disk, host);
        trial->cuts = UINT64_MAX;
    }
    room_live(room, "a", trial->after);
    room->self = trial;
}

static inline void play_all(const struct trial *trial, uint64_t n_seeds)
{
    const struct seeds seeds = seeds_of(n_seeds);
    for (uint64_t seed = seeds.first; seed < seeds.end; seed++) {
        struct trial one = *trial;
        for (one.cuts = 0; one.cuts != UINT64_MAX;
             one.cuts += one.cuts != UINT64_MAX)
            (void)room_run(seed, play, &one);
    }
}

#endif
