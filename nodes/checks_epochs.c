/* Nobody leaves early, and all or none. */
#include <inttypes.h>
#include <string.h>

#include "checks_parts.h"

/* What a node has done for an epoch that another leaves. */
enum share { SHARE_LEFT, SHARE_INSIDE, SHARE_FAILED, SHARE_NONE };

static enum share share_of(const struct check_life *life, uint64_t epoch,
                           int64_t since)
{
    if (life->next > epoch)
        return SHARE_LEFT;
    if (life->waiting && (!life->dead || life->died_at >= since))
        return SHARE_INSIDE;
    return life->failed_since ? SHARE_FAILED : SHARE_NONE;
}

/* The best of all lives of a node. out: the life that has it. One that was
 * killed inside counts, if the leaver may have held it for alive. */
static enum share best_share(const checks *self, size_t index,
                             const struct check_life *leaver, uint64_t epoch,
                             struct check_life **out)
{
    const int64_t since =
        leaver->entered_at -
        2 * (int64_t)self->plan->world.silence_ms * LS_NS_PER_MS -
        CHECKS_SLACK_NS;

    enum share best = SHARE_NONE;
    *out = NULL;
    for (struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        if (life->index != index)
            continue;
        const enum share share = share_of(life, epoch, since);
        /* One that was killed inside owes nothing any more, and what its next
         * life does is another epoch. */
        if (*out == NULL || share < best || (share == best && life->dead)) {
            best = share;
            *out = life;
        }
    }
    return best;
}

/* It waits, so it must be in the epoch that the leaver has left. (One that is
 * held for lost by mistake may be sent on to a later one, in the same wait.) */
static void owe(struct check_life *life, const struct check_life *leaver,
                uint64_t epoch)
{
    if (life->owes && life->owed < epoch)
        checks_accuse(life->all, life->owed_from,
                      "early: node %" PRIu32 " left epoch %" PRIu64
                      " while node %" PRIu32 " was in epoch %" PRIu64,
                      checks_id(leaver), epoch, checks_id(life), life->owed);
    if (life->owes)
        return;
    life->owes = true;
    life->owed = epoch;
    life->owed_to = checks_id(leaver);
    life->owed_from = leaver->entered_at;
}

static void judge_leaving(checks *self, const struct check_life *leaver,
                          uint64_t epoch)
{
    for (size_t i = 0; i < self->plan->n_nodes; i++) {
        struct check_life *life;
        if (i == leaver->index)
            continue;
        switch (best_share(self, i, leaver, epoch, &life)) {
        case SHARE_LEFT:
            break;
        case SHARE_INSIDE:
            if (!life->dead)
                owe(life, leaver, epoch);
            break;
        case SHARE_FAILED:
            if (!life->dead && !life->over)
                checks_accuse(self, leaver->entered_at,
                              "all: node %" PRIu32 " left epoch %" PRIu64
                              ", and node %" PRIu32 " failed in it",
                              checks_id(leaver), epoch, checks_id(life));
            break;
        case SHARE_NONE:
            ls_simulation_violation(
                self->simulation,
                "early: node %" PRIu32 " left epoch %" PRIu64
                " before node %" PRIu32 " had entered it",
                checks_id(leaver), epoch, self->plan->nodes[i].id);
            break;
        }
    }
}

void checks_on_entering(void *self, uint64_t incarnation)
{
    struct check_life *life = self;
    ls_simulation_note(life->all->simulation, "enters");
    if (life->incarnation != 0 && life->incarnation != incarnation)
        life->renewed_at = checks_now(life->all);
    life->incarnation = incarnation;
    life->waiting = true;
    life->entered_at = checks_now(life->all);
}

static void note_failure(struct check_life *life, int status)
{
    checks *all = life->all;
    const bool by_other =
        status == LS_ELOST || status == LS_EABORTED || status == LS_ETIMEDOUT;
    if (by_other && strstr(ls_error_text(), "node ") == NULL)
        ls_simulation_violation(all->simulation,
                                "named: node %" PRIu32
                                " failed by another, and does not say by "
                                "whom: %s",
                                checks_id(life), ls_error_text());
    checks_note_failure(life, status);
    all->figures.failures++;
    life->failed_since = true;
    if (life->owes)
        checks_accuse(all, life->owed_from,
                      "all: node %" PRIu32 " left epoch %" PRIu64
                      ", and node %" PRIu32 " failed in it",
                      life->owed_to, life->owed, checks_id(life));
}

static void note_left(struct check_life *life, uint64_t epoch)
{
    checks *all = life->all;
    if (life->owes && epoch != life->owed)
        checks_accuse(all, life->owed_from,
                      "early: node %" PRIu32 " left epoch %" PRIu64
                      " while node %" PRIu32 " was in epoch %" PRIu64,
                      life->owed_to, life->owed, checks_id(life), epoch);
    if (epoch < life->next)
        ls_simulation_violation(all->simulation,
                                "early: node %" PRIu32 " left epoch %" PRIu64
                                " after epoch %" PRIu64,
                                checks_id(life), epoch, life->next - 1);
    all->figures.leaves++;
    if (epoch >= all->newest) {
        all->newest = epoch + 1;
        all->figures.epochs++;
    }
    life->next = epoch + 1;
    life->failed_since = false;
    judge_leaving(all, life, epoch);
}

void checks_on_ended(void *self, int status,
                     const struct ls_barrier_epoch_info *info)
{
    struct check_life *life = self;
    if (life->dead)
        return; /* what it does now, nobody sees */
    if (status == LS_OK) {
        ls_simulation_note(life->all->simulation, "left epoch %" PRIu64,
                           info->epoch);
        note_left(life, info->epoch);
    } else {
        ls_simulation_note(life->all->simulation, "fails: %s", ls_error_text());
        note_failure(life, status);
    }
    life->waiting = false;
    life->owes = false;
}
