/* bus.h - the inside of a node: the node, as its rooms put it together.
 *
 * Threads: the bus thread (bus.c) owns the links, reads everything that comes
 * and keeps the world; the dispatch thread (dispatch.c) runs handlers; any
 * thread emits. Locks, in the order in which they are taken:
 *   interrupts     whom ls_node_interrupt() wakes
 *   the transport's ("the lock"): peers, their windows, who listens to what,
 *                  publishing
 *   router         local listeners, the table of events, channels
 *   dispatch.lock  the dispatch queue
 *   the pool's     empty messages
 *   turns.lock     whose turn it is to read; alone
 * None is held while a handler or a channel's op runs. */
#ifndef LOCKSTEP_BUS_BUS_H
#define LOCKSTEP_BUS_BUS_H

#include <stdatomic.h>

#include "lockstep/log.h"
#include "lockstep/node.h"

#include "batch.h"
#include "blocks.h"
#include "channels.h"
#include "dispatch.h"
#include "event_access.h"
#include "events.h"
#include "forked.h"
#include "heartbeat.h"
#include "latest.h"
#include "refusals.h"
#include "rings.h"
#include "star.h"
#include "turns.h"
#include "world.h"

/* Each struct here is owned by one file, which alone changes it; who else reads
 * one is in docs/concepts.md. */

/* As whom it is known. Of node.c and node_start.c; fixed once the node is open,
 * but for its life. */
struct identity {
    char job[LS_JOB_MAX + 1];
    char role[WIRE_ROLE_MAX + 1];
    char labels[WIRE_LABELS_MAX + 1];
    char bind[LS_ENDPOINT_MAX + 1];
    char bound[LS_ENDPOINT_MAX + 1];
    char endpoint[LS_ENDPOINT_MAX + 1]; /* that others dial */
    uint64_t host; /* those that have the same share memory; 0: none */
    char signature[WIRE_SIGNATURE_MAX + 1]; /* of this life's presence; "" */
    uint32_t job_hash;
    _Atomic uint64_t incarnation; /* changes under the lock, when it rejoins */
    bool hub;                     /* of a star: relays */
};

/* An address that the user gave: "0@tcp://127.0.0.1:21500" */
struct attach {
    char endpoint[LS_ENDPOINT_MAX + 1];
    bool known; /* it says which node is to answer there: */
    uint32_t id;
};

/* Whom it is to find. Of node_start.c. */
struct joining {
    struct attach *attach; /* own; n_attach */
    size_t n_attach;
    uint32_t *members;       /* own; NULL: any */
    atomic_bool dial_wanted; /* by the bus thread, which owns the links */
};

/* The bus thread. Of bus.c. */
struct loop {
    ls_thread *thread;         /* as the dispatch thread */
    bool ended;                /* under the lock */
    atomic_bool stopping;      /* it is to end */
    atomic_bool chores;        /* it has to look after things */
    atomic_int interrupt_soon; /* ls_node_interrupt_soon(); or 1: none */
    bool room_made;            /* under the lock: where a channel found none */
    bool near_made;            /* the same: a node has become near */
    unsigned n_watched;        /* rings; of rings.c */
    int64_t now;               /* when it last looked */
    int64_t next;              /* when it is to look after things again */
    _Atomic int64_t looks_at;  /* again, at the latest; set under the lock */
    struct message_list spare; /* empty messages */
    struct message_list arrived; /* to be dispatched */
};

/* Under the lock. Of node_stop.c. */
struct farewell {
    int reason;
    int64_t at; /* it is repeated then */
};

/* What all count, and losses.c tells. */
struct figures {
    atomic_uint_fast64_t handled; /* far from what other threads count */
    struct ls_node_stats stats;   /* under the lock */
    atomic_uint_fast64_t emitted, received, received_bytes, repeated;
    atomic_uint_fast64_t early, dropped_here;
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
struct bus_filter {
    bus_filter_fn *omits; /* NULL: nothing is left out */
    int what;             /* for that function */
};

/* Whom an interrupt wakes. Of interrupt.c alone. */
struct interrupts {
    ls_mutex lock;
    struct interrupt_watch {
        void (*fn)(void *self);
        void *self;
    } * at; /* own */
    size_t n;
};

enum node_phase { NODE_CREATED, NODE_OPEN, NODE_JOINED, NODE_STOPPED };

/* Who stops a node waits for who opens it, and for who stops it already: when
 * that returns the node may be freed. Of node_start.c and node_stop.c. */
struct node_life {
    ls_mutex lock;
    ls_cond changed;
    bool opening;
    bool closed; /* all of it */
};

struct ls_node {
    struct ls_node_options options; /* its texts are those of `me` */
    struct identity me;
    struct joining join;
    ls_runtime *runtime;
    ls_security *security; /* NULL: in a simulation, where all is believed */
    ls_security *own_security; /* own: made for this node; or NULL */
    unsigned forks;            /* ls_forks_now(), when it was made */
    atomic_uint held;          /* ls_node_hold() */
    struct node_life life;
    _Atomic enum node_phase phase; /* changes under the lock of `life` */
    struct bus_filter filter;

    transport *transport;
    message_pool *pool;
    struct loop loop;
    struct turns turns;
    struct assembly *assemblies; /* bus thread; of assembly.c */

    /* under the lock */
    struct membership world;
    struct link *links;         /* of links.c */
    struct event_entry *latest; /* of latest.c */
    bool acknowledge_all;       /* at once; of streams.c */
    size_t relay_turn;      /* of relay.c: whose message it passed on last */
    unsigned emits_waiting; /* of emit.c: for room */
    struct farewell farewell;
    struct heart heart;
    struct news news;
    struct batch batch;
    struct refusals refusals;
    struct doubts doubts;
    struct blocks *blocks; /* own; NULL: no pair yet */
    atomic_uint n_near;    /* pairs; of blocks.c, changed under the lock */
    ls_cond changed;       /* the world, a limit, an end */

    struct {
        ls_mutex lock;
        ls_cond idle; /* a handler or an op has returned */
    } router;
    struct event_table table;
    struct channels channels;
    struct watches watches;
    struct interrupts interrupts;
    struct dispatch dispatch;
    struct figures figures;
};

static inline bool bus_omits(const ls_node *node, enum bus_act act,
                             const void *of)
{
    return node->filter.omits != NULL && node->filter.omits(node, act, of);
}

static inline struct peer *world_at(const ls_node *node, size_t i)
{
    return peer_of(node->world.at[i]);
}

/* bus.c: the loop, and what comes over links. */
int bus_start(ls_node *node);
/* It ends; returns when it has. */
void bus_stop(ls_node *node);
void bus_init(struct loop *loop);
void bus_join(ls_node *node);
void bus_fini(struct loop *loop, message_pool *pool);
/* One turn of the loop: wait at most until then, or until there is something to
 * do, and do it. Whoever has the turn. */
void bus_turn(ls_node *node, int64_t until);
/* Whether the caller is the bus thread, or does its work (turns.h). */
static inline bool bus_is_current(const ls_node *node)
{
    return ls_thread_is_current(node->loop.thread) || turns_is_borrower(node);
}
/* Hand a message on to the dispatch thread. Bus thread. */
static inline void bus_hand_on(ls_node *node, struct message *message)
{
    message_list_append(&node->loop.arrived, message);
}
/* The next payload of a batch is that of its event. */
static inline void bus_next_payload(struct message *message)
{
    const uint8_t *data;
    wire_batch_next(&message->next_at, &data, &message->event.size);
    message->event.data = data;
}
/* The same as bus_hand_on() of an event that is whole. */
static inline void bus_event(ls_node *node, struct message *message,
                             struct event_entry *entry,
                             const struct wire_header *header)
{
    message->kind = MESSAGE_EVENT;
    message->entry = entry;
    message->event.name = entry->name;
    message->event.origin = header->origin;
    message->event.incarnation = header->incarnation;
    message->event.sequence = header->sequence;
    bus_hand_on(node, message);
}
/* There is room where a channel's message found none. Lock held. */
void bus_room_made(ls_node *node);
/* Of a payload that is in the header or in the second frame. */
size_t bus_payload_size(const struct message *message,
                        const struct wire_header *header);
/* The payload of a message; false: not as its header says. */
bool bus_payload(const struct message *message,
                 const struct wire_header *header, const uint8_t **data,
                 size_t *size);
/* Refuse what a member did, with the reason in ls_error_text(). Lock not held.
 */
void bus_refuse_member(ls_node *node, const struct member *member,
                       enum ls_refusal_kind kind);
/* A message that this peer wrote into memory; it is moved. Bus thread, lock not
 * held. */
void bus_near(ls_node *node, struct peer *origin, struct message *message);
/* An empty message; NULL: no memory. Bus thread. */
struct message *bus_take(ls_node *node);
/* Give back one that is not kept. Bus thread. */
void bus_drop(ls_node *node, struct message *message);
struct wire_header bus_header(const ls_node *node, enum wire_kind kind);
/* Publish a control message to one node. Lock held. */
int bus_send(ls_node *node, uint32_t to, struct wire_header *header,
             const void *data, size_t size);
/* The same to a member, in no order with what is published. */
int bus_send_alone(ls_node *node, const struct peer *peer,
                   struct wire_header *header, const void *data, size_t size);
/* The same as bus_send(), of two pieces; the first of at most
 * LS_CHANNEL_HEAD_MAX bytes. */
int bus_send_two(ls_node *node, uint32_t to, struct wire_header *header,
                 const void *first, size_t first_size, const void *data,
                 size_t size);
/* How far a peer may go, or what has come: a header alone, which the next one
 * makes good if it is lost, and which may overtake all else. Through memory, if
 * that peer reads any. Lock held. */
void bus_tell(ls_node *node, const struct peer *peer,
              const struct wire_header *header);

/* node_start.c: dial the addresses that the user gave, if that is wanted. Bus
 * thread, lock held. */
void join_dial(ls_node *node);

/* node_stop.c: publish the farewell again, which may get lost; returns when
 * next. Bus thread, lock held. */
int64_t farewell_tick(ls_node *node, int64_t now);

/* Have the bus thread look after what has changed, when it is done with what
 * has come; at once. Any thread. */
static inline void bus_look_after(ls_node *node)
{
    atomic_store(&node->loop.chores, true);
}

static inline void node_wake(ls_node *node)
{
    bus_look_after(node);
    transport_wake(node->transport);
}

/* Have it look then, at the latest. Any thread, after what it is to find there
 * was written under a lock that it takes when it looks. */
static inline void node_wake_by(ls_node *node, int64_t at)
{
    if (at < atomic_load(&node->loop.looks_at))
        node_wake(node);
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

/* call_stray.c. Bus thread, no lock: refuse a call, if no channel was open. */
void calls_stray(ls_node *node, const struct wire_header *header,
                 const void *data, size_t size);

#endif
