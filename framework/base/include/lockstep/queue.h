/* queue.h - a bounded, closable queue of fixed-size items between threads.
 *
 * Items are copied in and out. An option says what a put into a full queue
 * does: wait, drop the oldest item, or fail; dropped and refused items are
 * counted. Closing wakes everyone: puts then fail at once, gets succeed until
 * the queue is empty and then fail.
 * Thread: any. */
#ifndef LOCKSTEP_QUEUE_H
#define LOCKSTEP_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_queue ls_queue;

enum ls_when_full {
    LS_QUEUE_BLOCK,       /* a put waits for room until its deadline */
    LS_QUEUE_DROP_OLDEST, /* a put always succeeds; drops the oldest, counted */
    LS_QUEUE_FAIL         /* a put into a full queue fails at once, counted */
};

struct ls_queue_options {
    size_t capacity;  /* items, >= 1 */
    size_t item_size; /* bytes, >= 1 */
    enum ls_when_full when_full;
    void (*drop)(void *item); /* releases what an item owns when it is dropped,
                               * or found by destroy; outside the lock; or
                               * NULL */
};

struct ls_queue_stats {
    uint64_t put;     /* items accepted */
    uint64_t got;     /* items handed out */
    uint64_t dropped; /* accepted, then pushed out by a newer one */
    uint64_t refused; /* not accepted: full, closed, or out of time */
    size_t size;      /* items in it now: put - got - dropped */
    size_t peak;      /* the largest size so far */
};

/* out:    own; NULL after an error; give it to ls_queue_destroy().
 * Errors: LS_EINVAL capacity, item_size or when_full; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_queue_create(ls_queue **out, ls_runtime *runtime,
                                       const struct ls_queue_options *options);

/* Put a copy of *item. On failure the item is still the caller's.
 * Errors: LS_EAGAIN full (when_full fail, or block with LS_NOW); LS_ETIMEDOUT
 *         full until the deadline; LS_ECLOSED; LS_ENOMEM, only when items of
 *         more than 256 bytes are dropped through options.drop. */
LS_MUST_USE LS_API int ls_queue_put(ls_queue *queue, const void *item,
                                    int64_t deadline);

/* Take the oldest item into *item.
 * Errors: LS_EAGAIN empty (with LS_NOW); LS_ETIMEDOUT empty until the
 *         deadline; LS_ECLOSED closed and empty. */
LS_MUST_USE LS_API int ls_queue_get(ls_queue *queue, void *item,
                                    int64_t deadline);

/* Refuse further puts and wake all waiters. Repeating it has no effect. */
LS_API void ls_queue_close(ls_queue *queue);

LS_API void ls_queue_stats(ls_queue *queue, struct ls_queue_stats *out);

/* Free the queue and drop what is in it; no other call may be in progress. NULL
 * and a pointer to NULL are fine. */
LS_API void ls_queue_destroy(ls_queue **queue);

#ifdef __cplusplus
}
#endif

#endif
