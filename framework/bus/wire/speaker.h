/* speaker.h - who said something, as the transport states it. */
#ifndef LOCKSTEP_BUS_SPEAKER_H
#define LOCKSTEP_BUS_SPEAKER_H

#include <stdbool.h>
#include <stdint.h>

struct speaker {
    bool spoken; /* a peer said it; false: a connection ended, or not known */
    bool own;    /* in this process: believed */
    bool proved; /* it has proved to be */
    uint32_t id; /* this node */
    uint64_t connection; /* which of all to this node; 0: not known */
};

#endif
