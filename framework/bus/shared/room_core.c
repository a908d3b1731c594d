/* An epoch as long as all is well. Design notes:
 *
 * - A member writes that it has entered, and looks at each of the others; once
 *   it has seen that all have entered, and heard no alarm since, it leaves.
 *   Nobody has to tell it. Every load that matters comes after the store that
 *   others look for, all sequentially consistent: of two members that each
 *   write and then look at the other, one sees what the other wrote.
 * - Waiting: a few looks while every member can have a core; then a core is
 *   yielded between looks, as long as that is cheap. A yield that took long
 *   says that somebody else needs the core: then the next waits sleep at once,
 *   first 32 of them, four times as many each time, until 256 waits went well.
 * - A member sleeps on the word of one that has not come, of all who come the
 *   one that came last the time before; and on the alarms of all. It says so in
 *   its line, so nobody wakes those who do not sleep. */
#include "room_core.h"

#include <string.h>

#include "room_parts.h"

enum {
    SPINS = 2000,
    SPINS_PER_YIELD = 32, /* two that share a core by chance */
    YIELDS = 64,
    SULK_FIRST = 32,
    SULK_MAX = 1 << 16,
    GOOD_WAITS = 256,
};
#define YIELD_DEAR_NS (300 * LS_NS_PER_US)

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void core_begin(struct room_core *core, double cores)
{
    core->touched = ls_memory_touched(core->runtime);
    core->straggler = core->n - 1;
    core->patience = (struct room_patience){
        .spins = core->n <= cores && !core->touched ? SPINS : 0,
        .yields = core->touched ? 2 : YIELDS,
        .penalty = SULK_FIRST};
}

void core_store(struct room_core *core, ls_word *word, uint32_t value)
{
    if (!core->touched || ls_memory_touch(core->runtime))
        atomic_store(word, value);
}

void core_write(struct room_core *core, void *to, const void *from, size_t size)
{
    if (size != 0 && (!core->touched || ls_memory_touch(core->runtime)))
        memcpy(to, from, size);
}

void core_wake(struct room_core *core, const ls_word *word, uint32_t mark)
{
    for (unsigned i = 0; i < core->n; i++)
        if (i != core->me && core_trusts(core, i) &&
            core_load(core, &core->words[i]->asleep) == mark) {
            ls_word_wake(core->runtime, word);
            return;
        }
}

void core_alarm(struct room_core *core)
{
    if (core->touched && !ls_memory_touch(core->runtime))
        return;
    (void)atomic_fetch_add(&core->own->alarms, 1);
    ls_word_wake(core->runtime, &core->own->alarms);
}

void core_lose(struct room_core *core, unsigned place)
{
    if ((atomic_fetch_or(&core->told, core_bit(place)) & core_bit(place)) == 0)
        core_alarm(core);
}

void core_quit(struct room_core *core, int status)
{
    atomic_store(&core->quit, status);
    core_alarm(core);
}

void core_expel(struct room_core *core)
{
    atomic_store(&core->expelled, true);
    core_alarm(core);
}

bool core_is_alarmed(const struct room_core *core)
{
    for (unsigned i = 0; i < core->n; i++)
        if (core_trusts(core, i) &&
            core_load(core, &core->words[i]->alarms) != core->known[i])
            return true;
    return false;
}

int core_sleep(struct room_core *core, const ls_word *word, uint32_t value,
               uint32_t mark, int64_t deadline)
{
    struct ls_awaited words[ROOM_MEMBERS_MAX + 1];
    size_t n = 0;
    words[n++] = (struct ls_awaited){&core->own->alarms, core->known[core->me]};
    for (unsigned i = 0; i < core->n; i++)
        if (i != core->me && core_trusts(core, i))
            words[n++] =
                (struct ls_awaited){&core->words[i]->alarms, core->known[i]};
    if (word != NULL) {
        words[n++] = (struct ls_awaited){word, value};
        core_store(core, &core->own->asleep, mark);
        if (core_load(core, word) != value)
            mark = 0;
    }
    int status = LS_OK;
    if (word == NULL || mark != 0)
        status = ls_words_wait(core->runtime, words, n, deadline);
    if (word != NULL)
        core_store(core, &core->own->asleep, 0);
    return status;
}

/* Give the core to others, and see what that costs. Returns whether to go on
 * like this. */
static bool yield(struct room_core *core)
{
    struct room_patience *const p = &core->patience;
    const int64_t before = ls_now(core->runtime);
    ls_yield_core(core->runtime);
    if (ls_now(core->runtime) - before <= YIELD_DEAR_NS)
        return true;
    p->sulk = p->penalty;
    p->good = 0;
    if (p->penalty < SULK_MAX)
        p->penalty *= 4;
    return false;
}

/* Look for a while. Returns whether it has come, or there is an alarm of that
 * member. */
static bool look(struct room_core *core, const ls_word *word, uint32_t value,
                 unsigned place)
{
    struct room_patience *const p = &core->patience;
    const ls_word *const alarms = &core->words[place]->alarms;
    if (p->sulk > 0) {
        p->sulk--;
        return room_reached(core_load(core, word), value);
    }
    for (unsigned i = 1; i <= p->spins; i++) {
        if (room_reached(core_load(core, word), value) ||
            core_load(core, alarms) != core->known[place])
            return true;
        if (i % SPINS_PER_YIELD == 0)
            ls_yield_core(core->runtime);
        else
            pause_core();
    }
    for (unsigned i = 0; i < p->yields; i++) {
        if (room_reached(core_load(core, word), value) ||
            core_load(core, alarms) != core->known[place]) {
            if (++p->good > GOOD_WAITS) {
                p->good = 0;
                p->penalty = SULK_FIRST;
            }
            return true;
        }
        if (!yield(core))
            return false;
    }
    return false;
}

int core_end(struct room_core *core, uint32_t epoch, bool good)
{
    if (good)
        core->good = epoch;
    else
        core->unsettled = true;
    core_store_set(core, &core->own->ending, room_ending(epoch, core->good));
    return good ? LS_OK : core->cause.status;
}

/* All have entered. Who has had trouble meanwhile, and waits for this member,
 * is told that it has left: either that is seen there, or the alarm here. */
static int leave(struct room_core *core, uint32_t epoch)
{
    const int status = core_end(core, epoch, true);
    if (core_is_alarmed(core))
        core_alarm(core);
    return status;
}

/* Until that member has entered. Returns LS_OK, LS_EAGAIN: there is trouble;
 * LS_ETIMEDOUT, or what was quit with. */
static int wait_for(struct room_core *core, unsigned place, uint32_t epoch,
                    int64_t deadline)
{
    const ls_word *const word = &core->words[place]->entered;
    while (!look(core, word, epoch, place)) {
        if (core_is_alarmed(core)) {
            if (core_hear(core, epoch))
                return LS_EAGAIN;
            if (core->quit != LS_OK)
                return core->quit;
        }
        const uint32_t value = core_load(core, word);
        core->straggler = place;
        if (!room_reached(value, epoch) &&
            core_sleep(core, word, value, place + 1, deadline) != LS_OK)
            return LS_ETIMEDOUT;
    }
    return LS_OK;
}

/* The same for all, each once. */
static int wait_for_all(struct room_core *core, uint32_t epoch,
                        int64_t deadline)
{
    const unsigned first = core->straggler;
    unsigned i = 0;
    while (i < core->n) {
        const unsigned place = (first + i) % core->n;
        const struct room_words *const words = core->words[place];
        if (place == core->me || !core_counts(core, place)) {
            i++;
            continue;
        }
        if (!room_reached(core_load(core, &words->entered), epoch)) {
            const int status = wait_for(core, place, epoch, deadline);
            if (status != LS_OK)
                return status;
        }
        if (core_load(core, &words->alarms) != core->known[place]) {
            if (core_hear(core, epoch))
                return LS_EAGAIN;
            continue; /* it may not have come yet */
        }
        if (room_reached(core_load(core, &words->entered), epoch))
            i++;
    }
    return LS_OK;
}

int core_confirm(struct room_core *core)
{
    /* What was read is read before the alarms are. */
    atomic_thread_fence(memory_order_acquire);
    if (core_is_alarmed(core))
        (void)core_hear(core, core->epoch);
    return core->out ? LS_ELOST : LS_OK;
}

static bool is_calm(struct room_core *core, uint32_t epoch)
{
    return (core->fenced & ~core->excluded) == 0 &&
           (atomic_load(&core->told) & ~core->fenced) == 0 &&
           !room_reached(core->frozen, epoch);
}

int core_pass(struct room_core *core, int64_t deadline)
{
    const uint32_t epoch = ++core->epoch;
    if (core->expelled)
        core_leave(core);
    if (core->out)
        return LS_ELOST;
    core_store(core, &core->own->entered, epoch);
    core_wake(core, &core->own->entered, core->me + 1);
    int status =
        is_calm(core, epoch) ? wait_for_all(core, epoch, deadline) : LS_EAGAIN;
    if (status == LS_OK)
        return leave(core, epoch);
    return core_verdict(core, epoch, status == LS_EAGAIN ? LS_OK : status,
                        deadline);
}

/* Why the next epoch cannot succeed any more, for all that is known. */
static int find_doom(struct room_core *core)
{
    const uint32_t epoch = core->epoch + 1;
    (void)core_hear(core, epoch);
    const uint64_t lost =
        (core->fenced | atomic_load(&core->told)) & ~core->excluded;
    for (unsigned i = 0; i < core->n; i++)
        if ((lost & core_bit(i)) != 0 &&
            !room_reached(core_load(core, &core->words[i]->entered), epoch))
            return LS_ELOST;
    if (core->quit != LS_OK)
        return core->quit;
    return room_reached(core->given_up, epoch) ? LS_EABORTED : LS_OK;
}

/* Wait for news, or find that some are there already. Errors: the next epoch is
 * given up, or this member is out. */
static int wait_on(struct room_core *core, const ls_word *word, uint32_t value,
                   uint32_t mark, int64_t deadline)
{
    const bool alarmed = core_is_alarmed(core);
    const bool calm = !alarmed && is_calm(core, core->epoch + 1);
    const int doom = calm ? LS_OK : find_doom(core);
    if (doom != LS_OK || core->out)
        return core_give_up(core, doom);
    if (alarmed || core_sleep(core, word, value, mark, deadline) == LS_OK)
        return LS_OK;
    return core_give_up(core, LS_ETIMEDOUT);
}

static int settle_with(struct room_core *core, unsigned place, int64_t deadline)
{
    int status = LS_OK;
    while (
        status == LS_OK &&
        !room_reached(room_ended(core_load_ending(core, place)), core->epoch))
        status = wait_on(core, NULL, 0, 0, deadline);
    return status;
}

int core_settle(struct room_core *core, int64_t deadline)
{
    for (unsigned i = 0; core->unsettled && i < core->n; i++) {
        if (i == core->me || !core_counts(core, i))
            continue;
        const int status = settle_with(core, i, deadline);
        if (status != LS_OK)
            return status;
    }
    core->unsettled = false;
    return LS_OK;
}

int core_await(struct room_core *core, unsigned place, const ls_word *word,
               uint32_t value, int64_t deadline)
{
    int status = LS_OK;
    (void)look(core, word, value, place);
    for (uint32_t now = core_load(core, word);
         !room_reached(now, value) && status == LS_OK;
         now = core_load(core, word))
        status =
            wait_on(core, word, now, CORE_ASLEEP_STREAM + place + 1, deadline);
    return status;
}

int core_give_up(struct room_core *core, int status)
{
    const uint32_t epoch = ++core->epoch;
    if (core->out)
        return LS_ELOST;
    return core_verdict(core, epoch, status, LS_NOW);
}
