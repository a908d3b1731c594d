/* events.h - event names: who listens to each, here and elsewhere, and how its
 * events are numbered. Lookups take no lock. */
#ifndef LOCKSTEP_BUS_EVENTS_H
#define LOCKSTEP_BUS_EVENTS_H

#include <stdatomic.h>

#include "lockstep/event.h"

#include "losses.h"
#include "peer.h"
#include "trace_gate.h"
#include "wire.h"

struct event_access;

#define EVENT_BUCKETS 256
/* Names; peers may make half of them known. None is given back: its numbers go
 * on where they were, or receivers would take what is emitted next for what
 * they had, and look-ups without a lock may stand at it. */
#define MAX_EVENTS    16384
#define MAX_LISTENERS 4096 /* to one event, at other nodes */

struct listener {
    struct listener *next;
    ls_event_fn *fn;
    void *self;
    char *label; /* own; NULL: none */
    char *glob;  /* own; of names that begin as its entry's; NULL: its event */
    uint64_t since; /* it hears what is queued behind this mark; 0: all that
                     * is handled from now on */
    bool once;
    atomic_bool removed;
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

/* Events of one name are numbered for each delivery. */
#define N_DELIVERIES (LS_DELIVERY_LATEST + 1)

struct origin_sequence {
    uint32_t id;
    uint64_t incarnation;
    uint64_t last[N_DELIVERIES];
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
    uint16_t bucket;
    char name[LS_EVENT_MAX + 1];
    uint8_t topic[LS_EVENT_MAX + 2];
    size_t topic_size;
    size_t filter_size; /* of the topic, what is subscribed to */
    bool is_prefix;

    /* under the lock */
    uint64_t sequences[N_DELIVERIES]; /* of emits to all; 0: none yet */
    _Atomic enum ls_delivery delivery;
    _Atomic(struct event_access *) access; /* who may emit it to this node;
                                            * NULL: all */
    bool emitting; /* a long one is under way, in chunks */
    struct trace_gate emits;
    uint64_t n_unnumbered; /* of emits without a sequence */
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

    /* dispatch thread */
    struct trace_gate handled;
    uint64_t n_unnumbered_handled;

    atomic_uint trace_name; /* 0: not looked up; UINT16_MAX: it has none */

    /* under router */
    struct listener *listeners;
    atomic_uint n_listeners;
    bool wanted;     /* listened to here, also after a once */
    bool begun;      /* since the bus thread looked: not listened to before */
    bool subscribed; /* bus thread: in force on the links */
};

/* The names of a node. Of events.c; n_globs and interests_changed are set by
 * router.c, unlistened by world.c, and links.c looks whether any changed. */
struct event_table {
    _Atomic(struct event_entry *) buckets[EVENT_BUCKETS];
    _Atomic(struct event_entry *) prefixes; /* those of them that are */
    atomic_uint n_globs;                    /* listeners of this node to them */
    size_t n;                               /* under router */
    atomic_bool interests_changed; /* a `wanted` differs from `subscribed`, or
                                    * an event is `begun` */
    bool unlistened;               /* a peer has stopped listening to something;
                                    * under the lock */
    atomic_uint_fast64_t nameless; /* events that it had no room for */
};

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
bool events_any_globs(const ls_node *node);
/* A peer may have stopped listening to something. Lock held. */
void events_unlistened(ls_node *node);
/* Whether a listener of this node may want it. */
bool events_here(const ls_node *node, const struct event_entry *entry);
/* Whether it does: it has no glob, or the name is matched by that. */
bool events_suits(const struct listener *listener,
                  const struct event_entry *entry);
void events_free_listener(ls_node *node, struct event_entry *entry,
                          struct listener *listener);
bool events_is_reserved(const struct event_entry *entry); /* "ls.…": ours */
/* Bus thread: note the numbers of so many events, that of the header and those
 * after it; counts what was missed before it. Returns false when the last of
 * them, or a later one, has come before. */
bool events_sequence(ls_node *node, struct event_entry *entry,
                     const struct wire_header *header, uint64_t n);
/* The same for a part of an event, of which nothing is noted yet. */
bool events_is_new(ls_node *node, struct event_entry *entry,
                   const struct wire_header *header);
/* The same for what came through a stream, which leaves nothing out. */
bool events_stream_sequence(ls_node *node, struct event_entry *entry,
                            const struct wire_header *header);
/* One event did not come to be handled here. Lock held. */
void events_missed(ls_node *node, struct event_entry *entry, uint32_t origin);

/* Each entry, in no order: NULL first, then the one before. */
struct event_entry *events_next(const ls_node *node,
                                const struct event_entry *before);
/* Whether it is of an event whose name begins so. */
bool events_begins(const struct event_entry *entry,
                   const struct event_entry *prefix);

/* router.c: as ls_on_named(), or ls_once_named(), for what is emitted here, or
 * comes, from now on; of LATEST also for the value that is queued. */
int router_listen_from_now(ls_node *node, const char *event, ls_event_fn *fn,
                           void *self, const char *label, bool once);
/* Stop listening, but stay subscribed: what waits again soon must not miss what
 * comes in between. Returns whether it still listened. Router held. */
bool router_off_waiting(ls_node *node, const char *event, ls_event_fn *fn,
                        void *self);

#endif
