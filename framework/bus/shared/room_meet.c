/* The members of a room find each other. Design notes:
 *
 * - On the bus, where everybody is known to be who it says, each member tells
 *   each other where its memory is offered, with a key that opens the offer and
 *   a proof that lies in the memory. So what is taken from a socket is the
 *   memory of the node that said so, whoever can reach the folder.
 * - A member says hello to each other as soon as that one is ready, and once
 *   more when it hears it: whoever opened the channel first was not heard by
 *   who did so later.
 * - When it has taken the memory of all, it says so; when it has heard that of
 *   all, it begins. When it cannot, also because it has no memory to offer, it
 *   says that, and waits until it has told everybody: then all fail at the same
 *   time, and can do without a room. */
#include "room_meet.h"

#include <stdio.h>
#include <string.h>

#include "lockstep/event.h"
#include "lockstep/log.h"
#include "lockstep/record.h"

#define CHANNEL "ls.room."
enum state { HELLO, READY, FAILED, N_STATES };

/* What is said on the channel. */
struct notice {
    uint64_t members; /* a hash of their ids, in order, and of settings */
    uint64_t bytes;   /* of the memory that is offered */
    int64_t state;
    int64_t status; /* FAILED: why */
    uint64_t key[2], proof[2];
    char socket[LS_OFFER_NAME_BYTES]; /* its name in the folder */
    /* The same of its store, with the same key; "": it has none. */
    char store[LS_OFFER_NAME_BYTES];
    uint64_t store_proof[2];
};

static const struct ls_field notice_fields[] = {
    {"members", LS_FIELD_UINT, offsetof(struct notice, members),
     .presence = LS_ALWAYS},
    {"bytes", LS_FIELD_UINT, offsetof(struct notice, bytes),
     .presence = LS_ALWAYS},
    {"state", LS_FIELD_INT, offsetof(struct notice, state),
     .most = N_STATES - 1},
    {"status", LS_FIELD_INT, offsetof(struct notice, status),
     .least = LS_EINVARIANT, .most = LS_OK},
    {"key", LS_FIELD_UINT, offsetof(struct notice, key[0]),
     .presence = LS_ALWAYS},
    {"key_end", LS_FIELD_UINT, offsetof(struct notice, key[1]),
     .presence = LS_ALWAYS},
    {"proof", LS_FIELD_UINT, offsetof(struct notice, proof[0]),
     .presence = LS_ALWAYS},
    {"proof_end", LS_FIELD_UINT, offsetof(struct notice, proof[1]),
     .presence = LS_ALWAYS},
    {"socket", LS_FIELD_CHARS, offsetof(struct notice, socket),
     .size = LS_OFFER_NAME_BYTES},
    {"store", LS_FIELD_CHARS, offsetof(struct notice, store),
     .presence = LS_IF_SET, .size = LS_OFFER_NAME_BYTES},
    {"store_proof", LS_FIELD_UINT, offsetof(struct notice, store_proof[0]),
     .presence = LS_IF_SET},
    {"store_proof_end", LS_FIELD_UINT, offsetof(struct notice, store_proof[1]),
     .presence = LS_IF_SET},
};
_Static_assert(sizeof(((struct notice *)NULL)->key) == LS_MEMORY_KEY_BYTES,
               "a key is two numbers");
static const struct ls_record notice_record = {
    .name = "a notice of a room",
    .size = sizeof(struct notice),
    .fields = notice_fields,
    .n_fields = sizeof notice_fields / sizeof *notice_fields};

/* Another member, as far as it is known. */
struct guest {
    bool heard;
    struct notice notice; /* the latest */
    bool taken;
};

struct room_meeting {
    ls_room *room; /* borrow */
    ls_channel *channel;
    ls_mutex lock;
    ls_cond changed;
    ls_offer *offer, *store_offer;
    const char *folder; /* borrow, until they have met */
    struct notice own;  /* under the lock, as the next */
    struct guest guests[ROOM_MEMBERS_MAX];
    bool met;    /* the core has begun: losses go there */
    bool closed; /* the node has stopped */
    bool renewed;
    bool starved; /* there was no memory for what one says to another */
};

static unsigned place_of(const ls_room *room, uint32_t id)
{
    unsigned place = 0;
    while (place < room->n && room->members[place].id != id)
        place++;
    return place;
}

/* Under the lock. A member that is not there is told when it is. */
static void tell(struct room_meeting *meeting, unsigned place)
{
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        ls_record_write(&notice_record, &meeting->own, writer);
        status = ls_writer_bytes(writer, &data, &size);
    }
    if (status == LS_OK)
        status = ls_channel_send_reliable(
            meeting->channel, meeting->room->members[place].id, data, size);
    if (status != LS_OK)
        ls_log_debug("room \"%s\": node %u is not told: %s",
                     meeting->room->name, meeting->room->members[place].id,
                     ls_error_text());
    meeting->starved = meeting->starved || status == LS_ENOMEM;
    ls_writer_destroy(&writer);
}

static void tell_all(struct room_meeting *meeting)
{
    for (unsigned i = 0; i < meeting->room->n; i++)
        if (i != meeting->room->me)
            tell(meeting, i);
}

/* ---- the ops of the channel: on the bus thread --------------------------- */

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    struct room_meeting *const meeting = self;
    struct notice notice;
    const unsigned place = place_of(meeting->room, from);
    if (place == meeting->room->n || place == meeting->room->me)
        return;
    const int status =
        ls_record_decode(&notice_record, &notice, data, size, NULL);
    ls_mutex_lock(&meeting->lock);
    struct guest *const guest = &meeting->guests[place];
    if (status == LS_ENOMEM) {
        meeting->starved = true;
        ls_cond_broadcast(&meeting->changed);
    } else if (status == LS_OK && !meeting->met) {
        const bool first = !guest->heard;
        if (!first && meeting->room->members[place].incarnation != incarnation)
            meeting->room->members[place].lost = true;
        guest->heard = true;
        guest->notice = notice;
        meeting->room->members[place].incarnation = incarnation;
        if (first)
            tell(meeting, place);
        ls_cond_broadcast(&meeting->changed);
    }
    ls_mutex_unlock(&meeting->lock);
}

static void on_member(void *self, const struct ls_member *member)
{
    struct room_meeting *const meeting = self;
    ls_room *const room = meeting->room;
    const unsigned place = place_of(room, member->id);
    if (place == room->n || member->state == LS_MEMBER_SEEN)
        return;
    ls_mutex_lock(&meeting->lock);
    struct room_member *const m = &room->members[place];
    const bool same =
        m->incarnation == 0 || m->incarnation == member->incarnation;
    /* One that is ready again is another one: its life before is over. */
    const bool lost = (member->state == LS_MEMBER_READY) != same;
    const bool met = meeting->met;
    if (lost)
        m->lost = true;
    else if (!met)
        tell(meeting, place);
    ls_cond_broadcast(&meeting->changed);
    ls_mutex_unlock(&meeting->lock);
    if (lost && met)
        core_lose(&room->core, place);
}

/* The others have declared this node lost: all of them have been, here. */
static void on_renewed(void *self, uint64_t incarnation)
{
    struct room_meeting *const meeting = self;
    (void)incarnation;
    ls_mutex_lock(&meeting->lock);
    meeting->renewed = true;
    ls_cond_broadcast(&meeting->changed);
    const bool met = meeting->met;
    ls_mutex_unlock(&meeting->lock);
    if (met)
        core_expel(&meeting->room->core);
}

static void on_closed(void *self)
{
    struct room_meeting *const meeting = self;
    ls_mutex_lock(&meeting->lock);
    meeting->closed = true;
    ls_cond_broadcast(&meeting->changed);
    const bool met = meeting->met;
    ls_mutex_unlock(&meeting->lock);
    meeting->room->closed = true;
    if (met)
        core_expel(&meeting->room->core);
}

static const struct ls_channel_ops ops = {.message = on_message,
                                          .member = on_member,
                                          .renewed = on_renewed,
                                          .closed = on_closed};

/* ---- the thread that makes the room -------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* The bytes of a key, as the socket wants them. */
static const uint8_t *bytes_of(const uint64_t *key)
{
    return (const uint8_t *)key;
}

static void set_own(struct room_meeting *meeting)
{
    const ls_room *const room = meeting->room;
    struct notice *const own = &meeting->own;
    own->members = mix(room->n, ROOM_MAGIC);
    for (unsigned i = 0; i < room->n; i++)
        own->members = mix(own->members, room->members[i].id);
    own->bytes = room->end;
    own->members = mix(own->members, own->bytes);
}

/* What this member's memory is offered by, with a name that nobody else has. */
static void set_offer(struct room_meeting *meeting)
{
    const ls_room *const room = meeting->room;
    struct notice *const own = &meeting->own;
    for (size_t i = 0; i < 2; i++) {
        own->key[i] = ls_entropy(room->runtime);
        own->proof[i] = ls_entropy(room->runtime);
    }
    ls_offer_name(room->runtime, own->socket);
    struct room_words *const words =
        ls_memory_own(room->members[room->me].memory);
    words->magic = ROOM_MAGIC;
    memcpy(words->proof, own->proof, sizeof words->proof);
    if (room->store == NULL)
        return;
    const struct room_store_head *const head =
        ls_memory_own(room->store->memory);
    ls_offer_name(room->runtime, own->store);
    memcpy(own->store_proof, head->proof, sizeof own->store_proof);
}

static int find_path(const struct room_meeting *meeting, const char *socket,
                     char out[LS_OFFER_PATH_BYTES])
{
    const int status = ls_offer_path(meeting->folder, socket, out);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "room \"%s\"", meeting->room->name);
}

/* What is offered at that socket in the name of a member; size: that it must
 * have. */
static int take_from(const struct room_meeting *meeting, unsigned place,
                     const struct notice *notice, const char *socket,
                     size_t size, int64_t deadline, ls_memory **out)
{
    const ls_room *const room = meeting->room;
    char path[LS_OFFER_PATH_BYTES];
    int status = find_path(meeting, socket, path);
    if (status == LS_OK)
        status = ls_memory_take(out, room->runtime, path, bytes_of(notice->key),
                                size, deadline);
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "room \"%s\": the memory of node %u",
                             room->name, room->members[place].id);
}

static bool is_its_memory(const ls_memory *memory, const struct notice *notice)
{
    const struct room_words *const words = ls_memory_data(memory);
    return words->magic == ROOM_MAGIC &&
           memcmp(words->proof, notice->proof, sizeof words->proof) == 0;
}

static bool is_its_store(const ls_memory *memory, const struct notice *notice)
{
    const struct room_store_head *const head = ls_memory_data(memory);
    return head->magic == ROOM_STORE_MAGIC &&
           memcmp(head->proof, notice->store_proof, sizeof head->proof) == 0;
}

static int take(const struct room_meeting *meeting, unsigned place,
                const struct notice *notice, int64_t deadline)
{
    struct room_member *const member = &meeting->room->members[place];
    int status = take_from(meeting, place, notice, notice->socket,
                           meeting->room->end, deadline, &member->memory);
    if (status == LS_OK && notice->store[0] != '\0')
        status =
            take_from(meeting, place, notice, notice->store,
                      sizeof(struct room_store_head), deadline, &member->store);
    if (status != LS_OK)
        return status;
    if (is_its_memory(member->memory, notice) &&
        (member->store == NULL || is_its_store(member->store, notice)))
        return room_taken(meeting->room, place);
    ls_memory_destroy(&member->memory);
    ls_memory_destroy(&member->store);
    return ls_error(LS_EPROTO,
                    "room \"%s\": what is offered in the name of node %u is "
                    "not its memory, or of another version of Lockstep",
                    meeting->room->name, member->id);
}

/* A member has said something that the caller has not taken up; n: none. */
static unsigned next_guest(const struct room_meeting *meeting)
{
    unsigned i = 0;
    while (i < meeting->room->n &&
           (i == meeting->room->me || !meeting->guests[i].heard ||
            meeting->guests[i].taken))
        i++;
    return i;
}

static bool all_are(const struct room_meeting *meeting, bool ready)
{
    for (unsigned i = 0; i < meeting->room->n; i++)
        if (i != meeting->room->me && !meeting->room->members[i].lost &&
            (!meeting->guests[i].heard ||
             (ready && meeting->guests[i].notice.state != READY)))
            return false;
    return true;
}

/* Whether there will be no room, and why. The lock is held. */
static int look_for_failure(const struct room_meeting *meeting)
{
    const ls_room *const room = meeting->room;
    if (meeting->closed)
        return ls_error(LS_ECLOSED, "room \"%s\": its node stops", room->name);
    const int interrupted = ls_node_interrupted(room->node);
    if (interrupted != LS_OK)
        return ls_error_at(interrupted, "room \"%s\"", room->name);
    if (meeting->starved)
        return ls_error(LS_ENOMEM, "room \"%s\": no memory for a message",
                        room->name);
    if (meeting->renewed)
        return ls_error(LS_ELOST,
                        "room \"%s\": the others hold this node for lost",
                        room->name);
    for (unsigned i = 0; i < room->n; i++) {
        const struct notice *const said = &meeting->guests[i].notice;
        if (i == room->me)
            continue;
        if (room->members[i].lost)
            return ls_error(LS_ELOST, "room \"%s\": node %u is lost",
                            room->name, room->members[i].id);
        if (meeting->guests[i].heard && said->state == FAILED)
            return ls_error(
                said->status == LS_OK ? LS_EPROTO : (int)said->status,
                "room \"%s\": node %u cannot have it: %s", room->name,
                room->members[i].id, ls_status_sentence((int)said->status));
        if (meeting->guests[i].heard && said->members != meeting->own.members)
            return ls_error(LS_EMISMATCH,
                            "room \"%s\": node %u has another list of members, "
                            "or another alloc_bytes",
                            room->name, room->members[i].id);
    }
    return LS_OK;
}

static int missing(const struct room_meeting *meeting)
{
    char names[300] = "";
    size_t at = 0;
    const ls_room *const room = meeting->room;
    for (unsigned i = 0; i < room->n && at + 24 < sizeof names; i++)
        if (i != room->me && meeting->guests[i].notice.state != READY)
            at +=
                (size_t)snprintf(names + at, sizeof names - at, "%s%u",
                                 at == 0 ? "node " : ", ", room->members[i].id);
    return ls_error(LS_ETIMEDOUT, "room \"%s\": %s did not come in time",
                    room->name, names);
}

/* The lock is held, but while memory is taken. */
static int gather(struct room_meeting *meeting, int64_t deadline)
{
    ls_room *const room = meeting->room;
    for (;;) {
        int status = look_for_failure(meeting);
        if (status != LS_OK)
            return status;
        const unsigned place = next_guest(meeting);
        if (place < room->n) {
            const struct notice notice = meeting->guests[place].notice;
            meeting->guests[place].taken = true;
            ls_mutex_unlock(&meeting->lock);
            status = take(meeting, place, &notice, deadline);
            ls_mutex_lock(&meeting->lock);
            if (status != LS_OK)
                return status;
        } else if (all_are(meeting, true) && meeting->own.state == READY) {
            return LS_OK;
        } else if (all_are(meeting, false) && meeting->own.state == HELLO) {
            meeting->own.state = READY;
            tell_all(meeting);
        } else if (ls_cond_wait(&meeting->changed, &meeting->lock, deadline) !=
                   LS_OK) {
            return missing(meeting);
        }
    }
}

/* So that the others need not wait for their deadlines. The lock is held. */
static void tell_failure(struct room_meeting *meeting, int status,
                         int64_t deadline)
{
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    meeting->own.state = FAILED;
    meeting->own.status = status;
    tell_all(meeting);
    while (!all_are(meeting, false) && !meeting->closed &&
           ls_node_interrupted(meeting->room->node) == LS_OK &&
           ls_cond_wait(&meeting->changed, &meeting->lock, deadline) == LS_OK)
        continue;
    (void)ls_failure_return(&failure);
}

/* From here on losses go to the core; those that came before go there now. */
static void begin(struct room_meeting *meeting)
{
    ls_room *const room = meeting->room;
    meeting->met = true;
    for (unsigned i = 0; i < room->n; i++)
        if (room->members[i].lost)
            core_lose(&room->core, i);
}

/* Also when an interrupt is over: then nobody is to give up. */
static void on_interrupt(void *self)
{
    struct room_meeting *const meeting = self;
    ls_room *const room = meeting->room;
    ls_mutex_lock(&meeting->lock);
    if (meeting->met && ls_node_interrupted(room->node) != LS_OK)
        core_quit(&room->core, LS_ECANCELED);
    ls_cond_broadcast(&meeting->changed);
    ls_mutex_unlock(&meeting->lock);
}

static int offer_one(const struct room_meeting *meeting, ls_memory *memory,
                     const char *socket, ls_offer **out)
{
    char path[LS_OFFER_PATH_BYTES];
    int status = find_path(meeting, socket, path);
    if (status != LS_OK)
        return status;
    status = ls_offer_begin(out, memory, path, bytes_of(meeting->own.key));
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "room \"%s\"", meeting->room->name);
}

static int offer(struct room_meeting *meeting)
{
    const ls_room *const room = meeting->room;
    set_offer(meeting);
    int status = offer_one(meeting, room->members[room->me].memory,
                           meeting->own.socket, &meeting->offer);
    if (status == LS_OK && room->store != NULL)
        status = offer_one(meeting, room->store->memory, meeting->own.store,
                           &meeting->store_offer);
    return status;
}

static int open_meeting(struct room_meeting *meeting)
{
    ls_room *const room = meeting->room;
    char name[sizeof CHANNEL + LS_ROOM_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s%s", CHANNEL, room->name);
    int status = ls_mutex_init(&meeting->lock, room->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&meeting->changed, room->runtime);
    if (status != LS_OK)
        return status;
    /* Its ops may run before this returns, and send on the channel. */
    ls_mutex_lock(&meeting->lock);
    status =
        ls_channel_open(&meeting->channel, room->node, name, &ops, meeting);
    ls_mutex_unlock(&meeting->lock);
    if (status == LS_OK)
        status = ls_node_on_interrupt(room->node, on_interrupt, meeting);
    return status;
}

/* Once the channel is open: until all have the room, or none.
 * offered: LS_OK, or why this member has nothing to offer. */
static int meet(struct room_meeting *meeting, const struct ls_failure *offered,
                int64_t deadline)
{
    ls_mutex_lock(&meeting->lock);
    const int status = offered->status != LS_OK ? ls_failure_return(offered)
                                                : gather(meeting, deadline);
    if (status == LS_OK) {
        room_open(meeting->room);
        begin(meeting);
    } else {
        tell_failure(meeting, status, deadline);
    }
    ls_mutex_unlock(&meeting->lock);
    return status;
}

int room_meet(ls_room *room, int made, const char *folder, int64_t deadline)
{
    struct ls_failure offered;
    struct room_meeting *const meeting = calloc(1, sizeof *meeting);
    if (meeting == NULL)
        return ls_error(LS_ENOMEM, "no memory for a room");
    meeting->room = room;
    meeting->folder = folder;
    room->meeting = meeting;
    set_own(meeting);
    ls_failure_keep(&offered, made == LS_OK ? offer(meeting) : made);
    /* What the others hear first is that. */
    meeting->own.state = offered.status == LS_OK ? HELLO : FAILED;
    meeting->own.status = offered.status;
    int status = open_meeting(meeting);
    if (status == LS_OK)
        status = meet(meeting, &offered, deadline);
    ls_offer_end(&meeting->offer);
    ls_offer_end(&meeting->store_offer);
    return status;
}

void room_part(ls_room *room)
{
    struct room_meeting *const meeting = room->meeting;
    if (meeting == NULL)
        return;
    (void)ls_node_on_interrupt(room->node, NULL, meeting);
    ls_channel_close(&meeting->channel);
    ls_offer_end(&meeting->offer);
    ls_offer_end(&meeting->store_offer);
    ls_cond_fini(&meeting->changed);
    ls_mutex_fini(&meeting->lock);
    free(meeting);
    room->meeting = NULL;
}
