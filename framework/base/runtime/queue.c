/* A queue of items, first in, first out. Design notes:
 *
 * - A ring of slots under one lock, with a side for getters and one for
 *   putters: a put wakes one getter and a get wakes one putter, never one of
 *   its own side.
 * - While one is called that has not come yet, no other of its side is: it
 *   calls the next one itself when it leaves something to do. So a waker that
 *   is faster than a thread can be woken makes one call for many items. Who
 *   gives up at its deadline may have been the one that was called, so it, too,
 *   passes the call on.
 * - Calls are made after the lock is released: who is woken finds it free.
 * - A wait that times out looks once more at the ring before it gives up, so
 *   that a call that came together with the deadline is not lost.
 * - The drop function runs without the lock, so it may take its time and may
 *   use the queue. Meanwhile the slot has the new item in it, so the dropped
 *   one is moved out first: onto the stack when it is small, as nearly all
 *   are. */
#include "lockstep/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_ITEM_BYTES = 256 };

/* Those who wait for one thing. */
struct side {
    ls_cond cond;
    /* The rest under the queue's mutex. */
    size_t n_waiting;
    bool called; /* one of them, that has not come yet */
};

struct ls_queue {
    struct ls_queue_options options;
    ls_mutex mutex;
    struct side putters;
    struct side getters;
    /* The rest under mutex. */
    unsigned char *slots; /* own; options.capacity of options.item_size */
    size_t oldest;        /* a slot's number */
    bool closed;
    struct ls_queue_stats stats;
};

static int check_options(const struct ls_queue_options *options)
{
    if (options->capacity == 0)
        return ls_error(LS_EINVAL, "queue: capacity must be at least 1");
    if (options->item_size == 0)
        return ls_error(LS_EINVAL, "queue: item_size must be at least 1");
    if (options->when_full != LS_QUEUE_BLOCK &&
        options->when_full != LS_QUEUE_DROP_OLDEST &&
        options->when_full != LS_QUEUE_FAIL)
        return ls_error(LS_EINVAL, "queue: when_full: there is no %d",
                        (int)options->when_full);
    return LS_OK;
}

int ls_queue_create(ls_queue **out, ls_runtime *runtime,
                    const struct ls_queue_options *options)
{
    *out = NULL;
    int status = check_options(options);
    if (status != LS_OK)
        return status;
    ls_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return ls_error(LS_ENOMEM, "no memory for a queue");
    queue->options = *options;
    queue->slots = calloc(options->capacity, options->item_size);
    if (queue->slots == NULL)
        status = ls_error(LS_ENOMEM,
                          "no memory for a queue of %zu items of %zu bytes",
                          options->capacity, options->item_size);
    if (status == LS_OK)
        status = ls_mutex_init(&queue->mutex, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&queue->putters.cond, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&queue->getters.cond, runtime);
    if (status != LS_OK) {
        ls_queue_destroy(&queue);
        return status;
    }
    *out = queue;
    return LS_OK;
}

/* The slot of the item that is the `nth` after the oldest one. */
static void *slot_at(const ls_queue *queue, size_t nth)
{
    const size_t to_end = queue->options.capacity - queue->oldest;
    const size_t number = nth < to_end ? queue->oldest + nth : nth - to_end;
    return queue->slots + number * queue->options.item_size;
}

static bool is_full(const ls_queue *queue)
{
    return queue->stats.size == queue->options.capacity;
}

/* Wait for what the side waits for, or for the end of it. */
static int wait_on(ls_queue *queue, struct side *side, int64_t deadline)
{
    side->n_waiting++;
    const int status = ls_cond_wait(&side->cond, &queue->mutex, deadline);
    side->n_waiting--;
    side->called = false;
    return status;
}

/* Whether one of that side is to be called, which the caller then does. */
static bool must_call(struct side *side, bool has_something)
{
    const bool calls = has_something && side->n_waiting > 0 && !side->called;
    side->called = side->called || calls;
    return calls;
}

/* Release the lock, and call who can go on now. */
static void unlock_and_call(ls_queue *queue)
{
    const bool calls_getter = must_call(&queue->getters, queue->stats.size > 0);
    const bool calls_putter = must_call(&queue->putters, !is_full(queue));
    ls_mutex_unlock(&queue->mutex);
    if (calls_getter)
        ls_cond_signal(&queue->getters.cond);
    if (calls_putter)
        ls_cond_signal(&queue->putters.cond);
}

static void append(ls_queue *queue, const void *item)
{
    memcpy(slot_at(queue, queue->stats.size), item, queue->options.item_size);
    queue->stats.put++;
    queue->stats.size++;
    if (queue->stats.peak < queue->stats.size)
        queue->stats.peak = queue->stats.size;
}

/* Move the oldest item to *item, or nowhere when that is NULL. */
static void take_oldest(ls_queue *queue, void *item)
{
    if (item != NULL)
        memcpy(item, slot_at(queue, 0), queue->options.item_size);
    queue->stats.size--;
    if (++queue->oldest == queue->options.capacity)
        queue->oldest = 0;
}

static int say_closed(void)
{
    return ls_error(LS_ECLOSED, "the queue is closed");
}

static int say_full(const ls_queue *queue, int status)
{
    return ls_error(status,
                    status == LS_ETIMEDOUT
                        ? "the queue of %zu was full until the deadline"
                        : "the queue of %zu is full",
                    queue->options.capacity);
}

/* Wait, under the lock, until there is room. */
static int wait_for_room(ls_queue *queue, int64_t deadline)
{
    if (queue->options.when_full == LS_QUEUE_FAIL)
        deadline = LS_NOW;
    int status = LS_OK;
    while (!queue->closed && is_full(queue)) {
        if (deadline == LS_NOW)
            return say_full(queue, LS_EAGAIN);
        if (status != LS_OK)
            return say_full(queue, status);
        status = wait_on(queue, &queue->putters, deadline);
    }
    return queue->closed ? say_closed() : LS_OK;
}

static int put_when_room(ls_queue *queue, const void *item, int64_t deadline)
{
    ls_mutex_lock(&queue->mutex);
    const int status = wait_for_room(queue, deadline);
    if (status == LS_OK)
        append(queue, item);
    else
        queue->stats.refused++;
    unlock_and_call(queue);
    return status;
}

/* Put, and move what had to go for it to *dropped. */
static int put_over_oldest(ls_queue *queue, const void *item, void *dropped,
                           bool *has_dropped)
{
    ls_mutex_lock(&queue->mutex);
    const int status = queue->closed ? say_closed() : LS_OK;
    if (status == LS_OK) {
        *has_dropped = is_full(queue);
        if (*has_dropped) {
            take_oldest(queue, dropped);
            queue->stats.dropped++;
        }
        append(queue, item);
    } else {
        queue->stats.refused++;
    }
    unlock_and_call(queue);
    return status;
}

static int put_dropping(ls_queue *queue, const void *item)
{
    _Alignas(max_align_t) unsigned char small[SMALL_ITEM_BYTES];
    void *dropped = small;
    bool has_dropped = false;
    if (queue->options.drop == NULL)
        return put_over_oldest(queue, item, NULL, &has_dropped);

    const bool is_large = queue->options.item_size > sizeof small;
    if (is_large && (dropped = malloc(queue->options.item_size)) == NULL)
        return ls_error(LS_ENOMEM, "no memory to drop an item of %zu bytes",
                        queue->options.item_size);
    const int status = put_over_oldest(queue, item, dropped, &has_dropped);
    if (has_dropped)
        queue->options.drop(dropped);
    if (is_large)
        free(dropped);
    return status;
}

int ls_queue_put(ls_queue *queue, const void *item, int64_t deadline)
{
    if (queue->options.when_full == LS_QUEUE_DROP_OLDEST)
        return put_dropping(queue, item);
    return put_when_room(queue, item, deadline);
}

/* Wait, under the lock, until there is an item. What was put before the queue
 * was closed is still handed out. */
static int wait_for_item(ls_queue *queue, int64_t deadline)
{
    int status = LS_OK;
    while (queue->stats.size == 0) {
        if (queue->closed)
            return say_closed();
        if (deadline == LS_NOW)
            return ls_error(LS_EAGAIN, "the queue is empty");
        if (status != LS_OK)
            return ls_error(status, "the queue was empty until the deadline");
        status = wait_on(queue, &queue->getters, deadline);
    }
    return LS_OK;
}

int ls_queue_get(ls_queue *queue, void *item, int64_t deadline)
{
    assert(item != NULL);
    ls_mutex_lock(&queue->mutex);
    const int status = wait_for_item(queue, deadline);
    if (status == LS_OK) {
        take_oldest(queue, item);
        queue->stats.got++;
    }
    unlock_and_call(queue);
    return status;
}

void ls_queue_close(ls_queue *queue)
{
    ls_mutex_lock(&queue->mutex);
    queue->closed = true;
    ls_cond_broadcast(&queue->putters.cond);
    ls_cond_broadcast(&queue->getters.cond);
    ls_mutex_unlock(&queue->mutex);
}

void ls_queue_stats(ls_queue *queue, struct ls_queue_stats *out)
{
    ls_mutex_lock(&queue->mutex);
    *out = queue->stats;
    ls_mutex_unlock(&queue->mutex);
}

void ls_queue_destroy(ls_queue **queue)
{
    if (queue == NULL || *queue == NULL)
        return;
    ls_queue *const old = *queue;
    *queue = NULL;
    for (size_t i = 0; old->options.drop != NULL && i < old->stats.size; i++)
        old->options.drop(slot_at(old, i));
    ls_cond_fini(&old->getters.cond);
    ls_cond_fini(&old->putters.cond);
    ls_mutex_fini(&old->mutex);
    free(old->slots);
    free(old);
}
