/* frames.h - the frames that are under way, by the time at which they come out;
 * those of one time in the order in which they went in. Bounded: what does not
 * fit is refused, and the caller counts it. */
#ifndef TAPSWITCH_FRAMES_H
#define TAPSWITCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_MAX      16384
#define FRAME_BYTES_MAX 1600 /* an MTU of 1500, Ethernet's header, a tag */

struct frame {
    int64_t due;
    uint64_t number; /* which of those with the same time goes first */
    unsigned from, to;
    size_t size;
    unsigned char *bytes; /* own */
};

struct frames {
    struct frame heap[FRAMES_MAX]; /* the earliest first */
    size_t n;
    uint64_t numbers;
};

/* Copies size <= FRAME_BYTES_MAX bytes. False: full, or no memory. */
bool frames_push(struct frames *frames, int64_t due, unsigned from, unsigned to,
                 const unsigned char *bytes, size_t size);

/* Takes the earliest out when it is due; its bytes are the caller's to free. */
bool frames_pop(struct frames *frames, int64_t now, struct frame *out);

/* LS_FOREVER when there is none. */
int64_t frames_next_due(const struct frames *frames);

#endif
