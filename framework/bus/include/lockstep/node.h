/* node.h - a member of a world: it binds one endpoint, attaches to its peers,
 * and tracks who is there.
 *
 * Life: create, register handlers (event.h), start, work, stop, destroy. A node
 * is an object; one process may hold a hundred of them.
 *
 * Presence is a subscription: a node's listeners are in force at a peer before
 * that peer sees the node as present, so no member of the world misses anything
 * that is emitted after ls_node_start(). When a connection closes, the peer
 * knows at once. How: docs/wire-format.md and docs/concepts.md.
 *
 * Identity: the user chooses an id that is unique among living nodes; the
 * incarnation, a random number, distinguishes one life of a node from the next.
 * A peer that connects proves its id (lockstep/security.h).
 *
 * fork(2): what was created before belongs to the parent, which is unaffected.
 * In the child every call on it that could wait or change something returns
 * LS_ESTATE, and statistics are 0 (docs/concepts.md).
 * Thread: any, unless a function says otherwise. */
#ifndef LOCKSTEP_NODE_H
#define LOCKSTEP_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"
#include "lockstep/security.h"
#include "lockstep/status.h"
#include "lockstep/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_node ls_node;

enum ls_topology {
    LS_TOPOLOGY_MESH, /* every node is attached to every other; the address of
                       * one member is enough to find them all */
    LS_TOPOLOGY_STAR, /* leaves attach only to the hub, which relays. The hub is
                       * the node with nothing to attach to but its own
                       * address, as it binds or advertises it */
    LS_TOPOLOGY_ALONE /* attached only to the nodes given in `attach`, and to
                       * those that attach to it */
};

/* Longest job name, endpoint, and event name, in bytes without the NUL. */
#define LS_JOB_MAX      64
#define LS_ENDPOINT_MAX 255
#define LS_EVENT_MAX    128

struct ls_emission; /* event.h, as the next */
struct ls_event;

/* Sees each event that a node emits and handles, but for those of delivery
 * LATEST, which depend on the moment: for recordings of runs, and for playing
 * them again. */
struct ls_event_gate {
    void *self;
    /* An event is about to be emitted: its name, data and delivery are right.
     * It may put other data in the place of the event's: borrow, until the emit
     * has returned. Thread: any. Errors: the emit returns them. */
    int (*emits)(void *self, const struct ls_emission *emission,
                 const void **data, size_t *size);
    /* Whether this event may be handled now. If not, it is asked again after
     * the next one that was; what is left when the node stops is handled
     * without being asked. Thread: the dispatch thread. */
    bool (*handles)(void *self, const struct ls_event *event);
};

/* ls_node_create() copies everything except the runtime and `security`. Begin
 * with ls_node_options_init(), then change what differs. */
struct ls_node_options {
    const char *job;    /* 1 … 64 of [A-Za-z0-9._-]; the same in all members,
                         * and, unless the secret is another one, in no other
                         * world on these hosts; default "lockstep" */
    uint32_t id;        /* unique in the world, any value; default 0 */
    const char *role;   /* what it does, "learner"; at most 31 of
                         * [A-Za-z0-9._,-]; default "" */
    const char *labels; /* what it is fit for, "fast,gpu": separated by commas;
                         * at most 63 of [A-Za-z0-9._,-]; default "" */

    /* The address to listen on:
     *   tcp://127.0.0.1:21500        this port
     *   tcp://127.0.0.1:21500-21999  the first free one of these
     *   tcp://0.0.0.0:21500          every interface; then set `advertise`
     *   tcp://[fd00::7]:21500        an IPv6 address; names are looked up as
     *                                IPv4's
     *   ipc:///run/user/1000/x.ipc   a socket file, removed at stop
     *   inproc://name                within this process
     * NULL: tcp://127.0.0.1:21500-21999. */
    const char *bind;
    const char *advertise;     /* what others dial; NULL: what was bound */
    const char *const *attach; /* addresses of peers, in any order; they need
                                * not be up yet; the node skips its own.
                                * "3@tcp://…": only node 3 may answer there;
                                * required with keys */
    size_t n_attach;
    enum ls_topology topology;

    /* The world: start returns when this many nodes, itself included, are
     * ready: 1 … 4096; 1 waits for nobody. `members`, if given, holds exactly
     * their ids (world_size of them): no other node counts, and errors can name
     * those that are missing. */
    uint32_t world_size;
    const uint32_t *members;
    /* The most nodes that may be in the world at once, itself included. They
     * may join at any time; one more is refused. At most 4096. 0: world_size,
     * but no other limit if that is 1 or the topology is alone. */
    uint32_t world_max;

    uint64_t config_hash; /* nodes with different ones refuse each other; 0:
                           * accepts any */

    int start_timeout_ms; /* default 10000; 0: only look */
    int heartbeat_ms;     /* default 250, 10 … 60000 */
    int silence_ms;       /* a peer not heard for this long is lost; default
                           * 2000, at least 2 heartbeats */
    int linger_ms;        /* how long stop waits for the last messages to leave;
                           * default 200 */

    /* Called every 2 s while start waits for others, with who is missing in
     * words: "node 2, 3". NULL: nobody is told. It must not wait. Borrow:
     * until start returns. Thread: that of start. */
    void (*waiting)(void *self, const char *missing);
    void *waiting_self;

    /* Flow control: how much each peer may have in transit to this node, or
     * waiting here to be handled. */
    uint32_t window_messages; /* default 16384, 16 … 1,048,576 */
    size_t window_bytes;      /* default 8 MiB; 2 MiB to 64 GiB */
    size_t max_payload_bytes; /* largest event; default 64 MiB, at most 1 GiB */
    /* Payloads of 64 KiB and more that are delivered as BLOCK or RELIABLE, and
     * such bodies of calls, go to nodes of this host, of the same user, through
     * memory of so many bytes, which they read in place (event.h, call.h); its
     * pages are taken as they are needed.
     * So do the messages of barriers, short events that come alone, and calls,
     * beside it. 0: never, and from nobody. At
     * most 64 GiB; default 64 MiB. docs/shared-memory.md#payloads */
    size_t shared_bytes;
    int emit_timeout_ms; /* how long an emit delivered as BLOCK or RELIABLE
                          * waits for the slowest listener; default
                          * 10000 */

    /* Who may speak to this node (lockstep/security.h). NULL: PLAIN, with the
     * job's secret on this host, ls_security_job(); except over inproc:// and
     * in a simulation, where the sender is known. Borrow: as long as the
     * node. */
    ls_security *security;
    bool insecure; /* no node has to prove who it is, and tcp beyond loopback is
                    * allowed: for networks that only you use */
    /* Whether the node with this id may be what it says it is, with these roles
     * and labels. One that may not is refused (LS_REFUSAL_IDENTITY), and told
     * so. NULL: all that its certificate allows, if it has one. It must not
     * wait. Borrow: as long as the node. Thread: the node's own. */
    bool (*suits)(void *self, uint32_t id, const char *role,
                  const char *labels);
    void *suits_self;

    ls_runtime *runtime; /* NULL: ls_runtime_threads(). Borrow */
    ls_trace
        *trace; /* records what this node, its tasks and its barriers do;
                 * NULL: nothing is recorded. Borrow: as long as the node */
    const struct ls_event_gate *gate; /* NULL: none. Borrow, alike */
};

LS_API void ls_node_options_init(struct ls_node_options *options);

/* Check the options and make a node that is not yet on any network.
 * out:    own; NULL after an error; give it to ls_node_destroy().
 * Errors: LS_EINVAL an option is out of its range: the text names it;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_node_create(ls_node **out,
                                      const struct ls_node_options *options);

/* Bind, attach, and wait until the world is formed: `world_size` distinct ids
 * are present, and each pair hears each other. From then on every node hears
 * all that the others emit. Handlers may run before this returns.
 * Errors: LS_EADDRINUSE; LS_EINVAL the endpoint is no address of this host;
 *         LS_EIO it cannot be bound, as for want of the folder of ipc;
 *         LS_EUNREACHABLE the world was not formed within start_timeout_ms:
 *         the text names the nodes that are missing, those that were here and
 *         have gone, and why, the addresses that did not answer, and those that
 *         were refused and why; LS_EEXIST a living node
 *         has this id: the text names both endpoints; LS_EMISMATCH the only
 *         answers came from another job, version or configuration, or its
 *         certificate, here, at an address of `attach`, or at one of `members`,
 *         does not give it its role and labels, or `suits` there does not let
 *         it have them: the text says where; LS_ECLOSED ls_node_stop() came
 *         first; LS_ELIMIT the world already has world_max
 *         members: the text names the node that says so; LS_ESTATE started
 *         before, or in the child of a process that had nodes open when it
 *         forked.
 *         After an error call only stop and destroy. */
LS_MUST_USE LS_API int ls_node_start(ls_node *node);

/* ls_node_start() in two halves, for programs that need the endpoint in
 * between: open binds and begins to answer, join attaches and waits. */
LS_MUST_USE LS_API int ls_node_open(ls_node *node);
LS_MUST_USE LS_API int ls_node_join(ls_node *node);

/* Mark an object, such as a task, that uses the node and must be destroyed
 * before it: until it lets go, ls_node_destroy() refuses. */
LS_API void ls_node_hold(ls_node *node);
LS_API void ls_node_let_go(ls_node *node);

/* Say farewell with `reason` (a status: LS_OK or why it ends), wait up to
 * linger_ms for unsent messages, close everything and join the threads. Waiting
 * calls return LS_ECLOSED. Waits for running handlers; none runs afterwards.
 * While another thread opens or stops the node, it waits for that; calling it
 * again has no effect.
 * Errors: LS_ESTATE called in a handler or a channel's op, where it would
 *         deadlock: nothing was done. */
LS_API int ls_node_stop(ls_node *node, int reason);

/* Stop if necessary, and free, once no other thread is in a function of this
 * node, but for ls_node_stop(). NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE called in a handler or a channel's op, or an object that
 *         uses this node still exists: a task, a waiter, or one with a channel,
 *         such as a barrier or calls; the text names it. Nothing was done and
 * *node is unchanged: destroy that object first. */
LS_API int ls_node_destroy(ls_node **node);

LS_API uint32_t ls_node_id(const ls_node *node);
LS_API const char *ls_node_job(const ls_node *node);
LS_API const char *ls_node_role(const ls_node *node);
LS_API const char *ls_node_labels(const ls_node *node);
/* Whether its role, or one of its labels, is this word: whom the group of a
 * barrier means (barrier.h). */
LS_API bool ls_node_is_in(const ls_node *node, const char *group);
LS_API enum ls_topology ls_node_topology(const ls_node *node);
LS_API uint32_t ls_node_world_size(const ls_node *node);
/* The most nodes that may be in the world at once. */
LS_API uint32_t ls_node_world_max(const ls_node *node);
/* 0 before open. It changes when another node has declared this one lost and it
 * rejoins (docs/concepts.md): all others are then reported lost and ready
 * again, and ls_node_take_error() returns LS_ELOST. */
LS_API uint64_t ls_node_incarnation(const ls_node *node);
/* Nodes that have the same number here are on one host, and share memory
 * (docs/shared-memory.md#how-two-nodes-become-a-pair); so they can be told from
 * the others. 0: this node shares none with another process: before open, with
 * `shared_bytes` 0, in a star, over inproc://, or where there is no folder for
 * it. */
LS_API uint64_t ls_node_host(const ls_node *node);
/* What others dial; "" before open. Borrow: as long as the node. */
LS_API const char *ls_node_endpoint(const ls_node *node);
LS_API ls_runtime *ls_node_runtime(const ls_node *node);
LS_API ls_trace *ls_node_trace(const ls_node *node); /* NULL: it has none */

enum ls_member_state {
    LS_MEMBER_SEEN,  /* heard of, not ready in both directions yet */
    LS_MEMBER_READY, /* hears this node and is heard; or its connection has just
                      * broken, and is being restored */
    LS_MEMBER_LEFT,  /* said farewell */
    LS_MEMBER_LOST   /* its process is gone, or it fell silent */
};

struct ls_member {
    uint32_t id;
    uint64_t incarnation;
    uint64_t host; /* as ls_node_host() there */
    enum ls_member_state state;
    int reason;       /* LEFT: the status it left with. LOST: LS_ELOST its
                       * process is gone, or a new incarnation replaced it;
                       * LS_ETIMEDOUT it fell silent; LS_EPROTO it broke the
                       * protocol and was cut off; LS_ESTATE a leaf that had
                       * declared this hub lost */
    int64_t heard_at; /* ls_now() when it was last heard; 0: never */
    char role[32];
    char labels[64];
    char endpoint[LS_ENDPOINT_MAX + 1];
};

/* Copy up to `capacity` members, ordered by id, without this node. Members that
 * left or were lost stay listed until a new incarnation replaces them. Returns
 * how many there are. */
LS_API size_t ls_node_members(ls_node *node, struct ls_member *out,
                              size_t capacity);

/* One member. Errors: LS_ENOENT the id is unknown, or this node's. */
LS_MUST_USE LS_API int ls_node_member(ls_node *node, uint32_t id,
                                      struct ls_member *out);
LS_API const char *ls_member_state_name(enum ls_member_state state); /* "left"*/

/* Why input from outside was refused. */
enum ls_refusal_kind {
    LS_REFUSAL_STRANGER, /* not let in: it could not prove who it is */
    LS_REFUSAL_FORM,     /* bytes that break docs/wire-format.md */
    LS_REFUSAL_WORLD,    /* another job, version or configuration, an id that is
                          * taken, or one node too many */
    LS_REFUSAL_IDENTITY, /* it speaks as another node */
    LS_REFUSAL_STALE,    /* from an incarnation that has ended */
    LS_REFUSAL_WINDOW,   /* it exceeded its window and was cut off */
    LS_REFUSAL_ACCESS,   /* an event that it may not emit */
    LS_REFUSAL_N_KINDS
};
LS_API const char *ls_refusal_kind_name(enum ls_refusal_kind kind);

/* One kind of refusal by one offender. */
struct ls_refusal {
    enum ls_refusal_kind kind;
    char who[64];  /* "node 7", or an address; "": unknown */
    char why[160]; /* of the last refusal */
    uint64_t n;
    int64_t last_at; /* ls_now() of the last one */
};

/* Copy up to `capacity` refusals; returns how many there are. With many
 * offenders only the worst are kept; `refused` of ls_node_stats() counts all.
 */
LS_API size_t ls_node_refusals(ls_node *node, struct ls_refusal *out,
                               size_t capacity);

/* Call fn when a member becomes ready, leaves or is lost, beginning with those
 * that are ready now (a member that becomes ready meanwhile may be reported
 * twice). One function per `self`; fn NULL removes it, and on return it no
 * longer runs.
 * fn:     runs on the dispatch thread, in order with events: what a member
 *         emitted before it left is handled first. What there is no memory to
 *         tell is LS_ENOMEM of ls_node_take_error().
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_node_on_member(ls_node *node,
                  void (*fn)(void *self, const struct ls_member *member),
                  void *self);

/* The first error since the last call, or LS_OK: an error that a handler
 * returned, with node, event and handler in its text; or LS_ELOST: another node
 * declared this one lost, and it has rejoined. The text becomes
 * ls_error_text(). */
LS_MUST_USE LS_API int ls_node_take_error(ls_node *node);

#ifdef __cplusplus
}
#endif

#endif
