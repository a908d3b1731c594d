/* An epoch that does not end by itself: somebody is lost, or does not come in
 * time. Design notes, for the model in docs/models/shared.pml:
 *
 * - Whom one member has declared lost, all declare lost who hear of it. Who
 *   hears it of itself is out: it writes nothing more, and nobody reads it.
 * - A member first says whom it holds for lost, then that it no longer leaves
 *   this epoch by itself, and then rings. From there on it does what the leader
 *   says: the first by place that it trusts.
 * - A leader that has not entered is passed over: whoever finds it absent,
 *   after it has frozen the epoch itself, says that it listens to later ones
 *   only. All who hear that do so, the one that was absent too: it hears it
 *   when it enters. A leader counts as answers only those that listen to the
 *   same ones as it does.
 * - Who has resigned has given up the next epoch, for good: it leads nobody,
 *   listens to nobody, and has answered. If it is lost after that, a leader
 *   still asks it how epochs have ended: others may have gone with it.
 * - The leader decides when all whom it trusts have answered: they have not
 *   entered (and will hear the alarm when they do), or have left, or will not
 *   leave by themselves and no longer listen to any earlier leader. If one has
 *   left with a result, that is the result. So two leaders, one after the other
 *   or one declared lost in error, never say two things that both are followed.
 * - Who has left an epoch well has seen that all had entered, and that nobody
 *   rang after that: nobody will decide otherwise, so whoever sees that does
 * the same.
 * - The words of a member are final for those who have declared it lost: what
 *   it writes later, they do not act on, and only its own lines change.
 * - Deadlines: a leader waits for answers `grace` beyond its own deadline, the
 *   others for the leader twice as long; then who does not answer is declared
 *   lost. Without that, a member that is stopped would hold up the others until
 *   the bus has noticed. */
#include "room_parts.h"

/* What a turn of the loop came to. */
enum outcome { AGAIN, SUCCESS, FAILURE };

/* The first that may lead in this epoch, as a member has said. */
static uint32_t first_of(const struct room_core *core, unsigned place,
                         uint32_t epoch)
{
    if (core->touched)
        (void)ls_memory_touch(core->runtime);
    const uint64_t heeds = atomic_load(&core->words[place]->heeds);
    return (uint32_t)(heeds >> 32) == epoch ? (uint32_t)heeds : 0;
}

bool core_hear(struct room_core *core, uint32_t epoch)
{
    uint64_t lost = 0;
    if (core->first_epoch != epoch)
        core->first = 0;
    core->first_epoch = epoch;
    for (unsigned i = 0; i < core->n; i++) {
        if (!core_counts(core, i))
            continue;
        const struct room_words *const words = core->words[i];
        core->known[i] = core_load(core, &words->alarms);
        if (i == core->me || !core_trusts(core, i))
            continue;
        const uint64_t fenced = core_load_set(core, &words->fenced);
        const uint32_t frozen = core_load(core, &words->frozen);
        const uint32_t given_up = core_load(core, &words->gave_up);
        const uint32_t first = first_of(core, i, epoch);
        if (first > core->first && first != ROOM_RESIGNED)
            core->first = first;
        if ((fenced & core_bit(core->me)) != 0) {
            core->out = true;
            core->cause.who = i;
        }
        lost |= fenced;
        if (room_reached(frozen, core->frozen))
            core->frozen = frozen;
        if (room_reached(given_up, core->given_up))
            core->given_up = given_up;
    }
    if (core->expelled)
        core_leave(core);
    lost |= atomic_load(&core->told);
    core->told |= lost & ~core_bit(core->me);
    return core->out || (core->told & ~core->fenced) != 0 ||
           room_reached(core->frozen, epoch);
}

/* Say whom this member holds for lost, and that it waits for a verdict. */
static void freeze(struct room_core *core, uint32_t epoch, int why)
{
    const uint64_t fenced = core->fenced | atomic_load(&core->told);
    bool changed = false;
    if (fenced != core->fenced) {
        core->fenced = fenced;
        core_store_set(core, &core->own->fenced, fenced);
        changed = true;
    }
    if (why != LS_OK && core->own_gave_up != epoch) {
        core->own_gave_up = epoch;
        core_store(core, &core->own->reason, (uint32_t)-why);
        core_store(core, &core->own->gave_up, epoch);
        changed = true;
    }
    const uint64_t heeds = (uint64_t)epoch << 32 | core->first;
    if (core->first != 0 && core->own_heeds != heeds) {
        core->own_heeds = heeds;
        core_store_set(core, &core->own->heeds, heeds);
        changed = true;
    }
    if (core->own_frozen != epoch) {
        core->own_frozen = epoch;
        core_store(core, &core->own->frozen, epoch);
        changed = true;
    }
    if (changed)
        core_alarm(core);
}

/* The first to lead that is trusted, counted around: this member is. */
static uint32_t find_leader(const struct room_core *core)
{
    uint32_t at = core->first;
    while (!core_trusts(core, at % core->n))
        at++;
    return at;
}

static unsigned leader_of(const struct room_core *core)
{
    return find_leader(core) % core->n;
}

static bool has_come(const struct room_core *core, unsigned place,
                     uint32_t epoch)
{
    const struct room_words *const words = core->words[place];
    return place == core->me ||
           room_reached(core_load(core, &words->entered), epoch) ||
           (room_reached(core_load(core, &words->frozen), epoch) &&
            first_of(core, place, epoch) != ROOM_RESIGNED) ||
           room_reached(room_ended(core_load_ending(core, place)), epoch);
}

/* Do not wait for a leader that is not there. This member has frozen the epoch.
 * Returns whether anybody was passed over: that is to be said. */
static bool pass_over_absent(struct room_core *core, uint32_t epoch)
{
    const uint32_t before = core->first;
    uint32_t at = find_leader(core);
    while (!has_come(core, at % core->n, epoch)) {
        core->first = at + 1;
        at = find_leader(core);
    }
    return core->first != before;
}

/* A status that another has written. */
static int status_of(uint32_t negated)
{
    return negated > 0 && negated <= (uint32_t)-LS_EINVARIANT ? -(int)negated
                                                              : LS_EPROTO;
}

/* Why the epoch failed, as another member has it. */
static void read_cause(struct room_core *core, unsigned place, uint32_t epoch)
{
    const struct room_cause_words *const from =
        &core->words[place]->causes[epoch % ROOM_CAUSES];
    struct room_cause cause = {.status =
                                   status_of(core_load(core, &from->status)),
                               .who = core_load(core, &from->who),
                               .missing = core_load_set(core, &from->missing)};
    /* It only grows: that of a later failure is as good. */
    cause.excluded = core_load_set(core, &from->excluded) | core->excluded;
    /* It has gone so far ahead that it has forgotten. */
    if (core_load(core, &from->epoch) != epoch || cause.who >= core->n)
        cause = (struct room_cause){
            .status = LS_EABORTED, .who = place, .excluded = cause.excluded};
    core->cause = cause;
}

static void write_cause(struct room_core *core, uint32_t epoch)
{
    struct room_cause_words *const to = &core->own->causes[epoch % ROOM_CAUSES];
    core_store(core, &to->epoch, epoch);
    core_store(core, &to->status, (uint32_t)-core->cause.status);
    core_store(core, &to->who, core->cause.who);
    core_store_set(core, &to->missing, core->cause.missing);
    core_store_set(core, &to->excluded, core->cause.excluded);
}

static enum outcome follow(struct room_core *core, unsigned leader,
                           uint32_t epoch)
{
    const uint64_t ending = core_load_ending(core, leader);
    if (!room_reached(room_ended(ending), epoch))
        return AGAIN;
    if (room_reached(room_good(ending), epoch))
        return SUCCESS;
    read_cause(core, leader, epoch);
    return FAILURE;
}

/* What the leader has found. */
struct count {
    uint64_t missing;  /* counted, and not entered */
    uint64_t silent;   /* trusted, and without an answer */
    enum outcome told; /* by one that has left */
    unsigned failed;   /* who has left without success */
    unsigned resigned; /* who did, and resigned before it was lost; n: nobody */
    unsigned quitter;  /* who has given up; n: nobody */
    int why;
};

/* The first that had a reason of its own, if there is one. */
static void count_quitter(const struct room_core *core, unsigned place, int why,
                          struct count *count)
{
    if (count->quitter != core->n &&
        (count->why != LS_EABORTED || why == LS_EABORTED))
        return;
    count->quitter = place;
    count->why = why;
}

static void count_trusted(struct room_core *core, unsigned place,
                          uint32_t epoch, struct count *count)
{
    const struct room_words *const words = core->words[place];
    const uint64_t ending = core_load_ending(core, place);
    if (room_reached(room_ended(ending), epoch)) {
        count->told =
            room_reached(room_good(ending), epoch) ? SUCCESS : FAILURE;
        count->failed = place;
        return;
    }
    const bool entered = room_reached(core_load(core, &words->entered), epoch);
    const bool frozen = room_reached(core_load(core, &words->frozen), epoch);
    if (!entered && core_counts(core, place))
        count->missing |= core_bit(place);
    if (frozen && core_load(core, &words->gave_up) == epoch)
        count_quitter(core, place, status_of(core_load(core, &words->reason)),
                      count);
    const uint32_t first = first_of(core, place, epoch);
    if ((entered || frozen) && first != ROOM_RESIGNED &&
        (!frozen || first != core->first ||
         (core->fenced & ~core_load_set(core, &words->fenced)) != 0))
        count->silent |= core_bit(place);
}

/* It had seen this epoch fail, and went in peace: then that is known. */
static bool has_resigned_after(const struct room_core *core, unsigned place,
                               uint32_t epoch)
{
    const uint64_t heeds = atomic_load(&core->words[place]->heeds);
    const uint64_t ending = core_load_ending(core, place);
    return (uint32_t)heeds == ROOM_RESIGNED &&
           room_reached(room_ended(ending), epoch) &&
           !room_reached(room_good(ending), epoch);
}

/* why: with what this member has given up. entered: whether it has entered. */
static struct count count_all(struct room_core *core, uint32_t epoch, int why,
                              bool entered)
{
    struct count count = {
        .told = AGAIN, .quitter = core->n, .resigned = core->n};
    for (unsigned i = 0; i < core->n; i++) {
        if (i == core->me) {
            if (!entered)
                count.missing |= core_bit(i);
            if (why != LS_OK)
                count_quitter(core, i, why, &count);
        } else if (core_trusts(core, i)) {
            count_trusted(core, i, epoch, &count);
        } else if (core_counts(core, i) && has_resigned_after(core, i, epoch)) {
            count.resigned = i;
        } else if (core_counts(core, i) &&
                   !room_reached(core_load(core, &core->words[i]->entered),
                                 epoch)) {
            count.missing |= core_bit(i);
        }
    }
    return count;
}

static enum outcome decide(struct room_core *core, const struct count *count,
                           uint32_t epoch)
{
    const uint64_t lost = count->missing & core->fenced;
    if (count->told == SUCCESS)
        return SUCCESS;
    if (count->told == FAILURE) {
        read_cause(core, count->failed, epoch);
        return FAILURE;
    }
    if (count->silent != 0)
        return AGAIN;
    if (count->resigned != core->n) {
        read_cause(core, count->resigned, epoch);
        return FAILURE;
    }
    if (count->missing == 0)
        return SUCCESS;
    if (lost == 0 && count->quitter == core->n)
        return AGAIN; /* the living will come */
    core->cause =
        (struct room_cause){.status = count->why,
                            .who = count->quitter,
                            .missing = count->missing,
                            .excluded = core->fenced | core->excluded};
    if (lost != 0) {
        core->cause.status = LS_ELOST;
        core->cause.missing = lost;
        core->cause.who = 0;
        while ((lost & core_bit(core->cause.who)) == 0)
            core->cause.who++;
    }
    return FAILURE;
}

static int64_t later(int64_t deadline, int64_t by)
{
    return deadline > LS_FOREVER - by ? LS_FOREVER : deadline + by;
}

/* Well: then that is the end of it for everybody, whoever leads. */
static bool has_anyone_left(const struct room_core *core, uint32_t epoch)
{
    for (unsigned i = 0; i < core->n; i++)
        if (i != core->me && core_counts(core, i) &&
            room_reached(room_good(core_load_ending(core, i)), epoch))
            return true;
    return false;
}

/* One look at the others as things are. On AGAIN `awaited` is the set of those
 * that an answer is owed by. */
static enum outcome look_around(struct room_core *core, uint32_t epoch, int why,
                                bool entered, uint64_t *awaited)
{
    const unsigned leader = leader_of(core);
    if (has_anyone_left(core, epoch))
        return SUCCESS;
    if (leader != core->me) {
        *awaited = core_bit(leader);
        return follow(core, leader, epoch);
    }
    const struct count count = count_all(core, epoch, why, entered);
    *awaited = count.silent;
    return decide(core, &count, epoch);
}

static int finish(struct room_core *core, uint32_t epoch, enum outcome outcome)
{
    if (outcome == FAILURE) {
        core->excluded |= core->cause.excluded & ~core_bit(core->me);
        core->fenced |= core->excluded;
        core_store_set(core, &core->own->fenced, core->fenced);
        write_cause(core, epoch);
    }
    const int status = core_end(core, epoch, outcome == SUCCESS);
    core_alarm(core);
    return status;
}

/* The time is up: this member's own, or that of those who owe an answer. */
static int overdue(struct room_core *core, int why, uint64_t awaited,
                   struct ls_due *due)
{
    const bool leads = leader_of(core) == core->me;
    if (why != LS_OK)
        (void)atomic_fetch_or(&core->told, awaited & ~core_bit(core->me));
    *due = ls_due_at(core->node,
                     later(ls_now(core->runtime),
                           leads ? core->grace_ns : 2 * core->grace_ns));
    return why != LS_OK ? why : LS_ETIMEDOUT;
}

int core_verdict(struct room_core *core, uint32_t epoch, int why)
{
    struct ls_due due = *core_due(core);
    const bool entered = core_load(core, &core->own->entered) == epoch;
    if (why != LS_OK)
        (void)overdue(core, LS_OK, 0, &due);
    for (;;) {
        uint64_t awaited = 0;
        (void)core_hear(core, epoch);
        if (core->out || (core->touched && !ls_memory_touch(core->runtime)))
            break;
        if (why == LS_OK && core->quit != LS_OK) {
            why = core->quit;
            (void)overdue(core, LS_OK, 0, &due);
        }
        freeze(core, epoch, why);
        if (pass_over_absent(core, epoch))
            freeze(core, epoch, why);
        const enum outcome outcome =
            look_around(core, epoch, why, entered, &awaited);
        /* All are there; and if another leads for some, it will see that. */
        if (outcome == SUCCESS && core_is_alarmed(core))
            continue;
        if (outcome != AGAIN)
            return finish(core, epoch, outcome);
        if (core_sleep(core, NULL, 0, CORE_ASLEEP_ALARM, due.at) != LS_OK &&
            !core_is_excused(core, &due))
            why = overdue(core, why, awaited, &due);
    }
    core->out = true;
    return LS_ELOST;
}

void core_resign(struct room_core *core, int status)
{
    if (core->out || core->resigned)
        return;
    core->resigned = true;
    core->first_epoch = core->epoch + 1;
    core->first = ROOM_RESIGNED;
    freeze(core, core->first_epoch, status);
}

void core_leave(struct room_core *core)
{
    if (core->out)
        return;
    core->out = true;
    core->fenced |= core_bit(core->me);
    core_store_set(core, &core->own->fenced, core->fenced);
    core_alarm(core);
}
