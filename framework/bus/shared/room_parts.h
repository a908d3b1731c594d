/* room_parts.h - what the two halves of room_core.h share: the way that an
 * epoch takes as long as all is well, and the one when it is not. */
#ifndef LOCKSTEP_ROOM_PARTS_H
#define LOCKSTEP_ROOM_PARTS_H

#include "room_core.h"

/* room_verdict.c: the epoch no longer ends by itself. Returns its result.
 * why:    LS_OK, or the status with which this member gives it up. */
int core_verdict(struct room_core *core, uint32_t epoch, int why);
/* The operation's. */
struct ls_due *core_due(struct room_core *core);
/* Whether that comes later by what this member stood still until now. */
bool core_is_excused(const struct room_core *core, struct ls_due *due);
/* Take in what the others say of trouble. Returns whether any of it concerns
 * this epoch, or the members that are counted. */
bool core_hear(struct room_core *core, uint32_t epoch);

/* room_core.c */
/* An alarm that was not heard yet. */
bool core_is_alarmed(const struct room_core *core);
/* This member's words have changed, those of trouble: all look at them again.
 */
void core_alarm(struct room_core *core);
/* Sleep until this member is rung for, unless a word of another is no longer
 * `value`, or there is an alarm. word: NULL: for an alarm alone. mark:
 * CORE_ASLEEP_…. May end early. Returns LS_ETIMEDOUT at the deadline. */
int core_sleep(struct room_core *core, const ls_word *word, uint32_t value,
               uint32_t mark, int64_t deadline);
int core_end(struct room_core *core, uint32_t epoch, bool good);

static inline bool core_trusts(const struct room_core *core, unsigned place)
{
    return (core->fenced & core_bit(place)) == 0;
}
static inline uint64_t core_load_set(const struct room_core *core,
                                     const room_set *set)
{
    if (core->touched)
        (void)ls_memory_touch(core->runtime);
    return atomic_load(set) & core_all(core);
}
static inline uint64_t core_load_ending(const struct room_core *core,
                                        unsigned place)
{
    if (core->touched)
        (void)ls_memory_touch(core->runtime);
    return atomic_load(&core->words[place]->ending);
}
static inline void core_store_set(struct room_core *core, _Atomic uint64_t *set,
                                  uint64_t value)
{
    if (!core->touched || ls_memory_touch(core->runtime))
        atomic_store(set, value);
}

#endif
