/* node.h - a member of a world: it binds one endpoint, attaches to its peers,
 * and knows who is there.
 *
 * Life: create, register handlers (event.h), start, work, stop, destroy. A node
 * is an object; one process may hold a hundred of them.
 *
 * Presence is a subscription: what a node listens to is in force at a peer
 * before the peer sees it as present, so nothing that is emitted after
 * ls_node_start() is missed by anyone in the world, and when a connection goes
 * the peer knows at once. How: docs/wire-format.md and docs/concepts.md.
 *
 * Identity: an id is chosen by the user and unique among the living; the
 * incarnation, a random number, tells one life of a node from the next. Who
 * connects proves his id (lockstep/security.h).
 *
 * fork(2): what was made before belongs to the parent, which goes on as ever.
 * In the child each call of it that could wait or change something returns
 * LS_ESTATE, and figures are 0 (docs/concepts.md).
 * Thread: any, unless a function says otherwise. */
#ifndef LOCKSTEP_NODE_H
#define LOCKSTEP_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"
#include "lockstep/security.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_node ls_node;

enum ls_topology {
    LS_TOPOLOGY_MESH, /* everyone is attached to everyone; one address of a
                       * member is enough to find them all */
    LS_TOPOLOGY_STAR, /* leaves attach to the hub only, which relays. The hub
                       * is the node that is given nothing to attach to */
    LS_TOPOLOGY_ALONE /* attached to whom it is told, and who attaches to it */
};

/* Longest job name, endpoint, and event name, in bytes without the NUL. */
#define LS_JOB_MAX      64
#define LS_ENDPOINT_MAX 255
#define LS_EVENT_MAX    128

/* Everything is copied by ls_node_create(), but for the runtime. Begin with
 * ls_node_options_init(), then change what differs. */
struct ls_node_options {
    const char *job;    /* 1 … 64 of [A-Za-z0-9._-]; the same in all members;
                         * default "lockstep" */
    uint32_t id;        /* unique in the world, any value; default 0 */
    const char *role;   /* what it does, "learner"; at most 31 of
                         * [A-Za-z0-9._,-]; default "" */
    const char *labels; /* what it is fit for, "fast,gpu": words between commas;
                         * at most 63 of [A-Za-z0-9._,-]; default "" */

    /* Where to be reached:
     *   tcp://127.0.0.1:21500        this port
     *   tcp://127.0.0.1:21500-21999  the first free one of these
     *   tcp://0.0.0.0:21500          every interface; then set `advertise`
     *   ipc:///run/user/1000/x.ipc   a socket file, removed at stop
     *   inproc://name                within this process
     * NULL: tcp://127.0.0.1:21500-21999. */
    const char *bind;
    const char *advertise;     /* what others dial; NULL: what was bound */
    const char *const *attach; /* addresses of peers, in any order, up or not
                                * yet; one's own is passed over. "3@tcp://…"
                                * says which node is to answer there, and
                                * nobody else may; with keys it is needed */
    size_t n_attach;
    enum ls_topology topology;

    /* The world: start returns when so many nodes, itself included, are ready;
     * 1 waits for nobody. `members`, when given, are exactly their ids
     * (world_size of them): no other counts, and errors can name who is
     * missing. */
    uint32_t world_size;
    const uint32_t *members;
    /* So many may be in the world at once, itself included; they may come at
     * any time, and one more is refused. 0: world_size, or as many as come
     * where that is 1 or the topology is alone. */
    uint32_t world_max;

    uint64_t config_hash; /* differing ones refuse each other; 0: any */

    int start_timeout_ms; /* default 10000; 0: it only looks */
    int heartbeat_ms;     /* default 250, 10 … 60000 */
    int silence_ms;       /* a peer unheard of for so long is lost; default
                           * 2000, at least 2 heartbeats */
    int linger_ms;        /* stop waits so long for the last messages to leave;
                           * default 200 */

    /* Flow control: what each peer may have under way to this node before it
     * handled any of it. */
    uint32_t window_messages; /* default 16384, 16 … 1,048,576 */
    size_t window_bytes;      /* default 8 MiB, at least 2 MiB */
    size_t max_payload_bytes; /* largest event; default 64 MiB, at most 1 GiB */
    int emit_timeout_ms;      /* how long an emit that is delivered as block or
                               * reliable waits for the slowest listener;
                               * default 10000 */

    /* Who may speak to this node (lockstep/security.h). NULL: PLAIN, with the
     * secret that the job has on this host, ls_security_job(); but in inproc://
     * and in a simulation, where it is known who speaks. Borrow: as long as the
     * node. */
    ls_security *security;
    bool insecure; /* nobody is asked who he is, and tcp beyond loopback is
                    * allowed: for networks that you alone are on */

    ls_runtime *runtime; /* NULL: ls_runtime_threads(). Borrow */
};

LS_API void ls_node_options_init(struct ls_node_options *options);

/* Check the options and make a node that is not yet on any network.
 * out:    own; NULL after an error; give it to ls_node_destroy().
 * Errors: LS_EINVAL an option is out of its range: the text names it;
 *         LS_ENOMEM. */
LS_MUST_USE LS_API int ls_node_create(ls_node **out,
                                      const struct ls_node_options *options);

/* Bind, attach, and wait until the world is formed: `world_size` distinct ids
 * present, each hearing and heard: from then on each hears all that the others
 * emit. Handlers may run before it returns.
 * Errors: LS_EADDRINUSE; LS_EINVAL the endpoint cannot be bound;
 *         LS_EUNREACHABLE the world was not formed within start_timeout_ms:
 *         the text names who is missing, which addresses did not answer, and
 *         who was refused and why; LS_EEXIST a living node has this id: both
 *         endpoints are named; LS_EMISMATCH the only answers came from another
 *         job, version or configuration; LS_ECLOSED ls_node_stop() came first;
 *         LS_ELIMIT the world has world_max members already: the text names
 *         who says so; LS_ESTATE started before; or in the child of a process
 *         that had nodes open when it was forked.
 *         After an error only stop and destroy are left to call. */
LS_MUST_USE LS_API int ls_node_start(ls_node *node);

/* ls_node_start() in two halves, for programs that must know the endpoint in
 * between: open binds and begins to answer, join attaches and waits. */
LS_MUST_USE LS_API int ls_node_open(ls_node *node);
LS_MUST_USE LS_API int ls_node_join(ls_node *node);

/* For what is made for a node and must be destroyed before it, as a task: until
 * it lets go again, ls_node_destroy() refuses. */
LS_API void ls_node_hold(ls_node *node);
LS_API void ls_node_let_go(ls_node *node);

/* Say farewell with `reason` (a status: LS_OK or why it ends), wait up to
 * linger_ms for what is unsent, close everything and join the threads. Waiting
 * calls return LS_ECLOSED. Handlers that run are waited for; none runs
 * afterwards. Again: nothing.
 * Errors: LS_ESTATE from a handler or a channel's op, which could only wait for
 *         itself: nothing was done. */
LS_API int ls_node_stop(ls_node *node, int reason);

/* Stop if need be, and free. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE from a handler or a channel's op, or something that was
 *         made for this node is still there: a task, or what has a channel, as
 *         a barrier and calls; the text says which. Nothing was done, and *node
 *         is as it was: destroy that first. */
LS_API int ls_node_destroy(ls_node **node);

LS_API uint32_t ls_node_id(const ls_node *node);
LS_API const char *ls_node_job(const ls_node *node);
LS_API const char *ls_node_role(const ls_node *node);
LS_API const char *ls_node_labels(const ls_node *node);
LS_API enum ls_topology ls_node_topology(const ls_node *node);
LS_API uint32_t ls_node_world_size(const ls_node *node);
/* How many may be in the world at once. */
LS_API uint32_t ls_node_world_max(const ls_node *node);
/* 0 before open. It changes when this node was declared lost by another and
 * rejoins (docs/concepts.md): then all others are told as lost and ready again,
 * and ls_node_take_error() says LS_ELOST. */
LS_API uint64_t ls_node_incarnation(const ls_node *node);
/* What others dial; "" before open. Borrow: as long as the node. */
LS_API const char *ls_node_endpoint(const ls_node *node);
LS_API ls_runtime *ls_node_runtime(const ls_node *node);

enum ls_member_state {
    LS_MEMBER_SEEN,  /* heard of, not ready both ways yet */
    LS_MEMBER_READY, /* hears this node and is heard; or its connection broke a
                      * moment ago, and it is waited for */
    LS_MEMBER_LEFT,  /* said farewell */
    LS_MEMBER_LOST   /* its process is gone, or it fell silent */
};

struct ls_member {
    uint32_t id;
    uint64_t incarnation;
    enum ls_member_state state;
    int reason;       /* LEFT: the status it left with; LOST: LS_ELOST when
                       * its process is gone, or it was replaced by a new
                       * incarnation; LS_ETIMEDOUT for silence; LS_EPROTO:
                       * it broke the protocol, and was cut off; LS_ESTATE: a
                       * leaf that had declared this hub lost */
    int64_t heard_at; /* ls_now() when it was last heard; 0: never */
    char role[32];
    char labels[64];
    char endpoint[LS_ENDPOINT_MAX + 1];
};

/* Copy up to `capacity` members, ordered by id, this node not among them;
 * those that left or were lost stay listed, until a new incarnation of them
 * is there. Returns how many there are. */
LS_API size_t ls_node_members(ls_node *node, struct ls_member *out,
                              size_t capacity);

/* One of them. Errors: LS_ENOENT nothing is known of it, or it is this node. */
LS_MUST_USE LS_API int ls_node_member(ls_node *node, uint32_t id,
                                      struct ls_member *out);
LS_API const char *ls_member_state_name(enum ls_member_state state); /* "left"*/

/* Why something that came from outside was refused. */
enum ls_refusal_kind {
    LS_REFUSAL_STRANGER, /* it was not let in: it could not say who it is */
    LS_REFUSAL_FORM,     /* bytes that break docs/wire-format.md */
    LS_REFUSAL_WORLD,    /* of another job, version or configuration, an id that
                          * is taken, or one too many */
    LS_REFUSAL_IDENTITY, /* it speaks as another */
    LS_REFUSAL_STALE,    /* of a life that has ended */
    LS_REFUSAL_WINDOW,   /* more than it was granted: it was cut off */
    LS_REFUSAL_ACCESS,   /* an event that it may not emit */
    LS_REFUSAL_N_KINDS
};
LS_API const char *ls_refusal_kind_name(enum ls_refusal_kind kind);

/* One kind of refusal by one offender. */
struct ls_refusal {
    enum ls_refusal_kind kind;
    char who[64];  /* "node 7", or an address; "": it cannot be named */
    char why[160]; /* the last time */
    uint64_t n;
    int64_t last_at; /* ls_now() of the last one */
};

/* Copy up to `capacity` of them; returns how many there are. Of many offenders
 * only the worst are kept; `refused` of ls_node_stats() counts all. */
LS_API size_t ls_node_refusals(ls_node *node, struct ls_refusal *out,
                               size_t capacity);

/* Be told when a member becomes ready, leaves or is lost; first of those that
 * are ready now (one that becomes so meanwhile may be told twice). One function
 * may be set per `self`; fn NULL takes it away, and returns only when it does
 * not run any more. fn:     runs on the dispatch thread, in order with events:
 * what a member emitted before it left is handled before. Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int
ls_node_on_member(ls_node *node,
                  void (*fn)(void *self, const struct ls_member *member),
                  void *self);

/* The first error since the last call, or LS_OK: one that a handler returned,
 * with node, event and handler in its text, or LS_ELOST: another node declared
 * this one lost, and it has rejoined. The text becomes ls_error_text(). */
LS_MUST_USE LS_API int ls_node_take_error(ls_node *node);

#ifdef __cplusplus
}
#endif

#endif
