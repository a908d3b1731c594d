/* call_intake.h - a body on its way in, put together from its parts. One that
 * comes in one part is kept as it came. No lock, socket or clock.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_CALL_INTAKE_H
#define LOCKSTEP_BUS_CALL_INTAKE_H

#include "lockstep/call.h"
#include "lockstep/channel.h"

struct call_intake {
    struct ls_body body; /* own; size: of all of it */
    size_t filled;
};

enum intake_verdict {
    INTAKE_MORE,
    INTAKE_WHOLE,
    INTAKE_WRONG, /* it is not the next of a body of that length */
    INTAKE_NO_MEMORY
};

/* A part of a body came that was said to have `size` bytes in all. */
enum intake_verdict call_intake_add(struct call_intake *intake, size_t size,
                                    struct ls_channel_part *part);
/* Move the body out; it is none then. */
struct ls_body call_intake_take(struct call_intake *intake);
/* Give up what has come. */
void call_intake_drop(struct call_intake *intake);

#endif
