/* health.h - what the nodes of a job on this host are at.
 *
 * A node answers on an abstract unix socket, which takes no file and goes with
 * its process; only its own user, and root, may ask. The name follows from the
 * user, the job, its `out` as an absolute path (plan_place()), and the node's
 * id. */
#ifndef LOCKSTEP_HEALTH_H
#define LOCKSTEP_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/record.h"

enum health_state {
    HEALTH_STARTING, /* it waits for its world */
    HEALTH_RUNNING,
    HEALTH_ENDING, /* its work is over */
    HEALTH_N_STATES
};

/* Another node, as the one that is asked sees it. */
struct health_peer {
    uint32_t id;
    char state[16];     /* ls_member_state_name() */
    char role[32];      /* "": it has not said */
    char endpoint[257]; /* where it listens; alike */
    int64_t heard_ms;   /* ago; -1: never */
    int64_t awaited_ns; /* of waited_ns: until it entered, as the last */
};

/* What a node says. Fields that an earlier version lacks are as
 * ls_record_reset() has them. */
struct health {
    int64_t state;
    int64_t iterations; /* done, in this life of the node */
    int64_t unmoved_ms; /* since an ask first found them as many; 0 for the
                         * first ask */
    bool idle;          /* it waits for what may never come, such as work */
    char at[256];       /* after "it is": "in step collect" */

    char run[17]; /* the name of its run's folder; "": it does not know */
    char role[32];
    char host[65];
    int64_t pid;
    uint64_t incarnation; /* 0: it listens not yet */
    int64_t clock_ns;     /* its clock, for rates */
    int64_t running_ns;   /* since its world was whole */
    char step[256];       /* "": it is in none */
    int64_t step_ns;      /* since that began; -1: it is not known */
    int64_t env_step;     /* of the run, as it counts them; -1: it does not */
    uint64_t events;      /* that it emitted, or that were handled */
    uint64_t lost;        /* missed, not acknowledged, or lost with a peer */
    uint64_t dropped;
    char losses[512];  /* a line for each event that lost some */
    int64_t waited_ns; /* at barriers, of the last window_ns; that is 0 when
                        * nothing is recorded */
    int64_t window_ns;
    int64_t waiting_ns; /* of waited_ns: at one that it has not left yet */
    uint32_t slowest;   /* who had no room for what it emits longest, */
    int64_t slowest_ns; /* and for how long, in all; 0: nobody */
    struct health_peer *peers; /* own; n_peers */
    size_t n_peers;
};

/* Free what it owns. */
void health_clear(struct health *health);

/* Answers until it is closed, on a thread of its own.
 * look:   fills in all but unmoved_ms, pid, host and clock_ns; called from that
 *         thread; what it makes is then owned by the desk.
 * out:    own; written on success only; give it to health_desk_close().
 * Errors: LS_EADDRINUSE another process runs this node; those of socket(2) and
 *         ls_thread_spawn(). */
typedef struct health_desk health_desk;
LS_MUST_USE int health_desk_open(health_desk **out, uint64_t place, uint32_t id,
                                 void (*look)(void *self, struct health *out),
                                 void *self);
void health_desk_close(health_desk **desk);

/* What came of an ask. */
struct health_answer {
    int status; /* LS_OK; LS_ENOENT it does not run here; LS_ETIMEDOUT no answer
                 * in wait_ms; LS_EIO its socket belongs to another user;
                 * LS_EPROTO what came is not an answer */
    char text[LS_ERROR_TEXT_MAX];
    struct health health; /* own; empty unless status is LS_OK */
};

/* Ask n nodes of this host, all at the same time.
 * out:    n; give each health to health_clear(). */
void health_ask_all(struct health_answer *out, uint64_t place,
                    const uint32_t *ids, size_t n, int wait_ms);

/* Ask one. Errors: those of an answer. */
LS_MUST_USE int health_ask(struct health *out, uint64_t place, uint32_t id,
                           int wait_ms);

/* Which nodes of a place have a desk on this host, or had one that nobody has
 * closed yet. out: up to `capacity`, each once. Returns how many there are.
 * Source: /proc/net/unix. */
size_t health_find(uint64_t place, uint32_t *out, size_t capacity);

#endif
