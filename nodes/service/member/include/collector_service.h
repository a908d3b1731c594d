/* collector_service.h - a collector, or an evaluator, that takes its works from
 * a coordinator.
 *
 * It serves "resource" and the three collector calls of messages.h, for one
 * work at a time, and gives a task its steps:
 *   await work   until one is held
 *   policy       until a trajectory may be collected, of as many as the last
 *                data call wants; then the committed policy, when it names a
 *                newer one
 *   collect      one trajectory, or one episode of an evaluation
 *   hand over    the data into the store; what is told of it, and of all else
 *                that is ready, as the answer of the open data call, or of the
 *                next one. After an episode of an evaluation the open data call
 *                is told how far it is
 * A work that fails (the plugin's functions) is given back: its open call fails
 * with the text, and the collector serves the next one. When the store fails,
 * the open data call does alone; nothing is collected until the next one.
 * When a work is closed, its open call fails at once, and the close is answered
 * when nothing of the work is under way any more; data that no call has taken
 * is dropped from the store.
 * When its coordinator is lost, it keeps the work, not what nobody has taken,
 * and goes on when the next one calls.
 * Thread: any, unless a function says otherwise. Source: docs/services.md. */
#ifndef LOCKSTEP_COLLECTOR_SERVICE_H
#define LOCKSTEP_COLLECTOR_SERVICE_H

#include "lockstep/call.h"
#include "lockstep/context.h"
#include "lockstep/task.h"

#include "messages.h"
#include "service_options.h"

typedef struct collector_service collector_service;

/* What one trajectory was made of. */
struct collected {
    int64_t steps;
    int64_t episodes;  /* that ended in it */
    double return_sum; /* of those, each as a whole */
    int64_t env_id;
};

/* The bytes of one trajectory. */
struct collected_data {
    ls_node *node; /* borrow: of the collector */
    void *bytes;   /* own; of ls_payload_alloc(); NULL: there are none */
    size_t size;
};
/* Room for so many, in place of those that are there: where the learner reads
 * them, if it is on this host. Errors: those of ls_payload_alloc(). */
LS_MUST_USE int collected_room(struct collected_data *data, size_t size);
void collected_clear(struct collected_data *data);

/* What it does its work with. Called by the task's thread alone. Errors: any
 * status with its text. */
struct collector_ops {
    /* A work begins: episodes that are under way are given up. */
    int (*reset)(void *self);
    int (*load)(void *self, const struct ls_bytes *weights);
    /* unroll_len steps, exploring, as `parts` samples one behind the other, all
     * of the same length in bytes, into collected_room(out). more: how many
     * trajectories are wanted after it, so it may play them beside it; those
     * that another load() or reset() comes before are not for use any more. */
    int (*collect)(void *self, int64_t unroll_len, int64_t parts, int64_t more,
                   struct collected_data *out, struct collected *what);
    /* One whole episode, acting as best it can. */
    int (*evaluate)(void *self, double *episode_return, int64_t *steps);
};

struct collector_service_options {
    struct service_options common;
    const struct collector_ops *ops; /* static */
    void *self;                      /* for ops */
    bool elsewhere; /* the data is kept by node `home`, not by this one */
    uint32_t home;
};

/* Serve the calls. A work may come from then on; it begins when the task runs.
 * out:     own; written on success only; give it to
 *          collector_service_destroy().
 * options: copied.
 * Errors: LS_EEXIST the node has a service already; those
 *         of ls_node_on_member(); LS_ENOMEM: some calls may be served by then,
 *         so close them at once. */
LS_MUST_USE int
collector_service_create(collector_service **out,
                         const struct collector_service_options *options);
/* After the task and ls_rpc_close(), before the node and the store. */
void collector_service_destroy(collector_service **service);

/* Add the steps to a task; its first error is kept by the task. One task at a
 * time. A run ends when it is finished or cancelled; with LS_ELOST when the
 * coordinator was lost for longer than patience_ms, or when this node itself
 * was taken for dead and has rejoined: it may be run again then. When a run
 * ends, the work is given up, and calls are refused until the next run.
 * service: borrow, longer than the task. */
void collector_service_use(collector_service *service, ls_task *task);

struct collector_figures {
    struct service_figures common;
    int64_t trajectories, episodes, steps; /* of all works */
    int64_t samples;                       /* that calls have taken */
    int64_t dropped; /* samples that nobody took, or that could not be kept */
};
void collector_service_figures(collector_service *service,
                               struct collector_figures *out);

#endif
