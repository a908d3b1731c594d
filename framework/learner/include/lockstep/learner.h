/* learner.h - threads that load batches while others are trained.
 *
 * Batches are put into a queue. Loaders take them from there, each when it has
 * a stack to load into; the learner thread trains what is loaded, each stack
 * for some passes, and puts a result for each into another queue. So the next
 * batch is loaded while this one is trained, on any number of devices at once.
 *
 *     put --> in queue --> loader --> ready --> learner --> out queue --> get
 *                            ^                     |
 *                            +------- idle <-------+
 *
 * A stack is in one state at any time:
 *
 *     idle --> loading --> ready --> training --> idle
 *          a loader     its load     the ring        its last pass
 *          has a batch  is done      takes it        is over
 *
 * A batch has a part for each device; a pass computes all parts at the same
 * time, then applies what came of them. Which stack is trained next is said by
 * a minibatch ring (lockstep/minibatch_ring.h).
 *
 * With no loaders, the learner thread loads by itself, between its passes:
 * nothing overlaps, and what is computed follows from the order of the puts
 * alone.
 *
 * What fails (a load, a compute, an apply) ends the learner: every call that
 * waits, or comes later, fails with what it said and who it was, "learner:
 * loader 2: …". What was accepted is always counted: as trained, as dropped by
 * the full queue, or as discarded by the end.
 * Nothing is allocated for a batch or a pass. Thread: any.
 * Source: docs/learner.md. */
#ifndef LOCKSTEP_LEARNER_H
#define LOCKSTEP_LEARNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/device.h"
#include "lockstep/learner_info.h"
#include "lockstep/queue.h"
#include "lockstep/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_learner ls_learner;

/* What is put: `data` is whatever the ops know. */
struct ls_learner_batch {
    void *data;           /* own, until the learner drops it */
    uint64_t env_steps;   /* that it was collected in */
    uint64_t agent_steps; /* the same, for each agent */
};

/* Where an op works. */
struct ls_learner_place {
    size_t stack;            /* 0 … stacks - 1 */
    size_t device;           /* 0 … n_devices - 1 */
    ls_device_stack *memory; /* borrow; the part of this stack on this device;
                              * NULL without devices */
    const struct ls_learner_batch *batch; /* borrow: until the op returns */
};

/* All but compute may be NULL. What fails leaves an ls_error(). */
struct ls_learner_ops {
    /* Bring the batch's part for place->device there. It may leave an upload
     * under way: the learner waits for it before the stack is ready. On a
     * loader's thread, device after device; several loaders at the same time,
     * each with a stack of its own. */
    int (*load)(void *self, const struct ls_learner_place *place);
    /* Train on one part. pass: 0 for the first one over this batch. info:
     * empty; for what it has to say. For device 0 on the learner thread, for
     * each other one on a thread of its own, at the same time; always the same
     * thread for one device, bound to it by ls_device_bind_thread().
     * LS_EABORTED says that it gave up because another device's has failed:
     * that one's error is told. */
    int (*compute)(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info);
    /* Make new weights of what all devices have computed. On the learner
     * thread. info: theirs, reduced; may be added to. */
    int (*apply)(void *self, unsigned pass, ls_learner_info *info);
    /* Release a batch that was trained, dropped or discarded. On any thread,
     * that of a put included; never under a lock. */
    void (*drop)(void *self, struct ls_learner_batch *batch);
};

struct ls_learner_options {
    const struct ls_learner_ops *ops; /* borrow, and self, until destroy */
    void *self;

    size_t queue;                    /* batches that wait; 0: 16 */
    enum ls_when_full when_full;     /* when they are that many */
    size_t out_queue;                /* results that wait; 0: 16 */
    enum ls_when_full out_when_full; /* block: the learner waits, too */

    size_t stacks;         /* 0: 1 */
    size_t loaders;        /* threads; 0: the learner thread loads */
    unsigned passes;       /* over each batch; 0: 1 */
    unsigned first_passes; /* over the first one: see minibatch_ring.h */
    int ready_timeout_ms;  /* how long the learner waits for a batch, before it
                            * notes that there is none; 0: 1000 */
    int held_timeout_ms;   /* the same while it holds one with passes left,
                            * before it trains that again; 0:
                            * ready_timeout_ms; LS_NO_WAIT */

    ls_device *const *devices; /* borrow, until destroy; NULL: there are parts,
                                * but no stacks of a device */
    size_t n_devices;          /* 0: 1 */
    size_t part_bytes;         /* of each part, as capacity of its stack; >= 1
                                * with devices */
    size_t batch_size;         /* samples in a batch; 0: unknown. Each device
                                * trains as many of them as any other */
};

/* Start a learner: its threads run when this returns.
 * out:     own; NULL after an error; give it to ls_learner_destroy().
 * options: copied, but for what says otherwise.
 * Errors:  LS_EINVAL no ops or compute, a when_full, first_passes over passes,
 *          part_bytes 0 with devices, batch_size under n_devices or not
 *          divisible by it; LS_ENOMEM; LS_EAGAIN no room for a thread; those
 *          of ls_device_stack_create(). */
LS_MUST_USE LS_API int
ls_learner_create(ls_learner **out, ls_runtime *runtime,
                  const struct ls_learner_options *options);

/* Put a batch, waiting wait_ms for room (when_full block).
 * batch:  moved: its data is set to NULL; on failure still yours.
 * Errors: LS_EAGAIN not ready: full (when_full fail, or block with 0);
 *         LS_ETIMEDOUT not ready: full all the time; LS_ECLOSED stopped; what
 *         the learner failed with. */
LS_MUST_USE LS_API int ls_learner_put(ls_learner *learner,
                                      struct ls_learner_batch *batch,
                                      int wait_ms);

/* What one pass over one batch came to. */
struct ls_learner_result {
    uint64_t env_steps;    /* of the batch */
    uint64_t agent_steps;  /* of the batch */
    unsigned pass;         /* 0: the first one over it */
    bool last;             /* there will be no other pass over it */
    ls_learner_info *info; /* own: yours. Over all devices. NULL: not wanted */
};

/* Take the oldest result.
 * out:    out->info, when not NULL, loses what it held.
 * Errors: LS_EAGAIN none (with 0); LS_ETIMEDOUT; when there are no more:
 *         LS_ECLOSED stopped; what the learner failed with. */
LS_MUST_USE LS_API int
ls_learner_get(ls_learner *learner, struct ls_learner_result *out, int wait_ms);

/* Whether a pass has made new weights since this was last true. Of several who
 * ask, one is told. */
LS_API bool ls_learner_take_weights_updated(ls_learner *learner);

/* Wait until that would be true, and take it.
 * Errors: LS_EAGAIN not now (with 0); LS_ETIMEDOUT; LS_ECLOSED; what the
 *         learner failed with. */
LS_MUST_USE LS_API int ls_learner_await_weights(ls_learner *learner,
                                                int wait_ms);

struct ls_learner_counts {
    /* Batches: put = trained + dropped + discarded + those under way. */
    uint64_t put;       /* accepted */
    uint64_t refused;   /* not accepted */
    uint64_t trained;   /* with all their passes */
    uint64_t dropped;   /* pushed out of the queue by a newer one */
    uint64_t discarded; /* left by the end, or by what failed */
    size_t queued;      /* wait to be loaded */

    uint64_t steps;     /* passes that were trained */
    uint64_t not_ready; /* times that there was nothing to train */

    /* Results: steps = got + results_dropped + those under way. */
    uint64_t got;             /* by ls_learner_get() */
    uint64_t results_dropped; /* by out_when_full, or since it was stopped */

    /* Where the time went, in ns since the start, each of all threads that do
     * it together. */
    int64_t dequeue_ns;   /* waiting for batches */
    int64_t load_ns;      /* loading */
    int64_t overlap_ns;   /* of load_ns: while another batch was trained */
    int64_t load_wait_ns; /* the learner, waiting for what is loaded */
    int64_t grad_ns;      /* training */
};

LS_API void ls_learner_counts(ls_learner *learner,
                              struct ls_learner_counts *out);

/* LS_OK, also when it was stopped; or what it failed with. */
LS_MUST_USE LS_API int ls_learner_check(ls_learner *learner);

/* Figures of the last steps: means over 10 runs, and the queue's size after
 * each of 50 steps. */
struct ls_learner_metrics {
    struct ls_window_summary learner_queue; /* batches that waited */
    ls_learner_info *learner; /* own: yours; may be NULL. Over the devices
                               * and passes of the batch trained last */
    double learner_grad_time_ms;
    double learner_load_time_ms;
    double learner_load_wait_time_ms;
    double learner_dequeue_time_ms;
};

/* A step whose result was got is in them.
 * out:    all is written; but out->learner when it is not NULL and overwrite
 *         is set, else it is left as it is.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_learner_metrics(ls_learner *learner,
                                          struct ls_learner_metrics *out,
                                          bool overwrite);

/* Write the metrics as {"info": {"learner_queue": {size_count, size_mean,
 * size_std, size_quantiles}, "learner": {…}, "timing_breakdown":
 * {learner_grad_time_ms, learner_load_time_ms, learner_load_wait_time_ms,
 * learner_dequeue_time_ms}}}. Of an empty window the quantiles are []. */
LS_API void ls_learner_metrics_write(const struct ls_learner_metrics *metrics,
                                     ls_writer *writer);

/* End all threads, in the middle of a batch if need be; whoever waits is
 * woken. What was accepted and not trained is discarded. Results stay.
 * Again: LS_OK. One at a time, and never from an op.
 * Errors: LS_ETIMEDOUT: an op did not return within wait_ms; the text names
 *         its thread; ask again, or destroy. */
LS_MUST_USE LS_API int ls_learner_stop(ls_learner *learner, int wait_ms);

/* Stop, for as long as it takes, and free it. Nobody else may be in a call.
 * NULL and a pointer to NULL are fine. */
LS_API void ls_learner_destroy(ls_learner **learner);

#ifdef __cplusplus
}
#endif

#endif
