/* The carrier between nodes: handles, generations, and what the channel brings.
 *
 * Members form at a barrier of their own, which says who they are, in which
 * lives; the number of its epoch is that of the generation. Within one, the
 * members are fixed, and every message names the generation. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_lives.h"
#include "bus_group.h"
#include "forked.h"
#include "lockstep/event.h"
#include "lockstep/log.h"

#define DEFAULT_NAME    "world"
#define FORM_DEFAULT_MS 60000
#define AGAIN_NS        (10 * LS_NS_PER_MS) /* when memory was lacking */
#define NAME_MAX        64
/* Of one that was split off: with the names of those above it. */
#define SPLIT_NAME_MAX 100

static struct bus_group *group_of(const ls_group *group)
{
    return (struct bus_group *)(uintptr_t)group;
}

/* --- what the other files call ------------------------------------------ */

void group_say_rank(const struct bus_group *group, uint32_t rank,
                    struct line *line)
{
    line_add(line, "rank %" PRIu32 " (node %" PRIu32 ")", rank,
             group->members[rank].id);
}

void group_post(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    const size_t size = group_wire_encode(message, group->head);
    const int status = ls_channel_send_two(
        group->channel, group->members[rank].id, group->head, size,
        message->data, message->data_size);
    /* One who is not there now is asked again, or lost. */
    if (status == LS_OK) {
        group->stats.sent++;
        group->stats.sent_bytes += size + message->data_size;
    } else if (status == LS_ECLOSED)
        group->closed = true;
    else
        ls_log_debug("group \"%s\": to rank %" PRIu32 ": %s", group->name, rank,
                     ls_error_text());
}

void group_arm(struct bus_group *group, int64_t at)
{
    if (at >= group->timer_at)
        return;
    group->timer_at = at;
    ls_channel_wake_at(group->channel, at);
}

void group_end(struct bus_group *group, const struct ls_failure *why)
{
    if (group->is_over)
        return;
    group->is_over = true;
    group->over = *why;
    group->entered = false;
    while (group->first != NULL)
        turn_end(group, group->first, why);
    while (group->pairs != NULL)
        turn_end(group, group->pairs, why);
    shared_end(group, why);
}

/* What the others see of it: a status that says something of the epoch would
 * not tell them that this rank has left. */
static int status_to_tell(int status)
{
    return status == LS_ETIMEDOUT || status == LS_ELOST ||
                   status == LS_EMISMATCH
               ? LS_ECANCELED
               : status;
}

void group_leave(struct bus_group *group, int status)
{
    struct ls_failure own = {.status = status};
    char text[LS_BARRIER_REASON_MAX];
    if (group->is_over || group->epoch == NULL)
        return;
    snprintf(own.text, sizeof own.text,
             "group \"%s\": this rank, %" PRIu32 ", has left: %s", group->name,
             group->rank, ls_status_sentence(status));
    snprintf(text, sizeof text, "it has left: %s", ls_status_sentence(status));
    group->has_left = true;
    ls_epoch_abort(group->epoch, status_to_tell(status), true, text);
    group_commit_send_out(group);
    group_end(group, &own);
}

/* --- what the channel brings -------------------------------------------- */

static uint32_t find_member(const struct bus_group *group, uint32_t id,
                            uint64_t life)
{
    uint32_t rank = 0;
    while (rank < group->n &&
           (group->members[rank].id != id || group->members[rank].life != life))
        rank++;
    return rank;
}

/* It is of a generation that this node is about to form. Bytes of flows are
 * asked for again. */
static void keep_early(struct bus_group *group, uint32_t from, uint64_t life,
                       const void *data, size_t size)
{
    unsigned char *bytes =
        group->n_early == EARLY_MESSAGES_MAX ? NULL : malloc(size);
    if (bytes == NULL) {
        group->stats.dropped++;
        return;
    }
    memcpy(bytes, data, size);
    group->early[group->n_early++] = (struct early_message){
        .from = from, .life = life, .bytes = bytes, .size = size};
}

static void use(struct bus_group *group, uint32_t rank,
                const struct group_message *message)
{
    if (message->kind == GROUP_COMMIT)
        group_commit_receive(group, rank, message);
    else if (group->is_over && message->pair && message->kind != GROUP_END)
        pairs_refuse(group, rank, message);
    else if (group->is_over)
        return;
    else if (message->kind == GROUP_END)
        pairs_end(group, rank, message);
    else if (message->kind == GROUP_WANT && message->pair)
        pairs_want(group, rank, message);
    else if (message->kind == GROUP_WANT)
        turns_want(group, rank, message);
    else if (message->pair)
        pairs_data(group, rank, message);
    else
        turns_data(group, rank, message);
}

static void take_message(struct bus_group *group, uint32_t from, uint64_t life,
                         const void *data, size_t size)
{
    struct group_message message;
    if (group_wire_decode(data, size, &message) != LS_OK) {
        group->stats.dropped++;
        ls_log_debug("group \"%s\": from node %" PRIu32 ": %s", group->name,
                     from, ls_error_text());
        return;
    }
    const uint32_t rank = find_member(group, from, life);
    if (message.generation > group->generation) {
        if (message.kind != GROUP_DATA)
            keep_early(group, from, life, data, size);
    } else if (message.generation == group->generation && rank < group->n &&
               rank != group->rank && !group->members[rank].lost) {
        use(group, rank, &message);
        group_commit_go_on(group);
    } else {
        group->stats.dropped++;
    }
}

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct bus_group *group = self;
    ls_mutex_lock(&group->mutex);
    take_message(group, from, incarnation, data, size);
    ls_mutex_unlock(&group->mutex);
}

static void lose(struct bus_group *group, uint32_t rank, int64_t now)
{
    struct bus_member *member = &group->members[rank];
    if (member->lost)
        return;
    member->lost = true;
    group->has_lost = true;
    pairs_lose(group, rank);
    ls_epoch_lost(group->epoch, now, member->id, member->life);
}

static void on_member(void *self, const struct ls_member *member)
{
    struct bus_group *group = self;
    if (member->state == LS_MEMBER_READY || member->state == LS_MEMBER_SEEN)
        return;
    ls_mutex_lock(&group->mutex);
    const uint32_t rank = find_member(group, member->id, member->incarnation);
    if (rank < group->n && group->epoch != NULL) {
        lose(group, rank, ls_now(group->base.runtime));
        group_commit_go_on(group);
    }
    ls_mutex_unlock(&group->mutex);
}

static void end_as_lost(struct bus_group *group)
{
    struct ls_failure why = {.status = LS_ELOST};
    snprintf(why.text, sizeof why.text,
             "group \"%s\": the others have declared this node lost",
             group->name);
    if (group->epoch != NULL)
        group_end(group, &why);
}

void group_shut_out(struct bus_group *group)
{
    ls_epoch_abort(group->epoch, LS_ECANCELED, true,
                   "the others have declared it lost");
    group_commit_send_out(group);
    end_as_lost(group);
}

/* This node was declared lost, and goes on as a new life of itself, which no
 * generation knows. */
static void on_renewed(void *self, uint64_t incarnation)
{
    struct bus_group *group = self;
    (void)incarnation;
    ls_mutex_lock(&group->mutex);
    end_as_lost(group);
    ls_mutex_unlock(&group->mutex);
}

/* Put off all deadlines by what the node has stood still, before any is looked
 * at or added: it could not hear the others. */
static void excuse_own_stall(struct bus_group *group)
{
    struct turn *const firsts[] = {group->first, group->pairs};
    const int64_t stood = ls_node_stood_ns(group->node);
    for (size_t i = 0; i < 2; i++)
        for (struct turn *turn = firsts[i]; turn != NULL; turn = turn->next)
            turn->base.call.deadline += stood - group->stood_ns;
    group->stood_ns = stood;
}

static void on_timer(void *self, int64_t now)
{
    struct bus_group *group = self;
    ls_mutex_lock(&group->mutex);
    excuse_own_stall(group);
    group->timer_at = LS_FOREVER;
    if (group->epoch != NULL && !group->is_over) {
        const int64_t turns = turns_tick(group, now);
        const int64_t pairs = pairs_tick(group, now);
        const int64_t commit = group_commit_tick(group, now);
        group_commit_go_on(group);
        group_arm(group, turns);
        group_arm(group, pairs);
        group_arm(group, commit);
    }
    ls_mutex_unlock(&group->mutex);
}

static void on_closed(void *self)
{
    struct bus_group *group = self;
    ls_mutex_lock(&group->mutex);
    group->closed = true;
    group_leave(group, LS_ECLOSED);
    ls_mutex_unlock(&group->mutex);
}

/* Who waits asks why. */
static void on_interrupt(void *self)
{
    struct bus_group *group = self;
    ls_mutex_lock(&group->mutex);
    ls_mutex_unlock(&group->mutex);
    ls_cond_broadcast(&group->changed);
}

static const struct ls_channel_ops channel_ops = {
    .message = on_message,
    .member = on_member,
    .renewed = on_renewed,
    .timer = on_timer,
    .closed = on_closed,
};

/* --- generations -------------------------------------------------------- */

static void forget_generation(struct bus_group *group)
{
    for (uint32_t i = 0; i < group->n; i++) {
        load_fini(&group->members[i].loads[0]);
        load_fini(&group->members[i].loads[1]);
    }
    free(group->members);
    group->members = NULL;
    group->n = 0;
    if (group->epoch != NULL)
        group->stats.repeated += group->epoch->outbox.n_repeated;
    ls_epoch_destroy(&group->epoch);
    load_fini(&group->left);
    group->n_wants = 0;
    group->generation = 0;
}

/* Those that left before this node knew them for members have been told of
 * already. */
static void lose_absent(struct bus_group *group, int64_t now)
{
    for (uint32_t i = 0; i < group->n; i++) {
        struct ls_member member;
        if (i != group->rank &&
            (ls_node_member(group->node, group->members[i].id, &member) !=
                 LS_OK ||
             member.incarnation != group->members[i].life ||
             member.state != LS_MEMBER_READY))
            lose(group, i, now);
    }
}

static void use_early(struct bus_group *group)
{
    const size_t n = group->n_early;
    struct early_message early[EARLY_MESSAGES_MAX];
    memcpy(early, group->early, n * sizeof early[0]);
    group->n_early = 0;
    for (size_t i = 0; i < n; i++) {
        take_message(group, early[i].from, early[i].life, early[i].bytes,
                     early[i].size);
        free(early[i].bytes);
    }
}

/* Under the lock. Errors: LS_ENOMEM; there is no generation then. */
static int begin_generation(struct bus_group *group, uint64_t generation,
                            const uint32_t *ids, const uint64_t *lives,
                            uint32_t n)
{
    const int64_t now = ls_now(group->base.runtime);
    forget_generation(group);
    group->members = calloc(n, sizeof *group->members);
    if (group->members == NULL)
        return ls_error(LS_ENOMEM, "group \"%s\": no memory for %u members",
                        group->name, (unsigned)n);
    group->n = n;
    for (uint32_t i = 0; i < n; i++) {
        group->members[i].id = ids[i];
        group->members[i].life = lives[i];
        if (ids[i] == ls_node_id(group->node))
            group->rank = i;
    }
    group->generation = generation;
    group->is_over = false;
    group->has_lost = false;
    group->has_left = false;
    group->entered = false;
    group->next_turn = 0;
    group->last = &group->first;
    group->shared_last = &group->shared;
    const int status = group_commit_begin(group, now);
    if (status != LS_OK) {
        forget_generation(group);
        return status;
    }
    lose_absent(group, now);
    use_early(group);
    return LS_OK;
}

/* Whom the members have met. */
static int meet_members(struct bus_group *group, uint64_t generation)
{
    const size_t n = ls_barrier_lives(group->former, NULL, NULL, 0);
    uint32_t *ids = calloc(n + 1, sizeof *ids);
    uint64_t *lives = calloc(n + 1, sizeof *lives);
    int status = LS_ENOMEM;
    if (ids == NULL || lives == NULL || n == 0) {
        (void)ls_error(status, "group \"%s\": no memory for its members",
                       group->name);
    } else if (n > LS_GROUP_RANKS_MAX) {
        status = ls_error(LS_ELIMIT, "group \"%s\": %zu members, over %d",
                          group->name, n, LS_GROUP_RANKS_MAX);
    } else {
        (void)ls_barrier_lives(group->former, ids, lives, n);
        ls_mutex_lock(&group->mutex);
        status = begin_generation(group, generation, ids, lives, (uint32_t)n);
        ls_mutex_unlock(&group->mutex);
    }
    free(ids);
    free(lives);
    return status;
}

/* The others are in the generation already, and know nothing of a rank that has
 * no memory for it: so that is tried for as long as they may wait. */
static int join_members(struct bus_group *group, uint64_t generation,
                        int64_t deadline)
{
    int status = meet_members(group, generation);
    while (status == LS_ENOMEM && ls_now(group->base.runtime) < deadline &&
           ls_node_interrupted(group->node) == LS_OK) {
        ls_mutex_lock(&group->mutex);
        (void)!ls_cond_wait(&group->changed, &group->mutex,
                            ls_now(group->base.runtime) + AGAIN_NS);
        ls_mutex_unlock(&group->mutex);
        status = meet_members(group, generation);
    }
    return status;
}

static int form(ls_group *base, int wait_ms)
{
    struct bus_group *group = group_of(base);
    struct ls_barrier_epoch_info info;
    const int64_t deadline =
        ls_deadline(base->runtime, wait_ms < 0 ? FORM_DEFAULT_MS : wait_ms);
    int status = LS_OK;
    ls_mutex_lock(&group->mutex);
    if (group->is_over && !group->has_left && group->over.status == LS_ELOST &&
        group->on_loss == LS_ON_LOSS_FAIL)
        status = ls_failure_return(&group->over);
    else
        group_leave(group, LS_ECANCELED);
    ls_mutex_unlock(&group->mutex);
    if (status == LS_OK)
        status =
            ls_barrier_wait(group->former, shared_flags(group), wait_ms, &info);
    if (status != LS_OK)
        return ls_error_at(status, "group \"%s\": no next generation",
                           group->name);
    /* All have come here, so nobody is in the last one's. */
    shared_close(group);
    status =
        join_members(group, group->first_generation + info.epoch, deadline);
    return status == LS_OK ? shared_open(group, info.flags, deadline) : status;
}

static void place(const ls_group *base, uint32_t *rank, uint32_t *size,
                  uint64_t *generation)
{
    struct bus_group *group = group_of(base);
    ls_mutex_lock(&group->mutex);
    *rank = group->generation == 0 ? 0 : group->rank;
    *size = group->n;
    *generation = group->generation;
    ls_mutex_unlock(&group->mutex);
}

static uint32_t id(const ls_group *base, uint32_t rank)
{
    return group_of(base)->members[rank].id;
}

static void stats(ls_group *base, struct ls_group_stats *out)
{
    struct bus_group *group = group_of(base);
    ls_mutex_lock(&group->mutex);
    *out = group->stats;
    if (group->epoch != NULL)
        out->repeated += group->epoch->outbox.n_repeated;
    ls_mutex_unlock(&group->mutex);
}

static void leave(ls_group *base, int status)
{
    struct bus_group *group = group_of(base);
    ls_mutex_lock(&group->mutex);
    group_leave(group, status);
    ls_mutex_unlock(&group->mutex);
}

static bool is_over_by_another(ls_group *base)
{
    struct bus_group *group = group_of(base);
    ls_mutex_lock(&group->mutex);
    const bool is = (group->is_over || group->has_lost) && !group->has_left;
    ls_mutex_unlock(&group->mutex);
    return is;
}

/* --- operations --------------------------------------------------------- */

void group_leave_if_interrupted(struct bus_group *group)
{
    const int status = ls_node_interrupted(group->node);
    if (status != LS_OK)
        group_leave(group, status);
}

static int start_turn(struct turn **out, struct bus_group *group,
                      const struct group_call *call)
{
    if (group_form_is_pair(&call->form))
        return pair_start(out, group, call);
    const bool helped = group->in_room && !call->waited;
    int status = helped ? shared_need_helper(group) : LS_OK;
    if (status == LS_OK)
        status = turn_start(out, group, call);
    if (status == LS_OK && helped)
        ls_cond_broadcast(&group->changed);
    return status;
}

static int start(ls_collective **out, ls_group *base,
                 const struct group_call *call)
{
    struct bus_group *group = group_of(base);
    struct turn *turn = NULL;
    int status = LS_OK;
    ls_mutex_lock(&group->mutex);
    group_leave_if_interrupted(group);
    excuse_own_stall(group);
    if (!group->is_over) {
        status = start_turn(&turn, group, call);
        if (status == LS_OK)
            group_commit_go_on(group);
    } else if ((turn = calloc(1, sizeof *turn)) == NULL) {
        status = ls_error(LS_ENOMEM, "group: no memory for an operation");
    } else {
        turn->base.group = base;
        turn->base.call = *call;
        turn_end(group, turn, &group->over);
    }
    ls_mutex_unlock(&group->mutex);
    if (status == LS_OK)
        *out = &turn->base;
    return status;
}

static int wait_until(ls_collective *collective, int64_t deadline)
{
    const struct turn *turn = (const struct turn *)collective;
    struct bus_group *group = group_of(collective->group);
    int status = LS_OK;
    ls_mutex_lock(&group->mutex);
    group_leave_if_interrupted(group);
    while (!turn->ended && status == LS_OK) {
        if (shared_may_do(group, turn))
            shared_do_first(group);
        else
            status = ls_cond_wait(&group->changed, &group->mutex, deadline);
        group_leave_if_interrupted(group);
    }
    if (turn->ended)
        status = LS_OK;
    ls_mutex_unlock(&group->mutex);
    return status;
}

static bool has_ended(ls_collective *collective)
{
    struct bus_group *group = group_of(collective->group);
    ls_mutex_lock(&group->mutex);
    const bool ended = ((const struct turn *)collective)->ended;
    ls_mutex_unlock(&group->mutex);
    return ended;
}

static void free_turn(ls_collective *collective)
{
    turn_free((struct turn *)collective);
}

/* --- life --------------------------------------------------------------- */

/* Also one that was not made whole. */
static void free_group(struct bus_group *group)
{
    shared_fini(group);
    (void)ls_node_on_interrupt(group->node, NULL, group);
    ls_channel_close(&group->channel);
    (void)ls_barrier_destroy(&group->former);
    forget_generation(group);
    for (size_t i = 0; i < group->n_early; i++)
        free(group->early[i].bytes);
    free(group->wants);
    ls_cond_fini(&group->changed);
    ls_mutex_fini(&group->mutex);
    free(group);
}

static void destroy(ls_group *base)
{
    struct bus_group *group = group_of(base);
    ls_mutex_lock(&group->mutex);
    group_leave(group, LS_ECLOSED);
    if (group->epoch != NULL) {
        ls_epoch_withdraw(group->epoch);
        group_commit_send_out(group);
    }
    ls_mutex_unlock(&group->mutex);
    free_group(group);
}

static int split(ls_group **out, ls_group *base, const uint32_t *ranks,
                 uint32_t n, uint32_t own, uint64_t number, uint64_t *word);

static const struct carrier_ops bus_ops = {
    .form = form,
    .place = place,
    .id = id,
    .stats = stats,
    .leave = leave,
    .is_over_by_another = is_over_by_another,
    .destroy = destroy,
    .alloc = shared_alloc,
    .split = split,
    .abandon = destroy,
    .start = start,
    .wait = wait_until,
    .has_ended = has_ended,
    .free = free_turn,
};

static int open_former(struct bus_group *group,
                       const struct ls_group_options *options)
{
    char name[sizeof GROUP_CHANNEL + LS_EVENT_MAX];
    snprintf(name, sizeof name, GROUP_CHANNEL "%s", group->name);
    const struct ls_barrier_options form_options = {
        .name = name,
        .group = options->word,
        .ids = options->ids,
        .n_ids = options->n_ids,
        .expected = options->expected,
        .on_loss = options->on_loss,
        .grace_ms = options->grace_ms};
    int status = ls_barrier_create(&group->former, group->node, &form_options);
    if (status == LS_OK)
        status = ls_channel_open(&group->channel, group->node, name,
                                 &channel_ops, group);
    return status == LS_OK ? LS_OK
                           : ls_error_at(status, "group \"%s\"", group->name);
}

static int create(struct bus_group **out, ls_node *node,
                  const struct ls_group_options *options)
{
    struct bus_group *group = calloc(1, sizeof *group);
    if (group == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for its handle");
    group->base = (ls_group){.ops = &bus_ops,
                             .runtime = ls_node_runtime(node),
                             .forks = ls_forks_now(),
                             .buffers_lock = ATOMIC_FLAG_INIT};
    group->node = node;
    group->on_loss = options->on_loss;
    group->grace_ms = options->grace_ms;
    group->exit_ready = options->exit_ready;
    group->want = options->room;
    group->alloc_bytes = options->alloc_bytes;
    group->first_generation = 1;
    group->timer_at = LS_FOREVER;
    group->last = &group->first;
    group->shared_last = &group->shared;
    snprintf(group->name, sizeof group->name, "%s", options->name);
    int status = ls_mutex_init(&group->mutex, group->base.runtime);
    if (status == LS_OK)
        status = ls_cond_init(&group->changed, group->base.runtime);
    if (status == LS_OK)
        status = ls_node_on_interrupt(node, on_interrupt, group);
    if (status == LS_OK)
        status = open_former(group, options);
    if (status == LS_OK)
        *out = group;
    else
        free_group(group);
    return status;
}

int ls_group_create(ls_group **out, ls_node *node,
                    const struct ls_group_options *options)
{
    *out = NULL;
    struct ls_group_options own = {0};
    struct bus_group *group;
    if (options != NULL)
        own = *options;
    if (own.name == NULL)
        own.name = DEFAULT_NAME;
    if (own.name[0] == '\0' || strlen(own.name) > NAME_MAX)
        return ls_error(LS_EINVAL,
                        "group \"%.70s\": its name has not 1 to %d bytes",
                        own.name, NAME_MAX);
    if ((unsigned)own.room > LS_GROUP_ROOM_ALWAYS)
        return ls_error(LS_EINVAL, "group \"%s\": its option room is %d",
                        own.name, (int)own.room);
    const int status = create(&group, node, &own);
    if (status == LS_OK)
        *out = &group->base;
    return status;
}

/* Its members are ranks of the generation under way, in these lives. */
static int begin_split(struct bus_group *made, struct bus_group *group,
                       const uint32_t *ids, const uint32_t *ranks, uint32_t n)
{
    uint64_t *lives = calloc(n, sizeof *lives);
    if (lives == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for a sub-group");
    for (uint32_t i = 0; i < n; i++)
        lives[i] = group->members[ranks[i]].life;
    ls_mutex_lock(&made->mutex);
    made->first_generation = 2;
    const int status = begin_generation(made, 1, ids, lives, n);
    ls_mutex_unlock(&made->mutex);
    free(lives);
    return status;
}

static int split(ls_group **out, ls_group *base, const uint32_t *ranks,
                 uint32_t n, uint32_t own, uint64_t number, uint64_t *word)
{
    struct bus_group *group = group_of(base);
    struct bus_group *made = NULL;
    char name[2 * LS_EVENT_MAX];
    uint32_t *ids = calloc(n, sizeof *ids);
    (void)own;
    *word = 0;
    if (ids == NULL)
        return ls_error(LS_ENOMEM, "group: no memory for a sub-group");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = group->members[ranks[i]].id;
    const int size =
        snprintf(name, sizeof name, "%s/%" PRIu64 ".%" PRIu64 ".%" PRIu32,
                 group->name, group->generation, number, ids[0]);
    const struct ls_group_options options = {.name = name,
                                             .ids = ids,
                                             .n_ids = n,
                                             .on_loss = group->on_loss,
                                             .grace_ms = group->grace_ms,
                                             .exit_ready = group->exit_ready,
                                             .room = group->want,
                                             .alloc_bytes = group->alloc_bytes};
    int status = size > SPLIT_NAME_MAX
                     ? ls_error(LS_ELIMIT,
                                "group: a sub-group's name has %d bytes", size)
                     : create(&made, group->node, &options);
    if (status == LS_OK)
        status = begin_split(made, group, ids, ranks, n);
    free(ids);
    if (status == LS_OK) {
        *word = 1;
        *out = &made->base;
    } else if (made != NULL) {
        free_group(made);
    }
    return status;
}
