/* Frames whose bytes are counted for as long as libzmq holds them for those
 * that have not read them: the one thing that tells that somebody does not.
 * Short ones are not worth it: the mark of the socket bounds how many wait. */
#include "transport_zmq.h"

#include <stdlib.h>
#include <string.h>

#define COUNTED_BYTES 1024

struct zmq_ledger *transport_zmq_ledger_create(void)
{
    struct zmq_ledger *ledger = calloc(1, sizeof *ledger);
    if (ledger != NULL)
        atomic_store(&ledger->held, 1);
    return ledger;
}

static void settle(struct zmq_ledger *ledger, size_t bytes)
{
    if (atomic_fetch_sub(&ledger->held, bytes) == bytes)
        free(ledger);
}

void transport_zmq_ledger_drop(struct zmq_ledger *ledger)
{
    if (ledger != NULL)
        settle(ledger, 1);
}

struct held {
    struct zmq_ledger *ledger;
    size_t size;
    void (*release)(void *data, void *hint); /* of who owns it; or NULL */
    void *hint;
    uint8_t bytes[];
};

static void let_go(void *data, void *hint)
{
    struct held *held = hint;
    transport_released();
    settle(held->ledger, held->size);
    if (held->release != NULL)
        held->release(data, held->hint);
    free(held);
}

static struct held *hold(struct zmq_ledger *ledger, size_t size, size_t copied)
{
    struct held *held = malloc(sizeof *held + copied);
    if (held == NULL)
        return NULL;
    /* One more: an empty one counts, too. */
    *held = (struct held){.ledger = ledger, .size = size + 1};
    atomic_fetch_add(&ledger->held, held->size);
    return held;
}

static void join(uint8_t *at, const void *head, size_t head_size,
                 const void *body, size_t body_size)
{
    memcpy(at, head, head_size);
    if (body_size != 0)
        memcpy(at + head_size, body, body_size);
}

bool transport_zmq_frame_short(zmq_msg_t *frame, const void *head,
                               size_t head_size, const void *body,
                               size_t body_size)
{
    if (zmq_msg_init_size(frame, head_size + body_size) != 0)
        return false;
    join(zmq_msg_data(frame), head, head_size, body, body_size);
    return true;
}

bool transport_zmq_frame(struct zmq_ledger *ledger, zmq_msg_t *frame,
                         const void *head, size_t head_size, const void *body,
                         size_t body_size)
{
    const size_t size = head_size + body_size;
    if (size < COUNTED_BYTES)
        return transport_zmq_frame_short(frame, head, head_size, body,
                                         body_size);
    struct held *held = hold(ledger, size, size);
    if (held == NULL)
        return false;
    if (zmq_msg_init_data(frame, held->bytes, size, let_go, held) != 0) {
        let_go(held->bytes, held);
        return false;
    }
    join(held->bytes, head, head_size, body, body_size);
    return true;
}

bool transport_zmq_frame_owned(struct zmq_ledger *ledger, zmq_msg_t *frame,
                               void *body, size_t size,
                               void (*release)(void *data, void *hint),
                               void *hint)
{
    struct held *held = hold(ledger, size, 0);
    if (held == NULL) {
        release(body, hint);
        return false;
    }
    held->release = release;
    held->hint = hint;
    if (zmq_msg_init_data(frame, body, size, let_go, held) == 0)
        return true;
    let_go(body, held);
    return false;
}
