/* learner_parts.h - the inside of a learner: what its files share. */
#ifndef LEARNER_PARTS_H
#define LEARNER_PARTS_H

#include <stdatomic.h>

#include "lockstep/crew.h"
#include "lockstep/learner.h"
#include "lockstep/minibatch_ring.h"

#include "results.h"

/* learner.h has the picture. */
enum stack_state { STACK_IDLE, STACK_LOADING, STACK_READY, STACK_TRAINING };

/* Belongs to the thread that has taken it from a queue, or trains it. */
struct stack {
    size_t index;
    enum stack_state state;
    struct ls_learner_batch batch; /* own; while it is not idle */
    int64_t dequeue_ns;            /* that the batch was waited for */
    unsigned passes_done;          /* over the batch */
    ls_learner_info *info;         /* own; over these passes */
    ls_device_stack **parts;       /* own; one per device, or NULL */
};

/* A batch in the queue, which drops it without knowing a learner. */
struct queued {
    struct ls_learner_batch batch;
    ls_learner *learner; /* borrow */
};

struct loader {
    ls_learner *learner; /* borrow */
    size_t index;
    ls_thread *thread; /* own */
    atomic_bool in_op; /* its load has not returned */
};

/* What one device makes of a pass; of its thread, and of the learner's when
 * that has returned. */
struct computed {
    bool bound; /* the thread to the device */
    struct ls_failure failure;
    ls_learner_info *info; /* own */
};

/* How long something takes. */
struct stage {
    ls_window *recent; /* own; in ns */
    int64_t total_ns;
};

struct ls_learner {
    struct ls_learner_options options; /* without zeros */
    struct ls_learner_ops ops;
    ls_runtime *runtime; /* borrow */

    ls_queue *in;            /* own; of struct queued */
    ls_queue *idle;          /* own; of struct stack * */
    ls_queue *ready;         /* own; of struct stack * */
    struct results *results; /* own */

    struct stack *stacks;     /* own; options.stacks */
    struct loader *loaders;   /* own; options.loaders */
    ls_thread *thread;        /* own; the learner thread */
    ls_minibatch_ring *ring;  /* own; of the learner thread */
    ls_crew *crew;            /* own; a member for each device */
    struct computed *devices; /* own; options.n_devices */
    struct stack *training;   /* borrow; what the crew works on */
    atomic_bool in_op;        /* one that the learner thread runs has not
                               * returned */
    atomic_bool ending;       /* stopped, or failed; set under mutex */

    ls_mutex mutex;
    ls_cond changed; /* weights_updated, or ending */
    /* The rest under mutex. */
    struct ls_failure failure;
    bool weights_updated;
    struct ls_learner_counts counts; /* but for what the queues count */
    struct stage dequeue, load, load_wait, grad;
    int64_t training_since; /* LS_FOREVER: nothing is trained */
    int64_t overlap_ns;
    ls_window *queue_sizes;  /* own */
    ls_learner_info *latest; /* own; of the batch trained last */
};

/* ---- learner_threads.c: how threads begin, fail and end ---------------- */

/* Errors: LS_EAGAIN, LS_ENOMEM; those that run are joined by
 * ls_learner_stop(). */
LS_MUST_USE int learner_spawn(ls_learner *learner);

/* End the learner because `who` has failed, with the calling thread's last
 * error. */
void learner_fail(ls_learner *learner, int status, const char *who, ...)
    LS_PRINTF(3, 4);

/* ls_learner_stop(). */
LS_MUST_USE int learner_stop_by(ls_learner *learner, int64_t deadline);

/* What calls return once it has ended. Under the mutex, or not. */
int learner_say_ended(ls_learner *learner);

/* Note how long something took: under the mutex, or not. */
void learner_add(struct stage *stage, int64_t ns);
void learner_note(ls_learner *learner, struct stage *stage, int64_t ns);

/* ---- learner_load.c: from the queue to a loaded stack ------------------ */

void learner_loader_main(void *loader);

/* Wait for a batch, and load it on the calling thread.
 * Errors: LS_ETIMEDOUT, LS_EAGAIN; LS_ECLOSED; what load failed with, noted
 * already. */
LS_MUST_USE int learner_load_here(ls_learner *learner, struct stack **out,
                                  int64_t deadline);

/* Release the batch of a stack. */
void learner_drop_batch(ls_learner *learner, struct stack *stack);

void learner_move(struct stack *stack, enum stack_state from,
                  enum stack_state to);

/* ---- learner_step.c: the learner thread -------------------------------- */

void learner_main(void *learner);

/* The crew's call: one device's part of a pass. */
void learner_compute(void *learner, size_t device);

#endif
