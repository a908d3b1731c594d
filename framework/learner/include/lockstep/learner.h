/* learner.h - threads that load batches while others are trained.
 *
 * Batches are put into a queue. A loader with a free stack takes the next one
 * and loads it. The learner thread trains each loaded stack for some passes,
 * and puts a result for each pass into another queue. So the next batch is
 * loaded while this one is trained, on any number of devices at once.
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
 * time, then applies the results. A minibatch ring (lockstep/minibatch_ring.h)
 * chooses the stack to train next.
 *
 * Without loaders, the learner thread itself loads between passes: nothing
 * overlaps, and the results depend only on the order of the puts.
 *
 * A failure (of a load, a compute, an apply) ends the learner: every waiting
 * and every later call fails with its error, which names the thread, "learner:
 * loader 2: …". Every accepted batch is counted: as trained, as dropped by the
 * full queue, or as discarded at the end.
 * Nothing is allocated per batch or pass. Thread: any.
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

/* One batch. `data` is whatever the ops expect. */
struct ls_learner_batch {
    void *data;           /* own, until the learner drops it */
    uint64_t env_steps;   /* in which it was collected */
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

/* All but compute may be NULL. An op that fails leaves an ls_error(). */
struct ls_learner_ops {
    /* Load the batch's part for place->device. It may leave an upload in
     * progress: the learner waits for it before the stack is ready. Runs on a
     * loader's thread, one device after another; several loaders run at the
     * same time, each with its own stack. */
    int (*load)(void *self, const struct ls_learner_place *place);
    /* Train on one part. pass: 0 for the first one over this batch. info:
     * empty; add figures to it. Runs for device 0 on the learner thread, for
     * each other device on its own thread, at the same time; always the same
     * thread for one device, bound to it by ls_device_bind_thread().
     * LS_EABORTED means that it gave up because another device's failed; that
     * one's error is reported. */
    int (*compute)(void *self, const struct ls_learner_place *place,
                   unsigned pass, ls_learner_info *info);
    /* Make new weights from what all devices have computed. Runs on the learner
     * thread. info: theirs, reduced; may be added to. */
    int (*apply)(void *self, unsigned pass, ls_learner_info *info);
    /* Release a batch that was trained, dropped or discarded. Runs on any
     * thread, including that of a put; never under a lock. */
    void (*drop)(void *self, struct ls_learner_batch *batch);
};

struct ls_learner_options {
    const struct ls_learner_ops *ops; /* borrow, and self, until destroy */
    void *self;

    size_t queue;                    /* waiting batches; 0: 16 */
    enum ls_when_full when_full;     /* what a put does when it is full */
    size_t out_queue;                /* waiting results; 0: 16 */
    enum ls_when_full out_when_full; /* block: the learner waits, too */

    size_t stacks;         /* 0: 1 */
    size_t loaders;        /* threads; 0: the learner thread loads */
    unsigned passes;       /* over each batch; 0: 1 */
    unsigned first_passes; /* over the first one: see minibatch_ring.h */
    int ready_timeout_ms;  /* how long the learner waits for a batch before it
                            * notes that there is none; 0: 1000 */
    int held_timeout_ms;   /* the same while it holds a batch with passes left,
                            * before it trains that again; 0:
                            * ready_timeout_ms; LS_NO_WAIT */

    ls_device *const *devices; /* borrow, until destroy; NULL: there are parts,
                                * but no device stacks */
    size_t n_devices;          /* 0: 1 */
    size_t part_bytes;         /* capacity of the stack for each part; >= 1
                                * with devices */
    size_t batch_size;         /* samples in a batch; 0: unknown. Devices train
                                * equally many each */
};

/* Start a learner: its threads are running when this returns.
 * out:     own; NULL after an error; give it to ls_learner_destroy().
 * options: copied, except where noted.
 * Errors:  LS_EINVAL no ops or compute, a when_full, first_passes over passes,
 *          part_bytes 0 with devices, batch_size under n_devices or not
 *          divisible by it; LS_ENOMEM; LS_EAGAIN no room for a thread; those
 *          of ls_device_stack_create(). */
LS_MUST_USE LS_API int
ls_learner_create(ls_learner **out, ls_runtime *runtime,
                  const struct ls_learner_options *options);

/* Put a batch, waiting at most wait_ms for room (when_full block).
 * batch:  moved: its data is set to NULL; on failure still yours.
 * Errors: LS_EAGAIN full (when_full fail, or block with 0); LS_ETIMEDOUT full
 *         all the time; LS_ECLOSED stopped; the error that the learner failed
 *         with. */
LS_MUST_USE LS_API int ls_learner_put(ls_learner *learner,
                                      struct ls_learner_batch *batch,
                                      int wait_ms);

/* The result of one pass over one batch. */
struct ls_learner_result {
    uint64_t env_steps;    /* of the batch */
    uint64_t agent_steps;  /* of the batch */
    unsigned pass;         /* 0: the first one over it */
    bool last;             /* the last pass over it */
    ls_learner_info *info; /* own: yours. Over all devices. NULL: not wanted */
};

/* Take the oldest result.
 * out:    out->info, if not NULL, is overwritten.
 * Errors: LS_EAGAIN none (with 0); LS_ETIMEDOUT; once there are no more:
 *         LS_ECLOSED stopped; the error that the learner failed with. */
LS_MUST_USE LS_API int
ls_learner_get(ls_learner *learner, struct ls_learner_result *out, int wait_ms);

/* Whether a pass has made new weights since this last returned true. If several
 * threads ask, one of them gets true. */
LS_API bool ls_learner_take_weights_updated(ls_learner *learner);

/* Wait until that would return true, and take it.
 * Errors: LS_EAGAIN not now (with 0); LS_ETIMEDOUT; LS_ECLOSED; the error that
 *         the learner failed with. */
LS_MUST_USE LS_API int ls_learner_await_weights(ls_learner *learner,
                                                int wait_ms);

struct ls_learner_counts {
    /* Batches: put = trained + dropped + discarded + those in progress. */
    uint64_t put;       /* accepted */
    uint64_t refused;   /* not accepted */
    uint64_t trained;   /* with all their passes */
    uint64_t dropped;   /* pushed out of the queue by a newer one */
    uint64_t discarded; /* left over at the end, or after a failure */
    size_t queued;      /* waiting to be loaded */

    uint64_t steps;     /* passes trained */
    uint64_t not_ready; /* times that there was nothing to train */

    /* Results: steps = got + results_dropped + those in the queue. */
    uint64_t got;             /* by ls_learner_get() */
    uint64_t results_dropped; /* by out_when_full, or after the stop */

    /* Where the time went, in ns since the start; each is the sum over all
     * threads that do it. */
    int64_t dequeue_ns;   /* waiting for batches */
    int64_t load_ns;      /* loading */
    int64_t overlap_ns;   /* of load_ns: while another batch was trained */
    int64_t load_wait_ns; /* the learner, waiting for a loaded batch */
    int64_t grad_ns;      /* training */
};

LS_API void ls_learner_counts(ls_learner *learner,
                              struct ls_learner_counts *out);

/* LS_OK, even after a stop; or the error that it failed with. */
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

/* Includes every step whose result has been got.
 * out:    every field is written, except out->learner: that is written only if
 *         it is not NULL and overwrite is set.
 * Errors: LS_ENOMEM. */
LS_MUST_USE LS_API int ls_learner_metrics(ls_learner *learner,
                                          struct ls_learner_metrics *out,
                                          bool overwrite);

/* Write the metrics as {"info": {"learner_queue": {size_count, size_mean,
 * size_std, size_quantiles}, "learner": {…}, "timing_breakdown":
 * {learner_grad_time_ms, learner_load_time_ms, learner_load_wait_time_ms,
 * learner_dequeue_time_ms}}}. The quantiles of an empty window are []. */
LS_API void ls_learner_metrics_write(const struct ls_learner_metrics *metrics,
                                     ls_writer *writer);

/* End all threads, in the middle of a batch if need be, and wake all waiting
 * calls. Accepted batches that were not trained are discarded. Results stay.
 * Calling it again returns LS_OK. One call at a time, and never from an op.
 * Errors: LS_ETIMEDOUT: an op did not return within wait_ms; the text names
 *         its thread; call it again, or destroy. */
LS_MUST_USE LS_API int ls_learner_stop(ls_learner *learner, int wait_ms);

/* Stop, for as long as it takes, and free it. No other call may be in progress.
 * NULL and a pointer to NULL are fine. */
LS_API void ls_learner_destroy(ls_learner **learner);

#ifdef __cplusplus
}
#endif

#endif
