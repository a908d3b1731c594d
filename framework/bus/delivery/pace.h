/* pace.h - how much may be under way to one peer, so that what matters does not
 * wait behind what is long.
 *
 * A connection delivers in order, so a heartbeat waits for all that was sent
 * before it: 8 MiB take an hour at 2 kB/s. What is under way is therefore kept
 * to what the connection carries in a short while. It begins small and doubles
 * for as long as what is asked for arrives soon; on a fast network that takes a
 * millisecond, once. A state machine without clock: Thread: serial. */
#ifndef LOCKSTEP_BUS_PACE_H
#define LOCKSTEP_BUS_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/runtime.h"

#define PACE_FIRST_BYTES (16u * 1024u)
#define PACE_LEAST_BYTES (4u * 1024u)
#define PACE_MOST_BYTES  (1u << 30)
/* What is under way should have arrived within this. */
#define PACE_NS (200 * LS_NS_PER_MS)

struct pace {
    size_t bytes; /* that may be under way */
    bool slow;    /* it has been measured to be less than was asked for */
    uint64_t asked_bytes; /* of all that was sent: has so much arrived? */
    int64_t asked_at;     /* 0: nothing is asked */
};

void pace_init(struct pace *pace);
/* Whether so much more may be sent; one thing may always be under way. */
static inline bool pace_has_room(const struct pace *pace, uint64_t under_way,
                                 size_t bytes)
{
    return under_way == 0 || under_way + bytes <= pace->bytes;
}
/* The longest piece that a long message should be sent in. */
size_t pace_piece(const struct pace *pace, size_t most);
/* So much has been sent in all, of which so much is under way: whether the
 * peer is to be asked to tell when it has arrived. */
bool pace_asks(struct pace *pace, uint64_t sent, uint64_t under_way,
               int64_t now);
/* So much has arrived in all. */
void pace_arrived(struct pace *pace, uint64_t arrived, int64_t now);
/* The connection is a new one: what was asked may be lost. */
void pace_again(struct pace *pace);

#endif
