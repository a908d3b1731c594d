/* The commit of an operation: an epoch of the barrier's machine.
 *
 * A rank enters the epoch of an operation when it has all that it takes from
 * others, and the operation ends when the epoch does: so it ends well for all
 * ranks or for none (docs/barrier.md). What short operations bring rides on the
 * messages that say that a rank has entered, and their result on those that say
 * that all have.
 *
 * Operations are committed one after the other. Epochs are numbered as they are
 * committed, the same in all ranks: an operation that has failed has used up
 * its epoch for all of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bus_group.h"
#include "lockstep/log.h"

/* Once all are ready, whoever has decided tells at once, however busy it is, or
 * is lost: for so long a rank waits for that word beyond its deadline. */
#define WORD_NS (INT64_C(10) * LS_NS_PER_S)

int group_commit_begin(struct bus_group *group, int64_t now)
{
    const struct ls_epoch_rules rules = {.least = group->n,
                                         .most = group->n,
                                         .in_turn = true,
                                         .one_round = group->exit_ready,
                                         .hash = (uint32_t)group->generation};
    const struct bus_member *own = &group->members[group->rank];
    int status = ls_epoch_create(&group->epoch, own->id, &rules);
    if (status == LS_OK)
        ls_epoch_set_self(group->epoch, own->life, 0);
    for (uint32_t i = 0; i < group->n && status == LS_OK; i++) {
        if (i != group->rank)
            status = ls_epoch_joined(group->epoch, now, group->members[i].id,
                                     group->members[i].life, 0);
    }
    return status;
}

/* --- results ------------------------------------------------------------ */

static const struct load *load_of(const struct bus_group *group, uint32_t rank,
                                  uint64_t epoch)
{
    const struct load *load = &group->members[rank].loads[epoch & 1];
    return load->rounds == epoch + 1 ? load : NULL;
}

static bool can_make_result(const struct bus_group *group)
{
    for (uint32_t rank = 0; rank < group->n; rank++) {
        const struct load *load = load_of(group, rank, group->current);
        if (load == NULL ||
            load->size != load_brings(&group->first->shape, rank))
            return false;
    }
    return true;
}

/* Errors: LS_ENOMEM. */
static int make_room(struct turn *turn)
{
    const size_t size = load_result(&turn->shape);
    free(turn->result);
    turn->result = malloc(size + 1);
    return turn->result == NULL
               ? ls_error(LS_ENOMEM, "group: no memory for %zu bytes", size)
               : LS_OK;
}

/* Errors: LS_EPROTO it was told that all have entered, by one who has not said
 * what they bring; LS_ENOMEM. */
static int need_result(struct bus_group *group, struct turn *turn)
{
    const struct load *loads[LOAD_RANKS_MAX];
    if (turn->has_result || !turn->rides)
        return LS_OK;
    if (!can_make_result(group))
        return ls_error(LS_EPROTO, "group: an epoch without its result");
    const int status = make_room(turn);
    if (status != LS_OK)
        return status;
    for (uint32_t rank = 0; rank < group->n; rank++)
        loads[rank] = load_of(group, rank, group->current);
    load_make(&turn->shape, loads, turn->result);
    turn->has_result = true;
    return LS_OK;
}

/* --- sending ------------------------------------------------------------ */

static void add_result(struct bus_group *group, struct group_message *message,
                       uint64_t epoch)
{
    struct turn *turn = group->first;
    if (group->entered && epoch == group->current) {
        if (!turn->rides || need_result(group, turn) != LS_OK)
            return;
        message->has_data = true;
        message->data = turn->result;
        message->data_size = load_result(&turn->shape);
    } else if (group->left.rounds == epoch + 1) {
        message->has_data = true;
        message->data = group->left.bytes;
        message->data_size = group->left.size;
    }
}

static void add_brought(struct bus_group *group, struct group_message *message,
                        uint64_t epoch)
{
    const struct load *own = load_of(group, group->rank, epoch);
    if (own == NULL)
        return;
    message->has_form = true;
    message->form = own->form;
    message->has_data = own->size > 0;
    message->data = own->bytes;
    message->data_size = own->size;
}

static uint32_t rank_of(const struct bus_group *group, uint32_t id)
{
    uint32_t rank = 0;
    while (rank < group->n && group->members[rank].id != id)
        rank++;
    return rank;
}

void group_commit_send_out(struct bus_group *group)
{
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(group->epoch, &n);
    for (size_t i = 0; i < n; i++) {
        const struct ls_barrier_message *said = &out[i].message;
        struct group_message message = {.kind = GROUP_COMMIT,
                                        .generation = group->generation,
                                        .commit = group->commit};
        message.commit_size = ls_barrier_wire_encode(said, group->commit);
        if (said->kind == LS_BARRIER_ENTERED)
            add_brought(group, &message, said->epoch);
        else if (said->full && said->kind <= LS_BARRIER_LEFT)
            add_result(group, &message, said->epoch);
        const uint32_t rank = rank_of(group, out[i].to);
        if (rank < group->n)
            group_post(group, rank, &message);
    }
}

/* --- ends --------------------------------------------------------------- */

static void say_missing(const struct bus_group *group, struct line *line,
                        const struct ls_epoch_reason *reason)
{
    if (reason->n_lacking == 0)
        return;
    line_add(line, "; missing");
    for (size_t i = 0; i < reason->n_missing; i++) {
        const uint32_t rank = rank_of(group, reason->missing[i].id);
        line_add(line, "%s ", i == 0 ? ":" : ",");
        if (rank < group->n)
            group_say_rank(group, rank, line);
    }
    if (reason->n_lacking > reason->n_missing)
        line_add(line, ", and %zu more", reason->n_lacking - reason->n_missing);
}

/* turn: NULL: none was started. */
static void explain(const struct bus_group *group, const struct turn *turn,
                    const struct ls_epoch_end *end, struct ls_failure *out)
{
    const struct ls_epoch_reason *reason = &end->reason;
    struct line line = {.size = 0};
    char what[GROUP_SAY_MAX] = "";
    line_add(&line, "group \"%s\", generation %" PRIu64, group->name,
             group->generation);
    if (turn != NULL) {
        group_form_say(&turn->base.call.form, what);
        line_add(&line, ", operation %" PRIu64 ", %s", turn->number / 2, what);
    }
    line_add(&line, ": ");
    if (end->status == LS_EABORTED) {
        const uint32_t rank = rank_of(group, reason->origin);
        if (rank < group->n)
            group_say_rank(group, rank, &line);
        line_add(&line, " gave up with %s: ", ls_status_name(reason->status));
    }
    line_add(&line, "%s", reason->text);
    if (end->status == LS_ETIMEDOUT)
        say_missing(group, &line, reason);
    *out = (struct ls_failure){.status = end->status};
    if (reason->status != end->status)
        out->cause = reason->status;
    memcpy(out->text, line.text, sizeof out->text);
}

/* Whether no later operation can go better. */
static bool is_last(int status)
{
    return status != LS_ETIMEDOUT && status != LS_EMISMATCH;
}

static void keep_left(struct bus_group *group, struct turn *turn)
{
    struct load *left = &group->left;
    left->rounds = 0;
    if (!turn->rides)
        return;
    free(left->bytes);
    left->bytes = turn->result;
    left->size = load_result(&turn->shape);
    left->capacity = left->size + 1;
    left->rounds = group->current + 1;
    turn->result = NULL;
}

/* The first turn's epoch has ended. */
static void take_end(struct bus_group *group, const struct ls_epoch_end *end)
{
    struct turn *turn = group->first;
    struct ls_failure failure;
    if (end->status == LS_OK) {
        const int status = need_result(group, turn);
        group->entered = false;
        if (status != LS_OK) {
            group_leave(group, status);
            return;
        }
        turn_deliver(turn);
        keep_left(group, turn);
        turn_committed(group, turn);
        return;
    }
    group->entered = false;
    explain(group, turn, end, &failure);
    if (is_last(end->status))
        group_end(group, &failure);
    else
        turn_end(group, turn, &failure);
}

/* --- entering ----------------------------------------------------------- */

static const void *brought(const struct turn *turn)
{
    if (!turn->rides)
        return NULL;
    return turn->base.call.form.any && turn->stage == 0 ? &turn->own_size
                                                        : turn->base.call.in;
}

/* What the others have brought to this epoch must fit what this rank calls. */
static void check_loads(struct bus_group *group, struct turn *turn,
                        uint64_t epoch)
{
    for (uint32_t rank = 0; rank < group->n; rank++) {
        const struct load *load = load_of(group, rank, epoch);
        if (rank != group->rank && load != NULL &&
            !group_form_is_same(&load->form, &turn->base.call.form))
            turn_doom(group, turn, rank, &load->form);
    }
}

static void give_up(struct bus_group *group, const struct ls_failure *why)
{
    ls_epoch_abort(group->epoch, why->status, false, why->text);
}

/* The first turn is whole, or is to fail. */
static void enter(struct bus_group *group, struct turn *turn, int64_t now)
{
    struct bus_member *own = &group->members[group->rank];
    const uint64_t epoch = group->epoch->epoch;
    const size_t size =
        turn->rides ? load_brings(&turn->shape, group->rank) : 0;
    struct ls_failure doom = turn->doom;
    if (doom.status == LS_OK &&
        load_set(&own->loads[epoch & 1], epoch, &turn->base.call.form,
                 brought(turn), size) != LS_OK)
        ls_failure_keep(&doom, LS_ENOMEM);
    group->entered = true;
    group->current = epoch;
    if (doom.status != LS_OK)
        give_up(group, &doom);
    ls_epoch_enter(group->epoch, now, turn->base.call.deadline, 0);
    group_arm(group, ls_epoch_wake_at(group->epoch));
}

/* Whether the epoch that no turn is in yet was given up for good. */
static bool was_given_up(struct bus_group *group)
{
    const struct ls_epoch_why *why = &group->epoch->why;
    struct ls_failure failure;
    if (!why->given_up || !is_last(why->early.status))
        return false;
    explain(group, NULL, &why->early, &failure);
    group_end(group, &failure);
    return true;
}

static bool may_enter(struct bus_group *group, struct turn *turn)
{
    check_loads(group, turn, group->epoch->epoch);
    return turn_is_whole(turn) || turn->doom.status != LS_OK ||
           group->has_lost || group->epoch->why.given_up ||
           ls_epoch_was_given_up(group->epoch);
}

void group_commit_go_on(struct bus_group *group)
{
    while (group->epoch != NULL) {
        struct turn *turn = group->first;
        group_commit_send_out(group);
        if (group->is_over)
            break;
        if (group->entered) {
            const struct ls_epoch_end *end = ls_epoch_end(group->epoch);
            if (end == NULL && turn->doom.status != LS_OK &&
                group->epoch->phase == LS_EPOCH_ENTERED) {
                give_up(group, &turn->doom);
                continue;
            }
            if (end == NULL)
                break;
            take_end(group, end);
        } else if (was_given_up(group) || turn == NULL ||
                   !may_enter(group, turn)) {
            break;
        } else {
            enter(group, turn, ls_now(group->base.runtime));
        }
    }
}

/* --- what comes --------------------------------------------------------- */

/* Who else has brought something different to an epoch that this rank is not in
 * yet. */
static void compare_loads(struct bus_group *group, uint32_t rank,
                          uint64_t epoch)
{
    const struct load *load = load_of(group, rank, epoch);
    char one[GROUP_SAY_MAX], other[GROUP_SAY_MAX];
    struct line line = {.size = 0};
    for (uint32_t i = 0; i < group->n; i++) {
        const struct load *against = load_of(group, i, epoch);
        if (i == group->rank || against == NULL ||
            group_form_is_same(&against->form, &load->form))
            continue;
        group_form_say(&against->form, one);
        group_form_say(&load->form, other);
        line_add(&line, "rank %" PRIu32 " calls %s, rank %" PRIu32 " calls %s",
                 i, one, rank, other);
        ls_epoch_abort(group->epoch, LS_EMISMATCH, false, line.text);
        return;
    }
}

/* A rank says that it has entered, and what it brings. Returns whether the
 * machine is to know. */
static bool take_load(struct bus_group *group, uint32_t rank, uint64_t epoch,
                      const struct group_message *message)
{
    struct load *load = &group->members[rank].loads[epoch & 1];
    struct turn *turn = group->first;
    const uint64_t now_at = group->epoch->epoch;
    if (!message->has_form)
        return false;
    if (epoch < now_at || load->rounds >= epoch + 1)
        return true; /* it is known, or past */
    const bool same = turn == NULL ||
                      group_form_is_same(&message->form, &turn->base.call.form);
    if (epoch == now_at && turn != NULL && same &&
        message->data_size !=
            (turn->rides ? load_brings(&turn->shape, rank) : 0))
        return false;
    if (load_set(load, epoch, &message->form, message->data,
                 message->data_size) != LS_OK)
        return false;
    if (epoch == now_at && turn == NULL && !group->epoch->why.given_up)
        compare_loads(group, rank, epoch);
    if (same || epoch > now_at)
        return true;
    turn_doom(group, turn, rank, &message->form);
    return false; /* or it could be the last that the machine waits for */
}

/* A rank says that all have entered, perhaps with the result. Returns whether
 * that can be used: without one it would be believed in vain. */
static bool take_result(struct bus_group *group,
                        const struct group_message *message)
{
    struct turn *turn = group->first;
    if (!turn->rides || turn->has_result)
        return true;
    if (!message->has_data)
        return can_make_result(group);
    const size_t size = load_result(&turn->shape);
    if (message->data_size != size || make_room(turn) != LS_OK)
        return false;
    if (size > 0)
        memcpy(turn->result, message->data, size);
    turn->has_result = true;
    return true;
}

void group_commit_receive(struct bus_group *group, uint32_t rank,
                          const struct group_message *message)
{
    const struct bus_member *member = &group->members[rank];
    struct ls_barrier_message said;
    if (ls_barrier_wire_decode(message->commit, message->commit_size, &said,
                               group->scratch) != LS_OK) {
        group->stats.dropped++;
        ls_log_debug("group \"%s\": from rank %" PRIu32 ": %s", group->name,
                     rank, ls_error_text());
        return;
    }
    bool use = true;
    if (said.kind == LS_BARRIER_ENTERED)
        use = take_load(group, rank, said.epoch, message);
    else if (said.kind <= LS_BARRIER_LEFT && group->entered &&
             said.epoch == group->current && ls_epoch_end(group->epoch) == NULL)
        use = take_result(group, message);
    if (!use)
        group->stats.dropped++;
    else
        ls_epoch_receive(group->epoch, ls_now(group->base.runtime), member->id,
                         member->life, &said);
}

void group_commit_expire(struct bus_group *group, struct turn *turn,
                         int64_t now)
{
    const bool ready = group->entered && group->epoch->phase == LS_EPOCH_READY;
    struct line line = {.size = 0};
    uint32_t lacking;
    if (ready && now < turn->base.call.deadline + WORD_NS) {
        group_arm(group, turn->base.call.deadline + WORD_NS);
        return;
    }
    line_add(&line, "the deadline of rank %" PRIu32 " passed", group->rank);
    if (!group->entered && !turn->rides && haul_lacks(&turn->haul, &lacking)) {
        line_add(&line, ", which has not all yet from ");
        group_say_rank(group, lacking, &line);
    }
    if (group->entered) {
        ls_epoch_abort(group->epoch, LS_ETIMEDOUT, false, line.text);
        return;
    }
    turn->doom.status = LS_ETIMEDOUT;
    memcpy(turn->doom.text, line.text, sizeof turn->doom.text);
}

/* The first turn lacks bytes of another rank, which may have given it up, and
 * says no more of it. */
static void ask_whether(struct bus_group *group, int64_t now)
{
    const struct turn *turn = group->first;
    uint32_t rank;
    if (turn != NULL && !turn->rides && haul_lacks(&turn->haul, &rank))
        ls_epoch_ask(group->epoch, now, group->members[rank].id,
                     group->members[rank].life);
}

int64_t group_commit_tick(struct bus_group *group, int64_t now)
{
    if (!group->entered) {
        ask_whether(group, now);
        return LS_FOREVER;
    }
    ls_epoch_tick(group->epoch, now);
    return ls_epoch_wake_at(group->epoch);
}
