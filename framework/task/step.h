/* step.h - one step and its turn; what the files of the task share about them.
 *
 * A part is a middleware in use. Its turn in an iteration is one step, the
 * turn's own, with all the steps that this one starts inside itself (wrapped
 * middleware, and what a wrapper stands around). The steps of a turn that have
 * yielded form a stack; the turn's backward half resumes them from the top. A
 * turn stays in the lane, which is the thread, where it began. */
#ifndef STEP_H
#define STEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lockstep/fiber.h"
#include "lockstep/task.h"

struct ls_step_lock {
    ls_mutex mutex;
    atomic_uint users; /* middleware that may hold it */
};

struct group;
struct lane;

struct ls_step {
    ls_task *task;
    struct lane *lane;
    struct part *part; /* the one whose turn it is in */
    const char *name;
    ls_step_fn *fn;
    void *self;
    ls_step_lock *lock;

    ls_fiber *fiber; /* own; NULL unless it has begun and not ended */
    bool yielded;
    bool yielded_twice;
    int given;  /* what ls_yield() returns */
    int result; /* what fn returned */

    ls_step *parent; /* the step that started it; NULL: the task did */
    ls_step *below;  /* in the turn's stack */

    /* Of a wrapper: how many stand below it, and the one directly below. */
    unsigned level;
    ls_step *inner;
};

/* A step inside another one's turn. */
struct ls_wrapped {
    ls_step step;
    ls_wrapped *next; /* in the turn's, or among the lane's spare ones */
};

/* A middleware in use, and its turn in the current iteration. */
struct part {
    struct ls_middleware what; /* its texts are own; lock is resolved */
    bool active;               /* not void, and for this role */

    ls_step step;
    ls_step *suspended; /* the stack of steps that have yielded */
    ls_wrapped *inside; /* own; the other steps of the turn */

    /* As work for another lane. */
    struct group *group;
    struct part *next;
    bool back; /* its backward half */
    struct ls_failure outcome;
};

/* Keep the calling thread's last error, if there is none yet. */
void ls_outcome_catch(struct ls_failure *outcome, int status);

/* Run the forward half of a part's turn in this lane; parent: the step that it
 * runs inside, or NULL. */
LS_MUST_USE int ls_turn_forward(struct part *part, struct lane *lane,
                                ls_step *parent);

/* Resume what the turn has left suspended, giving each what has gone wrong so
 * far, and end the turn. Runs in the turn's lane. */
void ls_turn_back(struct part *part, struct ls_failure *outcome);

/* A fresh step inside the turn of `parent`, in whose half this is called.
 * Borrow: until the turn ends. NULL: no memory. */
ls_wrapped *ls_turn_add(ls_step *parent);

/* Run its forward half. */
LS_MUST_USE int ls_step_forward(ls_step *step);

/* Run its backward half, from inside its parent's; LS_OK when it has none, or
 * it ran already. */
LS_MUST_USE int ls_step_back(ls_step *step);

#endif
