/* Rooms: made of options, and destroyed. */
#include <stdio.h>
#include <string.h>

#include "forked.h"
#include "plain_name.h"
#include "room_inside.h"
#include "room_meet.h"

enum {
    TIMEOUT_MS = 10000,
    GRACE_MS = 5000,
};
#define ALLOC_BYTES ((size_t)256 << 20)

void ls_room_options_init(struct ls_room_options *options)
{
    *options = (struct ls_room_options){.name = "room",
                                        .timeout_ms = TIMEOUT_MS,
                                        .grace_ms = GRACE_MS,
                                        .alloc_bytes = ALLOC_BYTES};
}

static int check_name(const char *name)
{
    if (!plain_name_is(name, LS_ROOM_NAME_MAX, "._-"))
        return ls_error(LS_EINVAL,
                        "a room's name has 1 to %d of [A-Za-z0-9._-], not "
                        "\"%s\"",
                        LS_ROOM_NAME_MAX, name);
    return LS_OK;
}

static int too_many(const ls_room *room, size_t n)
{
    return ls_error(LS_EINVAL, "room \"%s\": %zu members; at most %d have room",
                    room->name, n, ROOM_MEMBERS_MAX);
}

/* By id. */
static void add_member(ls_room *room, uint32_t id)
{
    unsigned at = room->n++;
    while (at > 0 && room->members[at - 1].id > id) {
        room->members[at] = room->members[at - 1];
        at--;
    }
    room->members[at] = (struct room_member){.id = id};
}

static int add_all_ready(ls_room *room)
{
    const size_t capacity = ls_node_members(room->node, NULL, 0);
    struct ls_member *const members = calloc(capacity + 1, sizeof *members);
    if (members == NULL)
        return ls_error(LS_ENOMEM, "no memory for the members of a room");
    const size_t known = ls_node_members(room->node, members, capacity);
    size_t n = 1; /* this one */
    for (size_t i = 0; i < known && i < capacity; i++)
        if (members[i].state == LS_MEMBER_READY && n++ < ROOM_MEMBERS_MAX)
            add_member(room, members[i].id);
    free(members);
    if (n > ROOM_MEMBERS_MAX)
        return too_many(room, n);
    add_member(room, ls_node_id(room->node));
    /* A room of those who are there by chance would fold without the others,
     * and nobody would notice. */
    if (room->n < ls_node_world_size(room->node))
        return ls_error(LS_ESTATE,
                        "room \"%s\": the world is not complete, %u of %u "
                        "nodes are ready: start the node first, or list the "
                        "members",
                        room->name, room->n, ls_node_world_size(room->node));
    return LS_OK;
}

static int set_members(ls_room *room, const struct ls_room_options *options)
{
    if (options->members == NULL) {
        const int status = add_all_ready(room);
        if (status != LS_OK)
            return status;
    } else if (options->n_members > ROOM_MEMBERS_MAX) {
        return too_many(room, options->n_members);
    }
    for (size_t i = 0; options->members != NULL && i < options->n_members; i++)
        add_member(room, options->members[i]);
    for (unsigned i = 0; i < room->n; i++) {
        if (i > 0 && room->members[i].id == room->members[i - 1].id)
            return ls_error(LS_EINVAL, "room \"%s\": node %u is in it twice",
                            room->name, room->members[i].id);
        if (room->members[i].id == ls_node_id(room->node))
            room->me = i;
    }
    if (room->n == 0 || room->members[room->me].id != ls_node_id(room->node))
        return ls_error(LS_EINVAL,
                        "room \"%s\": node %u (this one) is not in it",
                        room->name, ls_node_id(room->node));
    return LS_OK;
}

static int make_memory(ls_room *room, size_t alloc_bytes)
{
    const size_t bytes = room_lay_out(room, ROOM_CHUNK_BYTES, alloc_bytes);
    ls_memory **const own = &room->members[room->me].memory;
    int status = ls_memory_create(own, room->runtime, room->name, bytes);
    if (status == LS_OK)
        status = ls_memory_add_bell(*own);
    return status == LS_OK ? ls_memory_reserve(*own, 0, room->arena) : status;
}

static int make(ls_room *room, const struct ls_room_options *options)
{
    const char *const name = options->name != NULL ? options->name : "room";
    int status = check_name(name);
    if (status != LS_OK)
        return status;
    (void)snprintf(room->name, sizeof room->name, "%s", name);
    status = set_members(room, options);
    if (status != LS_OK)
        return status;
    if (options->store != NULL) {
        status = room_store_enter(options->store);
        if (status != LS_OK)
            return ls_error_at(status, "room \"%s\"", room->name);
        room->store = options->store;
    }
    room->grace_ms = options->grace_ms > 0 ? options->grace_ms : GRACE_MS;
    char folder[128] = "";
    status = make_memory(room, options->alloc_bytes);
    if (status == LS_OK && options->folder == NULL)
        status = ls_offer_folder(room->runtime, folder, sizeof folder, NULL);
    if (status != LS_OK)
        status = ls_error_at(status, "room \"%s\"", room->name);
    return room_meet(
        room, status, options->folder != NULL ? options->folder : folder,
        ls_deadline(room->runtime, options->timeout_ms > 0 ? options->timeout_ms
                                                           : TIMEOUT_MS));
}

static void end(ls_room *room)
{
    room_part(room);
    if (room->core.own != NULL && !room->core.resigned)
        core_leave(&room->core);
    room_shut(room);
    free(room);
}

int ls_room_create(ls_room **out, ls_node *node,
                   const struct ls_room_options *options)
{
    *out = NULL;
    struct ls_room_options defaults;
    ls_room_options_init(&defaults);
    ls_room *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "no memory for a room");
    made->node = node;
    made->forks = ls_forks_now();
    made->runtime = ls_node_runtime(node);
    const int status = make(made, options != NULL ? options : &defaults);
    if (status != LS_OK) {
        struct ls_failure failure;
        ls_failure_keep(&failure, status);
        end(made);
        return ls_failure_return(&failure);
    }
    *out = made;
    return LS_OK;
}

void ls_room_destroy(ls_room **room)
{
    if (room == NULL || *room == NULL || ls_forked_since((*room)->forks))
        return;
    end(*room);
    *room = NULL;
}

unsigned ls_room_size(const ls_room *room)
{
    return room->n;
}

unsigned ls_room_place(const ls_room *room)
{
    return room->me;
}

uint32_t ls_room_id(const ls_room *room, unsigned place)
{
    return room->members[place].id;
}

bool ls_room_counts(const ls_room *room, unsigned place)
{
    return place < room->n && room_has(room, place);
}

/* What ends an operation is an error. */
static int error_of(int status)
{
    return status < 0 ? status : LS_ECANCELED;
}

void ls_room_resign(ls_room *room, int status)
{
    if (!ls_forked_since(room->forks))
        core_resign(&room->core, error_of(status));
}

void ls_room_give_up(ls_room *room, int status)
{
    if (ls_forked_since(room->forks))
        return;
    /* Before it is in the operation, it is to find this there. */
    atomic_store(&room->given_up, error_of(status));
    core_quit(&room->core, error_of(status));
}

void ls_room_fault(const ls_room *room, struct ls_room_fault *out)
{
    *out = room->fault;
}
