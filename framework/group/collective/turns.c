/* Operations on the bus, in turn: how their bytes move. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bus_group.h"

/* --- life --------------------------------------------------------------- */

void turn_free(struct turn *turn)
{
    if (turn == NULL)
        return;
    haul_fini(&turn->haul);
    free(turn->result);
    free(turn->told);
    free(turn->sizes);
    free(turn->ats);
    free(turn);
}

static void unlink_turn(struct bus_group *group, struct turn *turn)
{
    const bool pair = group_form_is_pair(&turn->base.call.form);
    struct turn **at = pair           ? &group->pairs
                       : turn->shared ? &group->shared
                                      : &group->first;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    if (turn->shared && turn->next == NULL)
        group->shared_last = at;
    else if (!pair && turn->next == NULL)
        group->last = at;
    turn->next = NULL;
    turn->linked = false;
    turn->shared = false;
}

/* Behind those of its queue. */
static void link_turn(struct bus_group *group, struct turn *turn)
{
    turn->linked = true;
    turn->shared = group->in_room;
    if (turn->shared) {
        *group->shared_last = turn;
        group->shared_last = &turn->next;
        return;
    }
    *group->last = turn;
    group->last = &turn->next;
    group_arm(group, turn->base.call.deadline);
}

void turn_end(struct bus_group *group, struct turn *turn,
              const struct ls_failure *end)
{
    if (turn->linked)
        unlink_turn(group, turn);
    if (end->status != LS_OK && turn->base.call.parts != NULL)
        ls_group_parts_free(turn->base.call.parts);
    turn->base.end = *end;
    turn->ended = true;
    if (end->status == LS_OK)
        group->stats.ended++;
    else
        group->stats.failed++;
    ls_cond_broadcast(&group->changed);
}

/* --- what a flow sends -------------------------------------------------- */

static void send_data(void *self, const struct plan_move *move, size_t offset,
                      const void *data, size_t size)
{
    const struct turn_post *post = self;
    const struct group_message message = {
        .kind = GROUP_DATA,
        .pair = group_form_is_pair(&post->turn->base.call.form),
        .generation = post->group->generation,
        .number = post->turn->number,
        .lane = move->lane,
        .have = offset,
        .data = data,
        .data_size = size};
    group_post(post->group, move->peer, &message);
}

static void send_want(void *self, const struct plan_move *move, size_t have,
                      size_t upto, bool again)
{
    const struct turn_post *post = self;
    const struct group_message message = {
        .kind = GROUP_WANT,
        .again = again,
        .pair = group_form_is_pair(&post->turn->base.call.form),
        .generation = post->group->generation,
        .number = post->turn->number,
        .lane = move->lane,
        .have = have,
        .upto = upto,
        .form = post->turn->base.call.form};
    post->group->stats.repeated += again ? 1 : 0;
    group_post(post->group, move->peer, &message);
}

struct haul_post turn_haul_post(struct turn_post *post)
{
    return (struct haul_post){
        .self = post, .data = send_data, .want = send_want};
}

/* --- wants that come early ---------------------------------------------- */

void turns_keep_want(struct bus_group *group, uint32_t rank,
                     const struct group_message *message)
{
    if (group->n_wants == group->wants_capacity) {
        const size_t capacity = 2 * group->wants_capacity + 16;
        struct early_want *more =
            group->n_wants >= EARLY_WANTS_MAX
                ? NULL
                : realloc(group->wants, capacity * sizeof *more);
        if (more == NULL) {
            group->stats.dropped++; /* it is asked again */
            return;
        }
        group->wants = more;
        group->wants_capacity = capacity;
    }
    group->wants[group->n_wants++] =
        (struct early_want){.rank = rank, .message = *message};
}

void turns_use_wants(struct bus_group *group, struct turn *turn)
{
    const bool pair = group_form_is_pair(&turn->base.call.form);
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    size_t n = 0;
    for (size_t i = 0; i < group->n_wants; i++) {
        const struct early_want *want = &group->wants[i];
        const struct group_message *message = &want->message;
        if (message->pair != pair || message->number != turn->number ||
            (pair && want->rank != turn->shape.form.root)) {
            group->wants[n++] = *want;
            continue;
        }
        if (!pair && !group_form_is_same(&message->form, &turn->base.call.form))
            turn_doom(group, turn, want->rank, &message->form);
        else if (!turn->rides)
            (void)haul_wanted(&turn->haul, want->rank, message->lane,
                              (size_t)message->have, (size_t)message->upto,
                              message->again, &post);
    }
    group->n_wants = n;
}

/* --- stages ------------------------------------------------------------- */

/* What a stage reads and writes. */
static const void *in_of(const struct turn *turn)
{
    return turn->base.call.form.any && turn->stage == 0 ? &turn->own_size
                                                        : turn->base.call.in;
}

static void *out_of(const struct turn *turn)
{
    const struct group_call *call = &turn->base.call;
    if (!call->form.any)
        return call->out;
    if (turn->stage == 0)
        return turn->told;
    return call->parts->items;
}

/* Begin a stage: what rides waits for its commit, the rest begins to move. */
static int begin_stage(struct bus_group *group, struct turn *turn)
{
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    turn->rides = load_rides(&turn->shape);
    turn->has_result = false;
    if (turn->rides)
        return LS_OK;
    const int64_t now = ls_now(group->base.runtime);
    const int status =
        haul_init(&turn->haul, &turn->shape, in_of(turn), out_of(turn));
    if (status != LS_OK)
        return status;
    haul_begin(&turn->haul, now, &post);
    turns_use_wants(group, turn);
    group_arm(group, now + HAUL_ASK_FIRST_NS);
    return LS_OK;
}

/* Sizes first: eight bytes from each, or from the root. */
static int init_any(struct turn *turn)
{
    const uint32_t n = turn->shape.n;
    turn->own_size = turn->base.call.form.count;
    turn->shape.form.count = sizeof turn->own_size;
    turn->shape.form.any = false;
    turn->told = calloc(n, sizeof *turn->told);
    turn->sizes = calloc(n, sizeof *turn->sizes);
    turn->ats = calloc(n, sizeof *turn->ats);
    if (turn->told == NULL || turn->sizes == NULL || turn->ats == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for an operation");
    if (turn->base.call.form.kind == LS_GROUP_BROADCAST &&
        turn->base.call.form.root == turn->shape.rank)
        turn->told[0] = turn->own_size; /* a root is not written to */
    return LS_OK;
}

/* All sizes are known: make room for what is to come. Errors: LS_ENOMEM;
 * LS_EPROTO a rank has lied. */
static int begin_parts(struct bus_group *group, struct turn *turn)
{
    const struct group_form *form = &turn->base.call.form;
    const bool one = form->kind == LS_GROUP_BROADCAST;
    const size_t n = one ? 1 : turn->shape.n;
    struct ls_group_parts *parts = turn->base.call.parts;
    const int status = group_parts_told(parts, turn->told, n, turn->sizes);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        turn->ats[i] =
            parts->items[i].size == 0
                ? 0
                : (size_t)((const unsigned char *)parts->items[i].data -
                           (const unsigned char *)parts->items);
    if (one) { /* by rank, for the plan */
        turn->sizes[form->root] = turn->sizes[0];
        turn->ats[form->root] = turn->ats[0];
    }
    turn->shape.form = *form;
    turn->shape.sizes = turn->sizes;
    turn->shape.ats = turn->ats;
    turn->stage = 1;
    turn->number++;
    haul_fini(&turn->haul);
    return begin_stage(group, turn);
}

/* The root of a broadcast of any size has its own part from itself. */
static void give_root_its_own(const struct turn *turn)
{
    const struct group_call *call = &turn->base.call;
    if (call->form.any && call->form.kind == LS_GROUP_BROADCAST &&
        call->form.root == turn->shape.rank && call->parts->items[0].size > 0)
        memcpy((void *)(uintptr_t)call->parts->items[0].data, call->in,
               call->parts->items[0].size);
}

void turn_deliver(const struct turn *turn)
{
    if (turn->rides && load_result(&turn->shape) > 0)
        load_deliver(&turn->shape, turn->result, out_of(turn));
    else if (!turn->rides && turn->stage == 1)
        give_root_its_own(turn);
}

void turn_committed(struct bus_group *group, struct turn *turn)
{
    struct ls_failure end = {.status = LS_OK};
    if (turn->broken) {
        /* All that the room held for lost are there: nobody has a result. */
        end.status = LS_EABORTED;
        snprintf(end.text, sizeof end.text,
                 "group \"%s\": the room of its ranks has failed", group->name);
        turn_end(group, turn, &end);
        return;
    }
    if (turn->base.call.form.any && turn->stage == 0) {
        const int status = begin_parts(group, turn);
        if (status != LS_OK)
            group_leave(group, status);
        return;
    }
    turn_end(group, turn, &end);
}

bool turn_is_whole(const struct turn *turn)
{
    return turn->rides || haul_is_whole(&turn->haul);
}

static int begin(struct bus_group *group, struct turn *turn)
{
    const int status = turn->base.call.form.any ? init_any(turn) : LS_OK;
    return status == LS_OK ? begin_stage(group, turn) : status;
}

/* --- starting ----------------------------------------------------------- */

int turn_start(struct turn **out, struct bus_group *group,
               const struct group_call *call)
{
    struct turn *turn = calloc(1, sizeof *turn);
    if (turn == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for an operation");
    turn->base.group = &group->base;
    turn->base.call = *call;
    turn->shape = (struct plan_shape){
        .form = call->form, .rank = group->rank, .n = group->n};
    turn->number = group->next_turn;
    turn->waited = call->waited;
    const int status = group->in_room ? LS_OK : begin(group, turn);
    if (status != LS_OK) {
        turn_free(turn);
        return status;
    }
    group->next_turn += 2;
    link_turn(group, turn);
    *out = turn;
    return LS_OK;
}

void turn_to_bus(struct bus_group *group, struct turn *turn)
{
    unlink_turn(group, turn);
    link_turn(group, turn);
    const int status =
        turn->broken ? begin_stage(group, turn) : begin(group, turn);
    if (status != LS_OK)
        group_leave(group, status);
}

void turn_doom(struct bus_group *group, struct turn *turn, uint32_t rank,
               const struct group_form *form)
{
    char one[GROUP_SAY_MAX], other[GROUP_SAY_MAX];
    if (turn->doom.status != LS_OK)
        return;
    group_form_say(&turn->base.call.form, one);
    group_form_say(form, other);
    turn->doom.status = LS_EMISMATCH;
    snprintf(turn->doom.text, sizeof turn->doom.text,
             "rank %" PRIu32 " calls %s, rank %" PRIu32 " calls %s",
             group->rank, one, rank, other);
}

/* --- what comes --------------------------------------------------------- */

/* NULL: it has ended, or is yet to come. */
static struct turn *find_turn(const struct bus_group *group, uint64_t number)
{
    struct turn *turn = group->first;
    while (turn != NULL && turn->number != number)
        turn = turn->next;
    return turn;
}

void turns_want(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    struct turn *turn = find_turn(group, message->number);
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    if (turn == NULL) {
        /* Of a turn that is not started, or of a stage that is not begun. */
        const uint64_t past =
            group->first != NULL ? group->first->number : group->next_turn;
        if (message->number >= past)
            turns_keep_want(group, rank, message);
        return;
    }
    if (!group_form_is_same(&message->form, &turn->base.call.form))
        turn_doom(group, turn, rank, &message->form);
    else if (turn->rides ||
             !haul_wanted(&turn->haul, rank, message->lane,
                          (size_t)message->have, (size_t)message->upto,
                          message->again, &post))
        group->stats.dropped++;
}

void turns_data(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    struct turn *turn = find_turn(group, message->number);
    struct turn_post self = {.group = group, .turn = turn};
    const struct haul_post post = turn_haul_post(&self);
    if (turn == NULL || turn->rides ||
        !haul_take(&turn->haul, ls_now(group->base.runtime), rank,
                   message->lane, (size_t)message->have, message->data,
                   message->data_size, &post))
        group->stats.dropped++;
}

int64_t turns_tick(struct bus_group *group, int64_t now)
{
    int64_t next = LS_FOREVER;
    for (struct turn *turn = group->first; turn != NULL; turn = turn->next) {
        struct turn_post self = {.group = group, .turn = turn};
        const struct haul_post post = turn_haul_post(&self);
        const int64_t at =
            turn->rides ? LS_FOREVER : haul_tick(&turn->haul, now, &post);
        if (at < next)
            next = at;
    }
    struct turn *first = group->first;
    if (first != NULL && first->base.call.deadline <= now)
        group_commit_expire(group, first, now);
    else if (first != NULL && first->base.call.deadline < next)
        next = first->base.call.deadline;
    return next;
}
