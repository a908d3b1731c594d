/* An operation of a room: begun, passed, failed, in words. */
#include <stdio.h>
#include <string.h>

#include "forked.h"
#include "lockstep/event.h"
#include "room_inside.h"

size_t room_lay_out(ls_room *room, size_t chunk_bytes, size_t alloc_bytes)
{
    room->chunk_bytes = chunk_bytes;
    room->chunks = ls_memory_pages(sizeof(struct room_words));
    room->arena = room->chunks + ROOM_CHUNKS * chunk_bytes;
    room->used = room->arena;
    room->end = room->arena + ls_memory_pages(alloc_bytes);
    return room->end;
}

int room_taken(ls_room *room, unsigned place)
{
    return place != core_gong(room->n)
               ? LS_OK
               : ls_memory_hear_too(room->members[room->me].memory,
                                    room->members[place].memory);
}

void room_open(ls_room *room)
{
    struct room_core *const core = &room->core;
    core->runtime = room->runtime;
    core->node = room->node;
    core->n = room->n;
    core->me = room->me;
    core->grace_ns = room->grace_ms * LS_NS_PER_MS;
    core->own = ls_memory_own(room->members[room->me].memory);
    for (unsigned i = 0; i < room->n; i++) {
        core->memories[i] = room->members[i].memory;
        core->words[i] = ls_memory_data(core->memories[i]);
    }
    core_begin(core, ls_cpus(room->runtime));
}

void room_shut(ls_room *room)
{
    while (room->buffers != NULL) {
        ls_room_buffer *const gone = room->buffers;
        room->buffers = gone->next;
        ls_memory_view_end(gone->view, gone->view_bytes);
        free(gone);
    }
    for (unsigned i = 0; i < room->n; i++) {
        ls_memory_destroy(&room->members[i].memory);
        ls_memory_destroy(&room->members[i].store);
    }
    if (room->store != NULL)
        room_store_leave(room->store);
    room->store = NULL;
}

/* The others have shut this member out: it changes nothing that they read. */
static int is_out(ls_room *room)
{
    if (!room->severed)
        ls_memory_sever(room->members[room->me].memory);
    if (!room->severed && room->store != NULL)
        room_store_close(room->store);
    room->severed = true;
    room->fault = (struct ls_room_fault){
        .status = LS_ELOST, .place = room->me, .out = true};
    if (room->closed)
        return ls_error(LS_ECLOSED, "room \"%s\": its node has stopped",
                        room->name);
    return ls_error(LS_ELOST,
                    "room \"%s\": the others hold node %u (this one) for lost, "
                    "and have gone on without it",
                    room->name, room->members[room->me].id);
}

/* Whose words nobody will look at again. */
static void forget_excluded(ls_room *room)
{
    for (unsigned i = 0; i < room->n; i++)
        if (!room_has(room, i)) {
            ls_memory_destroy(&room->members[i].store);
            if (i == core_gong(room->n))
                continue;
            room->core.memories[i] = NULL;
            ls_memory_destroy(&room->members[i].memory);
        }
}

static bool is_same_call(const struct room_calls *a, const struct room_calls *b)
{
    return a->kind == b->kind && a->shape == b->shape &&
           strcmp(a->name, b->name) == 0;
}

/* FNV-1a: mistakes must be seen, nobody has to be kept from making one. */
static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const unsigned char *const bytes = data;
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h;
}

/* Say in the slot of the next epoch what is called. Most calls are like the
 * last ones: then it stands there. */
static void announce(ls_room *room)
{
    struct room_core *const core = &room->core;
    const unsigned slot = room_next_slot(room);
    const struct room_calls *const call = &room->call;
    if (is_same_call(call, &room->slots[slot]))
        return;
    char text[ROOM_NAME_BYTES];
    (void)snprintf(text, sizeof text, "%s %s", call->kind, call->name);
    uint64_t h = hash(UINT64_C(14695981039346656037), text, strlen(text));
    h = hash(h, &call->shape, sizeof call->shape);
    room->slots[slot] = *call;
    core_write(core, core->own->name[slot], text, sizeof text);
    core_store(core, &core->own->sign[slot], (uint32_t)(h ^ h >> 32));
}

/* With what this member has given up; else `status`. */
static int own_status(const ls_room *room, int status)
{
    const int interrupted =
        room->node != NULL ? ls_node_interrupted(room->node) : LS_OK;
    if (interrupted != LS_OK)
        return interrupted;
    return room->given_up != LS_OK ? room->given_up : status;
}

int room_call(ls_room *room, const char *name, const char *kind, uint64_t shape,
              int wait_ms)
{
    if (ls_forked_since(room->forks))
        return ls_forked_error("this room");
    if (room->core.out)
        return is_out(room);
    if (room->core.resigned)
        return ls_error(LS_ESTATE, "room \"%s\": this member has resigned",
                        room->name);
    if (room->core.excluded != 0)
        forget_excluded(room);
    room->has_lent = false;
    room->call.kind = kind;
    room->call.shape = shape;
    name = name != NULL ? name : "";
    if (strncmp(room->call.name, name, sizeof room->call.name - 1) != 0)
        (void)snprintf(room->call.name, sizeof room->call.name, "%s", name);
    core_call(&room->core, wait_ms);
    int status = own_status(room, LS_OK);
    status = status != LS_OK ? core_give_up(&room->core, status)
                             : core_settle(&room->core);
    return status == LS_OK ? LS_OK : room_failed(room, status);
}

/* "node 3, 5" */
static const char *name_places(const ls_room *room, uint64_t set, char *out,
                               size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < room->n && at + 24 < size; i++)
        if ((set & core_bit(i)) != 0)
            at +=
                (size_t)snprintf(out + at, size - at, "%s%u",
                                 at == 0 ? "node " : ", ", room->members[i].id);
    return out;
}

/* What that member calls, copied before it is looked at. */
static void read_name(const ls_room *room, unsigned place, unsigned slot,
                      char out[ROOM_NAME_BYTES])
{
    memcpy(out, room->core.words[place]->name[slot], ROOM_NAME_BYTES);
    out[ROOM_NAME_BYTES - 1] = '\0';
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
}

/* What one member gave up for, itself or another one. */
static const char *reason(const ls_room *room, int status)
{
    return status == LS_ELIMIT && strcmp(room->call.kind, "alloc") == 0
               ? "its alloc_bytes, of struct ls_room_options, are used up"
               : ls_status_sentence(status);
}

int room_failed(ls_room *room, int status)
{
    const struct room_core *const core = &room->core;
    const struct room_cause *const cause = &core->cause;
    char nodes[400], what[ROOM_NAME_BYTES + 8];
    if (core->out)
        return is_out(room);
    room->fault = (struct ls_room_fault){
        .status = status, .place = cause->who, .missing = cause->missing};
    (void)snprintf(what, sizeof what, "%s %s", room->call.kind,
                   room->call.name);
    (void)name_places(room, cause->missing, nodes, sizeof nodes);
    const uint32_t who = room->members[cause->who].id;
    /* That another had given up before is no reason of its own. */
    if (cause->who == room->me && status != LS_ELOST &&
        status != LS_ETIMEDOUT && status != LS_EABORTED)
        return ls_error(own_status(room, status),
                        "room \"%s\", %s: node %u (this one): %s", room->name,
                        what, who, reason(room, status));
    if (status == LS_ELOST)
        return ls_error(status, "room \"%s\", %s: %s is lost", room->name, what,
                        nodes);
    if (status == LS_ETIMEDOUT)
        return ls_error(status,
                        "room \"%s\", %s: the time of node %u was up, and %s "
                        "had not come",
                        room->name, what, who, nodes);
    (void)ls_error(LS_EABORTED, "room \"%s\", %s: node %u has failed: %s",
                   room->name, what, who, reason(room, status));
    ls_error_set_cause(status);
    return LS_EABORTED;
}

/* The first place that is counted, and the first after it that has called
 * something else; n: none. */
static unsigned find_other(const ls_room *room, unsigned *first)
{
    const struct room_core *const core = &room->core;
    const unsigned slot = room_slot(room);
    unsigned i = 0;
    while (!room_has(room, i))
        i++;
    *first = i;
    const uint32_t sign = core_load(core, &core->words[i]->sign[slot]);
    while (i < room->n &&
           (!room_has(room, i) ||
            core_load(core, &core->words[i]->sign[slot]) == sign))
        i++;
    return i;
}

/* Everybody sees the same words, so everybody comes to the same. */
static int mismatch(ls_room *room, unsigned first, unsigned other)
{
    char what[2][ROOM_NAME_BYTES];
    read_name(room, first, room_slot(room), what[0]);
    read_name(room, other, room_slot(room), what[1]);
    room->fault = (struct ls_room_fault){
        .status = LS_EMISMATCH, .place = first, .other = other};
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(room->fault.calls[i], sizeof room->fault.calls[i], "%s",
                       what[i]);
    return ls_error(
        LS_EMISMATCH, "room \"%s\": node %u calls %s, node %u calls %s%s",
        room->name, room->members[first].id, what[0], room->members[other].id,
        what[1],
        strcmp(what[0], what[1]) == 0 ? ", with other sizes or settings" : "");
}

int room_pass(ls_room *room)
{
    announce(room);
    const int status = core_pass(&room->core);
    if (status != LS_OK)
        return room_failed(room, status);
    if (room->core.same)
        return LS_OK;
    unsigned first;
    const unsigned other = find_other(room, &first);
    if (other == room->n)
        return LS_OK;
    /* If this member is out, what stands there is of a later epoch. */
    return core_confirm(&room->core) == LS_OK ? mismatch(room, first, other)
                                              : is_out(room);
}

int room_confirm(ls_room *room)
{
    const int status = core_confirm(&room->core);
    return status == LS_OK ? LS_OK : room_failed(room, status);
}
