/* An epoch as long as all is well. Design notes:
 *
 * - A member writes that it has entered, and looks at each of the others; once
 *   it has seen that all have entered, and then that nobody rings, it leaves.
 *   Nobody has to tell it. Every load that matters comes after the store that
 *   others look for, all sequentially consistent: of two members that each
 *   write and then look at the other, one sees what the other wrote.
 * - Whoever decides that an epoch fails rings first, and then sees that
 * somebody is missing. So when one has seen all, and then no alarm, nobody will
 * decide that any more: others may leave because it has left. Most do: they
 * look at the one that came last, and at nobody else. It matters where each
 * member's words are on a page of their own, and the way there is not in any
 * cache.
 * - Who sleeps is woken by the last to enter: that is one that finds all others
 *   there at once. It looks who sleeps after it has entered; a sleeper says
 * that it does, and goes to sleep only if somebody whom it knows to be missing
 * is still missing then.
 * - Whom a member waits for is the one that came last the time before, if that
 *   one is missing. */
#include "room_core.h"

#include <string.h>

#include "room_parts.h"

/* A quarter of all: well before anything is half of them away. */
#define RENEW_EPOCHS (UINT32_C(1) << 30)

void core_call(struct room_core *core, int wait_ms)
{
    core->wait_ms = wait_ms;
    core->due.at = 0;
    core->is_long = false;
    if (core->quit != LS_OK)
        core->quit = LS_OK;
}

struct ls_due *core_due(struct room_core *core)
{
    if (core->due.at == 0)
        core->due =
            ls_due_at(core->node, ls_deadline(core->runtime, core->wait_ms));
    return &core->due;
}

bool core_is_excused(const struct room_core *core, struct ls_due *due)
{
    const int64_t at = due->at;
    return !ls_due_has_passed(core->node, due) && due->at != at;
}

void core_begin(struct room_core *core, double cores)
{
    core->touched = ls_memory_touched(core->runtime);
    core->straggler = core->n - 1;
    patience_begin(&core->patience[0], core->runtime, core->n, cores);
    patience_begin_long(&core->patience[1], core->runtime, core->n, cores);
}

void core_store(struct room_core *core, ls_word *word, uint32_t value)
{
    if (!core->touched || ls_memory_touch(core->runtime))
        atomic_store(word, value);
}

/* The same; a later store publishes it. */
static void core_store_soon(struct room_core *core, ls_word *word,
                            uint32_t value)
{
    if (!core->touched || ls_memory_touch(core->runtime))
        atomic_store_explicit(word, value, memory_order_relaxed);
}

void core_write(struct room_core *core, void *to, const void *from, size_t size)
{
    if (size != 0 && (!core->touched || ls_memory_touch(core->runtime)))
        memcpy(to, from, size);
}

void core_wake(struct room_core *core, uint32_t mark)
{
    const bool all = mark == CORE_ASLEEP_ALARM;
    unsigned n = 0, one = 0;
    for (unsigned i = 0; i < core->n; i++) {
        if (i == core->me || core->memories[i] == NULL ||
            (!all && !core_trusts(core, i)))
            continue;
        const uint32_t asleep = core_load(core, &core->words[i]->asleep);
        if (all ? asleep != CORE_AWAKE : asleep == mark) {
            one = i;
            n++;
        }
    }
    if (n > 0)
        ls_memory_ring(core->memories[n > 1 ? core_gong(core->n) : one]);
}

/* They are looked at by all, who may be about to sleep. */
static bool has_alarmed(struct room_core *core)
{
    if (core->touched && !ls_memory_touch(core->runtime))
        return false;
    (void)atomic_fetch_add(&core->own->alarms, 1);
    return true;
}

void core_alarm(struct room_core *core)
{
    if (has_alarmed(core))
        core_wake(core, CORE_ASLEEP_ALARM);
}

/* This member is to look up, and will tell the others what is for them. */
static void alarm_own(struct room_core *core)
{
    if (has_alarmed(core))
        ls_memory_ring(core->memories[core->me]);
}

void core_lose(struct room_core *core, unsigned place)
{
    if ((atomic_fetch_or(&core->told, core_bit(place)) & core_bit(place)) == 0)
        alarm_own(core);
}

void core_quit(struct room_core *core, int status)
{
    atomic_store(&core->quit, status);
    alarm_own(core);
}

void core_expel(struct room_core *core)
{
    atomic_store(&core->expelled, true);
    alarm_own(core);
}

bool core_is_alarmed(const struct room_core *core)
{
    for (unsigned i = 0; i < core->n; i++)
        if (core_counts(core, i) &&
            core_load(core, &core->words[i]->alarms) != core->known[i])
            return true;
    return false;
}

int core_sleep(struct room_core *core, const ls_word *word, uint32_t value,
               uint32_t mark, int64_t deadline)
{
    if (core->touched && !ls_memory_touch(core->runtime))
        return LS_ETIMEDOUT; /* it was killed: what it writes is not there */
    core_store(core, &core->own->asleep, mark);
    int status = LS_OK;
    if (!core_is_alarmed(core) &&
        (word == NULL || core_load(core, word) == value))
        status = ls_memory_hear(core->memories[core->me], deadline);
    core_store(core, &core->own->asleep, CORE_AWAKE);
    return status;
}

/* What a member looks for, and may find an alarm instead. */
struct sight {
    const struct room_core *core;
    const ls_word *word;
    uint32_t value;
    unsigned place;
};

static bool is_in_sight(void *self)
{
    const struct sight *const sight = self;
    const struct room_core *const core = sight->core;
    return room_reached(core_load(core, sight->word), sight->value) ||
           core_load(core, &core->words[sight->place]->alarms) !=
               core->known[sight->place];
}

/* Look for a while. */
static void look(struct room_core *core, const ls_word *word, uint32_t value,
                 unsigned place)
{
    struct sight sight = {core, word, value, place};
    (void)patience_look(&core->patience[core->is_long], core->runtime,
                        is_in_sight, &sight);
}

/* Epochs are compared by their distance, so what was said of trouble long ago
 * would one day be said of epochs to come. So it is said anew now and then, of
 * the epoch before: this member has ended that, and who sees so asks no more.
 */
static void renew_trouble(struct room_core *core, uint32_t before)
{
    uint32_t *const said[] = {&core->frozen, &core->given_up, &core->own_frozen,
                              &core->own_gave_up};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!room_reached(*said[i], before))
            *said[i] = before;
    core_store(core, &core->own->gave_up, core->own_gave_up);
    core_store(core, &core->own->frozen, core->own_frozen);
}

int core_end(struct room_core *core, uint32_t epoch, bool good)
{
    if (good)
        core->good = epoch;
    else
        core->unsettled = true;
    core_store_set(core, &core->own->ending, room_ending(epoch, core->good));
    if (epoch % RENEW_EPOCHS == 0)
        renew_trouble(core, epoch - 1);
    return good ? LS_OK : core->cause.status;
}

/* All have entered. Who has had trouble meanwhile, and waits for this member,
 * is told that it has left: either that is seen there, or the alarm here. */
static int leave(struct room_core *core, uint32_t epoch)
{
    if (core->same)
        core_store_soon(core, &core->own->same, epoch);
    const int status = core_end(core, epoch, true);
    if (core_is_alarmed(core))
        core_alarm(core);
    return status;
}

/* Whether another member has left the epoch, well: then all have entered, and
 * that will be the end of it for everybody. */
static bool has_left(const struct room_core *core, unsigned place,
                     uint32_t epoch)
{
    return room_reached(room_good(core_load_ending(core, place)), epoch);
}

/* Leave as that member did. It has told those who waited for all; who waits for
 * this one sees what it sees. */
static int leave_behind(struct room_core *core, unsigned place, uint32_t epoch)
{
    const struct room_words *const words = core->words[place];
    core->same = core_load(core, &words->same) == epoch &&
                 core_load(core, &words->sign[epoch & 1]) ==
                     core_load(core, &core->own->sign[epoch & 1]);
    if (core->same)
        core_store_soon(core, &core->own->same, epoch);
    return core_end(core, epoch, true);
}

/* Until that member has entered, or left. Returns LS_OK, LS_EAGAIN: there is
 * trouble; LS_ETIMEDOUT, or what was quit with. */
static int wait_for(struct room_core *core, unsigned place, uint32_t epoch)
{
    const ls_word *const word = &core->words[place]->entered;
    core->straggler = place;
    look(core, word, epoch, place);
    for (;;) {
        const uint32_t value = core_load(core, word);
        if (room_reached(value, epoch))
            return LS_OK;
        if (core_is_alarmed(core) && core_hear(core, epoch))
            return LS_EAGAIN;
        if (core->quit != LS_OK)
            return core->quit;
        struct ls_due *const due = core_due(core);
        if (core_sleep(core, word, value, CORE_ASLEEP_ENTERED, due->at) !=
                LS_OK &&
            !core_is_excused(core, due))
            return LS_ETIMEDOUT;
    }
}

/* All have entered, and there was no alarm after that. Returns LS_OK, or
 * LS_EAGAIN: there is trouble. */
static int look_for_alarms(struct room_core *core, uint32_t epoch)
{
    while (core_is_alarmed(core))
        if (core_hear(core, epoch))
            return LS_EAGAIN;
    return LS_OK;
}

/* Wait until all have entered, beginning with the one that is likely to come
 * last, and leave. Errors: LS_EAGAIN there is trouble; as wait_for(). */
static int come_and_go(struct room_core *core, uint32_t epoch)
{
    const unsigned first = core->straggler;
    bool is_last = true;
    core->same = true;
    for (unsigned i = 0; i < core->n; i++) {
        const unsigned place = (first + i) % core->n;
        const struct room_words *const words = core->words[place];
        if (place == core->me || !core_counts(core, place))
            continue;
        if (!room_reached(core_load(core, &words->entered), epoch)) {
            const int status = wait_for(core, place, epoch);
            if (status != LS_OK)
                return status;
            is_last = false;
        }
        if (!is_last && has_left(core, place, epoch))
            return leave_behind(core, place, epoch);
        if (core_load(core, &words->sign[epoch & 1]) !=
            core_load(core, &core->own->sign[epoch & 1]))
            core->same = false;
    }
    if (is_last)
        core_wake(core, CORE_ASLEEP_ENTERED);
    const int status = look_for_alarms(core, epoch);
    return status == LS_OK ? leave(core, epoch) : status;
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

int core_pass(struct room_core *core)
{
    const uint32_t epoch = ++core->epoch;
    if (core->expelled)
        core_leave(core);
    if (core->out)
        return LS_ELOST;
    core_store(core, &core->own->entered, epoch);
    int status = LS_EAGAIN;
    if (is_calm(core, epoch))
        status = come_and_go(core, epoch);
    if (status == LS_OK)
        return LS_OK;
    core->same = false; /* nobody has looked */
    return core_verdict(core, epoch, status == LS_EAGAIN ? LS_OK : status);
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
                   uint32_t mark)
{
    const bool alarmed = core_is_alarmed(core);
    const bool calm = !alarmed && is_calm(core, core->epoch + 1);
    const int doom = calm ? LS_OK : find_doom(core);
    if (doom != LS_OK || core->out)
        return core_give_up(core, doom);
    struct ls_due *const due = core_due(core);
    if (alarmed || core_sleep(core, word, value, mark, due->at) == LS_OK ||
        core_is_excused(core, due))
        return LS_OK;
    return core_give_up(core, LS_ETIMEDOUT);
}

static int settle_with(struct room_core *core, unsigned place)
{
    int status = LS_OK;
    while (
        status == LS_OK &&
        !room_reached(room_ended(core_load_ending(core, place)), core->epoch))
        status = wait_on(core, NULL, 0, CORE_ASLEEP_ALARM);
    return status;
}

int core_settle(struct room_core *core)
{
    for (unsigned i = 0; core->unsettled && i < core->n; i++) {
        if (i == core->me || !core_counts(core, i))
            continue;
        const int status = settle_with(core, i);
        if (status != LS_OK)
            return status;
    }
    core->unsettled = false;
    return LS_OK;
}

int core_await(struct room_core *core, unsigned place, const ls_word *word,
               uint32_t value)
{
    int status = LS_OK;
    look(core, word, value, place);
    for (uint32_t now = core_load(core, word);
         !room_reached(now, value) && status == LS_OK;
         now = core_load(core, word))
        status = wait_on(core, word, now, CORE_ASLEEP_STREAM + place);
    return status;
}

int core_give_up(struct room_core *core, int status)
{
    const uint32_t epoch = ++core->epoch;
    if (core->out)
        return LS_ELOST;
    return core_verdict(core, epoch, status);
}
