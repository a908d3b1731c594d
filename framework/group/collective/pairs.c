/* SEND and RECEIVE on the bus.
 *
 * The two halves of a pair are matched by their number: each side counts those
 * to and from each other rank. The receiver asks for the bytes, as in any flow;
 * when it has all, it has ended, and tells the sender, which then ends too. A
 * half that fails tells the other why. Who asks of a pair that has ended is
 * told how: the last of each rank are remembered. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bus_group.h"

/* Of an END: whose half it is about, as the receiver of the message sees it. */
#define ABOUT_RECEIVE 0
#define ABOUT_SEND    1

static bool sends(const struct turn *turn)
{
    return turn->base.call.form.kind == LS_GROUP_SEND;
}

static struct pair_side *side_of(const struct bus_group *group, uint32_t rank,
                                 bool sending)
{
    struct bus_member *member = &group->members[rank];
    return sending ? &member->sends : &member->receives;
}

/* NULL: none is under way. */
static struct turn *find_pair(const struct bus_group *group, uint32_t rank,
                              bool sending, uint64_t number)
{
    struct turn *turn = group->pairs;
    while (turn != NULL && (turn->shape.form.root != rank ||
                            sends(turn) != sending || turn->number != number))
        turn = turn->next;
    return turn;
}

static const struct pair_end *find_end(const struct pair_side *side,
                                       uint64_t number)
{
    const struct pair_end *end = &side->ends[number % PAIR_ENDS];
    return end->rounds == number + 1 ? end : NULL;
}

static void remember(struct pair_side *side, uint64_t number, int status,
                     const char *text, size_t size)
{
    struct pair_end *end = &side->ends[number % PAIR_ENDS];
    if (end->rounds > number + 1)
        return;
    end->rounds = number + 1;
    end->status = status;
    size = size < GROUP_WIRE_TEXT_MAX ? size : GROUP_WIRE_TEXT_MAX;
    memcpy(end->text, text, size);
    end->text[size] = '\0';
}

static void tell_end(struct bus_group *group, uint32_t rank, bool sending,
                     uint64_t number, int status, const char *text)
{
    const size_t size = strlen(text);
    const struct group_message message = {
        .kind = GROUP_END,
        .pair = true,
        .generation = group->generation,
        .number = number,
        .lane = sending ? ABOUT_RECEIVE : ABOUT_SEND,
        .status = status,
        .text = text,
        .text_size = size < GROUP_WIRE_TEXT_MAX ? size : GROUP_WIRE_TEXT_MAX};
    group_post(group, rank, &message);
}

/* End this half. tell: the other may not know yet. */
static void end_pair(struct bus_group *group, struct turn *turn, int status,
                     const char *text, bool tell)
{
    const uint32_t rank = turn->shape.form.root;
    struct ls_failure end = {.status = status};
    struct line line = {.size = 0};
    remember(side_of(group, rank, sends(turn)), turn->number, status, text,
             strlen(text));
    if (tell)
        tell_end(group, rank, sends(turn), turn->number, status, text);
    line_add(&line, "group \"%s\": %s", group->name, text);
    memcpy(end.text, line.text, sizeof end.text);
    turn_end(group, turn, &end);
}

static bool fits(struct bus_group *group, struct turn *turn, uint32_t rank,
                 const struct group_form *form)
{
    const struct group_form *own = &turn->base.call.form;
    char one[GROUP_SAY_MAX], other[GROUP_SAY_MAX];
    struct line line = {.size = 0};
    if (own->count == form->count && strcmp(own->name, form->name) == 0)
        return true;
    group_form_say(own, one);
    group_form_say(form, other);
    line_add(&line, "rank %" PRIu32 " calls %s, rank %" PRIu32 " calls %s",
             group->rank, one, rank, other);
    end_pair(group, turn, LS_EMISMATCH, line.text, true);
    return false;
}

/* Whether it has all, or has failed. */
static void ask_receiver(struct bus_group *group, const struct turn *turn)
{
    const struct group_message message = {.kind = GROUP_DATA,
                                          .pair = true,
                                          .generation = group->generation,
                                          .number = turn->number,
                                          .have = turn->shape.form.count};
    group_post(group, turn->shape.form.root, &message);
}

/* The receiver has asked. Of no bytes none will come to say that this rank is
 * here. */
static void say_here(struct bus_group *group, const struct turn *turn)
{
    if (turn->shape.form.count == 0)
        ask_receiver(group, turn);
}

static void use_early_want(struct bus_group *group, struct turn *turn)
{
    const uint32_t rank = turn->shape.form.root;
    for (size_t i = 0; i < group->n_wants; i++) {
        const struct early_want *want = &group->wants[i];
        if (want->message.pair && want->rank == rank &&
            want->message.number == turn->number &&
            !fits(group, turn, rank, &want->message.form))
            return;
    }
    turns_use_wants(group, turn);
    say_here(group, turn);
}

/* Begin this half, unless the other has told its end already. */
static void begin_pair(struct bus_group *group, struct turn *turn)
{
    const int64_t now = ls_now(group->base.runtime);
    const uint32_t rank = turn->shape.form.root;
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    const struct pair_end *known =
        find_end(side_of(group, rank, sends(turn)), turn->number);
    struct line line = {.size = 0};
    if (known != NULL) {
        char text[GROUP_WIRE_TEXT_MAX + 1];
        memcpy(text, known->text, sizeof text);
        end_pair(group, turn, known->status, text, false);
        return;
    }
    if (group->members[rank].lost) {
        group_say_rank(group, rank, &line);
        line_add(&line, " was lost");
        end_pair(group, turn, LS_ELOST, line.text, false);
        return;
    }
    if (sends(turn))
        use_early_want(group, turn);
    else
        haul_begin(&turn->haul, now, &post);
    group_arm(group, now + HAUL_ASK_FIRST_NS);
    group_arm(group, turn->base.call.deadline);
}

int pair_start(struct turn **out, struct bus_group *group,
               const struct group_call *call)
{
    const uint32_t rank = call->form.root;
    const bool sending = call->form.kind == LS_GROUP_SEND;
    struct turn *turn = calloc(1, sizeof *turn);
    if (turn == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for an operation");
    turn->base.group = &group->base;
    turn->base.call = *call;
    turn->shape = (struct plan_shape){
        .form = call->form, .rank = group->rank, .n = group->n};
    const int status =
        haul_init(&turn->haul, &turn->shape, call->in, call->out);
    if (status != LS_OK) {
        turn_free(turn);
        return status;
    }
    turn->number = side_of(group, rank, sending)->next++;
    turn->linked = true;
    struct turn **at = &group->pairs;
    while (*at != NULL)
        at = &(*at)->next;
    *at = turn;
    begin_pair(group, turn);
    *out = turn;
    return LS_OK;
}

/* --- what comes --------------------------------------------------------- */

void pairs_want(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    struct turn *turn = find_pair(group, rank, true, message->number);
    struct pair_side *side = side_of(group, rank, true);
    const struct pair_end *known = find_end(side, message->number);
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    if (turn != NULL && fits(group, turn, rank, &message->form)) {
        (void)haul_wanted(&turn->haul, rank, message->lane,
                          (size_t)message->have, (size_t)message->upto,
                          message->again, &post);
        say_here(group, turn);
    } else if (turn == NULL && message->number >= side->next) {
        turns_keep_want(group, rank, message);
    } else if (turn == NULL && known != NULL) {
        tell_end(group, rank, true, message->number, known->status,
                 known->text);
    }
}

/* An empty piece asks whether all has come. */
static void answer_question(struct bus_group *group, uint32_t rank,
                            uint64_t number)
{
    const struct pair_end *known =
        find_end(side_of(group, rank, false), number);
    if (known != NULL)
        tell_end(group, rank, false, number, known->status, known->text);
}

void pairs_data(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    struct turn *turn = find_pair(group, rank, false, message->number);
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    if (message->data_size == 0 && turn == NULL) {
        answer_question(group, rank, message->number);
        return;
    }
    if (turn == NULL)
        return;
    if (message->data_size > 0 &&
        !haul_take(&turn->haul, ls_now(group->base.runtime), rank,
                   message->lane, (size_t)message->have, message->data,
                   message->data_size, &post))
        group->stats.dropped++;
    if (haul_is_whole(&turn->haul))
        end_pair(group, turn, LS_OK, "", true);
}

void pairs_end(struct bus_group *group, uint32_t rank,
               const struct group_message *message)
{
    const bool sending = message->lane == ABOUT_SEND;
    struct turn *turn = find_pair(group, rank, sending, message->number);
    struct pair_side *side = side_of(group, rank, sending);
    char text[GROUP_WIRE_TEXT_MAX + 1];
    memcpy(text, message->text, message->text_size);
    text[message->text_size] = '\0';
    /* A sender does not say that all is well: that is for the receiver. */
    if (message->status == LS_OK && !sending)
        return;
    if (turn != NULL)
        end_pair(group, turn, message->status, text, false);
    else if (message->number >= side->next &&
             message->number < side->next + PAIR_ENDS)
        remember(side, message->number, message->status, text,
                 message->text_size);
}

void pairs_refuse(struct bus_group *group, uint32_t rank,
                  const struct group_message *message)
{
    tell_end(group, rank, message->kind == GROUP_WANT, message->number,
             group->over.status, group->over.text);
}

/* --- time and losses ---------------------------------------------------- */

static void expire(struct bus_group *group, struct turn *turn)
{
    char what[GROUP_SAY_MAX];
    struct line line = {.size = 0};
    group_form_say(&turn->base.call.form, what);
    line_add(&line,
             "%s: the deadline of rank %" PRIu32 " passed; missing: ", what,
             group->rank);
    group_say_rank(group, turn->shape.form.root, &line);
    end_pair(group, turn, LS_ETIMEDOUT, line.text, true);
}

int64_t pairs_tick(struct bus_group *group, int64_t now)
{
    int64_t next = LS_FOREVER;
    struct turn *turn = group->pairs;
    while (turn != NULL) {
        struct turn *following = turn->next;
        struct turn_post self = {.group = group, .turn = turn};
        const struct haul_post post = turn_haul_post(&self);
        int64_t at = haul_tick(&turn->haul, now, &post);
        const int64_t deadline = turn->base.call.deadline;
        if (sends(turn)) {
            at = now + HAUL_ASK_FIRST_NS;
            ask_receiver(group, turn);
        }
        if (deadline <= now)
            expire(group, turn);
        else if (at < next || deadline < next)
            next = at < deadline ? at : deadline;
        turn = following;
    }
    return next;
}

void pairs_lose(struct bus_group *group, uint32_t rank)
{
    struct turn *turn = group->pairs;
    while (turn != NULL) {
        struct turn *following = turn->next;
        struct line line = {.size = 0};
        group_say_rank(group, rank, &line);
        line_add(&line, " was lost");
        if (turn->shape.form.root == rank)
            end_pair(group, turn, LS_ELOST, line.text, false);
        turn = following;
    }
}
