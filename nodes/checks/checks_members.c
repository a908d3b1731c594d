/* Members: their lives, and the bounds of their waits. */
#include "checks_members.h"

#include <inttypes.h>
#include <stdlib.h>

/* An emit waits for as long by default. */
#define LOST_ROOM_NS (10 * LS_NS_PER_S)

static int create(checks *self)
{
    self->state = calloc(1, sizeof(struct member_checks));
    return self->state != NULL ? LS_OK : ls_error(LS_ENOMEM, "the checks");
}

static void destroy(checks *self)
{
    struct member_checks *state = self->state;
    if (state == NULL)
        return;
    for (struct mistake *at = state->mistakes; at != NULL;) {
        struct mistake *previous = at->previous;
        free(at);
        at = previous;
    }
    for (struct failure *at = state->failures; at != NULL;) {
        struct failure *previous = at->previous;
        free(at);
        at = previous;
    }
    free(state);
}

/* Those who listen handle an event at once, and who stands still or is cut off
 * is soon lost. */
static void on_blocked(void *self)
{
    const struct member_life *member = self;
    const struct check_life *life = member->life;
    if (!life->dead &&
        checks_now(life->all) - checks_moves_since(life) > LOST_ROOM_NS)
        ls_simulation_violation(life->all->simulation,
                                "bound: node %" PRIu32 ": %s", checks_id(life),
                                ls_error_text());
}

static int begin(struct check_life *life)
{
    struct member_life *member = calloc(1, sizeof *member);
    if (member == NULL)
        return ls_error(LS_ENOMEM, "the checks");
    member->life = life;
    member->watch = (struct member_watch){.entering = checks_on_entering,
                                          .ended = checks_on_ended,
                                          .member = checks_on_member,
                                          .emitting = checks_on_emitting,
                                          .emitted = checks_on_emitted,
                                          .blocked = on_blocked,
                                          .heard = checks_on_heard,
                                          .quitting = checks_on_quitting,
                                          .self = member};
    life->watch.member = &member->watch;
    life->state = member;
    return LS_OK;
}

static void forget(struct check_life *life)
{
    struct member_life *member = life->state;
    if (member == NULL)
        return;
    free(member->emits);
    free(member->losses);
    for (struct heard *at = member->heard; at != NULL;) {
        struct heard *previous = at->previous;
        free(at->numbers);
        free(at);
        at = previous;
    }
    for (struct ready *at = member->ready; at != NULL;) {
        struct ready *previous = at->previous;
        free(at);
        at = previous;
    }
    free(member);
}

static void check_bound(checks *self, const struct member_life *member)
{
    const struct check_life *life = member->life;
    const int64_t bound =
        (int64_t)self->plan->barrier.timeout_ms * LS_NS_PER_MS +
        CHECKS_SLACK_NS;
    const int64_t moves = checks_moves_since(life);
    const int64_t from =
        member->entered_at > moves ? member->entered_at : moves;
    if (!member->waiting || life->dead || life->over ||
        ls_host_is_paused(life->host) || checks_now(self) - from <= bound)
        return;
    ls_simulation_violation(
        self->simulation,
        "bound: node %" PRIu32 " has waited for %.3f s, and its deadline was "
        "after %.3f s",
        checks_id(life), (double)(checks_now(self) - member->entered_at) / 1e9,
        (double)self->plan->barrier.timeout_ms / 1e3);
}

/* Whoever holds another for lost, and whatever life each begins, they are soon
 * all there again. */
static void check_progress(checks *self)
{
    struct member_checks *state = self->state;
    const struct plan *plan = self->plan;
    const int64_t bound =
        (3 * (int64_t)plan->world.silence_ms + plan->barrier.pace_ms) *
            LS_NS_PER_MS +
        CHECKS_SLACK_NS;
    int64_t from =
        state->left_at > self->quiet_at ? state->left_at : self->quiet_at;
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        if (checks_moves_since(life) > from)
            from = checks_moves_since(life);
    }
    if (!plan_is_of_members(plan) || self->quiet_at == 0 ||
        self->done_at != 0 || state->stuck || checks_now(self) - from <= bound)
        return;
    state->stuck = true;
    ls_simulation_violation(self->simulation,
                            "bound: nobody has left an epoch for %.1f s, and "
                            "the last fault was before that",
                            (double)bound / 1e9);
}

static void look(checks *self)
{
    const struct member_checks *state = self->state;
    check_progress(self);
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous)
        check_bound(self, life->state);
    if (state->n_verdicts > 0)
        checks_judge(self, checks_now(self) - CHECKS_NOTICE_NS);
}

/* A member that goes on pauses for less, and one that ends takes less. */
#define CHECKS_LEAVING_NS (10 * LS_NS_PER_S)

/* Others may wait for those that are done, in vain; who left the last epoch as
 * well has nothing to wait for. */
static void straggled(checks *self)
{
    const struct member_checks *state = self->state;
    for (const struct check_life *life = self->lives; life != NULL;
         life = life->previous) {
        const struct member_life *member = life->state;
        if (!life->dead && !life->over && !member->waiting &&
            !member->failed_since && member->next == state->newest &&
            member->next > 0 &&
            checks_now(self) - member->left_at > CHECKS_LEAVING_NS)
            ls_simulation_violation(self->simulation,
                                    "bound: node %" PRIu32
                                    " left the last epoch and does not end",
                                    checks_id(life));
    }
}

static void finish(checks *self)
{
    checks_finish_events(self);
    checks_judge(self, LS_FOREVER);
}

const struct checks_kind checks_members = {.begin = begin,
                                           .forget = forget,
                                           .create = create,
                                           .destroy = destroy,
                                           .straggled = straggled,
                                           .look = look,
                                           .finish = finish};
