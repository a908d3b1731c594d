/* outlet.h - what a run, or a node that runs alone, writes, kept until somebody
 * reads it.
 *
 * A terminal that is stopped, and a pipe whose reader rests, must not hold up
 * who watches over nodes, or a node that others wait for. While the outlet is
 * open, all that the process writes to stdout and stderr goes through a thread
 * for each of the two. Whoever writes waits for it a moment, so that in general
 * a line is out before the next is made, and the two streams keep their order;
 * a reader that is slower is not waited for until it has caught up. Nothing of
 * it is lost, and it is kept in memory. Thread: owner, for open, drain and
 * close; else any. */
#ifndef LOCKSTEP_OUTLET_H
#define LOCKSTEP_OUTLET_H

#include <stddef.h>

#include "lockstep/status.h"

/* Once in the life of a process at a time; what is buffered is written before.
 * Errors: LS_EAGAIN no room for a thread; LS_ENOMEM. */
LS_MUST_USE int outlet_open(void);

/* Wait until all of it is read, however long that takes: who cannot wait has a
 * watchdog. */
void outlet_drain(void);

/* Drain it, and give the process its streams back. Nobody writes any more. */
void outlet_close(void);

/* As write(2) of all of it. Straight to fd when it is not open for that.
 * Failures: outlet_failed(). */
void outlet_write(int fd, const void *data, size_t size);

/* Wait until less than 16 MiB wait for whoever reads stderr: for those who
 * pass on what others write, as much as they like. */
void outlet_await_room(void);

/* Why writing stdout failed first, an errno; 0: it has not. */
int outlet_failed(void);

#endif
