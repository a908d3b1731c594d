/* child.h - a node as a process, and the threads that listen to it.
 *
 * What it writes to stdout and stderr comes back as lines, of which one over
 * 64 KiB comes in pieces of that length; what it reports on descriptor 3 as
 * reports; from descriptor 4 it may read the secret of its run. When it is gone
 * and all of that has been read, its end is noted.
 *
 * Or a program that stands for one elsewhere, in a container: what that one
 * reports comes on its stdout. */
#ifndef LOCKSTEP_CHILD_H
#define LOCKSTEP_CHILD_H

#include "spawn_self.h"
#include "supervise.h"

#define CHILD_REPORT_FD 3
#define CHILD_SECRET_FD 4

typedef struct child child;

/* arguments: of this very program; borrow.
 * secret_fd: to be its CHILD_SECRET_FD; borrow; -1: none.
 * out:    own; written on success only; give it to child_destroy().
 * Errors: LS_EIO with the system's reason; LS_EAGAIN; LS_ENOMEM.
 * Thread: the one that lives as long as the program: on Linux a child hears of
 *         its parent's death when the thread that made it ends. */
LS_MUST_USE int child_start(child **out, const struct arguments *arguments,
                            int secret_fd, size_t index, supervisor *watcher);
/* The same with another program, argv[0]. */
LS_MUST_USE int child_start_tool(child **out, const struct arguments *arguments,
                                 size_t index, supervisor *watcher);

/* Send a signal. When it is gone, that is nothing: no other process gets it,
 * even one that has its number now. Source: pidfd_send_signal(2). Thread: any,
 * until child_destroy(). */
void child_kill(child *child, int signal);

/* Wait for its end, which is near, and free it. False: what it started still
 * holds its pipes, so the watcher may yet be told something. */
bool child_destroy(child **child);

#endif
