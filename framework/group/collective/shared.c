/* Operations in memory that all ranks of a generation share: they are nodes of
 * one host. Design notes:
 *
 * - In forming, all try to meet in a room (lockstep/room.h); a first operation
 *   on the bus says whether each has it. If one has not, nobody uses it.
 * - All operations but those of pairs go through it then, in turn: an operation
 *   that another thread waits for at once is done by that thread, one that was
 *   started by a thread of the group's own.
 * - A room settles by itself that an operation has ended well for all, that
 *   time was up, and that calls differ. Whatever else happens is settled on the
 *   bus, which knows who was lost and who has left, and why: the operation has
 *   failed in the room, for all alike, and each rank commits it there, without
 *   any bytes. It fails again, with that cause, and from there on the bus
 *   carries the generation. The room stays as it is until all have come to form
 *   the next one: who comes late finds there how the operation has ended.
 * - A generation that is over in one rank is so in all, and each resigns from
 *   the room at once; one that is in it comes to an end first, since others may
 *   have ended that operation well. */
#include <inttypes.h>
#include <string.h>

#include "bus_group.h"
#include "fnv.h"
#include "fold.h"
#include "lockstep/log.h"
#include "plain_name.h"

/* Bits of the epoch at which a group forms. */
enum { FLAG_NEVER = 1, FLAG_ALWAYS = 2 };
enum { ROOM_WAIT_MS = 10000, FOLD_SIGN = 16 };
#define ALLOC_BYTES ((size_t)256 << 20)

/* --- one operation ------------------------------------------------------ */

static int wait_ms_of(const struct bus_group *group, int64_t deadline)
{
    const int64_t left = deadline - ls_now(group->base.runtime);
    return left < LS_NS_PER_MS ? 1 : (int)(left / LS_NS_PER_MS);
}

struct room_call {
    struct bus_group *group;
    const struct group_call *call;
    const char *name; /* with what tells it from others */
    int wait_ms;
    bool failed_here; /* for a reason of this rank's own */
};

static void fold_pair(const void *self, void *to, const void *left,
                      const void *right, size_t count)
{
    const struct group_form *form = self;
    fold_two(form->type, form->fold, to, left, right, count);
}

static void fold_last(const void *self, void *numbers, size_t count, unsigned n)
{
    const struct group_form *form = self;
    fold_end(form->type, form->fold, numbers, count, n);
}

static int reduce(const struct room_call *room)
{
    const struct group_call *call = room->call;
    const struct group_form *form = &call->form;
    const struct ls_room_fold fold = {.width = group_type_bytes(form->type),
                                      .two = fold_pair,
                                      .end = fold_last,
                                      .self = form,
                                      .sign = (uint64_t)form->type * FOLD_SIGN +
                                              (uint64_t)form->fold};
    return form->kind == LS_GROUP_ALL_REDUCE
               ? ls_room_all_reduce(room->group->room, room->name, &fold,
                                    call->in, call->out, (size_t)form->count,
                                    room->wait_ms)
               : ls_room_reduce_scatter(room->group->room, room->name, &fold,
                                        call->in, call->out,
                                        (size_t)form->count, room->wait_ms);
}

/* Errors: LS_EPROTO a rank has lied; LS_ENOMEM. */
static int make_parts(struct room_call *room, const uint64_t *told, size_t n,
                      size_t *whole)
{
    size_t sizes[LS_ROOM_MEMBERS_MAX];
    const int status = group_parts_told(room->call->parts, told, n, sizes);
    *whole = 0;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        *whole += sizes[i];
    room->failed_here = status != LS_OK;
    return status;
}

/* Parts came one directly behind the other: each to where it belongs, the last
 * one first, since none lies before where it came. */
static void spread(const struct ls_group_parts *parts, unsigned char *bytes,
                   size_t whole)
{
    for (size_t i = parts->n; i-- > 0;) {
        const struct ls_group_part *part = &parts->items[i];
        whole -= part->size;
        if (part->size > 0)
            memmove((void *)(uintptr_t)part->data, bytes + whole, part->size);
    }
}

static unsigned char *bytes_of(const struct ls_group_parts *parts)
{
    return (unsigned char *)parts->items + parts->n * sizeof *parts->items;
}

static int gather_any(struct room_call *room)
{
    const struct group_call *call = room->call;
    uint64_t told[LS_ROOM_MEMBERS_MAX], own = call->form.count;
    const size_t n = room->group->n;
    size_t whole;
    int status =
        ls_room_all_gather(room->group->room, room->name, &own, sizeof own,
                           told, n * sizeof own, NULL, room->wait_ms);
    if (status == LS_OK)
        status = make_parts(room, told, n, &whole);
    if (status != LS_OK)
        return status;
    status = ls_room_all_gather(room->group->room, room->name, call->in,
                                (size_t)own, bytes_of(call->parts), whole, NULL,
                                wait_ms_of(room->group, call->deadline));
    if (status == LS_OK)
        spread(call->parts, bytes_of(call->parts), whole);
    return status;
}

static int broadcast_any(struct room_call *room)
{
    const struct group_call *call = room->call;
    const unsigned root = call->form.root;
    const bool is_root = root == room->group->rank;
    uint64_t size = call->form.count;
    size_t whole;
    int status = ls_room_broadcast(room->group->room, room->name, root, &size,
                                   sizeof size, room->wait_ms);
    if (status == LS_OK)
        status = make_parts(room, &size, 1, &whole);
    if (status != LS_OK)
        return status;
    unsigned char *to = bytes_of(call->parts);
    if (is_root && whole > 0)
        memcpy(to, call->in, whole);
    return ls_room_broadcast(room->group->room, room->name, root,
                             is_root ? (void *)(uintptr_t)call->in : to, whole,
                             wait_ms_of(room->group, call->deadline));
}

static int broadcast(const struct room_call *room)
{
    const struct group_call *call = room->call;
    const bool is_root = call->form.root == room->group->rank;
    return ls_room_broadcast(room->group->room, room->name, call->form.root,
                             is_root ? (void *)(uintptr_t)call->in : call->out,
                             (size_t)call->form.count, room->wait_ms);
}

static int do_in_room(struct room_call *room)
{
    const struct group_call *call = room->call;
    const struct group_form *form = &call->form;
    ls_room *const in = room->group->room;
    const size_t count = (size_t)form->count;
    switch (form->kind) {
    case LS_GROUP_BROADCAST:
        return form->any ? broadcast_any(room) : broadcast(room);
    case LS_GROUP_ALL_GATHER:
        return form->any ? gather_any(room)
                         : ls_room_all_gather(in, room->name, call->in, count,
                                              call->out, count * room->group->n,
                                              NULL, room->wait_ms);
    case LS_GROUP_ALL_REDUCE:
    case LS_GROUP_REDUCE_SCATTER:
        return reduce(room);
    case LS_GROUP_GATHER:
        return ls_room_gather(in, room->name, form->root, call->in, count,
                              call->out, room->wait_ms);
    case LS_GROUP_SCATTER:
        return ls_room_scatter(in, room->name, form->root, call->in, count,
                               call->out, room->wait_ms);
    case LS_GROUP_BARRIER:
    case LS_GROUP_SEND: /* pairs do not come here */
    case LS_GROUP_RECEIVE:
        break;
    }
    return ls_room_barrier(in, room->name, room->wait_ms);
}

/* --- how it ends -------------------------------------------------------- */

/* Nothing is in the room: this rank does nothing there any more. */
static void leave_room(struct bus_group *group)
{
    if (group->in_room)
        ls_room_resign(group->room, LS_ECANCELED);
    group->in_room = false;
}

/* What the room says of time and of calls, in ranks: they are its places. */
static void explain(const struct bus_group *group, const struct turn *turn,
                    const struct ls_room_fault *fault, struct ls_failure *out)
{
    struct line line = {.size = 0};
    char what[GROUP_SAY_MAX];
    const char *between = "";
    group_form_say(&turn->base.call.form, what);
    line_add(&line,
             "group \"%s\", generation %" PRIu64 ", operation %" PRIu64
             ", %s: ",
             group->name, group->generation, turn->number / 2, what);
    if (fault->status == LS_EMISMATCH) {
        line_add(&line, "rank %u calls %s, rank %u calls %s", fault->place,
                 fault->calls[0], fault->other, fault->calls[1]);
    } else {
        line_add(&line,
                 "the deadline of rank %u passed; missing: ", fault->place);
        for (uint32_t rank = 0; rank < group->n; rank++) {
            if ((fault->missing >> rank & 1) == 0)
                continue;
            line_add(&line, "%s", between);
            group_say_rank(group, rank, &line);
            between = ", ";
        }
    }
    *out = (struct ls_failure){.status = fault->status};
    memcpy(out->text, line.text, sizeof out->text);
}

/* From here on the bus carries the generation: what waits for the room begins
 * there. */
static void go_to_bus(struct bus_group *group)
{
    leave_room(group);
    ls_log_info("group \"%s\": its room is given up", group->name);
    while (group->shared != NULL && !group->is_over)
        turn_to_bus(group, group->shared);
    group_commit_go_on(group);
}

/* The operation fails there, for the reason that the bus knows. Bytes are not
 * moved again: some may be overwritten. */
static void fail_on_bus(struct bus_group *group, struct turn *turn)
{
    const int64_t soonest = ls_now(group->base.runtime) + LS_NS_PER_S;
    turn->broken = true;
    turn->shape.form = (struct group_form){.kind = LS_GROUP_BARRIER};
    if (turn->base.call.deadline < soonest)
        turn->base.call.deadline = soonest;
    go_to_bus(group);
}

/* A failure of another cause may leave out those that are lost: in all ranks
 * alike. */
static bool do_all_count(const struct bus_group *group)
{
    uint32_t rank = 0;
    while (rank < group->n && ls_room_counts(group->room, rank))
        rank++;
    return rank == group->n;
}

static void settle(struct bus_group *group, struct turn *turn,
                   const struct room_call *room, int status)
{
    struct ls_failure end = {.status = LS_OK};
    struct ls_room_fault fault;
    if (status == LS_OK) {
        group->stats.shared++;
        group->stats.lent += ls_room_has_lent(group->room) ? 1 : 0;
        turn_end(group, turn, &end);
        return;
    }
    ls_room_fault(group->room, &fault);
    group_leave_if_interrupted(group);
    if (!turn->ended && room->failed_here)
        group_leave(group, status);
    if (turn->ended)
        return;
    if (group->is_over) {
        turn_end(group, turn, &group->over);
    } else if (fault.out && status == LS_ECLOSED) {
        group_leave(group, status);
    } else if (fault.out) {
        group_shut_out(group);
    } else if (status == LS_ETIMEDOUT || status == LS_EMISMATCH) {
        explain(group, turn, &fault, &end);
        turn_end(group, turn, &end);
        if (!do_all_count(group))
            go_to_bus(group);
    } else {
        fail_on_bus(group, turn);
    }
}

bool shared_may_do(const struct bus_group *group, const struct turn *turn)
{
    return group->shared == turn && turn->waited && !group->busy;
}

void shared_do_first(struct bus_group *group)
{
    struct turn *turn = group->shared;
    const struct group_form *form = &turn->base.call.form;
    char said[GROUP_SAY_MAX];
    struct room_call room = {.group = group, .call = &turn->base.call};
    group->busy = true;
    ls_mutex_unlock(&group->mutex);
    /* Behind the kind, which the room says itself. */
    group_form_say(form, said);
    room.name = said + strcspn(said, " ");
    room.name += *room.name == ' ' ? 1 : 0;
    room.wait_ms = wait_ms_of(group, room.call->deadline);
    const int status = do_in_room(&room);
    ls_mutex_lock(&group->mutex);
    group->busy = false;
    settle(group, turn, &room, status);
    if (group->is_over)
        leave_room(group);
    ls_cond_broadcast(&group->changed);
}

void shared_end(struct bus_group *group, const struct ls_failure *why)
{
    struct turn *first = group->busy ? group->shared : NULL;
    while (group->shared != first)
        turn_end(group, group->shared, why);
    while (first != NULL && first->next != NULL)
        turn_end(group, first->next, why);
    if (!group->busy)
        leave_room(group);
    else if (group->has_left)
        ls_room_give_up(group->room, LS_ECANCELED);
}

/* --- what was started --------------------------------------------------- */

static void help(void *self)
{
    struct bus_group *group = self;
    int status = LS_OK;
    ls_mutex_lock(&group->mutex);
    while (!group->helper_ends && status == LS_OK) {
        const struct turn *turn = group->shared;
        if (turn != NULL && !turn->waited && !group->busy)
            shared_do_first(group);
        else
            status = ls_cond_wait(&group->changed, &group->mutex, LS_FOREVER);
    }
    ls_mutex_unlock(&group->mutex);
}

int shared_need_helper(struct bus_group *group)
{
    return group->helper != NULL
               ? LS_OK
               : ls_thread_spawn(group->base.runtime, &group->helper, "group",
                                 help, group);
}

/* --- made and given up -------------------------------------------------- */

uint32_t shared_flags(const struct bus_group *group)
{
    return group->want == LS_GROUP_ROOM_NEVER    ? FLAG_NEVER
           : group->want == LS_GROUP_ROOM_ALWAYS ? FLAG_ALWAYS
                                                 : 0;
}

void shared_close(struct bus_group *group)
{
    ls_mutex_lock(&group->mutex);
    ls_room *room = group->room;
    group->room = NULL;
    group->in_room = false;
    ls_mutex_unlock(&group->mutex);
    ls_room_destroy(&room);
}

void shared_fini(struct bus_group *group)
{
    if (group->helper != NULL) {
        ls_mutex_lock(&group->mutex);
        group->helper_ends = true;
        ls_mutex_unlock(&group->mutex);
        ls_cond_broadcast(&group->changed);
        if (ls_thread_join(&group->helper, LS_FOREVER) != LS_OK)
            ls_log_error("group \"%s\": %s", group->name, ls_error_text());
    }
    if (group->room != NULL)
        ls_room_resign(group->room, LS_ECLOSED);
    ls_room_destroy(&group->room);
    ls_room_store_destroy(&group->store);
}

/* NULL: the system has none. Another one when this node was declared lost
 * wrongly: what lies in the one before stays its own. */
static ls_room_store *store_of(struct bus_group *group)
{
    if (group->store != NULL && ls_room_store_is_closed(group->store))
        ls_room_store_destroy(&group->store);
    if (group->store == NULL &&
        ls_room_store_create(&group->store, group->base.runtime,
                             group->alloc_bytes > 0 ? group->alloc_bytes
                                                    : ALLOC_BYTES) != LS_OK)
        ls_log_info("group \"%s\": no memory to lend: %s", group->name,
                    ls_error_text());
    return group->store;
}

int shared_alloc(ls_group *base, void **out, size_t size)
{
    struct bus_group *group = (struct bus_group *)base;
    if (group->want == LS_GROUP_ROOM_NEVER || store_of(group) == NULL)
        return LS_EUNREACHABLE;
    return ls_room_store_alloc(group->store, out, size);
}

/* A name that only this generation of this group has. */
static void name_room(const struct bus_group *group,
                      char name[LS_ROOM_NAME_MAX + 1])
{
    const uint32_t hash = fnv_add(FNV_BEGIN, group->name, strlen(group->name));
    char readable[17];
    size_t n = 0;
    for (const char *c = group->name; *c != '\0' && n + 1 < sizeof readable;
         c++)
        readable[n++] = plain_name_has(*c, "") ? *c : '-';
    readable[n] = '\0';
    snprintf(name, LS_ROOM_NAME_MAX + 1, "%s.%08" PRIx32 ".%" PRIu64, readable,
             hash, group->generation);
}

static int make_room(struct bus_group *group, ls_room **room, int64_t deadline)
{
    struct ls_room_options options;
    char name[LS_ROOM_NAME_MAX + 1];
    uint32_t ids[LS_ROOM_MEMBERS_MAX];
    const int wait_ms = wait_ms_of(group, deadline) / 2 + 1;
    for (uint32_t rank = 0; rank < group->n; rank++)
        ids[rank] = group->members[rank].id;
    ls_room_options_init(&options);
    name_room(group, name);
    options.name = name;
    options.members = ids;
    options.n_members = group->n;
    options.alloc_bytes = 0;
    options.store = store_of(group);
    options.timeout_ms = wait_ms < ROOM_WAIT_MS ? wait_ms : ROOM_WAIT_MS;
    return ls_room_create(room, group->node, &options);
}

/* Whether each rank has its room. It is no operation of the caller's. Errors:
 * those of one. */
static int ask_all(struct bus_group *group, bool own, int64_t deadline,
                   bool *have_all)
{
    int64_t have = own ? 1 : 0;
    ls_mutex_lock(&group->mutex);
    const struct ls_group_stats before = group->stats;
    ls_mutex_unlock(&group->mutex);
    const int status =
        ls_group_all_reduce(&group->base, &have, 1, LS_GROUP_I64, LS_GROUP_MIN,
                            wait_ms_of(group, deadline) + ROOM_WAIT_MS / 10);
    ls_mutex_lock(&group->mutex);
    group->stats.ended = before.ended;
    group->stats.failed = before.failed;
    ls_mutex_unlock(&group->mutex);
    *have_all = status == LS_OK && have == 1;
    return status;
}

/* status: for who cannot do without; why: its text. */
static int have_none(struct bus_group *group, bool needed, int status,
                     const char *why)
{
    ls_log_info("group \"%s\": no room of shared memory: %s", group->name, why);
    if (!needed)
        return LS_OK;
    ls_mutex_lock(&group->mutex);
    group_leave(group, status);
    ls_mutex_unlock(&group->mutex);
    return ls_error(status, "group \"%s\": its members share no memory: %.300s",
                    group->name, why);
}

int shared_open(struct bus_group *group, uint32_t flags, int64_t deadline)
{
    const bool needed = (flags & FLAG_ALWAYS) != 0;
    ls_room *room = NULL;
    char why[LS_ERROR_TEXT_MAX];
    bool have_all;
    if (group->n < 2)
        return LS_OK;
    if ((flags & FLAG_NEVER) != 0)
        return needed ? have_none(group, true, LS_EUNREACHABLE,
                                  "a member wants none")
                      : LS_OK;
    if (group->n > LS_ROOM_MEMBERS_MAX)
        return have_none(group, needed, LS_EUNREACHABLE,
                         "it has more than 64 members");
    const bool own = make_room(group, &room, deadline) == LS_OK;
    snprintf(why, sizeof why, "%s",
             own ? "another member has none" : ls_error_text());
    const int status = ask_all(group, own, deadline, &have_all);
    if (!have_all) {
        if (status != LS_OK)
            snprintf(why, sizeof why, "%s", ls_error_text());
        ls_room_destroy(&room);
        /* The others have begun what this rank has not: its next operation
         * would meet that one. */
        return have_none(group, needed || status == LS_ENOMEM,
                         status != LS_OK ? status : LS_EUNREACHABLE, why);
    }
    ls_log_info("group \"%s\": %" PRIu32 " ranks share memory", group->name,
                group->n);
    ls_mutex_lock(&group->mutex);
    group->room = room;
    group->in_room = true;
    if (group->is_over)
        leave_room(group);
    ls_mutex_unlock(&group->mutex);
    return LS_OK;
}
