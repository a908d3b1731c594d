/* Nobody leaves early, and all or none. */
#include <inttypes.h>
#include <string.h>

#include "checks_members.h"

/* What a node has done for an epoch that another leaves. */
enum share { SHARE_LEFT, SHARE_INSIDE, SHARE_FAILED, SHARE_NONE };

/* Whether one held the other for a member when it entered, or later. */
static bool has_counted(const struct member_life *leaver,
                        const struct member_life *member)
{
    const struct ready *ready =
        checks_find_ready(leaver, checks_id(member->life), member->incarnation);
    return ready != NULL && ready->until >= leaver->entered_at;
}

static enum share share_of(const struct member_life *member, uint64_t epoch,
                           const struct member_life *leaver)
{
    if (member->next > epoch)
        return SHARE_LEFT;
    if (member->waiting && (!member->life->dead || has_counted(leaver, member)))
        return SHARE_INSIDE;
    return member->failed_since ? SHARE_FAILED : SHARE_NONE;
}

/* The best of all lives of a node. out: the life that has it. One that was
 * killed inside counts, if the leaver held it for alive. */
static enum share best_share(const checks *self, size_t index,
                             const struct member_life *leaver, uint64_t epoch,
                             struct member_life **out)
{
    enum share best = SHARE_NONE;
    *out = NULL;
    for (struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        if (life->index != index)
            continue;
        const enum share share = share_of(life->state, epoch, leaver);
        /* One that was killed inside owes nothing any more, and what its next
         * life does is another epoch. */
        if (*out == NULL || share < best || (share == best && life->dead)) {
            best = share;
            *out = life->state;
        }
    }
    return best;
}

/* It waits, so it must be in the epoch that the leaver has left. (One that is
 * declared lost by mistake may be sent on to a later one, in the same wait.) */
static void owe(struct member_life *member, const struct member_life *leaver,
                uint64_t epoch)
{
    if (member->owes && member->owed < epoch)
        checks_accuse(member->life->all, member->owed_from,
                      "early: node %" PRIu32 " left epoch %" PRIu64
                      " while node %" PRIu32 " was in epoch %" PRIu64,
                      checks_id(leaver->life), epoch, checks_id(member->life),
                      member->owed);
    if (member->owes)
        return;
    member->owes = true;
    member->owed = epoch;
    member->owed_to = checks_id(leaver->life);
    member->owed_from = leaver->entered_at;
}

static void judge_leaving(checks *self, const struct member_life *leaver,
                          uint64_t epoch)
{
    const uint32_t by = checks_id(leaver->life);
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        struct member_life *member;
        if (i == leaver->life->index)
            continue;
        switch (best_share(self, i, leaver, epoch, &member)) {
        case SHARE_LEFT:
            break;
        case SHARE_INSIDE:
            if (!member->life->dead)
                owe(member, leaver, epoch);
            break;
        case SHARE_FAILED:
            if (!member->life->dead && !member->life->over)
                checks_accuse(self, leaver->entered_at,
                              "all: node %" PRIu32 " left epoch %" PRIu64
                              ", and node %" PRIu32 " failed in it",
                              by, epoch, checks_id(member->life));
            break;
        case SHARE_NONE:
            ls_simulation_violation(self->simulation,
                                    "early: node %" PRIu32
                                    " left epoch %" PRIu64
                                    " before node %" PRIu32 " had entered it",
                                    by, epoch, self->plan->nodes[i].id);
            break;
        }
    }
}

void checks_note_incarnation(struct member_life *member, uint64_t incarnation)
{
    if (member->incarnation != 0 && member->incarnation != incarnation)
        member->renewed_at = checks_now(member->life->all);
    member->incarnation = incarnation;
}

void checks_on_entering(void *self, uint64_t incarnation)
{
    struct member_life *member = self;
    checks *all = member->life->all;
    ls_simulation_note(all->simulation, "enters");
    checks_note_incarnation(member, incarnation);
    member->waiting = true;
    member->entered_at = checks_now(all);
}

static void note_failure(struct member_life *member, int status)
{
    checks *all = member->life->all;
    const uint32_t id = checks_id(member->life);
    const bool by_other =
        status == LS_ELOST || status == LS_EABORTED || status == LS_ETIMEDOUT;
    if (by_other && strstr(ls_error_text(), "node ") == NULL)
        ls_simulation_violation(all->simulation,
                                "named: node %" PRIu32
                                " failed by another, and does not say by "
                                "whom: %s",
                                id, ls_error_text());
    checks_note_failure(member, status);
    all->figures.failures++;
    member->failed_since = true;
    if (member->owes)
        checks_accuse(all, member->owed_from,
                      "all: node %" PRIu32 " left epoch %" PRIu64
                      ", and node %" PRIu32 " failed in it",
                      member->owed_to, member->owed, id);
}

static void note_left(struct member_life *member, uint64_t epoch)
{
    checks *all = member->life->all;
    struct member_checks *state = all->state;
    const uint32_t id = checks_id(member->life);
    if (member->owes && epoch != member->owed)
        checks_accuse(all, member->owed_from,
                      "early: node %" PRIu32 " left epoch %" PRIu64
                      " while node %" PRIu32 " was in epoch %" PRIu64,
                      member->owed_to, member->owed, id, epoch);
    if (epoch < member->next)
        ls_simulation_violation(all->simulation,
                                "early: node %" PRIu32 " left epoch %" PRIu64
                                " after epoch %" PRIu64,
                                id, epoch, member->next - 1);
    all->figures.leaves++;
    if (epoch >= state->newest) {
        state->newest = epoch + 1;
        all->figures.epochs++;
    }
    member->next = epoch + 1;
    member->left_at = state->left_at = checks_now(all);
    member->failed_since = false;
    judge_leaving(all, member, epoch);
}

void checks_on_ended(void *self, int status,
                     const struct ls_barrier_epoch_info *info)
{
    struct member_life *member = self;
    ls_simulation *simulation = member->life->all->simulation;
    if (member->life->dead)
        return; /* what it does now, nobody sees */
    if (status == LS_OK) {
        ls_simulation_note(simulation, "left epoch %" PRIu64, info->epoch);
        note_left(member, info->epoch);
    } else {
        ls_simulation_note(simulation, "fails: %s", ls_error_text());
        note_failure(member, status);
    }
    member->waiting = false;
    member->owes = false;
    member->ended_at = checks_now(member->life->all);
}
