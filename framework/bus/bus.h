/* bus.h - the inside of a node: what the files of this layer share.
 *
 * Threads: the bus thread (bus.c) owns the links, reads everything that comes
 * and keeps the world; the dispatch thread (dispatch.c) runs handlers; any
 * thread emits. Locks, in the order in which they are taken:
 *   the transport's ("the lock"): peers, their windows, who listens to what,
 *                  publishing
 *   router         local listeners, the table of events, channels
 *   dispatch.lock  the dispatch queue; and the pool's, alone
 * None is held while a handler or a channel's op runs. */
#ifndef LOCKSTEP_BUS_BUS_H
#define LOCKSTEP_BUS_BUS_H

#include <stdatomic.h>

#include "lockstep/channel.h"
#include "lockstep/event.h"
#include "lockstep/log.h"
#include "lockstep/node.h"

#include "flow.h"
#include "latest.h"
#include "losses.h"
#include "message.h"
#include "streams.h"
#include "transport.h"
#include "wire.h"

#define EVENT_BUCKETS     1024
#define MAX_EVENTS        16384 /* names; peers may make half of them known */
#define MAX_UNANSWERED    256 /* addresses that peers named and nobody answers */
#define MAX_PEERS         4096
#define BATCH_BYTES       16384
#define FAREWELL_AGAIN_NS (30 * LS_NS_PER_MS)

/* A member, or one that may become one. Never freed before the node. */
struct peer {
    uint32_t id;
    uint64_t incarnation;
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char endpoint[LS_ENDPOINT_MAX + 1];
    enum ls_member_state state;
    int reason;
    _Atomic int64_t heard_at; /* by the bus thread's last look at the clock */
    unsigned n_present;       /* presences of it that are in force here */
    struct peer *via;         /* the one that relays it; NULL: direct */
    bool relayed;             /* this hub has told its leaves of it */
    bool lists_me;            /* its heartbeat says that it has my presence */
    bool barred;              /* the world is full without it */
    int64_t away_at;          /* when its presence went; 0: it is not away */
    int64_t ended_at;         /* when it left or was lost */
    enum probe_state probe;   /* whether somebody listens at its endpoint */
    int64_t probe_at;         /* not before */
    int64_t probe_every;
    uint64_t heartbeats; /* the number of its last */
    struct link *link;
    struct wire_presence rival; /* another with this id, if n_rival != 0 */
    unsigned n_rival;
    int64_t rival_at;

    /* Sending to it; under the lock. */
    struct account sent, limit;
    /* Receiving from it: got and kept by the bus thread alone; released under
     * the lock by whoever is done with a message. */
    _Atomic uint64_t got_messages, got_bytes;
    _Atomic uint64_t kept_messages, kept_bytes; /* of got: held in the window */
    struct account released, granted;
    struct message_list relay; /* waits for room at its receivers */
    struct peer_streams streams;
    struct slowness slow;
};

/* A dialled address. Bus thread; the lock for the list. */
struct link {
    struct link *next;
    char endpoint[LS_ENDPOINT_MAX + 1];
    transport_link *transport;
    struct peer *peer; /* who answers there; NULL: nobody has yet */
    bool attached;     /* the user gave it; else found */
    bool heard;        /* a message of its peer has come over it */
    bool withdrawn;    /* this node's presence is not in force there */
    bool closing;
    char refusal[192]; /* why who answers is not accepted; "" */
};

struct listener {
    struct listener *next;
    ls_event_fn *fn;
    void *self;
    const char *label;
    bool once;
    bool removed;
    unsigned running; /* calls under way */
};

struct remote_listener {
    uint32_t id;
    uint64_t incarnation;
    unsigned n; /* 0: its connection is being remade, or it has just ended */
};

struct origin_sequence {
    uint32_t id;
    uint64_t incarnation;
    uint64_t last;
    uint64_t missed;
    uint64_t stream_last; /* of what came through its stream */
};

/* Peers that an emit goes to. */
struct targets {
    struct peer **at;
    size_t n, capacity;
};

/* All about one event name. Never freed before the node. */
struct event_entry {
    struct event_entry *next; /* in its bucket; fixed once published */
    char name[LS_EVENT_MAX + 1];
    uint8_t topic[LS_EVENT_MAX + 2];
    size_t topic_size;

    /* under the lock */
    uint64_t sequence;
    _Atomic enum ls_policy policy;
    bool emitting; /* a long one is under way, in chunks */
    struct remote_listener *remotes;
    size_t n_remotes;
    struct targets targets;   /* direct peers, for a publish */
    struct targets receivers; /* who listens, also when it is away */
    uint64_t targets_version;
    struct origin_sequence *origins; /* missed; the rest is the bus thread's */
    size_t n_origins;
    struct receiver_record *records;
    size_t n_records;
    uint64_t stream_sequence; /* reliable and latest ones to all */
    struct payload *latest;   /* the current value; NULL: none */
    uint64_t latest_sequence, latest_handled; /* here */
    struct event_entry *next_latest;
    bool latest_queued; /* here, to be handled */

    /* under router */
    struct listener *listeners;
    atomic_uint n_listeners;
    bool wanted;     /* listened to here, also after a once */
    bool subscribed; /* bus thread: in force on the links */
};

struct member_watch {
    struct member_watch *next;
    void (*fn)(void *self, const struct ls_member *member);
    void *self;
    uint64_t number; /* from 1 */
    bool removed;
    bool running;
    unsigned waiters; /* who wait until it does not run */
};

struct dispatch {
    ls_mutex lock;
    ls_cond filled; /* for the dispatch thread */
    ls_cond room;   /* for emitters to this node itself */
    struct message_list queue;
    struct account local; /* local emits in the queue */
    size_t peak;
    bool waiting;
    bool closed;
    ls_thread *thread; /* until destroy: others ask whether they run on it */
    bool ended;
    atomic_int interrupted; /* what waits return, until cleared; LS_OK */
};

/* Short events that share a frame; under the lock. */
struct batch {
    struct event_entry *entry; /* whose events these are; NULL: none */
    uint8_t flags;
    uint32_t n;
    int64_t published_at;  /* when an event was, last */
    size_t size, payloads; /* bytes; where the payloads begin */
    uint8_t bytes[BATCH_BYTES];
};

enum node_phase { NODE_CREATED, NODE_OPEN, NODE_JOINED, NODE_STOPPED };

struct ls_node {
    struct ls_node_options options; /* its texts are own */
    char job[LS_JOB_MAX + 1];
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char bind[LS_ENDPOINT_MAX + 1];
    char endpoint[LS_ENDPOINT_MAX + 1];
    char **attach;
    uint32_t *members;
    ls_runtime *runtime;
    uint32_t job_hash;
    _Atomic uint64_t incarnation; /* changes under the lock, when it rejoins */
    bool hub;                     /* of a star: relays */
    _Atomic enum node_phase phase;

    transport *transport;
    message_pool *pool;
    ls_thread *bus_thread;       /* as the dispatch thread */
    bool bus_ended;              /* under the lock */
    atomic_bool stopping;        /* the bus thread is to end */
    atomic_bool dial_wanted;     /* the addresses that the user gave */
    atomic_bool chores;          /* the bus thread has to look after things */
    int64_t now;                 /* bus thread: when it last looked */
    struct message_list spare;   /* bus thread: empty messages */
    struct message_list arrived; /* bus thread: to be dispatched */
    struct assembly *assemblies; /* bus thread */

    /* under the lock */
    struct peer *peers[MAX_PEERS]; /* by id */
    size_t n_peers;
    struct link *links;
    uint64_t world_version;     /* changes when an emit's targets may */
    struct event_entry *latest; /* all that have a value of policy latest */
    bool acknowledge_all;       /* at once */
    bool announce;              /* a heartbeat is due at once */
    bool leaving;               /* said farewell: dials nobody any more */
    bool probes_wanted;         /* bus thread */
    bool unlistened;            /* a peer has stopped listening to something */
    bool room_made;             /* where a channel's message found none */
    int farewell_reason;        /* when leaving */
    int64_t farewell_at;        /* it is repeated then */
    bool rejoins;               /* it was declared lost: why, in rejoin_text */
    char rejoin_text[256];
    int64_t announced_at, heartbeat_at, looked_at;
    uint64_t heartbeats;
    ls_cond changed; /* the world, a limit, an end */
    int fatal;       /* why the node cannot be; LS_OK */
    char fatal_text[LS_ERROR_TEXT_MAX];
    char refusal[256];      /* of the last presence that was; "" */
    struct ls_member *news; /* changes that are to be told, as they were */
    size_t n_news;
    struct batch batch;
    uint8_t *heartbeat; /* buffer */
    size_t heartbeat_size;
    struct ls_router_stats stats;

    ls_mutex router;
    ls_cond idle; /* a handler or an op has returned */
    _Atomic(struct event_entry *) events[EVENT_BUCKETS];
    size_t n_events;
    atomic_bool interests_changed; /* a `wanted` differs from `subscribed` */
    ls_channel *channels;
    uint64_t n_channels; /* that ever were */
    struct member_watch *watches;
    uint64_t n_watches;
    int error;
    char error_text[LS_ERROR_TEXT_MAX];
    struct dispatch dispatch;
    atomic_uint_fast64_t emitted, handled, received, received_bytes, repeated;
};

/* bus.c: the loop, and what comes over links. */
void bus_thread_main(void *node);
/* The payload of a message; false: not as its header says. */
bool bus_payload(const struct message *message,
                 const struct wire_header *header, const uint8_t **data,
                 size_t *size);
/* Refuse what came over a link, with the reason in ls_error_text(). */
void bus_refuse(ls_node *node, struct link *link);
/* Give back a message that is not kept. Bus thread. */
void bus_drop(ls_node *node, struct message *message);
/* An event is whole: to be dispatched. Bus thread. */
void bus_event(ls_node *node, struct message *message,
               struct event_entry *entry, const struct wire_header *header);
struct wire_header bus_header(const ls_node *node, enum wire_kind kind);
/* Publish a control message to one node. Lock held. */
int bus_send(ls_node *node, uint32_t to, struct wire_header *header,
             const void *data, size_t size);

/* member.c: the life of one member; pure. Each tells what became of it. */
enum member_change {
    MEMBER_SAME,
    MEMBER_BECAME_READY,
    MEMBER_AWAY,     /* ready, but its presence is gone */
    MEMBER_RETURNED, /* from there */
    MEMBER_ENDED,    /* was ready, and left or is lost */
    MEMBER_FORGOTTEN /* left or is lost without ever having been ready */
};
void member_begin(struct peer *peer, uint64_t incarnation);
bool member_has_ended(const struct peer *peer);
/* Whether it hears what is published here. */
bool member_hears(const struct peer *peer);
/* Whether its id is taken. */
bool member_is_alive(const struct peer *peer);
/* Ready when it may be. */
enum member_change member_settle(struct peer *peer);
enum member_change member_appears(struct peer *peer);
enum member_change member_disappears(struct peer *peer, int64_t now);
enum member_change member_leaves(struct peer *peer, int reason);
enum member_change member_is_lost(struct peer *peer, int reason);
/* refuses: its host lives, and says that nobody listens at its endpoint. */
enum member_change member_probed(struct peer *peer, bool refuses, int64_t now,
                                 int64_t heartbeat);
/* Its host is to be asked, from now on. */
void member_ask(struct peer *peer, int64_t now);
/* Lowers *next to when it has to be looked at again; asks for a probe by
 * PROBE_WANTED. */
enum member_change member_tick(struct peer *peer, int64_t now, int64_t silence,
                               int64_t *next);
/* This node itself has not looked for so long. */
void member_excuse(struct peer *peer, int64_t late);

/* world.c: who is there. Bus thread, lock held. */
struct peer *world_find(ls_node *node, uint32_t id);
struct peer *world_note(ls_node *node, uint32_t id, uint64_t incarnation);
/* Begin a new incarnation, with empty accounts. */
void world_renew(ls_node *node, struct peer *peer, uint64_t incarnation);
/* Do what is to be done about a change, and tell of it. */
void world_apply(ls_node *node, struct peer *peer, enum member_change change);
/* Tell channels and users, later and outside the lock. */
void world_tell(ls_node *node, const struct peer *peer);
/* Tell what has changed: channels at once, users in order with the events that
 * came before. Lock not held. */
void world_tell_news(ls_node *node);
/* The connection of a peer was broken and is made again: it hears all from here
 * on. What it listened to before (entry->remotes) has been kept. */
void peer_returned(ls_node *node, struct peer *peer);
void world_probe(ls_node *node);
void world_probed(ls_node *node, const char *endpoint,
                  enum transport_probed answer);
void world_farewell(ls_node *node, struct peer *peer, int reason);
/* Look for silence; returns when to look again. */
int64_t world_tick(ls_node *node, int64_t now);
void world_update(ls_node *node, struct peer *peer);
bool world_other_configuration(const ls_node *node, uint64_t hash);
/* This node cannot be: joining ends with this. */
void world_fail(ls_node *node, int status, const char *text);
bool world_has(const struct peer *peer);
size_t world_n_ready(const ls_node *node);
void world_member(const struct peer *peer, struct ls_member *out);
/* Refuse what came over this link, with the reason in ls_error_text(); of a
 * mismatch, joining may end. */
void world_refuse(ls_node *node, struct link *link);
void world_mismatch(ls_node *node, struct link *link);

/* world_link.c: the peer that a message over this link came from, or NULL:
 * refused. Bus thread, lock held. */
struct peer *world_accept(ls_node *node, struct link *link,
                          const struct wire_header *header);

/* presence.c. Bus thread, lock held. */
void world_presence(ls_node *node, const uint8_t *topic, size_t size,
                    bool subscribed);
void world_listen(ls_node *node, const uint8_t *topic, size_t size,
                  bool subscribed);
/* Whether another than this node has its id; the text says so. */
bool presence_duplicate(ls_node *node, uint64_t incarnation,
                        const char *endpoint);
/* A new incarnation of a peer is there, so the one known is gone. */
void presence_replace(ls_node *node, struct peer *peer, uint64_t incarnation);
/* There is room again for one who was one too many. */
void presence_admit_barred(ls_node *node);
/* If the id is free: to whoever has waited for it. */
void presence_admit_rival(ls_node *node, struct peer *peer);

/* links.c: dialled addresses, and what is subscribed on them. */
struct link *link_find(ls_node *node, const char *endpoint);
int link_dial(ls_node *node, const char *endpoint, bool attached,
              const struct peer *peer);
/* Who answers there is gone: it closes, or waits for another to be shown. */
void link_retire(ls_node *node, struct link *link, bool left);
void link_present(ls_node *node, struct link *link);
void links_close_marked(ls_node *node);
void links_subscribe(ls_node *node, const uint8_t *topic, size_t size,
                     bool subscribe, const struct link *but);
/* Announce another incarnation of this node, and take the present one back. */
void links_renew(ls_node *node, uint64_t incarnation);
/* Bring subscriptions in line with what is listened to. */
void links_sync_interests(ls_node *node);

/* relay.c: what the hub of a star does for its leaves. Lock held. */
/* Tell the others, unless they have been told. */
void relay_present(ls_node *node, struct peer *leaf, bool present);
void relay_listen(ls_node *node, struct peer *leaf,
                  const struct event_entry *entry, bool listens);
void relay_dial(ls_node *node, struct link *link, const struct peer *peer);
/* Pass a message on, or keep it until there is room. Returns true when the
 * message was kept. */
bool relay_message(ls_node *node, struct peer *from, struct message *message,
                   const struct wire_header *header, uint32_t to, bool inbox);
void relay_flush(ls_node *node);

/* node_stop.c: publish the farewell, which may get lost. Lock held. */
void farewell_send(ls_node *node, int64_t now);

/* rejoin.c: being told that one is no member, and what follows. Bus thread,
 * lock held. First: tell those that are here and are no members why not. */
void verdicts_send(ls_node *node);
void verdict_read(ls_node *node, struct peer *peer,
                  const struct wire_header *header);
/* The hub of this leaf has a member that is lost here. */
void rejoin_hub(ls_node *node, const struct peer *hub, const struct peer *peer);
/* Go on as a new incarnation, if that is due. */
void rejoin(ls_node *node);

/* heartbeat.c. Bus thread, lock held. */
void heartbeat_send(ls_node *node, int64_t now);
int heartbeat_read(ls_node *node, struct peer *peer,
                   const struct wire_header *header);

/* batch.c: short events in close succession share a frame. Lock held. */
/* Take the event in, if it may share a frame; else false, and nothing of this
 * node is left unpublished before it. */
bool batch_add(ls_node *node, struct event_entry *entry, uint8_t flags,
               uint64_t sequence, const void *data, size_t size);
void batch_flush(ls_node *node);

/* events.c: the table of names. Lookups take no lock. */
struct event_entry *events_find(const ls_node *node, const char *name,
                                size_t size);
/* Make it if need be. own: for this node itself; peers may fill only a part
 * of the table. Errors: LS_ELIMIT, LS_ENOMEM. */
int events_get(ls_node *node, const char *name, size_t size, bool own,
               struct event_entry **out);
void events_free(ls_node *node);
/* Lock held. What a peer has stopped listening to is kept until it is known
 * whether its connection broke. began: whether it did not listen before. */
int events_remote(ls_node *node, struct event_entry *entry, uint32_t id,
                  uint64_t incarnation, bool listens, bool *began);
/* Forget what peers that are there, or that have ended, have stopped listening
 * to. */
void events_sweep(ls_node *node);
void events_targets(ls_node *node, struct event_entry *entry);
bool events_listens(const struct event_entry *entry, const struct peer *peer);
bool events_is_reserved(const struct event_entry *entry); /* "ls.…": ours */
/* Bus thread: note the sequence number; counts what was missed before it.
 * Returns false when it, or a later one, has come before. */
bool events_sequence(ls_node *node, struct event_entry *entry,
                     const struct wire_header *header);
/* The same for a part of an event, of which nothing is noted yet. */
bool events_is_new(ls_node *node, struct event_entry *entry,
                   const struct wire_header *header);
/* The same for what came through a stream, which leaves nothing out. */
bool events_stream_sequence(ls_node *node, struct event_entry *entry,
                            const struct wire_header *header);
/* One event did not come to be handled here. Lock held. */
void events_missed(ls_node *node, struct event_entry *entry, uint32_t origin);

/* dispatch.c */
int dispatch_init(ls_node *node);
int dispatch_start(ls_node *node);
/* Let what is queued be handled, then end the thread. */
void dispatch_stop(ls_node *node);
void dispatch_fini(ls_node *node);
void dispatch_add(ls_node *node, struct message_list *list);
/* Room for a local emit: reserved first, then filled or given back. */
int dispatch_reserve(ls_node *node, size_t bytes, bool wait, int64_t deadline);
void dispatch_fill(ls_node *node, struct message *message);
/* For what needs no room. Errors: LS_ECLOSED, and the message is given back. */
int dispatch_offer(ls_node *node, struct message *message);
void dispatch_give_up(ls_node *node, size_t bytes);
bool dispatch_is_current(const ls_node *node);
/* Have the bus thread look after what has changed. Any thread. */
static inline void node_wake(ls_node *node)
{
    atomic_store(&node->chores, true);
    transport_wake(node->transport);
}

/* Whether stop has begun. */
static inline bool node_is_stopping(const ls_node *node)
{
    return atomic_load(&node->phase) == NODE_STOPPED;
}
/* Note an error for ls_node_take_error() and whoever waits. */
void dispatch_keep_error(ls_node *node, int status, const char *text);
/* The same for that of a handler. */
void dispatch_error(ls_node *node, int status, const char *event,
                    const char *handler, const char *text);
/* The same of n reliable events that a lost peer may not have got. */
void dispatch_lost(ls_node *node, const struct peer *peer, const char *event,
                   uint64_t n);

/* channel.c. Bus thread but where said, no lock held. */
void channels_message(ls_node *node, const struct wire_header *header,
                      const void *data, size_t size);
void channels_member(ls_node *node, const struct ls_member *member);
void channels_renewed(ls_node *node, uint64_t incarnation);
void channels_room(ls_node *node);
/* ls_channel_send_reliable(), without a channel of this node's own. */
int channels_send_reliable(ls_node *node, const char *name, uint32_t to,
                           const void *data, size_t size);
/* Dispatch thread: a MESSAGE_CHANNEL. */
void channels_dispatched(ls_node *node, const struct message *message);
/* Tell every channel that the node stops. Any thread. */
void channels_closed(ls_node *node);
/* Tell new channels who is there, and run the timers that are due; returns when
 * the next one is. */
int64_t channels_tick(ls_node *node, int64_t now);

/* call_stray.c. Bus thread, no lock: refuse a call, if no channel was open. */
void calls_stray(ls_node *node, const struct wire_header *header,
                 const void *data, size_t size);

#endif
