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

#include "event_access.h"
#include "flow.h"
#include "forked.h"
#include "latest.h"
#include "losses.h"
#include "membership.h"
#include "message.h"
#include "pace.h"
#include "refusals.h"
#include "streams.h"
#include "transport.h"
#include "wire.h"

#define EVENT_BUCKETS     256
#define MAX_EVENTS        16384 /* names; peers may make half of them known */
#define MAX_LISTENERS     4096  /* to one event, at other nodes */
#define BATCH_BYTES       16384
#define FAREWELL_AGAIN_NS (30 * LS_NS_PER_MS)

/* Another node: what it is to the world, and what is sent and got. Freed with
 * the node; one that was never a member may become another. A node in a star
 * knows many that it is not connected to and never talks to: so only those of
 * the others have a hop, or streams. */
struct peer {
    struct member member; /* the first: membership.h makes peers */
    struct link *link;
    struct hop *hop;                        /* own; see flow_open() */
    _Atomic(struct peer_streams *) streams; /* own; made under the lock */
    struct slowness slow;
    /* By a hub, of a leaf: */
    bool relayed;         /* the others have been told of it */
    uint64_t config_hash; /* as its presence has it */
    char *signature;      /* own; and as that is signed; NULL: by nobody */
};

static inline struct peer *peer_of(struct member *member)
{
    return (struct peer *)member;
}

/* Over whose connection it is reached: its own, or its hub's. */
static inline struct peer *peer_direct(struct peer *peer)
{
    struct member *via = peer->member.via;
    return via != NULL ? peer_of(via) : peer;
}

/* libzmq connects again by itself, unless who answered once made no sense to
 * it; then only a new socket helps, after so long and then twice as long. */
#define LINK_REDIAL_NS (2 * LS_NS_PER_S)
/* A proof is published once, to whoever asks; one that is lost is asked for
 * again, with a challenge of its own, since the old one is in force. */
#define LINK_ASK_NS      (LS_NS_PER_S / 2)
#define LINK_ASK_SOON_NS (50 * LS_NS_PER_MS)

/* A dialled address. Bus thread; the lock for the list. */
struct link {
    struct link *next;
    char endpoint[LS_ENDPOINT_MAX + 1];
    transport_link *transport;
    uint64_t number; /* only this node and who answers know it */
    char challenge[WIRE_CHALLENGE_SIZE + 1]; /* to be answered with a proof */
    bool known;                              /* it was dialled as: */
    uint32_t id;                             /* this node */
    struct peer *peer; /* who has proved to answer there; NULL: nobody has */
    bool attached;     /* the user gave it; else found */
    bool hearsay;      /* another spoke of it, and that is all that is known */
    bool withdrawn;    /* this node's presence is not in force there */
    bool closing;
    bool same_id;      /* another node with this node's id answers there */
    int64_t heard_at;  /* over it, or when it was dialled */
    int64_t asked_at;  /* for the proof, last */
    int64_t redial_ns; /* after so long without a word it is dialled anew */
    char refusal[192]; /* why who answers is not accepted; "" */
};

struct listener {
    struct listener *next;
    ls_event_fn *fn;
    void *self;
    char *label; /* own; NULL: none */
    char *glob;  /* own; of names that begin as its entry's; NULL: its event */
    bool once;
    bool removed;
    unsigned running; /* calls under way */
};

/* A listening, over a link of that number. */
struct remote_listener {
    uint32_t id;
    uint64_t link;
    uint64_t connection; /* that said so last */
    unsigned n; /* 0: its connection is being remade, or it has just ended */
};

/* Anew: who listened has ended, and another one has begun, before anybody was
 * told. It misses nothing, and is to get the current values. */
enum listening { LISTENING_ENDS, LISTENING_BEGINS, LISTENING_ANEW };

/* Events of one name are numbered for each policy. */
#define N_POLICIES (LS_POLICY_LATEST + 1)

struct origin_sequence {
    uint32_t id;
    uint64_t incarnation;
    uint64_t last[N_POLICIES];
    uint64_t missed;
};

/* Peers that an emit goes to. */
struct targets {
    struct peer **at;
    size_t n, capacity;
};

/* All about one event name; or about all names that begin alike, "arm.*". Of
 * the latter, which nobody can emit, there are listeners, and nothing else.
 * Never freed before the node. */
struct event_entry {
    struct event_entry *next; /* in its bucket; fixed once published */
    struct event_entry *next_prefix;
    char name[LS_EVENT_MAX + 1];
    uint8_t topic[LS_EVENT_MAX + 2];
    size_t topic_size;
    size_t filter_size; /* of the topic, what is subscribed to */
    bool is_prefix;

    /* under the lock */
    uint64_t sequences[N_POLICIES]; /* of emits to all; 0: none yet */
    _Atomic enum ls_policy policy;
    _Atomic(struct event_access *) access; /* who may emit it to this node;
                                            * NULL: all */
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
    struct payload *latest;  /* the current value; NULL: none */
    uint64_t latest_handled; /* here */
    struct event_entry *next_latest;
    bool latest_queued; /* here, to be handled */

    /* under router */
    struct listener *listeners;
    atomic_uint n_listeners;
    bool wanted;     /* listened to here, also after a once */
    bool begun;      /* since the bus thread looked: not listened to before */
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
    uint8_t *bytes;        /* own, BATCH_BYTES; NULL before the first */
};

/* An address that the user gave: "0@tcp://127.0.0.1:21500" */
struct attach {
    char endpoint[LS_ENDPOINT_MAX + 1];
    bool known; /* it says which node is to answer there: */
    uint32_t id;
};

/* What a simulation may have a node leave out, to see that it would be noticed:
 * the one hook for that. `of` is what it is about. */
enum bus_act {
    BUS_HEARS,          /* an event of a stream; its sequence, as uint64_t */
    BUS_KEEPS,          /* a reliable event, until it is acknowledged */
    BUS_REPEATS_OLDEST, /* what is not acknowledged */
    BUS_TELLS_LOSS,     /* to the sender */
    BUS_EXCUSES,        /* others, when it stood still itself */
    BUS_SETTLES,        /* with a sender what was lost on the way */
    BUS_LETS_IN         /* a struct wire_presence */
};
typedef bool bus_filter_fn(const ls_node *node, enum bus_act act,
                           const void *of);

enum node_phase { NODE_CREATED, NODE_OPEN, NODE_JOINED, NODE_STOPPED };

struct ls_node {
    struct ls_node_options options; /* its texts are own */
    char job[LS_JOB_MAX + 1];
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char bind[LS_ENDPOINT_MAX + 1];
    char bound[LS_ENDPOINT_MAX + 1];
    char endpoint[LS_ENDPOINT_MAX + 1]; /* that others dial */
    struct attach *attach;              /* own; n_attach */
    size_t n_attach;
    uint32_t *members;
    ls_runtime *runtime;
    ls_security *security; /* NULL: in a simulation, where all is believed */
    ls_security *own_security; /* own: made for this node; or NULL */
    bus_filter_fn *filter;     /* NULL: nothing is left out */
    int filtered;              /* for the filter */
    char signature[WIRE_SIGNATURE_MAX + 1]; /* of this life's presence; "" */
    uint32_t job_hash;
    _Atomic uint64_t incarnation; /* changes under the lock, when it rejoins */
    bool hub;                     /* of a star: relays */
    atomic_int interrupt_soon;    /* ls_router_interrupt_soon(); or 1: none */
    unsigned forks;               /* ls_forks_now(), when it was made */
    atomic_uint held;             /* ls_node_hold() */
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
    struct membership world;
    struct link *links;
    struct event_entry *latest; /* all that have a value of policy latest */
    bool acknowledge_all;       /* at once */
    bool unlistened;            /* a peer has stopped listening to something */
    bool room_made;             /* where a channel's message found none */
    int farewell_reason;        /* when leaving */
    int64_t farewell_at;        /* it is repeated then */
    int64_t announced_at, heartbeat_at;
    uint64_t heartbeats;
    ls_cond changed; /* the world, a limit, an end */
    struct refusals refusals;
    struct ls_member *news; /* changes that are to be told, as they were */
    size_t n_news;
    struct batch batch;
    uint8_t *heartbeat; /* buffer */
    size_t heartbeat_size;
    struct ls_router_stats stats;

    ls_mutex router;
    ls_cond idle; /* a handler or an op has returned */
    _Atomic(struct event_entry *) events[EVENT_BUCKETS];
    _Atomic(struct event_entry *) prefixes; /* those of them that are */
    atomic_uint n_globs;                    /* listeners of this node to them */
    size_t n_events;
    atomic_bool interests_changed; /* a `wanted` differs from `subscribed`, or
                                    * an event is `begun` */
    ls_channel *channels;
    uint64_t n_channels; /* that ever were */
    struct member_watch *watches;
    uint64_t n_watches;
    int error;
    char error_text[LS_ERROR_TEXT_MAX];
    struct dispatch dispatch;
    atomic_uint_fast64_t emitted, handled, received, received_bytes, repeated;
    atomic_uint_fast64_t early;
    atomic_uint_fast64_t nameless; /* events that the table had no room for */
};

static inline bool bus_omits(const ls_node *node, enum bus_act act,
                             const void *of)
{
    return node->filter != NULL && node->filter(node, act, of);
}

/* bus.c: the loop, and what comes over links. */
void bus_thread_main(void *node);
/* Of a payload that is in the header or in the second frame. */
size_t bus_payload_size(const struct message *message,
                        const struct wire_header *header);
/* The payload of a message; false: not as its header says. */
bool bus_payload(const struct message *message,
                 const struct wire_header *header, const uint8_t **data,
                 size_t *size);
/* Refuse what came over a link, with the reason in ls_error_text(). Lock not
 * held. */
void bus_refuse(ls_node *node, struct link *link, enum ls_refusal_kind kind);
/* The same of what a member did. */
void bus_refuse_member(ls_node *node, const struct member *member,
                       enum ls_refusal_kind kind);
/* Give back a message that is not kept. Bus thread. */
void bus_drop(ls_node *node, struct message *message);
/* An event is whole: to be dispatched. Bus thread. */
void bus_event(ls_node *node, struct message *message,
               struct event_entry *entry, const struct wire_header *header);
struct wire_header bus_header(const ls_node *node, enum wire_kind kind);
/* Publish a control message to one node. Lock held. */
int bus_send(ls_node *node, uint32_t to, struct wire_header *header,
             const void *data, size_t size);

/* world.c: what this node does about what becomes of members. Bus thread, lock
 * held. */
extern const struct membership_ops world_ops;
struct peer *world_find(const ls_node *node, uint32_t id);
static inline struct peer *world_at(const ls_node *node, size_t i)
{
    return peer_of(node->world.at[i]);
}
/* Tell channels and users, later and outside the lock. */
void world_tell(ls_node *node, const struct member *member);
/* Tell what has changed: channels at once, users in order with the events that
 * came before. Lock not held. */
void world_tell_news(ls_node *node);
void world_probe(ls_node *node);
void world_member(const struct member *member, struct ls_member *out);
/* Memory that may wait for those who read, as many as there are now. */
void world_allow(ls_node *node);

/* subscriptions.c: what a subscription of a peer says. Bus thread, lock held.
 */
void subscription_read(ls_node *node, const uint8_t *topic, size_t size,
                       bool subscribed, const struct speaker *by);

/* answers.c: who answers at a dialled address. Bus thread, lock held. */
/* A challenge was subscribed to. */
void answer_challenge(ls_node *node, const uint8_t *topic, size_t size);
/* A message over a link whose connection is not proved; it may be the proof. */
void answer_read(ls_node *node, struct link *link,
                 const struct message *message,
                 const struct wire_header *header);
/* The peer that a message over a proved link came from, or NULL: refused. */
struct peer *answer_origin(ls_node *node, struct link *link,
                           const struct wire_header *header, bool *early);
/* Whoever answers at the given addresses is of no use: joining may end. */
void answer_mismatch(ls_node *node, struct link *link);

/* links.c: dialled addresses, and what is subscribed on them. */
struct link *link_find(ls_node *node, const char *endpoint);
/* known: the node of that id is to answer there. */
int link_dial(ls_node *node, const char *endpoint, bool attached, bool known,
              uint32_t id);
/* Who answers there is gone: it closes, or waits for another to be shown. */
void link_retire(ls_node *node, struct link *link, bool left);
void link_present(ls_node *node, struct link *link);
/* Dial anew where nobody has been heard for long; returns when to look again.*/
int64_t links_tick(ls_node *node, int64_t now);
void links_close_marked(ls_node *node);
/* Announce another incarnation of this node, and take the present one back. */
void links_renew(ls_node *node, uint64_t incarnation);
/* Say over a link that this node, or a leaf of it, listens; or does no more.
 * Lock held. */
int link_listen(struct link *link, uint32_t id, const struct event_entry *entry,
                enum listening how);
/* Bring subscriptions in line with what is listened to. */
void links_sync_interests(ls_node *node);
/* Sign the presence of this life, where leaves are relayed. Errors: those of
 * credentials_sign(). */
int links_sign(ls_node *node);

/* early.c: what a hub passes on of leaves that it has not shown here yet. Bus
 * thread; lock held but for the first. */
/* Keep one until then. Returns whether it was kept. */
bool early_keep(ls_node *node, struct peer *hub,
                const struct wire_header *header, struct message *message);
/* Of leaves that are ready now: hand them on. Lock not held. */
void early_hand_on(ls_node *node);
void early_drop(ls_node *node, struct peer *hub);
/* Those that wait in vain; returns when to look again. */
int64_t early_tick(ls_node *node, int64_t now);

/* relay.c: what the hub of a star does for its leaves. Lock held. */
/* Tell the others, unless they have been told. */
void relay_present(ls_node *node, struct peer *leaf, bool present);
void relay_listen(ls_node *node, struct peer *leaf,
                  const struct event_entry *entry, enum listening how);
/* Show all leaves over a new link, but the one that is dialled. */
void relay_dial(ls_node *node, struct link *link, const struct peer *peer);
/* Pass a message on, or keep it until there is room. Returns true when the
 * message was kept. */
bool relay_message(ls_node *node, struct peer *from, struct message *message,
                   const struct wire_header *header, uint32_t to, bool inbox);
void relay_flush(ls_node *node);

/* node_stop.c: publish the farewell, which may get lost. Lock held. */
void farewell_send(ls_node *node, int64_t now);

/* rejoin.c: go on as a new incarnation, if that is due. Bus thread, lock
 * held. */
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
 * whether its connection broke. how: what others are to hear of it;
 * LISTENING_ENDS: nothing, or not yet. */
int events_remote(ls_node *node, struct event_entry *entry,
                  const struct wire_listen *listen, uint64_t connection,
                  bool listens, enum listening *how);
/* Forget what peers that are there, or that have ended, have stopped listening
 * to. */
void events_sweep(ls_node *node);
void events_targets(ls_node *node, struct event_entry *entry);
bool events_listens(const ls_node *node, const struct event_entry *entry,
                    const struct peer *peer);
/* The same, by this very name: not by what it begins with. */
bool events_names(const struct event_entry *entry, const struct peer *peer);
/* The first, or next, prefix that the name of an entry begins with; NULL. */
struct event_entry *events_prefix(const ls_node *node,
                                  const struct event_entry *entry,
                                  struct event_entry *after);
/* The entry of a name that came from outside, made if somebody listens to what
 * it begins with; NULL. Router not held. */
struct event_entry *events_heard(ls_node *node, const char *name, size_t size);
/* Whether a listener of this node may want it. */
bool events_here(const ls_node *node, const struct event_entry *entry);
/* Whether it does: it has no glob, or the name is matched by that. */
bool events_suits(const struct listener *listener,
                  const struct event_entry *entry);
void events_free_listener(ls_node *node, struct event_entry *entry,
                          struct listener *listener);
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

/* router.c: stop listening, but stay subscribed: what waits again soon must not
 * miss what comes in between. Returns whether it still listened. Router held.
 */
bool router_off_waiting(ls_node *node, const char *event, ls_event_fn *fn,
                        void *self);

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

/* Errors: LS_ESTATE in a process that was forked since the node was made. */
static inline int node_check(const ls_node *node)
{
    return ls_forked_since(node->forks) ? ls_forked_error("this node") : LS_OK;
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
/* The name of one that is open, or NULL. Any thread. */
const char *channels_open(ls_node *node);
void channels_message(ls_node *node, const struct wire_header *header,
                      const void *data, size_t size);
void channels_member(ls_node *node, const struct ls_member *member);
/* Bus thread: a chunk in a stream came, which is a part of a body when its name
 * is that of a channel. Returns whether it is; kept: whether the message was.
 */
bool channels_part(ls_node *node, const struct wire_header *header,
                   const uint8_t *data, size_t size, struct message *message,
                   bool *kept);
/* Push the next part of a body into the stream to a member: all of it, or as
 * much as should go at a time; *at: how much has gone. The caller tells the
 * other side of the body itself. Never waits.
 * Errors: as ls_channel_send_reliable(); LS_EAGAIN no room: ops->room says when
 *         there is. */
int channels_send_part(ls_node *node, const char *name, uint32_t to,
                       struct payload *payload, size_t *at, uint64_t body);
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
