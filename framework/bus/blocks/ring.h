/* ring.h - frames from one node to another of its host, in memory of the
 * sender's own, which the receiver reads; in order, and none is lost.
 *
 * Each of the two says in its own memory how far it is, in bytes: the sender
 * what it has written, the receiver what it has taken. A frame is its size, in
 * four bytes, then its bytes, up to a multiple of RING_UNIT; it may go on at
 * the begin of the ring. The receiver copies a frame before it looks at it, and
 * whatever the sender writes, nothing beyond the ring is touched.
 * Thread: of the sender, one at a time; of the receiver, one at a time.
 * Source: docs/shared-memory.md#rings; Lamport 1977, "Proving the Correctness
 * of Multiprocess Programs", section 4. */
#ifndef LOCKSTEP_BUS_RING_H
#define LOCKSTEP_BUS_RING_H

#include <string.h>

#include "block_row.h"

enum {
    RING_BYTES = 16 * 1024,
    RING_UNIT = 8,
    RING_FRAME_MAX = RING_BYTES / 2,
};
#define RING_LIES SIZE_MAX

struct ring {
    _Alignas(64) block_word session; /* of the receiver; 0: it is nobody's */
    block_word written;
    _Alignas(64) block_word taken; /* of the other's ring to this owner */
    _Alignas(64) unsigned char bytes[RING_BYTES];
};

/* What a frame takes there. */
static inline uint64_t ring_space(size_t size)
{
    return (sizeof(uint32_t) + (uint64_t)size + RING_UNIT - 1) / RING_UNIT *
           RING_UNIT;
}

static inline uint64_t ring_put(struct ring *ring, uint64_t at,
                                const void *data, size_t size)
{
    const size_t from = (size_t)(at % RING_BYTES);
    const size_t first = size < RING_BYTES - from ? size : RING_BYTES - from;
    if (first != 0)
        memcpy(ring->bytes + from, data, first);
    if (size != first)
        memcpy(ring->bytes, (const char *)data + first, size - first);
    return at + size;
}

static inline uint64_t ring_get(const struct ring *ring, uint64_t at, void *out,
                                size_t size)
{
    const size_t from = (size_t)(at % RING_BYTES);
    const size_t first = size < RING_BYTES - from ? size : RING_BYTES - from;
    memcpy(out, ring->bytes + from, first);
    memcpy((char *)out + first, ring->bytes, size - first);
    return at + size;
}

/* It is for a receiver of this session, who has taken nothing yet. */
static inline void ring_begin(ls_runtime *runtime, struct ring *ring,
                              uint64_t session)
{
    block_store(runtime, &ring->session, 0);
    block_store(runtime, &ring->written, 0);
    block_store(runtime, &ring->session, session);
}

/* taken: how far the receiver says that it is. Returns false: there is no room,
 * and nothing was written. */
static inline bool ring_write(ls_runtime *runtime, struct ring *ring,
                              uint64_t taken, const void *head,
                              size_t head_size, const void *body,
                              size_t body_size)
{
    const uint64_t written =
        atomic_load_explicit(&ring->written, memory_order_relaxed);
    const size_t size = head_size + body_size;
    const uint64_t there = written - taken; /* a receiver may lie */
    if (size == 0 || size > RING_FRAME_MAX || there > RING_BYTES ||
        RING_BYTES - there < ring_space(size))
        return false;
    if (runtime == NULL || ls_memory_touch(runtime)) {
        const uint32_t length = (uint32_t)size;
        uint64_t at = ring_put(ring, written, &length, sizeof length);
        at = ring_put(ring, at, head, head_size);
        (void)ring_put(ring, at, body, body_size);
    }
    block_store(runtime, &ring->written, written + ring_space(size));
    return true;
}

/* Whether there is more than was taken. */
static inline bool ring_has(ls_runtime *runtime, const struct ring *ring,
                            uint64_t session, uint64_t taken)
{
    return block_load(runtime, &ring->session) == session &&
           block_load(runtime, &ring->written) != taken;
}

/* What is there is no frame; nor need it be, if its owner has given the ring to
 * another meanwhile. */
static inline size_t ring_lies(ls_runtime *runtime, const struct ring *ring,
                               uint64_t session, uint64_t written,
                               uint64_t *taken)
{
    if (block_load(runtime, &ring->session) != session)
        return 0;
    *taken = written;
    return RING_LIES;
}

/* The next frame: its size, into out[RING_FRAME_MAX]; 0: there is none now;
 * RING_LIES: what is there is no frame, and all of it is passed over. taken: in
 * and out. */
static inline size_t ring_read(ls_runtime *runtime, const struct ring *ring,
                               uint64_t session, uint64_t *taken, void *out)
{
    uint32_t size;
    if (!ring_has(runtime, ring, session, *taken))
        return 0;
    const uint64_t written = block_load(runtime, &ring->written);
    const uint64_t there = written - *taken;
    if (there < sizeof size || there > RING_BYTES)
        return ring_lies(runtime, ring, session, written, taken);
    const uint64_t at = ring_get(ring, *taken, &size, sizeof size);
    if (size == 0 || size > RING_FRAME_MAX || ring_space(size) > there)
        return ring_lies(runtime, ring, session, written, taken);
    (void)ring_get(ring, at, out, size);
    /* Then it was not for us. */
    if (block_load(runtime, &ring->session) != session)
        return 0;
    *taken += ring_space(size);
    return size;
}

#endif
