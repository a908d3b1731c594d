/* health.h - whether the nodes of a job on this host are ready and moving.
 *
 * A node answers on an abstract unix socket, which takes no file and goes with
 * its process; only its own user, and root, may ask. The name follows from the
 * user, the job, its `out` as an absolute path, and the node's id. */
#ifndef LOCKSTEP_HEALTH_H
#define LOCKSTEP_HEALTH_H

#include "lockstep/record.h"

#include "plan.h"

enum health_state {
    HEALTH_STARTING, /* it waits for its world */
    HEALTH_RUNNING,
    HEALTH_ENDING, /* its work is over */
    HEALTH_N_STATES
};

struct health {
    int64_t state;
    int64_t iterations; /* done, in this life of the node */
    int64_t unmoved_ms; /* since an ask first found them as many; 0 for the
                         * first ask */
    bool idle;          /* it waits for what may never come, such as work */
    char at[256];       /* after "it is": "in step collect" */
};

/* Answers until it is closed, on a thread of its own.
 * look:   fills in all but unmoved_ms; called from that thread.
 * out:    own; written on success only; give it to health_desk_close().
 * Errors: LS_EADDRINUSE another process runs this node; those of socket(2) and
 *         ls_thread_spawn(). */
typedef struct health_desk health_desk;
LS_MUST_USE int health_desk_open(health_desk **out, const struct plan *plan,
                                 uint32_t id,
                                 void (*look)(void *self, struct health *out),
                                 void *self);
void health_desk_close(health_desk **desk);

/* Ask a node of this host.
 * Errors: LS_ENOENT it does not run here; LS_ETIMEDOUT no answer in wait_ms;
 *         LS_EIO its socket belongs to another user; LS_EPROTO. */
LS_MUST_USE int health_ask(struct health *out, const struct plan *plan,
                           uint32_t id, int wait_ms);

#endif
